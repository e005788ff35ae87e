"""An embedder for tests that takes microseconds: stems hashed into 384 dimensions. Texts that share words are near,
and each is a little off in a direction of its own, so that to be near by meaning is not to be near by words; but words
that mean the same have one direction, so that there are statements to merge."""

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from composer.ports.models import MINILM_SCALE, Embedder, UsageAccount, Vectors
from composer.text.terms import terms

WIDTH = 384
OFF = 0.8  # of what the words weigh together
SYNONYMS = {"enjoy": "love", "realli": "love", "agre": "decid"}  # stems


class HashedWords:
    """composer.ports.Embedder. A vector depends on its text alone, on every machine."""

    name = "hashed-words"
    width = WIDTH

    async def load(self) -> None:
        """Nothing to load."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, of shape (len(texts), 384)."""
        return np.stack([_of(text) for text in texts])


class Unmetered:
    """An embedder that nothing records (composer.ports.models.MeteredEmbedder)."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.scale = MINILM_SCALE

    async def embed(
        self, texts: Sequence[str], account: UsageAccount, *, questions: bool = False, compared: bool = False
    ) -> Vectors:
        """As the embedder itself."""
        return await self._embedder.embed(texts)


@lru_cache(maxsize=4096)
def _of(text: str) -> Vectors:
    total = np.full(WIDTH, 1e-3, dtype=np.float64)  # a text without words still has a direction
    words = {SYNONYMS.get(term, term) for term in terms(text)}
    for term in sorted(words):
        total += _direction(term)
    whole = " ".join(sorted(words)) if words else text
    total += OFF * math.sqrt(len(words)) * _direction(f"as a whole: {whole}")
    unit: Vectors = (total / np.linalg.norm(total)).astype(np.float32)
    return unit


@lru_cache(maxsize=65536)
def _direction(term: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(term.encode()).digest(WIDTH // 8), dtype=np.uint8))
    return bits.astype(np.float64) * 2 - 1

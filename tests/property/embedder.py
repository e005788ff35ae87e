"""An embedder for tests that takes microseconds: stems hashed into 384 dimensions. Texts that share words are near."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from composer.ports import Vectors
from composer.terms import terms

WIDTH = 384


class HashedWords:
    """composer.ports.Embedder. A vector depends on its text alone, on every machine."""

    name = "hashed-words"
    width = WIDTH

    async def load(self) -> None:
        """Nothing to load."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, of shape (len(texts), 384)."""
        return np.stack([_of(text) for text in texts])


@lru_cache(maxsize=4096)
def _of(text: str) -> Vectors:
    total = np.full(WIDTH, 1e-3, dtype=np.float64)  # a text without words still has a direction
    for term, count in sorted(Counter(terms(text)).items()):
        total += count * _direction(term)
    unit: Vectors = (total / np.linalg.norm(total)).astype(np.float32)
    return unit


@lru_cache(maxsize=65536)
def _direction(term: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(term.encode()).digest(WIDTH // 8), dtype=np.uint8))
    return bits.astype(np.float64) * 2 - 1

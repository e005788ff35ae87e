"""Two embedders side by side: MiniLM, which finds most in English, and multilingual-e5-small, which knows other
languages, and finds what was said in another one than the question.

A vector is both unit vectors one after the other, each times the root of its share, so that a cosine is the mean of
both cosines by these shares. MiniLM takes a text in another language for signs and letters, so such a text has the
vector of multilingual-e5-small alone. Which language a text is in, the text alone says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from composer.ports.models import MINILM_SCALE, Scale, Vectors
from composer.stores.models import e5, minilm
from composer.stores.models.e5 import E5_SCALE, PASSAGE, QUESTION, MultilingualE5
from composer.stores.models.minilm import WIDTH, LoadedModel, MiniLM, Prepared
from composer.text.languages import ENGLISH
from composer.text.terms import tongue

MULTILINGUAL_NAME: Final = "multilingual"
SHARE: Final = 0.4  # of MiniLM in the vector of an English text
_Vectors = TypeVar("_Vectors", NDArray[np.float32], NDArray[np.float64])
COMPARED: Final = "compare: "  # before English texts that are compared with English texts
COMPARED_TEXTS: Final = 4  # take as long as one that is embedded by both models
_NOTHING: Final = np.zeros(WIDTH, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class _ScaleOfBoth(Scale):
    def compare(self, ones: _Vectors, others: _Vectors) -> _Vectors:
        """The likeness of texts to others: between English ones that of MiniLM, by which the bounds were chosen, and
        else that of multilingual-e5-small. By the mean of both, forgetting missed three times as many answers."""
        english = MINILM_SCALE.likeness(ones[:, :WIDTH] @ others[:, :WIDTH].T / SHARE)
        firsts, seconds = ones[:, WIDTH:], others[:, WIDTH:]
        lengths = np.outer(np.linalg.norm(firsts, axis=1), np.linalg.norm(seconds, axis=1))
        foreign = E5_SCALE.likeness(firsts @ seconds.T / np.where(lengths, lengths, 1.0))
        both = np.outer(ones[:, :WIDTH].any(axis=1), others[:, :WIDTH].any(axis=1))
        found: _Vectors = np.where(both, english, foreign).astype(ones.dtype)
        return found

    def compares(self, ones: _Vectors, others: _Vectors) -> bool:
        """False where a text of one side is not English, and one of the other has no vector of e5."""
        return not any(
            (~some[:, :WIDTH].any(axis=1)).any() and (~rest[:, WIDTH:].any(axis=1)).any()
            for some, rest in ((ones, others), (others, ones))
        )


MULTILINGUAL_SCALE: Final = _ScaleOfBoth(apart=0.08, spread=0.05, strange=0.15)


def side_by_side(first: NDArray[np.float32], second: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """One unit vector of two, shape (2 * WIDTH,), of which the first has a share of 0 to 1."""
    return np.concatenate([first * np.float32(share**0.5), second * np.float32((1 - share) ** 0.5)])


class _LoadedPair:
    """Both loaded models. Thread-safe."""

    def __init__(self) -> None:
        """Raises Misconfigured where the weights of one are not installed."""
        self._minilm, self._e5 = minilm.loaded(), e5.loaded()

    def prepared(self, text: str) -> Prepared:
        """A text that begins with QUESTION or PASSAGE, tokenised; its vector has shape (2 * WIDTH,), after COMPARED
        MiniLM's half of it alone. The same text always gives the same bits."""
        if text.startswith(COMPARED):
            english = self._minilm.prepared(text.removeprefix(COMPARED))
            return lambda: side_by_side(english(), _NOTHING, SHARE)
        plain, any_language = (
            text.removeprefix(QUESTION if text.startswith(QUESTION) else PASSAGE),
            self._e5.prepared(text),
        )
        if tongue(plain) != ENGLISH:
            return lambda: side_by_side(_NOTHING, any_language(), 0.0)
        own = self._minilm.prepared(plain)
        return lambda: side_by_side(own(), any_language(), SHARE)


class Multilingual(MultilingualE5):
    """The embedder `multilingual`: 768 dimensions, texts of about 100 languages cut at 256 tokens, nothing leaves the
    process. Loaded and shared by turns as MiniLM is."""

    @property
    def name(self) -> str:
        """`multilingual`."""
        return MULTILINGUAL_NAME

    @property
    def width(self) -> int:
        """768."""
        return 2 * WIDTH

    @property
    def scale(self) -> Scale:
        """As measured on English texts. Between English and other languages cosines spread as much (0.05), within
        another language more (0.08): there less is left out."""
        return MULTILINGUAL_SCALE

    async def embed_compared(self, texts: Sequence[str]) -> Vectors:
        """As `embed`; where all texts are English, MiniLM's half alone, which takes a quarter of the time."""
        if all(tongue(text) == ENGLISH for text in texts):
            return await MiniLM.embed(self, [f"{COMPARED}{text}" for text in texts])
        return await self.embed(texts)

    def _counted(self, text: str) -> int:
        return super()._counted(text) // (COMPARED_TEXTS if text.startswith(COMPARED) else 1)

    def _open(self) -> LoadedModel:
        return _LoadedPair()

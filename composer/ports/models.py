"""What the core asks of models: to embed, to count tokens, to answer."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from composer.model import Agent, Usage

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors. `name` and `width` are stored beside every vector."""

    @property
    def name(self) -> str:
        """The model's name, for example `minilm`."""
        ...

    @property
    def width(self) -> int:
        """Dimensions of a vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), width), float32, L2 norm 1, in the order of `texts`.

        Raises Unavailable when the model does not answer, Misconfigured when it refuses the key or name.
        """
        ...


class Tokenizer(Protocol):
    """Counts the tokens of a text as one model sees it; `exact` is False for an estimate."""

    @property
    def exact(self) -> bool:
        """Whether `count` is this model's own tokenizer rather than an estimate."""
        ...

    def count(self, text: str) -> int:
        """Tokens in `text`; special-token spellings count as ordinary text."""
        ...


@dataclass(frozen=True, slots=True)
class Image:
    """The bytes of an image; `type` is its media type, as the bytes themselves say."""

    type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a model request; `role` is system, user or assistant. `images` come after the text, in their
    order."""

    role: str
    content: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an answer as it streams in; the last one carries the usage."""

    text: str = ""
    usage: Usage | None = None


class ChatModel(Protocol):
    """Answers a prompt, streaming."""

    def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        """The answer, piece by piece.

        Raises Unavailable (unreachable, timed out, rate limited, after retries) or
        Misconfigured (wrong key, unknown model, request refused), each with one plain sentence.
        """
        ...

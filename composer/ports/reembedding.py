"""A change of embedder: vectors of the next one beside those in use, and the moment at which they take their place."""

import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from composer.ports.models import Vectors
from composer.ports.recall import EmbeddingInput


@dataclass(frozen=True, slots=True)
class EmbedderMark:
    """Which embedder vectors are of, as it is stored beside them."""

    name: str
    width: int


@dataclass(frozen=True, slots=True)
class ReembedStatus:
    """How far it is: the embedder in use (None: of an empty database), the next one (None: nothing begun), how many of
    all items have a vector of the next one, and whether a process is at it."""

    current: EmbedderMark | None
    target: EmbedderMark | None
    prepared: int
    items: int
    running: bool


class Reembedding(Protocol):
    """Vectors of another embedder, beside the ones in use. Raises Unavailable when the database does not answer."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Be the one process that re-embeds. Raises Refused when another one is."""
        ...

    async def status(self) -> ReembedStatus:
        """How far it is."""
        ...

    async def begin(self, target: EmbedderMark) -> None:
        """Prepare vectors of this embedder; those that were prepared of another one are dropped."""
        ...

    async def abandon(self) -> None:
        """Drop what was prepared."""
        ...

    async def waiting(self, tenant: uuid.UUID, after: uuid.UUID, most: int) -> list[EmbeddingInput]:
        """The next items, by id, without a vector of the next embedder."""
        ...

    async def store(self, tenant: uuid.UUID, items: Sequence[EmbeddingInput], vectors: Vectors) -> None:
        """Put vectors beside the ones in use; items that have changed since they were read are left out."""
        ...

    async def switch(self, current: EmbedderMark, target: EmbedderMark) -> None:
        """In one transaction, the prepared vectors take the place of those in use; what has none is to be embedded.

        Raises Unavailable when writers stand in the way for too long; then nothing has changed.
        """
        ...

"""A change of embedder: vectors of the next one are prepared beside those in use, then replace them all at once."""

import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from composer.ports.models import EmbeddingInput, Vectors


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """The embedder that vectors belong to, as it is stored beside them."""

    name: str
    width: int


@dataclass(frozen=True, slots=True)
class ReembedStatus:
    """Progress of a change of embedder: the one in use (None: empty database), the next one (None: no change begun),
    how many of all items have a vector of the next one, and whether a process is working on it."""

    current: EmbedderIdentity | None
    target: EmbedderIdentity | None
    prepared: int
    items: int
    running: bool


class Reembedding(Protocol):
    """Vectors of the next embedder. Raises Unavailable when the database does not answer."""

    def exclusive(self) -> AbstractAsyncContextManager[None]:
        """Be the only process that re-embeds. Raises Refused when another one does."""
        ...

    async def status(self) -> ReembedStatus:
        """The progress."""
        ...

    async def begin(self, target: EmbedderIdentity) -> None:
        """Prepare vectors of this embedder. Vectors prepared for another one are deleted."""
        ...

    async def abandon(self) -> None:
        """Delete prepared vectors."""
        ...

    async def pending(self, tenant: uuid.UUID, after: tuple[uuid.UUID, int], limit: int) -> list[EmbeddingInput]:
        """The next passages, by id and part, without a prepared vector."""
        ...

    async def store(self, tenant: uuid.UUID, items: Sequence[EmbeddingInput], vectors: Vectors) -> None:
        """Store prepared vectors, except of items that changed since they were read."""
        ...

    async def switch(self, current: EmbedderIdentity, target: EmbedderIdentity) -> None:
        """Replace the vectors in use by the prepared ones, in one transaction. Items without one are embedded later.

        Raises Unavailable when other writers block it for too long; then nothing has changed.
        """
        ...

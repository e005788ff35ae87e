"""Memories: remembered statements, merged and superseded within their own scope."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.model import Trust, Visibility
from composer.ports.database import Row, Statements, Vector
from composer.ports.models import Vectors
from composer.repositories.extraction_queue import ExtractionScope
from composer.repositories.lineage import insert_lineage
from composer.repositories.readable import readable_parameters
from composer.visibility import AccessTag, Readable


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A statement to remember, and the messages that it came from.

    `sources` are those that state it; `shown` are others that whoever extracted it was shown with them, and that it may
    have come from as well. `waits`: it is stored once its author has approved it.
    """

    id: uuid.UUID
    tag: AccessTag
    agent_id: uuid.UUID | None
    kind: str
    text: str
    author: str
    origin: str
    at: datetime
    sources: tuple[uuid.UUID, ...] = ()
    key: str | None = None
    expires_at: datetime | None = None
    shown: tuple[uuid.UUID, ...] = ()
    trust: Trust = Trust.MEMBER
    waits: bool = False

    @property
    def lineage(self) -> tuple[tuple[str, uuid.UUID], ...]:
        """(kind, id) of every message that it came from, or may have come from."""
        stated = [("message", source) for source in self.sources]
        return (*stated, *(("shown", source) for source in self.shown if source not in self.sources))


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A stored memory, valid until `until`. `stated` counts its messages; `also` are other wordings of it."""

    id: uuid.UUID
    kind: str
    text: str
    at: datetime
    stated: int = 1
    until: datetime | None = None
    also: tuple[str, ...] = ()

    @property
    def wordings(self) -> tuple[str, ...]:
        """Every text of this memory."""
        return (self.text, *self.also)


@dataclass(frozen=True, slots=True)
class Successor:
    """A memory that superseded another one. Its access tag may differ, so others may be able to read it."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SupersededMemory:
    """A memory that was valid from `at` until `until`, and its successor."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...]
    text: str
    author: str
    at: datetime
    until: datetime
    newer: Successor | None


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    """A memory with its cosine similarity to another one, and the memory that superseded it, if any."""

    memory: StoredMemory
    cosine: float
    newer: uuid.UUID | None = None


class Memories:
    """Stored memories. `embedder` identifies the embedder of the vectors that are passed in."""

    def __init__(self, statements: Statements, embedder: str | None) -> None:
        self._sql = statements
        self._embedder = embedder

    async def add(self, memories: Sequence[NewMemory]) -> set[uuid.UUID]:
        """Store memories with their lineage. Returns the ids of those that are new."""
        rows = await self._sql.fetch(
            "memories_insert",
            ids=[m.id for m in memories],
            namespaces=[m.tag.namespace for m in memories],
            user_ids=[m.tag.user_id for m in memories],
            agent_ids=[m.agent_id for m in memories],
            visibilities=[str(m.tag.visibility) for m in memories],
            kinds=[m.kind for m in memories],
            keys=[m.key for m in memories],
            texts=[m.text for m in memories],
            authors=[m.author for m in memories],
            origins=[m.origin for m in memories],
            created_at=[m.at for m in memories],
            expires_at=[m.expires_at for m in memories],
            trusts=[str(m.trust) for m in memories],
        )
        new = {row["id"] for row in rows}
        links = [("memory", m.id, *source) for m in memories if m.id in new for source in m.lineage]
        await insert_lineage(self._sql, links)
        return new

    async def find_known_ids(self, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these are stored."""
        return {row["id"] for row in await self._sql.fetch("memories_known", ids=list(ids))}

    async def find_comparable(self, tag: AccessTag, terms: Sequence[str]) -> list[StoredMemory]:
        """The extracted memories of one scope that share a term, oldest first; only to compare new statements of the
        same scope with them."""
        return await self._sql.fetch_as(
            StoredMemory,
            "memories_comparable",
            namespace=tag.namespace,
            visibility=str(tag.visibility),
            user_id=tag.user_id,
            terms=list(terms),
        )

    async def find_extracted(self, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Which of these are extracted memories that are neither deleted nor merged, oldest first."""
        return [row["id"] for row in await self._sql.fetch("memories_known", ids=list(ids)) if row["extracted"]]

    async def find_similar(self, id: uuid.UUID, minimum: float) -> list[SimilarMemory]:
        """A memory itself, and those of its scope and kind with at least the `minimum` cosine similarity; nothing when
        it is merged or deleted."""
        rows = await self._sql.fetch("memories_similar", id=id, minimum=minimum)
        return [SimilarMemory(_stored_memory(row), row["cosine"], row["superseded_by"]) for row in rows]

    async def find_nearest(self, scope: ExtractionScope, vector: Vectors, limit: int) -> list[tuple[uuid.UUID, str]]:
        """(id, text) of the extracted memories of a scope that are nearest to a vector."""
        rows = await self._sql.fetch(
            "memories_nearest",
            namespace=scope.namespace,
            visibility=str(scope.visibility),
            user_id=scope.user,
            vector=Vector(vector),
            limit=limit,
            embedder=self._embedder,
        )
        return [(row["id"], row["text"]) for row in rows]

    async def record_restatement(
        self, id: uuid.UUID, sources: Sequence[tuple[str, uuid.UUID]], at: datetime, expires_at: datetime | None
    ) -> None:
        """Record that more messages state a memory: (kind, id) of a statement's lineage."""
        await insert_lineage(self._sql, [("memory", id, *source) for source in sources])
        await self._sql.execute("memories_restate", id=id, stated_at=at, expires_at=expires_at)

    async def add_sources(self, id: uuid.UUID, memories: Sequence[uuid.UUID]) -> None:
        """Record from which other memories one was made."""
        await insert_lineage(self._sql, [("memory", id, "memory", source) for source in memories])

    async def find_moved(self, message: uuid.UUID) -> dict[uuid.UUID, str]:
        """The texts of the memories made from a message that their owner has filed elsewhere."""
        return {row["id"]: row["text"] for row in await self._sql.fetch("memories_moved", message_id=message)}

    async def merge(self, merged: uuid.UUID, kept: uuid.UUID, landmark: uuid.UUID) -> None:
        """Merge a memory into another one. `landmark` is the id that the merged one may be proposed under; that
        proposal is deleted."""
        await self._sql.execute("memories_merge", merged_id=merged, kept_id=kept, landmark_id=landmark)

    async def find_merged(self, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """The memories that were merged into these."""
        return [row["id"] for row in await self._sql.fetch("memories_merged", ids=list(ids))]

    async def supersede(self, old: Sequence[uuid.UUID], new: uuid.UUID, at: datetime) -> None:
        """Supersede memories by a newer one from a time on."""
        await self._sql.execute("memories_supersede", old_ids=list(old), new_id=new, at=at)

    async def find_superseded(
        self, readable: Readable, terms: Sequence[str], limit: int, at: datetime
    ) -> list[SupersededMemory]:
        """Readable memories that were superseded by a time, latest first."""
        rows = await self._sql.fetch(
            "memories_superseded", **readable_parameters(readable), at=at, terms=list(terms), limit=limit
        )
        return [
            SupersededMemory(
                row["namespace"],
                Visibility(row["visibility"]),
                row["user_id"],
                tuple(row["allowed_vendors"]),
                row["text"],
                row["author"],
                row["created_at"],
                row["valid_to"],
                None
                if row["newer"] is None
                else Successor(
                    row["newer_namespace"],
                    Visibility(row["newer_visibility"]),
                    row["newer_user_id"],
                    tuple(row["newer_vendors"]),
                    row["newer"],
                ),
            )
            for row in rows
        ]

    async def reindex_sources(self, memories: Sequence[uuid.UUID], without: Sequence[uuid.UUID]) -> None:
        """Queue the messages of memories that are about to be erased for indexing, except those erased themselves."""
        await self._sql.execute("memories_reindex_sources", memory_ids=list(memories), message_ids=list(without))


def _stored_memory(row: Row) -> StoredMemory:
    return StoredMemory(row["id"], row["kind"], row["text"], row["at"], row["stated"], row["until"], tuple(row["also"]))

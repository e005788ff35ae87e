"""Runs of imports: what each brought, to be listed and undone."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct


@dataclass(frozen=True, slots=True)
class ImportRun:
    """One run of an import, as it begins. `source`: the names of its files. `uploaded_by`: the admin who uploaded them,
    and whom nobody trusts like whoever runs Nexus (None)."""

    id: uuid.UUID
    source: str
    uploaded_by: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class StoredImport:
    """A run as it is listed: `messages` and `rooms` are what of it is stored now in this workspace, and `indexed` how
    many of these messages can be recalled. `ended_at` is None for one that was interrupted, `undone_at` for one that
    was not undone. `brought`: something of it is stored, be it a room or a person."""

    id: uuid.UUID
    platform: str
    workspace: str
    source: str
    begun_at: datetime
    ended_at: datetime | None
    undone_at: datetime | None
    uploaded_by: uuid.UUID | None
    messages: int
    indexed: int
    rooms: int
    brought: bool


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """The id of a stored message, and the run that brought it."""

    id: uuid.UUID
    run: ImportRun
    begun_at: datetime


class Imports:
    """The runs of imports of one tenant."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def begin(self, run: ImportRun, platform: str, workspace: str, now: datetime) -> None:
        """Record a run, unless it is, and let the messages, rooms, people and members that this transaction inserts
        carry its id. The tenant must exist."""
        await self._sql.fetch(
            "import_begin",
            id=run.id,
            platform=platform,
            workspace=workspace,
            source=run.source,
            now=now,
            uploaded_by=run.uploaded_by,
        )

    async def end(self, id: uuid.UUID, now: datetime) -> None:
        """Record that a run has read everything."""
        await self._sql.execute("import_mark", id=id, now=now, undone=False)

    async def list(self) -> Sequence[StoredImport]:
        """All runs, newest first, one entry for each workspace that they went into."""
        return await self._sql.fetch_as(StoredImport, "imports_list")

    async def messages(self, id: uuid.UUID, limit: int) -> Mapping[uuid.UUID, uuid.UUID]:
        """Messages that a run brought and that are still stored, at most `limit`: their conversations by their ids."""
        rows = await self._sql.fetch("import_messages", id=id, limit=limit)
        return {row["id"]: row["conversation_id"] for row in rows}

    async def imported_since(self, since: datetime) -> Sequence[ImportedMessage]:
        """The messages that are stored from runs which began at a time or later, in the order of the runs."""
        return [
            ImportedMessage(row["id"], ImportRun(row["run"], row["source"]), row["begun_at"])
            for row in await self._sql.fetch("imported_since", since=since)
        ]

    async def keep(self, messages: Sequence[uuid.UUID]) -> None:
        """Let messages belong to no import any more; those of an upload stay its own."""
        await self._sql.execute("import_keep", ids=list(messages))

    async def delete_unused(self, id: uuid.UUID) -> tuple[int, int]:
        """Delete the members, conversations and people that a run made and that nothing else uses. Returns how many
        conversations and people."""
        for row in await self._sql.fetch("import_members_delete", id=id):
            if row["private"]:
                await self._audit.record(
                    AuditAct.ROOM_LEFT, users=[row["user_id"]], conversation=row["conversation_id"]
                )
        gone = await self._sql.fetch_one("import_delete_unused", id=id)
        assert gone is not None
        return gone["conversations"], gone["people"]

    async def mark_undone(self, id: uuid.UUID, now: datetime) -> None:
        """Record that nothing of a run is left."""
        await self._sql.execute("import_mark", id=id, now=now, undone=True)

"""What the sources of a stored prompt are now: how they are filed, and the messages that they came from."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.model import ConversationKind, Visibility
from composer.ports.database import Row, Statements
from composer.repositories.readable import recall_parameters
from composer.visibility import Readable


@dataclass(frozen=True, slots=True)
class SourceTag:
    """How a source is filed now (composer.visibility.Tagged)."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class MessageAddress:
    """Where a message stands on its platform. `name` is the room's id there (in a DM: the agent's slug); `thread` the
    thread's. `room_id` is our own id of the room, and `private` whether it is private."""

    platform: str
    workspace: str
    kind: ConversationKind
    name: str
    thread: str | None
    external_id: str
    room_id: uuid.UUID | None = None
    private: bool = True


def address_from_row(row: Row) -> MessageAddress:
    """The address of a message, from the columns that are named as its fields."""
    return MessageAddress(
        row["platform"],
        row["workspace"],
        ConversationKind(row["kind"]),
        row["name"],
        row["thread"],
        row["external_id"],
        row["room_id"],
        row["private"],
    )


@dataclass(frozen=True, slots=True)
class SourceState:
    """What became of a source: `present` and filed under a namespace and visibility, or gone (`erased`: forgotten or
    deleted on the platform). `changed_at`: when it was last edited, superseded, ended or retired."""

    present: bool
    erased: bool
    namespace: str | None
    visibility: str | None
    made_at: datetime | None
    changed_at: datetime | None


class Explanations:
    """Reads that explain a stored prompt."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def find_readable(self, readable: Readable, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, SourceTag]:
        """The memories, facts and landmarks among `ids` that exist and may be read, with their present tags, by which
        composer/prompt/explain.py checks them again."""
        if not ids:
            return {}
        rows = await self._sql.fetch("sources_readable", **recall_parameters(readable), ids=list(ids))
        return {
            row["id"]: SourceTag(
                row["namespace"],
                Visibility(row["visibility"]),
                row["user_id"],
                ("*",) if row["vendors"] is None else tuple(row["vendors"]),
            )
            for row in rows
        }

    async def states(self, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, SourceState]:
        """What became of each source. Nothing that anyone wrote is read."""
        if not ids:
            return {}
        return {
            row["id"]: SourceState(
                row["present"], row["erased"], row["namespace"], row["visibility"], row["made_at"], row["changed_at"]
            )
            for row in await self._sql.fetch("sources_states", ids=list(ids))
        }

    async def uploaders(self, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, set[uuid.UUID]]:
        """Of these sources, those that are or were made from messages that somebody uploaded, with whoever did it."""
        found: defaultdict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
        for row in await self._sql.fetch("sources_uploaded", ids=list(ids)) if ids else ():
            found[row["id"]].add(row["uploaded_by"])
        return found

    async def edited_sources(self, turn: uuid.UUID) -> int:
        """How many messages of a turn's prompt were edited after its answer."""
        return int(await self._sql.fetch_value("turn_sources_edited", turn_id=turn))

    async def addresses(
        self, readable: Readable, ids: Sequence[uuid.UUID], limit: int
    ) -> dict[uuid.UUID, list[MessageAddress]]:
        """For each source the messages that it is or was made from, latest first, at most `limit` of each."""
        found: defaultdict[uuid.UUID, list[MessageAddress]] = defaultdict(list)
        if not ids:
            return found
        rows = await self._sql.fetch("sources_messages", **recall_parameters(readable), ids=list(ids), limit=limit)
        for row in rows:
            if readable.admits(SourceTag(row["namespace"], Visibility(row["visibility"]), row["user_id"])):
                found[row["source_id"]].append(address_from_row(row))
        return found

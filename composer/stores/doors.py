"""What the chat platforms add, in Postgres: who is whom, what was consented to, what was delivered where."""

import uuid
from collections.abc import Sequence
from datetime import datetime

import asyncpg

from composer.model import ConversationKind, RecordingPolicy
from composer.ports import Destination, Retractable, SeenConversation, UnansweredCommand
from composer.stores.statements import Statements


class PostgresDoors:
    """composer.ports.Doors."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def linked(self, users: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[uuid.UUID, ...]]:
        """The other users that people are, for those who are any."""
        found: dict[uuid.UUID, tuple[uuid.UUID, ...]] = {}
        for row in await self._sql.fetch("linked", list(users)):
            found[row["id"]] = (*found.get(row["id"], ()), row["other"])
        return found

    async def put_code(self, code_hash: str, user: uuid.UUID, expires_at: datetime) -> None:
        """Recording a code by which someone else can link themselves to a user."""
        await self._sql.execute("link_code_put", code_hash, user, expires_at)

    async def take_code(self, code_hash: str, now: datetime) -> uuid.UUID | None:
        """Whose code it is; it works once, and not after its time."""
        user: uuid.UUID | None = await self._sql.value("link_code_take", code_hash, now)
        return user

    async def link(self, user: uuid.UUID, other: uuid.UUID) -> None:
        """Make two users one person."""
        await self._sql.execute("link_join", user, other)

    async def unlink(self, user: uuid.UUID) -> None:
        """Make a user a person of their own again."""
        await self._sql.execute("link_part", user)

    async def opt(self, user: uuid.UUID, out: bool) -> None:
        """Someone opts out, or in again."""
        await self._sql.execute("user_opt", user, out)

    async def set_recording(self, room: uuid.UUID, memory: str) -> None:
        """What is kept of a room: on, mentions or off."""
        await self._sql.execute("room_set_recording", room, memory)

    async def notice(self, room: uuid.UUID, message: str, now: datetime) -> tuple[Destination, RecordingPolicy] | None:
        """Where the first-use notice of a room goes, and what is kept there; None when it stands there."""
        row = await self._sql.row("room_notice", room, message, now)
        return None if row is None else (_destination(row), RecordingPolicy(row["recording"]))

    async def open_notices(self, platform: str, workspace: str) -> list[tuple[uuid.UUID, str]]:
        """(room, message) of the notices that are to be posted, or are not known to be."""
        rows = await self._sql.fetch("room_notices_open", platform, workspace)
        return [(row["id"], row["notice_for"]) for row in rows]

    async def noticed(self, room: uuid.UUID, external_id: str) -> None:
        """The notice stands there."""
        await self._sql.execute("room_noticed", room, external_id)

    async def begin_command(
        self, id: uuid.UUID, adapter: str, workspace: str, process: int, call: str, now: datetime
    ) -> bool:
        """Whether this is the first event that brings a command; from now on it is not."""
        return await self._sql.row("command_run", id, now, adapter, workspace, process, call) is not None

    async def command_done(self, id: uuid.UUID) -> None:
        """What a command changes is changed with this very transaction."""
        await self._sql.execute("command_done", id)

    async def command_answered(self, id: uuid.UUID) -> None:
        """Whoever gave it has its answer."""
        await self._sql.execute("command_answered", id)

    async def forget_commands(self, user: uuid.UUID, but: uuid.UUID) -> None:
        """Nothing is kept of what a person called, but of one command."""
        await self._sql.execute("commands_forget", user, but)

    async def adopt_commands(self, adapter: str, workspace: str, process: int) -> list[UnansweredCommand]:
        """Take over the commands that dead processes left unanswered, oldest first."""
        rows = await self._sql.fetch("commands_adopt", process, adapter, workspace)
        found = [UnansweredCommand(row["id"], row["received_at"], row["call"], row["done"]) for row in rows]
        return sorted(found, key=lambda each: (each.at, each.id))

    async def said_since(self, conversation: uuid.UUID, since: datetime, most: int) -> dict[str, datetime]:
        """The messages of people that we hold of a conversation, by the platform's ids, latest first, and when each was
        said or changed last."""
        rows = await self._sql.fetch("people_said_since", conversation, since, most)
        return {row["external_id"]: row["changed_at"] for row in rows}

    async def withdraw(self, replies: Sequence[uuid.UUID]) -> None:
        """The posted parts of these answers are to be taken back. Called before anything of them is erased."""
        await self._sql.execute("retractions_note", list(replies))

    async def retractions(self, platform: str, most: int) -> list[Retractable]:
        """What is still to be taken back on a platform."""
        return [
            Retractable(row["turn_id"], row["external_id"], _destination(row))
            for row in await self._sql.fetch("retractions_of_platform", platform, most)
        ]

    async def withdrawn(self, withdrawal: Retractable) -> None:
        """The platform shows it, or never will."""
        await self._sql.execute("retraction_done", withdrawal.turn_id, withdrawal.external_id)

    async def conversations(self, platform: str, workspace: str) -> list[SeenConversation]:
        """Where to read on after an outage, latest first."""
        return [
            SeenConversation(
                row["id"],
                ConversationKind(row["kind"]),
                row["name"],
                row["thread"],
                row["user_external_id"],
                row["seen_id"],
                row["seen_at"],
            )
            for row in await self._sql.fetch("conversations_of_platform", platform, workspace)
        ]

    async def destination(self, turn: uuid.UUID) -> Destination | None:
        """Where on its platform an answer goes; None when its question was erased."""
        row = await self._sql.row("turn_destination", turn)
        return None if row is None else _destination(row)

    async def delivered(self, turn: uuid.UUID) -> dict[int, str]:
        """The parts of an answer that stand on the platform, by number."""
        return {row["part"]: row["external_id"] for row in await self._sql.fetch("deliveries_of", turn)}

    async def deliver(self, turn: uuid.UUID, part: int, external_id: str, now: datetime) -> None:
        """A part stands there now."""
        await self._sql.execute("delivery_put", turn, part, external_id, now)

    async def is_ours(self, external_id: str) -> bool:
        """Whether a message on the platform is an answer of ours."""
        return bool(await self._sql.value("delivered_by_us", external_id))

    async def passed(self, most: int) -> list[uuid.UUID]:
        """Messages that were kept for an answer alone, and have it."""
        return [row["id"] for row in await self._sql.fetch("messages_passed", most)]


def _destination(row: asyncpg.Record) -> Destination:
    return Destination(
        row["platform"],
        row["workspace"],
        ConversationKind(row["kind"]),
        row["name"],
        row["thread"],
        row["private"],
        row["message"],
        row["user_external_id"],
    )

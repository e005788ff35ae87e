"""Reminders that people asked for."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.model import ConversationKind, Visibility
from composer.ports.database import Row, Statements
from composer.repositories.lineage import insert_lineage
from composer.visibility import Owned


@dataclass(frozen=True, slots=True)
class Reminder:
    """What somebody wants to be reminded of, filed under the namespace of the conversation in which it is posted.

    `due_at` is the next time. `repeats`: how it repeats, as `composer.text.dates.repeats` writes it; None for once.
    """

    id: uuid.UUID
    user_id: uuid.UUID
    conversation_id: uuid.UUID
    namespace: str
    visibility: Visibility
    author: str
    text: str
    made_at: datetime
    due_at: datetime
    repeats: str | None = None


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A reminder that is due, and what is known of where it is posted. `opted_out`: its person has opted out of being
    stored."""

    reminder: Reminder
    platform: str
    kind: ConversationKind
    agent_id: uuid.UUID | None
    opted_out: bool


@dataclass(frozen=True, slots=True)
class RefusedReminder:
    """A reminder whose post the platform refused for good. `room`: the name of the room, or of the room of the thread.
    `isolated`: that room is in an isolated project."""

    reminder: Reminder
    platform: str
    workspace: str
    room: str
    opted_out: bool
    isolated: bool


@dataclass(frozen=True, slots=True)
class Position:
    """Who is in which conversation of the terminal."""

    user_id: uuid.UUID
    conversation_id: uuid.UUID


class Reminders:
    """Stored reminders."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def add(self, reminder: Reminder) -> None:
        """Store a reminder; the same one is stored once."""
        await self._sql.execute(
            "reminder_insert",
            id=reminder.id,
            user_id=reminder.user_id,
            conversation_id=reminder.conversation_id,
            namespace=reminder.namespace,
            visibility=str(reminder.visibility),
            author=reminder.author,
            text=reminder.text,
            now=reminder.made_at,
            due_at=reminder.due_at,
            repeats=reminder.repeats,
        )

    async def record_question(self, id: uuid.UUID, message: uuid.UUID) -> None:
        """Record which message a reminder was made from: it goes when that is forgotten."""
        await insert_lineage(self._sql, [("reminder", id, "message", message)])

    async def open(self, owned: Owned, beginning: str = "") -> list[Reminder]:
        """A person's open reminders whose ids begin with `beginning` (hexadecimal digits), the next one first."""
        rows = await self._sql.fetch("reminders_open", user_ids=list(owned.users), beginning=beginning)
        return [_reminder(row) for row in rows if owned.admits(row["user_id"])]

    async def take_due(
        self, now: datetime, served: Sequence[str], position: Position | None = None, excluded: Sequence[uuid.UUID] = ()
    ) -> DueReminder | None:
        """The earliest reminder that is due where this process delivers and that no other one holds, except for the
        `excluded`, locked until the transaction ends. With a `position`, one that is posted there, or in a DM of who is
        there."""
        row = await self._sql.fetch_one(
            "reminder_take_due",
            now=now,
            served=list(served),
            excluded_ids=list(excluded),
            position_id=None if position is None else position.conversation_id,
            position_user_id=None if position is None else position.user_id,
        )
        if row is None:
            return None
        kind = ConversationKind(row["kind"])
        return DueReminder(_reminder(row), row["platform"], kind, row["agent_id"], row["opted_out"])

    async def mark_posted(self, id: uuid.UUID, now: datetime, next_at: datetime | None) -> None:
        """Record that a reminder was posted, and when it is due again (None: it has ended)."""
        await self._sql.execute("reminder_posted", id=id, now=now, next_at=next_at)

    async def move(self, id: uuid.UUID, due_at: datetime) -> None:
        """Have an open reminder due at another time."""
        await self._sql.execute("reminder_posted", id=id, now=None, next_at=due_at)

    async def mark_refused(self, turn: uuid.UUID) -> None:
        """Record that the platform will never accept what a turn posts, if that is a reminder in a room or a thread: it
        is not posted again, and who asked is to be notified."""
        await self._sql.execute("reminders_refuse", turn_id=turn)

    async def take_refused(
        self, served: Sequence[str], position: Position | None = None, excluded: Sequence[uuid.UUID] = ()
    ) -> RefusedReminder | None:
        """The earliest reminder that was refused where this process delivers, whose person is to be notified, and that
        no other one holds, except for the `excluded`, locked until the transaction ends. With a `position`, only of who
        is there."""
        row = await self._sql.fetch_one(
            "reminder_take_refused",
            served=list(served),
            excluded_ids=list(excluded),
            position_user_id=None if position is None else position.user_id,
        )
        if row is None:
            return None
        return RefusedReminder(
            _reminder(row), row["platform"], row["workspace"], row["room"], row["opted_out"], row["isolated"]
        )

    async def mark_notified(self, id: uuid.UUID) -> None:
        """End a reminder that was refused: its person is notified in the same transaction."""
        await self._sql.execute("reminder_posted", id=id, now=None, next_at=None)

    async def end(self, ids: Sequence[uuid.UUID]) -> int:
        """End reminders: they are not posted again. Returns how many of them were open."""
        return len(await self._sql.fetch("reminders_end", ids=list(ids)))

    async def delete_ended_before(self, before: datetime) -> int:
        """Delete reminders that have ended, were last posted before a time, and of which no post is stored any more.
        Returns how many."""
        return len(await self._sql.fetch("reminders_ended_before", before=before))


def _reminder(row: Row) -> Reminder:
    return Reminder(
        row["id"],
        row["user_id"],
        row["conversation_id"],
        row["namespace"],
        Visibility(row["visibility"]),
        row["author"],
        row["text"],
        row["made_at"],
        row["due_at"],
        row["repeats"],
    )

"""Reminders that are due: each is posted once, where it was asked for, if it still may be."""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Final

from composer import visibility
from composer.model import Agent, ConversationKind, Trust, Turn
from composer.repositories.database import Transaction
from composer.repositories.reminders import DueReminder, Position
from composer.repositories.scheduled import PostKind
from composer.text.dates.repeats import Repeat
from composer.text.names import in_quotes, speaker_label
from composer.turn.scheduled.posts import Post, store_post

LATE: Final = timedelta(minutes=5)  # after which a reminder says that it is late
_ALONE: Final = (ConversationKind.DM, ConversationKind.SESSION)


class DueReminders:
    """The reminders that are due (composer.turn.scheduled.due_posts.PostSource)."""

    kind: Final = PostKind.REMINDERS

    def __init__(
        self,
        agents: Callable[[uuid.UUID], tuple[Agent, ...]],
        zone: Callable[[uuid.UUID], tzinfo],
    ) -> None:
        """`agents` and `zone` give a tenant's agents and time zone."""
        self._agents = agents
        self._zone = zone

    async def take(
        self,
        tx: Transaction,
        now: datetime,
        served: Sequence[str],
        position: Position | None,
        excluded: Sequence[uuid.UUID],
    ) -> DueReminder | None:
        """The earliest reminder that is due."""
        return await tx.reminders.take_due(now, served, position, excluded)

    def id_of(self, due: DueReminder) -> uuid.UUID:
        """The reminder's id."""
        return due.reminder.id

    async def store(self, tx: Transaction, tenant: uuid.UUID, due: DueReminder, now: datetime) -> Turn | None:
        """Store the post of a reminder that is due, and when it is due next. What may not be posted any more ends."""
        reminder, zone = due.reminder, self._zone(tenant)
        agent = next((a for a in self._agents(tenant) if due.agent_id in (None, a.id)), None)
        row = (await tx.conversations.lock([reminder.conversation_id]))[reminder.conversation_id]
        access = await tx.conversations.access_context(reminder.conversation_id, reminder.user_id, Trust.MEMBER)
        allowed = access is not None and visibility.may_have_posted(access, reminder.namespace)
        if agent is None or not allowed or due.opted_out:
            await tx.reminders.end([reminder.id])
            return None
        name = f"{reminder.id.hex}:{reminder.due_at.isoformat()}"
        sources = (("reminder", reminder.id),)
        own = zone if access is None or access.zone is None else access.zone
        told = own if due.kind in _ALONE else zone  # nobody else is told of a person's zone, and no room moves with it
        post = Post(name, reminder_text(due, now, told), due.platform, sources, quoting=True)
        turn = await store_post(tx, row, agent, post, now)
        repeat = None if reminder.repeats is None else Repeat.of(reminder.repeats)
        await tx.reminders.mark_posted(reminder.id, now, None if repeat is None else repeat.after(now, told))
        return turn


def reminder_text(due: DueReminder, now: datetime, zone: tzinfo) -> str:
    """What is posted: the text in quotation marks, in a room with who asked; a late one says when it was due."""
    reminder = due.reminder
    whose = "Reminder" if due.kind in _ALONE else f"Reminder from {speaker_label(reminder.author)}"
    late = ""
    if now - reminder.due_at > LATE:
        late = f"\n(This is late: it was due on {reminder.due_at.astimezone(zone):%Y-%m-%d at %H:%M}.)"
    return f"{whose}: {in_quotes(reminder.text, len(reminder.text))}{late}"

"""Reminders that are due: each is posted once, where it was asked for, if it still may be."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Final

import structlog

from composer import visibility
from composer.errors import Unavailable, for_operator
from composer.model import Agent, ConversationKind, Trust, Turn
from composer.ports.clock import Clock
from composer.ports.process_locks import ProcessLocks
from composer.repositories.database import Database, Transaction
from composer.repositories.reminders import DueReminder, Position
from composer.scheduled.posts import Post, store_post
from composer.text.names import speaker_label
from composer.text.when import Repeat
from composer.turn.worker import TurnWorker

logger = structlog.get_logger()

LATE: Final = timedelta(minutes=5)  # after which a reminder says that it is late


class DueReminders:
    """Posts the reminders that are due, through the adapters that this process serves."""

    def __init__(
        self,
        database: Database,
        turns: TurnWorker,
        locks: ProcessLocks,
        clock: Clock,
        agents: Callable[[uuid.UUID], tuple[Agent, ...]],
        zone: Callable[[uuid.UUID], tzinfo],
    ) -> None:
        """`agents` and `zone` give a tenant's agents and time zone."""
        self._database = database
        self._turns = turns
        self._locks = locks
        self._clock = clock
        self._agents = agents
        self._zone = zone

    async def post_due(self, tenant: uuid.UUID | None = None, position: Position | None = None) -> int:
        """Start the delivery of everything that is due, of every tenant or of one; with a `position`, of what is posted
        there. Returns how many were posted.

        A tenant that fails is logged, and does not stop the others. Raises Unavailable without the database.
        """
        posted = 0
        tenants = [id for id, _ in await self._database.tenants()] if tenant is None else [tenant]
        for each in tenants:
            try:
                posted += await self._post_due(each, position)
            except Unavailable as error:
                logger.warning("reminders.postponed", tenant=str(each), error=for_operator(error))
            except Exception:
                logger.exception("reminders.failed", tenant=str(each))
        return posted

    async def _post_due(self, tenant: uuid.UUID, position: Position | None) -> int:
        posted, now, failed = 0, self._clock.now(), list[uuid.UUID]()
        while True:
            due: DueReminder | None = None
            try:
                async with self._database.transaction(tenant) as tx:
                    await tx.erasure.block()  # until this transaction ends; before any conversation is locked
                    due = await tx.reminders.take_due(now, self._turns.adapters, position, failed)
                    if due is None:
                        return posted
                    turn = await self._store(tx, tenant, due, now)
            except Unavailable:
                raise
            except Exception:
                if due is None:
                    raise
                logger.exception("reminder.failed", reminder=str(due.reminder.id))
                failed.append(due.reminder.id)  # the others go on; the next look tries it again
                continue
            if turn is not None:
                posted += 1
                self._turns.start(turn)

    async def _store(self, tx: Transaction, tenant: uuid.UUID, due: DueReminder, now: datetime) -> Turn | None:
        """Store the post of a reminder that is due, and when it is due next. What may not be posted any more ends."""
        reminder, zone = due.reminder, self._zone(tenant)
        agent = next((a for a in self._agents(tenant) if due.agent_id in (None, a.id)), None)
        row = (await tx.conversations.lock([reminder.conversation_id]))[reminder.conversation_id]
        access = await tx.conversations.access_context(reminder.conversation_id, reminder.user_id, Trust.MEMBER)
        allowed = access is not None and visibility.may_have_posted(access, reminder.namespace)
        if agent is None or not allowed or due.opted_out or due.archived:
            await tx.reminders.end([reminder.id])
            return None
        name = f"{reminder.id.hex}:{reminder.due_at.isoformat()}"
        post = Post(name, reminder_text(due, now, zone), due.platform, (("reminder", reminder.id),))
        turn = await store_post(tx, row, agent, post, self._locks.number, now)
        repeat = None if reminder.repeats is None else Repeat.of(reminder.repeats)
        await tx.reminders.mark_posted(reminder.id, now, None if repeat is None else repeat.after(now, zone))
        return turn


def reminder_text(due: DueReminder, now: datetime, zone: tzinfo) -> str:
    """What is posted: the text, in a room with the name of who asked; a late one says when it was due."""
    reminder = due.reminder
    alone = due.kind in (ConversationKind.DM, ConversationKind.SESSION)
    whose = "Reminder" if alone else f"Reminder from {speaker_label(reminder.author)}"
    late = ""
    if now - reminder.due_at > LATE:
        late = f"\n(This is late: it was due on {reminder.due_at.astimezone(zone):%Y-%m-%d at %H:%M}.)"
    return f"{whose}: {reminder.text}{late}"

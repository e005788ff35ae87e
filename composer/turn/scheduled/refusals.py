"""Reminders that a platform refused for good: who asked is notified in their DM, once."""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from composer.model import Agent, Turn
from composer.repositories.database import Transaction
from composer.repositories.reminders import Position, RefusedReminder
from composer.repositories.scheduled import PostKind
from composer.text.names import in_quotes
from composer.turn.scheduled.posts import Post, store_dm_post

WHAT_NEXT: Final = "Ask somebody to add me there or to open it, and then set the reminder again."


class RefusedReminders:
    """The reminders that were refused and whose person is still to be notified
    (composer.turn.scheduled.due_posts.PostSource)."""

    kind: Final = PostKind.REFUSALS

    def __init__(self, agents: Callable[[uuid.UUID], tuple[Agent, ...]]) -> None:
        """`agents` gives a tenant's agents."""
        self._agents = agents

    async def take(
        self,
        tx: Transaction,
        now: datetime,
        served: Sequence[str],
        position: Position | None,
        excluded: Sequence[uuid.UUID],
    ) -> RefusedReminder | None:
        """The earliest reminder that was refused."""
        return await tx.reminders.take_refused(served, position, excluded)

    def id_of(self, due: RefusedReminder) -> uuid.UUID:
        """The reminder's id."""
        return due.reminder.id

    async def store(self, tx: Transaction, tenant: uuid.UUID, due: RefusedReminder, now: datetime) -> Turn | None:
        """Store the sentence for who asked as a post in their DM with the first agent, and end the reminder. Nobody who
        has opted out is notified."""
        reminder, agent = due.reminder, self._agents(tenant)[0]
        await tx.reminders.mark_notified(reminder.id)
        if due.opted_out:
            return None
        name = f"refused:{reminder.id.hex}:{reminder.due_at.isoformat()}"
        post = Post(name, refusal_text(due), due.platform, (("reminder", reminder.id),), quoting=True)
        return await store_dm_post(tx, tenant, reminder.user_id, due.workspace, agent, post, now)


def refusal_text(due: RefusedReminder) -> str:
    """The text for who asked. What was said in an isolated project does not leave it: then without the text."""
    text = due.reminder.text
    quoted = "" if due.isolated else f": {in_quotes(text, len(text))}"
    return f"I could not post your reminder in {in_quotes(f'#{due.room}')}{quoted}. {WHAT_NEXT}"

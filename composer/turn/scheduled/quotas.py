"""Quotas that are nearly used up: each admin is notified in their DM, once in a month."""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from composer.model import Agent, Turn
from composer.repositories.database import Transaction
from composer.repositories.operations import ENTRIES, TOKENS, DueNotice
from composer.repositories.reminders import Position
from composer.repositories.scheduled import PostKind
from composer.turn.scheduled.posts import Post, store_dm_post

OF_API: Final = "Beyond that, the API refuses them until the first of the next month."
WHAT_THEN: Final = {
    ENTRIES: "Beyond that, no further entry is stored: forget some, or put some into the trash.",
    TOKENS: "Beyond that, no model is asked until the first of the next month. /nexus usage --everyone shows what for.",
}


class QuotaNotices:
    """The notices that admins are still to get (composer.turn.scheduled.due_posts.PostSource)."""

    kind: Final = PostKind.QUOTAS

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
    ) -> DueNotice | None:
        """The earliest notice."""
        return await tx.operations.take_notice(served, position, excluded, now)

    def id_of(self, due: DueNotice) -> uuid.UUID:
        """The admin: what can't be posted to them is left out until the next look, with all else that is for them."""
        return due.user

    async def store(self, tx: Transaction, tenant: uuid.UUID, due: DueNotice, now: datetime) -> Turn | None:
        """Store the sentence as a post in the admin's DM with the first agent."""
        agent = self._agents(tenant)[0]
        post = Post(f"quota:{due.quota}:{due.month.isoformat()}", notice_text(due), due.platform, ())
        return await store_dm_post(tx, tenant, due.user, due.workspace, agent, post, now)


def notice_text(due: DueNotice) -> str:
    """The text of a notice."""
    when = "" if due.quota == ENTRIES else " this month"
    what = {TOKENS: "tokens of models"}.get(due.quota, due.quota)
    said = f"This workspace has used {due.used:,} of the {due.most:,} {what} that its plan has{when}."
    return f"{said} {WHAT_THEN.get(due.quota, OF_API)}"

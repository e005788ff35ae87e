"""What is due to be posted, of every kind at once: most looks find nothing."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from composer.ports.database import Statements
from composer.repositories.reminders import Position


class PostKind(StrEnum):
    """The kinds of what agents post of themselves."""

    REFUSALS = "refusals"  # of reminders, told to who asked
    REMINDERS = "reminders"
    DIGESTS = "digests"
    QUOTAS = "quotas"  # of which most is used, told to admins


class Scheduled:
    """The kinds of posts that are due."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def due(self, now: datetime, served: Sequence[str], position: Position | None = None) -> set[PostKind]:
        """The kinds of which something is due where this process delivers; with a `position`, there. Another process
        may be posting it."""
        row = await self._sql.fetch_one(
            "posts_due",
            now=now,
            served=list(served),
            position_id=None if position is None else position.conversation_id,
            position_user_id=None if position is None else position.user_id,
        )
        return set() if row is None else {kind for kind in PostKind if row[kind]}

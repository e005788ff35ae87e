"""What was done over the API, added up by month, and the notices of quotas that are nearly used up."""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final

from composer.ports.database import Statements
from composer.repositories.people import NAMELESS
from composer.repositories.reminders import Position
from composer.repositories.requests import API_RETENTION
from composer.visibility import Owned

# What a plan may limit beside operations.
ENTRIES: Final = "entries"
TOKENS: Final = "tokens"  # of models; held by composer/usage/ledger.py, as every budget is


class Operation(StrEnum):
    """The kinds of operations, by which they are counted and limited. Hits are the searches that found something, and
    counted as searches too. They and removals are never limited."""

    WRITES = "writes"
    READS = "reads"
    SEARCHES = "searches"
    HITS = "hits"
    CHATS = "chats"
    REMOVALS = "removals"


@dataclass(frozen=True, slots=True)
class Total:
    """What was done in a month (its first day), by a tool or, as `api`, by the person. `tokens`: an estimate of what
    was stored or handed out."""

    month: date
    operation: Operation
    vendor: str
    count: int
    tokens: int


@dataclass(frozen=True, slots=True)
class OperationCount:
    """Operations of one user (or of a tool for them) to add to the totals of a month."""

    month: date
    user: uuid.UUID
    vendor: str
    operation: Operation
    count: int = 1
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class DueNotice:
    """An admin who is to be notified that most of a quota is used, and where."""

    month: date
    quota: str
    user: uuid.UUID
    used: int
    most: int
    platform: str
    workspace: str


class OperationTotals:
    """Adds operations to the totals of their months, and adds these up. Totals name people by their ids alone."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def add(self, added: Sequence[OperationCount]) -> None:
        """Add operations. Who has opted out or was erased is not named; what somebody unknown did is not counted.
        Call it last in a transaction: others that count for the same person wait for its end."""
        await self._sql.execute(
            "operations_add",
            months=[each.month for each in added],
            user_ids=[each.user for each in added],
            vendors=[each.vendor for each in added],
            operations=[each.operation.value for each in added],
            counts=[each.count for each in added],
            tokens=[each.tokens for each in added],
            nameless=NAMELESS,
        )

    async def note_requests(self, requests: Mapping[bytes, uuid.UUID], now: datetime) -> set[bytes]:
        """Record requests, by digests, with their users. Returns those that were not recorded within the last day."""
        rows = await self._sql.fetch(
            "operations_note_requests",
            digests=list(requests),
            user_ids=list(requests.values()),
            now=now,
            expires_at=now + API_RETENTION,
        )
        return {bytes(row["key_digest"]) for row in rows}

    async def used(self, month: date, user: uuid.UUID | None = None) -> dict[Operation, int]:
        """How many operations of each kind the tenant has used in a month, or one user of it."""
        used = Counter[Operation]()
        for total in await self._report(month, None if user is None else [user]):
            if total.month == month:
                used[total.operation] += total.count
        return used

    async def of_everyone(self, since: date) -> list[Total]:
        """The totals since a month, the latest first."""
        return await self._report(since, None)

    async def of_owner(self, since: date, owned: Owned) -> list[Total]:
        """A person's own totals since a month, the latest first."""
        return await self._report(since, list(owned.users))

    async def _report(self, since: date, users: list[uuid.UUID] | None) -> list[Total]:
        return await self._sql.fetch_as(Total, "operations_report", since=since, user_ids=users)

    async def blank(self, users: Sequence[uuid.UUID], since: date | None = None, until: date | None = None) -> None:
        """Take people out of the totals of the months of these days; the figures remain."""
        await self._sql.execute("operations_blank", user_ids=list(users), since=since, until=until)

    async def entries(self) -> int:
        """How many entries the tenant has, without those in the trash."""
        return int(await self._sql.fetch_value("entries_stored"))

    async def put_notices(self, month: date, quota: str, used: int, most: int) -> int:
        """Note for each admin that most of a quota is used; returns how many were not notified of that in this
        month."""
        rows = await self._sql.fetch("quota_notices_put", month=month, quota=quota, used=used, most=most)
        return len(rows)

    async def take_notice(
        self, served: Sequence[str], position: Position | None, excluded: Sequence[uuid.UUID], now: datetime
    ) -> DueNotice | None:
        """Take a notice that is not posted yet, where this process delivers, except for the `excluded` users: in the
        transaction that stores its post. With a `position`, only for who is there."""
        return await self._sql.fetch_one_as(
            DueNotice,
            "quota_notice_take",
            served=list(served),
            excluded_ids=list(excluded),
            position_user_id=None if position is None else position.user_id,
            now=now,
        )

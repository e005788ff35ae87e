"""The meter of operations: what is done over the API is counted, and held within the quotas of the tenant's plan.

A write is counted in its own transaction. All else is counted here first, and stored in batches off the request's way:
at most FLUSH_SECONDS later, and at the end of the process. So is what tools read.
"""

import asyncio
import hashlib
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, tzinfo
from typing import Final

import structlog

from composer.errors import NexusError, for_operator, where_raised
from composer.ports.clock import Clock
from composer.ports.models import WorkKind
from composer.repositories.database import Database, Transaction
from composer.repositories.operations import Operation, OperationCount
from composer.repositories.tool_reads import MAX_TOOL_READS, ReadRoute, ToolRead
from composer.usage.budgets import BudgetPeriod
from composer.usage.plans import Plan, QuotaState, states

logger = structlog.get_logger()

METER_FLUSH_SECONDS: Final = 1.0
TOTALS_TTL: Final = timedelta(seconds=1)  # for which the totals of a tenant with quotas are not read again
MAX_REQUESTS: Final = 10_000  # with an idempotency key, that wait to be stored; more are counted without looking at it


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something over the API: a user, or a tool for them (`vendor`; `api` for the person themselves)."""

    tenant_id: uuid.UUID
    user: uuid.UUID
    vendor: str


def request_digest(credential: uuid.UUID, key: str, request: bytes) -> bytes:
    """The digest of a request with an idempotency key: the same for its repeats, and for nothing else."""
    return hashlib.sha256(b"\n".join((credential.bytes, key.encode("utf-8", "surrogatepass"), request))).digest()


@dataclass(slots=True)
class _Unstored:
    """What is not stored yet of one tenant: (count, tokens) by month, user, vendor and kind; what may be a repeat, by
    the digest of its request; and when a tool (user, vendor) last read what (id, route)."""

    sums: defaultdict[tuple[date, uuid.UUID, str, Operation], tuple[int, int]] = field(
        default_factory=lambda: defaultdict(lambda: (0, 0))
    )
    requests: dict[bytes, OperationCount] = field(default_factory=dict)
    reads: defaultdict[tuple[uuid.UUID, str], dict[tuple[uuid.UUID, ReadRoute], datetime]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def add(self, added: OperationCount) -> None:
        """Add operations to the sums."""
        key = (added.month, added.user, added.vendor, added.operation)
        count, tokens = self.sums[key]
        self.sums[key] = (count + added.count, tokens + added.tokens)

    def add_reads(self, tool: tuple[uuid.UUID, str], reads: Mapping[tuple[uuid.UUID, ReadRoute], datetime]) -> None:
        """Add what a tool read. Of one tool the latest wait, as many as are kept."""
        found = self.reads[tool]
        found |= {what: max(at, found.get(what, at)) for what, at in reads.items()}
        if len(found) > MAX_TOOL_READS:
            self.reads[tool] = dict(sorted(found.items(), key=lambda each: each[1])[-MAX_TOOL_READS:])

    def used(self, month: date, operation: Operation, user: uuid.UUID | None = None) -> int:
        """How many operations of a kind and a month wait, of everybody or of one user."""
        waiting = [(of, who, kind, count) for (of, who, _, kind), (count, _) in self.sums.items()]
        waiting += [(each.month, each.user, each.operation, 1) for each in self.requests.values()]
        return sum(n for of, who, kind, n in waiting if (of, kind) == (month, operation) and user in (None, who))


@dataclass(frozen=True, slots=True)
class _Totals:
    """The totals of a month, as they were read at a time."""

    month: date
    at: datetime
    used: Mapping[Operation, int]


class OperationMeter:
    """Counts operations. `close` it at the end."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        zone: Callable[[uuid.UUID], tzinfo],
        plan: Callable[[uuid.UUID], Plan | None],
    ) -> None:
        """`zone` and `plan` are those of a tenant."""
        self._database, self._clock, self._zone, self._plan = database, clock, zone, plan
        self._waiting: defaultdict[uuid.UUID, _Unstored] = defaultdict(_Unstored)
        self._storing: dict[uuid.UUID, _Unstored] = {}
        self._totals: dict[uuid.UUID, _Totals] = {}
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def month(self, tenant: uuid.UUID) -> date:
        """The first day of the month that it is in a tenant's time zone."""
        return BudgetPeriod.MONTH.start(self._clock.now().astimezone(self._zone(tenant)).date())

    async def state(self, tenant: uuid.UUID, operation: Operation) -> QuotaState | None:
        """How much of the quota for an operation is used, as far as this process knows: what others did within the last
        seconds may be missing. None where there is no quota."""
        plan = self._plan(tenant)
        most = None if plan is None else plan.operations.get(operation)
        if most is None:
            return None
        month, now = self.month(tenant), self._clock.now()
        totals = self._totals.get(tenant)
        if totals is None or totals.month != month or not now - TOTALS_TTL < totals.at <= now:
            async with self._database.transaction(tenant, "read") as tx:
                totals = self._totals[tenant] = _Totals(month, now, await tx.operations.used(month))
        used = totals.used.get(operation, 0) + self._waiting_to_be_stored(tenant, month, operation)
        return QuotaState(operation.value, used, most, BudgetPeriod.MONTH.end(month))

    async def own_share(self, tenant: uuid.UUID, user: uuid.UUID, whole: QuotaState) -> QuotaState:
        """How much of the quota of an operation one user has used, whatever others do."""
        operation, month = Operation(whole.quota), self.month(tenant)
        async with self._database.transaction(tenant, "read") as tx:
            stored = (await tx.operations.used(month, user)).get(operation, 0)
        return replace(whole, used=stored + self._waiting_to_be_stored(tenant, month, operation, user))

    def _waiting_to_be_stored(
        self, tenant: uuid.UUID, month: date, operation: Operation, user: uuid.UUID | None = None
    ) -> int:
        waiting = (self._waiting.get(tenant), self._storing.get(tenant))
        return sum(each.used(month, operation, user) for each in waiting if each is not None)

    def seconds_left(self, tenant: uuid.UUID) -> int:
        """The seconds until the tenant's next month."""
        zone = self._zone(tenant)
        then = datetime.combine(BudgetPeriod.MONTH.end(self.month(tenant)), datetime.min.time(), zone)
        return max(1, round((then - self._clock.now()).total_seconds()))

    async def admit(self, tenant: uuid.UUID, operation: Operation) -> QuotaState | None:
        """The state of an operation's quota. Raises QuotaUsedUp where nothing of it is left."""
        state = await self.state(tenant, operation)
        if state is not None:
            state.require_capacity(seconds=self.seconds_left(tenant))
        return state

    async def require(self, tx: Transaction, tenant: uuid.UUID, operation: Operation, times: int = 1) -> None:
        """Return if so many are left. It is asked in the transaction of a write, which no other one of the tenant
        overtakes then: so a quota is never exceeded. Raises QuotaUsedUp."""
        plan = self._plan(tenant)
        most = None if plan is None else plan.operations.get(operation)
        if most is None:
            return
        await tx.serialize()
        month = self.month(tenant)
        used = (await tx.operations.used(month)).get(operation, 0)
        QuotaState(operation.value, used, most, BudgetPeriod.MONTH.end(month)).require_capacity(
            times, self.seconds_left(tenant)
        )

    async def add(self, tx: Transaction, actor: Actor, operation: Operation, times: int = 1, tokens: int = 0) -> None:
        """Count operations at the end of their own transaction."""
        month = self.month(actor.tenant_id)
        await tx.operations.add([OperationCount(month, actor.user, actor.vendor, operation, times, tokens)])
        self._totals.pop(actor.tenant_id, None)

    async def quotas(self, tx: Transaction, tenant: uuid.UUID) -> list[QuotaState]:
        """How much of each quota of a tenant's plan is used."""
        plan = self._plan(tenant)
        if plan is None:
            return []
        month, today = self.month(tenant), self._clock.now().astimezone(self._zone(tenant)).date()
        entries = 0 if plan.entries is None else await tx.operations.entries()
        spent = [] if plan.tokens is None else await tx.usage.spent(today)
        tokens = sum(each.amount.tokens for each in spent if each.kind is not WorkKind.PROBE)
        return states(plan, await tx.operations.used(month), entries, tokens, BudgetPeriod.MONTH.end(month))

    async def note_nearly_used_up(self, tenant: uuid.UUID) -> int:
        """Note for each admin which quotas are nearly used up, once in a month; returns how many notices are new."""
        if self._plan(tenant) is None:
            return 0
        async with self._database.transaction(tenant) as tx:
            found = [each for each in await self.quotas(tx, tenant) if each.is_nearly_used_up]
            month = self.month(tenant)
            return sum([await tx.operations.put_notices(month, each.quota, each.used, each.most) for each in found])

    def count(self, actor: Actor, operation: Operation, tokens: int = 0, request: bytes | None = None) -> None:
        """Count an operation; it is stored soon. `request` is the `request_digest` of one that may be repeated, and
        that counts once in a day."""
        added = OperationCount(self.month(actor.tenant_id), actor.user, actor.vendor, operation, tokens=tokens)
        waiting = self._waiting[actor.tenant_id]
        if request is not None and len(waiting.requests) < MAX_REQUESTS:
            waiting.requests[request] = added
        else:
            waiting.add(added)
        self._flush_soon()

    def note_reads(self, actor: Actor, route: ReadRoute, ids: Iterable[uuid.UUID]) -> None:
        """Note what is handed out to a tool; it is stored soon."""
        reads = dict.fromkeys(((id, route) for id in ids), self._clock.now())
        if reads:
            self._waiting[actor.tenant_id].add_reads((actor.user, actor.vendor), reads)
            self._flush_soon()

    def _flush_soon(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._flush_later())

    async def settle(self) -> None:
        """Store all that was counted. What the database does not take stays for the next time."""
        async with self._lock:
            for tenant in list(self._waiting):
                self._storing[tenant] = self._waiting.pop(tenant)
                try:
                    await self._store(tenant, self._storing[tenant])
                except NexusError as error:
                    logger.warning("operations.postponed", tenant=str(tenant), error=for_operator(error))
                    self._requeue(tenant)
                except Exception as error:  # it would fail again; the others go on
                    logger.error("operations.lost", tenant=str(tenant), **where_raised(error))
                finally:
                    self._storing.pop(tenant, None)
                    self._totals.pop(tenant, None)

    async def close(self) -> None:
        """Store what was counted, and stop."""
        self._closing.set()
        if self._task is not None:
            await self._task
        await self.settle()
        if self._waiting:
            logger.error("operations.lost", tenants=len(self._waiting))

    async def _flush_later(self) -> None:
        while self._waiting and not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(METER_FLUSH_SECONDS):
                    await self._closing.wait()
            await self.settle()
        self._task = None

    async def _store(self, tenant: uuid.UUID, waiting: _Unstored) -> None:
        """Store a tenant's operations. An erasure goes before, or finds whom they name."""
        async with self._database.transaction(tenant) as tx:
            rows = [OperationCount(*key, count=count, tokens=tokens) for key, (count, tokens) in waiting.sums.items()]
            if waiting.requests:
                users = {digest: each.user for digest, each in waiting.requests.items()}
                new = await tx.operations.note_requests(users, self._clock.now())
                rows += [each for digest, each in waiting.requests.items() if digest in new]
            if waiting.reads:
                await tx.tool_reads.add(
                    [
                        (user, ToolRead(id, vendor, route, at))
                        for (user, vendor), reads in waiting.reads.items()
                        for (id, route), at in reads.items()
                    ]
                )
            if rows:
                await tx.operations.add(rows)

    def _requeue(self, tenant: uuid.UUID) -> None:
        """Let what was not stored wait again."""
        failed, waiting = self._storing[tenant], self._waiting[tenant]
        for key, (count, tokens) in failed.sums.items():
            waiting.add(OperationCount(*key, count=count, tokens=tokens))
        waiting.requests = failed.requests | waiting.requests
        for tool, reads in failed.reads.items():
            waiting.add_reads(tool, reads)

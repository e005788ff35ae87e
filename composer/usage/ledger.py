"""The ledger that every metered call goes through: it holds calls within budgets and records what they used."""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from decimal import Decimal
from typing import Final

import structlog

from composer.errors import BudgetUsedUp, NexusError, for_operator, where_raised
from composer.model import Usage
from composer.ports.clock import Clock
from composer.ports.models import UsageAccount, WorkKind
from composer.ports.observer import CallOutcome, NoObserver, Observer
from composer.repositories.database import Database
from composer.repositories.usage import NOT_ERASED, Amount, ErasureCount, Figures, LedgerKey, Spent
from composer.text.cleaning import clean_line
from composer.usage.budgets import Budget, BudgetPeriod, first_exceeded
from composer.usage.prices import Prices

logger = structlog.get_logger()

OTHER: Final = "other"  # stands for a model that no setting names, and whose name anybody may have made up
RESERVATION_LIFETIME: Final = timedelta(hours=1)  # of a reservation, should its process die before the call ends

_WHEN: Final = {
    BudgetPeriod.DAY: ("today", "tomorrow"),
    BudgetPeriod.MONTH: ("this month", "on the first of the next month"),
}


@dataclass(frozen=True, slots=True)
class UsageRules:
    """What the settings say of usage: the names of models that they have anywhere, the prices, and of each tenant its
    budgets and its time zone."""

    models: Collection[str]
    prices: Prices
    budgets: Callable[[uuid.UUID], Sequence[Budget]]
    zone: Callable[[uuid.UUID], tzinfo]


class CallLedger:
    """Holds calls within budgets and records them.

    A call that a budget counts reserves the most that it may use, in the database and before it is made, and gives that
    back when it has ended and is recorded. Reservations of a tenant are made one after the other, whichever process
    makes them: so calls that are made side by side fit into a budget together.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        new_id: Callable[[], uuid.UUID],
        rules: UsageRules,
        observer: Observer | None = None,
    ) -> None:
        """`new_id` gives a random id, for reservations."""
        self._database, self._clock, self._new_id, self._rules = database, clock, new_id, rules
        self._observer = observer or NoObserver()
        self._locks: defaultdict[uuid.UUID, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._reported: set[tuple[object, ...]] = set()  # what was logged of budgets

    @asynccontextmanager
    async def reserved(
        self, account: UsageAccount, model: str, most: Callable[[], Awaitable[Amount]]
    ) -> AsyncGenerator[None, None]:
        """Count what a call may use as used while it runs; `most` is asked for it where a budget counts the call.

        Raises BudgetUsedUp, and records that, when a budget has no room for it, or is in money and the model has no
        price.
        """
        slug = _slug(account)
        budgets = [each for each in self._rules.budgets(account.tenant_id) if each.counts(account.kind, slug)]
        if not budgets:
            yield
            return
        if not self.may_ask(account, model):
            await self._refuse_unpriced(account, model)
        reservation, wanted = self._new_id(), Spent(True, account.kind, slug, await most())
        try:
            exceeded = await self._reserve(account, reservation, wanted, budgets)
            if exceeded is not None:
                await self._refuse(account, model, exceeded, wanted.amount)
            yield
        finally:
            await self._release(account, reservation)

    def may_ask(self, account: UsageAccount, model: str) -> bool:
        """Whether a model may be asked: any, or where a budget in money counts the work, one with a price."""
        slug, has_price = _slug(account), self._rules.prices.of(model) is not None
        budgets = () if has_price else self._rules.budgets(account.tenant_id)
        return not any(each.money is not None and each.counts(account.kind, slug) for each in budgets)

    async def _reserve(
        self, account: UsageAccount, reservation: uuid.UUID, wanted: Spent, budgets: Sequence[Budget]
    ) -> Budget | None:
        """Reserve an amount, or return the first budget that has no room for it."""
        tenant, now = account.tenant_id, self._clock.now()
        async with self._locks[tenant], self._database.transaction(tenant) as tx:  # one connection waits, not many
            await tx.serialize()
            counted = await tx.usage.spent(self._today(tenant), now)
            exceeded = first_exceeded(budgets, counted, account.kind, wanted.agent, wanted.amount)
            if exceeded is None:
                await tx.usage.reserve(reservation, wanted, now, now + RESERVATION_LIFETIME)
            return exceeded

    async def _release(self, account: UsageAccount, reservation: uuid.UUID) -> None:
        """Give a reservation back. If that fails, it counts until it expires."""
        try:
            async with self._database.transaction(account.tenant_id) as tx:
                await tx.usage.release(reservation)
        except NexusError as error:
            logger.warning("usage.not_released", kind=account.kind.value, error=for_operator(error))

    async def _refuse_unpriced(self, account: UsageAccount, model: str) -> None:
        await self.record(account, model, Figures(refused=1), await self.begin(account))
        known = self._known(model)
        if ("budget.no_price", account.tenant_id, known) not in self._reported:
            self._reported.add(("budget.no_price", account.tenant_id, known))
            logger.warning("budget.no_price", tenant=str(account.tenant_id), kind=account.kind.value, model=known)
        named = self._rules.prices.named()
        sentence = (
            f"The model '{clean_line(model, 100)}' has no price, and what it uses is limited in money, so it is not "
            f"asked: {named}. Whoever runs Nexus can set one in nexus.toml, for exactly this name."
        )
        if account.kind is WorkKind.GATEWAY:  # who asks has chosen the model
            raise BudgetUsedUp(sentence)
        raise BudgetUsedUp(
            "What may be spent here is limited in money, and the model that answers here has no price, so I can't "
            "answer: tell whoever runs Nexus.",
            operator=sentence,
        )

    async def _refuse(self, account: UsageAccount, model: str, budget: Budget, wanted: Amount) -> None:
        too_small = not budget.holds(wanted)  # also when nothing of it is used
        await self.record(account, model, Figures(refused=1), await self.begin(account))
        today = self._today(account.tenant_id)
        event = "budget.too_small" if too_small else "budget.used_up"
        reported = (event, account.tenant_id, budget, budget.period.start(today))
        if reported not in self._reported:
            self._reported.add(reported)
            logger.warning(
                event,
                tenant=str(account.tenant_id),
                kind=account.kind.value,
                budget=budget.describe(self._rules.prices),
                until=budget.period.end(today).isoformat(),
            )
        now, then = _WHEN[budget.period]
        what = "this work" if account.kind is not WorkKind.ANSWER else "answers"
        if too_small:
            raise BudgetUsedUp(
                f"The whole budget for {what} of a {budget.period} is smaller than what this may need, so I can't "
                "answer, and not later either. Whoever runs Nexus can raise it."
            )
        raise BudgetUsedUp(
            f"What may be spent on {what} {now} is used up, so I can't answer. Ask again {then}; an admin of the "
            "workspace can see more with /nexus usage --everyone."
        )

    def cost(self, model: str, usage: Usage) -> Decimal:
        """What a call costs as far as the price of its model is known."""
        return self._rules.prices.cost(model, usage) or Decimal(0)

    def figures(self, model: str, usage: Usage, *, failed: bool, estimated: bool) -> Figures:
        """The figures of one call. `estimated`: its tokens were counted by us."""
        cost = self._rules.prices.cost(model, usage)
        return Figures(
            calls=1,
            failures=int(failed),
            estimated=int(estimated),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            unpriced_tokens=usage.prompt_tokens + usage.completion_tokens if cost is None else 0,
            cost=cost or Decimal(0),
        )

    async def begin(self, account: UsageAccount) -> ErasureCount:
        """The erasure count of the people of a call: read it before the call and pass it to `record`. None, so that
        nobody is named, where the database does not answer."""
        if account.user_id is None and account.conversation_id is None:
            return NOT_ERASED
        try:
            async with self._database.statement(account.tenant_id) as tx:
                return await tx.usage.erasure_count(account.user_id, account.conversation_id)
        except NexusError as error:
            logger.warning("usage.nobody_named", kind=account.kind.value, error=for_operator(error))
            return None

    async def record(self, account: UsageAccount, model: str, figures: Figures, begun: ErasureCount) -> None:
        """Add a call to the ledger; `begun` is what `begin` gave. A model that no setting names is OTHER there. A
        failure is logged: what the model gave counts more than its record."""
        outcome = (
            CallOutcome.REFUSED if figures.refused else CallOutcome.FAILED if figures.failures else CallOutcome.DONE
        )
        used, model = Usage(figures.prompt_tokens, figures.completion_tokens, figures.cached_tokens), self._known(model)
        self._observer.model_called(account.kind, model, outcome, used)
        agent = None if account.agent is None else account.agent.id
        day = self._today(account.tenant_id)
        key = LedgerKey(day, account.kind, agent, account.conversation_id, account.user_id, model)
        try:
            async with self._database.statement(account.tenant_id) as tx:
                await tx.usage.add(key, figures, begun)
        except NexusError as error:
            logger.warning("usage.not_recorded", kind=account.kind.value, error=for_operator(error))
        except Exception as error:
            logger.error("usage.not_recorded", kind=account.kind.value, **where_raised(error))

    def _known(self, model: str) -> str:
        return model if model in self._rules.models else OTHER

    def _today(self, tenant: uuid.UUID) -> date:
        return self._clock.now().astimezone(self._rules.zone(tenant)).date()


def _slug(account: UsageAccount) -> str:
    return "" if account.agent is None else account.agent.slug

"""The meter: every call of a model goes through it. It keeps calls within budgets and records what they used."""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date, tzinfo
from decimal import Decimal
from functools import partial
from typing import Final

import structlog

from composer.errors import BudgetUsedUp, NexusError, PromptTooLong, for_operator, where_raised
from composer.model import Agent, Usage
from composer.ports.clock import Clock
from composer.ports.models import TOKENS_PER_MESSAGE, ChatMessage, ChatModel, Chunk, Tokenizer, Work, WorkKind
from composer.ports.observer import CallOutcome, NoObserver, Observer
from composer.repositories.database import Database
from composer.repositories.usage import Amount, Figures, LedgerKey, Spent
from composer.text.work import COUNTED_PER_READ, off_loop
from composer.usage.budgets import Budget, Period, first_exceeded
from composer.usage.circuit_breaker import CircuitBreaker
from composer.usage.prices import Prices

logger = structlog.get_logger()

_WHEN: Final = {Period.DAY: ("today", "tomorrow"), Period.MONTH: ("this month", "on the first of the next month")}


@dataclass(frozen=True, slots=True)
class UsageRules:
    """What the settings say of usage: the prices, and of each tenant its budgets and its time zone."""

    prices: Prices
    budgets: Callable[[uuid.UUID], Sequence[Budget]]
    zone: Callable[[uuid.UUID], tzinfo]


@dataclass(slots=True)
class _Call:
    """One call while it runs. `usage` is what the API reported, None until it did."""

    model: str
    text: str = ""
    usage: Usage | None = None
    failed: bool = False

    def add(self, chunk: Chunk) -> None:
        self.text += chunk.text
        if chunk.usage is not None:
            self.usage = chunk.usage if self.usage is None else self.usage + chunk.usage


class Meter:
    """Asks models for work (composer.ports.models.MeteredModel).

    A call is estimated by its prompt and the longest answer that it may have. It is refused when what was used and what
    is running leave no room for that in a budget: so one process never exceeds a budget, and several at once by no more
    than the calls that they begin in the same moment. Agents without a model are answered offline, which uses nothing.
    """

    def __init__(
        self,
        database: Database,
        model: ChatModel,
        tokenizer: Callable[[str], Tokenizer],
        clock: Clock,
        rules: UsageRules,
        *,
        uses_models: bool = True,
        observer: Observer | None = None,
    ) -> None:
        """`tokenizer` gives the tokenizer of a model by its name. Without `uses_models` every agent is offline."""
        self._observer = observer or NoObserver()
        self._database, self._model, self._tokenizer, self._clock = database, model, tokenizer, clock
        self._rules, self._breaker, self._uses_models = rules, CircuitBreaker(clock), uses_models
        self._locks: defaultdict[uuid.UUID, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._running: defaultdict[uuid.UUID, dict[object, Spent]] = defaultdict(dict)  # estimates of calls, by tenant
        self._reported: set[tuple[uuid.UUID, Budget, date]] = set()  # budgets that were logged as used up

    async def stream(self, work: Work, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """The answer, in chunks that name the model. Raises as the model, and BudgetUsedUp."""
        if not work.agent.model or not self._uses_models:
            async for chunk in self._model.stream(work.agent, messages):
                yield chunk
            return
        async with self._reserved(work, messages):
            async for chunk in self._ask_in_turn(work, messages):
                yield chunk

    async def _ask_in_turn(self, work: Work, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """Ask the agent's model, and each of its fallback models when the one before fails before it has said anything.
        A prompt that is too long for a model is no failure of the model."""
        models = self._models(work.agent)
        for place, model in enumerate(models):
            call = _Call(model)
            try:
                async for chunk in self._record(work, call, messages):
                    yield chunk
            except NexusError as error:
                if isinstance(error, PromptTooLong):
                    raise
                self._breaker.record_failure(model)
                if call.text or place == len(models) - 1:
                    raise
                logger.warning("model.fallback", model=model, fallback=models[place + 1], error=for_operator(error))
            else:
                self._breaker.record_success(model)
                return

    def _models(self, agent: Agent) -> list[str]:
        """The models to ask, without those that keep failing; if all do, the agent's own."""
        named = dict.fromkeys((agent.model, *agent.fallback_models))
        return [model for model in named if not self._breaker.is_open(model)] or [agent.model]

    async def _record(self, work: Work, call: _Call, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """Ask one model, and add what that used to the ledger, however it ends."""
        try:
            async for chunk in self._model.stream(replace(work.agent, model=call.model), messages):
                call.add(chunk)
                yield replace(chunk, model=call.model)
        except BaseException:
            call.failed = True
            raise
        finally:
            await self._add(work, call.model, await self._figures(call, messages))

    @asynccontextmanager
    async def _reserved(self, work: Work, messages: Sequence[ChatMessage]) -> AsyncGenerator[None, None]:
        """Count the estimate of a call as used while it runs. Raises BudgetUsedUp when a budget has no room for it."""
        budgets = [b for b in self._rules.budgets(work.tenant_id) if b.counts(work.kind, work.agent.slug)]
        if not budgets:
            yield
            return
        estimate = await self._estimate(work.agent, messages)
        running, call = self._running[work.tenant_id], object()
        async with self._locks[work.tenant_id]:
            today = self._today(work.tenant_id)
            async with self._database.transaction(work.tenant_id, snapshot=True) as tx:
                spent = await tx.usage.spent(today)
            exceeded = first_exceeded(budgets, [*spent, *running.values()], work.kind, work.agent.slug, estimate)
            if exceeded is None:
                running[call] = Spent(True, work.kind, work.agent.slug, estimate)
        if exceeded is not None:
            await self._refuse(work, exceeded, today)
        try:
            yield
        finally:
            running.pop(call, None)

    async def _estimate(self, agent: Agent, messages: Sequence[ChatMessage]) -> Amount:
        """The most that a call is expected to use, by the dearest of the models that may be asked."""
        usage = Usage(await self._count(agent.model, messages), agent.reply_tokens)
        costs = (self._rules.prices.cost(model, usage) for model in self._models(agent))
        return Amount(usage.prompt_tokens + usage.completion_tokens, max(cost or Decimal(0) for cost in costs))

    async def _refuse(self, work: Work, budget: Budget, today: date) -> None:
        await self._add(work, work.agent.model, Figures(refused=1))
        reported = (work.tenant_id, budget, budget.period.start(today))
        if reported not in self._reported:
            self._reported.add(reported)
            logger.warning(
                "budget.used_up",
                tenant=str(work.tenant_id),
                kind=work.kind.value,
                budget=budget.words(self._rules.prices),
                until=budget.period.end(today).isoformat(),
            )
        now, then = _WHEN[budget.period]
        what = "this work" if work.kind is not WorkKind.ANSWER else "answers"
        raise BudgetUsedUp(
            f"What may be spent on {what} {now} is used up, so I can't answer. Ask again {then}; an admin of the "
            "workspace can see more with /nexus usage --everyone."
        )

    async def _figures(self, call: _Call, messages: Sequence[ChatMessage]) -> Figures:
        """What a call used, by the API or, where that reported nothing of an answer, by our own count."""
        usage, estimated = call.usage or Usage(), 0
        if usage == Usage() and call.text:
            count = partial(self._tokenizer(call.model).count, call.text)
            completion = await off_loop(len(call.text) // COUNTED_PER_READ, count)
            usage, estimated = Usage(await self._count(call.model, messages), completion), 1
        cost = self._rules.prices.cost(call.model, usage)
        return Figures(
            calls=1,
            failures=int(call.failed),
            estimated=estimated,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            unpriced_tokens=usage.prompt_tokens + usage.completion_tokens if cost is None else 0,
            cost=cost or Decimal(0),
        )

    async def _add(self, work: Work, model: str, figures: Figures) -> None:
        """Add to the ledger. A failure is logged: what the model gave counts more than its record."""
        outcome = (
            CallOutcome.REFUSED if figures.refused else CallOutcome.FAILED if figures.failures else CallOutcome.DONE
        )
        used = Usage(figures.prompt_tokens, figures.completion_tokens, figures.cached_tokens)
        self._observer.model_called(work.kind, model, outcome, used)
        day = self._today(work.tenant_id)
        key = LedgerKey(day, work.kind, work.agent.id, work.conversation_id, work.user_id, model)
        try:
            async with self._database.transaction(work.tenant_id) as tx:
                await tx.usage.add(key, figures)
        except NexusError as error:
            logger.warning("usage.not_recorded", kind=work.kind.value, error=for_operator(error))
        except Exception as error:
            logger.error("usage.not_recorded", kind=work.kind.value, **where_raised(error))

    async def _count(self, model: str, messages: Sequence[ChatMessage]) -> int:
        """Tokens of a prompt as the model counts them, without images."""
        count = self._tokenizer(model).count
        chars = sum(len(message.content) for message in messages)
        return await off_loop(
            chars // COUNTED_PER_READ, lambda: sum(count(each.content) + TOKENS_PER_MESSAGE for each in messages)
        )

    def _today(self, tenant: uuid.UUID) -> date:
        return self._clock.now().astimezone(self._rules.zone(tenant)).date()

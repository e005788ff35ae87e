"""The meter: every call of a chat model goes through it. It keeps calls within budgets and records what they used."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from composer.errors import NexusError, PromptTooLong, for_operator
from composer.model import Usage
from composer.ports.clock import Clock
from composer.ports.models import (
    TOKENS_PER_MESSAGE,
    ChatMessage,
    ChatModel,
    Chunk,
    Tokenizer,
    ToolModel,
    Work,
)
from composer.repositories.usage import Amount, Figures
from composer.text.work import COUNTED_PER_READ, off_loop
from composer.usage.circuit_breaker import CircuitBreaker
from composer.usage.ledger import CallLedger
from composer.usage.reported import is_plausible

logger = structlog.get_logger()


_NOTHING: Final = Usage()


@dataclass(slots=True)
class _Call:
    """One call while it runs. `usage` is what the API reported. `given_up`: nobody waits for it any more."""

    model: str
    text: str = ""
    usage: Usage = _NOTHING
    failed: bool = False
    given_up: bool = False

    def add(self, chunk: Chunk) -> None:
        self.text += chunk.text + "".join(f"{each.name} {each.arguments}" for each in chunk.calls)
        if chunk.usage is not None:
            self.usage += chunk.usage


class Meter:
    """Asks models for work (composer.ports.models.MeteredModel).

    A call is estimated by its prompt and the longest answer that it may have. It is refused when what was used and what
    is running leave no room for that in a budget. Agents without a model are answered offline, which uses nothing.
    """

    def __init__(
        self,
        ledger: CallLedger,
        model: ChatModel,
        tokenizer: Callable[[str], Tokenizer],
        clock: Clock,
        *,
        uses_models: bool = True,
        mark: Callable[[uuid.UUID], str] = lambda _: "",
    ) -> None:
        """`tokenizer` gives the tokenizer of a model by its name. Without `uses_models` every agent is offline. `mark`
        is what a tenant's prompts begin with."""
        self._ledger, self._model, self._tokenizer, self._mark = ledger, model, tokenizer, mark
        self._breaker, self._uses_models = CircuitBreaker(clock), uses_models

    async def stream(self, work: Work, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """The answer, in chunks that name the model. Raises as the model, and BudgetUsedUp."""
        if not work.agent.model or not self._uses_models:
            async for chunk in self._model.stream(work.agent, messages):
                yield chunk
            return
        messages = _begun_with(self._mark(work.account.tenant_id), messages)
        most = partial(self._estimate, work, messages)
        async with self._ledger.reserved(work.account, self._models(work)[0], most):
            async for chunk in self._ask_in_turn(work, messages):
                yield chunk

    async def _ask_in_turn(self, work: Work, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """Ask the agent's model, and each of its fallback models when the one before fails before it has said anything.
        A prompt that is too long for a model is no failure of the model."""
        models = self._models(work)
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

    def _models(self, work: Work) -> list[str]:
        """The models to ask, without those that may not be asked, and those that keep failing; if all do, the first."""
        named = dict.fromkeys((work.agent.model, *work.agent.fallback_models))
        allowed = [model for model in named if self._ledger.may_ask(work.account, model)] or [work.agent.model]
        return [model for model in allowed if not self._breaker.is_open(model)] or allowed[:1]

    async def _record(self, work: Work, call: _Call, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """Ask one model, and add what that used to the ledger, however it ends."""
        begun = await self._ledger.begin(work.account)
        try:
            async for chunk in self._stream(replace(work, agent=replace(work.agent, model=call.model)), messages):
                call.add(chunk)
                yield replace(chunk, model=call.model)
        except BaseException as error:
            call.failed, call.given_up = True, not isinstance(error, Exception)
            raise
        finally:
            sent = [*messages, *_offered(work)]
            await self._ledger.record(work.account, call.model, await self._figures(call, sent), begun)

    def _stream(self, work: Work, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        if work.tools and isinstance(self._model, ToolModel):
            return self._model.stream_with_tools(work.agent, messages, work.tools)
        return self._model.stream(work.agent, messages)

    async def _estimate(self, work: Work, messages: Sequence[ChatMessage]) -> Amount:
        """The most that a call is expected to use, by the dearest of the models that may be asked."""
        agent = work.agent
        usage = Usage(await self._count(agent.model, [*messages, *_offered(work)]), agent.reply_tokens)
        costs = (self._ledger.cost(model, usage) for model in self._models(work))
        return Amount(usage.prompt_tokens + usage.completion_tokens, max(costs))

    async def _figures(self, call: _Call, messages: Sequence[ChatMessage]) -> Figures:
        """What a call used: by the API, and by our own count where that can't be all. A call that failed before it said
        anything used nothing, unless it was given up."""
        usage, estimated = call.usage, False
        if call.text or call.given_up or usage != _NOTHING:
            estimated = not is_plausible(usage, _chars(messages), len(call.text))
        if estimated:
            count = partial(self._tokenizer(call.model).count, call.text)
            completion = await off_loop(len(call.text) // COUNTED_PER_READ, count)
            usage = usage.at_least(Usage(await self._count(call.model, messages), completion))
        return self._ledger.figures(call.model, usage, failed=call.failed, estimated=estimated)

    async def _count(self, model: str, messages: Sequence[ChatMessage]) -> int:
        """Tokens of a prompt as the model counts them, with an upper estimate for each image."""
        count = self._tokenizer(model).count
        return await off_loop(
            _chars(messages) // COUNTED_PER_READ,
            lambda: sum(count(each.words) + TOKENS_PER_MESSAGE for each in messages),
        )


def _begun_with(mark: str, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The messages behind a mark."""
    return [replace(messages[0], content=mark + messages[0].content), *messages[1:]] if mark and messages else messages


def _chars(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.words) for message in messages)


def _offered(work: Work) -> list[ChatMessage]:
    """What a request says of its tools, to count its tokens."""
    return [ChatMessage("tool", tool.words) for tool in work.tools]

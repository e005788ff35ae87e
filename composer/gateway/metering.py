"""The meter of the gateway: keeps what people's tools ask models for within budgets, and records it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from composer.gateway.answers import AnswerCopy, UpstreamAnswer
from composer.gateway.requests import Api, GatewayRequest
from composer.model import Usage
from composer.ports.models import TOKENS_PER_PROMPT, Tokenizer, UsageAccount
from composer.repositories.usage import Amount, ErasureCount
from composer.text.work import COUNTED_PER_READ, off_loop
from composer.usage.ledger import CallLedger

REPLY_TOKENS: Final = 4_096  # of the longest answer, where a request does not say how long it may be


@dataclass(slots=True)
class GatewayCall:
    """One request to a model while it is answered. `copy` is a copy of the answer's body, which is made of events if
    `is_stream`. `failed` until an answer has come. `is_waiting` while the upstream works on one: if the client leaves
    then, the prompt is counted."""

    request: GatewayRequest
    copy: AnswerCopy = field(default_factory=AnswerCopy)
    is_stream: bool = False
    failed: bool = True
    is_waiting: bool = False
    injected: str = ""  # the memory that was put into the request, to count its tokens
    answer: UpstreamAnswer = field(default_factory=UpstreamAnswer)  # what it says, once it has ended

    async def read(self) -> UpstreamAnswer:
        """What the answer says, as far as it has come."""
        return await asyncio.to_thread(partial(self.copy.read, self.request.api, events=self.is_stream))


class GatewayMeter:
    """Keeps requests within budgets, and records what they used."""

    def __init__(self, ledger: CallLedger, tokenizer: Callable[[str], Tokenizer]) -> None:
        """`tokenizer` gives the tokenizer of a model by its name."""
        self._ledger, self._tokenizer = ledger, tokenizer

    @asynccontextmanager
    async def metered(self, account: UsageAccount, call: GatewayCall) -> AsyncGenerator[None, None]:
        """Reserve what a request may use while it is answered, and record what it used, however that ends. The tokens
        of an answer without usage are counted by us. Raises BudgetUsedUp."""
        model = call.request.model
        async with self._ledger.reserved(account, model, partial(self._max_usage, call)):
            begun = await self._ledger.begin(account)
            try:
                yield
            finally:
                recording = asyncio.create_task(self._record(account, call, begun))
                await _finish(recording)

    async def _record(self, account: UsageAccount, call: GatewayCall, begun: ErasureCount) -> None:
        answer = call.answer = UpstreamAnswer() if call.failed else await call.read()
        usage, estimated = answer.usage or Usage(), False
        if call.is_waiting or (not call.failed and answer.usage is None):
            usage, estimated = Usage(await self._prompt(call), await self._count(call, answer.text)), True
        figures = self._ledger.figures(call.request.model, usage, failed=call.failed, estimated=estimated)
        await self._ledger.record(account, call.request.model, figures, begun)

    async def _max_usage(self, call: GatewayCall) -> Amount:
        request = call.request
        reply = 0 if request.api is Api.EMBEDDINGS else REPLY_TOKENS
        usage = Usage(await self._prompt(call), reply if request.reply_tokens is None else request.reply_tokens)
        cost = self._ledger.cost(request.model, usage)
        return Amount(usage.prompt_tokens + usage.completion_tokens, cost)

    async def _prompt(self, call: GatewayCall) -> int:
        request, count = call.request, self._tokenizer(call.request.model).count
        chars = (len(request.text) + len(call.injected)) // COUNTED_PER_READ
        return await off_loop(chars, lambda: count("\n".join((*request.texts, call.injected)))) + TOKENS_PER_PROMPT

    async def _count(self, call: GatewayCall, text: str) -> int:
        count = self._tokenizer(call.request.model).count
        return await off_loop(len(text) // COUNTED_PER_READ, partial(count, text))


async def _finish(task: "asyncio.Task[None]") -> None:
    """Wait for a task to end, also when the caller is cancelled meanwhile; then raise CancelledError."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    task.result()

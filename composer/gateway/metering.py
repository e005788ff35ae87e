"""The meter of the gateway: keeps what people's tools ask models for within budgets, and records it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from composer.gateway.answers import AnswerCopy, UpstreamAnswer
from composer.gateway.counting import Sent, sent
from composer.gateway.requests import Api, GatewayRequest
from composer.model import Usage
from composer.ports.models import TOKENS_PER_PROMPT, Tokenizer, UsageAccount
from composer.repositories.usage import Amount, ErasureCount
from composer.text.work import COUNTED_PER_READ, in_thread, off_loop
from composer.usage.ledger import CallLedger
from composer.usage.reported import is_plausible


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
    _sent: Sent | None = None

    async def sent(self) -> Sent:
        """What the request has for the model, read once."""
        if self._sent is None:
            self._sent = await off_loop(len(self.request.text) // COUNTED_PER_READ, partial(sent, self.request))
        return self._sent

    async def read(self) -> UpstreamAnswer:
        """What the answer says, as far as it has come."""
        return await in_thread(partial(self.copy.read, self.request.api, events=self.is_stream))


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
        if call.is_waiting or not call.failed:
            chars = len((await call.sent()).text) + len(call.injected)
            estimated = not is_plausible(usage, chars, len(answer.generated))
        if estimated:
            usage = usage.at_least(Usage(await self._prompt(call), await self._written(call, answer)))
        figures = self._ledger.figures(call.request.model, usage, failed=call.failed, estimated=estimated)
        await self._ledger.record(account, call.request.model, figures, begun)

    async def _max_usage(self, call: GatewayCall) -> Amount:
        request = call.request
        usage = Usage(await self._prompt(call), 0 if request.api is Api.EMBEDDINGS else request.reply_tokens)
        cost = self._ledger.cost(request.model, usage)
        return Amount(usage.prompt_tokens + usage.completion_tokens, cost)

    async def _prompt(self, call: GatewayCall) -> int:
        sent, count = await call.sent(), self._tokenizer(call.request.model).count
        text = f"{sent.text}\n{call.injected}"
        return await off_loop(len(text) // COUNTED_PER_READ, partial(count, text)) + sent.others + TOKENS_PER_PROMPT

    async def _written(self, call: GatewayCall, answer: UpstreamAnswer) -> int:
        count, text = self._tokenizer(call.request.model).count, answer.generated
        return ceil(await off_loop(len(text) // COUNTED_PER_READ, partial(count, text)) * answer.scale)


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

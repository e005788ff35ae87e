"""The meter of the gateway: what people's tools ask models for is held within budgets and recorded."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from composer.gateway.answers import Answer, AnswerCopy
from composer.gateway.requests import Api, GatewayRequest
from composer.model import Usage
from composer.ports.models import TOKENS_PER_PROMPT, Account, Tokenizer
from composer.repositories.usage import Amount, ErasureCount
from composer.text.work import COUNTED_PER_READ, off_loop
from composer.usage.ledger import CallLedger

REPLY_TOKENS: Final = 4_096  # of the longest answer, where a request does not say how long it may be


@dataclass(slots=True)
class Passage:
    """One request while it is answered. `copy` is that of the answer's body, which are `events` if so said; `failed`
    until an answer has come; `waits` while the upstream works on one: who leaves then has its prompt counted."""

    request: GatewayRequest
    copy: AnswerCopy = field(default_factory=AnswerCopy)
    events: bool = False
    failed: bool = True
    waits: bool = False
    sent: str = ""  # what was put into the request, to count its tokens
    answer: Answer = field(default_factory=Answer)  # what it says, once it has ended

    async def read(self) -> Answer:
        """What the answer says, as far as it has come."""
        return await asyncio.to_thread(partial(self.copy.read, self.request.api, events=self.events))


class GatewayMeter:
    """Holds requests within budgets, and records what they used."""

    def __init__(self, ledger: CallLedger, tokenizer: Callable[[str], Tokenizer]) -> None:
        """`tokenizer` gives the tokenizer of a model by its name."""
        self._ledger, self._tokenizer = ledger, tokenizer

    @asynccontextmanager
    async def passage(self, account: Account, passage: Passage) -> AsyncGenerator[None, None]:
        """Count what a request may use while it is answered, and record what it used, however that ends. An answer
        that does not say what it used is counted by us. Raises BudgetUsedUp."""
        model = passage.request.model
        async with self._ledger.reserved(account, model, partial(self._most, passage)):
            begun = await self._ledger.begin(account)
            try:
                yield
            finally:
                recording = asyncio.create_task(self._record(account, passage, begun))
                await _finished(recording)

    async def _record(self, account: Account, passage: Passage, begun: ErasureCount) -> None:
        answer = passage.answer = Answer() if passage.failed else await passage.read()
        usage, estimated = answer.usage or Usage(), False
        if passage.waits or (not passage.failed and answer.usage is None):
            usage, estimated = Usage(await self._prompt(passage), await self._count(passage, answer.text)), True
        figures = self._ledger.figures(passage.request.model, usage, failed=passage.failed, estimated=estimated)
        await self._ledger.record(account, passage.request.model, figures, begun)

    async def _most(self, passage: Passage) -> Amount:
        request = passage.request
        reply = 0 if request.api is Api.EMBEDDINGS else REPLY_TOKENS
        usage = Usage(await self._prompt(passage), reply if request.reply_tokens is None else request.reply_tokens)
        cost = self._ledger.cost(request.model, usage)
        return Amount(usage.prompt_tokens + usage.completion_tokens, cost)

    async def _prompt(self, passage: Passage) -> int:
        request, count = passage.request, self._tokenizer(passage.request.model).count
        chars = (len(request.text) + len(passage.sent)) // COUNTED_PER_READ
        return await off_loop(chars, lambda: count("\n".join((*request.words, passage.sent)))) + TOKENS_PER_PROMPT

    async def _count(self, passage: Passage, text: str) -> int:
        count = self._tokenizer(passage.request.model).count
        return await off_loop(len(text) // COUNTED_PER_READ, partial(count, text))


async def _finished(task: "asyncio.Task[None]") -> None:
    """Wait for a task that must end, also where who waits is cancelled meanwhile."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    task.result()

"""The gateway: takes requests of tools, and passes them on to the model server of their tenant."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from fastapi import Request, Response

from bot.web.credentials import CHALLENGE, bearer_of, still_stands_for
from bot.web.event_stream import LOOK_SECONDS
from bot.web.gateway.caller import Caller
from bot.web.gateway.errors import UNKNOWN_MODEL
from bot.web.gateway.models import ModelLists
from bot.web.gateway.relay import Outgoing, Relay
from bot.web.gateway.upstreams import Upstreams
from bot.web.metering import Metered, count_now, metered_of
from bot.web.problems import RequestRefused
from composer.app import App
from composer.entries.search import EntryReader
from composer.errors import BadInput, NexusError, QuotaUsedUp, for_operator
from composer.gateway.json_text import Edit, applied
from composer.gateway.memory import Memory
from composer.gateway.metering import Passage
from composer.gateway.requests import Api, GatewayRequest, parsed, usage_edits
from composer.gateway.turns import Turn, placed, turn_of
from composer.ports.models import Account, WorkKind
from composer.repositories.operations import Operation
from composer.text.cleaning import clean_line
from composer.text.work import COUNTED_PER_READ, off_loop

logger = structlog.get_logger()

OFF: Final = "off"
MEMORY: Final = b"x-nexus-memory"


@dataclass(frozen=True, slots=True)
class _Put:
    """What goes into a request: the `memory` by `edits`. `memory` None: nobody's, or not wanted. From the `turn` is
    learnt for the `reader`, once it was answered."""

    memory: Memory | None = None
    edits: Sequence[Edit] = ()
    reader: EntryReader | None = None
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class _Taken:
    """A request that was let in, which came `at` a time."""

    at: datetime
    request: Request
    caller: Caller
    asked: GatewayRequest


class Gateway:
    """Passes requests on. `close` it at the end."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.upstreams = Upstreams()
        self.models = ModelLists(self.upstreams)

    async def close(self) -> None:
        """Close the connections to the upstreams."""
        await self.upstreams.close()

    async def pass_on(self, api: Api, request: Request, caller: Caller) -> Response:
        """The answer of the upstream to a request. Raises RequestRefused."""
        if "content-encoding" in request.headers:
            raise RequestRefused(415, "The request's body is compressed: send it as it is.")
        loop = asyncio.get_running_loop()
        at, begun = self._app.clock.now(), loop.time()
        body = await request.body()
        if loop.time() - begun >= LOOK_SECONDS and not await _stands(self._app, request, caller)():
            raise RequestRefused(401, headers=CHALLENGE)
        try:
            asked = await off_loop(len(body) // COUNTED_PER_READ, lambda: parsed(api, body))
        except BadInput as error:
            raise RequestRefused(400, str(error)) from None
        if not caller.upstream.allows(asked.model):
            name = clean_line(asked.model, 100)
            sentence = f"The model '{name}' can't be asked here; GET /v1/models lists those that can."
            raise RequestRefused(404, sentence, code=UNKNOWN_MODEL)
        taken = _Taken(at, request, caller, asked)
        memory = await self._memory(taken)
        return await self._relay(taken, memory)

    async def _memory(self, taken: _Taken) -> _Put:
        """What to put into a request."""
        principal, asked, app = taken.caller.principal, taken.asked, self._app
        wanted = taken.request.headers.get("x-nexus-memory", "").strip().lower() != OFF
        turn = await off_loop(len(asked.text) // COUNTED_PER_READ, lambda: turn_of(asked)) if wanted else None
        if principal is None or not wanted or asked.api is Api.EMBEDDINGS:
            return _Put()
        if turn is None:
            return _Put(Memory())
        reader = EntryReader(principal.tenant_id, principal.user, principal.reads_as, principal.permissions)
        keep = bool(asked.value("tools") or asked.value("functions"))
        searches = Metered(app.operations, principal, Operation.SEARCHES)
        try:
            await app.operations.admit(principal.tenant_id, Operation.SEARCHES)
            may_search = True
        except QuotaUsedUp:
            may_search = False
        memory = await app.gateway_memory.for_turn(reader, turn, keep=keep, search=may_search)
        if memory.refused:  # nothing is learnt from this request either, whatever holds at its end
            return _Put(memory)
        if memory.searched:
            searches.tokens, searches.has_found = memory.tokens, memory.has_found
            count_now(searches, None)
        role = taken.caller.upstream.role_for(asked.model)
        work = partial(placed, asked, turn, memory.stable, memory.recalled, role)
        return _Put(memory, await off_loop(len(asked.text) // COUNTED_PER_READ, work), reader, turn)

    async def _relay(self, taken: _Taken, put: _Put) -> Relay:
        asked, caller, request = taken.asked, taken.caller, taken.request
        memory = put.memory
        bodies = await off_loop(len(asked.text) // COUNTED_PER_READ, lambda: _bodies(asked, put.edits))
        outgoing = Outgoing(asked.api, request.headers.raw, *bodies, bearer_of(request) or "")
        user = None if caller.principal is None else caller.principal.user
        account, passage = Account(caller.tenant_id, WorkKind.GATEWAY, user_id=user), Passage(asked)
        passage.sent = "" if memory is None else f"{memory.stable}{memory.recalled}"
        header = OFF if memory is None else memory.header
        stands = _stands(self._app, request, caller)
        return Relay(
            self.upstreams,
            caller.upstream,
            outgoing,
            passage,
            metered=self._app.gateway_meter.passage(account, passage),
            stands=stands,
            extra=[(MEMORY, header.encode())],
            ended=self._ended(taken, put, stands),
        )

    def _ended(
        self, taken: _Taken, put: _Put, stands: Callable[[], Awaitable[bool]]
    ) -> Callable[[int, Passage], Awaitable[None]]:
        """What is done once a request was answered, and not before: it is counted as an operation, and learnt from, if
        its credential is still valid then."""
        metered = metered_of(taken.request)
        if metered is not None:
            metered.is_counted = True

        async def ended(status: int, passage: Passage) -> None:
            if metered is not None and status < 400:
                count_now(metered, None)
            if put.reader is not None and put.turn is not None and passage.answer.is_whole and await stands():
                is_own = put.turn.is_users_alone and not passage.sent  # else it may repeat memory or others' texts
                asked_at = (None if put.memory is None else put.memory.begun_at) or taken.at
                await self._note(put.reader, put.turn, passage.answer.text if is_own else "", asked_at)

        return ended

    async def _note(self, reader: EntryReader, turn: Turn, answer: str, asked_at: datetime) -> None:
        try:
            await self._app.gateway_learner.note(reader, turn.digest, turn.text, answer, asked_at)
        except NexusError as error:
            logger.warning("gateway.not_noted", error=for_operator(error))


def _bodies(asked: GatewayRequest, edits: Sequence[Edit]) -> tuple[bytes, bytes | None]:
    """A request with what goes into it; and without what asks for the use of a stream, where that is ours."""
    usage = usage_edits(asked)
    without = applied(asked.text, edits).encode() if usage else None
    return applied(asked.text, [*usage, *edits]).encode(), without


def _stands(app: App, request: Request, caller: Caller) -> Callable[[], Awaitable[bool]]:
    """What says whether the credential of a request is still valid. A key of the settings is as long as they are."""
    principal = caller.principal
    if principal is None:

        async def always() -> bool:
            return True

        return always
    return still_stands_for(request, app, principal, "gateway")

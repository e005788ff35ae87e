"""The gateway: takes requests of tools, and passes them on to the model server of their tenant."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from cachetools import LRUCache
from fastapi import Request, Response

from bot.web.credentials import CHALLENGE, credential_check, texts_of
from bot.web.event_stream import STREAM_LOOK_SECONDS
from bot.web.gateway.caller import GatewayCaller
from bot.web.gateway.errors import UNKNOWN_MODEL
from bot.web.gateway.models import ModelLists
from bot.web.gateway.relay import Outgoing, Relay
from bot.web.gateway.upstreams import Upstreams
from bot.web.metering import Metered, count_now, metered_of
from bot.web.problems import RequestRefused
from composer.app import App
from composer.entries.search import EntryReader
from composer.errors import BadInput, NexusError, QuotaUsedUp, for_operator
from composer.gateway.forms import RequestForms, usual_role
from composer.gateway.memory import TurnMemory
from composer.gateway.metering import GatewayCall
from composer.gateway.requests import Api, GatewayRequest, parse_request
from composer.gateway.turns import GatewayTurn, find_turn
from composer.model import MemoryRole
from composer.ports.models import UsageAccount, WorkKind
from composer.repositories.operations import Operation
from composer.repositories.tool_reads import ReadRoute
from composer.text.cleaning import clean_line
from composer.text.work import COUNTED_PER_READ, off_loop

logger = structlog.get_logger()

MAX_FOUND_ROLES: Final = 1_000
OFF: Final = "off"
MEMORY: Final = b"x-nexus-memory"


@dataclass(frozen=True, slots=True)
class _Injection:
    """The memory that goes into a request. `memory` None: nobody's, or not wanted. Once the request was answered, the
    `turn` is learnt from, for the `reader`."""

    memory: TurnMemory | None = None
    reader: EntryReader | None = None
    turn: GatewayTurn | None = None


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A request that was admitted. It came `at` a time; `asked` is its body."""

    at: datetime
    request: Request
    caller: GatewayCaller
    asked: GatewayRequest


class Gateway:
    """Passes requests on. `close` it at the end."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.upstreams = Upstreams()
        self.models = ModelLists(self.upstreams)
        # By server and model, where another was refused. Clients name models as they like.
        self._found_roles: LRUCache[tuple[str, str], MemoryRole] = LRUCache(MAX_FOUND_ROLES)

    async def close(self) -> None:
        """Close the connections to the upstreams."""
        await self.upstreams.close()

    async def pass_on(self, api: Api, request: Request, caller: GatewayCaller) -> Response:
        """The answer of the upstream to a request. Raises RequestRefused."""
        if "content-encoding" in request.headers:
            raise RequestRefused(415, "The request's body is compressed: send it as it is.")
        loop = asyncio.get_running_loop()
        at, begun = self._app.clock.now(), loop.time()
        body = await request.body()
        if loop.time() - begun >= STREAM_LOOK_SECONDS and not await _credential_check(self._app, request, caller)():
            raise RequestRefused(401, headers=CHALLENGE)
        try:
            asked = await off_loop(len(body) // COUNTED_PER_READ, lambda: parse_request(api, body))
        except BadInput as error:
            raise RequestRefused(400, str(error)) from None
        if not caller.upstream.allows(asked.model):
            name = clean_line(asked.model, 100)
            sentence = f"The model '{name}' can't be asked here; GET /v1/models lists those that can."
            raise RequestRefused(404, sentence, code=UNKNOWN_MODEL)
        admitted = _Admitted(at, request, caller, asked)
        memory = await self._memory(admitted)
        return await self._relay(admitted, memory)

    async def _memory(self, admitted: _Admitted) -> _Injection:
        """The memory to put into a request."""
        principal, asked, app = admitted.caller.principal, admitted.asked, self._app
        wanted = admitted.request.headers.get("x-nexus-memory", "").strip().lower() != OFF
        turn = await off_loop(len(asked.text) // COUNTED_PER_READ, lambda: find_turn(asked)) if wanted else None
        if principal is None or not wanted or asked.api is Api.EMBEDDINGS:
            return _Injection()
        if turn is None:
            return _Injection(TurnMemory())
        reader = EntryReader(principal.tenant_id, principal.user, principal.reads_as, principal.permissions)
        record = bool(asked.value("tools") or asked.value("functions"))
        searches = Metered(app.operations, principal, Operation.SEARCHES)
        try:
            await app.operations.admit(principal.tenant_id, Operation.SEARCHES)
            may_search = True
        except QuotaUsedUp:
            may_search = False
        memory = await app.gateway_memory.for_turn(reader, turn, record=record, search=may_search)
        if memory.refused:  # nothing is learnt from this request either, whatever holds at its end
            return _Injection(memory)
        if principal.vendor is not None:
            app.operations.note_reads(searches.actor, ReadRoute.GATEWAY, memory.ids)
        if memory.searched:
            searches.tokens, searches.has_found = memory.tokens, memory.has_found
            count_now(searches, None)
        return _Injection(memory, reader, turn)

    async def _relay(self, admitted: _Admitted, injection: _Injection) -> Relay:
        asked, caller, request = admitted.asked, admitted.caller, admitted.request
        place = (str.__str__(caller.upstream.url), asked.model)
        role = self._found_roles.get(place) or caller.upstream.role_for(asked.model) or usual_role(asked.model)
        work = partial(RequestForms, asked, injection.turn, injection.memory, role)
        forms = await off_loop(len(asked.text) // COUNTED_PER_READ, work)
        hidden = texts_of(request, self._app)
        outgoing = Outgoing(asked.api, request.headers.raw, caller.credential, forms, hidden)
        user = None if caller.principal is None else caller.principal.user
        account, call = UsageAccount(caller.tenant_id, WorkKind.GATEWAY, user_id=user), GatewayCall(asked)
        memory = injection.memory
        call.injected = "" if memory is None else f"{memory.standing}{memory.recalled}"

        def headers() -> list[tuple[bytes, bytes]]:
            """Said once the request was taken, so that it is known in which form."""
            memory = forms.injected
            call.injected = "" if memory is None else f"{memory.standing}{memory.recalled}"
            if forms.role == "user" != role:
                self._found_roles[place] = "user"
            return [(MEMORY, (OFF if memory is None else memory.header).encode())]

        is_valid = _credential_check(self._app, request, caller)
        return Relay(
            self.upstreams,
            caller.upstream,
            outgoing,
            call,
            metered=self._app.gateway_meter.metered(account, call),
            is_valid=is_valid,
            count=_counting(request),
            ended=self._ended(admitted, injection, is_valid),
            extra=headers,
        )

    def _ended(
        self, admitted: _Admitted, injection: _Injection, is_valid: Callable[[], Awaitable[bool]]
    ) -> Callable[[GatewayCall], Awaitable[None]]:
        """A function to call once a request was answered: it stores the request to be learnt from if its credential is
        still valid."""
        reader, turn, memory = injection.reader, injection.turn, injection.memory
        asked_at = (None if memory is None else memory.begun_at) or admitted.at

        async def ended(call: GatewayCall) -> None:
            if reader is None or turn is None or turn.is_mixed:
                return
            if call.answer.is_whole and await is_valid():
                await self._note(reader, turn, asked_at)

        return ended

    async def _note(self, reader: EntryReader, turn: GatewayTurn, asked_at: datetime) -> None:
        try:
            await self._app.gateway_source.note(reader, turn.digest, turn.text, asked_at)
        except NexusError as error:
            logger.warning("gateway.not_noted", error=for_operator(error))


def _counting(request: Request) -> Callable[[], None]:
    """A function that counts a request as an operation. Nothing else does."""
    metered = metered_of(request)
    if metered is None:
        return lambda: None
    metered.is_counted = True
    return partial(count_now, metered, None)


def _credential_check(app: App, request: Request, caller: GatewayCaller) -> Callable[[], Awaitable[bool]]:
    """A function that says whether the credential of a request is still valid. A key of the settings always is."""
    principal = caller.principal
    if principal is None:

        async def always() -> bool:
            return True

        return always
    return credential_check(request, app, principal, "gateway")

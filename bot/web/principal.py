"""Who asks: the one way by which a request to the API becomes a person, or a tool of theirs.

Identity comes from the credential alone. Here it is also decided who may use which routes: a tool those of
PATHS_OF_TOOLS, a person all of them.
"""

import math
from typing import Annotated, Final

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from bot.web.bodies import JsonRoute, require_known_parameters
from bot.web.credentials import bearer_of, challenge_headers, is_within, resolve_principal, texts_of
from bot.web.dependencies import Nexus
from bot.web.gateway.errors import GATEWAY_PATHS as GATEWAY_PATHS
from bot.web.limits import address_of, person_of
from bot.web.metering import admit
from bot.web.oauth.metadata import RESOURCE_PATH
from bot.web.problems import RequestRefused
from bot.web.state import WebState
from composer.people.credentials.principal import GatewayKey, KeyPermission, Principal

# What tools use. Everything else is their person's own.
PATHS_OF_TOOLS: Final = ("/v1/agent/", "/v1/query", "/v1/whoami", "/v1/health", RESOURCE_PATH, *GATEWAY_PATHS)
NOT_FOR_TOOLS: Final = "A tool's key is not for this: its person does it, with a key of their own."


MIB: Final = 2**20
MOST_MIB: Final = 32  # of one body

_ADMITTED: Final = "admitted"  # of the state of a request: who asks, where that is known before its body is read
# For the document of the API alone: who asks is decided below.
_DOCUMENTED: Final = HTTPBearer(scheme_name="key", description="A key of a person or of a tool.", auto_error=False)


async def principal_of(request: Request, nexus: WebState) -> Principal:
    """Whom the credentials of a request stand for now. Every wrong one is answered alike, with 401; a tool on a route
    that is not for tools with 403; a parameter that the route does not take with 422; what the tenant's plan has
    nothing left of with 429; who has too much in progress with 503."""
    found = await known_principal(request, nexus)
    request.state.key = str(found.id)  # for the line in the log
    credentials = texts_of(request, nexus.app)
    await nexus.fair_use.admit(person_of(found), credentials=credentials, body_bytes=_body_bytes(request))
    path: str = request.scope["path"]
    if found.vendor is not None and not any(is_within(path, allowed) for allowed in PATHS_OF_TOOLS):
        raise RequestRefused(403, NOT_FOR_TOOLS)
    require_known_parameters(request)
    await _take_place(request, nexus)
    await admit(request, nexus.app.operations, found)
    return found


async def known_principal(request: Request, nexus: WebState) -> Principal:
    """Whom the credentials stand for. Wrong ones are counted by their address."""
    await nexus.fair_use.require_not_refused(texts_of(request, nexus.app))
    found = await resolve_principal(request, nexus.app)
    if found is None:
        await nexus.fair_use.admit(address_of(request))
        raise RequestRefused(401, headers=challenge_headers(request, nexus.app))
    return found


async def _bearer(request: Request, nexus: Nexus, _: Annotated[object, Security(_DOCUMENTED)] = None) -> Principal:
    """The same, once all of the request is here: a body may take a minute, and credentials end meanwhile."""
    known: Principal | None = getattr(request.state, _ADMITTED, None)
    if known is not None:
        return known
    await request.body()
    return await principal_of(request, nexus)


class KeyedRoute(JsonRoute):
    """A route that takes long bodies, which are kept and read as JSON for those alone who may ask: that costs many
    times their length in memory."""

    async def admit(self, request: Request) -> None:
        """Find out who asks, before the body is read and after it."""
        nexus: WebState = request.app.state.nexus
        await known_principal(request, nexus)
        await hold_body(request, nexus)
        await request.body()
        setattr(request.state, _ADMITTED, await principal_of(request, nexus))


class StreamedRoute(JsonRoute):
    """A route whose body is written to disk as it arrives, and is read by those alone who may ask. The route finds out
    again who asks, once all of it is here."""

    async def admit(self, request: Request) -> None:
        """Find out who asks, before the body is read."""
        setattr(request.state, _ADMITTED, await principal_of(request, request.app.state.nexus))


async def hold_body(request: Request, nexus: WebState) -> None:
    """Hold the room that a long body takes, before it is read and until the request is answered: MiB, as many as the
    request says, or the most where it does not. Raises Unavailable where whoever asks, or everybody, has too many in
    progress for too long."""
    if (size := _body_bytes(request)) > MIB:
        amount = min(math.ceil(size / MIB), MOST_MIB)  # what is longer is refused where it is read
        await request.state.held.enter_async_context(nexus.bodies.take(amount=amount))


def _body_bytes(request: Request) -> int:
    """The length of a body as the request says it, or the most where it does not."""
    length = request.headers.get("content-length")
    return int(length) if length is not None else MOST_MIB * MIB if "transfer-encoding" in request.headers else 0


async def gateway_key_of(request: Request, nexus: WebState) -> GatewayKey | None:
    """The key without an owner that a request has, if it has one, within its limit of requests."""
    bearer = bearer_of(request)
    found = None if bearer is None else nexus.app.credentials.gateway_key(bearer)
    if found is not None:
        request.state.key = str(found.id)
        await nexus.fair_use.admit(f"key:{found.id}", body_bytes=_body_bytes(request))
        await _take_place(request, nexus)
    return found


async def _take_place(request: Request, nexus: WebState) -> None:
    """Hold one of the places for requests until this one is answered, for whom it is; streams and requests that wait
    hold theirs as long. What only reads also holds one of the few places for work: one person's hundred lists take
    turns with everybody's. What writes may wait for others, and holds none. Raises Unavailable where whoever asks has a
    share of them in progress for too long."""
    await request.state.held.enter_async_context(nexus.places.take())
    if request.method == "GET" or is_within(request.scope["path"], RESOURCE_PATH):
        await request.state.held.enter_async_context(nexus.work.take())


async def _admin(principal: Annotated[Principal, Depends(_bearer)], nexus: Nexus) -> Principal:
    """An admin of the tenant, by a credential that has the permission. Such requests have a lower limit."""
    principal.require(KeyPermission.ADMIN)
    await nexus.fair_use.admit(person_of(principal), admin=True)
    return principal


Bearer = Annotated[Principal, Depends(_bearer)]
Admin = Annotated[Principal, Depends(_admin)]

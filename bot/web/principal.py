"""Who asks: the one way by which a request to the API becomes a person, or a tool of theirs.

Identity comes from the credential alone. Here it is also decided who may use which routes: a tool those of
PATHS_OF_TOOLS, a person all of them.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from bot.web.bodies import require_known_parameters
from bot.web.dependencies import Nexus
from bot.web.gateway.errors import PATHS as GATEWAY_PATHS
from bot.web.limits import address_of
from bot.web.metering import admit
from bot.web.oauth.metadata import RESOURCE_PATH, challenge, resource_of
from bot.web.problems import RequestRefused
from bot.web.serving import Served
from composer.credentials.principal import GatewayKey, Permission, Principal, Source
from composer.errors import Unavailable

# What tools use. Everything else is their person's own.
PATHS_OF_TOOLS: Final = ("/v1/agent/", "/v1/query", "/v1/whoami", "/v1/health", RESOURCE_PATH, *GATEWAY_PATHS)
COOKIE: Final = "__Host-nexus"
COOKIE_ON_LOCALHOST: Final = "nexus"  # browsers take the other one by https alone
CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
NOT_FOR_TOOLS: Final = "A tool's key is not for this: its person does it, with a key of their own."
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


# For the document of the API alone: who asks is decided below.
_DOCUMENTED: Final = HTTPBearer(scheme_name="key", description="A key of a person or of a tool.", auto_error=False)


async def principal_of(request: Request, nexus: Nexus, _: Annotated[object, Security(_DOCUMENTED)] = None) -> Principal:
    """Whom the credentials of a request stand for. Every wrong one is answered alike, with 401; a tool on a route that
    is not for tools with 403; a parameter that the route does not take with 422; what the tenant's plan has nothing
    left of with 429."""
    found = await _resolved(request, nexus)
    if found is None:
        await nexus.fair_use.admit(address_of(request))
        raise RequestRefused(401, headers=_challenge(request, nexus))
    request.state.key = str(found.id)  # for the line in the log
    await nexus.fair_use.admit(_caller(found))
    path: str = request.scope["path"]
    if found.vendor is not None and not any(_is_within(path, allowed) for allowed in PATHS_OF_TOOLS):
        raise RequestRefused(403, NOT_FOR_TOOLS)
    require_known_parameters(request)
    await admit(request, nexus.app.operations, found)
    return found


async def gateway_key_of(request: Request, nexus: Served) -> GatewayKey | None:
    """The key without an owner that a request has, if it has one, within its limit of requests."""
    bearer = bearer_of(request)
    found = None if bearer is None else nexus.app.credentials.gateway_key(bearer)
    if found is not None:
        request.state.key = str(found.id)
        await nexus.fair_use.admit(f"key:{found.id}")
    return found


async def _admin(principal: Annotated[Principal, Depends(principal_of)], nexus: Nexus) -> Principal:
    """An admin of the tenant, by a credential that has the permission. Such requests have a lower limit."""
    principal.require(Permission.ADMIN)
    await nexus.fair_use.admit(_caller(principal), admin=True)
    return principal


def _caller(principal: Principal) -> str:
    return f"key:{principal.id}"


async def _resolved(request: Request, nexus: Served) -> Principal | None:
    """Whom the credentials of a request stand for now."""
    bearer = bearer_of(request)
    cookie = _cookie(request, nexus.app.settings.public_url)
    if bearer is None and cookie is None:
        return None
    return await nexus.app.credentials.resolve(bearer, cookie, _resource(request, nexus))


def _resource(request: Request, nexus: Served) -> str | None:
    """The address for which tokens of connected apps are taken here; None where none are."""
    public_url, path = nexus.app.settings.public_url, request.scope["path"]
    return resource_of(public_url) if public_url is not None and _is_within(path, RESOURCE_PATH) else None


def _challenge(request: Request, nexus: Served) -> Mapping[str, str]:
    """How to ask instead: at the address for connected apps, by signing in."""
    public_url = nexus.app.settings.public_url
    if public_url is None or _resource(request, nexus) is None:
        return CHALLENGE
    error = None if bearer_of(request) is None else "invalid_token"
    return {"WWW-Authenticate": challenge(public_url, error)}


async def web_session_of(request: Request, nexus: Served) -> Principal | None:
    """Who is signed in, in the browser that asks; None where nobody is. A page of another site can't use that to change
    anything."""
    cookie = _cookie(request, nexus.app.settings.public_url)
    found = None if cookie is None else await nexus.app.credentials.resolve(None, cookie)
    return None if found is None or found.source is not Source.WEB_SESSION else found


def still_stands_for(
    request: Request, nexus: Served, principal: Principal, permission: str | None = None
) -> Callable[[], Awaitable[bool]]:
    """What says, each time that it is called, whether the credentials of a request in progress still stand for the same
    person or tool, and give a permission. While the database does not answer, they do."""

    async def stands() -> bool:
        try:
            found = await _resolved(request, nexus)
        except Unavailable:
            return True
        if found is None or (found.user, found.vendor) != (principal.user, principal.vendor):
            return False
        return permission is None or found.may(permission)

    return stands


def _is_within(path: str, allowed: str) -> bool:
    return path == allowed or path.startswith(allowed if allowed.endswith("/") else f"{allowed}/")


def bearer_of(request: Request) -> str | None:
    """The text of the bearer token. Two headers name nobody."""
    given = request.headers.getlist("authorization")
    if len(given) != 1:
        return None
    scheme, _, text = given[0].partition(" ")
    return text if scheme.lower() == "bearer" else None


def cookie_name(public_url: str | None) -> tuple[str, bool]:
    """The name of the cookie of a web session, and whether it is sent by https alone. `public_url` is the setting."""
    secure = public_url is not None and public_url.startswith("https:")
    return (COOKIE if secure else COOKIE_ON_LOCALHOST), secure


def _cookie(request: Request, public_url: str | None) -> str | None:
    """The text of the session's cookie. A page of another site can't use it to change anything."""
    if request.method not in SAFE_METHODS and not is_own_page(request, public_url):
        return None
    return only_cookie(request, cookie_name(public_url)[0])


def only_cookie(request: Request, name: str) -> str | None:
    """The value of the one cookie of this name. Several name nobody: a site beside ours can add one, but can't take
    ours away. Only space and tab around a name are no part of it: browsers guard no name that merely looks like it."""
    pairs = (pair.strip(" \t") for header in request.headers.getlist("cookie") for pair in header.split(";"))
    found = [value for key, separator, value in (pair.partition("=") for pair in pairs) if separator and key == name]
    return found[0] if len(found) == 1 else None


def is_own_page(request: Request, public_url: str | None) -> bool:
    """Whether a request comes from a page of ours, as its browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = _origin(request.headers.get("origin", ""))
    if public_url is not None and public_url.startswith("https:"):
        return origin is not None and origin == _origin(public_url)
    host = request.headers.get("host", "")
    return origin is not None and origin in (_origin(f"http://{host}"), _origin(f"https://{host}"))


def _origin(url: str) -> tuple[str, str, int] | None:
    """The scheme, host and port of an address; None for what is none."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


Bearer = Annotated[Principal, Depends(principal_of)]
Admin = Annotated[Principal, Depends(_admin)]

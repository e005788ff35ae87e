"""The credentials of a request: a bearer token, or the cookie of a web session, which a page of another site can't use
to change anything."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request

from bot.web.oauth.metadata import RESOURCE_PATH, challenge, resource_of
from composer.app import App
from composer.errors import Unavailable
from composer.people.credentials.principal import Principal, Source

COOKIE: Final = "__Host-nexus"
COOKIE_ON_LOCALHOST: Final = "nexus"  # browsers take the other one by https alone
CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


async def resolve_principal(request: Request, app: App) -> Principal | None:
    """The principal that the credentials of a request stand for now; None where they stand for nobody. Who sends a
    header Authorization means that: then no cookie counts, whatever the header holds."""
    bearer = bearer_of(request)
    cookie = None if "authorization" in request.headers else _cookie(request, app.settings.public_url)
    if bearer is None and cookie is None:
        return None
    return await app.credentials.resolve(bearer, cookie, _resource(request, app))


def _resource(request: Request, app: App) -> str | None:
    """The address for which tokens of connected apps are taken here; None where none are."""
    public_url, path = app.settings.public_url, request.scope["path"]
    return resource_of(public_url) if public_url is not None and is_within(path, RESOURCE_PATH) else None


def challenge_headers(request: Request, app: App) -> Mapping[str, str]:
    """The headers of a 401: how to authenticate; at the address for connected apps, where to sign in."""
    public_url = app.settings.public_url
    if public_url is None or _resource(request, app) is None:
        return CHALLENGE
    error = None if bearer_of(request) is None else "invalid_token"
    return {"WWW-Authenticate": challenge(public_url, error)}


async def web_session_of(request: Request, app: App) -> Principal | None:
    """Who is signed in, in the browser that asks; None where nobody is. A page of another site can't use that to change
    anything."""
    cookie = _cookie(request, app.settings.public_url)
    found = None if cookie is None else await app.credentials.resolve(None, cookie)
    return None if found is None or found.source is not Source.WEB_SESSION else found


def credential_check(
    request: Request, app: App, principal: Principal, permission: str | None = None
) -> Callable[[], Awaitable[bool]]:
    """A function that says whether the credentials of a request in progress still stand for the same person or tool,
    and give a permission. While the database does not answer, they do."""

    async def stands() -> bool:
        try:
            found = await resolve_principal(request, app)
        except Unavailable:
            return True
        if found is None or (found.user, found.vendor) != (principal.user, principal.vendor):
            return False
        return permission is None or found.may(permission)

    return stands


def is_within(path: str, allowed: str) -> bool:
    """Whether a path is an address that is allowed, or lies below it."""
    return path == allowed or path.startswith(allowed if allowed.endswith("/") else f"{allowed}/")


def bearer_of(request: Request) -> str | None:
    """The text of the bearer token. Two headers name nobody."""
    given = request.headers.getlist("authorization")
    if len(given) != 1:
        return None
    scheme, _, text = given[0].partition(" ")
    return text if scheme.lower() == "bearer" else None


def texts_of(request: Request, app: App) -> tuple[str, ...]:
    """The texts of a request's credentials: of its bearer token, and of the cookie of a web session."""
    found = (bearer_of(request), only_cookie(request, cookie_name(app.settings.public_url)[0]))
    return tuple(text for text in found if text)


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

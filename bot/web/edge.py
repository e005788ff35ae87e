"""What every request passes: the name by which it came, headers of the answer, and its one line in the log."""

import ipaddress
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.web.problems import log_unexpected, problem
from composer.settings.server_urls import LOCAL_HOSTS
from composer.tasks.shares import act_for_stranger

logger = structlog.get_logger()

# Of every answer that does not set them itself. Nothing is kept by a cache, shown in a frame or run as a script.
API_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# Whoever reads one of two would take a request for another one than who reads the other.
SENT_ONCE: Final = frozenset({b"if-match", b"idempotency-key", b"content-type"})
HEADER_BYTES: Final = 16 * 1024  # of the head of a request
HSTS: Final = "max-age=31536000"


class Edge:
    """The outermost layer of the web port.

    `public_url` is the address by which people reach it; `anywhere` are paths that any name may be used for, since
    they are asked by machines inside (health) or check who sends (Slack). `slashed` are paths that clients may also ask
    for with a slash at their end.
    """

    def __init__(
        self, app: ASGIApp, public_url: str | None, anywhere: Iterable[str], slashed: Iterable[str] = ()
    ) -> None:
        self._app, self._slashed = app, frozenset(slashed)
        self._names = LOCAL_HOSTS | ({urlsplit(public_url).hostname} if public_url else set())
        self._addresses = public_url is None
        self._anywhere = frozenset(anywhere)
        secure = public_url is not None and public_url.startswith("https:")
        self._headers = API_HEADERS | ({"Strict-Transport-Security": HSTS} if secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. A HEAD is served as its GET, whose body the server leaves out."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        act_for_stranger()
        started, status, whole = time.perf_counter(), 0, False
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        if (bare := scope["path"].rstrip("/")) in self._slashed:
            inner = {**inner, "path": bare, "raw_path": bare.encode()}
        inner["state"] = dict(scope.get("state", {}))
        held = inner["state"]["held"] = AsyncExitStack()  # until the answer is whole

        async def answer(message: Message) -> None:
            nonlocal status, whole
            whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in (inner["state"].get("headers", {}) | self._headers).items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await (self._refusal(scope) or self._app)(inner, receive, answer)
        except Exception as error:
            log_unexpected(error, route_of(inner))
            if not status:
                await problem(500)(inner, receive, answer)
            elif not whole:
                raise  # the server breaks the connection, so that nobody takes half an answer for a whole one
        finally:
            await held.aclose()
            spent = round((time.perf_counter() - started) * 1_000, 1)
            key = inner["state"].get("key", "")
            route, method = route_of(inner), scope["method"] if scope["method"] in _METHODS else "other"
            logger.info("web.request", method=method, route=route, status=status, ms=spent, key=str(key))

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that no route is to see; None for others."""
        raw = len(scope["raw_path"]) + len(scope["query_string"])
        if raw + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > HEADER_BYTES:
            return problem(431, headers={"Connection": "close"})
        names = [name for name, _ in scope["headers"] if name in SENT_ONCE]
        if len(names) > len(set(names)):
            return problem(400, "The request has a header twice that may be there once.")
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:  # no text of ours holds a NUL
            return problem(400, "The request's address holds a NUL.")
        if scope["path"] not in self._anywhere and not self._is_ours(Headers(scope=scope).get("host", "")):
            return problem(421)
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names us. A page of another site that has its name lead here can't ask us."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return "@" not in host and (name in self._names or (self._addresses and _is_address(name)))


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def route_of(scope: Scope) -> str:
    """The template of the route that serves a request, such as /v1/entries/{id}; empty when there is none. Never the
    path itself, which may hold what somebody typed."""
    route: Any = scope.get("route")
    return str(getattr(route, "path", ""))

"""Errors as `application/problem+json` (RFC 9457): the one table of which error has which status, and what is said.

`detail` is one plain sentence. It holds no traceback, no secret and nothing of what others wrote.
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from bot.web.gateway.errors import USED_UP, error_body, is_of_gateway
from composer.errors import (
    BadInput,
    BudgetUsedUp,
    Conflict,
    EntriesFull,
    Misconfigured,
    NexusError,
    NotFound,
    QuotaUsedUp,
    Refused,
    Unavailable,
    where_raised,
)

logger = structlog.get_logger()

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_SECONDS: Final = 5  # after which it is worth asking a server again that did not answer
MAX_FIELD_CHARS: Final = 100  # of a field's name, which may come from whoever asks

# The status of each error of ours; of one that is not listed, that of the class above it.
STATUS: Final[Mapping[type[NexusError], HTTPStatus]] = {
    NotFound: HTTPStatus.NOT_FOUND,
    Refused: HTTPStatus.FORBIDDEN,
    BadInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    Conflict: HTTPStatus.CONFLICT,
    BudgetUsedUp: HTTPStatus.TOO_MANY_REQUESTS,
    EntriesFull: HTTPStatus.PAYMENT_REQUIRED,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    Misconfigured: HTTPStatus.INTERNAL_SERVER_ERROR,
    NexusError: HTTPStatus.INTERNAL_SERVER_ERROR,
}

# What is said where a status has no sentence of its own.
SENTENCES: Final[Mapping[int, str]] = {
    400: "The request can't be read.",
    401: "A valid key is needed, as a bearer token: none came, or it is wrong, has expired or was revoked.",
    403: "This is not allowed.",
    404: "There is nothing at this address.",
    405: "This address does not take this method; the header Allow names those that it takes.",
    408: "The request took too long to arrive.",
    410: "That is gone.",
    412: "There is another version by now: read it again, and change that.",
    413: "The request's body is too large.",
    415: "The request's body must be application/json.",
    431: "The head of the request is too long.",
    421: "Nexus is not served under this name: NEXUS_PUBLIC_URL sets its address.",
    429: "There were too many requests: wait as long as the header Retry-After says.",
    500: "Something went wrong in Nexus; its log says more.",
    503: "A server that Nexus needs does not answer; try again later.",
}


class RequestRefused(HTTPException):
    """A request that is refused before a use case sees it: with a status, one sentence, and headers. `code` is what
    clients of the gateway tell errors apart by."""

    def __init__(
        self, status: int, sentence: str = "", headers: Mapping[str, str] | None = None, *, code: str | None = None
    ) -> None:
        super().__init__(status, sentence or SENTENCES[status], dict(headers or {}))
        self.code = code


class TooManyRequests(RequestRefused):
    """A person, a key or an address asks more often than it may. `seconds` until it may again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(429, headers={"Retry-After": str(max(1, seconds))})


class Problem(Response):
    """The answer to a request that failed: a problem, or at an address of the gateway what clients of the OpenAI API
    read."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str], code: str | None) -> None:
        body = {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
        }
        super().__init__(to_json(body), status, dict(headers), MEDIA_TYPE)
        self._detail, self._given, self._code = detail, headers, code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, in the shape of the address."""
        if not is_of_gateway(scope["path"]):
            return await super().__call__(scope, receive, send)
        body = error_body(self.status_code, self._detail, self._code)
        headers = dict(self._given)
        if self._code == USED_UP:
            headers["X-Should-Retry"] = "false"
        return await Response(to_json(body), self.status_code, headers, "application/json")(scope, receive, send)


def problem(
    status: int, detail: str = "", headers: Mapping[str, str] | None = None, *, code: str | None = None
) -> Response:
    """The answer to a request that failed; `detail` is one sentence."""
    sentence = detail or SENTENCES.get(status, f"{HTTPStatus(status).phrase}.")
    return Problem(status, sentence, headers or {}, code)


def status_of(error: NexusError) -> int:
    """The status of one of our errors."""
    return next(int(STATUS[kind]) for kind in type(error).__mro__ if kind in STATUS)


def of_error(error: NexusError) -> Response:
    """The answer to one of our errors: its own sentence, which is safe to show."""
    status = status_of(error)
    seconds = error.seconds if isinstance(error, QuotaUsedUp) else RETRY_AFTER_SECONDS if status == 503 else None
    code = USED_UP if isinstance(error, BudgetUsedUp | QuotaUsedUp) else None
    return problem(status, str(error), None if seconds is None else {"Retry-After": str(seconds)}, code=code)


def log_unexpected(error: BaseException, route: str) -> None:
    """Log a bug: its class and line, and nobody gets its text."""
    logger.error("web.failed", route=route, **where_raised(error))


def of_invalid(errors: Sequence[Any]) -> Response:
    """The answer to input that fails validation."""
    return problem(422, invalid_sentence(errors))


def invalid_sentence(errors: Sequence[Any]) -> str:
    """The sentence for input that fails validation: its first error, with the field's name and never its value."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"][1:])[:MAX_FIELD_CHARS]
    said = first["msg"].removeprefix("Value error, ").rstrip(".")
    if where and first["type"] == "missing":
        return f"`{where}` is missing."
    if where and first["type"] == "extra_forbidden":
        return f"`{where}` is not known here."
    if first["type"] == "missing":
        return "The request needs a body."
    if where:
        return f"`{where}` is wrong: {said[:1].lower()}{said[1:]}."
    return f"The {first['loc'][0]} of the request is wrong: {said[:1].lower()}{said[1:]}."


def add_problems(api: FastAPI, as_page: Callable[[Request, int, str], Response] | None = None) -> None:
    """Let an app answer every error by a problem; `as_page` makes what a browser shows at an address of nothing."""

    async def known(_: Request, error: Exception) -> Response:
        assert isinstance(error, NexusError)
        return of_error(error)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(allowed(api, request))
        if isinstance(error, RequestRefused):
            return problem(error.status_code, error.detail, headers, code=error.code)
        if as_page is not None and error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
            return as_page(request, 404, SENTENCES[404])
        return problem(error.status_code, "", headers)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return of_invalid(error.errors())

    async def left(_: Request, error: Exception) -> Response:
        assert isinstance(error, ClientDisconnect)
        return problem(400, "The request's body is not whole.")  # nobody reads it

    api.add_exception_handler(NexusError, known)
    api.add_exception_handler(ClientDisconnect, left)
    api.add_exception_handler(HTTPException, refused)
    api.add_exception_handler(RequestValidationError, invalid)


def allowed(api: FastAPI, request: Request) -> list[str]:
    """The methods that the address of a request takes, over all routes that have it."""
    methods: set[str] = set()
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in api.router.routes):
            methods |= {method, "HEAD"} if method == "GET" else {method}
    return sorted(methods)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the document of the API says of errors: for `responses` of a route, of these statuses, and of all others."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    found: dict[int | str, dict[str, Any]] = {
        "default": {"description": "A problem", "headers": dict(_OTHERS), "content": content}
    }
    for status in statuses:
        found[status] = {"description": HTTPStatus(status).phrase, "content": content}
        if status in _HEADERS:
            found[status]["headers"] = dict(_HEADERS[status])
    return found


def header(description: str, kind: str = "string", *, required: bool = True) -> dict[str, Any]:
    """What the document of the API says of a header of an answer, which holds one value of a `kind`."""
    return {"description": description, "required": required, "schema": {"type": kind}}


_SECONDS: Final = "The seconds after which to ask again."
# Of problems, by their status.
_HEADERS: Final[Mapping[int, Mapping[str, dict[str, Any]]]] = {
    401: {"WWW-Authenticate": header("Bearer: a key is sent as a bearer token.")},
    429: {"Retry-After": header(f"{_SECONDS} Not where a budget is used up.", "integer", required=False)},
    503: {"Retry-After": header(_SECONDS, "integer")},
}
# Of problems that any request may get.
_OTHERS: Final[Mapping[str, dict[str, Any]]] = {
    "Allow": header("The methods that the address takes, with 405.", required=False),
    "Retry-After": header(f"{_SECONDS} With 503.", "integer", required=False),
}


SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "title": "Problem",
    "description": "What went wrong, by RFC 9457. `detail` is one sentence for people.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}

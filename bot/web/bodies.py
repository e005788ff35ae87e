"""What a request may hold: a body of so many bytes, within so many seconds, JSON of some depth, and no unknown
parameters."""

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from fastapi import params
from fastapi.dependencies.utils import get_flat_params
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.web.limits import address_of
from bot.web.metering import count
from bot.web.problems import MAX_FIELD_CHARS, RequestRefused, problem
from composer.errors import BadInput
from composer.gateway.json_text import require_few_values
from composer.text.work import off_loop

MAX_REQUEST_BODY_BYTES: Final = 2**20  # of a body, unless its route takes more
DROPPED_BYTES: Final = 32 * 2**20  # of a body that nobody reads
PAUSE_SECONDS: Final = 10.0  # between two pieces of a body
BODY_SECONDS: Final = 60.0  # for all of it
STREAMED_SECONDS: Final = 3_600.0  # for a file that is written to disk as it arrives
ARRIVING_AT_ONCE: Final = 64  # bodies from one address; the one that began first makes room for another
CLOSING_HEADER: Final[Mapping[str, str]] = {"Connection": "close"}  # what is left of a body is not read as a request
MAX_JSON_NAMES: Final = 2_000  # of one object: metadata, which may hold most, has 10,000 bytes
# Fifty of each entry of the largest document: ten million that say nothing took 1 GB, and stopped the process for a
# second.
MAX_JSON_VALUES: Final = 1_000_000
BYTES_PER_READ: Final = 20  # of a body that are read in the time of a character (see off_loop)
BYTES_PER_JOIN: Final = 250  # and that are joined: more than a MiB in a thread, without the interpreter's lock
METHODS_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})


_SIMPLE: Final = frozenset({str, int, bool, type(None)})  # values that hold no other, and are never too large


class BodyLimits:
    """Refuses bodies that are too long (413) or too slow (408), or whose end is ambiguous (400). Where too many arrive
    from one address at once, those that began first are too slow.

    `limits` are bytes by the beginning of a path; the longest that fits counts, and without one MAX_BYTES. `streamed`
    are bytes by the whole path, of bodies that nobody holds in memory and that may take an hour.
    """

    def __init__(self, app: ASGIApp, limits: Mapping[str, int], streamed: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._streamed = streamed or {}
        self._limits = sorted(limits.items(), key=lambda item: -len(item[0]))
        self._arriving: dict[str, dict[_Body, None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy before us may see another end
            sentence = "The request says twice, and in different ways, where its body ends."
            return await problem(400, sentence, CLOSING_HEADER)(scope, receive, send)
        limit = next((size for start, size in self._limits if scope["path"].startswith(start)), MAX_REQUEST_BODY_BYTES)
        address = address_of(Request(scope))
        arriving = self._arriving.setdefault(address, {})
        most = self._streamed.get(scope["path"])
        if most is None:
            body = _Body(receive, limit, headers, arriving)
        else:
            body = _Body(receive, most, headers, arriving, STREAMED_SECONDS)
        if len(arriving) > ARRIVING_AT_ONCE:
            next(iter(arriving)).end()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                await body.drop()
            await send(message)

        try:
            await self._app(scope, body.receive, answer)
        finally:
            arriving.pop(body, None)
            if not arriving and self._arriving.get(address) is arriving:
                del self._arriving[address]


class _Body:
    """The body of one request, as it arrives."""

    def __init__(
        self,
        receive: Receive,
        limit: int,
        headers: Headers,
        arriving: "dict[_Body, None]",
        seconds: float = BODY_SECONDS,
    ) -> None:
        """`arriving` are those of one address, to which this one belongs until it is whole."""
        self._receive, self._limit = receive, limit
        self._declared = int(headers.get("content-length", 0))  # the server has checked that it is a number
        self._read = 0
        self._asks_first = "expect" in headers
        self._whole = not self._declared and "transfer-encoding" not in headers
        self._until = asyncio.get_running_loop().time() + seconds
        self._waiting: asyncio.Timeout | None = None
        self._arriving = arriving
        if not self._whole:
            arriving[self] = None

    def end(self) -> None:
        """Wait no longer for the rest."""
        del self._arriving[self]
        self._until = -math.inf
        if self._waiting is not None:
            self._waiting.reschedule(self._until)

    async def receive(self) -> Message:
        """The next piece; after the last one, that the other side has gone. Raises RequestRefused."""
        if self._whole:
            return await self._receive()
        if self._declared > self._limit:
            raise self._too_long()
        message = await self._piece()
        if self._read > self._limit:
            raise self._too_long()
        return message

    async def drop(self) -> None:
        """Read what nobody asked for, within bounds: else who still sends misses the answer, since the connection is
        reset. Who asks before sending need not send."""
        self._until = min(self._until, asyncio.get_running_loop().time() + BODY_SECONDS)
        with contextlib.suppress(RequestRefused):
            while not self._whole and not self._asks_first and self._read < DROPPED_BYTES:
                await self._piece()

    async def _piece(self) -> Message:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(0.0, min(PAUSE_SECONDS, self._until - now))) as self._waiting:
                message = await self._receive()
        except TimeoutError as error:
            self._is_over()
            raise RequestRefused(408, headers=CLOSING_HEADER) from error
        finally:
            self._waiting = None
        self._asks_first = False
        self._read += len(message.get("body", b""))
        if not message.get("more_body", False):
            self._is_over()
        return message

    def _is_over(self) -> None:
        """No more of it is waited for."""
        self._whole = True
        self._arriving.pop(self, None)

    def _too_long(self) -> RequestRefused:
        return RequestRefused(
            413, f"The request's body is too large: {self._limit:,} bytes are taken here.", CLOSING_HEADER
        )


class JsonRequest(Request):
    """A request whose JSON is read strictly: UTF-8, at most 200 deep, without NaN, infinities, lone surrogates and
    objects of very many names."""

    async def body(self) -> bytes:
        """All of the body. The pieces of a long one are joined in a thread: to fill 30 MB takes 20 ms."""
        if not hasattr(self, "_body"):
            pieces = [piece async for piece in self.stream()]
            size = sum(map(len, pieces))
            self._body = await off_loop(size // BYTES_PER_JOIN, lambda: b"".join(pieces))
        return self._body

    async def json(self) -> Any:
        """The body's value. Raises RequestRefused with 400."""
        body = await self.body()
        return await off_loop(len(body) // BYTES_PER_READ, lambda: json_value(body))


def json_value(body: bytes) -> Any:
    """The value of a JSON text, read strictly. Raises RequestRefused with 400."""
    try:
        require_few_values(body.decode("latin-1"), MAX_JSON_VALUES)  # quotes and marks stand where they do in UTF-8
    except BadInput as error:
        raise RequestRefused(400, str(error)) from None
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        if "recursion" in str(error):
            raise RequestRefused(400, "The request's body is nested too deeply.") from error
        raise RequestRefused(400, "The request's body is not valid JSON in UTF-8.") from error
    waiting = [value]
    while waiting:
        match waiting.pop():
            case float() as number if math.isinf(number):
                raise RequestRefused(400, "The request's body holds a number that is too large.")
            case list() as items:
                if not _SIMPLE.issuperset(map(type, items)):
                    waiting.extend(items)
            case dict() as items:
                if len(items) > MAX_JSON_NAMES:  # each that is not known would be an error of its own
                    raise RequestRefused(
                        400, f"The request's body holds an object of more than {MAX_JSON_NAMES:,} names."
                    )
                waiting.extend(items.values())
    return value


class JsonRoute(APIRoute):
    """A route whose body is JSON, or a form in UTF-8; else 415. An answer without a body has no type. What it answers
    is counted as its operation (bot/web/metering.py)."""

    query_names: Sequence[str] = ()

    async def admit(self, request: Request) -> None:
        """Refuse a request before its body is read as JSON. Here none is."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with our request in place of FastAPI's."""
        taken_here = (each for each in get_flat_params(self.dependant) if isinstance(each.field_info, params.Query))
        self.query_names = tuple(dict.fromkeys(each.alias for each in taken_here))
        handle, field = super().get_route_handler(), self.body_field
        takes_form = field is not None and isinstance(field.field_info, params.Form)
        takes_json = field is not None and not takes_form

        async def handler(request: Request) -> Response:
            if takes_form and not _is_in_utf8(request.headers.get("content-type", "")):
                raise RequestRefused(415, "A form is taken in UTF-8 alone.")
            if takes_json and request.method not in METHODS_WITHOUT_BODY:
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
                    raise RequestRefused(415)
            taken = request if isinstance(request, JsonRequest) else JsonRequest(request.scope, request.receive)
            await self.admit(taken)
            answer = await handle(taken)
            await count(taken, answer)
            if answer.status_code == 204 and "content-type" in answer.headers:
                del answer.headers["content-type"]
            return answer

        return handler


def _is_in_utf8(content_type: str) -> bool:
    """Whether a form is in UTF-8, read as the parser of forms reads it: in an encoding of the sender's choice, letters
    may be none that there are."""
    _, given = parse_options_header(content_type)
    return given.get(b"charset", b"utf-8").lower() in (b"utf-8", b"utf8")


def require_known_parameters(request: Request) -> None:
    """Return if the route takes every parameter in the address of a request. Raises RequestRefused for another one:
    what a misspelt one was meant to narrow down would else be all of it. An address that is not in the document of the
    API takes what its clients send."""
    route = request.scope["route"]
    if not isinstance(route, JsonRoute) or not route.include_in_schema:
        return
    for name in request.query_params:
        if name not in route.query_names:
            taken = f"takes: {', '.join(route.query_names)}" if route.query_names else "takes no parameters"
            raise RequestRefused(422, f"`{name[:MAX_FIELD_CHARS]}` is not known here. This address {taken}.")

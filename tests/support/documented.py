"""Every answer of a served app held against its OpenAPI document: its status, media type, headers and body.

A status that a route answers itself must be named by its operation. `default` stands for what any request may get
before it has a route, or when a server is away.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import jsonschema_rs
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from bot.web.edge import API_HEADERS
from bot.web.event_stream import EVENT_STREAM
from bot.web.gateway.errors import is_of_gateway

OF_ANY_REQUEST: Final = frozenset({400, 405, 408, 413, 421, 431, 500, 503})
# Of any answer: of the server, and of the layers that every request passes.
COMMON_HEADERS: Final = frozenset(
    {"content-type", "content-length", "date", "connection", "strict-transport-security"}
    | {"vary", "access-control-allow-origin", "access-control-expose-headers"}
    | {name.lower() for name in API_HEADERS}
)
PROBLEM: Final = "application/problem+json"
JSON: Final = re.compile(r"application/(.+\+)?json")
_COMPONENTS: Final = "components"


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, whole."""

    method: str
    path: str
    status: int
    headers: Headers
    body: bytes


@dataclass
class Document:
    """The OpenAPI document of an app, as it judges answers."""

    told: dict[str, Any]
    _validators: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, app: FastAPI) -> "Document":
        """The document of an app, in which an object of an answer holds nothing that it does not name. Making it takes
        a quarter of a second, so apps with the same routes share it."""
        routes = tuple(_identity(route) for route in app.router.routes)
        if routes not in _documents:
            told: dict[str, Any] = copy.deepcopy(app.openapi())
            for schema in told[_COMPONENTS]["schemas"].values():
                _close(schema)
            _documents[routes] = cls(told)
        return _documents[routes]

    @cached_property
    def _templates(self) -> list[tuple[re.Pattern[str], str]]:
        """The addresses, those with the fewest parameters first."""
        paths = sorted(self.told["paths"], key=lambda path: path.count("{"))
        return [(re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))), path) for path in paths]

    def operation(self, method: str, asked: str) -> tuple[str, Mapping[str, Any]] | None:
        """The operation of a request, with its name; None for a path or a method without one."""
        method = {"HEAD": "GET"}.get(method, method).lower()
        for pattern, path in self._templates:
            if pattern.fullmatch(asked) and method in self.told["paths"][path]:
                return f"{method.upper()} {path}", self.told["paths"][path][method]
        return None

    def violations(self, answered: Answered) -> Iterator[str]:
        """What an answer has that the document does not say, a sentence each."""
        found = self.operation(answered.method, answered.path)
        if found is None:
            if answered.headers.get("content-type") == PROBLEM:
                problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
                yield from self._body(f"{answered.method} {answered.path}", problem, answered.body)
            return
        name, responses = found[0], found[1]["responses"]
        told = responses.get(str(answered.status), responses.get(f"{answered.status // 100}XX"))
        kind = answered.headers.get("content-type", "").partition(";")[0]
        of_any = answered.status in OF_ANY_REQUEST
        if of_any and (told is None or (kind not in told.get("content", {}) and kind == PROBLEM)):
            told = responses["default"]
        name = f"{name} {answered.status}"
        if told is None:
            yield f"{name}: the status is not documented; {answered.body[:200]!r}"
            return
        yield from self._headers(name, told.get("headers", {}), answered.headers)
        content = told.get("content")
        if kind == EVENT_STREAM and "x-event-stream" in told:  # a stream of others, which is passed on as it is
            return
        if not content:
            if answered.body or kind:
                yield f"{name}: it has a body of {kind!r}, and none is documented"
        elif kind not in content:
            yield f"{name}: the media type {kind!r} is none of {sorted(content)}"
        elif answered.method != "HEAD":
            if kind == EVENT_STREAM:
                yield from self._events(name, content, answered.body)
            elif JSON.fullmatch(kind):
                yield from self._body(f"{name} {kind}", content[kind], answered.body)

    def _headers(self, name: str, documented: Mapping[str, Any], sent: Headers) -> Iterator[str]:
        """Headers that are not documented, are missing, or hold something else."""
        known = {each.lower(): told for each, told in documented.items()}
        for header in sorted(set(sent) - COMMON_HEADERS - set(known)):
            yield f"{name}: the header {header} is not documented"
        for header, told in known.items():
            if header not in sent:
                if told["required"]:
                    yield f"{name}: the header {header} is missing"
            elif told["schema"]["type"] == "integer" and not sent[header].isdecimal():
                yield f"{name}: the header {header} is no number"

    def _events(self, name: str, content: Mapping[str, Any], body: bytes) -> Iterator[str]:
        """Server-sent events: one that holds a whole answer holds what is documented for it as JSON."""
        for event in body.decode().split("\n\n"):
            if event and not event.startswith(":"):
                kind, data = (line.partition(": ")[2] for line in event.split("\n"))
                json.loads(data)
                if kind in ("start", "reply"):
                    yield from self._body(f"{name} {kind}", {"schema": content[EVENT_STREAM]["x-data"]}, data.encode())

    def _body(self, name: str, documented: Mapping[str, Any], body: bytes) -> Iterator[str]:
        """What is wrong with a body of JSON. No value of it is repeated."""
        if name not in self._validators:
            schema = {**documented["schema"], _COMPONENTS: self.told[_COMPONENTS]}
            self._validators[name] = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        for error in self._validators[name].iter_errors(json.loads(body)):
            yield f"{name}: {'.'.join(map(str, error.instance_path)) or 'the body'} breaks {error.schema_path}"


class Documented:
    """An app whose answers are held against its document as they are sent. `found` are the violations."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self.found: list[str] = []

    @cached_property
    def _document(self) -> Document:
        return Document.of(self._app)

    def _judge(self, answered: Answered) -> None:
        if is_of_gateway(answered.path):
            return  # a model server's own, passed on as it is: the document says what OpenAI answers
        try:
            self.found += self._document.violations(answered)
        except Exception as error:  # such as a body that is no JSON
            self.found.append(f"{answered.method} {answered.path} {answered.status}: {error!r}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. A stream that is left before its end is not judged."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun: Message = {}
        pieces: list[bytes] = []

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.update(message)
            else:
                pieces.append(message.get("body", b""))
                if not message.get("more_body", False):
                    headers = Headers(raw=begun["headers"])
                    path = scope["path"]
                    whole = Answered(scope["method"], path, begun["status"], headers, b"".join(pieces))
                    self._judge(whole)
            await send(message)

        await self._app(scope, receive, answer)


_documents: Final[dict[tuple[object, ...], Document]] = {}


def _identity(route: Any) -> object:
    """What stands for a route in the documents of several apps."""
    return route.path, frozenset(route.methods or ()), getattr(route.endpoint, "__code__", route.endpoint)


def _close(schema: Any) -> None:
    """Let an object hold only what it names."""
    match schema:
        case dict():
            if "properties" in schema:
                schema.setdefault("additionalProperties", False)
            for each in schema.values():
                _close(each)
        case list():
            for each in schema:
                _close(each)

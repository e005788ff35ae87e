"""Watches every answer of the web port for what its asker may not know, and for failures of the server."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.support.documented import Document

CANARY: Final = re.compile(rb"zq[0-9a-f]{12}")
ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
BEARER: Final = b"bearer "
# By these more people may know what an id stands for, once they have succeeded.
SPREADING: Final = re.compile(
    r"PUT /v1/entries/[^/]+/team|POST /v1/teams/[^/]+/(accept|invites)|(PUT|POST) /v1/projects/[^/]+/.*"
)


@dataclass(frozen=True, slots=True)
class Canary:
    """A word that only some viewers may know; `ids` are those of the entry, team or project that has it."""

    text: bytes
    viewers: frozenset[str]
    ids: frozenset[str] = frozenset()


@dataclass
class Findings:
    """What was seen: sentences, each once.

    `people` are those whose keys the viewers have, by viewer. `asked` counts the answers by viewer, operation and
    status. `spread` are canaries that whoever knew them has shared since, so that nobody is wrong to know them, and
    `shared` ids of what several people may read; `open_handed` are people who have let others in since.
    """

    canaries: Mapping[bytes, Canary]
    people: Mapping[str, str]
    found: dict[str, None] = field(default_factory=dict)
    asked: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    spread: set[bytes] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    open_handed: set[str] = field(default_factory=set)
    _read: dict[str, set[str]] = field(default_factory=dict)  # who has read what an address names

    def judge(self, viewer: str, asked: str, sent: bytes, status: int, answer: bytes) -> None:
        """Look at one answer: `asked` is the method and the path, `sent` all of the request, `answer` all that came."""
        if status >= 500 and status != 503:
            self.found[f"{asked} as {viewer or 'nobody'}: {status}; sent {sent[:2_000]!r}"] = None
        repeated = set(CANARY.findall(sent))
        if status < 300 and not asked.startswith("GET "):
            self.spread |= repeated
            if SPREADING.fullmatch(asked):
                ids = {each.lower() for each in ID.findall(asked + sent.decode("utf-8", "replace"))}
                self.shared |= ids
                self.open_handed.add(self.people.get(viewer, ""))
                self.spread |= {text for text, canary in self.canaries.items() if canary.ids & ids}
        for text in set(CANARY.findall(answer)) - repeated - self.spread:
            canary = self.canaries.get(text)
            if canary is not None and viewer not in canary.viewers:
                self.found[f"{asked} as {viewer or 'nobody'} shows what only {_names(canary.viewers)} may know"] = None
        if status < 300 and asked.startswith("GET "):
            self._judge_same(self.people.get(viewer, "nobody"), asked)

    def _judge_same(self, person: str, asked: str) -> None:
        """No two people read the same thing by its id, unless it is shared."""
        ids = {each.lower() for each in ID.findall(asked)}
        if not ids or ids & self.shared:
            return
        readers = self._read.setdefault(asked, set())
        readers.add(person)
        if len(readers - self.open_handed) > 1:
            self.found[f"{asked} is answered to {_names(readers)}"] = None


class Watch:
    """The outermost layer of an app that is watched. `viewers` are names by the text of their keys."""

    def __init__(self, app: ASGIApp, viewers: Mapping[str, str], findings: Findings, document: Document) -> None:
        self._app, self._findings, self._document = app, findings, document
        self._viewers = {key.encode(): name for key, name in viewers.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. What was sent of an answer is judged also when it broke off."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent, answer, status = [scope["query_string"], scope["raw_path"]], list[bytes](), 0
        credential = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        viewer = self._viewers.get(credential[len(BEARER) :], "") if credential.lower().startswith(BEARER) else ""
        sent += [value for name, value in scope["headers"] if name != b"authorization"]

        async def hear() -> Message:
            message = await receive()
            sent.append(message.get("body", b""))
            return message

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answer.extend(part for header in message["headers"] for part in header)
            answer.append(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, hear, watch)
        finally:
            asked = f"{scope['method']} {scope['path']}"
            operation = self._document.operation(scope["method"], scope["path"])
            self._findings.asked[viewer, operation[0] if operation else "", status] += 1
            self._findings.judge(viewer, asked, b"\n".join(sent), status, b"\n".join(answer))


def _names(viewers: Collection[str]) -> str:
    return " and ".join(sorted(viewers))

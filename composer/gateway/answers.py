"""Answers of models as they pass: a copy is read once they have ended. Pure.

Events are passed on as they came. One kind is left out: the last one of a stream, with what the stream used, where
Nexus has asked for it and the client has not.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from composer.gateway.requests import Api
from composer.model import Usage
from composer.text.completions import CompletionDecoder, read_completion, usage_of

MAX_HEAD_BYTES: Final = 2 * 2**20  # of a copy; of a longer answer the middle is left out
MAX_TAIL_BYTES: Final = 2**20
MAX_HELD_BYTES: Final = 64 * 1024  # of an event that has not ended; a longer one says not only what was used
_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE: Final = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """An answer of a model. `usage` None: it does not say what it used. `is_whole`: the model ended it by itself and
    calls no function, so the turn ends with it. `generated` is all that the model has written of it, in every choice,
    with calls and reasoning, to count its tokens; `scale` is by how much more came than was kept to be read."""

    text: str = ""
    usage: Usage | None = None
    is_whole: bool = False
    generated: str = ""
    scale: float = 1.0


class AnswerCopy:
    """A copy of an answer's body, of bounded size."""

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._in_head = self._in_tail = self._size = 0
        self._cut = False

    def add(self, piece: bytes) -> None:
        """Add the next piece of the body."""
        self._size += len(piece)
        if not self._tail and self._in_head + len(piece) <= MAX_HEAD_BYTES:
            self._head.append(piece)
            self._in_head += len(piece)
            return
        self._tail.append(piece)
        self._in_tail += len(piece)
        while self._in_tail > MAX_TAIL_BYTES:
            self._in_tail -= len(self._tail.popleft())
            self._cut = True

    def read(self, api: Api, *, events: bool) -> UpstreamAnswer:
        """Read the answer. Of a body that is not what the API sends only the length is known."""
        parts = [b"".join(self._head), b"".join(self._tail)] if self._cut else [b"".join((*self._head, *self._tail))]
        answer = None if events or self._cut else _read_json(api, parts[0])
        answer = answer or _read_events(api, parts, cut=self._cut)
        if not answer.generated and answer.usage is None and api is not Api.EMBEDDINGS:
            answer = replace(answer, generated=b"".join(parts).decode(errors="replace"))
        return replace(answer, scale=self._size / max(sum(map(len, parts)), 1))


def _read_json(api: Api, body: bytes) -> UpstreamAnswer | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return _of_json(api, value) if isinstance(value, dict) else None


def _read_events(api: Api, parts: Sequence[bytes], *, cut: bool) -> UpstreamAnswer:
    found = _Reader(api)
    for part in parts:
        decoder = CompletionDecoder()
        for event in (*decoder.feed(part), *decoder.end()):
            found.add(event)
        found.done = found.done or decoder.done
    return found.answer(cut=cut)


class UsageFilter:
    """Leaves out of a stream the event that holds its usage alone. Every other byte is passed on, event by event."""

    def __init__(self) -> None:
        self._held = b""
        self._searched = 0
        self._passing = False  # an event that is too long to be that one

    def feed(self, piece: bytes) -> bytes:
        """What to pass on after the next piece."""
        self._held += piece
        out: list[bytes] = []
        while (end := _END.search(self._held, self._searched)) is not None:
            event, self._held, self._searched = self._held[: end.end()], self._held[end.end() :], 0
            if self._passing or not _says_usage_alone(event):
                out.append(event)
            self._passing = False
        if len(self._held) > MAX_HELD_BYTES or self._passing:
            keep = min(len(self._held), 3)  # an end of an event may have begun
            out.append(self._held[: len(self._held) - keep])
            self._held, self._passing = self._held[len(self._held) - keep :], True
        self._searched = max(0, len(self._held) - 3)
        return b"".join(out)

    def rest(self) -> bytes:
        """What to pass on at the end of the stream."""
        rest, self._held, self._searched = self._held, b"", 0
        return b"" if not self._passing and _says_usage_alone(rest) else rest


class _Reader:
    """Reads the events of an answer. `done`: their end was said."""

    def __init__(self, api: Api) -> None:
        self.done = False
        self._api = api
        self._text: list[str] = []
        self._generated: list[str] = []
        self._usage: Usage | None = None
        self._finish = ""
        self._calls = False
        self._whole: UpstreamAnswer | None = None

    def add(self, event: Mapping[str, Any]) -> None:
        if self._api is Api.CHAT:
            said = read_completion(event)
            self._usage = said.usage or self._usage
            self._text.append(said.text)
            self._generated += _generated(event.get("choices"))
            self._finish = "error" if said.error is not None else said.finish or self._finish
            self._calls = self._calls or bool(said.calls)
            return
        delta = event.get("delta")
        self._generated.append(delta if isinstance(delta, str) else "")
        if event.get("type") == "response.output_text.delta":
            self._text.append(delta if isinstance(delta, str) else "")
        elif event.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            response = event.get("response")
            self._whole = _of_json(self._api, response) if isinstance(response, dict) else None

    def answer(self, *, cut: bool) -> UpstreamAnswer:
        text, generated = "".join(self._text), "".join(self._generated)
        if self._api is Api.CHAT:
            ended = self._finish == "stop" or (self.done and not self._finish)
            return UpstreamAnswer(text, self._usage, ended and not self._calls and not cut, generated)
        whole = self._whole or UpstreamAnswer()
        is_whole = whole.is_whole and not cut
        return UpstreamAnswer(text or whole.text, whole.usage, is_whole, generated or whole.generated)


def _of_json(api: Api, value: Mapping[str, Any]) -> UpstreamAnswer:
    if api is Api.CHAT:
        said = read_completion(value)
        generated = "".join(_generated(value.get("choices")))
        return UpstreamAnswer(said.text, said.usage, said.finish == "stop" and not said.calls, generated)
    usage = usage_of(value.get("usage"))
    output = value.get("output")
    items = [each for each in output if isinstance(each, Mapping)] if isinstance(output, list) else []
    calls = any(str(each.get("type", "")).endswith("_call") and "call_id" in each for each in items)
    parts = [part for each in items if each.get("type") == "message" for part in _list(each.get("content"))]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "output_text"]
    text = "".join(each for each in texts if isinstance(each, str))
    generated = "" if api is Api.EMBEDDINGS else "\n".join(_generated(output))
    return UpstreamAnswer(text, usage, value.get("status") == "completed" and not calls, generated)


_NAMES: Final = frozenset({"id", "call_id", "item_id", "object", "type", "role", "status", "finish_reason", "logprobs"})


def _generated(value: object) -> Iterator[str]:
    """The texts of an answer, or of a part of one, but for names that its server has put there."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case list() as items:
                waiting.extend(reversed(items))
            case dict() as members:
                waiting.extend(each for name, each in reversed(members.items()) if name not in _NAMES)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _event(block: bytes) -> dict[str, Any] | None:
    """The JSON object of an event; None for one without."""
    lines = [line[5:].strip() for line in _LINE.split(block) if line.startswith(b"data:")]
    try:
        value = json.loads(b"\n".join(lines)) if lines else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _says_usage_alone(block: bytes) -> bool:
    if b'"usage"' not in block:
        return False
    event = _event(block)
    return event is not None and event.get("choices") == [] and isinstance(event.get("usage"), Mapping)

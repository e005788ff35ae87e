"""Answers of models as they pass: a copy is read once they have ended. Pure.

Events are passed on as they came. One kind is left out: the last one of a stream, with what the stream used, where
Nexus has asked for it and the client has not.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from composer.gateway.requests import Api, parse_count
from composer.model import Usage

MAX_HEAD_BYTES: Final = 2 * 2**20  # of a copy; of a longer answer the middle is left out
MAX_TAIL_BYTES: Final = 2**20
MAX_HELD_BYTES: Final = 64 * 1024  # of an event that has not ended; a longer one says not only what was used
_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE: Final = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """An answer of a model. `usage` None: it does not say what it used. `is_whole`: the model ended it by itself and
    calls no function, so the turn ends with it."""

    text: str = ""
    usage: Usage | None = None
    is_whole: bool = False


class AnswerCopy:
    """A copy of an answer's body, of bounded size."""

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._in_head = self._in_tail = 0
        self._cut = False

    def add(self, piece: bytes) -> None:
        """Add the next piece of the body."""
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
        """Read the answer; an empty one where the body is not what the API sends."""
        head, tail = b"".join(self._head), b"".join(self._tail)
        if events:
            found = _Reader(api)
            for part in (head, tail) if self._cut else (head + tail,):
                for event in _events(part):
                    found.add(event)
            return found.answer(cut=self._cut)
        try:
            value = json.loads(head + tail)
        except (ValueError, RecursionError):
            return UpstreamAnswer()
        return _of_json(api, value) if isinstance(value, dict) and not self._cut else UpstreamAnswer()


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


def usage_of(value: object) -> Usage | None:
    """The usage that an answer names, in the format of either API; None without one."""
    if not isinstance(value, Mapping):
        return None
    prompt = parse_count(value.get("prompt_tokens", value.get("input_tokens")))
    completion = parse_count(value.get("completion_tokens", value.get("output_tokens")))
    details = value.get("prompt_tokens_details", value.get("input_tokens_details"))
    cached = parse_count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    if prompt is None and completion is None:
        return None
    return Usage(prompt or 0, completion or 0, cached or 0)


class _Reader:
    """Reads the events of an answer."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._text: list[str] = []
        self._usage: Usage | None = None
        self._finish = ""
        self._whole: UpstreamAnswer | None = None

    def add(self, event: Mapping[str, Any]) -> None:
        if self._api is Api.CHAT:
            self._usage = usage_of(event.get("usage")) or self._usage
            choice = _first(event.get("choices"))
            delta = choice.get("delta")
            content = delta.get("content") if isinstance(delta, Mapping) else None
            self._text.append(content if isinstance(content, str) else "")
            finish = choice.get("finish_reason")
            self._finish = finish if isinstance(finish, str) else self._finish
        elif event.get("type") == "response.output_text.delta":
            delta = event.get("delta")
            self._text.append(delta if isinstance(delta, str) else "")
        elif event.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            response = event.get("response")
            self._whole = _of_json(self._api, response) if isinstance(response, dict) else None

    def answer(self, *, cut: bool) -> UpstreamAnswer:
        text = "".join(self._text)
        if self._api is Api.CHAT:
            return UpstreamAnswer(text, self._usage, self._finish == "stop" and not cut)
        whole = self._whole or UpstreamAnswer()
        return UpstreamAnswer(text or whole.text, whole.usage, whole.is_whole and not cut)


def _of_json(api: Api, value: Mapping[str, Any]) -> UpstreamAnswer:
    usage = usage_of(value.get("usage"))
    if api is Api.CHAT:
        choice = _first(value.get("choices"))
        message = choice.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        text = content if isinstance(content, str) else ""
        return UpstreamAnswer(text, usage, choice.get("finish_reason") == "stop")
    output = value.get("output")
    items = [each for each in output if isinstance(each, Mapping)] if isinstance(output, list) else []
    calls = any(str(each.get("type", "")).endswith("_call") and "call_id" in each for each in items)
    parts = [part for each in items if each.get("type") == "message" for part in _list(each.get("content"))]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "output_text"]
    text = "".join(each for each in texts if isinstance(each, str))
    return UpstreamAnswer(text, usage, value.get("status") == "completed" and not calls)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(choices: object) -> Mapping[str, Any]:
    """The first choice, whose answer counts."""
    found = [each for each in _list(choices) if isinstance(each, Mapping) and each.get("index", 0) == 0]
    return found[0] if found else {}


def _events(data: bytes) -> Iterator[dict[str, Any]]:
    for block in _END.split(data):
        event = _event(block)
        if event is not None:
            yield event


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

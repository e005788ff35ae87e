"""Read what an OpenAI-compatible server sends as a chat completion, also where it is not quite that. Pure.

Servers send events with comments, empty or unreadable data between them, one line for each or several, one JSON object
where a stream was asked, content as a list of parts, numbers as texts, and an end without a reason for it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from composer.model import Usage

MAX_USAGE: Final = 10**8  # tokens of one answer: more than any model takes, so a larger figure says nothing
MAX_PENDING_LINES: Final = 64  # of one event
_LINE: Final = re.compile(rb"\r\n|\n|\r(?!\Z)")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_DONE: Final = b"[done]"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_details", "reasoning_text", "thinking")


@dataclass(frozen=True, slots=True)
class CallPart:
    """A part of a call of a function, with the server's index of the call."""

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What one event, or a whole answer, says. `error`: what the server reports in place of an answer; `reasoned`: the
    model has reasoned apart from its answer."""

    text: str = ""
    finish: str = ""
    usage: Usage | None = None
    calls: tuple[CallPart, ...] = ()
    error: str | None = None
    reasoned: bool = False
    is_usage_alone: bool = False


class CompletionDecoder:
    """Splits the body of an answer into its JSON objects, as its pieces come. `done`: the server has said that it is
    whole."""

    def __init__(self) -> None:
        self.done = False
        self._held = b""
        self._pending: list[bytes] = []
        self._whole: list[bytes] | None = None  # the body, where it is no stream
        self._begun = False

    def feed(self, piece: bytes) -> list[dict[str, Any]]:
        """The objects that end in the next piece."""
        if self._whole is not None:
            self._whole.append(piece)
            return []
        self._held += piece
        if not self._begun:
            self._held = self._held.removeprefix(_BYTE_ORDER_MARK).lstrip()
            if _BYTE_ORDER_MARK.startswith(self._held):
                return []
            self._begun = True
            if self._held[:1] in (b"{", b"["):
                self._whole, self._held = [self._held], b""
                return []
        *lines, self._held = _LINE.split(self._held)
        return list(self._objects(lines))

    def end(self) -> list[dict[str, Any]]:
        """The objects that the body's end completes."""
        if self._whole is None:
            held, self._held = self._held, b""
            return list(self._objects([held, b""]))
        body = b"".join(self._whole)
        found = _parsed(body)
        if found is None:  # perhaps one object a line
            return list(self._objects(_LINE.split(body)))
        self.done = True
        return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]

    def _objects(self, lines: Iterable[bytes]) -> Iterable[dict[str, Any]]:
        for line in lines:
            if not line.strip():
                self._pending = []
                continue
            data = line[5:] if line.startswith(b"data:") else line if line.startswith(b"{") else None
            if data is None and line.startswith(b"error:") and isinstance(error := _parsed(line[6:]), dict):
                yield {"error": error}  # llama.cpp
                continue
            if data is None:  # a comment, a name, an id
                continue
            if data.strip().lower() == _DONE:
                self.done = True
                continue
            self._pending = [*self._pending, data][-MAX_PENDING_LINES:]
            for each in (data, b"\n".join(self._pending)):
                if isinstance(found := _parsed(each), dict):
                    self._pending = []
                    yield found
                    break


def read_completion(event: Mapping[str, Any]) -> Completion:
    """What an event, or a whole answer, says."""
    usage = usage_of(event.get("usage")) or usage_of(_mapping(event.get("x_groq")).get("usage"))
    if (error := _error(event)) is not None:
        return Completion(error=error, usage=usage)
    choice = first_choice(event.get("choices"))
    said = _mapping(choice.get("message" if choice.get("delta") is None else "delta"))
    text = text_of_content(said.get("content")) or text_of_content(choice.get("text"))
    hidden = _mapping(_mapping(event.get("usage")).get("completion_tokens_details"))
    reasoned = any(said.get(name) for name in _REASONING_FIELDS) or bool(count_of(hidden.get("reasoning_tokens")))
    finish = choice.get("finish_reason")
    return Completion(
        text=text or text_of_content(said.get("refusal")),
        finish=finish if isinstance(finish, str) else "",
        usage=usage,
        calls=tuple(_calls(said)),
        reasoned=reasoned or _has_reasoning_part(said.get("content")),
        is_usage_alone=usage is not None and event.get("choices") == [],
    )


def first_choice(choices: object) -> Mapping[str, Any]:
    """The first choice, whose answer counts; an empty one where there is none."""
    found = [each for each in choices if isinstance(each, Mapping)] if isinstance(choices, list) else []
    return next((each for each in found if not each.get("index")), {})


def text_of_content(content: object) -> str:
    """The text of a message's content: a text, a part, or a list of parts, of which those of reasoning are left out."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        said = content.get("text") if str(content.get("type", "text")) in ("text", "output_text") else ""
        said = said.get("value") if isinstance(said, Mapping) else said
        return said if isinstance(said, str) else ""
    return "".join(map(text_of_content, content)) if isinstance(content, list) else ""


def usage_of(value: object) -> Usage | None:
    """The usage that an answer names, in the format of either API of OpenAI; None without one."""
    if not isinstance(value, Mapping):
        return None
    prompt = count_of(value.get("prompt_tokens", value.get("input_tokens")))
    completion = count_of(value.get("completion_tokens", value.get("output_tokens")))
    if prompt is None and completion is None:
        return None
    details = _mapping(value.get("prompt_tokens_details", value.get("input_tokens_details")))
    return Usage(prompt or 0, completion or 0, count_of(details.get("cached_tokens")) or 0)


def count_of(value: object) -> int | None:
    """A count as a server writes it: a number, whole or not, or one as text; None for anything else, and for more than
    MAX_USAGE."""
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    found = float(text) if _NUMBER.fullmatch(text.strip()) else inf
    return int(found) if found <= MAX_USAGE else None


def _calls(said: Mapping[str, Any]) -> Iterable[CallPart]:
    given = said.get("tool_calls")
    calls = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    if not calls and (older := _mapping(said.get("function_call"))):
        calls = [{"index": 0, "function": older}]
    for place, each in enumerate(calls):
        function = _mapping(each.get("function")) or each
        index = each.get("index")
        arguments = function.get("arguments")
        yield CallPart(
            index if type(index) is int else place,
            _text(each.get("id")),
            _text(function.get("name")),
            json.dumps(arguments) if isinstance(arguments, Mapping | list) else _text(arguments),
        )


def _error(event: Mapping[str, Any]) -> str | None:
    error = event.get("error") or first_choice(event.get("choices")).get("error")
    if not error and not event.get("choices"):
        if event.get("object") == "error" or event.get("type") == "error":
            error = event
        elif "choices" not in event and (event.get("detail") or ("message" in event and "code" in event)):
            error = event.get("detail") or event  # of a framework, or of an event that is named `error`
    if not error:
        return None
    told = _mapping(error)
    return f"{told.get('code', '')} {told.get('type', '')} {told.get('message', error)}" if told else str(error)


def _has_reasoning_part(content: object) -> bool:
    parts = content if isinstance(content, list) else [content]
    return any(_mapping(each).get("type") in ("thinking", "reasoning", "redacted_thinking") for each in parts)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

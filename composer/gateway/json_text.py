"""Change parts of a JSON text, and leave every other character of it as it was sent. Pure.

A value that is parsed and written again loses what the sender chose: the order and repetition of names, how a number
is written, white space. So only the places of values are looked up, and text is put in there.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from composer.errors import BadInput

NO_JSON_BODY: Final = "The request's body is not valid JSON in UTF-8."
TOO_DEEP: Final = "The request's body is nested too deeply."
MAX_VALUES: Final = 400_000  # each takes some 300 bytes of memory; OpenAI takes 300,000 tokens to embed, as numbers
TOO_MANY: Final = "The request's body has too many values: {most:,} are taken here."
_JSON_BLANKS: Final = " \t\r\n"
_SPACE: Final = re.compile(rf"[{_JSON_BLANKS}]*")


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class Repeating(dict[str, Any]):
    """An object with a name that is there more than once: `pairs` are all of its members, as they are written."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def pairs_of(value: dict[str, Any]) -> Sequence[tuple[str, Any]]:
    """The members of an object, each as often as it is there."""
    return value.pairs if isinstance(value, Repeating) else list(value.items())


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeating(pairs)


# A string (also one without an end, or it would be tried at each further mark), or what stands before a value.
_STRING_OR_MARK: Final = re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?|[,\[{]', re.DOTALL)
_MARKS: Final = ",[{"


def _no_constant(_: str) -> Any:
    raise ValueError(NO_JSON_BODY)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_Number, parse_int=_Number, parse_constant=_no_constant
)


@dataclass(frozen=True, slots=True)
class Part:
    """A value with its place: `text[start:end]`. Numbers are texts. `name` is that of a member of an object."""

    value: Any
    start: int
    end: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Puts `text` in place of `start` to `end`."""

    start: int
    end: int
    text: str


def decode(body: bytes) -> str:
    """Decode a body. Raises BadInput for what is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise BadInput(NO_JSON_BODY) from None


def require_few_values(text: str, most: int = MAX_VALUES) -> None:
    """Return if a JSON text has at most about so many values; it may not be valid JSON. Raises BadInput."""
    if sum(text.count(mark) for mark in _MARKS) <= most:
        return
    marks = strings = 0  # in a longer text they may stand in strings
    for found in _STRING_OR_MARK.finditer(text):
        if text[found.start()] == '"':
            strings += 1
        else:
            marks += 1
        if marks > most or strings > 2 * most:  # each member has two strings at most
            raise BadInput(TOO_MANY.format(most=most))


def members(text: str, start: int = 0, *, whole: bool = True) -> list[Part]:
    """The members of the object that begins at `start`, in order, each as often as it is there. `whole`: nothing
    follows it. Raises BadInput for what is no JSON object."""
    found: list[Part] = []
    at = _skip(text, _expect(text, _skip(text, start), "{"))
    while text[at : at + 1] != "}":
        if found:
            at = _skip(text, _expect(text, at, ","))
        name, at = _value(text, at)
        if not isinstance(name, str) or isinstance(name, _Number):
            raise BadInput(NO_JSON_BODY)
        value_start = _skip(text, _expect(text, _skip(text, at), ":"))
        value, end = _value(text, value_start)
        found.append(Part(value, value_start, end, name))
        at = _skip(text, end)
    if whole and _skip(text, at + 1) != len(text):
        raise BadInput(NO_JSON_BODY)
    return found


def elements(text: str, start: int) -> list[Part]:
    """The elements of the array that begins at `start`. Raises BadInput for what is none."""
    found: list[Part] = []
    at = _skip(text, _expect(text, _skip(text, start), "["))
    while text[at : at + 1] != "]":
        if found:
            at = _skip(text, _expect(text, at, ","))
        value, end = _value(text, at)
        found.append(Part(value, at, end))
        at = _skip(text, end)
    return found


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap, those at one place in their order."""
    pieces, at = list[str](), 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join((*pieces, text[at:]))


def add_member(text: str, start: int, name: str, value: str, found: Sequence[Part]) -> Edit:
    """The edit that adds a member to the front of the object that begins at `start` and has the members `found`."""
    at = _skip(text, start) + 1
    return Edit(at, at, f"{json.dumps(name)}:{value}{',' if found else ''}")


def insert_element(array: Part, found: Sequence[Part], place: int, value: str) -> Edit:
    """The edit that inserts a value before the element at `place`, or at the end."""
    if place < len(found):
        return Edit(found[place].start, found[place].start, f"{value},")
    at = array.end - 1
    return Edit(at, at, f",{value}" if found else value)


def to_json(text: str) -> str:
    """A text as JSON."""
    return json.dumps(text, ensure_ascii=False)


def _skip(text: str, at: int) -> int:
    if text[at : at + 1] not in _JSON_BLANKS:
        return at
    found = _SPACE.match(text, at)
    assert found is not None, "it matches nothing, too"
    return found.end()


def _expect(text: str, at: int, char: str) -> int:
    if text[at : at + 1] != char:
        raise BadInput(NO_JSON_BODY)
    return at + 1


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except ValueError:
        raise BadInput(NO_JSON_BODY) from None
    except RecursionError:
        raise BadInput(TOO_DEEP) from None

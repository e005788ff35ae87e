"""Why an answer was what it was: a stored prompt, seen with what its reader may see today."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from composer.model import Visibility
from composer.visibility import Readable


@dataclass(frozen=True, slots=True)
class Part:
    """One source of a section: `mark` as the answer cites it, `text` its line in the prompt."""

    mark: str
    layer: str
    kind: str
    messages: tuple[str, ...]
    score: float | None
    reasons: Mapping[str, float]
    text: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A section of a prompt: its tokens, and those of its sources that may be shown."""

    name: str
    tokens: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class _Marks:
    """The marks of a stored source, as visibility judges them."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...] = ("*",)


def explain(stored: Mapping[str, Any], readable: Readable) -> list[Explained]:
    """The sections of a stored prompt (its JSON form), with the sources that `readable` admits now.

    What could be read then and can't be now is left out: access is decided when reading.
    """
    return [
        Explained(
            section["name"],
            section["tokens"],
            tuple(
                Part(
                    f"s{number}" if section["name"] == "RECALL" else "",
                    source["layer"],
                    source["kind"],
                    tuple(source["messages"]),
                    source["score"],
                    source["reasons"],
                    _line(section, number),
                )
                for number, source in enumerate(section["sources"], 1)
                if readable.admits(_marks(source))
            ),
        )
        for section in stored["sections"]
    ]


def _marks(source: Mapping[str, Any]) -> _Marks:
    user = source["user_id"]
    return _Marks(source["namespace"], Visibility(source["visibility"]), None if user is None else uuid.UUID(user))


def _line(section: Mapping[str, Any], number: int) -> str:
    """The line of a source in its section: those of RECALL carry its mark, facts and landmarks stand in order."""
    lines = [line for line in section["text"].split("\n") if line.startswith("- ")]
    return lines[number - 1] if len(lines) == len(section["sources"]) else ""

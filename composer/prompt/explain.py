"""Explain an answer: its stored prompt, reduced to what its reader may see now."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from composer.model import Visibility
from composer.visibility import Readable


@dataclass(frozen=True, slots=True)
class Part:
    """One source of a section. `mark` is its source mark in the answer (s1); `text` is its line in the prompt."""

    mark: str
    layer: str
    kind: str
    messages: tuple[str, ...]
    score: float | None
    reasons: Mapping[str, float]
    text: str


@dataclass(frozen=True, slots=True)
class ExplainedSection:
    """A section of a prompt: its tokens, and those of its sources that the reader may see."""

    name: str
    tokens: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class _StoredTag:
    """The access tag of a stored source, for `Readable.admits`."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...] = ("*",)


def explain(prompt: Mapping[str, Any], readable: Readable) -> list[ExplainedSection]:
    """The sections of a stored prompt (JSON), with the sources that `readable` admits now.

    A source that may not be read any more is left out: access is checked now, not as of the answer.
    """
    return [
        ExplainedSection(
            section["name"],
            section["tokens"],
            tuple(
                Part(
                    mark=f"s{number}" if section["name"] == "RECALL" else "",
                    layer=source["layer"],
                    kind=source["kind"],
                    messages=tuple(source["messages"]),
                    score=source["score"],
                    reasons=source["reasons"],
                    text=_line(section, number),
                )
                for number, source in enumerate(section["sources"], 1)
                if readable.admits(_tag(source))
            ),
        )
        for section in prompt["sections"]
    ]


def _tag(source: Mapping[str, Any]) -> _StoredTag:
    user = source["user_id"]
    return _StoredTag(source["namespace"], Visibility(source["visibility"]), None if user is None else uuid.UUID(user))


def _line(section: Mapping[str, Any], number: int) -> str:
    """The line of a source in its section:

    RECALL lines begin with a source mark; facts and landmarks have one line each, in order.
    """
    lines = [line for line in section["text"].split("\n") if line.startswith("- ")]
    return lines[number - 1] if len(lines) == len(section["sources"]) else ""

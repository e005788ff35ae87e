"""Explain an answer: its stored prompt, reduced to what its reader may see now. Pure.

Access is judged now and not as of the answer. Memories, facts and landmarks are judged by how they are filed now, since
their owner may have changed who may read them; everything else keeps the tag that it was written with.
"""

import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from composer.model import Visibility
from composer.ports.models import ChatMessage
from composer.prompt.lines import said_in
from composer.prompt.sections import (
    CALL_FOUND_NOTHING,
    CLOSING_SECTIONS,
    CONTEXT,
    MESSAGE,
    OPENING,
    RECALL,
    RELATED,
    SYSTEM,
    TOOLS,
    WORKING,
    UsedTool,
)
from composer.visibility import Readable, Tagged

_ITEM: Final = re.compile(r"^(?=- )", re.MULTILINE)  # people's text is quoted, so no line of it begins like this
_PROFILE: Final = "profile:"
_NOT_SHOWN: Final = "not shown: something that this answer used may not be read any more"


@dataclass(frozen=True, slots=True)
class ExplainedSource:
    """One source of a section. `mark` is its source mark in the answer (s1); `text` is its lines in the prompt;
    `came_from` says in words which other conversation, profile or project it came from, if any; `cited`: the answer
    cites or quotes it. `said` is what was said in it, `who` said it ("" and None: that is not stored) and `at` when."""

    mark: str
    layer: str
    kind: str
    messages: tuple[str, ...]
    score: float | None
    reasons: Mapping[str, float]
    text: str
    id: uuid.UUID | None = None
    came_from: str = ""
    cited: bool = False
    at: datetime | None = None
    who: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class ExplainedSection:
    """A section of a prompt: its tokens, those of its sources that the reader may see, and its text as far as they may
    read it."""

    name: str
    tokens: int
    sources: tuple[ExplainedSource, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class _StoredTag:
    """The access tag of a stored source, for `Readable.admits`."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...] = ("*",)


def refiled_ids(prompt: Mapping[str, Any]) -> list[uuid.UUID]:
    """The memories, facts and landmarks among the sources of a stored prompt: those whose filing can change."""
    return list(
        dict.fromkeys(
            uuid.UUID(source["id"]) for source in _sources(prompt) if can_be_refiled(source["layer"], source["kind"])
        )
    )


def speakers(prompt: Mapping[str, Any]) -> list[uuid.UUID]:
    """The people who took part in the conversation when a stored prompt was made, latest first: those whose messages it
    shows, and those whose profiles it used."""
    found: list[str] = []
    for section in reversed(prompt["sections"]):
        for source in reversed(section["sources"]):
            if source["namespace"].startswith(_PROFILE):
                found.append(source["namespace"].removeprefix(_PROFILE))
            elif source["user_id"] is not None and section["name"] in (WORKING, RELATED, MESSAGE):
                found.append(source["user_id"])
    return [uuid.UUID(user) for user in dict.fromkeys(found)]


def explain(prompt: Mapping[str, Any], readable: Readable, filed: Mapping[uuid.UUID, Tagged]) -> list[ExplainedSection]:
    """The sections of a stored prompt (JSON), with the sources and the text that `readable` admits now.

    `filed` has the present tags of the memories, facts and landmarks among the `refiled_ids` that may be read. A source
    that may not be read any more is left out.
    """
    recalled = sum(len(section["sources"]) for section in prompt["sections"] if section["name"] == RECALL)
    first_marks = {RECALL: 1, TOOLS: recalled + 1}  # the marks of what tools brought continue those of RECALL
    shown = [_explained(s, readable, filed, first_marks.get(s["name"], 0)) for s in prompt["sections"]]
    counts = {section["name"]: len(section["sources"]) for section in prompt["sections"]}
    in_view = all(len(s.sources) == counts[s.name] for s in shown if s.name in (WORKING, MESSAGE))
    # CONTEXT names those who speak in the view, so it is shown with the view or not at all.
    return [s if s.name != CONTEXT or in_view else ExplainedSection(s.name, s.tokens, s.sources) for s in shown]


def explain_tools(prompt: Mapping[str, Any], sections: Sequence[ExplainedSection]) -> list[UsedTool]:
    """The memory tools that the model of a stored prompt called. A model writes arguments from all that it has read, so
    they are shown only if all of it may be read now; marks, only of sources that may be."""
    known = {source.mark for section in sections for source in section.sources}
    counts = {section["name"]: len(section["sources"]) for section in prompt["sections"]}
    whole = all(len(section.sources) == counts[section.name] for section in sections)
    return [_explained_tool(used, known, whole=whole) for used in prompt.get("tools", ())]


def _explained_tool(used: Mapping[str, Any], known: Collection[str], *, whole: bool) -> UsedTool:
    marks = tuple(mark for mark in used["marks"] if mark in known)
    outcome = used["outcome"] if marks or not used["marks"] else CALL_FOUND_NOTHING
    return UsedTool(used["name"], used["arguments"] if whole else _NOT_SHOWN, marks, outcome)


def readable_messages(prompt: Mapping[str, Any], sections: Sequence[ExplainedSection]) -> list[ChatMessage]:
    """The chat messages of a stored prompt: exactly as they were sent, if all of it may be read now, else put together
    again from the text of `sections` that may be."""
    text = {section.name: section.text for section in sections}
    if all(text[section["name"]] == section["text"] for section in prompt["sections"]):
        return [ChatMessage(each["role"], each["content"]) for each in prompt["role_messages"]]
    first = ChatMessage(prompt["role_messages"][0]["role"], text.get(SYSTEM, ""))
    opening, closing = (
        "\n\n".join(text[n] for n in names if text.get(n)) for names in (OPENING, (*CLOSING_SECTIONS, TOOLS))
    )
    data = (ChatMessage("user", part) for part in (opening, text.get(WORKING, ""), closing))
    whole = (first, *data)
    return [message for message in whole if message.content]


def _explained(
    section: Mapping[str, Any], readable: Readable, filed: Mapping[uuid.UUID, Tagged], first_mark: int
) -> ExplainedSection:
    """One section. A text that can't be divided among its sources is shown with all of them, or not at all."""
    stored, name = section["sources"], section["name"]
    heading, *items = _ITEM.split(section["text"])
    divided = len(items) == len(stored) and name not in (WORKING, RELATED, MESSAGE)
    lines = [item.rstrip("\n") for item in items] if divided else [""] * len(stored)
    admitted = [_admitted(source, readable, filed) for source in stored]
    sources = tuple(
        ExplainedSource(
            mark=f"s{number}" if first_mark else "",
            layer=source["layer"],
            kind=source["kind"],
            messages=tuple(source["messages"]),
            score=source["score"],
            reasons=source["reasons"],
            text=line,
            id=uuid.UUID(source["id"]),
            came_from=source.get("from", ""),
            at=datetime.fromisoformat(source["at"]) if "at" in source else None,
            who=source.get("who", ""),
            said=said_in(line, source["kind"]),
        )
        for number, (source, line, ok) in enumerate(zip(stored, lines, admitted, strict=True), first_mark)
        if ok
    )
    text = section["text"]
    if not all(admitted):
        text = "".join((heading, "\n".join(source.text for source in sources))) if divided and sources else ""
    return ExplainedSection(name, section["tokens"], sources, text)


def _admitted(source: Mapping[str, Any], readable: Readable, filed: Mapping[uuid.UUID, Tagged]) -> bool:
    if can_be_refiled(source["layer"], source["kind"]):
        now = filed.get(uuid.UUID(source["id"]))
        return now is not None and readable.admits(now)
    user = source["user_id"]
    owner = None if user is None else uuid.UUID(user)
    return readable.admits(_StoredTag(source["namespace"], Visibility(source["visibility"]), owner))


def can_be_refiled(layer: str, kind: str) -> bool:
    """Whether a source of this layer and kind is a memory, a fact or a landmark: its owner may file it elsewhere."""
    return layer == "structured" or (layer == "semantic" and kind not in ("episode", "summary"))


def _sources(prompt: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (source for section in prompt["sections"] for source in section["sources"])

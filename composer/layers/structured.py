"""The structured layer: every fact and landmark that the viewer may read, exactly as stored."""

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from composer.model import GLOBAL_NAMESPACE, Item
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.repositories.structured import Structured, StructuredRows
from composer.text.cleaning import clean_text, shorten
from composer.text.names import in_quotes, speaker_label
from composer.visibility import Readable

NO_ORIGINS: Final[Mapping[str, str]] = {}
_PLAIN_KEY = re.compile(r"[\w.\-/:@+]+")


async def read(
    structured: Structured, readable: Readable, at: datetime, people: Sequence[uuid.UUID] = ()
) -> StructuredRows:
    """The facts valid at a time, by key, and the landmarks, oldest first, each checked against `readable` again; and
    the names of `people`."""
    found = await structured.read(readable, at, people)
    return replace(
        found,
        facts=[fact for fact in found.facts if readable.admits(fact)],
        landmarks=[landmark for landmark in found.landmarks if readable.admits(landmark)],
    )


def differing(facts: Sequence[Fact]) -> dict[uuid.UUID, Fact]:
    """The newest fact of each key with several values that hold at once, by the id of each fact of that key: the room
    says one thing and its project another. Facts about two people are of two things."""
    by_key = defaultdict[tuple[str, str], list[Fact]](list)
    for fact in facts:
        by_key[fact.key, fact.namespace if fact.namespace.startswith("profile:") else ""].append(fact)
    newest = dict[uuid.UUID, Fact]()
    for several in by_key.values():
        if len({fact.value for fact in several}) > 1:
            latest = max(several, key=lambda fact: (fact.valid_from, str(fact.id)))
            newest |= {fact.id: latest for fact in several}
    return newest


def fact_items(facts: Sequence[Fact], origins: Mapping[str, str] = NO_ORIGINS) -> list[Item]:
    """Facts as lines of the prompt, by where each came from. Where several values of a key hold, each line says so."""
    newest = differing(facts)
    return [fact_item(fact, origins.get(fact.namespace, ""), newest.get(fact.id)) for fact in facts]


def plain_value(value: str) -> str:
    """The value of a fact, which is JSON, as people write it: a text without its quotes."""
    found = json.loads(value)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def fact_item(fact: Fact, came_from: str = "", newest: Fact | None = None, longest: int | None = None) -> Item:
    """A fact as a line of the prompt; the line says whom or what it is about, which includes where it came from.
    `newest`: the newest of several values of its key that hold at once. `longest`: at most so many characters of the
    value."""
    value = json.dumps(json.loads(fact.value), ensure_ascii=False)
    value = value if longest is None else shorten(value, longest)
    key = fact.key if _PLAIN_KEY.fullmatch(fact.key) else in_quotes(fact.key)
    subject = f"about {speaker_label(fact.subject)}" if fact.subject else fact_subject(fact)
    conflict = ""
    if newest is not None:
        conflict = f"; conflicts with another value, {'this is newer' if fact is newest else 'that is newer'}"
    text = f"- {key} = {value} ({subject}; {speaker_label(fact.author)}, {fact.valid_from:%Y-%m-%d}{conflict})"
    return Item(
        layer="structured",
        kind="fact",
        id=str(fact.id),
        text=text,
        at=fact.valid_from,
        namespace=fact.namespace,
        visibility=fact.visibility,
        user_id=fact.user_id,
        author=fact.author,
        came_from=came_from,
    )


def landmark_item(landmark: Landmark, came_from: str = "", longest: int | None = None) -> Item:
    """A landmark as a line of the prompt, with the scope that it came from if not this one; at most `longest`
    characters of its text."""
    one_line = " ".join(clean_text(landmark.text).split())
    one_line = one_line if longest is None else shorten(one_line, longest)
    proposed = "proposed" if landmark.state is LandmarkState.PROPOSED else ""
    about = ", ".join(part for part in (proposed, came_from) if part)
    text = (
        f"- {landmark.decided_at:%Y-%m-%d} {speaker_label(landmark.author)}{f' ({about})' if about else ''}: {one_line}"
    )
    return Item(
        layer="structured",
        kind="landmark",
        id=str(landmark.id),
        text=text,
        at=landmark.decided_at,
        namespace=landmark.namespace,
        visibility=landmark.visibility,
        user_id=landmark.user_id,
        author=landmark.author,
        messages=landmark.messages,
        came_from=came_from,
    )


def fact_subject(fact: Fact) -> str:
    """Whom or what a fact is about, as a phrase for a prompt or an answer."""
    if fact.subject:
        return f"about {fact.subject}"
    if fact.namespace == GLOBAL_NAMESPACE:
        return "for everyone"
    return {"room": "this room", "dm": "private", "session": "private", "project": "this project"}.get(
        fact.namespace.partition(":")[0], "about a person"
    )

"""The structured layer: facts and landmarks, exact, every one that the viewer may read."""

import json
from datetime import datetime

from composer.model import GLOBAL_NAMESPACE, Item
from composer.repositories.facts import Fact, Facts
from composer.repositories.landmarks import Landmark, Landmarks, LandmarkState
from composer.visibility import Readable


async def read(
    facts: Facts, landmarks: Landmarks, readable: Readable, at: datetime
) -> tuple[list[Fact], list[Landmark]]:
    """Facts that are valid at a time, by key, and landmarks, oldest first; each checked again."""
    found = [fact for fact in await facts.find(readable, at) if readable.admits(fact)]
    return found, [landmark for landmark in await landmarks.find(readable, at) if readable.admits(landmark)]


def fact_item(fact: Fact) -> Item:
    """A fact as a finished line of the prompt."""
    value = json.dumps(json.loads(fact.value), ensure_ascii=False)
    text = f"- {fact.key} = {value} ({about(fact)}; {fact.author}, {fact.valid_from:%Y-%m-%d})"
    return Item(
        "structured",
        "fact",
        str(fact.id),
        text,
        fact.valid_from,
        fact.namespace,
        fact.visibility,
        fact.user_id,
        author=fact.author,
    )


def landmark_item(landmark: Landmark) -> Item:
    """A landmark as a finished line of the prompt."""
    words = " ".join(landmark.text.split())
    proposed = " (proposed)" if landmark.state is LandmarkState.PROPOSED else ""
    text = f"- {landmark.decided_at:%Y-%m-%d} {landmark.author}{proposed}: {words}"
    return Item(
        "structured",
        "landmark",
        str(landmark.id),
        text,
        landmark.decided_at,
        landmark.namespace,
        landmark.visibility,
        landmark.user_id,
        author=landmark.author,
        messages=landmark.messages,
    )


def about(fact: Fact) -> str:
    """What a fact is about, in words for a prompt or an answer."""
    if fact.subject:
        return f"about {fact.subject}"
    if fact.namespace == GLOBAL_NAMESPACE:
        return "for everyone"
    return {"room": "this room", "dm": "private", "session": "private", "project": "this project"}.get(
        fact.namespace.partition(":")[0], "about a person"
    )

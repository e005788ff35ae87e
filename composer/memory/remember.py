"""Explicit writes: what a person or a tool says to keep is kept exactly as sent; no model touches it."""

import json
import uuid
from datetime import datetime
from typing import Final

from composer.errors import BadInput
from composer.memory.index import index_entry
from composer.model import derived_id
from composer.repositories.database import Transaction
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.repositories.memories import NewMemory
from composer.visibility import AccessTag

LONGEST_STATEMENT: Final = 100_000  # characters
LONGEST_KEY: Final = 200


async def remember(
    tx: Transaction, mark: AccessTag, text: str, author: str, origin: str, event: str, now: datetime
) -> uuid.UUID:
    """Keep a statement. `event` names the request: the same one again keeps nothing twice."""
    memory = NewMemory(
        derived_id("memory", str(mark.user_id), event),
        mark,
        None,
        "note",
        _statement(text, "remember"),
        author,
        origin,
        now,
    )
    if await tx.memories.add([memory]):
        await tx.recall.index([], [index_entry(memory)], [])
    return memory.id


async def set_fact(
    tx: Transaction, mark: AccessTag, key: str, value: str, author: str, origin: str, event: str, now: datetime
) -> Fact:
    """Let a key have a value from now on. Raises BadInput when `value` is no JSON or `key` no key."""
    if not key or len(key) > LONGEST_KEY or any(character.isspace() for character in key):
        raise BadInput(f"A fact's key is one word of at most {LONGEST_KEY} characters.")
    try:
        parsed = json.loads(value)
    except ValueError:
        hint = json.dumps(value, ensure_ascii=False)
        raise BadInput(f"The value {_short(value)} is not JSON; for a text write {_short(hint)}.") from None
    stored = json.dumps(parsed, ensure_ascii=False, allow_nan=False) if _finite(parsed) else None
    if stored is None or "\\u0000" in stored:
        raise BadInput(f"The value {_short(value)} is not JSON that can be kept: no NaN, no infinity, no NUL.")
    id = derived_id("fact", mark.namespace, str(mark.user_id), key, event)
    fact = Fact(id, mark.namespace, mark.visibility, mark.user_id, key, stored, author, now)
    await tx.facts.add(id, mark, None, fact, origin)
    return fact


async def add_landmark(tx: Transaction, mark: AccessTag, text: str, author: str, event: str, now: datetime) -> Landmark:
    """Pin a decision."""
    id = derived_id("landmark", mark.namespace, str(mark.user_id), event)
    landmark = Landmark(
        id, mark.namespace, mark.visibility, mark.user_id, _statement(text, "landmark add"), author, now
    )
    await tx.landmarks.add([landmark])
    return landmark


async def amend_landmark(
    tx: Transaction, before: Landmark, text: str, by: str, user: uuid.UUID, event: str, now: datetime
) -> Landmark:
    """Put a new version in the place of a pinned or proposed decision; the one before it is kept, and retired.

    Raises BadInput when it was retired meanwhile.
    """
    id = derived_id("landmark", before.namespace, str(before.id), event)
    words, source = _statement(text, "landmark amend ID"), (("landmark", before.id),)
    landmark = Landmark(
        id, before.namespace, before.visibility, user, words, by, now, replaces=before.id, sources=source
    )
    await set_landmark_state(tx, before, LandmarkState.RETIRED, by, now)
    await tx.landmarks.add([landmark])
    return landmark


async def set_landmark_state(tx: Transaction, landmark: Landmark, state: LandmarkState, by: str, now: datetime) -> None:
    """Accept or retire a decision. Raises BadInput when it is so already, or was retired."""
    if not await tx.landmarks.set_state(landmark.id, state, by, now):
        raise BadInput(f"That landmark is {landmark.state} already.")


def _statement(text: str, command: str) -> str:
    statement = text.strip()
    if not statement:
        raise BadInput(f"What is it? For example: /nexus {command} we ship on Fridays")
    if len(statement) > LONGEST_STATEMENT:
        raise BadInput(f"That has {len(statement):,} characters; the most is {LONGEST_STATEMENT:,}.")
    return statement


def _finite(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"

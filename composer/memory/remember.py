"""Explicit writes by people and tools: notes, facts and landmarks, stored as sent, after composer/text/cleaning.py has
cleaned them and composer/text/masking.py has masked the secrets in them. No model touches them."""

import json
import math
import uuid
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Final

from composer.errors import BadInput, Refused
from composer.memory.index import memory_entries
from composer.memory.quarantine import pending_memory
from composer.model import Trust, Visibility, derived_id
from composer.repositories.database import Transaction
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.repositories.memories import NewMemory
from composer.repositories.quarantine import PendingItem
from composer.text.cleaning import clean_text, is_storable
from composer.text.for_oneself import is_plainly_for_oneself
from composer.text.masking import mask
from composer.text.notices import NOT_FOR_ONE
from composer.visibility import AccessTag

MAX_STATEMENT_CHARS: Final = 100_000
MAX_FACT_KEY_CHARS: Final = 200
MAX_VALUE_DEPTH: Final = 20  # levels of lists and objects in a fact's value
MAX_QUOTED_CHARS: Final = 60  # of a value in an error
UNSTORABLE: Final = "contains a character that cannot be stored (NUL, or a broken emoji): remove it."


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes. `needs_approval`: what they write waits in quarantine until somebody approves it. `agent`: the one
    that writes for them, if they don't write themselves."""

    name: str
    trust: Trust = Trust.MEMBER
    needs_approval: bool = False
    agent: uuid.UUID | None = None


async def remember(
    tx: Transaction, tag: AccessTag, text: str, author: Author, origin: str, event: str, now: datetime
) -> NewMemory:
    """Store a note, and return it as it is stored. `event` identifies the request: repeating it stores nothing more.

    Raises Refused when `text` is for its author alone, and others would read it.
    """
    require_its_readers(tag, text)
    memory = NewMemory(
        id=derived_id("memory", str(tag.user_id), event),
        tag=tag,
        agent_id=author.agent,
        kind="note",
        text=_statement(text, "remember"),
        author=author.name,
        origin=origin,
        at=now,
        trust=author.trust,
    )
    if author.needs_approval:
        await tx.quarantine.add([pending_memory(memory)])
    elif await tx.memories.add([memory]):
        await tx.recall.index([], memory_entries(memory), [])
    return memory


async def set_fact(
    tx: Transaction, tag: AccessTag, key: str, value: str, author: Author, origin: str, event: str, now: datetime
) -> Fact:
    """Set a fact: `key` has the JSON `value` from `now` on.

    Raises Refused as `remember`, and BadInput when `value` is not JSON, holds a number that can't be kept, or is nested
    too deeply, or `key` is empty, too long, quoted or not one word.
    """
    require_its_readers(tag, value)
    if not is_storable(key + value):
        raise BadInput(f"The fact {UNSTORABLE}")
    key = clean_text(key)
    if not key or len(key) > MAX_FACT_KEY_CHARS or any(character.isspace() for character in key):
        raise BadInput(f"A fact's key is one word of at most {MAX_FACT_KEY_CHARS} characters.")
    if key.startswith(("'", '"')):
        raise BadInput("A fact's key is one word without quotes: join its words with _, as in deploy_day.")
    try:
        parsed = clean_value(parse_value(value))
    except ValueError as error:
        hint, number = json.dumps(value, ensure_ascii=False), isinstance(error, InexactNumber)
        wrong = f"has a number that can't be kept as it is: {_short(str(error))}" if number else "is not JSON"
        raise BadInput(f"The value {_short(value)} {wrong}. To store it as text, write {_short(hint)}.") from None
    if not _is_finite(parsed):
        raise BadInput(f"The value {_short(value)} can't be stored: it must not hold NaN or infinity.")
    stored = json.dumps(_masked_value(parsed), ensure_ascii=False)
    id = derived_id("fact", tag.namespace, str(tag.user_id), key, event)
    fact = Fact(
        id=id,
        namespace=tag.namespace,
        visibility=tag.visibility,
        user_id=tag.user_id,
        key=key,
        value=stored,
        author=author.name,
        valid_from=now,
        trust=author.trust,
    )
    if author.needs_approval:
        await tx.quarantine.add([PendingItem("fact", id, tag, author.trust, key, stored, author.name, origin, now)])
    else:
        await tx.facts.add(id, tag, author.agent, fact, origin)
    return fact


async def add_landmark(
    tx: Transaction, tag: AccessTag, text: str, author: Author, origin: str, event: str, now: datetime
) -> Landmark:
    """Pin a decision. Raises BadInput when `text` is empty or too long, and Refused as `remember`."""
    require_its_readers(tag, text)
    id = derived_id("landmark", tag.namespace, str(tag.user_id), event)
    landmark = Landmark(
        id=id,
        namespace=tag.namespace,
        visibility=tag.visibility,
        user_id=tag.user_id,
        text=_statement(text, "landmark add"),
        author=author.name,
        decided_at=now,
        trust=author.trust,
    )
    if author.needs_approval:
        pending = PendingItem("landmark", id, tag, author.trust, "", landmark.text, author.name, origin, now)
        await tx.quarantine.add([pending])
    else:
        await tx.landmarks.add([landmark])
    return landmark


async def amend_landmark(
    tx: Transaction, before: Landmark, text: str, by: str, user: uuid.UUID, event: str, now: datetime
) -> Landmark:
    """Pin a new version of a decision, and retire the version before it.

    Raises BadInput when that was retired or erased meanwhile.
    """
    id = derived_id("landmark", before.namespace, str(before.id), event)
    landmark = Landmark(
        id=id,
        namespace=before.namespace,
        visibility=before.visibility,
        user_id=user,
        text=_statement(text, "landmark amend ID"),
        author=by,
        decided_at=now,
        replaces=before.id,
        sources=(("landmark", before.id),),
    )
    await set_landmark_state(tx, before, LandmarkState.RETIRED, by, now)
    await tx.landmarks.add([landmark])
    return landmark


async def set_landmark_state(tx: Transaction, landmark: Landmark, state: LandmarkState, by: str, now: datetime) -> None:
    """Pin or retire a decision. Raises BadInput when it is in that state already, or was retired or erased."""
    if await tx.landmarks.set_state(landmark.id, state, by, now):
        return
    if landmark.state is state:
        raise BadInput(f"That landmark is {state} already; /nexus landmark list --retired shows all.")
    raise BadInput("That landmark was retired or erased meanwhile; /nexus landmark list --retired shows all.")


def require_its_readers(tag: AccessTag, text: str) -> None:
    """Raise Refused if a text is plainly for its author alone, and others would read what is filed there."""
    if tag.visibility is not Visibility.PRIVATE and is_plainly_for_oneself(text):
        raise Refused(NOT_FOR_ONE)


def _statement(text: str, command: str) -> str:
    if not is_storable(text):
        raise BadInput(f"The text {UNSTORABLE}")
    statement = clean_text(text).strip()
    if not statement:
        raise BadInput(f"The text is missing. For example: /nexus {command} we ship on Fridays.")
    if len(statement) > MAX_STATEMENT_CHARS:
        raise BadInput(f"The text has {len(statement):,} characters; the limit is {MAX_STATEMENT_CHARS:,}: shorten it.")
    return mask(statement)


def _masked_value(value: object) -> object:
    """A JSON value with the secrets in its texts, and numbers of cards, masked (composer/text/masking.py)."""
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(key): _masked_value(item) for key, item in value.items()}
        case list():
            return [_masked_value(item) for item in value]
        case int() if not isinstance(value, bool):
            masked = mask(str(value))
            return value if masked == str(value) else masked
    return value


def parse_value(text: str) -> object:
    """The JSON value that a text is. Raises ValueError when it is none, InexactNumber (a ValueError) when a number in
    it can't be kept, BadInput when it is nested too deeply."""
    try:
        value: object = json.loads(text, parse_float=exact_float, parse_int=exact_int)
    except RecursionError:
        value, too_deep = None, True
    else:
        too_deep = not _within_depth(value, MAX_VALUE_DEPTH)
    if too_deep:
        raise BadInput(f"A fact's value may have lists and objects in {MAX_VALUE_DEPTH} levels; this one has more.")
    return value


class InexactNumber(ValueError):
    """A number of JSON that would be stored as another one, without its sign, or without the zeros at its end."""


def exact_float(text: str) -> float:
    """The number that a text is in JSON. Raises InexactNumber for 1e-400 and 0.1234567890123456789, which no float is,
    for 1.10 and 1.10e0, which may be a version and not 1.1, and for -0.0, which is stored as 0.0."""
    number, digits = float(text), text.lower().partition("e")[0]
    loses_zeros = "." in digits and digits.endswith("0") and not digits.endswith(".0")
    loses_sign = number == 0 and text.startswith("-")
    try:
        kept = math.isfinite(number) and not (loses_zeros or loses_sign) and Decimal(text) == Decimal(repr(number))
    except InvalidOperation:  # an exponent of twenty digits
        kept = False
    if not kept:
        raise InexactNumber(text)
    return number


def exact_int(text: str) -> int:
    """The whole number that a text is in JSON. Raises InexactNumber for -0, and ValueError for more digits than Python
    reads."""
    number = int(text)
    if number == 0 and text.startswith("-"):
        raise InexactNumber(text)
    return number


def _within_depth(value: object, levels: int) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return items is None or (levels > 0 and all(_within_depth(item, levels - 1) for item in items))


def clean_value(value: object) -> object:
    """A fact's JSON value with its texts and keys cleaned. Escapes such as \\u0000 may have hidden characters in them.

    Raises BadInput for a text that can't be stored.
    """
    match value:
        case str():
            if not is_storable(value):
                raise BadInput(f"The value {UNSTORABLE}")
            return clean_text(value)
        case list():
            return [clean_value(item) for item in value]
        case dict():
            return {str(clean_value(key)): clean_value(item) for key, item in value.items()}
    return value


def _is_finite(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _short(text: str) -> str:
    return text if len(text) <= MAX_QUOTED_CHARS else text[: MAX_QUOTED_CHARS - 1] + "…"

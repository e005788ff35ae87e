"""What somebody wants an entry to say: checked, cleaned and masked before it is stored. Pure.

`content` is stored exactly as sent; only what a database can't store is refused. What recall shows of it is made here,
by the gate that all of people's text goes through (composer/text/cleaning.py, composer/text/masking.py).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypedDict

from composer.errors import BadInput
from composer.memory.entry_index import MAX_METADATA_BYTES
from composer.repositories.entries import ANY_VENDOR, PERSON, EntryValues
from composer.settings import VENDOR_RULE, is_vendor
from composer.text.cleaning import clean_line, clean_text, is_storable
from composer.text.masking import mask
from composer.text.moments import moment

ENTRY_KINDS: Final = (
    *("factual", "episodic", "procedural", "semantic", "note"),
    *("preference", "habit", "decision", "action item", "fact"),  # those that are extracted from messages
)
MAX_CONTENT_BYTES: Final = 100_000
MAX_TITLE_CHARS: Final = 200
MAX_ENTRY_KEY_CHARS: Final = 200
MAX_SESSION_CHARS: Final = 200
MAX_TAGS: Final = 32
MAX_TAG_CHARS: Final = 64
MAX_VENDORS: Final = 32
MAX_METADATA_DEPTH: Final = 5
API_ORIGIN: Final = PERSON
OWN_KEY: Final = "gateway"  # of what is learnt from requests with a person's own key: no tool has this name
_READERS: Final = ("nexus", OWN_KEY)  # that are no tools: the bot, and nobody but the person


class SentEntry(TypedDict, total=False):
    """What somebody sends of an entry: of a new one its content and what else they say, of one that is there what to
    change; the rest stays. A `title` or an `expires_at` of None takes it away. `metadata` replaces all of it. `vendors`
    may read it besides the person themselves; `*` means every tool, as it does of a new one without any, except that an
    entry with the same key keeps its own."""

    content: str
    title: str | None
    kind: str
    key: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    session: str | None
    vendors: Sequence[str]
    expires_at: datetime | None


EMPTY: Final = EntryValues(text="")


def check_entry(sent: SentEntry, now: datetime, before: EntryValues = EMPTY) -> EntryValues:
    """The values of a new entry, or those that it had `before`, after a change. Raises BadInput with one sentence for
    the first thing that is wrong."""
    content = _content(sent["content"]) if "content" in sent else before.whole
    title = _title(sent["title"]) if "title" in sent else before.title
    if (content, title) != (before.whole, before.title):
        text = recalled_text(title, content)
        before = replace(before, text=text, content=None if content == text else content, title=title)
    given: Mapping[str, object] = sent
    asked = [name for name in given if name != "kind" or given[name] != before.kind]
    return replace(before, **{name: check(given[name], now) for name, check in _CHECKS.items() if name in asked})


def recalled_text(title: str | None, content: str) -> str:
    """What recall shows of an entry: its title, if it was given one, over its content."""
    text = mask(clean_text(content)).strip()
    return text if title is None else f"{title}\n{text}"


def vendor_name(name: str) -> str:
    """The name of a tool, in lower case. Raises BadInput for what is none, or means something else here."""
    found = clean_line(name).lower()
    if not is_vendor(found):
        raise BadInput(f"In allowed_vendors, {VENDOR_RULE}.")
    return found


def _content(content: str) -> str:
    _require_storable(content, "content")
    size = len(content.encode())
    if size > MAX_CONTENT_BYTES:
        raise BadInput(f"The content has {size:,} bytes; the limit is {MAX_CONTENT_BYTES:,}: write several entries.")
    if not clean_text(content).strip():
        raise BadInput("The content is empty: write what is to be remembered.")
    return content


def _title(title: str | None) -> str | None:
    if title is None:
        return None
    _require_storable(title, "title")
    if len(title) > MAX_TITLE_CHARS:
        raise BadInput(f"The title has {len(title):,} characters; the limit is {MAX_TITLE_CHARS}: shorten it.")
    return mask(clean_line(title, MAX_TITLE_CHARS)) or None


def _kind(kind: str) -> str:
    if kind not in ENTRY_KINDS:
        raise BadInput(f"The kind of an entry is one of: {', '.join(ENTRY_KINDS)}.")
    return kind


def _word(word: str | None, name: str, limit: int) -> str | None:
    if word is None:
        return None
    _require_storable(word, name)
    found = clean_line(word, limit + 1)
    if not found or len(word) > limit:
        raise BadInput(f"The {name} is a text of 1 to {limit} characters; leave it out for none.")
    return found


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    if len(tags) > MAX_TAGS:
        raise BadInput(f"An entry has at most {MAX_TAGS} tags; these are {len(tags):,}.")
    found = []
    for tag in tags:
        _require_storable(tag, "tag")
        word = clean_line(tag, MAX_TAG_CHARS + 1)
        if not word or len(tag) > MAX_TAG_CHARS:
            raise BadInput(f"A tag is a text of 1 to {MAX_TAG_CHARS} characters.")
        found.append(word)
    return tuple(dict.fromkeys(found))


def _vendors(vendors: Sequence[str]) -> tuple[str, ...]:
    if "*" in vendors:
        return ANY_VENDOR
    if not vendors or len(vendors) > MAX_VENDORS:
        raise BadInput(f"allowed_vendors is * for every tool, or the names of 1 to {MAX_VENDORS} tools.")
    return tuple(sorted({name if name in _READERS else vendor_name(name) for name in vendors}))


def _expiry(expires_at: datetime | None, now: datetime) -> datetime | None:
    if expires_at is None:
        return None
    expires_at = moment(expires_at)
    if expires_at <= now:
        raise BadInput("The expiry is a time that is over: give a later one, or none.")
    return expires_at


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    if not _within(metadata, MAX_METADATA_DEPTH):
        raise BadInput(f"The metadata may have lists and objects in {MAX_METADATA_DEPTH} levels; it has more.")
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        raise BadInput("The metadata is an object of JSON, without NaN and infinity.") from None
    _require_storable(text, "metadata")
    if "\\u0000" in text.replace("\\\\", ""):
        raise BadInput("The metadata contains a character that cannot be stored (NUL, or a broken emoji): remove it.")
    if len(text.encode()) > MAX_METADATA_BYTES:
        raise BadInput(f"The metadata has more than {MAX_METADATA_BYTES:,} bytes: keep large values in the content.")
    found: dict[str, Any] = json.loads(text)
    return found


def _within(value: object, levels: int) -> bool:
    """Whether a JSON value has at most so many levels of lists and objects."""
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else None
    return inside is None or (levels > 0 and all(_within(item, levels - 1) for item in inside))


def _require_storable(text: str, name: str) -> None:
    if not is_storable(text):
        raise BadInput(f"The {name} contains a character that cannot be stored (NUL, or a broken emoji): remove it.")


# What an entry has besides its content and title, in the order in which it is checked.
_CHECKS: Final[Mapping[str, Callable[[Any, datetime], Any]]] = {
    "kind": lambda kind, _: _kind(kind),
    "key": lambda key, _: _word(key, "key", MAX_ENTRY_KEY_CHARS),
    "tags": lambda tags, _: _tags(tags),
    "metadata": lambda metadata, _: _metadata(metadata),
    "session": lambda session, _: _word(session, "session", MAX_SESSION_CHARS),
    "vendors": lambda vendors, _: _vendors(vendors),
    "expires_at": _expiry,
}

"""What an import would make of each entry of a document, held against what is there. Nothing is written here."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar

from composer import visibility
from composer.entries import keys as keys_of_entries
from composer.entries.draft import API_ORIGIN, SentEntry, check_entry
from composer.entries.entries import Writer
from composer.entries.listing import own_scope
from composer.errors import BadInput, NexusError, Refused
from composer.model import Trust, derived_id, entries_namespace
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry, EntryValues
from composer.settings import is_vendor
from composer.text.moments import moment
from composer.text.names import tool_name
from composer.text.work import off_loop
from composer.visibility import EntryAccess

T = TypeVar("T")

CHARS_PER_ENTRY: Final = (
    8  # that are read in the time of planning an entry (see off_loop): a portion is planned at once
)
MAX_FORGOTTEN_ENTRIES: Final = 100  # times that one entry was imported and forgotten again


@dataclass(frozen=True, slots=True)
class ImportedEntry:
    """An entry of a document. `id`: the one that it was exported from (None: written by hand). `origin`: who wrote it,
    as the export says."""

    sent: SentEntry
    id: uuid.UUID | None = None
    origin: str = API_ORIGIN
    created_at: datetime | None = None
    trashed: bool = False


class Outcome(StrEnum):
    """What became of an entry of a document. Expired: its time was over, and it was left out."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Planned:
    """An entry of a document that was checked. `new` is what it would be stored as, `existing` the one that it is."""

    place: str
    item: ImportedEntry
    new: Entry
    existing: Entry | None
    outcome: Outcome

    @property
    def id(self) -> uuid.UUID:
        """The id that it has here."""
        return (self.existing or self.new).id


def check_document(items: Sequence[ImportedEntry], now: datetime) -> list[EntryValues]:
    """The values of each entry. One whose time is over keeps its expiry, which a new entry may not have. Raises
    BadInput, with the place in the document."""
    found: list[EntryValues] = []
    for number, item in enumerate(items):
        try:
            expiry = item.sent.get("expires_at")
            expiry = None if expiry is None else moment(expiry)
            if item.created_at is not None:
                moment(item.created_at)
            over = expiry is not None and expiry <= now
            values = check_entry({**item.sent, "expires_at": None if over else expiry}, now)
        except BadInput as error:
            raise BadInput(f"`{_place(number)}` is wrong: {error}") from None
        found.append(replace(values, expires_at=expiry))
    _require_distinct(items, found)
    return found


def _require_distinct(items: Sequence[ImportedEntry], values: Sequence[EntryValues]) -> None:
    """Two of one id, or of one key and writer, would replace each other."""
    first: dict[object, int] = {}
    for number, (item, each) in enumerate(zip(items, values, strict=True)):
        names: list[object] = [] if item.id is None else [item.id]
        names += [(_origin(item), each.key)] if each.key is not None and not item.trashed else []
        for name in names:
            if name in first:
                what = "id" if name == item.id else "key"
                raise BadInput(f"`{_place(number)}` has the {what} of `{_place(first[name])}`: leave one of them out.")
            first[name] = number


async def plan_import(
    tx: Transaction,
    access: EntryAccess,
    items: Sequence[ImportedEntry],
    values: Sequence[EntryValues],
    writer: Writer,
    now: datetime,
) -> list[Planned]:
    """What would become of each entry, by the facts of this moment. `values` are those that `check_document` gave.
    Raises BadInput and Refused for one that can't be replaced."""
    new = await _new_entries(tx, access, items, values, writer, now)
    known = await _Known.gathered(tx, access, items, new, now)
    return await _off_loop(items, lambda: _planned(access, items, new, known, now))


async def _off_loop(items: Sequence[ImportedEntry], work: Callable[[], T]) -> T:
    """What a pure function makes of all entries of a document: of more than a portion, beside the event loop."""
    return await off_loop(len(items) * CHARS_PER_ENTRY, work)


def _planned(
    access: EntryAccess, items: Sequence[ImportedEntry], new: Sequence[Entry], known: "_Known", now: datetime
) -> list[Planned]:
    found = []
    for number, (item, entry) in enumerate(zip(items, new, strict=True)):
        existing = known.find(item, entry)
        if existing is not None and "vendors" not in item.sent:
            entry = replace(entry, values=replace(entry.values, vendors=existing.vendors))
        outcome = _outcome(item, entry, existing, now)
        if outcome is Outcome.REPLACED and existing is not None:
            _require_replaceable(access, _place(number), entry, existing, known)
        found.append(Planned(_place(number), item, entry, existing, outcome))
    return found


def _outcome(item: ImportedEntry, entry: Entry, existing: Entry | None, now: datetime) -> Outcome:
    """A document takes nothing away: what it has in the trash changes nothing that is there."""
    same = existing is not None and existing.values.equals(entry.values)
    if entry.has_expired(now) and not same:
        return Outcome.EXPIRED
    if existing is None:
        return Outcome.CREATED
    if item.trashed or (existing.trashed_at is None and same):
        return Outcome.UNCHANGED
    return Outcome.REPLACED


def _require_replaceable(access: EntryAccess, place: str, entry: Entry, existing: Entry, known: "_Known") -> None:
    try:
        visibility.require_editable(access, existing)
    except NexusError as error:
        raise Refused(f"`{place}` can't be replaced: {error}") from None
    holder = known.by_key.get((existing.origin, entry.values.key))
    if holder is not None and holder.id != existing.id:
        raise BadInput(f"`{place}` has a key that another entry has by now: change one of them.")


async def _new_entries(
    tx: Transaction,
    access: EntryAccess,
    items: Sequence[ImportedEntry],
    values: Sequence[EntryValues],
    writer: Writer,
    now: datetime,
) -> list[Entry]:
    """What each entry would be stored as where it is new. Its id is one that was not forgotten."""
    tag = visibility.unshared_tag(access.user)
    names = await _off_loop(items, lambda: [_name(item, each) for item, each in zip(items, values, strict=True)])
    ids: dict[str, uuid.UUID] = {}
    wanted = dict.fromkeys(names)
    for attempt in range(MAX_FORGOTTEN_ENTRIES):
        tried = await _off_loop(items, partial(_ids, access.user, wanted, attempt))
        gone = await tx.erasure.erased_ids(list(tried.values()))
        ids |= {name: id for name, id in tried.items() if id not in gone}
        wanted = {name: None for name, id in tried.items() if id in gone}
        if not wanted:
            break
    else:
        raise BadInput("The document has an entry that was imported and forgotten too often: write it anew.")

    def entry_of(name: str, item: ImportedEntry, each: EntryValues) -> Entry:
        origin, at = _origin(item), min(now, now if item.created_at is None else moment(item.created_at))
        author = writer.name if origin == API_ORIGIN else tool_name(writer.name, origin)
        trust = writer.trust if origin == API_ORIGIN else Trust.TOOL
        return Entry(ids[name], tag, each, author, origin, trust, at, size=len(each.whole.encode()))

    return await _off_loop(items, lambda: list(map(entry_of, names, items, values)))


def _ids(user: uuid.UUID, names: Iterable[str], attempt: int) -> dict[str, uuid.UUID]:
    """The ids that entries would have, by what tells them apart."""
    return {name: derived_id("entry import", str(user), name, str(attempt)) for name in names}


@dataclass(frozen=True, slots=True)
class _Known:
    """The person's own entries that those of a document may be."""

    by_id: Mapping[uuid.UUID, Entry] = field(default_factory=dict)
    by_key: Mapping[tuple[str, str | None], Entry] = field(default_factory=dict)

    @classmethod
    async def gathered(
        cls, tx: Transaction, access: EntryAccess, items: Sequence[ImportedEntry], new: Sequence[Entry], now: datetime
    ) -> "_Known":
        ids = [item.id for item in items if item.id is not None] + [entry.id for entry in new]
        keys = [entry.values.key for entry in new if entry.values.key is not None]
        owned = visibility.owned_by_bearer(access)
        found = await tx.entries.find_own(own_scope(access), owned, ids, sorted(set(keys)))
        places = keys_of_entries.places_of_key(access, entries_namespace(access.user)).all_namespaces
        current = sorted((e for e in found if e.namespace in places and _is_current(e, now)), key=_age)
        return cls({entry.id: entry for entry in found}, {(e.origin, e.values.key): e for e in current})

    def find(self, item: ImportedEntry, entry: Entry) -> Entry | None:
        """The entry that one of the document is."""
        found = None if item.id is None else self.by_id.get(item.id)
        found = found or self.by_id.get(entry.id)
        if found is not None or entry.values.key is None or item.trashed:
            return found
        return self.by_key.get((entry.origin, entry.values.key))


def is_added(planned: Planned) -> bool:
    """Whether there is one entry more with it, which is not in the trash."""
    was_there = planned.existing is not None and planned.existing.trashed_at is None
    return planned.outcome in (Outcome.CREATED, Outcome.REPLACED) and not planned.item.trashed and not was_there


def _is_current(entry: Entry, now: datetime) -> bool:
    return entry.trashed_at is None and not entry.has_expired(now)


def _age(entry: Entry) -> tuple[datetime, uuid.UUID]:
    return entry.created_at, entry.id


def _place(number: int) -> str:
    return f"entries.{number}"


def _origin(item: ImportedEntry) -> str:
    """Who wrote it: a tool, or the person, for whom all else counts that an export may say."""
    return item.origin if is_vendor(item.origin) else API_ORIGIN


def _name(item: ImportedEntry, values: EntryValues) -> str:
    """What tells an entry of a document from all others: its id, else its key, else all that it says."""
    if item.id is not None:
        return f"id:{item.id}"
    if values.key is not None:
        return f"key:{_origin(item)}:{values.key}"
    said = json.dumps([values.text, values.kind, values.as_json()], ensure_ascii=False)
    return f"said:{sha256(said.encode()).hexdigest()}"

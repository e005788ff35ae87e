"""Take in entries from a document: all of them, or none where one is wrong.

An entry is the one that it was exported from where that is still there, or that an earlier import of it made. So a
document that is imported again stores nothing again. What is new is filed among the person's own entries, and shared
with nobody.
"""

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final

from composer import visibility
from composer.entries import keys as keys_of_entries
from composer.entries.draft import API, EntryDraft, checked
from composer.entries.entries import Writer, put_values, untrashed
from composer.entries.listing import own_scope
from composer.entries.quota import room_for_entries
from composer.errors import BadInput, NexusError, Refused
from composer.memory import entry_index
from composer.memory.forget import Receipt
from composer.model import Trust, derived_id, entries_namespace
from composer.moments import moment
from composer.repositories.audit import AuditAct
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry, EntryValues
from composer.settings import is_vendor
from composer.text.work import CLEANED_PER_READ, off_loop
from composer.visibility import EntryAccess, Grants

MAX_ENTRIES: Final = 1_000  # of one document
MAX_FORGOTTEN: Final = 100  # times that one entry was imported and forgotten again


@dataclass(frozen=True, slots=True)
class ImportedEntry:
    """An entry of a document. `id`: the one that it was exported from (None: written by hand). `origin`: who wrote it,
    as the export says."""

    draft: EntryDraft
    id: uuid.UUID | None = None
    origin: str = API
    created_at: datetime | None = None
    trashed: bool = False


class Outcome(StrEnum):
    """What became of an entry of a document. Expired: its time was over, and it was left out."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of each entry of a document, in its order, with the ids that they have here; and what was erased with
    words that are not there any more (for `app.forgotten`, after the commit)."""

    entries: Sequence[tuple[uuid.UUID, Outcome]]
    receipts: Sequence[Receipt] = ()

    @property
    def stored(self) -> int:
        """How many are stored anew, or changed."""
        return sum(outcome in (Outcome.CREATED, Outcome.REPLACED) for _, outcome in self.entries)

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """How many of each."""
        found = Counter(outcome for _, outcome in self.entries)
        return {outcome: found[outcome] for outcome in Outcome}


@dataclass(frozen=True, slots=True)
class _Planned:
    """An entry of a document that was checked. `new` is what it would be stored as, `existing` the one that it is."""

    place: str
    item: ImportedEntry
    new: Entry
    existing: Entry | None
    outcome: Outcome


async def import_entries(
    tx: Transaction,
    access: EntryAccess,
    items: Sequence[ImportedEntry],
    writer: Writer,
    now: datetime,
    *,
    dry_run: bool,
) -> Imported:
    """Store the entries of a document for the person. `dry_run`: only say what would become of them.

    Raises BadInput and Refused for the first entry that is wrong, which they name by its place in the document, and
    Refused for a tool or a key that may not, and EntriesFull where the plan has no room for all. Then nothing is
    stored.
    """
    _require_reading_and_writing(access)
    if len(items) > MAX_ENTRIES:
        raise BadInput(f"A document has at most {MAX_ENTRIES:,} entries; this one has {len(items):,}: divide it.")
    chars = sum(len(item.draft.content) for item in items)
    values = await off_loop(chars // CLEANED_PER_READ, lambda: _checked(items, now))
    _require_distinct(items, values)
    room = await room_for_entries(tx, writer.plan)
    for origin, key in sorted({(_origin(i), v.key) for i, v in zip(items, values, strict=True) if v.key is not None}):
        await tx.entries.lock_key(origin, key)
    await tx.summaries.lock()  # words may be erased; an erasure of the whole goes before, or finds the new ones
    planned = await _plan(tx, access, items, values, writer, now)
    room.require_room(sum(map(_is_added, planned)))
    receipts = [] if dry_run else [await _carry_out(tx, access, each, now) for each in planned]
    found = Imported([((each.existing or each.new).id, each.outcome) for each in planned], receipts)
    if not dry_run:
        counts = {str(outcome): count for outcome, count in found.counts.items()}
        await tx.audit.record(AuditAct.ENTRIES_IMPORTED, actor=access.user, details=counts)
    return found


def _require_reading_and_writing(access: EntryAccess) -> None:
    visibility.owned_by_bearer(access)
    visibility.entry_tag(access)
    if Grants.READ_ENTRIES not in access.grants:
        raise Refused(f"This key may not import: it can't see what is there. It would need {Grants.READ_ENTRIES}.")


def _checked(items: Sequence[ImportedEntry], now: datetime) -> list[EntryValues]:
    """The values of each entry. One whose time is over keeps its expiry, which a new entry may not have."""
    found = []
    for number, item in enumerate(items):
        try:
            expiry = None if item.draft.expires_at is None else moment(item.draft.expires_at)
            if item.created_at is not None:
                moment(item.created_at)
            over = expiry is not None and expiry <= now
            values = checked(replace(item.draft, expires_at=None if over else expiry), now)
        except BadInput as error:
            raise BadInput(f"`{_place(number)}` is wrong: {error}") from None
        found.append(replace(values, expires_at=expiry))
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


async def _plan(
    tx: Transaction,
    access: EntryAccess,
    items: Sequence[ImportedEntry],
    values: Sequence[EntryValues],
    writer: Writer,
    now: datetime,
) -> list[_Planned]:
    new = await _new_entries(tx, access, items, values, writer, now)
    known = await _Known.gathered(tx, access, items, new, now)
    found = []
    for number, (item, entry) in enumerate(zip(items, new, strict=True)):
        existing = known.find(item, entry)
        if existing is not None and item.draft.vendors is None:
            entry = replace(entry, values=replace(entry.values, vendors=existing.vendors))
        outcome = _outcome(item, entry, existing, now)
        if outcome is Outcome.REPLACED and existing is not None:
            _require_replaceable(access, _place(number), entry, existing, known)
        found.append(_Planned(_place(number), item, entry, existing, outcome))
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
    names = [_name(item, each) for item, each in zip(items, values, strict=True)]
    ids: dict[str, uuid.UUID] = {}
    wanted = dict.fromkeys(names)
    for attempt in range(MAX_FORGOTTEN):
        tried = {name: derived_id("entry import", str(access.user), name, str(attempt)) for name in wanted}
        gone = await tx.erasure.erased_ids(list(tried.values()))
        ids |= {name: id for name, id in tried.items() if id not in gone}
        wanted = {name: None for name, id in tried.items() if id in gone}
        if not wanted:
            break
    else:
        raise BadInput("The document has an entry that was imported and forgotten too often: write it anew.")
    found = []
    for name, item, each in zip(names, items, values, strict=True):
        origin, at = _origin(item), min(now, now if item.created_at is None else moment(item.created_at))
        author = writer.name if origin == API else f"{writer.name} ({origin})"
        trust = writer.trust if origin == API else Trust.TOOL
        entry = Entry(ids[name], tag, each, author, origin, trust, at, size=len(item.draft.content.encode()))
        found.append(entry)
    return found


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
        places = keys_of_entries.replaceable(access, entries_namespace(access.user)).all_namespaces
        current = sorted((e for e in found if e.namespace in places and _is_current(e, now)), key=_age)
        return cls({entry.id: entry for entry in found}, {(e.origin, e.values.key): e for e in current})

    def find(self, item: ImportedEntry, entry: Entry) -> Entry | None:
        """The entry that one of the document is."""
        found = None if item.id is None else self.by_id.get(item.id)
        found = found or self.by_id.get(entry.id)
        if found is not None or entry.values.key is None or item.trashed:
            return found
        return self.by_key.get((entry.origin, entry.values.key))


async def _carry_out(tx: Transaction, access: EntryAccess, planned: _Planned, now: datetime) -> Receipt:
    entry, existing = planned.new, planned.existing
    if planned.outcome is Outcome.CREATED and planned.item.trashed:
        await tx.entries.add(entry)
        await tx.entries.set_trashed(entry, now, now)
    elif planned.outcome is Outcome.CREATED:
        await entry_index.store(tx, entry)
    elif planned.outcome is Outcome.REPLACED and existing is not None:
        current = existing if existing.trashed_at is None else await untrashed(tx, existing, now)
        return (await put_values(tx, access, current, entry.values, now)).receipt
    return Receipt()


def _is_added(planned: _Planned) -> bool:
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
    return item.origin if is_vendor(item.origin) else API


def _name(item: ImportedEntry, values: EntryValues) -> str:
    """What tells an entry of a document from all others: its id, else its key, else all that it says."""
    if item.id is not None:
        return f"id:{item.id}"
    if values.key is not None:
        return f"key:{_origin(item)}:{values.key}"
    said = json.dumps([values.text, values.kind, values.as_json()], ensure_ascii=False)
    return f"said:{sha256(said.encode()).hexdigest()}"

"""Store entries together with what recall finds them by: a stored entry is in the index, and no other one."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Final

from composer.errors import BadInput
from composer.memory.forget import Receipt, reword
from composer.memory.index import passage_entries
from composer.model import derived_id
from composer.repositories.database import Transaction
from composer.repositories.entries import ANY_VENDOR, Entry, EntryValues, EntryWriter, values_from_json
from composer.repositories.quarantine import PendingItem
from composer.repositories.recall import IndexEntry
from composer.text.work import off_loop

MAX_METADATA_BYTES: Final = 10_000  # of one entry


async def store(tx: Transaction, entry: Entry) -> bool:
    """Store a new entry and index it; False when it is stored already."""
    added = await tx.entries.add(entry)
    if added:
        await index(tx, entry)
    return added


async def replace_values(
    tx: Transaction,
    entry: Entry,
    values: EntryValues,
    now: datetime,
    by: EntryWriter | None = None,
    *,
    said_at: datetime | None = None,
) -> tuple[Entry, Receipt] | None:
    """Give a stored entry new values and index it anew; erase what was made from words that it has no more, in a
    transaction that is alone. `by` is for the audit log; `said_at` is when all of the values were
    written (None: some were before). None when it was changed, trashed or erased meanwhile."""
    changed = await tx.entries.update(entry, values, now, by, said_at=said_at)
    if changed is None:
        return None
    receipt = await reword(tx, ("memory", entry.id), entry.values.texts, values.texts, now)
    await tx.recall.remove([entry.id])
    await index(tx, changed)
    return changed, receipt


async def index(tx: Transaction, entry: Entry) -> None:
    """Add a stored entry to the index; its vector follows later. It is found by every word of it, however long it
    is."""
    text = entry.values.text
    vendors = None if entry.vendors == ANY_VENDOR else entry.vendors
    entry_row = IndexEntry(
        entry.id,
        "memory",
        entry.namespace,
        entry.visibility,
        entry.user_id,
        entry.created_at,
        {},
        vendors,
        entry.values.expires_at,
    )
    await tx.recall.index([], await off_loop(len(text), lambda: passage_entries(entry_row, text)), [])


def merged(old: EntryValues, new: EntryValues, *, replace_vendors: bool = False) -> EntryValues:
    """An entry's values once it is written again with its key: new ones, but the metadata of both. A tool may narrow
    which tools read it, never widen it; the person replaces that (`replace_vendors`). Raises BadInput for too much
    metadata."""
    metadata = {**old.metadata, **new.metadata}
    if len(json.dumps(metadata, ensure_ascii=False).encode()) > MAX_METADATA_BYTES:
        raise BadInput(
            f"With what the entry of that key has, the metadata has more than {MAX_METADATA_BYTES:,} bytes: send less."
        )
    vendors = new.vendors if replace_vendors or old.vendors == ANY_VENDOR else old.vendors
    if not replace_vendors and new.vendors != ANY_VENDOR and old.vendors != ANY_VENDOR:
        vendors = tuple(vendor for vendor in old.vendors if vendor in new.vendors)
    return replace(new, metadata=metadata, vendors=vendors)


def said_since(at: datetime, whole: EntryValues, written: EntryValues) -> datetime | None:
    """When all that an entry says was written, if it was `written` at a time; None where it has more than that, from
    before."""
    return at if whole.metadata == written.metadata else None


async def approve(tx: Transaction, item: PendingItem, now: datetime) -> None:
    """Store an entry that waited for approval: in place of the one that its writer stored with the same key, if any."""
    assert item.entry is not None
    values = values_from_json(item.text, item.detail, item.entry)
    entry = Entry(item.item_id, item.tag, values, item.author, item.origin, item.trust, item.at)
    existing = await tx.entries.find_to_replace(entry.id, item.tag, item.origin, values.key, now)
    if existing is None:
        again = derived_id("entry", str(item.id), item.at.isoformat())  # the one that it should replace is in the trash
        if not await store(tx, entry):
            await store(tx, replace(entry, id=again))
        return
    replaced = merged(existing.values, values)
    if await replace_values(tx, existing, replaced, now, said_at=said_since(item.at, replaced, values)) is None:
        raise BadInput("That entry was changed meanwhile: approve it again.")


def pending_entry(entry: Entry) -> PendingItem:
    """An entry as it waits for approval."""
    return PendingItem(
        kind="memory",
        item_id=entry.id,
        tag=entry.tag,
        trust=entry.trust,
        detail=entry.values.kind,
        text=entry.values.text,
        author=entry.author,
        origin=entry.origin,
        at=entry.created_at,
        entry=entry.values.as_json(),
    )

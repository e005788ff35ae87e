"""Take in entries from a document: all of them, or none where one is wrong.

An entry is the one that it was exported from where that is still there, or that an earlier import of it made. So a
document that is imported again stores nothing again. What is new is filed among the person's own entries, and shared
with nobody.
"""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer import visibility
from composer.entries.entries import Writer, put_values, untrash
from composer.entries.import_plan import ImportedEntry, Outcome, Planned, check_document, is_added, plan_import
from composer.entries.quota import entry_quota
from composer.errors import BadInput, Refused
from composer.memory import entry_index
from composer.memory.forget import Receipt
from composer.repositories.audit import AuditAct
from composer.repositories.database import Transaction
from composer.text.work import CLEANED_PER_READ, off_loop
from composer.visibility import EntryAccess, Grants

MAX_ENTRIES: Final = 20_000  # of one document
PORTION: Final = 500  # entries that are stored in one transaction, while which all other writes of the tenant wait
PORTION_CHARS: Final = 100_000  # of their contents: a second or two, or one long entry


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
    Refused for a tool or a key that may not, EntriesFull where the plan has no room for all, and Outdated where one was
    changed meanwhile. Then nothing is stored.
    """
    _require_reading_and_writing(access)
    require_few(len(items))
    chars = sum(len(item.sent["content"]) for item in items)
    values = await off_loop(chars // CLEANED_PER_READ, lambda: check_document(items, now))
    quota = await entry_quota(tx, writer.plan, adds=not dry_run)
    planned = await plan_import(tx, access, items, values, writer, now)
    quota.require_capacity(sum(map(is_added, planned)))
    if dry_run:
        return Imported([(each.id, each.outcome) for each in planned])
    receipts = [await _carry_out(tx, access, each, now) for each in planned]
    erased = [receipt for receipt, each in zip(receipts, planned, strict=True) if each.outcome is Outcome.REPLACED]
    found = Imported([(each.id, each.outcome) for each in planned], erased)
    counts = {str(outcome): count for outcome, count in found.counts.items()}
    await tx.audit.record(AuditAct.ENTRIES_IMPORTED, actor=access.user, details=counts)
    return found


def portions(items: Sequence[ImportedEntry]) -> list[Sequence[ImportedEntry]]:
    """The entries of a document as they are stored together."""
    found, start, chars = list[Sequence[ImportedEntry]](), 0, 0
    for number, item in enumerate(items):
        size = len(item.sent["content"])
        if number > start and (number - start == PORTION or chars + size > PORTION_CHARS):
            found.append(items[start:number])
            start, chars = number, 0
        chars += size
    return [*found, items[start:]]


def require_few(count: int) -> None:
    """Return if a document may have so many entries. Raises BadInput."""
    if count > MAX_ENTRIES:
        raise BadInput(f"A document has at most {MAX_ENTRIES:,} entries; this one has {count:,}: divide it.")


def _require_reading_and_writing(access: EntryAccess) -> None:
    visibility.owned_by_bearer(access)
    visibility.entry_tag(access)
    if Grants.READ_ENTRIES not in access.grants:
        raise Refused(f"This key may not import: it can't see what is there. It would need {Grants.READ_ENTRIES}.")


async def _carry_out(tx: Transaction, access: EntryAccess, planned: Planned, now: datetime) -> Receipt:
    entry, existing = planned.new, planned.existing
    if planned.outcome is Outcome.CREATED and planned.item.trashed:
        await tx.entries.add(entry)
        await tx.entries.set_trashed(entry, now, now)
    elif planned.outcome is Outcome.CREATED:
        await entry_index.store(tx, entry)
    elif planned.outcome is Outcome.REPLACED and existing is not None:
        current = existing if existing.trashed_at is None else await untrash(tx, existing, now)
        return (await put_values(tx, access, current, entry.values, now, said_at=now)).receipt
    return Receipt()

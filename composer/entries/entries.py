"""Write, change, trash and share entries. Tools append; the person whose an entry is edits it.

Each function works in the caller's transaction, and judges by facts that were gathered in it
(`tx.people.entry_access`). What is written is in recall's index at once; its vector follows from the indexer.
"""

import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.entries import keys
from composer.entries.draft import API_ORIGIN, SentEntry, check_entry
from composer.entries.quota import entry_quota
from composer.entries.tools import require_not_mistyped
from composer.errors import BadInput, Conflict, NotFound, Outdated, Refused
from composer.memory import entry_index
from composer.memory.entry_index import merged, said_since
from composer.memory.forget import Receipt
from composer.model import EVERY_VENDOR, Trust, derived_id, entries_namespace
from composer.repositories.audit import AuditAct
from composer.repositories.database import Transaction
from composer.repositories.entries import ANY_VENDOR, Entry, EntryValues, EntryWriter
from composer.text.names import tool_name
from composer.text.work import CLEANED_PER_READ, off_loop
from composer.usage.plans import Plan
from composer.visibility import UNKNOWN_ENTRY, AccessTag, EntryAccess

IN_TRASH: Final = "That entry is in the trash: restore it, and change it then."
CHANGED_MEANWHILE: Final = "That entry was changed meanwhile: read what it says now, and change that."

NOTHING_ERASED: Final = Receipt()


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the person's name, and what they are to the workspace. `quarantined`: whose writes wait for
    approval in this tenant where others read them (`app.directory.quarantine`). `plan` is that of the tenant
    (`app.directory.plan`)."""

    name: str
    trust: Trust = Trust.MEMBER
    quarantined: Collection[Trust] = ()
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a write: the entry, whether it is a new one (`created`), and whether it waits for approval."""

    entry: Entry
    created: bool
    pending: bool = False
    receipt: Receipt = NOTHING_ERASED


@dataclass(frozen=True, slots=True)
class Changed:
    """A changed entry, and what was erased with the words that it has no more (for `app.forgotten`, after the
    commit)."""

    entry: Entry
    receipt: Receipt = NOTHING_ERASED


async def write(
    tx: Transaction, access: EntryAccess, draft: SentEntry, writer: Writer, event: str, now: datetime
) -> WriteResult:
    """Store an entry. `event` identifies the request: repeating it stores nothing more.

    With a `key`, the entry that the same writer (the person, or the same tool for them) stored with it is replaced,
    if they may still read it: its content is new, its metadata merged. Raises NotFound for an unknown project, Refused
    for what the credential or the role is not enough for, and for a tool of somebody who has opted out, BadInput,
    Conflict for a tool where that entry is shared with a team, and EntriesFull where the plan is for no further entry.
    """
    tag = visibility.entry_tag(access)
    if not access.is_person:
        await _require_consent(tx, access)
    entry = await _new_entry(access, tag, draft, writer, event, now)
    await require_not_mistyped(tx, access, entry.values.vendors)
    quota = await entry_quota(tx, writer.plan)
    existing = None if entry.values.key is None else await keys.find_same(tx, access, entry, now)
    if existing is None:
        quota.require_capacity()
    if entry.trust in writer.quarantined and _is_read_by_others(access, existing or entry):
        return await _quarantine(tx, entry, existing)
    if existing is not None:
        return await _replace(tx, access, existing, entry, said_vendors="vendors" in draft, now=now)
    created = await entry_index.store(tx, entry)
    if created and access.project is not None:
        await tx.audit.record(
            AuditAct.ENTRY_WRITTEN, actor=access.user, project=access.project, details={"vendor": _by(access)}
        )
    return WriteResult(entry, created)


async def repeated_write(
    tx: Transaction,
    access: EntryAccess,
    draft: SentEntry,
    writer: Writer,
    event: str,
    at: datetime,
    id: uuid.UUID,
    now: datetime,
) -> Entry:
    """The entry that an earlier request made, for a request that repeats it: as it is now, for a bearer who may read in
    that place; as they wrote it (`event`, at a time), for one who may only write there. Raises NotFound."""
    readable = visibility.readable_entries(access)
    if access.project is None and entries_namespace(access.user) not in readable.namespaces:
        return await _new_entry(access, visibility.entry_tag(access), draft, writer, event, at)
    entry = await tx.entries.get(readable, id, now, access.users if access.is_person else ())
    if entry is None:
        raise NotFound(UNKNOWN_ENTRY)
    return entry


async def repeated_pending(
    tx: Transaction,
    access: EntryAccess,
    draft: SentEntry,
    writer: Writer,
    event: str,
    at: datetime,
    id: uuid.UUID,
    now: datetime,
) -> WriteResult | None:
    """What an earlier request made, for a request that repeats it, while a version of that entry waits for approval: as
    it was sent. None where none waits. Nothing is written: a later version may wait by now."""
    if not await tx.quarantine.waits(access.users, id):
        return None
    entry = await _new_entry(access, visibility.entry_tag(access), draft, writer, event, at)
    existing = None if entry.values.key is None else await keys.find_same(tx, access, entry, now)
    return WriteResult(replace(entry, id=id), created=existing is None, pending=True)


async def _new_entry(
    access: EntryAccess, tag: AccessTag, draft: SentEntry, writer: Writer, event: str, now: datetime
) -> Entry:
    """A new entry as its writer wants it. Raises BadInput."""
    values = await off_loop(len(draft["content"]) // CLEANED_PER_READ, lambda: check_entry(draft, now))
    _require_own_vendor(access, values)
    origin = _origin(access)
    author = writer.name if access.is_person else tool_name(writer.name, access.vendor)
    trust = writer.trust if access.is_person else Trust.TOOL
    size = len(draft["content"].encode())
    return Entry(entry_id(access, event), tag, values, author, origin, trust, now, size=size)


def entry_id(access: EntryAccess, event: str) -> uuid.UUID:
    """The id of the entry that a request makes, if it makes a new one."""
    return derived_id("entry", str(access.user), _origin(access), event)


def _origin(access: EntryAccess) -> str:
    return API_ORIGIN if access.is_person else access.vendor


def _is_read_by_others(access: EntryAccess, entry: Entry) -> bool:
    """Whether an entry is filed where others read it too. What is a person's alone needs no approval: they gave the
    tool its key, and nobody else is answered from it."""
    return entry.namespace not in map(entries_namespace, access.users)


async def _quarantine(tx: Transaction, entry: Entry, existing: Entry | None) -> WriteResult:
    """Put an entry into quarantine. It replaces what the same writer wrote with its key and still waits there."""
    if existing is not None:
        entry = replace(entry, id=existing.id, tag=existing.tag)
    elif entry.values.key is not None:
        waiting = await tx.quarantine.find_by_key([entry.user_id], entry.namespace, entry.origin, entry.values.key)
        entry = entry if waiting is None else replace(entry, id=waiting)
    await tx.quarantine.put(entry_index.pending_entry(entry))
    return WriteResult(entry, created=existing is None, pending=True)


async def _replace(
    tx: Transaction, access: EntryAccess, existing: Entry, entry: Entry, *, said_vendors: bool, now: datetime
) -> WriteResult:
    """Replace an entry by what was written with its key. Which tools may read it stays, unless the person said that
    too."""
    values = merged(existing.values, entry.values, replace_vendors=said_vendors and access.is_person)
    said_at = said_since(now, values, entry.values)
    changed = await put_values(tx, access, existing, values, now, said_at=said_at)
    return WriteResult(changed.entry, created=False, receipt=changed.receipt)


async def change(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, wanted: SentEntry, now: datetime, version: int | None = None
) -> Changed:
    """Change an entry of one's own. What was made from words that it no longer has is erased, and answers that drew
    on them are retracted.

    Raises NotFound, Refused for a tool and for another person's entry, BadInput, and Outdated where the entry has
    another `version` (None: whatever it has); Conflict where it is in the trash.
    """
    entry = await _own(tx, access, id, now, version)
    if entry.trashed_at is not None:
        raise Conflict(IN_TRASH)
    values = await off_loop(entry.size // CLEANED_PER_READ, lambda: check_entry(wanted, now, entry.values))
    await require_not_mistyped(tx, access, set(values.vendors).difference(entry.values.vendors))
    if entry.has_expired(now) and values.expires_at != entry.values.expires_at:
        await keys.require_free(tx, access, entry, now)
    return await put_values(tx, access, entry, values, now)


async def put_values(
    tx: Transaction,
    access: EntryAccess,
    entry: Entry,
    values: EntryValues,
    now: datetime,
    *,
    said_at: datetime | None = None,
) -> Changed:
    """Store new values of an entry, in a transaction that is alone. `said_at` is when all of them were written (None:
    some were before). Raises Outdated when it was changed meanwhile."""
    if values.equals(entry.values):
        if said_at is not None:
            await tx.entries.say_again(entry.id, said_at)
        return Changed(entry)
    by = EntryWriter(access.user, _by(access))
    found = await entry_index.replace_values(tx, entry, values, now, by, said_at=said_at)
    if found is None:
        raise Outdated(CHANGED_MEANWHILE)
    return Changed(*found)


async def trash(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, now: datetime, version: int | None = None
) -> Entry:
    """Put an entry of one's own into the trash: out of recall at once, erased after 30 days. Raises as `change`."""
    entry = await _own(tx, access, id, now, version)
    if entry.trashed_at is not None:
        return entry
    found = await tx.entries.set_trashed(entry, now, now)
    if found is None:
        raise Outdated(CHANGED_MEANWHILE)
    await tx.recall.remove([id])
    return found


async def restore(
    tx: Transaction,
    access: EntryAccess,
    id: uuid.UUID,
    now: datetime,
    version: int | None = None,
    plan: Plan | None = None,
) -> Entry:
    """Take an entry out of the trash. Raises as `change`, Conflict where another entry has its key by now, and
    EntriesFull where the tenant's `plan` is for no further entry."""
    quota = await entry_quota(tx, plan)
    entry = await _own(tx, access, id, now, version)
    if entry.trashed_at is None:
        return entry
    quota.require_capacity()
    await keys.require_free(tx, access, entry, now)
    return await untrash(tx, entry, now)


async def untrash(tx: Transaction, entry: Entry, now: datetime) -> Entry:
    """Take an entry out of the trash that has its key for itself. Raises Outdated when it was changed meanwhile."""
    found = await tx.entries.set_trashed(entry, None, now)
    if found is None:
        raise Outdated(CHANGED_MEANWHILE)
    await entry_index.index(tx, found)
    return found


async def share(
    tx: Transaction,
    access: EntryAccess,
    id: uuid.UUID,
    team: uuid.UUID | None,
    now: datetime,
    version: int | None = None,
) -> Entry:
    """Share an entry of one's own with a team, or with none any more (None). Raises as `change`, and NotFound for a
    team that the person is not in."""
    entry = await tx.entries.get(visibility.readable_entries(access), id, now)
    if entry is None:
        raise NotFound(UNKNOWN_ENTRY)
    tag = visibility.team_tag(access, entry, team)
    _require_version(entry, version)
    return await file(tx, access, entry, tag, now)


async def file(tx: Transaction, access: EntryAccess, entry: Entry, tag: AccessTag, now: datetime) -> Entry:
    """File an entry under another tag, and record it. Raises Outdated when it was changed meanwhile."""
    if tag == entry.tag:
        return entry
    found = await tx.entries.file(entry, tag, access.user, _by(access), now)
    if found is None:
        raise Outdated(CHANGED_MEANWHILE)
    return found


async def _own(
    tx: Transaction,
    access: EntryAccess,
    id: uuid.UUID,
    now: datetime,
    version: int | None,
) -> Entry:
    """An entry that the bearer may change."""
    owners = access.users if access.is_person else ()
    entry = await tx.entries.get(visibility.readable_entries(access), id, now, owners)
    if entry is None:
        raise NotFound(UNKNOWN_ENTRY)
    visibility.require_editable(access, entry)
    _require_version(entry, version)
    return entry


def _require_version(entry: Entry, version: int | None) -> None:
    if version is not None and version != entry.version:
        raise Outdated(CHANGED_MEANWHILE)


def _require_own_vendor(access: EntryAccess, values: EntryValues) -> None:
    """A tool that left itself out would write what it could not read, and would not notice."""
    if access.vendor != EVERY_VENDOR and values.vendors != ANY_VENDOR and access.vendor not in values.vendors:
        raise BadInput(
            f"allowed_vendors leaves out {access.vendor} itself, which writes this: add it, or leave them out."
        )


async def _require_consent(tx: Transaction, access: EntryAccess) -> None:
    if await tx.people.has_opted_out((access.user,)):
        raise Refused("This person has opted out, so nothing is stored for them. To be remembered again: /nexus opt-in")


def _by(access: EntryAccess) -> str:
    return "person" if access.is_person else access.vendor

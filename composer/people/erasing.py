"""Erase messages and items for good, with the exported files that hold them, and record a receipt: the one way in which
people have something erased, whether by a command or over the API."""

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from composer.entries import listing
from composer.entries.tools import require_known
from composer.errors import BadInput, Conflict, NotFound, Refused, Unavailable
from composer.memory import forget as forgetting
from composer.memory import names as blanking
from composer.memory.affected import ItemRef
from composer.memory.forget import NOTHING, Receipt
from composer.model import project_namespace
from composer.people.credentials.issuing import delete_credentials
from composer.people.export_files import count_exports, remove_exports
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry, EntryFilter
from composer.repositories.quarantine import PENDING_KIND
from composer.text.counts import counted
from composer.text.moments import moment
from composer.visibility import UNKNOWN_ENTRY, EntryAccess, entry_tag, readable_entries, require_forgettable

MAX_ERASED_ENTRIES: Final = 10_000  # at once


async def erase(
    tx: Transaction,
    home: Path,
    messages: Sequence[uuid.UUID],
    items: Sequence[ItemRef],
    now: datetime,
    conversation: uuid.UUID | None,
    *,
    key: bytes,
    names_of: Sequence[uuid.UUID] = (),
    exports_of: Collection[uuid.UUID] = (),
    ahead: Receipt = NOTHING,
    names: Collection[str] = (),
    answers_stay: bool = False,
) -> Receipt:
    """Erase messages and items, with the names and the exported files of people, and record a receipt. With their names
    goes all that opens their memories from outside (keys, web sessions, logins and login links), what they have set,
    what their sessions were called, and whom the figures of the API name.

    `home` is where the terminal writes exports, `conversation` where the request was made (None: over the API), `key`
    that of the receipt: random, and of RECEIPT_KEY_BYTES; `ahead` is what `erase_ahead` has erased under it,
    and `names` those of people that were stored before that. `answers_stay`: no answer is retracted. Raises
    Unavailable.

    An exported file holds what was there when it was made, so it goes with any part of that; and so does what people's
    tools said to models and nothing was learnt from yet, since it may say the same again. Files are deleted before
    the commit: a request that is interrupted between is made again. Those in DMs are deleted after it, by the adapter.
    """
    names = await blanking.names_of(tx, names_of) | set(names)
    blanked = await blanking.blank_names(tx, names_of, names, now) if names_of else Receipt()
    receipt = await forgetting.forget(tx, messages, items, now, conversation, names=names, answers_stay=answers_stay)
    await tx.gateway_exchanges.drop(exports_of, now)
    exported = _with_exports(home, lambda: remove_exports(home, exports_of))
    exported += await tx.posted_files.withdraw(exports_of)
    opening = await delete_credentials(tx, names_of) if names_of else {}
    if names_of:
        await tx.conversations.clear_session_names(names_of)
        await tx.erasure.erase_people(names_of)
        await tx.operations.blank(names_of)
    gone = {"exported file": exported, **opening}
    receipt = replace(receipt.joined(blanked), counts=receipt.counts | gone)
    return await forgetting.record(tx, ahead.plus(receipt), key, now, before=ahead)


async def erase_entry(
    tx: Transaction, access: EntryAccess, home: Path, id: uuid.UUID, now: datetime, *, key: bytes
) -> Receipt:
    """Erase an entry of the bearer's own, also one in the trash, an expired one or one that waits for approval.
    `access` was gathered by `composer.entries.access.access_for_writing`; `home` and `key` are as for `erase`. The
    caller gives the receipt to `app.forgotten` after the commit.

    Raises NotFound for an entry that may not be read, Refused for another person's, and for a tool that did not write
    it or where it is shared by now; Unavailable.
    """
    item = await _find_to_erase(tx, access, id, now)
    return await erase(tx, home, [], [item], now, None, key=key, exports_of=access.users)


async def _find_to_erase(tx: Transaction, access: EntryAccess, id: uuid.UUID, now: datetime) -> ItemRef:
    owners = access.users if access.is_person else ()
    entry = await tx.entries.get(readable_entries(access), id, now, owners)
    if entry is not None:
        require_forgettable(access, entry, entry.origin)
        return "memory", id
    if not access.is_person or id not in [item.id for item in await listing.pending(tx, access)]:
        raise NotFound(UNKNOWN_ENTRY)
    return PENDING_KIND, id


@dataclass(frozen=True, slots=True)
class EntriesToErase:
    """A filter of one's own entries to erase: those that fit all of it, also in the trash and expired; None or an empty
    tuple fits every entry. `trashed`: those in the trash alone. Where `access` names a project, only its entries fit.
    For a tool only those fit that it wrote itself and that are shared with nobody."""

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    before: datetime | None = None
    trashed: bool = False


def entries_of_tool(kind: str | None, before: datetime | None, *, everything: bool) -> EntriesToErase:
    """The filter of a tool that erases what it wrote: of one kind, older than a time, or everything. Raises BadInput
    where it names none of these, or `everything` and another one: a tool that forgot to narrow it down would else erase
    all of it."""
    if everything == (kind is not None or before is not None):
        raise BadInput("Say what to forget: a kind, older_than, or everything=true alone.")
    return EntriesToErase(kinds=() if kind is None else (kind,), before=before)


async def erase_entries(
    tx: Transaction,
    access: EntryAccess,
    home: Path,
    wanted: EntriesToErase,
    now: datetime,
    *,
    key: bytes,
    confirmed: int | None,
) -> Receipt:
    """Erase entries of the bearer's own. `confirmed`: how many, as whoever asks was told; a tool, which erases
    what it wrote itself, may leave it out (None). The rest is as for `erase_entry`.

    Raises BadInput, and Conflict with how many there are where that is another number, or more than MAX_ERASED_ENTRIES.
    """
    ids = await _forgettable(tx, access, wanted, now)
    if not ids and access.is_person and wanted.origins:
        await require_known(tx, access, wanted.origins, now)
    if len(ids) > MAX_ERASED_ENTRIES:
        raise Conflict(f"That would forget more than {MAX_ERASED_ENTRIES:,} entries: narrow it down.")
    if confirmed != len(ids) and (confirmed is not None or access.is_person):
        entries = counted(len(ids), "entry")
        raise Conflict(f"This would forget {entries} for good. To confirm, send it with confirm = {len(ids)}.")
    if not ids:
        await tx.gateway_exchanges.drop(access.users, now)
        return Receipt()
    return await erase(tx, home, [], [("memory", id) for id in ids], now, None, key=key, exports_of=access.users)


async def count_erasable(tx: Transaction, access: EntryAccess, wanted: EntriesToErase, now: datetime) -> int:
    """How many `erase_entries` would erase: what `confirmed` has to be. At most one more than MAX_ERASED_ENTRIES."""
    return len(await _forgettable(tx, access, wanted, now))


async def _forgettable(tx: Transaction, access: EntryAccess, wanted: EntriesToErase, now: datetime) -> list[uuid.UUID]:
    """The ids of those that the bearer may erase: at most one more than MAX_ERASED_ENTRIES."""
    return [entry.id for entry in await _own(tx, access, wanted, now) if _may_forget(access, entry)]


async def _own(tx: Transaction, access: EntryAccess, wanted: EntriesToErase, now: datetime) -> list[Entry]:
    """Those of the person's own that fit: of each state at most one more than MAX_ERASED_ENTRIES."""
    entry_tag(replace(access, project=None))  # who may write none may forget none
    origins = wanted.origins if access.is_person else (access.vendor,)
    fits = EntryFilter(
        kinds=wanted.kinds,
        origins=origins,
        tags=wanted.tags,
        until=None if wanted.before is None else moment(wanted.before),
        owners=access.users,
        authors=access.users,
    )
    listing.require_storable(fits)
    readable, found = readable_entries(access), list[Entry]()
    if access.project is not None:
        readable = readable.within([project_namespace(access.project)])
    out_of_use = [replace(fits, trashed=True), replace(fits, expired=True)] if access.is_person else []
    for each in out_of_use[:1] if wanted.trashed else (fits, *out_of_use):
        found += await tx.entries.find(readable, each, now, limit=MAX_ERASED_ENTRIES + 1, chars=1)
    return found


def _may_forget(access: EntryAccess, entry: Entry) -> bool:
    try:
        require_forgettable(access, entry, entry.origin)
    except Refused:
        return False
    return True


def exported_files(home: Path, users: Collection[uuid.UUID]) -> int:
    """How many files with exports of these people the terminal has written. Raises Unavailable."""
    return _with_exports(home, lambda: count_exports(home, users))


def _with_exports(home: Path, act: Callable[[], int]) -> int:
    try:
        return act()
    except OSError as error:
        raise Unavailable(
            "A file with an export can't be deleted now, so nothing was erased. Ask whoever runs Nexus, and try again.",
            operator=f"The exports under {home} can't be deleted ({error}): nothing was erased.",
        ) from error

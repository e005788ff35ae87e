"""List, count and get entries: one predicate in SQL (`may_read`, and the namespaces of the Readable) decides each."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.errors import BadInput, NotFound, Refused
from composer.memory import review
from composer.memory.forget import Receipt
from composer.model import entries_namespace, project_namespace
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry, EntryCount, EntryFilter, EntryVersion
from composer.repositories.quarantine import PendingItem
from composer.text.cleaning import is_storable
from composer.text.cursors import cursor_of, read_cursor
from composer.text.moments import moment
from composer.visibility import UNKNOWN_ENTRY, EntryAccess, Readable, Reviewable

DEFAULT_LISTED_ENTRIES: Final = 50
MAX_LISTED_ENTRIES: Final = 200
MAX_OFFSET: Final = 100_000
MAX_SNIPPET_CHARS: Final = 500  # of each text in a list


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries, in the order that was asked for, and the cursor with which the next are listed; None after the
    last."""

    entries: Sequence[Entry]
    cursor: str | None


async def page(
    tx: Transaction,
    access: EntryAccess,
    wanted: EntryFilter,
    now: datetime,
    *,
    team: uuid.UUID | None = None,
    only_project: bool = False,
    limit: int = DEFAULT_LISTED_ENTRIES,
    cursor: str | None = None,
    offset: int | None = None,
    whole: bool = False,
) -> Page:
    """A page of the entries that may be read and that are wanted: after a `cursor`, or from an `offset` on, which wins.

    `team`: those shared with one team alone; `only_project`: those of the project that `access` names alone. `whole`:
    with all of their texts, else with the first SNIPPET_CHARS characters. Those in the trash, and those that have
    expired, are listed to the person whose they are. Raises BadInput, NotFound for a team or project that may not be
    read, Refused for a tool that asks for the trash, for expired ones, or for those last used.
    """
    if not 1 <= limit <= MAX_LISTED_ENTRIES:
        raise BadInput(f"The limit of a page is a number from 1 to {MAX_LISTED_ENTRIES}.")
    if offset is not None and not 0 <= offset <= MAX_OFFSET:
        raise BadInput(f"The offset is a number from 0 to {MAX_OFFSET:,}; beyond it, list with the cursor.")
    readable, wanted = _scope(access, wanted, team, only_project=only_project)
    found = await tx.entries.find_sorted(
        readable,
        wanted,
        now,
        limit=limit + 1,
        offset=offset or 0,
        after=None if cursor is None or offset is not None else read_cursor(cursor, wanted.order),
        chars=None if whole else MAX_SNIPPET_CHARS,
    )
    entries = [entry for _, entry in found[:limit]]
    next = cursor_of(found[limit - 1][0], entries[-1].id, wanted.order) if len(found) > limit else None
    return Page(entries, next)


async def counts(
    tx: Transaction,
    access: EntryAccess,
    wanted: EntryFilter,
    now: datetime,
    *,
    team: uuid.UUID | None = None,
    only_project: bool = False,
) -> list[EntryCount]:
    """How many entries `page` lists in all, by kind, with their tokens. Raises as `page`."""
    readable, wanted = _scope(access, wanted, team, only_project=only_project)
    return await tx.entries.count(readable, wanted, now)


async def get(tx: Transaction, access: EntryAccess, id: uuid.UUID, now: datetime) -> Entry:
    """One entry, whole; one that is in the trash or has expired for the person whose it is. Raises NotFound for one
    that may not be read."""
    owners = access.users if access.is_person else ()
    entry = await tx.entries.get(visibility.readable_entries(access), id, now, owners)
    if entry is None:
        raise NotFound(UNKNOWN_ENTRY)
    return entry


async def versions(tx: Transaction, access: EntryAccess, id: uuid.UUID, now: datetime) -> list[EntryVersion]:
    """The versions of an entry, the latest first. Raises NotFound as `get`."""
    owners = access.users if access.is_person else ()
    found = await tx.entries.versions(visibility.readable_entries(access), id, now, owners)
    if not found:
        raise NotFound(UNKNOWN_ENTRY)
    return found


async def pending(tx: Transaction, access: EntryAccess) -> list[PendingItem]:
    """What waits for approval, as entries, oldest first: what the person and their tools wrote, and what anybody's
    tools wrote for the project that the request names, where the person is an admin of it. Raises Refused for a
    tool."""
    visibility.owned_by_bearer(access)
    readable = visibility.readable_entries(access)
    own = Reviewable.alike(readable)
    found = [item for user in access.users for item in await tx.quarantine.find_pending(own, user)]
    if access.project is not None:
        for_project = visibility.reviewable_entries(access)
        found += await tx.quarantine.find_pending(Reviewable.alike(for_project))
    by_id = {item.id: item for item in found if item.entry is not None}
    return sorted(by_id.values(), key=lambda item: (item.at, item.id))


async def decide(tx: Transaction, access: EntryAccess, id: uuid.UUID, now: datetime, *, approved: bool) -> Receipt:
    """Approve or reject what waits, by its id in the list of `pending`. What was written for a project its admins
    approve, in a request that names it or in a chat; who wrote it may take it back. The caller gives the receipt to
    `app.forgotten` after the commit. Raises NotFound, Refused, and BadInput when it was decided meanwhile."""
    item = next((each for each in await pending(tx, access) if each.id == id), None)
    if item is None:
        raise NotFound(UNKNOWN_ENTRY)
    if not approved:
        return await review.reject(tx, item, now)
    if item.namespace not in {*map(entries_namespace, access.users), *_reviewed(access)}:
        raise Refused(
            "That is for a project: one of its admins approves it, with ?project= and its name, or in a chat (/nexus "
            "memory pending)."
        )
    await review.approve(tx, item, now)
    return Receipt()


def own_scope(access: EntryAccess) -> Readable:
    """Where the person's own entries are read: all that may be read, or the project that `access` names, alone. Raises
    NotFound."""
    readable = visibility.readable_entries(access)
    return readable if access.project is None else readable.within([project_namespace(access.project)])


def require_storable(wanted: EntryFilter) -> None:
    """Return if the words of a filter can stand in a database. Raises BadInput."""
    words = (*wanted.kinds, *wanted.origins, *wanted.tags, wanted.session or "", wanted.words)
    if not all(map(is_storable, words)):
        raise BadInput("A filter contains a character that cannot be stored (NUL, or a broken emoji): remove it.")


def _scope(
    access: EntryAccess, wanted: EntryFilter, team: uuid.UUID | None, *, only_project: bool
) -> tuple[Readable, EntryFilter]:
    if (wanted.trashed or wanted.expired) and not access.is_person:
        raise Refused("Only the person themselves may see their trash, and what has expired.")
    if wanted.order.by == "used" and not access.is_person:
        raise Refused("Only the person themselves may see what was used in answers to them.")
    require_storable(wanted)
    readable = visibility.readable_entries(access) if team is None else visibility.readable_team(access, team)
    if only_project:
        if access.project is None:
            raise BadInput("Name the project whose entries to list.")
        readable = readable.within([project_namespace(access.project)])
    since, until = (None if at is None else moment(at) for at in (wanted.since, wanted.until))
    return readable, replace(wanted, owners=access.users, since=since, until=until)


def _reviewed(access: EntryAccess) -> Collection[str]:
    return visibility.reviewable_entries(access).all_namespaces

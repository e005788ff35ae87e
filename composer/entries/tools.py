"""Names of a person's AI tools, as they stand in requests: one that nobody has is answered with the known ones."""

import uuid
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Final

from composer.entries.draft import API_ORIGIN
from composer.errors import BadInput
from composer.repositories.database import Transaction
from composer.repositories.entries import EntryFilter
from composer.settings import is_vendor
from composer.settings.refusals import nearest_hint
from composer.text.names import in_quotes
from composer.visibility import EntryAccess, readable_entries

MISTYPED: Final = 0.8  # how like a known name (difflib) another one is that was probably meant as that
_LISTED: Final = 1_000  # newest entries whose writers are named


async def require_known(tx: Transaction, access: EntryAccess, names: Collection[str], now: datetime) -> None:
    """Return if each of these tools has, or had, a key of the person's, or wrote something that they may read. A list
    of what a mistyped name wrote looks as if that tool had stored nothing. Of a tool that asks nothing is required: it
    isn't told which others there are.

    Raises BadInput with those that are known.
    """
    unknown = set(names) - {API_ORIGIN}
    if not unknown or not access.is_person:
        return
    having_keys = await _having_keys(tx, access.users)
    for name in sorted(unknown - having_keys):
        if not await _written(tx, access, (name,), now, limit=1):
            known = having_keys | await _written(tx, access, (), now, limit=_LISTED)
            raise BadInput(
                f"None of your tools is called {in_quotes(name)}: known are {', '.join(sorted(known | {API_ORIGIN}))}."
            )


async def require_not_mistyped(tx: Transaction, access: EntryAccess, names: Collection[str]) -> None:
    """Return unless one of these tools has no key of the person's and is called almost as one that has: a tool that was
    meant could else not read what was written for it. Any other name is that of a tool to come. Raises BadInput."""
    named = set(filter(is_vendor, names))
    if not named or not access.is_person:
        return
    known = await _having_keys(tx, access.users)
    for name in sorted(named - known):
        if hint := nearest_hint(name, known, MISTYPED):
            raise BadInput(
                f"In allowed_vendors, none of your tools is called {name}{hint} To name a new one, make its key first."
            )


async def used_names(tx: Transaction, access: EntryAccess, now: datetime) -> frozenset[str]:
    """The names of the person's tools: of those that have, or had, a key, and of those that lately wrote something."""
    return await _having_keys(tx, access.users) | await _written(tx, access, (), now, limit=_LISTED)


async def _having_keys(tx: Transaction, users: Collection[uuid.UUID]) -> frozenset[str]:
    return frozenset(key.vendor for key in await tx.api_keys.of(users) if key.vendor is not None)


async def _written(
    tx: Transaction, access: EntryAccess, names: tuple[str, ...], now: datetime, *, limit: int
) -> frozenset[str]:
    """Which of these tools (none: of all) wrote something that the person may read, also what is in their trash and
    what has expired."""
    any_state = EntryFilter(origins=names, owners=access.users)
    found = set[str]()
    for each in (any_state, replace(any_state, trashed=True), replace(any_state, expired=True)):
        entries = await tx.entries.find(readable_entries(access), each, now, limit=limit, chars=1)
        found |= {entry.origin for entry in entries}
    return frozenset(found)

"""Check that entries can be stored, found and erased: by doing it, in a transaction that is rolled back."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from composer.entries import entries, listing
from composer.entries.access import access_for_writing
from composer.entries.entries import Writer
from composer.errors import Unavailable
from composer.memory.forget import forget
from composer.model import EVERY_VENDOR
from composer.repositories.database import Database, Transaction
from composer.repositories.entries import EntryFilter
from composer.visibility import Grants

PROBE_GRANTS: Final = frozenset({Grants.READ_ENTRIES, Grants.WRITE_ENTRIES})  # for what nobody will ever read
PROBE_CONTENT: Final = "Nexus checks that it can store this."


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long each step took, in milliseconds."""

    create: float
    list: float
    delete: float


class _RolledBack(Exception):
    """Ends the transaction, so that nothing of it stays."""


async def probe_entries(
    database: Database, tenant: uuid.UUID, user: uuid.UUID, name: str, now: datetime, seconds: Callable[[], float]
) -> Latencies:
    """Create an entry of a person's own, list it and erase it. Nothing stays of it, however this ends. `name` is random
    and `seconds` a clock that only goes forward. Raises Unavailable where the database does not answer, or
    does not do it."""
    times: list[float] = []
    try:
        async with database.transaction(tenant, "alone") as tx:
            times = await _probe(tx, tenant, user, name, now, seconds)
            raise _RolledBack
    except _RolledBack:
        create, listed, delete = (round((after - before) * 1_000, 1) for before, after in pairwise(times))
    return Latencies(create, listed, delete)


async def _probe(
    tx: Transaction, tenant: uuid.UUID, user: uuid.UUID, name: str, now: datetime, seconds: Callable[[], float]
) -> list[float]:
    """The time before the first step, and after each."""
    access = await access_for_writing(tx, tenant, user, EVERY_VENDOR, PROBE_GRANTS)
    times = [seconds()]
    made = await entries.write(tx, access, {"content": PROBE_CONTENT, "session": name}, Writer(""), name, now)
    times.append(seconds())
    found = await listing.page(tx, access, EntryFilter(session=name), now, limit=1)
    if [each.id for each in found.entries] != [made.entry.id]:
        raise Unavailable("An entry that was just stored is not listed.")
    times.append(seconds())
    await forget(tx, [], [("memory", made.entry.id)], now)
    if (await listing.page(tx, access, EntryFilter(session=name), now, limit=1)).entries:
        raise Unavailable("An entry that was just erased is still listed.")
    times.append(seconds())
    return times

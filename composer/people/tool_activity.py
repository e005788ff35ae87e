"""What one of a person's tools did with their memory, for that person: what it wrote, what it was handed out, and how
often it asked."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Final

from composer.errors import NotFound
from composer.people.credentials.own_credentials import UNKNOWN_KEY, own_keys
from composer.people.credentials.principal import Principal
from composer.people.own_memory import OwnItems, own_items
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry
from composer.repositories.operations import Total
from composer.repositories.own_data import OwnFilter
from composer.repositories.tool_reads import ReadRoute
from composer.visibility import EntryAccess, owned_by_bearer, readable_entries

MAX_SHOWN_READS: Final = 200  # items that a tool was handed out, the latest


@dataclass(frozen=True, slots=True)
class ToolReading:
    """Entries that a tool was handed out at once, by a route, and has not been since by that route."""

    at: datetime
    route: ReadRoute
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class ToolActivity:
    """What a tool (`vendor`) did: `read`, the entries that it was handed out and that its person may read now, latest
    first; `written`, a page of what it wrote, latest first; and how often it did what, by month, the latest first."""

    vendor: str
    read: Sequence[ToolReading]
    written: OwnItems
    counted: Sequence[Total]


async def tool_activity(
    tx: Transaction,
    principal: Principal,
    access: EntryAccess,
    key: uuid.UUID,
    presence: Presence,
    *,
    since: date,
    cursor: str | None,
    limit: int,
    now: datetime,
) -> ToolActivity:
    """What the tool of a key of the person's did; keys of one tool have the same. `since`: the month from which is
    counted. Raises NotFound for a key of nobody's or of no tool, BadInput for an unknown cursor, and Refused."""
    found = next((each for each in await own_keys(tx, principal, access) if each.id == key), None)
    if found is None or found.vendor is None:
        raise NotFound(UNKNOWN_KEY)
    owned, vendor = owned_by_bearer(access), found.vendor
    written = await own_items(tx, owned, OwnFilter(origins=(vendor,)), cursor, limit, now, presence)
    counted = [each for each in await tx.operations.of_owner(since, owned) if each.vendor == vendor]
    return ToolActivity(vendor, await _read(tx, access, vendor, now), written, counted)


async def _read(tx: Transaction, access: EntryAccess, vendor: str, now: datetime) -> Sequence[ToolReading]:
    reads = await tx.tool_reads.of_tool(owned_by_bearer(access), vendor, MAX_SHOWN_READS)
    found = await tx.entries.find_by_ids(readable_entries(access), sorted({each.id for each in reads}), now)
    entries = {each.id: each for each in found}
    shown = groupby((each for each in reads if each.id in entries), key=lambda each: (each.at, each.route))
    return [ToolReading(at, route, [entries[each.id] for each in of_one]) for (at, route), of_one in shown]

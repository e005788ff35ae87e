"""What one of a person's tools did with their memory, for that person: what it wrote, what it was handed out, and how
often it asked."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from itertools import groupby
from typing import Final

from composer.errors import NotFound
from composer.layers import structured
from composer.people.credentials.own_credentials import UNKNOWN_KEY, own_keys
from composer.people.credentials.principal import Principal
from composer.people.own_memory import OwnItems, own_items
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark
from composer.repositories.operations import Total
from composer.repositories.own_data import OwnFilter
from composer.repositories.tool_reads import ReadRoute
from composer.visibility import EntryAccess, Readable, owned_by_bearer, readable_entries

MAX_SHOWN_READS: Final = 200  # items that a tool was handed out, the latest


class ReadKind(StrEnum):
    """What is handed out to tools."""

    ENTRY = "entry"
    FACT = "fact"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class ReadItem:
    """Something that a tool was handed out, as its person may read it now. `own`: it is the person's."""

    id: uuid.UUID
    kind: ReadKind
    title: str
    own: bool


@dataclass(frozen=True, slots=True)
class ToolReading:
    """What a tool was handed out at once, by a route, and has not been since by that route."""

    at: datetime
    route: ReadRoute
    items: Sequence[ReadItem]


@dataclass(frozen=True, slots=True)
class ToolActivity:
    """What a tool (`vendor`) did: `read`, what it was handed out and its person may read now, latest first; `written`,
    a page of what it wrote, latest first; and how often it did what, by month, the latest first."""

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
    readable, ids = readable_entries(access), {each.id for each in reads}
    items = {each.id: each for each in await _items(tx, access, readable, ids, now)}
    shown = groupby((each for each in reads if each.id in items), key=lambda each: (each.at, each.route))
    return [ToolReading(at, route, [items[each.id] for each in of_one]) for (at, route), of_one in shown]


async def _items(
    tx: Transaction, access: EntryAccess, readable: Readable, ids: Collection[uuid.UUID], now: datetime
) -> list[ReadItem]:
    """Those of some items that the person may read."""
    found = [
        ReadItem(each.id, ReadKind.ENTRY, each.title, each.user_id in access.users)
        for each in await tx.entries.find_by_ids(readable, sorted(ids), now)
    ]
    if len(found) < len(ids):
        exact = await structured.read(tx.structured, readable, now)
        others: list[tuple[ReadKind, Fact | Landmark, str]] = [
            *((ReadKind.FACT, each, f"{each.key} = {structured.plain_value(each.value)}") for each in exact.facts),
            *((ReadKind.DECISION, each, each.text) for each in exact.landmarks),
        ]
        found += [
            ReadItem(each.id, kind, title, each.user_id in access.users)
            for kind, each, title in others
            if each.id in ids
        ]
    return found

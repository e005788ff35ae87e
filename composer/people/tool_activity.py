"""What one of a person's tools did with their memory, for that person: what it wrote, what it was given, and how often
it asked. What a tool reads over MCP and the API is counted, and not stored; what the gateway gives it is known for
hours."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from composer.errors import NotFound
from composer.people.credentials.own_credentials import UNKNOWN_KEY, own_keys
from composer.people.credentials.principal import Principal
from composer.people.gateway_log import GatewayLine, gateway_log
from composer.people.own_memory import OwnItems, own_items
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.operations import Total
from composer.repositories.own_data import OwnFilter
from composer.visibility import EntryAccess, owned_by_bearer

LOOKED_THROUGH: Final = 400  # lines of all tools of a person, of which those of one are shown
MAX_GIVEN: Final = 20


@dataclass(frozen=True, slots=True)
class ToolActivity:
    """What a tool (`vendor`) did: `given`, what the gateway put into its requests and may be read now, latest first;
    `written`, a page of what it wrote, latest first; and how often it did what, by month, the latest first."""

    vendor: str
    given: Sequence[GatewayLine]
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
    lines = await gateway_log(tx, access, LOOKED_THROUGH, now)
    given = [each for each in lines if each.tool == vendor and each.entries]
    written = await own_items(tx, owned, OwnFilter(origins=(vendor,)), cursor, limit, now, presence)
    counted = [each for each in await tx.operations.of_owner(since, owned) if each.vendor == vendor]
    return ToolActivity(vendor, given[:MAX_GIVEN], written, counted)

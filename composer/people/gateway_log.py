"""What the gateway lately put into the requests of a person's tools, and what it learns from, for that person."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.entries.draft import OWN_KEY
from composer.model import EVERY_VENDOR
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry
from composer.repositories.gateway_turns import GatewayAct
from composer.visibility import EntryAccess, owned_by_bearer, readable_entries


@dataclass(frozen=True, slots=True)
class GatewayLine:
    """Something that the gateway did, and those entries of what it put in that the person may read now."""

    act: GatewayAct
    entries: Sequence[Entry]

    @property
    def tool(self) -> str | None:
        """The tool for which it was; None for the person's own key."""
        return None if self.act.vendor in (EVERY_VENDOR, OWN_KEY) else self.act.vendor

    def is_standing(self, entry: Entry) -> bool:
        """Whether an entry was put in whatever was asked."""
        return entry.id in self.act.injected.standing

    @property
    def items(self) -> int:
        """How much was put in: entries, facts and decisions."""
        return len(_ids(self.act))


async def gateway_log(tx: Transaction, access: EntryAccess, limit: int, now: datetime) -> list[GatewayLine]:
    """The latest first, at most `limit` lines. Raises Refused for a tool."""
    acts = await tx.gateway_turns.latest(owned_by_bearer(access), limit)
    ids = {id for act in acts for id in _ids(act)}
    found: dict[uuid.UUID, Entry] = {
        each.id: each for each in await tx.entries.find_by_ids(readable_entries(access), sorted(ids), now)
    }
    return [GatewayLine(act, [found[id] for id in _ids(act) if id in found]) for act in acts]


def _ids(act: GatewayAct) -> Sequence[uuid.UUID]:
    return (*act.injected.standing, *act.injected.recalled)

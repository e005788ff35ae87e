"""What the gateway has put into the requests of people's tools: ids alone, for as long as a turn may last."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.ports.database import Statements
from composer.visibility import Owned

TURN_LIFETIME: Final = timedelta(hours=6)  # a tool loop that lasts longer gets what is recalled then
MAX_TURNS: Final = 200  # of one user; the oldest go


@dataclass(frozen=True, slots=True)
class TurnKey:
    """A turn: whose it is, through which tool (`vendor`; EVERY_VENDOR: the person's own key), and what stands for its
    words."""

    user: uuid.UUID
    vendor: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Injected:
    """What was put in, by ids: what held whatever was asked, and what was recalled, best first. `at`: when, once it is
    stored."""

    standing: tuple[uuid.UUID, ...] = ()
    recalled: tuple[uuid.UUID, ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GatewayAct:
    """What the gateway did for a tool of a person (`vendor`; EVERY_VENDOR or `gateway`: their own key). It put these
    ids into a request, or (`is_said`) it learns from a message; `learnt_at`: when it did, None while that waits."""

    vendor: str
    at: datetime
    injected: Injected
    is_said: bool
    learnt_at: datetime | None


class GatewayTurns:
    """Records of turns."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def put(self, key: TurnKey, injected: Injected, now: datetime) -> None:
        """Record what is put into a turn's request, in a transaction that blocks erasure."""
        await self._sql.execute(
            "gateway_turn_put",
            user_id=key.user,
            vendor=key.vendor,
            digest=key.digest,
            standing=list(injected.standing),
            recalled=list(injected.recalled),
            now=now,
            kept=MAX_TURNS - 1,
        )

    async def get(self, key: TurnKey, now: datetime) -> Injected | None:
        """What was put into a turn's request; None where that is not known any more."""
        row = await self._sql.fetch_one(
            "gateway_turn_get", user_id=key.user, vendor=key.vendor, digest=key.digest, since=now - TURN_LIFETIME
        )
        if row is None:
            return None
        return Injected(tuple(row["standing"]), tuple(row["recalled"]), row["created_at"])

    async def latest(self, owned: Owned, limit: int) -> list[GatewayAct]:
        """What the gateway did lately for the tools of a person, newest first."""
        rows = await self._sql.fetch("gateway_log", user_ids=list(owned.users), limit=limit)
        return [
            GatewayAct(
                row["vendor"],
                row["at"],
                Injected(tuple(row["standing"]), tuple(row["recalled"])),
                row["is_said"],
                row["learnt_at"],
            )
            for row in rows
        ]

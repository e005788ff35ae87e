"""What the gateway has still to learn from: exchanges of people's tools with models, until they were read."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.ports.database import Statements
from composer.repositories.learning import ReadyRule

EXCHANGE_RETENTION: Final = timedelta(days=7)  # of its id: so long an exchange is not stored again


@dataclass(frozen=True, slots=True)
class GatewayExchange:
    """What a user said in a message to a model: their own words alone."""

    id: uuid.UUID
    question: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class ExchangeOwner:
    """The user of some exchanges, and the tool (`vendor`) as which the entries learnt from them are written."""

    user: uuid.UUID
    vendor: str

    @property
    def key(self) -> str:
        """Their name among all that is learnt from."""
        return f"gateway {self.user} {self.vendor}"

    @property
    def conversation_id(self) -> None:
        """They are of no conversation."""


class GatewayExchanges:
    """Exchanges that wait to be learnt from."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def put(self, owner: ExchangeOwner, exchange: GatewayExchange, asked_at: datetime) -> bool:
        """Store an exchange; False where it was stored before, or its user has opted out or is
        gone, or has forgotten something since `asked_at`."""
        waits = await self._sql.fetch_value(
            "gateway_exchange_put",
            id=exchange.id,
            user_id=owner.user,
            vendor=owner.vendor,
            question=exchange.question,
            now=exchange.said_at,
            asked_at=asked_at,
        )
        return waits is True

    async def due(self, rule: ReadyRule) -> list[ExchangeOwner]:
        """The owners whose exchanges are due, longest waiting first."""
        rows = await self._sql.fetch("gateway_exchanges_due", **rule.parameters)
        return [ExchangeOwner(row["user_id"], row["vendor"]) for row in rows]

    async def waiting(self, owner: ExchangeOwner, limit: int) -> list[GatewayExchange]:
        """The oldest exchanges, oldest first. For the extractor, whose results are filed as the user's own."""
        return await self._sql.fetch_as(
            GatewayExchange, "gateway_exchanges_oldest", user_id=owner.user, vendor=owner.vendor, limit=limit
        )

    async def are_waiting(self, exchanges: Sequence[uuid.UUID]) -> bool:
        """Whether all of these still wait; they are locked until the transaction ends."""
        rows = await self._sql.fetch("gateway_exchanges_lock_waiting", ids=list(exchanges))
        return len(rows) == len(exchanges)

    async def end(self, exchanges: Sequence[uuid.UUID], now: datetime) -> None:
        """Have exchanges not read again: their texts are gone."""
        await self._sql.execute("gateway_exchanges_end", ids=list(exchanges), user_ids=[], now=now)

    async def drop(self, users: Collection[uuid.UUID], now: datetime) -> None:
        """Learn nothing from the exchanges of these users that wait, whose texts are gone, and nothing from what was
        asked by now and is answered later. Call it once erasure is locked."""
        await self._sql.execute("gateway_exchanges_end", ids=[], user_ids=list(users), now=now)

"""What the gateway has still to learn from: exchanges of people's tools with models, until they were read."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.ports.database import Statements

EXCHANGE_RETENTION: Final = timedelta(days=7)  # of its id: so long an exchange is not stored again


@dataclass(frozen=True, slots=True)
class GatewayExchange:
    """A user's message and the answer. `attempts` to learn from it have failed."""

    id: uuid.UUID
    question: str
    answer: str
    said_at: datetime
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class ExchangeOwner:
    """The user of some exchanges, and the tool (`vendor`) as which the entries learnt from them are written."""

    user: uuid.UUID
    vendor: str


class GatewayExchanges:
    """Exchanges that wait to be learnt from. An attempt claims some until it ends or its time runs out."""

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
            answer=exchange.answer,
            now=exchange.said_at,
            asked_at=asked_at,
        )
        return waits is True

    async def due(
        self, now: datetime, batch_size: int, quiet_since: datetime, waiting_since: datetime, limit: int
    ) -> list[ExchangeOwner]:
        """The owners whose exchanges are due: `batch_size` of them wait, none came since `quiet_since`, or one is from
        before `waiting_since`; longest waiting first."""
        rows = await self._sql.fetch(
            "gateway_exchanges_due",
            now=now,
            batch_size=batch_size,
            quiet_since=quiet_since,
            waiting_since=waiting_since,
            limit=limit,
        )
        return [ExchangeOwner(row["user_id"], row["vendor"]) for row in rows]

    async def claim(
        self, owner: ExchangeOwner, claim: uuid.UUID, now: datetime, until: datetime, limit: int
    ) -> list[GatewayExchange]:
        """Claim the oldest exchanges, oldest first. For the extractor, whose results are filed as the user's own."""
        rows = await self._sql.fetch(
            "gateway_exchanges_claim",
            user_id=owner.user,
            vendor=owner.vendor,
            claim=claim,
            now=now,
            until=until,
            limit=limit,
        )
        found = [GatewayExchange(r["id"], r["question"], r["answer"], r["said_at"], r["attempts"]) for r in rows]
        return sorted(found, key=lambda each: (each.said_at, each.id))

    async def still_claimed(self, claim: uuid.UUID, exchanges: Sequence[GatewayExchange]) -> bool:
        """Whether all exchanges of an attempt are still there and its own; they are locked until the transaction
        ends."""
        rows = await self._sql.fetch("gateway_exchanges_claimed", claim=claim)
        return {row["id"] for row in rows} == {each.id for each in exchanges}

    async def end(self, claim: uuid.UUID, now: datetime) -> None:
        """End an attempt: its exchanges are not read again, and their texts are gone."""
        await self._sql.execute("gateway_exchanges_learnt", claim=claim, now=now)

    async def fail(self, claim: uuid.UUID, due_at: datetime) -> None:
        """End an attempt that failed; it is made again at a time."""
        await self._sql.execute("gateway_exchanges_failed", claim=claim, due_at=due_at)

    async def count(self, users: Sequence[uuid.UUID]) -> int:
        """How many exchanges of these users wait."""
        found: int = await self._sql.fetch_value("gateway_exchanges_count", user_ids=list(users))
        return found

    async def drop(self, users: Collection[uuid.UUID], now: datetime) -> None:
        """Learn nothing from the exchanges of these users that wait, whose texts are gone, and nothing from what was
        asked by now and is answered later. Call it once erasure is locked."""
        await self._sql.execute("gateway_exchanges_drop", user_ids=list(users), now=now)
        await self._sql.execute("gateway_forgets_note", user_ids=list(users), now=now)

    async def delete_before(self, before: datetime) -> None:
        """Delete exchanges from before a time, and what else was noted until then."""
        await self._sql.execute("gateway_exchanges_delete_before", before=before)
        await self._sql.execute("gateway_forgets_delete_before", before=before)

    async def delete_of(self, users: Sequence[uuid.UUID]) -> None:
        """Delete the exchanges of people who are erased."""
        await self._sql.execute("gateway_exchanges_delete_of", user_ids=list(users))

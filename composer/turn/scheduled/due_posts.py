"""Post what is due: each thing once, through the adapters that this process serves."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

import structlog

from composer.errors import Unavailable, for_operator
from composer.model import Turn
from composer.ports.clock import Clock
from composer.repositories.database import Database, Transaction
from composer.repositories.reminders import Position
from composer.repositories.scheduled import PostKind
from composer.turn.worker import TurnWorker

logger = structlog.get_logger()

D = TypeVar("D")


class NotYet(Exception):
    """What is due waits for something, and is looked at again later."""


class PostSource(Protocol[D]):
    """A kind of post, such as reminders."""

    @property
    def kind(self) -> PostKind:
        """The kind. `take` is called only where something of it is due."""
        ...

    async def take(
        self,
        tx: Transaction,
        now: datetime,
        served: Sequence[str],
        position: Position | None,
        excluded: Sequence[uuid.UUID],
    ) -> D | None:
        """Take the earliest post that is due and that no other process holds, except for the `excluded`, locked until
        the transaction ends; with a `position` (the terminal), only of what is posted there."""
        ...

    def id_of(self, due: D) -> uuid.UUID:
        """The id by which `take` excludes it."""
        ...

    async def store(self, tx: Transaction, tenant: uuid.UUID, due: D, now: datetime) -> Turn | None:
        """Store the post of what was taken, and when it is due next; return the turn that delivers it, or None where
        nothing is posted. Raises NotYet."""
        ...


class DuePosts:
    """Posts what is due of some sources."""

    def __init__(self, database: Database, turns: TurnWorker, clock: Clock, *sources: PostSource[Any]) -> None:
        self._database = database
        self._turns = turns
        self._clock = clock
        self._sources = sources

    async def post_due(self, tenant: uuid.UUID | None = None, position: Position | None = None) -> int:
        """Start the delivery of everything that is due, of every tenant or of one; with a `position`, of what is posted
        there. Returns how many were posted.

        A tenant that fails is logged, and does not stop the others. Raises Unavailable without the database.
        """
        posted = 0
        tenants = [id for id, _ in await self._database.tenants()] if tenant is None else [tenant]
        for each in tenants:
            try:
                async with self._database.transaction(each, "read") as tx:
                    kinds = await tx.scheduled.due(self._clock.now(), self._turns.served, position)
            except Unavailable as error:
                logger.warning("posts.postponed", tenant=str(each), error=for_operator(error))
                continue
            for source in self._sources:
                if source.kind in kinds:
                    posted += await self._post_of(source, each, position)
        return posted

    async def _post_of(self, source: PostSource[Any], tenant: uuid.UUID, position: Position | None) -> int:
        """How many posts of one source were started. What fails is logged."""
        try:
            return await self._post_due(source, tenant, position)
        except Unavailable as error:
            logger.warning("posts.postponed", tenant=str(tenant), error=for_operator(error))
        except Exception:
            logger.exception("posts.failed", tenant=str(tenant))
        return 0

    async def _post_due(self, source: PostSource[D], tenant: uuid.UUID, position: Position | None) -> int:
        posted, now, excluded = 0, self._clock.now(), list[uuid.UUID]()
        while True:
            due: D | None = None
            try:
                async with self._database.transaction(tenant) as tx:
                    due = await source.take(tx, now, self._turns.served, position, excluded)
                    if due is None:
                        return posted
                    turn = await source.store(tx, tenant, due, now)
                    if turn is not None:
                        await self._turns.announce(tx, [turn])
            except Unavailable:
                raise
            except Exception as error:
                if due is None:
                    raise
                excluded.append(source.id_of(due))  # the others go on; the next look tries it again
                if not isinstance(error, NotYet):
                    logger.exception("post.failed", id=str(excluded[-1]))
                continue
            if turn is not None:
                posted += 1
                self._turns.start([turn])

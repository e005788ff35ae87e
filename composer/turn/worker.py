"""What runs beside the doors: turns, one after another within a conversation."""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

import structlog

from composer.errors import Unavailable
from composer.model import Agent, Turn
from composer.ports import Locks, Store
from composer.priority import InteractivePriority
from composer.turn.respond import Delivery, Responder

logger = structlog.get_logger()

TURNS_AT_ONCE: Final = 8
TRY_AGAIN: Final = 0.5  # seconds, doubled up to the next
LONGEST_PAUSE: Final = 15.0


class Notices(Protocol):
    """Where a door shows that an answer must wait."""

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """The answer can't be given now; it will come by itself."""
        ...


class Door(Delivery, Notices, Protocol):
    """All that the worker needs of a door."""


class TurnWorker:
    """Takes this process's turns to their answers. Different conversations run side by side."""

    def __init__(
        self,
        store: Store,
        locks: Locks,
        responder: Responder,
        agents: Callable[[uuid.UUID], Mapping[uuid.UUID, Agent]],
        done: Callable[[uuid.UUID], None],
        calm: InteractivePriority,
    ) -> None:
        """`done` is told the tenant of each turn that was sent."""
        self._priority = calm
        self._store = store
        self._locks = locks
        self._responder = responder
        self._agents = agents
        self._done = done
        self._doors: dict[str, Door] = {}
        self._waiting: dict[uuid.UUID, deque[Turn]] = {}
        self._known: set[uuid.UUID] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(TURNS_AT_ONCE)

    def serve(self, name: str, door: Door) -> None:
        """Deliver the answers to turns that came in by the door of this name through `door`."""
        self._doors[name] = door

    async def adopt(self) -> int:
        """Take over what processes that are no more left unanswered, and start on it; returns how many."""
        adopted = 0
        for tenant, _ in await self._store.tenants():
            async with self._store.transaction(tenant) as tx:
                adopted += await tx.turns.adopt(self._locks.number, sorted(self._doors))
            await self.take(tenant)
        if adopted:
            logger.warning("turns.adopted", count=adopted)
        return adopted

    async def take(self, tenant: uuid.UUID) -> None:
        """Start on whatever of this process's turns is queued in a tenant."""
        async with self._store.transaction(tenant, snapshot=True) as tx:
            turns = await tx.turns.open(self._locks.number)
        for turn, _ in turns:
            self.start(turn)

    def start(self, turn: Turn) -> None:
        """Start on one turn, behind the others of its conversation."""
        if turn.id in self._known or turn.adapter not in self._doors:
            return
        self._known.add(turn.id)
        line = self._waiting.setdefault(turn.conversation_id, deque())
        line.append(turn)
        if len(line) == 1:
            task = asyncio.create_task(self._work_off(turn.conversation_id, line))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait until every turn that was started is answered."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def stop(self) -> None:
        """Drop what runs: it stays queued, and whoever starts next answers it."""
        for task in list(self._tasks):
            task.cancel()
        for task in list(self._tasks):
            with suppress(asyncio.CancelledError):
                await task

    async def _work_off(self, conversation: uuid.UUID, line: deque[Turn]) -> None:
        while line:
            async with self._slots:
                try:
                    await self._answer(line[0])
                except Exception:  # the others of this conversation are answered all the same
                    logger.exception("turn.abandoned", turn=str(line[0].id))
            self._known.discard(line.popleft().id)
        del self._waiting[conversation]

    async def _answer(self, turn: Turn) -> None:
        """Answer one turn, however often it takes; what does not pass by waiting is told and left."""
        door, pause, told = self._doors[turn.adapter], TRY_AGAIN, False
        while True:
            self._priority.begin(turn.id)
            try:
                if await self._locks.take(turn.conversation_id):
                    try:
                        await self._respond(turn, door)
                        return
                    finally:
                        with suppress(Unavailable):
                            await self._locks.release(turn.conversation_id)
            except Unavailable as error:
                if not told:
                    await door.on_delay(turn, f"{error} Your message is kept, and will be answered.")
                told = True
            except Exception:
                logger.exception("turn.abandoned", turn=str(turn.id))
                await door.on_delay(
                    turn, "Something went wrong with this answer; it is in the log under the turn's id."
                )
                return
            finally:
                self._priority.end(turn.id)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _respond(self, turn: Turn, door: Door) -> None:
        agent = self._agents(turn.tenant_id).get(turn.agent_id)
        if agent is None:
            logger.error("turn.agent_unknown", turn=str(turn.id))
            await door.on_delay(turn, "The agent that was asked is no longer configured.")
            return
        await self._responder.respond(turn, agent, door)
        self._done(turn.tenant_id)

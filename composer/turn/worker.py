"""Answer queued turns: the turns of one conversation in order, several conversations concurrently."""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import structlog

from composer.errors import Unavailable
from composer.model import Agent, Message, Turn
from composer.ports.observer import Observer, TurnOutcome, TurnReport
from composer.ports.process_locks import ProcessLocks
from composer.repositories.database import Database
from composer.signals import InteractivePriority, end_tasks
from composer.turn.delivery import Delivery
from composer.turn.respond import Responder

logger = structlog.get_logger()

TURN_RETRY_SECONDS: Final = 0.5  # before the second attempt; doubled with each one
MAX_RETRY_SECONDS: Final = 15.0


class TurnWorker:
    """Answers the turns that this process has claimed."""

    def __init__(
        self,
        database: Database,
        locks: ProcessLocks,
        responder: Responder,
        agents: Callable[[uuid.UUID], Mapping[uuid.UUID, Agent]],
        on_answered: Callable[[uuid.UUID], None],
        priority: InteractivePriority,
        observer: Observer,
        concurrent: int,
    ) -> None:
        """`agents` gives a tenant's agents by id. `on_answered` is called with the tenant of each answered turn.
        At most `concurrent` turns are answered at once; one that waits for its next attempt does not count."""
        self._database = database
        self._locks = locks
        self._responder = responder
        self._agents = agents
        self._on_answered = on_answered
        self._priority = priority
        self._observer = observer
        self._deliveries: dict[str, Delivery] = {}
        self._workspaces: dict[str, Callable[[], str | None]] = {}  # of adapters of one workspace
        self._queues: dict[uuid.UUID, deque[Turn]] = {}  # by conversation
        self._queued: set[uuid.UUID] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(concurrent)

    @property
    def open(self) -> int:
        """How many turns of this process are not finished: running, or waiting for their conversation or next try."""
        return len(self._queued)

    @property
    def served(self) -> list[str]:
        """Where this process delivers answers: a platform, such as `discord`, or one workspace: `slack:T123`."""
        served = []
        for adapter in sorted(self._deliveries):
            if (workspace := self._workspaces.get(adapter)) is None:
                served.append(adapter)
            elif (name := workspace()) is not None:
                served.append(f"{adapter}:{name}")
        return served

    def serve(self, adapter: str, delivery: Delivery, workspace: Callable[[], str | None] | None = None) -> None:
        """Answer the turns that came through `adapter`, and deliver the answers through `delivery`. An adapter of one
        workspace says which, or None while it does not know: until then nothing of an earlier process is taken over."""
        self._deliveries[adapter] = delivery
        if workspace is not None:
            self._workspaces[adapter] = workspace

    def is_open(self, turn: uuid.UUID) -> bool:
        """Whether this process has a turn to finish."""
        return turn in self._queued

    async def adopt(self, only: uuid.UUID | None = None) -> int:
        """Take over and start the turns that dead processes left unanswered: those of every tenant, or of one. Returns
        how many."""
        adopted = 0
        for tenant in [tenant for tenant, _ in await self._database.tenants()] if only is None else [only]:
            async with self._database.transaction(tenant) as tx:
                adopted += await tx.turns.adopt(self._locks.number, self.served)
            await self.start_claimed(tenant)
        if adopted:
            logger.warning("turns.adopted", count=adopted)
        return adopted

    async def start_claimed(self, tenant: uuid.UUID) -> None:
        """Start every open turn of a tenant that this process has claimed."""
        async with self._database.transaction(tenant, "read") as tx:
            turns = await tx.turns.unfinished(self._locks.number)
        for turn, _ in turns:
            self.start(turn)

    def start(self, turn: Turn, question: Message | None = None) -> None:
        """Queue a turn behind the others of its conversation. A turn that is queued already is ignored. `question` is
        its message, if that was stored just now: it need not be read where the turn can begin at once."""
        if turn.id in self._queued or turn.adapter not in self._deliveries:
            return
        self._queued.add(turn.id)
        queue = self._queues.setdefault(turn.conversation_id, deque())
        queue.append(turn)
        if len(queue) == 1:
            fresh = None if self._slots.locked() else question
            task = asyncio.create_task(self._work_through(turn.conversation_id, queue, fresh))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait until every started turn is answered."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def stop(self) -> None:
        """Cancel what runs. The turns stay queued in the database; the next process to start answers them."""
        await end_tasks(self._tasks)

    async def _work_through(self, conversation: uuid.UUID, queue: deque[Turn], question: Message | None) -> None:
        """Answer the turns of one conversation in order, the first one with its question if that is given. A failure of
        one does not stop the others."""
        while queue:
            turn = queue[0]
            try:
                await self._answer(turn, self._deliveries[turn.adapter], question)
            except Exception:
                logger.exception("turn.abandoned", turn=str(turn.id))
            question = None
            self._queued.discard(queue.popleft().id)
        del self._queues[conversation]

    async def _answer(self, turn: Turn, delivery: Delivery, question: Message | None) -> None:
        """Answer one turn, and retry while the database or a platform is unavailable. Any other error is logged and
        shown to the sender; the turn is not retried.

        The concurrency limit counts running attempts only: while one platform or conversation waits, others continue.
        """
        pause, reported, attempts = TURN_RETRY_SECONDS, False, 0
        while True:
            attempts += 1
            try:
                async with self._slots:
                    report = await self._attempt(turn, delivery, question if attempts == 1 else None)
                if report is not None:
                    self._report(report, attempts)
                    return
            except Unavailable as error:
                if not reported:
                    await delivery.on_delay(turn, f"{error} Your message is stored and will be answered.")
                reported = True
            except Exception:
                logger.exception("turn.abandoned", turn=str(turn.id))
                self._report(TurnReport(turn, TurnOutcome.ABANDONED), attempts)
                await delivery.on_delay(
                    turn,
                    "Something went wrong with this answer. Ask again; if it fails again, give an admin this "
                    f"id for the program's log: {turn.id}",
                )
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_RETRY_SECONDS)

    def _report(self, report: TurnReport, attempts: int) -> None:
        """Write the one log line of a turn, and tell the observer. Ids, times and counts: no text, no names."""
        turn, usage = report.turn, report.usage
        logger.info(
            "turn.ended",
            turn=str(turn.id),
            tenant=str(turn.tenant_id),
            conversation=str(turn.conversation_id),
            agent=str(turn.agent_id),
            adapter=turn.adapter,
            outcome=report.outcome.value,
            attempts=attempts,
            model=report.model,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            **{f"{step}_ms": time for step, time in report.timings_ms.items()},
        )
        self._observer.turn_ended(report)

    async def _attempt(self, turn: Turn, delivery: Delivery, question: Message | None) -> TurnReport | None:
        """Lock the conversation and answer a turn. None while another process has the lock."""
        self._priority.begin(turn.id)
        try:
            if not await self._locks.take(turn.conversation_id):
                return None
            try:
                return await self._respond(turn, delivery, question)
            finally:
                with suppress(Unavailable):
                    await self._locks.release(turn.conversation_id)
        finally:
            self._priority.end(turn.id)

    async def _respond(self, turn: Turn, delivery: Delivery, question: Message | None) -> TurnReport:
        agent = self._agents(turn.tenant_id).get(turn.agent_id)
        if agent is None:
            logger.error("turn.agent_unknown", turn=str(turn.id))
            await delivery.on_delay(
                turn, "This agent is no longer configured. /nexus agents lists those that you can ask."
            )
            return TurnReport(turn, TurnOutcome.ABANDONED)
        report = await self._responder.respond(turn, agent, delivery, question)
        self._on_answered(turn.tenant_id)
        return report

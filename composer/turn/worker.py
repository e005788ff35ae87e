"""Answer queued turns: each person's in one conversation in order, other people's and conversations side by side.

A conversation has one *owner* at a time: the process that holds the lock of it (composer.ports.process_locks), which
reads the open turns from the database, answers them, and lets go when there are none. The questions of one person are
answered in the order of their messages; a model that does not answer one of them holds up nobody else.
Who receives a message becomes the owner before the message is stored, or tells every process of it where another one is
the owner. A lock ends with its process: others look every few seconds for turns that nobody answers (`take_over`).
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

import structlog

from composer.errors import Unavailable
from composer.ingest.receive import Leases
from composer.model import Agent, Message, Turn
from composer.ports.observer import Observer, TurnOutcome, TurnReport
from composer.ports.process_locks import ProcessLocks
from composer.repositories.database import Database, Transaction
from composer.repositories.turns import OpenTurn
from composer.tasks.shares import Party, Places, acting_for, current_party
from composer.tasks.signals import InteractivePriority, end_tasks
from composer.turn.delivery import Delivery
from composer.turn.respond import Responder

logger = structlog.get_logger()

TURN_RETRY_SECONDS: Final = 0.5  # before the second attempt; doubled with each one
MAX_TURN_RETRY_SECONDS: Final = 15.0
MAX_SIDE_BY_SIDE: Final = 4  # people whose questions are answered at once in one conversation
OWNER_WAIT_SECONDS: Final = 3.0  # between looks at whether a conversation is free, for what only this process answers
TURN_FAILED: Final = (
    "Something went wrong with this answer. Ask again; if it fails again, give an admin this id for the program's log: "
    "{turn}"
)
AGENT_NOT_CONFIGURED: Final = "This agent is no longer configured. /nexus agents lists those that you can ask."


@dataclass(frozen=True, slots=True)
class _ServedAdapter:
    """How answers of an adapter are delivered. `workspace` names the one workspace of it that is served (None: all),
    or None while it is not known. `here_only`: only the process that received a question can show its answer."""

    delivery: Delivery
    workspace: Callable[[], str | None] | None
    here_only: bool


@dataclass(frozen=True, slots=True)
class _FreshTurn:
    """A turn that was stored while this process owned its conversation by the lock of this number, so no other can have
    begun to answer it. `question` is its message, if it need not be read."""

    lock: int
    question: Message | None


@dataclass(slots=True, eq=False)
class _KnownConversation:
    """A conversation with open turns, as far as this process knows them.

    `people` are those who ask, as far as they are known. `tasks` answer them, each one of another person at a time:
    `askers` are those whose turn is being answered or waits for its next attempt. `changed` is set when there may be
    others than were read. `own` are the turns that only this process answers, each with a lock of its own. `left` is an
    open turn that others are to answer; with `waits`, own turns come after it. `scopes` end what is being done as the
    owner.
    """

    tenant: uuid.UUID
    id: uuid.UUID
    open: dict[uuid.UUID, Turn] = field(default_factory=dict)
    people: dict[uuid.UUID, uuid.UUID | None] = field(default_factory=dict)  # by turn
    received: dict[uuid.UUID, _FreshTurn] = field(default_factory=dict)
    own: set[uuid.UUID] = field(default_factory=set)
    ended: set[uuid.UUID] = field(default_factory=set)
    delayed: set[uuid.UUID] = field(default_factory=set)  # turns whose sender knows that the answer takes longer
    attempts: dict[uuid.UUID, int] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    left: Turn | None = None
    waits: bool = False
    answered: bool = False  # a turn of it, since others were told that it is free
    askers: set[uuid.UUID | None] = field(default_factory=set)
    scopes: set[asyncio.Timeout] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def next_asker(self) -> uuid.UUID | None:
        """Who asks what is answered next; None where that is not known, or nobody."""
        return next((who for id in self.open if (who := self.people.get(id)) not in self.askers), None)


class _NextTurn(Enum):
    """What became of an attempt to answer the next turn of a conversation."""

    ANSWERED = auto()
    NOTHING = auto()  # there is no open turn that this process answers
    WAITS = auto()  # the one that is next is another process's
    NOT_OWNER = auto()  # another process has the conversation


class _OwnershipLost(Exception):
    """The lock of a conversation was lost while its turns were being answered."""


class _Postponed(Exception):
    """`turn` is to be tried again later, if there is one. `reason`: what is unavailable. `begun`: it was being
    answered, and its asker waits for the next attempt."""

    def __init__(self, reason: Unavailable, turn: Turn | None, begun: OpenTurn | None = None) -> None:
        super().__init__(str(reason))
        self.reason, self.turn, self.begun = reason, turn, begun


class TurnWorker:
    """Answers turns in the conversations that this process owns."""

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
        """`agents` gives a tenant's agents by id, in their order. `on_answered` is called with the tenant of each
        answered turn. At most `concurrent` turns are answered at once, in turns by tenant and by who asks
        (composer.tasks.shares); one that waits for its next attempt does not count."""
        self._database = database
        self._locks = locks
        self._responder = responder
        self._agents = agents
        self._on_answered = on_answered
        self._priority = priority
        self._observer = observer
        self._adapters: dict[str, _ServedAdapter] = {}
        self._conversations: dict[uuid.UUID, _KnownConversation] = {}
        self._unposted: set[uuid.UUID] = set()
        self._places = Places(concurrent)
        self._stopped = False

    @property
    def open(self) -> int:
        """How many turns this process knows of that are not finished: running, or waiting for their conversation or
        next attempt."""
        return sum(len(each.open) for each in self._conversations.values())

    @property
    def unposted(self) -> Collection[uuid.UUID]:
        """The turns that are being answered of which nothing is posted yet but what this attempt posts."""
        return self._unposted

    @property
    def served(self) -> list[str]:
        """Where this process delivers answers: a platform, such as `discord`, or one workspace: `slack:T123`."""
        served = []
        for adapter, each in sorted(self._adapters.items()):
            if each.workspace is None:
                served.append(adapter)
            elif (name := each.workspace()) is not None:
                served.append(f"{adapter}:{name}")
        return served

    def serve(
        self,
        adapter: str,
        delivery: Delivery,
        workspace: Callable[[], str | None] | None = None,
        *,
        here_only: bool = False,
    ) -> None:
        """Answer the turns that came through `adapter`, and deliver the answers through `delivery`. An adapter of one
        workspace says which, or None while it does not know: until then nothing of an earlier process is taken over.
        `here_only`: only the process that received a question can show its answer; as long as it lives, no other
        process answers it."""
        self._adapters[adapter] = _ServedAdapter(delivery, workspace, here_only)

    async def announce(self, tx: Transaction, turns: Sequence[Turn]) -> Leases:
        """In the transaction that stores turns: become the owner of their conversations, or tell all processes of those
        that another one owns. What is returned is for `start`, after the transaction."""
        here = [] if self._stopped else [turn for turn in turns if turn.adapter in self._adapters]
        own = [turn for turn in here if self._adapters[turn.adapter].here_only]
        for turn in here:
            self._known(turn.tenant_id, turn.conversation_id).changed.set()
        for turn in own:
            self._conversations[turn.conversation_id].own.add(turn.id)
        wanted = [turn.id for turn in own]
        # Whoever is busy leaves a conversation to others.
        wanted += [turn.conversation_id for turn in here if self._places.has_one_for(current_party(turn.tenant_id))]
        leases: Leases = {}
        if wanted:
            with suppress(Unavailable):
                leases = await self._locks.take(wanted, reconnect=False)
        others = [turn for turn in turns if turn.conversation_id not in leases]
        if others:
            await tx.turns.notify(others, self._locks.number)
        return leases

    def start(
        self,
        turns: Sequence[Turn],
        leases: Leases = MappingProxyType({}),
        questions: Mapping[uuid.UUID, Message] = MappingProxyType({}),
    ) -> None:
        """Answer turns that were announced and are stored. With `leases`, they were not stored before that: no process
        can have begun to answer those whose conversation this one has owned since. `questions` are their messages by
        id: they need not be read where a turn can begin at once."""
        for turn in turns:
            if turn.adapter not in self._adapters:
                continue
            known = self._known(turn.tenant_id, turn.conversation_id)
            known.open[turn.id] = turn
            if (question := questions.get(turn.message_id)) is not None:
                known.people[turn.id] = question.user_id
            self._adapters[turn.adapter].delivery.on_wait(turn)
            if (lock := leases.get(turn.conversation_id)) is not None:
                is_next = self._places.has_one_for(Party(turn.tenant_id, known.people.get(turn.id)))
                at_once = not known.tasks and len(known.open) == 1 and is_next
                known.received[turn.id] = _FreshTurn(lock, question if at_once else None)
        for turn in turns:
            if turn.conversation_id in self._conversations:
                self._look_at(self._conversations[turn.conversation_id])

    def on_notice(self, notice: str) -> None:
        """A process says that there are turns in a conversation (`Turns.notify`)."""
        sender, tenant, conversation, adapter, workspace = notice.split(" ", 4)
        if sender == str(self._locks.number):
            return
        if {adapter, f"{adapter}:{workspace}"} & set(self.served):
            self._look_at(self._known(uuid.UUID(tenant), uuid.UUID(conversation)))

    def on_lost(self) -> None:
        """All locks were lost: end what is being done as an owner. It begins again where the locks can be had again."""
        self._unposted.clear()
        for each in self._conversations.values():
            each.changed.set()
            for scope in each.scopes:
                scope.reschedule(asyncio.get_running_loop().time())

    async def take_over(self, tenants: Iterable[uuid.UUID]) -> int:
        """Answer the open turns of these tenants that no process answers, where this one delivers. Returns in how many
        conversations they are. Raises Unavailable."""
        found = 0
        for each in [each for each in self._conversations.values() if not each.tasks]:
            self._look_at(each)  # what was announced and not stored
        if not (served := self.served):
            return 0
        for tenant in tenants:
            async with self._database.statement(tenant) as tx:
                unowned = await tx.turns.unowned(served)
            known = [self._known(tenant, conversation) for conversation in unowned]
            found += sum(not each.tasks for each in known)
            for conversation in known:
                self._look_at(conversation)
        if found:
            logger.warning("turns.taken_over", conversations=found)
        return found

    async def settle(self) -> None:
        """Wait until every turn that was started is answered, here or by the owner of its conversation."""
        while tasks := [task for each in self._conversations.values() for task in each.tasks]:
            await asyncio.gather(*tasks)

    async def stop(self) -> None:
        """Cancel what runs, and let go of every conversation. The turns stay queued in the database; another process
        answers them, or the next one to start."""
        self._stopped = True
        known = list(self._conversations.values())
        await end_tasks(task for each in known for task in each.tasks)
        self._conversations.clear()
        with suppress(Unavailable):
            await self._locks.release([id for each in known for id in (each.id, *each.own)])

    def _known(self, tenant: uuid.UUID, conversation: uuid.UUID) -> _KnownConversation:
        return self._conversations.setdefault(conversation, _KnownConversation(tenant, conversation))

    def _look_at(self, conversation: _KnownConversation) -> None:
        """Answer the turns of a conversation; where that is being done, look for further ones."""
        conversation.changed.set()
        everybody_answers = len(conversation.tasks) <= len(conversation.askers)
        if everybody_answers and len(conversation.tasks) < MAX_SIDE_BY_SIDE and not self._stopped:
            task = asyncio.create_task(self._work(conversation))
            conversation.tasks.add(task)

    async def _work(self, conversation: _KnownConversation) -> None:
        """Answer turns of one conversation, one after the other, for as long as there are any whose asker is not being
        answered. A failure of one does not stop the others. The last task lets go of the conversation."""
        pause, task = TURN_RETRY_SECONDS, asyncio.current_task()
        assert task is not None
        try:
            while True:
                try:
                    outcome = await self._answer_next(conversation)
                except _OwnershipLost:
                    continue
                except _Postponed as postponed:
                    await self._delay(conversation, postponed.turn, postponed.reason)
                    try:
                        if not conversation.scopes:
                            await self._release([conversation.id])  # perhaps another process can do it
                        await asyncio.sleep(pause)
                    finally:
                        if postponed.begun is not None:
                            conversation.askers.discard(postponed.begun.asker)
                    pause = min(pause * 2, MAX_TURN_RETRY_SECONDS)
                    continue
                pause = TURN_RETRY_SECONDS
                is_answered = outcome is _NextTurn.ANSWERED
                conversation.answered = conversation.answered or is_answered
                if len(conversation.tasks) > 1 and not (is_answered and conversation.changed.is_set()):
                    return  # the others go on
                if outcome is _NextTurn.WAITS:
                    await self._release([conversation.id])
                    await self._tell(conversation)
                if outcome is _NextTurn.WAITS or (outcome is _NextTurn.NOT_OWNER and conversation.own):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(OWNER_WAIT_SECONDS):
                            await conversation.changed.wait()
                elif not conversation.changed.is_set():
                    await self._release([conversation.id, *conversation.own])
                    if not conversation.changed.is_set():  # since then, whoever stores a turn can become the owner
                        break
        except Exception:
            logger.exception("turns.failed", conversation=str(conversation.id))
            if len(conversation.tasks) == 1:
                await self._release([conversation.id, *conversation.own])
        finally:
            conversation.tasks.discard(task)
            if not conversation.tasks:
                self._conversations.pop(conversation.id, None)
        if not conversation.tasks:
            await self._tell(conversation)

    async def _answer_next(self, conversation: _KnownConversation) -> _NextTurn:
        """Become the owner of a conversation, and answer the next turn there of somebody who is not being answered.
        Raises _OwnershipLost and _Postponed."""
        with acting_for(conversation.tenant, conversation.next_asker):
            async with self._places.take():
                return await self._answer_in_place(conversation)

    async def _answer_in_place(self, conversation: _KnownConversation) -> _NextTurn:
        conversation.changed.clear()
        wanted = [conversation.id, *conversation.own]
        try:
            locks = await self._locks.take(wanted)
        except Unavailable as error:
            raise _Postponed(error, next(iter(conversation.open.values()), None)) from error
        conversation.own &= locks.keys()  # what was lost meanwhile, another process may answer
        if conversation.id not in locks:
            conversation.open = {id: turn for id, turn in conversation.open.items() if id in conversation.own}
            return _NextTurn.NOT_OWNER
        async with self._as_owner(conversation, locks[conversation.id]):
            try:
                turns = await self._open_turns(conversation)
            except Unavailable as error:
                raise _Postponed(error, next(iter(conversation.open.values()), None)) from error
            # From here to the choice nothing is awaited: another task may have answered what was read.
            turns = [each for each in turns if each.turn.id not in conversation.ended]
            free = [each for each in turns if each.asker not in conversation.askers]
            if len(turns) > 1 or conversation.waits:
                conversation.changed.set()
            if not free:
                return _NextTurn.WAITS if conversation.waits else _NextTurn.NOTHING
            await self._answer_beside(conversation, free)
            return _NextTurn.ANSWERED

    async def _answer_beside(self, conversation: _KnownConversation, free: Sequence[OpenTurn]) -> None:
        """Make one attempt to answer the first of these turns, while another task answers those of other people. Raises
        _Postponed; then its asker's turns wait for the next attempt."""
        begun, waits = free[0], False
        conversation.askers.add(begun.asker)
        if any(each.asker != begun.asker for each in free):
            self._look_at(conversation)
        try:
            await self._answer(conversation, begun.turn)
        except Unavailable as error:
            waits = True
            raise _Postponed(error, begun.turn, begun) from error
        finally:
            if not waits:
                conversation.askers.discard(begun.asker)

    @asynccontextmanager
    async def _as_owner(self, conversation: _KnownConversation, lock: int) -> AsyncIterator[None]:
        """What is done here ends when the lock is lost: then _OwnershipLost is raised."""
        try:
            async with asyncio.timeout(None) as scope:
                if self._locks.held(conversation.id) != lock:
                    raise _OwnershipLost
                conversation.scopes.add(scope)
                yield
        except TimeoutError as error:
            if not scope.expired():
                raise
            logger.warning("turns.owner_lost", conversation=str(conversation.id))
            raise _OwnershipLost from error
        finally:
            conversation.scopes.discard(scope)

    async def _open_turns(self, conversation: _KnownConversation) -> list[OpenTurn]:
        """The open turns of a conversation that this process answers now, in the order of their messages, and of
        several agents that answer one message in the order of the agents. What comes after a turn that only another
        process answers, which lives, waits for that."""
        async with self._database.statement(conversation.tenant) as tx:
            found = await tx.turns.open(conversation.id)
        served, turns = set(self.served), list[OpenTurn]()
        conversation.left, conversation.waits = None, False
        for position, each in enumerate(found):
            turn = each.turn
            is_served = not served.isdisjoint((turn.adapter, f"{turn.adapter}:{each.workspace}"))
            if not is_served and turn.id not in conversation.open:  # which is being answered here, or was received here
                conversation.left = turn
            elif await self._is_left_to_another(conversation, turn):
                conversation.left = turn
                conversation.waits = any(later.turn.id in conversation.own for later in found[position:])
                break
            elif turn.id not in conversation.ended:
                turns.append(each)
        messages, agents = [each.turn.message_id for each in turns], list(self._agents(conversation.tenant))
        turns.sort(key=lambda each: (messages.index(each.turn.message_id), _place(agents, each.turn.agent_id)))
        conversation.open = {each.turn.id: each.turn for each in turns}
        conversation.people = {each.turn.id: each.asker for each in turns}
        return turns

    async def _is_left_to_another(self, conversation: _KnownConversation, turn: Turn) -> bool:
        """Whether only the process that received a turn answers it, which is another one and lives."""
        if not self._adapters[turn.adapter].here_only or turn.id in conversation.own:
            return False
        if turn.id not in await self._locks.take([turn.id]):
            return True
        conversation.own.add(turn.id)
        return False

    async def _answer(self, conversation: _KnownConversation, turn: Turn) -> None:
        """Make one attempt to answer a turn. Raises Unavailable while the database or a platform is unavailable. Any
        other error is logged, shown to the sender and stored as the failure of the turn, which ends it."""
        delivery = self._adapters[turn.adapter].delivery
        conversation.attempts[turn.id] = conversation.attempts.get(turn.id, 0) + 1
        received = conversation.received.pop(turn.id, None)
        is_first = received is not None and received.lock == self._locks.held(conversation.id)
        if is_first:
            self._unposted.add(turn.id)
        self._priority.begin(turn.id)
        try:
            report = await self._respond(turn, delivery, received.question if received and is_first else None)
        except Unavailable:
            raise
        except Exception:
            logger.exception("turn.abandoned", turn=str(turn.id))
            report = await self._give_up(turn, delivery, TURN_FAILED.format(turn=turn.id))
        finally:
            self._priority.end(turn.id)
            self._unposted.discard(turn.id)
        conversation.ended.add(turn.id)
        conversation.open.pop(turn.id, None)
        self._report(report, conversation.attempts.pop(turn.id))

    async def _respond(self, turn: Turn, delivery: Delivery, question: Message | None) -> TurnReport:
        agent = self._agents(turn.tenant_id).get(turn.agent_id)
        if agent is None:
            logger.error("turn.agent_unknown", turn=str(turn.id))
            return await self._give_up(turn, delivery, AGENT_NOT_CONFIGURED)
        report = await self._responder.respond(turn, agent, delivery, question)
        self._on_answered(turn.tenant_id)
        return report

    async def _give_up(self, turn: Turn, delivery: Delivery, sentence: str) -> TurnReport:
        """End a turn with a sentence in place of its answer. Raises Unavailable."""
        async with self._database.transaction(turn.tenant_id) as tx:
            await tx.turns.give_up(turn.id, sentence)
        try:
            await delivery.on_delay(turn, sentence)
        except Exception:
            logger.exception("turn.failure_not_shown", turn=str(turn.id))
        return TurnReport(turn, TurnOutcome.ABANDONED)

    async def _delay(self, conversation: _KnownConversation, turn: Turn | None, error: Unavailable) -> None:
        """Say once of a turn that its answer takes longer."""
        if turn is None or turn.id in conversation.delayed:
            return
        conversation.delayed.add(turn.id)
        try:
            delivery = self._adapters[turn.adapter].delivery
            await delivery.on_delay(turn, f"{error} Your message is stored and will be answered.")
        except Exception:
            logger.exception("turn.delay_not_shown", turn=str(turn.id))

    async def _release(self, ids: Collection[uuid.UUID]) -> None:
        with suppress(Unavailable):
            await self._locks.release(ids)

    async def _tell(self, conversation: _KnownConversation) -> None:
        """Tell other processes that a conversation is free, if one of them has a turn to answer there, and it was not
        free before: this one has answered some."""
        turn, answered = conversation.left, conversation.answered
        conversation.answered = False
        if turn is None or not answered:
            return
        with suppress(Unavailable):
            async with self._database.transaction(turn.tenant_id) as tx:
                await tx.turns.notify([turn], self._locks.number)

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


def _place(agents: Sequence[uuid.UUID], agent: uuid.UUID) -> int:
    return agents.index(agent) if agent in agents else len(agents)

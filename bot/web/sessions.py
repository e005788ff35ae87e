"""Sessions over the API: messages there are received and answered as on a chat platform. An answer is delivered by
being stored: clients that wait for it get an event, clients that have left read it later."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final
from weakref import WeakSet

from bot.web.session_files import SentFile, SessionFiles, attachments_of
from composer.app import App
from composer.errors import BadInput, Conflict, NotFound, Unavailable
from composer.ingest.receive import turn_id
from composer.model import API, Turn, TurnState, api_workspace, message_id
from composer.people.sessions.history import NOTHING, MadeOf, get_turn, made_of
from composer.people.sessions.opening import Admit, NewSessionMessage, OpenSession, open_session
from composer.people.sessions.owner import SessionOwner
from composer.prompt.explain import ExplainedSource
from composer.repositories.sessions import SessionTurn
from composer.repositories.turns import Answer

ANSWER_LOOK_SECONDS: Final = 2.0  # between looks at a turn without events, and at the credential of who waits
USED_AGAIN: Final = "That id was used for another message in this session: use a new one for each message."
ERASED_BEFORE: Final = "A message with that id was erased: send it again with a new id."
QUESTION_ERASED: Final = "The question was erased, and so there is no answer."
REVOKED: Final = "The key is not valid any more."


class EventKind(StrEnum):
    """The kinds of events of a turn."""

    START = "start"  # it is known which turn it is
    CHUNK = "chunk"
    DELAY = "delay"
    WAIT = "wait"  # nothing new; shows that the connection lives
    ANSWER = "answer"
    FAILED = "failed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as its person may see it now: `text` is the answer, or the sentence that says why there is none
    (`failed`); None while it is queued. `made` is what the answer was made of."""

    turn: SessionTurn
    text: str | None = None
    failed: bool = False
    made: MadeOf = NOTHING

    @property
    def sources(self) -> Sequence[ExplainedSource]:
        """What the answer was made from, besides its conversation."""
        return self.made.sources


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """An event of a turn. `text` is a chunk or a sentence; of an answer all of it. `view` is set at the end, if the
    turn is still stored."""

    kind: EventKind
    text: str = ""
    view: TurnView | None = None


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Listener:
    """A client that waits for a turn, with the events that it has not taken yet. Dropped as soon as nobody refers to
    it."""

    turn: uuid.UUID
    events: asyncio.Queue[TurnEvent] = field(default_factory=asyncio.Queue)

    def drop_chunks(self) -> None:
        """Drop the chunks that were not taken yet."""
        for event in [self.events.get_nowait() for _ in range(self.events.qsize())]:
            if event.kind is not EventKind.CHUNK:
                self.events.put_nowait(event)


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A question that is stored: its session, and its turn. `new`: it was not stored before. `ephemeral`: it is stored
    until its answer is there."""

    owner: SessionOwner
    session: OpenSession
    turn: uuid.UUID
    new: bool
    ephemeral: bool
    listener: _Listener


class SessionDelivery:
    """Gives the events of turns to those who wait for them in this process (composer.turn.delivery.Delivery)."""

    def __init__(self, files: SessionFiles) -> None:
        self._listeners: WeakSet[_Listener] = WeakSet()
        self._files = files

    def listen(self, turn: uuid.UUID) -> _Listener:
        """Collect the events of a turn from now on, for as long as the caller refers to the listener."""
        listener = _Listener(turn)
        self._listeners.add(listener)
        return listener

    def on_wait(self, turn: Turn) -> None:
        """Do nothing: whoever asks over the API is told that the question is stored."""

    def on_start(self, turn: Turn) -> None:
        """Drop what is left of an answer that could not be stored: another one is written in its place, perhaps since
        something was forgotten."""
        for listener in self._listeners_of(turn):
            listener.drop_chunks()

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Pass on a chunk."""
        self._notify(turn, TurnEvent(EventKind.CHUNK, text))

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """Pass on why there is no answer yet."""
        self._notify(turn, TurnEvent(EventKind.DELAY, sentence))

    async def deliver(self, answer: Answer) -> None:
        """Say that the answer is there. It is stored, so nothing else is to be done."""
        self._files.drop(answer.turn.message_id)
        self._notify(answer.turn, TurnEvent(EventKind.FAILED if answer.failed else EventKind.ANSWER, answer.text))

    async def abandon(self, turn: Turn) -> None:
        """Say that there will be no answer."""
        self._files.drop(turn.message_id)
        self._notify(turn, TurnEvent(EventKind.FAILED, QUESTION_ERASED))

    def _notify(self, turn: Turn, event: TurnEvent) -> None:
        for listener in self._listeners_of(turn):
            listener.events.put_nowait(event)

    def _listeners_of(self, turn: Turn) -> list[_Listener]:
        return [each for each in self._listeners if each.turn == turn.id]


class ApiSessions:
    """Sessions over the API. One object of a process serves all of them; it keeps nothing of a session."""

    def __init__(self, app: App, *, look_seconds: float = ANSWER_LOOK_SECONDS) -> None:
        self._app = app
        self._look_seconds = look_seconds
        self._files = SessionFiles()
        self._delivery = SessionDelivery(self._files)
        app.turns.serve(API, self._delivery, here_only=True)
        app.drafter.images.register_source(API, self._files)
        app.file_texts.register_source(API, self._files)

    async def owner(self, tenant: uuid.UUID, user: uuid.UUID, grants: frozenset[str]) -> SessionOwner:
        """A person who asks, by the permissions of their credential. Raises NotFound for an unknown tenant."""
        slug = self._app.directory.slug(tenant) or dict(await self._app.database.tenants()).get(tenant)
        if slug is None:
            raise NotFound("There is no such organisation.")
        return SessionOwner(api_workspace(tenant, slug), user, grants)

    async def ask(
        self,
        owner: SessionOwner,
        said: NewSessionMessage,
        admit: Admit | None = None,
        files: Sequence[SentFile] = (),
    ) -> StoredQuestion:
        """Store what is said with its `files`, and let it be answered. The same message again, by its id, changes
        nothing. `admit` raises where nothing may be stored any more; it is called while erasure is blocked, where
        something is stored.

        Raises as `open_session`, `attachments_of` and `admit`, BadInput for the id of another message, Conflict for
        that of an erased one, and Unavailable.
        """
        said = replace(said, attachments=attachments_of(files, spoken=self._app.file_texts.transcribes))
        tenant = owner.workspace.tenant_id
        agents = self._app.directory.agents(tenant)
        async with self._app.database.transaction(tenant) as tx:
            session = await open_session(tx, owner, agents, said, self._app.clock.now(), admit)
        message = message_id(session.conversation.id, session.incoming.id)
        turn = turn_id(message, session.agent)
        listener = self._delivery.listen(turn)  # before it is received: its answer may come at once
        held = {each.address: file.content for each, file in zip(said.attachments, files, strict=True)}
        self._files.hold(tenant, owner.user, message, held)
        received = None
        try:
            received = await self._app.receive(owner.workspace, [session.incoming], admit=admit)
        finally:
            if received is None or not received.new:
                self._files.release(message, held)
        async with self._app.database.transaction(tenant, "read") as tx:
            stored = await tx.messages.get(message)
        if not received.new and stored is None:
            raise Conflict(ERASED_BEFORE)
        if stored is not None and stored.text != session.incoming.text:
            raise BadInput(USED_AGAIN)
        ephemeral = stored is None or stored.ephemeral  # None: it is answered and erased by now
        return StoredQuestion(owner, session, turn, bool(received.new), ephemeral, listener)

    async def follow(
        self, question: StoredQuestion, is_valid: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[TurnEvent, None]:
        """The events of a question's turn, until its answer is there. `is_valid` says whether whoever waits may still
        use their credential; it is asked again and again, and the last event is REVOKED when they may not. Once
        something that the answer is made from was erased or edited, no chunk of it follows until it is whole."""
        loop, tenant = asyncio.get_running_loop(), question.owner.workspace.tenant_id
        yield TurnEvent(EventKind.START)
        checked, event, may_show = loop.time(), None, True
        if not question.new and (end := await self._end(question, event)) is not None:
            yield end
            return
        while True:
            try:
                async with asyncio.timeout(self._look_seconds):
                    event = await question.listener.events.get()
            except TimeoutError:
                event = None
            if loop.time() - checked >= self._look_seconds:
                checked = loop.time()
                if not await is_valid():
                    yield TurnEvent(EventKind.REVOKED, REVOKED)
                    return
                if event is not None and not question.ephemeral and await self._is_erased(question):
                    yield TurnEvent(EventKind.FAILED, QUESTION_ERASED)
                    return
                with suppress(Unavailable):
                    shows = await self._app.drafter.may_show(tenant, question.turn)
                    may_show = may_show and shows is not False
                    is_chunk = event is not None and event.kind is EventKind.CHUNK
                    if shows is None and is_chunk and not question.ephemeral:
                        event = None  # whoever reads slowly has the whole as it is now, once it is stored
            if event is not None and event.kind is EventKind.CHUNK and not may_show:
                yield TurnEvent(EventKind.WAIT)
                continue
            if event is not None and event.kind in (EventKind.CHUNK, EventKind.DELAY):
                yield event
                continue
            end = await self._end(question, event)
            if end is not None:
                yield end
                return
            yield TurnEvent(EventKind.WAIT)

    async def _end(self, question: StoredQuestion, event: TurnEvent | None) -> TurnEvent | None:
        """How a turn has ended; None while it has not. What is stored counts, also where the last event says
        something else: the answer may have been retracted meanwhile."""
        try:
            view = await self.view(question.owner, question.turn)
        except NotFound:
            answered = event is not None and event.kind is EventKind.ANSWER and question.ephemeral
            return event if answered else TurnEvent(EventKind.FAILED, QUESTION_ERASED)
        if view.text is not None:
            return TurnEvent(EventKind.FAILED if view.failed else EventKind.ANSWER, view.text, view)
        return None

    async def _is_erased(self, question: StoredQuestion) -> bool:
        """Whether a question is gone; while the database does not answer, it is not."""
        try:
            async with self._app.database.transaction(question.owner.workspace.tenant_id, "read") as tx:
                await get_turn(tx, question.owner, question.turn)
        except NotFound:
            return True
        except Unavailable:
            pass
        return False

    async def stop(self, owner: SessionOwner, turn: uuid.UUID) -> bool:
        """Stop an answer of the person's that this process writes just now; False where it writes none. Raises NotFound
        and Unavailable."""
        async with self._app.database.transaction(owner.workspace.tenant_id, "read") as tx:
            stored = await get_turn(tx, owner, turn)
        return self._app.drafter.stop(stored.session.id, turn)

    async def view(self, owner: SessionOwner, turn: uuid.UUID) -> TurnView:
        """A turn of the person's sessions as it is now. Raises NotFound and Unavailable."""
        async with self._app.database.transaction(owner.workspace.tenant_id, "read") as tx:
            stored = await get_turn(tx, owner, turn)
            made = await made_of(tx, stored)
        if stored.state is TurnState.QUEUED:
            return TurnView(stored)
        failed = stored.answer is None
        return TurnView(stored, stored.failure or "" if failed else stored.answer, failed, made)

"""A turn, from a stored message to a delivered answer. Start reading here.

    resolve the viewer → read the layers → pack the prompt → ask the model → store the answer → deliver it

`Composer` (composer/turn/compose.py) does everything up to the packed prompt: it resolves the viewer, which gives a
`Readable`, and reads the layers with `Reader` (composer/turn/reading.py). `ModelAsker` (composer/turn/asking.py) asks
the model, which may search and write memory while it answers. `AnswerStore` (composer/turn/answers.py) stores the
answer. `Delivery` (composer/turn/delivery.py) shows it to people: each adapter implements that interface.

An *answer* is either a *reply*, which is a message of the log, or a *failure*: the sentence that tells the person why
there is no reply. A failure is stored with the turn, and is no message of the log.

A turn is QUEUED when its question is stored, ANSWERED when its answer is stored, and SENT when the adapter has shown
the answer, or when the platform has refused it permanently.

What is *erased* is gone. A reply that is *retracted* keeps its place, but a notice takes the place of its text, in the
log and where it was posted. This may happen between the question and the end of the turn:

- Somebody forgets the question: it is erased. A QUEUED turn is deleted with it. An ANSWERED or SENT one stays, and its
  reply is retracted. One that is ANSWERED is not delivered any more, and what was streamed of it is removed.
- Somebody forgets a source of the answer. A reply that drew on it is retracted; if it was not delivered yet, the notice
  is delivered in its place.
- Somebody forgets a span of time, in which the reply lies without its question: the reply is erased, and not delivered.
- A whole conversation is erased, with its turns.
- Somebody makes the private room public (*opens* it). What was asked in private is not answered there: the prompt has
  what only those who were in the room may read. The asker gets the sentence ROOM_OPENED, as a failure. A reply that is
  stored by then stays in the log as something said in private, which nobody is shown in the opened room.
- The process ends. The next one goes on from the state that the turn has reached.

The question of somebody who opted out is *ephemeral*: it is stored for its answer alone, and a task in the background
erases it once the turn is SENT. Then nobody has forgotten anything, and the reply stays as it is.

What an agent posts on its own initiative (composer/scheduled), such as a reminder, is a turn too. It is stored as
ANSWERED, and only delivered here. It answers nobody: the message that it posts is stored once, and stands for its
question as well as for its reply.

The database is used in three ways: `statement` is one read by itself; `transaction` reads and writes; `transaction`
with `snapshot=True` makes several reads as of one moment.
"""

import asyncio
import time
import uuid
from dataclasses import replace
from typing import Final

import structlog

from composer.errors import NexusError, PromptTooLong, Refused, Unavailable, for_operator
from composer.ingest.voice_notes import VoiceNotes
from composer.model import Agent, Message, Turn, TurnState, Usage
from composer.ports.clock import Clock
from composer.ports.observer import TurnOutcome, TurnReport
from composer.prompt.budget import MAX_PROMPT_SHARE
from composer.repositories.database import Database
from composer.repositories.turns import StoredTurn
from composer.turn.answers import ROOM_OPENED, AnswerStore, DraftAnswer
from composer.turn.asking import ModelAsker
from composer.turn.citations import cited_messages, cites
from composer.turn.compose import NOT_COMPARABLE, Composer
from composer.turn.delivery import Delivery, OutgoingAnswer
from composer.turn.image_loader import ImageLoader
from composer.turn.reading import PromptRequest
from composer.turn.timing import milliseconds, timed

logger = structlog.get_logger()

# When a prompt is too long for the model, a second one is made, with at most this share of the tokens of the first.
RETRY_PROMPT_SHARE: Final = 0.5
STOPPED: Final = "Stopped: this answer is not stored."  # a failure, as ROOM_OPENED is


class Responder:
    """Answers turns. It keeps nothing of a turn that has ended."""

    def __init__(
        self,
        database: Database,
        composer: Composer,
        asker: ModelAsker,
        answers: AnswerStore,
        images: ImageLoader,
        clock: Clock,
        voice_notes: VoiceNotes,
    ) -> None:
        self._database = database
        self._composer = composer
        self._asker = asker
        self._voice_notes = voice_notes
        self._answers = answers
        self._clock = clock
        # By turn: its conversation, and the task that writes its answer.
        self._drafting: dict[uuid.UUID, tuple[uuid.UUID, asyncio.Task[object]]] = {}
        self._stopped: set[uuid.UUID] = set()  # turns
        self.images = images  # public: adapters register their image sources here

    def stop_answers(self, conversation: uuid.UUID) -> bool:
        """Stop the answers that are being written in a conversation. Their text is dropped; the sentence STOPPED is
        stored and delivered in its place. Returns whether there was one."""
        found = {turn_id: task for turn_id, (asked_in, task) in self._drafting.items() if asked_in == conversation}
        for turn_id, task in found.items():
            if turn_id not in self._stopped:
                self._stopped.add(turn_id)
                task.cancel()
        return bool(found)

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery) -> TurnReport:
        """Answer a turn, deliver the answer, and return how that ended. A turn that an earlier attempt has answered, in
        this process or another, is only delivered.

        If answering fails, the answer is a failure. Raises Unavailable when the answer cannot be stored or delivered
        because the database or the platform does not answer: the worker then tries again, and the turn goes on from the
        state that it has reached.
        """
        async with self._database.statement(turn.tenant_id) as tx:
            found = await tx.turns.get_with_messages(turn.id)
        if found is None:
            return await self._end_withdrawn(turn, delivery)
        stored, question = found.stored, found.question
        if stored.state is TurnState.SENT:
            return TurnReport(turn, TurnOutcome.ANSWERED_ELSEWHERE)  # or by an earlier attempt of this process
        if question is None or found.reply_erased:
            return await self._end_withdrawn(turn, delivery)
        if found.room_opened and question.by_agent:  # a reminder or a digest is for the room as it was
            return await self._end_withdrawn(turn, delivery)
        if stored.state is TurnState.QUEUED:
            # `AnswerStore.store` looks once more whether the room was opened. If so, it stores ROOM_OPENED in place of
            # any draft.
            draft = DraftAnswer() if found.room_opened else await self._draft(turn, agent, question, delivery)
            new_answer = await self._store(turn, agent, question, draft)
            if new_answer is None:
                return await self._end_unstored(turn, draft, delivery)
            answer = new_answer
        else:
            draft = DraftAnswer()  # empty: all that will be reported is the time of the delivery
            answer = _stored_answer(stored, question, found.reply)
            if found.room_opened:
                answer = replace(answer, text=ROOM_OPENED, prompt=None, failed=True)
        with timed(draft.timings_ms, "deliver"):
            outcome = await self._deliver(await self._with_citations(answer, question), delivery)
        return TurnReport(turn, outcome, draft.timings_ms, draft.usage, draft.model)

    async def _end_withdrawn(self, turn: Turn, delivery: Delivery) -> TurnReport:
        """End a turn whose answer nobody is to see any more; it counts as ERASED, also where the room was opened. What
        an earlier attempt may have shown of the answer is removed. The turn, if it is still stored, becomes SENT: else
        the next process would take it up again."""
        await delivery.abandon(turn)
        async with self._database.transaction(turn.tenant_id) as tx:
            await tx.turns.mark_sent(turn.id, self._clock.now())
        return TurnReport(turn, TurnOutcome.ERASED)

    async def _end_unstored(self, turn: Turn, draft: DraftAnswer, delivery: Delivery) -> TurnReport:
        """End a turn whose draft was not stored. If the turn was erased meanwhile, what was shown of the draft is
        removed. Otherwise another process has stored an answer, and delivers it (if that process dies, the next one
        does). Adapters find what they have shown of a turn by its id, so that answer replaces what was shown of this
        one."""
        outcome = TurnOutcome.ANSWERED_ELSEWHERE
        if await self._is_erased(turn):
            outcome = TurnOutcome.ERASED
            await delivery.abandon(turn)
        return TurnReport(turn, outcome, draft.timings_ms, draft.usage, draft.model)

    async def _store(self, turn: Turn, agent: Agent, question: Message, draft: DraftAnswer) -> OutgoingAnswer | None:
        """Store a draft, and return it as it will be delivered. None when the turn was erased meanwhile, or answered by
        another process."""
        stored = await self._answers.store(turn, agent, question, draft)
        if stored is None:
            return None
        return OutgoingAnswer(
            turn=turn,
            text=stored.message.text if stored.message is not None else stored.failure or "",
            in_reply_to=question.external_id,
            prompt=stored.prompt,
            timings_ms=draft.timings_ms,
            failed=stored.failure is not None,
            failure_details=draft.failure_details,
        )

    async def _draft(self, turn: Turn, agent: Agent, question: Message, delivery: Delivery) -> DraftAnswer:
        """Compose the prompt and ask the model: `_compose` and `_ask` fill in the draft. Whatever fails here becomes
        its `failure`.

        That includes an unreachable database. If it can be reached again when the draft is stored, the failure is
        stored, and the person has to ask again. If not, storing raises Unavailable and the turn stays queued.
        """
        started, task = time.perf_counter(), asyncio.current_task()
        draft = DraftAnswer()
        assert task is not None
        self._drafting[turn.id] = (turn.conversation_id, task)
        try:
            spoken = await self._voice_notes.with_transcript(turn.tenant_id, question, turn.adapter)
            request = _prompt_request(turn, agent, spoken)
            # When the latest messages are too long, they are compacted here. The summary that replaces the oldest of
            # them is stored, except for an ephemeral question: one of somebody who opted out, which is not kept.
            await self._compose(request, turn, draft, persist_compaction=not question.ephemeral)
            delivery.on_start(turn)  # shows that a reply is being written
            await self._ask(request, turn, draft, delivery)
        except asyncio.CancelledError:
            # Where `stop_answers` has asked for it, uncancel() takes that request back. If another one remains, the
            # process is ending.
            stopped_by_a_person = turn.id in self._stopped and task.uncancel() == 0
            if not stopped_by_a_person:
                raise
            draft.failure = STOPPED
        except NexusError as error:
            draft.failure = str(error)
            details = for_operator(error)
            if details != draft.failure:  # without details, there is nothing that somebody has to mend
                draft.failure_details = details
                logger.warning("turn.not_answered", turn=str(turn.id), error=details)
        except Exception:
            logger.exception("turn.failed", turn=str(turn.id), conversation=str(turn.conversation_id))
            draft.failure = (
                "Something went wrong while I was answering. Ask again; if it fails again, send an admin this id, "
                f"by which they find the error in the program's log: {turn.id}"
            )
        finally:
            del self._drafting[turn.id]
            self._stopped.discard(turn.id)
        if draft.failure is not None and draft.notices_without_quotes:
            # While it answered, the model has stored something for the asker by its tools, and `_asker` has noted that
            # here. Say so, but do not quote what was stored: a failure is not in the message log, so `/nexus forget`
            # could not take the quotation back.
            draft.failure = "\n".join((draft.failure, *draft.notices_without_quotes))
        draft.timings_ms["total"] = milliseconds(started)
        return draft

    async def _ask(self, request: PromptRequest, turn: Turn, draft: DraftAnswer, delivery: Delivery) -> None:
        """Ask the model with the draft's prompt. If the prompt is too long for the model, a second one of half the
        tokens takes its place in the draft, and the model is asked without tools: these may have run already, and what
        they bring makes a prompt longer. Afterwards the reply's text is in the draft. Delivering it replaces whatever
        was streamed."""
        try:
            await self._asker.ask(request, turn, draft, delivery)
        except PromptTooLong as error:
            assert draft.composed is not None
            earlier = draft.composed.prompt
            logger.warning("prompt.too_long", turn=str(turn.id), tokens=earlier.tokens, error=for_operator(error))
            # A prompt may fill MAX_PROMPT_SHARE of an agent's window. So the second one is composed for the same agent
            # with a window so small that this share is RETRY_PROMPT_SHARE of the first prompt. The compaction is not
            # stored: perhaps only this question was too long, or what a tool brought for it, and later prompts need not
            # be shorter.
            agent = request.agent
            smaller = replace(
                agent, window=min(agent.window, int(earlier.tokens * RETRY_PROMPT_SHARE / MAX_PROMPT_SHARE))
            )
            await self._compose(replace(request, agent=smaller), turn, draft, persist_compaction=False)
            # The model has seen what its tools brought. It is not shown that again, but this answer's lineage has it.
            draft.composed = replace(draft.composed, prompt=draft.composed.prompt.with_tool_calls_of(earlier))
            # How many tokens we count for a prompt is compared with how many the model reports for it, to correct later
            # counts. `usage` is a sum over the calls of a turn. If it holds a first call already, it can't be compared.
            if draft.usage != Usage():
                draft.composed = replace(draft.composed, counted_tokens=NOT_COMPARABLE)
            await self._asker.ask(replace(request, agent=replace(agent, tools=False)), turn, draft, delivery)

    async def _compose(
        self, request: PromptRequest, turn: Turn, draft: DraftAnswer, *, persist_compaction: bool
    ) -> None:
        """Compose the draft's prompt, with its images. It takes the place of an earlier prompt, and its times of that
        one's."""
        composed = await self._composer.compose(request, persist_compaction=persist_compaction)
        draft.composed, draft.timings_ms = composed, composed.timings_ms
        if composed.prompt.images:
            with timed(draft.timings_ms, "images"):
                prompt = await self.images.load_into(composed.prompt, turn)
            # Our count leaves out images, so it is not compared with the tokens that the model reports.
            draft.composed = replace(composed, prompt=prompt, counted_tokens=NOT_COMPARABLE)

    async def _with_citations(self, answer: OutgoingAnswer, question: Message) -> OutgoingAnswer:
        """Add to a reply the messages that it cites by their references, such as (s2): an adapter may link to them. A
        source that the asker may not read there any more is left out. Without the database, nothing is added."""
        if answer.failed or not cites(answer.text):
            return answer
        try:
            async with self._database.transaction(answer.turn.tenant_id, snapshot=True) as tx:
                cited = await cited_messages(tx, answer.turn, question, answer.prompt, answer.text)
        except Unavailable as error:
            logger.warning("turn.citations_unavailable", turn=str(answer.turn.id), error=for_operator(error))
            return answer
        return replace(answer, cited=cited)

    async def _deliver(self, answer: OutgoingAnswer, delivery: Delivery) -> TurnOutcome:
        """Deliver an answer and mark its turn as sent; returns how the turn ended.

        If somebody forgets a source of a reply while it is delivered, a notice takes the place of its text in the
        message log. Then the notice is delivered, over what was shown. When the platform refuses an answer permanently,
        the turn counts as sent, and the reason is stored.
        """
        turn = answer.turn
        while True:
            try:
                await delivery.deliver(answer)
            except Refused as error:
                logger.warning("turn.refused", turn=str(turn.id), reason=str(error))
                async with self._database.transaction(turn.tenant_id) as tx:
                    await tx.turns.mark_refused(turn.id, str(error))
                    await tx.reminders.mark_refused(turn.id)  # if the turn posts a reminder
                return TurnOutcome.REFUSED
            async with self._database.transaction(turn.tenant_id) as tx:
                found = await tx.turns.get_with_messages(turn.id)
                # In both cases below that return ERASED, the post goes as well. The adapter stores its id: if all is
                # erased by then, the adapter removes the post itself; if not, the erasure finds the id.
                if found is None:  # the conversation was erased
                    return TurnOutcome.ERASED
                reply = found.reply
                if answer.failed or reply is None or reply.text == answer.text:
                    await tx.turns.mark_sent(turn.id, self._clock.now())
                    if answer.failed:
                        return TurnOutcome.FAILED
                    return TurnOutcome.ERASED if reply is None else TurnOutcome.DELIVERED
            answer = replace(answer, text=reply.text, prompt=None, cited={})  # the notice

    async def _is_erased(self, turn: Turn) -> bool:
        """Whether the turn was deleted with its question."""
        async with self._database.statement(turn.tenant_id) as tx:
            return await tx.turns.get_with_messages(turn.id) is None


def _prompt_request(turn: Turn, agent: Agent, question: Message) -> PromptRequest:
    assert question.user_id is not None, "only messages of people are answered"
    return PromptRequest(turn.tenant_id, turn.conversation_id, question.user_id, agent, question)


def _stored_answer(stored: StoredTurn, question: Message, reply: Message | None) -> OutgoingAnswer:
    """The answer of a turn that is ANSWERED. `reply` is None for a failure, whose text is stored with the turn."""
    return OutgoingAnswer(
        turn=stored.turn,
        text=reply.text if reply is not None else stored.failure or "",
        in_reply_to="" if question.by_agent else question.external_id,  # what an agent posts answers nobody
        prompt=stored.prompt,
        failed=stored.failure is not None,
    )

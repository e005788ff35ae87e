"""A turn, from a stored message to a delivered reply. Start reading here.

    resolve the viewer → read the layers → pack the prompt → ask the model → store the answer → deliver the reply

`Composer` (composer/turn/compose.py) does everything up to the packed prompt: it resolves the viewer, and reads the
layers with `Reader` (composer/turn/reading.py). `ModelAsker` (composer/turn/asking.py) asks the model, which may search
and write memory while it answers. `AnswerStore` (composer/turn/answers.py) stores the answer. Adapters show it by
`Delivery` (composer/turn/delivery.py), which each adapter implements.

A turn is QUEUED when its question is stored, ANSWERED when its answer is stored (a reply, or the sentence that says why
there is none), and SENT when the adapter has shown it, or when the platform has refused it permanently. Erasing the
question deletes the turn. The question of somebody who opted out is *ephemeral*: it is stored for its answer alone, and
a task in the background erases it once the turn is SENT.

What an agent posts on its own initiative (composer/scheduled), such as a reminder, is a turn too. It is stored as
ANSWERED, with one message that is both its question and its reply, and only delivered here.
"""

import asyncio
import time
import uuid
from dataclasses import replace
from typing import Final

import structlog

from composer.errors import NexusError, NotFound, PromptTooLong, Refused, Unavailable, for_operator
from composer.ingest.voice_notes import VoiceNotes
from composer.model import Agent, Message, Turn, TurnState, Usage
from composer.ports.clock import Clock
from composer.ports.observer import TurnOutcome, TurnReport
from composer.prompt.budget import MAX_PROMPT_SHARE
from composer.repositories.database import Database
from composer.repositories.turns import StoredTurn
from composer.turn.answers import AnswerStore, DraftAnswer
from composer.turn.asking import ModelAsker
from composer.turn.citations import cited_messages, cites
from composer.turn.compose import Composer
from composer.turn.delivery import Delivery, Reply
from composer.turn.image_loader import ImageLoader
from composer.turn.reading import PromptRequest
from composer.turn.timing import milliseconds, timed

logger = structlog.get_logger()

# When a prompt is too long for the model, a second one is made, with at most this share of the tokens of the first.
RETRY_PROMPT_SHARE: Final = 0.5
STOPPED: Final = "Stopped: this answer is not stored."  # the sentence itself is stored, as other failures are


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
        found = [(turn, task) for turn, (where, task) in self._drafting.items() if where == conversation]
        for turn, task in found:
            if turn not in self._stopped:
                self._stopped.add(turn)
                task.cancel()
        return bool(found)

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery) -> TurnReport:
        """Answer a turn, deliver the reply, and return how that ended. A turn that an earlier process has answered is
        only delivered.

        If answering fails, the person gets a sentence that says so. Raises Unavailable when the answer cannot be stored
        or delivered because the database or the platform does not answer: the worker then tries again, and the turn
        goes on from the state that it has reached.
        """
        async with self._database.transaction(turn.tenant_id, snapshot=True) as tx:  # read-only, as of one moment
            found = await tx.turns.get_with_messages(turn.id)
        if found is None or found.question is None:
            await delivery.abandon(turn)  # an earlier attempt may have shown a part of its answer
            return TurnReport(turn, TurnOutcome.ERASED)
        stored, question = found.stored, found.question
        if stored.state is TurnState.SENT:
            return TurnReport(turn, TurnOutcome.ALREADY_ANSWERED)
        if stored.state is TurnState.ANSWERED:
            reply, draft = _stored_reply(stored, question, found.reply), DraftAnswer()  # only to hold timings
        else:
            draft = await self._draft(turn, agent, question, delivery)
            new_reply = await self._store(turn, agent, question, draft)
            if new_reply is None:
                return await self._end_without_reply(turn, draft, delivery)
            reply = new_reply
        with timed(draft.timings_ms, "deliver"):
            outcome = await self._deliver(await self._with_citations(reply, question), delivery)
        return TurnReport(turn, outcome, draft.timings_ms, draft.usage, draft.model)

    async def _end_without_reply(self, turn: Turn, draft: DraftAnswer, delivery: Delivery) -> TurnReport:
        """End a turn whose draft was not stored, because the turn was erased meanwhile or another process answered it.
        That process delivers its answer with the same key, the turn's id, so it edits what was shown of this draft."""
        outcome = TurnOutcome.ALREADY_ANSWERED
        if await self._is_erased(turn):
            outcome = TurnOutcome.ERASED
            await delivery.abandon(turn)
        return TurnReport(turn, outcome, draft.timings_ms, draft.usage, draft.model)

    async def _store(self, turn: Turn, agent: Agent, question: Message, draft: DraftAnswer) -> Reply | None:
        """Store a draft. None when the turn was erased meanwhile, or answered by another process."""
        answer = await self._answers.store(turn, agent, question, draft)
        if answer is None:
            return None
        return Reply(
            key=turn.id,
            text=answer.message.text if answer.message is not None else answer.failure or "",
            turn=turn,
            in_reply_to=question.external_id,
            prompt=answer.prompt,
            timings_ms=draft.timings_ms,
            failed=answer.failure is not None,
            operator=draft.operator,  # the reason in detail; only the terminal of whoever runs Nexus shows it
        )

    async def _draft(self, turn: Turn, agent: Agent, question: Message, delivery: Delivery) -> DraftAnswer:
        """Compose the prompt and ask the model. Whatever fails here becomes the draft's `failure`.

        That includes an unreachable database. If it can be reached again when the draft is stored, the failure is
        stored, and the person has to ask again. If not, storing raises Unavailable and the turn stays queued.
        """
        started, task = time.perf_counter(), asyncio.current_task()
        draft = DraftAnswer()
        assert task is not None
        self._drafting[turn.id] = (turn.conversation_id, task)
        try:
            question = await self._voice_notes.heard(turn.tenant_id, question, turn.adapter)  # adds what it says
            request = _prompt_request(turn, agent, question)
            # When the latest messages are too long, they are compacted here. The summary that replaces the oldest of
            # them is stored, except for an ephemeral question: one of somebody who opted out, which is not kept.
            await self._compose(request, turn, draft, persist_compaction=not question.ephemeral)
            delivery.on_start(turn)
            await self._ask(request, turn, draft, delivery)
        except asyncio.CancelledError:
            # uncancel() withdraws the request of `stop_answers`. If others remain, the process is ending.
            if turn.id not in self._stopped or task.uncancel() > 0:
                raise
            draft.failure = STOPPED
        except NexusError as error:
            draft.failure = str(error)
            if (operator := for_operator(error)) != draft.failure:
                draft.operator = operator
                logger.warning("turn.not_answered", turn=str(turn.id), error=operator)
        except Exception:
            logger.exception("turn.failed", turn=str(turn.id), conversation=str(turn.conversation_id))
            draft.failure = (
                "Something went wrong while I was answering. Ask again; if it fails again, send an admin this id, "
                f"by which they find the error in the log: {turn.id}"
            )
        finally:
            del self._drafting[turn.id]
            self._stopped.discard(turn.id)
        if draft.failure is not None and draft.wordless_notices:
            # The model's tools have stored something, although there is no answer. Say that, but do not quote what was
            # stored: a failure is no message, so `/nexus forget` could not take the quotation back.
            draft.failure = "\n".join((draft.failure, *draft.wordless_notices))
        draft.timings_ms["total"] = milliseconds(started)
        return draft

    async def _ask(self, request: PromptRequest, turn: Turn, draft: DraftAnswer, delivery: Delivery) -> None:
        """Ask the model with the draft's prompt. One that is too long for it is composed once more, for half the
        tokens, and asked without tools: they may have run already, and what they bring makes a prompt longer.
        Afterwards the answer is in the draft."""
        try:
            await self._asker.ask(request, turn, draft, delivery)
        except PromptTooLong as error:  # nothing was shown yet, except what the model said before it called a tool
            assert draft.composed is not None
            earlier = draft.composed.prompt
            tokens = earlier.tokens
            logger.warning("prompt.too_long", turn=str(turn.id), tokens=tokens, error=for_operator(error))
            # The composer fills MAX_PROMPT_SHARE of a window, so a smaller window makes a shorter prompt. The model is
            # asked with its full window. The summary by which this prompt becomes shorter is not stored: perhaps only
            # this question was too long, or what a tool brought for it, and later prompts need no shorter view.
            agent = request.agent
            smaller = replace(agent, window=min(agent.window, int(tokens * RETRY_PROMPT_SHARE / MAX_PROMPT_SHARE)))
            await self._compose(replace(request, agent=smaller), turn, draft, persist_compaction=False)
            draft.composed = replace(draft.composed, prompt=draft.composed.prompt.after(earlier))
            if draft.usage != Usage():  # the model's count includes the first prompt: do not compare it (`_compose`)
                draft.composed = replace(draft.composed, counted_tokens=0)
            await self._asker.ask(replace(request, agent=replace(agent, tools=False)), turn, draft, delivery)

    async def _compose(
        self, request: PromptRequest, turn: Turn, draft: DraftAnswer, *, persist_compaction: bool
    ) -> None:
        """Compose the draft's prompt, with its images."""
        composed = await self._composer.compose(request, persist_compaction=persist_compaction)
        draft.composed, draft.timings_ms = composed, composed.timings_ms
        if composed.prompt.images:
            with timed(draft.timings_ms, "images"):
                prompt = await self.images.load_into(composed.prompt, turn)
            # We estimate tokens, and correct later estimates by what the model reports. Our estimate leaves out images,
            # so 0 says: do not compare this one.
            draft.composed = replace(composed, prompt=prompt, counted_tokens=0)

    async def _with_citations(self, reply: Reply, question: Message) -> Reply:
        """The reply with the messages that it cites; without them when the database is unavailable. `cited_messages`
        resolves the viewer anew, by who asked, where, and who sees the reply: a source that may not be read there any
        more is left out."""
        if reply.failed or not cites(reply.text):
            return reply
        try:
            async with self._database.transaction(reply.turn.tenant_id, snapshot=True) as tx:
                cited = await cited_messages(tx, reply.turn, question, reply.prompt, reply.text)
        except Unavailable as error:
            logger.warning("turn.citations_unavailable", turn=str(reply.turn.id), error=for_operator(error))
            return reply
        return replace(reply, cited=cited)

    async def _deliver(self, reply: Reply, delivery: Delivery) -> TurnOutcome:
        """Deliver a reply and mark its turn as sent; returns how the turn ended.

        If somebody forgets a source of the reply while it is delivered, a notice takes the place of its text in the
        message log, and is delivered in the same way. When the platform refuses a reply permanently, the turn counts as
        sent, and the reason is stored.
        """
        turn = reply.turn
        while True:
            try:
                await delivery.deliver(reply)
            except Refused as error:
                logger.warning("turn.refused", turn=str(turn.id), reason=str(error))
                async with self._database.transaction(turn.tenant_id) as tx:
                    await tx.turns.mark_refused(turn.id, str(error))
                    await tx.reminders.mark_refused(turn.id)  # if the turn posts a reminder
                return TurnOutcome.REFUSED
            async with self._database.transaction(turn.tenant_id) as tx:
                found = await tx.turns.get_with_messages(turn.id)
                logged = None if found is None else found.reply
                # `logged` is None for a failure. It is also None when the turn was erased meanwhile: then mark_sent
                # changes nothing, and no `abandon` is needed: after posting, `deliver` looks whether the turn is still
                # there, and takes back what it posted if not.
                if logged is None or logged.text == reply.text:
                    await tx.turns.mark_sent(turn.id, self._clock.now())
                    if found is None:
                        return TurnOutcome.ERASED
                    return TurnOutcome.FAILED if reply.failed else TurnOutcome.DELIVERED
            reply = replace(reply, text=logged.text, prompt=None, cited={})

    async def _is_erased(self, turn: Turn) -> bool:
        """Whether the turn was deleted with its question."""
        async with self._database.transaction(turn.tenant_id, snapshot=True) as tx:
            return await tx.turns.get(turn.id) is None


def _prompt_request(turn: Turn, agent: Agent, question: Message) -> PromptRequest:
    if question.user_id is None:  # such turns are never queued
        raise NotFound("An agent does not answer another agent's message.")
    return PromptRequest(turn.tenant_id, turn.conversation_id, question.user_id, agent, question)


def _stored_reply(stored: StoredTurn, question: Message, reply_message: Message | None) -> Reply:
    """The reply of a turn that is answered and not yet delivered. `reply_message` is None for a failure."""
    return Reply(
        key=stored.turn.id,
        text=reply_message.text if reply_message is not None else stored.failure or "",
        turn=stored.turn,
        in_reply_to="" if question.by_agent else question.external_id,
        prompt=stored.prompt,
        failed=stored.failure is not None,
    )

"""A turn, from a stored message to a delivered reply. Start reading here.

    resolve the viewer → read the layers → pack the prompt → ask the model → store the reply → deliver it

`Composer` (composer/turn/compose.py) does the first three steps.
"""

import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from composer.errors import NexusError, NotFound, Refused
from composer.model import Agent, Message, Turn, TurnState, Usage
from composer.ports.clock import Clock
from composer.ports.models import ChatModel
from composer.prompt.sections import Prompt
from composer.repositories.database import Database
from composer.repositories.turns import StoredTurn
from composer.signals import InteractivePriority
from composer.turn.answers import AnswerStore, DraftAnswer
from composer.turn.compose import Composer, PromptRequest
from composer.turn.image_loader import ImageLoader
from composer.turn.timing import milliseconds, timed

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply to one message, or the sentence that says why there is none (`failed`).

    `key` is the idempotency key of its delivery. `in_reply_to` is the platform's id of the question. `prompt` is JSON.
    """

    key: uuid.UUID
    text: str
    turn: Turn
    in_reply_to: str
    prompt: str | None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False


class Delivery(Protocol):
    """How an adapter shows one turn to people. The worker calls it in this order; a turn may end early."""

    def on_start(self, turn: Turn) -> None:
        """The model is about to be asked: show that a reply is coming. Must return at once and must not fail."""
        ...

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """The next chunk of the reply. An adapter may show it now or wait for `deliver`."""
        ...

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """The reply is delayed or can't be made. `sentence` says why."""
        ...

    async def deliver(self, reply: Reply) -> None:
        """Show the whole reply. After a crash this is called again with the same key: show the reply only once.

        Raises Unavailable (try again later) or Refused (the platform will never accept it).
        """
        ...

    async def abandon(self, turn: Turn) -> None:
        """The turn ends without a reply because its question was erased: remove what was shown of it."""
        ...


class Responder:
    """Answers turns. It holds its collaborators and no state of its own."""

    def __init__(
        self,
        database: Database,
        composer: Composer,
        model: ChatModel,
        answers: AnswerStore,
        images: ImageLoader,
        priority: InteractivePriority,
        clock: Clock,
    ) -> None:
        self._database = database
        self._composer = composer
        self._model = model
        self._answers = answers
        self._priority = priority
        self._clock = clock
        self.images = images

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery) -> None:
        """Answer a turn and deliver the reply. A turn that an earlier process had answered is only delivered.

        Any failure becomes one sentence to the person. Only an unreachable database leaves the turn queued for
        another attempt (raises Unavailable).
        """
        async with self._database.transaction(turn.tenant_id, snapshot=True) as tx:  # read-only, as of one moment
            stored = await tx.turns.get(turn.id)
            question = await tx.messages.get(turn.message_id)
            logged = await tx.messages.get(stored.reply_id) if stored is not None and stored.reply_id else None
        if stored is None or question is None:  # the question was erased
            await delivery.abandon(turn)
        elif stored.state is TurnState.ANSWERED:
            await self._deliver(_stored_reply(stored, question, logged), delivery)
        elif stored.state is TurnState.QUEUED:
            reply = await self._answer(turn, agent, question, delivery)
            if reply is not None:
                await self._deliver(reply, delivery)

    async def _answer(self, turn: Turn, agent: Agent, question: Message, delivery: Delivery) -> Reply | None:
        """Compose the prompt, ask the model and store the answer. None when the turn is no longer open."""
        draft = await self._draft(turn, agent, question, delivery)
        answer = await self._answers.store(turn, agent, question, draft)
        if answer is None:  # the question was erased meanwhile, or another process has answered it
            await self._abandon_if_erased(turn, delivery)
            return None
        return Reply(
            key=turn.id,
            text=answer.reply.text if answer.reply is not None else answer.failure or "",
            turn=turn,
            in_reply_to=question.external_id,
            prompt=answer.prompt,
            timings_ms=draft.timings_ms,
            failed=answer.failure is not None,
        )

    async def _draft(self, turn: Turn, agent: Agent, question: Message, delivery: Delivery) -> DraftAnswer:
        """Compose the prompt and ask the model. Whatever fails becomes the draft's `failure`."""
        started = time.perf_counter()
        draft = DraftAnswer()
        try:
            request = _prompt_request(turn, agent, question)
            composed = await self._composer.compose(request, persist_compaction=not question.ephemeral)
            draft.composed, draft.timings_ms = composed, composed.timings_ms
            if composed.prompt.images:
                with timed(draft.timings_ms, "images"):
                    prompt = await self.images.load(turn, composed.prompt)
                # An image's token count says nothing about text, so it must not correct later token estimates.
                draft.composed = composed = replace(composed, prompt=prompt, counted_tokens=0)
            with timed(draft.timings_ms, "model"):
                async for text, usage in self._stream(agent, composed.prompt, turn, delivery):
                    draft.text, draft.usage = draft.text + text, usage or draft.usage
            if composed.prompt.unseen:  # sentences about images that the model was not shown
                remarks = "\n\n" + "\n".join(composed.prompt.unseen)
                await delivery.on_chunk(turn, remarks)
                draft.text += remarks
        except NexusError as error:
            draft.failure = str(error)
        except Exception:
            logger.exception("turn.failed", turn=str(turn.id), conversation=str(turn.conversation_id))
            draft.failure = f"Something went wrong while I was answering. The log has the details under turn {turn.id}."
        draft.timings_ms["total"] = milliseconds(started)
        return draft

    async def _stream(
        self, agent: Agent, prompt: Prompt, turn: Turn, delivery: Delivery
    ) -> AsyncIterator[tuple[str, Usage | None]]:
        """Ask the model, pass each chunk to the delivery, and yield it with the token usage (last chunk only)."""
        answer = self._model.stream(agent, prompt.role_messages)
        delivery.on_start(turn)
        self._priority.end(turn.id)  # from here on the person waits for the model: background work may go on
        async for chunk in answer:
            if chunk.text:
                await delivery.on_chunk(turn, chunk.text)
            yield chunk.text, chunk.usage

    async def _deliver(self, reply: Reply, delivery: Delivery) -> None:
        """Deliver a reply and mark its turn as sent.

        If the reply was retracted in the log while it was delivered, deliver it again with its new text. If the
        platform will never accept it, close the turn and store the reason.
        """
        turn = reply.turn
        while True:
            try:
                await delivery.deliver(reply)
            except Refused as error:
                logger.warning("turn.refused", turn=str(turn.id), reason=str(error))
                async with self._database.transaction(turn.tenant_id) as tx:
                    await tx.turns.mark_rejected(turn.id, str(error))
                return
            async with self._database.transaction(turn.tenant_id) as tx:
                stored = await tx.turns.get(turn.id)
                logged = await tx.messages.get(stored.reply_id) if stored is not None and stored.reply_id else None
                if logged is None or logged.text == reply.text:
                    await tx.turns.mark_sent(turn.id, self._clock.now())
                    return
            reply = replace(reply, text=logged.text)

    async def _abandon_if_erased(self, turn: Turn, delivery: Delivery) -> None:
        """Remove what was streamed of a turn whose question is erased; leave a turn that another process answered."""
        async with self._database.transaction(turn.tenant_id, snapshot=True) as tx:
            erased = await tx.turns.get(turn.id) is None
        if erased:
            await delivery.abandon(turn)


def _prompt_request(turn: Turn, agent: Agent, question: Message) -> PromptRequest:
    if question.user_id is None:
        raise NotFound("An agent does not answer another agent's message.")
    return PromptRequest(turn.tenant_id, turn.conversation_id, question.user_id, agent, question)


def _stored_reply(stored: StoredTurn, question: Message, logged: Message | None) -> Reply:
    """The reply of a turn that is answered and not yet delivered, from the log."""
    return Reply(
        key=stored.turn.id,
        text=logged.text if logged is not None else stored.failure or "",
        turn=stored.turn,
        in_reply_to=question.external_id,
        prompt=stored.prompt,
        failed=stored.failure is not None,
    )

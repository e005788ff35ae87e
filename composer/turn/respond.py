"""A turn, from a stored message to a delivered reply. Start reading here.

    resolve the viewer → read the layers → pack the prompt → ask the model → store the reply → deliver it

`Composer` (composer/turn/compose.py) does the first three steps.
"""

import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

import structlog

from composer.errors import NexusError, NotFound, Refused, Unavailable
from composer.ingest.receive import ephemeral_seq
from composer.memory.forget import RETRACTED
from composer.model import Agent, Conversation, Message, Turn, Usage, derived_id
from composer.ports.clock import Clock
from composer.ports.models import ChatMessage, ChatModel, Tokenizer
from composer.ports.working_cache import Appended, WorkingCache
from composer.prompt.budget import reused_tokens
from composer.prompt.sections import Prompt
from composer.repositories.database import Database
from composer.repositories.turns import Answer
from composer.signals import InteractivePriority
from composer.turn.compose import ComposedPrompt, Composer, PromptRequest
from composer.turn.image_loader import ImageLoader
from composer.turn.sources import derived_ids, drew_on_erased, lineage_of, message_and_memory_texts
from composer.turn.timing import milliseconds, timed

logger = structlog.get_logger()

REPLY_PREFIX: Final = "reply:"  # begins the external id of an agent's reply


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
        store: Database,
        cache: WorkingCache,
        composer: Composer,
        model: ChatModel,
        tokenizer: Callable[[Agent], Tokenizer],
        clock: Clock,
        priority: InteractivePriority,
        images: ImageLoader,
    ) -> None:
        self._store = store
        self._cache = cache
        self._composer = composer
        self._model = model
        self._tokenizer = tokenizer
        self._clock = clock
        self._priority = priority
        self.images = images

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery) -> None:
        """Answer a turn and deliver the reply. An attempt that was interrupted resumes where it stopped.

        Any failure becomes one sentence to the person. Only an unreachable database leaves the turn queued for
        another attempt (raises Unavailable).
        """
        async with self._store.transaction(turn.tenant_id, snapshot=True) as tx:
            stored = await tx.turns.get(turn.id)
            found = await tx.messages.get(turn.message_id)
            stored_reply = None
            if stored is not None and stored.reply_id is not None:
                stored_reply = await tx.messages.get(stored.reply_id)
        if stored is None or found is None:
            await delivery.abandon(turn)
            return
        if stored.state == "sent":
            return
        question = found[0]
        if stored.state == "answered":
            text = stored_reply[0].text if stored_reply is not None else stored.failure or ""
            reply = Reply(turn.id, text, turn, question.external_id, stored.prompt, failed=stored.failure is not None)
        else:
            answered = await self._answer(turn, agent, question, delivery)
            if answered is None:
                await self._abandon_if_erased(turn, delivery)
                return
            reply = answered
        await self._deliver(reply, delivery)

    async def _answer(self, turn: Turn, agent: Agent, question: Message, delivery: Delivery) -> Reply | None:
        """Compose the prompt, ask the model, and store the reply. None when the turn is no longer open."""
        started = time.perf_counter()
        composed: ComposedPrompt | None = None
        usage, failure, text = Usage(), None, ""
        try:
            composed = await self._composer.compose(
                _request(turn, agent, question), persist_compaction=not question.ephemeral
            )
            if composed.prompt.images:
                with timed(composed.timings_ms, "images"):
                    prompt = await self.images.load(turn, composed.prompt)
                # What an image costs says nothing about text, so this prompt must not correct later estimates.
                composed = replace(composed, prompt=prompt, counted_tokens=0)
            with timed(composed.timings_ms, "model"):
                async for chunk, reported in self._stream(agent, composed.prompt, turn, delivery):
                    text, usage = text + chunk, reported or usage
            if composed.prompt.unseen:
                remarks = "\n\n" + "\n".join(composed.prompt.unseen)
                await delivery.on_chunk(turn, remarks)
                text += remarks
        except NexusError as error:
            failure = str(error)
        except Exception:
            logger.exception("turn.failed", turn=str(turn.id), conversation=str(turn.conversation_id))
            failure = f"Something went wrong while I was answering. The log has the details under turn {turn.id}."
        timings = {} if composed is None else composed.timings_ms
        timings["total"] = milliseconds(started)
        answer = await self._store_answer(
            turn,
            agent,
            question,
            composed,
            text=failure or text,
            failure=failure,
            usage=usage,
            timings=timings,
        )
        if answer is None:
            return None
        reply_text = text if answer.reply is None else answer.reply.text
        return Reply(
            turn.id,
            failure or reply_text,
            turn,
            question.external_id,
            answer.prompt,
            timings,
            failed=failure is not None,
        )

    async def _stream(
        self, agent: Agent, prompt: Prompt, turn: Turn, delivery: Delivery
    ) -> AsyncIterator[tuple[str, Usage | None]]:
        """Ask the model, pass each chunk to the delivery, and yield it with the usage (last chunk only)."""
        answer = self._model.stream(agent, prompt.role_messages)
        delivery.on_start(turn)
        self._priority.end(turn.id)  # from here on the person waits for the model, not for us
        async for chunk in answer:
            if chunk.text:
                await delivery.on_chunk(turn, chunk.text)
            yield chunk.text, chunk.usage

    async def _store_answer(
        self,
        turn: Turn,
        agent: Agent,
        question: Message,
        composed: ComposedPrompt | None,
        *,
        text: str,
        failure: str | None,
        usage: Usage,
        timings: Mapping[str, float],
    ) -> Answer | None:
        """Store the reply, its prompt and its lineage in one transaction. None when the turn is no longer open.

        A source of the prompt may have been erased or edited while the model was answering. Then the prompt is not
        stored, and a reply that drew on the erased source is retracted.
        """
        now = self._clock.now()
        prompt = None if composed is None else composed.prompt
        reused = 0 if prompt is None else await self._reused_tokens(turn, agent, prompt)
        async with self._store.transaction(turn.tenant_id) as tx:
            await tx.erasure.block()
            erased = (
                {}
                if prompt is None
                else await tx.erasure.changed_sources(message_and_memory_texts(prompt), derived_ids(prompt))
            )
            if prompt is not None and drew_on_erased(prompt, erased, text):
                text = RETRACTED
            row = (await tx.conversations.lock([turn.conversation_id]))[turn.conversation_id]
            reply = (
                None
                if failure
                else _reply_message(turn, agent, question, row.conversation, seq=row.last_seq + 1, text=text, now=now)
            )
            answer = Answer(
                turn=turn,
                prompt=None if prompt is None or erased else prompt.as_text(),
                timings_ms=json.dumps(timings),
                model=agent.model,
                usage=usage,
                at=now,
                reply=reply,
                failure=failure,
                sources=() if prompt is None else lineage_of(prompt, question, erased),
                counted_tokens=0 if composed is None else composed.counted_tokens,
                reused_tokens=reused,
            )
            first = await tx.turns.store_answer(answer)
            if first and reply is not None:
                await tx.messages.append([(row.conversation.id, reply)], indexed=True)
        if not first:
            return None
        if reply is not None:
            await self._append_to_cache(row.conversation, reply)
        return answer

    async def _append_to_cache(self, conversation: Conversation, reply: Message) -> None:
        shown = () if reply.ephemeral else (reply,)
        try:
            await self._cache.append([Appended(conversation.id, conversation.version, conversation.version + 1, shown)])
        except Unavailable:
            logger.warning("working.cache_unavailable", conversation=str(conversation.id))

    async def _deliver(self, reply: Reply, delivery: Delivery) -> None:
        """Deliver a reply, again if it was retracted meanwhile, until the platform shows what the log holds.

        If the platform refuses the reply for good, the turn is closed and the reason is stored.
        """
        turn = reply.turn
        while True:
            try:
                await delivery.deliver(reply)
            except Refused as error:
                logger.warning("turn.refused", turn=str(turn.id), reason=str(error))
                async with self._store.transaction(turn.tenant_id) as tx:
                    await tx.turns.mark_rejected(turn.id, str(error))
                return
            async with self._store.transaction(turn.tenant_id) as tx:
                stored = await tx.turns.get(turn.id)
                logged = await tx.messages.get(stored.reply_id) if stored is not None and stored.reply_id else None
                if logged is None or logged[0].text == reply.text:
                    await tx.turns.mark_sent(turn.id, self._clock.now())
                    return
            reply = replace(reply, text=logged[0].text)

    async def _abandon_if_erased(self, turn: Turn, delivery: Delivery) -> None:
        """Remove what was streamed of a turn whose question is gone; leave a turn that another process answered."""
        async with self._store.transaction(turn.tenant_id, snapshot=True) as tx:
            erased = await tx.turns.get(turn.id) is None
        if erased:
            await delivery.abandon(turn)

    async def _reused_tokens(self, turn: Turn, agent: Agent, prompt: Prompt) -> int:
        """How many tokens at the beginning of this prompt equal the agent's previous prompt in this conversation."""
        async with self._store.transaction(turn.tenant_id, snapshot=True) as tx:
            before = await tx.turns.previous_prompt(turn)
        if before is None:
            return 0
        earlier = [ChatMessage(each["role"], each["content"]) for each in json.loads(before)]
        return reused_tokens(earlier, prompt, self._tokenizer(agent))


def _request(turn: Turn, agent: Agent, question: Message) -> PromptRequest:
    if question.user_id is None:
        raise NotFound("An agent does not answer another agent's message.")
    return PromptRequest(turn.tenant_id, turn.conversation_id, question.user_id, agent, question)


def _reply_message(
    turn: Turn, agent: Agent, question: Message, conversation: Conversation, *, seq: int, text: str, now: datetime
) -> Message:
    """The reply as a message of the log: same namespace and visibility as the question, and ephemeral if that is."""
    id = derived_id("reply", str(turn.id))
    return Message(
        id=id,
        external_id=f"{REPLY_PREFIX}{question.external_id}:{agent.slug}",
        seq=ephemeral_seq(id) if question.ephemeral else seq,
        at=max(now, question.at),
        user_id=conversation.user_id,
        agent_id=turn.agent_id,
        author=agent.name,
        text=text,
        namespace=question.namespace,
        visibility=question.visibility,
        ephemeral=question.ephemeral,
    )

"""A turn, from a stored message to a sent reply: the story of the product.

    resolve the viewer → read the layers → pack the prompt → ask the model → store the reply → send it

The first three are `composer/turn/compose.py`.
"""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

import structlog

from composer.errors import NexusError, NotFound, Refused, Unavailable
from composer.ingest.receive import ephemeral_seq
from composer.memory.forget import RETRACTED
from composer.model import Agent, Conversation, Item, Message, Turn, Usage, derived_id
from composer.ports.clock import Clock
from composer.ports.images import ImageSource
from composer.ports.models import ChatMessage, ChatModel, Image, Tokenizer
from composer.ports.working_cache import Appended, WorkingCache
from composer.priority import InteractivePriority
from composer.prompt import images
from composer.prompt.images import Picture
from composer.prompt.packing import COMPACTION, Prompt, illustrated, reused_tokens
from composer.repositories.database import Database
from composer.repositories.recall import episode_id_of
from composer.repositories.turns import Answer
from composer.text.terms import terms
from composer.turn.compose import Composed, Composer, Question
from composer.turn.timing import milliseconds, timed

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or the sentence that says why there is none (`failed`). `key` makes sending idempotent."""

    key: uuid.UUID
    text: str
    turn: Turn
    to: str
    prompt: str | None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False


class Delivery(Protocol):
    """The way back through the door that a message came in by."""

    def on_start(self, turn: Turn) -> None:
        """The model is being asked: people may be shown that an answer is on its way. Returns at once, never fails."""
        ...

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """A piece of the answer as it streams in; may be shown at once, need not be."""
        ...

    async def deliver(self, reply: Reply) -> None:
        """The whole answer. Called again with the same key after a crash: show it once."""
        ...


class Responder:
    """Answers turns. Holds what it works with, and no state of its own."""

    def __init__(
        self,
        store: Database,
        cache: WorkingCache,
        composer: Composer,
        model: ChatModel,
        tokenizer: Callable[[Agent], Tokenizer],
        clock: Clock,
        calm: InteractivePriority,
    ) -> None:
        self._priority = calm
        self._tokenizer = tokenizer
        self._store = store
        self._cache = cache
        self._composer = composer
        self._model = model
        self._clock = clock
        self._images: dict[str, ImageSource] = {}

    def register_image_source(self, adapter: str, source: ImageSource) -> None:
        """Fetch the images of what came in by the door of this name from `source`."""
        self._images[adapter] = source

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery) -> None:
        """Answer a turn and deliver the answer, taking up where an earlier try was cut off.

        Whatever fails is told to the person in one sentence; only a database that is down leaves the turn
        queued (raises Unavailable), and it is answered when that is back.
        """
        async with self._store.transaction(turn.tenant_id, snapshot=True) as tx:
            stored = await tx.turns.get(turn.id)
            found = await tx.messages.get(turn.message_id)
            earlier = None
            if stored is not None and stored.reply_id is not None:
                earlier = await tx.messages.get(stored.reply_id)
        if stored is None or found is None or stored.state == "sent":
            return  # erased before it was answered, or done
        message = found[0]
        if stored.state == "answered":
            text = earlier[0].text if earlier is not None else stored.failure or ""
            reply = Reply(turn.id, text, turn, message.external_id, stored.prompt, failed=stored.failure is not None)
        else:
            answered = await self._answer(turn, agent, message, delivery)
            if answered is None:
                return  # erased while it was being answered, or answered by someone else
            reply = answered
        await self._deliver(reply, delivery)

    async def _deliver(self, reply: Reply, delivery: Delivery) -> None:
        """Send an answer until what stands there is what the log says: it may be withdrawn meanwhile. One that the
        platform will never take is closed, with the reason."""
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
                said = await tx.messages.get(stored.reply_id) if stored is not None and stored.reply_id else None
                if said is None or said[0].text == reply.text:
                    await tx.turns.mark_sent(turn.id, self._clock.now())
                    return
            reply = replace(reply, text=said[0].text)

    async def _answer(self, turn: Turn, agent: Agent, message: Message, delivery: Delivery) -> Reply | None:
        started = time.perf_counter()
        composed: Composed | None = None
        usage, failure, text = Usage(), None, ""
        try:
            composed = await self._composer.compose(_question(turn, agent, message), keep=not message.ephemeral)
            if composed.prompt.images:
                with timed(composed.timings_ms, "images"):
                    composed = await self._look(turn, composed)
            with timed(composed.timings_ms, "model"):
                async for chunk in self._pieces(agent, composed.prompt, turn, delivery):
                    text, usage = text + chunk[0], chunk[1] or usage
            if composed.prompt.unseen:
                said = "\n\n" + "\n".join(composed.prompt.unseen)
                await delivery.on_chunk(turn, said)
                text += said
        except NexusError as error:
            failure = str(error)
        except Exception:
            logger.exception("turn.failed", turn=str(turn.id), conversation=str(turn.conversation_id))
            failure = "Something went wrong while I was answering; it is in the log under this turn's id."
        timings = {} if composed is None else composed.timings_ms
        timings["total"] = milliseconds(started)
        answer = await self._store_answer(turn, agent, message, composed, failure or text, failure, usage, timings)
        if answer is None:
            return None
        said = text if answer.reply is None else answer.reply.text
        return Reply(turn.id, failure or said, turn, message.external_id, answer.prompt, timings, failure is not None)

    async def _look(self, turn: Turn, composed: Composed) -> Composed:
        """The same prompt with its images, fetched from the platform. Its count is left out of the correction of later
        ones: what an image costs says nothing about text."""
        fetched = await asyncio.gather(*(self._fetched(turn, picture) for picture in composed.prompt.images))
        return replace(composed, prompt=illustrated(composed.prompt, fetched), counted_tokens=0)

    async def _fetched(self, turn: Turn, picture: Picture) -> Image | str:
        """An image, or the sentence that says why there is none; the question is answered without it then."""
        source, why = self._images.get(turn.adapter), "it can't be fetched by this door"
        for attempt in range(FETCHES if source is not None else 0):
            if attempt:
                await asyncio.sleep(FETCH_PAUSE)
            try:
                assert source is not None
                content = await source.fetch(turn, picture.message, picture.attachment, images.LARGEST)
            except Unavailable:
                why = "it could not be fetched just now; ask again in a while"
                continue
            except Refused as error:
                why = str(error)
                break
            image = images.image_of(content)
            if image is not None:
                return image
            why = "it is no PNG, JPEG, WebP or GIF"
            break
        logger.warning("turn.image_unseen", turn=str(turn.id), message=str(picture.message.id))
        return images.missed(picture.attachment, why)

    async def _pieces(
        self, agent: Agent, prompt: Prompt, turn: Turn, delivery: Delivery
    ) -> AsyncIterator[tuple[str, Usage | None]]:
        answer = self._model.stream(agent, prompt.role_messages)
        delivery.on_start(turn)
        self._priority.end(turn.id)
        async for chunk in answer:
            if chunk.text:
                await delivery.on_chunk(turn, chunk.text)
            yield chunk.text, chunk.usage

    async def _store_answer(
        self,
        turn: Turn,
        agent: Agent,
        message: Message,
        composed: Composed | None,
        text: str,
        failure: str | None,
        usage: Usage,
        timings: Mapping[str, float],
    ) -> Answer | None:
        """The reply as a message of the log, with its prompt and what it was made from, in one transaction.

        What was erased since the prompt was made is in it no more: the prompt isn't kept, and an answer that drew on it
        is withdrawn. None when the turn is not open any more: then nothing is stored, and nothing may be sent.
        """
        now = self._clock.now()
        prompt = None if composed is None else composed.prompt
        reused = 0 if prompt is None else await self._reused(turn, agent, prompt)
        async with self._store.transaction(turn.tenant_id) as tx:
            await tx.erasure.block()
            gone = {} if prompt is None else await tx.erasure.changed_sources(_erasable(prompt), _derived(prompt))
            if prompt is not None and _drew_on(prompt, gone, text):
                text = RETRACTED
            row = (await tx.conversations.lock([turn.conversation_id]))[turn.conversation_id]
            reply = (
                None if failure else _reply_message(turn, agent, message, row.conversation, row.last_seq + 1, text, now)
            )
            answer = Answer(
                turn,
                None if prompt is None or gone else prompt.as_text(),
                json.dumps(timings),
                agent.model,
                usage,
                now,
                reply,
                failure,
                () if prompt is None else _lineage(prompt, message, gone),
                0 if composed is None else composed.counted_tokens,
                reused,
            )
            first = await tx.turns.store_answer(answer)
            if first and reply is not None:
                await tx.messages.append([(row.conversation.id, reply)], indexed=True)
        if first and reply is not None:
            version = row.conversation.version
            try:
                shown = () if reply.ephemeral else (reply,)
                await self._cache.append([Appended(row.conversation.id, version, version + 1, shown)])
            except Unavailable:
                logger.warning("working.cache_unavailable", conversation=str(row.conversation.id))
        return answer if first else None

    async def _reused(self, turn: Turn, agent: Agent, prompt: Prompt) -> int:
        """How many tokens this prompt has in common with the beginning of the agent's one before it here."""
        async with self._store.transaction(turn.tenant_id, snapshot=True) as tx:
            before = await tx.turns.previous_prompt(turn)
        if before is None:
            return 0
        earlier = [ChatMessage(each["role"], each["content"]) for each in json.loads(before)]
        return reused_tokens(earlier, prompt, self._tokenizer(agent))


REPLY_PREFIX: Final = "reply:"
FETCHES: Final = 2  # tries of one image
FETCH_PAUSE: Final = 0.5  # seconds between them


def _reply_message(
    turn: Turn, agent: Agent, asked: Message, conversation: Conversation, seq: int, text: str, now: datetime
) -> Message:
    """The answer as part of the conversation's log: in the same run, with the same mark, as what it answers."""
    id = derived_id("reply", str(turn.id))
    return Message(
        id,
        f"{REPLY_PREFIX}{asked.external_id}:{agent.slug}",
        ephemeral_seq(id) if asked.ephemeral else seq,
        max(now, asked.at),
        conversation.user_id,
        turn.agent_id,
        agent.name,
        text,
        asked.namespace,
        asked.visibility,
        ephemeral=asked.ephemeral,
    )


def _question(turn: Turn, agent: Agent, message: Message) -> Question:
    if message.user_id is None:
        raise NotFound("An agent's own message is not answered.")
    return Question(turn.tenant_id, turn.conversation_id, message.user_id, agent, message)


def _lineage(prompt: Prompt, asked: Message, gone: Collection[uuid.UUID]) -> tuple[tuple[str, uuid.UUID], ...]:
    """Everything that stood in the prompt, as sources of the answer: what a forgotten word flowed into. An answer that
    looked at an image of another message was made from that as from what is recalled, in whatever words."""
    stood = [(item.kind, uuid.UUID(item.id)) for item in _items(prompt)]
    looked_at = [picture.message.id for picture in prompt.images if picture.message.id != asked.id]
    brought = [(kind, id) for m in looked_at for kind, id in (("message", m), ("episode", episode_id_of(m)))]
    return tuple(source for source in dict.fromkeys([("message", asked.id), *stood, *brought]) if source[1] not in gone)


def _items(prompt: Prompt) -> list[Item]:
    return [item for section in prompt.sections for item in section.sources]


def _erasable(prompt: Prompt) -> list[tuple[uuid.UUID, str | None]]:
    """What of a prompt may be erased while the model answers, with its words where they may be edited."""
    found = {item.id: item for item in _items(prompt) if not _is_derived(item)}
    return [(uuid.UUID(item.id), item.text if item.kind in ("message", "episode") else None) for item in found.values()]


def _derived(prompt: Prompt) -> list[uuid.UUID]:
    """What of a prompt goes and comes for other reasons too: it is erased only if that is noted."""
    return list(dict.fromkeys(uuid.UUID(item.id) for item in _items(prompt) if _is_derived(item)))


def _is_derived(item: Item) -> bool:
    return item.layer == "episodic" or item.kind in ("landmark", "summary", COMPACTION)


def _drew_on(prompt: Prompt, gone: Mapping[uuid.UUID, str | None], text: str) -> bool:
    """Whether an answer was made from what is gone: it had been recalled, an image of it was looked at, or, where it
    merely was in view, the answer repeats a word of it (as composer/memory/forget.py has it)."""
    if not gone:
        return False
    items = [item for item in _items(prompt) if uuid.UUID(item.id) in gone]
    went = [item for item in items if gone[uuid.UUID(item.id)] is None]
    if any(item.layer != "working" for item in went) or any(p.message.id in gone for p in prompt.images):
        return True
    lost = {word for i in items for word in {*terms(i.text)} - {*terms(gone[uuid.UUID(i.id)] or "")}}
    return not lost.isdisjoint(terms(text))

"""Write the draft of an answer: compose the prompt, then ask the model."""

import asyncio
import time
import uuid
from dataclasses import dataclass, replace
from typing import Final

import structlog

from composer.errors import NexusError, PromptTooLong, for_operator
from composer.ingest.file_texts import FileTexts
from composer.model import Agent, Message, Turn, Usage
from composer.prompt.budget import MAX_PROMPT_SHARE
from composer.repositories.database import Database
from composer.turn.answers import DraftAnswer
from composer.turn.asking import ModelAsker
from composer.turn.compose import NOT_COMPARABLE, ComposedPrompt, Composer
from composer.turn.delivery import Delivery
from composer.turn.image_loader import ImageLoader
from composer.turn.reading import PromptRequest
from composer.turn.sources import derived_ids, message_and_memory_texts
from composer.turn.timing import milliseconds, timed
from composer.turn.used import UsedSources, embedding_account

logger = structlog.get_logger()

# When a prompt is too long for the model, a second one is made, with at most this share of the tokens of the first.
RETRY_PROMPT_SHARE: Final = 0.5
STOPPED: Final = "Stopped: this answer is not stored."  # a failure


@dataclass(frozen=True, slots=True)
class _Drafting:
    """A draft that is being written: the conversation of its turn, and the task that writes it."""

    conversation: uuid.UUID
    task: asyncio.Task[object]
    draft: DraftAnswer


class Drafter:
    """Writes drafts. It keeps nothing of one that is finished. Adapters register their image sources in `images`."""

    def __init__(
        self,
        database: Database,
        composer: Composer,
        asker: ModelAsker,
        images: ImageLoader,
        file_texts: FileTexts,
        used_sources: UsedSources,
    ) -> None:
        self.images = images
        self._database = database
        self._composer = composer
        self._asker = asker
        self._file_texts = file_texts
        self._used_sources = used_sources
        self._drafting: dict[uuid.UUID, _Drafting] = {}  # by turn
        self._stopped: set[uuid.UUID] = set()  # turns

    def stop(self, conversation: uuid.UUID, turn: uuid.UUID | None = None) -> bool:
        """Stop the answers that are being written in a conversation, or one of them. Their text is dropped; the
        sentence STOPPED is stored and delivered in its place. Returns whether there was one."""
        found = {
            turn_id: each
            for turn_id, each in self._drafting.items()
            if each.conversation == conversation and turn in (None, turn_id)
        }
        for turn_id, each in found.items():
            if turn_id not in self._stopped:
                self._stopped.add(turn_id)
                each.task.cancel()
        return bool(found)

    async def may_show(self, tenant: uuid.UUID, turn_id: uuid.UUID) -> bool | None:
        """Whether what is written so far of an answer may be shown: its question is stored, where its conversation is
        filed now, and nothing that its prompt had was erased or edited since. None if it is not being written: then
        the whole answer is judged, when it is stored (`AnswerStore`). Raises Unavailable."""
        found = self._drafting.get(turn_id)
        if found is None or found.draft.composed is None:
            return None
        prompt = found.draft.composed.prompt
        async with self._database.transaction(tenant, "read") as tx:
            return await tx.deliveries.may_show(turn_id, message_and_memory_texts(prompt), derived_ids(prompt))

    async def draft(self, turn: Turn, agent: Agent, question: Message, delivery: Delivery) -> DraftAnswer:
        """Compose the prompt and ask the model; what it answers is streamed to the delivery. Whatever fails here
        becomes the draft's `failure`, also that the database can't be reached."""
        started, task = time.perf_counter(), asyncio.current_task()
        draft = DraftAnswer()
        assert task is not None
        self._drafting[turn.id] = _Drafting(turn.conversation_id, task, draft)
        try:
            question = await self._file_texts.with_texts(turn.tenant_id, question, turn.adapter, turn.conversation_id)
            request = _prompt_request(turn, agent, question)
            # When the latest messages are too long, they are compacted here. The summary that replaces the oldest of
            # them is stored, except for an ephemeral question: one of somebody who opted out, which is not kept.
            await self._compose(request, turn, draft, persist_compaction=not question.ephemeral)
            assert draft.composed is not None
            reading = self._used_sources.read(embedding_account(turn, agent, question), draft.composed.prompt, question)
            draft.reading = asyncio.create_task(reading)
            delivery.on_start(turn)  # shows that a reply is being written
            await self._ask(request, turn, draft, delivery)
        except asyncio.CancelledError:
            # Where `stop` has asked for it, uncancel() takes that request back. If another one remains, the process is
            # ending.
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
            if draft.reading is not None and draft.failure is not None:  # else it is waited for
                draft.reading.cancel()
            del self._drafting[turn.id]
            self._stopped.discard(turn.id)
        if draft.failure is not None and draft.notices_without_quotes:
            # While it answered, the model has stored something for the asker by its tools, and `_asker` has noted that
            # here. Say so, but do not quote what was stored: a failure is not in the message log, so `/nexus forget`
            # could not take the quotation back.
            draft.failure = "\n".join((draft.failure, *draft.notices_without_quotes))
        draft.timings_ms["total"] = milliseconds(started)
        return draft

    async def answer_unstored(self, request: PromptRequest) -> tuple[str, ComposedPrompt]:
        """The answer to a question that is not stored, for whoever asks alone, and its prompt. Nothing of either is
        kept. Raises as composing and asking a model do."""
        composed = await self._composer.compose(request)
        return await self._asker.complete(request, composed.prompt), composed

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

    async def _ask(self, request: PromptRequest, turn: Turn, draft: DraftAnswer, delivery: Delivery) -> None:
        """Ask the model with the draft's prompt. If the prompt is too long for the model, a second one of half the
        tokens takes its place in the draft, and the model is asked without tools: these may have run already, and what
        they bring makes a prompt longer. Afterwards the reply's text is in the draft."""
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


def _prompt_request(turn: Turn, agent: Agent, question: Message) -> PromptRequest:
    assert question.user_id is not None, "only messages of people are answered"
    return PromptRequest(turn.tenant_id, turn.conversation_id, question.user_id, agent, question)

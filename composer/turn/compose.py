"""Compose the prompt that answers a question: resolve the viewer, read the layers, pack the prompt.

Composing stores nothing, except the compaction of a view that has outgrown the agent's context window.
"""

import uuid
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from composer.model import Conversation, Item
from composer.ports.models import Tokenizer
from composer.prompt.budget import pack
from composer.prompt.sections import Prompt
from composer.prompt.token_estimate import uncorrected
from composer.repositories.compactions import Compaction
from composer.summaries.compaction import CompactionPlan, Compactor, compaction_item
from composer.tasks.shares import memory_reads
from composer.text.work import COUNTED_PER_READ, off_loop
from composer.turn.reading import PromptRequest, Reader
from composer.turn.timing import timed
from composer.visibility import AccessContext, Readable

logger = structlog.get_logger()

# In place of our count of a prompt: later counts are not to be corrected by what the API reports for this one.
NOT_COMPARABLE: Final = 0


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """A finished prompt, the conversation it is for, and the time of each step (ms).

    `counted_tokens` is our own count, before it was corrected by what the API reported for the last prompt; or
    NOT_COMPARABLE.
    `asker_accounts` are all the accounts of the asker, who may have linked several. `readable` is what its viewer could
    read when it was composed, and `access` the facts that this was judged by.
    """

    prompt: Prompt
    conversation: Conversation
    timings_ms: dict[str, float]
    counted_tokens: int
    asker_accounts: tuple[uuid.UUID, ...]
    readable: Readable
    access: AccessContext


class Composer:
    """Composes prompts."""

    def __init__(self, reader: Reader, compactor: Compactor) -> None:
        self._reader = reader
        self._compactor = compactor

    async def compose(self, request: PromptRequest, *, persist_compaction: bool = False) -> ComposedPrompt:
        """Compose the prompt from what its viewer may read at this moment.

        A view that is too long is compacted first. The compaction is stored with `persist_compaction` (a real turn);
        otherwise it only appears in this prompt. Raises NotFound when the asker may not be in the conversation; then
        nothing was read.
        """
        timings: dict[str, float] = {}
        async with memory_reads.take():
            material = await self._reader.read(request, timings)
        prompt_input, tokenizer = material.prompt_input, material.tokenizer
        work = material.chars // COUNTED_PER_READ  # what is long is done in a thread
        due = await off_loop(work, partial(material.plan_compaction, requested=False))
        if due is not None:
            with timed(timings, "compact"):
                compaction = await self._compact(due, tokenizer, persist=persist_compaction)
            if compaction is not None:
                prompt_input = replace(
                    prompt_input, working=due.remaining, compaction=compaction_item(compaction, request.agent)
                )
        with timed(timings, "pack"):
            prompt = await off_loop(work, partial(pack, prompt_input, tokenizer))
        for note in prompt.notes:
            logger.warning("prompt.over_budget", conversation=str(request.conversation_id), note=note)
        return ComposedPrompt(
            prompt,
            material.access.conversation,
            timings,
            uncorrected(tokenizer, prompt.tokens),
            material.access.linked_users(request.asker),
            material.readable,
            material.access,
        )

    async def compact(self, request: PromptRequest) -> Compaction | None:
        """Compact an agent's view of a conversation now, even though it is not due. None when it is too short.

        Raises as `compose`.
        """
        material = await self._reader.read(request, {})
        due = await off_loop(material.chars // COUNTED_PER_READ, partial(material.plan_compaction, requested=True))
        return None if due is None else await self._compact(due, material.tokenizer, persist=True)

    async def recall(self, request: PromptRequest) -> list[Item]:
        """Search memory for the request's message, best first. Recent messages are included, unlike in a prompt.

        Raises as `compose`.
        """
        return await self._reader.recall(request)

    async def _compact(self, due: CompactionPlan, tokenizer: Tokenizer, *, persist: bool) -> Compaction | None:
        """Carry out a compaction. A failure is logged and never fails the turn: the prompt is packed without it."""
        where = {"conversation": str(due.conversation.id), "agent": due.agent.slug}
        try:
            compaction = await self._compactor.compact(due, tokenizer, persist=persist)
        except Exception:
            logger.exception("compaction.failed", **where)
            return None
        if persist and compaction is not None:
            counts = {"messages": compaction.messages, "before": compaction.before, "after": compaction.after}
            logger.info("compaction.stored", **where, **counts)
        return compaction

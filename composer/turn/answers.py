"""Store a model's answer: the reply in the message log, with its prompt and its lineage."""

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import structlog

from composer.errors import Unavailable
from composer.ingest.receive import unnumbered_seq
from composer.memory.forget import RETRACTED
from composer.model import Agent, Conversation, Message, Offer, Trust, Turn, Usage, derived_id, other_owners
from composer.ports.clock import Clock
from composer.ports.models import ChatMessage, Tokenizer
from composer.ports.working_cache import Appended, WorkingCache
from composer.prompt.budget import reused_tokens
from composer.prompt.sections import Prompt
from composer.repositories.audit import AuditAct
from composer.repositories.database import Database, Transaction
from composer.repositories.turns import Answer, AnswerGround
from composer.text.offline import without_program
from composer.turn.compose import NOT_COMPARABLE, ComposedPrompt
from composer.turn.sources import (
    derived_ids,
    lineage_of,
    message_and_memory_texts,
    source_namespaces,
    used_erased_source,
)
from composer.turn.used import NOTHING_READ, SourceVectors, UsedSources, embedding_account

logger = structlog.get_logger()

ROOM_OPENED: Final = "This room was made public since that was asked, so I don't answer it here. Ask again."
REPLY_PREFIX: Final = "reply:"  # begins the external id of an agent's reply


@dataclass(slots=True)
class DraftAnswer:
    """The result of one attempt to answer: its prompt (if one was composed), and the reply's text or a `failure`.

    `failure` is the sentence that tells the person why there is no reply. `model` is the one that answered, where that
    is known: a fallback model, perhaps. `notices` tell the asker what was written for them while the model answered;
    `notices_without_quotes` say the same without its words, for a failure: that is not in the message log, so
    forgetting does not reach it. `offers` are buttons for the asker. `failure_details` tell those who run Nexus why
    there is no reply; they are not stored. `reading` finds out, while the model answers, what the prompt's sources say.
    """

    composed: ComposedPrompt | None = None
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    failure: str | None = None
    failure_details: str = ""
    notices: list[str] = field(default_factory=list)
    notices_without_quotes: list[str] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)
    timings_ms: dict[str, float] = field(default_factory=dict)
    reading: asyncio.Task[SourceVectors] | None = None


class AnswerStore:
    """Stores answers in the log, appends them to the working cache, and records that they were delivered."""

    def __init__(
        self,
        database: Database,
        cache: WorkingCache,
        tokenizer: Callable[[Agent], Tokenizer],
        clock: Clock,
        used_sources: UsedSources,
    ) -> None:
        self._used_sources = used_sources
        self._database = database
        self._cache = cache
        self._tokenizer = tokenizer
        self._clock = clock

    async def store(self, turn: Turn, agent: Agent, question: Message, draft: DraftAnswer) -> Answer | None:
        """Store an answer in one transaction. Returns None when the turn was deleted or already answered: then nothing
        may be delivered. Where the room was opened while the model was answering, ROOM_OPENED becomes the draft's
        `failure`.

        A source of the prompt may have been erased or edited while the model was answering. Then the prompt is not
        stored, and a reply that is made of the erased source is retracted.
        """
        used = await self._used(turn, agent, question, draft)
        async with self._database.transaction(turn.tenant_id) as tx:
            ground = await _lock(tx, turn, draft)
            row = ground.row
            if row.conversation.namespace != question.namespace:  # what it was made from is not used there any more
                draft.composed, draft.failure = None, "\n".join((ROOM_OPENED, *draft.notices_without_quotes))
            prompt = None if draft.composed is None else draft.composed.prompt
            reused = 0 if prompt is None else self._reused_tokens(agent, prompt, ground.previous_messages)
            erased = {} if prompt is None else ground.changed_sources
            retracted = prompt is not None and used_erased_source(prompt, erased, used, draft.failure or draft.text)
            reply = None
            if draft.failure is None:
                text = RETRACTED if retracted else draft.text
                reply = _reply(turn, agent, question, row.conversation, text, row.last_seq + 1, self._clock.now())
                if prompt is not None and prompt.asked_servers:
                    reply = replace(reply, trust=Trust.TOOL)  # if anything is ever made of it, that has to be approved
            answer = Answer(
                turn=turn,
                message=reply,
                failure=draft.failure,
                prompt=None if prompt is None or erased else prompt.as_text(),
                in_reply_to=question.external_id,
                timings_ms=draft.timings_ms,
                model=draft.model or agent.model,
                usage=draft.usage,
                sources=() if prompt is None else lineage_of(prompt, question, erased),
                used=tuple(used - erased.keys()),
                counted_tokens=NOT_COMPARABLE if draft.composed is None else draft.composed.counted_tokens,
                reused_tokens=reused,
                offers=draft.offers if draft.failure is None else (),
                failure_details=draft.failure_details,
            )
            now, append_to = self._clock.now(), None if reply is None else row.conversation.id
            if not await tx.turns.store_answer(answer, now, append_to):
                return None
            if draft.composed is not None:
                await _record_read(tx, turn, question, draft.composed)
        if reply is not None:
            await self._append_to_cache(row.conversation, reply)
        return answer

    async def _used(self, turn: Turn, agent: Agent, question: Message, draft: DraftAnswer) -> set[uuid.UUID]:
        """What a reply is made of. It is asked before anything is locked."""
        if draft.composed is None or draft.failure is not None:
            return set()
        prompt = draft.composed.prompt
        said = without_program(draft.text)
        retold = await self._retold(turn.tenant_id, prompt) if said.strip() else {}
        known = NOTHING_READ if draft.reading is None else await draft.reading
        account = embedding_account(turn, agent, question)
        return await self._used_sources.find(account, prompt, question, said, retold, known)

    async def _retold(self, tenant: uuid.UUID, prompt: Prompt) -> dict[str, set[str]]:
        """Earlier answers in a prompt that has their questions too, and all that they were made of, with the ids of
        that. What is said once more comes from there: else forgetting one of their sources would retract each answer
        that repeats another."""
        items = [item for section in prompt.sections for item in section.sources]
        said = {id for item in items for id in item.messages}
        answers = {item.id for item in items if item.by_agent and not said.isdisjoint(map(_question_of, item.messages))}
        if not answers:
            return {}
        made_of: dict[str, set[str]] = {}
        async with self._database.transaction(tenant, "read") as tx:
            for answer, kind, source in await tx.erasure.sources_of([uuid.UUID(id) for id in sorted(answers)]):
                if kind != "turn":
                    made_of.setdefault(str(answer), set()).add(str(source))
        known = {item.id for item in items}
        return {answer: sources for answer, sources in made_of.items() if sources <= known}

    async def mark_delivered(self, answer: Answer) -> Answer | None:
        """Mark the turn of an answer as SENT, unless its reply has another text by now than was delivered: then the
        answer that is returned has that, and is not `sent`. Returns None when the turn is gone."""
        turn, now = answer.turn, self._clock.now()
        async with self._database.statement(turn.tenant_id) as tx:
            found = await tx.turns.mark_delivered(answer, now)
        if found is None or found.sent or found.message not in (None, answer.message):
            return found
        async with self._database.transaction(turn.tenant_id) as tx:
            await tx.turns.mark_sent(turn.id, now)
        return replace(found, sent=True)

    async def _append_to_cache(self, conversation: Conversation, reply: Message) -> None:
        shown = () if reply.ephemeral else (reply,)
        try:
            await self._cache.append([Appended(conversation.id, conversation.version, conversation.version + 1, shown)])
        except Unavailable:
            logger.warning("working.cache_unavailable", conversation=str(conversation.id))

    def _reused_tokens(self, agent: Agent, prompt: Prompt, previous: str | None) -> int:
        """How many tokens at the beginning of this prompt equal the agent's previous prompt in this conversation, whose
        role messages are given as JSON text."""
        if previous is None:
            return 0
        earlier = [ChatMessage(each["role"], each["content"]) for each in json.loads(previous)]
        return reused_tokens(earlier, prompt, self._tokenizer(agent))


def _question_of(reply: str) -> str:
    """The external id of the question that the reply with an external id answers; "" for what is no reply."""
    return reply.removeprefix(REPLY_PREFIX).rpartition(":")[0] if reply.startswith(REPLY_PREFIX) else ""


async def _lock(tx: Transaction, turn: Turn, draft: DraftAnswer) -> AnswerGround:
    """Lock the conversation of an answer, and get what storing it depends on."""
    prompt = None if draft.composed is None else draft.composed.prompt
    sources = None if prompt is None else message_and_memory_texts(prompt)
    return await tx.turns.lock_for_answer(turn, sources, () if prompt is None else derived_ids(prompt))


async def _record_read(tx: Transaction, turn: Turn, question: Message, composed: ComposedPrompt) -> None:
    """Record in the audit log whose private or profile rows the prompt drew on, other than the asker's own."""
    owners = other_owners(source_namespaces(composed.prompt), composed.asker_accounts)
    if owners:
        await tx.audit.record(
            AuditAct.READ_ACROSS,
            actor=question.user_id,
            users=owners,
            conversation=turn.conversation_id,
            details={"turn": str(turn.id)},
        )


def _reply(
    turn: Turn, agent: Agent, question: Message, conversation: Conversation, text: str, seq: int, now: datetime
) -> Message:
    """The reply as a message of the log: same namespace and visibility as the question, and ephemeral if that is."""
    id = derived_id("reply", str(turn.id))
    return Message(
        id=id,
        external_id=f"{REPLY_PREFIX}{question.external_id}:{agent.slug}",
        seq=unnumbered_seq(id) if question.ephemeral else seq,
        at=max(now, question.at),
        user_id=conversation.user_id,
        agent_id=turn.agent_id,
        author=agent.name,
        text=text,
        namespace=question.namespace,
        visibility=question.visibility,
        ephemeral=question.ephemeral,
    )

"""Turns: messages that want an answer, and their answers."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from composer.model import Conversation, Message, Offer, Turn, TurnState, Usage
from composer.ports.database import Row, Statements
from composer.repositories.conversations import ConversationRow, locked_conversation
from composer.repositories.erasure import Source, source_parameters
from composer.repositories.explanations import MessageAddress
from composer.repositories.lineage import insert_lineage
from composer.repositories.messages import whole_message_from_row
from composer.visibility import Readable


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn with its question and its answer, as far as it has one. The question is None once erased; there is no
    reply before the turn is answered, of a failure, or once that is erased. `prompt` is the JSON text of the prompt;
    None once cleared. `room_opened`: its room was private when the question was asked, and is read by others since."""

    turn: Turn
    state: TurnState
    question: Message | None
    reply: Message | None = None
    reply_id: uuid.UUID | None = None
    failure: str | None = None
    prompt: str | None = None
    answered_at: datetime | None = None
    room_opened: bool = False

    @property
    def question_unless_withdrawn(self) -> Message | None:
        """The question; None where nobody is to see an answer any more. Either the question or the reply was erased, or
        an agent posts this on its own initiative, such as a reminder, for a room that was opened since."""
        reply_erased = self.reply_id is not None and self.reply is None
        if self.question is None or reply_erased or (self.room_opened and self.question.by_agent):
            return None
        return self.question


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn whose answer is not sent yet, with its state, the workspace of its conversation, and who asks (None:
    nobody)."""

    turn: Turn
    state: TurnState
    workspace: str
    asker: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a turn, as it is stored and delivered: a reply (`message`), or a `failure`, the sentence that tells
    the person why there is no reply.

    The turn's id is the idempotency key of the delivery. `in_reply_to` is the platform's id of the question; "" for
    what an agent posts on its own initiative. `prompt` is JSON text, None if none is stored. `sources` is all that the
    prompt had, `used` what of it the reply is made of.

    The rest is for the adapter, and not stored. `cited` maps each source mark in the text, such as s1, to the message
    that it refers to: an adapter may link to it. `offers` are what its asker may press: the text says how each is
    typed, since an adapter may have no buttons. `failure_details` tell those who run Nexus why there is no reply, where
    that is known: the terminal alone shows them. `sent`: that it was delivered is recorded.
    """

    turn: Turn
    message: Message | None = None
    failure: str | None = None
    prompt: str | None = None
    in_reply_to: str = ""
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    sources: tuple[tuple[str, uuid.UUID], ...] = ()
    used: tuple[uuid.UUID, ...] = ()
    counted_tokens: int = 0
    reused_tokens: int = 0
    cited: Mapping[str, MessageAddress] = field(default_factory=dict)
    offers: Sequence[Offer] = ()
    failure_details: str = ""
    sent: bool = False

    @property
    def failed(self) -> bool:
        """Whether there is no reply."""
        return self.failure is not None

    @property
    def text(self) -> str:
        """What people are shown."""
        return self.failure or "" if self.message is None else self.message.text

    def replaced(self, text: str) -> "Answer":
        """The answer whose reply has another text by now, such as the notice that something was forgotten."""
        assert self.message is not None
        return replace(self, message=replace(self.message, text=text), prompt=None, cited={}, offers=())


@dataclass(frozen=True, slots=True)
class AnswerGround:
    """What storing an answer depends on: its conversation, which is locked; the role messages (JSON text) of the
    agent's last prompt there; and the sources of the answer's prompt that were erased or edited since they were read,
    with their present text (None: erased)."""

    row: ConversationRow
    previous_messages: str | None
    changed_sources: Mapping[uuid.UUID, str | None]


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """The prompt of an answered turn (None: it has expired) and the times of its steps, each as JSON text; the text of
    the answer ("" for a failure), and the model that gave it."""

    turn: uuid.UUID
    prompt: str | None
    timings_ms: str
    answer: str
    model: str


class Turns:
    """Stored turns. A turn is queued with its message (`Messages.append`), then answered, then sent."""

    def __init__(self, statements: Statements, tenant_id: uuid.UUID) -> None:
        self._sql = statements
        self._tenant_id = tenant_id

    async def open(self, conversation: uuid.UUID) -> list[OpenTurn]:
        """The open turns of a conversation, in the order of their messages: in one round trip without a
        transaction."""
        rows = await self._sql.fetch("turns_open", conversation_id=conversation)
        return [OpenTurn(self._turn(row), TurnState(row["state"]), row["workspace"], row["asker"]) for row in rows]

    async def unowned(self, served: Sequence[str]) -> list[uuid.UUID]:
        """The conversations with open turns that no process answers, where this one delivers (`TurnWorker.served`), the
        longest waiting first: in one round trip without a transaction."""
        return [row["conversation_id"] for row in await self._sql.fetch("turns_unowned", served=list(served))]

    async def notify(self, turns: Sequence[Turn], process: int) -> None:
        """Tell every process of these turns, once the transaction is stored; `process` is the number of who tells."""
        adapters = {turn.conversation_id: turn.adapter for turn in turns}
        await self._sql.execute(
            "turns_notify", conversation_ids=list(adapters), adapters=list(adapters.values()), process=process
        )

    async def get(self, id: uuid.UUID) -> StoredTurn | None:
        """One turn, in one round trip, also without a transaction."""
        rows = await self._sql.fetch("turn_get", id=id)
        if not rows:
            return None
        row = rows[0]
        turn = Turn(
            row["turn_id"],
            self._tenant_id,
            row["conversation_id"],
            row["message_id"],
            row["turn_agent_id"],
            row["adapter"],
        )
        messages = {each["id"]: whole_message_from_row(each) for each in rows if each["id"] is not None}
        question = messages.get(turn.message_id)
        return StoredTurn(
            turn,
            TurnState(row["state"]),
            question,
            reply=None if row["reply_id"] is None else messages.get(row["reply_id"]),
            reply_id=row["reply_id"],
            failure=row["failure"],
            prompt=row["prompt"],
            answered_at=row["answered_at"],
            room_opened=question is not None and question.namespace != row["present_namespace"],
        )

    async def lock_for_answer(
        self,
        turn: Turn,
        sources: Sequence[Source] | None,
        derived: Sequence[uuid.UUID],
    ) -> AnswerGround:
        """Lock the conversation of a turn, and get what storing its answer depends on. Erasure must be blocked since
        the transaction began. Raises KeyError when the conversation is gone.

        `sources` and `derived` are those of the prompt (see `Erasure.changed_sources`). `sources` None: there is none.
        """
        row = await self._sql.fetch_one(
            "turn_to_answer",
            ids=[turn.conversation_id],
            turn_id=turn.id,
            agent_id=None if sources is None else turn.agent_id,
            **source_parameters(sources or (), derived),
        )
        if row is None:
            raise KeyError(turn.conversation_id)
        return AnswerGround(
            locked_conversation(row, self._tenant_id), row["previous_messages"], dict(row["changed_sources"])
        )

    async def store_answer(self, answer: Answer, now: datetime, append_to: uuid.UUID | None = None) -> bool:
        """Store an answer with its lineage; False if the turn was answered before, or is gone. The reply is appended to
        the conversation `append_to` (None: there is none, or it is stored)."""
        reply = answer.message
        links = [("turn", answer.turn.id, kind, source) for kind, source in dict.fromkeys(answer.sources)]
        if reply is not None:
            links.append(("message", reply.id, "turn", answer.turn.id))
            kinds = {source: kind for kind, source in answer.sources}
            links += [("answer", reply.id, kinds[source], source) for source in answer.used if source in kinds]
        stored = await self._sql.fetch_one(
            "turn_answer",
            id=answer.turn.id,
            reply_id=None if reply is None else reply.id,
            failure=answer.failure,
            prompt=answer.prompt,
            timings_ms=json.dumps(dict(answer.timings_ms)),
            model=answer.model,
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
            cached_tokens=answer.usage.cached_tokens,
            now=now,
            counted_tokens=answer.counted_tokens,
            reused_tokens=answer.reused_tokens,
            item_kinds=[item_kind for item_kind, _, _, _ in links],
            item_ids=[item for _, item, _, _ in links],
            source_kinds=[source_kind for _, _, source_kind, _ in links],
            source_ids=[source for _, _, _, source in links],
            conversation_id=append_to,
            seq=reply and reply.seq,
            external_id=reply and reply.external_id,
            at=reply and reply.at,
            user_id=reply and reply.user_id,
            agent_id=reply and reply.agent_id,
            author=reply and reply.author,
            text=reply and reply.text,
            namespace=reply and reply.namespace,
            visibility=reply and str(reply.visibility),
            ephemeral=reply and reply.ephemeral,
            trust=reply and str(reply.trust),
        )
        return stored is not None

    async def record_write(self, turn: Turn, kind: str, item: uuid.UUID) -> None:
        """Record that a memory or a fact was written while a turn was being answered, from its question. The turn has
        the item among its sources from then on, also before it is answered."""
        links = [("turn", turn.id, kind, item), (kind, item, "message", turn.message_id)]
        await insert_lineage(self._sql, links)

    async def written(self, turn: uuid.UUID) -> list[uuid.UUID]:
        """The ids of what was written while a turn was being answered, as long as it is not answered."""
        rows = await self._sql.fetch("lineage_sources", item_ids=[turn])
        return [row["source_id"] for row in rows]

    async def mark_sent(self, id: uuid.UUID, now: datetime) -> None:
        """Record that an answer was sent."""
        await self._sql.execute("turn_end", id=id, now=now, reason=None)

    async def mark_delivered(self, answer: Answer, now: datetime) -> Answer | None:
        """Record that an answer was sent, unless its reply has another text by now, which the answer that is returned
        has: in one round trip without a transaction. Where neither is so, `mark_sent` records it. A reply that is gone
        is in it no more. None when the turn is gone."""
        text = None if answer.failed else answer.text
        found = await self._sql.fetch_one("turn_delivered", id=answer.turn.id, text=text, now=now)
        if found is None:
            return None
        if found["other_text"] is not None:
            return answer.replaced(found["other_text"])
        return replace(answer, message=answer.message if found["has_reply"] else None, sent=found["recorded"])

    async def give_up(self, id: uuid.UUID, reason: str) -> None:
        """Record that a turn ends without its answer being shown: its platform will never accept it, or it failed."""
        await self._sql.execute("turn_end", id=id, now=None, reason=reason)

    async def last_prompt(
        self, readable: Readable, conversation: Conversation, asker: uuid.UUID, external_id: str | None
    ) -> StoredPrompt | None:
        """The prompt of a person's last answered turn in a conversation, or of the turn whose question or answer is the
        message `external_id`."""
        if conversation.namespace not in readable.all_namespaces:
            return None
        return await self._sql.fetch_one_as(
            StoredPrompt, "turn_last_prompt", conversation_id=conversation.id, asker_id=asker, external_id=external_id
        )

    def _turn(self, row: Row) -> Turn:
        return Turn(
            row["id"],
            self._tenant_id,
            row["conversation_id"],
            row["message_id"],
            row["agent_id"],
            row["adapter"],
        )

"""What a model may write while it answers: memories and facts in the words of the message that it answers.

Other people's words must not be able to make an agent write (docs/decisions/0023). So something is written at once only
where the message is nothing but the request for exactly that (composer/text/asked.py), in the conversation itself,
under the asker's own rights, and the asker is told how to undo it. All else that the message says is proposed to them
(composer/turn/proposals.py).
"""

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer import visibility
from composer.errors import NotFound, Refused
from composer.memory import remember as remembering
from composer.memory.remember import Author
from composer.model import Conversation, Item, Message, Trust, Turn, Visibility
from composer.ports.clock import Clock
from composer.repositories.database import Database, Transaction
from composer.rights import table as rights
from composer.rights.table import Act
from composer.text.asked import Asked
from composer.text.cleaning import shorten
from composer.text.masking import mask
from composer.text.notices import NOT_FOR_ONE, undo_sentence
from composer.text.pairs import paired_value
from composer.turn.proposals import REMEMBER_LABEL, SET_LABEL, ProposedWrite, proposal
from composer.visibility import AccessContext, AccessTag, WriteScope

MAX_WRITES: Final = 3  # in one turn
MAX_WRITE_SHOWN_CHARS: Final = 200  # of what was written, in the notice
_KEY: Final = re.compile(r"[\w.\-]{1,200}")
_FOR_ALL: Final = ", for everybody who reads here"  # in the question before what would be stored
_NO_FACT: Final = (
    "Nothing was stored: the key must be its words joined by _, such as deploy_day, and the value one text, number, "
    "true or false. Else call remember."
)


@dataclass(frozen=True, slots=True)
class ToolWrite:
    """Something that was written: as a source of the answer, and the sentence that tells the asker. `wordless_notice`
    is that sentence without what was written."""

    item: Item
    notice: str
    wordless_notice: str


class ToolWriter:
    """Writes for the asker of one question, in the transaction that judges them."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        turn: Turn,
        question: Message,
        asked: Asked,
        conversation: Conversation,
    ) -> None:
        """`asked` is what the question asks for. What it may want for its sender alone, where others read, they are
        asked about first."""
        self._database, self._clock = database, clock
        self._turn, self._question, self._conversation = turn, question, conversation
        self._asked, self._may = asked, question.trust is Trust.MEMBER and not question.ephemeral
        is_read = conversation.visibility is not Visibility.PRIVATE
        self._would_be_read, self._asks_first = is_read and asked.for_oneself, is_read and asked.may_be_for_oneself
        self._readers = _FOR_ALL if is_read else ""
        self._earlier: Sequence[uuid.UUID] = ()
        self._count = 0

    @property
    def allowed(self) -> bool:
        """Whether anything may be written for this question, or proposed: a member's, that is stored, as long as the
        limit is not reached, no earlier attempt at this turn wrote something, and it does not ask to store for its
        sender alone what others would read."""
        return self._may and not self._would_be_read and not self._earlier and self._count < MAX_WRITES

    async def begin(self) -> list[str]:
        """Look up what an attempt at this turn wrote that was interrupted: then nothing more is written. Returns the
        sentences that tell the asker of it, or that nothing is stored for them alone here. Raises Unavailable."""
        if self._would_be_read:
            return [NOT_FOR_ONE]
        if not (self._may and self._asked.to_store):  # then no attempt could write
            return []
        async with self._database.transaction(self._turn.tenant_id, "read") as tx:
            self._earlier = await tx.turns.written(self._turn.id)
        return [_wordless_notice(id) for id in self._earlier]

    async def remember(self, text: str) -> ToolWrite | ProposedWrite:
        """Store as a note what the message is a request to remember, if that is this text; else propose it. Raises
        Refused with the sentence for the model."""
        author, now = self._begin_write()
        quote = "" if self._asks_first else self._asked.to_remember(text)
        if not quote:
            said = " ".join(text.split())
            what = f"remember in your name{self._readers}: {said}"
            return self._proposal(what, said, REMEMBER_LABEL, f"/nexus remember {said}")
        async with self._database.transaction(self._turn.tenant_id) as tx:
            tag = await self._judged_tag(tx)
            note = await remembering.remember(tx, tag, quote, author, self._turn.adapter, self._event(quote), now)
            await tx.turns.record_write(self._turn, "memory", note.id)
        stored = mask(quote)
        return self._written("semantic", "note", note.id, tag, stored, f"Remembered: {stored}")

    async def set_fact(self, key: str, value: str) -> ToolWrite | ProposedWrite:
        """Set a fact if its key and value are all that the message is a request to set (composer/text/pairs.py), and
        there is none of that key; else propose it. Raises Refused with the sentence for the model, and BadInput."""
        words = _words_of_value(value)
        if _KEY.fullmatch(key) is None or not words:
            raise Refused(_NO_FACT)
        author, now = self._begin_write()
        quoted = None if self._asks_first else self._value(key, words)
        if quoted is not None:
            async with self._database.transaction(self._turn.tenant_id) as tx:
                tag = await self._judged_tag(tx)
                # Tools append: to forget the new value would not bring the old one back.
                if not await tx.facts.is_set(tag, key):
                    event = self._event(key, quoted)
                    fact = await remembering.set_fact(tx, tag, key, quoted, author, self._turn.adapter, event, now)
                    await tx.turns.record_write(self._turn, "fact", fact.id)
                    line = f"{fact.key} = {fact.value}"
                    return self._written("structured", "fact", fact.id, tag, line, f"Set the fact {line}")
        said = f"{key.replace('_', ' ')} {words}"
        what, command = f'set the fact {key} = "{words}" in your name{self._readers}', f"/nexus fact set {key} {words}"
        return self._proposal(what, said, SET_LABEL, command)

    def _proposal(self, what: str, words: str, label: str, command: str) -> ProposedWrite:
        return proposal(what, words, self._question.text, label, command)

    def _value(self, key: str, words: str) -> str | None:
        """The value that the message is a request to give the key, as JSON text, if it is the one that the model
        read."""
        said = paired_value(self._asked.to_set(), key, words)
        if said is None:
            return None
        if said.casefold() in ("true", "false"):
            return said.casefold()
        try:
            number: object = json.loads(said, parse_float=remembering.exact_float, parse_int=remembering.exact_int)
        except ValueError:
            number = None
        return said if isinstance(number, int | float) else json.dumps(said, ensure_ascii=False)

    def _event(self, *words: str) -> str:
        """The name of a write: the same words of a message are stored once, whoever asks for it again."""
        return f"tool:{self._question.id}:{json.dumps(words)}"

    def _begin_write(self) -> tuple[Author, datetime]:
        """The author of the next write, and its time."""
        if not self.allowed:
            raise Refused("Nothing was stored: nothing may be written for this message now.")
        self._count += 1
        author = Author(self._question.author, self._question.trust, agent=self._turn.agent_id)
        return author, self._clock.now()

    async def _judged_tag(self, tx: Transaction) -> AccessTag:
        """Where the asker may write here now. Raises Refused and NotFound."""
        access = await judged_access(tx, Act.WRITE, self._question, self._conversation)
        return visibility.access_tag_for(access, WriteScope.HERE)

    def _written(self, layer: str, kind: str, id: uuid.UUID, tag: AccessTag, text: str, said: str) -> ToolWrite:
        item = Item(
            layer,
            kind,
            str(id),
            text,
            self._question.at,
            tag.namespace,
            tag.visibility,
            tag.user_id,
            author=self._question.author,
            messages=(self._question.external_id,),
        )
        return ToolWrite(item, f"{shorten(said, MAX_WRITE_SHOWN_CHARS)}. {undo_sentence(id)}", _wordless_notice(id))


def _words_of_value(value: str) -> str:
    """A value as a model gives it, in words. Raises Refused."""
    try:
        parsed: object = json.loads(value, parse_float=remembering.exact_float, parse_int=remembering.exact_int)
    except ValueError:
        parsed = value
    if isinstance(parsed, list | dict) or parsed is None:
        raise Refused(_NO_FACT)
    return " ".join((parsed if isinstance(parsed, str) else json.dumps(parsed)).split())


def _wordless_notice(id: uuid.UUID) -> str:
    return f"I have stored something for you. {undo_sentence(id)}"


async def judged_access(tx: Transaction, act: Act, question: Message, conversation: Conversation) -> AccessContext:
    """The access of who asked a question, judged for an act as commands are, as of now. Raises Refused and NotFound.

    What a tool writes goes where the message itself stands: not into a room that was opened or closed since.
    """
    stored = await tx.messages.get(question.id)
    if stored is None or stored.text != question.text:
        raise Refused("Nothing was stored: the message was erased or edited meanwhile.")
    asker = stored.user_id
    assert asker is not None
    access = await tx.conversations.access_context(conversation.id, asker, question.trust)
    if access is None:
        raise NotFound("There is no such conversation here.")
    rights.judge((act,), await tx.permissions.facts(access.conversation, asker, ()))
    if await tx.people.has_opted_out((asker,)):
        raise Refused("Nothing was stored: its author has opted out of being stored.")
    here = access.conversation
    if (here.namespace, here.visibility) != (stored.namespace, stored.visibility):
        raise Refused("Nothing was stored: who reads this conversation has changed since the message.")
    tx.audit.act_for(asker, conversation.id)
    return access

"""What a model may write while it answers: memories and facts in the words of the message that it answers.

Other people's words must not be able to make an agent write (docs/decisions/0023). So the message itself must ask for
it, in the asker's own words (composer/text/asked.py), only these are stored, in the conversation itself, under the
asker's own rights, and the asker is told how to undo it.
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
from composer.model import Conversation, Item, Message, Trust, Turn
from composer.ports.clock import Clock
from composer.repositories.database import Database, Transaction
from composer.rights import table as rights
from composer.rights.table import Act
from composer.text.asked import Asked
from composer.text.cleaning import shorten
from composer.text.masking import mask
from composer.text.notices import undo_sentence
from composer.text.pairs import paired_value
from composer.text.quoting import find_quote
from composer.visibility import AccessContext, AccessTag, WriteScope

MAX_WRITES: Final = 3  # in one turn
MAX_WRITE_SHOWN_CHARS: Final = 200  # of what was written, in the notice
_KEY: Final = re.compile(r"[\w.\-]{1,200}")
_ONLY_QUOTES: Final = (
    "Nothing was stored: these are no words, one after the other, of what the asker wrote to have remembered in the "
    "message to answer, without what it quotes, forwards or pastes. Say that /nexus remember WORDS stores any words."
)
_NO_PAIR: Final = (
    "Nothing was stored: one clause of the request must be the key, a word such as to or is, and the value up to its "
    "end. The key must have all of its words, such as deploy_day. Else call remember."
)
_KNOWN_KEY: Final = (
    "Nothing was stored: there is a fact of that key already. Say that /nexus fact set KEY VALUE changes it."
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
        """`asked` is what the question asks for."""
        self._database, self._clock = database, clock
        self._turn, self._question, self._conversation = turn, question, conversation
        trusted = question.trust is Trust.MEMBER and not question.ephemeral
        self._asked = asked
        self._wanted = trusted and self._asked.to_store()
        self._earlier: Sequence[uuid.UUID] = ()
        self._count = 0

    @property
    def allowed(self) -> bool:
        """Whether anything may be written for this question: a member's, that is stored and asks for it, as long as the
        limit is not reached and no earlier attempt at this turn wrote something."""
        return self._wanted and not self._earlier and self._count < MAX_WRITES

    async def begin(self) -> list[str]:
        """Look up what an attempt at this turn wrote that was interrupted: then nothing more is written. Returns the
        sentences that tell the asker of it. Raises Unavailable."""
        if not self._wanted:  # then no attempt could write
            return []
        async with self._database.transaction(self._turn.tenant_id, "read") as tx:
            self._earlier = await tx.turns.written(self._turn.id)
        return [_wordless_notice(id) for id in self._earlier]

    async def remember(self, text: str) -> ToolWrite:
        """Store as a note all that the message asks to remember, of which `text` is a quote. Raises Refused with the
        sentence for the model."""
        quote = self._quote(text)
        author, now = self._begin_write()
        async with self._database.transaction(self._turn.tenant_id) as tx:
            tag = await self._judged_tag(tx)
            note = await remembering.remember(tx, tag, quote, author, self._turn.adapter, self._event(quote), now)
            await tx.turns.record_write(self._turn, "memory", note.id)
        stored = mask(quote)
        return self._written("semantic", "note", note.id, tag, stored, f"Remembered: {stored}")

    async def set_fact(self, key: str, value: str) -> ToolWrite:
        """Set a fact whose key and value are one clause of the message (composer/text/pairs.py). Raises Refused with
        the sentence for the model, and BadInput."""
        quoted = self._value(key, value)
        author, now = self._begin_write()
        async with self._database.transaction(self._turn.tenant_id) as tx:
            tag = await self._judged_tag(tx)
            if await tx.facts.is_set(tag, key):
                # Tools append: to forget the new value would not bring the old one back.
                raise Refused(_KNOWN_KEY)
            event = self._event(key, quoted)
            fact = await remembering.set_fact(tx, tag, key, quoted, author, self._turn.adapter, event, now)
            await tx.turns.record_write(self._turn, "fact", fact.id)
        line = f"{fact.key} = {fact.value}"
        return self._written("structured", "fact", fact.id, tag, line, f"Set the fact {line}")

    def _quote(self, words: str) -> str:
        """All that the message asks to remember, if these words stand in it."""
        said = self._asked.to_remember()
        if find_quote(said, words) is None:
            raise Refused(_ONLY_QUOTES)
        return said

    def _value(self, key: str, value: str) -> str:
        """The value that the message gives the key, as JSON text, if it is the one that the model read."""
        try:
            parsed: object = json.loads(value, parse_float=remembering.exact_float, parse_int=remembering.exact_int)
        except ValueError:
            parsed = value
        if isinstance(parsed, list | dict) or parsed is None:
            raise Refused("Nothing was stored: the value must be one text, number, true or false.")
        words = parsed if isinstance(parsed, str) else json.dumps(parsed)
        pairs = (paired_value(clause, key, words) for clause in self._asked.to_set())
        said = next(filter(None, pairs), None) if _KEY.fullmatch(key) else None
        if said is None:
            raise Refused(_NO_PAIR)
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

"""What a model may set while it answers: one reminder, in the words of the message that asks for it.

Its text is a quote of that message, and the message says whom to remind. The model reads the time; the asker is told
that, and how to cancel the reminder.
"""

import re
from datetime import tzinfo
from typing import Final

from composer import visibility
from composer.errors import BadInput, NotFound, Refused
from composer.memory.reminding import (
    YOUR_TIME,
    NewReminder,
    check_reminder,
    store_reminder,
    when_phrase,
    where_phrase,
)
from composer.model import Agent, ConversationKind, Message, derived_id
from composer.ports.clock import Clock
from composer.repositories.database import Database
from composer.repositories.reminders import Reminder
from composer.rights.table import Act
from composer.text.asked import Asked
from composer.text.cleaning import clean_line
from composer.text.dates.when import When, read_when
from composer.text.notices import SHORT_ID_CHARS
from composer.text.requests import denied_outside
from composer.text.wishes import asks_for_reminder
from composer.turn.tool_writes import judged_access
from composer.visibility import AccessContext

_SENTENCE: Final = re.compile(r"[.!?;](?:\s|\Z)|\n")
_UNREAD: Final = (
    "Nothing was set: that is no time that I read. Write in 20 minutes, at 14:00, tomorrow 9:00, on Friday at 14:00, "
    "2026-05-04 09:00 or every weekday at 9:30, and nothing else."
)
_ONE: Final = "Nothing more was set: there is a reminder for this message. Say that /nexus remind me sets others."
_NOT_ASKED: Final = "Nothing was set: the message asks for no reminder. Say that /nexus remind me sets one."
_OWN_WORDS_ONLY: Final = (
    "Nothing was set: the text must be words that the asker wrote in the message to answer, one after the other, not "
    "what the message quotes, forwards or pastes. Say that /nexus remind me sets any."
)
_DENIED: Final = "Nothing was set: the sentence has a negation that these words leave out. Quote all of the sentence."


class ToolReminders:
    """Sets the reminder that one question asks for, in the transaction that judges its asker."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        agent: Agent,
        question: Message,
        asked: Asked,
        access: AccessContext,
        zone: tzinfo,
    ) -> None:
        """`asked` is what the question asks for, `access` that of the turn, `zone` the tenant's time zone, for who has
        none of their own."""
        self._database, self._clock, self._agent = database, clock, agent
        self._question, self._conversation = question, access.conversation
        self._zone = access.zone or zone
        self._called = (
            YOUR_TIME if access.zone is not None and self._conversation.kind is not ConversationKind.DM else ""
        )
        self._asked = asked
        self.allowed = not question.ephemeral and self._asked.for_reminder()
        self._id = derived_id("reminder", "tool", str(question.id), str(agent.id))

    async def begin(self) -> list[str]:
        """Look up whether an attempt at this turn that was interrupted has set a reminder: then no other one is set.
        Returns the sentences that tell the asker of it. Raises Unavailable."""
        question = self._question
        if not self.allowed or question.user_id is None:
            return []
        async with self._database.transaction(self._conversation.tenant_id, "read") as tx:
            access = await tx.conversations.access_context(self._conversation.id, question.user_id, question.trust)
            owned = None if access is None or not visibility.may_participate(access) else visibility.owned_by(access)
            found = [] if owned is None else await tx.reminders.open(owned, self._id.hex)
        self.allowed = not found
        return [f"I have set a reminder for you. {_cancel(each)}" for each in found]

    async def remind(self, words: str, text: str) -> tuple[str, str]:
        """Set the reminder. Returns the sentence that tells the asker, and the same without its text. Raises Refused
        and BadInput with the sentence for the model, and NotFound."""
        if not self.allowed:
            raise Refused(_NOT_ASKED if not self._asked.for_reminder() else _ONE)
        found = self._asked.part(text, asks_for_reminder)
        if found is None:
            raise Refused(_OWN_WORDS_ONLY)
        start, end = found
        if denied_outside(self._asked.text, start, end):
            raise Refused(_DENIED)
        quote, wish = self._asked.text[start:end], self._asked.wish(self._question.at, self._zone)
        if wish is not None:  # what the model leaves out of its sentence may turn it around
            quote = next((each for each in _SENTENCE.split(wish.text) if quote in each), quote)
        return await self._set(self._when(words), clean_line(quote, 2_000))

    async def fulfil(self) -> tuple[list[str], list[str]]:
        """Set the reminder that the message asks for, if its time is understood whole: for answers whose model can
        call nothing. Returns what the asker is told, and the same without its text; nothing where the message asks for
        none that is understood."""
        wish = self._asked.wish(self._question.at, self._zone) if self.allowed else None
        if wish is None:
            return [], []
        try:
            notice, wordless = await self._set(wish.when, clean_line(wish.text, 2_000))
        except (BadInput, Refused, NotFound) as error:
            notice = wordless = str(error)
        return [notice], [wordless]

    async def _set(self, when: When, quote: str) -> tuple[str, str]:
        now = self._clock.now()
        check_reminder(when, quote, now, self._zone, self._called)
        in_dm = self._conversation.kind is ConversationKind.DM or not self._asked.reminds_all()
        new = NewReminder(self._id, when, quote, self._question.author, self._agent, in_dm)
        async with self._database.transaction(self._conversation.tenant_id) as tx:
            access = await judged_access(tx, Act.REMIND, self._question, self._conversation)
            reminder = await store_reminder(tx, access, new, now)
            await tx.reminders.record_question(reminder.id, self._question.id)
        self.allowed = False
        where = f"I will remind {where_phrase(access, in_dm=in_dm)} {when_phrase(reminder, self._zone, self._called)}"
        last = " ".join(filter(None, (when.note, _cancel(reminder))))
        return f"{where}: {quote.rstrip('.')}. {last}", f"{where}. {last}"

    def _when(self, words: str) -> When:
        """A time as of the message. Where the model is not told the asker's zone, what it has worked out is in another
        one, so the message's own words come first. Raises BadInput."""
        wish = self._asked.wish(self._question.at, self._zone) if self._called else None
        if wish is not None:
            return wish.when
        found = read_when(words, self._question.at, self._zone)
        if found is None or found[1]:
            raise BadInput(_UNREAD)
        return found[0]


def _cancel(reminder: Reminder) -> str:
    return f"To cancel: /nexus remind cancel {reminder.id.hex[:SHORT_ID_CHARS]}"

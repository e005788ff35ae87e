"""What a model may set while it answers: the reminder that its message is a request for.

It is set at once only where the message is nothing but that request (composer/text/asked.py), and its time is
understood; the asker is told when it is, and how to cancel it. All else is proposed to them
(composer/turn/proposals.py).
"""

from datetime import tzinfo
from typing import Final

from composer import visibility
from composer.errors import BadInput, NotFound, Refused
from composer.memory.reminding import (
    YOUR_TIME,
    NewReminder,
    check_reminder,
    local_time,
    store_reminder,
    when_phrase,
    where_phrase,
)
from composer.model import Agent, ConversationKind, Message, derived_id
from composer.ports.clock import Clock
from composer.repositories.database import Database
from composer.repositories.reminders import Reminder
from composer.rights.table import Act
from composer.text.asked import Asked, are_all
from composer.text.cleaning import clean_line
from composer.text.dates.when import When, read_when
from composer.text.notices import SHORT_ID_CHARS
from composer.text.wishes import Wish
from composer.turn.proposals import REMIND_LABEL, ProposedWrite, proposal
from composer.turn.tool_writes import judged_access
from composer.visibility import AccessContext

_UNREAD: Final = (
    "Nothing was set: that is no time that I read. Write in 20 minutes, at 14:00, tomorrow 9:00, on Friday at 14:00, "
    "2026-05-04 09:00 or every weekday at 9:30, and nothing else."
)
_ONCE_MORE: Final = "Nothing was set: the command would read another time. Say that /nexus remind me sets any."


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
        self._access, self._is_set = access, False
        self.allowed = not question.ephemeral
        self._id = derived_id("reminder", "tool", str(question.id), str(agent.id))

    async def begin(self) -> list[str]:
        """Look up whether an attempt at this turn that was interrupted has set a reminder: then no other one is set.
        Returns the sentences that tell the asker of it. Raises Unavailable."""
        question = self._question
        if not self.allowed or question.user_id is None or self._wish_at_once() is None:
            return []
        async with self._database.transaction(self._conversation.tenant_id, "read") as tx:
            access = await tx.conversations.access_context(self._conversation.id, question.user_id, question.trust)
            owned = None if access is None or not visibility.may_participate(access) else visibility.owned_by(access)
            found = [] if owned is None else await tx.reminders.open(owned, self._id.hex)
        self._is_set = bool(found)
        return [f"I have set a reminder for you. {_cancel(each)}" for each in found]

    async def remind(self, words: str, text: str) -> tuple[str, str] | ProposedWrite:
        """Set the reminder if the message is a request for exactly this text; else propose it. Returns the sentence
        that tells the asker, and the same without its text. Raises Refused and BadInput with the sentence for the
        model, and NotFound."""
        wish = self._wish_at_once()
        if wish is not None and not self._is_set and are_all(text, wish.text):
            return await self._set(wish.when, clean_line(wish.text, 2_000))
        return self._proposal(self._when(words), clean_line(text, 2_000))

    async def fulfil(self) -> tuple[list[str], list[str]] | ProposedWrite:
        """Set the reminder that the message is a request for, or propose the first one that it asks for, if its time is
        understood whole: for answers whose model can call nothing. Returns what the asker is told, and the same without
        its text; nothing where the message asks for none that is understood."""
        wish = self._asked.wish(self._question.at, self._zone) if self.allowed else None
        if wish is None:
            return [], []
        text = clean_line(wish.text, 2_000)
        try:
            if self._wish_at_once() is None:
                return self._proposal(wish.when, text)
            notice, wordless = await self._set(wish.when, text)
        except (BadInput, Refused, NotFound) as error:
            notice = wordless = str(error)
        return [notice], [wordless]

    def _wish_at_once(self) -> Wish | None:
        return self._asked.wish_at_once(self._question.at, self._zone)

    def _proposal(self, when: When, text: str) -> ProposedWrite:
        """Raises Refused and BadInput."""
        check_reminder(when, text, self._clock.now(), self._zone, self._called)
        in_dm = self._is_for_dm
        at = f"{when.at.astimezone(self._zone):%Y-%m-%d %H:%M}" if when.repeat is None else when.repeat.words
        read = read_when(f"{at} {text}", self._clock.now(), self._zone)
        if read is None or read[1] != text or (read[0].at, read[0].repeat) != (when.at, when.repeat):
            raise Refused(_ONCE_MORE)
        who = where_phrase(self._access, in_dm=in_dm)
        shown = local_time(when.at, self._zone, self._called)
        then = "" if when.repeat is None else f", then {when.repeat.words}"
        command = f"/nexus remind {'me' if in_dm else 'here'} {at} {text}"
        return proposal(f"remind {who} on {shown}{then}: {text}", text, self._question.text, REMIND_LABEL, command)

    @property
    def _is_for_dm(self) -> bool:
        return self._conversation.kind is ConversationKind.DM or not self._asked.reminds_all()

    async def _set(self, when: When, quote: str) -> tuple[str, str]:
        now = self._clock.now()
        check_reminder(when, quote, now, self._zone, self._called)
        in_dm = self._is_for_dm
        new = NewReminder(self._id, when, quote, self._question.author, self._agent, in_dm)
        async with self._database.transaction(self._conversation.tenant_id) as tx:
            access = await judged_access(tx, Act.REMIND, self._question, self._conversation)
            reminder = await store_reminder(tx, access, new, now)
            await tx.reminders.record_question(reminder.id, self._question.id)
        self._is_set = True
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

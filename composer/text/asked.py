"""What people ask for themselves in a message, told by its place alone. Pure.

A message that is nothing but a request, in one line and in its sender's own words, is done at once: behind a greeting
and the name of who is asked it begins with the words that ask, and all that follows them is what is to be stored, set
or reminded of. Whatever else stands in a message, before, behind or below, may say that its words are somebody else's:
then its sender is asked first (composer/turn/proposals.py).
"""

import re
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Final

from composer.text.for_oneself import is_for_oneself, is_plainly_for_oneself
from composer.text.own_words import MIN_QUOTED_WORDS, own_words, quotations
from composer.text.requests import after_greeting, asks_to_store, opening, without_thanks
from composer.text.wishes import (
    MAX_WISH_CHARS,
    Wish,
    asks_for_reminder,
    is_one_sentence,
    reminder_wish,
    reminds_all,
)

MAX_STARTS: Final = 20  # places of a message at which a wish to be reminded is looked for
_PART: Final = re.compile(r"[^\W_]+")
_MENTIONED: Final = re.compile(r"@[\w.-]{1,80}")
_PAUSE: Final = " \t\r\n,:!"
_CLAUSE_END: Final = re.compile(r"[.!?;:,](?=\s)|[\n\u3002\uff01\uff1f\uff1b\uff1a\uff0c\u3001]")
_AROUND: Final = " \t\r\n.!,;:\u3002\uff01"  # at the end of what is stored
_QUESTION_MARKS: Final = ("?", "\uff1f")
_SOMETHING: Final = "it"  # in place of a quotation, so that its sentence still has something to be done


class Asked:
    """What a message asks for. `words` are its sender's own."""

    def __init__(self, message: str, called: str = "") -> None:
        """`called`: the name of who is asked, which may stand before what is asked."""
        self.words = own_words(message)
        is_own = own_words(message, quoting=True).split() == message.split()
        self._request = _request(message.strip(), called) if is_own else ""
        self._what = ""  # what follows the words that ask to store
        asks = opening(self._request, 0, len(self._request))
        if asks is not None and (asks.question or not self._request.endswith(_QUESTION_MARKS)):
            self._what = self._request[asks.end :].strip().rstrip(f"?{_AROUND}" if asks.question else _AROUND)

    @property
    def to_store(self) -> bool:
        """Whether the message is a request to remember, note or set something."""
        return bool(self._what)

    @property
    def for_oneself(self) -> bool:
        """Whether the message asks to store something for its sender alone."""
        return asks_to_store(self.words) and is_plainly_for_oneself(self.words)

    @property
    def may_be_for_oneself(self) -> bool:
        """Whether it has words that may say so, or tell something else."""
        return is_for_oneself(self.words)

    def to_remember(self, words: str) -> str:
        """What the message asks to remember, as it stands there, if these words are all of it; else ""."""
        return self._what if are_all(words, self._what) else ""

    def to_set(self) -> str:
        """The clause that the message asks to set or note, without the words that ask; else ""."""
        return self._what

    def wish_at_once(self, now: datetime, zone: tzinfo) -> Wish | None:
        """The reminder that the message is a request for, if its time is understood whole: see `reminder_wish`."""
        text = self._request
        if not is_one_sentence(text):
            return None
        own, whole = (reminder_wish(each, now, zone) for each in (_masked(text), text))
        return whole if own is not None and whole is not None and _masked(whole.text) == own.text else None

    def wish(self, now: datetime, zone: tzinfo) -> Wish | None:
        """The first reminder that any sentence or clause of the message asks for, as `wish_at_once` takes it."""
        at_once = self.wish_at_once(now, zone)
        found = (reminder_wish(_masked(text), now, zone) for text in self._starts())
        return at_once or next(filter(None, found), None)

    def for_reminder(self) -> bool:
        """Whether any sentence or clause of the message asks for a reminder."""
        return any(map(asks_for_reminder, self._starts()))

    def reminds_all(self) -> bool:
        """Whether everyone in the conversation is to be reminded."""
        return any(map(reminds_all, self._starts()))

    def _starts(self) -> Iterator[str]:
        """The sender's words from the beginning of the request, and of each sentence and clause on."""
        yield self._request
        begins = [0, *(found.end() for found in _CLAUSE_END.finditer(self.words))]
        for start in begins[:MAX_STARTS]:
            yield self.words[start : start + MAX_WISH_CHARS]


def are_all(words: str, text: str) -> bool:
    """Whether words are all of a text, but for its first one, such as "an" in "an die Miete". Case and punctuation
    don't count."""
    said, whole = (_PART.findall(each.casefold()) for each in (words, text))
    return said != [] and said in (whole, whole[1:])


def _request(text: str, called: str) -> str:
    """A message of one line without a greeting, the name of who is asked and thanks; "" for one of several lines, and
    for one that names somebody else then."""
    begins = after_greeting(text)
    mention = _MENTIONED.match(text, begins)
    end = begins + len(called) if mention is None else mention.end()
    is_named = mention is not None or (
        text[begins:end].casefold() == called.casefold() != "" and not text[end : end + 1].isalnum()
    )
    said = without_thanks((text[end:].lstrip(_PAUSE) if is_named else text).strip(), named=not is_named)
    leads = after_greeting(said)
    if len(said.splitlines()) > 1 or _MENTIONED.match(said, leads):
        return ""
    return said[max(said.rfind("!", 0, leads), said.rfind(".", 0, leads)) + 1 :].strip()


def _masked(text: str) -> str:
    """A text with a word in place of each quotation."""
    kept, at = list[str](), 0
    for start, end in quotations(text, MIN_QUOTED_WORDS):
        kept.append(text[at:start])
        at = end
    return _SOMETHING.join((*kept, text[at:]))

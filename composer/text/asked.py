"""What people ask for themselves in a message: in their own words, not in what they quote, forward or paste. Pure.

Whatever is stored, set or offered in somebody's name because their message asks for it is read here. The request must
be in their own words. What it asks to store may have a quotation in it, which stays in its quotation marks; a quotation
alone is stored only where its own sentence asks for that.
"""

import re
from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import Final

from composer.text.own_words import MIN_QUOTED_WORDS, own_words, quotations, without_quotations
from composer.text.quoting import find_quote
from composer.text.requests import asks_to_store
from composer.text.wishes import Wish, asks_for_reminder, reminder_wish, reminds_all

_SENTENCE_END: Final = re.compile(r"[.!?;](?=\s|\Z)|[\n\u3002\uff01\uff1f\uff1b]")
_PART: Final = re.compile(r"[^\W_]+")
_SOMETHING: Final = "it"  # in place of a quotation, so that its sentence still has something to be done

Span = tuple[int, int]


class Asked:
    """What a message asks for. `words` are its sender's own, `text` is that with the quotations in its sentences."""

    def __init__(self, message: str) -> None:
        self.words = own_words(message)
        self.text = own_words(message, quoting=True)

    def to_store(self) -> bool:
        """Whether it asks to remember, note or set something."""
        return asks_to_store(self.words)

    def for_reminder(self) -> bool:
        """Whether it asks to be reminded of something."""
        return asks_for_reminder(_masked(self.text))

    def reminds_all(self) -> bool:
        """Whether everyone in the conversation is to be reminded."""
        return reminds_all(_masked(self.text))

    def wish(self, now: datetime, zone: tzinfo) -> Wish | None:
        """The reminder that it asks for, if its time is understood whole: see `reminder_wish`."""
        own, whole = (reminder_wish(text, now, zone) for text in (_masked(self.text), self.text))
        return whole if own is not None and whole is not None and _masked(whole.text) == own.text else None

    def part(self, words: str, asks: Callable[[str], bool]) -> Span | None:
        """Where exactly these words stand in `text`, with the marks of a quotation that they are. None if they stand
        in none of it, in a part of a quotation, or in one alone whose sentence is none that `asks`."""
        found = find_quote(self.text, words)
        if found is None:
            return None
        start, end = found
        for opens, closes in quotations(self.text, MIN_QUOTED_WORDS):
            if opens < start < closes and not _PART.search(self.text, opens, start):
                start = opens
            if opens < end < closes and not _PART.search(self.text, end, closes):
                end = closes
            if opens < start < closes or opens < end < closes:
                return None
        if not _PART.search(without_quotations(self.text[start:end], MIN_QUOTED_WORDS)):
            first, last = self._sentence((start, end))
            if not asks(_masked(f"{self.text[first:start]}{_SOMETHING}{self.text[end:last]}")):
                return None
        return start, end

    def words_beside(self, part: Span) -> set[str]:
        """The words in lower case of the sentence in which a part of `text` stands, without those of quotations."""
        start, end = self._sentence(part)
        said = without_quotations(self.text[start:end], MIN_QUOTED_WORDS)
        return {word.casefold() for word in _PART.findall(said)}

    def _sentence(self, part: Span) -> Span:
        before = [found.end() for found in _SENTENCE_END.finditer(self.text, 0, part[0])]
        after = _SENTENCE_END.search(self.text, part[1])
        return before[-1] if before else 0, after.start() if after else len(self.text)


def _masked(text: str) -> str:
    """A text with a word in place of each quotation."""
    kept, at = list[str](), 0
    for start, end in quotations(text, MIN_QUOTED_WORDS):
        kept.append(text[at:start])
        at = end
    return _SOMETHING.join((*kept, text[at:]))

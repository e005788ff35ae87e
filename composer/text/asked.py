"""What people ask for themselves in a message: in their own words, not in what they quote, forward or paste. Pure.

Whatever is stored, set or offered in somebody's name because their message asks for it is read here. The request must
be in their own words and begin what they say: only whole sentences of the same line may stand before it, no question,
no colon and no other line, for what stands behind those may be somebody else's; or its line is the first that begins
with a mention. What it asks to store may have a quotation in it, which stays in its quotation marks; a quotation alone
is stored only where its own sentence asks for that. What is stored is decided here, and nothing that stands in it is
left out: a part of what somebody said may be the contrary of it.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from typing import Final

from composer.text.copies import COLONS
from composer.text.own_words import MIN_QUOTED_WORDS, own_words, quotations, without_quotations
from composer.text.quoting import find_quote
from composer.text.requests import asks_to_store, leading, opening
from composer.text.wishes import MAX_WISH_CHARS, Wish, asks_for_reminder, reminder_wish, reminds_all

_SENTENCE_END: Final = re.compile(r"[.!?;](?=\s|\Z)|[\n\u3002\uff01\uff1f\uff1b]")
_PART: Final = re.compile(r"[^\W_]+")
# What may stand before the name of who is asked: a greeting in any language, "Hola Nexus", "hey team, @nexus".
_BEFORE_NAMES: Final = (
    re.compile(r"\s{0,8}+(?:[^\W\d_]{1,20}\s){1,2}[^\W\d_]{1,20},\s{1,4}"),
    re.compile(r"\s{0,8}+[^\W\d_]{1,20}[\s,!]{1,4}"),
    re.compile(r"\s*"),
)
_MENTIONED: Final = re.compile(r"(?<!\w)@[\w.-]{1,80}")
_SAID: Final = re.compile(r"\S")
_PAUSE: Final = re.compile(r"[\s,:!]*")
_LED: Final = re.compile(r"[.!\u3002\uff01]\s*\Z")  # ends a sentence behind which another one may ask
_ONE_LETTER: Final = re.compile(r"(?<!\w)[^\W\d_]\.\s*\Z")  # the end of "e.g."
_COLON: Final = re.compile(r":(?=\s|\Z)|\uff1a(?!\d)")
_LIST_MARK: Final = re.compile(r"\A\s*(?:[-*+\u2022\u00b7]|\d{1,3}[.)])\s+")
_SHORTENED: Final = re.compile(r"\b(?:\d{1,2}|[^\W\d_]{1,2})\.\Z")  # "3. Mai", "Dr. Who": ends no clause
_AROUND: Final = " \t\r\n.!,;:\u3002\uff01"  # at the end of what is stored
_SOMETHING: Final = "it"  # in place of a quotation, so that its sentence still has something to be done

Span = tuple[int, int]


class Asked:
    """What a message asks for. `words` are its sender's own, `text` is that with the quotations in its sentences."""

    def __init__(self, message: str, called: str = "") -> None:
        """`called`: the name of who is asked, which may stand before what is asked."""
        self.words = own_words(message)
        self.text = own_words(message, quoting=True)
        self._called = called.casefold()
        self._mention = _MENTIONED.search(self.text)
        self._asking = list(self._may_ask())

    def to_store(self) -> bool:
        """Whether it asks to remember, note or set something."""
        return any(asks_to_store(_masked(self.text[start : self._colon(start, end)])) for start, end in self._asking)

    def to_remember(self) -> str:
        """What it asks to remember: all that follows the words that ask; where nothing does ("Remember that!"), what
        stands before them; and all of it where no sentence begins with them. "" where it asks for nothing."""
        if not self.to_store():
            return ""
        for start, end in self._asking:
            asks = opening(self.text, self._after_address(start), end)
            if asks is None:
                continue
            said = self._said(asks.end, len(self.text))
            if not _PART.search(said):
                return self._said(self._after_address(0), start).rstrip(_AROUND)
            alone = asks.question and not _PART.search(self.text, end)
            return said.rstrip(f"?{_AROUND}" if alone else _AROUND)
        return self._said(self._after_address(0), len(self.text)).rstrip(_AROUND)

    def to_set(self) -> Iterator[str]:
        """The clauses that it asks to set or note, without the words that ask: the rest of a sentence that begins with
        them; where there is none, the lines below it, or the one sentence before it."""
        spans, asking = list(self._sentences()), set(self._asking)
        for number, (start, end) in enumerate(spans):
            asks = opening(self.text, self._after_address(start), end) if (start, end) in asking else None
            if asks is None:
                continue
            if _SHORTENED.search(self.text, asks.end, end) and number + 1 < len(spans):
                end = spans[number + 1][1]
            rest = self.text[asks.end : end].rstrip()
            if _PART.search(rest):
                if asks.question or not rest.endswith(("?", "\uff1f")):
                    yield rest.rstrip("?\uff1f")
            elif self.text[start:end].endswith("\n") and _PART.search(self.text, end):
                for line in self.text[end:].splitlines():
                    if not _PART.search(line):
                        break
                    yield _LIST_MARK.sub("", line)
            elif number == 1:
                yield self.text[self._after_address(0) : start].strip()

    def for_reminder(self) -> bool:
        """Whether it asks to be reminded of something."""
        return any(asks_for_reminder(_masked(text)) for text in self._from_asking())

    def reminds_all(self) -> bool:
        """Whether everyone in the conversation is to be reminded."""
        return any(reminds_all(_masked(text)) for text in self._from_asking())

    def wish(self, now: datetime, zone: tzinfo) -> Wish | None:
        """The reminder that it asks for, if its time is understood whole: see `reminder_wish`."""
        for text in self._from_asking():
            own, whole = (reminder_wish(each, now, zone) for each in (_masked(text), text))
            if own is not None:
                return whole if whole is not None and _masked(whole.text) == own.text else None
        return None

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

    def _sentence(self, part: Span) -> Span:
        before = [found.end() for found in _SENTENCE_END.finditer(self.text, 0, part[0])]
        after = _SENTENCE_END.search(self.text, part[1])
        return before[-1] if before else 0, after.start() if after else len(self.text)

    def _sentences(self) -> Iterator[Span]:
        """Where the sentences begin and end, with what ends them. One that ends in a quotation goes on behind it."""
        quoted, start = list(quotations(self.text, MIN_QUOTED_WORDS)), 0
        for found in _SENTENCE_END.finditer(self.text):
            if not any(opens < found.start() and found.end() < closes for opens, closes in quoted):
                yield start, found.end()
                start = found.end()
        if start < len(self.text):
            yield start, len(self.text)

    def _may_ask(self) -> Iterator[Span]:
        """The sentences that may ask for something: see the top of this file."""
        may, said = True, False
        for start, end in self._sentences():
            sentence = self.text[start:end]
            begins = self._after_address(start)
            if self._mention is not None and start <= self._mention.start() < begins:
                may = may or not self.text[:start].rstrip().endswith(("?", "\uff1f", *COLONS))
            if not _PART.search(self.text, leading(self.text, begins, end), end):
                may = may and not (said and "\n" in sentence)
                continue
            if may and self._is_to_who_is_asked(start):
                yield start, end
            said = True
            may = may and _LED.search(sentence) is not None and _ONE_LETTER.search(sentence) is None
            may = may and self._colon(start, end) == end

    def _is_to_who_is_asked(self, start: int) -> bool:
        """Whether a sentence names nobody else than the message does first."""
        words = _SAID.search(self.text, start)
        named = _MENTIONED.match(self.text, words.start()) if words else None
        return named is None or (self._mention is not None and named[0].casefold() == self._mention[0].casefold())

    def _colon(self, start: int, end: int) -> int:
        """Where in a sentence its first colon stands, behind the name of who is asked; its end for none."""
        quoted = list(quotations(self.text[start:end], MIN_QUOTED_WORDS))
        for found in _COLON.finditer(self.text, self._after_address(start), end):
            if not any(opens < found.start() - start < closes for opens, closes in quoted):
                return found.start()
        return end

    def _from_asking(self) -> Iterator[str]:
        """The text from each sentence on that may ask to be reminded, without the name of who is asked."""
        for start, _ in self._asking:
            begins = self._after_address(start)
            text = self.text[begins : begins + MAX_WISH_CHARS]
            if asks_for_reminder(_masked(text)):
                yield text

    def _after_address(self, start: int) -> int:
        """Where the sentence from `start` begins behind the name of who is asked: "hey Nexus, …", "@nexus …"."""
        for before in (each.match(self.text, start) for each in _BEFORE_NAMES):
            if before is None or asks_to_store(before[0]):
                continue  # "remember @bob": no greeting
            mention = _MENTIONED.match(self.text, before.end())
            end = before.end() + len(self._called) if mention is None else mention.end()
            named = self.text[before.end() : end].casefold() == self._called != ""
            pause = _PAUSE.match(self.text, end)
            if pause and (mention or (named and not self.text[end : end + 1].isalnum())):
                return pause.end()
        return start

    def _said(self, start: int, end: int) -> str:
        """A part of the text that begins and ends with sentences, or after words that ask. Quotations are left out of
        sentences that don't ask to store anything."""
        kept = list[str]()
        for first, last in self._sentences():
            if start < last and first < end:
                said = self.text[max(first, start) : min(last, end)]
                asks = asks_to_store(_masked(self.text[first:last]))
                kept.append(said if asks else without_quotations(said, MIN_QUOTED_WORDS))
        return "".join(kept).strip()


def _masked(text: str) -> str:
    """A text with a word in place of each quotation."""
    kept, at = list[str](), 0
    for start, end in quotations(text, MIN_QUOTED_WORDS):
        kept.append(text[at:start])
        at = end
    return _SOMETHING.join((*kept, text[at:]))

"""The excerpts of summaries, and which of them are shown: without a model the last ones, as many as fit; with one those
that it names, each with what may correct or deny it later. Pure.

An excerpt is a whole message, since half of one may say the contrary of it: the list under "What we will not do:", the
second line of "I never agree that". What one person writes at once is one, too: "We pay all invoices", then "*NOT
all, sorry". Of a long message only the beginning is shown, since what stands further below may stand under any heading.

Whatever is left out between excerpts has a line "…" in a summary: nobody seems to answer what they did not answer.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Final

from composer.ports.models import Tokenizer
from composer.prompt.sections import GAP
from composer.summaries.texts import IN_FILE, NOT_OWN, SummaryInput, attributed_line, is_own
from composer.text.own_words import MAX_PARAGRAPH_CHARS, MIN_QUOTED_WORDS, own_words, without_quotations
from composer.text.terms import folded, sentences, terms

MAX_EXCERPTS: Final = 1_000  # of one summary: the last ones
MAX_EXCERPT_CHARS: Final = 320
MAX_PAUSE: Final = timedelta(minutes=2)  # between messages that one person writes at once
CUT: Final = GAP  # where something is left out
LINE_BREAK: Final = " / "
COMMON_SHARE: Final = 0.05  # of the excerpts: a word of more tells nothing
MIN_COMMON: Final = 4  # excerpts, however few there are
MAX_SHORT_ANSWER_CHARS: Final = 24  # of an excerpt that belongs to what stands right before it: "No.", "I do."
MAX_SHORT_ANSWERS: Final = 8  # of them
MAX_NAMED_EXCERPTS: Final = 200  # excerpts by a model at once: the rest of a longer answer is not read
NAMED_SHARE: Final = 0.7  # of a summary's tokens, for what a model names
NEXT_OF_NAMED: Final = 3  # excerpts of whoever is named, who may deny it
MIN_NICKNAME_CHARS: Final = 3  # of a word that is short for a name

NOTHING_BEFORE: Final = (-1, 0)  # the order of what stands before the first that is said
NOT_AMONG_INPUTS: Final = (-1, 1)  # or before the first in another place, or of what nobody is shown

_ADDRESSES_SOMEONE: Final = re.compile(r"^\s*@?[\w\[\]|^`{}\\-]{2,24}\s*[:,]\s")  # whom it names it does not speak of
_RUN_OF_LETTERS: Final = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A candidate for a summary, said `at` a time. `order`: the number of its input, and its own in that; `after`: that
    of what was said right before it in its place; `is_last`: nothing was said after it there. `day`: the weekday that
    stands above it."""

    order: tuple[int, int]
    after: tuple[int, int]
    is_last: bool
    at: datetime
    author: str
    text: str
    terms: frozenset[str]
    day: str = ""


def candidate_excerpts(inputs: Sequence[SummaryInput]) -> list[Excerpt]:
    """The excerpts of the inputs, in their order; of very many, the last. Of what somebody says again and again, word
    by word, with nothing in between, the last. Nothing else is left out because of another one: it may say the
    contrary but for a "not", and the same "No." may answer another question."""
    found: dict[tuple[int, int], Excerpt] = {}
    last_in: dict[str | int, tuple[int, int]] = {}  # a thread, or an earlier summary
    followed: set[tuple[int, int]] = set()
    for number, source in enumerate(_said_at_once(inputs)):
        place = source.place if source.author else number
        for nth, (author, words) in enumerate(_said(source)):
            order, before = (number, nth), last_in.get(place, NOT_AMONG_INPUTS if found else NOTHING_BEFORE)
            followed.add(before)
            last_in[place] = order
            if words in ("", CUT):  # no sentence, or a gap of an earlier summary
                continue
            after = NOT_AMONG_INPUTS if source.after_gap and nth == 0 else before
            earlier = found.get(after)
            if earlier and (earlier.author, earlier.text.casefold()) == (author, words.casefold()):
                del found[after]
            found[order] = Excerpt(order, after, False, source.at, author, words, frozenset(terms(words)), source.day)
    return [replace(each, is_last=each.order not in followed) for each in list(found.values())[-MAX_EXCERPTS:]]


def since_last_gap(inputs: Sequence[SummaryInput], candidates: Sequence[Excerpt]) -> list[Excerpt]:
    """The excerpts of the last day of a week of which something is left out, and of the days after it: what is left out
    may correct what was said on the days before. Of other inputs all."""
    gaps = [n for n, each in enumerate(inputs) if each.day and CUT in each.text.splitlines()]
    return [each for each in candidates if not gaps or each.order[0] >= gaps[-1]]


def last_excerpts(candidates: Sequence[Excerpt], budget: int, tokenizer: Tokenizer) -> list[Excerpt]:
    """As many of the last excerpts as a summary of `budget` tokens has room for; of one that alone is too long, its
    beginning. What corrects or answers one of them later is among them."""

    def tokens_of_last(count: int) -> int:
        return tokenizer.count(in_order(candidates[-count:]))

    counts = range(1, min(len(candidates), budget) + 1)
    if count := bisect_right(counts, budget, key=tokens_of_last):
        return list(candidates[-count:])
    last = [shortened(each, budget - mark_cost(tokenizer), tokenizer) for each in candidates[-1:]]
    return [each for each in last if each is not None]


def named_excerpts(
    candidates: Sequence[Excerpt], numbers: Sequence[int], budget: int, tokenizer: Tokenizer, shown: Sequence[Excerpt]
) -> list[Excerpt]:
    """The excerpts of these numbers, from 0, the most important first, and those of `shown`, in `budget` tokens: all,
    or as many as take 70% of what is left, of a first one that is too long its beginning. As far as there is room each
    brings what may correct or deny it: the short ones right after it, and what its author says next; and, all of it or
    none, what is said later with one of its words, and the next three of whoever it names. More of these numbers are
    shown if there is room for that."""
    chosen, numbers = {each.order: each for each in shown}, numbers[:MAX_NAMED_EXCERPTS]

    def tokens_with(*added: Excerpt) -> int:
        return tokenizer.count(in_order((chosen | {each.order: each for each in added}).values()))

    used = tokens_with() if shown else 0
    fits_whole = tokens_with(*(candidates[n] for n in numbers)) <= budget
    room = budget if fits_whole else used + int((budget - used) * NAMED_SHARE)
    for n in numbers:
        excerpt = candidates[n] if chosen else shortened(candidates[n], room, tokenizer)
        if excerpt and tokens_with(excerpt) <= room:
            chosen.setdefault(excerpt.order, excerpt)
    frequency = Counter(term for each in candidates for term in each.terms)
    common = max(MIN_COMMON, int(len(candidates) * COMMON_SHARE))
    telling = [frozenset(term for term in each.terms if frequency[term] <= common) for each in candidates]
    said_by = [_name(each.author) for each in candidates]
    names = {name: frozenset(part for part in terms(name) if len(part) > 1) for name in said_by}
    for n in numbers:
        named, later = _named(names, candidates[n]), range(n + 1, len(candidates))
        near = [n, *islice((m for m in later if said_by[m] == said_by[n]), 1)]
        near += takewhile(lambda m: _is_answer(candidates[m], candidates[m - 1]), later[:MAX_SHORT_ANSWERS])
        of_it = [m for m in later if not telling[n].isdisjoint(telling[m])]
        of_it += (m for name in named for m in islice((m for m in later if said_by[m] == name), NEXT_OF_NAMED))
        for together in ([*near, *of_it], near):
            added = {candidates[m].order: candidates[m] for m in together if candidates[m].order not in chosen}
            if tokens_with(*added.values()) <= budget:
                chosen |= added
                break
    return list(chosen.values())


def _is_answer(excerpt: Excerpt, before: Excerpt) -> bool:
    """Whether an excerpt is a short one right after another."""
    return excerpt.after == before.order and len(excerpt.text) <= MAX_SHORT_ANSWER_CHARS


def _name(author: str) -> str:
    """The name of who said an excerpt, without what stands behind it: "(file)", and the number of a namesake."""
    return author.partition(" (")[0].partition(" [")[0]


def _named(names: Mapping[str, frozenset[str]], excerpt: Excerpt) -> set[str]:
    """The names, each with its terms, of which an excerpt has a part, or the beginning as a nickname: "Ms Brown",
    "Ali". None where it begins with whom it addresses."""
    if _ADDRESSES_SOMEONE.match(excerpt.text):
        return set()
    short = {word for word in _RUN_OF_LETTERS.findall(folded(excerpt.text)) if len(word) >= MIN_NICKNAME_CHARS}
    return {
        name
        for name, parts in names.items()
        if not parts.isdisjoint(excerpt.terms) or any(part.startswith(word) for word in short for part in parts)
    }


def _said_at_once(inputs: Iterable[SummaryInput]) -> list[SummaryInput]:
    """The inputs, and as one those that one person wrote one right after another, as far as they fit one excerpt."""
    made: list[SummaryInput] = []
    last_in: dict[str, tuple[int, datetime]] = {}  # of a thread: which of `made`, and when its last part was said
    for each in inputs:
        number, at = last_in.get(each.place, (-1, each.at))
        if number >= 0 and each.at - at <= MAX_PAUSE and _goes_on(made[number], each):
            text, files = f"{made[number].text}\n{each.text}", (*made[number].files, *each.files)
            made[number] = replace(made[number], text=text, files=files)
        else:
            number = len(made)
            made.append(each)
        last_in[each.place] = (number, each.at)
    return made


def _goes_on(said: SummaryInput, more: SummaryInput) -> bool:
    """Whether an input is said by the same person right after another one, and short enough to be shown with it."""
    if not more.author or more.author != said.author or more.after_gap:
        return False
    both = f"{said.text}\n{more.text}"
    return len(both) <= MAX_EXCERPT_CHARS and _beginning(both)[2]


def _said(source: SummaryInput) -> Iterator[tuple[str, str]]:
    """The excerpts of an input, each with what stands before it: its author, who may say it, quote it, or have sent it
    in a file. Each line of a summary is one that was made before."""
    if not source.author:
        for line in source.text.splitlines():
            author, colon, words = line.partition(": ")
            yield (author, words) if colon else ("", line)
        return
    if source.text.strip() or not source.files:
        shown, excerpt, is_whole = _beginning(source.text)
        quoted = is_own(source.author) and _is_quoted(source.text, shown, is_whole=is_whole)
        yield source.author + NOT_OWN * quoted, excerpt
    for file in source.files:
        _, excerpt, _ = _beginning(file)
        yield source.author + IN_FILE, excerpt


def _is_quoted(text: str, shown: Iterable["_Piece"], *, is_whole: bool) -> bool:
    """Whether what is shown of a text is not its sender's own words: of a whole one nothing, of a long one not all.
    A paragraph may be as long as an announcement."""
    lines = (line[:MAX_PARAGRAPH_CHARS] for line in text.splitlines())
    own = {each.text for each in _pieces(own_words("\n".join(lines)))}
    return not own if is_whole else not own.issuperset(map(_unquoted, shown))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence of a line, or what is left of it."""

    text: str
    begins_line: bool

    @property
    def joined(self) -> str:
        """With what stands between it and the piece before."""
        return f"{LINE_BREAK if self.begins_line else ' '}{self.text}"


def _pieces(text: str) -> list[_Piece]:
    return [
        _Piece(" ".join(sentence.split()), n == 0)
        for line in text.splitlines()
        for n, sentence in enumerate(sentences(line))
    ]


def _unquoted(piece: _Piece) -> str:
    return " ".join(without_quotations(piece.text, MIN_QUOTED_WORDS).split())


def _beginning(text: str) -> tuple[Sequence[_Piece], str, bool]:
    """The first pieces of a text, the excerpt that they make, and whether that is all of it."""
    pieces = _pieces(text)
    count, words = min(len(pieces), 1), pieces[0].text if pieces else ""
    while count < len(pieces) and len(words) + len(pieces[count].joined) <= MAX_EXCERPT_CHARS:
        words += pieces[count].joined
        count += 1
    excerpt, is_whole = _cut(words, MAX_EXCERPT_CHARS), count == len(pieces)
    return pieces[:count], excerpt if is_whole or excerpt.endswith(CUT) else f"{excerpt} {CUT}", is_whole


def _cut(text: str, chars: int) -> str:
    """As many whole words of a text as have so many characters, and a mark where it goes on."""
    if len(text) <= chars:
        return text
    words = text[: chars + 1].rpartition(" ")[0] or text[:chars]
    return f"{words.removesuffix(LINE_BREAK.rstrip())} {CUT}"


def mark_cost(tokenizer: Tokenizer) -> int:
    """The tokens of a line that marks a gap."""
    return tokenizer.count(CUT) + 1


def line_cost(excerpt: Excerpt, tokenizer: Tokenizer) -> int:
    """The tokens of the line of an excerpt, and of those before it that mark a gap and name its day."""
    day = tokenizer.count(excerpt.day) + 2 if excerpt.day else 0
    return tokenizer.count(attributed_line(excerpt.author, excerpt.text)) + 1 + mark_cost(tokenizer) + day


def in_order(shown: Iterable[Excerpt]) -> str:
    """Excerpts as they were said one after another, a line each, those of a week below the days. A line "…" stands
    wherever the one above is not what was said right before, or what was said right after is not below."""
    lines: list[str] = []
    last: Excerpt | None = None
    for each in sorted(shown, key=lambda each: each.order):
        if each.after != (last.order if last else NOTHING_BEFORE):
            lines.append(CUT)
        if each.day and (last is None or last.day != each.day):
            lines.append(f"{each.day}:")
        lines.append(attributed_line(each.author, each.text))
        last = each
    if last is not None and not last.is_last:
        lines.append(CUT)
    return "\n".join(lines)


def shortened(excerpt: Excerpt, tokens: int, tokenizer: Tokenizer) -> Excerpt | None:
    """An excerpt, or as much of its beginning as `line_cost` allows in so many tokens; None if not even a word fits."""
    text = excerpt.text.removesuffix(CUT).rstrip()
    chars = len(text)
    while chars and line_cost(excerpt, tokenizer) > tokens:
        chars = chars * 7 // 8
        excerpt = replace(excerpt, text=_cut(text, chars))
    return excerpt if chars else None

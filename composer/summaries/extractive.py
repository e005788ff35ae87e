"""The excerpts of summaries, and a choice of them without a model: of those that ask or decide something or cover many
terms. What is shown stands with the last that was said of it, which may correct or deny it. Pure.

An excerpt is a whole message, since half of one may say the contrary of it: the list under "What we will not do:", the
second line of "I never agree that". What one person writes at once is one, too: "We pay all invoices", then "*NOT
all, sorry". Of a long message only the beginning is shown, since what stands further below may stand under any heading.

Whatever is left out between excerpts has a line "…" in a summary: nobody seems to answer what they did not answer.

The weights are set by hand.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from composer.layers.relevance import SMALL_TALK
from composer.memory.patterns import extract
from composer.ports.models import MINILM_SCALE, Scale, Tokenizer, Vectors
from composer.prompt.sections import EXTRACTIVE, GAP
from composer.summaries.texts import IN_FILE, NOT_OWN, SummaryInput, SummaryText, attributed_line, is_own
from composer.text.languages import stem
from composer.text.own_words import MAX_PARAGRAPH_CHARS, MIN_QUOTED_WORDS, own_words, without_quotations
from composer.text.terms import sentences, terms

MAX_EXCERPTS: Final = 600  # that are compared by meaning: those of the greatest weight
MAX_EXCERPT_CHARS: Final = 320
MAX_PAUSE: Final = timedelta(minutes=2)  # between messages that one person writes at once
CUT: Final = GAP  # where something is left out
LINE_BREAK: Final = " / "
DUPLICATE_LIKENESS: Final = 0.82  # from which two excerpts of one person are about the same: the later one counts
COMMON_SHARE: Final = 0.5  # of the excerpts: a word of more tells nothing
MIN_COMMON: Final = 4  # excerpts, however few there are
MAX_SHORT_TERMS: Final = 4  # of an excerpt that may tell nothing without another one
MAX_SHORT_CHARS: Final = 12  # or of one without spaces between words
MIN_TERMS: Final = 3  # of an excerpt that is worth a place
RECENT_INPUTS: Final = 12  # before an input, whose terms are not new in it
QUIET_INPUTS: Final = 15  # since an author's last one, after which their next one counts as a new contribution

NOTHING_BEFORE: Final = (-1, 0)  # the order of what stands before the first that is said in a place
NOT_AMONG_INPUTS: Final = (-1, 1)  # or of what nobody is shown

_EMPTY: Final = frozenset(map(stem, SMALL_TALK))  # stems that tell nothing
_ADDRESSES_SOMEONE = re.compile(r"^\s*@?[\w\[\]|^`{}\\-]{2,24}\s*[:,]\s")
_CONTINUES = re.compile(
    r"^\W*(?:yes|yeah|yep|no|nope|ok|okay|thanks|thank|thx|lol|haha|sure|right|cool|hi|hello|hey|bye|oh|hm+|and|but|so|because"
    r"|it|that|this|they|he|she|then|try|well)\b",
    re.IGNORECASE,
)
_RAISES = re.compile(
    r"\?|\b(?:how|what|why|where|who|which|anyone|anybody|someone|help|problem|trouble|wonder\w*|question|propose|suggest)\b",
    re.IGNORECASE,
)
# A question to one person about themselves, or one that seeks assent ("time flies, huh?"): it begins no discussion.
_ASKS_BACK = re.compile(r"\b(?:your?|yours|huh|eh|right)\b[^?]*\?\s*$", re.IGNORECASE)
_DECIDES = re.compile(
    r"\b(?:decid\w+|agree[ds]|we agree|agreement|deadline|must|will|action|todo|plan|release|deploy\w*|blocked"
    r"|approved?|rejected|resolved|conclusion|important|owner|due)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A candidate for a summary, said `at` a time. `order`: the number of its input, and its own in that; `after`: that
    of what was said right before it in its place; `is_last`: nothing was said after it there. `weight` is its own
    merit, 0 where it tells nothing by itself ("Totally agree", "We are live!"). `later`: the orders of what is
    shown with it, since it may correct it. `day`: the weekday that stands above it."""

    order: tuple[int, int]
    after: tuple[int, int]
    is_last: bool
    at: datetime
    author: str
    text: str
    terms: frozenset[str]
    weight: float
    later: frozenset[tuple[int, int]] = frozenset()
    day: str = ""


def candidate_excerpts(inputs: Sequence[SummaryInput]) -> list[Excerpt]:
    """The excerpts of the inputs, in their order; of very many, those of most weight. Of what somebody says again and
    again, word by word, with nothing in between, the last. Nothing else is left out because of another one: it may say
    the contrary but for a "not", and the same "No." may answer another question."""
    found: dict[tuple[int, int], Excerpt] = {}
    recent: list[frozenset[str]] = []
    last_input_of: dict[str, int] = {}
    last_in: dict[str | int, tuple[int, int]] = {}  # a thread, or an earlier summary
    followed: set[tuple[int, int]] = set()
    for number, source in enumerate(_said_at_once(inputs)):
        known = frozenset().union(*recent[-RECENT_INPUTS:])
        after_quiet = number - last_input_of.get(source.author, -100) > QUIET_INPUTS
        place = source.place if source.author else number
        texts = list(_said(source))
        for nth, (author, words) in enumerate(texts):
            order, before = (number, nth), last_in.get(place, NOTHING_BEFORE)
            followed.add(before)
            last_in[place] = order
            if words in ("", CUT):  # no sentence, or a gap of an earlier summary
                continue
            own = frozenset(terms(words))
            weight = 0.0
            if _has_content(words, own):
                weight = _weight(words, own, known, first=nth == 0, last=nth == len(texts) - 1, after_quiet=after_quiet)
            after = NOT_AMONG_INPUTS if source.after_gap and nth == 0 else before
            earlier = found.get(after)
            if earlier and (earlier.author, earlier.text.casefold()) == (author, words.casefold()):
                weight = max(weight, found.pop(after).weight)
            found[order] = Excerpt(order, after, False, source.at, author, words, own, weight, day=source.day)
        recent.append(frozenset(terms(source.text[:2000])))
        last_input_of[source.author] = number
    best = sorted(found.values(), key=lambda each: (-each.weight, each.order))[:MAX_EXCERPTS]
    ordered = sorted(best, key=lambda each: each.order)
    together = _going_with(ordered)
    return [replace(each, is_last=each.order not in followed, later=together[each.order]) for each in ordered]


def _going_with(excerpts: Sequence[Excerpt]) -> dict[tuple[int, int], frozenset[tuple[int, int]]]:
    """By each excerpt, what is shown with it, all of it later: for each of its telling words what each person says last
    with this word; what somebody whom it names says next; and the short ones that follow it or one of these."""
    frequency = Counter(term for each in excerpts for term in each.terms)
    most = max(MIN_COMMON, int(len(excerpts) * COMMON_SHARE))
    telling = {each.order: [term for term in each.terms if frequency[term] <= most] for each in excerpts}
    following = _following(excerpts, telling)
    last: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)  # by a word, and a person
    names = {
        author: set(terms(author.partition(" (")[0].partition(" [")[0])) for author in {e.author for e in excerpts}
    }
    next_of: dict[str, tuple[int, int]] = {}
    followed_by: dict[tuple[int, int], set[tuple[int, int]]] = {}  # with what goes with those
    together: dict[tuple[int, int], frozenset[tuple[int, int]]] = {}
    for each in reversed(excerpts):
        own = {order for short in following[each.order] for order in (short, *together[short])}
        said = {order for term in telling[each.order] for order in last[term].values()}
        if not _ADDRESSES_SOMEONE.match(each.text):
            said.update(order for author, order in next_of.items() if names[author] and names[author] <= each.terms)
        followed_by[each.order] = own
        together[each.order] = frozenset(own.union(said, *(followed_by[order] for order in said)))
        for term in telling[each.order]:
            last[term].setdefault(each.author, each.order)
        next_of[each.author] = each.order
    return together


def _following(
    excerpts: Sequence[Excerpt], telling: Mapping[tuple[int, int], Sequence[str]]
) -> defaultdict[tuple[int, int], list[tuple[int, int]]]:
    """By each excerpt, the short ones that tell nothing without it ("scratch that", "no, Thursday"): none of their
    words was said before, and it is what their author said last, or what they follow in their place."""
    following: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    said: set[str] = set()
    last_of: dict[str, tuple[int, int]] = {}
    for each in excerpts:
        is_short = len(each.terms) <= MAX_SHORT_TERMS or len(each.text) <= MAX_SHORT_CHARS
        if is_short and said.isdisjoint(telling[each.order]):
            for order in {each.after, last_of.get(each.author, each.after)}:
                following[order].append(each.order)
        said.update(telling[each.order])
        last_of[each.author] = each.order
    return following


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


def _has_content(words: str, own: frozenset[str]) -> bool:
    """Whether an excerpt is worth a place: "Totally agree, Mel" is not, nor is a name or an address alone. What decides
    something may be short."""
    if words.isascii() and len(words.split()) < MIN_TERMS:  # other scripts need no spaces
        return False
    return len(own if _DECIDES.search(words) else own - _EMPTY) >= MIN_TERMS


def _weight(
    words: str, own: frozenset[str], known: frozenset[str], *, first: bool, last: bool, after_quiet: bool
) -> float:
    """The weight of an excerpt: higher when it asks or decides something, brings new terms, or is long."""
    weight = 0.3 + len(own - known) / len(own)
    weight += 0.5 * first + 0.1 * last + 0.8 * after_quiet
    raises = _RAISES.search(words) is not None and _ASKS_BACK.search(words) is None
    weight += 0.6 * raises + 0.3 * bool(_DECIDES.search(words))
    weight -= 0.8 * bool(_ADDRESSES_SOMEONE.match(words)) + 0.6 * bool(_CONTINUES.match(words))
    weight += 2.0 * any(statement.kind == "decision" for statement in extract(words))
    return max(weight, 0.05) * math.sqrt(min(len(own), 10))


def extractive_summary(
    candidates: Sequence[Excerpt],
    vectors: Vectors | None,
    budget: int,
    tokenizer: Tokenizer,
    scale: Scale = MINILM_SCALE,
) -> SummaryText:
    """Choose excerpts greedily by weight, novelty and length up to `budget` tokens; shown in their original order. Each
    is chosen with what goes with it, or not at all; of what one person says again, the last. Where nothing fits so, the
    last excerpts are shown.

    `vectors` has a row for each candidate, and `scale` says what their cosines say; without them they are compared
    by their terms.
    """
    if not candidates:
        return SummaryText("", EXTRACTIVE, 0)
    left = float(budget - mark_cost(tokenizer))
    fitting = [shortened(each, int(left), tokenizer) or replace(each, weight=0.0) for each in candidates]
    costs = np.array([line_cost(each, tokenizer) for each in fitting], dtype=np.float64)
    similarity = _similarity(candidates, vectors, scale)
    weights = np.array([each.weight for each in fitting], dtype=np.float64)
    authors = np.array([each.author for each in candidates])
    repeated = np.triu(similarity >= DUPLICATE_LIKENESS, k=1) & (authors[:, None] == authors)
    together = np.array(
        [[other.order == each.order or other.order in each.later for other in fitting] for each in fitting]
    )
    nearest_chosen, available = np.zeros(len(candidates)), (weights > 0) & ~repeated.any(axis=1)
    chosen = np.zeros_like(available)
    while True:
        added = together @ np.where(chosen, 0.0, costs)
        available &= (added <= left) & ~chosen
        if not available.any():
            break
        gain = np.where(available, weights * (1 - nearest_chosen) / np.sqrt(np.maximum(added, 1.0)), -1.0)
        best = int(gain.argmax())
        left -= float(added[best])
        chosen |= together[best]
        nearest_chosen = np.maximum(nearest_chosen, similarity[together[best]].max(axis=0))
    if not chosen.any():
        chosen[_last_that_fit(costs, left) :] = True
    text = in_order(fitting[n] for n in np.flatnonzero(chosen))
    return SummaryText(text, EXTRACTIVE, tokenizer.count(text) if text else 0)


def _last_that_fit(costs: np.ndarray[tuple[int], np.dtype[np.float64]], tokens: float) -> int:
    """The index from which excerpts fit so many tokens, of which each costs some: the end of it all."""
    return len(costs) - int((np.cumsum(costs[::-1]) <= tokens).sum())


def worth_choosing(candidates: Sequence[Excerpt]) -> list[Excerpt]:
    """The candidates that have some weight, and what goes with them."""
    kept = {order for each in candidates if each.weight > 0 for order in (each.order, *each.later)}
    return [each for each in candidates if each.order in kept]


def whole_summary(candidates: Sequence[Excerpt], budget: int, tokenizer: Tokenizer) -> SummaryText | None:
    """All excerpts, where there is room for all of them: what corrects or answers another one is none of much weight.
    None where there is not."""
    if len(candidates) > budget:
        return None
    text = in_order(candidates)
    tokens = tokenizer.count(text) if text else 0
    return SummaryText(text, EXTRACTIVE, tokens) if tokens <= budget else None


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


def _similarity(
    candidates: Sequence[Excerpt], vectors: Vectors | None, scale: Scale
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The similarity of each pair, 0 to 1: how like their vectors are, else the cosine of their sets of
    terms."""
    if vectors is not None:
        return np.clip(scale.compare(vectors.astype(np.float64), vectors.astype(np.float64)), 0.0, 1.0)
    similarity = np.zeros((len(candidates), len(candidates)))
    for i, one in enumerate(candidates):
        for j, other in enumerate(candidates[:i]):
            common = len(one.terms & other.terms) / (len(one.terms) * len(other.terms) or 1) ** 0.5
            similarity[i, j] = similarity[j, i] = common
    return similarity

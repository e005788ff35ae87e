"""The excerpts of summaries, and a choice of them without a model: of those that ask or decide something or cover many
terms, without near-duplicates. Pure.

An excerpt is a whole message, since half of one may say the contrary of it: the list under "What we will not do:", the
second line of "I never agree that". Only a long message is cut, and then each excerpt begins as the message does.

The weights are set by hand; `make bench-quality` measures them.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from composer.layers.relevance import SMALL_TALK
from composer.memory.patterns import extract
from composer.ports.models import MINILM_SCALE, Scale, Tokenizer, Vectors
from composer.prompt.sections import EXTRACTIVE
from composer.summaries.texts import IN_FILE, NOT_OWN, SummaryInput, SummaryText, attributed_line, is_own
from composer.text.copies import COLONS
from composer.text.languages import stem
from composer.text.own_words import MIN_QUOTED_WORDS, own_words, without_quotations
from composer.text.terms import sentences, terms

MAX_EXCERPTS: Final = 600  # that are compared by meaning: those of the greatest weight
MAX_EXCERPT_CHARS: Final = 320
MAX_BEGINNING_CHARS: Final = 80  # of a long message, with which each further excerpt of it begins
ANSWER_TERMS: Final = 5  # of an excerpt that may answer the one before it, or less
ANSWER_CHARS: Final = 40  # or so many characters: without spaces between words there are more terms
CUT: Final = "\u2026"  # where something is left out
LINE_BREAK: Final = " / "
DUPLICATE_LIKENESS: Final = 0.82  # from which two excerpts say the same
MIN_TERMS: Final = 3  # of an excerpt that is worth a place
RECENT_INPUTS: Final = 12  # before an input, whose terms are not new in it
QUIET_INPUTS: Final = 15  # since an author's last one, after which their next one counts as a new contribution

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
    """A candidate for a summary. `order`: the number of its source, and its own in that; `place`: where it was said;
    `weight` is its own merit, 0 where it tells nothing by itself ("Totally agree", "We are live!")."""

    order: tuple[int, int]
    place: str
    author: str
    text: str
    terms: frozenset[str]
    weight: float


def candidate_excerpts(inputs: Sequence[SummaryInput]) -> list[Excerpt]:
    """The distinct excerpts of the inputs, in their order; of very many, those of most weight."""
    found: dict[frozenset[str], Excerpt] = {}
    recent: list[frozenset[str]] = []
    last_input_of: dict[str, int] = {}
    for number, source in enumerate(inputs):
        known = frozenset().union(*recent[-RECENT_INPUTS:])
        after_quiet = number - last_input_of.get(source.author, -100) > QUIET_INPUTS
        texts = list(_said(source))
        for nth, (author, words) in enumerate(texts):
            own = frozenset(terms(words))
            known_as = found.get(own)
            is_new = known_as is None or (is_own(author) and not is_own(known_as.author))  # not as another's quotation
            if is_new and own:
                weight = _weight(words, own, known, first=nth == 0, last=nth == len(texts) - 1, after_quiet=after_quiet)
                weight *= _has_content(words, own)
                found[own] = Excerpt((number, nth), source.place, author, words, own, weight)
        recent.append(frozenset(terms(source.text[:2000])))
        last_input_of[source.author] = number
    best = sorted(found.values(), key=lambda each: (-each.weight, each.order))[:MAX_EXCERPTS]
    return sorted(best, key=lambda each: each.order)


def _said(source: SummaryInput) -> Iterator[tuple[str, str]]:
    """The excerpts of an input, each with what stands before it: its author, who may say it, quote it, or have sent it
    in a file. Each line of a summary is one that was made before."""
    if not source.author:
        for line in source.text.splitlines():
            author, colon, words = line.partition(": ")
            yield (author, words) if colon else ("", line)
        return
    own = {each.text for each in _pieces(own_words(source.text))} if is_own(source.author) else None
    pieces = _pieces(source.text)
    for run, excerpt in _excerpts(pieces):
        is_whole = len(run) == len(pieces)
        quoted = own is not None and (not own if is_whole else not own.issuperset(map(_unquoted, run)))
        yield source.author + NOT_OWN * quoted, excerpt
    for file in source.files:
        for _, excerpt in _excerpts(_pieces(file)):
            yield source.author + IN_FILE, excerpt


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


def _excerpts(pieces: Sequence[_Piece]) -> Iterator[tuple[Sequence[_Piece], str]]:
    """The pieces of a text in runs, each with the excerpt that it makes: all of them where they are short enough."""
    begin = 0
    while begin < len(pieces):
        end, words = begin + 1, pieces[begin].text
        while end < len(pieces) and len(words) + len(pieces[end].joined) <= MAX_EXCERPT_CHARS:
            words += pieces[end].joined
            end += 1
        parts = [_cut(words, MAX_EXCERPT_CHARS)]
        if begin:  # under which heading it stands, too
            above = [each.text for each in pieces[1:begin] if each.text.startswith("#") or each.text.endswith(COLONS)]
            heads = (
                _cut(each, MAX_BEGINNING_CHARS).removesuffix(CUT).rstrip() for each in (pieces[0].text, *above[-1:])
            )
            parts = [*heads, *parts]
        excerpt = f" {CUT} ".join(parts)
        yield pieces[begin:end], excerpt if end == len(pieces) or excerpt.endswith(CUT) else f"{excerpt} {CUT}"
        begin = end


def _cut(text: str, chars: int) -> str:
    """As many whole words of a text as have so many characters, and a mark where it goes on."""
    if len(text) <= chars:
        return text
    return f"{text[: chars + 1].rpartition(' ')[0] or text[:chars]} {CUT}"


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
    """Choose excerpts greedily by weight, novelty and length up to `budget` tokens; shown in their original order.

    `vectors` has a row for each candidate, and `scale` says what their cosines say; without them they are compared
    by their terms.
    """
    lines = [line_of(each, after_gap=True) for each in candidates]
    costs = np.array([tokenizer.count(line) + 1 for line in lines], dtype=np.float64)
    similarity = _similarity(candidates, vectors, scale)
    weights = np.array([each.weight for each in candidates], dtype=np.float64)
    nearest_chosen, available = np.zeros(len(candidates)), weights > 0
    chosen: list[int] = []
    left = float(budget)
    while True:
        available &= (costs <= left) & (nearest_chosen < DUPLICATE_LIKENESS)
        if not available.any():
            break
        gain = np.where(available, weights * (1 - nearest_chosen) / np.sqrt(costs), -1.0)
        best = int(gain.argmax())
        chosen.append(best)
        available[best] = False
        left -= float(costs[best])
        nearest_chosen = np.maximum(nearest_chosen, similarity[best])
    text = in_order(candidates, chosen)
    if weights.any() and not chosen:  # each one is too long: the beginning of the weightiest is better than nothing
        text = _beginning(line_of(candidates[int(weights.argmax())]), budget, tokenizer)
    return SummaryText(text, EXTRACTIVE, tokenizer.count(text) if text else 0)


def line_of(excerpt: Excerpt, *, after_gap: bool = False) -> str:
    """An excerpt as a line of a summary. `after_gap`: what was said right before it is not shown."""
    marked = after_gap and not excerpt.text.startswith(CUT)
    return attributed_line(excerpt.author, f"{CUT} {excerpt.text}" if marked else excerpt.text)


def in_order(candidates: Sequence[Excerpt], chosen: Sequence[int]) -> str:
    """The chosen candidates, as they were said one after another, a line each. One that may answer what was said right
    before it has a mark where that is not shown: it would seem to answer the line above it."""
    shown = sorted((candidates[n] for n in chosen), key=lambda each: each.order)
    lines: list[str] = []
    for before, each in zip([None, *shown], shown, strict=False):
        number, nth = each.order
        short = len(each.terms) <= ANSWER_TERMS or len(each.text) <= ANSWER_CHARS
        answers = short or _CONTINUES.match(each.text) is not None
        gap = before is None or before.order[0] < number - 1 or before.place != each.place
        lines.append(line_of(each, after_gap=nth == 0 and number > 0 and answers and gap))
    return "\n".join(lines)


def _beginning(line: str, budget: int, tokenizer: Tokenizer) -> str:
    """As many words from the beginning as fit, and an ellipsis; nothing if not even one fits."""
    words = line.split(" ")
    while words and tokenizer.count(f"{' '.join(words)} …") > budget:
        words = words[: len(words) * 7 // 8]
    return f"{' '.join(words)} …" if words else ""


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
            common = len(one.terms & other.terms) / (len(one.terms) * len(other.terms)) ** 0.5
            similarity[i, j] = similarity[j, i] = common
    return similarity

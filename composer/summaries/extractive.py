"""The sentences of summaries, and a choice of them without a model: of those that ask or decide something or cover many
terms, without near-duplicates. Pure.

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
from composer.text.languages import stem
from composer.text.own_words import MIN_QUOTED_WORDS, own_words, without_quotations
from composer.text.terms import sentences, terms

MAX_SENTENCES: Final = 600  # that are compared by meaning: those of the greatest weight
MAX_SUMMARY_SENTENCE_CHARS: Final = 400
DUPLICATE_LIKENESS: Final = 0.82  # from which two sentences say the same
MIN_TERMS: Final = 3  # of a sentence that is worth a place
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
class Sentence:
    """A candidate for a summary. `order`: the number of its source, and its own in that; `weight` is its own merit, 0
    where it tells nothing by itself ("Totally agree", "We are live!")."""

    order: tuple[int, int]
    author: str
    text: str
    terms: frozenset[str]
    weight: float


def candidate_sentences(inputs: Sequence[SummaryInput]) -> list[Sentence]:
    """The distinct sentences of the inputs, in their order; of very many, those of most weight."""
    found: dict[frozenset[str], Sentence] = {}
    recent: list[frozenset[str]] = []
    last_input_of: dict[str, int] = {}
    for number, source in enumerate(inputs):
        known = frozenset().union(*recent[-RECENT_INPUTS:])
        after_quiet = number - last_input_of.get(source.author, -100) > QUIET_INPUTS
        texts = list(_said(source))
        for nth, (author, sentence) in enumerate(texts):
            words = " ".join(sentence.split())[:MAX_SUMMARY_SENTENCE_CHARS]
            own = frozenset(terms(words))
            known_as = found.get(own)
            is_new = known_as is None or (is_own(author) and not is_own(known_as.author))  # not as another's quotation
            if is_new and own:
                weight = _weight(words, own, known, first=nth == 0, last=nth == len(texts) - 1, after_quiet=after_quiet)
                weight *= _has_content(words, own)
                found[own] = Sentence((number, nth), author, words, own, weight)
        recent.append(frozenset(terms(source.text[:2000])))
        last_input_of[source.author] = number
    best = sorted(found.values(), key=lambda sentence: (-sentence.weight, sentence.order))[:MAX_SENTENCES]
    return sorted(best, key=lambda sentence: sentence.order)


def _said(source: SummaryInput) -> Iterator[tuple[str, str]]:
    """The sentences of an input, each with what stands before it: its author, who may say it, quote it, or have sent it
    in a file. Cut into sentences, a quotation has its marks no more. Each line of a summary is one that was cut
    before."""
    if not source.author:
        for line in source.text.splitlines():
            author, colon, words = line.partition(": ")
            yield (author, words) if colon else ("", line)
        return
    checked = is_own(source.author)
    own = {" ".join(each.split()) for each in sentences(own_words(source.text))} if checked else set()
    for sentence in sentences(source.text):
        said = " ".join(without_quotations(sentence, MIN_QUOTED_WORDS).split()) if checked else ""
        yield source.author + (NOT_OWN if checked and said not in own else ""), sentence
    for file in source.files:
        for sentence in sentences(file):
            yield source.author + IN_FILE, sentence


def _has_content(words: str, own: frozenset[str]) -> bool:
    """Whether a sentence is worth a place: "Totally agree, Mel" is not, nor is a name or an address alone. What decides
    something may be short."""
    if words.isascii() and len(words.split()) < MIN_TERMS:  # other scripts need no spaces
        return False
    return len(own if _DECIDES.search(words) else own - _EMPTY) >= MIN_TERMS


def _weight(
    words: str, own: frozenset[str], known: frozenset[str], *, first: bool, last: bool, after_quiet: bool
) -> float:
    """The weight of a sentence: higher when it asks or decides something, brings new terms, or is long."""
    weight = 0.3 + len(own - known) / len(own)
    weight += 0.5 * first + 0.1 * last + 0.8 * after_quiet
    raises = _RAISES.search(words) is not None and _ASKS_BACK.search(words) is None
    weight += 0.6 * raises + 0.3 * bool(_DECIDES.search(words))
    weight -= 0.8 * bool(_ADDRESSES_SOMEONE.match(words)) + 0.6 * bool(_CONTINUES.match(words))
    weight += 2.0 * any(statement.kind == "decision" for statement in extract(words))
    return max(weight, 0.05) * math.sqrt(min(len(own), 10))


def extractive_summary(
    candidates: Sequence[Sentence],
    vectors: Vectors | None,
    budget: int,
    tokenizer: Tokenizer,
    scale: Scale = MINILM_SCALE,
) -> SummaryText:
    """Choose sentences greedily by weight, novelty and length up to `budget` tokens; shown in their original order.

    `vectors` has a row for each candidate, and `scale` says what their cosines say; without them sentences are compared
    by their terms.
    """
    lines = [line_of(sentence) for sentence in candidates]
    costs = np.array([tokenizer.count(line) + 1 for line in lines], dtype=np.float64)
    similarity = _similarity(candidates, vectors, scale)
    weights = np.array([sentence.weight for sentence in candidates], dtype=np.float64)
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
        text = _beginning(lines[int(weights.argmax())], budget, tokenizer)
    return SummaryText(text, EXTRACTIVE, tokenizer.count(text) if text else 0)


def line_of(sentence: Sentence) -> str:
    """A sentence as a line of a summary."""
    return attributed_line(sentence.author, sentence.text)


def in_order(candidates: Sequence[Sentence], chosen: Sequence[int]) -> str:
    """The chosen candidates, as they were said one after another, a line each."""
    return "\n".join(line_of(each) for each in sorted((candidates[n] for n in chosen), key=lambda each: each.order))


def _beginning(line: str, budget: int, tokenizer: Tokenizer) -> str:
    """As many words from the beginning as fit, and an ellipsis; nothing if not even one fits."""
    words = line.split(" ")
    while words and tokenizer.count(f"{' '.join(words)} …") > budget:
        words = words[: len(words) * 7 // 8]
    return f"{' '.join(words)} …" if words else ""


def _similarity(
    candidates: Sequence[Sentence], vectors: Vectors | None, scale: Scale
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The similarity of each pair of sentences, 0 to 1: how like their vectors are, else the cosine of their sets of
    terms."""
    if vectors is not None:
        return np.clip(scale.compare(vectors.astype(np.float64), vectors.astype(np.float64)), 0.0, 1.0)
    similarity = np.zeros((len(candidates), len(candidates)))
    for i, one in enumerate(candidates):
        for j, other in enumerate(candidates[:i]):
            common = len(one.terms & other.terms) / (len(one.terms) * len(other.terms)) ** 0.5
            similarity[i, j] = similarity[j, i] = common
    return similarity

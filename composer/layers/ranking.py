"""Orders what recall found: a pure function of the candidates of one scope and the question."""

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import Final

from composer.model import Item
from composer.repositories.recall import Found
from composer.text.dates import asks_when, says_when, spans

# Sums of min-max-scaled scores beat reciprocal rank fusion by 9 points of R@10 on LoCoMo (shared notes, retrieval).
# The weights are the best of 160 drawn at random, judged on four conversations of LoCoMo; docs/decisions/0009 says what
# weights that were chosen on three of them find in the fourth.
MEANING_WEIGHT: Final = 0.40
WORDS_WEIGHT: Final = 0.30
BEFORE: Final = 0.20  # times how near what was said just before is: an answer seldom repeats its question
AFTER: Final = 0.10  # the same for what was said just after
# For the share of the question's words that it holds together with what was said around it: what is asked about is
# often named once, by whoever began, and said nothing of before the answer.
TOGETHER: Final = 0.40
SESSION: Final = 0.15  # for a talk with more that is near; within so many hours of one another
SESSION_HOURS: Final = 3.0
NAMED_SPEAKER: Final = 0.30  # soft: a hard filter ruins questions that name the wrong person
LENGTH: Final = 0.15  # for a long message, over a short one that happens to share a word; full at LONG words
LONG: Final = 60
WHEN: Final = 0.05  # for words of time, where a time is asked for
DATE: Final = 0.40  # for something said on a day that the question names; half of it for a week or a month
FRESHNESS: Final = 0.05  # for something said just now; halves every 30 days
HALF_LIFE_DAYS: Final = 30.0
STATEMENT: Final = 0.05  # what someone chose to remember, over what was merely said
QUESTION: Final = 0.15  # taken off a question: it seldom holds its own answer
DAY: Final = timedelta(days=3)  # how long a named day is at most, with its margins
FLOOR: Final = 0.18  # cosine below which a candidate with no word in common is noise
MORE: Final = 0.1  # of a text's words may be more than another one's, for the two to be one to a reader
DIGITS: Final = 6  # scores are rounded, so that equal rows are equal on every machine
# What a score is made of, in the order in which it is added up.
REASONS: Final = (
    *("meaning", "words", "before", "after", "together", "session", "speaker"),
    *("length", "when", "date", "fresh", "statement", "question"),
)
_LONG: Final = [math.log1p(words) / math.log1p(LONG) for words in range(LONG + 1)]

_WORD: Final = re.compile(r"\w+")
_TELLS: Final = re.compile(r"\w*\d\w*|no|not|never|nor|without|cannot|t|nothing|none|nobody")


def rank(found: Sequence[Found], question: str, now: datetime, strategy: str = "hybrid") -> Iterator[Item]:
    """The candidates best first, each with its score (0 to about 2) and what made it, made as they are asked for.

    `strategy` is `hybrid` (meaning and words), `semantic` (meaning alone) or `recent` (newest first).
    Ties go to the newer, then to the smaller id, so the order depends on nothing unseen.
    """
    kept = sorted(_worth_it(found), key=lambda candidate: _newest(candidate.item))
    reasons = _reasons(kept, question, now, strategy)
    scores = [round(sum(of), DIGITS) for of in reasons]
    order = range(len(kept))  # newest first, as they stand
    for n in order if strategy == "recent" else sorted(order, key=lambda n: -scores[n]):
        told = {name: round(value, DIGITS) for name, value in zip(REASONS, reasons[n], strict=True) if value}
        yield replace(kept[n].item, score=scores[n], reasons=told)


def _reasons(kept: Sequence[Found], question: str, now: datetime, strategy: str) -> list[tuple[float, ...]]:
    """What speaks for and against each candidate: a number for each of REASONS."""
    meanings = _scaled([f.meaning if f.meaning is not None else 0.0 for f in kept])
    words = _scaled([f.words for f in kept], low=0.0)
    by_meaning, by_words = (MEANING_WEIGHT, WORDS_WEIGHT) if strategy == "hybrid" else (1.0, 0.0)
    near = [by_meaning * meaning + by_words * word for meaning, word in zip(meanings, words, strict=True)]
    beside, together = _around(kept, near)
    session, told = _session(kept, near), _told(kept)
    named = set(_WORD.findall(question.casefold()))
    authors = {candidate.item.author for candidate in kept}
    asked_about = {author for author in authors if not named.isdisjoint(_WORD.findall(author.casefold()))}
    when, days = asks_when(question), spans(question, now)
    lengths = [LENGTH * _LONG[min(len(f.item.text.split()), LONG)] if f.item.kind == "episode" else 0.0 for f in kept]
    reasons: list[tuple[float, ...]] = []
    for n, item in enumerate(candidate.item for candidate in kept):
        age = max((now - item.at).total_seconds(), 0.0) / 86_400
        around = told[n]
        before, after = beside[around]
        reasons.append(
            (
                by_meaning * meanings[n],
                by_words * words[n],
                BEFORE * before,
                AFTER * after,
                TOGETHER * together[around],
                SESSION * session[around],
                NAMED_SPEAKER if item.author in asked_about else 0.0,
                lengths[around],
                WHEN if when and says_when(item.text) else 0.0,
                DATE * max((_share(end - start) for start, end in days if start <= item.at < end), default=0.0),
                FRESHNESS * math.pow(0.5, age / HALF_LIFE_DAYS),
                STATEMENT if item.kind not in ("episode", "summary") else 0.0,
                -QUESTION if item.text.rstrip().endswith("?") else 0.0,
            )
        )
    return reasons


def _worth_it(found: Sequence[Found]) -> list[Found]:
    """What shares a word or means something alike, and what stands beside such a one in the talk."""
    alike = [f for f in found if f.words > 0 or (f.meaning is not None and f.meaning >= FLOOR)]
    ids = {f.item.id for f in alike} | {id for f in alike for id in (f.before, f.after) if id is not None}
    return [f for f in found if f.item.id in ids]


def _around(found: Sequence[Found], near: Sequence[float]) -> tuple[list[tuple[float, float]], list[float]]:
    """For each candidate how near those are that stand before and after it, 0 where none is known; and the share of
    the question's words that it holds together with up to two on either side."""
    of = {candidate.item.id: value for candidate, value in zip(found, near, strict=True)}
    holds = {candidate.item.id: candidate.matched for candidate in found}
    before = {f.after: f.item.id for f in found if f.after is not None}
    before |= {f.item.id: f.before for f in found if f.before is not None}
    after = {f.before: f.item.id for f in found if f.before is not None}
    after |= {f.item.id: f.after for f in found if f.after is not None}
    words = reduce(or_, holds.values(), 0).bit_count()
    beside, together = [], []
    for candidate in found:
        id = candidate.item.id
        one, other = before.get(id, ""), after.get(id, "")
        beside.append((of.get(one, 0.0), of.get(other, 0.0)))
        further = holds.get(before.get(one, ""), 0) | holds.get(after.get(other, ""), 0)
        held = candidate.matched | holds.get(one, 0) | holds.get(other, 0) | further
        together.append(held.bit_count() / words if words else 0.0)
    return beside, together


def _told(found: Sequence[Found]) -> list[int]:
    """For each candidate where it was said: for a statement the message that it was drawn from, if that is here too,
    so that what surrounds the message counts for both; else its own place."""
    episodes = {source: n for n, f in enumerate(found) if f.item.kind == "episode" for source in sources_of(f.item)}
    return [
        n if f.item.kind == "episode" else next((episodes[s] for s in sources_of(f.item) if s in episodes), n)
        for n, f in enumerate(found)
    ]


def _session(found: Sequence[Found], near: Sequence[float]) -> list[float]:
    """For each candidate how much else around it is near (0…1): squares, so that one good hit counts, noise doesn't."""
    runs: defaultdict[str, list[int]] = defaultdict(list)
    for n, candidate in enumerate(found):
        runs[candidate.item.namespace].append(n)
    around = [0.0] * len(found)
    for members in runs.values():
        members.sort(key=lambda n: (found[n].item.at, found[n].item.id))
        times = [found[n].item.at.timestamp() / 3600 for n in members]
        sums = [0.0, *accumulate(near[n] ** 2 for n in members)]
        for n, time in zip(members, times, strict=True):
            first, last = bisect_left(times, time - SESSION_HOURS), bisect_right(times, time + SESSION_HOURS)
            around[n] = max(round(sums[last] - sums[first] - near[n] ** 2, DIGITS), 0.0)
    return _scaled(around, low=0.0)


def _share(length: timedelta) -> float:
    return 1.0 if length <= DAY else 0.5


def _newest(item: Item) -> tuple[float, str]:
    return (-item.at.timestamp(), item.id)


def _scaled(values: Sequence[float], low: float | None = None) -> list[float]:
    """Values brought to 0…1 by their least (or `low`) and greatest."""
    if not values:
        return []
    least = min(values) if low is None else low
    span = max(values) - least
    return [1.0 if span <= 0 < value else (value - least) / span if span > 0 else 0.0 for value in values]


def distinct(items: Iterable[Item]) -> Iterator[Item]:
    """Without later items that say the very same or nearly so, or that are a message another item was made from."""
    texts: set[str] = set()
    told: defaultdict[int, list[frozenset[str]]] = defaultdict(list)  # by how many words they have
    covered: set[tuple[str, str]] = set()
    for item in items:
        spoken, sources = _WORD.findall(item.text.casefold()), sources_of(item)
        text = " ".join(spoken) or item.text.strip()
        if text in texts or (sources and covered.issuperset(sources)):
            continue
        words = frozenset(spoken)
        least, most = math.ceil(len(words) * (1 - MORE)), math.floor(len(words) / (1 - MORE))
        if any(_nearly(words, other) for size in range(least, most + 1) for other in told.get(size, ())):
            continue
        texts.add(text)
        told[len(words)].append(words)
        covered.update(sources)
        yield item


def _nearly(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether one text has all words of the other and hardly any more, of which none is a number or denies: something
    in the place of something else is another thing said."""
    if not (one <= other or other <= one):
        return False
    more = one ^ other
    return len(more) <= MORE * max(len(one), len(other)) and not any(_TELLS.fullmatch(word) for word in more)


def sources_of(item: Item) -> list[tuple[str, str]]:
    """The messages that an item came from, as (run, external id): platforms count ids anew in every room."""
    return [(item.namespace, message) for message in item.messages]

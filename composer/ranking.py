"""Orders what recall found: a pure function of the candidates of one scope and the question."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from composer.model import Item
from composer.ports import Found

# Sums of min-max-scaled scores beat reciprocal rank fusion by 9 points of R@10 on LoCoMo (shared notes, retrieval).
MEANING_WEIGHT: Final = 0.45
WORDS_WEIGHT: Final = 0.55
NAMED_SPEAKER: Final = 0.12  # soft: a hard filter ruins questions that name the wrong person
FRESHNESS: Final = 0.05  # for something said just now; halves every 30 days
HALF_LIFE_DAYS: Final = 30.0
STATEMENT: Final = 0.05  # what someone chose to remember, over what was merely said
QUESTION: Final = 0.08  # taken off a question: it seldom holds its own answer
FLOOR: Final = 0.18  # cosine below which a candidate with no word in common is noise
DIGITS: Final = 6  # scores are rounded, so that equal rows are equal on every machine


def rank(found: Sequence[Found], question: str, now: datetime, strategy: str = "hybrid") -> list[Item]:
    """The candidates best first, each with its score (0 to about 1.2) and what made it.

    `strategy` is `hybrid` (meaning and words), `semantic` (meaning alone) or `recent` (newest first).
    Ties go to the newer, then to the smaller id, so the order depends on nothing unseen.
    """
    kept = [f for f in found if f.words > 0 or (f.meaning is not None and f.meaning >= FLOOR)]
    meanings = _scaled([f.meaning if f.meaning is not None else 0.0 for f in kept])
    words = _scaled([f.words for f in kept], low=0.0)
    named = set(re.findall(r"\w+", question.casefold()))
    authors = {candidate.item.author for candidate in kept}
    asked_about = {author for author in authors if named.intersection(re.findall(r"\w+", author.casefold()))}
    scored = []
    for candidate, meaning, word in zip(kept, meanings, words, strict=True):
        item = candidate.item
        age = max((now - item.at).total_seconds(), 0.0) / 86_400
        reasons = {
            "meaning": (MEANING_WEIGHT if strategy == "hybrid" else 1.0) * meaning,
            "words": WORDS_WEIGHT * word if strategy == "hybrid" else 0.0,
            "speaker": NAMED_SPEAKER if item.author in asked_about else 0.0,
            "fresh": FRESHNESS * math.pow(0.5, age / HALF_LIFE_DAYS),
            "statement": STATEMENT if item.kind not in ("episode", "summary") else 0.0,
            "question": -QUESTION if item.text.rstrip().endswith("?") else 0.0,
        }
        score = round(sum(reasons.values()), DIGITS)
        scored.append(replace(item, score=score, reasons={k: round(v, DIGITS) for k, v in reasons.items() if v}))
    if strategy == "recent":
        return sorted(_distinct(sorted(scored, key=_newest)), key=_newest)
    return list(_distinct(sorted(scored, key=lambda item: (-(item.score or 0.0), *_newest(item)))))


def _newest(item: Item) -> tuple[float, str]:
    return (-item.at.timestamp(), item.id)


def _scaled(values: Sequence[float], low: float | None = None) -> list[float]:
    """Values brought to 0…1 by their least (or `low`) and greatest."""
    if not values:
        return []
    least = min(values) if low is None else low
    span = max(values) - least
    return [1.0 if span <= 0 < value else (value - least) / span if span > 0 else 0.0 for value in values]


def _distinct(items: Iterable[Item]) -> Iterable[Item]:
    """Without later items that say the very same, or that are a message another item was made from."""
    texts: set[str] = set()
    covered: set[tuple[str, str]] = set()
    for item in items:
        text, sources = " ".join(item.text.casefold().split()), sources_of(item)
        if text in texts or (sources and covered.issuperset(sources)):
            continue
        texts.add(text)
        covered.update(sources)
        yield item


def sources_of(item: Item) -> list[tuple[str, str]]:
    """The messages that an item came from, as (run, external id): platforms count ids anew in every room."""
    return [(item.run_id, message) for message in item.messages]

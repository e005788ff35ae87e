"""Rank what recall found: a pure function of one scope's candidates and the question."""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from itertools import islice, pairwise
from operator import or_
from typing import Final

from composer.model import Item
from composer.repositories.recall import Candidate
from composer.text.dates.meant import MAX_CHARS_WITH_DAYS, days_meant
from composer.text.dates.named_days import asks_when, says_when
from composer.text.dates.question_times import QuestionTimes
from composer.text.dates.vocabulary import Period
from composer.text.first_person import without_genitive
from composer.text.plain_questions import QUESTION_MARKS
from composer.text.terms import terms

# Sums of min-max-scaled scores beat reciprocal rank fusion by 9 points of R@10 on LoCoMo.
# The weights are those that lose least on any of seven kinds of talk (docs/quality.md).
MEANING_WEIGHT: Final = 0.45
WORDS_WEIGHT: Final = 0.30
BEFORE_WEIGHT: Final = 0.10  # of the score of the message just before: an answer seldom repeats its question
AFTER_WEIGHT: Final = 0.10  # of the score of the message just after
REPLY_WEIGHT: Final = 0.50  # of the score of the message that it answers, which in a busy room is seldom the one before
# For the share of the question's words that a candidate holds together with the messages around it: the subject is
# often named once, by whoever began, and not in the messages that lead to the answer.
TOGETHER_WEIGHT: Final = 0.20
SESSION_WEIGHT: Final = 0.20  # for other high scores around it, as far as a session reaches: without a longer pause
SESSION_GAP: Final = timedelta(hours=3)
SESSION_DECAY: Final = math.exp(-1 / 4)  # of what a candidate lends to the next one, from each to each
FULL_SESSION: Final = 0.4  # what others lend where they match well: less is a part, though nothing else has as much
NAMED_SPEAKER_WEIGHT: Final = 0.35  # soft: a hard filter ruins questions that name the wrong person
TIME_WORDS_WEIGHT: Final = 0.05  # for words of time, if the question asks for a time
# For a message of a day that the question names, or whose text means that day; half of it for a week or a month.
DATE_WEIGHT: Final = 0.50
NEAR_DATE_WEIGHT: Final = 0.40  # for a message of a day beside one that the question names
ROOM_WEIGHT: Final = 0.45  # for what was said in a room that the question names
FRESHNESS_WEIGHT: Final = 0.05  # for a message of this moment; halves every HALF_LIFE_DAYS
HALF_LIFE_DAYS: Final = 30.0
STATEMENT_WEIGHT: Final = 0.05  # for what someone chose to remember, over what was merely said
QUESTION_PENALTY: Final = 0.25  # a question seldom holds its own answer; of a text that also tells something, a part
AGENT_PENALTY: Final = 0.15  # for what the agent said itself: it had it from others, or asked
MAX_DAY: Final = timedelta(days=3)  # a named span up to this length, with its margins, counts as a day
MIN_COSINE: Final = 0.18  # below this, a candidate without a word in common is noise
MAX_EXTRA_WORDS: Final = 0.1  # share of a text's words that another text may lack and still read as the same
SCORE_DIGITS: Final = 6  # scores are rounded, so that equal rows are equal on every machine
# What a score is made of, in the order in which it is added up.
REASONS: Final = (
    *("meaning", "words", "before", "after", "reply", "together", "session", "speaker"),
    *("when", "date", "near", "room", "fresh", "statement", "question", "agent"),
)

TO_AGENT_ALONE: Final = ("dm:", "session:")  # namespaces of what is said to an agent alone
_WORD: Final = re.compile(r"\w+")
_GOES_ON: Final = re.compile(r"[\w-]")  # after a name: it is the beginning of a longer one
_DIGIT: Final = re.compile(r"\d")
_SENTENCE_END: Final = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++\s++|[\u3002\uff01\uff1f\u061f]++\s*+|\n++")
_NEGATIONS: Final = frozenset({"no", "not", "never", "nor", "without", "cannot", "t", "nothing", "none", "nobody"})
# A question without its mark: one short sentence that begins as questions do.
_ASKS: Final = re.compile(
    r"\A(?>(?:(?:@\S++|hey|hi|so|and|but|ok|please)[,:]?+\s++)*)(?:who|what|when|where|why|how|which|whose"
    r"|is there|are there|do you|does|did|can i|can you|could you|should i|should we|has anyone|anyone know)\b[^.!]*+$",
    re.IGNORECASE,
)
# A question about what was asked.
_ABOUT_QUESTIONS: Final = re.compile(r"\b(?:ask|asks|asked|asking|question|questions)\b", re.IGNORECASE)
MAX_SHORT_QUESTION_CHARS: Final = 120
MIN_ASKING_SHARE: Final = 0.7  # of the words of a text that only asks
MAX_RANKED_CHARS: Final = 20_000  # of an item; no prompt has room for a longer one
MAX_TEXTS_WITH_DAYS: Final = 60  # those that match best; the days that the others mean are not read
MAX_CHARS_OF_TEXTS: Final = 6_000  # of them together
MAX_SPAN_MEANT: Final = timedelta(days=8)  # a longer span that a text means tells little of when something is


def rank(
    candidates: Sequence[Candidate],
    question: str,
    now: datetime,
    strategy: str = "hybrid",
    *,
    agents: Collection[str] = (),
    all_agents: Collection[str] = (),
    matching: Collection[str] = (),
    rooms: Collection[str] = (),
    times: QuestionTimes | None = None,
) -> Iterator[Item]:
    """The candidates best first, lazily, each with its score (0 to about 2) and the parts that the score is made of.

    `strategy` is `hybrid` (meaning and words), `semantic` (meaning alone) or `recent` (newest first). `agents` are the
    names of the agent that answers: what it said itself is second-hand. `all_agents` are those of every agent that
    people may have asked. `matching` are the ids of candidates that count as matches, whatever they have in common with
    the question. `rooms` are the namespaces of the rooms that it names, `times` reads the times that it names. What was
    asked of an agent in a line comes after everything else, unless the question is about what was asked: people ask
    again what was not answered. A longer question tells something of whoever asks.
    Ties go to the newer, then to the smaller id, so the order depends on nothing that the viewer may not read.
    """
    relevant = sorted(_relevant(candidates, matching), key=lambda candidate: _newest_first(candidate.item))
    asking = [asking_share(candidate.item.text) for candidate in relevant]
    reasons = _reasons(relevant, asking, question, now, times or QuestionTimes(), strategy, agents, rooms)
    scores = [round(sum(parts), SCORE_DIGITS) for parts in reasons]
    order = range(len(relevant))  # newest first already
    if _ABOUT_QUESTIONS.search(question[:MAX_RANKED_CHARS]) is not None:
        asked = [False for _ in relevant]
    else:
        names = (*agents, *all_agents)
        asked = [
            share >= MIN_ASKING_SHARE
            and len(candidate.item.text) <= MAX_SHORT_QUESTION_CHARS
            and _is_to_agent(candidate.item, names)
            for candidate, share in zip(relevant, asking, strict=True)
        ]
    for n in order if strategy == "recent" else sorted(order, key=lambda n: (asked[n], -scores[n])):
        named = {name: round(value, SCORE_DIGITS) for name, value in zip(REASONS, reasons[n], strict=True) if value}
        yield replace(relevant[n].item, score=scores[n], reasons=named)


def without_duplicates(items: Iterable[Item], question: str = "", agents: Collection[str] = ()) -> Iterator[Item]:
    """The items without later ones in which the same author says the same or nearly so, or whose source messages
    earlier items cover; and without those that only repeat the question. A summary covers other summaries alone: it
    need not tell all of what its messages say. `agents` are the names of every agent that people may have asked."""
    texts: set[tuple[object, str]] = set()  # by author: that four people say it is more than that one does
    seen: defaultdict[tuple[object, int], list[frozenset[str]]] = defaultdict(list)  # sets of words, by their size
    covered: set[tuple[str, str]] = set()
    summed_up: set[tuple[str, str]] = set()
    asked = _QuestionWords.of(question, agents) if question else None
    for item in items:
        spoken = _WORD.findall(item.text[:MAX_RANKED_CHARS].casefold())
        # A passage is not all that its message says, and a memory of a message does not tell of its files.
        sources = [] if item.passage or item.files_at is not None else sources_of(item)
        text = " ".join(spoken) or item.text[:MAX_RANKED_CHARS].strip()
        told = covered | summed_up if item.kind == "summary" else covered
        who = item.user_id or item.author
        if (who, text) in texts or (sources and told.issuperset(sources)):
            continue
        if asked is not None and asked.is_repeated_by(item, spoken, agents):
            continue
        words = frozenset(spoken)
        smallest = math.ceil(len(words) * (1 - MAX_EXTRA_WORDS))
        largest = math.floor(len(words) / (1 - MAX_EXTRA_WORDS))
        similar = (other for size in range(smallest, largest + 1) for other in seen.get((who, size), ()))
        if any(_nearly_equal(words, other) for other in similar):
            continue
        texts.add((who, text))
        seen[who, len(words)].append(words)
        (summed_up if item.kind == "summary" else covered).update(sources)
        yield item


@dataclass(frozen=True, slots=True)
class _QuestionWords:
    """The words of a question, as they stand and without what addresses an agent; `subject` are those that say what it
    is about, as search terms."""

    spoken: tuple[str, ...]
    words: frozenset[str]
    subject: frozenset[str]

    @classmethod
    def of(cls, question: str, agents: Collection[str]) -> "_QuestionWords":
        spoken = tuple(_WORD.findall(question[:MAX_RANKED_CHARS].casefold()))
        plain = unaddressed(question, agents)
        return cls(spoken, frozenset(_WORD.findall(plain)), frozenset(terms(plain)))

    def is_repeated_by(self, item: Item, spoken: Sequence[str], agents: Collection[str]) -> bool:
        """Whether an item only asks what was asked. A statement with the same words may be the answer."""
        if self.spoken and tuple(spoken) == self.spoken:
            return True
        if not is_question(item.text):
            return False
        plain = unaddressed(item.text, agents)
        again = bool(self.subject) and asks_agent(item, agents) and self.subject == frozenset(terms(plain))
        return again or _nearly_equal(frozenset(_WORD.findall(plain)), self.words)


def unaddressed(text: str, agents: Collection[str]) -> str:
    """A text in lower case without mentions of these agents. "@nobody" mentions no agent called No."""
    plain = text[:MAX_RANKED_CHARS].casefold()
    for name in {name.casefold() for name in agents}:
        first, *rest = plain.split(f"@{name}")
        plain = first + "".join(f"@{name}{each}" if _GOES_ON.match(each) else f" {each}" for each in rest)
    return plain


def asks_agent(item: Item, agents: Collection[str]) -> bool:
    """Whether an item is a question to an agent: one that mentions an agent of these names, or of a DM or session."""
    return is_question(item.text) and _is_to_agent(item, agents)


def _is_to_agent(item: Item, agents: Collection[str]) -> bool:
    """Whether an item mentions an agent of these names, or is of a DM or session, and not what an agent said itself."""
    if item.kind != "episode" or item.by_agent:
        return False
    return (
        item.namespace.startswith(TO_AGENT_ALONE)
        or unaddressed(item.text, agents) != item.text[:MAX_RANKED_CHARS].casefold()
    )


def is_question(text: str) -> bool:
    """Whether a text is one question, with or without its mark, and tells hardly anything beside it: "I live in Oslo
    now. And you?" tells something."""
    return asking_share(text) >= MIN_ASKING_SHARE


def asking_share(text: str) -> float:
    """The part of a text that stands in questions, with or without their mark: 0 to 1."""
    plain = text[:MAX_RANKED_CHARS].strip()
    if not plain.endswith(QUESTION_MARKS):
        return float(len(plain) <= MAX_SHORT_QUESTION_CHARS and _ASKS.match(plain) is not None)
    asked, start = 0, 0
    for end in _SENTENCE_END.finditer(plain):
        asked += (end.end() - start) * end[0].rstrip().endswith(QUESTION_MARKS)
        start = end.end()
    return (asked + len(plain) - start) / len(plain)


def sources_of(item: Item) -> list[tuple[str, str]]:
    """The messages that an item came from, as (namespace, external id): platforms number messages anew in each room."""
    return [(item.namespace, message) for message in item.messages]


def _relevant(candidates: Sequence[Candidate], matching: Collection[str]) -> list[Candidate]:
    """The candidates that share a word or a meaning with the question, those of `matching`, and their neighbours."""
    matches = [
        c
        for c in candidates
        if c.words > 0 or (c.meaning is not None and c.meaning >= MIN_COSINE) or c.item.id in matching
    ]
    ids = {c.item.id for c in matches} | {id for c in matches for id in (c.before, c.after) if id is not None}
    ids |= {c.item.id for c in candidates if not ids.isdisjoint(c.reply_to)}
    return [c for c in candidates if c.item.id in ids]


def _reasons(
    candidates: Sequence[Candidate],
    asking: Sequence[float],
    question: str,
    now: datetime,
    times: QuestionTimes,
    strategy: str,
    agents: Collection[str],
    rooms: Collection[str],
) -> list[tuple[float, ...]]:
    """The parts of each candidate's score, in the order of REASONS. `asking`: the part of each that asks."""
    meanings = _scale([c.meaning if c.meaning is not None else 0.0 for c in candidates])
    words = _words(candidates)
    by_meaning, by_words = (MEANING_WEIGHT, WORDS_WEIGHT) if strategy == "hybrid" else (1.0, 0.0)
    match = [by_meaning * meaning + by_words * word for meaning, word in zip(meanings, words, strict=True)]
    previous, following = neighbour_ids(candidates)
    matches = {candidate.item.id: value for candidate, value in zip(candidates, match, strict=True)}
    together = _together(candidates, previous, following)
    session, positions = _session(candidates, match), _positions(candidates)
    asked_about = authors_named((candidate.item.author for candidate in candidates), question)
    asks_time, named = asks_when(question), times.periods(question, now)
    best = sorted(range(len(candidates)), key=lambda n: -match[n])
    beside, meant = times.near(question, now), meant_shares((candidates[n].item for n in best), question, now, times)
    reasons: list[tuple[float, ...]] = []
    for n, item in enumerate(candidate.item for candidate in candidates):
        age_days = max((now - item.at).total_seconds(), 0.0) / 86_400
        position = positions[n]
        surrounded = candidates[position].item.id
        of_time = max(_date_share(item.at, named), meant.get(item.id, 0.0))
        reasons.append(
            (
                by_meaning * meanings[n],
                by_words * words[n],
                BEFORE_WEIGHT * matches.get(previous.get(surrounded, ""), 0.0),
                AFTER_WEIGHT * matches.get(following.get(surrounded, ""), 0.0),
                REPLY_WEIGHT * _answered(candidates[position], previous, matches),
                TOGETHER_WEIGHT * together[position],
                SESSION_WEIGHT * session[position],
                NAMED_SPEAKER_WEIGHT if item.author in asked_about else 0.0,
                TIME_WORDS_WEIGHT if asks_time and says_when(item.text[:MAX_RANKED_CHARS]) else 0.0,
                DATE_WEIGHT * of_time,
                max(NEAR_DATE_WEIGHT * _date_share(item.at, beside) - DATE_WEIGHT * of_time, 0.0),
                ROOM_WEIGHT if item.namespace in rooms else 0.0,
                FRESHNESS_WEIGHT * math.pow(0.5, age_days / HALF_LIFE_DAYS),
                STATEMENT_WEIGHT if item.kind not in ("episode", "summary") else 0.0,
                -QUESTION_PENALTY * asking[n],
                -AGENT_PENALTY if item.kind == "episode" and item.author in agents else 0.0,
            )
        )
    return reasons


def _answered(candidate: Candidate, previous: Mapping[str, str], matches: Mapping[str, float]) -> float:
    """How well the best of the messages that a candidate answers matches. That of the one just before counts anyway."""
    if not candidate.reply_to:
        return 0.0
    before = previous.get(candidate.item.id)
    return max((matches.get(id, 0.0) for id in candidate.reply_to if id != before), default=0.0)


def authors_named(authors: Iterable[str], question: str) -> set[str]:
    """Those of the authors that the question names."""
    words = set(_WORD.findall(question.casefold()))
    words |= set(map(without_genitive, words))
    return {author for author in set(authors) if not words.isdisjoint(_WORD.findall(author.casefold()))}


def _date_share(at: datetime, spans_named: Sequence[tuple[datetime, datetime]]) -> float:
    """1 for a time within a day that the question names, a half within a longer span, otherwise 0."""
    return max((1.0 if end - start <= MAX_DAY else 0.5 for start, end in spans_named if start <= at < end), default=0.0)


def meant_shares(items: Iterable[Item], question: str, now: datetime, times: QuestionTimes) -> dict[str, float]:
    """By id, for the first items that ask nothing, 1 if the text means a day that the question asks for, seen from
    when it was said, a half for a longer span; without those that mean none. Days are those of the zone of `now`."""
    asked = times.meant(question, now)
    if not asked:
        return {}
    shares: dict[str, float] = {}
    chars = 0
    for item in islice((each for each in items if each.kind != "summary"), MAX_TEXTS_WITH_DAYS):
        chars += min(len(item.text), MAX_CHARS_WITH_DAYS)
        if chars > MAX_CHARS_OF_TEXTS:
            break
        if is_question(item.text):
            continue
        said = item.at.astimezone(now.tzinfo)
        meant = [period for period in days_meant(item.text, said) if _length(period) <= MAX_SPAN_MEANT]
        both = [(one, other) for one in meant for other in asked if one[0] < other[1] and other[0] < one[1]]
        if both:
            shares[item.id] = max(1.0 if max(map(_length, pair)) <= MAX_DAY else 0.5 for pair in both)
    return shares


def _length(period: Period) -> timedelta:
    return period[1] - period[0]


def neighbour_ids(candidates: Sequence[Candidate]) -> tuple[dict[str, str], dict[str, str]]:
    """The ids of the messages just before and just after, by id. A link that one candidate states holds both ways."""
    before = {c.after: c.item.id for c in candidates if c.after is not None}
    before |= {c.item.id: c.before for c in candidates if c.before is not None}
    after = {c.before: c.item.id for c in candidates if c.before is not None}
    after |= {c.item.id: c.after for c in candidates if c.after is not None}
    return before, after


def _together(
    candidates: Sequence[Candidate], previous: Mapping[str, str], following: Mapping[str, str]
) -> list[float]:
    """For each candidate the share of the question's words that it holds together with up to two messages on either
    side."""
    matched = {candidate.item.id: candidate.matched for candidate in candidates}  # a bit for each word
    words = reduce(or_, matched.values(), 0).bit_count()
    shares = []
    for candidate in candidates:
        before, after = previous.get(candidate.item.id, ""), following.get(candidate.item.id, "")
        matched_words = candidate.matched | matched.get(before, 0) | matched.get(after, 0)
        matched_words |= matched.get(previous.get(before, ""), 0) | matched.get(following.get(after, ""), 0)
        shares.append(matched_words.bit_count() / words if words else 0.0)
    return shares


def _positions(candidates: Sequence[Candidate]) -> list[int]:
    """For each candidate the candidate whose surroundings count for it: for a statement the message that it was drawn
    from, if that is a candidate too, otherwise itself."""
    episodes = {
        source: n for n, c in enumerate(candidates) if c.item.kind == "episode" for source in sources_of(c.item)
    }
    return [
        n if c.item.kind == "episode" else next((episodes[s] for s in sources_of(c.item) if s in episodes), n)
        for n, c in enumerate(candidates)
    ]


def _session(candidates: Sequence[Candidate], match: Sequence[float]) -> list[float]:
    """For each candidate how well the others around it in its session match (0…1), those beside it most: a sum of
    squares, so that one good match counts and noise does not."""
    by_namespace: defaultdict[str, list[int]] = defaultdict(list)
    for n, candidate in enumerate(candidates):
        by_namespace[candidate.item.namespace].append(n)
    around = [0.0] * len(candidates)
    for members in by_namespace.values():
        members.sort(key=lambda n: (candidates[n].item.at, candidates[n].item.id))
        for way in (members, members[::-1]):
            lent = 0.0
            for last, n in pairwise(way):
                near = abs(candidates[n].item.at - candidates[last].item.at) <= SESSION_GAP
                lent = (lent + match[last] ** 2) * SESSION_DECAY if near else 0.0
                around[n] += lent
    full = max((FULL_SESSION, *around))
    return [round(value / full, SCORE_DIGITS) for value in around]


def _words(candidates: Sequence[Candidate]) -> list[float]:
    """How well each candidate matches by words, beside the best one: 0 to the share of the question's words that the
    best ones hold. One word of many is little, though no other candidate has more."""
    asked = reduce(or_, (candidate.matched for candidate in candidates), 0).bit_count()
    words = _scale([candidate.words for candidate in candidates], low=0.0)
    shares = [value * each.matched.bit_count() / asked for value, each in zip(words, candidates, strict=True) if asked]
    share = max(shares, default=1.0)
    return [share * value for value in words]


def _newest_first(item: Item) -> tuple[float, str]:
    return (-item.at.timestamp(), item.id)


def _scale(values: Sequence[float], low: float | None = None) -> list[float]:
    """The values scaled to 0…1, from their minimum (or `low`) to their maximum."""
    if not values:
        return []
    minimum = min(values) if low is None else low
    span = max(values) - minimum
    return [1.0 if span <= 0 < value else (value - minimum) / span if span > 0 else 0.0 for value in values]


def _nearly_equal(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether one text has all words of the other and hardly any more, none of them a number or a negation. A text with
    one word in place of another says something else."""
    if not (one <= other or other <= one):
        return False
    extra = one ^ other
    few = len(extra) <= MAX_EXTRA_WORDS * max(len(one), len(other))
    return few and not any(word in _NEGATIONS or _DIGIT.search(word) for word in extra)

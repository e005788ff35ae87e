"""Let the newer of two statements stand beside the older one: a pure function of what was found.

"I live in Hamburg" answers a question in its words, and "we moved to Berlin" does not. So the statements that recall
found bring along what came after them and is most like them. Whether it really replaces them, the reader judges: a line
says what it is newer than. What is far more like a statement than the rest of what came after it most likely replaces
it, so it comes before the statement if something is asked, unless that is about then; the others come last.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import timedelta
from statistics import median
from typing import Final

from composer.layers.ranking import MAX_RANKED_CHARS, asking_share, authors_named, is_question, sources_of
from composer.model import Item
from composer.repositories.recall import Candidate
from composer.text.terms import terms, tongue

MOST: Final = 2  # newer items for a statement
MOST_IN_ALL: Final = 2  # that recall would not have brought
SAME_AUTHOR: Final = 0.1  # added to the likeness of what the same person said
MIN_NEWER_LIKENESS: Final = 0.42  # of what is newer: the sum of two cosines, and SAME_AUTHOR
STANDS_OUT: Final = 0.25  # by which what replaces a statement is more like it than half of the rest that came after it
# Off STANDS_OUT for a word of the statement that nothing else of that has, nor the question: who says that a thing is
# no more so names it ("Jenkins is switched off").
NAMES_IT: Final = 0.20
# Words of a question about then, which nothing newer answers: "what did she paint in May?". Where one was not meant so,
# what is newer comes last.
OF_THEN: Final = frozenset({"did", "didn't", "was", "wasn't", "were", "weren't", "had", "hadn't"})
GERMAN_WHAT: Final = "was"
GERMAN: Final = "german"
# What follows sooner is of the same talk, and goes on more often than it replaces: the lines of a list are alike. Only
# what has all words that the statement has of the question corrects it: "where is rack 4?" is not about rack 6.
LEAST_PAUSE: Final = timedelta(minutes=15)
MAX_STATEMENT_BYTES: Final = 400  # a longer text tells several things: it replaces nothing, and nothing replaces it

Sources = AbstractSet[tuple[str, str]]


def with_newer(items: Sequence[Item], candidates: Sequence[Candidate], question: str, seen: Sources) -> list[Item]:
    """The items, best first, and what is newer than their statements and was not among them: before its statement if it
    stands out and something is asked that is not about then, else behind all. That, and what was among them, is marked
    by `newer_than`. `seen` are the messages that the prompt shows anyway, as `sources_of` gives them.
    """
    asks = asking_share(question) > 0
    words_of_then = OF_THEN.intersection(question[:MAX_RANKED_CHARS].casefold().replace("\u2019", "'").split())
    later = [candidate for candidate in candidates if candidate.newer_than]
    statements = {candidate.newer_than for candidate in later}
    known_by = {each.item.id: frozenset(_keys(each.item)) for each in candidates if each.item.id in statements}
    matched: dict[str, int] = {each.item.id: each.matched for each in candidates if each.matched}
    newer: dict[int, list[tuple[Item, bool]]] = {}
    for n, item in enumerate(items):
        ids = {id for id, keys in known_by.items() if not keys.isdisjoint(_keys(item))}
        if ids and not is_question(item.text):
            newer[n] = _newer(item, [each for each in later if each.newer_than in ids], question, seen, matched)
    place = {key: n for n, item in reversed(list(enumerate(items))) for key in _keys(item)}
    marked = dict(enumerate(items))
    replaced: dict[int, list[int]] = defaultdict(list)  # by what stands out
    added: list[Item] = []
    known = set(place)
    for n, found in newer.items():
        for item, stands_out in found:
            keys = _keys(item)
            at = next((place[key] for key in keys if key in place), None)
            if at is None and known.isdisjoint(keys) and len(added) < MOST_IN_ALL:
                known.update(keys)
                at = len(items) + len(added)
                added.append(item)
                marked[at] = item
            if at is None or at == n or marked[at].newer_than:
                continue
            marked[at] = replace(marked[at], newer_than=items[n].id)
            if stands_out and at > n and asks and not _is_of_then(words_of_then, question, items[n]):
                replaced[n].append(at)
    moved = {at for places in replaced.values() for at in places}
    order: list[int] = []
    for n in marked:
        if n not in moved:
            order += [*_first(n, replaced), n]
    return [marked[n] for n in order]


def _is_of_then(words: AbstractSet[str], question: str, statement: Item) -> bool:
    """Whether a question with these of OF_THEN is about then. In German "was" asks what something is: a short question
    may not tell its language ("Was trinkt Erin?"), and then the statement does."""
    if words != {GERMAN_WHAT}:
        return bool(words)
    asked_in = tongue(question[:MAX_RANKED_CHARS])
    begins = question.lstrip().casefold().startswith(GERMAN_WHAT)
    return asked_in != GERMAN and not (begins and tongue(statement.text[:MAX_RANKED_CHARS]) == GERMAN)


def _first(n: int, replaced: Mapping[int, Sequence[int]]) -> Iterator[int]:
    """What comes before an item because it replaces it, or what replaces it."""
    for at in replaced.get(n, ()):
        yield from _first(at, replaced)
        yield at


def _keys(item: Item) -> list[object]:
    """What an item is known by: its id, and the messages that it came from. A memory and its message are one."""
    return [item.id, *sources_of(item)]


def _newer(
    statement: Item, later: Sequence[Candidate], question: str, seen: Sources, matched: Mapping[str, int]
) -> list[tuple[Item, bool]]:
    """The most like of what came later than a statement, the best first, and whether each stands out: none does after
    one that goes on with the same talk. `matched`: bits for the words of the question that an item has, by id."""
    about_author = bool(statement.author and authors_named([statement.author], question))
    likenesses = list(_likenesses(statement, later))
    found: list[tuple[Item, bool]] = []
    goes_on = False
    for likeness, item in sorted(likenesses, key=lambda each: (-each[0], each[1].id)):
        if len(found) == MOST:
            break
        own = item.user_id == statement.user_id or bool(authors_named([statement.author], item.text))
        keys = {key for each, _ in found for key in _keys(each)}
        if (
            likeness >= MIN_NEWER_LIKENESS
            and (own or not about_author)
            and keys.isdisjoint(_keys(item))
            and seen.isdisjoint(sources_of(item))
        ):
            others = [(value, other) for value, other in likenesses if set(_keys(other)).isdisjoint(_keys(item))]
            beyond = likeness - median(value for value, _ in others) if others else 0.0
            lacks = matched.get(statement.id, 0) & ~matched.get(item.id, 0)
            goes_on = goes_on or (item.at - statement.at < LEAST_PAUSE and bool(lacks))
            stands_out = beyond >= STANDS_OUT - NAMES_IT and not goes_on and _is_short(statement) and _is_short(item)
            if stands_out and beyond < STANDS_OUT:
                stands_out = _names_it(statement, item, [other for _, other in others], question)
            found.append((item, stands_out))
    return found


def _names_it(statement: Item, item: Item, others: Sequence[Item], question: str) -> bool:
    """Whether an item has a word of a statement that is neither in the question nor in what else came after that."""
    common = set(terms(statement.text)).intersection(terms(item.text))
    common.difference_update(terms(question[:MAX_RANKED_CHARS]) if common else ())
    return bool(common and common.difference(*(terms(each.text[:MAX_RANKED_CHARS]) for each in others)))


def _is_short(item: Item) -> bool:
    return len(item.text) <= MAX_STATEMENT_BYTES and len(item.text.encode("utf-8", "replace")) <= MAX_STATEMENT_BYTES


def _likenesses(statement: Item, later: Sequence[Candidate]) -> Iterator[tuple[float, Item]]:
    """How like a statement each of what came later is, apart from questions and what an agent said."""
    for candidate in later:
        item = candidate.item
        if item.by_agent or item.kind == "summary" or is_question(item.text):
            continue
        same = statement.user_id is not None and item.user_id == statement.user_id
        yield round(candidate.likeness + SAME_AUTHOR * same, 6), item

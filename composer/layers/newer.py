"""Let the newer of two statements stand beside the older one: a pure function of what was found.

"I live in Hamburg" answers a question in its words, and "we moved to Berlin" does not. So the statements that recall
found bring along what came after them and is most like them. Whether it really replaces them, the reader judges: a line
says what it is newer than.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from composer.layers.ranking import authors_named, is_question, sources_of
from composer.model import Item
from composer.repositories.recall import Candidate

MOST: Final = 2  # newer items for a statement
MOST_IN_ALL: Final = 2  # that recall would not have brought
SAME_AUTHOR: Final = 0.1  # added to the likeness of what the same person said
MIN_NEWER_LIKENESS: Final = 0.42  # of what is newer: the sum of two cosines, and SAME_AUTHOR

Sources = AbstractSet[tuple[str, str]]


def with_newer(items: Sequence[Item], candidates: Sequence[Candidate], question: str, seen: Sources) -> list[Item]:
    """The items, best first, and behind them what is newer than their statements and was not among them. That, and what
    was, is marked by `newer_than`. `seen` are the messages that the prompt shows anyway, as `sources_of` gives them.
    """
    newer = {n: _newer(item, candidates, question, seen) for n, item in enumerate(items) if not is_question(item.text)}
    place = {key: n for n, item in reversed(list(enumerate(items))) for key in _keys(item)}
    marks: dict[int, str] = {}
    added: list[Item] = []
    known = set(place)
    for n, found in newer.items():
        for item in found:
            keys = _keys(item)
            if known.isdisjoint(keys):
                if len(added) < MOST_IN_ALL:
                    known.update(keys)
                    added.append(replace(item, newer_than=items[n].id))
            elif (at := next((place[key] for key in keys if key in place), n)) != n:
                marks.setdefault(at, items[n].id)
    return [*(replace(item, newer_than=marks[n]) if n in marks else item for n, item in enumerate(items)), *added]


def _keys(item: Item) -> list[object]:
    """What an item is known by: its id, and the messages that it came from. A memory and its message are one."""
    return [item.id, *sources_of(item)]


def _newer(statement: Item, candidates: Sequence[Candidate], question: str, seen: Sources) -> list[Item]:
    """The most like of what came after a statement, the best first."""
    keys = set(_keys(statement))
    ids = {candidate.item.id for candidate in candidates if not keys.isdisjoint(_keys(candidate.item))}
    about_author = bool(statement.author and authors_named([statement.author], question))
    found: list[Item] = []
    for _, item in sorted(_likenesses(statement, ids, candidates), key=lambda each: (-each[0], each[1].id)):
        own = item.user_id == statement.user_id or bool(authors_named([statement.author], item.text))
        keys = {key for each in found for key in _keys(each)}
        if (own or not about_author) and keys.isdisjoint(_keys(item)) and seen.isdisjoint(sources_of(item)):
            found.append(item)
    return found[:MOST]


def _likenesses(
    statement: Item, ids: AbstractSet[str], candidates: Sequence[Candidate]
) -> Iterator[tuple[float, Item]]:
    for candidate in candidates:
        item = candidate.item
        if candidate.newer_than not in ids or item.by_agent or item.kind == "summary" or is_question(item.text):
            continue
        same = statement.user_id is not None and item.user_id == statement.user_id
        likeness = candidate.likeness + SAME_AUTHOR * same
        if likeness >= MIN_NEWER_LIKENESS:
            yield round(likeness, 6), item

"""The memory that is put into a request of a person's tool: only what the same credential may read over the API.

It has two parts. The standing part, which may become a system message, holds whatever is asked, and only what the
person themself wrote: facts, decisions, and notes of some kinds; it is the same until one of them changes. The recalled
part goes before the question as what it is, a user's message of data: facts and decisions that others wrote, with whose
and where they are, and the entries that fit the question. Together they have at most the tokens that the person set.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.entries import listing
from composer.entries.access import access_for_reading
from composer.entries.draft import API_ORIGIN
from composer.entries.namesakes import Labels
from composer.entries.search import (
    DEFAULT_FOUND_ENTRIES,
    MAX_ANSWER_TOKENS,
    MAX_FOUND_ENTRIES,
    MAX_SEARCHED_CHARS,
    EntryQuestion,
    EntryReader,
    EntrySearch,
)
from composer.errors import Refused
from composer.gateway.frames import (
    OF_OTHERS,
    RECALLED,
    STANDING,
    entry_line,
    exact_line,
    recall_block,
    standing_block,
    tokens_of_text,
)
from composer.gateway.turns import GatewayTurn
from composer.layers import structured
from composer.memory.index import without_mentions
from composer.model import project_namespace
from composer.ports.clock import Clock
from composer.prompt.lines import structured_item
from composer.repositories.database import Database, Transaction
from composer.repositories.entries import Entry, EntryFilter
from composer.repositories.gateway_turns import Injected, TurnKey
from composer.repositories.landmarks import LandmarkState
from composer.repositories.structured import StructuredRows
from composer.text.cleaning import clean_text
from composer.text.excerpts import excerpt
from composer.text.masking import mask
from composer.text.names import in_quotes, is_of_app
from composer.text.terms import query_terms
from composer.text.work import off_loop
from composer.visibility import EntryAccess, Tagged

STANDING_KINDS: Final = ("preference", "habit", "procedural")  # of entries that hold whatever is asked
MAX_STANDING: Final = 50  # entries
STANDING_SHARE: Final = 2  # the standing part has at most this part of the tokens, and what others wrote of the rest
MAX_EXACT_CHARS: Final = 300  # that are shown of a fact's value or a decision
_HEADINGS: Final = 60  # tokens, more than the lines that name blocks and end frames have
_FRAMES: Final = tokens_of_text(STANDING) + tokens_of_text(RECALLED) + _HEADINGS


@dataclass(frozen=True, slots=True)
class TurnMemory:
    """The memory for a request of a turn. `ids`: those of its entries, facts and decisions. `searched`: the question
    was searched for now; `has_found`: with a result. `refused`: the person has switched recall off. `begun_at`: when
    the turn began, where an earlier request of it is known."""

    standing: str = ""
    recalled: str = ""
    ids: Sequence[uuid.UUID] = ()
    searched: bool = False
    has_found: bool = False
    refused: bool = False
    begun_at: datetime | None = None

    @property
    def tokens(self) -> int:
        """An estimate of all of it."""
        return tokens_of_text(self.standing) + tokens_of_text(self.recalled)

    @property
    def header(self) -> str:
        """How much was put in, as the header `X-Nexus-Memory` of the answer says it."""
        return f"{len(self.ids)} {'entry' if len(self.ids) == 1 else 'entries'}, {self.tokens} tokens"


@dataclass(frozen=True, slots=True)
class _Line:
    """What is put into a request of one item; `version`: that of an entry."""

    id: uuid.UUID
    text: str
    version: int | None = None

    @property
    def tokens(self) -> int:
        return tokens_of_text(self.text) + 1


@dataclass(frozen=True, slots=True)
class _Exact:
    """Facts, and decisions newest first, of the person's own; and what others wrote, theirs in turns."""

    facts: Sequence[_Line] = ()
    landmarks: Sequence[_Line] = ()
    others: Sequence[_Line] = ()


@dataclass(frozen=True, slots=True)
class _Standing:
    """What can be read now, whatever is asked. `notes`: the person's own, newest first; `people`: who wrote the facts
    and decisions, by name."""

    access: EntryAccess
    people: Sequence[tuple[str, uuid.UUID | None]]
    exact: _Exact
    notes: Sequence[_Line] = ()
    injected: Injected | None = None
    again: Sequence[Entry] = ()

    @property
    def budget(self) -> int:
        """The tokens for all memory together."""
        return self.access.settings.budget

    def fitting(self, given: Sequence[uuid.UUID] | None = None) -> "_Parts":
        """What fits, of the person's own and then of others. One that is too long is left out, and counted. `given`:
        only those of some ids, those of others in that order."""
        own = (self.exact.facts, self.exact.landmarks, self.notes)
        left = (self.budget - _FRAMES) // STANDING_SHARE
        taken: list[list[_Line]] = []
        for lines in own:
            chosen, left = _fitting(lines, left)
            taken.append(chosen)
        facts, landmarks, notes = taken
        parts = _Parts(facts, landmarks[::-1], notes[::-1], more=sum(map(len, own)) - sum(map(len, taken)))
        of_others = (self.budget - parts.memory.tokens - _FRAMES - tokens_of_text(OF_OTHERS)) // STANDING_SHARE
        others, _ = _fitting(self.exact.others, of_others)
        parts = replace(parts, others=others, more_of_others=len(self.exact.others) - len(others))
        return parts if given is None else self._given(parts, given)

    def _given(self, fitting: "_Parts", given: Sequence[uuid.UUID]) -> "_Parts":
        """What a request before was given, with the counts of what does not fit now."""
        order = {id: place for place, id in enumerate(given)}
        facts, landmarks, notes, others = (
            sorted((line for line in lines if line.id in order), key=lambda line: order[line.id])
            for lines in (self.exact.facts, self.exact.landmarks, self.notes, self.exact.others)
        )
        return replace(fitting, facts=facts, landmarks=landmarks, notes=notes, others=others)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is put into a request, in its order, and how many more there are of the person's own, and of others."""

    facts: Sequence[_Line] = ()
    landmarks: Sequence[_Line] = ()
    notes: Sequence[_Line] = ()
    others: Sequence[_Line] = ()
    recalled: Sequence[_Line] = ()
    more: int = 0
    more_of_others: int = 0

    @property
    def exact(self) -> list[_Line]:
        return [*self.facts, *self.landmarks, *self.others]

    @property
    def ids(self) -> list[uuid.UUID]:
        return [line.id for line in (*self.facts, *self.landmarks, *self.notes, *self.others, *self.recalled)]

    @property
    def memory(self) -> TurnMemory:
        standing = standing_block(_texts(self.facts), _texts(self.landmarks), _texts(self.notes), self.more)
        recalled = recall_block(_texts(self.others), self.more_of_others, _texts(self.recalled))
        return TurnMemory(standing, recalled, tuple(self.ids))

    def without(self, ids: Collection[uuid.UUID]) -> "_Parts":
        def left(lines: Sequence[_Line]) -> list[_Line]:
            return [line for line in lines if line.id not in ids]

        return replace(
            self,
            facts=left(self.facts),
            landmarks=left(self.landmarks),
            notes=left(self.notes),
            others=left(self.others),
            recalled=left(self.recalled),
        )


def _fitting(lines: Sequence[_Line], left: int) -> tuple[list[_Line], int]:
    """Those of some lines that fit into so many tokens, the first ones first, and the tokens that are left."""
    chosen: list[_Line] = []
    for line in lines:
        if line.tokens <= left:
            chosen.append(line)
            left -= line.tokens
    return chosen, left


class GatewayMemory:
    """Reads memory for requests. It stores nothing but the ids of what a turn was given."""

    def __init__(self, database: Database, search: EntrySearch, clock: Clock) -> None:
        self._database, self._search, self._clock = database, search, clock

    async def for_turn(
        self, reader: EntryReader, turn: GatewayTurn, *, record: bool, search: bool = True
    ) -> TurnMemory:
        """The memory for a request of a turn; nothing where the person has switched recall off. What was given is
        stored; `record`: also that it was nothing, since functions are offered and further requests of the turn may
        come. `search` False: only the standing part. Raises NotFound for a user who does not exist, and Unavailable."""
        key = TurnKey(reader.user, reader.vendor, turn.digest)
        try:
            found = await self._standing(reader, None if turn.is_new else key)
            if found.injected is not None:
                return await self._again(reader, turn, found)
            return await self._first(reader, turn, found, key, record=record, search=search)
        except Refused:
            return TurnMemory(refused=True)

    async def _standing(self, reader: EntryReader, key: TurnKey | None) -> _Standing:
        now = self._clock.now()
        async with self._database.transaction(reader.tenant_id, "read") as tx:
            access = await access_for_reading(tx, reader.tenant_id, reader.user, reader.vendor, reader.grants)
            visibility.require_recall(access)
            injected = None if key is None else await tx.gateway_turns.get(key, now)
            again: Sequence[Entry] = ()
            if injected is not None and injected.recalled:
                again = await _still_readable(tx, access, injected, now)
            readable = visibility.readable_entries(access)
            exact = await structured.read(tx.structured, readable, now)
            notes = await _notes(tx, access, now)
        people = _people(exact)
        return _Standing(
            access,
            people,
            _exact_lines(access, exact),
            _entry_lines(access, people, [(each, mask(each.values.text)) for each in notes]),
            injected,
            again,
        )

    async def _again(self, reader: EntryReader, turn: GatewayTurn, found: _Standing) -> TurnMemory:
        """What the turn's first request was given, without what may not be read any more."""
        assert found.injected is not None, "the turn is known"

        def lines() -> list[_Line]:
            wanted = query_terms(without_mentions(_question(turn.text)), ())
            return _entry_lines(found.access, found.people, [(each, _shown(each, wanted)) for each in found.again])

        chars = len(turn.text) + sum(len(entry.values.text) for entry in found.again)
        recalled = await off_loop(chars, lines)
        parts = replace(found.fitting(found.injected.standing), recalled=recalled)
        return replace((await self._not_erased(reader, parts)).memory, begun_at=found.injected.at)

    async def _first(
        self, reader: EntryReader, turn: GatewayTurn, found: _Standing, key: TurnKey, *, record: bool, search: bool
    ) -> TurnMemory:
        parts = found.fitting()
        if search:
            recalled = await self._recalled(reader, turn, found, parts)
            parts = replace(parts, recalled=recalled)
        left = await self._not_erased(reader, parts, key if record or parts.ids else None)
        return replace(left.memory, searched=search, has_found=bool(parts.recalled))

    async def _not_erased(self, reader: EntryReader, parts: _Parts, keep: TurnKey | None = None) -> _Parts:
        """The parts without what was erased since it was read, also by an erasure that goes on and is waited for, and
        without what has other words, or may not be read any more: that does not leave after it. `keep`: record what is
        left as given to a turn."""
        if keep is None and not parts.ids:
            return parts
        async with self._database.transaction(reader.tenant_id) as tx:
            left = parts.without(await tx.erasure.erased_ids(parts.ids))
            left = left.without(await _changed(tx, reader, left, self._clock.now()))
            if keep is not None:
                recalled = tuple(line.id for line in left.recalled)
                standing = tuple(id for id in left.ids if id not in recalled)
                await tx.gateway_turns.put(keep, Injected(standing, recalled), self._clock.now())
        return left

    async def _recalled(self, reader: EntryReader, turn: GatewayTurn, found: _Standing, parts: _Parts) -> list[_Line]:
        """The entries that fit the question, best first. One that is too long for what is left of the tokens is left
        out."""
        question, shown = await off_loop(len(turn.text), lambda: _question(turn.text)), frozenset(parts.ids)
        left = found.budget - parts.memory.tokens - _FRAMES
        if not question or left <= 0:
            return []
        wanted = EntryQuestion(
            question, min(DEFAULT_FOUND_ENTRIES + len(shown), MAX_FOUND_ENTRIES), MAX_ANSWER_TOKENS, exact=False
        )
        result = await self._search.search(reader, wanted)
        new = [(hit.entry, hit.item.text) for hit in result.hits if hit.entry is not None and hit.entry.id not in shown]
        chosen: list[tuple[Entry, str]] = []
        for each, line in zip(new, _entry_lines(found.access, found.people, new), strict=True):
            if line.tokens <= left and len(chosen) < DEFAULT_FOUND_ENTRIES:
                chosen.append(each)
                left -= line.tokens
        return _entry_lines(found.access, found.people, chosen)


async def _changed(tx: Transaction, reader: EntryReader, parts: _Parts, now: datetime) -> set[uuid.UUID]:
    """What was changed since it was read, or may not be read any more: entries, facts and decisions."""
    if not parts.ids:
        return set()
    access = await access_for_reading(tx, reader.tenant_id, reader.user, reader.vendor, reader.grants)
    visibility.require_recall(access)
    readable = visibility.readable_entries(access)
    changed = set[uuid.UUID]()
    read = {line.id: line.version for line in (*parts.notes, *parts.recalled)}
    if read:
        found = await tx.entries.find_by_ids(readable, list(read), now)
        changed |= read.keys() - {entry.id for entry in found if entry.version == read[entry.id]}
    if parts.exact:
        now_exact = _exact_lines(access, await structured.read(tx.structured, readable, now))
        changed |= {line.id for line in {*parts.exact} - {*now_exact.facts, *now_exact.landmarks, *now_exact.others}}
    return changed


def _exact_lines(access: EntryAccess, found: StructuredRows) -> _Exact:
    """Facts and decisions as lines. The person's own are those that they wrote; what was only proposed nobody did."""
    facts, landmarks, others = list[_Line](), list[_Line](), list[tuple[uuid.UUID | None, _Line]]()
    numbers = Labels(access, _people(found)).numbers
    for fact in found.facts:
        item = structured_item(structured.fact_item(fact, longest=MAX_EXACT_CHARS), numbers)
        if fact.user_id in access.users and not is_of_app(fact.author):
            facts.append(_Line(fact.id, exact_line(item)))
        else:
            others.append((fact.user_id, _Line(fact.id, exact_line(item, _place(access, fact)))))
    for landmark in reversed(found.landmarks):
        item = structured_item(structured.landmark_item(landmark, longest=MAX_EXACT_CHARS), numbers)
        is_own = landmark.user_id in access.users and not is_of_app(landmark.author)
        if is_own and landmark.state is not LandmarkState.PROPOSED:
            landmarks.append(_Line(landmark.id, exact_line(item)))
        else:
            others.append((landmark.user_id, _Line(landmark.id, exact_line(item, _place(access, landmark)))))
    return _Exact(facts, landmarks, _in_turns(others))


def _in_turns(lines: Sequence[tuple[uuid.UUID | None, _Line]]) -> list[_Line]:
    """Lines by who wrote them, theirs in turns: nobody's many lines keep another's out."""
    turns = Counter[uuid.UUID | None]()
    numbered = list[tuple[int, _Line]]()
    for user, line in lines:
        numbered.append((turns[user], line))
        turns[user] += 1
    return [line for _, line in sorted(numbered, key=lambda each: each[0])]


def _people(found: StructuredRows) -> list[tuple[str, uuid.UUID | None]]:
    """Who wrote facts and decisions, by name."""
    facts = [(each.author, each.user_id) for each in found.facts]
    return [*facts, *((each.author, each.user_id) for each in found.landmarks)]


def _entry_lines(
    access: EntryAccess, others: Sequence[tuple[str, uuid.UUID | None]], shown: Sequence[tuple[Entry, str]]
) -> list[_Line]:
    """Entries, each with a masked text of it; those of other people with where they are from. Who wrote them is told
    from each other, and from `others`."""
    labels = Labels(access, [*others, *((entry.author, entry.user_id) for entry, _ in shown)])
    lines = list[_Line]()
    for entry, text in shown:
        place = "" if entry.user_id in access.users else _place(access, entry)
        author = labels(entry.author, entry.user_id)
        lines.append(_Line(entry.id, entry_line(entry, author, text, place), entry.version))
    return lines


def _place(access: EntryAccess, item: Tagged) -> str:
    """Where something that another person wrote is from, in words."""
    names = {project_namespace(project.id): project.slug for project in access.projects}
    return f"project {in_quotes(names[item.namespace])}" if item.namespace in names else "a team"


async def _notes(tx: Transaction, access: EntryAccess, now: datetime) -> Sequence[Entry]:
    """The standing notes that the person wrote themselves, newest first: none that a tool wrote or was learnt from."""
    wanted = EntryFilter(kinds=STANDING_KINDS, origins=(API_ORIGIN,), authors=access.users)
    return (await listing.page(tx, access, wanted, now, limit=MAX_STANDING, whole=True)).entries


async def _still_readable(tx: Transaction, access: EntryAccess, injected: Injected, now: datetime) -> Sequence[Entry]:
    """Those of the recalled entries that may still be read, in their order."""
    readable = visibility.readable_entries(access)
    by_id = {entry.id: entry for entry in await tx.entries.find_by_ids(readable, injected.recalled, now)}
    return [by_id[id] for id in injected.recalled if id in by_id]


def _question(text: str) -> str:
    """What to search for: the end of a long message."""
    return clean_text(text).strip()[-MAX_SEARCHED_CHARS:].strip()


def _shown(entry: Entry, wanted: Sequence[str]) -> str:
    """The text of an entry as a search shows it: of a long one the part that belongs to the question."""
    return mask(excerpt(entry.values.text, wanted))


def _texts(lines: Sequence[_Line]) -> list[str]:
    return [line.text for line in lines]

"""The memory that is put into a request of a person's tool: only what the same credential may read over the API.

It has two parts. The standing part holds whatever is asked: facts, decisions, and notes of the person's own of some
kinds; it is the same until one of them changes. The recalled part is what fits the question. Together they have at most
the tokens that the person has set.
"""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.entries import listing
from composer.entries.access import access_for_reading
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
from composer.ports.clock import Clock
from composer.repositories.database import Database, Transaction
from composer.repositories.entries import Entry, EntryFilter
from composer.repositories.gateway_turns import Injected, TurnKey
from composer.repositories.structured import StructuredRows
from composer.text.cleaning import clean_text
from composer.text.excerpts import excerpt
from composer.text.masking import mask
from composer.text.terms import query_terms
from composer.text.work import off_loop
from composer.visibility import EntryAccess

STANDING_KINDS: Final = ("preference", "habit", "procedural")  # of entries that hold whatever is asked
MAX_STANDING: Final = 50  # entries
STANDING_SHARE: Final = 2  # the standing part has at most this part of the tokens
_HEADINGS: Final = 40  # tokens, more than the lines that name blocks and end frames have
_FRAMES: Final = tokens_of_text(STANDING) + tokens_of_text(RECALLED) + _HEADINGS


@dataclass(frozen=True, slots=True)
class TurnMemory:
    """The memory for a request of a turn. `entries`: how many items it has. `searched`: the question was searched for
    now; `has_found`: with a result. `refused`: the person has switched recall off. `begun_at`: when the turn began,
    where an earlier request of it is known."""

    standing: str = ""
    recalled: str = ""
    entries: int = 0
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
        return f"{self.entries} {'entry' if self.entries == 1 else 'entries'}, {self.tokens} tokens"


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
class _Standing:
    """The standing part as it can be read now. `notes` newest first."""

    budget: int
    facts: Sequence[_Line] = ()
    landmarks: Sequence[_Line] = ()
    notes: Sequence[_Line] = ()
    injected: Injected | None = None
    again: Sequence[Entry] = ()

    def fitting(self, only: frozenset[uuid.UUID] | None) -> tuple[list[_Line], list[_Line], list[_Line]]:
        """The facts, landmarks and notes that fit, the latter two oldest first; the newest are taken first. `only`
        those of some ids."""
        left = (self.budget - _FRAMES) // STANDING_SHARE
        taken: list[list[_Line]] = []
        for lines in (self.facts, self.landmarks[::-1], self.notes):
            chosen: list[_Line] = []
            for line in lines:
                if only is not None and line.id not in only:
                    continue
                if line.tokens > left:
                    break
                chosen.append(line)
                left -= line.tokens
            taken.append(chosen)
        facts, landmarks, notes = taken
        return facts, landmarks[::-1], notes[::-1]


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is put into a request, in its order."""

    facts: Sequence[_Line]
    landmarks: Sequence[_Line]
    notes: Sequence[_Line]
    recalled: Sequence[_Line]

    @property
    def ids(self) -> list[uuid.UUID]:
        return [line.id for line in (*self.facts, *self.landmarks, *self.notes, *self.recalled)]

    @property
    def memory(self) -> TurnMemory:
        standing = standing_block(_texts(self.facts), _texts(self.landmarks), _texts(self.notes))
        return TurnMemory(standing, recall_block(_texts(self.recalled)), len(self.ids))

    def without(self, ids: Collection[uuid.UUID]) -> "_Parts":
        def left(lines: Sequence[_Line]) -> list[_Line]:
            return [line for line in lines if line.id not in ids]

        return _Parts(left(self.facts), left(self.landmarks), left(self.notes), left(self.recalled))


class GatewayMemory:
    """Reads memory for requests. It stores nothing but the ids of what a turn was given."""

    def __init__(self, database: Database, search: EntrySearch, clock: Clock) -> None:
        self._database, self._search, self._clock = database, search, clock

    async def for_turn(
        self, reader: EntryReader, turn: GatewayTurn, *, record: bool, search: bool = True
    ) -> TurnMemory:
        """The memory for a request of a turn; nothing where the person has switched recall off. `record`: store what
        was given, since functions are offered and further requests of the turn may come. `search` False: only the
        standing part. Raises NotFound for a user who does not exist, and Unavailable."""
        key = TurnKey(reader.user, reader.vendor, turn.digest)
        try:
            found = await self._standing(reader, None if turn.is_new else key)
            if found.injected is not None:
                return await self._again(reader, turn, found)
            return await self._first(reader, turn, found, key if record else None, search=search)
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
        return _Standing(
            access.settings.budget,
            *_exact_lines(exact),
            [_Line(each.id, entry_line(each, mask(each.values.text)), each.version) for each in notes],
            injected,
            again,
        )

    async def _again(self, reader: EntryReader, turn: GatewayTurn, found: _Standing) -> TurnMemory:
        """What the turn's first request was given, without what may not be read any more."""
        assert found.injected is not None, "the turn is known"
        wanted = query_terms(without_mentions(_question(turn.text)), ())
        chars = sum(len(entry.values.text) for entry in found.again)
        recalled = await off_loop(
            chars,
            lambda: [_Line(each.id, entry_line(each, _shown(each, wanted)), each.version) for each in found.again],
        )
        parts = _Parts(*found.fitting(frozenset(found.injected.standing)), recalled)
        return replace((await self._not_erased(reader, parts)).memory, begun_at=found.injected.at)

    async def _first(
        self, reader: EntryReader, turn: GatewayTurn, found: _Standing, keep: TurnKey | None, *, search: bool
    ) -> TurnMemory:
        parts = _Parts(*found.fitting(None), [])
        if search:
            recalled = await self._recalled(reader, turn, found, parts.memory.standing, parts.ids)
            parts = replace(parts, recalled=recalled)
        left = await self._not_erased(reader, parts, keep)
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

    async def _recalled(
        self, reader: EntryReader, turn: GatewayTurn, found: _Standing, standing: str, shown: Sequence[uuid.UUID]
    ) -> list[_Line]:
        """The entries that fit the question, best first. One that is too long for what is left of the tokens is left
        out."""
        question, left = _question(turn.text), found.budget - tokens_of_text(standing) - _FRAMES
        if not question or left <= 0:
            return []
        wanted = EntryQuestion(
            question, min(DEFAULT_FOUND_ENTRIES + len(shown), MAX_FOUND_ENTRIES), MAX_ANSWER_TOKENS, exact=False
        )
        result = await self._search.search(reader, wanted)
        chosen: list[_Line] = []
        for hit in result.hits:
            if hit.entry is None or hit.entry.id in shown or len(chosen) == DEFAULT_FOUND_ENTRIES:
                continue
            line = _Line(hit.entry.id, entry_line(hit.entry, hit.item.text), hit.entry.version)
            if line.tokens <= left:
                chosen.append(line)
                left -= line.tokens
        return chosen


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
    exact = {*parts.facts, *parts.landmarks}
    if exact:
        facts, landmarks = _exact_lines(await structured.read(tx.structured, readable, now))
        changed |= {line.id for line in exact - {*facts, *landmarks}}
    return changed


def _exact_lines(found: StructuredRows) -> tuple[list[_Line], list[_Line]]:
    """Facts and decisions as lines."""
    facts = [_Line(fact.id, exact_line(structured.fact_item(fact))) for fact in found.facts]
    return facts, [_Line(each.id, exact_line(structured.landmark_item(each))) for each in found.landmarks]


async def _notes(tx: Transaction, access: EntryAccess, now: datetime) -> Sequence[Entry]:
    """The standing notes of the person's own, newest first."""
    wanted = EntryFilter(kinds=STANDING_KINDS, authors=access.users)
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

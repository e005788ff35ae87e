"""The recall index: search by meaning and by words inside a viewer's scope, and what fills it."""

import json
import math
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import numpy as np
import structlog

from composer.errors import Misconfigured
from composer.model import Conversation, Item, Message, Trust, Visibility, derived_id
from composer.ports.clock import EARLIEST
from composer.ports.database import Bits, Row, Statements, Vector
from composer.ports.models import EmbeddingInput, Scale, Vectors
from composer.repositories.compactions import Compaction, compaction_from_record
from composer.repositories.messages import message_from_row
from composer.repositories.readable import readable_parameters, recall_parameters
from composer.text.passages import Passage
from composer.visibility import Readable

logger = structlog.get_logger()

MAX_SUMMARIES_OF_A_PERIOD: Final = 7  # of each tier; the days of a week
ENTRIES_AT_ONCE: Final = 200  # in one statement: some 3 ms of the event loop
MAX_TERM_COUNT: Final = 32_767  # of a term in one item: a smallint
_VISIBILITIES: Final = {str(visibility): visibility for visibility in Visibility}  # faster than to construct one a row
_RARITY: Final = 2.2  # of a term, as recall_search counts it: this times a logarithm
WHOLE: Final = Passage()
REEMBEDDED: Final = (
    "The stored vectors belong to another embedder since nexus reembed: restart this process. Where NEXUS_EMBEDDER is "
    "set, set it to that one."
)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A passage of an item to add to the recall index: its access columns, and its stems with their counts."""

    id: uuid.UUID
    kind: str
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    at: datetime
    terms: Mapping[str, int]
    vendors: tuple[str, ...] | None = None
    expires_at: datetime | None = None
    passage: Passage = WHOLE


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a tenant has waiting: ephemeral messages that were `answered`, `messages` to index, `items` to embed."""

    answered: bool = False
    messages: bool = False
    items: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for recall: its similarity by meaning (cosine, None without a vector) and by words (BM25), and a bit
    in `matched` for each search term that it contains.

    `before` and `after` are the ids of its neighbours in the conversation, `reply_to` of the messages that it answers,
    where they were looked up. `newer_than` is the statement that it came after and is like, by id, and `likeness` its
    similarities to that and to the question, added up (-2 to 2). `only_newer`: nothing else speaks for it.
    """

    item: Item
    meaning: float | None
    words: float
    before: str | None = None
    after: str | None = None
    matched: int = 0
    reply_to: tuple[str, ...] = ()
    newer_than: str = ""
    likeness: float = 0.0
    only_newer: bool = False

    def on(self, scale: Scale) -> "Candidate":
        """This candidate with what the cosines of its embedder say instead of them."""
        if self.meaning is None:
            return self
        fit = scale.fit(self.meaning)
        likeness = scale.likeness(self.likeness - self.meaning) + fit if self.newer_than else self.likeness
        return replace(self, meaning=fit, likeness=likeness)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: its candidates, by id; the rarity (inverse document frequency within the scope) of each
    search term, in the order of the bits of `Candidate.matched`; and how many items the scope has."""

    candidates: list[Candidate]
    rarities: Mapping[str, float]
    items: int = 0

    @property
    def unknown(self) -> list[str]:
        """The search terms that no item of the scope contains: no other is as rare."""
        return [term for term, rarity in self.rarities.items() if rarity > _RARITY * math.log(1 + self.items / 1.5)]


@dataclass(frozen=True, slots=True)
class Background:
    """What a turn needs before it searches. `settings` are JSON texts by key; `linked` are the other users of the same
    person; `summaries` are oldest first, `tokens` counts those of each, by id. `last_tokens` are those of
    the last prompt of the model: (counted by us, reported by the API).
    """

    settings: Mapping[str, str]
    linked: Mapping[uuid.UUID, tuple[uuid.UUID, ...]]
    compaction: Compaction | None
    summaries: list[Item]
    tokens: Mapping[str, int] = field(default_factory=dict)
    last_tokens: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Messages that could not be indexed or extracted from, for one reason. `example` is the id of one of them."""

    why: str
    count: int
    example: str


class Recall:
    """The recall index. `embedder` identifies the embedder of the vectors that are passed in."""

    def __init__(self, statements: Statements, embedder: str | None) -> None:
        self._sql = statements
        self._embedder = embedder

    async def search(
        self,
        readable: Readable,
        vector: Vectors | None,
        terms: Sequence[str],
        limit: int,
        exclude: Sequence[uuid.UUID],
        now: datetime,
        since: datetime = EARLIEST,
        until: datetime | None = None,
        authors: Collection[uuid.UUID] = (),
        long: Sequence[uuid.UUID] | None = None,
    ) -> Found:
        """Up to `limit` candidates by meaning and as many by words, with the neighbours of the best.

        Items before `since` or after `until` (None: `now`) are neither found nor counted, nor those of others than the
        `authors`, if there are any. What is to `exclude` is one passage each, but for the `long` (None: perhaps all).
        """
        rows = await self._sql.fetch(
            "recall_search",
            **recall_parameters(readable),
            vector=None if vector is None else Vector(vector),
            weights=None if vector is None else vector_weights(vector),
            embedder=self._embedder,
            terms=sorted(terms),
            limit=limit,
            exclude=list(exclude),
            exclude_long=list(exclude if long is None else long),
            now=now,
            since=since,
            until=now if until is None else min(until, now),
            authors=list(authors) or None,
        )
        if vector is not None and all(row["meaning"] is None for row in rows):
            await self._warn_of_another_embedder()
        if not rows:
            return Found([], {})
        rarities = dict(zip(sorted(terms), rows[0]["rarities"] or (), strict=False))
        return Found([_candidate(row) for row in rows], rarities, rows[0]["items"])

    async def words(
        self, readable: Readable, beginnings: Collection[str], limit: int, now: datetime, since: datetime = EARLIEST
    ) -> list[str]:
        """The terms that begin with some letters, of what `search` would find: at most `limit`, in their order."""
        rows = await self._sql.fetch(
            "recall_words",
            **recall_parameters(readable),
            beginnings=sorted(beginnings),
            limit=limit,
            now=now,
            since=since,
        )
        return [row["term"] for row in rows]

    async def latest(
        self,
        readable: Readable,
        kinds: Sequence[str],
        limit: int,
        exclude: Sequence[uuid.UUID],
        now: datetime,
        since: datetime = EARLIEST,
        until: datetime | None = None,
        *,
        details: Collection[str] = (),
        authors: Collection[uuid.UUID] = (),
    ) -> list[Item]:
        """The latest items of some `kinds`, newest first, whatever they say, and nothing that an agent said: memories
        of some `details` and what the `authors` own, if there are any."""
        rows = await self._sql.fetch(
            "recall_latest",
            **recall_parameters(readable),
            kinds=list(kinds),
            limit=limit,
            exclude=list(exclude),
            now=now,
            since=since,
            until=now if until is None else min(until, now),
            details=list(details) or None,
            authors=list(authors) or None,
        )
        return [_candidate(row).item for row in rows]

    async def people(self, readable: Readable, words: Collection[str], until: datetime) -> dict[uuid.UUID, str]:
        """The names of those of whom the viewer may read something, and whose name has one of some words, in lower
        case."""
        if not words:
            return {}
        rows = await self._sql.fetch("recall_people", **recall_parameters(readable), terms=sorted(words), until=until)
        return {row["id"]: row["name"] for row in rows}

    async def around(
        self,
        readable: Readable,
        episodes: Sequence[uuid.UUID],
        each: int,
        since: datetime,
        until: datetime,
        most_bytes: int | None = None,
        within: timedelta | None = None,
    ) -> dict[uuid.UUID, list[Item]]:
        """For each of some messages that may be read, itself and at most `each` before and after it in its
        conversation, oldest first, as episodes. None is before `since` or after `until`, or, if these are given, has
        more than `most_bytes` in UTF-8 or is more than `within` away from it."""
        rows = await self._sql.fetch(
            "recall_around",
            **recall_parameters(readable),
            episode_ids=list(episodes),
            each=each,
            since=since,
            until=until,
            most_bytes=most_bytes,
            within=within,
        )
        found: dict[uuid.UUID, list[Item]] = {}
        for row in rows:
            found.setdefault(row["episode"], []).append(_episode(row))
        return found

    async def background(
        self,
        own: Readable,
        conversation: Conversation,
        agent: uuid.UUID,
        before: Message,
        tiers: Mapping[str, int],
        people: Sequence[uuid.UUID],
        periods: Sequence[tuple[datetime, datetime]] = (),
        *,
        model: str | None = None,
    ) -> Background:
        """What a turn knows of its conversation, in one statement: the latest summaries of each tier, those of some
        periods and the compaction of an agent's view, as of before a message; the linked users of `people`; the tokens
        of the last prompt of `model`; the tenant's settings."""
        row = await self._sql.fetch_one(
            "recall_background",
            **readable_parameters(own),
            conversation_id=conversation.id,
            agent_id=agent,
            namespace=conversation.namespace,
            before_at=before.at,
            before_seq=before.seq,
            tiers=list(tiers),
            limits=list(tiers.values()),
            people=list(people),
            model=model,
            starts=[start for start, _ in periods],
            ends=[end for _, end in periods],
            within=MAX_SUMMARIES_OF_A_PERIOD,
        )
        if row is None:
            return Background({}, {}, None, [])
        linked: dict[uuid.UUID, tuple[uuid.UUID, ...]] = {}
        for user, other in row["linked"]:
            linked[user] = (*linked.get(user, ()), other)
        return Background(
            dict(row["settings"]),
            linked,
            compaction_from_record(row["compaction"][0]) if row["compaction"] else None,
            [_summary(record) for record in row["summaries"]],
            {str(record[0]): record[8] for record in row["summaries"]},
            tuple(row["token_counts"][0]) if row["token_counts"] else (0, 0),
        )

    async def _warn_of_another_embedder(self) -> None:
        stored = await self._sql.fetch_value("deployment_get", key="embedder")
        if self._embedder is None or stored is None or json.loads(stored) != json.loads(self._embedder):
            logger.warning("recall.words_only", reason=REEMBEDDED)

    async def waiting(self) -> Waiting:
        """What is to be erased, indexed or embedded."""
        return await self._sql.fetch_one_as(Waiting, "indexing_waiting") or Waiting()

    async def unindexed_messages(self, limit: int) -> list[Message]:
        """The next messages that are not indexed, locked. Those that another transaction changes are left out."""
        rows = await self._sql.fetch("messages_unindexed", limit=limit)
        return [replace(message_from_row(row), trust=Trust(row["trust"])) for row in rows]

    async def index(
        self, episodes: Sequence[tuple[uuid.UUID, uuid.UUID]], entries: Sequence[IndexEntry], done: Sequence[uuid.UUID]
    ) -> None:
        """Store episodes (id, message), add entries to the index, and mark messages as indexed. Entries are sent some
        at a time: long texts have thousands, and others wait while rows are made of them."""
        for start in range(0, len(entries) - ENTRIES_AT_ONCE, ENTRIES_AT_ONCE):
            await self._insert([], entries[start : start + ENTRIES_AT_ONCE], [])
        await self._insert(episodes, entries[-(len(entries) % ENTRIES_AT_ONCE or ENTRIES_AT_ONCE) :], done)

    async def _insert(
        self, episodes: Sequence[tuple[uuid.UUID, uuid.UUID]], entries: Sequence[IndexEntry], done: Sequence[uuid.UUID]
    ) -> None:
        await self._sql.execute(
            "recall_insert",
            ids=[e.id for e in entries],
            kinds=[e.kind for e in entries],
            namespaces=[e.namespace for e in entries],
            user_ids=[e.user_id for e in entries],
            visibilities=[str(e.visibility) for e in entries],
            vendors=[None if e.vendors is None else json.dumps(e.vendors) for e in entries],
            at=[e.at for e in entries],
            expires_at=[e.expires_at for e in entries],
            lengths=[sum(e.terms.values()) for e in entries],
            postings=[_postings(e.terms) for e in entries],
            parts=[e.passage.part for e in entries],
            starts=[e.passage.start for e in entries],
            chars=[e.passage.chars for e in entries],
            episode_ids=[id for id, _ in episodes],
            message_ids=[message for _, message in episodes],
            done=list(done),
        )

    async def skip(self, message: uuid.UUID, why: str) -> None:
        """Mark a message as indexed that can't be, or can't be extracted from. `why` has none of its text."""
        await self._sql.execute("messages_set_skipped", id=message, why=why)

    async def retry_skipped(self) -> None:
        """Let the messages that were skipped be indexed again."""
        await self._sql.execute("messages_set_skipped", id=None, why=None)

    async def skipped(self) -> list[Skipped]:
        """The messages that were skipped, counted by the reason, the most frequent first."""
        return await self._sql.fetch_as(Skipped, "messages_skipped")

    async def unembedded_items(self, limit: int, namespaces: Collection[str] | None = None) -> list[EmbeddingInput]:
        """The latest passages without a vector, with the text to embed: of some namespaces (None: of all)."""
        return await self._sql.fetch_as(
            EmbeddingInput,
            "recall_unembedded",
            limit=limit,
            namespaces=None if namespaces is None else list(namespaces),
        )

    async def store_vectors(self, items: Sequence[EmbeddingInput], vectors: Vectors) -> set[tuple[uuid.UUID, int]]:
        """Store vectors, except of items that changed since they were read. Returns the (id, part) of those stored.

        Raises Misconfigured when the stored vectors belong to another embedder.
        """
        row = await self._sql.fetch_one(
            "recall_store_vectors",
            embedder=self._embedder,
            ids=[item.id for item in items],
            parts=[item.part for item in items],
            versions=[item.version for item in items],
            vectors=[Vector(vector) for vector in vectors],
        )
        if row is None or not row["is_current"]:
            raise Misconfigured(REEMBEDDED)
        return {(id, part) for id, part in row["passages"]}

    async def remove(self, ids: Sequence[uuid.UUID]) -> None:
        """Remove items from the index."""
        await self._sql.execute("recall_delete", ids=list(ids))


@lru_cache(maxsize=10_000)  # a turn computes those of its whole view, and so does the next turn
def episode_id_of(message: uuid.UUID) -> uuid.UUID:
    """The id of a message's episode."""
    return derived_id("episode", str(message))


def _postings(terms: Mapping[str, int]) -> str:
    """The terms of one item with their counts, as JSON: asyncpg examines each element of an array."""
    return json.dumps({term: min(count, MAX_TERM_COUNT) for term, count in terms.items()}, ensure_ascii=False)


def vector_weights(vector: Vectors) -> list[Bits]:
    """The weight of each dimension of a vector of shape (width,), from 0 to 3 (two standard deviations and more), as
    two bit strings: the lower bits, then the higher bits."""
    deviation = max(float(np.linalg.norm(vector)) / len(vector) ** 0.5, 1e-30)
    weights = np.minimum(np.rint(np.abs(vector) * (1.5 / deviation)), 3).astype(np.uint8)
    return [Bits(np.packbits(weights >> bit & 1).tobytes(), len(vector)) for bit in range(2)]


def _summary(record: Sequence[Any]) -> Item:
    id, namespace, visibility, user_id, tier, text, start, end, _, messages = record
    return Item(
        "episodic",
        tier,
        str(id),
        text,
        end,
        namespace,
        Visibility(visibility),
        user_id,
        messages=tuple(messages),
        starts_at=start,
    )


def _episode(row: Row) -> Item:
    return Item(
        "semantic",
        "episode",
        str(row["id"]),
        row["text"],
        row["at"],
        row["namespace"],
        Visibility(row["visibility"]),
        row["user_id"],
        author=row["author"],
        messages=(row["external_id"],),
        by_agent=row["by_agent"],
        files_at=row["files_at"],
    )


def _place(parts: Sequence[int], of: int) -> str:
    return f"part{'s' if len(parts) > 1 else ''} {' and '.join(map(str, parts))} of {of}"


def _candidate(row: Row) -> Candidate:
    vendors, before, after, reply_to = row["vendors"], row["before"], row["after"], row["reply_to"]
    item = Item(
        "semantic",
        row["detail"] if row["kind"] == "memory" else row["kind"],
        str(row["id"]),
        row["text"] or "",
        row["at"],
        row["namespace"],
        _VISIBILITIES[row["visibility"]],
        row["user_id"],
        ("*",) if vendors is None else tuple(vendors),
        row["author"],
        tuple(row["messages"]),
        starts_at=row["starts_at"],
        by_agent=row["by_agent"],
        passage=_place(sorted(set(row["parts"])), row["of"]) if row["parts"] else "",
        files_at=row["files_at"],
    )
    return Candidate(
        item,
        row["meaning"],
        row["words"],
        None if before is None else str(before),
        None if after is None else str(after),
        row["matched"],
        tuple(map(str, reply_to)) if reply_to else (),
        "" if row["newer_than"] is None else str(row["newer_than"]),
        row["likeness"] or 0.0,
        row["only_newer"],
    )

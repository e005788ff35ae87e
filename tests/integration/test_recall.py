"""Recall: the index finds exactly what plain arithmetic over the readable rows finds."""

import random
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import log as ln
from typing import Any, cast

import numpy as np
import pytest

from composer.layers import semantic
from composer.layers.semantic import Retrieval, SearchQuery, Shown
from composer.model import (
    Conversation,
    ConversationKind,
    Item,
    Visibility,
    dm_namespace,
    message_id,
    profile_namespace,
    room_id,
    room_namespace,
)
from composer.ports.clock import EARLIEST
from composer.ports.database import Statements
from composer.ports.models import Vectors
from composer.repositories.database import Transaction
from composer.repositories.memories import NewMemory
from composer.repositories.recall import ENTRIES_AT_ONCE, Candidate, IndexEntry, Recall, episode_id_of
from composer.settings import RetrievalSettings, Settings, TenantSettings
from composer.text.dates import question_times
from composer.text.dates.tongues import Told, told_in_english
from composer.visibility import AccessContext, AccessTag, Readable, readable
from tests.support.harness import START, AppHarness, open_harness
from tests.support.receiver import Receiver, said

NOW = START + timedelta(days=10)
WIDTH = 32
ROOM, ALICE, BOB, AGENT = (uuid.UUID(int=n) for n in range(1, 5))
WORDS = ["deploy", "friday", "berlin", "postgr", "tea", "budget", "logo", "vote"]


def room_of(tenant: uuid.UUID) -> Readable:
    """What the room may read when alice asks."""
    here = Conversation(ROOM, tenant, ConversationKind.ROOM, "general", room_namespace(ROOM))
    return readable(AccessContext(here, ALICE), [])


def dm_of(tenant: uuid.UUID) -> Readable:
    """What alice's DM may read."""
    here = Conversation(
        uuid.UUID(int=9),
        tenant,
        ConversationKind.DM,
        "nexus",
        dm_namespace(ALICE, AGENT),
        user_id=ALICE,
        agent_id=AGENT,
    )
    return readable(AccessContext(here, ALICE), [])


@dataclass(frozen=True)
class Entry:
    """An index entry: its access fields, its stems, its vector."""

    id: uuid.UUID
    terms: Mapping[str, int]
    namespace: str = room_namespace(ROOM)
    visibility: Visibility = Visibility.PUBLIC
    user_id: uuid.UUID = BOB
    at: datetime = START
    vendors: tuple[str, ...] = ("*",)
    expires_at: datetime | None = None
    vector: Vectors | None = field(default=None, compare=False)

    def may_be_read(self, who: Readable) -> bool:
        alive = self.at <= NOW and (self.expires_at is None or self.expires_at > NOW)
        return alive and who.admits(self)


class World:
    """One tenant's recall index, filled by a test."""

    def __init__(self, receiver: Receiver, tenant: uuid.UUID) -> None:
        self._taking = receiver
        self.tenant = tenant
        self.entries: list[Entry] = []

    async def fill(self, entries: Sequence[Entry]) -> "World":
        self.entries.extend(entries)
        async with self._taking.database.transaction(self.tenant) as tx:
            await tx.people.ensure_tenant(str(self.tenant), "test", str(self.tenant), [], START)
            await tx.memories.add([as_memory(entry) for entry in entries])
            await tx.recall.index([], [index_entry(entry) for entry in entries], [])
            embedded = {entry.id: entry.vector for entry in entries if entry.vector is not None}
            items = [item for item in await tx.recall.unembedded_items(100_000) if item.id in embedded]
            if items:
                await tx.recall.store_vectors(items, np.stack([embedded[item.id] for item in items]))
        return self

    async def search(
        self,
        who: Readable,
        terms: Sequence[str] = (),
        vector: Vectors | None = None,
        *,
        most: int = 10_000,
        leave_out: Sequence[uuid.UUID] = (),
        long: Sequence[uuid.UUID] | None = None,
        authors: Sequence[uuid.UUID] = (),
    ) -> list[Candidate]:
        async with self._taking.database.transaction(self.tenant, "read") as tx:
            found = await tx.recall.search(who, vector, terms, most, leave_out, NOW, authors=authors, long=long)
            return found.candidates

    async def read(self, query: SearchQuery, retrieval: Retrieval, *, floor: bool = True) -> list[Item]:
        """Read as a turn does, or without its `floor` of relevance."""
        async with self._taking.database.transaction(self.tenant, "read") as tx:
            return await self._read(tx, query, retrieval, floor=floor)

    async def _read(
        self, tx: Transaction, query: SearchQuery, retrieval: Retrieval, *, floor: bool = True
    ) -> list[Item]:
        return await semantic.read(tx.recall, room_of(self.tenant), query, Shown(), retrieval, NOW, floor=floor)


def as_memory(entry: Entry) -> NewMemory:
    text = f"{entry.id} {' '.join(Counter(dict(entry.terms)).elements())}"
    mark = AccessTag(entry.namespace, entry.visibility, entry.user_id)
    return NewMemory(entry.id, mark, None, "decision", text, "bob", "test", entry.at)


def index_entry(entry: Entry) -> IndexEntry:
    vendors = None if entry.vendors == ("*",) else entry.vendors
    return IndexEntry(
        entry.id,
        "memory",
        entry.namespace,
        entry.visibility,
        entry.user_id,
        entry.at,
        entry.terms,
        vendors,
        entry.expires_at,
    )


def entry(number: int, *terms: str, **fields: object) -> Entry:
    return replace(Entry(uuid.UUID(int=1_000 + number), Counter(terms or ("deploy",))), **fields)  # type: ignore[arg-type]


def unit(values: Sequence[float] | Vectors) -> Vectors:
    vector = np.asarray(values, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def some_entries(chance: random.Random, count: int, *, vectors: bool = False) -> list[Entry]:
    """Entries with every kind of access fields, a few of them alike."""
    runs = [room_namespace(ROOM), dm_namespace(ALICE, AGENT), profile_namespace(ALICE), "room:other", "global"]
    found = []
    for _ in range(count):
        terms = Counter(chance.choices(WORDS, k=chance.randint(1, 12)))
        vector = unit([chance.gauss(0, 1) for _ in range(WIDTH)]) if vectors else None
        found.append(
            Entry(
                uuid.UUID(int=chance.getrandbits(128)),
                terms,
                chance.choice(runs),
                chance.choice(list(Visibility)),
                chance.choice([ALICE, BOB]),
                NOW + timedelta(days=chance.choice([-9, -5, -1, 0, 1])),
                chance.choice([("*",), ("*",), ("nexus",), ("claude",), ("claude", "nexus")]),
                chance.choice([None, None, None, NOW + timedelta(days=1), NOW, NOW - timedelta(days=1)]),
                vector,
            )
        )
    return found


def bm25(entries: Sequence[Entry], terms: Sequence[str], who: Readable) -> dict[uuid.UUID, float]:
    """Scores by the textbook (k1 1.2, b 0.75), with all statistics taken over what is readable."""
    scope = [entry for entry in entries if entry.may_be_read(who)]
    lengths = {entry.id: sum(entry.terms.values()) for entry in scope}
    average = sum(lengths.values()) / max(len(scope), 1)
    scores: dict[uuid.UUID, float] = {}
    for found in scope:
        score = 0.0
        for term in terms:
            tf = found.terms.get(term, 0)
            df = sum(term in other.terms for other in scope)
            if tf:
                weight = ln(1 + (len(scope) - df + 0.5) / (df + 0.5))
                score += weight * tf * (1.2 + 1) / (tf + 1.2 * (1 - 0.75 + 0.75 * lengths[found.id] / average))
        if score:
            scores[found.id] = score
    return scores


async def test_words_are_scored_by_bm25_over_the_readable_rows_alone(receiver: Receiver) -> None:
    compared = 0
    for seed in range(16):
        chance = random.Random(seed)
        world = await World(receiver, uuid.UUID(int=seed + 1)).fill(
            some_entries(chance, chance.choice([1, 5, 150, 300]))
        )
        for who in (room_of(world.tenant), dm_of(world.tenant)):
            terms = chance.sample([*WORDS, "unknown"], k=chance.randint(1, 5))
            expected = bm25(world.entries, terms, who)
            found = await world.search(who, terms)
            assert [uuid.UUID(f.item.id) for f in found] == sorted(expected, key=lambda id: id.bytes)
            assert {uuid.UUID(f.item.id): f.words for f in found} == pytest.approx(expected, abs=1e-9)
            assert all(f.meaning is None for f in found)
            few = {uuid.UUID(f.item.id) for f in await world.search(who, terms, most=3)}
            best = sorted(expected.values(), reverse=True)[: len(few)]
            assert sorted((expected[id] for id in few), reverse=True) == pytest.approx(best)
            compared += len(expected)
    assert compared > 300


async def test_meaning_is_scored_by_cosine_over_the_readable_rows_alone(receiver: Receiver) -> None:
    compared = 0
    for seed in range(12):
        chance = random.Random(seed)
        world = await World(receiver, uuid.UUID(int=seed + 1)).fill(some_entries(chance, 150, vectors=True))
        question = unit([chance.gauss(0, 1) for _ in range(WIDTH)])
        for who in (room_of(world.tenant), dm_of(world.tenant)):
            cosine = {
                e.id: float(e.vector @ question) for e in world.entries if e.may_be_read(who) and e.vector is not None
            }
            order = sorted(cosine, key=lambda id: -cosine[id])
            for most in (1, 5, 10_000):
                found = await world.search(who, (), question, most=most)
                meanings = {uuid.UUID(f.item.id): f.meaning for f in found if not f.only_newer}
                assert meanings == pytest.approx({id: cosine[id] for id in order[:most]}, abs=1e-6)
            compared += len(cosine)
    assert compared > 300


async def test_of_some_authors_nothing_of_others_is_found_nor_newer(receiver: Receiver) -> None:
    chance = random.Random(8)
    vectors = [unit([chance.gauss(0, 1) for _ in range(WIDTH)]) for _ in range(6)]
    entries = [
        Entry(uuid.UUID(int=n + 1), {}, user_id=(BOB, ALICE)[n % 2], at=START + timedelta(hours=n), vector=vector)
        for n, vector in enumerate(vectors)
    ]
    world = await World(receiver, uuid.UUID(int=77)).fill(entries)
    everybody = await world.search(room_of(world.tenant), (), vectors[0], most=1)
    assert {each.item.user_id for each in everybody if each.newer_than} == {ALICE, BOB}
    found = await world.search(room_of(world.tenant), (), vectors[0], most=1, authors=[BOB])
    assert [each.item.user_id for each in found] == [BOB, BOB, BOB]


async def test_a_large_scope_is_filtered_by_signs_then_magnitudes_then_compared_exactly(
    receiver: Receiver,
) -> None:
    chance = random.Random(5)
    entries = [
        entry(n, vector=unit([chance.gauss(0, 1) for _ in range(WIDTH)])) for n in chance.sample(range(10_000), k=1200)
    ]
    world = await World(receiver, uuid.UUID(int=1)).fill(entries)
    question = unit([chance.gauss(0, 1) for _ in range(WIDTH)])
    differs = {e.id: (e.vector > 0) != (question > 0) for e in entries if e.vector is not None}
    deviation = WIDTH**-0.5  # of the dimensions of a vector of length 1
    weight = np.minimum(np.rint(np.abs(question) / deviation * 1.5), 3).astype(int)
    alike = {e.id: differs[e.id] != (np.abs(e.vector) > 0.98 * deviation) for e in entries if e.vector is not None}
    cosine = {e.id: float(e.vector @ question) for e in entries if e.vector is not None}

    def expected(left_out: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        near = sorted(differs.keys() - set(left_out), key=lambda id: (differs[id].sum(), id.bytes))[:1000]
        far = {id: 2 * weight[differs[id]].sum() - weight[alike[id]].sum() for id in near}
        nearer = sorted(near, key=lambda id: (far[id], id.bytes))[:200]
        return set(sorted(nearer, key=lambda id: -cosine[id])[:20])

    found = await world.search(room_of(world.tenant), (), question, most=20)
    assert {uuid.UUID(f.item.id) for f in found} == expected(())
    # Items already in the prompt take no place among the thousand candidates.
    without = sorted(cosine, key=lambda id: -cosine[id])[:150]
    for long in (None, (), without[:3]):  # each is one passage
        found = await world.search(room_of(world.tenant), (), question, most=20, leave_out=without, long=long)
        assert {uuid.UUID(f.item.id) for f in found} == expected(without)


async def test_an_item_without_a_vector_is_found_by_words_alone(receiver: Receiver) -> None:
    with_vector = entry(1, "tea", vector=unit([1.0] * WIDTH))
    world = await World(receiver, uuid.UUID(int=1)).fill([with_vector, entry(2, "tea"), entry(3, "logo")])
    found = await world.search(room_of(world.tenant), ["tea"], unit([1.0] * WIDTH))
    assert [(uuid.UUID(f.item.id), f.meaning is None, f.words > 0) for f in found] == [
        (with_vector.id, False, True),
        (entry(2).id, True, True),
    ]


async def test_expired_and_future_items_are_not_found(receiver: Receiver) -> None:
    second = timedelta(seconds=1)
    entries = [
        entry(1, at=NOW),
        entry(2, at=NOW + second),
        entry(3, expires_at=NOW + second),
        entry(4, expires_at=NOW),
        entry(5, expires_at=NOW - second),
    ]
    vector = unit([1.0] * WIDTH)
    world = await World(receiver, uuid.UUID(int=1)).fill([replace(e, vector=vector) for e in entries])
    who = room_of(world.tenant)
    for found in (await world.search(who, ["deploy"]), await world.search(who, (), vector)):
        assert [uuid.UUID(f.item.id) for f in found] == [entry(1).id, entry(3).id]
    # They are not counted in the statistics either.
    alone = await World(receiver, uuid.UUID(int=2)).fill([entries[0], entries[2]])
    words = [f.words for f in await alone.search(room_of(alone.tenant), ["deploy"])]
    assert [f.words for f in await world.search(who, ["deploy"])] == words


async def test_a_vendor_that_its_owner_does_not_allow_finds_nothing(receiver: Receiver) -> None:
    allowed = [entry(1), entry(2, vendors=("nexus",)), entry(3, vendors=("claude", "nexus"))]
    world = await World(receiver, uuid.UUID(int=1)).fill(
        [*allowed, entry(4, vendors=("claude",)), entry(5, vendors=())]
    )
    found = await world.search(room_of(world.tenant), ["deploy"])
    assert [uuid.UUID(f.item.id) for f in found] == [e.id for e in allowed]


async def test_items_already_in_the_prompt_are_left_out_but_counted_in_the_statistics(receiver: Receiver) -> None:
    vector = unit([1.0] * WIDTH)
    world = await World(receiver, uuid.UUID(int=1)).fill([entry(n, vector=vector) for n in range(6)])
    who = room_of(world.tenant)
    whole = {f.item.id: f.words for f in await world.search(who, ["deploy"])}
    out = [entry(0).id, entry(4).id]
    for terms, asked in ((["deploy"], None), ([], vector), (["deploy"], vector)):
        found = await world.search(who, terms, asked, most=4, leave_out=out)
        assert [uuid.UUID(f.item.id) for f in found] == [entry(n).id for n in (1, 2, 3, 5)]
        if terms:
            assert {f.item.id: f.words for f in found} == {id: whole[id] for id in whole if uuid.UUID(id) not in out}


async def test_a_question_without_words_and_vector_finds_nothing(receiver: Receiver) -> None:
    world = await World(receiver, uuid.UUID(int=1)).fill([entry(1, vector=unit([1.0] * WIDTH))])
    assert await world.search(room_of(world.tenant)) == []
    assert await world.search(room_of(world.tenant), ["unknown"]) == []


class Sending:
    """Statements that only note what they are given."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []

    async def execute(self, _: str, /, **values: Any) -> None:
        self.sent.append(values)


@pytest.mark.parametrize("entries", [0, 1, ENTRIES_AT_ONCE, ENTRIES_AT_ONCE + 1, 3 * ENTRIES_AT_ONCE])
async def test_entries_of_long_texts_are_sent_some_at_a_time_and_their_messages_marked_with_the_last(
    entries: int,
) -> None:
    """The rows of twenty long messages kept the event loop for 50 ms."""
    statements, message = Sending(), uuid.UUID(int=5)
    indexed = [index_entry(entry(number)) for number in range(entries)]
    await Recall(cast(Statements, statements), None).index([(message, message)], indexed, [message])
    *first, last = statements.sent
    assert [id for each in statements.sent for id in each["ids"]] == [each.id for each in indexed]
    assert {len(each["ids"]) for each in first} <= {ENTRIES_AT_ONCE}
    assert len(last["ids"]) <= ENTRIES_AT_ONCE
    assert [each["done"] for each in statements.sent] == [*([] for _ in first), [message]]
    assert [each["message_ids"] for each in statements.sent] == [*([] for _ in first), [message]]


async def test_rows_of_another_tenant_are_not_found_whatever_their_namespace(receiver: Receiver) -> None:
    mine = await World(receiver, uuid.UUID(int=1)).fill([entry(1)])
    await World(receiver, uuid.UUID(int=2)).fill([entry(2), entry(3)])
    found = await mine.search(room_of(mine.tenant), ["deploy"])
    assert [uuid.UUID(f.item.id) for f in found] == [entry(1).id]
    assert await mine.search(room_of(uuid.UUID(int=2)), ["deploy"]) == found, "the transaction's tenant decides"


async def test_forgotten_items_are_not_found(receiver: Receiver) -> None:
    vector = unit([1.0] * WIDTH)
    world = await World(receiver, uuid.UUID(int=1)).fill([entry(1, vector=vector), entry(2, vector=vector)])
    async with receiver.database.transaction(world.tenant) as tx:
        await tx.recall.remove([entry(1).id])
    found = await world.search(room_of(world.tenant), ["deploy"], vector)
    assert [uuid.UUID(f.item.id) for f in found] == [entry(2).id]


async def test_strategies_choose_by_meaning_by_time_or_by_both(receiver: Receiver) -> None:
    near, far = unit([1.0] * WIDTH), unit([1.0] * (WIDTH // 2) + [-0.4] * (WIDTH // 2))
    world = await World(receiver, uuid.UUID(int=1)).fill(
        [
            entry(1, "tea", "tea", vector=far, at=START),
            entry(2, "logo", vector=near, at=START + timedelta(days=1)),
            entry(3, "tea", vector=far, at=START + timedelta(days=9)),
        ]
    )
    query = SearchQuery("what of tea", near, ["tea"])

    async def numbers(strategy: str, vector: Vectors | None = near, top_k: int = 12) -> list[int]:
        found = await world.read(replace(query, vector=vector), Retrieval(strategy, top_k), floor=False)
        return [uuid.UUID(item.id).int - 1_000 for item in found]

    assert await numbers("semantic") == [2, 3, 1]
    assert await numbers("recent") == [3, 2, 1]
    assert await numbers("hybrid") == [1, 3, 2]
    assert await numbers("hybrid", None) == [1, 3], "without a vector only the words count"
    assert await numbers("semantic", None) == []
    assert await numbers("recent", top_k=1) == [3]
    assert await numbers("hybrid", top_k=0) == []


async def recalled(harness: AppHarness, name: str) -> list[str]:
    """What is recalled of messages that the working view no longer shows."""
    here = harness.workspace(name)
    texts = ["deploy on Friday", "deploy the logo", "deploy nothing", *(f"something else {n}" for n in range(60))]
    earlier = [replace(said(f"d{n}", text, user="bob", minute=n), workspace=name) for n, text in enumerate(texts)]
    await harness.app.receive(here, earlier, answer=False)
    await harness.app.indexer.catch_up(here.tenant_id)
    harness.clock.set(START + timedelta(hours=2))
    prompt = (await harness.compose("alice", "what of the deploy logo", room="general", workspace=name)).prompt
    return [item.messages[0] for section in prompt.sections if section.name == "RECALL" for item in section.sources]


async def test_each_tenant_uses_its_own_recall_settings(settings: Settings) -> None:
    tenants = {
        "newest": TenantSettings(workspaces=("newest",), retrieval=RetrievalSettings(strategy="recent", top_k=2)),
        "none": TenantSettings(workspaces=("none",), retrieval=RetrievalSettings(top_k=0)),
        "short": TenantSettings(workspaces=("short",), retrieval=RetrievalSettings(recall_tokens=0)),
    }
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as harness:
        assert "d1" in (await recalled(harness, "usual"))[:2]
        newest = await recalled(harness, "newest")
        assert len(newest) == 2
        assert "d0" not in newest
        assert await recalled(harness, "none") == []
        assert await recalled(harness, "short") == []


async def test_the_short_messages_around_each_of_several_messages(harness: AppHarness) -> None:
    here = harness.workspace()
    for n, text in enumerate(("short", "a long one " * 10, "the hit", "brief", "far")):
        await harness.say("bob", text, room="general", id=f"a{n}")
    room = Conversation(
        room_id(here, "general"), here.tenant_id, ConversationKind.ROOM, "g", room_namespace(room_id(here, "general"))
    )
    hits = [episode_id_of(message_id(room.id, f"a{n}")) for n in (2, 4)]
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        who = readable(AccessContext(room, ALICE), [])
        found = await tx.recall.around(who, hits, 2, EARLIEST, harness.clock.now(), most_bytes=20)
    assert {hit: [item.text for item in items] for hit, items in found.items()} == {
        hits[0]: ["short", "the hit", "brief", "far"],
        hits[1]: ["the hit", "brief", "far"],
    }


async def test_another_talk_is_not_around_a_message(harness: AppHarness) -> None:
    here = harness.workspace()
    said = (("long before", 0), ("just before", 90), ("the hit", 59), ("just after", 59), ("long after", 90))
    for n, (text, minutes) in enumerate(said):
        harness.clock.tick(60 * minutes)
        await harness.say("bob", text, room="general", id=f"a{n}")
    id = room_id(here, "general")
    room = Conversation(id, here.tenant_id, ConversationKind.ROOM, "g", room_namespace(id))
    hit, now, hour = episode_id_of(message_id(id, "a2")), harness.clock.now(), timedelta(hours=1)
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        who = readable(AccessContext(room, ALICE), [])
        near = await tx.recall.around(who, [hit], 2, EARLIEST, now, within=hour)
        everything = await tx.recall.around(who, [hit], 2, EARLIEST, now)
    assert [item.text for item in near[hit]] == ["just before", "the hit", "just after"]
    assert len(everything[hit]) == len(said)


async def test_the_times_of_a_question_are_told_once_in_a_turn(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(80):
        await harness.say("bob", f"the deploy number {n} was fine", room="general", id=f"b{n}")
    told = list[str]()

    def counted(text: str, *, ahead: bool) -> Iterator[Told]:
        told.append(text)
        return told_in_english(text, ahead=ahead)

    monkeypatch.setattr(question_times, "told_in_english", counted)
    prompt = (await harness.compose("alice", "@nexus which deploy was fine?", room="general")).prompt
    assert any(section.name == "RECALL" for section in prompt.sections)
    assert told == ["which deploy was fine?"]

"""Shares: what one person, tenant or backlog does at its worst leaves the others connections, locks and places."""

import asyncio
import pkgutil
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import httpx2
import pytest

from bot.web import app as app_of_routes
from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.metrics import Metrics
from composer.errors import Unavailable
from composer.memory.extraction import BatchRules, ConversationSource
from composer.memory.learner import MAX_CONCURRENT, Learner
from composer.ports.database import Mode
from composer.ports.extraction import ExtractedStatement, MessageBatch
from composer.repositories.extraction_queue import ExtractionScope
from composer.settings import Settings
from composer.stores.database import postgres
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.models.tokens import tokenizer_for
from composer.tasks.shares import Party, Places, acting_for, current_party
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.databases import service_url
from tests.support.gateway import MODEL, gateway_stage
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until
from tests.support.web import served_at

ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)
ANN, BOB, CAT = uuid.UUID(int=11), uuid.UUID(int=12), uuid.UUID(int=13)
CONNECTIONS = 8
READ_OF_QUESTIONS: Final = (
    "composer.turn.reading._asked_periods",
    "composer.turn.reading.plain.kind_of",
    "composer.turn.reading.search_query",
    "composer.entries.search.query_terms",
    "composer.gateway.memory._question",
)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[PostgresDatabase]:
    assert settings.database_url is not None
    opened = await PostgresDatabase.open(service_url(settings.database_url), connections=CONNECTIONS)
    yield opened
    await opened.close()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told to try again while a busy machine runs a test."""
    monkeypatch.setattr(postgres, "LOCK_WAIT_SECONDS", 600.0)
    monkeypatch.setattr(postgres, "PLACE_SECONDS", 600.0)


@asynccontextmanager
async def holding(
    database: PostgresDatabase, count: int, *parties: Party, mode: Mode = "read"
) -> AsyncIterator[list[uuid.UUID | None]]:
    """So many tasks of each that hold a transaction, or wait for one; who does is in the list."""
    ends, held, tasks = asyncio.Event(), list[uuid.UUID | None](), list[asyncio.Task[None]]()

    async def hold(party: Party) -> None:
        async with database.transaction(party.tenant or ONE, mode):
            held.append(party.person)
            await ends.wait()

    for each in parties:
        with acting_for(each.tenant, each.person, background=each.background):
            tasks += [asyncio.create_task(hold(each)) for _ in range(count)]
    try:
        yield held
    finally:
        ends.set()
        await asyncio.gather(*tasks)


async def test_one_person_has_half_of_the_connections_and_one_tenant_three_quarters(
    database: PostgresDatabase, patience: None
) -> None:
    async with holding(database, 20, Party(ONE, ANN)) as of_ann:
        await until(lambda: len(of_ann) == 4)
        async with holding(database, 20, Party(ONE, BOB)) as of_bob:
            await until(lambda: len(of_bob) == 2)
            with acting_for(OTHER, CAT):
                async with database.transaction(OTHER), database.installation() as sql:
                    assert await sql.fetch("tenant_list") == []
            assert (len(of_ann), len(of_bob)) == (4, 2)
    assert (len(of_ann), len(of_bob)) == (20, 20)


async def test_background_work_of_all_tenants_leaves_half_of_the_connections(
    database: PostgresDatabase, patience: None
) -> None:
    backlogs = (Party(ONE, background=True), Party(OTHER, background=True))
    async with holding(database, 20, *backlogs) as held:
        await until(lambda: len(held) == 4)
        with acting_for(ONE, ANN):
            async with database.transaction(ONE):
                assert len(held) == 4
    assert len(held) == 40


async def test_a_task_in_a_transaction_gets_a_second_connection_and_never_waits_for_itself(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings.database_url is not None
    database = await PostgresDatabase.open(service_url(settings.database_url), connections=1)
    async with database.transaction(ONE, "read"), database.transaction(OTHER):
        monkeypatch.setattr(postgres, "PLACE_SECONDS", 0.05)
        with pytest.raises(Unavailable):
            async with database.installation():
                pass
    await database.close()


async def test_who_waits_for_a_tenants_lock_gives_the_connection_back_in_between(
    database: PostgresDatabase, settings: Settings, monkeypatch: pytest.MonkeyPatch, patience: None
) -> None:
    """Even where there is only one."""
    assert settings.database_url is not None
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT_SECONDS", 0.05)
    small = await PostgresDatabase.open(service_url(settings.database_url), connections=1)

    async def write(mode: Mode) -> None:
        async with small.transaction(ONE, mode):
            pass

    try:
        async with database.transaction(ONE, "alone"):
            waiting = [asyncio.create_task(write(mode)) for mode in ("share", "alone", "share")]
            for _ in range(5):
                async with small.statement(ONE) as tx:
                    await tx.recall.waiting()
            assert not any(task.done() for task in waiting)
        await asyncio.gather(*waiting)
    finally:
        await small.close()


async def test_writes_that_wait_for_a_lock_leave_connections_to_everybody_else(
    database: PostgresDatabase, raw: asyncpg.Connection, patience: None
) -> None:
    """Twelve writes of one person and six of another one, while their tenant is locked for long by the first."""
    written: list[uuid.UUID] = []

    async def write(person: uuid.UUID, mode: Mode) -> None:
        async with database.transaction(ONE, mode):
            written.append(person)

    async def waits() -> int:
        return int(await raw.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))

    async with holding(database, 1, Party(ONE, ANN), mode="alone") as held:
        await until(lambda: bool(held))
        with acting_for(ONE, ANN):
            writes = [asyncio.create_task(write(ANN, "alone")) for _ in range(12)]
        with acting_for(ONE, BOB):
            writes += [asyncio.create_task(write(BOB, "share")) for _ in range(6)]
        await until(lambda: database.waiting_for_locks == 15)
        for tenant, person in ((OTHER, CAT), (ONE, BOB), (ONE, ANN)):
            with acting_for(tenant, person):
                async with database.statement(tenant) as tx:
                    await tx.recall.waiting()
        with acting_for(OTHER, CAT):
            async with database.transaction(OTHER, "alone"):
                pass
        assert await waits() <= 3
        assert written == []
    await asyncio.gather(*writes)
    assert (written.count(ANN), written.count(BOB)) == (12, 6)


async def test_requests_by_twelve_keys_of_one_person_that_wait_for_a_lock_hold_up_nobody_else(
    settings: Settings, patience: None
) -> None:
    async with open_harness(settings) as harness, _served(harness) as client:
        database, here = harness.app.database, harness.workspace()
        keys = [await key_of(harness, "alice") for _ in range(12)]
        bobs, others = await key_of(harness, "bob"), await key_of(harness, "zoe", workspace="other")
        alice = Party(here.tenant_id, (await person(harness, "alice")).id)
        async with holding(database, 1, alice, mode="alone") as held:
            await until(lambda: bool(held))
            writes = [
                asyncio.create_task(client.post("/v1/entries", json={"content": "x", "key": key}, headers=bearer(key)))
                for key in keys
            ]
            await until(lambda: database.waiting_for_locks >= 9)
            for key in (others, bobs, keys[0]):
                for path in ("/v1/whoami", "/v1/entries"):
                    assert (await client.get(path, headers=bearer(key))).status_code == 200
            written = await client.post("/v1/entries", json={"content": "x", "key": "k"}, headers=bearer(others))
            assert written.status_code == 201
            assert not any(task.done() for task in writes)
        assert [answer.status_code for answer in await asyncio.gather(*writes)] == [201] * 12


async def test_who_waits_too_long_for_a_connection_is_told_when_to_try_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PLACE_SECONDS", 0.05)
    async with open_harness(settings) as harness, _served(harness) as client:
        database, key = harness.app.database, await key_of(harness, "alice")
        async with holding(database, 5, Party(OTHER, ANN), Party(uuid.UUID(int=3), BOB)) as held:
            await until(lambda: len(held) == 10)
            refused = await client.get("/v1/entries", headers=bearer(key))
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        assert "try again in a moment" in refused.json()["detail"]
        assert (await client.get("/v1/entries", headers=bearer(key))).status_code == 200


async def test_long_bodies_of_one_person_take_half_of_the_room_and_the_next_one_is_told_when_to_come_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_of_routes, "PLACE_SECONDS", 0.05)
    whole = asyncio.Event()

    async def body(size: int) -> AsyncIterator[bytes]:
        yield b" "
        await whole.wait()
        yield b"x" * (size - 1)

    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url, timeout=60) as http:

        async def send(key: str, path: str = "/v1/chat/completions", size: int = 18 * 2**20) -> httpx2.Response:
            headers = {**bearer(key), "Content-Type": "application/json", "Content-Length": str(size)}
            return await http.post(path, content=body(size), headers=headers)

        keys = [await key_of(stage.harness, "alice", vendor) for vendor in ("cursor", "claude", "codex")]
        own, others = await key_of(stage.harness, "alice"), await key_of(stage.harness, "zoe", workspace="other")
        held = stage.web.bodies
        async with asyncio.TaskGroup() as group:
            sent = [group.create_task(send(key)) for key in keys]
            await until(lambda: held.taken == 54)
            for path, key in (("/v1/chat/completions", keys[0]), ("/v1/entries/import", own)):
                headers = {**bearer(key), "Content-Type": "application/json"}
                refused = await http.post(path, content=b" " * 18 * 2**20, headers=headers)
                assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
            short = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}
            assert (await http.post("/v1/chat/completions", json=short, headers=bearer(keys[0]))).status_code == 200
            sent.append(group.create_task(send(others, "/v1/entries/import", 30 * 2**20)))
            await until(lambda: held.taken == 84)
            whole.set()
        assert {task.result().status_code for task in sent} == {400}, "they are read, and no JSON"
        await until(lambda: (held.taken, held.waiting) == (0, 0))


@asynccontextmanager
async def _served(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    served = web_app(harness.app, Metrics([]), {}, None)

    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture
def parties(monkeypatch: pytest.MonkeyPatch) -> set[Party]:
    """For whom connections and other places were taken."""
    found: set[Party] = set()
    take = Places.take

    def noted(places: Places, tenant: uuid.UUID | None = None, amount: int = 1) -> Any:
        found.add(current_party(tenant))
        return take(places, tenant, amount)

    monkeypatch.setattr(Places, "take", noted)
    return found


async def test_requests_of_one_person_by_any_of_their_credentials_are_theirs(
    harness: AppHarness, client: httpx2.AsyncClient, parties: set[Party]
) -> None:
    alice = Party(harness.workspace().tenant_id, (await person(harness, "alice")).id)
    keys = [await key_of(harness, "alice"), await key_of(harness, "alice"), await key_of(harness, "alice", "claude")]
    cookie = await cookie_of(harness, "alice")
    for headers in (*(bearer(key) for key in keys), {"Cookie": f"{COOKIE_ON_LOCALHOST}={cookie}"}):
        parties.clear()
        await client.get("/v1/agent/entries", headers=headers)
        answer = await client.get("/v1/whoami", headers=headers)
        assert answer.status_code == 200
        assert alice in parties
        assert {each.person for each in parties} <= {None, alice.person}


async def test_questions_commands_and_files_of_a_chat_are_of_who_sends_them(
    harness: AppHarness, parties: set[Party]
) -> None:
    tenant = harness.workspace().tenant_id
    alice, bob = [(await person(harness, name)).id for name in ("alice", "bob")]
    parties.clear()
    await harness.ask("alice", "@nexus hello", room="general")
    assert {each for each in parties if each.person} == {Party(tenant, alice)}
    assert Party(tenant, background=True) in parties, "it is indexed in the background"
    parties.clear()
    await harness.command_without_indexing("bob", "/nexus fact set color blue", room="general")
    assert Party(tenant, bob) in parties
    assert current_party() == Party()


class BlockedExtractor:
    """Extracts nothing, from each batch once it may."""

    def __init__(self) -> None:
        self.begun: list[uuid.UUID] = []
        self.go_on = asyncio.Event()

    async def extract(self, source: MessageBatch, near: Any) -> list[ExtractedStatement]:
        self.begun.append(source.tenant_id)
        await self.go_on.wait()
        return []


def _learner(harness: AppHarness, extractor: BlockedExtractor) -> Learner[ExtractionScope]:
    directory, places = harness.app.directory, Places(MAX_CONCURRENT, is_background=True)
    source = ConversationSource(directory.quarantine, BatchRules(2_000, tokenizer_for("")))
    return Learner(
        *(harness.app.database, harness.clock, uuid.uuid4, source, extractor, directory.zone, lambda _: None, places)
    )


async def test_the_backlog_of_one_tenant_does_not_hold_up_what_another_one_said(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    extractor = BlockedExtractor()
    learner = _learner(harness, extractor)
    for number in range(8):
        await harness.say(f"alice{number}", "we deploy on Fridays", room=f"room{number}")
    await harness.say("zoe", "we deploy on Mondays", room="general", workspace="other")
    await _queue_everything(raw)
    harness.clock.tick(3_600)
    one, other = (harness.workspace(name).tenant_id for name in (None, "other"))
    learning = asyncio.create_task(learner.learn_all())
    await until(lambda: len(extractor.begun) == MAX_CONCURRENT)
    assert sorted(extractor.begun, key=str) == sorted([one] * 3 + [other], key=str)
    extractor.go_on.set()
    await learning
    assert len(extractor.begun) == 9


async def test_what_one_person_said_in_many_places_is_not_learnt_before_all_else(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    for room in range(6):
        await harness.say("alice", "we deploy on Fridays", room=f"room{room}")
    await harness.say("bob", "I prefer tea", room="last")
    await _queue_everything(raw)
    harness.clock.tick(3_600)
    learner = _learner(harness, BlockedExtractor())
    found = await learner.due(harness.workspace().tenant_id)
    alice, bob = [(await person(harness, name)).id for name in ("alice", "bob")]
    assert [scope.user for scope in found] == [alice, bob, alice, alice]


async def _queue_everything(raw: asyncpg.Connection) -> None:
    columns = "tenant_id, conversation_id, namespace, visibility, user_id"
    await raw.execute(
        f"INSERT INTO extraction_queue (message_id, queued_at, {columns}) SELECT id, at, {columns} FROM messages "
        "WHERE agent_id IS NULL AND user_id IS NOT NULL"
    )


async def test_a_long_question_is_read_beside_the_event_loop(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, loop = "when do we deploy? " * 300, threading.get_ident()
    beside: dict[str, bool] = {}

    def watch(name: str) -> None:
        real = pkgutil.resolve_name(name)

        def read(*given: Any) -> Any:
            beside[name] = beside.get(name, True) and threading.get_ident() != loop
            return real(*given)

        monkeypatch.setattr(name, read)

    for name in READ_OF_QUESTIONS:
        watch(name)
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url) as client:
        await stage.harness.ask("alice", f"@nexus {question}", room="general")
        tool = bearer(await key_of(stage.harness, "alice", "cursor"))
        assert (await client.post("/v1/query", json={"question": question}, headers=tool)).is_success
        asked = {"model": MODEL, "messages": [{"role": "user", "content": question}]}
        assert (await client.post("/v1/chat/completions", json=asked, headers=tool)).is_success
    assert beside == dict.fromkeys(READ_OF_QUESTIONS, True)

"""The tenant's lock: who is alone is so, others share it, and nobody waits for ever. Writers of every kind run beside
each other without a deadlock, and lose or keep nothing that they should not."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from composer.errors import NotFound, Overtaken, Refused, Unavailable
from composer.settings import Settings
from composer.stores.database import postgres
from composer.stores.database.postgres import BUSY, PostgresDatabase
from tests.support.databases import service_url
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped

ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)
PEOPLE: Final = ("alice", "bob", "carol", "dave")
ROOMS: Final = ("den", "lab", "hall")
ACTS: Final = 14  # of each person


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[PostgresDatabase]:
    assert settings.database_url is not None
    opened = await PostgresDatabase.open(service_url(settings.database_url))
    yield opened
    await opened.close()


def test_no_code_takes_an_advisory_lock_beside_the_statements_but_who_makes_the_schema() -> None:
    root = Path(__file__).parents[2]
    written = [path for folder in ("composer", "bot", "jobs") for path in (root / folder).rglob("*.py")]
    named = {str(path.relative_to(root)) for path in written if "advisory_" in path.read_text(encoding="utf-8")}
    assert named == {"composer/stores/database/schema.py"}


async def test_who_is_alone_waits_for_those_who_share_and_they_for_it(
    database: PostgresDatabase, settings: Settings
) -> None:
    order: list[str] = []

    async def write(mode: Any) -> None:
        async with database.transaction(ONE, mode):
            order.append(mode)

    async with database.transaction(ONE), database.transaction(ONE):
        waiting = asyncio.create_task(write("alone"))
        await until_stopped(settings, waiting)
        async with database.transaction(ONE, "read"), database.transaction(OTHER, "alone"):
            order.append("others")
        later = asyncio.create_task(write("share"))
    await asyncio.gather(waiting, later)
    assert order == ["others", "alone", "share"]


async def test_what_only_reads_writes_nothing(database: PostgresDatabase) -> None:
    with pytest.raises(Unavailable):
        async with database.transaction(ONE, "read") as tx:
            await tx.people.ensure_tenant("acme", "console", "acme", (), datetime(2026, 5, 4, tzinfo=UTC))


async def test_what_has_to_be_alone_is_refused_in_any_other_mode(database: PostgresDatabase) -> None:
    async with database.transaction(ONE) as shared:
        with pytest.raises(RuntimeError, match="alone"):
            shared.require_alone()
    async with database.transaction(ONE, "alone") as tx:
        tx.require_alone()


async def test_who_waits_for_long_is_told_to_try_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, database: PostgresDatabase
) -> None:
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(postgres, "LOCK_WAIT_SECONDS", 0.2)
    async with open_harness(settings) as harness:
        at = harness.workspace()
        hello = incoming(at, place_of("den", None, None), "alice", "hello", harness.clock.now(), id="hello")
        async with database.transaction(at.tenant_id, "alone"):
            with pytest.raises(Unavailable, match=BUSY):
                await harness.app.receive(at, [hello])
        assert (await harness.app.receive(at, [hello])).new


class Storm:
    """People who write, edit, delete, forget and move things in the same rooms at the same time. `said` has the word of
    each message that is stored, by its id; `gone` are the words that were erased. Each is in one message alone."""

    def __init__(self, harness: AppHarness, seed: int) -> None:
        self._harness, self._random = harness, random.Random(seed)
        self._at = harness.workspace()
        self.said: dict[str, str] = {}
        self.gone: set[str] = set()

    async def run(self) -> None:
        """Everybody does what they do, side by side, while it is indexed."""
        await asyncio.gather(*(self._act_as(name) for name in PEOPLE), *(self._index() for _ in range(2)))
        await self._harness.app.turns.settle()
        await self._harness.app.indexer.catch_up(self._at.tenant_id)

    async def _act_as(self, name: str) -> None:
        own: list[str] = []
        for number in range(ACTS):
            with suppress(Refused, NotFound):  # what another one has just moved
                await self._act(name, f"{name}{number:02}", own)

    async def _act(self, name: str, event: str, own: list[str]) -> None:
        harness, room = self._harness, self._random.choice(ROOMS)
        match self._random.choice(("say", "ask", "edit", "delete", "forget", "fact", "project", "consent")):
            case "edit" if own:
                id = self._random.choice(own)
                await harness.change(id, f"I prefer zq{event}")
                self.gone.add(self.said[id])
                self.said[id] = f"zq{event}"
            case "delete" | "forget" as act if own:
                id = own.pop(self._random.randrange(len(own)))
                if act == "delete":
                    await harness.change(id, None)
                else:
                    await harness.command_without_indexing(name, f"/nexus forget message {id} --yes", room=room)
                self.gone.add(self.said.pop(id))
            case "fact":
                await harness.command_without_indexing(name, f"/nexus fact set day {event} --yes", room=room)
            case "project":
                await harness.command_without_indexing(name, f"/nexus project create p{event}", room=room)
                await harness.command_without_indexing(name, f"/nexus project assign p{event} --yes", room=room)
            case "consent":
                for act in ("opt-out", "opt-in"):
                    await harness.command_without_indexing(f"quiet {name}", f"/nexus {act}", dm="nexus")
            case act:
                text = "@nexus what of {}?" if act == "ask" else "I prefer {}"
                batch = [
                    incoming(
                        self._at,
                        place_of(each, None, None),
                        name,
                        text.format(f"zq{event}{each}"),
                        harness.clock.tick(),
                        id=f"{event}{each}",
                    )
                    for each in self._random.sample(ROOMS, 2)
                ]
                await harness.app.receive(self._at, batch)
                own += [each.id for each in batch]
                self.said |= {each.id: f"zq{each.id}" for each in batch}

    async def _index(self) -> None:
        for _ in range(ACTS):
            await self._harness.app.indexer.catch_up(self._at.tenant_id)


@pytest.mark.parametrize("seed", range(3))
async def test_writers_of_every_kind_run_beside_each_other_and_nothing_is_lost_or_kept(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    overtaken: list[str] = []

    class Recorded(Overtaken):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            overtaken.append(str(self))

    monkeypatch.setattr(postgres, "Overtaken", Recorded)  # the database ended one of two that waited for each other
    for room in ROOMS:
        for name in PEOPLE:
            await harness.say(name, "hello", room=room)
    storm = Storm(harness, seed)
    await storm.run()
    assert overtaken == []
    assert storm.said
    assert storm.gone
    texts = await all_texts(settings)
    assert {word for word in storm.said.values() if word not in texts["messages"]} == set(), "lost"
    kept = {(word, table) for word in storm.gone for table, text in texts.items() if word in text.split()}
    assert kept == set(), "kept"


async def all_texts(settings: Settings) -> dict[str, str]:
    """What is in each table, with a space between words."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        names = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {
            name: await connection.fetchval(
                f"SELECT coalesce(string_agg(regexp_replace(t::text, '[^a-z0-9]+', ' ', 'g'), ' '), '') FROM {name} t"
            )
            for (name,) in names
        }
    finally:
        await connection.close()

"""The rows that `make bench-scale` inserts equal those of the real writer, column by column."""

import asyncpg
import numpy as np
import pytest

from bot.script.places import incoming, place_of
from composer.memory.index import episode_entries, extracted_memories, memory_entries
from composer.model import room_id
from composer.settings import Settings
from tests.bench.planted import PlantedEmbedder, near, records_of, scopes_of
from tests.support.harness import open_harness

MESSAGES = ("hello there, everyone", "I prefer tea in the morning", "the build of main.py is green again")


async def test_benchmark_rows_equal_those_of_the_real_writer(settings: Settings) -> None:
    embedder = PlantedEmbedder()
    embedder.next = near(np.random.default_rng(1), embedder.next[np.newaxis], 0.5)[0]
    async with open_harness(settings, embedder=embedder) as harness:
        workspace, place = harness.workspace(), place_of("general", None, None)
        batch = [
            incoming(workspace, place, "alice", text, harness.clock.tick(), id=f"m{n}")
            for n, text in enumerate(MESSAGES)
        ]
        await harness.app.receive(workspace, batch, answer=False)
        async with harness.app.database.transaction(workspace.tenant_id) as tx:
            messages = await tx.recall.unindexed_messages(10)
        await harness.app.indexer.catch_up(workspace.tenant_id)
    memories = [memory for message in messages for memory in extracted_memories(message)]
    assert len(messages) == len(MESSAGES)
    assert len(memories) == 1
    findable = [entry for message in messages for entry in episode_entries(message)]
    findable += [entry for memory in memories for entry in memory_entries(memory)]
    room = room_id(workspace, "general")
    vectors = np.tile(embedder.next, (len(findable), 1))
    made = records_of(workspace.tenant_id, [(room, message) for message in messages], memories, findable, vectors)
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.set_type_codec("vector", encoder=bytes, decoder=bytes, schema="public", format="binary")
        for table, records in made.items():
            await connection.execute(
                f"CREATE TEMP TABLE made_{table} (LIKE public.{table} INCLUDING DEFAULTS INCLUDING GENERATED)"
            )
            await connection.copy_records_to_table(f"made_{table}", **records)
            one, other = f"SELECT t::text FROM made_{table} AS t", f"SELECT t::text FROM public.{table} AS t"
            assert await connection.fetch(f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})") == []
            assert await connection.fetchval(f"SELECT count(*) FROM made_{table}") > 0, table
    finally:
        await connection.close()


@pytest.mark.parametrize("size", [10_000, 100_000, 1_000_000])
def test_scopes_have_their_stated_size_and_leave_rows_for_others(size: int) -> None:
    scopes = scopes_of(size)
    assert sum(scope.rows for scope in scopes) <= size
    assert len({name for scope in scopes for name in scope.rooms}) == sum(len(scope.rooms) for scope in scopes)
    assert {scope.rows for scope in scopes} >= {100, 1_000}

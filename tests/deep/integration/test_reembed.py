"""Re-embedding while Nexus serves: nothing is lost or mixed, and an interrupted run continues."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import numpy as np
import pytest
from structlog.testing import capture_logs

from composer.errors import BadInput, Misconfigured, Refused, Unavailable
from composer.memory.index import embedding_text
from composer.memory.reembed import REEMBEDDING_BATCH, identity_of, reembed
from composer.ports.models import Vectors
from composer.ports.reembedding import EmbedderIdentity
from composer.settings import Settings
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.reembedding import PostgresReembedding
from composer.stores.models.openai_embedder import OpenAIEmbedder
from tests.support.databases import service_url
from tests.support.embedder import HashedWords, Unmetered
from tests.support.harness import AppHarness, open_harness
from tests.support.model_server import ModelServer
from tests.support.program import forked

MESSAGES = ("the launch of apollo is on friday", "the budget was 400 euros", "I prefer tea in the morning")
Before = Callable[[int], Awaitable[None]]


class Wide:
    """Another embedder of another width, which runs `before` ahead of each call."""

    name = "wide"

    def __init__(self, width: int = 1536, before: Before | None = None) -> None:
        self.width = width
        self.asked: list[str] = []
        self._before = before
        self._calls = 0

    async def load(self) -> None:
        """Nothing to load."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self._calls += 1
        if self._before is not None:
            await self._before(self._calls)
        self.asked += texts
        hashed = await HashedWords().embed(texts)
        wide = np.tile(hashed, (1, -(-self.width // hashed.shape[1])))[:, : self.width][:, ::-1]
        return np.ascontiguousarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), dtype=np.float32)


@asynccontextmanager
async def reembedding(settings: Settings, embedder: Any) -> AsyncIterator[tuple[PostgresReembedding, PostgresDatabase]]:
    assert settings.database_url is not None
    database = await PostgresDatabase.open(service_url(settings.database_url), connections=2)
    try:
        database.use_embedder(embedder.name, embedder.width)
        yield PostgresReembedding(service_url(settings.database_url), database), database
    finally:
        await database.close()


async def reembed_all(settings: Settings, embedder: Any) -> int:
    async with reembedding(settings, embedder) as (vectors, database):
        return await reembed(vectors, database, identity_of(embedder), Unmetered(embedder))


async def stored(settings: Settings) -> list[tuple[str, list[float] | None, str | None, str | None]]:
    """(text, vector, signs, magnitudes) of every item."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        rows = await connection.fetch(
            "SELECT coalesce(m.text, y.text) AS text, r.embedding::text, r.signature::text, r.magnitude::text"
            " FROM recall_index AS r"
            " LEFT JOIN episodes AS e ON e.id = r.id LEFT JOIN messages AS m ON m.id = e.message_id"
            " LEFT JOIN memories AS y ON y.id = r.id ORDER BY text, r.id"
        )
        assert await connection.fetchval("SELECT count(*) FROM reembedded") == 0
    finally:
        await connection.close()
    return [(row[0], None if row[1] is None else json.loads(row[1]), row[2], row[3]) for row in rows]


async def assert_vectors_of(settings: Settings, embedder: Any) -> None:
    rows = await stored(settings)
    assert rows
    for text, vector, signs, magnitudes in rows:
        (expected,) = await embedder.embed([embedding_text(text)])
        assert vector is not None, text
        assert np.allclose(vector, expected, atol=1e-6), text
        assert signs == "".join("1" if value > 0 else "0" for value in vector)
        far = 0.98 * np.linalg.norm(vector) / len(vector) ** 0.5
        assert magnitudes == "".join("1" if abs(value) > far else "0" for value in vector)


async def post_messages(harness: AppHarness) -> None:
    for number, text in enumerate(MESSAGES):
        await harness.say("alice", text, room="general", id=f"t{number}")


@pytest.mark.parametrize("width", [8, 384, 1536])
async def test_all_vectors_are_switched_whatever_their_width(settings: Settings, width: int) -> None:
    wide = Wide(width)
    async with open_harness(settings, embedder=HashedWords()) as harness:
        await post_messages(harness)
        await harness.say("zoe", "another tenant speaks", room="general", workspace="other")
    assert await reembed_all(settings, wide) == len(await stored(settings))
    await assert_vectors_of(settings, wide)
    async with open_harness(settings, embedder=wide) as harness:
        await harness.say("alice", "said afterwards", room="general")
    await assert_vectors_of(settings, wide)


async def test_a_process_with_the_old_embedder_stores_no_vector_and_reports_it(settings: Settings) -> None:
    async with open_harness(settings, embedder=HashedWords()) as harness:
        await post_messages(harness)
        before = await harness.compose("alice", "when is the launch?", room="general")
        tenant = harness.workspace().tenant_id
        await reembed_all(settings, Wide())
        with capture_logs() as logs:
            after = await harness.compose("alice", "when is the launch?", room="general")
        assert before.conversation == after.conversation
        assert [entry["event"] for entry in logs if entry["event"].startswith("recall")] == ["recall.words_only"]
        with pytest.raises(Misconfigured, match="another embedder since nexus reembed: restart this process"):
            await harness.say("alice", "the launch is off", room="general")
        composed = await harness.compose("bob", "is the launch off?", room="general")
        assert "the launch is off" in json.dumps(composed.prompt.as_json()), "it is still found by its words"
        async with harness.app.database.transaction(tenant, "read") as tx:
            assert (await tx.maintenance.backlog()).indexing == (0, 1), (
                "the message is stored and findable but has no vector"
            )
    with pytest.raises(Misconfigured, match=r"vectors of the embedder wide \(1536 dimensions\).* nexus reembed"):
        async with open_harness(settings, embedder=HashedWords()):
            pass
    async with open_harness(settings, embedder=Wide()) as harness:
        await harness.app.indexer.catch_up(tenant)
    await assert_vectors_of(settings, Wide())


async def test_messages_edits_and_erasures_during_a_run_are_taken_into_account(settings: Settings) -> None:
    async with open_harness(settings, embedder=HashedWords()) as harness:
        await post_messages(harness)

        async def meanwhile(call: int) -> None:
            if call == 1:
                await harness.say("bob", "this came in between", room="general")
                await harness.change("t0", "the launch of apollo is on monday")
                await harness.change("t1", None)
                composed = await harness.compose("carol", "what came in between?", room="general")
                assert "this came in between" in json.dumps(composed.prompt.as_json())

        wide = Wide(before=meanwhile)
        await reembed_all(settings, wide)
    texts = {text for text, _, _, _ in await stored(settings)}
    assert {"this came in between", "the launch of apollo is on monday"} <= texts
    assert not {MESSAGES[0], MESSAGES[1]} & texts
    await assert_vectors_of(settings, Wide())


async def test_a_run_that_the_embedder_interrupted_continues(settings: Settings) -> None:
    async def broken(call: int) -> None:
        if call == 2:
            raise Unavailable("The embedder does not answer.")

    async with open_harness(settings, embedder=HashedWords()) as harness:
        await harness.say_all(
            "alice", [f"number {number} is here" for number in range(REEMBEDDING_BATCH + 5)], room="general"
        )
        before = await stored_in_order(settings)
        with pytest.raises(Unavailable, match="does not answer"):
            await reembed_all(settings, Wide(before=broken))
        assert await stored_in_order(settings) == before, "the old vectors stay in use"
        async with reembedding(settings, Wide()) as (vectors, _):
            status = await vectors.status()
        assert (status.current, status.target) == (
            EmbedderIdentity("hashed-words", 384),
            EmbedderIdentity("wide", 1536),
        )
        assert (status.prepared, status.items, status.running) == (REEMBEDDING_BATCH, REEMBEDDING_BATCH + 5, False)
        again = Wide()
        await reembed_all(settings, again)
        assert len(again.asked) == 5, "finished vectors are not made again"
    await assert_vectors_of(settings, Wide())


async def stored_in_order(settings: Settings) -> Any:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return await connection.fetch("SELECT id, embedding::text, signature FROM recall_index ORDER BY id")
    finally:
        await connection.close()


async def test_vectors_prepared_for_another_embedder_are_dropped(settings: Settings) -> None:
    async def broken(call: int) -> None:
        if call == 2:
            raise Unavailable("gone")

    async with open_harness(settings, embedder=HashedWords()) as harness:
        await harness.say_all(
            "alice", [f"number {number} is here" for number in range(REEMBEDDING_BATCH + 1)], room="general"
        )
    with pytest.raises(Unavailable):
        await reembed_all(settings, Wide(1536, broken))
    narrow = Wide(8)
    await reembed_all(settings, narrow)
    assert len(narrow.asked) == REEMBEDDING_BATCH + 1
    await assert_vectors_of(settings, Wide(8))


async def test_the_switch_is_atomic(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(settings, embedder=HashedWords()) as harness:
        await post_messages(harness)
        await harness.say("zoe", "another tenant speaks", room="general", workspace="other")
    before = await stored_in_order(settings)
    from sql import loader  # noqa: PLC0415

    broken = dict(loader.queries())
    fails = broken["deployment_set"].source.replace("key = :key AND", "1 / (:value::jsonb IS NOT NULL)::int = 0 AND", 1)
    broken["deployment_set"] = loader.parse_query("deployment_set", fails)
    with monkeypatch.context() as patched:
        patched.setattr("composer.stores.database.statements.queries", lambda: broken)
        with pytest.raises(asyncpg.DivisionByZeroError):
            await reembed_all(settings, Wide())
    assert await stored_in_order(settings) == before
    async with open_harness(settings, embedder=HashedWords()) as harness:
        await harness.say("alice", "the old one goes on", room="general")
    await reembed_all(settings, Wide())
    await assert_vectors_of(settings, Wide())


async def test_a_finished_and_a_concurrent_run_are_reported(settings: Settings) -> None:
    async with open_harness(settings, embedder=HashedWords()) as harness:
        await post_messages(harness)
    with pytest.raises(BadInput, match="The stored vectors are of hashed-words"):
        await reembed_all(settings, HashedWords())
    async with reembedding(settings, Wide()) as (vectors, _), vectors.exclusive():
        assert (await vectors.status()).running
        with pytest.raises(Refused, match="Another nexus reembed is running"):
            await reembed_all(settings, Wide())


async def test_a_killed_run_continues(settings: Settings) -> None:
    async with open_harness(settings, embedder=HashedWords()) as harness:
        await harness.say_all(
            "alice", [f"number {number} is here" for number in range(REEMBEDDING_BATCH + 3)], room="general"
        )
    async with ModelServer(width=8) as server:
        environment = os.environ | {
            "NEXUS_HOME": str(settings.home),
            "NEXUS_DATABASE_URL": settings.database_url or "",
            "NEXUS_REDIS_URL": settings.redis_url or "",
            "NEXUS_EMBEDDER": "other",
            "NEXUS_OPENAI_BASE_URL": server.url,
        }

        async def run(*options: str) -> asyncio.subprocess.Process:
            pipe = asyncio.subprocess.PIPE
            return await asyncio.create_subprocess_exec(*forked("reembed", *options), stdout=pipe, env=environment)

        first = await run("--json")
        assert first.stdout is not None
        while json.loads(await first.stdout.readline())["prepared"] < REEMBEDDING_BATCH:
            pass
        first.send_signal(signal.SIGKILL)
        await first.communicate()
        status = await run("--status", "--json")
        progress = json.loads((await status.communicate())[0])
        assert progress["items"] == REEMBEDDING_BATCH + 3
        asked = len(server.requests)
        second = await run()
        out, _ = await second.communicate()
        assert second.returncode == 0
        embedder = OpenAIEmbedder(server.url, "", "other")
        if progress["next"] is not None:  # it may have been finished already when it was killed
            assert progress["prepared"] >= REEMBEDDING_BATCH
            assert f"All {REEMBEDDING_BATCH + 3} items now have vectors of other (8 dimensions)." in out.decode()
            made = [text for request in server.requests[asked:] for text in request.body["input"]]
            assert len([text for text in made if text != "width"]) == REEMBEDDING_BATCH + 3 - progress["prepared"]
        await assert_vectors_of(settings, embedder)
        await embedder.close()
        connection = await asyncpg.connect(settings.database_url)
        recorded = await connection.fetch("SELECT DISTINCT kind, model FROM model_usage")
        await connection.close()
        assert [tuple(row) for row in recorded] == [("embeddings", "other")]

"""The cache or the database fails during a conversation and recovers: nothing is lost, stale or answered twice."""

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from structlog.testing import capture_logs

from bot.commands.table import run_command
from bot.console.doctor import run_doctor
from bot.script.places import incoming
from composer.errors import Unavailable
from composer.model import Agent, Conversation, Message, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.ports.working_cache import Appended
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from composer.stores.database.working_cache import RedisWorkingCache
from composer.stores.embedded.servers import EmbeddedServers, Servers
from tests.support.canaries import place
from tests.support.databases import copy_cluster
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import TIMEOUT_SECONDS, until

ROOM = {"room": "general"}


@dataclass
class OwnServers:
    """Servers of this module alone, to stop and start."""

    home: Path
    servers: EmbeddedServers
    where: Servers

    def process(self, name: str) -> psutil.Process:
        return psutil.Process(int((self.home / f"{name}.lock").read_text()))

    def kill(self, name: str) -> None:
        server = self.process(name)
        family = [server, *server.children(recursive=True)]
        for process in family:
            process.kill()
        psutil.wait_procs(family, timeout=TIMEOUT_SECONDS)

    def start(self) -> None:
        self.servers.start()


@pytest.fixture(scope="module")
def own_servers(cluster: Path) -> Iterator[OwnServers]:
    home = copy_cluster(Path(tempfile.mkdtemp(prefix="nexus-outage-")), cluster)
    servers = EmbeddedServers(home)
    try:
        yield OwnServers(home, servers, servers.start())
    finally:
        servers.stop()
        shutil.rmtree(home, ignore_errors=True)


@dataclass
class Model:
    """Answer with `line`; if `waits` is set, pause after the first word until released."""

    line: str = "noted"
    waits: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    on: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        yield Chunk(text=self.line)
        self.begun.set()
        if self.waits:
            await self.on.wait()
        yield Chunk(text=" indeed", usage=Usage(1, 1))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
async def harness(own_servers: OwnServers, model: Model, request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An app on these servers, in its own workspace; the servers are running again when the test ends."""
    await asyncio.to_thread(own_servers.start)
    settings = Settings(
        home=own_servers.home, database_url=own_servers.where.database_url, redis_url=own_servers.where.redis_url
    )
    async with open_harness(settings, model=model) as harness:
        yield AppHarness(harness.app, harness.delivery, harness.clock, request.node.name[:60])
        await asyncio.to_thread(own_servers.start)


async def post_messages(harness: AppHarness) -> None:
    """Post enough messages that the view has more than the last one."""
    await harness.say("alice", "we decided to deploy on Fridays", **ROOM)
    await harness.say("bob", "and to write it down", **ROOM)
    await harness.ask("alice", "@nexus when do we deploy?", **ROOM)


async def prompt(harness: AppHarness) -> list[tuple[str, str]]:
    composed = await harness.compose("alice", "and why?", **ROOM)
    return [(message.role, message.content) for message in composed.prompt.role_messages]


async def view(harness: AppHarness) -> tuple[Conversation, list[Message] | None]:
    """The room, and what the cache holds of it that is valid."""
    composed = await harness.compose("alice", "?", **ROOM)
    return composed.conversation, await harness.app.cache.read(composed.conversation, 60)


async def backlog(harness: AppHarness) -> int:
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        return sum((await tx.maintenance.backlog()).indexing)


def events(logs: Sequence[Any]) -> list[str]:
    return [log["event"] for log in logs if log["log_level"] == "warning"]


# --- the cache -------------------------------------------------------------------------------------------------------


async def test_without_the_cache_the_log_gives_the_same_prompt(harness: AppHarness, own_servers: OwnServers) -> None:
    await post_messages(harness)
    with capture_logs() as logs:
        cached = await prompt(harness)
    assert events(logs) == []
    assert (await view(harness))[1] is not None
    own_servers.kill("valkey")
    with capture_logs() as logs:
        assert await prompt(harness) == cached
        reply = await harness.ask("alice", "@nexus really?", **ROOM)
    assert reply.text == "noted indeed"
    assert not reply.failed
    assert "working.cache_unavailable" in events(logs)
    assert "Fridays" in (reply.prompt or "")
    assert harness.delivery.delays == []


async def test_the_cache_is_used_again_after_it_recovers(harness: AppHarness, own_servers: OwnServers) -> None:
    await post_messages(harness)
    own_servers.kill("valkey")
    await harness.say("bob", "said while the cache was away", **ROOM)
    missed = await prompt(harness)
    await asyncio.to_thread(own_servers.start)
    with capture_logs() as logs:
        assert await prompt(harness) == missed
        conversation, cached = await view(harness)
    assert events(logs) == []
    assert cached is not None
    assert [m.text for m in cached][-1] == "said while the cache was away"
    await harness.say("bob", "and said after", **ROOM)
    grown, cached = await view(harness)
    assert grown.version == conversation.version + 1
    assert cached is not None
    assert [m.text for m in cached][-1] == "and said after"


async def test_a_hanging_cache_times_out_and_serves_nothing_stale_afterwards(
    harness: AppHarness, own_servers: OwnServers
) -> None:
    await post_messages(harness)
    before = (await view(harness))[0]
    own_servers.process("valkey").send_signal(signal.SIGSTOP)
    try:
        with capture_logs() as logs:
            await harness.say("bob", "said while the cache hung", id="hung", **ROOM)
            await harness.change("hung", "said otherwise")
            expected = await prompt(harness)
        assert "working.cache_unavailable" in events(logs)
    finally:
        own_servers.process("valkey").send_signal(signal.SIGCONT)
    after, cached = await view(harness)
    assert after.version > before.version
    assert cached is not None
    assert [m.text for m in cached][-1] == "said otherwise"
    assert await prompt(harness) == expected
    assert "said otherwise" in str(expected)


@pytest.mark.parametrize("lost", ["append", "replace", "drop", "erase"])
async def test_a_lost_cache_write_never_shows_a_stale_view(
    harness: AppHarness, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may die between the commit and the cache's write, or the write may not arrive."""
    await post_messages(harness)
    await harness.say("bob", "first words", id="changing", **ROOM)
    await view(harness)

    async def write_lost(*_: object) -> None:
        """The write is lost."""

    with monkeypatch.context() as patched:
        patched.setattr(RedisWorkingCache, lost, write_lost)
        await harness.say("carol", "one more", **ROOM)
        await harness.change("changing", "other words")
        await harness.say("carol", "and one more", **ROOM)
    shown = str(await prompt(harness))
    assert "first words" not in shown
    for text in ("other words", "one more", "and one more", "Fridays"):
        assert text in shown
    await harness.change("changing", None)
    assert "other words" not in str(await prompt(harness))


async def test_a_late_cache_write_does_not_restore_an_older_view(harness: AppHarness) -> None:
    await post_messages(harness)
    old, messages = await view(harness)
    assert messages is not None
    await harness.say("bob", "newer", id="newer", **ROOM)
    await view(harness)
    await harness.app.cache.replace(old, messages)
    assert "newer" in str(await prompt(harness))
    again = Appended(old.id, old.version, old.version + 1, (messages[-1],))
    await harness.app.cache.append([again])  # applied a second time
    conversation, cached = await view(harness)
    assert cached is not None
    assert [m.text for m in cached].count(messages[-1].text) == 1
    assert conversation.version == old.version + 1


# --- the database ----------------------------------------------------------------------------------------------------


async def test_a_database_outage_is_reported_in_one_sentence(harness: AppHarness, own_servers: OwnServers) -> None:
    await post_messages(harness)
    own_servers.kill("postgres")
    sentence = r"^The database does not answer; try again in a moment\.$"
    with pytest.raises(Unavailable, match=sentence):
        await harness.say("alice", "@nexus are you there?", id="unheard", **ROOM)
    with pytest.raises(Unavailable, match=sentence):
        await harness.command("alice", "/nexus fact list", **ROOM)
    with pytest.raises(Unavailable, match=sentence):
        await prompt(harness)
    assert len(harness.delivery.replies) == 1
    await asyncio.to_thread(own_servers.start)
    reply = await harness.ask("alice", "@nexus are you there?", id="unheard", **ROOM)
    assert reply.text == "noted indeed"
    log = [m.text for m in (await view(harness))[1] or []]
    assert log.count("@nexus are you there?") == 1


async def test_a_turn_interrupted_by_a_database_outage_is_answered_once(
    harness: AppHarness, own_servers: OwnServers, model: Model
) -> None:
    model.waits = True
    asking = asyncio.create_task(harness.ask("alice", "@nexus when?", id="asked", **ROOM))
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await model.begun.wait()
    own_servers.kill("postgres")
    model.on.set()
    await until(lambda: harness.delivery.delays)
    assert harness.delivery.replies == []
    await asyncio.to_thread(own_servers.start)
    reply = await asyncio.wait_for(asking, TIMEOUT_SECONDS)
    assert (reply.text, reply.failed) == ("noted indeed", False)
    assert len(harness.delivery.delays) == 1, "the same delay is reported once"
    delay = harness.delivery.delays[0]
    assert delay.endswith("does not answer; try again in a moment. Your message is stored and will be answered.")
    assert [m.text for m in (await view(harness))[1] or []] == ["@nexus when?", "noted indeed"]
    again = await harness.ask("alice", "@nexus and again?", **ROOM)
    assert again.text == "noted indeed"


async def test_indexing_continues_after_the_database_recovers(harness: AppHarness, own_servers: OwnServers) -> None:
    indexing = asyncio.create_task(harness.app.indexer.run())
    try:
        await post_messages(harness)
        own_servers.kill("postgres")
        harness.app.indexer.due(harness.workspace().tenant_id)
        with capture_logs() as logs:
            await until(lambda: "index.retrying" in events(logs))
        await asyncio.to_thread(own_servers.start)
        here = harness.workspace()
        message_in = incoming(here, place(ROOM), "dave", "we decided to ship the wombat release", harness.clock.tick())
        await harness.app.receive(here, [message_in])
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while await backlog(harness):  # noqa: ASYNC110 (the indexer works in the background)
                await asyncio.sleep(0.01)
        found = await run_command(
            harness.app,
            here,
            incoming(here, place(ROOM), "alice", "/nexus recall wombat release", harness.clock.tick()),
        )
        assert "wombat" in found.text
        assert not indexing.done()
    finally:
        indexing.cancel()
        await asyncio.gather(indexing, return_exceptions=True)


async def test_doctor_blames_a_database_that_is_away_and_nothing_else(settings: Settings) -> None:
    away = settings.model_copy(update={"database_url": ServerUrl("postgresql://u:p@127.0.0.1:1/nosuch")})
    assert {check.name for check in await run_doctor(away) if check.ok is False} == {"database"}


async def test_an_app_restarts_its_own_servers(cluster: Path, model: Model) -> None:
    home = copy_cluster(Path(tempfile.mkdtemp(prefix="nexus-revive-")), cluster)
    try:
        async with open_harness(Settings(home=home, embedder="minilm"), model=model) as harness:
            await harness.ask("alice", "@nexus hello", **ROOM)
            own = OwnServers(home, EmbeddedServers(home), Servers(ServerUrl(), ServerUrl()))
            dead = [own.process(name).pid for name in ("postgres", "valkey")]
            for name in ("postgres", "valkey"):
                own.kill(name)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while True:
                    try:
                        reply = await harness.ask("alice", "@nexus again", id="again", **ROOM)
                        break
                    except Unavailable:
                        await asyncio.sleep(0.05)  # the next attempt is the condition
            assert reply.text == "noted indeed"
            assert [own.process(name).pid for name in ("postgres", "valkey")] != dead
    finally:
        shutil.rmtree(home, ignore_errors=True)

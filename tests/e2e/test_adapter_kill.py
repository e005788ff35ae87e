"""kill -9 of a process that serves an adapter, at each step of a turn: nothing is lost, and nothing is seen twice."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from composer.ingest.recording import privacy_notice
from composer.model import RecordingPolicy
from composer.settings import Settings
from tests.support import fork_server, runs
from tests.support.adapter_crash import PIECES, STEPS
from tests.support.discord.server import DiscordServer
from tests.support.program import ROOT
from tests.support.slack.harness import office_on
from tests.support.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.e2e

SAID = ["hello", "@nexus when is the launch?", "and this is said after the question"]
Child = asyncio.subprocess.Process
Say = Callable[[str], Awaitable[object]]
Shown = Callable[[], list[str]]


@asynccontextmanager
async def serving(adapter: str, step: str, given: dict[str, Any]) -> AsyncIterator[Child]:
    """A process that serves an adapter."""
    words = [*fork_server.command("tests.support.adapter_crash", runs.current()), adapter, step, json.dumps(given)]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdin=pipe, stdout=pipe)
    try:
        await told(child, "up")
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def told(child: Child, word: str) -> None:
    """Wait until the process writes a word; its log comes before it."""
    assert child.stdout is not None
    while line := await child.stdout.readline():
        if line.decode().strip() == word:
            return
    raise AssertionError(f"it ended before it said '{word}'")


async def holds(settings: Settings, query: str, count: int) -> None:
    """Wait until a query finds so many rows."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(await connection.fetch(query)) < count:  # noqa: ASYNC110 (another process makes it so)
                await asyncio.sleep(0.02)
    finally:
        await connection.close()


async def texts(settings: Settings) -> list[str]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return [row["text"] for row in await connection.fetch("SELECT text FROM messages ORDER BY at, seq")]
    finally:
        await connection.close()


async def cut_off(adapter: str, step: str, settings: Settings, given: dict[str, Any], say: Say, shown: Shown) -> None:
    """A process is killed at a step, and the next one makes good."""
    given |= {
        "home": str(settings.home),
        "database_url": settings.database_url,
        "redis_url": settings.redis_url,
    }
    said = "SELECT FROM messages WHERE agent_id IS NULL"
    async with serving(adapter, step, given) as child:
        await say(SAID[0])
        await holds(settings, said, 1)
        assert child.stdin is not None
        child.stdin.write(b"plant\n")
        await told(child, "planted")
        await say(SAID[1])
        async with asyncio.timeout(TIMEOUT_SECONDS):
            assert await child.wait() == -signal.SIGKILL
    await say(SAID[2])
    async with serving(adapter, "none", given):
        await holds(settings, "SELECT FROM turns WHERE state = 'sent' AND failure IS NULL", 1)
        await holds(settings, said, 3)
        await holds(settings, "SELECT FROM conversations WHERE notice_id <> ''", 1)
    answer, notice = "".join(PIECES), privacy_notice(RecordingPolicy.ON)
    assert sorted(await texts(settings)) == sorted([*SAID, answer])
    assert sorted(shown()) == sorted([answer, notice])


@pytest.mark.parametrize("step", STEPS)
async def test_discord(settings: Settings, step: str) -> None:
    async with DiscordServer() as server:
        guild = await server.add_guild()
        room, ada = await server.add_channel(guild, "general"), await server.add_member(guild, "Ada")
        given = {"api": server.api, "gateway": server.gateway_url, "tokens": {"discord_token": server.token}}
        await cut_off(
            "discord",
            step,
            settings,
            given,
            lambda text: server.post(room, ada, text.replace("@nexus", server.bot.mention)),
            lambda: [message.content for message in server.messages(room, server.bot)],
        )


@pytest.mark.parametrize("step", STEPS)
async def test_slack(settings: Settings, step: str) -> None:
    async with office_on(settings) as office:
        tokens = {"slack_bot_token": office.team.bot_token, "slack_app_token": office.slack.app_token}
        await cut_off(
            "slack",
            step,
            settings,
            {"base_url": office.slack.base_url, "tokens": tokens},
            lambda text: office.slack.post(
                office.general, office.alice, text.replace("@nexus", f"<@{office.team.bot_user}>")
            ),
            lambda: [message["text"] for message in (*office.answers(), *office.notices())],
        )

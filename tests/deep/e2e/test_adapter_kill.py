"""kill -9 of a process that serves an adapter, at each step of a turn: nothing is lost and nothing is posted twice."""

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

MESSAGES = ["hello", "@nexus when is the launch?", "and this is said after the question"]
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
        await until_printed(child, "up")
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def until_printed(child: Child, word: str) -> None:
    """Wait until the process prints a word; log lines before it are skipped."""
    assert child.stdout is not None
    while line := await child.stdout.readline():
        if line.decode().strip() == word:
            return
    raise AssertionError(f"it ended before it printed '{word}'")


async def until_rows(settings: Settings, query: str, count: int) -> None:
    """Wait until a query finds this many rows."""
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


async def kill_at(adapter: str, step: str, settings: Settings, given: dict[str, Any], say: Say, shown: Shown) -> None:
    """Kill a process at a step, and check that the next one resumes."""
    given |= {
        "home": str(settings.home),
        "database_url": settings.database_url,
        "redis_url": settings.redis_url,
    }
    from_people = "SELECT FROM messages WHERE agent_id IS NULL"
    async with serving(adapter, step, given) as child:
        await say(MESSAGES[0])
        await until_rows(settings, from_people, 1)
        assert child.stdin is not None
        child.stdin.write(b"plant\n")
        await until_printed(child, "planted")
        await say(MESSAGES[1])
        async with asyncio.timeout(TIMEOUT_SECONDS):
            assert await child.wait() == -signal.SIGKILL
    await say(MESSAGES[2])
    async with serving(adapter, "none", given):
        await until_rows(settings, "SELECT FROM turns WHERE state = 'sent' AND failure IS NULL", 1)
        await until_rows(settings, from_people, 3)
        await until_rows(settings, "SELECT FROM conversations WHERE notice_id <> ''", 1)
    answer, notice = "".join(PIECES), privacy_notice(RecordingPolicy.ON)
    assert sorted(await texts(settings)) == sorted([*MESSAGES, answer])
    assert sorted(shown()) == sorted([answer, notice])


@pytest.mark.parametrize("step", STEPS)
async def test_a_killed_discord_process_is_resumed_by_the_next(settings: Settings, step: str) -> None:
    async with DiscordServer() as server:
        guild = await server.add_guild()
        room, ada = await server.add_channel(guild, "general"), await server.add_member(guild, "Ada")
        given = {"api": server.api, "gateway": server.gateway_url, "tokens": {"discord_token": server.token}}
        await kill_at(
            "discord",
            step,
            settings,
            given,
            lambda text: server.post(room, ada, text.replace("@nexus", server.bot.mention)),
            lambda: [message.content for message in server.messages(room, server.bot)],
        )


@pytest.mark.parametrize("step", STEPS)
async def test_a_killed_slack_process_is_resumed_by_the_next(settings: Settings, step: str) -> None:
    async with office_on(settings) as office:
        tokens = {"slack_bot_token": office.team.bot_token, "slack_app_token": office.slack.app_token}
        await kill_at(
            "slack",
            step,
            settings,
            {"base_url": office.slack.base_url, "tokens": tokens},
            lambda text: office.slack.post(
                office.general, office.alice, text.replace("@nexus", f"<@{office.team.bot_user}>")
            ),
            lambda: [message["text"] for message in (*office.answers(), *office.notices())],
        )


REMINDED = 'Reminder from Ada: "stretch"'
DUE = """
INSERT INTO reminders (tenant_id, id, user_id, conversation_id, namespace, visibility, author, text, made_at, due_at)
SELECT c.tenant_id, gen_random_uuid(), m.user_id, c.id, c.namespace, 'public', 'Ada', 'stretch', now(), now()
FROM conversations AS c JOIN members AS m ON m.conversation_id = c.id WHERE c.kind = 'room'
"""


async def kill_at_reminder(
    adapter: str, step: str, settings: Settings, given: dict[str, Any], say: Say, shown: Shown
) -> None:
    """Kill a process at a step of posting a reminder, and check that it is posted once in the end."""
    given |= {"home": str(settings.home), "database_url": settings.database_url, "redis_url": settings.redis_url}
    async with serving(adapter, step, given) as child:
        await say(MESSAGES[0])
        await until_rows(settings, "SELECT FROM conversations WHERE notice_id <> ''", 1)
        assert child.stdin is not None
        child.stdin.write(b"plant\n")
        await until_printed(child, "planted")
        await execute(settings, DUE)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            assert await child.wait() == -signal.SIGKILL
    async with serving(adapter, "none", given):
        await until_rows(settings, "SELECT FROM turns WHERE state = 'sent' AND failure IS NULL", 1)
        await until_rows(settings, "SELECT FROM reminders WHERE state = 'ended'", 1)
    assert sorted(await texts(settings)) == sorted([MESSAGES[0], REMINDED])
    assert sorted(shown()) == sorted([REMINDED, privacy_notice(RecordingPolicy.ON)])


async def execute(settings: Settings, statement: str) -> None:
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


POSTING = ("storing", "posted", "marking")


@pytest.mark.parametrize("step", POSTING)
async def test_a_reminder_is_posted_once_on_discord_whatever_is_killed(settings: Settings, step: str) -> None:
    async with DiscordServer() as server:
        guild = await server.add_guild()
        room, ada = await server.add_channel(guild, "general"), await server.add_member(guild, "Ada")
        given = {"api": server.api, "gateway": server.gateway_url, "tokens": {"discord_token": server.token}}
        await kill_at_reminder(
            "discord",
            step,
            settings,
            given,
            lambda text: server.post(room, ada, text),
            lambda: [message.content for message in server.messages(room, server.bot)],
        )


@pytest.mark.parametrize("step", POSTING)
async def test_a_reminder_is_posted_once_on_slack_whatever_is_killed(settings: Settings, step: str) -> None:
    async with office_on(settings) as office:
        tokens = {"slack_bot_token": office.team.bot_token, "slack_app_token": office.slack.app_token}
        await kill_at_reminder(
            "slack",
            step,
            settings,
            {"base_url": office.slack.base_url, "tokens": tokens},
            lambda text: office.slack.post(office.general, office.alice, text),
            lambda: [message["text"] for message in (*office.answers(), *office.notices())],
        )

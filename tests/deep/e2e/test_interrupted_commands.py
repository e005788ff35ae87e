"""A command that the death of its process interrupts is finished by the next one if it erases, else answered as not
done; it never runs twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import asyncpg
import pytest

from bot.commands.command import CommandAnswer
from bot.commands.table import run_command
from composer.app import App
from composer.errors import Unavailable
from composer.model import Incoming, Workspace
from composer.repositories.requests import NamedRequest, Requests, RequestState
from composer.settings import Settings
from tests.support.discord.harness import Discord
from tests.support.interrupting import STAGES, DiscordStage, SlackStage, Stage, stage_of
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(90)

DONE: Final = "I did `/nexus {}`, but was restarted before I could answer."
RESPONSE_SECONDS: Final = 1801.0  # after which a command's address takes no answer
NOT_DONE: Final = "I was restarted before I could do `/nexus {}`, so nothing was done. Give the command again."
Given = tuple[str, Mapping[str, str | bool]]
REMEMBER: Final[Given] = ("remember", {"text": "the code is 7"})
FORGET: Final[Given] = ("forget", {"what": "everything"})
Runs = Callable[..., Awaitable[CommandAnswer]]

on_each_platform = pytest.mark.parametrize("stage", ["discord", "slack"], indirect=True)


@pytest.fixture
async def stage(settings: Settings, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with stage_of(request.param, settings) as stage:
        yield stage


@pytest.fixture
async def discord(settings: Settings) -> AsyncIterator[DiscordStage]:
    async with stage_of("discord", settings) as stage:
        assert isinstance(stage, DiscordStage)
        yield stage


def dies_in_command(*, after: bool) -> Runs:
    """Replace a command so that its process dies after or before the change is made."""

    async def run(
        app: App, workspace: Workspace, incoming: Incoming, *, preview: bool = False, **options: Any
    ) -> CommandAnswer:
        if after or preview:
            answer = await run_command(app, workspace, incoming, preview=preview, **options)
        if preview:
            return answer
        raise asyncio.CancelledError

    return run


async def rows(settings: Settings, query: str) -> list[Any]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def remembered(settings: Settings) -> list[Any]:
    return await rows(settings, "SELECT text FROM memories WHERE text LIKE 'the code%'")


async def are_begun(settings: Settings, count: int) -> bool:
    return len(await rows(settings, "SELECT caller FROM requests WHERE call IS NOT NULL")) >= count


async def all_answered(settings: Settings) -> bool:
    return not await are_begun(settings, 1)


async def interrupt(stage: Stage, monkeypatch: pytest.MonkeyPatch, *given: Given, after: bool = False) -> None:
    """Commands in which the process dies, before or after they make their change."""
    with monkeypatch.context() as patched:
        async with stage.running():
            patched.setattr(stage.runs, dies_in_command(after=after))
            for command, options in given:
                await stage.give(command, **options)
            await until(lambda: are_begun(stage.settings, len(given)))
            if after:
                await until(lambda: remembered(stage.settings))


async def restart(stage: Stage) -> None:
    """The next process, until it has answered all that the one before did not."""
    async with stage.running():
        await until(lambda: all_answered(stage.settings))


@pytest.mark.parametrize("stage", STAGES, indirect=True)
@pytest.mark.parametrize(("after", "answer"), [(False, NOT_DONE.format("remember")), (True, DONE.format("remember"))])
async def test_an_interrupted_command_is_explained_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, after: bool, answer: str
) -> None:
    await interrupt(stage, monkeypatch, REMEMBER, after=after)
    assert stage.answers() == []
    for _ in range(2):  # the second start finds nothing to resume
        await restart(stage)
    (found,) = stage.answers()
    assert found.startswith(answer)
    assert await remembered(stage.settings) == (["the code is 7"] if after else [])


@pytest.mark.parametrize("stage", STAGES, indirect=True)
@pytest.mark.parametrize(("after", "answer"), [(False, "Forgotten for good"), (True, DONE.format("forget"))])
async def test_an_interrupted_command_that_was_confirmed_by_a_button_is_finished_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, after: bool, answer: str
) -> None:
    # It was not recorded: nothing was done, or nothing was said of it.
    async def is_forgotten() -> bool:
        return not await rows(stage.settings, "SELECT id FROM messages WHERE text LIKE '%heron%'")

    with monkeypatch.context() as patched:
        async with stage.running() as running:
            await stage.say(running, "the heron is here")
            await stage.give(FORGET[0], **FORGET[1])
            await until(lambda: len(stage.answers()) == 1)
            await until(lambda: all_answered(stage.settings))
            patched.setattr(stage.runs, dies_in_command(after=after))
            await stage.confirm()
            await until(lambda: are_begun(stage.settings, 1))
            if after:
                await until(is_forgotten)
    assert await is_forgotten() is after
    for _ in range(2):
        await restart(stage)
    asked, found = stage.answers()
    assert "To confirm: /nexus forget everything --yes" in asked
    assert found.startswith(answer)
    assert await is_forgotten()


@on_each_platform
async def test_a_command_that_was_confirmed_by_a_button_is_recorded_and_answered(stage: Stage) -> None:
    async with stage.running() as running:
        await stage.say(running, "the heron is here")
        await stage.give(FORGET[0], **FORGET[1])
        await until(lambda: len(stage.answers()) == 1)
        await stage.confirm()
        await until(lambda: len(stage.answers()) == 2)
        await until(lambda: all_answered(stage.settings))
    assert await rows(stage.settings, "SELECT made IS NOT NULL FROM requests ORDER BY created_at") == [False, True]


async def test_a_command_that_only_asked_for_confirmation_was_not_run(
    discord: DiscordStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        async with discord.running() as here:
            for number in range(4):
                await discord.say(here, f"the heron is number {number}")
            patched.setattr(discord.runs, dies_in_command(after=True))
            await discord.give("forget", what="heron")
            await until(lambda: are_begun(discord.settings, 1))
            await until(lambda: has_ended(here))
    await restart(discord)
    (found,) = discord.answers()
    assert "4 messages and 0 other items" in found


async def has_ended(here: Discord) -> bool:
    """Whether the command has ended, in any way."""
    return not any("answer" in repr(task.get_coro()) for task in here.adapter._tasks)


async def test_the_answer_to_an_expired_discord_interaction_comes_by_dm(
    discord: DiscordStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await interrupt(discord, monkeypatch, REMEMBER)
    server = discord.server
    server.fail("POST /webhooks/", 404)
    await restart(discord)
    (notice,) = server.messages(server.dm(discord.ada), server.bot)
    assert notice.content == NOT_DONE.format("remember")
    assert await remembered(discord.settings) == []


@pytest.mark.parametrize("where", ["channel", "dm"])
async def test_the_answer_to_an_expired_slack_command_comes_where_it_was_given(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async with stage_of("slack", settings) as stage:
        await stage.enter(where)
        await interrupt(stage, monkeypatch, REMEMBER)
        assert isinstance(stage, SlackStage)
        await stage.office.slack.advance(RESPONSE_SECONDS)
        await restart(stage)
        (found,) = stage.answers()
        assert found == NOT_DONE.format("remember")


def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is unavailable for the first command that is finished."""
    hold, failed = Requests.hold, list[bool]()

    async def unavailable(requests: Requests, request: NamedRequest, process: int) -> RequestState:
        if not failed:
            failed.append(True)
            raise Unavailable("The database does not answer.")
        return await hold(requests, request, process)

    monkeypatch.setattr(Requests, "hold", unavailable)


@on_each_platform
async def test_interrupted_commands_are_finished_once_the_database_is_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing that was acknowledged is lost. They were taken over already, and nobody took them again.
    await interrupt(stage, monkeypatch, *(("remember", {"text": f"the code is {number}"}) for number in range(2)))
    fails_once(monkeypatch)
    await restart(stage)
    assert stage.answers() == [NOT_DONE.format("remember")] * 2

"""A command interrupted by the death of its process is run or explained by the next process, and never runs twice."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import asyncpg
import pytest

from bot.commands.command import CommandAnswer
from bot.commands.idempotency import FORGOTTEN
from bot.commands.table import run_command
from composer.app import App
from composer.errors import Unavailable
from composer.model import Incoming
from composer.repositories.commands import Commands, CommandState
from composer.settings import Settings
from composer.workspace import Workspace
from tests.support.discord.harness import Discord
from tests.support.interrupting import STAGES, DiscordStage, SlackStage, Stage, stage_of
from tests.support.slack.harness import office_on
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

DONE: Final = (
    "`/nexus {} was done, but I was restarted before I could answer. If you need the answer, give the command again."
)
RESPONSE_SECONDS: Final = 1801.0  # after which a command's address takes no answer
AGAIN: Final = "not done: give it again."
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
    return len(await rows(settings, "SELECT id FROM commands WHERE call IS NOT NULL")) >= count


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
@pytest.mark.parametrize(
    ("after", "answer"), [(False, "Remembered, in #"), (True, DONE.format("remember the code is 7`"))]
)
async def test_an_interrupted_command_is_run_or_explained_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, after: bool, answer: str
) -> None:
    await interrupt(stage, monkeypatch, REMEMBER, after=after)
    assert stage.answers() == []
    for _ in range(2):  # the second start finds nothing to resume
        await restart(stage)
    (found,) = stage.answers()
    assert found.startswith(answer)
    assert await remembered(stage.settings) == ["the code is 7"]


@pytest.mark.parametrize("stage", STAGES, indirect=True)
@pytest.mark.parametrize(
    ("after", "answer"), [(False, "Forgotten for good"), (True, DONE.format("forget everything --yes`"))]
)
async def test_an_interrupted_command_that_was_confirmed_by_a_button_is_run_or_explained_once(
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
    assert await rows(stage.settings, "SELECT done FROM commands ORDER BY received_at") == [False, True]


@on_each_platform
async def test_an_interrupted_command_that_lets_more_be_stored_has_to_be_given_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.running():
        await stage.give("opt-out")
        await until(lambda: len(stage.answers()) == 1)
        await until(lambda: all_answered(stage.settings))
    await interrupt(stage, monkeypatch, ("opt-in", {}))
    await restart(stage)
    assert "If you still want it, give it again." in stage.answers()[1]


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
    await rows(discord.settings, "UPDATE commands SET received_at = received_at - interval '16 minutes' RETURNING id")
    server = discord.server
    server.fail("POST /webhooks/", 404)
    await restart(discord)
    (notice,) = server.messages(server.dm(discord.ada), server.bot)
    assert notice.content == f"`/nexus remember the code is 7` was interrupted by my restart and {AGAIN}"
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
        assert found.startswith("Remembered, ")


def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is unavailable for the first command that is finished."""
    state, failed = Commands.state, list[bool]()

    async def unavailable(commands: Commands, id: uuid.UUID, process: int) -> CommandState:
        if not failed:
            failed.append(True)
            raise Unavailable("The database does not answer.")
        return await state(commands, id, process)

    monkeypatch.setattr(Commands, "state", unavailable)


@on_each_platform
async def test_interrupted_commands_are_finished_once_the_database_is_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing that was acknowledged is lost. They were taken over already, and nobody took them again.
    await interrupt(stage, monkeypatch, *(("remember", {"text": f"the code is {number}"}) for number in range(2)))
    fails_once(monkeypatch)
    await restart(stage)
    assert [answer.startswith("Remembered") for answer in stage.answers()] == [True, True]
    assert sorted(await remembered(stage.settings)) == ["the code is 0", "the code is 1"]


@on_each_platform
@pytest.mark.parametrize("lost", [False, True])
async def test_an_interrupted_command_runs_with_the_rights_that_its_sender_has_now(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    await stage.set_admin(True)
    await interrupt(stage, monkeypatch, ("remember", {"text": "the code is 7 --global --yes"}))  # an admin may
    if lost:
        await stage.set_admin(False)
    await restart(stage)
    (found,) = stage.answers()
    assert found.startswith("Only an admin" if lost else "Remembered")
    assert await remembered(stage.settings) == ([] if lost else ["the code is 7"])


@pytest.mark.parametrize(
    ("stage", "where"), [("discord", "channel"), ("discord", "thread"), ("slack", "channel")], indirect=["stage"]
)
async def test_an_interrupted_command_is_not_run_for_who_has_left_its_room(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    await stage.enter(where)
    async with stage.running() as running:
        await stage.say(running, "the code of the vault is zqlynx")
    await interrupt(stage, monkeypatch, REMEMBER, ("recall", {"text": "code of the vault"}))
    await stage.leave(where)
    await restart(stage)
    assert [answer.endswith(AGAIN) for answer in stage.answers()] == [True, True]
    assert await remembered(stage.settings) == []


@on_each_platform
@pytest.mark.parametrize("left", [False, True])
async def test_an_interrupted_command_of_a_dm_is_not_run_for_who_has_left_the_platform(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    # README: whoever leaves keeps no key. It was made after all of theirs were ended.
    async with stage.running() as running:
        await stage.say(running, "hello")
    await stage.enter("dm")
    await interrupt(stage, monkeypatch, ("keys create", {"tool": "claude", "yes": True}))
    if left:
        await stage.leave("platform")
    await restart(stage)
    (found,) = stage.answers()
    assert found.endswith(AGAIN) is left
    assert len(await rows(stage.settings, "SELECT id FROM api_keys")) == (0 if left else 1)


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("how", ["deleted", "edited", "neither"])
async def test_an_interrupted_command_is_not_run_whose_message_was_deleted_or_edited_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, how: str, direct: bool
) -> None:
    # docs/architecture.md: what is deleted or edited on the platform is gone everywhere; here nobody was connected to
    # be told.
    async with office_on(settings) as office:
        place = await office.slack.add_im(office.team, office.bob) if direct else office.general
        to = "" if direct else office.mention("")
        with monkeypatch.context() as patched:
            patched.setattr("bot.slack.commands.run_command", dies_in_command(after=False))
            async with office.socket():
                said = office.slack.post(place, office.bob, f"{to}/nexus remember the code is 7")
                giving = asyncio.create_task(said)
                await until(lambda: are_begun(settings, 1))
        giving.cancel()
        (ts,) = (ts for ts, each in office.slack.world.channels[place].messages.items() if each["user"] == office.bob)
        if how == "deleted":
            await office.slack.delete(place, ts)
        if how == "edited":
            await office.slack.edit(place, ts, f"{to}/nexus remember nothing")
        async with office.socket():
            await until(lambda: all_answered(settings))
        (notice,) = office.slack.ephemerals(office.bob)
    undone = "`/nexus remember the code is 7` was interrupted"
    assert notice["text"].startswith({"deleted": FORGOTTEN, "edited": undone}.get(how, "Remembered, "))
    assert await remembered(settings) == (["the code is 7"] if how == "neither" else [])

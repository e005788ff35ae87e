"""A command interrupted by the death of its process is run or explained by the next process, and never runs twice."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from bot.commands.command import CommandAnswer
from bot.commands.table import run_command
from composer.app import App
from composer.errors import Unavailable
from composer.model import Incoming
from composer.repositories.commands import Commands
from composer.settings import Settings
from composer.workspace import Workspace
from tests.support.discord.harness import Discord, on_discord
from tests.support.discord.model import Channel, Guild, Permission, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import Office, office_on
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

DONE = (
    "`/nexus remember the code is 7` was done, but I was restarted before I could answer. If you need the answer, "
    "give the command again."
)
Runs = Callable[..., Awaitable[CommandAnswer]]


def dies_in_command(*, after: bool) -> Runs:
    """Replace a command so that its process dies after or before the change is made."""

    async def run(app: App, workspace: Workspace, incoming: Incoming, **options: Any) -> CommandAnswer:
        if after:
            await run_command(app, workspace, incoming, **options)
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


async def is_begun(settings: Settings) -> bool:
    return await are_begun(settings, 1)


async def are_begun(settings: Settings, count: int) -> bool:
    return len(await rows(settings, "SELECT id FROM commands WHERE call IS NOT NULL")) >= count


async def all_answered(settings: Settings) -> bool:
    return not await is_begun(settings)


@pytest.mark.parametrize(("after", "answer"), [(False, "Remembered, in #"), (True, DONE)])
async def test_an_interrupted_discord_command_is_run_or_explained_once(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    room: Channel,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
    after: bool,
    answer: str,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("bot.discord.slash.run_command", dies_in_command(after=after))
        async with on_discord(settings, server, guild):
            called = await server.invoke("nexus remember", room, ada, text="the code is 7")
            await until(lambda: is_begun(settings))
            if after:
                await until(lambda: remembered(settings))
    assert not (called.original and called.original.content)
    for _ in range(2):  # the second start finds nothing to resume
        async with on_discord(settings, server, guild):
            await until(lambda: all_answered(settings))
    assert called.original is not None
    assert called.original.content.startswith(answer)
    assert called.original.ephemeral
    assert await remembered(settings) == ["the code is 7"]


async def test_an_interrupted_discord_command_that_lets_more_be_stored_has_to_be_given_again(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        async with on_discord(settings, server, guild):
            out = await server.invoke("nexus opt-out", room, ada)
            await until(lambda: out.original and out.original.content)
            patched.setattr("bot.discord.slash.run_command", dies_in_command(after=False))
            called = await server.invoke("nexus opt-in", room, ada)
            await until(lambda: is_begun(settings))
    async with on_discord(settings, server, guild):
        await until(lambda: all_answered(settings))
    assert called.original is not None
    assert "If you still want it, give it again." in called.original.content


async def test_a_command_that_only_asked_for_confirmation_was_not_run(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        async with on_discord(settings, server, guild) as here:
            for number in range(4):
                await server.post(room, ada, f"the heron is number {number}")
                await here.stored(f"the heron is number {number}")
            patched.setattr("bot.discord.slash.run_command", dies_in_command(after=True))
            called = await server.invoke("nexus forget", room, ada, what="heron")
            await until(lambda: is_begun(settings))
            await until(lambda: has_ended(here))
    async with on_discord(settings, server, guild):
        await until(lambda: all_answered(settings))
    assert called.original is not None
    assert "4 messages and 0 other items" in called.original.content


async def has_ended(here: Discord) -> bool:
    """Whether the command has ended, in any way."""
    return not any("answer" in repr(task.get_coro()) for task in here.adapter._tasks)


async def test_the_answer_to_an_expired_discord_interaction_comes_by_dm(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    room: Channel,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("bot.discord.slash.run_command", dies_in_command(after=False))
        async with on_discord(settings, server, guild):
            await server.invoke("nexus remember", room, ada, text="the code is 7")
            await until(lambda: is_begun(settings))
    await rows(settings, "UPDATE commands SET received_at = received_at - interval '16 minutes' RETURNING id")
    server.fail("POST /webhooks/", 404)
    async with on_discord(settings, server, guild):
        await until(lambda: all_answered(settings))
    (notice,) = server.messages(server.dm(ada), server.bot)
    assert notice.content == (
        "`/nexus remember the code is 7` was interrupted by my restart and not done: give it again."
    )
    assert await remembered(settings) == []


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


@pytest.mark.parametrize("slash", [True, False])
@pytest.mark.parametrize(("after", "answer"), [(False, "Remembered, in #"), (True, DONE)])
async def test_an_interrupted_slack_command_is_run_or_explained_once(
    office: Office, monkeypatch: pytest.MonkeyPatch, slash: bool, after: bool, answer: str
) -> None:
    text = "remember the code is 7"
    with monkeypatch.context() as patched:
        patched.setattr("bot.slack.commands.run_command", dies_in_command(after=after))
        async with office.socket():
            giving: asyncio.Task[Any]
            if slash:
                giving = asyncio.create_task(office.slack.command(office.general, office.bob, text))
            else:
                giving = asyncio.create_task(
                    office.slack.post(office.general, office.bob, office.mention(f"/nexus {text}"))
                )
            await until(lambda: is_begun(office.settings))
            if after:
                await until(lambda: remembered(office.settings))
    assert office.slack.ephemerals(office.bob) == []
    for _ in range(2):
        async with office.socket():
            await until(lambda: all_answered(office.settings))
    giving.cancel()
    (notice,) = office.slack.ephemerals(office.bob)
    assert notice["text"].startswith(answer)
    assert await remembered(office.settings) == ["the code is 7"]


async def test_an_interrupted_slack_command_that_lets_more_be_stored_has_to_be_given_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        async with office.socket():
            await office.slack.command(office.general, office.bob, "opt-out")
            patched.setattr("bot.slack.commands.run_command", dies_in_command(after=False))
            giving = asyncio.create_task(office.slack.command(office.general, office.bob, "opt-in"))
            await until(lambda: is_begun(office.settings))
    async with office.socket():
        await until(lambda: all_answered(office.settings))
    giving.cancel()
    _, notice = office.slack.ephemerals(office.bob)
    assert "If you still want it, give it again." in notice["text"]


def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is unavailable for the first command that is finished."""
    is_waiting, failed = Commands.is_waiting, list[bool]()

    async def unavailable(commands: Commands, id: uuid.UUID) -> bool:
        if not failed:
            failed.append(True)
            raise Unavailable("The database does not answer.")
        return await is_waiting(commands, id)

    monkeypatch.setattr(Commands, "is_waiting", unavailable)


async def test_interrupted_discord_commands_are_finished_once_the_database_is_back(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # DESIGN 1: nothing is lost. They were taken over already, and nobody took them again.
    with monkeypatch.context() as patched:
        patched.setattr("bot.discord.slash.run_command", dies_in_command(after=False))
        async with on_discord(settings, server, guild):
            called = [await server.invoke("nexus remember", room, ada, text=f"the code is {n}") for n in range(2)]
            await until(lambda: are_begun(settings, len(called)))
    fails_once(monkeypatch)
    async with on_discord(settings, server, guild):
        await until(lambda: all_answered(settings))
    assert all(each.original and each.original.content.startswith("Remembered") for each in called)
    assert sorted(await remembered(settings)) == ["the code is 0", "the code is 1"]


async def test_interrupted_slack_commands_are_finished_once_the_database_is_back(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"remember the code is {number}" for number in range(2)]
    await _interrupted(office, monkeypatch, office.general, office.bob, *texts)
    fails_once(monkeypatch)
    notices = await _resumed(office, office.bob)
    assert [notice["text"].startswith("Remembered") for notice in notices] == [True, True]
    assert sorted(await remembered(office.settings)) == ["the code is 0", "the code is 1"]


GLOBAL = "remember the code is 7 --global --yes"  # an admin may


@pytest.mark.parametrize("lost", [False, True])
async def test_an_interrupted_discord_command_runs_with_the_rights_that_its_sender_has_now(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    room: Channel,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
    lost: bool,
) -> None:
    await server.set_roles(guild, ada, await server.add_role(guild, "admins", Permission.MANAGE_GUILD))
    with monkeypatch.context() as patched:
        patched.setattr("bot.discord.slash.run_command", dies_in_command(after=False))
        async with on_discord(settings, server, guild):
            called = await server.invoke("nexus remember", room, ada, text=GLOBAL.removeprefix("remember "))
            await until(lambda: is_begun(settings))
    if lost:
        await server.set_roles(guild, ada)
    async with on_discord(settings, server, guild):
        await until(lambda: all_answered(settings))
    assert called.original is not None
    assert called.original.content.startswith("Only an admin" if lost else "Remembered")
    assert await remembered(settings) == ([] if lost else ["the code is 7"])


@pytest.mark.parametrize("thread", [False, True])
async def test_an_interrupted_discord_command_is_not_run_for_who_has_left_its_room(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    room: Channel,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
    thread: bool,
) -> None:
    cave = await server.add_channel(guild, "cave", only=[ada])
    place = await server.add_thread(room, "den", ada, private=True) if thread else cave
    if thread:
        await server.join_thread(place, server.bot)
    with monkeypatch.context() as patched:
        async with on_discord(settings, server, guild) as here:
            await server.post(place, ada, "the code of the vault is zqlynx")
            await here.stored("the code of the vault is zqlynx")
            patched.setattr("bot.discord.slash.run_command", dies_in_command(after=False))
            called = await server.invoke("nexus recall", place, ada, text="code of the vault")
            await until(lambda: is_begun(settings))
    if thread:
        await server.leave_thread(place, ada)
    else:
        await server.make_private(cave, [server.bot])
    async with on_discord(settings, server, guild):
        await until(lambda: all_answered(settings))
    assert called.original is not None
    assert called.original.content.endswith("not done: give it again.")


@pytest.mark.parametrize("left", [False, True])
async def test_an_interrupted_discord_command_of_a_dm_is_not_run_for_who_has_left_the_server(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    room: Channel,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
    left: bool,
) -> None:
    # README: whoever leaves keeps no key. It was made after all of theirs were ended.
    with monkeypatch.context() as patched:
        async with on_discord(settings, server, guild) as here:
            await server.post(room, ada, "hello")
            await here.stored("hello")
            patched.setattr("bot.discord.slash.run_command", dies_in_command(after=False))
            called = await server.invoke("nexus keys create", server.dm(ada), ada, tool="claude", yes=True)
            await until(lambda: is_begun(settings))
    if left:
        await server.remove_member(guild, ada)
    async with on_discord(settings, server, guild):
        await until(lambda: all_answered(settings))
    assert called.original is not None
    assert called.original.content.endswith("not done: give it again.") is left
    assert len(await rows(settings, "SELECT id FROM api_keys")) == (0 if left else 1)


@pytest.mark.parametrize("lost", [False, True])
async def test_an_interrupted_slack_command_runs_with_the_rights_that_its_sender_has_now(
    office: Office, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    await _interrupted(office, monkeypatch, office.general, office.alice, GLOBAL)
    office.slack.world.users[office.alice]["is_admin"] = not lost
    (notice,) = await _resumed(office, office.alice)
    assert notice["text"].startswith("Only an admin" if lost else "Remembered")
    assert await remembered(office.settings) == ([] if lost else ["the code is 7"])


async def test_an_interrupted_slack_command_is_not_run_for_who_has_left_its_channel(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    cave = await office.slack.add_channel(office.team, "cave", [office.alice, office.bob], private=True)
    await _interrupted(office, monkeypatch, cave, office.bob, "remember the code is 7")
    await office.slack.leave(cave, office.bob)
    (notice,) = await _resumed(office, office.bob)
    assert notice["text"].endswith("not done: give it again.")
    assert await remembered(office.settings) == []


@pytest.mark.parametrize("left", [False, True])
async def test_an_interrupted_slack_command_of_a_dm_is_not_run_for_whose_account_was_closed(
    office: Office, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    # README: whoever leaves keeps no key. It was made after all of theirs were ended.
    dm = await office.slack.add_im(office.team, office.bob)
    await _interrupted(office, monkeypatch, dm, office.bob, "keys create claude --yes")
    if left:
        await office.slack.close_account(office.team, office.bob)
    (notice,) = await _resumed(office, office.bob)
    assert notice["text"].endswith("not done: give it again.") is left
    assert len(await rows(office.settings, "SELECT id FROM api_keys")) == (0 if left else 1)


async def _interrupted(office: Office, monkeypatch: pytest.MonkeyPatch, channel: str, user: str, *texts: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("bot.slack.commands.run_command", dies_in_command(after=False))
        async with office.socket():
            giving = [asyncio.create_task(office.slack.command(channel, user, text)) for text in texts]
            await until(lambda: are_begun(office.settings, len(texts)))
    for each in giving:
        each.cancel()


async def _resumed(office: Office, user: str) -> list[Any]:
    async with office.socket():
        await until(lambda: all_answered(office.settings))
    return office.slack.ephemerals(user)

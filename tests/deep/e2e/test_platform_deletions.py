"""What is deleted on Discord or Slack besides people's messages is erased too: answers, threads and channels."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.discord.reading import PLATFORM
from composer.errors import Unavailable
from composer.ingest.rooms import erase_room, note_room_deleted
from composer.settings import Settings
from tests.support.discord.harness import Discord, on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.erased_ids import find_remains
from tests.support.slack.harness import Office, office_on
from tests.support.slack.told import deleted, told
from tests.support.waiting import until


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as office:
        yield office


def gone(settings: Settings, *words: str) -> Callable[[], Awaitable[bool]]:
    """Whether nothing of these words is stored."""

    async def check() -> bool:
        return await find_remains(settings, *words) == {}

    return check


async def test_a_deleted_answer_on_discord_is_erased(
    here: Discord, server: DiscordServer, room: Channel, ada: User, settings: Settings
) -> None:
    here.model.says = ["It is zqleaked.", "I said zqleaked."]
    answer = await here.answer(await server.post(room, ada, f"{server.bot.mention} what is it?"))
    again = await here.answer(await server.post(room, ada, f"{server.bot.mention} what did you say?"))
    await server.delete(answer)
    await until(gone(settings, "zqleaked"))
    await until(lambda: _shows(again, "retracted"))


async def _shows(message: object, word: str) -> bool:
    return word in str(getattr(message, "content", ""))


async def test_a_deleted_thread_and_a_deleted_channel_on_discord_are_erased(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User, settings: Settings
) -> None:
    thread = await server.add_thread(room, "plans", ada)
    await server.post(thread, ada, "the thread word is zqthread")
    await server.post(room, ada, "the channel word is zqchannel")
    await here.stored("the channel word is zqchannel")
    await server.delete_channel(thread)
    await until(gone(settings, "zqthread"))
    assert "zqchannel" in await find_remains(settings, "zqchannel")
    await server.delete_channel(room)
    await until(gone(settings, "zqchannel"))


async def test_what_was_deleted_on_discord_meanwhile_is_erased(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    attic = await server.add_channel(guild, "attic")
    async with on_discord(settings, server, guild) as here:
        here.model.says = ["It is zqleaked."]
        answer = await here.answer(await server.post(room, ada, f"{server.bot.mention} what is it?"))
        await server.post(attic, ada, "the attic word is zqattic")
        await here.stored("the attic word is zqattic")
    await server.delete(answer)
    await server.delete_channel(attic)
    async with on_discord(settings, server, guild):
        await until(gone(settings, "zqleaked", "zqattic"))


async def test_what_was_deleted_on_discord_in_an_absence_in_which_much_was_said_is_erased(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was looked for among the latest messages, after those of the absence were stored, and not among those before.
    direct = server.dm(ada)
    async with on_discord(settings, server, guild) as here:
        old = [await server.post(room, ada, "the word is zqold"), await server.post(direct, ada, "it is zqdirect")]
        await here.stored("the word is zqold")
        await here.answer(old[1])
    monkeypatch.setattr(server.world.ids, "_now", lambda: time.time() + 2 * 86_400)
    for message, where in zip(old, (room, direct), strict=True):
        await server.delete(message)
        await server.post(where, ada, "much later")
    async with on_discord(settings, server, guild):
        await until(gone(settings, "zqold", "zqdirect"))


@pytest.mark.parametrize("away", [False, True])
async def test_what_was_deleted_in_a_followed_channel_is_erased(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, *, away: bool
) -> None:
    async with on_discord(settings, server, guild) as here:
        news = await server.post_by_webhook(room, "News", "the word is zqnews", followed=True)
        await here.stored("the word is zqnews")
        if not away:
            await server.delete_source(news)
            await until(gone(settings, "zqnews"))
    if away:
        await server.delete_source(news)
        async with on_discord(settings, server, guild):
            await until(gone(settings, "zqnews"))


async def test_the_threads_of_a_channel_that_nexus_may_not_view_count_as_deleted_no_more_than_it(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with on_discord(settings, server, guild) as here:
        thread = await server.add_thread(room, "plans", ada)
        await server.post(thread, ada, "the thread word is zqthread")
        await here.stored("the thread word is zqthread")
    await server.make_private(room, [ada])
    server.rest.hides = True  # as in lists of channels: what the bot may not view does not exist
    async with on_discord(settings, server, guild) as here:
        await until(here.reconciled)  # what was deleted meanwhile was looked for
        assert await here.is_private(room)
        assert "zqthread" in await find_remains(settings, "zqthread")


async def test_a_deleted_answer_on_slack_is_erased_in_a_channel_and_in_a_dm(office: Office, settings: Settings) -> None:
    async with office.socket() as running:
        im = await office.slack.add_im(office.team, office.bob)
        office.model.pieces = ("It is ", "zqleaked.")
        for channel, text in ((office.general, office.mention("what is it?")), (im, "what is it?")):
            await office.slack.post(channel, office.bob, text)
            await office.answered(1, channel)
            await running.settle()
            [answer] = [m for m in office.answers(channel) if "zqleaked" in m["text"]]
            await office.slack.delete(channel, answer["ts"])
        await until(gone(settings, "zqleaked"))


async def test_a_deleted_channel_on_slack_is_erased(office: Office, settings: Settings) -> None:
    async with office.socket() as running:
        attic = await office.slack.add_channel(office.team, "attic", [office.alice])
        await office.slack.post(attic, office.alice, "the attic word is zqattic")
        await running.settle()
        assert await find_remains(settings, "zqattic")
        await office.slack.delete_channel(attic)
        await until(gone(settings, "zqattic"))


async def test_a_channel_is_erased_that_was_deleted_on_slack_while_the_database_was_away(
    office: Office, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Slack tells it at once, once more, and after one and five minutes; then it was never erased.
    outage = [Unavailable("The database does not answer.")] * 3

    async def away_at_first(*arguments: Any, **named: Any) -> Any:
        if outage:
            raise outage.pop()
        return await erase_room(*arguments, **named)

    async with office.socket() as running:
        attic = await office.slack.add_channel(office.team, "attic", [office.alice])
        await office.slack.post(attic, office.alice, "the attic word is zqattic")
        await running.settle()
        monkeypatch.setattr("bot.platform.inbox.erase_room", away_at_first)
        await office.slack.delete_channel(attic)
        await until(gone(settings, "zqattic"))


@pytest.mark.parametrize("thread", [None, "root"])
async def test_a_command_as_a_message_that_arrives_after_its_channel_was_deleted_on_slack_stores_nothing(
    office: Office, settings: Settings, thread: str | None
) -> None:
    # Slack delivers a message once more minutes later. A command counted as given when it arrived.
    async with office.socket() as running:
        attic = await office.slack.add_channel(office.team, "attic", [office.alice])
        root = await office.slack.post(attic, office.alice, "the attic word is zqattic")
        await running.settle()
        given = office.slack.world.ts()
        await office.slack.delete_channel(attic)
        await until(gone(settings, "zqattic"))
        text = office.mention("/nexus remember the cellar word is zqcellar")
        late = told(attic, given, office.alice, text, thread and root)
        await running.adapter._apply(late, 1)
        await running.settle()
        assert await find_remains(settings, "zqcellar") == {}


@pytest.mark.parametrize("direct", [False, True])
async def test_a_command_as_a_message_that_was_deleted_on_slack_before_it_arrives_stores_nothing(
    office: Office, settings: Settings, *, direct: bool
) -> None:
    async with office.socket() as running:
        channel = await office.slack.add_im(office.team, office.alice) if direct else office.general
        given, at = office.slack.world.ts(), office.slack.world.ts()
        await running.adapter._apply(deleted(channel, given, office.alice, at, direct=direct), 0)
        text = office.mention("/nexus remember the cellar word is zqcellar")
        late = told(channel, given, office.alice, text, direct=direct)
        await running.adapter._apply(late, 1)
        await running.settle()
        assert await find_remains(settings, "zqcellar") == {}


async def test_what_was_being_erased_when_nexus_stopped_is_erased_by_the_next_process_on_slack(
    office: Office, settings: Settings
) -> None:
    attic = await office.slack.add_channel(office.team, "attic", [office.alice])
    async with office.socket() as running:
        await office.slack.post(attic, office.alice, "the attic word is zqattic")
        await running.settle()
        workspace, now = await running.adapter.inbox.workspace(), running.app.clock.now()
        await note_room_deleted(running.app.database, workspace, attic, None, now, now + timedelta(days=1))
        assert await find_remains(settings, "zqattic")
    async with office.socket():
        await until(gone(settings, "zqattic"))


async def test_what_was_being_erased_when_nexus_stopped_is_erased_by_the_next_process_on_discord(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "the word is zqleft")
        await here.stored("the word is zqleft")
        workspace, now = here.app.directory.workspace(PLATFORM, str(guild.id)), here.app.clock.now()
        await note_room_deleted(here.app.database, workspace, str(room.id), None, now, now + timedelta(days=1))
    async with on_discord(settings, server, guild):
        await until(gone(settings, "zqleft"))

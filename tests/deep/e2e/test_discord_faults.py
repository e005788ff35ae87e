"""Nexus on Discord during faults: every message is stored, and every answer is posted exactly once."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.commands.confirmations import BUTTON_EXPIRED
from bot.discord.adapter import DiscordAdapter
from bot.discord.doctor import BAD_TOKEN, MISSING_INTENTS
from bot.discord.history import ChannelReader
from bot.discord.reading import is_private
from bot.platform.reconciliation import Reconciliation
from composer.errors import Unavailable
from composer.model import Offer
from composer.repositories.conversations import Conversations
from composer.repositories.deliveries import Destination
from composer.settings import Settings
from tests.support.discord.gateway import MESSAGE_CONTENT
from tests.support.discord.harness import NOTICES, Discord, Model, on_discord, up
from tests.support.discord.model import Channel, Event, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.waiting import until

POST = "POST /channels/{channel_id}/messages"
EDIT = "PATCH /channels/{channel_id}/messages/{message_id}"


# Events, repeated and out of order


@pytest.mark.parametrize(
    "how", [lambda events: events * 3, lambda events: events[::-1] * 2], ids=["thrice", "reversed"]
)
async def test_repeated_and_reordered_events_give_one_message_and_one_answer(
    here: Discord, server: DiscordServer, room: Channel, ada: User, how: Callable[[list[Event]], list[Event]]
) -> None:
    with server.rearranged(how):
        one = await server.post(room, ada, "one")
        await server.edit(one, "one, edited")
        two = await server.post(room, ada, "two, to be deleted")
        await server.delete(two)
        question = await server.post(room, ada, f"{server.bot.mention} hello")
    await here.answer(question)
    await server.post(room, ada, "the end")
    await here.stored("the end")
    assert sorted(await here.texts(room)) == ["@nexus hello", "one, edited", "the end"]
    assert len(here.answers(room)) == 1


# The connection


@pytest.mark.parametrize("abrupt", [False, True])
async def test_a_dropped_connection_is_resumed_and_nothing_is_lost(
    here: Discord, server: DiscordServer, room: Channel, ada: User, abrupt: bool
) -> None:
    here.model.gate = asyncio.Event()
    here.model.says = ["This is the first half of it, and this is the second half."]
    first = await server.post(room, ada, f"{server.bot.mention} one, before the connection drops")
    await server.wait_for_message(lambda m: m.author is server.bot and m.content not in NOTICES)
    server.gateway.replay_extra = 2
    await server.disconnect(abrupt=abrupt, code=4000)
    second = await server.post(room, ada, f"{server.bot.mention} two")
    await server.wait_for("resume")
    here.model.gate.set()
    await here.answer(first)
    await here.answer(second)
    assert len(here.answers(room)) == 2


@pytest.mark.parametrize("resumable", [False, True])
async def test_an_invalid_session_is_replaced(
    here: Discord, server: DiscordServer, room: Channel, ada: User, resumable: bool
) -> None:
    await here.answer(await server.post(room, ada, f"{server.bot.mention} one"))
    await server.invalidate(resumable=resumable)
    question = await server.post(room, ada, f"{server.bot.mention} two")
    await here.answer(question)
    assert len(here.answers(room)) == 2


async def test_messages_missed_while_the_gateway_is_down_are_read_and_answered_once(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    await here.answer(await server.post(room, ada, f"{server.bot.mention} one"))
    await server.go_down()
    await server.post(room, ada, "said into the dark")
    question = await server.post(room, ada, f"{server.bot.mention} two")
    await server.come_back()
    await here.answer(question)
    assert "said into the dark" in here.model.shown[1]
    assert len(here.answers(room)) == 2


async def test_a_first_connection_that_fails_is_retried(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    server.gateway.refuse = 1
    server.fail("GET /users/@me", "reset", times=6)
    async with on_discord(settings, server, guild) as here:
        await here.answer(await server.post(room, ada, f"{server.bot.mention} hello"))


async def test_missing_intents_and_a_bad_token_are_reported_and_do_not_stop_nexus(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    server.gateway.allowed_intents &= ~MESSAGE_CONTENT
    with capture_logs() as logs:
        async with on_discord(settings, server, guild, wait=False, first_wait=0.002) as here:
            await server.until(lambda: any(entry.get("reason") == MISSING_INTENTS for entry in logs))
            server.gateway.token = "another"
            await server.until(lambda: any(entry.get("reason") == BAD_TOKEN for entry in logs))
            server.gateway.token = server.token
            server.gateway.allowed_intents |= MESSAGE_CONTENT
            await up(here.adapter)
            await here.answer(await server.post(room, ada, f"{server.bot.mention} hello"))


# Downtime


async def test_messages_missed_while_nexus_was_down_are_read_and_recent_ones_answered_once(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    new_room = await server.add_channel(guild, "random")
    async with on_discord(settings, server, guild) as here:
        await here.answer(await server.post(room, ada, f"{server.bot.mention} one"))
        await here.answer(await server.post(server.dm(ada), ada, "a first DM"))
    thread = await server.add_thread(room, "meanwhile", ada)
    await server.post(room, ada, "said meanwhile")
    question = [
        await server.post(where, ada, f"{server.bot.mention} in {where.name}")
        for where in (room, new_room, thread, server.dm(ada))
    ]
    for _ in range(2):  # the second start finds nothing to do
        async with on_discord(settings, server, guild) as here:
            for each in question:
                await here.answer(each)
            assert "said meanwhile" in await here.texts(room)
            for where in (new_room, thread):
                assert len(here.answers(where)) == 1
            assert len(here.answers(room)) == len(here.answers(server.dm(ada))) == 2


async def miss_one_message(settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User) -> None:
    """Post a message to a known room while Nexus is down."""
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "heard")
        await here.stored("heard")
    await server.post(room, ada, "said meanwhile")


async def test_missed_messages_are_read_although_discord_drops_the_request(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    await miss_one_message(settings, server, guild, room, ada)
    server.fail("GET /channels/{channel_id}/messages", "hangup", times=4)
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "said later")
        await here.stored("said later")
        assert await here.texts(room) == ["heard", "said meanwhile", "said later"]


@pytest.mark.parametrize("unread", [False, True])
async def test_missed_private_messages_stay_private_if_the_channel_opens_while_they_are_read(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
    *,
    unread: bool,
) -> None:
    board = await server.add_channel(guild, "board", only=[ada])
    async with on_discord(settings, server, guild) as here:
        await server.post(board, ada, "heard")
        await here.stored("heard")
    await server.post(board, ada, "the vault code is heliotrope-42")
    pages, unreadable = ChannelReader.pages, [unread]

    async def opened_meanwhile(reader: ChannelReader, place: Any, *how: Any) -> Any:
        if unreadable.pop() if unreadable else False:
            raise Unavailable("Discord does not answer.")
        async for page in pages(reader, place, *how):
            if is_private(place):
                await server.make_public(board)
                await until(lambda: opened(place))
            yield page

    async def opened(place: Any) -> bool:
        return not is_private(place)

    monkeypatch.setattr(ChannelReader, "pages", opened_meanwhile)
    async with on_discord(settings, server, guild) as here:
        await until(here.reconciled)
        await here.answer(await server.post(board, ada, f"{server.bot.mention} which codes are there?"))
        assert all("heliotrope-42" not in shown for shown in here.model.shown)
        assert "the vault code is heliotrope-42" in await here.texts()


async def test_a_reading_of_an_older_session_releases_nothing_before_the_new_one_is_read(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def waiting(_: Reconciliation) -> None:
        await gate.wait()

    monkeypatch.setattr(Reconciliation, "_list", waiting)
    async with on_discord(settings, server, guild, wait=False) as here:
        adapter = here.adapter
        await server.until(lambda: len(adapter._reconciliations) > 1)
        reading = [task for tasks in adapter._reading.values() for task in tasks]
        adapter._on_connect(0)
        gate.set()
        await asyncio.gather(*reading, return_exceptions=True)
        boxes = adapter._inboxes.values()
        assert len(reading) > 1
        assert not any(inbox.is_released for inbox in boxes)
        for inbox in boxes:  # a stop waits for deferred messages
            inbox.release()


async def test_missed_messages_are_read_although_the_database_is_down_at_first(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    await miss_one_message(settings, server, guild, room, ada)
    followed, tries = Conversations.followed, [0]

    async def fail_at_first(self: Conversations, *which: Any) -> list[Any]:
        tries[0] += 1
        if tries[0] <= 3:
            raise Unavailable("The database does not answer.")
        return await followed(self, *which)

    monkeypatch.setattr(Conversations, "followed", fail_at_first)
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "said later")
        await here.stored("said later")
        assert await here.texts(room) == ["heard", "said meanwhile", "said later"]


async def test_an_old_question_is_stored_and_not_answered(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "hello", at=long_ago - timedelta(hours=1))
        await here.stored("hello")
    await server.post(room, ada, f"{server.bot.mention} too late", at=long_ago)
    async with on_discord(settings, server, guild) as here:
        await here.stored("@nexus too late")
        await here.settled()
        assert here.answers(room) == []


async def test_a_channel_that_became_public_meanwhile_does_not_show_its_private_messages(
    settings: Settings, server: DiscordServer, guild: Guild, ada: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada])
    async with on_discord(settings, server, guild) as here:
        await server.post(board, ada, "the vault code is heliotrope-42")
        await here.stored("the vault code is heliotrope-42")
    await server.post(board, ada, "the other code is saffron-7")
    await server.make_public(board)
    async with on_discord(settings, server, guild) as here:
        await here.stored("the other code is saffron-7")
        await here.answer(await server.post(board, ada, f"{server.bot.mention} which codes are there?"))
        assert "heliotrope-42" not in here.model.shown[0]
        assert "saffron-7" not in here.model.shown[0]


# Posting


@pytest.mark.parametrize("answer", [429, 500, "reset", "hangup"])
@pytest.mark.parametrize("effect", [False, True])
async def test_a_failed_post_is_retried_and_made_once(
    here: Discord, server: DiscordServer, room: Channel, ada: User, answer: Any, effect: bool
) -> None:
    if answer == 429 and effect:
        return  # Discord refuses before it does anything
    server.fail(POST, answer, times=2, effect=effect)
    question = await server.post(room, ada, f"{server.bot.mention} hello")
    await here.answer(question)
    (only,) = here.answers(room)
    assert only.content == "Answer 1 to what was asked just now."


async def test_a_failed_edit_still_ends_in_the_whole_answer(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    here.model.gate = asyncio.Event()
    here.model.says = ["This is the first half of it, and this is the second half."]
    question = await server.post(room, ada, f"{server.bot.mention} hello, and take your time")
    await server.wait_for_message(lambda m: m.author is server.bot and m.content not in NOTICES)
    server.fail(EDIT, "reset", times=3)
    here.model.gate.set()
    await here.answer(question)
    (only,) = here.answers(room)
    assert only.content == "This is the first half of it, and this is the second half."
    assert only.edits


async def test_an_answer_deleted_while_it_streams_stays_deleted(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    here.model.gate = asyncio.Event()
    here.model.says = ["This is the first half of it, and this is the second half."]
    await server.post(room, ada, f"{server.bot.mention} slowly, please")
    shown = await server.wait_for_message(lambda m: m.author is server.bot and m.content not in NOTICES)
    await server.delete(shown)
    here.model.gate.set()
    await here.settled()
    assert here.answers(room) == []


async def test_a_channel_without_write_permission_breaks_nothing(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    server.fail(POST, 403, times=2)
    await server.post(room, ada, f"{server.bot.mention} hello")
    await here.settled()
    again = await server.post(room, ada, f"{server.bot.mention} and now?")
    await here.answer(again)
    assert here.adapter._outbox._uncertain == set()


# Crashes between two steps


def dies_while_posting(step: str, part: int) -> Callable[[DiscordAdapter], None]:
    """Let an adapter's outbox stop before or after it posts a part."""

    def change(adapter: DiscordAdapter) -> None:
        post = adapter._outbox.post

        async def posts(to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
            if step == "before" and key.endswith(f"-{part}"):
                raise asyncio.CancelledError
            id = await post(to, text, key, offers)
            if step == "after" and key.endswith(f"-{part}"):
                raise asyncio.CancelledError
            return id

        adapter._outbox.post = posts  # type: ignore[method-assign]

    return change


@pytest.mark.own_database  # what a process leaves that stops at once is ended with its own connections
@pytest.mark.parametrize("step", ["before", "after"])
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("late", [False, True])
async def test_an_answer_is_seen_once_although_nexus_died_while_posting(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, step: str, part: int, late: bool
) -> None:
    text = "First. " * 300 + "\n\n" + "Second. " * 200
    model = Model()
    model.says = [text, text]
    async with on_discord(settings, server, guild, model, change=dies_while_posting(step, part)) as here:
        question = await server.post(room, ada, f"{server.bot.mention} tell me much")
        await here.stored("@nexus tell me much")
        posted = {"before": part, "after": part + 1}[step]
        await server.until(lambda: len(here.answers(room)) >= posted)
        await here.tried()
    if late:
        server.rest.nonces.clear()  # the minutes in which Discord itself deduplicates are over
    async with on_discord(settings, server, guild, model) as here:
        await here.answer(question)
        whole = here.answers(room)
        assert " ".join(part.content for part in whole).split() == text.split()
        assert [part.referenced is question for part in whole] == [True] + [False] * (len(whole) - 1)


async def test_a_button_that_an_earlier_process_showed_is_refused_with_a_sentence(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with on_discord(settings, server, guild):
        await server.post(room, ada, "hello")
        shown = await server.answer_to(await server.invoke("nexus forget", room, ada, what="everything"))
    async with on_discord(settings, server, guild):
        button = shown.components[0]["components"][0]["custom_id"]
        pressed = await server.answer_to(await server.click(shown, button, ada))
    assert pressed.content == BUTTON_EXPIRED

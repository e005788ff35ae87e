"""Nexus on Discord while things go wrong: every message is stored, every answer is seen exactly once."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.discord import history as discord_history
from bot.discord.adapter import DiscordAdapter
from bot.discord.doctor import BAD_TOKEN, MISSING_INTENTS
from bot.discord.reading import is_private
from bot.platform.retry import Backoff
from composer.errors import Unavailable
from composer.repositories.deliveries import Destination
from composer.settings import Settings
from tests.support.discord.gateway import MESSAGE_CONTENT
from tests.support.discord.harness import NOTICES, Discord, Model, on_discord, up
from tests.support.discord.model import Channel, Event, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

POST = "POST /channels/{channel_id}/messages"
EDIT = "PATCH /channels/{channel_id}/messages/{message_id}"


# Events, repeated and out of order


@pytest.mark.parametrize(
    "how", [lambda events: events * 3, lambda events: events[::-1] * 2], ids=["thrice", "reversed"]
)
async def test_repeated_and_reordered_events_make_one_message_and_one_answer(
    here: Discord, server: DiscordServer, room: Channel, ada: User, how: Callable[[list[Event]], list[Event]]
) -> None:
    with server.rearranged(how):
        one = await server.post(room, ada, "one")
        await server.edit(one, "one, edited")
        two = await server.post(room, ada, "two, to be deleted")
        await server.delete(two)
        asked = await server.post(room, ada, f"{server.bot.mention} hello")
    await here.answer(asked)
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
    asked = await server.post(room, ada, f"{server.bot.mention} two")
    await here.answer(asked)
    assert len(here.answers(room)) == 2


async def test_what_is_missed_while_the_gateway_is_down_is_read_and_answered_once(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    await here.answer(await server.post(room, ada, f"{server.bot.mention} one"))
    await server.go_down()
    await server.post(room, ada, "said into the dark")
    asked = await server.post(room, ada, f"{server.bot.mention} two")
    await server.come_back()
    await here.answer(asked)
    assert "said into the dark" in here.model.shown[1]
    assert len(here.answers(room)) == 2


async def test_a_first_connection_that_fails_is_tried_again(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    server.gateway.refuse = 1
    server.fail("GET /users/@me", "reset", times=6)
    async with on_discord(settings, server, guild) as here:
        await here.answer(await server.post(room, ada, f"{server.bot.mention} hello"))


async def test_missing_intents_and_a_bad_token_are_reported_and_do_not_end_nexus(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    server.gateway.allowed_intents &= ~MESSAGE_CONTENT
    with capture_logs() as logs:
        async with on_discord(settings, server, guild, wait=False, first_wait=0.002) as here:
            await server.wait_for("identify", 2)
            server.gateway.token = "another"
            await server.until(lambda: any(entry.get("reason") == BAD_TOKEN for entry in logs))
            server.gateway.token = server.token
            server.gateway.allowed_intents |= MESSAGE_CONTENT
            await up(here.adapter)
            await here.answer(await server.post(room, ada, f"{server.bot.mention} hello"))
    assert MISSING_INTENTS in [entry.get("reason") for entry in logs]


# Being away


async def test_what_was_missed_while_nexus_was_away_is_read_and_what_is_recent_answered_once(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    new_room = await server.add_channel(guild, "random")
    async with on_discord(settings, server, guild) as here:
        await here.answer(await server.post(room, ada, f"{server.bot.mention} one"))
        await here.answer(await server.post(server.dm(ada), ada, "a first DM"))
    thread = await server.add_thread(room, "meanwhile", ada)
    await server.post(room, ada, "said meanwhile")
    asked = [
        await server.post(where, ada, f"{server.bot.mention} in {where.name}")
        for where in (room, new_room, thread, server.dm(ada))
    ]
    for _ in range(2):  # the second start finds nothing to do
        async with on_discord(settings, server, guild) as here:
            for each in asked:
                await here.answer(each)
            assert "said meanwhile" in await here.texts(room)
            for where in (new_room, thread):
                assert len(here.answers(where)) == 1
            assert len(here.answers(room)) == len(here.answers(server.dm(ada))) == 2


async def missed_one(settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User) -> None:
    """Something is said while Nexus is away that was there before."""
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "heard")
        await here.stored("heard")
    await server.post(room, ada, "said meanwhile")


def nothing_is_missing(adapter: DiscordAdapter) -> Callable[[], Awaitable[bool]]:
    async def nothing() -> bool:
        return not any(adapter._gaps.values())

    return nothing


async def test_what_was_missed_is_read_though_discord_hangs_up_on_who_asks_for_it(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discord_history, "BACKOFF", Backoff(0.02))
    await missed_one(settings, server, guild, room, ada)
    server.fail("GET /channels/{channel_id}/messages", "hangup", times=4)
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "said later")
        await here.stored("said later")
        assert await here.texts(room) == ["heard", "said meanwhile", "said later"]


async def test_what_was_missed_is_read_in_the_end_though_a_channel_can_t_be_read_for_long(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discord_history, "BACKOFF", Backoff(0.002))
    await missed_one(settings, server, guild, room, ada)
    server.fail("GET /channels/{channel_id}/messages", "hangup", times=5 * discord_history.MAX_TRIES)
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "said later")
        await here.stored("said later")
        await here.stored("said meanwhile")
        assert await here.texts(room) == ["heard", "said meanwhile", "said later"]


@pytest.mark.parametrize("unread", [False, True])
async def test_what_was_missed_in_private_and_is_read_while_it_is_opened_is_not_told_there(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
    *,
    unread: bool,
) -> None:
    monkeypatch.setattr(discord_history, "BACKOFF", Backoff(0.002))
    board = await server.add_channel(guild, "board", only=[ada])
    async with on_discord(settings, server, guild) as here:
        await server.post(board, ada, "heard")
        await here.stored("heard")
    await server.post(board, ada, "the vault code is heliotrope-42")
    pages, unreadable = discord_history.DiscordHistory._pages, [unread]

    async def opened_meanwhile(history: discord_history.DiscordHistory, place: Any, after: int) -> Any:
        if unreadable.pop() if unreadable else False:
            raise discord_history._HistoryUnreadable
        async for page in pages(history, place, after):
            if is_private(place):
                await server.make_public(board)
                await until(lambda: opened(place))
            yield page

    async def opened(place: Any) -> bool:
        return not is_private(place)

    monkeypatch.setattr(discord_history.DiscordHistory, "_pages", opened_meanwhile)
    async with on_discord(settings, server, guild) as here:
        await until(nothing_is_missing(here.adapter))
        await here.answer(await server.post(board, ada, f"{server.bot.mention} which codes are there?"))
        assert all("heliotrope-42" not in shown for shown in here.model.shown)
        assert ("the vault code is heliotrope-42" in await here.texts()) is not unread


async def test_what_comes_waits_again_when_a_history_is_read_again_from_its_beginning(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[bool] = []
    compare, catch_up = discord_history.DiscordHistory.compare, discord_history.DiscordHistory.catch_up

    async def away(history: discord_history.DiscordHistory, of: Any) -> None:
        if len(reached) == 1:
            raise Unavailable("The database does not answer.")
        await compare(history, of)

    async def looked_at(history: discord_history.DiscordHistory, of: Any) -> None:
        reached.append(history._inbox.is_released)
        await catch_up(history, of)

    monkeypatch.setattr(discord_history.DiscordHistory, "compare", away)
    monkeypatch.setattr(discord_history.DiscordHistory, "catch_up", looked_at)

    async def read_twice() -> bool:
        return len(reached) > 1

    async with on_discord(settings, server, guild):
        await until(read_twice)
    assert reached == [False, False]


async def test_who_still_reads_for_an_older_session_lets_nothing_through_before_the_new_one_was_read(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def waiting(_: discord_history.DiscordHistory) -> bool:
        return await gate.wait()

    monkeypatch.setattr(discord_history.DiscordHistory, "fill_gaps", waiting)
    async with on_discord(settings, server, guild) as here:
        reading = list(here.adapter._catching_up.values())
        here.adapter._on_connect(0)
        gate.set()
        await asyncio.gather(*reading, return_exceptions=True)
        boxes = here.adapter._inboxes.values()
        assert len(reading) > 1
        assert not any(inbox.is_released for inbox in boxes)
        for inbox in boxes:  # a stop waits for what is held back
            inbox.release()


async def test_what_was_missed_is_read_though_the_database_is_away_at_first(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    await missed_one(settings, server, guild, room, ada)
    seen, asked = discord_history.DiscordHistory._seen, [0]

    async def away(history: discord_history.DiscordHistory) -> list[Any]:
        asked[0] += 1
        if asked[0] <= 3:
            raise Unavailable("The database does not answer.")
        return await seen(history)

    monkeypatch.setattr(discord_history.DiscordHistory, "_seen", away)
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "said later")
        await here.stored("said later")
        assert await here.texts(room) == ["heard", "said meanwhile", "said later"]


async def test_an_old_question_is_kept_and_not_answered(
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


async def test_a_channel_that_opened_meanwhile_does_not_carry_its_secrets_along(
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
async def test_a_post_that_fails_is_made_once_in_the_end(
    here: Discord, server: DiscordServer, room: Channel, ada: User, answer: Any, effect: bool
) -> None:
    if answer == 429 and effect:
        return  # Discord refuses before it does anything
    server.fail(POST, answer, times=2, effect=effect)
    asked = await server.post(room, ada, f"{server.bot.mention} hello")
    await here.answer(asked)
    (only,) = here.answers(room)
    assert only.content == "Answer 1 to what was asked just now."


async def test_an_edit_that_fails_still_ends_in_the_whole_answer(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    here.model.gate = asyncio.Event()
    here.model.says = ["This is the first half of it, and this is the second half."]
    asked = await server.post(room, ada, f"{server.bot.mention} hello, and take your time")
    await server.wait_for_message(lambda m: m.author is server.bot and m.content not in NOTICES)
    server.fail(EDIT, "reset", times=3)
    here.model.gate.set()
    await here.answer(asked)
    (only,) = here.answers(room)
    assert only.content == "This is the first half of it, and this is the second half."
    assert only.edits


async def test_an_answer_that_somebody_deletes_while_it_is_written_stays_deleted(
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


async def test_where_we_may_not_write_nothing_breaks(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    server.fail(POST, 403, times=2)
    await server.post(room, ada, f"{server.bot.mention} hello")
    await here.settled()
    again = await server.post(room, ada, f"{server.bot.mention} and now?")
    await here.answer(again)


# Dying between the steps


def dying(step: str, part: int) -> Callable[[DiscordAdapter], None]:
    """Let a adapter's wire die before or after it posts a part."""

    def change(adapter: DiscordAdapter) -> None:
        post = adapter._outbox.post

        async def posts(to: Destination, text: str, key: str) -> str:
            if step == "before" and key.endswith(f"-{part}"):
                raise asyncio.CancelledError
            id = await post(to, text, key)
            if step == "after" and key.endswith(f"-{part}"):
                raise asyncio.CancelledError
            return id

        adapter._outbox.post = posts  # type: ignore[method-assign]

    return change


@pytest.mark.parametrize("step", ["before", "after"])
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("late", [False, True])
async def test_an_answer_is_seen_once_though_nexus_died_while_posting(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, step: str, part: int, late: bool
) -> None:
    text = "First. " * 300 + "\n\n" + "Second. " * 200
    model = Model()
    model.says = [text, text]
    async with on_discord(settings, server, guild, model, change=dying(step, part)) as here:
        asked = await server.post(room, ada, f"{server.bot.mention} tell me much")
        await here.stored("@nexus tell me much")
        posted = {"before": part, "after": part + 1}[step]
        await server.until(lambda: len(here.answers(room)) >= posted)
        await here.tried()
    if late:
        server.rest.nonces.clear()  # the minutes in which Discord itself would have noticed are over
    async with on_discord(settings, server, guild, model) as here:
        await here.answer(asked)
        whole = here.answers(room)
        assert " ".join(part.content for part in whole).split() == text.split()
        assert [part.referenced is asked for part in whole] == [True] + [False] * (len(whole) - 1)

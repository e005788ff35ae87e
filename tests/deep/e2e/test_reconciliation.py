"""What happened on a platform in an absence is read when Nexus is back: the same on Slack and on Discord."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Literal

import pytest

from bot.platform.reconciliation import Reconciliation
from composer.operations.doctor import Doctor
from composer.settings import Settings
from tests.support.chat_platforms import DiscordPlatform, Platform, SlackPlatform, stored, until_stored
from tests.support.discord.model import Permission
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import office_on
from tests.support.waiting import until

Broken = Literal["error", "malformed"]


@pytest.fixture(params=["slack", "discord"])
async def platform(
    request: pytest.FixtureRequest, settings: Settings, server: DiscordServer
) -> AsyncIterator[Platform]:
    if request.param == "slack":
        async with office_on(settings) as office:
            yield SlackPlatform(office)
        return
    guild = await server.add_guild()
    person = await server.add_member(guild, "Ada", await server.add_role(guild, "staff", Permission.ADMINISTRATOR))
    yield DiscordPlatform(settings, server, guild, person)


async def test_what_was_said_edited_and_deleted_in_an_absence_is_followed(
    platform: Platform, settings: Settings
) -> None:
    room = await platform.room("plans")
    async with platform.nexus():
        edited = await platform.say(room, "the launch is on Friday")
        deleted = await platform.say(room, "the code is 1111")
        thread = await platform.thread(room, "a thread begins")
        in_thread = [await platform.say(thread, f"reply {number}") for number in range(2)]
        await until_stored(
            settings, "the launch is on Friday", "the code is 1111", "a thread begins", "reply 0", "reply 1"
        )
    await platform.edit(edited, "the launch is on Monday")
    await platform.edit(in_thread[0], "reply 0, edited")
    for message in (deleted, in_thread[1]):
        await platform.delete(message)
    await platform.say(room, "said meanwhile")
    await platform.say(thread, "replied meanwhile")
    now = ("the launch is on Monday", "a thread begins", "reply 0, edited", "said meanwhile", "replied meanwhile")
    for _ in range(2):  # the second time there is nothing to do
        async with platform.nexus():
            await until_stored(settings, *now)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("how", ["error", "malformed"])
async def test_a_room_whose_history_fails_holds_up_no_other_and_is_read_once_it_can_be(
    platform: Platform, settings: Settings, how: Broken, *, restarts: bool
) -> None:
    # One channel that Slack always failed to send stopped comparing in the whole workspace, and one error in a channel
    # of Discord lost what was said in the others of its server.
    broken, other = await platform.room("broken"), await platform.room("other")
    async with platform.nexus():
        edited, deleted = await platform.say(other, "the day is Friday"), await platform.say(other, "the code is 1111")
        await platform.say(broken, "before")  # it is read first, as the latest
        await until_stored(settings, "the day is Friday", "the code is 1111", "before")
    await platform.say(broken, "missed there")
    await platform.edit(edited, "the day is Monday")
    await platform.delete(deleted)
    await platform.say(other, "missed")
    await platform.ask(other, "when is it?")
    platform.fail(broken, how)
    here = ("before", "the day is Monday", "missed", "@nexus when is it?", "said meanwhile there")
    async with platform.nexus():
        await platform.say(broken, "said meanwhile there")  # which hides nothing of what is before it
        await until_stored(settings, *here)
        await platform.answered(other, 1)
        if not restarts:
            platform.fail(broken, None)
            await until_stored(settings, *here, "missed there")
    if restarts:
        async with platform.nexus():
            platform.fail(broken, None)
            await until_stored(settings, *here, "missed there")
    await platform.answered(other, 1)


async def unreadable(settings: Settings) -> str:
    """What `nexus doctor` says of channels that can't be read."""
    async with Doctor(settings) as probe:
        await probe.servers()
        return await probe.unread_rooms()


async def test_doctor_names_a_room_that_cannot_be_read_until_it_can(platform: Platform, settings: Settings) -> None:
    broken, other = await platform.room("broken"), await platform.room("other")
    async with platform.nexus():
        await platform.say(broken, "before")
        await platform.say(other, "before, too")
        await until_stored(settings, "before", "before, too")
        await platform.reconciled()
        assert await unreadable(settings) == ""
    platform.fail(broken, "error")
    async with platform.nexus():
        said = await until(lambda: unreadable(settings))
        assert said.startswith(
            "the history of 1 channel can't be read, so what was missed there is not stored: #broken ("
        )
        platform.fail(broken, None)

        async def is_read() -> bool:
            return await unreadable(settings) == ""

        await until(is_read)


@pytest.mark.parametrize("step", ["_advance", "_compare"])
async def test_what_was_missed_is_followed_by_the_next_process_where_one_stops_before_that(
    platform: Platform, settings: Settings, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    # What was said first when Nexus was back hid what had been missed, and what had been deleted before that.
    monkeypatch.setattr("bot.platform.reconciliation.LOOK_BACK", timedelta())
    room = await platform.room("plans")
    async with platform.nexus():
        edited, deleted = await platform.say(room, "the day is Friday"), await platform.say(room, "the code is 1111")
        thread = await platform.thread(room, "a thread begins")
        await until_stored(settings, "the day is Friday", "the code is 1111", "a thread begins")
    await platform.edit(edited, "the day is Monday")
    await platform.delete(deleted)
    await platform.say(thread, "missed")
    reached = asyncio.Event()

    async def stops(*_: object) -> bool:
        reached.set()
        await asyncio.Event().wait()
        return False

    with monkeypatch.context() as patch:
        patch.setattr(Reconciliation, step, stops)
        async with platform.nexus(is_read=step == "_compare"):
            await reached.wait()
            await platform.say(room, "much later")
            if step == "_compare":
                await until_stored(
                    settings, "the day is Monday", "the code is 1111", "a thread begins", "missed", "much later"
                )
    async with platform.nexus():
        await until_stored(settings, "the day is Monday", "a thread begins", "missed", "much later")


@pytest.mark.parametrize(("off", "on"), [("memory off", "memory on"), ("opt-out", "opt-in")])
async def test_what_was_said_while_it_was_not_to_be_stored_is_not_read_later(
    platform: Platform, settings: Settings, off: str, on: str
) -> None:
    room = await platform.room("plans")
    async with platform.nexus():
        await platform.say(room, "before")
        await until_stored(settings, "before")
        await platform.command(room, off)
        await platform.say(room, "not for you")
        await platform.ask(room, "and this?")
        await platform.answered(room, 1)  # so the message before it was received
        await platform.command(room, on)
        await platform.say(room, "after")
    await platform.say(room, "missed")
    async with platform.nexus():
        await platform.reconciled()
        texts = await stored(settings)
        assert [text for text in texts if text != "@nexus and this?"] == ["before", "after", "missed"]
        await platform.answered(room, 1)


async def test_a_question_that_was_answered_and_erased_is_neither_stored_nor_answered_again(
    platform: Platform, settings: Settings
) -> None:
    # Its room's memory is off, so it is stored only until it is answered; the next process reads the channel anew.
    room = await platform.room("plans")
    async with platform.nexus():
        await platform.say(room, "before")
        await until_stored(settings, "before")
        await platform.command(room, "memory off")
        await platform.ask(room, "and this?")
        await platform.answered(room, 1)
        await platform.indexed()
        await until_stored(settings, "before")
    for _ in range(2):
        async with platform.nexus():
            await platform.reconciled()
            await platform.answered(room, 1)
            await platform.indexed()
            await until_stored(settings, "before")

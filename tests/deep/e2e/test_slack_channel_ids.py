"""A Slack channel that gets another id stays the same room, and a history that is changed at once is followed."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from composer.ingest.rooms import rooms_with_later_ids
from composer.memory.forget import RETRACTED
from composer.settings import Settings
from tests.e2e.test_slack_members import nothing_kept, open_rooms, sees, vault
from tests.support.erased_ids import find_remains
from tests.support.slack.harness import Office, Running, office_on
from tests.support.waiting import PLATFORM_SECONDS, until

__all__ = ["nothing_kept"]  # a fixture


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as made:
        yield made


async def rows(settings: Settings, query: str, *values: Any) -> list[Any]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return list(await connection.fetch(query, *values))
    finally:
        await connection.close()


async def rooms(settings: Settings) -> list[str]:
    """The private rooms that are stored, by name."""
    return [
        row["name"] for row in await rows(settings, "SELECT name FROM conversations WHERE kind = 'room' AND private")
    ]


async def gone(settings: Settings, *words: str) -> bool:
    return await find_remains(settings, *words) == {}


async def ask(office: Office, channel: str, text: str = "what is the code of the harbour?") -> str:
    """Ask in a channel, and return the prompt."""
    asked = len(office.answers(channel))
    await office.slack.post(channel, office.bob, office.mention(text))
    await office.answered(asked + 1, channel)
    return office.model.prompts[-1]


@pytest.mark.parametrize("restarted", [False, True])
async def test_memory_and_forgetting_follow_a_channel_to_its_new_id(
    office: Office, settings: Settings, *, restarted: bool
) -> None:
    # README: what was said in a private room is answered there; a message that is deleted is forgotten everywhere.
    async with office.socket() as running:
        channel = await vault(running)
        office.model.pieces = ("It is ", "walrus.")
        await ask(office, channel)
        new = await office.slack.change_id(channel)
        await running.settle()
        if not restarted:
            await follows(office, settings, running, channel, new)
    if restarted:
        async with office.socket() as running:
            await follows(office, settings, running, channel, new)


async def follows(office: Office, settings: Settings, running: Running, old: str, new: str) -> None:
    said = next(m["ts"] for m in office.slack.messages(new) if "is walrus" in m["text"] and m["user"] == office.alice)
    assert "walrus" in await ask(office, new)
    assert await rooms(settings) == [old]
    shown = await office.slack.command(new, office.bob, "why")
    assert old not in str([shown.ack, shown.responses]), "a link to an id that Slack knows no more"
    await office.slack.delete(new, said)
    await office.slack.wait_for(lambda: {answer["text"] for answer in office.answers(new)} == {RETRACTED})
    await until(lambda: gone(settings, "walrus"))
    await office.slack.post(new, office.alice, "The code is zqseal.")
    await running.settle()
    await office.slack.delete_channel(new)
    await until(lambda: gone(settings, "zqseal"))


@pytest.mark.usefixtures("nothing_kept")
async def test_the_new_id_of_a_channel_brings_no_readers(office: Office, settings: Settings) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        for user in (office.alice, office.bob):
            await open_rooms(running, user)
        new = await office.slack.change_id(channel)
        await office.slack.leave(new, office.bob)
        await running.settle()
        assert not await sees(running, office.bob)
        assert await sees(running, office.alice)
        [row] = await rows(settings, "SELECT outsiders FROM conversations WHERE name = $1", channel)
        assert row["outsiders"] is True


async def test_a_process_that_was_not_told_of_the_new_id_follows_who_leaves_by_it(office: Office) -> None:
    async with office.socket() as told:
        channel = await vault(told)
        await open_rooms(told, office.bob)
        async with office.open() as other:
            await other.adapter._channels.refresh()
            new = await office.slack.change_id(channel)
            await told.settle()
            left = {"type": "member_left_channel", "user": office.bob, "channel": new}
            named = await other.adapter._channels.named(left)
            await other.adapter._close()
        assert named["channel"] == channel


async def test_what_is_said_before_slack_tells_the_new_id_is_stored_once_and_followed_too(
    office: Office, settings: Settings
) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        new = await office.slack.change_id(channel, told=False)
        early = await office.slack.post(new, office.alice, office.mention("the other code is zqearly, is it?"))
        await office.answered(1, new)
        await running.settle()
        await office.slack.tell_id(channel, new)
        await running.settle()
        caught_up = running.adapter.reconciliation.completed
        running.adapter.reconciliation.miss()
        await office.slack.wait_for(lambda: running.adapter.reconciliation.completed > caught_up)
        await running.settle()
        assert len(office.answers(new)) == 1, "it is answered once"
        assert sorted(await rooms(settings)) == sorted([channel, new])
        assert (await running.stored()).count("@nexus the other code is zqearly, is it?") == 1
        assert "walrus" in await ask(office, new)
        await office.slack.delete(new, early)
        await until(lambda: gone(settings, "zqearly"))


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("direct", [True, False])
async def test_a_history_that_is_changed_at_once_is_followed(
    office: Office, settings: Settings, *, named: bool, direct: bool
) -> None:
    # README: a message that is deleted or edited is forgotten or updated. Only one event tells of all of these.
    async with office.socket() as running:
        where = await office.slack.add_im(office.team, office.alice) if direct else office.general
        deleted = [await office.slack.post(where, office.alice, f"the word is zqold{number}") for number in range(3)]
        kept = await office.slack.post(where, office.alice, "the day is zqfriday")
        root = await office.slack.post(where, office.alice, "and this stays")
        await running.settle()
        if not direct:
            deleted.append(await office.slack.post(where, office.bob, "in a thread: zqold9", thread=root))
            await running.settle()
        await office.slack.change_history(where, *deleted, named=named, **{kept: "the day is Monday"})
        await until(lambda: gone(settings, "zqold0", "zqold1", "zqold2", "zqold9", "zqfriday"))
        assert "the day is Monday" in await running.stored()
        assert "and this stays" in await running.stored()


@pytest.mark.parametrize("at_once", [False, True])
async def test_what_is_stored_under_a_later_id_is_compared_with_the_history_too(
    office: Office, settings: Settings, *, at_once: bool
) -> None:
    # README, "Forgetting": nobody looked at it, nor at its threads, so what was deleted there in an absence stayed.
    async with office.socket() as running:
        channel = await vault(running)
        new = await office.slack.change_id(channel, told=False)
        early = await office.slack.post(new, office.alice, "the other code is zqearly")
        root = await office.slack.post(new, office.alice, "the day is zqfriday")
        reply = await office.slack.post(new, office.bob, "in a thread: zqreply", thread=root)
        await running.settle()
        await office.slack.tell_id(channel, new)
        await running.settle()
        assert sorted(await rooms(settings)) == sorted([channel, new])
        if at_once:
            await office.slack.change_history(new, early, reply, named=True, **{root: "the day is Monday"})
            await until(lambda: gone(settings, "zqearly", "zqreply", "zqfriday"))
    if not at_once:
        await office.slack.delete(new, early)
        await office.slack.delete(new, reply)
        await office.slack.edit(new, root, "the day is Monday")
        async with office.socket() as running:
            await until(lambda: gone(settings, "zqearly", "zqreply", "zqfriday"))
            assert "the day is Monday" in await running.stored()


async def test_what_is_stored_under_a_later_id_is_private_again_after_an_absence(
    office: Office, settings: Settings
) -> None:
    # It opened with its channel, and stayed open: its words were used in the other rooms of its project.
    async with office.socket() as running:
        channel = await vault(running)
        new = await office.slack.change_id(channel, told=False)
        await office.slack.post(new, office.alice, "the other code is zqearly")
        await running.settle()
        await office.slack.tell_id(channel, new)
        await running.settle()
        await office.slack.set_private(new, False, office.alice)
        await until(lambda: all_are(settings, private=False))
    await office.slack.set_private(new, True, office.alice)
    async with office.socket():
        await until(lambda: all_are(settings, private=True))


async def all_are(settings: Settings, *, private: bool) -> bool:
    """Whether all rooms of more than one are private, or public."""
    found = await rows(settings, "SELECT private FROM conversations WHERE kind = 'room'")
    return len(found) > 1 and all(row["private"] is private for row in found)


async def test_an_id_that_slack_tells_again_after_a_later_one_changes_nothing(office: Office) -> None:
    # All calls went to an id that Slack knows no more.
    async with office.socket() as running:
        channel = await vault(running)
        second = await office.slack.change_id(channel)
        await running.settle()
        third = await office.slack.change_id(second)
        await running.settle()
        await office.slack.tell_id(channel, second, by_now=third)
        await running.settle()
        assert "walrus" in await ask(office, third)
        assert running.adapter._ids.present(channel) == third


@pytest.mark.parametrize("direct", [True, False])
async def test_a_history_that_is_changed_at_once_is_compared_by_the_next_process_where_one_dies(
    office: Office, settings: Settings, monkeypatch: pytest.MonkeyPatch, *, direct: bool
) -> None:
    # Which history was changed was known to the process alone that Slack told.
    monkeypatch.setattr("bot.platform.reconciliation.LOOK_BACK", timedelta(days=-1))  # compare nothing by itself
    async with office.socket() as running:
        where = await office.slack.add_im(office.team, office.alice) if direct else office.general
        old = await office.slack.post(where, office.alice, "the word is zqold")
        await running.settle()
        running.adapter.reconciliation._list = asyncio.Event().wait  # type: ignore[method-assign,assignment]
        await office.slack.change_history(where, old)
        await office.slack.settled()
    assert not await gone(settings, "zqold")
    async with office.socket():
        await until(lambda: gone(settings, "zqold"))
        await until(lambda: all_compared(settings))


async def all_compared(settings: Settings) -> bool:
    return not await rows(settings, "SELECT FROM conversations WHERE history_changed_at IS NOT NULL")


async def test_a_command_is_acknowledged_while_the_database_does_not_say_which_ids_there_are(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office.socket() as running:
        channel = await vault(running)

        async def never(max_age: float = 0.0) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr("bot.slack.adapter.BEGIN_SECONDS", 0.01)
        monkeypatch.setattr(running.adapter._channels, "refresh", never)
        shown = await office.slack.command(channel, office.bob, "help")
        assert "/nexus" in str([shown.ack, shown.responses])


@pytest.mark.parametrize("pressed", [False, True])
async def test_a_command_is_acknowledged_before_the_database_says_which_ids_there_are(
    office: Office, monkeypatch: pytest.MonkeyPatch, *, pressed: bool
) -> None:
    # docs/slack.md: Slack waits three seconds. Reading the ids and beginning the command were each given two of them.
    async with office.socket() as running:
        channel = await vault(running)
        asked = await office.slack.command(channel, office.alice, "forget everything") if pressed else None
        may_read, refresh = asyncio.Event(), running.adapter._channels.refresh

        async def late(max_age: float = 0.0) -> None:
            await may_read.wait()
            await refresh(max_age)

        monkeypatch.setattr("bot.slack.adapter.BEGIN_SECONDS", PLATFORM_SECONDS)
        monkeypatch.setattr("bot.slack.commands.ACKNOWLEDGE_SECONDS", 0.01)
        monkeypatch.setattr(running.adapter._channels, "refresh", late)
        if asked is None:
            shown = await office.slack.command(channel, office.bob, "help")
        else:
            shown = await office.slack.click(channel, office.alice, *button_of(office, office.alice))
        assert (shown.ack, shown.error) == ({}, "")
        may_read.set()
        await office.slack.wait_for(lambda: shown.responses)


def button_of(office: Office, user: str) -> tuple[str, str]:
    """The message and the action of the latest button that somebody is shown."""
    said = next(each for each in reversed(office.slack.ephemerals(user)) if each.get("blocks"))
    action, *_ = [e["action_id"] for block in said["blocks"] for e in block.get("elements", ()) if "action_id" in e]
    return said["ts"], action


async def test_an_answer_of_a_process_that_was_not_told_of_the_new_id_reaches_the_channel(office: Office) -> None:
    # It was refused by Slack, and not delivered again: whoever had asked got no answer.
    async with office.socket() as told:
        channel = await vault(told)
        async with office.open() as other:
            await other.adapter._channels.refresh()
            new = await office.slack.change_id(channel)
            await told.settle()
            await other.adapter._slack.call("chat.postMessage", channel=channel, text="It is late.")
            await other.adapter._close()
        assert "It is late." in office.slack.texts(new)


async def test_what_is_said_by_a_new_id_is_stored_in_its_room_by_a_process_that_was_not_told_of_it(
    office: Office,
) -> None:
    # A mention comes as two events, perhaps to two processes: it was stored in two rooms, and answered in each.
    async with office.socket() as told:
        channel = await vault(told)
        async with office.open() as other:
            await other.adapter._channels.refresh()
            new = await office.slack.change_id(channel)
            await told.settle()
            said = {"type": "message", "channel": new, "user": office.bob, "ts": "1800000000.000100", "text": "hello"}
            named = await other.adapter._channels.named(said)
            await other.adapter._close()
        assert named["channel"] == channel


async def test_ids_that_were_read_earlier_replace_none_that_were_read_later(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Calls went to the id before for half a minute, and were refused.
    async with office.socket() as running:
        channel = await vault(running)
        read, may_end = asyncio.Event(), asyncio.Event()
        channels, look_up = running.adapter._channels, rooms_with_later_ids

        async def slow(*values: Any) -> Any:
            found = await look_up(*values)
            if not read.is_set():
                read.set()
                await may_end.wait()
            return found

        monkeypatch.setattr("bot.slack.channels.rooms_with_later_ids", slow)
        earlier = asyncio.create_task(channels.refresh(0.0))
        await read.wait()
        new = await office.slack.change_id(channel)
        await running.settle()
        may_end.set()
        await earlier
        assert channels.ids.present(channel) == new


async def test_an_edit_of_what_is_stored_under_a_later_id_is_made_at_once(office: Office, settings: Settings) -> None:
    # Slack delivered it again for six minutes before that, since the room of the first id did not have the message.
    async with office.socket() as running:
        channel = await vault(running)
        new = await office.slack.change_id(channel, told=False)
        early = await office.slack.post(new, office.alice, "the other code is zqearly")
        await running.settle()
        await office.slack.tell_id(channel, new)
        await running.settle()
        await office.slack.edit(new, early, "the other code is a secret")
        await until(lambda: gone(settings, "zqearly"))


async def test_a_change_of_an_id_that_slack_tells_again_after_it_was_undone_changes_nothing(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        at = office.slack.world.ts()
        second = await office.slack.change_id(channel, at=at)
        await running.settle()
        await office.slack.change_id(second, to=channel)
        await running.settle()
        assert running.adapter._ids.present(channel) == channel
        await office.slack.tell_id(channel, second, by_now=channel, at=at)
        await running.settle()
        assert running.adapter._ids.present(channel) == channel
        assert "walrus" in await ask(office, channel)

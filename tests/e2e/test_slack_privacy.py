"""Who may read a Slack channel, however late, often and out of order Slack tells of it."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from bot.slack import directory
from composer.settings import Settings
from tests.support.slack.harness import Office, Running, office_on


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as made:
        yield made


async def rows(office: Office, query: str, *arguments: Any) -> list[Any]:
    connection = await asyncpg.connect(office.settings.database_url)
    try:
        return [tuple(row) for row in await connection.fetch(query, *arguments)]
    finally:
        await connection.close()


async def is_private(office: Office, channel: str) -> bool:
    [(private,)] = await rows(office, "SELECT private FROM conversations WHERE kind = 'room' AND name = $1", channel)
    return bool(private)


async def newcomer_sees(office: Office, running: Running, channel: str, word: str) -> bool:
    """Whether the prompt of somebody who joins a channel now, and asks, has a word."""
    eve = await office.slack.add_user(office.team, "eve")
    await office.slack.join(channel, eve)
    await running.settle()
    await office.slack.post(channel, eve, office.mention("what was said here?"))
    await office.answered(1, channel)
    await running.settle()
    return word in office.model.prompts[-1]


async def assign_both(office: Office, channel: str) -> None:
    """Put a channel and #general into one project."""
    await office.slack.command(channel, office.alice, "project create apollo")
    for each in (channel, office.general):
        await office.slack.command(each, office.alice, "project assign apollo --yes")


async def test_a_public_message_that_arrives_late_does_not_open_a_private_channel(office: Office) -> None:
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice, office.bob])
        await office.slack.post(plans, office.alice, "hello")
        await running.settle()
        office.slack.hold()
        await office.slack.post(plans, office.bob, "a public remark")
        await office.slack.set_private(plans, True, office.alice)
        await office.slack.release(lambda held: held[::-1])
        await running.settle()
        assert await running.stored() == ["hello", "a public remark"]
        assert await is_private(office, plans)


async def test_a_repeat_does_not_open_a_private_channel(office: Office) -> None:
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice, office.bob])
        root = await office.slack.post(plans, office.alice, "hello")
        await office.slack.post(office.general, office.bob, "hello")
        await running.settle()
        await assign_both(office, plans)
        await office.slack.set_private(plans, True, office.alice)
        await running.settle()
        attempts = office.slack.outbox.attempts
        office.slack.outbox.send(next(a.payload for a in attempts if a.payload.get("event", {}).get("ts") == root))
        await running.settle()
        assert await is_private(office, plans)
        remembering = office.mention("/nexus remember the codeword is walrus")
        await office.slack.post(plans, office.alice, remembering, thread=root)
        await running.settle()
        answer = await office.slack.command(office.general, office.bob, "recall codeword")
        assert "walrus" not in str(answer)


async def test_a_channel_that_became_private_while_nexus_was_down_leaves_the_pool(office: Office) -> None:
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice])
        root = await office.slack.post(plans, office.alice, "the launch code is walrus")
        await office.slack.post(office.general, office.bob, "hello")
        await running.settle()
        await assign_both(office, plans)
        assert not await is_private(office, plans)
    await office.slack.set_private(plans, True, office.alice)
    await office.slack.post(plans, office.alice, "the fee is tapir", thread=root)
    async with office.socket() as running:
        await running.settle()
        assert await is_private(office, plans)
        answer = str(await office.slack.command(office.general, office.bob, "recall launch code fee"))
        assert "walrus" not in answer
        assert "tapir" not in answer


async def test_a_channel_that_was_public_for_a_while_in_an_outage_is_private_afterwards(office: Office) -> None:
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice], private=True)
        await office.slack.post(plans, office.alice, "in private")
        await running.settle()
    await office.slack.set_private(plans, False, office.alice)
    await office.slack.post(plans, office.alice, "in public")
    await office.slack.set_private(plans, True, office.alice)
    async with office.socket() as running:
        await running.settle()
        assert await running.stored() == ["in private", "in public"]
        assert await is_private(office, plans)


async def test_a_channel_that_became_private_untold_is_soon_named_nowhere_else(office: Office) -> None:
    # Over HTTP one process alone is told of it; the others named the channel for ten minutes as they had looked it up.
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice])
        await office.slack.post(office.general, office.alice, f"see <#{plans}|plans>")
        await running.settle()
        office.slack.world.channels[plans].kind = "group"
        rooms = running.adapter.directory._rooms
        monotonic = rooms._monotonic
        rooms._monotonic = lambda: monotonic() + 60
        await office.slack.post(office.general, office.alice, f"and <#{plans}|plans> again")
        await running.settle()
        assert await running.stored() == ["see #plans", "and #a channel again"]


async def test_a_channel_that_became_private_while_nexus_was_down_is_so_though_its_history_is_unreadable(
    office: Office,
) -> None:
    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, "in public")
        await running.settle()
    await office.slack.set_private(office.general, True, office.alice)
    office.slack.fail("conversations.history", "error", times=20, error="missing_scope")
    async with office.socket() as running:
        assert await is_private(office, office.general)


async def test_a_channel_that_became_public_while_nexus_was_down_is_public_afterwards(office: Office) -> None:
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice], private=True)
        await office.slack.post(plans, office.alice, "the fee is tapir")
        await running.settle()
    await office.slack.post(plans, office.alice, "the code is walrus")
    await office.slack.set_private(plans, False, office.alice)
    async with office.socket() as running:
        await running.settle()
        assert not await is_private(office, plans)
        assert not await newcomer_sees(office, running, plans, "tapir")
        assert "walrus" not in office.model.prompts[-1]


@pytest.mark.parametrize("in_thread", [True, False])
async def test_what_was_written_in_private_stays_there_if_it_arrives_after_the_opening(
    office: Office, monkeypatch: pytest.MonkeyPatch, in_thread: bool
) -> None:
    monkeypatch.setattr(directory, "ROOM_MAX_AGE", 0.0)  # as if a command were given more than half a minute later
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice], private=True)
        root = await office.slack.post(plans, office.alice, "root")
        await office.slack.post(plans, office.alice, "first", thread=root)
        await running.settle()
        office.slack.hold()
        secret = "the code is walrus"
        await office.slack.post(plans, office.alice, secret, thread=root if in_thread else "")
        await office.slack.set_private(plans, False, office.alice)
        await office.slack.release(lambda held: held[::-1])
        await running.settle()
        assert await running.stored() == ["root", "first", "the code is walrus"]
        assert not await is_private(office, plans)
        assert not await newcomer_sees(office, running, plans, "walrus")


async def test_a_late_message_of_a_channel_that_is_private_again_is_not_read_by_who_came_meanwhile(
    office: Office,
) -> None:
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice], private=True)
        await office.slack.post(plans, office.alice, "hello")
        await running.settle()
        office.slack.hold()
        await office.slack.post(plans, office.alice, "the code is walrus")
        await office.slack.set_private(plans, False, office.alice)
        await office.slack.post(plans, office.alice, "welcome")
        await office.slack.set_private(plans, True, office.alice)
        await office.slack.release(lambda held: [*held[1:], held[0]])
        await running.settle()
        assert await is_private(office, plans)
        assert not await newcomer_sees(office, running, plans, "walrus")
        assert "welcome" in office.model.prompts[-1]


async def test_a_command_in_a_channel_that_slack_hides_makes_its_room_private(office: Office) -> None:
    async with office.socket() as running:
        plans = await office.slack.add_channel(office.team, "plans", [office.alice])
        await office.slack.post(plans, office.alice, "hello")
        await running.settle()
    await office.slack.set_private(plans, True, office.alice)
    await office.slack.leave(plans, office.team.bot_user)
    async with office.socket() as running:
        await office.slack.command(plans, office.alice, "remember the codeword is walrus")
        assert await is_private(office, plans)


async def test_a_message_names_no_private_channel_elsewhere(office: Office) -> None:
    secret = await office.slack.add_channel(office.team, "merger", [office.alice], private=True)
    unseen = await office.slack.add_channel(office.team, "layoffs", [office.alice], private=True, bot=False)
    async with office.socket() as running:
        text = f"see <#{secret}|merger>, <#{unseen}|layoffs> and <#{office.general}|general>"
        said = await office.slack.post(office.general, office.alice, text)
        await office.slack.post(secret, office.alice, f"<#{secret}|merger> is the place")
        await running.settle()
        assert await running.stored() == ["see #a channel, #a channel and #general", "#merger is the place"]
        await office.slack.edit(office.general, said, f"rather <#{secret}|merger>")
        await running.settle()
        assert await running.stored() == ["rather #a channel", "#merger is the place"]
        await office.slack.command(office.general, office.alice, f"remember ask in <#{secret}|merger>")
        found = await office.slack.command(office.general, office.bob, "recall ask")
        assert "ask in #a channel" in found.ack["text"]

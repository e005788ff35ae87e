"""`/nexus rooms on` reads a private Slack channel while it is certain who is in it: after its members were read anew in
the connection that lasts."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from bot.slack.doctor import inspect
from composer.settings import Settings
from tests.support.lock_waits import release_locks
from tests.support.slack.harness import Office, Running, office_on
from tests.support.waiting import until

pytestmark = pytest.mark.e2e


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as made:
        yield made


async def certain(running: Running, channel: str) -> bool:
    """Whether it is certain who is in a channel."""
    connection = await asyncpg.connect(running.office.settings.database_url)
    try:
        query = """SELECT c.id IN (SELECT rooms_with_certain_members(c.tenant_id)) FROM conversations AS c
                   WHERE c.kind = 'room' AND c.name = $1"""
        return bool(await connection.fetchval(query, channel))
    finally:
        await connection.close()


async def sees(running: Running, user: str, word: str = "walrus") -> bool:
    """Whether the prompt of somebody's question in their DM has a word."""
    office = running.office
    await running.settle()
    im = await office.slack.add_im(office.team, user)
    asked = len(office.answers(im))
    await office.slack.post(im, user, "what is the code of the harbour?")
    await office.answered(asked + 1, im)
    return word in office.model.prompts[-1]


async def open_rooms(running: Running, user: str) -> None:
    office = running.office
    im = await office.slack.add_im(office.team, user)
    await office.slack.post(im, user, "hello")
    await office.answered(1, im)
    await office.slack.command(im, user, "rooms on")


async def vault(running: Running) -> str:
    """A private channel of Alice and Bob, where the code was told."""
    office = running.office
    channel = await office.slack.add_channel(office.team, "vault", [office.alice, office.bob], private=True)
    await office.slack.post(channel, office.alice, "The code of the harbour is walrus.")
    await office.slack.post(channel, office.bob, "Thank you.")
    await running.settle()
    await until(lambda: certain(running, channel))
    return channel


async def test_who_leaves_while_nexus_is_away_reads_the_channel_no_more(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        assert await sees(running, office.bob)
    await office.slack.leave(channel, office.bob)
    async with office.socket() as running:
        assert not await sees(running, office.bob)  # whether or not the members were read by now
        await until(lambda: certain(running, channel))
        assert not await sees(running, office.bob)
        await open_rooms(running, office.alice)
        assert await sees(running, office.alice)


async def test_who_joined_while_nexus_was_away_reads_the_channel(office: Office) -> None:
    async with office.socket() as running:
        eve = await office.slack.add_user(office.team, "eve")
        channel = await vault(running)
        await open_rooms(running, eve)
        assert not await sees(running, eve)
    await office.slack.join(channel, eve)
    async with office.socket() as running:
        await until(lambda: certain(running, channel))
        assert await sees(running, eve)


async def test_until_the_members_are_read_nobody_reads_the_channel_elsewhere(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
    office.slack.fail("conversations.members", "http500", times=1000)
    async with office.socket() as running:
        await office.slack.wait_for(lambda: office.slack.calls_of("conversations.members"))
        assert not await certain(running, channel)
        assert not await sees(running, office.bob)
        answer = str(
            await office.slack.command(await office.slack.add_im(office.team, office.bob), office.bob, "rooms")
        )
        assert "vault" not in answer


async def test_a_lost_connection_ends_what_was_read(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        await office.slack.go_down()

        async def ended() -> bool:
            return not await certain(running, channel)

        await until(ended)
        office.slack.world.channels[channel].members.remove(office.bob)  # nothing tells it
        await office.slack.come_back()
        await until(lambda: certain(running, channel))
        assert not await sees(running, office.bob)


async def test_a_crash_ends_what_was_read(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await release_locks(running.app, office.settings)
        assert not await certain(running, channel)


async def test_without_the_scope_no_private_channel_is_read_and_doctor_says_which(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
    office.slack.world.tokens[office.team.bot_token].scopes -= {"groups:read"}
    async with office.open() as running, running.serving():
        await office.slack.wait_for(lambda: office.slack.outbox.connections)
        assert not await sees(running, office.bob)
        assert not await certain(running, channel)
    assert any(
        not ok and "groups:read" in sentence for ok, sentence in await inspect(office.settings, office.slack.base_url)
    )


@pytest.mark.parametrize("how", ["exit", "archive"])
async def test_a_channel_that_the_bot_is_taken_out_of_is_read_no_more(office: Office, how: str) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        if how == "exit":
            await office.slack.leave(channel, office.team.bot_user)
        else:
            await office.slack.archive(channel, office.alice)

        async def ended() -> bool:
            return not await certain(running, channel)

        await until(ended)
        assert not await sees(running, office.bob)


async def test_a_late_message_of_somebody_who_left_does_not_make_them_a_reader(office: Office) -> None:
    """Its sender becomes known by it, after the members were read: so they are read again."""
    async with office.socket() as running:
        eve = await office.slack.add_user(office.team, "eve")
        channel = await vault(running)
        await open_rooms(running, eve)
        office.slack.hold()
        await office.slack.join(channel, eve)
        await office.slack.post(channel, eve, "hello from eve")
        await office.slack.leave(channel, eve)
        await office.slack.release(lambda held: [each for each in held if each["event"]["type"] == "message"][:2])
        await running.settle()
        assert "hello from eve" in await running.stored()
        await until(lambda: certain(running, channel))
        assert not await sees(running, eve)


async def test_over_http_the_members_are_read_at_the_start(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
    await office.slack.leave(channel, office.bob)
    async with office.http() as running:
        await until(lambda: certain(running, channel))
        assert not await sees(running, office.bob)
        await office.slack.join(channel, office.bob)
        await running.settle()
        await until(lambda: certain(running, channel))
        assert await sees(running, office.bob)


async def test_a_guest_reads_no_channel_in_their_dm(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        guest = await office.slack.add_user(office.team, "guest", is_restricted=True)
        await office.slack.join(channel, guest)
        await office.slack.post(channel, guest, "hello from the guest")
        await open_rooms(running, guest)
        await until(lambda: certain(running, channel))
        assert not await sees(running, guest)


async def test_who_leaves_a_channel_whose_id_has_changed_reads_what_was_said_under_the_old_one_no_more(
    office: Office,
) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        assert await sees(running, office.bob)
        changed = await office.slack.change_id(channel)
        await office.slack.leave(changed, office.bob)
        await running.settle()
        assert not await sees(running, office.bob)


async def test_who_comes_back_to_a_closed_account_reads_the_channels_that_they_were_in_no_more(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        assert await sees(running, office.bob)
        await office.slack.close_account(office.team, office.bob)
        await office.slack.open_account(office.team, office.bob)
        await running.settle()
        assert not await sees(running, office.bob)
        await office.slack.join(channel, office.bob)
        await running.settle()
        await until(lambda: certain(running, channel))
        assert await sees(running, office.bob)


async def test_a_command_waits_until_what_was_read_before_counts_no_more(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    # README: who is in a private room is read whenever Nexus connects, and until then it counts for nobody.
    async with office.socket() as running:
        await vault(running)
        await open_rooms(running, office.bob)
        monkeypatch.setattr("bot.slack.adapter.BEGIN_SECONDS", 0.01)
        monkeypatch.setattr(running.adapter._members, "begun", asyncio.Event().wait)
        im = await office.slack.add_im(office.team, office.bob)
        shown = await office.slack.command(im, office.bob, "rooms")
        assert "does not answer" in str([shown.ack, shown.responses])

"""`/nexus rooms on` reads a private Slack channel for those of whom Slack says, when they ask, that they are in it."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.slack.doctor import inspect
from composer.settings import Settings
from tests.support.slack.harness import Office, Running, office_on
from tests.support.slack.routes import Breakage


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as made:
        yield made


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack is asked anew each time, as if a minute had gone by."""
    monkeypatch.setattr("composer.turn.memberships.MAX_AGE", timedelta(microseconds=-1))


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
    return channel


async def test_who_leaves_while_nexus_is_away_reads_the_channel_no_more(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        assert await sees(running, office.bob)
    await office.slack.leave(channel, office.bob)
    async with office.socket() as running:
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
        assert await sees(running, eve)


@pytest.mark.parametrize("fault", ["http500", "ratelimited", "hang", "error"])
async def test_while_slack_does_not_say_who_is_in_it_nobody_reads_the_channel_elsewhere(
    office: Office, monkeypatch: pytest.MonkeyPatch, fault: Breakage
) -> None:
    async with office.socket() as running:
        await vault(running)
        await open_rooms(running, office.bob)
        monkeypatch.setattr("composer.turn.memberships.MAX_AGE", timedelta(microseconds=-1))
        monkeypatch.setattr("composer.turn.memberships.ASK_SECONDS", 0.5 if fault in ("hang", "ratelimited") else 60)
        office.slack.fail("users.conversations", fault, times=1000)
        assert not await sees(running, office.bob)
        im = await office.slack.add_im(office.team, office.bob)
        shown = await office.slack.command(im, office.bob, "rooms")
        assert "vault" not in str([shown.ack, shown.responses])
        assert "does not tell me now which private channels you are in" in str([shown.ack, shown.responses])
        office.slack.routes.faults.clear()
        office.slack.release_hung()
        monkeypatch.setattr("composer.turn.memberships.ASK_SECONDS", 60)
        assert await sees(running, office.bob)


@pytest.mark.usefixtures("nothing_kept")
async def test_who_left_while_the_connection_was_lost_reads_the_channel_no_more(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        assert await sees(running, office.bob)
        await office.slack.go_down()
        office.slack.world.channels[channel].members.remove(office.bob)  # nothing tells it
        await office.slack.come_back()
        assert not await sees(running, office.bob)


async def test_what_slack_said_is_used_for_a_minute_and_ends_when_it_tells_that_somebody_left(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        asked = len(office.slack.calls_of("users.conversations"))
        assert await sees(running, office.bob)
        assert len(office.slack.calls_of("users.conversations")) == asked
        await office.slack.leave(channel, office.bob)
        assert not await sees(running, office.bob)
        assert len(office.slack.calls_of("users.conversations")) == asked


async def test_nobody_is_asked_for_whose_dms_read_no_rooms(office: Office) -> None:
    async with office.socket() as running:
        await vault(running)
        asked = len(office.slack.calls_of("users.conversations"))
        assert not await sees(running, office.bob)
        await office.slack.post(office.general, office.bob, office.mention("hello"))
        await office.answered(1)
        assert len(office.slack.calls_of("users.conversations")) == asked


async def test_without_the_scope_no_private_channel_is_read_and_doctor_says_which(office: Office) -> None:
    async with office.socket() as running:
        await vault(running)
        await open_rooms(running, office.bob)
    office.slack.world.tokens[office.team.bot_token].scopes -= {"groups:read"}
    async with office.open() as running, running.serving():
        await office.slack.wait_for(lambda: office.slack.outbox.connections)
        assert not await sees(running, office.bob)
    assert any(
        not ok and "groups:read" in sentence for ok, sentence in await inspect(office.settings, office.slack.base_url)
    )


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("how", ["exit", "archive"])
async def test_a_channel_that_the_bot_is_taken_out_of_is_read_no_more(office: Office, how: str) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
        if how == "exit":
            await office.slack.leave(channel, office.team.bot_user)
        else:
            await office.slack.archive(channel, office.alice)
        assert not await sees(running, office.bob)


async def test_a_late_message_of_somebody_who_left_does_not_make_them_a_reader(office: Office) -> None:
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
        assert not await sees(running, eve)


@pytest.mark.usefixtures("nothing_kept")
async def test_over_http_slack_is_asked_as_well(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        await open_rooms(running, office.bob)
    await office.slack.leave(channel, office.bob)
    async with office.http() as running:
        assert not await sees(running, office.bob)
        await office.slack.join(channel, office.bob)
        await running.settle()
        assert await sees(running, office.bob)


async def test_a_guest_reads_no_channel_in_their_dm(office: Office) -> None:
    async with office.socket() as running:
        channel = await vault(running)
        guest = await office.slack.add_user(office.team, "guest", is_restricted=True)
        await office.slack.join(channel, guest)
        await office.slack.post(channel, guest, "hello from the guest")
        await open_rooms(running, guest)
        assert not await sees(running, guest)


@pytest.mark.usefixtures("nothing_kept")
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
        assert await sees(running, office.bob)


async def test_admins_of_a_channel_on_pages_are_those_of_the_workspace_and_who_made_it(office: Office) -> None:
    guest = await office.slack.add_user(office.team, "gus", is_restricted=True)
    theirs = await office.slack.add_channel(office.team, "theirs", [office.bob, office.alice, guest])
    secret = await office.slack.add_channel(office.team, "secret", [office.bob, office.alice], private=True)
    guests = await office.slack.add_channel(office.team, "guests", [guest, office.bob])
    async with office.socket() as running:
        source = running.app.memberships._sources["slack"]
        found = {user: await source.rooms_of(office.team.id, user) for user in (office.alice, office.bob, guest)}
    of = {user: (set(each.private), set(each.managed)) for user, each in found.items() if each is not None}
    assert {theirs, secret} <= of[office.alice][1]
    assert of[office.bob] == ({secret}, {theirs, secret})
    assert of[guest] == (set(), set())
    assert guests not in of[office.bob][1]

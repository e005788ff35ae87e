"""How far a sender is trusted is what their platform says of them at that moment."""

import time
from collections.abc import AsyncIterator

import asyncpg
import pytest

from bot.slack.reading import read_event
from composer.model import ConversationKind, Incoming, Place, Trust
from composer.settings import Settings
from tests.support.discord.harness import Discord, on_discord
from tests.support.discord.model import Channel, Guild, Interaction, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import Office, office_on
from tests.support.slack.told import told
from tests.support.waiting import until


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


async def trusted(database_url: str | None) -> dict[str, str]:
    """How far the senders of the stored messages were trusted, by text."""
    connection = await asyncpg.connect(database_url)
    try:
        rows = await connection.fetch("SELECT text, trust FROM messages WHERE agent_id IS NULL")
        return {row["text"]: row["trust"] for row in rows}
    finally:
        await connection.close()


async def stated(database_url: str | None) -> dict[str, str | None]:
    """What the platform said last of each person, by name."""
    connection = await asyncpg.connect(database_url)
    try:
        rows = await connection.fetch(
            "SELECT u.name, i.trust FROM identities AS i JOIN users AS u USING (tenant_id) WHERE u.id = i.user_id"
        )
        return {row["name"]: row["trust"] for row in rows}
    finally:
        await connection.close()


@pytest.mark.parametrize("mark", ["is_restricted", "is_ultra_restricted", "is_stranger"])
async def test_in_slack_restricted_people_and_strangers_are_guests(office: Office, mark: str) -> None:
    guest = await office.slack.add_user(office.team, "mallory", **{mark: True})
    await office.slack.join(office.general, guest)
    async with office.socket() as running:
        await office.slack.post(office.general, guest, "We decided to pay mallory.")
        await office.slack.post(office.general, office.alice, "We decided to pay the invoice.")
        await office.slack.post_as_other_bot(office.general, "We decided to deploy.")
        await running.settle()
    assert await trusted(office.settings.database_url) == {
        "We decided to pay mallory.": "guest",
        "We decided to pay the invoice.": "member",
        "We decided to deploy.": "tool",
    }
    found = await stated(office.settings.database_url)
    assert {found.pop("mallory"), found.pop("alice")} == {"guest", "member"}
    assert set(found.values()) == {None}, "of a tool nothing is said"


async def test_of_whom_slack_does_not_tell_is_a_guest(office: Office) -> None:
    async with office.socket() as running:
        office.slack.fail("users.info", times=20)
        await office.slack.post(office.general, office.bob, "We decided to pay the invoice.")
        await running.settle()
    assert await trusted(office.settings.database_url) == {"We decided to pay the invoice.": "guest"}


@pytest.mark.parametrize("restricted", [True, False])
async def test_who_becomes_a_guest_in_slack_is_one_at_once_in_every_process(office: Office, restricted: bool) -> None:
    # The other process went on for ten minutes by what it had looked up, and recorded that as what Slack says.
    text, slack = "We decided to deploy on Friday.", office.slack
    user = await slack.add_user(office.team, "mallory", is_restricted=not restricted)
    await slack.join(office.general, user)

    def said(number: int) -> Incoming:
        ts = slack.post_untold(office.general, user, f"{text} {number}", time.time())
        return told(office.general, ts, user, f"{text} {number}")

    async with office.socket() as first, office.http() as other:
        await other.adapter.inbox.receive_message(said(1))
        slack.world.users[user]["is_restricted"] = restricted
        change = {"type": "user_change", "event_ts": f"{time.time():.6f}", "user": slack.world.users[user]}
        read = read_event(change, await first.adapter.directory.me())
        assert read is not None
        await first.adapter._apply(read, 0)
        found = (await stated(office.settings.database_url))["mallory"]
        assert found == ("guest" if restricted else "member"), "also before they write anything"
        await other.adapter.inbox.receive_message(said(2))
        asked = await other.adapter.commands._incoming(
            Place(ConversationKind.ROOM, office.general), user, "/nexus fact set day Friday", "1.2"
        )
        answer = await other.adapter.commands._run(asked)
    now = "guest" if restricted else "member"
    assert (await trusted(office.settings.database_url))[f"{text} 2"] == now
    assert (await stated(office.settings.database_url))["mallory"] == now
    assert ("approve" in answer.text) is restricted, answer.text


async def test_a_change_that_slack_tells_is_recorded(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.post(office.general, office.bob, "hello")
        await running.settle()
        for restricted, trust in ((True, "guest"), (False, "member")):
            await office.slack.restrict(office.team, office.bob, restricted)
            await running.settle()
            assert (await stated(office.settings.database_url))["bob"] == trust
        me = await running.adapter.directory.me()
        old = {
            "type": "user_change",
            "event_ts": "1777885202.000000",
            "user": {"id": office.bob, "is_restricted": True},
        }
        read = read_event(old, me)
        assert read is not None
        await running.adapter._apply(read, 0)
        assert (await stated(office.settings.database_url))["bob"] == "member", "what is delivered late changes nothing"


async def test_in_discord_who_has_no_role_is_a_guest_where_members_have_one(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    await server.post(room, ada, "nobody has a role yet")
    await here.stored("nobody has a role yet")
    staff = await server.add_role(guild, "staff")
    bob = await server.add_member(guild, "Bob", staff)
    await server.post(room, bob, "bob has one")
    await server.post(room, ada, "ada has none")
    await server.post(room, guild.owner, "the owner needs none")
    await here.stored("the owner needs none")
    assert await trusted(here.app.settings.database_url) == {
        "nobody has a role yet": "member",
        "bob has one": "member",
        "ada has none": "guest",
        "the owner needs none": "member",
    }
    await here.answer(await server.post(server.dm(ada), ada, "is this a secret?"))
    assert (await trusted(here.app.settings.database_url))["is this a secret?"] == "guest"
    await here.answer(await server.post(server.dm(bob), bob, "is that a secret?"))
    assert (await trusted(here.app.settings.database_url))["is that a secret?"] == "member"
    found = await stated(here.app.settings.database_url)
    assert (found[ada.name], found["Bob"]) == ("guest", "member"), "a DM says nothing"


async def test_who_loses_their_role_on_discord_is_a_guest_in_their_dm_at_once(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel
) -> None:
    # README: what is stored with --global, everybody gets but guests. A DM was answered as to a member for as long as
    # nothing was written in the server.
    staff = await server.add_role(guild, "staff")
    bob = await server.add_member(guild, "Bob", staff)
    await server.post(room, bob, "the deploy is on Friday")
    await here.stored("the deploy is on Friday")
    given = await server.invoke(
        "nexus remember", room, guild.owner, text="the code is walrus", **{"global": True, "yes": True}
    )
    await until(lambda: _answered(given))
    assert await sees(here, server, bob)
    await server.set_roles(guild, bob)
    assert not await sees(here, server, bob)
    assert (await stated(here.app.settings.database_url))["Bob"] == "guest"
    await server.set_roles(guild, bob, staff)
    assert await sees(here, server, bob)
    await server.remove_role(guild, staff)
    await server.add_role(guild, "crew")
    assert not await sees(here, server, bob), "nobody tells it of each who had the role"


async def test_who_lost_their_role_on_discord_while_nexus_was_away_is_a_guest_in_their_dm(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel
) -> None:
    staff = await server.add_role(guild, "staff")
    bob = await server.add_member(guild, "Bob", staff)
    async with on_discord(settings, server, guild) as here:
        await server.post(room, bob, "the deploy is on Friday")
        await here.stored("the deploy is on Friday")
        given = await server.invoke(
            "nexus remember", room, guild.owner, text="the code is walrus", **{"global": True, "yes": True}
        )
        await until(lambda: _answered(given))
        assert await sees(here, server, bob)
    await server.set_roles(guild, bob)
    async with on_discord(settings, server, guild) as here:
        assert not await sees(here, server, bob)


async def test_who_never_wrote_in_a_discord_server_is_in_their_dm_what_its_roles_make_of_them(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    staff = await server.add_role(guild, "staff")
    bob = await server.add_member(guild, "Bob", staff)
    given = await server.invoke(
        "nexus remember", room, guild.owner, text="the code is walrus", **{"global": True, "yes": True}
    )
    await until(lambda: _answered(given))
    assert not await sees(here, server, ada)
    assert await sees(here, server, bob)
    listed = await server.invoke("nexus recall", server.dm(ada), ada, text="code walrus")
    await until(lambda: _answered(listed))
    assert "walrus" not in listed.messages[-1].content


async def sees(here: Discord, server: DiscordServer, user: User) -> bool:
    """Whether the prompt of somebody's question in their DM has the code."""
    await here.app.indexer.catch_up(here.workspace.tenant_id)
    await here.answer(await server.post(server.dm(user), user, "what is the code?"))
    return "walrus" in here.model.shown[-1]


async def _answered(given: Interaction) -> bool:
    return bool(given.messages and given.messages[-1].content)


async def test_of_whom_discord_does_not_tell_is_a_guest_in_their_dm(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = await server.add_member(guild, "Bob", await server.add_role(guild, "staff"))
    async with on_discord(settings, server, guild) as here:  # discord.py does not know Bob yet
        given = await server.invoke(
            "nexus remember", room, guild.owner, text="the code is walrus", **{"global": True, "yes": True}
        )
        await until(lambda: _answered(given))
        with monkeypatch.context() as patch:
            patch.setattr("bot.discord.guilds.GUILD_LOOKUP_SECONDS", 0.0)
            assert not await sees(here, server, bob)
        assert await sees(here, server, bob)


async def test_what_roles_make_of_people_is_recorded_before_they_write_again(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel
) -> None:
    # It also decides what they may do over the API, which no message comes from.
    staff = await server.add_role(guild, "staff")
    bob = await server.add_member(guild, "Bob", staff)

    async def is_now(trust: str) -> bool:
        return (await stated(settings.database_url))["Bob"] == trust

    async with on_discord(settings, server, guild) as here:
        await server.post(room, bob, "the deploy is on Friday")
        await here.stored("the deploy is on Friday")
        assert await is_now("member")
        await server.set_roles(guild, bob)
        await server.set_roles(guild, bob)  # discord.py passes on no first change of whom it does not know
        await until(lambda: is_now("guest"))
        await server.remove_role(guild, staff)
        await until(lambda: is_now("member"))
        await server.add_role(guild, "crew")
        await until(lambda: is_now("guest"))
    await server.set_roles(guild, bob, await server.add_role(guild, "mates"))
    await server.add_channel(guild, "board", only=[bob])  # so that discord.py asks for the members of the server
    async with on_discord(settings, server, guild):
        await until(lambda: is_now("member"))


async def test_what_discord_says_while_a_direct_message_is_being_stored_holds(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel
) -> None:
    # README: guests get nothing of what is stored for everyone. Who lost their role just then stayed a member.
    role = await server.add_role(guild, "staff")
    bob = await server.add_member(guild, "Bob", role)
    await server.post(room, bob, "hello")
    await here.stored("hello")
    given = Incoming(
        adapter="discord",
        workspace=here.workspace.name,
        place=Place(ConversationKind.DM, "nexus"),
        user=str(bob.id),
        user_name="Bob",
        id="1",
        text="what is the code?",
        at=here.app.clock.now(),
    )
    looked_up = await here.adapter._guilds.with_trust(given)
    assert looked_up.sender_trust is Trust.MEMBER
    await server.set_roles(guild, bob)
    settings = here.app.settings

    async def is_now(trust: str) -> bool:
        return (await stated(settings.database_url))["Bob"] == trust

    await until(lambda: is_now("guest"))
    await here.app.receive(here.workspace, [looked_up], answer=False)
    assert (await trusted(settings.database_url))["what is the code?"] == "guest"
    assert await is_now("guest")

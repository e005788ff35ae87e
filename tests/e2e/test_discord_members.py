"""`/nexus rooms on` reads a private Discord channel or thread for those who are in it when they ask."""

from datetime import timedelta
from typing import Any

import discord
import pytest

from bot.discord.reading import is_private
from composer.settings import Settings
from tests.support.discord.harness import Discord, on_discord, up
from tests.support.discord.model import NOTHING, Channel, Guild, Permission, Role, User
from tests.support.discord.server import DiscordServer
from tests.support.waiting import until

CODE = "The code of the harbour is walrus."


@pytest.fixture
async def bob(server: DiscordServer, guild: Guild) -> User:
    return await server.add_member(guild, "Bob")


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord is asked anew each time, as if a minute had gone by."""
    monkeypatch.setattr("composer.turn.memberships.MAX_AGE", timedelta(microseconds=-1))


async def is_in(here: Discord, channel: Channel, user: User) -> bool:
    """Whether Discord says that somebody is in a private channel or thread."""
    source = here.app.memberships._sources["discord"]
    said = await source.rooms_of(here.workspace.name, str(user.id))
    return said is not None and str(channel.id) in said.private


async def is_not_in(here: Discord, channel: Channel, user: User) -> bool:
    return not await is_in(here, channel, user)


async def sees(here: Discord, server: DiscordServer, user: User) -> bool:
    """Whether the prompt of somebody's question in their DM has the code."""
    await here.app.indexer.catch_up(here.workspace.tenant_id)
    await here.answer(await server.post(server.dm(user), user, "what is the code of the harbour?"))
    return "walrus" in here.model.shown[-1]


async def tell(here: Discord, server: DiscordServer, channel: Channel, ada: User, bob: User) -> None:
    """Tell the code in a private room, and open Bob's DMs to rooms."""
    await server.post(channel, bob, f"hello in {channel.id}")
    await server.post(channel, ada, CODE)
    await here.stored(CODE)
    await here.answer(await server.post(server.dm(bob), bob, "hello"))
    given = await server.invoke("nexus rooms", server.dm(bob), bob, mode="on")
    await until(lambda: given.messages and given.messages[-1].content.startswith("From now on"))


async def test_who_loses_a_channel_while_nexus_is_away_reads_it_no_more(
    settings: Settings, server: DiscordServer, guild: Guild, ada: User, bob: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada, bob])
    async with on_discord(settings, server, guild) as here:
        await tell(here, server, board, ada, bob)
        assert await sees(here, server, bob)
    await server.make_private(board, [ada, server.bot])
    async with on_discord(settings, server, guild) as here:
        assert not await sees(here, server, bob)
    await server.make_private(board, [ada, bob, server.bot])
    async with on_discord(settings, server, guild) as here:
        assert await sees(here, server, bob)


async def test_who_leaves_a_private_thread_while_nexus_is_away_reads_it_no_more(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, bob: User
) -> None:
    async with on_discord(settings, server, guild) as here:
        thread = await server.add_thread(room, "plans", ada, private=True)
        for user in (bob, server.bot):
            await server.join_thread(thread, user)
        await tell(here, server, thread, ada, bob)
        assert await sees(here, server, bob)
    await server.leave_thread(thread, bob)
    async with on_discord(settings, server, guild) as here:
        assert not await sees(here, server, bob)


@pytest.mark.usefixtures("nothing_kept")
async def test_who_may_not_view_its_channel_any_more_reads_a_private_thread_no_more(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User, bob: User
) -> None:
    thread = await server.add_thread(room, "plans", ada, private=True)
    for user in (bob, server.bot):
        await server.join_thread(thread, user)
    await tell(here, server, thread, ada, bob)
    assert await sees(here, server, bob)
    await server.make_private(room, [ada, server.bot])
    await until(lambda: is_not_in(here, thread, bob))
    assert not await sees(here, server, bob)


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("how", ["archived", "removed"])
async def test_a_private_thread_that_discord_does_not_tell_of_is_read_no_more(
    here: Discord, server: DiscordServer, room: Channel, ada: User, bob: User, how: str
) -> None:
    thread = await server.add_thread(room, "plans", ada, private=True)
    for user in (bob, server.bot):
        await server.join_thread(thread, user)
    await tell(here, server, thread, ada, bob)
    assert await is_in(here, thread, bob)
    await (server.archive(thread) if how == "archived" else server.leave_thread(thread, server.bot))
    await until(lambda: is_not_in(here, thread, bob))

    assert not await sees(here, server, bob)


@pytest.mark.usefixtures("nothing_kept")
async def test_while_the_session_is_lost_discord_says_nothing_and_again_when_it_is_resumed(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada, bob])
    await tell(here, server, board, ada, bob)
    assert await is_in(here, board, bob)
    await server.go_down()
    await until(lambda: is_not_in(here, board, bob))

    await server.make_private(board, [ada, server.bot])
    await server.come_back()
    await up(here.adapter)
    await until(lambda: is_in(here, board, ada))
    assert not await sees(here, server, bob)


@pytest.mark.usefixtures("nothing_kept")
async def test_in_a_new_session_discord_says_who_is_in_a_channel(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada, bob])
    await tell(here, server, board, ada, bob)
    with server.rearranged(lambda events: []):
        await server.make_private(board, [ada, server.bot])
    await server.invalidate(resumable=False)
    await until(lambda: here.has_left(board, bob))
    await up(here.adapter)
    assert not await sees(here, server, bob)


@pytest.mark.usefixtures("nothing_kept")
async def test_of_a_large_server_only_people_whom_nexus_knows_are_asked_for(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.discord.events.MAX_LISTED_MEMBERS", 0)
    staff = await server.add_role(guild, "staff", Permission.ADMINISTRATOR)
    await server.set_roles(guild, bob, staff)
    board = await server.add_channel(guild, "board", only=[ada])
    await tell(here, server, board, ada, bob)
    before = server.gateway.count("request members")
    await server.set_roles(guild, bob)
    await server.invalidate(resumable=False)
    await until(lambda: server.gateway.count("request members") > before)
    await up(here.adapter)
    assert not await sees(here, server, bob)
    asked = [details for _, what, details in server.gateway.log if what == "request members"]
    assert all(set(details["user_ids"]) <= {ada.id, bob.id} for details in asked[before:])


async def test_who_loses_a_role_that_is_deleted_reads_its_channel_no_more(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User
) -> None:
    crew = await server.add_role(guild, "crew")
    await server.set_roles(guild, bob, crew)
    board = await server.add_channel(guild, "board", only=[ada, crew])
    await tell(here, server, board, ada, bob)
    assert await sees(here, server, bob)
    await server.remove_role(guild, crew)
    await until(lambda: here.has_left(board, bob))
    assert not await sees(here, server, bob)


async def test_the_chat_of_a_voice_channel_is_read_by_those_who_may_connect_to_it(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User
) -> None:
    crew = await server.add_role(guild, "crew")
    await server.set_roles(guild, bob, crew)
    bridge = await server.add_voice_channel(guild, "bridge", only=[ada, crew])
    await tell(here, server, bridge, ada, bob)
    assert await here.is_private(bridge)
    assert await sees(here, server, bob)
    await server.set_roles(guild, bob)
    await until(lambda: here.has_left(bridge, bob))
    assert not await sees(here, server, bob)


async def test_a_channel_that_a_role_of_nexus_may_not_view_is_private(
    here: Discord, server: DiscordServer, guild: Guild, ada: User
) -> None:
    quiet = await server.add_role(guild, "quiet")
    harbour = await server.add_channel(guild, "harbour")
    harbour.overwrites[quiet.id] = (0, NOTHING, Permission.VIEW_CHANNEL)
    server.world.update_channel(harbour)
    await server.set_roles(guild, server.bot, quiet)
    client = here.adapter._client
    assert client is not None
    seen = await until(lambda: _channel_seen_by(client, guild, harbour, quiet))
    assert is_private(seen)


async def _channel_seen_by(client: discord.Client, guild: Guild, channel: Channel, role: Role) -> Any:
    """A channel, once the bot has a role."""
    found = client.get_guild(guild.id)
    has = found is not None and found.me.get_role(role.id) is not None
    return found.get_channel(channel.id) if found is not None and has else None


async def test_a_voice_channel_to_which_few_may_connect_is_private(
    here: Discord, server: DiscordServer, guild: Guild, ada: User
) -> None:
    crew = await server.add_role(guild, "crew")
    await server.set_roles(guild, ada, crew)
    bridge = await server.add_voice_channel(guild, "bridge", only=[ada, crew])
    await server.post(bridge, ada, CODE)
    await here.stored(CODE)
    assert await here.is_private(bridge)


@pytest.mark.parametrize("thrown_out", [True, False])
@pytest.mark.usefixtures("nothing_kept")
async def test_of_a_server_of_which_discord_tells_nothing_no_private_channel_is_read(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User, *, thrown_out: bool
) -> None:
    board = await server.add_channel(guild, "board", only=[ada, bob])
    await tell(here, server, board, ada, bob)
    assert await sees(here, server, bob)
    if thrown_out:
        await server.remove_member(guild, server.bot)
    else:
        await server.start_outage(guild)
    await until(lambda: is_not_in(here, board, bob))
    await server.disconnect()
    await server.wait_for("resume")
    await until(here.adapter.connected)
    assert not await is_in(here, board, bob)  # nor after a resume
    if thrown_out:
        return
    with server.rearranged(lambda events: []):
        await server.make_private(board, [ada, server.bot])
    assert not await sees(here, server, bob)
    await server.end_outage(guild)
    await until(lambda: is_in(here, board, ada))
    assert not await sees(here, server, bob)


async def test_who_may_view_a_public_channel_is_no_member_of_it_before_they_write(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User
) -> None:
    # README: the members of a public room are those who have written in it. Whoever got a role became one of all.
    public = await server.add_channel(guild, "harbour")
    await server.post(public, ada, CODE)
    await here.stored(CODE)
    await here.answer(await server.post(server.dm(bob), bob, "hello"))
    given = await server.invoke("nexus rooms", server.dm(bob), bob, mode="on")
    await until(lambda: given.messages and given.messages[-1].content.startswith("From now on"))
    crew = await server.add_role(guild, "crew")
    await server.set_roles(guild, bob, crew)
    await server.remove_member(guild, bob)
    await server.add_member(guild, bob, crew)
    await server.post(public, ada, "that is all")
    await here.stored("that is all")
    assert not await sees(here, server, bob)
    await server.post(public, bob, "I see")
    await here.stored("I see")
    assert await sees(here, server, bob)
    hidden = await server.add_role(guild, "hidden")
    await server.make_private(public, [ada])
    await until(lambda: here.has_left(public, bob))
    await server.make_public(public)
    await server.set_roles(guild, bob, hidden)
    await until(lambda: here.is_back(public, bob))


async def test_who_may_manage_a_channel_is_its_admin_on_pages(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, bob: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada, bob])
    await server.set_roles(guild, ada, await server.add_role(guild, "keeper", Permission.MANAGE_CHANNELS))
    async with on_discord(settings, server, guild) as here:
        source = here.app.memberships._sources["discord"]
        of_ada, of_bob = [await source.rooms_of(here.workspace.name, str(user.id)) for user in (ada, bob)]
    assert of_ada is not None
    assert of_bob is not None
    assert {str(room.id), str(board.id)} <= set(of_ada.managed)
    assert set(of_bob.managed) == set()
    assert str(board.id) in of_bob.private

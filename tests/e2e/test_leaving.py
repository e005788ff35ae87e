"""Whoever leaves a Discord server or a Slack workspace keeps no key to what its teams and projects remember."""

import secrets
from datetime import UTC, datetime

from composer.app import App
from composer.model import Workspace
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.settings import Settings
from tests.support.discord.harness import Discord, on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import office_on
from tests.support.waiting import until


async def key_of(app: App, workspace: Workspace, external_id: str, vendor: str | None = None) -> str:
    """The text of a new key of somebody known in a workspace."""
    async with app.database.transaction(workspace.tenant_id) as tx:
        person = await tx.people.find_user(workspace.platform, workspace.name, external_id)
        assert person is not None
        request = KeyRequest(vendor, "test", None)
        made = await create_key(
            tx, workspace.tenant, person, request, secrets.token_bytes(32), datetime.now(UTC), by=person.id
        )
    return made.text


async def opens(app: App, key: str) -> bool:
    return await app.credentials.resolve(key) is not None


async def keys_of(here: Discord, general: Channel, bob: User, ada: User) -> tuple[list[str], str]:
    """Two keys of Bob's, and one of Ada's, once both have written."""
    for person in (ada, bob):
        await here.server.post(general, person, f"hello from {person.name}")
        await here.stored(f"hello from {person.name}")
    keys = [await key_of(here.app, here.workspace, str(bob.id), vendor) for vendor in (None, "claude")]
    return keys, await key_of(here.app, here.workspace, str(ada.id))


async def test_who_leaves_a_discord_server_loses_their_keys(
    settings: Settings, server: DiscordServer, guild: Guild, ada: User
) -> None:
    bob = await server.add_member(guild, "Bob")
    general = await server.add_channel(guild, "talk")
    async with on_discord(settings, server, guild) as here:
        keys, adas = await keys_of(here, general, bob, ada)
        assert [await opens(here.app, key) for key in (*keys, adas)] == [True, True, True]
        await server.remove_member(guild, bob)
        await until(lambda: _none_opens(here.app, keys))
        assert await opens(here.app, adas)


async def test_whose_slack_account_is_closed_loses_their_keys(settings: Settings) -> None:
    async with office_on(settings) as office, office.socket() as running:
        for user in (office.alice, office.bob):
            await office.slack.post(office.general, user, "hello")
        await running.settle()
        workspace = await running.adapter.inbox.workspace()
        keys = [await key_of(running.app, workspace, office.bob, vendor) for vendor in (None, "claude")]
        alices = await key_of(running.app, workspace, office.alice)
        assert [await opens(running.app, key) for key in (*keys, alices)] == [True, True, True]
        await office.slack.close_account(office.team, office.bob)
        await until(lambda: _none_opens(running.app, keys))
        assert await opens(running.app, alices)


async def test_who_left_a_discord_server_while_nexus_was_away_loses_their_keys(
    settings: Settings, server: DiscordServer, guild: Guild, ada: User
) -> None:
    bob = await server.add_member(guild, "Bob")
    general = await server.add_channel(guild, "talk")
    async with on_discord(settings, server, guild) as here:
        keys, adas = await keys_of(here, general, bob, ada)
    await server.remove_member(guild, bob)
    async with on_discord(settings, server, guild) as here:
        await until(lambda: _none_opens(here.app, keys))
        assert await opens(here.app, adas)


async def test_whose_slack_account_was_closed_while_nexus_was_away_loses_their_keys(settings: Settings) -> None:
    async with office_on(settings) as office:
        async with office.socket() as running:
            for user in (office.alice, office.bob):
                await office.slack.post(office.general, user, "hello")
            await running.settle()
            workspace = await running.adapter.inbox.workspace()
            keys = [await key_of(running.app, workspace, office.bob, vendor) for vendor in (None, "claude")]
            alices = await key_of(running.app, workspace, office.alice)
        await office.slack.close_account(office.team, office.bob)
        async with office.socket() as running:
            await until(lambda: _none_opens(running.app, keys))
            assert await opens(running.app, alices)


async def test_an_answer_that_does_not_say_so_takes_nobodys_key(
    settings: Settings, server: DiscordServer, guild: Guild, ada: User
) -> None:
    bob = await server.add_member(guild, "Bob")
    general = await server.add_channel(guild, "talk")
    async with on_discord(settings, server, guild) as here:
        await server.post(general, bob, "hello")
        await here.stored("hello")
        key = await key_of(here.app, here.workspace, str(bob.id))
    await server.remove_member(guild, bob)
    route = "GET /guilds/{guild_id}/members/{user_id}"
    server.fail(route, 404)  # as of a server that Nexus was taken out of
    async with on_discord(settings, server, guild) as here:
        await until(lambda: not server.rest.faults)
        assert await opens(here.app, key)
    async with on_discord(settings, server, guild) as here:
        await until(lambda: _none_opens(here.app, [key]))


async def _none_opens(app: App, keys: list[str]) -> bool:
    return not any([await opens(app, key) for key in keys])

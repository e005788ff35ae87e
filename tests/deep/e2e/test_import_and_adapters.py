"""A live adapter and an export of the same conversation store the same messages; real SDKs, real sockets."""

import json
import zipfile
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bot.importers.export import DISCORD_EXPORT, SLACK_EXPORT
from composer.settings import Settings
from tests.support.databases import EMPTY_TENANTS
from tests.support.discord.harness import on_discord, point_at
from tests.support.discord.model import Channel
from tests.support.discord.server import DiscordServer
from tests.support.exports import discord_file, loaded
from tests.support.slack.harness import Office, office_on

_KEPT = """
SELECT m.id, m.conversation_id, m.external_id, m.user_id, m.author, m.text, m.namespace, m.mentions, c.kind, c.private
FROM messages AS m JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
WHERE m.agent_id IS NULL ORDER BY m.id
"""


async def stored_messages(settings: Settings) -> list[tuple[Any, ...]]:
    """Every message of a person, with its conversation and namespace."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        return [tuple(row) for row in await connection.fetch(_KEPT)]
    finally:
        await connection.close()


async def empty(settings: Settings) -> None:
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute(EMPTY_TENANTS)
    finally:
        await connection.close()


def slack_export(office: Office, leads: str, dm: str, path: Path) -> Path:
    """Write the export that Slack would give now."""
    world, bot = office.slack.world, office.team.bot_user
    names = {office.general: "general", leads: "leads"}
    users = [office.alice, office.bob, bot]
    with zipfile.ZipFile(path, "w") as file:
        people = [{**world.users[user], "team_id": office.team.id} for user in users]
        file.writestr("users.json", json.dumps(people))
        file.writestr("channels.json", json.dumps([{"id": office.general, "name": "general", "members": users}]))
        file.writestr("groups.json", json.dumps([{"id": leads, "name": "leads", "members": [office.alice, bot]}]))
        file.writestr("dms.json", json.dumps([{"id": dm, "members": [office.alice, bot]}]))
        for channel in (office.general, leads, dm):
            days = f"{names.get(channel, channel)}/2026-05-04.json"
            file.writestr(days, json.dumps(office.slack.messages(channel)))
    return path


async def test_slack_events_and_a_slack_export_store_the_same_messages(settings: Settings, tmp_path: Path) -> None:
    async with office_on(settings) as office:
        slack = office.slack
        leads = await slack.add_channel(office.team, "leads", [office.alice], private=True)
        dm = await slack.add_im(office.team, office.alice)
        async with office.socket() as running:
            root = await slack.post(office.general, office.alice, f"<@{office.bob}> we launch &lt;Friday&gt;")
            await slack.post(office.general, office.bob, "at noon", thread=root)
            hush = await slack.post(leads, office.alice, "bob gets a raise")
            await slack.post(leads, office.alice, "a large one", thread=hush)
            await slack.post_as_other_bot(office.general, "build 7 is green")
            await slack.post(dm, office.alice, "my salary is 91k")
            await office.answered(1, dm)
            await running.settle()
            from_adapter = await stored_messages(settings)
            path = slack_export(office, leads, dm, tmp_path / "export.zip")
            done = await loaded(running.app, SLACK_EXPORT, path, bot=office.team.bot_user)
            assert (done.new, done.known) == (0, 6)
            assert await stored_messages(settings) == from_adapter
        await empty(settings)
        async with office.open() as quiet:
            assert (await loaded(quiet.app, SLACK_EXPORT, path, bot=office.team.bot_user)).new == 6
        assert await stored_messages(settings) == from_adapter, "an import alone stores all of it as the adapter did"
        async with office.socket() as again:
            await again.settle()
            assert await stored_messages(settings) == from_adapter, (
                "and the adapter, which catches up, stores nothing twice"
            )


def exported(server: DiscordServer, channel: Channel, folder: Path, parent: Channel | None = None) -> Path:
    """Write the file that DiscordChatExporter would give for a channel now."""
    kind = "GuildTextChat" if parent is None else "GuildPublicThread"
    about = {"id": str(channel.id), "name": channel.name, "type": kind}
    if parent is not None:
        about |= {"categoryId": str(parent.id), "category": parent.name}

    def person(user: Any) -> dict[str, Any]:
        return {"id": str(user.id), "name": user.name.lower(), "nickname": user.name, "isBot": user.bot}

    messages = [
        {
            "id": str(message.id),
            "type": {0: "Default", 19: "Reply"}.get(message.kind, str(message.kind)),
            "timestamp": message.json(server.bot)["timestamp"],
            "content": message.content,
            "author": person(message.author),
            "mentions": [person(user) for user in message.mentions],
        }
        for message in server.messages(channel)
    ]
    assert channel.guild is not None
    return discord_file(folder / f"{channel.id}.json", about, messages, guild=str(channel.guild.id))


async def test_discord_events_and_a_discord_export_store_the_same_messages(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with DiscordServer() as server:
        point_at(server, monkeypatch)
        guild = await server.add_guild()
        ada, bob = await server.add_member(guild, "Ada"), await server.add_member(guild, "Bob")
        room = await server.add_channel(guild, "general")
        staff = await server.add_channel(guild, "staff", only=[ada])
        async with on_discord(settings, server, guild) as discord:
            await server.post(room, ada, f"{bob.mention} we launch Friday")
            await server.post(staff, ada, "bob gets a raise")
            question = await server.post(room, bob, f"{server.bot.mention} when do we launch?")
            await discord.answer(question)
            await discord.stored("bob gets a raise")
            from_adapter = await stored_messages(settings)
            files = [exported(server, channel, tmp_path) for channel in (room, staff)]
            done = await loaded(discord.app, DISCORD_EXPORT, *files, bot=str(server.bot.id))
            assert (done.new, done.known) == (0, 3)
            assert await stored_messages(settings) == from_adapter
        await empty(settings)
        async with on_discord(settings, server, guild) as again:
            done = await loaded(again.app, DISCORD_EXPORT, *files, bot=str(server.bot.id))
            assert (done.new, done.assumed_private) == (3, set()), "Discord was asked which channels are private"
            assert await stored_messages(settings) == from_adapter, (
                "an import alone stores all of it as the adapter did"
            )

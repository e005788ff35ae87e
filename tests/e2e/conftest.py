"""Fixtures for the tests of the Discord adapter: a server, a guild with a room and a member, and Nexus in it."""

from collections.abc import AsyncIterator

import pytest

from composer.settings import Settings
from tests.support.discord.harness import Discord, on_discord, point_at
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as made:
        point_at(made, monkeypatch)
        yield made


@pytest.fixture
async def guild(server: DiscordServer) -> Guild:
    return await server.add_guild()


@pytest.fixture
async def room(server: DiscordServer, guild: Guild) -> Channel:
    return await server.add_channel(guild, "general")


@pytest.fixture
async def ada(server: DiscordServer, guild: Guild) -> User:
    return await server.add_member(guild, "Ada")


@pytest.fixture
async def here(settings: Settings, server: DiscordServer, guild: Guild) -> AsyncIterator[Discord]:
    async with on_discord(settings, server, guild) as harness:
        yield harness

"""An adapter says that it is connected only while its platform's events arrive."""

import pytest

from bot.discord.adapter import DiscordAdapter
from composer.settings import Settings
from tests.support.discord.harness import Discord
from tests.support.slack.harness import office_on
from tests.support.waiting import until


async def test_discord_is_connected_while_every_shard_is(here: Discord) -> None:
    assert not await DiscordAdapter(here.app).connected()
    await until(here.adapter.connected)
    here.adapter._on_event("shard_disconnect", 0)
    assert not await here.adapter.connected()
    here.adapter._on_event("shard_resumed", 0)
    assert await here.adapter.connected()
    await here.adapter.stop()
    assert not await here.adapter.connected()


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_slack_is_connected_while_it_is_served(settings: Settings, wire: str) -> None:
    async with office_on(settings) as office:
        async with office.open() as before:
            assert not await before.adapter.connected()
        async with office.socket() if wire == "socket" else office.http() as running:
            assert await running.adapter.connected()
            await running.adapter.stop()
            await until(lambda: not running.adapter._socket)
    if wire == "socket":
        assert not await running.adapter.connected()

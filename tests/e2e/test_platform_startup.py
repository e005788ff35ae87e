"""`nexus run` says that it is running once each platform is connected, ends when one refuses it, and stops in time."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from discord.backoff import ExponentialBackoff
from pydantic import SecretStr

from bot import serving
from bot.console.cli import signals
from bot.discord.adapter import DiscordAdapter
from bot.discord.doctor import BAD_TOKEN
from bot.platform.startup import listed
from bot.slack.adapter import NO_EVENTS, SlackAdapter
from composer.app import open_app
from composer.errors import Misconfigured
from composer.settings import Settings
from tests.support.discord.harness import Model
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import Office, office_on
from tests.support.waiting import until


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


@asynccontextmanager
async def served(
    settings: Settings, server: DiscordServer, token: str = ""
) -> AsyncIterator[tuple[asyncio.Task[None], list[str]]]:
    """`serve` on Discord, with what it says."""
    given = settings.model_copy(update={"discord_token": SecretStr(token or server.token)})
    async with open_app(given, index=False, model=Model()) as app:
        said: list[str] = []
        running = asyncio.create_task(serving.serve(app, {"discord"}, said.append))
        try:
            yield running, said
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_running_is_said_once_discord_is_connected_with_the_bot_and_its_channels(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    await server.add_channel(guild, "board", only=[ada, server.bot])
    server.gateway.refuse = 2
    async with served(settings, server) as (_, said):
        await until(lambda: said[-1:] and said[-1].startswith("Nexus is running"))
        assert gc.get_threshold()[0] == serving.OBJECTS_PER_COLLECTION, "what is held is seldom looked through"
    assert said[0] == "Connecting to Discord …"
    assert server.bot.name in said[1]
    assert f"in {guild.name} (#general, 1 private)" in said[1]


async def test_a_token_that_discord_refuses_at_the_start_ends_the_program(
    settings: Settings, server: DiscordServer, guild: Guild
) -> None:
    async with served(settings, server, "another") as (running, said):
        with pytest.raises(Misconfigured, match=BAD_TOKEN[:40]):
            await running
    assert said == ["Connecting to Discord …"]


async def test_serving_ends_while_discord_is_away(
    settings: Settings, server: DiscordServer, room: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: list[DiscordAdapter] = []

    class Watched(DiscordAdapter):
        async def run(self) -> None:
            sessions.append(self)
            await super().run()

    monkeypatch.setattr(serving, "DiscordAdapter", Watched)
    async with served(settings, server) as (running, said):
        await until(lambda: said[-1:] and said[-1].startswith("Nexus is running"))
        monkeypatch.setattr(ExponentialBackoff, "delay", lambda _: 3600.0)  # as long as discord.py likes
        await server.go_down(rest=True)
        await until(sessions[0]._lost_shards.copy)
        running.cancel()
        await running
        await server.come_back()


async def test_a_library_that_swallows_the_end_does_not_keep_serving_from_ending(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "CLOSE_SECONDS", 0.1)
    released, swallowed = asyncio.Event(), 0

    async def stubborn() -> None:
        nonlocal swallowed
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                swallowed += 1

    async with open_app(settings, index=False, model=Model()) as app:
        said: list[str] = []
        running = asyncio.create_task(serving.serve(app, set(), said.append, stubborn))
        await until(lambda: said)
        running.cancel()
        await running
        released.set()
    assert swallowed


def test_the_parts_of_stopping_fit_into_the_whole() -> None:
    assert serving.ANSWER_SECONDS + serving.CLOSE_SECONDS * 1.25 < signals.STOP_SECONDS


async def test_slack_says_as_whom_and_where_it_is_connected(office: Office) -> None:
    async with office.socket() as running:
        said = await running.adapter.startup.wait()
    assert said.startswith("Slack as ")
    assert "#general" in said


async def test_a_token_that_slack_refuses_at_the_start_is_an_error(office: Office) -> None:
    refused = SecretStr("xoxb-not-ours")
    office.settings = office.settings.model_copy(update={"slack_bot_token": refused})
    async with office.open() as running, running.serving():
        with pytest.raises(Misconfigured, match="Slack refuses the token"):
            await running.adapter.startup.wait()


async def test_slack_without_a_way_to_send_events_is_refused(office: Office) -> None:
    office.settings = office.settings.model_copy(update={"slack_app_token": None, "slack_signing_secret": None})
    async with open_app(office.settings, index=False, model=office.model) as app:
        with pytest.raises(Misconfigured, match="Slack has no way to reach Nexus"):
            SlackAdapter(app)
    assert "NEXUS_SLACK_APP_TOKEN" in NO_EVENTS


@pytest.mark.parametrize(
    ("names", "private", "words"),
    [
        ((), 0, "no channel yet"),
        (("b", "A"), 0, "#A, #b"),
        (("a", "b", "c", "d", "e", "f", "g"), 2, "#a, #b, #c, #d, #e, 2 more, 2 private"),
        ((), 1, "1 private"),
    ],
)
def test_channels_are_listed_in_words(names: tuple[str, ...], private: int, words: str) -> None:
    assert listed(names, private) == words

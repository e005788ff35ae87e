"""An answer for which a model calls tools, as it is shown on Discord and Slack: one message, which streams."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from composer.settings import AgentSettings, Settings
from composer.stores.models.configured import configured_chat_model
from tests.support.discord.harness import on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.mcp_office import Wiki, at, serving
from tests.support.model_server import ModelServer, Say
from tests.support.slack.harness import office_on

pytestmark = pytest.mark.timeout(90)

STEPS = (
    Say(("Let me ", "look."), calls=[("recall", {"query": "harbour code"})]),
    Say((), calls=[("remember", {"text": "the desk is oak"})]),
    Say(("It is ", "nowhere.")),
)


@pytest.fixture
async def api() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        server.script.extend(STEPS)
        yield server


@pytest.fixture
def asking(settings: Settings, api: ModelServer) -> Settings:
    """Settings of an agent whose model calls tools."""
    agents = (AgentSettings(model="m"),)
    changed = {"openai_base_url": api.url, "openai_api_key": SecretStr("k"), "agents": agents, "extraction": "off"}
    return settings.model_copy(update=changed)


async def test_discord_shows_one_answer_over_all_steps(
    asking: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    model: Any = configured_chat_model(asking)
    async with on_discord(asking, server, guild, model) as here:
        answer = await here.answer(await server.post(room, ada, f"{server.bot.mention} where is the harbour code?"))
        assert answer.content == "Let me look.\n\nIt is nowhere."
        assert len(here.answers(room)) == 1
        assert len(api.requests) == len(STEPS)


async def test_slack_shows_one_answer_over_all_steps(asking: Settings, api: ModelServer) -> None:
    async with office_on(asking) as office:
        model: Any = configured_chat_model(office.settings)
        office.model = model
        async with office.socket() as running:
            await office.slack.post(office.general, office.alice, office.mention("where is the harbour code?"))
            await office.slack.wait_for(lambda: any("nowhere" in m["text"] for m in office.answers()))
            await running.settle()
            assert [m["text"] for m in office.answers()] == ["Let me look.\n\nIt is nowhere."]
            assert len(api.requests) == len(STEPS)


@pytest.fixture
async def wiki() -> AsyncIterator[Wiki]:
    async with serving(Wiki().add("search", "By the lake.")) as wiki:
        yield wiki


SEARCH = (Say((), calls=[("wiki__search", {"query": "heron"})]), Say(("It is ", "nowhere.")))


async def test_a_tool_server_is_used_in_the_channel_of_discord_that_is_named_by_its_id(
    asking: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User, wiki: Wiki
) -> None:
    for named, expected in ((room.id, 1), (room.id + 1, 0)):
        wiki.calls.clear()
        api.script.clear()
        api.script.extend(SEARCH)
        given = asking.model_copy(update={"mcp": {"wiki": at(wiki, "search", rooms=(f"discord:{guild.id}/{named}",))}})
        async with on_discord(given, server, guild, configured_chat_model(given)) as here:  # type: ignore[arg-type]
            await here.answer(await server.post(room, ada, f"{server.bot.mention} where is the heron?"))
        assert len(wiki.calls) == expected, named


async def test_a_tool_server_is_used_in_the_channel_of_slack_that_is_named_by_its_id(
    asking: Settings, api: ModelServer, wiki: Wiki
) -> None:
    async with office_on(asking) as office:
        api.script.clear()
        api.script.extend(SEARCH)
        rooms = (f"slack:{office.team.id}/{office.general}",)
        office.settings = office.settings.model_copy(update={"mcp": {"wiki": at(wiki, "search", rooms=rooms)}})
        model: Any = configured_chat_model(office.settings)
        office.model = model
        async with office.socket() as running:
            await office.slack.post(office.general, office.alice, office.mention("where is the heron?"))
            await office.slack.wait_for(lambda: any("nowhere" in m["text"] for m in office.answers()))
            await running.settle()
            assert wiki.calls == [("search", {"query": "heron"})]

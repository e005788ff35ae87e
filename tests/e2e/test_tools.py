"""An answer for which a model calls tools, as it is shown on Discord and Slack: one message, which streams."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from composer.settings import AgentSettings, Settings
from composer.stores.configured import configured_chat_model
from tests.support.discord.harness import on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.model_server import ModelServer, Say
from tests.support.slack.harness import office_on

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

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

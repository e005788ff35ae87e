"""Voice messages of Discord and audio clips of Slack, transcribed by a model at an API."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from composer.settings import AgentSettings, Settings
from composer.stores.models.configured import configured_chat_model
from tests.support.discord.harness import on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.model_server import ModelServer
from tests.support.slack.harness import office_on

pytestmark = pytest.mark.timeout(90)

CLIP = b"OggS" + b"speech" * 100


@pytest.fixture
async def api() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        server.spoken.append("where is the heron?")
        yield server


@pytest.fixture
def hearing(settings: Settings, api: ModelServer) -> Settings:
    """Settings with a model that answers and one that transcribes."""
    changed = {"openai_base_url": api.url, "openai_api_key": SecretStr("k"), "agents": (AgentSettings(model="m"),)}
    return settings.model_copy(update=changed | {"extraction": "off", "transcription_model": "whisper"})


def asked(api: ModelServer) -> str:
    """The end of the last prompt."""
    prompts = [each.body for each in api.requests if each.path.endswith("/completions")]
    return str(prompts[-1]["messages"][-1]["content"])


async def test_a_voice_message_of_discord(
    hearing: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    model: Any = configured_chat_model(hearing)
    async with on_discord(hearing, server, guild, model) as here:
        files = {"voice-message.ogg": CLIP}
        await here.answer(await server.post(room, ada, server.bot.mention, files=files))
    assert '[attachment "voice-message.ogg", audio/ogg]\n  | where is the heron?' in asked(api)
    (sent,) = [each.body for each in api.requests if each.path.endswith("/transcriptions")]
    assert sent["bytes"] == CLIP


async def test_an_audio_clip_of_slack(hearing: Settings, api: ModelServer) -> None:
    async with office_on(hearing) as office:
        model: Any = configured_chat_model(office.settings)
        office.model = model
        async with office.socket() as running:
            mention = office.mention("")
            await office.slack.upload(office.general, office.alice, "clip.m4a", CLIP, "audio/mp4", text=mention)
            await office.slack.wait_for(lambda: any("Hello there." in m["text"] for m in office.answers()))
            await running.settle()
    assert '[attachment "clip.m4a", audio/mp4]\n  | where is the heron?' in asked(api)
    (sent,) = [each.body for each in api.requests if each.path.endswith("/transcriptions")]
    assert sent["bytes"] == CLIP

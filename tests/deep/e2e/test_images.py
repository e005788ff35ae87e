"""Images attached to a question, from the real SDKs of the platforms to the real SDK of the model."""

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.discord.file_source import is_discord_address
from bot.slack.client import Slack
from bot.slack.directory import SlackDirectory
from composer.prompt import images
from composer.settings import AgentSettings, Settings
from composer.stores.models.configured import configured_chat_model
from tests.support.discord.harness import Discord, on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.harness import ManualClock
from tests.support.model_server import ModelServer
from tests.support.slack.harness import Office, office_on
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(90)

PNG = b"\x89PNG\r\n\x1a\n" + b"a sketch of the loom"
JPEG = b"\xff\xd8\xff\xe0 a photo of the loom"


def images_of(api: ModelServer, request: int = -1) -> list[str]:
    """The images of a request, as data URLs."""
    last = api.requests[request].body["messages"][-1]["content"]
    return [] if isinstance(last, str) else [p["image_url"]["url"] for p in last if p["type"] == "image_url"]


def text_of(api: ModelServer, request: int = -1) -> str:
    """The whole text of a request."""
    contents = [message["content"] for message in api.requests[request].body["messages"]]
    return "\n".join(c if isinstance(c, str) else c[0]["text"] for c in contents)


def url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@pytest.fixture
async def api() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
def with_images(settings: Settings, api: ModelServer) -> Settings:
    """Settings of an agent whose model takes images."""
    agent = AgentSettings(model="gpt-4o", persona="You are Nexus.", images=True)
    changed = {"openai_base_url": api.url, "openai_api_key": SecretStr("k"), "agents": (agent,), "extraction": "off"}
    return settings.model_copy(update=changed)


def without_images(settings: Settings) -> Settings:
    return settings.model_copy(update={"agents": (settings.agents[0].model_copy(update={"images": False}),)})


def discord(settings: Settings, server: DiscordServer, guild: Guild) -> Any:
    return on_discord(settings, server, guild, configured_chat_model(settings))  # type: ignore[arg-type]


async def test_discord_images_are_sent_with_their_question_and_with_replies_to_it(
    with_images: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with discord(with_images, server, guild) as here:
        files = {"sketch.png": PNG, "loom.jpg": JPEG, "notes.txt": b"woven"}
        asked = await server.post(room, ada, f"{server.bot.mention} what is this?", files=files)
        await here.answer(asked)
        assert images_of(api) == [url("image/png", PNG), url("image/jpeg", JPEG)]
        assert '[attachment "sketch.png", image/png: image 1, shown below]' in text_of(api)
        row = (await here.log(room))[0]
        assert "sketch.png" in row["attachments"]
        assert base64.b64encode(PNG).decode() not in row["attachments"]

        await here.answer(await server.post(room, ada, f"{server.bot.mention} and who drew it?"))
        assert images_of(api) == []
        assert "an image that you cannot see" in text_of(api)

        again = await server.post(room, ada, f"{server.bot.mention} look again", reply_to=asked)
        await here.answer(again)
        assert images_of(api) == [url("image/png", PNG), url("image/jpeg", JPEG)]
        assert '[image 1, shown below: "sketch.png", from the message of Ada that this replies to]' in text_of(api)


async def test_an_attachment_removed_from_a_discord_message_is_erased(
    with_images: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with discord(with_images, server, guild) as here:
        posted = await server.post(room, ada, "my desk", files={"desk.png": PNG, "codes.txt": b"quokka7"})
        await here.stored("my desk")
        posted.attachments.pop()
        await server.edit(posted, "my desk")
        await until(lambda: _attached(here, room, ["desk.png"]))
    posted.attachments.pop()
    await server.edit(posted, "my desk")
    async with discord(with_images, server, guild) as here:
        await until(lambda: _attached(here, room, []))


async def _attached(here: Discord, room: Channel, names: list[str]) -> bool:
    (row,) = await here.log(room)
    return [file["name"] for file in json.loads(row["attachments"])] == names


async def test_an_image_is_fetched_again_after_a_crash_although_its_address_expired(
    with_images: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with discord(with_images, server, guild) as first:
        await first.app.turns.stop()
        first.app.turns._adapters.clear()  # this process stores the question and stops before it begins to answer
        asked = await server.post(room, ada, f"{server.bot.mention} what is this?", files={"sketch.png": PNG})
        await first.stored("@nexus what is this?")
        assert api.requests == []
    (file,) = asked.attachments
    file.url = file.url.replace("hm=", "hm=new")  # Discord signs addresses anew every day
    async with discord(with_images, server, guild) as second:
        await second.answer(asked)
        assert images_of(api) == [url("image/png", PNG)]


async def test_a_missing_discord_image_is_reported(
    with_images: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with discord(with_images, server, guild) as here:
        fake, many = {"page.png": b"<!DOCTYPE html>"}, {f"{n}.png": PNG for n in range(images.MAX_IMAGES)}
        large = {"large.png": PNG + b"x" * images.MAX_IMAGE_BYTES}
        asked = await server.post(room, ada, f"{server.bot.mention} what is it?", files=fake | large | many)
        server.world.attachments.pop(asked.attachments[2].id)
        answer = await here.answer(asked)
        assert images_of(api) == [url("image/png", PNG)] * 2
        assert answer.content.splitlines()[1:] == [
            "",
            "I did not look at large.png: it has 5.0 MB, and I look at up to 5 MB.",
            "I did not look at 3.png: I look at up to 4 images at once.",
            "I did not look at page.png: it is not a PNG, JPEG, WebP or GIF.",
            "I did not look at 0.png: Discord no longer has it.",
        ]
        assert "[image 2 is missing: I did not look at 0.png: Discord no longer has it.]" in text_of(api)


async def test_only_discord_hosts_are_fetched_from_and_only_up_to_the_stated_size(
    with_images: Settings,
    api: ModelServer,
    server: DiscordServer,
    guild: Guild,
    room: Channel,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attach = server.world.attach

    def lying(*given: Any) -> Any:
        made = attach(*given)
        if made:  # the bot's own messages have no attachments
            made[0].url = f"{elsewhere.url}/latest/meta-data.png"
            server.world.attachments[made[1].id] = replace(made[1], content=PNG + b"x" * images.MAX_IMAGE_BYTES)
        return made

    async with discord(with_images, server, guild) as here, ModelServer() as elsewhere:
        monkeypatch.setattr(server.world, "attach", lying)
        files = {"inside.png": PNG, "huge.png": PNG}
        answer = await here.answer(await server.post(room, ada, f"{server.bot.mention} what is it?", files=files))
        assert answer.content.splitlines()[-2:] == [
            "I did not look at inside.png: it is not stored on Discord.",
            "I did not look at huge.png: it is larger than Discord reported.",
        ]
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("address", "discords"),
    [
        ("https://cdn.discordapp.com/attachments/1/2/a.png?ex=1", True),
        ("https://media.discordapp.net/attachments/1/2/a.png", True),
        ("http://cdn.discordapp.com/attachments/1/2/a.png", False),
        ("https://cdn.discordapp.com.example.org/a.png", False),
        ("http://169.254.169.254/latest/meta-data", False),
        ("https://[", False),
        ("files/a.png", False),
    ],
)
def test_only_discord_addresses_count_as_discord_files(address: str, discords: bool) -> None:
    assert is_discord_address(address) is discords


async def test_the_slack_token_is_never_sent_unencrypted() -> None:
    slack = Slack("xoxb", report=print)
    directory = SlackDirectory(slack, ManualClock())
    assert directory.is_slack_address("https://slack.com/files/a.png")
    assert directory.is_slack_address("https://files.slack.com/a.png")
    assert not directory.is_slack_address("http://slack.com/files/a.png")


async def test_a_model_without_image_support_gets_a_description_in_words(
    with_images: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with discord(without_images(with_images), server, guild) as here:
        asked = await server.post(room, ada, f"{server.bot.mention} what is this?", files={"sketch.png": PNG})
        answer = await here.answer(asked)
        assert images_of(api) == []
        assert '[attachment "sketch.png", image/png: an image that you cannot see]' in text_of(api)
        assert answer.content == "Hello there."


async def test_a_refusal_of_images_by_the_model_is_told_plainly_and_to_the_operator_with_the_setting(
    with_images: Settings, api: ModelServer, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    api.refuses_images = True
    async with discord(with_images, server, guild) as here:
        asked = await server.post(room, ada, f"{server.bot.mention} what is this?", files={"sketch.png": PNG})
        with capture_logs() as logs:
            answer = await here.answer(asked)
        assert answer.content == ("The model that answers here is not set up as it should be: tell whoever runs Nexus.")
        (error,) = [log["error"] for log in logs if log["event"] == "turn.not_answered"]
        assert error.endswith("does not take images with model gpt-4o (400). Set images = false for this agent.")


@pytest.fixture
async def office(with_images: Settings) -> AsyncIterator[Office]:
    async with office_on(with_images) as it:
        it.model = configured_chat_model(it.settings)  # type: ignore[assignment]
        yield it


async def _ask_with_image(office: Office, running: Any, name: str, content: bytes, kind: str) -> str:
    """Upload an image with a question, and return the answer."""
    before = len(office.answers())
    await office.slack.upload(office.general, office.alice, name, content, kind, text=office.mention("what is this?"))
    await office.slack.wait_for(lambda: len(office.answers()) > before)
    await running.settle()
    return str(office.answers()[-1]["text"])


async def test_slack_images_are_fetched_with_the_token_and_sent_to_the_model(office: Office, api: ModelServer) -> None:
    async with office.socket() as running:
        assert await _ask_with_image(office, running, "sketch.png", PNG, "image/png") == "Hello there."
        assert images_of(api) == [url("image/png", PNG)]


async def test_the_slack_token_is_sent_to_slack_alone(
    office: Office, api: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office.socket() as running, ModelServer() as elsewhere:
        post = office.slack.world.post

        def outside(place: Any, posted: dict[str, Any], *more: Any, **named: Any) -> Any:
            for file in posted.get("files", ()):
                file |= {"url_private": f"{elsewhere.url}/sketch.png", "url_private_download": None}
            return post(place, posted, *more, **named)

        monkeypatch.setattr(office.slack.world, "post", outside)
        answer = await _ask_with_image(office, running, "sketch.png", PNG, "image/png")
        assert "I did not look at sketch.png: it lies outside Slack." in answer
        assert images_of(api) == []
        assert elsewhere.requests == []


async def test_a_missing_slack_image_is_reported(office: Office, api: ModelServer) -> None:
    async with office.socket() as running:
        office.slack.world.files = Forgetful()
        answer = await _ask_with_image(office, running, "sketch.png", PNG, "image/png")
        assert answer == "Hello there.\n\nI did not look at sketch.png: Slack no longer provides it."
        assert "[image 1 is missing" in text_of(api)


class Forgetful(dict[str, Any]):
    """Files that are deleted as soon as they are uploaded."""

    def get(self, key: str, default: Any = None) -> Any:
        return default

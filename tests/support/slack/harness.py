"""A workspace of the Slack for tests, with people in it, and the real app and adapter connected to it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr

from bot.delivery.notices import ROOMS_QUESTION
from bot.slack.adapter import SlackAdapter
from bot.slack.signed_http import SLACK_EVENTS_PATH
from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.app import App, open_app
from composer.ingest.recording import privacy_notice
from composer.model import Agent, RecordingPolicy, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.settings import Settings
from tests.support.slack.model import Team
from tests.support.slack.request import Call
from tests.support.slack.server import SlackServer
from tests.support.waiting import PLATFORM_SECONDS, TIMEOUT_SECONDS
from tests.support.web import served_at

NOTICES = {privacy_notice(memory) for memory in RecordingPolicy} | {ROOMS_QUESTION}
PING = 1.0  # seconds; half of it is the time that a busy machine has for answering a ping


class Model:
    """Says `pieces`; keeps the prompts that it got; waits before each piece for which `gates` has an event."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces or ("It is ", "on Friday, as was decided.")
        self.prompts: list[str] = []
        self.gates: dict[int, asyncio.Event] = {}

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        self.prompts.append("\n".join(message.content for message in messages))
        for number, piece in enumerate(self.pieces):
            if number in self.gates:
                await self.gates[number].wait()
            yield Chunk(text=piece)
        yield Chunk(usage=Usage(1, 1))

    @property
    def answer(self) -> str:
        return "".join(self.pieces)


@dataclass
class Office:
    """Slack, with Alice (an admin), Bob and #general; `settings` have its tokens."""

    slack: SlackServer
    team: Team
    alice: str
    bob: str
    general: str
    settings: Settings
    model: Model = field(default_factory=Model)
    reports: list[str] = field(default_factory=list)

    def mention(self, text: str) -> str:
        return f"<@{self.team.bot_user}> {text}"

    def answers(self, channel: str = "") -> list[dict[str, Any]]:
        """What the app said in a channel, as messages, oldest first, without the notice that a room gets once."""
        return [message for message in self._own(channel) if message["text"] not in NOTICES]

    @property
    def signs(self) -> list[Call]:
        """That an answer is being thought of, as Slack was asked to show it."""
        return self.slack.calls_of("assistant.threads.setStatus")

    def notices(self, channel: str = "") -> list[dict[str, Any]]:
        """What a room was told of what is remembered."""
        return [message for message in self._own(channel) if message["text"] in NOTICES]

    def _own(self, channel: str) -> list[dict[str, Any]]:
        said = self.slack.messages(channel or self.general)
        return [message for message in said if message.get("bot_id") == self.team.bot_id]

    async def answered(self, count: int = 1, channel: str = "") -> list[str]:
        """Wait until so many answers stand there as a whole, and nothing is under way any more."""
        await self.slack.wait_for(lambda: self._whole(channel) >= count)
        await self.slack.settled()
        return [message["text"] for message in self.answers(channel)]

    def _whole(self, channel: str) -> int:
        return sum(message["text"] == self.model.answer for message in self.answers(channel))

    @asynccontextmanager
    async def open(self, **options: Any) -> AsyncIterator["Running"]:
        """The app and its adapter, not running yet."""
        async with open_app(self.settings, index=False, model=self.model) as app:
            timing: dict[str, Any] = {"ping": PING, "first_wait": 0.05, "edit_interval": 0.0} | options
            adapter = SlackAdapter(app, report=self.reports.append, base_url=self.slack.base_url, **timing)
            yield Running(self, app, adapter)

    @asynccontextmanager
    async def socket(self, **options: Any) -> AsyncIterator["Running"]:
        """The app, connected by Socket Mode, and caught up."""
        async with self.open(**options) as running, running.serving():
            await self.slack.wait_for(
                lambda: self.slack.outbox.connections and running.adapter.reconciliation.completed
            )
            yield running

    @asynccontextmanager
    async def http(self, **options: Any) -> AsyncIterator["Running"]:
        """The app, mounted in a web process of its own."""
        self.settings = self.settings.model_copy(update={"slack_app_token": None})
        async with self.open(**options) as running, running.serving():
            served = web_app(running.app, Metrics(()), {}, running.adapter.http())
            async with served_at(served) as url:
                self.slack.use_http(f"{url}{SLACK_EVENTS_PATH}")
                await self.slack.wait_for(lambda: running.adapter.reconciliation.completed)
                yield running


@dataclass
class Running:
    """The app with its adapter."""

    office: Office
    app: App
    adapter: SlackAdapter

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        taking_over = asyncio.create_task(self.app.keep_taking_over())
        serving = asyncio.create_task(self.adapter.run())
        try:
            yield
        finally:
            taking_over.cancel()
            await self.adapter.stop()
            await asyncio.wait_for(serving, TIMEOUT_SECONDS)

    async def stored(self) -> list[str]:
        """Every text in the log that a person said, in the order in which it was said."""
        connection = await asyncpg.connect(self.office.settings.database_url)
        try:
            rows = await connection.fetch("SELECT text FROM messages WHERE agent_id IS NULL ORDER BY at")
        finally:
            await connection.close()
        return [row["text"] for row in rows]

    async def settle(self) -> None:
        """Until everything that was told is stored, answered and indexed."""
        await self.office.slack.settled()
        await self.app.turns.settle()
        workspace = await self.adapter.inbox.workspace()
        await self.app.indexer.catch_up(workspace.tenant_id)


@asynccontextmanager
async def office_on(settings: Settings) -> AsyncIterator[Office]:
    """A workspace, and settings for it."""
    with pytest.MonkeyPatch.context() as patch:
        # On a busy machine a name is not looked up in 1.5 s, which makes a guest of its owner.
        patch.setattr("bot.slack.directory.SLACK_LOOKUP_SECONDS", PLATFORM_SECONDS)
        patch.setattr("bot.slack.commands.ACKNOWLEDGE_SECONDS", PLATFORM_SECONDS)
        patch.setattr("composer.turn.memberships.ASK_SECONDS", PLATFORM_SECONDS)
        async with _office_on(settings) as office:
            yield office


@asynccontextmanager
async def _office_on(settings: Settings) -> AsyncIterator[Office]:
    async with SlackServer() as slack:
        slack.outbox.ack_seconds = PLATFORM_SECONDS
        team = await slack.add_team()
        alice, bob = await slack.add_user(team, "alice", admin=True), await slack.add_user(team, "bob")
        general = await slack.add_channel(team, "general", [alice, bob])
        secrets = {
            "slack_bot_token": SecretStr(team.bot_token),
            "slack_app_token": SecretStr(slack.app_token),
            "slack_signing_secret": SecretStr(slack.outbox.signing_secret),
        }
        yield Office(slack, team, alice, bob, general, settings.model_copy(update=secrets))

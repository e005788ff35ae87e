"""A running Nexus with its Discord adapter, on a Discord of our own, with a model that says what a test tells it to."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import discord
import pytest
import yarl
from discord.backoff import ExponentialBackoff
from discord.gateway import DiscordWebSocket
from discord.http import Route
from pydantic import SecretStr

from bot.delivery.notices import ROOMS_QUESTION
from bot.discord.adapter import DiscordAdapter
from composer.app import App, open_app
from composer.ingest.recording import privacy_notice
from composer.model import Agent, RecordingPolicy, Usage, Workspace, room_id, user_id
from composer.ports.models import ChatMessage, Chunk
from composer.settings import Settings
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.model import Message as Posted
from tests.support.discord.server import DiscordServer
from tests.support.waiting import PLATFORM_SECONDS, until

NOTICES = {privacy_notice(memory) for memory in RecordingPolicy} | {ROOMS_QUESTION}
RECONNECT_SECONDS = 0.05


class Model:
    """Answers "Answer N." unless given something else to say; keeps what it was shown."""

    def __init__(self) -> None:
        self.says: list[str] = []
        self.shown: list[str] = []
        self.gate: asyncio.Event | None = None  # between the first piece and the others
        self.broken: Exception | None = None  # after the first piece

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        self.shown.append("\n".join(message.content for message in messages))
        text = self.says.pop(0) if self.says else f"Answer {len(self.shown)} to what was asked just now."
        half = max(len(text) // 2, 1)
        yield Chunk(text[:half])
        if self.gate is not None:
            await self.gate.wait()
        if self.broken is not None:
            raise self.broken
        yield Chunk(text[half:], Usage(10, 10))


class QuickRetries:
    """asyncio for the modules of discord.py that send requests: what failed is sent again at once.

    discord.py pauses whole numbers of seconds, 25 in all, before it gives up. The fractions that it waits for a rate
    limit are left as they are: the server counts by the real clock.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0 if isinstance(seconds, int) else seconds)


@dataclass
class Discord:
    """Nexus on Discord, and what tests look at."""

    server: DiscordServer
    app: App
    adapter: DiscordAdapter
    model: Model
    guild: Guild
    running: asyncio.Task[None] = field(repr=False)

    @property
    def workspace(self) -> Workspace:
        return self.app.directory.workspace("discord", str(self.guild.id))

    def answers(self, channel: Channel) -> list[Posted]:
        """What the bot said there, without the notice that a room gets once."""
        return [said for said in self.server.messages(channel, self.server.bot) if said.content not in NOTICES]

    def notices(self, channel: Channel) -> list[str]:
        """What a room was told of what is remembered."""
        said = [message.content for message in self.server.messages(channel, self.server.bot)]
        return [text for text in said if text in NOTICES]

    async def answer(self, asked: Posted) -> Posted:
        """The finished answer to a message."""
        found = await self.server.wait_for_message(lambda m: m.author is self.server.bot and m.referenced is asked)
        await self.settled()
        return found

    async def settled(self) -> None:
        await self.app.turns.settle()

    async def reconciled(self) -> bool:
        """Whether all that was missed is read and compared."""
        return all(each.completed for each in self.adapter._reconciliations.values())

    async def tried(self) -> None:
        """Wait until every turn is answered, or was given up by a process that dies."""
        while tasks := [task for each in self.app.turns._conversations.values() for task in each.tasks]:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def log(self, *rooms: Channel) -> list[Any]:
        """What is stored, of rooms, threads or of everything."""
        async with self.app.database._pool.acquire() as connection, connection.transaction():
            await connection.execute(f"SET LOCAL nexus.tenant = '{self.workspace.tenant_id}'")
            rows = await connection.fetch(
                "SELECT m.*, c.name, c.thread, c.kind, c.private FROM messages m JOIN conversations c ON "
                "c.tenant_id = m.tenant_id AND c.id = m.conversation_id ORDER BY m.at, m.seq"
            )
        names = {str(room.id) for room in rooms}
        return [row for row in rows if not names or (row["thread"] or row["name"]) in names]

    async def texts(self, *rooms: Channel) -> list[str]:
        """What people said, as it is stored."""
        return [row["text"] for row in await self.log(*rooms) if row["agent_id"] is None]

    async def stored(self, text: str) -> Any:
        """Wait until a text is stored, and can be recalled."""

        async def found() -> Any:
            return next((row for row in await self.log() if row["text"] == text), None)

        row = await until(found)
        await self.app.indexer.catch_up(self.workspace.tenant_id)
        return row

    async def _value(self, query: str, *values: Any) -> Any:
        async with self.app.database._pool.acquire() as connection, connection.transaction():
            await connection.execute(f"SET LOCAL nexus.tenant = '{self.workspace.tenant_id}'")
            return await connection.fetchval(query, *values)

    async def is_private(self, channel: Channel) -> bool:
        return bool(await self._value("SELECT private FROM conversations WHERE id = $1", self.room(channel)))

    async def has_left(self, channel: Channel, user: User) -> bool:
        query = "SELECT left_at IS NOT NULL FROM members WHERE conversation_id = $1 AND user_id = $2"
        return bool(await self._value(query, self.room(channel), user_id(self.workspace, str(user.id))))

    async def is_back(self, channel: Channel, user: User) -> bool:
        return not await self.has_left(channel, user)

    def room(self, channel: Channel) -> Any:
        return room_id(self.workspace, str(channel.id))


@asynccontextmanager
async def on_discord(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    model: Model | None = None,
    *,
    change: Callable[[DiscordAdapter], None] | None = None,
    wait: bool = True,
    first_wait: float = 0.05,
) -> AsyncIterator[Discord]:
    """Nexus, connected and caught up."""
    model = model or Model()
    with_token = settings.model_copy(update={"discord_token": SecretStr(server.token)})
    async with open_app(with_token, model=model) as app:
        adapter = DiscordAdapter(app, first_wait=first_wait)
        if change is not None:
            change(adapter)
        before = server.gateway.count("identify")
        running = asyncio.create_task(adapter.run())
        try:
            if wait:
                await server.wait_for("identify", before + 1)
                await up(adapter)
            yield Discord(server, app, adapter, model, guild, running)
        finally:
            await app.turns.stop()
            await adapter.stop()
            await running


async def up(adapter: DiscordAdapter) -> None:
    """Wait until history was read and events go through."""

    async def open_() -> bool:
        boxes = adapter._inboxes
        return len(boxes) > 1 and all(box.is_released for box in boxes.values())

    await until(open_)


def point_at(server: DiscordServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let discord.py talk to this server, without the pauses that the real one asks for."""

    async def at_once(*_: Any, **__: Any) -> None:
        return None

    server.rest.answer_within = PLATFORM_SECONDS
    monkeypatch.setattr("composer.turn.memberships.ASK_SECONDS", PLATFORM_SECONDS)
    for module in (discord.http, discord.webhook.async_):
        monkeypatch.setattr(module, "asyncio", QuickRetries())
    monkeypatch.setattr(ExponentialBackoff, "delay", lambda _: RECONNECT_SECONDS)
    monkeypatch.setattr(Route, "BASE", server.api)
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(server.gateway_url))
    monkeypatch.setattr(discord.Client, "before_identify_hook", at_once)


__all__ = ["Discord", "Model", "User", "on_discord", "point_at", "up"]

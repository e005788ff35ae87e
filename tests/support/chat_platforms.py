"""A Slack workspace and a Discord server behind one face, for what Nexus must do alike on both."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import asyncpg

from composer.app import App
from composer.settings import Settings
from tests.support.discord.harness import Discord, Model, on_discord
from tests.support.discord.model import Channel, Guild, Message, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import Office, Running
from tests.support.waiting import until


class Platform(Protocol):
    """A workspace of a platform, in which one person writes. Rooms, threads and messages are what methods return."""

    def nexus(self, *, is_read: bool = True) -> AbstractAsyncContextManager[App]:
        """Nexus, connected; it reads what was missed. Without `is_read`, it may never have tried all rooms."""

    async def room(self, name: str) -> Any:
        """A new room that Nexus is in."""

    async def thread(self, room: Any, text: str) -> Any:
        """A new thread of a room, which begins with a text."""

    async def say(self, where: Any, text: str) -> Any:
        """Write in a room or a thread."""

    async def ask(self, where: Any, text: str) -> Any:
        """Write to the agent in a room or a thread."""

    async def edit(self, said: Any, text: str) -> None: ...

    async def delete(self, said: Any) -> None: ...

    async def command(self, room: Any, text: str) -> None:
        """Give a command: `memory off`, `opt-out`."""

    async def disconnect(self) -> None:
        """Cut the connection: what happens from now on is not told."""

    async def connect(self) -> None:
        """Let it be connected again."""

    def fail(self, room: Any, how: Literal["error", "malformed"] | None) -> None:
        """Break the history of a room until this is called with None."""

    async def answered(self, room: Any, count: int) -> None:
        """Wait until the agent has given so many answers in a room."""

    async def reconciled(self) -> None:
        """Wait until Nexus has read and compared all that it may read."""

    async def indexed(self) -> None:
        """Have indexed what is stored, and erased what was stored only to be answered."""


async def stored(settings: Settings) -> list[str]:
    """What people said, as it is stored, in the order in which it was said."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        rows = await connection.fetch("SELECT text FROM messages WHERE agent_id IS NULL ORDER BY at")
    finally:
        await connection.close()
    return [row["text"] for row in rows]


async def until_stored(settings: Settings, *texts: str) -> None:
    """Wait until these texts, and no others, are stored."""

    async def found() -> bool:
        return sorted(await stored(settings)) == sorted(texts)

    await until(found)


@dataclass(frozen=True)
class SlackThread:
    """A thread of a channel, by the `ts` of its first message."""

    channel: str
    ts: str


@dataclass(frozen=True)
class SlackSaid:
    """A message of a channel."""

    channel: str
    ts: str


class SlackPlatform:
    """Slack, for a `Platform`."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._running: Running | None = None

    @asynccontextmanager
    async def nexus(self, *, is_read: bool = True) -> AsyncIterator[App]:
        async with self._office.open() as running, running.serving():
            self._running = running
            await self._office.slack.wait_for(lambda: self._office.slack.outbox.connections)
            yield running.app

    async def room(self, name: str) -> str:
        office = self._office
        return await office.slack.add_channel(office.team, name, [office.alice, office.bob])

    async def thread(self, room: str, text: str) -> SlackThread:
        return SlackThread(room, (await self.say(room, text)).ts)

    async def say(self, where: str | SlackThread, text: str) -> SlackSaid:
        channel, thread = (where.channel, where.ts) if isinstance(where, SlackThread) else (where, "")
        return SlackSaid(channel, await self._office.slack.post(channel, self._office.alice, text, thread=thread))

    async def ask(self, where: str | SlackThread, text: str) -> SlackSaid:
        return await self.say(where, self._office.mention(text))

    async def edit(self, said: SlackSaid, text: str) -> None:
        await self._office.slack.edit(said.channel, said.ts, text)

    async def delete(self, said: SlackSaid) -> None:
        await self._office.slack.delete(said.channel, said.ts)

    async def command(self, room: str, text: str) -> None:
        await self._office.slack.command(room, self._office.alice, text)
        await self._office.slack.settled()

    async def disconnect(self) -> None:
        await self._office.slack.go_down()

    async def connect(self) -> None:
        await self._office.slack.come_back()

    def fail(self, room: str, how: Literal["error", "malformed"] | None) -> None:
        broken = self._office.slack.routes.broken
        broken.pop(room, None) if how is None else broken.update({room: how})

    async def answered(self, room: str, count: int) -> None:
        assert len(await self._office.answered(count, room)) == count

    async def reconciled(self) -> None:
        assert self._running is not None
        await until(lambda: self._running and self._running.adapter.reconciliation.completed)

    async def indexed(self) -> None:
        assert self._running is not None
        await self._running.settle()


class DiscordPlatform:
    """Discord, for a `Platform`."""

    def __init__(self, settings: Settings, server: DiscordServer, guild: Guild, person: User) -> None:
        self._settings = settings
        self._server = server
        self._guild = guild
        self._person = person
        self._model = Model()
        self._here: Discord | None = None

    @asynccontextmanager
    async def nexus(self, *, is_read: bool = True) -> AsyncIterator[App]:
        async with on_discord(self._settings, self._server, self._guild, self._model, wait=is_read) as here:
            self._here = here
            yield here.app

    async def room(self, name: str) -> Channel:
        return await self._server.add_channel(self._guild, name)

    async def thread(self, room: Channel, text: str) -> Channel:
        thread = await self._server.add_thread(room, "a thread", self._person)
        await self.say(thread, text)
        return thread

    async def say(self, where: Channel, text: str) -> Message:
        return await self._server.post(where, self._person, text)

    async def ask(self, where: Channel, text: str) -> Message:
        return await self.say(where, f"{self._server.bot.mention} {text}")

    async def edit(self, said: Message, text: str) -> None:
        await self._server.edit(said, text)

    async def delete(self, said: Message) -> None:
        await self._server.delete(said)

    async def command(self, room: Channel, text: str) -> None:
        name, _, policy = text.partition(" ")
        called, options = ("memory set", {"mode": policy}) if name == "memory" else (name, {})
        await self._server.answer_to(await self._server.invoke(f"nexus {called}", room, self._person, **options))

    async def disconnect(self) -> None:
        await self._server.go_down()

    async def connect(self) -> None:
        await self._server.come_back()

    def fail(self, room: Channel, how: Literal["error", "malformed"] | None) -> None:
        broken = self._server.rest.broken
        broken.pop(room.id, None) if how is None else broken.update({room.id: how})

    async def answered(self, room: Channel, count: int) -> None:
        here = self._here
        assert here is not None
        await until(lambda: len(here.answers(room)) >= count)
        await here.settled()
        assert len(here.answers(room)) == count

    async def reconciled(self) -> None:
        assert self._here is not None
        await until(self._here.reconciled)

    async def indexed(self) -> None:
        assert self._here is not None
        await self._here.settled()

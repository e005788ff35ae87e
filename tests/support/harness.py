"""The app for tests: open on real stores, with a clock that tests move and a delivery that records what it gets."""

import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from bot.commands.command import CommandAnswer
from bot.commands.table import run_command
from bot.console.conversations import question
from bot.script.changes import change_message
from bot.script.places import incoming, place_of
from composer.app import App, open_app
from composer.ingest.receive import Received
from composer.ingest.rooms import record_membership
from composer.model import CONSOLE, Place, Turn, Workspace
from composer.repositories.turns import Answer
from composer.settings import Settings
from composer.turn.compose import ComposedPrompt

START: Final = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
_numbers = itertools.count(1)


class ManualClock:
    """A clock that only a test moves (composer.ports.Clock)."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def set(self, now: datetime) -> None:
        self._now = now

    def tick(self, seconds: float = 60) -> datetime:
        """Move the clock forward and return the new time."""
        self._now += timedelta(seconds=seconds)
        return self._now


class RecordedDelivery:
    """A streaming delivery that records what it is asked to show (composer.turn.worker)."""

    def __init__(self) -> None:
        self.replies: list[Answer] = []
        self.started: list[UUID] = []
        self.abandoned: list[UUID] = []
        self.chunks: list[str] = []
        self.delays: list[str] = []

    def on_wait(self, turn: Turn) -> None:
        pass

    def on_start(self, turn: Turn) -> None:
        self.started.append(turn.id)

    async def on_chunk(self, turn: Turn, text: str) -> None:
        self.chunks.append(text)

    async def deliver(self, reply: Answer) -> None:
        self.replies.append(reply)

    async def abandon(self, turn: Turn) -> None:
        self.abandoned.append(turn.id)

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        self.delays.append(sentence)


@dataclass(frozen=True)
class AppHarness:
    """An open app with its delivery and its clock, and one short method for each thing that tests do with it.

    Every method that takes `**place` takes the place by its parts: `room="general"`, `dm="nexus"` or `session="s1"`,
    with `thread=`, `private=` and `agent=` where it has them.
    """

    app: App
    delivery: RecordedDelivery
    clock: ManualClock
    name: str = "acme"  # of the workspace that is used unless a test names another one

    def workspace(self, name: str | None = None) -> Workspace:
        return self.app.directory.workspace(CONSOLE, name or self.name)

    async def say(
        self, user: str, text: str, *, id: str | None = None, workspace: str | None = None, **place: Any
    ) -> Received:
        """Send a message, wait for the answers, and index everything."""
        at = self.workspace(workspace)
        message = incoming(at, _place(place), user, text, self.clock.tick(), id=id or f"m{next(_numbers)}")
        received = await self.app.receive(at, [message])
        await self.app.turns.settle()
        await self.app.indexer.catch_up(at.tenant_id)
        return received

    async def say_all(self, user: str, texts: Iterable[str], *, workspace: str | None = None, **place: Any) -> None:
        """Send messages in one batch, wait for the answers, and index everything: faster than one by one."""
        at = self.workspace(workspace)
        messages = [
            incoming(at, _place(place), user, text, self.clock.tick(), id=f"m{next(_numbers)}") for text in texts
        ]
        await self.app.receive(at, messages)
        await self.app.turns.settle()
        await self.app.indexer.catch_up(at.tenant_id)

    async def ask(self, user: str, text: str, **options: Any) -> Answer:
        """Send a message that exactly one agent answers, and return the answer."""
        before = len(self.delivery.replies)
        await self.say(user, text, **options)
        assert len(self.delivery.replies) == before + 1, "exactly one answer was expected"
        return self.delivery.replies[-1]

    async def command(self, user: str, text: str, *, workspace: str | None = None, **place: Any) -> CommandAnswer:
        """Run a command, index everything, and return the command's answer."""
        answer = await self.command_without_indexing(user, text, workspace=workspace, **place)
        await self.app.indexer.catch_up(self.workspace(workspace).tenant_id)
        return answer

    async def command_without_indexing(
        self, user: str, text: str, *, workspace: str | None = None, **place: Any
    ) -> CommandAnswer:
        """Run a command, and return its answer."""
        at = self.workspace(workspace)
        message = incoming(at, _place(place), user, text, self.clock.tick(), id=f"c{next(_numbers)}")
        return await run_command(self.app, at, message)

    async def compose(self, user: str, text: str, *, workspace: str | None = None, **place: Any) -> ComposedPrompt:
        """Compose the prompt that would answer this message, as `nexus compose` does; nothing is stored."""
        composed_question, _ = await question(
            self.app,
            self.workspace(workspace),
            _place(place),
            user,
            text,
            self.clock.tick(0),
            top_k=None,
            id="question",
        )
        return await self.app.composer.compose(composed_question)

    async def move(self, user: str, room: str, *, joined: bool, workspace: str | None = None) -> None:
        """Let a user join or leave a room."""
        at = self.workspace(workspace)
        agents = self.app.directory.agents(at.tenant_id)
        async with self.app.database.transaction(at.tenant_id) as tx:
            await record_membership(tx, at, agents, room, user, user, joined=joined, now=self.clock.tick())

    async def change(self, id: str, text: str | None, *, workspace: str | None = None) -> None:
        """Edit a message, or delete it (None), and index everything."""
        self.clock.tick()
        await change_message(self.app, self.workspace(workspace), id, text)
        await self.app.indexer.catch_up(self.workspace(workspace).tenant_id)


def _place(parts: dict[str, Any]) -> Place:
    names = ("room", "dm", "session", "thread", "private", "agent")
    return place_of(*(parts.get(name) for name in names))


@asynccontextmanager
async def open_harness(settings: Settings, **options: Any) -> AsyncIterator[AppHarness]:
    """Open an app on these settings. It indexes only when a test asks for it; `options` go to `open_app`."""
    clock = options.pop("clock", None) or ManualClock()
    async with open_app(settings, clock=clock, index=False, **options) as app:
        delivery = RecordedDelivery()
        app.turns.serve(CONSOLE, delivery)
        yield AppHarness(app, delivery, clock)

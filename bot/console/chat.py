"""`nexus chat`: a conversation in the terminal, in any room and as anyone, with the same rules as everywhere."""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from bot.commands.command import Parameter
from bot.commands.suggestions import Suggestion, suggest
from bot.commands.table import run_command
from bot.console import render
from bot.console.conversations import resolve_conversation
from bot.console.script import PLATFORM, external, incoming, place_of
from composer.app import App
from composer.errors import BadInput, NexusError, NotFound
from composer.ingest.addressing import find_addressed_agents
from composer.model import ConversationKind, Place, Turn
from composer.turn.respond import Reply
from composer.workspace import Workspace

ROOMS: Final = (ConversationKind.ROOM, ConversationKind.THREAD)
OWN: Final = ("/as", "/room", "/dm", "/session", "/why", "/quit")


@dataclass(frozen=True, slots=True)
class Seat:
    """Who speaks, and where."""

    workspace: Workspace
    user: str
    place: Place

    def __str__(self) -> str:
        """As the prompt shows it."""
        sign = {ConversationKind.DM: "@", ConversationKind.SESSION: "~"}.get(self.place.kind, "#")
        thread = f"/{self.place.thread}" if self.place.thread else ""
        return f"{self.user} {sign}{self.place.name}{thread}"


class TerminalDelivery:
    """Shows answers as they stream in. Answers that nobody here asked for stay in the log."""

    def __init__(self) -> None:
        self._open: Turn | None = None
        self._asked: set[str] = set()
        self._here: uuid.UUID | None = None

    def expect(self, message: str) -> None:
        """An answer to this message is for whoever sits here."""
        self._asked.add(message)

    def sit(self, conversation: uuid.UUID | None) -> None:
        """Who sits here may see every answer of this conversation, also those to an earlier question."""
        self._here = conversation

    def on_start(self, turn: Turn) -> None:
        """Nothing: what is typed here is seen to be heard."""

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Print a piece at once, unless another answer is being printed."""
        if self._open is None and self._asked and turn.conversation_id == self._here:
            self._open = turn
        if self._open is not None and self._open.id == turn.id:
            render.out.print(render.plain(text), end="")

    async def deliver(self, reply: Reply) -> None:
        """Print the whole answer, or end the one that was streamed."""
        if reply.in_reply_to not in self._asked and reply.turn.conversation_id != self._here:
            return
        if reply.in_reply_to not in self._asked:
            render.out.print("(the answer to an earlier question)", style="dim")
        self._asked.discard(reply.in_reply_to)
        if self._open is not None and self._open.id == reply.turn.id:
            self._open = None
            render.out.print(f"\n{reply.text}" if reply.failed else "")
        else:
            render.show(reply.text, style="yellow" if reply.failed else "")

    async def abandon(self, turn: Turn) -> None:
        """End the line of an answer whose question was erased."""
        if self._open is not None and self._open.id == turn.id:
            self._open = None
            render.out.print("")

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """Say that an answer must wait."""
        render.warn(sentence)


class Chat:
    """The loop: a line in, an answer out."""

    def __init__(self, app: App, seat: Seat) -> None:
        self._app = app
        self._seat = seat
        self._door = TerminalDelivery()
        self._hinted = False
        app.turns.serve(PLATFORM, self._door)

    async def run(self, lines: AsyncIterator[str]) -> None:
        """Until the lines end or someone quits."""
        await self._sit(self._seat)
        await self._app.turns.adopt()
        await self._app.turns.settle()
        async for line in lines:
            text = line.strip()
            if text in ("/quit", "/exit"):
                break
            if text:
                try:
                    await self._line(text)
                except NexusError as error:
                    render.warn(str(error))
        await self._app.turns.settle()

    def prompt(self) -> str:
        """Who speaks where, for the terminal's prompt."""
        return f"{self._seat}> "

    async def suggested(self, parameter: Parameter, before: Sequence[str], typed: str) -> list[Suggestion]:
        """What may stand in a parameter, for whoever sits here; nothing when that can't be read now."""
        seat = self._seat
        said = incoming(seat.workspace, seat.place, seat.user, "/", self._app.clock.now())
        try:
            return await suggest(self._app, seat.workspace, said, parameter, before, typed)
        except NexusError:
            return []

    async def _line(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "/as":
            await self._become(_required(rest, "whom", "/as bob").lstrip("@"))
        elif word == "/room":
            names = _required(rest, "which room", "/room general").split()
            private = True if "--private" in names else None
            names = [name for name in names if name != "--private"]
            place = place_of(names[0], None, None, names[1] if len(names) > 1 else None, private)
            await self._move(replace(self._seat, place=place))
        elif word == "/dm":
            slug = external(rest) or self._app.settings.agents[0].slug
            await self._move(replace(self._seat, place=place_of(None, slug, None)))
        elif word == "/session":
            name = _required(rest, "which session", "/session draft")
            await self._move(replace(self._seat, place=place_of(None, None, name)))
        elif word.startswith("/"):
            await self._command(text)
        else:
            await self._say(text)

    async def _sit(self, seat: Seat) -> None:
        self._door.sit(await resolve_conversation(self._app, seat.workspace, seat.place, seat.user))
        self._seat = seat

    async def _become(self, user: str) -> None:
        """Somebody else sits down: here if they may be here, else in private with the first agent."""
        try:
            await self._move(replace(self._seat, user=user))
        except NotFound:
            place = place_of(None, self._app.settings.agents[0].slug, None)
            await self._move(replace(self._seat, user=user, place=place))

    async def _move(self, seat: Seat) -> None:
        await self._sit(seat)
        render.out.print(f"({seat})", style="dim")

    async def _command(self, text: str) -> None:
        seat = self._seat
        said = incoming(seat.workspace, seat.place, seat.user, text, self._app.clock.now())
        answer = await run_command(self._app, seat.workspace, said)
        if answer.sections and render.out.is_terminal:
            render.show(answer.text.split("\n")[0])
            render.out.print(render.explained(answer.sections))
        else:
            render.show(answer.text)

    async def _say(self, text: str) -> None:
        seat = self._seat
        said = incoming(seat.workspace, seat.place, seat.user, text, self._app.clock.now())
        self._door.expect(said.id)
        received = await self._app.receive(seat.workspace, [said])
        await self._app.turns.settle()
        agents = self._app.directory.agents(seat.workspace.tenant_id)
        if (
            not received.turns
            and seat.place.kind in ROOMS
            and not find_addressed_agents(text, agents)
            and not self._hinted
        ):
            self._hinted = True
            render.out.print(f"(heard and kept; @{agents[0].slug} in a message asks for an answer)", style="dim")


def _required(text: str, what: str, example: str) -> str:
    if not text.strip():
        raise BadInput(f"Say {what}; for example: {example}")
    return text.strip()


async def piped() -> AsyncIterator[str]:
    """The lines of standard input."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line


async def load_sample(app: App, workspace: Workspace) -> None:
    """A few days of a small team's talk, loaded once, through the same doors as everything else."""
    async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
        if await tx.people.find_user(PLATFORM, workspace.name, "alice") is not None:
            return
    for line in Path(__file__).with_name("sample.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        place = place_of(entry.get("room"), entry.get("dm"), None, private=entry.get("private"))
        at = datetime.fromisoformat(entry["at"])
        said = incoming(workspace, place, entry["user"], entry["text"], at, id=entry["id"], name=entry["user"])
        if entry["type"] == "command":
            await run_command(app, workspace, said)
        else:
            await app.receive(workspace, [said], answer=False)
    await app.indexer.catch_up(workspace.tenant_id)

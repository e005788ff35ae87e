"""`nexus chat`: a conversation in the terminal, in any room and as any user, with the same rules as elsewhere."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bot.commands import suggestions
from bot.commands.command import AnswerFile, require_current
from bot.commands.confirmations import CANCELLED
from bot.commands.parameters import Parameter
from bot.commands.suggestions import Suggestion
from bot.commands.table import in_columns, parse, run_command
from bot.console import render
from bot.console.conversations import is_new, resolve_position
from bot.console.explained import explained, stacked
from bot.console.files import write_private
from bot.console.interrupts import interruptible
from bot.console.terminal_delivery import TerminalDelivery
from bot.delivery import due_posts
from bot.script.places import external, incoming, place_of
from composer.app import App
from composer.errors import AdminNeeded, BadInput, NexusError, NotFound, Unavailable, for_operator
from composer.ingest.receive import Received
from composer.model import CONSOLE, ROOM_KINDS, ConversationKind, Place, Workspace
from composer.people.export_files import export_path
from composer.repositories.reminders import Position
from composer.text.yes_no import Answered, read_answer

SWITCH_COMMANDS: Final = ("/as", "/room", "/dm", "/session")
MESSAGE_NOT_STORED: Final = "Your message was not stored: send it again later."
DELAY_SECONDS: Final = 30.0  # for which a script waits for an answer that is delayed
DELAYED: Final = (
    "An answer is still delayed. Once what is wrong is mended, it is shown where nexus chat is started again."
)
TERMINAL_COMMANDS: Final = {
    "/as USER": "Write as another user",
    "/room ROOM [THREAD] [--private]": "Go to a room, or to a thread of it",
    "/dm [AGENT]": "Go to your DM with an agent, by default the first",
    "/session NAME": "Go to a session: a conversation with a name of its own",
    "/quit": "Leave; also Ctrl-D, or Ctrl-C twice",
}
CHAT_COMMANDS: Final = tuple(usage.split()[0] for usage in TERMINAL_COMMANDS)


@dataclass(frozen=True, slots=True)
class ChatPosition:
    """The user who is typing, and the place where they type."""

    workspace: Workspace
    user: str
    place: Place

    def __str__(self) -> str:
        """The text before the prompt: the user and the place."""
        sign = {ConversationKind.DM: "@", ConversationKind.SESSION: "~"}.get(self.place.kind, "#")
        thread = f"/{self.place.thread}" if self.place.thread else ""
        return f"{self.user} {sign}{self.place.name}{thread}"


class _StillDelayed(Unavailable):
    """An answer to a script is delayed for too long: nobody is there to stop waiting."""


class Chat:
    """Reads lines and prints answers until the lines end.

    `scripted`: the lines come from a file, whose writer does not see what is refused. A refused change of the user or
    the place then ends the conversation, because what follows was meant for somewhere else; and so does an answer that
    is delayed for long. `refused` counts the lines that were not done, or whose answer is delayed.
    """

    def __init__(self, app: App, position: ChatPosition, *, scripted: bool = False) -> None:
        self._app = app
        self._position = position
        self._scripted = scripted
        self.refused = 0
        self._delivery = TerminalDelivery(app)
        self._hint = ""
        self._resolved: Position | None = None
        self._interrupted = False  # by Ctrl-C, twice
        self._confirm = ""  # the command that a yes gives, right after it was asked, or below an answer that asks
        app.turns.serve(CONSOLE, self._delivery, here_only=True)

    async def run(self, lines: AsyncIterator[str]) -> None:
        """Run until the lines end, or until /quit."""
        await self._set_position(self._position)
        await self._say_if_new()
        await self._app.take_over()
        await self._settle()
        tenant = self._position.workspace.tenant_id
        looking = asyncio.create_task(due_posts.run(self._app, tenant, lambda: self._resolved))
        try:
            await self._read(lines)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        if not self._interrupted:
            await self._settle()

    async def _settle(self) -> None:
        """Wait for the answers. Raises _StillDelayed in a script: what is not answered then stays stored, and nothing
        of it is tried again here."""
        if not self._scripted:
            await self._app.turns.settle()
            return
        self._delivery.delayed.clear()
        settling = asyncio.create_task(self._app.turns.settle())
        delay = asyncio.create_task(self._delivery.delayed.wait())
        try:
            await asyncio.wait({settling, delay}, return_when=asyncio.FIRST_COMPLETED)
            done, _ = await asyncio.wait({settling}, timeout=DELAY_SECONDS)
            if not done:
                raise _StillDelayed(DELAYED)
            settling.result()
        finally:
            for task in (settling, delay):
                task.cancel()
            await asyncio.gather(settling, delay, return_exceptions=True)

    async def _read(self, lines: AsyncIterator[str]) -> None:
        """Do what each line says."""
        async for line in lines:
            text = line.strip()
            if text.partition(" ")[0] in ("/quit", "/exit"):
                break
            if text:
                try:
                    await self._do(text)
                except NexusError as error:
                    self.refused += 1
                    render.warn(self._refusal(error))
                    if isinstance(error, _StillDelayed):
                        render.warn(f"Stopped at '{text}'.")
                        break
                    if self._scripted and text.partition(" ")[0] in SWITCH_COMMANDS:
                        render.warn(f"Stopped at '{text}': the lines after it could go to the wrong place.")
                        break
            if self._interrupted:
                break

    def _refusal(self, error: NexusError) -> str:
        """Why a line was refused. Who sits here may well be the one who runs Nexus, and make an admin."""
        if not isinstance(error, AdminNeeded):
            return for_operator(error)
        user, workspace = shlex.quote(self._position.user), shlex.quote(self._position.workspace.name)
        return f"{error} Whoever runs Nexus makes somebody one: nexus admin {user} -w {workspace}"

    async def _do(self, text: str) -> None:
        """Do what a line says. Somebody who types may stop it."""
        if self._scripted:
            await self._line(text)
        else:
            self._interrupted = await interruptible(self._line(text), self._stop_answer)

    def _stop_answer(self) -> bool:
        """Stop the answer that is being written here, if there is one."""
        here = self._resolved
        return here is not None and self._app.drafter.stop(here.conversation_id)

    def prompt(self) -> str:
        """The text of the terminal's prompt."""
        return f"{self._position}> "

    async def suggest(self, parameter: Parameter[Any], before: Sequence[str], typed: str) -> list[Suggestion]:
        """Suggested values of a parameter, for the present user; none while the database is away."""
        position = self._position
        message = incoming(position.workspace, position.place, position.user, "/", self._app.clock.now())
        try:
            return await suggestions.suggest(self._app, position.workspace, message, parameter, before, typed)
        except NexusError:
            return []

    async def _line(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        confirm, self._confirm = self._confirm, ""
        answered = read_answer(text) if confirm else None
        if answered is Answered.YES:
            await self._command(confirm)
        elif answered is Answered.CANCEL:
            render.show(CANCELLED)
        elif word == "/as":
            await self._switch_user(_required(rest, "which user", "/as bob").lstrip("@"))
        elif word == "/room":
            names = _required(rest, "which room", "/room general").split()
            private = True if "--private" in names else None
            names = [name for name in names if name != "--private"]
            option = next((name for name in names if name.startswith("--")), None)
            if option is not None:
                raise BadInput(f"/room has no {option}; it has --private.")
            if not 1 <= len(names) <= 2:
                raise BadInput("/room takes the name of a room, and of a thread in it; for example: /room general")
            place = place_of(names[0], None, None, names[1] if len(names) > 1 else None, private)
            await self._switch(replace(self._position, place=place))
        elif word == "/dm":
            slug = external(rest) or self._app.settings.agents[0].slug
            await self._switch(replace(self._position, place=place_of(None, slug, None)))
        elif word == "/session":
            name = _required(rest, "which session", "/session draft")
            await self._switch(replace(self._position, place=place_of(None, None, name)))
        elif word.lower() == "/help" and f"/{rest.strip().lstrip('/')}" in CHAT_COMMANDS:
            render.show("\n".join(line for line in _TERMINAL_HELP if line.startswith(f"/{rest.strip().lstrip('/')} ")))
        elif word.startswith("/"):
            await self._command(text)
        else:
            await self._say(text)

    async def _set_position(self, position: ChatPosition) -> None:
        self._resolved = await resolve_position(self._app, position.workspace, position.place, position.user)
        several = len(self._app.directory.agents(position.workspace.tenant_id)) > 1
        self._delivery.show(self._resolved.conversation_id, names_agents=several and position.place.kind in ROOM_KINDS)
        self._position, self._hint = position, ""

    async def _switch_user(self, user: str) -> None:
        """Continue as another user: here if they may be here, else in a DM with the first agent. In a script, only
        here."""
        try:
            await self._switch(replace(self._position, user=user))
        except NotFound as error:
            if self._scripted:
                raise NotFound(f"{user} may not be here: go to another place first, such as /dm.") from error
            place = place_of(None, self._app.settings.agents[0].slug, None)
            await self._switch(replace(self._position, user=user, place=place))

    async def _switch(self, position: ChatPosition) -> None:
        await self._set_position(position)
        render.out.print(f"({position})", style="dim")
        await self._say_if_new()

    async def _say_if_new(self) -> None:
        """Say that nothing was said in this room yet: its name may be mistyped, or stand in another workspace."""
        here, place = self._resolved, self._position.place
        if here is not None and place.kind in ROOM_KINDS and await is_new(self._app, self._position.workspace, here):
            thread = f"/{place.thread}" if place.thread else ""
            workspace = self._position.workspace.name
            render.out.print(
                f"(#{place.name}{thread} is new in the workspace {workspace}: it holds nothing yet)", style="dim"
            )

    async def _command(self, text: str) -> None:
        position = self._position
        message = incoming(position.workspace, position.place, position.user, text, self._app.clock.now())
        answer = await run_command(self._app, position.workspace, message, recorded=False)
        self._confirm = answer.confirm
        if answer.sections and render.out.is_terminal:
            render.show_words(answer.head)
            if render.out.width < render.TABLE_WIDTH:
                render.show(stacked(answer.sections, max(render.out.width, render.MIN_WIDTH)))
            else:
                render.out.print(explained(answer.sections))
            render.show_words(answer.tail)
        else:
            render.show_words(answer.text)
        if _is_help(text):
            render.show_words("\n".join(("In the terminal also:", *_TERMINAL_HELP)))
        if answer.file is not None:
            async with self._app.database.transaction(position.workspace.tenant_id) as tx:
                await require_current(tx, answer.file)  # an erasure goes before, or finds the file
                self._show_file(answer.file)

    def _show_file(self, file: AnswerFile) -> None:
        """Print a text; write anything else to a file that only this account may read."""
        if file.name.endswith(".txt"):
            render.show(file.text)
            return
        path = export_path(self._app.settings.home, file.user, file.name, self._app.clock.now())
        write_private(path, file.text)
        render.show(f"Written to {path}")

    async def _say(self, text: str) -> None:
        position = self._position
        message = incoming(position.workspace, position.place, position.user, text, self._app.clock.now())
        self._delivery.expect(message.id)  # before it is received: its answer may come at once
        try:
            received = await self._app.receive(position.workspace, [message])
        except Unavailable as error:
            raise Unavailable(
                f"{error} {MESSAGE_NOT_STORED}", operator=f"{for_operator(error)} {MESSAGE_NOT_STORED}"
            ) from error
        await self._settle()
        self._delivery.settled()
        offers = self._delivery.offers
        self._confirm = offers[0].command if len(offers) == 1 else ""
        self._show_hint(received)

    def _show_hint(self, received: Received) -> None:
        """Say what became of a message that gets no answer, each time that this changes."""
        if received.turns or self._position.place.kind not in ROOM_KINDS:
            return
        done = "stored"
        if not received.new:
            done = "not stored: you have opted out, or this room does not store it" if received.not_recorded else ""
        if done and done != self._hint:
            self._hint = done
            slug = self._app.directory.agents(self._position.workspace.tenant_id)[0].slug
            render.out.print(f"({done}; to get an answer, write @{slug} in the message)", style="dim")


_TERMINAL_HELP: Final = in_columns(list(TERMINAL_COMMANDS.items()))


def _is_help(text: str) -> bool:
    """Whether a text asks for all commands."""
    command, rest = parse(text)
    return command.name == "help" and not rest


def _required(text: str, what: str, example: str) -> str:
    if not text.strip():
        raise BadInput(f"Name {what}; for example: {example}")
    return text.strip()

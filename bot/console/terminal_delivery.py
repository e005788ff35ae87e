"""Answers in the terminal, as they are written."""

import asyncio
import time
import uuid
from contextlib import suppress
from typing import Final

from bot.console import render
from bot.console.markdown import MarkdownPrinter
from composer.app import App
from composer.errors import Unavailable
from composer.model import ROOM_KINDS, ConversationKind, Offer, Turn
from composer.repositories.turns import Answer

TERMINAL_LOOK_SECONDS: Final = 1.0  # between looks at whether an answer may still be shown while it is written


class TerminalDelivery:
    """Prints answers as they stream in, with their Markdown as styles where this is a terminal. Answers to other
    conversations are stored, and not printed; a reminder that was posted to another one is printed with its place."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._open: Turn | None = None
        self._printer = MarkdownPrinter(render.out)
        self._expected: set[str] = set()
        self._answered: set[str] = set()
        self._conversation: uuid.UUID | None = None
        self._names_agents = False
        self._shows = True  # more of the open answer
        self._looked = 0.0  # when it was looked whether that may be
        self.delayed = asyncio.Event()  # set once an answer was delayed
        self.offers: list[Offer] = []  # of the answers that were expected

    def expect(self, message: str) -> None:
        """Expect an answer to this message."""
        self._expected.add(message)
        self.offers = []

    def settled(self) -> None:
        """Expect no more answers to what was answered: several agents may answer one message."""
        self._expected -= self._answered
        self._answered.clear()

    def show(self, conversation: uuid.UUID | None, *, names_agents: bool) -> None:
        """Print every answer of this conversation from now on, also those to earlier questions. `names_agents`: say
        whose each one is."""
        self._conversation, self._names_agents = conversation, names_agents

    def on_wait(self, turn: Turn) -> None:
        """Do nothing: in a terminal one sees that one is heard."""

    def on_start(self, turn: Turn) -> None:
        """Do nothing: a terminal needs no sign that the answer has begun."""

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Print a chunk at once, unless another answer is being printed, or something that this one is made from was
        erased or edited: then it is printed when it is whole."""
        if self._open is None and self._expected and turn.conversation_id == self._conversation:
            self._open, self._shows, self._looked = turn, True, time.monotonic()
            self._print(self._speaker(turn))
        if self._open is None or self._open.id != turn.id:
            return
        if self._shows and time.monotonic() - self._looked >= TERMINAL_LOOK_SECONDS:
            self._looked = time.monotonic()
            with suppress(Unavailable):
                self._shows = await self._app.drafter.may_show(turn.tenant_id, turn.id) is not False
        if self._shows:
            self._print(text)

    async def deliver(self, answer: Answer) -> None:
        """Print the whole answer, or end the line of a streamed one."""
        if not answer.in_reply_to:
            # What is due in one's DM is posted wherever one sits; without its place it would look like part of a room.
            here = answer.turn.conversation_id == self._conversation
            render.show(answer.text if here else f"({await self._place(answer.turn)}) {answer.text}", style="bold")
            return
        if answer.in_reply_to not in self._expected and answer.turn.conversation_id != self._conversation:
            return
        if answer.in_reply_to not in self._expected:
            render.out.print("(the answer to an earlier question)", style="dim")
        else:
            self.offers += answer.offers
        self._answered.add(answer.in_reply_to)
        text = answer.failure_details or answer.text  # who sits here runs Nexus
        if self._open is not None and self._open.id == answer.turn.id:
            shown = self._shows
            self._end()
            if answer.failed or not shown:
                _show(text)
        elif answer.failed:
            render.show(f"{self._speaker(answer.turn)}{text}", style="yellow")
        else:
            _show(f"{self._speaker(answer.turn)}{text}")

    def _print(self, text: str) -> None:
        """Print a part of the open answer."""
        if render.out.is_terminal:
            self._printer.feed(text)
        else:
            render.out.print(render.plain(text), end="")

    def _end(self) -> None:
        """End the open answer. Of one that may not be shown any more, nothing that waits is printed."""
        if not render.out.is_terminal:
            render.out.print("")
        elif self._shows:
            self._printer.end()
        self._open, self._printer = None, MarkdownPrinter(render.out)

    def _speaker(self, turn: Turn) -> str:
        """Whose answer it is, where several agents answer."""
        if not self._names_agents:
            return ""
        return f"@{self._app.directory.agents_by_id(turn.tenant_id)[turn.agent_id].slug}: "

    async def _place(self, turn: Turn) -> str:
        """Where something is posted that answers nothing."""
        async with self._app.database.transaction(turn.tenant_id, "read") as tx:
            to = await tx.deliveries.destination(turn.id)
        if to is None:
            return "erased since"
        if to.kind in ROOM_KINDS:
            return f"in #{to.name}{f'/{to.thread}' if to.thread else ''}"
        return f"in the DM of {to.user} with @{to.name}" if to.kind is ConversationKind.DM else f"in ~{to.name}"

    async def abandon(self, turn: Turn) -> None:
        """End the line of an answer whose question was erased."""
        if self._open is not None and self._open.id == turn.id:
            self._shows = False
            self._end()

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """Print that an answer is delayed, and why."""
        render.warn(sentence)
        self.delayed.set()


def _show(text: str) -> None:
    """Print a whole answer."""
    if not render.out.is_terminal:
        render.show(text)
        return
    printer = MarkdownPrinter(render.out)
    printer.feed(f"{text}\n")  # in whole lines
    printer.end()

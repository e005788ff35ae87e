"""A line typed in a terminal, with history and completion. Loaded for a terminal only: it takes a while."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout

from bot.commands.command import Parameter
from bot.commands.suggestions import Suggestion
from bot.commands.table import COMMANDS
from bot.console.chat import OWN, Chat

_NAMES: Final = sorted({*OWN, *(f"/{name}" for name in COMMANDS)})


class CommandCompleter(Completer):
    """Completes the names of commands, and then their arguments, by what `suggested` gives for them."""

    def __init__(self, suggested: Callable[[Parameter, Sequence[str], str], Awaitable[list[Suggestion]]]) -> None:
        self._suggested = suggested

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Those of names alone; arguments are read from the database, which takes a loop."""
        typed = document.text_before_cursor
        return [Completion(n, -len(typed)) for n in _NAMES if n.startswith(typed) and n != typed]

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """All of them."""
        typed = document.text_before_cursor
        for completion in self.get_completions(document, complete_event):
            yield completion
        name = next((n for n in _NAMES[::-1] if typed.startswith(f"{n} ")), "").removeprefix("/")
        if name not in COMMANDS or not COMMANDS[name].parameters:
            return
        words = typed[len(name) + 2 :].split(" ")
        parameters = COMMANDS[name].parameters
        place = min(len(words), len(parameters)) - 1
        last = " ".join(words[place:])
        for each in await self._suggested(parameters[place], words[:place], last):
            yield Completion(each.value, -len(last), display=each.label)


async def lines(chat: Chat, history: Path) -> AsyncIterator[str]:
    """Lines typed at a prompt, with history and completion; Ctrl-D ends, Ctrl-C clears the line."""
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)), completer=CommandCompleter(chat.suggested), complete_while_typing=False
    )
    with patch_stdout(raw=True):
        while True:
            try:
                yield await session.prompt_async(FormattedText([("bold ansicyan", chat.prompt())]))
            except KeyboardInterrupt:
                continue
            except EOFError:
                return

"""The line editor of `nexus chat`, with history and completion. Imported only in a terminal: it loads slowly."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout

from bot.commands.parameters import Parameter
from bot.commands.suggestions import Suggestion
from bot.commands.table import COMMANDS
from bot.console.chat import CHAT_COMMANDS, Chat

_NAMES: Final = sorted({*CHAT_COMMANDS, *(f"/{name}" for name in COMMANDS)})


class CommandCompleter(Completer):
    """Completes the names of commands, and then their arguments with what `suggest` returns for them."""

    def __init__(self, suggest: Callable[[Parameter[Any], Sequence[str], str], Awaitable[list[Suggestion]]]) -> None:
        self._suggest = suggest

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Complete names only; arguments come from the database, which needs the event loop."""
        typed = document.text_before_cursor
        return [Completion(n, -len(typed)) for n in _NAMES if n.startswith(typed) and n != typed]

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Complete names and arguments."""
        typed = document.text_before_cursor
        for completion in self.get_completions(document, complete_event):
            yield completion
        name = next((n for n in _NAMES[::-1] if typed.startswith(f"{n} ")), "").removeprefix("/")
        typing = COMMANDS[name].typing(typed[len(name) + 2 :]) if name in COMMANDS else None
        if typing is None:
            return
        parameter, before, text = typing
        for each in await self._suggest(parameter, before, text):
            yield Completion(each.value, -len(text), display=each.label)


async def lines(chat: Chat, history: Path) -> AsyncIterator[str]:
    """Yield the lines that are typed. Ctrl-D ends, Ctrl-C clears the line."""
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)), completer=CommandCompleter(chat.suggest), complete_while_typing=False
    )
    with patch_stdout(raw=True):
        while True:
            try:
                yield await session.prompt_async(FormattedText([("bold ansicyan", chat.prompt())]))
            except KeyboardInterrupt:
                continue
            except EOFError:
                return

"""The line editor of `nexus chat`, with history and completion. Imported only in a terminal: it loads slowly."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

from bot.commands.parameters import ForgetScope, ForgetTarget, Parameter
from bot.commands.suggestions import Suggestion
from bot.commands.table import COMMANDS, parse
from bot.console.chat import CHAT_COMMANDS, Chat
from composer.errors import BadInput
from composer.settings import private_files
from composer.text.repetition import matches

LEAVE: Final = "(to leave, press Ctrl-C once more, or Ctrl-D)"
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


class PrivateHistory(FileHistory):
    """The lines that were typed, in a file that only its owner can read. What is forgotten is taken out of it."""

    def __init__(self, path: Path) -> None:
        """Make the file if there is none."""
        self._path = path
        super().__init__(str(path))
        try:
            path.parent.mkdir(mode=private_files.FOLDER_MODE, parents=True, exist_ok=True)
            private_files.append(path, b"")
        except OSError as error:
            raise BadInput(
                f"{path}, which keeps what you type, can't be written ({error.strerror}): remove it, or make it a file "
                "of your own."
            ) from error

    def store_string(self, string: str) -> None:
        """Append a line, as FileHistory does."""
        private_files.append(self._path, _as_stored(string))

    def follow(self, line: str) -> None:
        """Take out what a typed line has just had erased: the lines with the words of `forget WORDS`, or everything."""
        try:
            command, text = parse(line)
            arguments = command.arguments(text)
        except BadInput:
            return
        if command.name.partition(" ")[0] not in ("forget", "erase"):
            return
        target = next(iter(arguments.values.values()), None) if command.name == "forget" else None
        if "yes" not in arguments.flags and not (isinstance(target, ForgetTarget) and not target.shown_first):
            return
        if isinstance(target, ForgetTarget) and target.scope is ForgetScope.MATCHING:
            self._retain(lambda typed: not matches(typed, target.text))
        else:
            self._retain(lambda typed: False)

    def _retain(self, is_retained: Callable[[str], bool]) -> None:
        retained = [typed for typed in self.load_history_strings() if is_retained(typed)]
        with private_files.replaced(self._path) as file:
            file.writelines(_as_stored(typed) for typed in reversed(retained))
        self._loaded_strings = retained


def _as_stored(typed: str) -> bytes:
    lines = "".join(f"+{line}\n" for line in typed.split("\n"))
    return f"\n# {datetime.now(UTC)}\n{lines}".encode()


def open_history() -> PrivateHistory:
    """The history in the own home of whoever types."""
    return PrivateHistory(Path.home() / ".local" / "state" / "nexus" / "chat_history")


def _keys() -> KeyBindings:
    """Ctrl-C clears what is typed, and is an interrupt where nothing is."""
    keys = KeyBindings()

    @keys.add("c-c")
    def clear_or_interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


async def lines(chat: Chat, history: PrivateHistory) -> AsyncIterator[str]:
    """Yield what is typed; what is pasted is one message, however many lines it has. Ctrl-D ends.
    Ctrl-C clears what is typed; where nothing is, it ends when it is pressed twice."""
    session: PromptSession[str] = PromptSession(
        history=history,
        completer=CommandCompleter(chat.suggest),
        complete_while_typing=False,
        key_bindings=_keys(),
    )
    leaving = False
    with patch_stdout(raw=True):
        while True:
            try:
                line = await session.prompt_async(FormattedText([("bold ansicyan", chat.prompt())]))
            except KeyboardInterrupt:
                if leaving:
                    return
                leaving = True
                print(LEAVE)
                continue
            except EOFError:
                return
            leaving = False
            yield line
            if line.lstrip().startswith("/"):
                history.follow(line)

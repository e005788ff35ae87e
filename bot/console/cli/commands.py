"""The group of all commands, which loads the file of a command when the command is given."""

from collections.abc import Iterator, MutableMapping
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from bot.console.cli.contents import CONTENTS
from bot.console.loading import load


class LazyCommands(MutableMapping[str, Any]):
    """The commands by their names. Each is loaded when it is looked up; names alone load nothing."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            group = get_group(load(f"bot.console.cli.{CONTENTS[name].file}").cli)
            self._loaded[name] = group if group.name == name else group.commands[name]
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(CONTENTS)

    def __len__(self) -> int:
        return len(CONTENTS)

    def __contains__(self, name: object) -> bool:
        return name in CONTENTS

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("Commands are listed in contents.py.")


class CommandGroup(TyperGroup):
    """All commands. Lists of them, in help and completion, show the summaries of contents.py."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of contents.py."""
        return list(CONTENTS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command as it is listed, by its name; None where there is none."""
        entry = CONTENTS.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called, loaded, with the arguments that are left for it."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, None if listed is None or name is None else self.commands[name], rest

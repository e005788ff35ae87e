"""How an error ends the program: one sentence, and an exit status."""

from contextlib import suppress
from typing import Final, NoReturn

import typer

from bot.console import render
from composer.errors import BadInput, Misconfigured, NexusError, Unavailable, for_operator

EXIT_FAILED: Final = 1
EXIT_BAD_INPUT: Final = 2


def unusable(error: OSError) -> Unavailable:
    """The sentence for a file or a disk that Nexus needs and can't use."""
    where = f"{error.filename}: " if error.filename else ""
    return Unavailable(
        f"{where}{error.strerror or error}. Free space, or let Nexus read and write its data folder (NEXUS_HOME)."
    )


def show_error(error: NexusError) -> None:
    """Print the error as one sentence."""
    with suppress(OSError):  # the terminal may be gone
        render.err.print(f"nexus: {render.plain(for_operator(error))}", style="red")


def fail(error: NexusError) -> NoReturn:
    """End the program with the error as one sentence."""
    show_error(error)
    raise typer.Exit(EXIT_BAD_INPUT if isinstance(error, BadInput | Misconfigured) else EXIT_FAILED)

"""The command line of `nexus`: reads it and calls its command."""

import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from bot.console.cli.commands import CommandGroup
from bot.console.cli.failure import EXIT_FAILED, show_error, unusable
from bot.console.cli.optional_values import arguments
from bot.console.loading import load
from composer import __version__
from composer.errors import NexusError

cli = typer.Typer(
    name="nexus",
    cls=CommandGroup,
    help="An agent that remembers, and never says in a room what it was told in private.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nexus {__version__}")
        raise typer.Exit


@cli.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself; those of a command stand after its name."""


def run() -> None:
    """Run the command that this process was started with."""
    words = sys.argv[1:]
    agents: set[str] = set()
    if "--dm" in words:
        with suppress(NexusError):  # the command itself reports it
            agents = {agent.slug for agent in load("composer.settings").from_environment().agents}
    try:
        cli(args=arguments(words, agents))
    except OSError as error:  # a file, a disk or the output that a command uses outside its own work
        show_error(unusable(error))
        _drop_output()
        sys.exit(EXIT_FAILED)


def _drop_output() -> None:
    """Let what was not written yet go nowhere. Python would try it once more at its end, and exit with 120."""
    with suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())

"""The command line of `nexus`: reads it and calls its command."""

import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from bot.console.cli import audit, history, jobs, keys, memory, service, setup, stored, talk, usage
from bot.console.cli.invocation import EXIT_FAILED, FIRST_AGENT, show_error, unusable
from bot.importers.history_privacy import ALL
from composer import __version__
from composer.errors import NexusError
from composer.settings import from_environment

cli = typer.Typer(
    name="nexus",
    help="An agent that remembers, and never says in a room what it was told in private.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (setup, talk, history, service, stored, usage, memory):
    cli.add_typer(group.cli)
cli.add_typer(jobs.cli, name="jobs")
cli.add_typer(audit.cli, name="audit")
cli.add_typer(keys.cli, name="keys")
cli.add_typer(keys.login_cli)


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


def arguments(words: list[str], agents: set[str]) -> list[str]:
    """The command line with a value for each `--dm` that is not followed by an agent's slug, and for each `--public`
    that is followed by nothing but options."""
    full = []
    for number, word in enumerate(words):
        full.append(word)
        following = words[number + 1] if number + 1 < len(words) else ""
        if word == "--dm" and following not in agents:
            full.append(FIRST_AGENT)
        elif word == "--public" and (not following or following.startswith("-")):
            full.append(ALL)
    return full


def run() -> None:
    """Run the command that this process was started with."""
    words = sys.argv[1:]
    agents: set[str] = set()
    if "--dm" in words:
        with suppress(NexusError):  # the command itself reports it
            agents = {agent.slug for agent in from_environment().agents}
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

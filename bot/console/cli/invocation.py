"""What every command of the program shares: its options, how it opens the app, and how an error ends it."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import typer

from bot.console import render
from bot.console.cli.failure import EXIT_FAILED, fail, unusable
from bot.console.cli.optional_values import FIRST_AGENT
from bot.console.cli.signals import SignalHandling
from bot.console.hardening import make_private, mask_output
from bot.console.logs import announcer, configure_logs
from bot.script.places import place_of
from composer.app import App, open_app
from composer.errors import BadInput, NexusError
from composer.model import CONSOLE, Place
from composer.settings import Settings, from_environment

T = TypeVar("T")


class Platform(StrEnum):
    """The platforms whose rooms a command reaches."""

    CONSOLE = CONSOLE
    DISCORD = "discord"
    SLACK = "slack"


User = Annotated[str, typer.Option("--as", metavar="USER", help="Act as this user.")]
Room = Annotated[str | None, typer.Option("--room", metavar="ROOM", help="Use this room.")]
Dm = Annotated[
    str | None, typer.Option("--dm", metavar="[AGENT]", help="Use a DM with this agent (default: the first).")
]
Session = Annotated[str | None, typer.Option("--session", metavar="SESSION", help="Use this API session.")]
InWorkspace = Annotated[
    str,
    typer.Option(
        "--workspace", "-w", help="Use this workspace. Each is a tenant of its own unless nexus.toml says otherwise."
    ),
]
OfPlatform = Annotated[
    Platform, typer.Option("--platform", help="Of this platform, where rooms and users are named by their ids.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one value per line.")]


def print_json(event: dict[str, Any]) -> None:
    """Print one value as one line of JSON."""
    sys.stdout.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def load_settings(*, tracebacks: bool = True) -> Settings:
    """The settings of the environment, once the data folder is private and the logs hide secrets. Ends the program when
    a setting is wrong."""
    try:
        settings = from_environment()
    except NexusError as error:
        fail(error)
    try:
        make_private(settings.home)
    except OSError as error:
        fail(unusable(error))
    mask_output(settings.secrets)
    configure_logs(settings.log, format=settings.log_format, tracebacks=tracebacks)
    warn = announcer(settings.log_format, render.warn)
    for sentence in settings.warnings:
        warn(sentence)
    return settings


def chosen_place(
    settings: Settings,
    room: str | None,
    dm: str | None,
    session: str | None,
    agent: str | None = None,
    *,
    required: bool = False,
    platform: str = CONSOLE,
) -> Place:
    """The place that the options name; without one, a DM with the first agent, unless one is `required`."""
    named = [name for name in (room, dm, session) if name is not None]
    if len(named) > 1 or (required and not named):
        fail(BadInput("Name exactly one place: --room ROOM, --dm [AGENT] or --session SESSION."))
    first = settings.agents[0].slug
    if room is None and session is None:
        dm = first if dm in (None, FIRST_AGENT) else dm
    return read_or_fail(lambda: place_of(room, dm, session, agent=agent, platform=platform))


def read_or_fail(reading: Callable[[], T]) -> T:
    """The result of `reading`, which ends the program when what it reads is wrong."""
    try:
        return reading()
    except NexusError as error:
        fail(error)


def run_in_app(settings: Settings, body: Callable[[App], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Open the app, do one thing with it, and close it again."""

    async def opened() -> None:
        async with open_app(settings, **options) as app:
            await body(app)

    finish(opened())


def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or the exit status of what ended it: 128 and its number for a signal."""
    handling = SignalHandling()
    try:
        return handling.run(work)
    except NexusError as error:
        fail(error)
    except asyncio.CancelledError:
        raise typer.Exit(128 + (handling.signal or signal.SIGINT)) from None
    except BrokenPipeError:
        with suppress(OSError):  # the reader of our output is gone: nothing more can be printed
            sys.stdout.close()
        raise typer.Exit(EXIT_FAILED) from None
    except OSError as error:
        if handling.signal is not None:  # the terminal is gone, and so is all that could be printed
            raise typer.Exit(128 + handling.signal) from None
        fail(unusable(error))

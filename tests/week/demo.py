"""`make demo`: the week of a team of eight in the terminal, played on the real program and both adapters.

Discord, Slack and the model are the tests' own servers on this machine: nothing leaves it. Everything is in a temporary
folder, which is removed.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from bot.console import render
from bot.console.cli.signals import SignalHandling
from composer.errors import NexusError
from composer.stores.embedded.servers import EmbeddedServers
from tests.week.player import Player
from tests.week.script import read_week
from tests.week.show import SECONDS, Show
from tests.week.stage import on_stage, service_for

INTRODUCTION: Final = (
    "A week of eight people, on a Discord and a Slack of this machine's own: no key, no network. Nexus is the real "
    "program; the model is a stand-in that says what its prompt holds. #NAME is a room, @NAME somebody's DM."
)
END: Final = "Next: make chat, to talk to it yourself. The data of this week is removed."


@asynccontextmanager
async def servers(home: Path) -> AsyncIterator[None]:
    """PostgreSQL and Valkey, which outlive Nexus being killed and end with the demo."""
    embedded = EmbeddedServers(home)
    try:
        await asyncio.to_thread(embedded.start)
        yield
    finally:
        await asyncio.to_thread(embedded.stop)


async def play(home: Path, seconds: float) -> None:
    """Play the week, with pauses of so many seconds in all."""
    week = read_week()
    show = Show(seconds)
    async with servers(home), on_stage(week) as stage:
        service = service_for(stage, home)
        player = Player(stage, service, show.line)
        try:
            await player.play()
        finally:
            await service.kill()
    people, rooms = len(week.people), len(week.rooms)
    render.show(
        f"\n{player.answers} answers to {people} people in {rooms} rooms and their DMs: each in its place, none lost, "
        "none twice, and no private word anywhere else."
    )


def main() -> int:
    """Play the week; returns the exit status."""
    parser = argparse.ArgumentParser(prog="make demo", description="A week of a team, on the real program.")
    parser.add_argument("--fast", action="store_true", help="without pauses to read")
    given = parser.parse_args()
    handling = SignalHandling()
    render.show_words(INTRODUCTION)
    folder = Path(tempfile.mkdtemp(prefix="nexus-demo-"))
    try:
        folder.chmod(0o755)  # the servers may run as another user
        handling.run(play(folder / "home", 0.0 if given.fast else SECONDS))
    except asyncio.CancelledError:
        return 128 + (handling.signal or 0)
    except BrokenPipeError:
        with suppress(OSError):
            sys.stdout.close()
        return 1
    except NexusError as error:
        render.warn(str(error))
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    render.show(END)
    return 0

"""`nexus run`: every configured door at once, until told to stop."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

import structlog
from aiohttp import web

from bot.discord.adapter import DiscordAdapter
from bot.slack.adapter import SlackAdapter
from composer.app import App
from composer.errors import BadInput
from composer.settings import Settings

logger = structlog.get_logger()

FINISH_WITHIN: Final = 20.0  # seconds for answers that are being written when we are told to stop
DISCORD: Final = "discord"
SLACK: Final = "slack"
WEB: Final = "web"


def chosen(settings: Settings, wanted: set[str]) -> set[str]:
    """The doors to serve: those that are wanted, or with none named all that are configured.

    Raises BadInput for a door that is wanted and not configured.
    """
    configured = set()
    if settings.discord_token is not None:
        configured.add(DISCORD)
    if settings.slack_bot_token is not None:
        configured.add(SLACK)
        if settings.slack_signing_secret is not None and settings.slack_app_token is None:
            configured.add(WEB)
    missing = {DISCORD: "NEXUS_DISCORD_TOKEN", SLACK: "NEXUS_SLACK_BOT_TOKEN", WEB: "NEXUS_SLACK_SIGNING_SECRET"}
    for door in sorted(wanted):
        present = settings.slack_signing_secret is not None if door == WEB else door in configured
        if not present:
            raise BadInput(f"--{door} needs {missing[door]}, which is not set; see docs/.")
    return wanted or configured


async def serve(
    app: App,
    doors: set[str],
    say: Callable[[str], None],
    jobs: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve, with the `jobs` beside the doors, until SIGTERM or SIGINT.

    Then answers in flight finish, or are handed back to whoever starts next.
    """
    stopped = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    async with AsyncExitStack() as stack:
        running = await _open(app, doors, stack)
        await app.turns.adopt()
        tasks = [asyncio.create_task(run()) for run in (*running, *((jobs,) if jobs else ()))]
        serving = ", ".join(sorted(doors)) or "no chat platform: it only indexes what it is given"
        say(f"Nexus is up: {serving}.")
        await _until(stopped, tasks)
        say("Stopping: answers that are being written get a few seconds.")
        await _settled(app)  # first: an answer in flight needs its door
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _open(app: App, doors: set[str], stack: AsyncExitStack) -> list[Callable[[], Coroutine[Any, Any, None]]]:
    running: list[Callable[[], Coroutine[Any, Any, None]]] = []
    if DISCORD in doors:
        discord = DiscordAdapter(app)
        stack.push_async_callback(discord.stop)
        running.append(discord.run)
    if SLACK in doors or WEB in doors:
        slack = SlackAdapter(app)
        stack.push_async_callback(slack.stop)
        running.append(slack.run)
        if WEB in doors:
            runner = web.AppRunner(slack.http_app())
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, app.settings.web_host, app.settings.web_port).start()
    return running


async def _until(stopped: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the signal; a door that ends by itself is logged, and the others go on."""
    waiting = asyncio.create_task(stopped.wait())
    alive = set(tasks)
    while not waiting.done():
        done, _ = await asyncio.wait({waiting, *alive}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {waiting}:
            alive.discard(task)
            if not task.cancelled() and task.exception() is not None:
                logger.error("door.ended", exc_info=task.exception())


async def _settled(app: App) -> None:
    try:
        async with asyncio.timeout(FINISH_WITHIN):
            await app.turns.settle()
    except TimeoutError:
        logger.warning("turns.handed_back")

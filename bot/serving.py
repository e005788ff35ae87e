"""`nexus run`: serve the chosen adapters until a signal stops it."""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol

import structlog

from bot.ahead import import_ahead
from bot.delivery import due_posts
from bot.discord.adapter import DiscordAdapter
from bot.slack.adapter import SlackAdapter
from bot.slack.signed_http import SlackHttp
from bot.web import webhooks
from bot.web.jobs import JobSchedule
from bot.web.metrics import Metrics
from composer.app import App
from composer.errors import BadInput, Unavailable, for_operator
from composer.model import DISCORD, SLACK
from composer.settings import Settings
from composer.text.work import SWITCH_SECONDS

logger = structlog.get_logger()

# Of the 20 seconds from a signal to the end of the process (bot/console/cli/signals.py):
ANSWER_SECONDS: Final = 14.0  # for answers in progress
CLOSE_SECONDS: Final = 4.0  # for the adapters to close their connections
# Made since the last look for garbage: with Python's 700 a long body made it look through all that is held ten times,
# for 60 ms each, in which nothing else runs.
OBJECTS_PER_COLLECTION: Final = 10_000
Run = Callable[[], Coroutine[Any, Any, None]]
Adapter = DiscordAdapter | SlackAdapter


class ServedSchedule(JobSchedule, Protocol):
    """The jobs of the process, with what was begun by hand."""

    async def close(self) -> None:
        """Stop what was begun by hand."""


def chosen(settings: Settings, requested: set[str]) -> set[str]:
    """The adapters to serve: those that are requested; if none is, all that are configured.

    Raises BadInput for an adapter that is requested and not configured.
    """
    configured = set()
    if settings.discord_token is not None:
        configured.add(DISCORD)
    if settings.slack_bot_token is not None:
        configured.add(SLACK)
    required = {DISCORD: "NEXUS_DISCORD_TOKEN", SLACK: "NEXUS_SLACK_BOT_TOKEN"}
    for adapter in sorted(requested - configured):
        raise BadInput(
            f"--{adapter} needs {required[adapter]}, which is not set: docs/{adapter}.md says where to get it."
        )
    return requested or configured


def opens_port(settings: Settings, adapters: set[str], *, requested: bool) -> bool:
    """Whether to open the web port: it is requested, a setting names its host or port, or Slack can only reach us by
    HTTP."""
    by_http = settings.slack_signing_secret is not None and settings.slack_app_token is None
    named = not {"web_host", "web_port"}.isdisjoint(settings.model_fields_set)
    return requested or named or (SLACK in adapters and by_http)


async def serve(
    app: App,
    adapters: set[str],
    say: Callable[[str], None],
    jobs: Run | None = None,
    metrics: Metrics | None = None,
    *,
    started: Run | None = None,
    offered: ServedSchedule | None = None,
) -> None:
    """Serve the adapters, `jobs` beside them, and the web port where there are `metrics` to show, until cancelled.
    `started` is run once all are connected; `offered` are the jobs that admins may start on the web port.

    Answers in progress are then finished; those that take too long are left to the next process. Raises Misconfigured
    when a platform refuses to let us in at the start.
    """
    async with AsyncExitStack() as stack:
        if offered is not None:
            stack.push_async_callback(offered.close)
        await asyncio.to_thread(import_ahead, app.settings)
        platforms, port = await _open(app, adapters, stack, metrics, offered)
        await _check_cache(app, say)
        gc.collect()
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.freeze()  # what is loaded by now stays: looking through it again and again stopped the process for 0.1 s
        gc.set_threshold(OBJECTS_PER_COLLECTION)
        beside: list[Run] = [lambda: due_posts.run(app), lambda: webhooks.run(app)] if platforms or port else []
        runs = [*(each.run for each in platforms), *beside, *((jobs,) if jobs else ())]
        tasks = [asyncio.create_task(run()) for run in runs]
        try:
            await _until_cancelled(tasks, lambda: _say_running(app, platforms, port, say, started))
            say(f"Stopping: waiting up to {ANSWER_SECONDS:.0f} seconds for answers in progress.")
            await _settle(app)  # before the adapters end: answers in progress need them
        finally:
            await _close(tasks, platforms)


async def _say_running(
    app: App, platforms: list[Adapter], port: list[str], say: Callable[[str], None], started: Run | None
) -> None:
    """Say where we are once every platform is connected. Raises Misconfigured when one refuses us."""
    if platforms:
        say(f"Connecting to {' and '.join(each.title for each in platforms)} …")
    connected = [await each.startup.wait() for each in platforms]
    none = "no chat platform (set the tokens of docs/discord.md or docs/slack.md to serve one)"
    say(f"Nexus is running: {'; '.join([*connected, *port]) or none}.")
    if app.notice:
        say(app.notice)
    if started is not None:
        await started()


async def _close(tasks: list[asyncio.Task[None]], platforms: list[Adapter]) -> None:
    """Close the connections, then end all tasks. What does not end in time is left to the end of the process: a
    library may swallow the cancellation."""
    closing = [asyncio.create_task(each.stop()) for each in platforms]
    if closing:
        await asyncio.wait(closing, timeout=CLOSE_SECONDS)
    for task in (*closing, *tasks):
        task.cancel()
    await asyncio.wait((*closing, *tasks), timeout=CLOSE_SECONDS / 4)


async def _check_cache(app: App, say: Callable[[str], None]) -> None:
    """Say so when the cache is down, which stops nothing."""
    try:
        await app.cache.ping()
    except Unavailable as error:
        say(f"{for_operator(error)} Until then every view is read from PostgreSQL, which is slower; nothing is lost.")


async def _open(
    app: App,
    adapters: set[str],
    stack: AsyncExitStack,
    metrics: Metrics | None,
    offered: ServedSchedule | None = None,
) -> tuple[list[Adapter], list[str]]:
    """The adapters to run, and what to say of the web port. Raises Misconfigured."""
    platforms: list[Adapter] = []
    connected: dict[str, Callable[[], Awaitable[bool]]] = {}
    slack_http: SlackHttp | None = None
    if DISCORD in adapters:
        discord = DiscordAdapter(app)
        platforms.append(discord)
        connected[DISCORD] = discord.connected
    if SLACK in adapters:
        slack = SlackAdapter(app)
        platforms.append(slack)
        connected[SLACK] = slack.connected
        if app.settings.slack_signing_secret is not None:
            slack_http = slack.http()
    if metrics is None:
        return platforms, []
    from bot.web.app import web_app  # noqa: PLC0415 - FastAPI and uvicorn take half a second
    from bot.web.server import open_port  # noqa: PLC0415 - as above

    served = web_app(app, metrics, connected, slack_http, jobs=offered)
    return platforms, [f"web on {await open_port(app.settings, served, stack)}"]


async def _until_cancelled(tasks: list[asyncio.Task[None]], started: Run) -> None:
    """Wait for `started`, and then until this task is cancelled, which then counts as handled. An adapter that ends by
    itself is logged, and the others go on."""
    for task in tasks:
        task.add_done_callback(_log_failure)
    try:
        await started()
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        current = asyncio.current_task()
        assert current is not None
        current.uncancel()


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("adapter.failed", exc_info=task.exception())


async def _settle(app: App) -> None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await app.turns.settle()
    except TimeoutError:
        logger.warning("turns.unfinished_at_shutdown")

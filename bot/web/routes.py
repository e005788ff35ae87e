"""The routes of the web port: `/health`, `/ready` and `/metrics`. They need no key, and show no name, id or text."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from aiohttp import web

from bot.web.metrics import CONTENT_TYPE, Metrics
from composer.app import App
from composer.errors import NexusError, where_raised
from composer.operations.backlog import Backlog, backlog
from composer.operations.backups import newest_backup
from composer.operations.readiness import missing

logger = structlog.get_logger()

SCRAPE_SECONDS: Final = 5.0  # for what metrics read from the database
Connected = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Routes:
    """What the routes answer from. `connected` says of each platform that is served whether it is connected."""

    app: App
    metrics: Metrics
    connected: Mapping[str, Connected]

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Mount them."""
        router.add_get("/health", self.health)
        router.add_get("/ready", self.ready)
        router.add_get("/metrics", self.show_metrics)

    async def health(self, _: web.Request) -> web.Response:
        """200 while the process runs. Asks nobody."""
        return web.json_response({"status": "running"})

    async def ready(self, _: web.Request) -> web.Response:
        """200 when this process can serve, else 503 with what is missing, a sentence each."""
        found = await missing(self.app.database, self.app.cache)
        found += [f"{name.title()} is not connected." for name, ask in self.connected.items() if not await ask()]
        return web.json_response({"ready": not found, "missing": found}, status=503 if found else 200)

    async def show_metrics(self, _: web.Request) -> web.Response:
        """The metrics in Prometheus's text format, also while the database is away."""
        self.metrics.set_open_turns(self.app.turns.open)
        try:
            async with asyncio.timeout(SCRAPE_SECONDS):
                await self._read_installation()
        except (NexusError, TimeoutError, OSError) as error:
            logger.warning("metrics.installation_unavailable", **where_raised(error))
            self.metrics.set_installation(None, {}, math.nan)
        return web.Response(body=self.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def _read_installation(self) -> None:
        app = self.app
        found: Backlog = await backlog(app.database)
        successes = await app.ledger.last_success()
        newest = newest_backup(app.settings.home, successes)
        age = math.inf if newest is None else (app.clock.now() - newest).total_seconds()
        self.metrics.set_installation(found, successes, age)

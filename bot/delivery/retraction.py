"""Takes withdrawn answers back where they were posted, however long the platform is away."""

import asyncio
from contextlib import suppress
from typing import Final

import structlog

from bot.delivery.streaming import Outbox
from composer.app import App
from composer.errors import NexusError, Unavailable
from composer.memory.forget import RETRACTED
from composer.repositories.deliveries import Retractable

logger = structlog.get_logger()

LOOK_EVERY: Final = 30.0  # seconds between looks for what another process withdrew, or what failed
AT_ONCE: Final = 100


class Retraction:
    """Puts the sentence of withdrawal in the place of each posted part. `run` it beside a door."""

    def __init__(self, app: App, platform: str, wire: Outbox) -> None:
        self._app = app
        self._platform = platform
        self._outbox = wire
        self._due = app.erasures.subscribe()

    def wake(self) -> None:
        """There may be something to take back, or it may work now."""
        self._due.set()

    async def run(self) -> None:
        """Take back what is there to be taken back, until cancelled."""
        while True:
            self._due.clear()
            try:
                await self.catch_up()
            except Unavailable as error:
                logger.warning("withdrawal.waits", error=str(error))
            except Exception:
                logger.exception("withdrawal.failed")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), LOOK_EVERY)

    async def catch_up(self) -> None:
        """Take back all that is due now. Raises Unavailable where that must wait."""
        for tenant, _ in await self._app.database.tenants():
            while True:
                async with self._app.database.transaction(tenant, snapshot=True) as tx:
                    due = await tx.deliveries.pending_retractions(self._platform, AT_ONCE)
                for each in due:
                    await self._take_back(each)
                    async with self._app.database.transaction(tenant) as tx:
                        await tx.deliveries.complete_retraction(each)
                if len(due) < AT_ONCE:
                    break

    async def _take_back(self, each: Retractable) -> None:
        try:
            await self._outbox.edit(each.to, each.external_id, RETRACTED)
        except Unavailable:
            raise
        except NexusError as error:  # we are not there any more, and can do nothing about it
            logger.warning("withdrawal.refused", turn=str(each.turn_id), error=str(error))

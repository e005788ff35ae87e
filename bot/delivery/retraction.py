"""Retracts answers on their platform:

replaces each posted part by one sentence, deletes files for people who have forgotten something, and retries while the
platform is down.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from bot.delivery.outbox import Outbox
from composer.app import App
from composer.errors import NexusError, Unavailable
from composer.memory.forget import RETRACTED
from composer.repositories.deliveries import Retractable

logger = structlog.get_logger()

POLL_SECONDS: Final = 30.0  # between looks for what another process retracted, or what failed
BATCH_SIZE: Final = 100


class Retraction:
    """Edits the posted parts of retracted answers. `run` it beside the adapter of the platform."""

    def __init__(
        self, app: App, platform: str, outbox: Outbox, delete_files: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Retracts where the process serves the platform: in all of it, or in one workspace. `delete_files` deletes the
        files that are to be deleted, where the platform has files in DMs. It raises Unavailable."""
        self._delete_files = delete_files
        self._app = app
        self._platform = platform
        self._outbox = outbox
        self._due = app.erasures.subscribe()

    def wake(self) -> None:
        """Check the queue now: something was erased, or the platform is reachable again."""
        self._due.set()

    async def run(self) -> None:
        """Retract whatever is due, until cancelled."""
        while True:
            self._due.clear()
            try:
                await self.catch_up()
            except Unavailable as error:
                logger.warning("retraction.retrying", error=str(error))
            except Exception:
                logger.exception("retraction.failed")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), POLL_SECONDS)

    async def catch_up(self) -> None:
        """Retract all that is due now. Raises Unavailable if the database or the platform does not answer."""
        for served in self._app.turns.served:
            if served.partition(":")[0] == self._platform:
                await self._catch_up(served)
        if self._delete_files is not None:
            await self._delete_files()

    async def _catch_up(self, served: str) -> None:
        for tenant, _ in await self._app.database.tenants():
            while True:
                async with self._app.database.transaction(tenant, snapshot=True) as tx:
                    due = await tx.deliveries.pending_retractions(served, BATCH_SIZE)
                for part in due:
                    await self._retract(part)
                    async with self._app.database.transaction(tenant) as tx:
                        await tx.deliveries.complete_retraction(part)
                if len(due) < BATCH_SIZE:
                    break

    async def _retract(self, part: Retractable) -> None:
        try:
            await self._outbox.edit(part.to, part.external_id, RETRACTED)
        except Unavailable:
            raise
        except NexusError as error:  # we have left the room, and can do nothing about it
            logger.warning("retraction.refused", turn=str(part.turn_id), error=str(error))

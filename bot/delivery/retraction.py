"""Retracts answers on their platform:

replaces each posted part by one sentence, deletes files for people who have forgotten something, and retries while the
platform is down. What the platform refuses (the bot was taken out of a room, or a room is archived) is tried again for
30 days, and once more whenever Nexus starts or is let into a room.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import structlog

from bot.delivery.outbox import Outbox, part_key_of
from composer.app import App
from composer.errors import NexusError, Unavailable
from composer.memory.forget import RETRACTED
from composer.repositories.deliveries import Retractable

logger = structlog.get_logger()

RETRACTION_POLL_SECONDS: Final = 30.0  # between looks for what another process retracted, or what failed
RETRACTION_BATCH: Final = 100
MAX_RETRACTION_FAILURES: Final = 3  # in one look, after which the platform counts as down
MIN_WAIT: Final = timedelta(minutes=1)  # before what was refused is tried again; as long as it was refused already
MAX_RETRACTION_WAIT: Final = timedelta(days=1)
MAX_REFUSED: Final = timedelta(days=30)
MAX_LOOKED_FOR: Final = timedelta(minutes=5)  # after that, a part that may have been posted was not


def retry_at(now: datetime, refused_since: datetime) -> datetime:
    """When to try again what a platform refuses."""
    return now + min(max(now - refused_since, MIN_WAIT), MAX_RETRACTION_WAIT)


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
        self._retries_refused = True

    def wake(self) -> None:
        """Check the queue now, also for what was refused: something was erased, or the platform may take it again."""
        self._retries_refused = True
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
                await asyncio.wait_for(self._due.wait(), RETRACTION_POLL_SECONDS)

    async def catch_up(self) -> None:
        """Retract all that is due now. Raises Unavailable if the database or the platform does not answer."""
        failure: Unavailable | None = None
        served = [each for each in self._app.turns.served if each.partition(":")[0] == self._platform]
        if self._retries_refused and served:
            await self._retry_refused(served)
        for each in served:
            for tenant, _ in await self._app.database.tenants():
                failure = await self._catch_up(tenant, each) or failure
        if self._delete_files is not None:
            await self._delete_files()
        if failure is not None:
            raise failure

    async def _retry_refused(self, served: list[str]) -> None:
        """Make what was refused due. Raises Unavailable; then the next look does it."""
        self._retries_refused = False  # before anything is awaited: `wake` sets it again
        try:
            for tenant, _ in await self._app.database.tenants():
                async with self._app.database.transaction(tenant) as tx:
                    for each in served:
                        await tx.deliveries.retry_retractions(each)
        except Unavailable:
            self._retries_refused = True
            raise

    async def _catch_up(self, tenant: uuid.UUID, served: str) -> Unavailable | None:
        """Retract what is due of a tenant. One post that fails does not stop the others; returns why the last did."""
        failures: list[Unavailable] = []
        while True:
            async with self._app.database.transaction(tenant, "read") as tx:
                due = await tx.deliveries.pending_retractions(served, RETRACTION_BATCH, self._app.clock.now())
            for part in due:
                try:
                    await self._retract(tenant, part)
                except Unavailable as error:
                    failures.append(error)
                    await self._postpone(tenant, part, self._app.clock.now(), part.refused_since)
                if len(failures) == MAX_RETRACTION_FAILURES:
                    return failures[-1]
            if len(due) < RETRACTION_BATCH:
                return failures[-1] if failures else None

    async def _retract(self, tenant: uuid.UUID, part: Retractable) -> None:
        """Retract one post, or note that it is to be tried again. Raises Unavailable."""
        limit = MAX_REFUSED
        try:
            retracted = await self._replace(part)
            if not retracted:
                limit = MAX_LOOKED_FOR
        except Unavailable:
            raise
        except Exception as error:
            refusal = str(error) if isinstance(error, NexusError) else type(error).__name__
            logger.warning("retraction.refused", turn=str(part.turn_id), error=refusal)
            retracted = False
        now = self._app.clock.now()
        since = part.refused_since or now
        if retracted or now - since > limit:
            if not retracted and limit is MAX_REFUSED:
                logger.error("retraction.given_up", turn=str(part.turn_id))
            async with self._app.database.transaction(tenant) as tx:
                await tx.deliveries.complete_retraction(part)
        else:
            await self._postpone(tenant, part, retry_at(now, since), since)

    async def _replace(self, part: Retractable) -> bool:
        """Replace the text of a post. False if none is found that may have been posted: it may be shown yet."""
        posted: str | None = part.external_id
        if part.part is not None:
            posted = await self._outbox.find(part.to, part_key_of(part.turn_id, part.part))
        if posted is not None:
            await self._outbox.edit(part.to, posted, RETRACTED)
        return posted is not None

    async def _postpone(
        self, tenant: uuid.UUID, part: Retractable, retry_at: datetime, refused_since: datetime | None
    ) -> None:
        async with self._app.database.transaction(tenant) as tx:
            await tx.deliveries.postpone_retraction(part, retry_at, refused_since)

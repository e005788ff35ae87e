"""When credentials were last used: stored off the request's way, at most once a minute for each of them."""

import asyncio
import uuid
from datetime import datetime, timedelta
from typing import Final

import structlog

from composer.errors import NexusError
from composer.people.credentials.principal import Principal, Source
from composer.ports.clock import Clock
from composer.repositories.database import Database

logger = structlog.get_logger()

LAST_USE_PERIOD: Final = timedelta(minutes=1)


class LastUse:
    """Stores when keys, apps and web sessions are used. Nothing is kept between uses, so several processes agree."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._writing: dict[uuid.UUID, asyncio.Task[None]] = {}

    def note(self, principal: Principal, last_used_at: datetime | None) -> None:
        """Store that a credential is used now, later; not if that was stored within the last minute."""
        now = self._clock.now()
        recent = last_used_at is not None and now - last_used_at < LAST_USE_PERIOD
        if recent or principal.id in self._writing or principal.source is Source.SETTINGS:
            return
        self._writing[principal.id] = asyncio.create_task(self._write(principal, now))

    async def settle(self) -> None:
        """Wait until all that was noted is stored."""
        await asyncio.gather(*self._writing.values())

    async def _write(self, principal: Principal, now: datetime) -> None:
        try:
            async with self._database.transaction(principal.tenant_id) as tx:
                await tx.api_keys.used(principal.id, now, now - LAST_USE_PERIOD)
        except NexusError as error:  # the next use stores it
            logger.warning("credentials.last_use_not_stored", error=type(error).__name__)
        finally:
            del self._writing[principal.id]

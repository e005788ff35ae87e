"""An erasure that stands still in its middle while a test does something else."""

import asyncio
import uuid
from typing import Any

import pytest

from composer.people.credentials.last_use import LastUse
from composer.ports.database import Mode
from composer.repositories.erasure import Erasure
from composer.stores.database.postgres import PostgresDatabase
from composer.usage import operations
from tests.support.waiting import TIMEOUT_SECONDS


class HeldErasure:
    """Every erasure stands still before one of its steps, where it has its lock, until `go` is set. Meanwhile
    `lock_wanted` is set once something that is to be stored comes to the tenant's lock: a request has read its
    credential for the last time by then, and looks at it once more behind the lock. When credentials were last used
    and what was counted are not stored meanwhile, since that takes the lock too."""

    def __init__(self, patch: pytest.MonkeyPatch, step: str = "erase") -> None:
        """`step` is a method of `Erasure`: with `store_receipt` all that is to be erased is erased by then."""
        self.go, self.lock_wanted = asyncio.Event(), asyncio.Event()
        self._begun = asyncio.Event()
        take, begin = getattr(Erasure, step), PostgresDatabase.transaction

        async def taken(erasure: Erasure, *args: Any, **options: Any) -> Any:
            self._begun.set()
            await self.go.wait()
            return await take(erasure, *args, **options)

        def begun(database: PostgresDatabase, tenant: uuid.UUID, mode: Mode = "share") -> Any:
            if self._begun.is_set() and mode != "read":
                self.lock_wanted.set()
            return begin(database, tenant, mode)

        patch.setattr(Erasure, step, taken)
        patch.setattr(PostgresDatabase, "transaction", begun)
        patch.setattr(LastUse, "note", lambda *_: None)
        patch.setattr(operations, "METER_FLUSH_SECONDS", 10_000)

    async def until_held(self) -> None:
        """Wait until an erasure stands still."""
        await asyncio.wait_for(self._begun.wait(), TIMEOUT_SECONDS)

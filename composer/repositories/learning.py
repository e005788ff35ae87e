"""Attempts to learn from what waits: messages of a conversation, or what people's tools ask models."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from composer.ports.database import Statements


class LearningScope(Protocol):
    """What is learnt from together, named by its `key`. It ends with its conversation or its user."""

    @property
    def key(self) -> str:
        """Its name, as `due` of its source names it in SQL."""
        ...

    @property
    def conversation_id(self) -> uuid.UUID | None:
        """The conversation that it is of, if it is of one."""
        ...

    @property
    def user(self) -> uuid.UUID | None:
        """The user that it is of, if it is of one."""
        ...


@dataclass(frozen=True, slots=True)
class ReadyRule:
    """What is due `now`: a scope in which `batch_size` wait, of which none came since `quiet_since`, or one is from
    before `waiting_since`. At most `limit` are wanted."""

    now: datetime
    batch_size: int
    quiet_since: datetime
    waiting_since: datetime
    limit: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What a query takes of it."""
        return {name: getattr(self, name) for name in self.__slots__}


class LearningBatches:
    """The attempts. One claims a scope until it ends or its time runs out."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def claim(self, scope: LearningScope, claim: uuid.UUID, now: datetime, until: datetime) -> int | None:
        """Claim a scope; how often it has failed in a row. None while another attempt has claimed it, and where it is
        not due."""
        owners = {"conversation_id": scope.conversation_id, "user_id": scope.user}
        failures: int | None = await self._sql.fetch_value(
            "learning_claim", scope=scope.key, **owners, claim=claim, now=now, until=until
        )
        return failures

    async def hold(self, scope: LearningScope, claim: uuid.UUID) -> int | None:
        """Keep an attempt's claim until the transaction ends; how often its scope has failed in a row. None where it
        has lost the claim."""
        failures: int | None = await self._sql.fetch_value("learning_hold", scope=scope.key, claim=claim)
        return failures

    async def end(self, scope: LearningScope, claim: uuid.UUID) -> None:
        """End an attempt that succeeded."""
        await self._sql.execute("learning_end", scope=scope.key, claim=claim)

    async def release(
        self,
        scope: LearningScope,
        claim: uuid.UUID,
        error: str | None = None,
        due_at: datetime | None = None,
        parked_at: datetime | None = None,
    ) -> None:
        """Give up a claim: after a failure (`error`), the scope is retried at `due_at`, or parked until `unpark`; else
        the next attempt may start at once."""
        await self._sql.execute(
            "learning_release", scope=scope.key, claim=claim, error=error, due_at=due_at, parked_at=parked_at
        )

    async def unpark(self) -> int:
        """Let parked scopes be tried again. Returns how many there were."""
        return len(await self._sql.fetch("learning_unpark"))

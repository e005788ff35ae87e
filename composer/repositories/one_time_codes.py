"""Codes that work once: in a link that signs its person in, and to connect two accounts of one person. Of a code only a
digest is stored."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct


class CodePurpose(StrEnum):
    """What a code is for."""

    LOGIN = "login"  # to sign in by a link; a person has one at most: a new one replaces it
    LINK = "link"  # shown to one account and entered with another one


@dataclass(frozen=True, slots=True)
class CodeOwner:
    """Whose a code is, and their name."""

    id: uuid.UUID
    name: str


class OneTimeCodes:
    """The codes of one tenant."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def store(
        self, purpose: CodePurpose, user: uuid.UUID, digest: bytes, expires_at: datetime, actor: uuid.UUID | None
    ) -> None:
        """Store a new code. That somebody may sign in by it is recorded in the audit log. `actor` None: whoever runs
        Nexus asked for it."""
        await self._sql.execute(
            "one_time_code_store",
            purpose=str(purpose),
            user_id=user,
            digest=digest,
            expires_at=expires_at,
            replaces=purpose is CodePurpose.LOGIN,
        )
        if purpose is CodePurpose.LOGIN:
            await self._audit.record(AuditAct.LOGIN_LINK, actor=actor, users=[user])

    async def find(self, purpose: CodePurpose, digest: bytes, now: datetime) -> CodeOwner | None:
        """Whose a code is, which stays valid; None when it is unknown, used, replaced or expired."""
        return await self._sql.fetch_one_as(
            CodeOwner, "one_time_code_find", purpose=str(purpose), digest=digest, now=now
        )

    async def redeem(self, purpose: CodePurpose, digest: bytes, now: datetime) -> uuid.UUID | None:
        """The user of a code, which is deleted; None when it is unknown, used, replaced or expired."""
        user: uuid.UUID | None = await self._sql.fetch_value(
            "one_time_code_redeem", purpose=str(purpose), digest=digest, now=now
        )
        return user

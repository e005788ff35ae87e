"""Codes that work once: in a link that signs its person in, to connect two accounts of one person, and by which an app
gets its first tokens. Of a code only a digest is stored."""

import json
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct


class CodePurpose(StrEnum):
    """What a code is for."""

    LOGIN = "login"  # to sign in by a link; a person has one at most: a new one replaces it
    LINK = "link"  # shown to one account and entered with another one
    APP = "app"  # led back to a connected app


@dataclass(frozen=True, slots=True)
class AppRequest:
    """What an app asked for when it got a code: the S256 of its secret, where it is led back to (`redirect_given`: it
    named that), and the address that its tokens are for."""

    challenge: str
    redirect_uri: str
    redirect_given: bool
    resource: str


@dataclass(frozen=True, slots=True)
class AppGrant:
    """What the code of an app is for: the app's key, what it may do, and what it asked for."""

    key_id: uuid.UUID
    permissions: tuple[str, ...]
    asked: AppRequest


@dataclass(frozen=True, slots=True)
class CodeOwner:
    """Whose a code is, and their name; `app` for an app's."""

    id: uuid.UUID
    name: str
    app: AppGrant | None


class OneTimeCodes:
    """The codes of one tenant."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def store(
        self,
        purpose: CodePurpose,
        user: uuid.UUID,
        digest: bytes,
        expires_at: datetime,
        *,
        actor: uuid.UUID | None = None,
        app: tuple[uuid.UUID, AppRequest] | None = None,
    ) -> None:
        """Store a new code; of an app with its key and what it asked for. That somebody may sign in by it is
        recorded in the audit log. `actor` None: whoever runs Nexus asked for it."""
        await self._sql.execute(
            "one_time_code_store",
            purpose=str(purpose),
            user_id=user,
            digest=digest,
            expires_at=expires_at,
            key_id=None if app is None else app[0],
            asked=None if app is None else json.dumps(asdict(app[1])),
            replaces=purpose is CodePurpose.LOGIN,
        )
        if purpose is CodePurpose.LOGIN:
            await self._audit.record(AuditAct.LOGIN_LINK, actor=actor, users=[user])

    async def find(
        self, purpose: CodePurpose, digest: bytes, now: datetime, *, client: str = "", redeem: bool = False
    ) -> CodeOwner | None:
        """Whose a code is, which stays valid unless it is to `redeem`; None when it is unknown, used, replaced or
        expired, or is no code of the app `client`."""
        query = "one_time_code_redeem" if redeem else "one_time_code_find"
        row = await self._sql.fetch_one(query, purpose=str(purpose), digest=digest, now=now, client=client)
        if row is None:
            return None
        app = None
        if row["key_id"] is not None:
            app = AppGrant(row["key_id"], tuple(row["permissions"]), AppRequest(**json.loads(row["asked"])))
        return CodeOwner(row["id"], row["name"], app)

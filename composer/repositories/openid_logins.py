"""OpenID logins: accounts at the provider that sign people in. Of whom an account is there, only a digest is stored."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct


@dataclass(frozen=True, slots=True)
class LoginEntry:
    """An OpenID login as it is listed. `name` is what the provider called the account when it was connected.
    `user_name` is set where the logins of everyone are listed."""

    id: uuid.UUID
    user_id: uuid.UUID
    issuer: str
    name: str
    created_at: datetime
    last_used_at: datetime | None
    user_name: str = ""


class OpenIdLogins:
    """The OpenID logins of one tenant. Each is connected to one person at most."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def connect(self, login: LoginEntry, digest: bytes) -> bool:
        """Connect a login to a person; False when it is another person's."""
        found = await self._sql.fetch_value(
            "openid_login_connect",
            id=login.id,
            user_id=login.user_id,
            digest=digest,
            issuer=login.issuer,
            name=login.name,
            now=login.created_at,
        )
        if found is None:
            return False
        details = {"login": str(login.id)}
        await self._audit.record(AuditAct.LOGIN_CONNECTED, actor=login.user_id, users=[login.user_id], details=details)
        return True

    async def use(self, digest: bytes, now: datetime) -> tuple[uuid.UUID, uuid.UUID] | None:
        """The id of a login that is used now, and its user; None when it is connected to nobody."""
        row = await self._sql.fetch_one("openid_login_used", digest=digest, now=now)
        return None if row is None else (row["id"], row["user_id"])

    async def of(self, users: Collection[uuid.UUID] | None) -> list[LoginEntry]:
        """The logins of these users, oldest first; or (None) those of everyone, by the names of their people, for
        whoever runs Nexus."""
        return await self._sql.fetch_as(
            LoginEntry, "openid_logins_list", user_ids=None if users is None else list(users)
        )

    async def disconnect(
        self, ids: Sequence[uuid.UUID] = (), actor: uuid.UUID | None = None, *, users: Sequence[uuid.UUID] = ()
    ) -> int:
        """Disconnect logins, or all of some users, who are erased; returns how many there were. Disconnect these before
        their web sessions end: a login that is being used holds this up until its session is stored."""
        rows = await self._sql.fetch("openid_logins_disconnect", ids=list(ids), user_ids=list(users))
        if rows:
            owners = users or sorted({row["user_id"] for row in rows})
            details = {"login": str(ids[0])} if len(ids) == 1 else {"logins": len(rows)}
            await self._audit.record(AuditAct.LOGIN_DISCONNECTED, actor=actor, users=owners, details=details)
        return len(rows)

"""Web sessions: the browsers in which people are signed in. Of a session's cookie only a digest is stored."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.ports.database import Statements
from composer.repositories.api_keys import Holder
from composer.repositories.audit import Audit, AuditAct


@dataclass(frozen=True, slots=True)
class StoredWebSession:
    """A web session as it is looked up by its cookie."""

    id: uuid.UUID
    digest: bytes
    holder: Holder
    expires_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """A web session as it is listed. `browser` is what the browser calls itself. `user_name` is set where the sessions
    of everyone are listed."""

    id: uuid.UUID
    user_id: uuid.UUID
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    browser: str
    user_name: str = ""


class WebSessions:
    """The web sessions of one tenant."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def insert(self, session: SessionEntry, digest: bytes, login: uuid.UUID | None = None) -> None:
        """Store a new web session: its person has signed in, by a link or by an OpenID login."""
        await self._sql.execute(
            "web_session_insert",
            id=session.id,
            user_id=session.user_id,
            digest=digest,
            now=session.created_at,
            expires_at=session.expires_at,
            browser=session.browser,
        )
        details = {"session": str(session.id)} | ({} if login is None else {"login": str(login)})
        await self._audit.record(AuditAct.SIGNED_IN, actor=session.user_id, users=[session.user_id], details=details)

    async def find(self, digest: bytes) -> StoredWebSession | None:
        """The web session of this digest, also an expired one."""
        row = await self._sql.fetch_one("web_session_find", digest=digest)
        if row is None:
            return None
        holder = Holder(row["user_id"], row["admin"], row["opted_out"])
        return StoredWebSession(row["id"], row["digest"], holder, row["expires_at"], row["last_used_at"])

    async def of(self, users: Collection[uuid.UUID] | None, now: datetime) -> list[SessionEntry]:
        """The web sessions of these users that have not expired, oldest first; or (None) those of everyone, by the
        names of their people, for whoever runs Nexus."""
        return await self._sql.fetch_as(
            SessionEntry, "web_sessions_list", user_ids=None if users is None else list(users), now=now
        )

    async def end(
        self, ids: Sequence[uuid.UUID] = (), actor: uuid.UUID | None = None, *, users: Sequence[uuid.UUID] = ()
    ) -> int:
        """End web sessions, or all of some users, who are erased; returns how many there were."""
        rows = await self._sql.fetch("web_sessions_end", ids=list(ids), user_ids=list(users))
        if rows:
            owners = users or sorted({row["user_id"] for row in rows})
            details = {"session": str(ids[0])} if len(ids) == 1 else {"sessions": len(rows)}
            await self._audit.record(AuditAct.SIGNED_OUT, actor=actor, users=owners, details=details)
        return len(rows)

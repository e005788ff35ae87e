"""Login links, which sign a person in once. Of a link's code only a digest is stored."""

import uuid
from collections.abc import Sequence
from datetime import datetime

from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct


class LoginLinks:
    """The login links of one tenant. A person has one at most: a new one replaces it."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def store(
        self, user: uuid.UUID, digest: bytes, now: datetime, expires_at: datetime, actor: uuid.UUID | None
    ) -> None:
        """Store a new link. `actor` None: whoever runs Nexus asked for it."""
        await self._sql.execute("login_link_store", user_id=user, digest=digest, now=now, expires_at=expires_at)
        await self._audit.record(AuditAct.LOGIN_LINK, actor=actor, users=[user])

    async def redeem(self, digest: bytes, now: datetime) -> uuid.UUID | None:
        """The user of a link, which is deleted; None when it is unknown, used, replaced or expired."""
        user: uuid.UUID | None = await self._sql.fetch_value("login_link_redeem", digest=digest, now=now)
        return user

    async def person(self, digest: bytes, now: datetime) -> str | None:
        """The name of the person whom a link would sign in; None when it is unknown, used, replaced or expired."""
        name: str | None = await self._sql.fetch_value("login_link_person", digest=digest, now=now)
        return name

    async def delete_of(self, users: Sequence[uuid.UUID]) -> None:
        """Delete the links of people who are erased, and the codes by which others would be linked to them. Delete
        these before their web sessions: a link that is being used holds this up until its session is stored."""
        await self._sql.execute("links_delete_of", user_ids=list(users))

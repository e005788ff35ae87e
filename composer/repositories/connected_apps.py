"""Apps that people have connected by OAuth, and what stands for them: tokens, of which digests are stored. The
codes by which an app gets its first ones: one_time_codes.py.

An app is a row of the keys (api_keys.py). Its tokens belong to one of its sign-ins each: an app has several where a
person uses it on several machines.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.ports.database import Statements
from composer.repositories.api_keys import Holder, holder_of
from composer.repositories.audit import Audit, AuditAct


@dataclass(frozen=True, slots=True)
class StoredAccess:
    """An access token as it is looked up. `key_id` is the app's, `resource` the address that the token is for."""

    key_id: uuid.UUID
    digest: bytes
    holder: Holder
    vendor: str
    permissions: tuple[str, ...]
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    resource: str


@dataclass(frozen=True, slots=True)
class StoredRefresh:
    """A sign-in of an app, as it is looked up by a refresh token of it: `digest` is that of the one valid now,
    `permissions` what its person has allowed."""

    id: uuid.UUID
    digest: bytes
    expires_at: datetime
    revoked_at: datetime | None
    permissions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Both tokens of a sign-in, as they are stored."""

    permissions: Sequence[str]
    access_digest: bytes
    access_expires_at: datetime
    family_digest: bytes
    refresh_digest: bytes
    refresh_expires_at: datetime


class ConnectedApps:
    """The connected apps of one tenant."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def insert_tokens(self, id: uuid.UUID, app: uuid.UUID, resource: str, tokens: TokenRow, *, kept: int) -> None:
        """Store the first tokens of a sign-in, and end the oldest sign-ins of the app beyond `kept`."""
        await self._sql.execute(
            "app_tokens_insert",
            id=id,
            key_id=app,
            resource=resource,
            permissions=list(tokens.permissions),
            access_digest=tokens.access_digest,
            access_expires_at=tokens.access_expires_at,
            family_digest=tokens.family_digest,
            refresh_digest=tokens.refresh_digest,
            refresh_expires_at=tokens.refresh_expires_at,
            kept=kept - 1,
        )

    async def find_access(self, digest: bytes) -> StoredAccess | None:
        """What an access token of this digest stands for, also one that has ended."""
        row = await self._sql.fetch_one("app_access_find", digest=digest)
        if row is None:
            return None
        return StoredAccess(
            row["id"],
            row["digest"],
            holder_of(row),
            row["vendor"],
            tuple(row["permissions"]),
            row["expires_at"],
            row["revoked_at"],
            row["last_used_at"],
            row["resource"],
        )

    async def find_refresh(self, family_digest: bytes, client: str) -> StoredRefresh | None:
        """The sign-in of an app that a refresh token belongs to, also one that was used before."""
        return await self._sql.fetch_one_as(
            StoredRefresh, "app_sign_in_find", family_digest=family_digest, access_digest=None, client=client
        )

    async def renew(self, used: bytes, tokens: TokenRow, client: str, now: datetime) -> bool:
        """Replace both tokens of a sign-in, by the digest of its refresh token that is valid now. False for any other
        refresh token. The app ends no earlier than they do."""
        found = await self._sql.fetch_value(
            "app_tokens_renew",
            permissions=list(tokens.permissions),
            access_digest=tokens.access_digest,
            access_expires_at=tokens.access_expires_at,
            family_digest=tokens.family_digest,
            refresh_digest=tokens.refresh_digest,
            refresh_expires_at=tokens.refresh_expires_at,
            used_digest=used,
            client=client,
            now=now,
        )
        return found is not None

    async def sign_in_of(self, access_digest: bytes, client: str) -> uuid.UUID | None:
        """The sign-in of an app that an access token belongs to."""
        found: uuid.UUID | None = await self._sql.fetch_value(
            "app_sign_in_find", family_digest=None, access_digest=access_digest, client=client
        )
        return found

    async def sign_out(self, id: uuid.UUID, client: str, why: str) -> uuid.UUID | None:
        """End a sign-in of an app, with all of its tokens; returns the app where that was its last one. `why` is a word
        for the audit log."""
        row = await self._sql.fetch_one("app_tokens_end", id=id, client=client)
        if row is None:
            return None
        details = {"key": str(row["key_id"]), "why": why}
        await self._audit.record(AuditAct.APP_SIGNED_OUT, users=[row["user_id"]], details=details)
        return row["key_id"] if row["last"] else None

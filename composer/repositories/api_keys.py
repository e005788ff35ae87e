"""The keys by which people and their AI tools reach a memory over the API. Of a key's text only a digest is stored.

An app that a person has connected is a key without a text: its tokens (connected_apps.py) stand for it.
"""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.ports.database import Row, Statements
from composer.repositories.audit import Audit, AuditAct


@dataclass(frozen=True, slots=True)
class Holder:
    """Whom a credential stands for, as they are now."""

    user_id: uuid.UUID
    admin: bool
    opted_out: bool


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is looked up by its text. `vendor` None: the person's own."""

    id: uuid.UUID
    digest: bytes
    holder: Holder
    vendor: str | None
    permissions: tuple[str, ...]
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key as it is listed: nothing that opens anything. `user_name` is set where the keys of everyone are listed.
    Of a connected app, `client` is its id, and `redirect_uri` where it is led back to; it has no `prefix`."""

    id: uuid.UUID
    user_id: uuid.UUID
    vendor: str | None
    name: str
    prefix: str
    permissions: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    user_name: str = ""
    client: str | None = None
    redirect_uri: str | None = None

    def ended(self, now: datetime) -> bool:
        """Whether the key was revoked or has expired."""
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now)


class ApiKeys:
    """The keys of one tenant."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def insert(self, key: KeyEntry, digest: bytes | None, created_by: uuid.UUID | None) -> None:
        """Store a new key, or an app that its person has connected (`digest` None). `created_by` None: whoever runs
        Nexus."""
        await self._sql.execute(
            "api_key_insert",
            id=key.id,
            user_id=key.user_id,
            vendor=key.vendor,
            name=key.name,
            prefix=key.prefix,
            digest=digest,
            permissions=list(key.permissions),
            now=key.created_at,
            created_by=created_by,
            expires_at=key.expires_at,
            client=key.client,
            redirect_uri=key.redirect_uri,
        )
        await self._audit.record(
            AuditAct.KEY_CREATED if key.client is None else AuditAct.APP_CONNECTED,
            actor=created_by,
            users=[key.user_id],
            details={"key": str(key.id), "vendor": key.vendor or "person", "permissions": len(key.permissions)},
        )

    async def find(self, digest: bytes) -> StoredKey | None:
        """The key of this digest, also one that was revoked or has expired."""
        row = await self._sql.fetch_one("api_key_find", digest=digest)
        if row is None:
            return None
        return StoredKey(
            row["id"],
            row["digest"],
            holder_of(row),
            row["vendor"],
            tuple(row["permissions"]),
            row["expires_at"],
            row["revoked_at"],
            row["last_used_at"],
        )

    async def owner(self, platform: str, workspace: str, external_id: str) -> Holder | None:
        """The person whose memory the keys of the settings open."""
        row = await self._sql.fetch_one(
            "identities_find", platform=platform, workspace=workspace, external_ids=[external_id]
        )
        return None if row is None else Holder(row["id"], row["admin"], row["opted_out"])

    async def of(self, users: Collection[uuid.UUID] | None) -> list[KeyEntry]:
        """The keys of these users, oldest first; or (None) those of everyone, by the names of their people, for whoever
        runs Nexus."""
        return await self._sql.fetch_as(KeyEntry, "api_keys_list", user_ids=None if users is None else list(users))

    async def is_valid(self, id: uuid.UUID, now: datetime) -> bool:
        """Whether a key or a web session has neither ended nor expired."""
        return bool(await self._sql.fetch_value("credential_is_valid", id=id, now=now))

    async def has_tools(self, now: datetime) -> bool:
        """Whether any tool has a key that is neither revoked nor expired."""
        return bool(await self._sql.fetch_value("api_keys_of_tools", now=now))

    async def revoke(self, ids: Sequence[uuid.UUID], now: datetime, actor: uuid.UUID | None = None) -> int:
        """Revoke keys; returns how many were not revoked before."""
        rows = await self._sql.fetch("api_keys_revoke", ids=list(ids), now=now)
        if rows:
            owners = sorted({row["user_id"] for row in rows})
            details = {"key": str(ids[0])} if len(ids) == 1 else {"keys": len(rows)}
            await self._audit.record(AuditAct.KEY_REVOKED, actor=actor, users=owners, details=details)
        return len(rows)

    async def used(self, id: uuid.UUID, now: datetime, before: datetime) -> None:
        """Record that a key or a web session is used now, unless that was recorded since `before`."""
        await self._sql.execute("credential_used", id=id, now=now, before=before)

    async def delete_of(self, users: Sequence[uuid.UUID]) -> int:
        """Delete all keys of people who are erased, and their unused codes; returns how many keys."""
        rows = await self._sql.fetch("api_keys_delete_of", user_ids=list(users))
        if rows:
            await self._audit.record(AuditAct.KEY_REVOKED, users=users, details={"keys": len(rows)})
        return len(rows)


def holder_of(row: Row) -> Holder:
    """Whom a credential stands for, by a row that says it."""
    return Holder(row["user_id"], row["admin"], row["opted_out"])

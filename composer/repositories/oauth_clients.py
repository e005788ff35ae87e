"""Apps that have registered themselves with the authorization server. They belong to the installation, not to a tenant.

Anybody may register one, so those that nobody connects are few and go after a day.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.repositories.database import Database

MAX_UNUSED: Final = 500  # registered apps that nobody has connected
UNUSED_LIFETIME: Final = timedelta(days=1)
USED_LIFETIME: Final = timedelta(days=90)  # since somebody connected it, or it last got tokens
NOTED_AFTER: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """An app that has registered itself. `auth_method` is how it shows who it is for tokens: none,
    client_secret_post or client_secret_basic; `secret_digest` is the SHA-256 of its secret, where it has one."""

    id: uuid.UUID
    name: str
    redirect_uris: tuple[str, ...]
    auth_method: str
    secret_digest: bytes | None


class OAuthClients:
    """Stored registrations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(self, client: RegisteredClient, now: datetime) -> None:
        """Store a registration. Of those that nobody has connected, the oldest make room."""
        async with self._database.installation() as sql:
            await sql.execute(
                "oauth_client_insert",
                id=client.id,
                name=client.name,
                redirect_uris=list(client.redirect_uris),
                auth_method=client.auth_method,
                secret_digest=client.secret_digest,
                now=now,
                kept=MAX_UNUSED - 1,
            )

    async def find(self, id: uuid.UUID, now: datetime) -> RegisteredClient | None:
        """A registration that has not expired."""
        async with self._database.installation() as sql:
            return await sql.fetch_one_as(
                RegisteredClient,
                "oauth_client_find",
                id=id,
                unused_before=now - UNUSED_LIFETIME,
                used_before=now - USED_LIFETIME,
            )

    async def used(self, id: uuid.UUID, now: datetime) -> None:
        """Record that somebody has connected an app now, or that it got tokens."""
        async with self._database.installation() as sql:
            await sql.execute("oauth_client_used", id=id, now=now, before=now - NOTED_AFTER)

    async def delete_unused(self, now: datetime) -> None:
        """Delete registrations that have expired."""
        async with self._database.installation() as sql:
            await sql.execute(
                "oauth_clients_delete_unused", unused_before=now - UNUSED_LIFETIME, used_before=now - USED_LIFETIME
            )

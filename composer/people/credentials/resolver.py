"""The one way from a credential to the person it stands for: for the API, for tools and for the pages in a browser.

Identity comes from the credential alone. What is unknown, malformed, expired or revoked, and what names a tenant that
does not exist, all cost the same statement and give the same answer: None.
"""

import hmac
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.ingest.tenants import TenantDirectory
from composer.model import derived_id, tenant_id
from composer.people.credentials import keys
from composer.people.credentials.keys import CredentialKind, Parsed
from composer.people.credentials.last_use import LastUse
from composer.people.credentials.principal import (
    EVERY_PERMISSION,
    TOOL_PERMISSIONS,
    GatewayKey,
    Principal,
    Source,
    effective,
)
from composer.ports.clock import Clock
from composer.repositories.api_keys import Holder, StoredKey
from composer.repositories.database import Database
from composer.settings import Settings, owner_place
from composer.tasks.shares import act_for


@dataclass(frozen=True, slots=True)
class _SettingsKey:
    """A key of the settings, whose text the operator chose. `vendor` None: the owner's own."""

    vendor: str | None
    digest: bytes


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose memory the keys of the settings open."""

    tenant_id: uuid.UUID
    tenant: str
    platform: str
    workspace: str
    external_id: str


class Resolver:
    """Turns credentials into principals. It keeps nothing of what it has seen."""

    def __init__(
        self, database: Database, directory: TenantDirectory, settings: Settings, clock: Clock, last_use: LastUse
    ) -> None:
        self._database = database
        self._clock = clock
        self._last_use = last_use
        self._owner = _owner_of(settings, directory)
        self._settings_keys = _settings_keys(settings)
        self._gateway_keys = _gateway_keys(settings)

    async def resolve(
        self, bearer: str | None, cookie: str | None = None, resource: str | None = None
    ) -> Principal | None:
        """Whom a request's credentials stand for: the text of its bearer token, or that of its cookie. `resource` is
        the address for which tokens of connected apps are taken: those for another one, and all where it is None, stand
        for nobody. None if neither stands for anybody. Raises Unavailable.

        From then on the task works for that person (composer.tasks.shares)."""
        found = await self._find(bearer, cookie, resource)
        if found is not None:
            act_for(found.tenant_id, found.user)
        return found

    async def _find(self, bearer: str | None, cookie: str | None, resource: str | None) -> Principal | None:
        found = None if cookie is None else await self._web_session(cookie)
        if found is not None or bearer is None:
            return found
        parsed = None if resource is None else keys.parse(bearer, CredentialKind.ACCESS_TOKEN)
        if parsed is None or resource is None:
            return await self._key(bearer)
        return await self._access_token(bearer, parsed, resource)

    def gateway_key(self, bearer: str) -> GatewayKey | None:
        """The key without an owner that a text is, if it is one. All are compared, however early one fits."""
        digest, found = keys.digest(bearer), None
        for stored, key in self._gateway_keys:
            if hmac.compare_digest(stored, digest):
                found = key
        if found is not None:
            act_for(found.tenant_id, found.id)  # it has a share of its own
        return found

    async def _web_session(self, text: str) -> Principal | None:
        parsed, digest = keys.parse(text, CredentialKind.WEB_SESSION), keys.digest(text)
        tenant = keys.tenant_of(parsed)
        async with self._database.statement(tenant) as tx:
            stored = await tx.web_sessions.find(digest)
        if parsed is None or stored is None or not hmac.compare_digest(stored.digest, digest):
            return None
        if stored.expires_at <= self._clock.now():
            return None
        permissions = effective(EVERY_PERMISSION, None, stored.holder)
        principal = Principal(
            tenant, stored.holder.user_id, None, permissions, Source.WEB_SESSION, stored.id, parsed.tenant
        )
        self._last_use.note(principal, stored.last_used_at)
        return principal

    async def _key(self, text: str) -> Principal | None:
        parsed, digest = keys.parse(text, CredentialKind.KEY), keys.digest(text)
        chosen, owner = self._matching(digest), self._owner
        if chosen is not None and owner is not None:
            async with self._database.transaction(owner.tenant_id, "read") as tx:
                holder = await tx.api_keys.owner(owner.platform, owner.workspace, owner.external_id)
                if holder is None or await tx.people.disabled_since(holder.user_id) is not None:
                    return None
            return _of_settings(owner, chosen, holder)
        tenant = keys.tenant_of(parsed)
        async with self._database.statement(tenant) as tx:
            stored = await tx.api_keys.find(digest)
        if parsed is None or stored is None or not hmac.compare_digest(stored.digest, digest):
            return None
        if _ended(stored, self._clock.now()):
            return None
        permissions = effective(stored.permissions, stored.vendor, stored.holder)
        principal = Principal(
            tenant, stored.holder.user_id, stored.vendor, permissions, Source.KEY, stored.id, parsed.tenant
        )
        self._last_use.note(principal, stored.last_used_at)
        return principal

    async def _access_token(self, text: str, parsed: Parsed, resource: str) -> Principal | None:
        digest, tenant = keys.digest(text), tenant_id(parsed.tenant)
        async with self._database.statement(tenant) as tx:
            stored = await tx.connected_apps.find_access(digest)
        if stored is None or not hmac.compare_digest(stored.digest, digest):
            return None
        if stored.revoked_at is not None or stored.expires_at <= self._clock.now() or stored.resource != resource:
            return None
        permissions = effective(stored.permissions, stored.vendor, stored.holder)
        principal = Principal(
            tenant, stored.holder.user_id, stored.vendor, permissions, Source.OAUTH, stored.key_id, parsed.tenant
        )
        self._last_use.note(principal, stored.last_used_at)
        return principal

    async def granted(self, text: str) -> frozenset[str]:
        """What an access token was given for, also what its person may not do now. Nothing for any other text."""
        parsed = keys.parse(text, CredentialKind.ACCESS_TOKEN)
        async with self._database.statement(keys.tenant_of(parsed)) as tx:
            stored = await tx.connected_apps.find_access(keys.digest(text))
        return frozenset() if stored is None else frozenset(stored.permissions)

    def _matching(self, digest: bytes) -> _SettingsKey | None:
        """The key of the settings with this digest. All are compared, however early one fits."""
        found = None
        for each in self._settings_keys:
            if hmac.compare_digest(each.digest, digest):
                found = each
        return found


def _of_settings(owner: _Owner, key: _SettingsKey, holder: Holder) -> Principal:
    granted = EVERY_PERMISSION if key.vendor is None else TOOL_PERMISSIONS
    permissions = effective(granted, key.vendor, holder)
    id = derived_id("settings key", str(owner.tenant_id), key.vendor or "")
    return Principal(owner.tenant_id, holder.user_id, key.vendor, permissions, Source.SETTINGS, id, owner.tenant)


def _ended(key: StoredKey, now: datetime) -> bool:
    return key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now)


def _owner_of(settings: Settings, directory: TenantDirectory) -> _Owner | None:
    if settings.owner is None:
        return None
    platform, name, external_id = owner_place(settings.owner)
    workspace = directory.workspace(platform, name)
    return _Owner(workspace.tenant_id, workspace.tenant, workspace.platform, workspace.name, external_id)


def _settings_keys(settings: Settings) -> Sequence[_SettingsKey]:
    texts = {vendor: secret.get_secret_value() for vendor, secret in settings.tool_keys.items()}
    own = [] if settings.owner_key is None else [_SettingsKey(None, keys.digest(settings.owner_key.get_secret_value()))]
    return [*own, *(_SettingsKey(vendor, keys.digest(text)) for vendor, text in texts.items())]


def _gateway_keys(settings: Settings) -> Sequence[tuple[bytes, GatewayKey]]:
    slug = settings.gateway_tenant
    if slug is None:
        return ()
    tenant = tenant_id(slug)
    return [
        (
            keys.digest(key.get_secret_value()),
            GatewayKey(tenant, slug, name, derived_id("gateway key", str(tenant), name)),
        )
        for name, key in settings.gateway_keys.items()
    ]

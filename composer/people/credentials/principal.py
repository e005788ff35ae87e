"""Whom a credential stands for, and what it lets them do. Pure.

A permission only ever takes away: what its person may not do now, no credential of theirs may.
"""

import re
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from composer.errors import AdminNeeded, BadInput, Refused
from composer.model import EVERY_VENDOR
from composer.repositories.api_keys import Holder
from composer.visibility import Grants


class KeyPermission(StrEnum):
    """What a key may be used for. Besides, there are two for each project: `project-<id>:read` and `:write`. What those
    of entries, teams and projects mean is judged in composer/visibility.py, which calls them grants."""

    ENTRIES_READ = Grants.READ_ENTRIES
    ENTRIES_WRITE = Grants.WRITE_ENTRIES
    TEAMS_READ = Grants.READ_TEAMS
    TEAMS_WRITE = Grants.WRITE_TEAMS
    PROJECTS_READ = Grants.READ_PROJECTS
    PROJECTS_WRITE = Grants.WRITE_PROJECTS
    CHAT = "chat"
    GATEWAY = "gateway"  # models, through the gateway
    MANAGE = "manage"  # keys, web sessions and settings of the person
    ADMIN = "admin"  # what admins of the tenant may, while the person is one


EVERY_PERMISSION: Final = frozenset(map(str, KeyPermission))
TOOL_PERMISSIONS: Final = frozenset(
    map(
        str,
        (
            KeyPermission.ENTRIES_READ,
            KeyPermission.ENTRIES_WRITE,
            KeyPermission.TEAMS_READ,
            KeyPermission.PROJECTS_READ,
            KeyPermission.GATEWAY,
        ),
    )
)
NEVER_OF_TOOLS: Final = frozenset(map(str, (KeyPermission.CHAT, KeyPermission.MANAGE, KeyPermission.ADMIN)))
_OF_PROJECT: Final = re.compile(
    r"project-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}):(read|write)", re.ASCII
)
_READ: Final = ":read"
_WRITE: Final = ":write"


def parse_permission(text: str) -> str:
    """A permission as it is stored. Raises BadInput with those there are."""
    if text in EVERY_PERMISSION or _OF_PROJECT.fullmatch(text):
        return text
    known = ", ".join(KeyPermission)
    raise BadInput(f"There is no such permission; there are {known}, and project-ID:read and project-ID:write.")


def project_of(permission: str) -> uuid.UUID | None:
    """The project that a permission is for, if it is for one."""
    found = _OF_PROJECT.fullmatch(permission)
    return None if found is None else uuid.UUID(found[1])


def includes(granted: Collection[str], permission: str) -> bool:
    """Whether all that a permission lets do is among what is granted: one for all projects has that for each."""
    if permission in granted:
        return True
    every = KeyPermission.PROJECTS_READ if permission.endswith(_READ) else KeyPermission.PROJECTS_WRITE
    return project_of(permission) is not None and every in granted


def effective(granted: Collection[str], vendor: str | None, holder: Holder) -> frozenset[str]:
    """What a credential may be used for now: what it was given, without what tools never get, what only admins have,
    and for the tool of somebody who has opted out, without writing: who may write to a team or a project still reads
    it. What is stored but unknown gives nothing."""
    found = {each for each in granted if each in EVERY_PERMISSION or _OF_PROJECT.fullmatch(each)}
    if not holder.admin:
        found.discard(KeyPermission.ADMIN)
    if vendor is not None:
        found -= NEVER_OF_TOOLS
        if holder.opted_out:
            found.discard(KeyPermission.ENTRIES_WRITE)
            found = {each.removesuffix(_WRITE) + _READ if each.endswith(_WRITE) else each for each in found}
    return frozenset(found)


class Source(StrEnum):
    """Where a credential comes from."""

    WEB_SESSION = "web session"
    SETTINGS = "settings"
    KEY = "key"
    OAUTH = "connected app"


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a credential stands for, at one request: never kept for the next one. `vendor` None: the person themselves.
    `permissions` is what the credential may be used for now. `id` is that of the key, the connected app or the
    web session, `tenant` the slug of the tenant."""

    tenant_id: uuid.UUID
    user: uuid.UUID
    vendor: str | None
    permissions: frozenset[str]
    source: Source
    id: uuid.UUID
    tenant: str

    def may(self, permission: str) -> bool:
        """Whether the credential has a permission."""
        return permission in self.permissions

    @property
    def reads_as(self) -> str:
        """For whom entries are read, by their lists of vendors: the tool, or EVERY_VENDOR for the person themselves."""
        return EVERY_VENDOR if self.vendor is None else self.vendor

    def require(self, permission: str) -> None:
        """Return if the credential has a permission. Raises Refused, and AdminNeeded for that of admins."""
        if self.may(permission):
            return
        if permission == KeyPermission.ADMIN:
            raise AdminNeeded("Only an admin of the workspace may do this, with a key that has the permission admin.")
        raise Refused(f"This needs a key with the permission {permission}.")


@dataclass(frozen=True, slots=True)
class GatewayKey:
    """A key of the settings that passes requests of a tenant through the gateway, and stands for nobody: it opens no
    memory. `name` is its own, `tenant` the slug of the tenant."""

    tenant_id: uuid.UUID
    tenant: str
    name: str
    id: uuid.UUID

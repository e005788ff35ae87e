"""The work of `nexus keys` and `nexus login`: what opens people's memories from outside, for whoever runs Nexus."""

import secrets
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.script.places import external
from composer.app import App
from composer.errors import BadInput, NotFound
from composer.model import CONSOLE, User, Workspace
from composer.people.credentials import issuing
from composer.people.credentials.issuing import KeyRequest, NewKey
from composer.people.credentials.keys import NO_TENANT, SECRET_BYTES
from composer.people.credentials.sign_in import login_url, make_login_link
from composer.people.credentials.stored import StoredCredential
from composer.repositories.database import Transaction
from composer.repositories.openid_logins import LoginEntry
from composer.repositories.web_sessions import SessionEntry
from composer.rights import project_names
from composer.settings import owner_place
from composer.visibility import Grants


@dataclass(frozen=True, slots=True)
class NamedPerson:
    """Whom a command is about, by their name or id in a workspace of a platform."""

    platform: str
    workspace: str
    name: str

    @classmethod
    def of(cls, app: App, platform: str, workspace: str, user: str) -> "NamedPerson":
        """The person that is named; without a name, that of NEXUS_OWNER. Raises BadInput."""
        if user:
            return cls(platform, workspace, external(user, platform))
        if app.settings.owner is None:
            raise BadInput("Name the person (nexus keys create --user alice, nexus login alice), or set NEXUS_OWNER.")
        return cls(*owner_place(app.settings.owner))


async def create(
    app: App, person: NamedPerson, request: KeyRequest, projects: Sequence[str], permissions: Sequence[str]
) -> NewKey:
    """Make a key. `projects` are such as apollo:read, which take the place of what it may read of projects by default.

    Raises NotFound for an unknown person or project, and as `create_key`.
    """
    at = app.directory.workspace(person.platform, person.workspace)
    async with app.database.transaction(at.tenant_id) as tx:
        user = await _user(tx, at, person)
        granted = [*permissions, *[await _project(tx, user.id, each) for each in projects]]
        if granted and not permissions:
            usual = issuing.wanted_permissions(KeyRequest(request.vendor), admin=user.admin)
            granted += [each for each in usual if each not in (Grants.READ_PROJECTS, Grants.WRITE_PROJECTS)]
        wanted = KeyRequest(request.vendor, request.name, granted or None, request.expires_at)
        secret = secrets.token_bytes(SECRET_BYTES)
        made = await issuing.create_key(tx, at.tenant, user, wanted, secret, app.clock.now(), by=None)
        return replace(made, entry=replace(made.entry, user_name=user.name))


async def credentials_by_tenant(app: App) -> AsyncIterator[tuple[str, Sequence[StoredCredential]]]:
    """The slug of each tenant that has any, with its keys, web sessions and logins."""
    for tenant, slug in await app.database.tenants():
        async with app.database.transaction(tenant, "read") as tx:
            found = await _all(tx, app)
        if found:
            yield slug, found


async def revoke(app: App, id: str) -> StoredCredential:
    """End the key, web session or login whose id begins so, of any tenant. Raises BadInput and NotFound."""
    beginning = id.lower().replace("-", "")
    tenants: dict[uuid.UUID, str] = dict(await app.database.tenants())
    holding = []
    for tenant in tenants:
        async with app.database.transaction(tenant, "read") as tx:
            entries = await _all(tx, app)
        if any(each.id.hex.startswith(beginning) for each in entries):
            holding.append(tenant)
    if len(holding) > 1:
        raise BadInput(f"Several begin with '{beginning}'; write more of the id.")
    async with app.database.transaction(holding[0] if holding else NO_TENANT) as tx:
        return await issuing.revoke(tx, id, None, app.clock.now(), by=None)


async def _all(tx: Transaction, app: App) -> Sequence[StoredCredential]:
    return (
        *await tx.api_keys.of(None),
        *await tx.web_sessions.of(None, app.clock.now()),
        *await tx.openid_logins.of(None),
    )


async def login(app: App, person: NamedPerson) -> str:
    """A link that signs a person in, once. Raises NotFound."""
    at = app.directory.workspace(person.platform, person.workspace)
    async with app.database.transaction(at.tenant_id) as tx:
        user = await _user(tx, at, person)
        secret = secrets.token_bytes(SECRET_BYTES)
        code = await make_login_link(tx, at.tenant, user.id, secret, app.clock.now(), by=None)
    return login_url(app.settings.web_address, code)


async def _user(tx: Transaction, at: Workspace, person: NamedPerson) -> User:
    found = await tx.people.find_user(at.platform, at.name, person.name)
    if found is None:
        where, how = at.platform, "Give their id on the platform; a user is stored with the first message."
        if at.platform == CONSOLE:
            where, how = "the terminal", "Create one with nexus chat --as NAME."
        sentence = f"There is no user '{person.name}' in the workspace {at.name} of {where}."
        raise NotFound(f"{sentence} {how}")
    return found


async def _project(tx: Transaction, user: uuid.UUID, text: str) -> str:
    """The permission that `apollo:read` names: of a project that the person is in."""
    name, _, act = text.rpartition(":")
    if not name or act not in ("read", "write"):
        raise BadInput(f"'{text}' is no permission for a project: write NAME:read or NAME:write.")
    projects = await tx.projects.find_for(user)
    found = [each for each in projects if project_names.names(name.lower(), each.slug, each.id)]
    if not found:
        raise NotFound(f"That user is in no project '{name}'.")
    if len(found) > 1:
        names = " or ".join(project_names.full_name(each.slug, each.id) for each in found)
        raise BadInput(f"That user is in {len(found)} projects called {name}; name one as {names}.")
    return Grants.of_project(found[0].id, act)


def as_json(entry: StoredCredential, tenant: str) -> dict[str, Any]:
    """A key, a web session or a login as JSON, without any secret."""
    last = entry.last_used_at
    common: dict[str, Any] = {"id": str(entry.id), "tenant": tenant, "user": str(entry.user_id)}
    common |= {"name": entry.user_name, "created_at": entry.created_at.isoformat()}
    common |= {"last_used_at": last and last.isoformat()}
    if isinstance(entry, SessionEntry):
        return {"kind": "web session", **common, "expires_at": entry.expires_at.isoformat(), "browser": entry.browser}
    if isinstance(entry, LoginEntry):
        return {"kind": "login", **common, "issuer": entry.issuer, "title": entry.name}
    kind = "key" if entry.client is None else "connected app"
    return {
        "kind": kind,
        **common,
        "title": entry.name,
        "vendor": entry.vendor,
        "prefix": entry.prefix,
        "permissions": list(entry.permissions),
        "expires_at": entry.expires_at and entry.expires_at.isoformat(),
        "revoked_at": entry.revoked_at and entry.revoked_at.isoformat(),
        "client": entry.client,
        "redirect_uri": entry.redirect_uri,
    }

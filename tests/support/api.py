"""Keys and web sessions for tests of the API."""

import secrets
from collections.abc import Sequence

from composer.model import User, user_id
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.people.credentials.sign_in import make_login_link, sign_in
from tests.support.harness import AppHarness


async def person(harness: AppHarness, name: str, workspace: str | None = None) -> User:
    """A person whom a workspace knows; one who is new has said nothing there."""
    here, now = harness.workspace(workspace), harness.clock.tick()
    agents = harness.app.directory.agents(here.tenant_id)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        known, _ = await tx.people.ensure_tenant(here.tenant, here.platform, here.name, agents, now, [name])
        if name not in known:
            await tx.people.ensure_users(here.platform, here.name, {name: (user_id(here, name), name)}, now)
        found = await tx.people.find_user(here.platform, here.name, name)
    assert found is not None
    return found


async def key_of(
    harness: AppHarness,
    name: str,
    vendor: str | None = None,
    permissions: Sequence[str] | None = None,
    workspace: str | None = None,
) -> str:
    """The text of a new key: of a person (`vendor` None) or of a tool of theirs."""
    found = await person(harness, name, workspace)
    here = harness.workspace(workspace)
    request = KeyRequest(vendor, "test", permissions)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        made = await create_key(
            tx, here.tenant, found, request, secrets.token_bytes(32), harness.clock.now(), by=found.id
        )
    return made.text


async def cookie_of(harness: AppHarness, name: str, workspace: str | None = None) -> str:
    """The text of the cookie of a new web session."""
    found, here, now = await person(harness, name, workspace), harness.workspace(workspace), harness.clock.now()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        link = await make_login_link(tx, here.tenant, found.id, secrets.token_bytes(32), now, by=found.id)
    _, cookie = await sign_in(harness.app.database, link, "browser", secrets.token_bytes(32), now)
    return cookie


def bearer(key: str) -> dict[str, str]:
    """The header that names who asks."""
    return {"Authorization": f"Bearer {key}"}

"""Keys and web sessions for tests of the API."""

import secrets
from collections.abc import Sequence

from composer.credentials.issuing import KeyRequest, create_key
from composer.credentials.sign_in import make_login_link, sign_in
from composer.model import User
from tests.support.harness import AppHarness


async def person(harness: AppHarness, name: str, workspace: str | None = None) -> User:
    """A person who has written in a workspace."""
    await harness.say(name, "hello", room="general", **({} if workspace is None else {"workspace": workspace}))
    here = harness.workspace(workspace) if workspace else harness.workspace()
    async with harness.app.database.transaction(here.tenant_id) as tx:
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
    here = harness.workspace(workspace) if workspace else harness.workspace()
    request = KeyRequest(vendor, "test", permissions)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        made = await create_key(
            tx, here.tenant, found, request, secrets.token_bytes(32), harness.clock.now(), by=found.id
        )
    return made.text


async def cookie_of(harness: AppHarness, name: str) -> str:
    """The text of the cookie of a new web session."""
    found, here, now = await person(harness, name), harness.workspace(), harness.clock.now()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        link = await make_login_link(tx, here.tenant, found.id, secrets.token_bytes(32), now, by=found.id)
    _, cookie = await sign_in(harness.app.database, link, "browser", secrets.token_bytes(32), now)
    return cookie


def bearer(key: str) -> dict[str, str]:
    """The header that names who asks."""
    return {"Authorization": f"Bearer {key}"}

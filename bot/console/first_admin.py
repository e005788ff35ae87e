"""The link by which the first admin of an organisation gets in, printed where the web port is opened by hand."""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from bot.console import render
from bot.console.sample import SAMPLE
from composer.app import App
from composer.errors import Unavailable
from composer.model import CONSOLE, Workspace, api_workspace, tenant_id
from composer.people.credentials.invitations import FirstAdmin, invitation_url, let_first_admin_in
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.sign_in import login_url
from composer.settings import DEFAULT_WORKSPACE

MAX_LINKS: Final = 3  # of one start: who serves many organisations makes admins with `nexus admin`
INVITES: Final = "Nobody administers {tenant} yet. Open this link to be its first admin (once, within a day):\n{link}"
SIGNS_IN: Final = (
    "No admin of {tenant} has ever signed in. Open this link to sign in as {name} (once, within five minutes):\n{link}"
)


async def show_first_links(app: App) -> None:
    """Print the link of each organisation of which no admin has ever signed in. The log holds none of them."""
    shown = 0
    for here in await organisations(app):
        if shown == MAX_LINKS:
            return
        agents, secret = app.directory.agents(here.tenant_id), secrets.token_bytes(SECRET_BYTES)
        first = await let_first_admin_in(app.database, here, agents, secret, app.clock.now())
        if first is not None:
            render.show(sentence(here.tenant, first, app.settings.web_address))
            shown += 1


async def try_first_links(app: App) -> None:
    """The same, but where the database is away nothing is printed: what is served goes on without."""
    with suppress(Unavailable):
        await show_first_links(app)


async def organisations(app: App) -> Sequence[Workspace]:
    """A workspace of each organisation of this installation: those that nexus.toml names, or else that are stored, or
    else the one that the terminal uses."""
    stored = [slug for _, slug in await app.database.tenants() if slug != SAMPLE]
    slugs = sorted(app.settings.tenants or stored)
    known = [api_workspace(tenant_id(slug), slug) for slug in slugs]
    return known or [app.directory.workspace(CONSOLE, DEFAULT_WORKSPACE)]


def sentence(tenant: str, first: FirstAdmin, address: str) -> str:
    """What is printed."""
    if first.name is None:
        return INVITES.format(tenant=tenant, link=invitation_url(address, first.code))
    return SIGNS_IN.format(tenant=tenant, name=first.name, link=login_url(address, first.code))

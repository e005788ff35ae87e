"""Names the workspaces that a command may have meant, where nothing is stored in the one that it was given."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from composer.app import App
from composer.errors import NotFound
from composer.model import CONSOLE


@asynccontextmanager
async def naming_workspaces(
    app: App, platform: str, workspace: str, *, takes_platform: bool = True
) -> AsyncIterator[None]:
    """Raise NotFound with what the command may have meant, if nothing is stored in this workspace but something is
    elsewhere: somebody left out `--workspace`, or `--platform` where the command takes one."""
    try:
        yield
    except NotFound as error:
        meant = await meant_workspaces(app, platform, workspace, takes_platform=takes_platform)
        if not meant:
            raise
        raise NotFound(f"{error} {meant}") from error


async def meant_workspaces(app: App, platform: str, workspace: str, *, takes_platform: bool = True) -> str:
    """Which workspaces there are, in a sentence with the options that name them; "" if something is stored in the one
    that was given, or in none."""
    stored = await _stored(app)
    others = sorted({of for of, name in stored if name == workspace})
    here = sorted(name for of, name in stored if of == platform)
    if workspace in here or not stored:
        return ""
    if others and not takes_platform:  # to make an admin, which on a chat platform is the platform's
        where = f"docs/{others[0]}.md"
        return f"{workspace} is a workspace of {others[0]}, whose admins {others[0]} names ({where})."
    if others:
        return f"{workspace} is a workspace of {' and '.join(others)}: add {' or '.join(map(_option, others))}."
    if here or not takes_platform:
        names = f"; name another one with -w: {', '.join(here)}" if here else ""
        return f"Nothing is stored in the workspace {workspace}{names}."
    if platform != CONSOLE:  # it was named, so it is meant
        return ""
    given = ", ".join(f"{_option(of)} -w {name}" for of, name in sorted(stored))
    return f"Nothing is stored in the workspace {workspace}; name another one: {given}."


def _option(platform: str) -> str:
    return f"--platform {platform}"


async def _stored(app: App) -> set[tuple[str, str]]:
    """(platform, name) of every workspace in which something is stored."""
    found = set[tuple[str, str]]()
    for tenant, _ in await app.database.tenants():
        async with app.database.transaction(tenant, "read") as tx:
            found |= set(await tx.people.workspaces())
    return found

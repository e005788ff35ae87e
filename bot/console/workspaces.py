"""Names the workspaces that a command may have meant, where nothing is stored in the one that it was given."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from composer.app import App
from composer.errors import NotFound


@asynccontextmanager
async def naming_workspaces(app: App, platform: str, workspace: str) -> AsyncIterator[None]:
    """Raise NotFound with the workspaces of the platform, if nothing is stored in this one but something is in others:
    somebody left out `--workspace`."""
    try:
        yield
    except NotFound as error:
        stored = sorted({name for of, name in await _workspaces(app) if of == platform})
        if workspace in stored or not stored:
            raise
        raise NotFound(
            f"{error} Nothing is stored in the workspace {workspace}; name another one with -w: {', '.join(stored)}."
        ) from error


async def _workspaces(app: App) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for tenant, _ in await app.database.tenants():
        async with app.database.transaction(tenant, snapshot=True) as tx:
            found += await tx.people.workspaces()
    return found

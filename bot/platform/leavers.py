"""Takes what opens their memory from outside away from those who have left a workspace."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from bot.platform.retry import Backoff
from composer.app import App
from composer.errors import NexusError
from composer.model import Workspace
from composer.people.credentials.leaving import end_access, holders

logger = structlog.get_logger()


class Leavers:
    """Looks up those of a workspace who have a key, a web session or a login, whenever some may have left unnoticed."""

    def __init__(
        self,
        app: App,
        workspace: Callable[[], Awaitable[Workspace]],
        has_left: Callable[[str], Awaitable[bool]],
        backoff: Backoff,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`has_left` says whether somebody, by their id on the platform, is surely not in the workspace any more;
        `prepare` is called before that is asked of anybody. Both raise Unavailable."""
        self._app, self._workspace, self._backoff = app, workspace, backoff
        self._has_left, self._prepare = has_left, prepare
        self._due = asyncio.Event()

    def due(self) -> None:
        """Somebody may have left unnoticed."""
        self._due.set()

    async def run(self) -> None:
        """Look them up whenever that is due, until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                await self._backoff.retry(self._look_up, "leavers.retrying", on=NexusError)
            except Exception:
                logger.exception("leavers.failed")

    async def _look_up(self) -> None:
        if self._prepare is not None:
            await self._prepare()
        store, workspace = self._app.database, await self._workspace()
        for person in await holders(store, workspace):
            if await self._has_left(person):
                ended = await end_access(store, workspace, person)
                logger.info("leavers.found", platform=workspace.platform, credentials=ended)

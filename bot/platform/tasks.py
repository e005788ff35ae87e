"""Background tasks that belong to one owner and end with it."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import structlog

logger = structlog.get_logger()
V = TypeVar("V")


class BackgroundTasks:
    """Keeps a reference to each running task, as asyncio itself does not, and logs what a task fails with."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(set(self._running))

    def start(self, work: Coroutine[Any, Any, V]) -> asyncio.Task[V]:
        """Run `work` in the background."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    async def join(self) -> None:
        """Wait until every task has ended."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def cancel(self) -> None:
        """Cancel every task and wait until they have ended."""
        for task in self:
            task.cancel()
        await self.join()

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("task.failed", exc_info=error)

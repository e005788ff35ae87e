"""The time that a Slack for tests goes by: a test may move it on, and what waits for it wakes then."""

import asyncio
import time
from collections.abc import Callable
from typing import Any


class Clock:
    """Real time, or that of `real` (Unix seconds), plus what a test added; sleepers wake by `advance` only."""

    def __init__(self, real: Callable[[], float] = time.time) -> None:
        self._real = real
        self._ahead = 0.0
        self._alarms: dict[asyncio.Future[None], float] = {}

    def now(self) -> float:
        return self._real() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds
        for alarm in sorted(self._alarms, key=self._alarms.__getitem__):
            if self._alarms[alarm] <= self.now() and not alarm.done():
                alarm.set_result(None)

    def alarm(self, seconds: float) -> asyncio.Future[None]:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._alarms[waiting] = self.now() + seconds
        waiting.add_done_callback(lambda done: self._alarms.pop(done, None))
        return waiting

    async def within(self, work: asyncio.Future[Any], seconds: float, real: float) -> bool:
        """Whether `work` is done before the clock was advanced by `seconds`, and before `real` seconds passed."""
        alarm = self.alarm(seconds)
        await asyncio.wait({work, alarm}, timeout=real, return_when=asyncio.FIRST_COMPLETED)
        alarm.cancel()
        return work.done()

"""The event loop of a process that serves many: whose tasks have run least lately run next.

asyncio runs what is ready in the order in which it came, all of it before it looks at its sockets again: one person's
forty requests let each step of everybody else's wait for forty of theirs. Here a step is of whom it is done for
(shares.py). Whoever's tenant ran least lately has the next one, within a tenant whoever ran least, within what
one person asked all in its order. What moves data, and what is of nobody, is short and comes first.
"""

import asyncio
import uuid
from collections import deque
from time import perf_counter
from typing import Final

from composer.tasks.shares import Party, party_in

ROUND_SECONDS: Final = 0.0005  # of steps, after which the sockets are looked at again
FORGET_SECONDS: Final = 1.0  # in which half of the time that somebody ran is forgotten


class FairLoop(asyncio.SelectorEventLoop):
    """An event loop in which everybody has a share."""

    def __init__(self) -> None:
        super().__init__()
        self._ready = _Ready(self)  # asyncio's own name: it appends to this, and takes from it what it runs

    def _add_callback(self, handle: asyncio.Handle) -> None:
        """Run what waits for a socket: its data may be of others than of whoever opened it."""
        if not handle.cancelled():
            self._ready.first.append(handle)


class _Use:
    """For how many seconds a tenant, or one of its lines, ran lately."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


class _PartySteps(_Use):
    """The steps of one party that are ready, in their order."""

    __slots__ = ("handles", "of_tenant")

    def __init__(self, of_tenant: _Use) -> None:
        super().__init__()
        self.of_tenant = of_tenant
        self.handles = deque[asyncio.Handle]()


class _Ready:
    """What is ready to run. asyncio asks `bool` as it begins a round, `len` once it has looked at its sockets, and then
    takes so many. Other threads only append."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.first = deque[asyncio.Handle]()
        self._arrived = deque[asyncio.Handle]()
        self.append = self._arrived.append
        self._tenants: dict[uuid.UUID | None, _Use] = {}
        self._lines: dict[Party, _PartySteps] = {}
        self._ready: dict[_PartySteps, None] = {}
        self._size = 0  # of all lines
        self._running: _PartySteps | None = None
        self._since = self._round_ends = self._halved_at = 0.0
        self._nothing = asyncio.Handle(int, (), loop)
        self._nothing.cancel()  # asyncio skips it

    def __bool__(self) -> bool:
        self._stop_clock(perf_counter())
        return bool(self._size or self._arrived or self.first)

    def __len__(self) -> int:
        """How many to take in this round."""
        arrived, lines = self._arrived, self._lines
        for _ in range(len(arrived)):
            handle = arrived.popleft()
            party = party_in(handle._context)  # type: ignore[attr-defined]
            line = lines.get(party)
            if line is None:
                line = lines[party] = _PartySteps(self._tenants.setdefault(party.tenant, _Use()))
            line.handles.append(handle)
            self._ready[line] = None
            self._size += 1
        self._round_ends = 0.0
        return len(self.first) + self._size

    def popleft(self) -> asyncio.Handle:
        """The next one; one that was cancelled where the round is over."""
        now = perf_counter()
        self._stop_clock(now)
        if self.first:
            return self.first.popleft()
        if not self._round_ends:
            self._round_ends = now + ROUND_SECONDS
        if now >= self._round_ends or not self._size:
            return self._nothing
        ready = self._ready
        line = next(iter(ready)) if len(ready) == 1 else min(ready, key=_used)
        handle = line.handles.popleft()
        self._size -= 1
        if not line.handles:
            del ready[line]
        self._running, self._since = line, now
        return handle

    def clear(self) -> None:
        """Forget all that was to run."""
        self.first.clear()
        self._arrived.clear()
        self._lines.clear()
        self._ready.clear()
        self._size = 0

    def _stop_clock(self, now: float) -> None:
        """Count what ran until now."""
        line = self._running
        if line is None:
            return
        self._running, took = None, now - self._since
        line.seconds += took
        line.of_tenant.seconds += took
        if now - self._halved_at > FORGET_SECONDS:
            self._halved_at = now
            self._forget()

    def _forget(self) -> None:
        for each in (*self._lines.values(), *self._tenants.values()):
            each.seconds /= 2
        self._lines = {
            party: line for party, line in self._lines.items() if line.handles or line.seconds > ROUND_SECONDS
        }
        self._tenants = {party.tenant: line.of_tenant for party, line in self._lines.items()}


def _used(line: _PartySteps) -> tuple[float, float]:
    return line.of_tenant.seconds, line.seconds

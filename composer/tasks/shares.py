"""Shares of what everybody uses at once: connections, locks that are waited for, places for answers, background work.

For whom work is done is known where somebody's identity is resolved (`act_for`, `acting_for`) and holds for all that
the task does from then on; nobody passes it on. Whoever holds fewest places has the next one that becomes free: first
by tenant, within a tenant by person, then by time. An idle place may be borrowed, but nobody gets the last ones: so one
person's worst minute, or one tenant's, is not another's outage.
"""

import asyncio
import itertools
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

from composer.errors import Unavailable

READS_AT_ONCE: Final = 32
BUSY: Final = "Too much is going on at once here; try again in a moment."


@dataclass(frozen=True, slots=True)
class Party:
    """For whom work is done: a person of a tenant, a tenant (`person` None), or somebody who is not known yet (`tenant`
    None). Nobody waits for `background` work."""

    tenant: uuid.UUID | None = None
    person: uuid.UUID | None = None
    background: bool = False


_NOBODY: Final = Party()
_current: ContextVar[Party] = ContextVar("party", default=_NOBODY)
_strangers: Final = itertools.count(1)


def current_party(tenant: uuid.UUID | None = None) -> Party:
    """For whom work is done now; in another `tenant` than theirs, for that tenant."""
    party = _current.get()
    return party if tenant in {None, party.tenant} else replace(party, tenant=tenant, person=None)


def act_for_stranger() -> None:
    """Work for somebody who is not known yet, and for nobody else who is not."""
    _current.set(Party(None, uuid.UUID(int=next(_strangers))))


def act_for(tenant: uuid.UUID, person: uuid.UUID | None) -> None:
    """Work for somebody from here to the end of this task, and in the tasks that it begins."""
    _current.set(Party(tenant, person))


@contextmanager
def acting_for(
    tenant: uuid.UUID | None, person: uuid.UUID | None = None, *, background: bool = False
) -> Iterator[None]:
    """Work for somebody within this block, and in the tasks that it begins."""
    token = _current.set(Party(tenant, person, background))
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True, slots=True, eq=False)
class _Wait:
    """Who waits for so many places."""

    place: asyncio.Future[None]
    amount: int


class Places:
    """Places of one kind, `most` at once: a person has at most half of them, or `of_person`, a tenant three quarters,
    and the background work of all tenants together half, unless nothing else is done there (`is_background`). Others
    wait; who is waited for does so for `seconds` at most.

    A task that holds a place needs no further one: what it asks for inside is given at once, and not counted.
    """

    def __init__(
        self, most: int, seconds: float | None = None, *, of_person: int | None = None, is_background: bool = False
    ) -> None:
        """`seconds` None: all wait as long as it takes."""
        self._most, self._seconds = most, seconds
        half = max(1, most // 2)
        self._of_person, self._of_tenant = of_person or half, max(1, most * 3 // 4)
        self._of_background = most if is_background else half
        self._free = most
        self._tenants = Counter[uuid.UUID | None]()
        self._people = Counter[tuple[uuid.UUID | None, uuid.UUID | None]]()
        self._background = 0
        self._holders = set[asyncio.Task[object] | None]()
        # Whoever had none for longest stands first, among tenants and among those of one.
        self._waiting: dict[uuid.UUID | None, dict[Party, deque[_Wait]]] = {}

    @property
    def taken(self) -> int:
        """How many are taken."""
        return self._most - self._free

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return sum(len(line) for lines in self._waiting.values() for line in lines.values())

    def has_one_for(self, party: Party, amount: int = 1) -> bool:
        """Whether somebody would get so many at once."""
        return (
            amount <= self._free
            and self._tenants[party.tenant] + amount <= self._of_tenant
            and (party.person is None or self._people[party.tenant, party.person] + amount <= self._of_person)
            and not (party.background and self._background + amount > self._of_background)
        )

    @asynccontextmanager
    async def take(self, tenant: uuid.UUID | None = None, amount: int = 1) -> AsyncIterator[None]:
        """Hold a place, or several, within this block, for whom work is done now (`current_party`). Raises Unavailable
        where it takes too long to get them. More than a person's half are never given."""
        task = asyncio.current_task()
        if task in self._holders:
            yield
            return
        party = current_party(tenant)
        await self._wait(party, amount)
        self._holders.add(task)
        try:
            yield
        finally:
            self._holders.discard(task)
            self._give_back(party, amount)

    async def _wait(self, party: Party, amount: int) -> None:
        if self.has_one_for(party, amount) and party not in self._waiting.get(party.tenant, ()):
            self._count(party, amount)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wait = _Wait(place, amount)
        self._waiting.setdefault(party.tenant, {}).setdefault(party, deque()).append(wait)
        try:
            async with asyncio.timeout(None if party.background else self._seconds):
                await place
        except BaseException as error:
            if not place.cancelled():  # it came together with what ends the wait
                self._give_back(party, amount)
            else:
                self._leave(party, wait)
            if isinstance(error, TimeoutError):
                raise Unavailable(BUSY) from error
            raise

    def _leave(self, party: Party, wait: "_Wait") -> None:
        lines = self._waiting.get(party.tenant, {})
        if wait in (line := lines.get(party, deque())):
            line.remove(wait)
            if not line:
                del lines[party]
            if not lines:
                del self._waiting[party.tenant]

    def _give_back(self, party: Party, amount: int) -> None:
        self._count(party, -amount)
        while (next_ := self._next()) is not None:
            lines = self._waiting.pop(next_.tenant)
            line = lines.pop(next_)
            wait = line.popleft()
            if not wait.place.cancelled():
                wait.place.set_result(None)
                self._count(next_, wait.amount)
            if line:
                lines[next_] = line  # behind the others
            if lines:
                self._waiting[next_.tenant] = lines

    def _next(self) -> Party | None:
        """Who is next; None where nobody waits who may have a place."""
        for tenant in sorted(self._waiting, key=lambda each: self._tenants[each]):
            lines = self._waiting[tenant]
            if found := [each for each, line in lines.items() if self.has_one_for(each, line[0].amount)]:
                return min(found, key=lambda each: self._people[each.tenant, each.person])
        return None

    def _count(self, party: Party, by: int) -> None:
        self._free -= by
        self._background += by if party.background else 0
        self._tenants[party.tenant] += by
        self._people[party.tenant, party.person] += by
        if not self._tenants[party.tenant]:
            del self._tenants[party.tenant]
        if not self._people[party.tenant, party.person]:
            del self._people[party.tenant, party.person]


# Answers whose memory is read at once, one of each person: two of theirs would take turns on the same processors, and
# each that runs lets everybody else wait.
memory_reads: Final = Places(READS_AT_ONCE, of_person=1)

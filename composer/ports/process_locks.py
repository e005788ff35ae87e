"""Locks that are released when their process ends, however it ends."""

import uuid
from collections.abc import Collection, Mapping
from typing import Final, Protocol

RANDOM_BITS: Final = 47  # of the number of a process
PROCESS_NUMBERS: Final = 0x4E58  # the 15 bits above these, by which processes are counted


class ProcessLocks(Protocol):
    """What this process works on: no other process has the same. Raises Unavailable when the database does not answer.

    All locks are lost when the connection that holds them breaks. Each time a lock is taken it gets another number, so
    that its holder can tell whether it was lost meanwhile.
    """

    @property
    def number(self) -> int:
        """This process's own number, locked for as long as it lives."""
        ...

    async def take(self, ids: Collection[uuid.UUID], *, reconnect: bool = True) -> Mapping[uuid.UUID, int]:
        """Lock those of these things that no other process has. Returns which of them are locked by this process now,
        each with the number of its lock. Without a connection nothing is, unless it may `reconnect`."""
        ...

    async def release(self, ids: Collection[uuid.UUID]) -> None:
        """Unlock things; those that are not locked are ignored."""
        ...

    def held(self, id: uuid.UUID) -> int | None:
        """The number of a lock; None where this process does not hold it."""
        ...

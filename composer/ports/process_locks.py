"""Locks that are released when their process ends, however it ends."""

import uuid
from typing import Protocol


class ProcessLocks(Protocol):
    """Which process answers in which conversation. Raises Unavailable when the database does not answer."""

    @property
    def number(self) -> int:
        """This process's own number, locked for as long as it lives."""
        ...

    async def take(self, conversation: uuid.UUID) -> bool:
        """Lock a conversation; False while another process has it."""
        ...

    async def release(self, conversation: uuid.UUID) -> None:
        """Unlock a conversation."""
        ...

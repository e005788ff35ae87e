"""Messages whose files are being read, so that what a dead process was interrupted in can be taken over."""

import uuid
from collections.abc import Sequence
from typing import Final

from composer.ports.database import Statements

MAX_READING_TRIES: Final = 3  # processes that begin one message: a file that ends the process must not end it for ever


class UnreadFiles:
    """The messages whose files are being read, or transcribed."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def begin(self, messages: Sequence[tuple[uuid.UUID, str]]) -> None:
        """Note that the files of messages are to be read, each message given with its adapter."""
        ids, adapters = [id for id, _ in messages], [adapter for _, adapter in messages]
        await self._sql.execute("unread_files_insert", ids=ids, adapters=adapters)

    async def end(self, message: uuid.UUID) -> None:
        """The reading of a message has ended, with texts or without."""
        await self._sql.execute("unread_files_delete", id=message)

    async def unowned(self, served: Sequence[str]) -> list[tuple[uuid.UUID, str]]:
        """The messages whose files no process reads, where this one delivers (`TurnWorker.served`), each with its
        adapter."""
        rows = await self._sql.fetch("unread_files_unowned", served=list(served))
        return [(row["message_id"], row["adapter"]) for row in rows]

    async def begin_again(self, message: uuid.UUID) -> bool:
        """Count one more process that begins a message; False where MAX_READING_TRIES have begun it."""
        found = await self._sql.fetch_one("unread_files_begin_again", id=message, max_tries=MAX_READING_TRIES)
        return found is not None

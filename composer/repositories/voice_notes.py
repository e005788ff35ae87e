"""Voice notes that are being transcribed, so that what a dead process was interrupted in can be taken over."""

import uuid
from collections.abc import Sequence
from typing import Final

from composer.ports.database import Statements

MAX_TRANSCRIPTION_TRIES: Final = (
    3  # processes that begin one message: a note that ends the process must not end it for ever
)


class StoredVoiceNotes:
    """The messages whose voice notes are being transcribed."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def begin(self, messages: Sequence[tuple[uuid.UUID, str]], process: int) -> None:
        """Note that a process transcribes messages, each given with its adapter."""
        ids, adapters = [id for id, _ in messages], [adapter for _, adapter in messages]
        await self._sql.execute("voice_notes_insert", ids=ids, adapters=adapters, process=process)

    async def end(self, message: uuid.UUID) -> None:
        """The transcription of a message has ended, with its text or without."""
        await self._sql.execute("voice_note_delete", id=message)

    async def is_question(self, message: uuid.UUID) -> bool:
        """Whether an agent answers a message, or has answered it."""
        return bool(await self._sql.fetch_value("voice_note_is_question", id=message))

    async def adopt(self, process: int, served: Sequence[str]) -> tuple[list[tuple[uuid.UUID, str]], list[uuid.UUID]]:
        """Take over what processes that have ended were interrupted in, where this one serves (`TurnWorker.served`):
        the messages with their adapters, and those that are given up, since MAX_TRIES processes have begun them."""
        whose = {"process": process, "served": list(served), "max_tries": MAX_TRANSCRIPTION_TRIES}
        given_up = await self._sql.fetch("voice_notes_give_up", **whose)
        taken = await self._sql.fetch("voice_notes_adopt", **whose)
        return [(row["message_id"], row["adapter"]) for row in taken], [row["message_id"] for row in given_up]

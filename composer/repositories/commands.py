"""Received commands: each runs once per event, and is answered even after a crash."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from composer.ports.database import Row, Statements


class CommandState(Enum):
    """What became of a command, as one of the processes that may run it sees it."""

    WAITS = auto()  # it may be run
    DONE = auto()  # its changes are made
    DISCARDED = auto()  # its text was deleted
    TAKEN = auto()  # another process has taken it over


@dataclass(frozen=True, slots=True)
class UnansweredCommand:
    """A command whose process ended before it was answered. `call` is JSON text; `done`: its changes are made."""

    id: uuid.UUID
    at: datetime
    call: str
    done: bool


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A command that is not answered yet, and who gave it (None: nobody who is known). `call` is JSON text."""

    id: uuid.UUID
    adapter: str
    user_id: uuid.UUID | None
    at: datetime
    call: str


class Commands:
    """Received commands. Their text is deleted once they are answered.

    A transaction that changes the records of several commands takes `lock` before any of them, so no two of these wait
    for each other's; one that changes a single record needs no lock.
    """

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def begin(self, id: uuid.UUID, adapter: str, workspace: str, process: int, call: str, now: datetime) -> bool:
        """Record a command; False when it was recorded before, by this or another event. `call` is JSON text."""
        row = await self._sql.fetch_one(
            "command_begin", id=id, adapter=adapter, workspace=workspace, process=process, call=call, now=now
        )
        return row is not None

    async def mark_done(self, id: uuid.UUID) -> None:
        """Record that a command's changes are made. Call it in the transaction that makes them."""
        await self._sql.execute("command_done", id=id)

    async def mark_answered(self, id: uuid.UUID, process: int) -> None:
        """Record that a command was answered, and delete its text, unless another process has taken it over."""
        await self._sql.execute("command_answered", id=id, process=process)

    async def unanswered(self, except_id: uuid.UUID | None) -> list[StoredCall]:
        """All unanswered commands, but one (None: all)."""
        rows = await self._sql.fetch("commands_unanswered", except_id=except_id)
        return [StoredCall(row["id"], row["adapter"], row["user_id"], row["received_at"], row["call"]) for row in rows]

    async def state(self, id: uuid.UUID, process: int) -> CommandState:
        """What became of a command that this process runs; WAITS also for one that is not recorded."""
        return _state(await self._sql.fetch_one("command_state", id=id, process=process))

    async def hold(self, id: uuid.UUID, process: int) -> CommandState:
        """The same, and let nobody change it until this transaction ends."""
        return _state(await self._sql.fetch_one("command_hold", id=id, process=process))

    async def lock(self) -> None:
        """Let no other transaction discard or adopt commands until this one ends. Take it before `hold`: two that
        discard each other would wait for each other."""
        await self._sql.execute("commands_lock")

    async def discard_calls(self, ids: Sequence[uuid.UUID]) -> None:
        """Delete the text of unanswered commands: what they have not changed yet they change no more. Needs `lock`."""
        await self._sql.execute("commands_discard_calls", ids=list(ids))

    async def adopt(self, adapter: str, workspace: str, process: int) -> list[UnansweredCommand]:
        """Take over unanswered commands of processes that have ended, oldest first. Needs `lock`."""
        rows = await self._sql.fetch("commands_adopt", process=process, adapter=adapter, workspace=workspace)
        found = [UnansweredCommand(row["id"], row["received_at"], row["call"], row["done"]) for row in rows]
        return sorted(found, key=lambda each: (each.at, each.id))


def _state(row: Row | None) -> CommandState:
    if row is None:
        return CommandState.WAITS
    if row["taken"]:
        return CommandState.TAKEN
    if row["discarded"]:
        return CommandState.DISCARDED
    return CommandState.DONE if row["done"] else CommandState.WAITS

"""Received commands: each runs once per event, and is answered even after a crash."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from composer.ports.database import Row, Statements


class CommandState(Enum):
    """What became of a command, as one of the processes that may run it sees it."""

    WAITS = auto()  # it may be run
    DONE = auto()  # its changes are made
    TAKEN = auto()  # another process has taken it over


@dataclass(frozen=True, slots=True)
class UnansweredCommand:
    """A command whose process ended before it was answered. `call` is JSON text; `done`: its changes are made."""

    id: uuid.UUID
    at: datetime
    call: str
    done: bool


class Commands:
    """Received commands. What is stored of a call is deleted once it is answered."""

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
        """Record that a command was answered, and delete what is stored of it, unless another process has taken it
        over."""
        await self._sql.execute("command_answered", id=id, process=process)

    async def hold(self, id: uuid.UUID, process: int) -> CommandState:
        """What became of a command that this process runs; WAITS also for one that is not recorded. Nobody else changes
        it until this transaction ends."""
        return _state(await self._sql.fetch_one("command_hold", id=id, process=process))

    async def adopt(self, adapter: str, workspace: str, process: int) -> list[UnansweredCommand]:
        """Take over unanswered commands of processes that have ended, oldest first."""
        rows = await self._sql.fetch("commands_adopt", process=process, adapter=adapter, workspace=workspace)
        found = [UnansweredCommand(row["id"], row["received_at"], row["call"], row["done"]) for row in rows]
        return sorted(found, key=lambda each: (each.at, each.id))


def _state(row: Row | None) -> CommandState:
    if row is None:
        return CommandState.WAITS
    if row["taken"]:
        return CommandState.TAKEN
    return CommandState.DONE if row["done"] else CommandState.WAITS

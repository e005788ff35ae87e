"""A command is run once, however often its event comes and whatever is cut off in between.

What was called is noted before it is run, that it was done in the transaction that does it, and that it was answered
when it was. What a process left unanswered is taken up by the next one: run, if nothing was changed yet.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import structlog
from pydantic import TypeAdapter

from bot.commands.command import command_id
from composer.app import App
from composer.errors import NexusError
from composer.model import Incoming
from composer.workspace import Workspace

logger = structlog.get_logger()

LATE: Final = timedelta(minutes=15)  # after that nobody waits for a command any more
_INCOMING: Final = TypeAdapter(Incoming)


@dataclass(frozen=True, slots=True)
class InterruptedCommand:
    """A command that was begun by a process that is no more. `address` is what its door needs to answer it."""

    incoming: Incoming
    address: Mapping[str, str]
    done: bool
    late: bool


async def begin(app: App, workspace: Workspace, incoming: Incoming, address: Mapping[str, str]) -> bool:
    """Whether a command is to be run for this event: it is not for one that was delivered before, also to an earlier
    process. Raises Unavailable."""
    call = json.dumps({"incoming": _INCOMING.dump_python(incoming, mode="json"), "address": dict(address)})
    id = command_id(workspace, incoming)
    async with app.database.transaction(workspace.tenant_id) as tx:
        return await tx.commands.begin(id, workspace.platform, workspace.name, app.locks.number, call, app.clock.now())


async def answered(app: App, workspace: Workspace, incoming: Incoming) -> None:
    """Whoever gave a command has its answer, or never will. That this can't be noted is no reason to tell them more."""
    try:
        async with app.database.transaction(workspace.tenant_id) as tx:
            await tx.commands.mark_answered(command_id(workspace, incoming))
    except NexusError as error:
        logger.warning("command.answer_not_noted", error=str(error))


async def cut_off(app: App, workspace: Workspace) -> list[InterruptedCommand]:
    """The commands of a workspace that were cut off, which are this process's to answer now. Raises Unavailable.

    That a room was open when they were called opens none now: it may have been closed since.
    """
    async with app.database.transaction(workspace.tenant_id) as tx:
        adopted = await tx.commands.adopt(workspace.platform, workspace.name, app.locks.number)
    now = app.clock.now()
    return [
        InterruptedCommand(
            _as_of_now(_INCOMING.validate_python(call["incoming"])), call["address"], each.done, now - each.at > LATE
        )
        for each, call in ((each, json.loads(each.call)) for each in adopted)
    ]


def _as_of_now(incoming: Incoming) -> Incoming:
    return replace(incoming, place=replace(incoming.place, private=incoming.place.private or None))


async def again(cut: InterruptedCommand, run: Callable[[Incoming], Awaitable[str]]) -> str:
    """The answer to a command that was cut off: it is run by `run`, unless it was done, or is too old to be meant."""
    if cut.done:
        return (
            f"`{cut.incoming.text}` was done, but I was restarted before I could answer. If you need the answer, give "
            "the command again."
        )
    if cut.late:
        return f"`{cut.incoming.text}` was cut off when I was restarted, and was not done: give it again."
    return await run(cut.incoming)

"""Run each command once, even when its event is repeated or the process dies.

A call is recorded before it runs, as done in the transaction that changes something, and as answered once its answer
was sent. The next process adopts what a dead one left unanswered, and runs it if nothing was changed yet.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import structlog
from pydantic import TypeAdapter

from bot.commands.command import CommandAnswer, command_id
from composer.app import App
from composer.errors import NexusError
from composer.ingest.validation import validate_command
from composer.model import Incoming
from composer.workspace import Workspace

logger = structlog.get_logger()

EXPIRES_AFTER: Final = timedelta(minutes=15)  # after which an interrupted command is not run any more
_INCOMING: Final = TypeAdapter(Incoming)


@dataclass(frozen=True, slots=True)
class InterruptedCommand:
    """A command that a dead process had begun. `address` is what its adapter needs to answer it; `done` whether it
    changed something; `expired` whether it is too old to run."""

    incoming: Incoming
    address: Mapping[str, str]
    done: bool
    expired: bool


async def begin_command(app: App, workspace: Workspace, incoming: Incoming, address: Mapping[str, str]) -> bool:
    """Record a command before it runs. False when its event was delivered before, also to an earlier process: then it
    must not run. Raises BadInput for a text that can't be stored, and Unavailable."""
    incoming = validate_command(incoming, app.directory.agents(workspace.tenant_id))
    call = json.dumps({"incoming": _INCOMING.dump_python(incoming, mode="json"), "address": dict(address)})
    id = command_id(workspace, incoming)
    async with app.database.transaction(workspace.tenant_id) as tx:
        return await tx.commands.begin(id, workspace.platform, workspace.name, app.locks.number, call, app.clock.now())


async def mark_answered(app: App, workspace: Workspace, incoming: Incoming) -> None:
    """Record that a command was answered, or never will be. A failure is only logged: its sender has the answer."""
    try:
        async with app.database.transaction(workspace.tenant_id) as tx:
            await tx.commands.mark_answered(command_id(workspace, incoming))
    except NexusError as error:
        logger.warning("command.mark_answered_failed", error=str(error))


async def adopt_interrupted(app: App, workspace: Workspace) -> list[InterruptedCommand]:
    """Take over the commands of a workspace that dead processes left unanswered. Raises Unavailable.

    A room that was public when a command was given may be private by now, so an adopted command never opens one.
    """
    async with app.database.transaction(workspace.tenant_id) as tx:
        adopted = await tx.commands.adopt(workspace.platform, workspace.name, app.locks.number)
    now = app.clock.now()
    interrupted = []
    for each in adopted:
        call = json.loads(each.call)
        incoming = _without_opening(_INCOMING.validate_python(call["incoming"]))
        expired = now - each.at > EXPIRES_AFTER
        interrupted.append(InterruptedCommand(incoming, call["address"], each.done, expired))
    return interrupted


def _without_opening(incoming: Incoming) -> Incoming:
    place = incoming.place
    kept = replace(place, private=place.private or None, room_private=place.room_private or None)
    return replace(incoming, place=kept)


async def answer_interrupted(
    command: InterruptedCommand, run: Callable[[Incoming], Awaitable[CommandAnswer]]
) -> CommandAnswer:
    """The answer to an interrupted command: `run` runs it, unless it was done or has expired."""
    if command.done:
        return CommandAnswer(
            f"`{command.incoming.text}` was done, but I was restarted before I could answer. If you need the answer, "
            "give the command again."
        )
    if command.expired:
        return CommandAnswer(f"`{command.incoming.text}` was interrupted by my restart and not done: give it again.")
    return await run(command.incoming)

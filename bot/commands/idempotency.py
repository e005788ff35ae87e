"""Run each command once, even when its event is repeated or the process dies.

A call is recorded before it runs, as done in the transaction that changes something, and as answered once its answer
was sent. What a dead process left unanswered, the next one answers: what erases is finished, since a person was
promised that; of everything else, its sender is told that it was not done.
"""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import structlog
from pydantic import TypeAdapter

from bot.commands.command import PREFIX, CommandAnswer, named_request
from bot.commands.table import parse
from composer.app import App
from composer.errors import NexusError
from composer.ingest.validation import validate_command
from composer.model import Incoming, Workspace
from composer.repositories.requests import RequestState

logger = structlog.get_logger()

_INCOMING: Final = TypeAdapter(Incoming)


@dataclass(frozen=True, slots=True)
class InterruptedCommand:
    """A command that a dead process had begun. `address` is what its adapter needs to answer it; `done` whether it
    changed something. The text of one that erases nothing is its name alone."""

    incoming: Incoming
    address: Mapping[str, str]
    done: bool


async def begin_command(app: App, workspace: Workspace, incoming: Incoming, address: Mapping[str, str]) -> bool:
    """Record a command before it runs: whole if an interruption must not keep it from being done, else without what its
    sender wrote. False when its event was delivered before, also to an earlier process: then it must not run. Raises
    BadInput for a text that can't be stored, and Unavailable."""
    incoming = validate_command(incoming, app.directory.agents(workspace.tenant_id))
    request = named_request(workspace, incoming)
    name, finishes = _read(incoming.text)
    place = replace(incoming.place, title=None)
    kept = incoming if finishes else replace(incoming, text=name, place=place, attachments=(), user_name="")
    given = _INCOMING.dump_python(kept, mode="json")
    call = json.dumps({"at": _at(workspace), "incoming": given, "address": dict(address)})
    async with app.database.transaction(workspace.tenant_id) as tx:
        return (await tx.requests.begin(request, app.clock.now(), process=app.locks.number, call=call)).is_new


def _read(text: str) -> tuple[str, bool]:
    """The name of a command, and whether it is finished after an interruption."""
    try:
        command, _ = parse(text)
    except NexusError:  # its sender is told when it runs
        return PREFIX, False
    return f"{PREFIX} {command.name}", command.finishes


async def mark_answered(app: App, workspace: Workspace, incoming: Incoming) -> None:
    """Record that a command was answered, or never will be. A failure is only logged: its sender has the answer."""
    try:
        async with app.database.transaction(workspace.tenant_id) as tx:
            await tx.requests.mark_answered(named_request(workspace, incoming), app.locks.number)
    except NexusError as error:
        logger.warning("command.mark_answered_failed", error=str(error))


async def take_over_interrupted(app: App, workspace: Workspace) -> list[InterruptedCommand]:
    """Take over the commands of a workspace that dead processes left unanswered, each once: keep them until they are
    answered. Raises Unavailable.

    A room that was public when a command was given may be private by now, so a command that was taken over never opens
    one; that it was private is said as of then.
    """
    async with app.database.transaction(workspace.tenant_id) as tx:
        found = await tx.requests.take_over(_at(workspace), app.locks.number)
    interrupted = []
    for each in found:
        call = json.loads(each.call)
        incoming = _as_stated_then(_INCOMING.validate_python(call["incoming"]))
        interrupted.append(InterruptedCommand(incoming, call["address"], each.done))
    return interrupted


def _at(workspace: Workspace) -> str:
    """The name of a workspace, among those of all platforms."""
    return f"{workspace.platform} {workspace.name}"


def _as_stated_then(incoming: Incoming) -> Incoming:
    place = incoming.place
    kept = replace(place, private=place.private or None, room_private=place.room_private or None)
    return replace(incoming, place=replace(kept, stated_at=place.stated_at or incoming.at))


async def answer_interrupted(
    app: App,
    workspace: Workspace,
    command: InterruptedCommand,
    finish: Callable[[Incoming], Awaitable[CommandAnswer]],
) -> CommandAnswer:
    """The answer to an interrupted command: `finish` runs one that erases, unless it was done. Raises Unavailable; then
    it may be done by now, and is not run when this is called again."""
    name, finishes = _read(command.incoming.text)
    async with app.database.transaction(workspace.tenant_id) as tx:
        state = await tx.requests.hold(named_request(workspace, command.incoming), app.locks.number)
    if command.done or state is RequestState.DONE:
        return CommandAnswer(
            f"I did `{name}`, but was restarted before I could answer. If you need the answer, give the command again."
        )
    if finishes:
        return await finish(command.incoming)
    return CommandAnswer(f"I was restarted before I could do `{name}`, so nothing was done. Give the command again.")


class InterruptedCommands:
    """The commands that dead processes had begun in one workspace, until this process has answered each.

    `finish` runs one, and `answer` shows an answer to the sender of a command.
    """

    def __init__(
        self,
        app: App,
        finish: Callable[[Incoming], Awaitable[CommandAnswer]],
        answer: Callable[[InterruptedCommand, CommandAnswer], Awaitable[None]],
    ) -> None:
        self._app = app
        self._finish = finish
        self._answer = answer
        self._taken = deque[InterruptedCommand]()  # over from dead processes: nobody else finishes these

    async def finish(self, workspace: Workspace) -> None:
        """Take over what there is, and answer it, the oldest first. Raises Unavailable: call it again then, and it goes
        on."""
        self._taken += await take_over_interrupted(self._app, workspace)
        while self._taken:
            command = self._taken[0]
            found = await answer_interrupted(self._app, workspace, command, self._finish)
            self._taken.popleft()
            await self._answer(command, found)
            await mark_answered(self._app, workspace, command.incoming)

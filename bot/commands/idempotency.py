"""Run each command once, even when its event is repeated or the process dies.

A call is recorded before it runs, as done in the transaction that changes something, and as answered once its answer
was sent. The next process adopts what a dead one left unanswered, and runs it if nothing was changed yet.
"""

import json
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from pydantic import TypeAdapter

from bot.commands.command import CommandAnswer, command_id
from composer.app import App
from composer.errors import NexusError
from composer.ingest.changes import is_deleted
from composer.ingest.validation import validate_command
from composer.model import ConversationKind, Incoming
from composer.repositories.commands import CommandState, StoredCall
from composer.repositories.database import Transaction
from composer.text.repetition import matches
from composer.workspace import Workspace, private_thread, room_id

logger = structlog.get_logger()

FORGOTTEN: Final = "A command of yours was interrupted by my restart, and forgotten before I could finish it."
EXPIRES_AFTER: Final = timedelta(minutes=15)  # after which an interrupted command is not run any more
_INCOMING: Final = TypeAdapter(Incoming)


@dataclass(frozen=True, slots=True)
class InterruptedCommand:
    """A command that a dead process had begun. `address` is what its adapter needs to answer it; `done` whether it
    changed something; after `expires_at` it is not run any more."""

    incoming: Incoming
    address: Mapping[str, str]
    done: bool
    expires_at: datetime


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
            await tx.commands.mark_answered(command_id(workspace, incoming), app.locks.number)
    except NexusError as error:
        logger.warning("command.mark_answered_failed", error=str(error))


async def adopt_interrupted(app: App, workspace: Workspace) -> list[InterruptedCommand]:
    """Take over the commands of a workspace that dead processes left unanswered, each once: keep them until they are
    answered. Raises Unavailable.

    A room that was public when a command was given may be private by now, so an adopted command never opens one; that
    it was private is said as of then.
    """
    async with app.database.transaction(workspace.tenant_id) as tx:
        await tx.commands.lock()
        adopted = await tx.commands.adopt(workspace.platform, workspace.name, app.locks.number)
    interrupted = []
    for each in adopted:
        call = json.loads(each.call)
        incoming = _as_stated_then(_INCOMING.validate_python(call["incoming"]))
        interrupted.append(InterruptedCommand(incoming, call["address"], each.done, each.at + EXPIRES_AFTER))
    return interrupted


def _as_stated_then(incoming: Incoming) -> Incoming:
    place = incoming.place
    kept = replace(place, private=place.private or None, room_private=place.room_private or None)
    return replace(incoming, place=replace(kept, stated_at=place.stated_at or incoming.at))


async def answer_interrupted(
    app: App,
    workspace: Workspace,
    command: InterruptedCommand,
    as_now: Callable[[Incoming], Awaitable[Incoming | None]],
    run: Callable[[Incoming], Awaitable[CommandAnswer]],
) -> CommandAnswer:
    """The answer to an interrupted command: `run` runs it, unless it was done, has expired or was forgotten.

    `as_now` is the command with what its platform says of its sender now, who may have lost rights since they gave it;
    None where they are not in its room any more, or the platform does not say. Raises Unavailable; then it may be done
    by now, and is not run when this is called again.
    """
    runs = not command.done and app.clock.now() <= command.expires_at
    incoming = await as_now(command.incoming) if runs else None
    if incoming is not None and incoming.trust_stated and incoming.trust_stated_at is None:
        incoming = replace(incoming, trust_stated_at=app.clock.now())  # and not when the command was given
    state = await _state(app, workspace, command.incoming)
    if state is CommandState.DISCARDED:
        return CommandAnswer(FORGOTTEN)
    if state is CommandState.DONE:
        return CommandAnswer(
            f"`{command.incoming.text}` was done, but I was restarted before I could answer. If you need the answer, "
            "give the command again."
        )
    if incoming is None:
        return CommandAnswer(f"`{command.incoming.text}` was interrupted by my restart and not done: give it again.")
    return await run(incoming)


class InterruptedCommands:
    """The commands that dead processes had begun in one workspace, until this process has answered each.

    `as_now` and `run` are those of `answer_interrupted`; `answer` shows an answer to the sender of a command.
    """

    def __init__(
        self,
        app: App,
        as_now: Callable[[Incoming], Awaitable[Incoming | None]],
        run: Callable[[Incoming], Awaitable[CommandAnswer]],
        answer: Callable[[InterruptedCommand, CommandAnswer], Awaitable[None]],
    ) -> None:
        self._app = app
        self._as_now = as_now
        self._run = run
        self._answer = answer
        self._taken = deque[InterruptedCommand]()  # over from dead processes: nobody else finishes these

    async def finish(self, workspace: Workspace) -> None:
        """Take over what there is, finish and answer it, the oldest first. Raises Unavailable: call it again then, and
        it goes on."""
        self._taken += await adopt_interrupted(self._app, workspace)
        while self._taken:
            command = self._taken[0]
            found = await answer_interrupted(self._app, workspace, command, self._as_now, self._run)
            self._taken.popleft()
            await self._answer(command, found)
            await mark_answered(self._app, workspace, command.incoming)


async def _state(app: App, workspace: Workspace, incoming: Incoming) -> CommandState:
    """What became of a command that was adopted: others were finished before it. It counts as discarded, too, if the
    message that gave it was deleted on its platform."""
    agents = app.directory.agents(workspace.tenant_id)
    async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
        state = await tx.commands.state(command_id(workspace, incoming), app.locks.number)
        return CommandState.DISCARDED if await is_deleted(tx, workspace, agents, incoming) else state


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Which unanswered commands are forgotten: those of these `users`, given in these `rooms`, or in a `thread` of
    them, or in the very place of a command (`beside`), that have these `words`, from `since` until `until`. What is
    None or empty fits every one."""

    users: Collection[uuid.UUID] | None = None
    rooms: frozenset[uuid.UUID] | None = None
    thread: str | None = None
    beside: Incoming | None = None
    words: str = ""
    since: datetime | None = None
    until: datetime | None = None


async def find_forgotten(
    tx: Transaction, workspace: Workspace, own: Incoming | None, forgotten: Forgotten
) -> Sequence[uuid.UUID]:
    """The unanswered commands that are forgotten with what `own`, itself a command of this workspace, forgets (None: a
    platform says it): run later, they would store it after all."""
    stored = await tx.commands.unanswered(None if own is None else command_id(workspace, own))
    return [each.id for each in stored if _is_forgotten(workspace, each, forgotten)]


async def discard_in_room(app: App, workspace: Workspace, room: str, thread: str | None) -> None:
    """Let no command run any more that was given in a room, or in one thread of it, that its platform has deleted. What
    one is changing just now is changed when this returns. Raises Unavailable."""
    wanted = Forgotten(rooms=frozenset({room_id(workspace, room)}), thread=thread)
    async with app.database.transaction(workspace.tenant_id) as tx:
        await tx.commands.lock()
        await tx.commands.discard_calls(await find_forgotten(tx, workspace, None, wanted))


def _is_forgotten(workspace: Workspace, stored: StoredCall, wanted: Forgotten) -> bool:
    given = _INCOMING.validate_python(json.loads(stored.call)["incoming"])
    if wanted.users is not None and stored.user_id not in wanted.users:
        return False
    if (wanted.since and stored.at < wanted.since) or (wanted.until and stored.at > wanted.until):
        return False
    if wanted.rooms is not None and wanted.rooms.isdisjoint(_rooms(workspace, stored.adapter, given)):
        return False
    if wanted.thread is not None and given.place.thread != wanted.thread:
        return False
    if wanted.beside is not None and _where(workspace.platform, wanted.beside) != _where(stored.adapter, given):
        return False
    return not wanted.words or matches(given.text, wanted.words)


def _rooms(workspace: Workspace, platform: str, given: Incoming) -> frozenset[uuid.UUID]:
    """The rooms that a command may have been given in: of a thread, its room or, where it is private, its own."""
    if given.place.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return frozenset()
    at = replace(workspace, platform=platform, name=given.workspace)
    return frozenset(room_id(at, place.name) for place in (given.place, private_thread(given.place)))


def _where(platform: str, given: Incoming) -> tuple[str | None, ...]:
    place = given.place
    user = given.user if place.kind in (ConversationKind.DM, ConversationKind.SESSION) else None
    return platform, given.workspace, place.kind, place.name, place.thread, user

"""`nexus play`: a script of events through the same pipeline as everything else, with the script's clock."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from bot.commands.table import run_command
from bot.console import jobs as schedule
from bot.console.script import (
    PLATFORM,
    CommandEvent,
    DeleteEvent,
    EditEvent,
    JobEvent,
    Line,
    MessageEvent,
    MoveEvent,
    SettleEvent,
    external,
    incoming,
    mentions,
)
from composer.app import App
from composer.errors import BadInput, NexusError, NotFound, Unavailable
from composer.ingest.rooms import record_membership
from composer.ingest.validation import storable_text
from composer.memory import forget as forgetting
from composer.model import Turn
from composer.turn.respond import Reply
from composer.workspace import Workspace, user_id

Emit = Callable[[dict[str, Any]], None]


class ScriptClock:
    """The script's time: it stands until an event moves it forward."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start

    def now(self) -> datetime:
        """The time of the latest event; before the first, this machine's."""
        return self._now or datetime.now(UTC)

    def move(self, at: datetime | None) -> None:
        """Go on to `at`; never back."""
        if at is not None and (self._now is None or at > self._now):
            self._now = at


class ScriptDelivery:
    """Hands answers to whoever reads the events of the play (composer.turn.worker.Door)."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def on_start(self, turn: Turn) -> None:
        """Nothing: nobody watches a play."""

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Nothing: an event carries the whole answer."""

    async def deliver(self, reply: Reply) -> None:
        """One event for the whole answer."""
        if reply.failed:
            self._emit({"event": "error", "to": reply.in_reply_to, "turn": str(reply.key), "text": reply.text})
            return
        prompt = None if reply.prompt is None else json.loads(reply.prompt)
        self._emit(
            {
                "event": "reply",
                "to": reply.in_reply_to,
                "turn": str(reply.key),
                "text": reply.text,
                "prompt": prompt,
                "timings_ms": dict(reply.timings_ms),
            }
        )

    async def abandon(self, turn: Turn) -> None:
        """Emit nothing: the question was erased."""

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """An answer must wait."""
        self._emit({"event": "error", "to": None, "turn": str(turn.id), "text": sentence})


class Player:
    """Plays events one after another; each is over, with its answers, before the next begins.

    What was said is indexed before a question is answered, so a script has one outcome.
    """

    def __init__(self, app: App, clock: ScriptClock, emit: Emit) -> None:
        self._app = app
        self._clock = clock
        self._emit = emit
        self._workspace_of: dict[str, str] = {}
        app.turns.serve(PLATFORM, ScriptDelivery(emit))

    async def play(self, lines: Sequence[Line]) -> int:
        """Play a script; returns how many events failed.

        What an earlier play left unanswered is answered first, in the script's time: it belongs before what follows.
        """
        self._clock.move(next((line.event.at for line in lines if line.event.at is not None), None))
        await self._app.turns.adopt()
        await self._app.turns.settle()
        failed = 0
        for line in lines:
            self._clock.move(line.event.at)
            try:
                await self._event(line)
            except NexusError as error:
                failed += 1
                at = f"{line.file}:{line.number}: " if isinstance(error, BadInput) else ""
                self._emit({"event": "error", "to": getattr(line.event, "id", None), "text": f"{at}{error}"})
        for workspace in sorted({line.event.workspace for line in lines}):
            await self._app.indexer.catch_up(self._workspace(workspace).tenant_id)
        return failed

    def _workspace(self, name: str) -> Workspace:
        return self._app.directory.workspace(PLATFORM, name)

    async def _event(self, line: Line) -> None:
        event = line.event
        match event:
            case MessageEvent():
                await self._message(event, line)
            case CommandEvent():
                await self._command(event, line)
            case EditEvent() | DeleteEvent():
                await self._change(event)
            case MoveEvent():
                workspace = self._workspace(event.workspace)
                agents, now = self._app.directory.agents(workspace.tenant_id), self._clock.now()
                joined = event.type == "join"
                async with self._app.database.transaction(workspace.tenant_id) as tx:
                    user, name = external(event.user), event.user
                    await record_membership(
                        tx, workspace, agents, external(event.room), user, name, joined=joined, now=now
                    )
            case SettleEvent():
                await self._settle(self._workspace(event.workspace))
            case JobEvent():
                await self._job(event)

    async def _message(self, event: MessageEvent, line: Line) -> None:
        workspace = self._workspace(event.workspace)
        id = event.id or f"{line.file}:{line.number}"
        self._workspace_of[id] = event.workspace
        said = incoming(
            workspace,
            event.place(),
            event.user,
            event.text,
            event.at or self._clock.now(),
            id=id,
            name=event.name,
            attachments=event.attachments,
        )
        if event.room is None or "@" in event.text:
            await self._app.indexer.catch_up(workspace.tenant_id)
        await self._app.receive(workspace, [said])
        await self._app.turns.settle()

    async def _command(self, event: CommandEvent, line: Line) -> None:
        workspace = self._workspace(event.workspace)
        id = event.id or f"{line.file}:{line.number}"
        said = incoming(workspace, event.place(), event.user, event.text, event.at or self._clock.now(), id=id)
        await self._app.indexer.catch_up(workspace.tenant_id)
        answer = await run_command(self._app, workspace, said)
        self._emit({"event": "command", "text": answer.text})

    async def _change(self, event: EditEvent | DeleteEvent) -> None:
        workspace = self._workspace(self._workspace_of.get(event.id, event.workspace))
        await change_message(self._app, workspace, event.id, event.text if isinstance(event, EditEvent) else None)

    async def _job(self, event: JobEvent) -> None:
        """Run a job as of the script's time, for every tenant, again if it was run at that time already."""
        await self._settle(self._workspace(event.workspace))
        outcome = await schedule.run(self._app, event.name, self._clock.now())
        if outcome.state != "done":
            raise Unavailable(f"The job {event.name} has {outcome.state}: {outcome.said or 'see the log'}")

    async def _settle(self, workspace: Workspace) -> None:
        await self._app.turns.settle()
        await self._app.indexer.catch_up(workspace.tenant_id)


async def change_message(app: App, workspace: Workspace, id: str, text: str | None) -> None:
    """A message was edited (`text`) or deleted (None) on its platform: every layer follows.

    Raises NotFound when no message has this id, BadInput when several rooms have one.
    """
    now = app.clock.now()
    async with app.database.transaction(workspace.tenant_id) as tx:
        found = await tx.messages.find_by_external_id(workspace.platform, workspace.name, id)
        if not found:
            raise NotFound(f"There is no message '{id}' here.")
        if len(found) > 1:
            raise BadInput(f"{len(found)} messages have the id '{id}' in different conversations; ids must differ")
        if text is None:
            receipt = await forgetting.forget(tx, [found[0][0]], [], now)
        else:
            named = mentions(text)
            known = await tx.people.find_user_ids(workspace.platform, workspace.name, named)
            people = [known.get(name) or user_id(workspace, name) for name in named]
            stored = await tx.messages.get(found[0][0])
            assert stored is not None
            receipt = await forgetting.edit(tx, stored[0], storable_text(text), people, stored[0].attachments, now)
    await app.forgotten(workspace, receipt)

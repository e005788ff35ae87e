"""`nexus play`: plays a script of events through the same pipeline as every adapter, with the script's clock."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from bot.commands.table import run_command
from bot.console import schedule
from bot.script.changes import apply_memberships, change_message
from bot.script.events import CommandEvent, DeleteEvent, EditEvent, JobEvent, Line, MessageEvent, MoveEvent, SettleEvent
from bot.script.places import incoming
from composer.app import App
from composer.errors import BadInput, NexusError, Unavailable
from composer.model import CONSOLE, ConversationKind, Turn, Workspace
from composer.repositories.turns import Answer

Emit = Callable[[dict[str, Any]], None]


class ScriptClock:
    """A clock that moves only when an event moves it forward."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start

    def now(self) -> datetime:
        """The time of the latest event; before the first one, the machine's time."""
        return self._now or datetime.now(UTC)

    def move(self, at: datetime | None) -> None:
        """Move forward to `at`; never back."""
        if at is not None and (self._now is None or at > self._now):
            self._now = at


class ScriptDelivery:
    """Emits each answer as one event."""

    def __init__(self, app: App, emit: Emit) -> None:
        self._app = app
        self._emit = emit

    def on_wait(self, turn: Turn) -> None:
        """Do nothing."""

    def on_start(self, turn: Turn) -> None:
        """Do nothing: nobody watches a script."""

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Do nothing: one event carries the whole answer."""

    async def deliver(self, answer: Answer) -> None:
        """Emit the whole answer, or the error."""
        if not answer.in_reply_to:
            place = await self._place(answer.turn)
            self._emit({"event": "post", **place, "turn": str(answer.turn.id), "text": answer.text})
            return
        if answer.failed:
            self._emit({"event": "error", "to": answer.in_reply_to, "turn": str(answer.turn.id), "text": answer.text})
            return
        prompt = None if answer.prompt is None else json.loads(answer.prompt)
        self._emit(
            {
                "event": "reply",
                "to": answer.in_reply_to,
                "turn": str(answer.turn.id),
                "text": answer.text,
                "prompt": prompt,
                "timings_ms": dict(answer.timings_ms),
            }
        )

    async def _place(self, turn: Turn) -> dict[str, Any]:
        """Where something is posted that answers nothing, as scripts name it."""
        async with self._app.database.transaction(turn.tenant_id, "read") as tx:
            to = await tx.deliveries.destination(turn.id)
        if to is None:
            return {}
        kind = "room" if to.kind is ConversationKind.THREAD else str(to.kind)
        thread = {} if to.thread is None else {"thread": to.thread}
        return {kind: to.name, **thread} | ({} if to.user is None else {"user": to.user})

    async def abandon(self, turn: Turn) -> None:
        """Emit nothing: the question was erased."""

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """Emit that an answer is delayed, and why."""
        self._emit({"event": "error", "to": None, "turn": str(turn.id), "text": sentence})


class Player:
    """Plays events one after another. Each one is finished, with its answers, before the next begins.

    Messages are indexed before a question is answered, so that a script always has the same result.
    """

    def __init__(self, app: App, clock: ScriptClock, emit: Emit) -> None:
        self._app = app
        self._clock = clock
        self._emit = emit
        self._workspace_of: dict[str, str] = {}
        app.turns.serve(CONSOLE, ScriptDelivery(app, emit), here_only=True)

    async def play(self, lines: Sequence[Line]) -> int:
        """Play a script; returns how many events failed.

        Questions that an earlier play left unanswered are answered first, in the script's time.
        """
        self._clock.move(next((line.event.at for line in lines if line.event.at is not None), None))
        await self._app.take_over()
        await self._app.turns.settle()
        failed = 0
        for line in lines:
            failed += not await self.play_event(line)
        for workspace in sorted({line.event.workspace for line in lines}):
            await self._app.indexer.catch_up(self._workspace(workspace).tenant_id)
        return failed

    async def play_event(self, line: Line) -> bool:
        """Play one event, with its answers; returns whether it was done. If not, the error is emitted."""
        self._clock.move(line.event.at)
        try:
            if await self._app.due_posts.post_due(self._workspace(line.event.workspace).tenant_id):
                await self._app.turns.settle()
            await self._event(line)
        except NexusError as error:
            at = f"{line.file}:{line.number}: " if isinstance(error, BadInput) else ""
            self._emit({"event": "error", "to": getattr(line.event, "id", None), "text": f"{at}{error}"})
            return False
        return True

    def _workspace(self, name: str) -> Workspace:
        return self._app.directory.workspace(CONSOLE, name)

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
                await apply_memberships(self._app, [(event, self._clock.now())])
            case SettleEvent():
                await self._settle(self._workspace(event.workspace))
            case JobEvent():
                await self._job(event)

    async def _message(self, event: MessageEvent, line: Line) -> None:
        workspace = self._workspace(event.workspace)
        id = event.id or f"{line.file}:{line.number}"
        self._workspace_of[id] = event.workspace
        message = incoming(
            workspace,
            event.place(),
            event.user,
            event.text,
            event.at or self._clock.now(),
            id=id,
            name=event.name,
            attachments=event.files(),
            trust=event.trust,
        )
        if event.room is None or "@" in event.text:
            await self._app.indexer.catch_up(workspace.tenant_id)
        await self._app.receive(workspace, [message])
        await self._app.turns.settle()

    async def _command(self, event: CommandEvent, line: Line) -> None:
        workspace = self._workspace(event.workspace)
        id = event.id or f"{line.file}:{line.number}"
        message = incoming(
            workspace, event.place(), event.user, event.text, event.at or self._clock.now(), id=id, trust=event.trust
        )
        await self._app.indexer.catch_up(workspace.tenant_id)
        answer = await run_command(self._app, workspace, message, recorded=False)
        file = {} if answer.file is None else {"file": {"name": answer.file.name, "text": answer.file.text}}
        self._emit({"event": "command", "text": answer.text, **file})

    async def _change(self, event: EditEvent | DeleteEvent) -> None:
        workspace = self._workspace(self._workspace_of.get(event.id, event.workspace))
        await change_message(self._app, workspace, event.id, event.text if isinstance(event, EditEvent) else None)

    async def _job(self, event: JobEvent) -> None:
        """Run a job as of the script's time, for every tenant, also if it ran as of that time already."""
        await self._settle(self._workspace(event.workspace))
        outcome = await schedule.run(self._app, event.name, self._clock.now())
        if outcome.state != "done":
            raise Unavailable(f"The job {event.name} is {outcome.state}: {outcome.message or 'see the log'}")

    async def _settle(self, workspace: Workspace) -> None:
        await self._app.turns.settle()
        await self._app.indexer.catch_up(workspace.tenant_id)

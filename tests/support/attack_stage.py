"""Plays attack cases: events go through the player of `nexus play`, to a model that records what it is sent."""

import json
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from bot.commands.suggestions import suggest
from bot.commands.table import parse
from bot.console.conversations import question
from bot.console.operations import set_admin
from bot.console.play import Player, ScriptClock
from bot.importers.history import import_history, read_history
from bot.script.events import Line
from bot.script.places import incoming, place_of
from composer.app import App, open_app
from composer.errors import NexusError
from composer.model import CONSOLE, Agent, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.settings import AgentSettings, RetrievalSettings, Settings, TenantSettings
from tests.support.attack_cases import (
    CANARY,
    Case,
    Chatter,
    Compose,
    Import,
    MakeAdmin,
    Step,
    Suggest,
    own_event,
    script_event,
)
from tests.support.embedder import HashedWords
from tests.support.harness import START

STEP: Final = timedelta(minutes=1)  # between two events that name no time
RETRIEVAL: Final = RetrievalSettings(top_k=50, recall_tokens=20_000)  # all that may be read is recalled
YES: Final = "--yes"
_TOLD = re.compile(r"[^\n]{0,80}zq[a-z]{3,}")
_WRONG_CALL: Final = ("There is no command", " is missing. Usage:", "; it has --")


class Leaked(AssertionError):
    """An attack succeeded."""


class Broken(Exception):
    """A case that did not run as written, so that it shows nothing."""


class EchoingModel:
    """A model that repeats every canary that it is sent, with the words before it; it records all that it is sent.

    No model can give away more. `answer`, where set, is said once instead, by one of the agents `speakers`.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.answer: str | None = None
        self.speakers: frozenset[uuid.UUID] = frozenset()

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        shown = [str(message.content) for message in messages]
        self.seen.extend(shown)
        told = {CANARY.findall(words.casefold())[-1]: words for text in shown for words in _words_told(text)}
        text = "\n".join(told.values()) or "I don't know."
        if self.answer is not None and agent.id in self.speakers:
            text, self.answer = self.answer, None
        yield Chunk(text=text)
        yield Chunk(usage=Usage())


def _words_told(text: str) -> list[str]:
    return [found for found in _TOLD.findall(text) if CANARY.search(found.casefold())]


class CaseClock:
    """The app's clock, which is that of the case that is being played."""

    def __init__(self) -> None:
        self.case = ScriptClock(START)

    def now(self) -> datetime:
        return self.case.now()


@dataclass
class Outcome:
    """What an event brought about: what the model was sent, and what people were told."""

    prompts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)  # the prompts of replies, as JSON, and files
    refused: list[str] = field(default_factory=list)

    @property
    def whole(self) -> str:
        return "\n".join((*self.prompts, *self.texts, *self.stored, *self.refused)).casefold()

    @property
    def lines(self) -> list[str]:
        return [line.strip() for prompt in self.prompts for line in prompt.splitlines()]


@dataclass
class Stage:
    """An open app on which cases are played one after another, each in a tenant of its own."""

    app: App
    model: EchoingModel
    clock: CaseClock
    folder: Path
    case_of: dict[str, str]  # by canary: the id of the case that writes it

    async def play(self, case: Case) -> None:
        """Play a case. Raises Leaked when the attack succeeds, and Broken when the case is not played as written."""
        self.clock.case = ScriptClock(START)
        await _Play(self, case).run()


class _Play:
    """One run of one case."""

    def __init__(self, stage: Stage, case: Case) -> None:
        self._stage, self._app, self._case = stage, stage.app, case
        self._kept: dict[str, str] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._emitted: list[dict[str, Any]] = []
        self._player = Player(stage.app, stage.clock.case, self._emitted.append)

    async def run(self) -> None:
        for number, step in enumerate(self._case.script, 1):
            self._stage.clock.case.move(self._stage.clock.now() + STEP)
            outcome = await self._outcome(number, step)
            if step.label is not None:
                self._outcomes[step.label] = outcome
            self._judge(step, outcome)
            for name, pattern in step.keep.items():
                found = re.search(pattern, "\n".join(outcome.texts), re.MULTILINE)
                if found is None:
                    raise Broken(f"{step.event}: {outcome.texts or outcome.refused} has no {pattern}")
                self._kept[name] = found[1]

    async def _outcome(self, number: int, step: Step) -> Outcome:
        event = {key: self._filled(value) for key, value in step.event.items()}
        event["workspace"] = self._workspace(event.get("workspace", ""))
        self._stage.model.seen.clear()
        tenant = self._app.directory.workspace(CONSOLE, event["workspace"]).tenant_id
        self._stage.model.answer = step.answer
        self._stage.model.speakers = frozenset(agent.id for agent in self._app.directory.agents(tenant))
        outcome = await self._happens(event, number)
        if event["type"] == "command" and any(YES in text for text in outcome.texts) and YES not in event["text"]:
            confirmed = await self._happens(event | {"text": f"{event['text']} {YES}"}, number + 1000)
            outcome.texts += confirmed.texts
            outcome.refused += confirmed.refused
        outcome.prompts += self._stage.model.seen
        if step.answer is not None and self._stage.model.answer is not None:
            raise Broken(f"{step.event}: the model was not asked")
        return outcome

    def _filled(self, value: Any) -> Any:
        """A value with what was kept of earlier steps."""
        if isinstance(value, str):
            return re.sub(r"<<(\w+)>>", lambda found: self._kept[found[1]], value)
        return value

    def _workspace(self, name: str) -> str:
        return f"{self._case.slug}-{name}" if name else self._case.slug

    async def _happens(self, event: dict[str, Any], number: int) -> Outcome:
        own = own_event(event)
        outcome = Outcome()
        if own is None:
            self._emitted.clear()
            await self._player.play_event(Line(self._case.id, number, script_event(event)))
            for emitted in self._emitted:
                (outcome.refused if emitted["event"] == "error" else outcome.texts).append(emitted["text"])
                if "file" in emitted:
                    outcome.stored.append(emitted["file"]["text"])
                if emitted.get("prompt"):
                    outcome.stored.append(json.dumps(emitted["prompt"], ensure_ascii=False))
            return outcome
        try:
            match own:
                case Suggest():
                    outcome.texts += await self._suggest(own)
                case Compose():
                    outcome.prompts += await self._compose(own)
                case MakeAdmin():
                    await set_admin(self._app, own.workspace, own.user, True)
                case Chatter():
                    await self._chatter(own)
                case Import():
                    outcome.texts.append(await self._import(own))
        except NexusError as error:
            outcome.refused.append(str(error))
        return outcome

    async def _suggest(self, typed: Suggest) -> list[str]:
        place = place_of(typed.room, typed.dm, typed.session, typed.thread, None, typed.agent)
        workspace = self._app.directory.workspace(CONSOLE, typed.workspace)
        command, text = parse(typed.text)
        typing = command.typing(text)
        if typing is None:
            raise Broken(f"{typed.text}: this command has nothing to suggest")
        sender = incoming(workspace, place, typed.user, typed.text, self._stage.clock.now())
        parameter, before, part = typing
        found = await suggest(self._app, workspace, sender, parameter, before, part)
        return [f"{each.value} {each.label}" for each in found]

    async def _compose(self, asked: Compose) -> list[str]:
        place = place_of(asked.room, asked.dm, asked.session, asked.thread, None, asked.agent)
        workspace, now = self._app.directory.workspace(CONSOLE, asked.workspace), self._stage.clock.now()
        unstored, _ = await question(self._app, workspace, place, asked.user, asked.text, now, top_k=None, id="asked")
        composed = await self._app.composer.compose(unstored)
        return [str(message.content) for message in composed.prompt.role_messages]

    async def _chatter(self, talk: Chatter) -> None:
        workspace = self._app.directory.workspace(CONSOLE, talk.workspace)
        place, at = place_of(talk.room, talk.dm, talk.session), self._stage.clock.now()
        times = [at + timedelta(seconds=n / 10) for n in range(talk.count)]
        batch = [incoming(workspace, place, talk.user, "nothing new", time) for time in times]
        received = await self._app.receive(workspace, batch, answer=False)
        async with self._app.database.transaction(workspace.tenant_id) as tx:
            await tx.recall.index([], [], received.new)  # recall need not find it

    async def _import(self, given: Import) -> str:
        path = self._stage.folder / given.name
        placed = [line if isinstance(line, str) else json.dumps(self._placed(line)) for line in given.lines]
        path.write_text("\n".join(placed) + "\n", encoding="utf-8")
        read = read_history(path, given.format, given.workspace, given.room)
        done = await import_history(self._app, read, lambda _: None)
        await self._app.indexer.catch_up(self._app.directory.workspace(CONSOLE, given.workspace).tenant_id)
        return str(done)

    def _placed(self, line: dict[str, Any]) -> dict[str, Any]:
        return line | {"workspace": self._workspace(line["workspace"])} if "workspace" in line else line

    def _judge(self, step: Step, outcome: Outcome) -> None:
        said = f"{step.event} brought about {outcome}"
        if outcome.refused and not step.may_be_refused:
            raise Broken(said)
        if any(wrong in text for text in outcome.refused for wrong in _WRONG_CALL) and not step.same_as:
            raise Broken(said)
        if step.type != "suggest" and (step.hides or step.no_line) and not outcome.whole:
            raise Broken(f"{step.event} brought about nothing, so that it hides nothing")
        whole = outcome.whole
        if missing := [word for word in step.shows if word.casefold() not in whole]:
            raise Broken(f"{missing} is not shown: {said}")
        leaked = [word for word in step.hides if word.casefold() in whole]
        leaked += self._strangers(step, outcome)
        leaked += [line for line in outcome.lines if any(re.match(pattern, line) for pattern in step.no_line)]
        if leaked:
            raise Leaked(f"{leaked}: {said}")
        if step.same_as is not None:
            self._compare(step, outcome)

    def _strangers(self, step: Step, outcome: Outcome) -> list[str]:
        """Canaries of other cases, which are other tenants'. A job goes through all tenants, but one at a time."""
        parts = outcome.prompts if step.type == "job" else [outcome.whole]
        for part in parts:
            # A code that is made up by chance can look like a canary.
            words = [word for word in CANARY.findall(part.casefold()) if word in self._stage.case_of]
            cases = {self._stage.case_of[word]: word for word in words}
            if len(cases) > 1 or (step.type != "job" and not cases.keys() <= {self._case.id}):
                return sorted(cases.values())
        return []

    def _compare(self, step: Step, outcome: Outcome) -> None:
        other = self._outcomes[step.same_as or ""]
        mine, theirs = self._without_names(outcome), self._without_names(other)
        if mine != theirs:
            raise Leaked(f"{step.event}: {mine} tells what {theirs} does not")

    def _without_names(self, outcome: Outcome) -> list[str]:
        told = [*outcome.texts, *outcome.refused]
        for name in sorted(self._case.names, key=len, reverse=True):
            told = [text.replace(name, "·") for text in told]
        return told


@asynccontextmanager
async def open_stage(settings: Settings, cases: Sequence[Case], folder: Path) -> AsyncIterator[Stage]:
    """A stage for these cases, on a fresh database."""
    tenants = {
        case.slug: TenantSettings(workspaces=tuple(f"{case.slug}-{name}" for name in case.tenant))
        for case in cases
        if case.tenant
    }
    agents = (AgentSettings(model="gullible"), AgentSettings(slug="sage", name="Sage", model="gullible"))
    chosen = settings.model_copy(
        update={"agents": agents, "tenants": tenants, "retrieval": RETRIEVAL, "extraction": "pattern"}
    )
    model, clock = EchoingModel(), CaseClock()
    async with open_app(chosen, clock=clock, model=model, embedder=HashedWords(), index=False) as app:
        yield Stage(app, model, clock, folder, {word: case.id for case in cases for word in case.canaries})

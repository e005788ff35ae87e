"""Plays traces on the real product, over real Postgres and Valkey, and asks it everything that a viewer can ask."""

import asyncio
import itertools
import json
import logging
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from functools import singledispatchmethod
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import asyncpg
import structlog

from bot.commands.command import PREFIX
from bot.commands.table import run_command
from bot.console.conversations import AFTER_ALL, question
from bot.importers.history import import_history
from bot.importers.history_privacy import unsaid_rooms
from bot.script.changes import change_message
from bot.script.events import Line, MessageEvent
from bot.script.places import incoming
from composer.app import open_app
from composer.app.composition import LoadableEmbedder
from composer.errors import NexusError, NotFound, Unavailable
from composer.ingest.rooms import record_membership
from composer.model import (
    CONSOLE,
    GLOBAL_NAMESPACE,
    Agent,
    Attachment,
    ConversationKind,
    Incoming,
    Message,
    Place,
    Trust,
    Usage,
    Visibility,
    Workspace,
    agent_id,
    conversation_id,
    derived_id,
    message_id,
    profile_namespace,
    project_namespace,
    user_id,
)
from composer.ports.memberships import RoomsOnPlatform
from composer.ports.models import ChatMessage, Chunk
from composer.prompt.sections import Prompt
from composer.repositories.recall import IndexEntry
from composer.settings import AgentSettings, RetrievalSettings, Settings
from composer.stores.embedded.servers import Servers
from composer.summaries.tiers import TIERS
from composer.text.terms import terms
from composer.turn.reading import PromptRequest
from tests.property import trace
from tests.property.reference import AGENTS
from tests.property.setting import EVERYTHING
from tests.property.trace import (
    ELSEWHERE,
    ROOM_ADMINS_ELSEWHERE,
    TERMINAL,
    UNTRUSTED,
    Accept,
    Admin,
    Assign,
    Delete,
    Edit,
    EraseProject,
    EraseRoom,
    EraseUser,
    Event,
    Forget,
    Import,
    Keep,
    Leave,
    Link,
    Member,
    Move,
    MoveUnheard,
    NewProject,
    Opt,
    Outage,
    Pin,
    ReadRooms,
    Record,
    Remember,
    Review,
    Say,
    SetFact,
    Share,
    Spot,
    Summarise,
    Trace,
    Unassign,
    Unlink,
    mentioned,
    platform_of,
)
from tests.support.databases import database_url, run_sql
from tests.support.embedder import HashedWords
from tests.support.harness import START, AppHarness, ManualClock, RecordedDelivery

_numbers = itertools.count(1)
WHICH: Final[ContextVar[str]] = ContextVar("which product is at work", default="")
_MILLISECONDS = re.compile(r"\d+\.\d ms")
MODELS: Final = {"scout": "parrot-1"}  # an unknown tokenizer: its counts are estimates
GENEROUS: Final = RetrievalSettings(top_k=500, recall_tokens=100_000)


EVERY_TEXT: Final = (
    *(
        f"SELECT {text}::text FROM {table} WHERE tenant_id = $1"
        for table, text in (
            ("messages", "text"),
            ("messages", "attachments"),
            ("memories", "text"),
            ("summaries", "text"),
            ("landmarks", "text"),
            ("facts", "value"),
            ("quarantine", "text"),
        )
    ),
    "SELECT prompt::text FROM turns WHERE tenant_id = $1 AND prompt IS NOT NULL",
    "SELECT DISTINCT term FROM recall_terms WHERE tenant_id = $1",
)


class ScriptedModel:
    """A model that repeats every canary of its prompt, so that whatever leaks into a prompt is in the log from then
    on. It reports token counts of its own, by which estimates are corrected."""

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        repeated_canaries = sorted(set().union(*(trace.canaries(message.content) for message in messages)))
        length = sum(len(message.content) for message in messages)
        text = f"{agent.slug} heard {' '.join(repeated_canaries) or 'nothing'}"
        yield Chunk(text, Usage(length // 3, len(repeated_canaries)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a question: a prompt, or the sentence of the refusal."""

    prompt: Prompt | None
    refusal: str = ""

    def text(self) -> str:
        """Return the whole result as text."""
        return self.refusal if self.prompt is None else json.dumps(self.prompt.as_json(), ensure_ascii=False)


@dataclass(frozen=True)
class Platform:
    """What the chat platforms know of who is in a room, whether or not Nexus was told."""

    inside: set[tuple[str, str, str, str]] = field(default_factory=set)  # platform, workspace, person, room
    outages: dict[Workspace, bool] = field(default_factory=dict)  # those that do not say it; whether they fail

    def move(self, here: Workspace, user: str, room: str, *, joined: bool) -> None:
        """Let somebody join or leave a room."""
        (self.inside.add if joined else self.inside.discard)((here.platform, here.name, user, room))

    def source(self, platform: str) -> "_Source":
        """Return what one platform says."""
        return _Source(self, platform)


@dataclass(frozen=True)
class _Source:
    """One chat platform (composer.ports.memberships.MembershipSource)."""

    all: Platform
    platform: str

    async def rooms_of(self, workspace: str, person: str) -> RoomsOnPlatform | None:
        away = {(here.platform, here.name): fails for here, fails in self.all.outages.items()}
        fails = away.get((self.platform, workspace))
        if fails is not None:
            if fails:
                raise Unavailable("the platform is away")
            return None
        return RoomsOnPlatform(
            sorted(room for *who, room in self.all.inside if who == [self.platform, workspace, person])
        )


@dataclass(frozen=True)
class Product:
    """One running Nexus on a database of its own. `raw` writes rows that no public interface writes."""

    harness: AppHarness
    raw: asyncpg.Connection
    url: str
    platform: Platform
    behind: set[uuid.UUID] = field(default_factory=set)  # tenants in which something may wait to be indexed

    def workspace(self, world: str, tenant: str, user: str = "") -> Workspace:
        """Return the workspace of an account. Those of all platforms belong to the one tenant."""
        here = self.harness.workspace(f"{world}-{tenant}")
        return replace(here, platform=platform_of(user)) if user in ELSEWHERE else here

    async def play(self, world: str, events: Trace, expected: Sequence[bool], nights: Sequence[int] = ()) -> list[bool]:
        """Play a trace in the tenants of a world; return which events were accepted. Messages that are `expected` to
        be accepted are received in batches, as after an outage. In the nights the jobs write summaries."""
        WHICH.set(self.url)
        taken: list[bool] = []
        tenants, ahead = sorted({event.tenant for event in events}), list(nights)
        for batch in _batches(events, expected, nights):
            while ahead and ahead[0] < batch[0].at:
                await self._night(world, tenants, ahead.pop(0))
            self.harness.clock.set(START + timedelta(seconds=batch[-1].at))
            if isinstance(batch[0], Review) or (isinstance(batch[0], Say) and _wants_answer(batch[0])):
                # Else how much is indexed by now would depend on the replies in other conversations.
                await self.catch_up(world, batch[0].tenant)
            self.behind.add(self.workspace(world, batch[0].tenant).tenant_id)
            try:
                await self._on(batch[0], world, batch)
            except NexusError:
                taken += [False] * len(batch)
            else:
                taken += [True] * len(batch)
        for at in ahead:
            await self._night(world, tenants, at)
        for tenant in tenants:
            await self.catch_up(world, tenant)
        return taken

    async def _night(self, world: str, tenants: Sequence[str], at: int) -> None:
        """Run the summary jobs of all tiers for these tenants."""
        now, wrong = START + timedelta(seconds=at), 0

        def report(done: int, failed: int) -> None:
            nonlocal wrong
            wrong += failed

        self.harness.clock.set(now)
        for tenant in tenants:
            await self.catch_up(world, tenant)
            for tier in TIERS:
                id = self.workspace(world, tenant).tenant_id
                await self.harness.app.tiers.catch_up(id, tier, now, UTC, None, report)
        assert not wrong, f"{wrong} summaries failed"

    async def summaries(self, world: str) -> int:
        """Count the summaries in the main tenant of a world."""
        here = self.workspace(world, trace.MAIN).tenant_id
        return int(await self.raw.fetchval("SELECT count(*) FROM summaries WHERE tenant_id = $1", here))

    async def projects(self, here: Workspace) -> dict[str, uuid.UUID]:
        """Return the id of each project of a tenant by its name: of several, that of the first."""
        rows = await self.raw.fetch(
            "SELECT slug, id FROM projects WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC", here.tenant_id
        )
        return {row["slug"]: row["id"] for row in rows}

    async def catch_up(self, world: str, tenant: str) -> None:
        """Index what waits in a tenant, if anything happened there since."""
        if (id := self.workspace(world, tenant).tenant_id) in self.behind:
            await self.harness.app.indexer.catch_up(id)
            self.behind.discard(id)

    @singledispatchmethod
    async def _on(self, event: Event, world: str, batch: Trace) -> None:
        raise TypeError(f"nothing to play for {type(event).__name__}")

    @_on.register
    async def _(self, event: Say, world: str, batch: tuple[Say, ...]) -> None:
        here, app = self.workspace(world, event.tenant, event.user), self.harness.app
        await app.receive(here, [self._incoming(here, said) for said in batch], answer=event.answer)
        await app.turns.settle()

    @_on.register
    async def _(self, event: Import, world: str, batch: Trace) -> None:
        here, app, at = self.workspace(world, event.tenant), self.harness.app, START + timedelta(seconds=event.at)
        where = {"workspace": here.name, "room": event.spot.name, "private": event.private, "user": event.user}
        said = MessageEvent(type="message", id=trace.message_id(event.n), at=at, text=event.text, **where)
        lines, into = [Line("history", 1, said)], event.into or None
        private = await unsaid_rooms(app, lines, (), into) if event.closed else ()
        if (await import_history(app, lines, lambda _: None, into, private)).skipped:
            raise NotFound("it was said in private")

    def _incoming(self, here: Workspace, event: Say) -> Incoming:
        said = self._said(here, event, event.spot, event.text, private=event.private)
        said = replace(said, place=replace(said.place, outsiders=event.shared))
        attachments = (Attachment("notes.txt", "text/plain", event.attachment),) if event.attachment else ()
        number = event.n if event.again is None else event.again
        return replace(said, id=trace.message_id(number), attachments=attachments)

    def _said(self, here: Workspace, event: Event, spot: Spot, text: str, *, private: bool | None = None) -> Incoming:
        return _sent(here, spot, event.user, text, event.at, f"c{event.n}", private)

    async def _command(self, world: str, event: Event, spot: Spot, text: str) -> str:
        here = self.workspace(world, event.tenant, event.user)
        said = self._said(here, event, spot, text)
        return (await run_command(self.harness.app, here, said, recorded=False)).text

    @_on.register
    async def _(self, event: Link, world: str, batch: Trace) -> None:
        """Get a code with one account, see whose it is with the other, and enter it."""
        before = replace(event, user=event.other, at=event.at - (3_600 if event.late else 0))
        self.harness.clock.set(START + timedelta(seconds=before.at))
        given = await self._command(world, before, Spot("dm", "nexus"), f"{PREFIX} link")
        self.harness.clock.set(START + timedelta(seconds=event.at))
        entered = f"{given.partition(f'{PREFIX} link ')[2].split()[0]}"
        await self._command(world, event, event.spot, f"{PREFIX} link {entered}{' --yes' if event.confirmed else ''}")

    @_on.register
    async def _(self, event: Review, world: str, batch: Trace) -> None:
        """Decide about what waits. Its id is looked up, whoever may see it."""
        here = self.workspace(world, event.tenant).tenant_id
        waits = "SELECT id FROM quarantine WHERE tenant_id = $1 AND state = 'pending' AND strpos(text, $2) > 0"
        found = await self.raw.fetchval(waits, here, event.canary)
        id = "0" * 8 if found is None else found.hex[:8]
        verb = "approve" if event.approve else "reject"
        await self._command(world, event, event.spot, f"{PREFIX} memory {verb} {id}")

    @_on.register
    async def _(self, event: Unlink, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"{PREFIX} unlink")

    @_on.register
    async def _(self, event: Remember, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"/nexus remember {event.text}{_flag(event.scope)}")

    @_on.register
    async def _(self, event: SetFact, world: str, batch: Trace) -> None:
        value = json.dumps(event.text)
        await self._command(world, event, event.spot, f"/nexus fact set {event.key} {value}{_flag(event.scope)}")

    @_on.register
    async def _(self, event: Pin, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"/nexus landmark add {event.text}{_flag(event.scope)}")

    @_on.register
    async def _(self, event: Forget, world: str, batch: Trace) -> None:
        words = event.words if event.message is None else f"message {trace.message_id(event.message)}"
        await self._command(world, event, event.spot, f"/nexus forget {words} --yes")

    @_on.register
    async def _(self, event: NewProject, world: str, batch: Trace) -> None:
        isolated = " --isolated" if event.isolated else ""
        await self._command(world, event, event.spot, f"/nexus project create {event.slug}{isolated}")

    @_on.register
    async def _(self, event: Assign, world: str, batch: Trace) -> None:
        pool = " --pool" if event.pool else ""
        await self._command(world, event, event.spot, f"/nexus project assign {event.slug}{pool} --yes")

    @_on.register
    async def _(self, event: Unassign, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, "/nexus project unassign --yes")

    @_on.register
    async def _(self, event: Member, world: str, batch: Trace) -> None:
        verb = "remove" if event.role is None else "add"
        words = f"/nexus project member {verb} {event.slug} {event.who} {event.role or ''}"
        await self._command(world, event, event.spot, words)

    @_on.register
    async def _(self, event: Accept, world: str, batch: Trace) -> None:
        verb = "decline" if event.declined else "accept"
        await self._command(world, event, event.spot, f"/nexus project {verb} {event.slug}")

    @_on.register
    async def _(self, event: Leave, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"/nexus project leave {event.slug} --yes")

    @_on.register
    async def _(self, event: Opt, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"/nexus opt-{'out' if event.out else 'in'}")

    @_on.register
    async def _(self, event: ReadRooms, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"/nexus rooms {'on' if event.on else 'off'}")

    @_on.register
    async def _(self, event: Record, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"/nexus memory {event.policy}")

    @_on.register
    async def _(self, event: EraseRoom, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, "/nexus erase room --yes")

    @_on.register
    async def _(self, event: EraseUser, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"/nexus erase user {event.who} --yes")

    @_on.register
    async def _(self, event: EraseProject, world: str, batch: Trace) -> None:
        await self._command(world, event, event.spot, f"/nexus erase project {event.slug} --yes")

    @_on.register
    async def _(self, event: Share, world: str, batch: Trace) -> None:
        words = f"/nexus share {await self._short_id(world, event)} {event.scope} --yes"
        await self._command(world, event, event.spot, words)

    async def _short_id(self, world: str, event: Share) -> str:
        """The beginning of the id of what another event stored, whoever wrote it; of nothing, if that is gone."""
        here, written = self.workspace(world, event.tenant), START + timedelta(seconds=event.written)
        found = await self.raw.fetchval(
            "SELECT id FROM ("
            " SELECT id, created_at AS at FROM memories WHERE tenant_id = $1 AND origin <> 'api'"
            " UNION ALL SELECT id, valid_from FROM facts WHERE tenant_id = $1"
            " UNION ALL SELECT id, decided_at FROM landmarks WHERE tenant_id = $1) AS items"
            " WHERE at = $2",
            here.tenant_id, written,
        )  # fmt: skip
        return "0" * 8 if found is None else str(found.hex)[:8]

    @_on.register
    async def _(self, event: Move, world: str, batch: Trace) -> None:
        here, app = self.workspace(world, event.tenant, event.user), self.harness.app
        agents, now = app.directory.agents(here.tenant_id), app.clock.now()
        async with app.database.transaction(here.tenant_id) as tx:
            await record_membership(tx, here, agents, event.room, event.user, event.user, joined=event.joined, now=now)
        self.platform.move(here, event.user, event.room, joined=event.joined)

    @_on.register
    async def _(self, event: Edit, world: str, batch: Trace) -> None:
        here = self.workspace(world, event.tenant, event.user)
        await change_message(self.harness.app, here, trace.message_id(event.target), event.text)

    @_on.register
    async def _(self, event: Delete, world: str, batch: Trace) -> None:
        here = self.workspace(world, event.tenant, event.user)
        await change_message(self.harness.app, here, trace.message_id(event.target), None)

    @_on.register
    async def _(self, event: MoveUnheard, world: str, batch: Trace) -> None:
        self.platform.move(self.workspace(world, event.tenant, event.user), event.user, event.room, joined=event.joined)

    @_on.register
    async def _(self, event: Outage, world: str, batch: Trace) -> None:
        here = self.workspace(world, event.tenant, event.user)
        self.platform.outages.pop(here, None)
        if event.begins:
            self.platform.outages[here] = event.fails

    @_on.register
    async def _(self, event: Admin, world: str, batch: Trace) -> None:
        here = self.workspace(world, event.tenant)
        async with self.harness.app.database.transaction(here.tenant_id) as tx:
            if await tx.people.find_user(CONSOLE, here.name, event.user) is None:
                raise NexusError("nobody of that name")
            await tx.people.set_admin(user_id(here, event.user), event.admin)

    @_on.register
    async def _(self, event: Summarise, world: str, batch: Trace) -> None:
        """Write a summary directly: its row, its lineage, and its index entry."""
        here = self.workspace(world, event.tenant, event.user)
        id = derived_id("summary", str(event.n), world, event.tenant)
        user = user_id(here, event.user)
        conversation_key = _conversation(here, event.user, event.spot)
        async with self.harness.app.database.transaction(here.tenant_id) as tx:
            conversation = await tx.conversations.get(conversation_key)
            if conversation is None:
                raise NotFound("no such conversation")
            at = START + timedelta(seconds=event.at)
            container = conversation.room_id or conversation.id
            owner = None if conversation.user_id is None else user
            found = IndexEntry(
                id,
                "summary",
                conversation.namespace,
                conversation.visibility,
                owner,
                at,
                _counted(event.text),
            )
            await self.raw.execute(
                "INSERT INTO summaries (tenant_id, id, conversation_id, tier, namespace, user_id, visibility,"
                " starts_at, ends_at, text, tokens, model, created_at)"
                " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, 1, 'test', $8)",
                here.tenant_id, id, conversation_key, event.tier, conversation.namespace, owner,
                str(conversation.visibility), at, event.text,
            )  # fmt: skip
            for source in event.sources:
                for kind, of in (
                    ("message", message_id(container, trace.message_id(source))),
                    ("summary", derived_id("summary", str(source), world, event.tenant)),
                ):
                    await self.raw.execute(
                        "INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)"
                        " VALUES ($1, 'summary', $2, $3, $4) ON CONFLICT DO NOTHING",
                        here.tenant_id, id, kind, of,
                    )  # fmt: skip
            await tx.recall.index([], [found], [])

    @_on.register
    async def _(self, event: Keep, world: str, batch: Trace) -> None:
        """Write a memory as a tool does over the API."""
        here = self.workspace(world, event.tenant, event.user)
        id = derived_id("kept", str(event.n), world, event.tenant)
        user, at = user_id(here, event.user), START + timedelta(seconds=event.at)
        expires = None if event.lasts is None else at + timedelta(seconds=event.lasts)
        namespace = profile_namespace(user) if event.where == "profile" else GLOBAL_NAMESPACE
        if event.where.startswith("project:"):
            projects = await self.projects(here)
            namespace = project_namespace(projects[event.where.removeprefix("project:")])
        async with self.harness.app.database.transaction(here.tenant_id) as tx:
            if event.where == "here" and event.spot is not None:
                conversation = await tx.conversations.get(_conversation(here, event.user, event.spot))
                if conversation is None:
                    raise NotFound("no such conversation")
                namespace = conversation.namespace
            await self.raw.execute(
                "INSERT INTO memories (tenant_id, id, namespace, user_id, visibility, allowed_vendors, kind, text,"
                " author, origin, created_at, expires_at)"
                " VALUES ($1, $2, $3, $4, $5, $6, 'note', $7, $8, 'api', $9, $10)",
                here.tenant_id, id, namespace, user, event.visibility, list(event.vendors), event.text,
                event.user, at, expires,
            )  # fmt: skip
            vendors = None if event.vendors == ("*",) else event.vendors
            found = IndexEntry(
                id, "memory", namespace, Visibility(event.visibility), user, at, _counted(event.text), vendors, expires
            )
            await tx.recall.index([], [found], [])

    # --- questions ----------------------------------------------------------------------------------------

    async def ask(
        self, world: str, tenant: str, user: str, spot: Spot, text: str, at: int, *, top_k: int | None = None
    ) -> Outcome:
        """Return the prompt that would answer a question at a place. EVERYTHING, and every question in
        half of the worlds, is asked without the floor of relevance: then the prompt shows all that may be read, as far
        as its limits permit, and what may not be read has more to move."""
        WHICH.set(self.url)
        here, when = self.workspace(world, tenant, user), START + timedelta(seconds=at)
        self.harness.clock.set(when)
        try:
            asked, _ = await question(
                self.harness.app, here, place_at(spot), user, text, when, top_k=top_k, id="question"
            )
            asked = replace(asked, message=replace(asked.message, trust=_trust_of(user)))
            asked = replace(asked, floor=text != EVERYTHING and crc32(world.encode()) % 2 == 0)
            return Outcome((await self.harness.app.composer.compose(asked)).prompt)
        except NexusError as error:
            return Outcome(None, f"{type(error).__name__}: {error}")

    async def compose_without_membership_check(
        self, world: str, tenant: str, user: str, spot: Spot, text: str, at: int
    ) -> Outcome:
        """Do the same without the check of membership that comes first: visibility alone must refuse."""
        here, when = self.workspace(world, tenant, user), START + timedelta(seconds=at)
        self.harness.clock.set(when)
        conversation_key, agents = _conversation(here, user, spot), self.harness.app.directory.agents(here.tenant_id)
        said = incoming(here, place_at(spot), user, text, when, id="question")
        asker = user_id(here, user)
        try:
            async with self.harness.app.database.transaction(here.tenant_id) as tx:
                conversation = await tx.conversations.get(conversation_key)
            if conversation is None:
                return Outcome(None, "no conversation")
            message = _unstored(said, conversation_key, asker, conversation.namespace, conversation.visibility)
            message = replace(message, trust=_trust_of(user))
            composed = await self.harness.app.composer.compose(
                PromptRequest(here.tenant_id, conversation_key, asker, agents[0], message, floor=text != EVERYTHING)
            )
            return Outcome(composed.prompt)
        except NexusError as error:
            return Outcome(None, f"{type(error).__name__}: {error}")

    async def tell(self, world: str, tenant: str, user: str, spot: Spot, text: str, at: int, id: str) -> str:
        """Run a command; return its answer or the sentence of the refusal, without durations."""
        WHICH.set(self.url)
        here = self.workspace(world, tenant, user)
        said = _sent(here, spot, user, text, at, id)
        self.harness.clock.set(said.at)
        try:
            given = await run_command(self.harness.app, here, said, recorded=False)
            answer = given.text + ("" if given.file is None else f"\n{given.file.text}")
        except NexusError as error:
            answer = f"{type(error).__name__}: {error}"
        return _MILLISECONDS.sub("ms", answer)

    async def answered(self, world: str, tenant: str) -> set[tuple[str, str]]:
        """Return which messages an agent was asked by, and which agent, of those that are stored."""
        found = await self.raw.fetch(
            "SELECT m.external_id, a.slug FROM turns AS t"
            " JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id"
            " JOIN agents AS a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id WHERE t.tenant_id = $1"
            " AND m.agent_id IS NULL",
            self.workspace(world, tenant).tenant_id,
        )
        return {(row["external_id"], row["slug"]) for row in found}

    async def everything(self, world: str, tenant: str) -> str:
        """Return every text that is stored for a tenant, in any layer."""
        here = self.workspace(world, tenant).tenant_id
        found = await self.raw.fetch(" UNION ALL ".join(EVERY_TEXT), here)
        return "\n".join(row[0] for row in found)


def _wants_answer(event: Say) -> bool:
    """Return whether an agent answers a message, or, in a thread, may: it is received alone."""
    return event.answer and (event.spot.kind != "room" or any(a in mentioned(event.text) for a in AGENTS))


def _batches(events: Trace, expected: Sequence[bool], nights: Sequence[int]) -> list[tuple[Event, ...]]:
    """Yield events one by one, but consecutive plain messages of one day as a batch."""
    batches: list[tuple[Event, ...]] = []
    open_ = False
    for event, taken in zip(events, expected, strict=True):
        plain = (
            isinstance(event, Say)
            and not isinstance(event, Import)
            and taken
            and not _wants_answer(event)
            and event.shared is None
        )
        last = batches[-1][-1] if batches else None
        joins = isinstance(event, Say) and isinstance(last, Say) and event.tenant == last.tenant
        joins = joins and platform_of(event.user) == platform_of(last.user)  # type: ignore[union-attr]
        joins = joins and not any(last.at <= night < event.at for night in nights)  # type: ignore[union-attr]
        if plain and open_ and joins and event.answer == last.answer:  # type: ignore[union-attr, attr-defined]
            batches[-1] = (*batches[-1], event)
        else:
            batches.append((event,))
        open_ = plain
    return batches


def _sent(here: Workspace, spot: Spot, user: str, text: str, at: int, id: str, private: bool | None = None) -> Incoming:
    """Return a message or command as an adapter passes it on, with what its platform says of its sender."""
    said = incoming(here, place_at(spot, private), user, text, START + timedelta(seconds=at), id=id)
    admin = here.platform != TERMINAL and user in ROOM_ADMINS_ELSEWHERE
    return replace(said, sender_is_room_admin=admin, sender_trust=_trust_of(user))


def _trust_of(user: str) -> Trust:
    """Return how far the platform trusts an account."""
    return Trust(UNTRUSTED.get(user, Trust.MEMBER))


def place_at(spot: Spot, private: bool | None = None) -> Place:
    """Return the place of a spot, as an adapter names it."""
    match spot.kind:
        case "dm":
            return Place(ConversationKind.DM, spot.name)
        case "session":
            return Place(ConversationKind.SESSION, spot.name, agent=spot.agent)
        case "thread":
            return Place(ConversationKind.THREAD, spot.name, spot.thread, private)
    return Place(ConversationKind.ROOM, spot.name, private=private)


def _conversation(here: Workspace, user: str, spot: Spot) -> uuid.UUID:
    slug = spot.name if spot.kind == "dm" else spot.agent
    return conversation_id(here, place_at(spot), user_id(here, user), agent_id(here.tenant_id, slug))


def _counted(text: str) -> dict[str, int]:
    found = terms(text)
    return {term: found.count(term) for term in found}


def _unstored(
    said: Incoming, conversation_key: uuid.UUID, asker: uuid.UUID, namespace: str, visibility: Visibility
) -> Message:
    id = derived_id("unstored", str(conversation_key), said.id)
    return Message(id, said.id, AFTER_ALL, said.at, asker, None, said.user_name, said.text, namespace, visibility)


def _flag(scope: str) -> str:
    return "" if scope == "here" else f" --{scope} --yes"


@asynccontextmanager
async def product_on(
    servers: Servers,
    home: Path,
    *,
    cache: int = 0,
    retrieval: RetrievalSettings = GENEROUS,
    embedder: LoadableEmbedder | None = None,
) -> AsyncIterator[Product]:
    """Start a Nexus on a database cloned from the template. `cache` is the number of its Valkey database: the same
    tenant in two products must not share one."""
    name = f"world{next(_numbers)}x{uuid.uuid4().hex[:8]}"
    await run_sql(servers.database_url, f"CREATE DATABASE {name} TEMPLATE template STRATEGY file_copy")
    await run_sql(servers.database_url, f"ALTER DATABASE {name} SET synchronous_commit = off")
    url = database_url(servers.database_url, name)
    settings = Settings(
        home=home,
        database_url=url,
        redis_url=servers.redis_url + f"?db={cache}",
        agents=tuple(
            AgentSettings(slug=slug, name=slug.title(), persona="You remember.", model=MODELS.get(slug))
            for slug in AGENTS
        ),
        retrieval=retrieval,
    )
    raw = await asyncpg.connect(url)
    try:
        clock, delivery = ManualClock(), RecordedDelivery()
        async with AsyncExitStack() as stack:
            opening = open_app(
                settings, clock=clock, model=ScriptedModel(), embedder=embedder or HashedWords(), index=False
            )
            app = await stack.enter_async_context(opening)
            for platform in {TERMINAL, *ELSEWHERE.values()}:
                app.turns.serve(platform, delivery)
            platforms = Platform()
            for chat in {*ELSEWHERE.values()}:
                app.memberships.serve(chat, platforms.source(chat))
            yield Product(AppHarness(app, delivery, clock), raw, url, platforms)
    finally:
        await raw.close()
        await run_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def two_products(
    servers: Servers, home: Path, *, cache: int = 0, embedder: LoadableEmbedder | None = None
) -> AsyncIterator[tuple[Product, Product]]:
    """Start two equal products: the same names have the same ids in both. They use Valkey databases from `cache` on."""
    async with (
        product_on(servers, home, cache=cache, embedder=embedder) as first,
        product_on(servers, home, cache=cache + 1, embedder=embedder) as second,
    ):
        yield first, second


def silence_logs() -> None:
    """Silence the logs, which deliberate refusals would fill."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


async def both(*work: Any) -> list[Any]:
    """Await both products at once: while one waits for its database, the other computes."""
    return list(await asyncio.gather(*work))

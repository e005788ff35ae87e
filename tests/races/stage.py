"""Two acts at the same time: something is stored, and an erasure takes away what it is made from, or itself.

Where they meet is a named statement of `sql/queries`, so that no private function has to be held up.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

import asyncpg
import httpx2
import pytest

from bot.script.places import incoming, place_of
from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.errors import NexusError, Overtaken, Unavailable
from composer.memory.learner import QUIET_PERIOD
from composer.model import Agent, Place, Trust, Usage
from composer.ports.models import ChatMessage, Chunk, Vectors
from composer.repositories.imports import ImportRun
from composer.settings import AgentSettings, Settings, TenantSettings
from composer.stores.database.statements import PostgresStatements
from tests.support.api import bearer, key_of
from tests.support.embedder import HashedWords
from tests.support.entries import Hub
from tests.support.erased_ids import find_remains
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped
from tests.support.waiting import TIMEOUT_SECONDS
from tests.support.web import served_at

T = TypeVar("T")
SECRET: Final = "zqorchid"
SAID: Final = f"We decided that the vault opens with {SECRET}."
ROOM: Final[dict[str, Any]] = {"room": "general"}
KEEP_DAYS: Final = 30
ELSEWHERE: Final[dict[str, Any]] = {"room": "elsewhere"}
Act = Callable[["Stage"], Awaitable[object]]

_erasing: ContextVar[bool] = ContextVar("_erasing", default=False)


class Moment(StrEnum):
    """When an erasure comes, seen from what is stored."""

    BEFORE = "before it"
    BETWEEN = "while it waits for a model"  # between what it reads and what it stores
    INSIDE = "while its transaction is open"
    BESIDE = "and is not over when it begins"
    AFTER = "after it"


class Gate:
    """Runs something once, when the model or the embedder is next asked."""

    def __init__(self) -> None:
        self._meanwhile: Callable[[], Awaitable[object]] | None = None
        self._asks = ""

    def arm(self, asks: str, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._asks, self._meanwhile = asks, meanwhile

    @property
    def armed(self) -> bool:
        return self._meanwhile is not None

    async def passed(self, asks: str) -> None:
        if self._meanwhile is not None and asks == self._asks and not _erasing.get():
            meanwhile, self._meanwhile = self._meanwhile, None
            await meanwhile()


class Parrot:
    """A model that repeats the secret whenever it is shown it, or finds it as a memory of the first message."""

    def __init__(self, gate: Gate, *, extracts: bool) -> None:
        self._gate, self._extracts = gate, extracts

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        """What `composer.ports.models.ChatModel` asks for."""
        shown = "\n".join(message.content for message in messages)
        await self._gate.passed("model")
        text = f"As was said, the vault opens with {SECRET}." if SECRET in shown else "Nobody has said it."
        if self._extracts:
            found = [{"text": text, "sources": [1]}] if SECRET in shown else []
            text = json.dumps({"memory": found})
        yield Chunk(text, Usage(10, 10))


class GatedEmbedder(HashedWords):
    """An embedder that something may come between."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """As any embedder does."""
        await self._gate.passed("embedder")
        return await super().embed(texts)


@dataclass
class Stage:
    """An office in which alice, who is an admin, has said hello in two rooms, one of them in the project apollo."""

    harness: AppHarness
    settings: Settings
    gate: Gate
    stack: AsyncExitStack
    kept: dict[str, Any] = field(default_factory=dict)  # what an act has to know of its preparation
    run: ImportRun | None = None  # an import that brings what is said
    place_of_said: Place = field(default_factory=lambda: place_of("general", None, None))
    outgoing: str = ""  # what left for a person or a model
    _client: httpx2.AsyncClient | None = None

    @property
    def hub(self) -> Hub:
        return Hub(self.harness)

    async def receive(self, user: str, text: str, *, id: str, trust: Trust = Trust.MEMBER, **place: Any) -> None:
        """Store a message, which nobody answers and which is not indexed yet."""
        at, where = self.harness.workspace(), place_of(place.get("room"), place.get("dm"), None, place.get("thread"))
        message = incoming(at, where, user, text, self.harness.clock.tick(), id=id, trust=trust)
        await self.harness.app.receive(at, [message], answer=False, run=self.run)

    async def index(self) -> None:
        await self.harness.app.indexer.catch_up(self.harness.workspace().tenant_id)

    async def command(self, text: str, user: str = "alice", **place: Any) -> None:
        await self.harness.command_without_indexing(user, f"/nexus {text}", **(place or ROOM))

    async def request(self, method: str, path: str, **body: Any) -> httpx2.Response:
        """A request to the API by a key of alice's."""
        if self._client is None:  # most races need none
            app = web_app(self.harness.app, Metrics([]), {}, None)
            headers = bearer(await key_of(self.harness, "alice"))
            opened = httpx2.AsyncClient(
                base_url=await self._enter(served_at(app)), timeout=TIMEOUT_SECONDS, headers=headers
            )
            self._client = await self._enter(opened)
        answer = await self._client.request(method, path, json=body or None)
        assert answer.status_code < 500, answer.text
        return answer

    async def _enter(self, opened: AbstractAsyncContextManager[T]) -> T:
        return await self.stack.enter_async_context(opened)

    async def settle(self) -> None:
        await self.harness.app.turns.settle()
        await self.index()

    async def extract(self) -> None:
        """Let a model find memories in what is indexed."""
        assert self.harness.app.extractions is not None
        self.harness.clock.tick(QUIET_PERIOD.total_seconds() + 1)
        await self.harness.app.extractions.learn_due(self.harness.workspace().tenant_id)

    async def left(self) -> set[str]:
        """Where the secret is: tables with their column, keys of Redis, files, what left."""
        found = (await find_remains(self.settings, SECRET)).get(SECRET, set())
        return found | ({"what left"} if SECRET in self.outgoing else set())

    async def rows(self, query: str) -> list[Any]:
        connection = await asyncpg.connect(self.settings.database_url)
        try:
            return list(await connection.fetch(query))
        finally:
            await connection.close()


@dataclass(frozen=True)
class Write:
    """One way in which words are stored. `statement` is the named query that stores them; one that only sends words out
    has none. It is `covered` by the erasures that take these things away. `derived`: it is made of what is stored, so
    it must not come after an erasure of that either; what is new may."""

    name: str
    act: Act
    covered: frozenset[str]
    statement: str | None
    prepare: Act | None = None
    derived: bool = False
    asks: str = ""  # "model" or "embedder": between what it reads and what it stores
    window: int = 128_000  # tokens of its agent
    extracts: bool = False  # memories are found by a model, and not by pattern
    finish: Act | None = None  # what ends the erasure where the act was posted

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ErasureAct:
    """One way in which words are erased: `of` is what it takes away. `by_id`: what it erased is not stored later
    either."""

    name: str
    act: Act
    of: str
    calls: frozenset[str]  # the functions that call composer.memory.forget for it
    prepare: Act | None = None
    by_id: bool = False

    def __str__(self) -> str:
        return self.name


@asynccontextmanager
async def open_stage(settings: Settings, write: Write) -> AsyncIterator[Stage]:
    """An office for one race."""
    gate = Gate()
    agent = AgentSettings(model="gpt-4o", window=write.window, reply_tokens=min(1_024, write.window // 8))
    changed = settings.model_copy(
        update={
            "agents": (agent,),
            "requests_per_minute": 10_000,
            "tenants": {"acme": TenantSettings(keep_days=KEEP_DAYS)},
        }
    )
    async with AsyncExitStack() as stack:
        if write.extracts:
            changed = changed.model_copy(update={"openai_base_url": "http://127.0.0.1:9/v1"})  # the model is Parrot
        opened = open_harness(changed, model=Parrot(gate, extracts=write.extracts), embedder=GatedEmbedder(gate))
        harness = await stack.enter_async_context(opened)
        stage = Stage(harness, changed, gate, stack)
        for place in (ROOM, ELSEWHERE):
            await harness.say("alice", "good morning all", **place)
        await stage.command("project create apollo")
        await stage.command("project assign apollo --yes")
        await stage.rows("UPDATE users SET admin = true WHERE name = 'alice' RETURNING 1")
        yield stage


async def play(stage: Stage, write: Write, erasure: ErasureAct, moment: Moment, patch: pytest.MonkeyPatch) -> set[str]:
    """Let both happen, and return where the secret is left."""
    for prepare in (erasure.prepare, write.prepare):
        if prepare is not None:
            await prepare(stage)
    match moment:
        case Moment.BEFORE:
            await _erase(stage, erasure)
            await _write(stage, write, alone=False)
        case Moment.BETWEEN:
            stage.gate.arm(write.asks, lambda: _erase(stage, erasure))
            await _write(stage, write, alone=False)
            assert not stage.gate.armed, f"the {write.asks} was not asked"
        case Moment.INSIDE:
            await _inside(stage, write, erasure, patch)
        case Moment.BESIDE:
            await _beside(stage, write, erasure, patch)
        case Moment.AFTER:
            await _after(stage, write, erasure, patch)
    await stage.settle()
    if write.finish is not None:
        await write.finish(stage)
    return await stage.left()


async def _inside(stage: Stage, write: Write, erasure: ErasureAct, patch: pytest.MonkeyPatch) -> None:
    """The erasure begins when the statement is done and its transaction is not: it ends afterwards."""
    assert write.statement is not None
    erasing: list[asyncio.Task[object]] = []

    async def begun() -> None:
        if not erasing and not _erasing.get():
            erasing.append(asyncio.create_task(_erase(stage, erasure)))
            await until_stopped(stage.settings, erasing[0])

    with patch.context() as patched:
        hook(patched, write.statement, after=begun)
        await _write(stage, write)
    assert erasing, f"{write.statement} was not run"
    await erasing[0]


async def _after(stage: Stage, write: Write, erasure: ErasureAct, patch: pytest.MonkeyPatch) -> None:
    assert write.statement is not None
    ran = asyncio.Event()

    async def done() -> None:
        ran.set()

    with patch.context() as patched:
        hook(patched, write.statement, after=done)
        await _write(stage, write)
    assert ran.is_set(), f"{write.statement} was not run"
    assert await stage.left(), "nothing was stored that could be erased"
    await _erase(stage, erasure)


async def _beside(stage: Stage, write: Write, erasure: ErasureAct, patch: pytest.MonkeyPatch) -> None:
    """The write begins when the erasure has found what it deletes."""
    writing: list[asyncio.Task[object]] = []

    async def begun() -> None:
        if not writing and _erasing.get():
            token = _erasing.set(False)
            writing.append(asyncio.create_task(_write(stage, write, alone=False)))
            _erasing.reset(token)
            await until_stopped(stage.settings, writing[0])

    with patch.context() as patched:
        hook(patched, "recall_delete", before=begun)
        await _erase(stage, erasure)
    if writing:
        await writing[0]
    else:  # nothing was there to be erased
        await _write(stage, write, alone=False)


async def _erase(stage: Stage, erasure: ErasureAct) -> None:
    token = _erasing.set(True)
    try:
        await asyncio.wait_for(erasure.act(stage), TIMEOUT_SECONDS)
    finally:
        _erasing.reset(token)


async def _write(stage: Stage, write: Write, *, alone: bool = True) -> None:
    """Store it; where it comes too late it may be refused, but nobody may be told to come again."""
    try:
        await write.act(stage)
    except (Unavailable, Overtaken):
        raise
    except NexusError:
        if alone:
            raise


def hook(
    patch: pytest.MonkeyPatch,
    query: str,
    *,
    before: Callable[[], Awaitable[None]] | None = None,
    after: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run something before or after each statement of a named query."""
    for name in ("fetch", "fetch_one", "fetch_value", "execute"):
        run = getattr(PostgresStatements, name)

        async def hooked(self: Any, named: str, /, *args: Any, _run: Any = run, **values: Any) -> Any:
            if named == query and before is not None:
                await before()
            found = await _run(self, named, *args, **values)
            if named == query and after is not None:
                await after()
            return found

        patch.setattr(PostgresStatements, name, hooked)

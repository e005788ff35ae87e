"""The composition root: settings in, a running Nexus out. The only place that knows which stores there are."""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol, Self

import structlog

from composer.errors import Misconfigured, Unavailable
from composer.ingest import receive as receiving
from composer.ingest.receive import Received
from composer.layers.semantic import Retrieval
from composer.memory import reembed as reembedding
from composer.memory.extraction import MAX_ATTEMPTS, ExtractionWorker
from composer.memory.forget import Receipt
from composer.memory.index import Extraction
from composer.memory.indexer import Indexer
from composer.model import Agent, Incoming
from composer.ports import ChatMessage, ChatModel, Chunk, Clock, Embedder, ReembedStatus, Tokenizer
from composer.priority import InteractivePriority
from composer.settings import AgentSettings, Settings, quiet_mem0
from composer.stores.backup import DatabaseBackup, Manifest
from composer.stores.embedded.servers import EmbeddedServers, Servers
from composer.stores.job_ledger import JobLedger
from composer.stores.mem0_extraction import Mem0Extractor
from composer.stores.minilm import MiniLM
from composer.stores.offline_model import OfflineModel
from composer.stores.openai_api import OpenAIChat, OpenAIEmbedder
from composer.stores.postgres import Database, apply_migrations, describe, pending_migrations
from composer.stores.process_locks import ProcessLocks
from composer.stores.reembedding import PostgresReembedding
from composer.stores.tokens import clear_chunk_caches, tokenizer_for
from composer.stores.working_cache import RedisWorkingCache
from composer.summaries.compaction import Compactor
from composer.summaries.summariser import Summariser
from composer.summaries.tiers import SummaryTiers
from composer.turn.compose import Composer
from composer.turn.image_loader import ImageLoader
from composer.turn.respond import Responder
from composer.turn.worker import TurnWorker
from composer.workspace import Workspace, agent_id, tenant_id

logger = structlog.get_logger()

DEFAULT_BASE_URL = "https://api.openai.com/v1"
EXTRACTION_TOKENS = 4_096  # of an answer that lists what a batch of messages states
REVIVE_EVERY = 3.0  # seconds between looks at embedded servers


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """Now, in UTC."""
        return datetime.now(UTC)


class LoadableEmbedder(Embedder, Protocol):
    """An embedder that may have to learn something before its first use."""

    async def load(self) -> None:
        """Get ready. Raises Unavailable or Misconfigured."""
        ...


class ModelRouter:
    """Asks the API for agents that have a model, and the offline model for the others."""

    def __init__(self, api: ChatModel | None, offline: ChatModel) -> None:
        self._api = api
        self._offline = offline

    def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        """The answer, piece by piece (composer.ports.ChatModel)."""
        model = self._api if agent.model and self._api is not None else self._offline
        return model.stream(agent, messages)


class Directory:
    """Which tenant owns a workspace, which agents a tenant has, and how it wants recall done: from nexus.toml."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._slugs: dict[uuid.UUID, str] = {}
        self._agents: dict[uuid.UUID, tuple[Agent, ...]] = {}

    def workspace(self, platform: str, name: str) -> Workspace:
        """The workspace of a platform and its tenant: the one that nexus.toml names, else one of its own."""
        slug = self._settings.tenant_of(name) or name
        id = tenant_id(slug)
        self._slugs[id] = slug
        return Workspace(id, slug, platform, name)

    def agents(self, tenant: uuid.UUID) -> tuple[Agent, ...]:
        """The configured agents, with the ids that they have in a tenant."""
        if tenant not in self._agents:
            self._agents[tenant] = tuple(_agent(entry, tenant) for entry in self._settings.agents)
        return self._agents[tenant]

    def agents_by_id(self, tenant: uuid.UUID) -> Mapping[uuid.UUID, Agent]:
        """The same, by id."""
        return {agent.id: agent for agent in self.agents(tenant)}

    def retrieval(self, tenant: uuid.UUID) -> Retrieval:
        """How recall is done for a tenant."""
        chosen = self._settings.retrieval_of(self._slugs.get(tenant, ""))
        return Retrieval(chosen.strategy, chosen.top_k, chosen.recall_tokens)


@dataclass(frozen=True, slots=True)
class App:
    """A running Nexus, as the doors and the jobs use it."""

    settings: Settings
    clock: Clock
    directory: Directory
    store: Database
    cache: RedisWorkingCache
    embedder: Embedder
    composer: Composer
    responder: Responder
    turns: TurnWorker
    indexer: Indexer
    locks: ProcessLocks
    tiers: SummaryTiers
    ledger: JobLedger
    backup: DatabaseBackup
    forgetting: list[Callable[[], None]] = field(default_factory=list)  # who is told that something was forgotten
    extractions: ExtractionWorker | None = None

    async def receive(self, workspace: Workspace, batch: Sequence[Incoming], *, answer: bool = True) -> Received:
        """Store a batch of messages; answers and indexing start behind it (see composer.ingest.receive)."""
        received = await receiving.receive(
            self.store,
            self.cache,
            workspace,
            self.directory.agents(workspace.tenant_id),
            batch,
            process=self.locks.number,
            answer=answer,
            now=self.clock.now(),
        )
        for turn in received.turns:
            self.turns.start(turn)
        if answer and received.new:
            self.indexer.due(workspace.tenant_id)
        return received

    async def forgotten(self, workspace: Workspace, receipt: Receipt) -> None:
        """Let the cache forget too; a cache that is down holds views of an older version, which nobody uses."""
        self.indexer.due(workspace.tenant_id)
        for told in self.forgetting:
            told()
        clear_chunk_caches()
        try:
            await self.cache.drop(sorted(receipt.conversations))
        except Unavailable:
            logger.warning("working.cache_unavailable", conversations=len(receipt.conversations))


def _agent(entry: AgentSettings, tenant: uuid.UUID) -> Agent:
    return Agent(
        agent_id(tenant, entry.slug),
        entry.slug,
        entry.name,
        entry.persona,
        entry.model or "",
        entry.window,
        entry.system_role,
        entry.reply_tokens,
        entry.images and bool(entry.model),  # the offline model sees nothing
    )


def extraction_of(settings: Settings) -> Extraction:
    """How memories are drawn from talk. Raises Misconfigured when that needs a model and none is set."""
    modelled = any(agent.model for agent in settings.agents) and bool(
        settings.openai_base_url or settings.openai_api_key
    )
    if settings.extraction == "mem0" and not modelled:
        raise Misconfigured(
            "NEXUS_EXTRACTION is mem0, which needs a model: set NEXUS_MODEL and its API, or use pattern."
        )
    if settings.extraction == "auto":
        return Extraction.MEM0 if modelled else Extraction.PATTERN
    return Extraction(settings.extraction)


def extractor_of(settings: Settings, embedder: Embedder, model: ChatModel) -> Mem0Extractor:
    """Mem0 over the model of the first agent that has one."""
    entry = next(agent for agent in settings.agents if agent.model)
    asked = replace(_agent(entry, uuid.UUID(int=0)), reply_tokens=max(entry.reply_tokens, EXTRACTION_TOKENS))

    async def ask(messages: Sequence[ChatMessage]) -> str:
        return "".join([chunk.text async for chunk in model.stream(asked, messages)])

    return Mem0Extractor(embedder, ask, partial(quiet_mem0, settings.home), settings.model_timeout * 2)


def embedder_of(settings: Settings) -> MiniLM | OpenAIEmbedder:
    """The configured embedder. Raises Misconfigured when it needs an API and none is set."""
    if settings.embedder == "minilm":
        return MiniLM()
    if settings.openai_base_url is None and settings.openai_api_key is None:
        raise Misconfigured(
            f"NEXUS_EMBEDDER is {settings.embedder}, which needs an API: set NEXUS_OPENAI_BASE_URL, or use minilm."
        )
    return OpenAIEmbedder(settings.openai_base_url or DEFAULT_BASE_URL, _key(settings), settings.embedder)


def _key(settings: Settings) -> str:
    return "" if settings.openai_api_key is None else settings.openai_api_key.get_secret_value()


def chat_of(settings: Settings) -> ModelRouter:
    """The configured chat API, and the offline model beside it."""
    api = None
    if settings.openai_base_url is not None or settings.openai_api_key is not None:
        api = OpenAIChat(settings.openai_base_url or DEFAULT_BASE_URL, _key(settings), settings.model_timeout)
    return ModelRouter(api, OfflineModel())


async def _load(embedder: LoadableEmbedder, settings: Settings) -> None:
    """Read what is large from disk while the servers start."""
    await asyncio.gather(embedder.load(), asyncio.to_thread(_load_tokenizers, settings))


def _load_tokenizers(settings: Settings) -> None:
    """Read the agents' token tables while the servers start: each takes 0.2 s, which the first answer would wait.
    A word that is no token of its own makes a table whole."""
    for agent in settings.agents:
        tokenizer_for(agent.model or "").count("zxqvwkjq")


async def start_servers(settings: Settings, servers: EmbeddedServers) -> Servers:
    """Where the stores are: at the configured URLs, else on servers of our own in the data folder."""
    own_database, own_cache = settings.database_url is None, settings.redis_url is None
    started = Servers("", "")
    if own_database or own_cache:
        starting = asyncio.create_task(
            asyncio.to_thread(partial(servers.start, postgres=own_database, valkey=own_cache))
        )
        try:
            started = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread goes on. Whoever stops the servers next must find all that it launched.
            servers.give_up()
            await asyncio.gather(starting, return_exceptions=True)
            raise
    return Servers(settings.database_url or started.database_url, settings.redis_url or started.redis_url)


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    clock: Clock | None = None,
    model: ChatModel | None = None,
    embedder: LoadableEmbedder | None = None,
    index: bool = True,
) -> AsyncIterator[App]:
    """Start everything, migrated and checked, and stop it again.

    `clock`, `model` and `embedder` stand in for the configured ones. `index` False leaves indexing to
    whoever calls `catch_up`. Raises Unavailable or Misconfigured with one sentence; then nothing is left running.
    """
    async with AsyncExitStack() as stack:
        servers = EmbeddedServers(settings.home)
        stack.push_async_callback(asyncio.to_thread, servers.stop)
        embedder = embedder or embedder_of(settings)
        loading = asyncio.create_task(_load(embedder, settings))
        stack.callback(loading.cancel)
        where = await start_servers(settings, servers)
        await apply_migrations(where.database_url)
        database = await Database.open(where.database_url)
        stack.push_async_callback(database.close)
        cache = RedisWorkingCache(where.redis_url)
        stack.push_async_callback(cache.close)
        locks = ProcessLocks(where.database_url, secrets.randbits(62))
        stack.push_async_callback(locks.close)
        await locks.open()
        await loading
        await database.require_embedder(embedder.name, embedder.width)
        directory, time = Directory(settings), clock or SystemClock()
        chat, tokenizer, extraction = model or chat_of(settings), _tokenizer, extraction_of(settings)
        summariser = Summariser(embedder, chat)
        compactor = Compactor(database, summariser)
        composer = Composer(database, cache, embedder, tokenizer, directory.retrieval, compactor)
        calm = InteractivePriority()
        responder = Responder(database, cache, composer, chat, tokenizer, time, calm, ImageLoader())
        indexer = Indexer(database, embedder, time, calm, extraction, erased=clear_chunk_caches)
        turns = TurnWorker(database, locks, responder, directory.agents_by_id, indexer.due, calm)
        extractions = None
        if extraction is Extraction.MEM0:
            extractor = extractor_of(settings, embedder, chat)
            stack.push_async_callback(extractor.close)
            extractions = ExtractionWorker(database, extractor, time, uuid.uuid4, indexer.due)
        tiers = SummaryTiers(database, summariser, lambda agent: tokenizer_for(agent.model if agent else ""))
        ledger, backup = JobLedger(database), DatabaseBackup(where.database_url)
        app = App(
            settings,
            time,
            directory,
            database,
            cache,
            embedder,
            composer,
            responder,
            turns,
            indexer,
            locks,
            tiers,
            ledger,
            backup,
            extractions=extractions,
        )
        stack.push_async_callback(app.turns.stop)
        if index and extractions is not None:
            stack.push_async_callback(_cancelled, asyncio.create_task(extractions.run()))
        if index:
            stack.push_async_callback(_cancelled, asyncio.create_task(app.indexer.run()))
        if settings.database_url is None or settings.redis_url is None:
            stack.push_async_callback(_cancelled, asyncio.create_task(_revive(settings, servers)))
        yield app


def _tokenizer(agent: Agent) -> Tokenizer:
    return tokenizer_for(agent.model)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _revive(settings: Settings, servers: EmbeddedServers) -> None:
    """Start servers of our own again that have gone down, so that everything goes on without a restart."""
    while True:
        await asyncio.sleep(REVIVE_EVERY)
        try:
            await start_servers(settings, servers)
        except Unavailable as error:
            logger.warning("servers.down", error=str(error))


async def migrate(settings: Settings) -> list[str]:
    """Bring the schema of the configured database up to date; the names of the steps taken."""
    async with Doctor(settings) as inspection:
        await inspection.servers()
        return await apply_migrations(inspection.where.database_url)


async def backup(settings: Settings, path: Path, now: datetime) -> Manifest:
    """Write a backup of the configured database to a file; whatever runs on it goes on."""
    async with Doctor(settings) as inspection:
        await inspection.servers()
        await apply_migrations(inspection.where.database_url)
        return await DatabaseBackup(inspection.where.database_url).write(path, now)


async def restore(settings: Settings, path: Path) -> Manifest:
    """Fill the configured database, which must be empty, from a backup."""
    async with Doctor(settings) as inspection:
        await inspection.servers()
        return await DatabaseBackup(inspection.where.database_url).restore(path)


async def reembed(settings: Settings, progress: Callable[[int, int], None]) -> ReembedStatus:
    """Bring the stored vectors over to the configured embedder, while whatever runs goes on; what is stored then.

    Raises BadInput (nothing to do), Refused (another process is at it), Unavailable (run it again later).
    """
    async with Doctor(settings) as inspection:
        await inspection.servers()
        await apply_migrations(inspection.where.database_url)
        embedder = embedder_of(settings)
        await embedder.load()
        database = await Database.open(inspection.where.database_url, connections=2)
        try:
            database.embeds_with(embedder.name, embedder.width)
            vectors = PostgresReembedding(inspection.where.database_url, database)
            await reembedding.reembed(vectors, database, embedder, progress)
            return await vectors.status()
        finally:
            await database.close()


async def reembed_status(settings: Settings) -> ReembedStatus:
    """How far a change of embedder is."""
    async with Doctor(settings) as inspection:
        await inspection.servers()
        await apply_migrations(inspection.where.database_url)
        database = await Database.open(inspection.where.database_url, connections=1)
        try:
            return await PostgresReembedding(inspection.where.database_url, database).status()
        finally:
            await database.close()


class Doctor:
    """What `nexus doctor` looks at, each part on its own. Every look returns a sentence or raises."""

    def __init__(self, settings: Settings) -> None:
        self.where = Servers("", "")
        self._settings = settings
        self._servers = EmbeddedServers(settings.home)

    async def __aenter__(self) -> Self:
        """Nothing is started before it is looked at."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave servers of our own."""
        await asyncio.to_thread(self._servers.stop)

    async def servers(self) -> str:
        """Whether there are servers at all."""
        self.where = await start_servers(self._settings, self._servers)
        own = [
            n for n, url in (("Postgres", self._settings.database_url), ("Valkey", self._settings.redis_url)) if not url
        ]
        return f"{' and '.join(own)} of our own in {self._settings.home}" if own else "the configured ones"

    async def database(self) -> str:
        """Whether the database answers, and which it is."""
        return await describe(self.where.database_url)

    async def pending(self) -> list[str]:
        """The migrations that are not applied yet; applies none."""
        return await pending_migrations(self.where.database_url)

    async def separation(self) -> str:
        """Whether the service's role sees no row without naming a tenant."""
        database = await Database.open(self.where.database_url, connections=1)
        try:
            return await database.check_separation()
        finally:
            await database.close()

    async def restored(self) -> str | None:
        """What the database was restored from, if it was."""
        return await DatabaseBackup(self.where.database_url).restored()

    async def cache(self) -> str:
        """Whether Redis answers."""
        cache = RedisWorkingCache(self.where.redis_url)
        try:
            return await cache.ping()
        finally:
            await cache.close()

    async def embedder(self) -> str:
        """Whether the embedder works, and fits the stored vectors."""
        embedder = embedder_of(self._settings)
        await embedder.load()
        await embedder.embed(["ready"])
        if self.where.database_url and not await pending_migrations(self.where.database_url):
            database = await Database.open(self.where.database_url, connections=1)
            try:
                await database.require_embedder(embedder.name, embedder.width)
            finally:
                await database.close()
        return f"{embedder.name}, {embedder.width} dimensions"

    async def model(self, entry: AgentSettings) -> str:
        """Whether the model of an agent answers; it is asked for one word."""
        if not entry.model:
            return "offline: set NEXUS_OPENAI_BASE_URL, NEXUS_OPENAI_API_KEY and NEXUS_MODEL for real answers"
        agent = replace(_agent(entry, uuid.UUID(int=0)), reply_tokens=16)
        async for _ in chat_of(self._settings).stream(agent, [ChatMessage("user", "Answer with the word: ready")]):
            pass
        return f"{entry.model} answers"

    async def extraction(self) -> str:
        """How memories are drawn from talk, and what waits for it. Raises Unavailable when something is parked."""
        mode = extraction_of(self._settings)
        database = await Database.open(self.where.database_url, connections=1)
        try:
            waiting = parked = 0
            why = ""
            for tenant, _ in await database.tenants():
                async with database.transaction(tenant, snapshot=True) as tx:
                    more, stuck, error = await tx.memories.backlog()
                    waiting, parked, why = waiting + more, parked + stuck, error or why
        finally:
            await database.close()
        if parked:
            raise Unavailable(
                f"{parked:,} conversations are parked after {MAX_ATTEMPTS} failures ({why}) "
                "The next start of nexus run tries them again."
            )
        return f"by {mode}; {waiting:,} messages wait for it"

    async def backlog(self) -> str:
        """How much is still to be indexed."""
        database = await Database.open(self.where.database_url, connections=1)
        try:
            unindexed = unembedded = 0
            tenants = await database.tenants()
            for tenant, _ in tenants:
                async with database.transaction(tenant, snapshot=True) as tx:
                    more, vectors = await tx.recall.backlog()
                    unindexed, unembedded = unindexed + more, unembedded + vectors
        finally:
            await database.close()
        return f"{len(tenants)} tenants; {unindexed:,} messages to index, {unembedded:,} items to embed"

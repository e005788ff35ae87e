"""The composition root: builds a running Nexus from its settings."""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import structlog

from composer.app import App
from composer.audit.log import AuditLog
from composer.credentials.last_use import LastUse
from composer.credentials.resolver import Resolver
from composer.entries.answering import EntryAnswerer
from composer.entries.search import EntrySearch
from composer.errors import Unavailable, for_operator
from composer.gateway.learning import GatewayLearner, LearningRules
from composer.gateway.memory import GatewayMemory
from composer.gateway.metering import GatewayMeter
from composer.ingest.tenants import TenantDirectory, configured_prices
from composer.ingest.voice_notes import VoiceNotes
from composer.memory.extraction import BatchRules, ExtractionWorker
from composer.memory.index import Extraction
from composer.memory.indexer import Indexer
from composer.model import Agent
from composer.ports.clock import Clock
from composer.ports.models import ChatModel, Embedder, Tokenizer, ToolModel
from composer.ports.observer import NoObserver, Observer
from composer.repositories.audit import AuditSigner
from composer.repositories.job_ledger import JobLedger
from composer.scheduled.digests import DueDigests
from composer.scheduled.due_posts import DuePosts
from composer.scheduled.quotas import QuotaNotices
from composer.scheduled.refusals import RefusedReminders
from composer.scheduled.reminders import DueReminders
from composer.settings import Settings
from composer.signals import ErasureSignal, InteractivePriority, end_tasks
from composer.stores.audit_keys import AuditHeadsFile, AuditKeyRing
from composer.stores.backup import DatabaseBackup
from composer.stores.clock import SystemClock
from composer.stores.configured import (
    Addresses,
    configured_chat_model,
    configured_embedder,
    configured_extraction,
    configured_extractor,
    configured_servers,
    configured_transcriber,
    extraction_model,
    extraction_notice,
    start_servers,
)
from composer.stores.embedded.servers import EmbeddedServers
from composer.stores.installation_keys import key_ring
from composer.stores.mem0_extraction import Mem0Extractor
from composer.stores.postgres import PostgresDatabase
from composer.stores.process_locks import PostgresProcessLocks
from composer.stores.schema import prepare
from composer.stores.tokens import clear_chunk_caches, tokenizer_for
from composer.stores.working_cache import RedisWorkingCache
from composer.summaries.compaction import Compactor
from composer.summaries.summariser import Summariser
from composer.summaries.tiers import SummaryTiers
from composer.turn.answers import AnswerStore
from composer.turn.asking import ModelAsker
from composer.turn.compose import Composer
from composer.turn.drafting import Drafter
from composer.turn.image_loader import ImageLoader
from composer.turn.reading import Reader
from composer.turn.respond import Responder
from composer.turn.tool_servers import ToolServers
from composer.turn.tools import MemoryTools
from composer.turn.worker import TurnWorker
from composer.usage.embedding import EmbeddingMeter
from composer.usage.ledger import CallLedger, UsageRules
from composer.usage.meter import Meter
from composer.usage.operations import OperationMeter
from composer.usage.transcription import TranscriptionMeter

logger = structlog.get_logger()

SERVER_CHECK_SECONDS: Final = 3.0  # between checks of embedded servers


class LoadableEmbedder(Embedder, Protocol):
    """An embedder that is loaded before its first use."""

    async def load(self) -> None:
        """Load the model. Raises Unavailable or Misconfigured."""
        ...


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    clock: Clock | None = None,
    model: ChatModel | None = None,
    embedder: LoadableEmbedder | None = None,
    observer: Observer | None = None,
    index: bool = True,
) -> AsyncIterator[App]:
    """Start everything over a migrated database, and stop it at the end, in the opposite order.

    `clock`, `model` and `embedder` replace the configured ones; `observer` is told what the process does. With `index`
    False, call `indexer.catch_up` to index.
    Raises Unavailable or Misconfigured with one sentence; then nothing is left running.
    """
    async with AsyncExitStack() as stack:
        servers = EmbeddedServers(settings.home)
        stack.push_async_callback(asyncio.to_thread, servers.stop)
        base = await _opened(
            stack,
            settings,
            servers,
            embedder or configured_embedder(settings),
            clock or SystemClock(),
            observer or NoObserver(),
        )
        app = _built(stack, base, model)
        stack.push_async_callback(app.voice_notes.stop)
        stack.push_async_callback(app.turns.stop)
        if index and app.extractions is not None:
            stack.push_async_callback(_cancelled, asyncio.create_task(app.extractions.run()))
        if index:
            stack.push_async_callback(_cancelled, asyncio.create_task(app.indexer.run()))
            stack.push_async_callback(_cancelled, asyncio.create_task(app.gateway_learner.run()))
        if settings.database_url is None or settings.redis_url is None:
            stack.push_async_callback(_cancelled, asyncio.create_task(_restart_servers(settings, servers)))
        yield app


@dataclass(frozen=True, slots=True)
class _Foundation:
    """What every part stands on: the settings, what is open on the servers, the keys and the loaded embedder."""

    settings: Settings
    clock: Clock
    observer: Observer
    addresses: Addresses
    owner_known: bool  # whether this process has the login of the database's owner
    keys: AuditKeyRing
    database: PostgresDatabase
    cache: RedisWorkingCache
    locks: PostgresProcessLocks
    embedder: LoadableEmbedder
    directory: TenantDirectory


async def _opened(
    stack: AsyncExitStack,
    settings: Settings,
    servers: EmbeddedServers,
    embedder: LoadableEmbedder,
    clock: Clock,
    observer: Observer,
) -> _Foundation:
    """Start the servers, migrate the database and connect; the embedder is loaded meanwhile."""
    loading = asyncio.create_task(_load(embedder, settings))
    stack.callback(loading.cancel)
    addresses = await start_servers(settings, servers)
    database_url = await prepare(addresses.database, addresses.owner)
    keys = await key_ring(settings, database_url)
    database = await PostgresDatabase.open(database_url, signer=AuditSigner(keys, clock, uuid.uuid4))
    stack.push_async_callback(database.close)
    cache = RedisWorkingCache(addresses.redis)
    stack.push_async_callback(cache.close)
    locks = PostgresProcessLocks(database_url, secrets.randbits(62))
    stack.push_async_callback(locks.close)
    await locks.open()
    await loading
    await database.require_embedder(embedder.name, embedder.width)
    return _Foundation(
        settings=settings,
        clock=clock,
        observer=observer,
        addresses=addresses,
        owner_known=addresses.owner is not None or database_url != addresses.database,
        keys=keys,
        database=database,
        cache=cache,
        locks=locks,
        embedder=embedder,
        directory=await TenantDirectory.load(settings, database),
    )


def _built(stack: AsyncExitStack, base: _Foundation, model: ChatModel | None) -> App:
    """Build every part from those above it. Nothing runs yet."""
    settings, clock, database, directory = base.settings, base.clock, base.database, base.directory
    models = _metered_models(base, model)
    extraction = configured_extraction(settings)
    reading = _reading(base, models)
    priority = InteractivePriority()
    indexer = Indexer(
        database,
        models.embedder,
        clock,
        priority,
        extraction,
        quarantined=directory.quarantine,
        erased=clear_chunk_caches,
    )
    answering = _answering(stack, base, models, reading, indexer, priority)
    extractor = _extractor(stack, settings, models) if extraction is Extraction.MEM0 else None
    operations = OperationMeter(database, clock, directory.zone, directory.plan)
    stack.push_async_callback(operations.close)
    last_use = LastUse(database, clock)
    stack.push_async_callback(last_use.settle)
    learning = LearningRules(extraction, extractor, directory.zone, directory.plan, indexer.due)
    entry_search = EntrySearch(database, models.embedder, directory.retrieval, directory.zone, clock)
    return App(
        settings=settings,
        clock=clock,
        directory=directory,
        database=database,
        cache=base.cache,
        redis_url=base.addresses.redis,
        embedder=base.embedder,
        composer=reading.composer,
        drafter=answering.drafter,
        responder=answering.responder,
        turns=answering.turns,
        voice_notes=answering.voice_notes,
        tool_servers=answering.tool_servers,
        due_posts=_due_posts(base, answering.turns),
        entry_search=entry_search,
        entry_answerer=EntryAnswerer(models.chat, _tokenizer),
        gateway_meter=GatewayMeter(models.calls, tokenizer_for),
        gateway_memory=GatewayMemory(database, entry_search, clock),
        gateway_learner=GatewayLearner(database, operations, clock, uuid.uuid4, learning),
        operations=operations,
        indexer=indexer,
        locks=base.locks,
        tiers=SummaryTiers(database, reading.summariser, lambda agent: tokenizer_for(agent.model if agent else "")),
        ledger=JobLedger(database),
        backup=DatabaseBackup(base.addresses.for_owner, base.keys),
        may_back_up=base.owner_known,
        erasures=ErasureSignal(),
        audit=AuditLog(database, base.keys, AuditHeadsFile(settings.home), clock),
        credentials=Resolver(database, directory, settings, clock, last_use),
        observer=base.observer,
        extractions=None if extractor is None else _extraction_worker(base, extractor, indexer),
        notice=extraction_notice(settings),
    )


@dataclass(frozen=True, slots=True)
class _Models:
    """The models that are asked, behind the meters that record each call in one ledger."""

    calls: CallLedger
    chat: Meter
    embedder: EmbeddingMeter
    takes_tools: Callable[[Agent], bool]


def _metered_models(base: _Foundation, model: ChatModel | None) -> _Models:
    settings, directory = base.settings, base.directory
    chat = model or configured_chat_model(settings)
    rules = UsageRules(configured_prices(settings), directory.budgets, directory.zone)
    calls = CallLedger(base.database, base.clock, uuid.uuid4, rules, base.observer)
    uses_models = model is not None or settings.has_model_api
    return _Models(
        calls=calls,
        chat=Meter(calls, chat, tokenizer_for, base.clock, uses_models=uses_models),
        embedder=EmbeddingMeter(base.embedder, calls, tokenizer_for),
        takes_tools=partial(_takes_tools, chat),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """What makes a prompt of what is stored."""

    reader: Reader
    summariser: Summariser
    composer: Composer


def _reading(base: _Foundation, models: _Models) -> _Reading:
    directory = base.directory
    summariser = Summariser(models.embedder, models.chat, directory.zone)
    reader = Reader(
        base.database,
        base.cache,
        models.embedder,
        _tokenizer,
        directory.retrieval,
        directory.zone,
        directory.agents,
    )
    return _Reading(reader, summariser, Composer(reader, Compactor(base.database, summariser)))


@dataclass(frozen=True, slots=True)
class _Answering:
    """What answers turns."""

    drafter: Drafter
    responder: Responder
    turns: TurnWorker
    voice_notes: VoiceNotes
    tool_servers: ToolServers


def _answering(
    stack: AsyncExitStack,
    base: _Foundation,
    models: _Models,
    reading: _Reading,
    indexer: Indexer,
    priority: InteractivePriority,
) -> _Answering:
    settings, clock, database, directory = base.settings, base.clock, base.database, base.directory
    tool_servers = configured_servers(settings, directory, clock, base.observer)
    stack.push_async_callback(tool_servers.close)
    tools = MemoryTools(
        database, reading.reader, _tokenizer, models.takes_tools, clock, directory.zone, tool_servers.tools
    )
    speech = configured_transcriber(settings)
    if speech is not None:
        stack.push_async_callback(speech.close)
    metered_speech = None if speech is None else TranscriptionMeter(speech, models.calls)
    voice_notes = VoiceNotes(database, metered_speech, indexer.due, base.locks)
    asker = ModelAsker(models.chat, tools, priority)
    drafter = Drafter(database, reading.composer, asker, ImageLoader(), voice_notes)
    responder = Responder(database, drafter, AnswerStore(database, base.cache, _tokenizer, clock), clock)
    turns = TurnWorker(
        database,
        base.locks,
        responder,
        directory.agents_by_id,
        indexer.due,
        priority,
        base.observer,
        concurrent=settings.concurrent_answers,
    )
    return _Answering(drafter, responder, turns, voice_notes, tool_servers.tools)


def _extractor(stack: AsyncExitStack, settings: Settings, models: _Models) -> Mem0Extractor:
    extractor = configured_extractor(settings, models.embedder, models.chat)
    stack.push_async_callback(extractor.close)
    return extractor


def _extraction_worker(base: _Foundation, extractor: Mem0Extractor, indexer: Indexer) -> ExtractionWorker:
    settings, directory = base.settings, base.directory
    batches = BatchRules(settings.extraction_batch, tokenizer_for(extraction_model(settings)), directory.zone)
    return ExtractionWorker(
        base.database, extractor, base.clock, uuid.uuid4, indexer.due, directory.quarantine, batches
    )


def _due_posts(base: _Foundation, turns: TurnWorker) -> DuePosts:
    locks, directory = base.locks, base.directory
    return DuePosts(
        base.database,
        turns,
        base.clock,
        RefusedReminders(locks, directory.agents),
        DueReminders(locks, directory.agents, directory.zone),
        DueDigests(locks, directory.agents, directory.zone),
        QuotaNotices(locks, directory.agents),
    )


async def _load(embedder: LoadableEmbedder, settings: Settings) -> None:
    """Load the large files while the servers start."""
    await asyncio.gather(embedder.load(), asyncio.to_thread(_load_tokenizers, settings))


def _load_tokenizers(settings: Settings) -> None:
    """Load the agents' token tables: each takes 0.2 s, for which the first answer would wait. Counting a word that is
    no token of its own loads the whole table."""
    for agent in settings.agents:
        tokenizer_for(agent.model or "").count("zxqvwkjq")


def _takes_tools(model: ChatModel, agent: Agent) -> bool:
    return isinstance(model, ToolModel) and model.takes_tools(agent)


def _tokenizer(agent: Agent) -> Tokenizer:
    return tokenizer_for(agent.model)


async def _cancelled(task: asyncio.Task[None]) -> None:
    await end_tasks([task])


async def _restart_servers(settings: Settings, servers: EmbeddedServers) -> None:
    """Start embedded servers again that have stopped, so that Nexus need not be restarted."""
    while True:
        await asyncio.sleep(SERVER_CHECK_SECONDS)
        try:
            await start_servers(settings, servers)
        except Unavailable as error:
            logger.warning("servers.down", error=for_operator(error))

"""The composition root: builds a running Nexus from its settings."""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import structlog

from composer.audit.log import AuditLog
from composer.credentials.last_use import LastUse
from composer.credentials.resolver import Resolver
from composer.entries.answering import EntryAnswerer
from composer.entries.search import EntrySearch
from composer.errors import Unavailable, for_operator
from composer.gateway.learning import GatewayLearner, LearningRules
from composer.gateway.memory import GatewayMemory
from composer.gateway.metering import GatewayMeter
from composer.ingest import receive as receiving
from composer.ingest.receive import Received
from composer.ingest.tenants import TenantDirectory, configured_prices
from composer.ingest.voice_notes import VoiceNotes, untranscribed
from composer.memory.extraction import BatchRules, ExtractionWorker
from composer.memory.forget import Receipt
from composer.memory.index import Extraction
from composer.memory.indexer import Indexer
from composer.model import Agent, Incoming
from composer.people.export_files import remove_exports
from composer.ports.clock import Clock
from composer.ports.models import ChatModel, Embedder, Tokenizer, ToolModel
from composer.ports.observer import NoObserver, Observer
from composer.repositories.audit import AuditSigner
from composer.repositories.imports import ImportRun
from composer.repositories.job_ledger import JobLedger
from composer.scheduled.digests import DueDigests
from composer.scheduled.due_posts import DuePosts
from composer.scheduled.quotas import QuotaNotices
from composer.scheduled.refusals import RefusedReminders
from composer.scheduled.reminders import DueReminders
from composer.server_urls import ServerUrl
from composer.settings import Settings
from composer.signals import ErasureSignal, InteractivePriority, end_tasks
from composer.stores.audit_keys import AuditHeadsFile
from composer.stores.backup import DatabaseBackup
from composer.stores.clock import SystemClock
from composer.stores.configured import (
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
from composer.workspace import Workspace

logger = structlog.get_logger()

SERVER_CHECK_SECONDS: Final = 3.0  # between checks of embedded servers


class LoadableEmbedder(Embedder, Protocol):
    """An embedder that is loaded before its first use."""

    async def load(self) -> None:
        """Load the model. Raises Unavailable or Misconfigured."""
        ...


@dataclass(frozen=True, slots=True)
class App:
    """A running Nexus, as adapters and jobs use it."""

    settings: Settings
    clock: Clock
    directory: TenantDirectory
    database: PostgresDatabase
    cache: RedisWorkingCache
    redis_url: ServerUrl  # of the cache, which also counts requests of the web port
    embedder: Embedder
    composer: Composer
    drafter: Drafter
    responder: Responder
    turns: TurnWorker
    voice_notes: VoiceNotes
    tool_servers: ToolServers
    due_posts: DuePosts
    entry_search: EntrySearch
    entry_answerer: EntryAnswerer
    gateway_meter: GatewayMeter
    gateway_memory: GatewayMemory
    gateway_learner: GatewayLearner
    operations: OperationMeter
    indexer: Indexer
    locks: PostgresProcessLocks
    tiers: SummaryTiers
    ledger: JobLedger
    backup: DatabaseBackup
    may_back_up: bool  # whether this process has the login of the database's owner
    erasures: ErasureSignal
    audit: AuditLog
    credentials: Resolver
    observer: Observer
    extractions: ExtractionWorker | None = None
    notice: str = ""  # of what the background work does, for whoever starts it

    async def receive(
        self, workspace: Workspace, batch: Sequence[Incoming], *, answer: bool = True, run: ImportRun | None = None
    ) -> Received:
        """Store a batch of messages, and start answering and indexing them (see composer.ingest.receive)."""
        received = await receiving.receive(
            self.database,
            self.cache,
            workspace,
            self.directory.agents(workspace.tenant_id),
            batch,
            process=self.locks.number,
            answer=answer,
            transcribe=answer and self.voice_notes.are_transcribed,
            run=run,
            now=self.clock.now(),
        )
        if answer:
            self._transcribe(workspace, batch, received)
        for turn in received.turns:
            self.turns.start(turn, received.questions[turn.message_id])
        if answer and received.new:
            self.indexer.due(workspace.tenant_id)
        return received

    def _transcribe(self, workspace: Workspace, batch: Sequence[Incoming], received: Received) -> None:
        """Begin to write down the voice notes among the messages of a batch that are stored now."""
        if not self.voice_notes.are_transcribed or not any(untranscribed(each.attachments) for each in batch):
            return
        for message in received.new:
            self.voice_notes.start(workspace.tenant_id, message, batch[0].adapter)

    async def forgotten(self, tenant: uuid.UUID, receipt: Receipt) -> None:
        """Drop the cached views of an erasure's conversations, delete the terminal's exports of its owners, schedule
        indexing and wake retractions. A cache that is down is told later: its views have an old version, which no
        reader uses.
        """
        try:
            remove_exports(self.settings.home, receipt.owners)
        except OSError as error:
            logger.warning("exports.not_deleted", error=str(error))
        self.indexer.due(tenant)
        self.erasures.emit()
        clear_chunk_caches()
        try:
            await self.cache.erase(sorted(receipt.conversations))
        except Unavailable:
            logger.warning("working.cache_unavailable", conversations=len(receipt.conversations))


async def _load(embedder: LoadableEmbedder, settings: Settings) -> None:
    """Load the large files while the servers start."""
    await asyncio.gather(embedder.load(), asyncio.to_thread(_load_tokenizers, settings))


def _load_tokenizers(settings: Settings) -> None:
    """Load the agents' token tables: each takes 0.2 s, for which the first answer would wait. Counting a word that is
    no token of its own loads the whole table."""
    for agent in settings.agents:
        tokenizer_for(agent.model or "").count("zxqvwkjq")


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
    """Start everything over a migrated database, and stop it at the end.

    `clock`, `model` and `embedder` replace the configured ones; `observer` is told what the process does. With `index`
    False, call `indexer.catch_up` to index.
    Raises Unavailable or Misconfigured with one sentence; then nothing is left running.
    """
    async with AsyncExitStack() as stack:
        servers = EmbeddedServers(settings.home)
        stack.push_async_callback(asyncio.to_thread, servers.stop)
        embedder = embedder or configured_embedder(settings)
        loading = asyncio.create_task(_load(embedder, settings))
        stack.callback(loading.cancel)
        where = await start_servers(settings, servers)
        database_url = await prepare(where.database, where.owner)
        watching = observer or NoObserver()
        time, keys = clock or SystemClock(), await key_ring(settings, database_url)
        database = await PostgresDatabase.open(database_url, signer=AuditSigner(keys, time, uuid.uuid4))
        stack.push_async_callback(database.close)
        cache = RedisWorkingCache(where.redis)
        stack.push_async_callback(cache.close)
        locks = PostgresProcessLocks(database_url, secrets.randbits(62))
        stack.push_async_callback(locks.close)
        await locks.open()
        await loading
        await database.require_embedder(embedder.name, embedder.width)
        directory = await TenantDirectory.load(settings, database)
        chat, tokenizer, extraction = (
            model or configured_chat_model(settings),
            _tokenizer,
            configured_extraction(settings),
        )
        rules = UsageRules(configured_prices(settings), directory.budgets, directory.zone)
        calls = CallLedger(database, time, uuid.uuid4, rules, watching)
        uses_models = model is not None or settings.has_model_api
        meter = Meter(calls, chat, tokenizer_for, time, uses_models=uses_models)
        embedding = EmbeddingMeter(embedder, calls, tokenizer_for)
        summariser = Summariser(embedding, meter, directory.zone)
        compactor = Compactor(database, summariser)
        reader = Reader(database, cache, embedding, tokenizer, directory.retrieval, directory.zone, directory.agents)
        composer = Composer(reader, compactor)
        priority = InteractivePriority()
        answers = AnswerStore(database, cache, tokenizer, time)
        tool_servers = configured_servers(settings, directory, time, watching)
        stack.push_async_callback(tool_servers.close)
        takes_tools = partial(_takes_tools, chat)
        tools = MemoryTools(database, reader, tokenizer, takes_tools, time, directory.zone, tool_servers.tools)
        indexer = Indexer(
            database,
            embedding,
            time,
            priority,
            extraction,
            quarantined=directory.quarantine,
            erased=clear_chunk_caches,
        )
        speech = configured_transcriber(settings)
        if speech is not None:
            stack.push_async_callback(speech.close)
        meter_of_speech = None if speech is None else TranscriptionMeter(speech, calls)
        voice_notes = VoiceNotes(database, meter_of_speech, indexer.due, locks)
        asker = ModelAsker(meter, tools, priority)
        drafter = Drafter(database, composer, asker, ImageLoader(), voice_notes)
        responder = Responder(database, drafter, answers, time)
        turns = TurnWorker(
            database,
            locks,
            responder,
            directory.agents_by_id,
            indexer.due,
            priority,
            watching,
            concurrent=settings.concurrent_answers,
        )
        extractions, extractor = None, None
        if extraction is Extraction.MEM0:
            extractor = configured_extractor(settings, embedding, meter)
            stack.push_async_callback(extractor.close)
            batches = BatchRules(settings.extraction_batch, tokenizer_for(extraction_model(settings)), directory.zone)
            extractions = ExtractionWorker(
                database, extractor, time, uuid.uuid4, indexer.due, directory.quarantine, batches
            )
        tiers = SummaryTiers(database, summariser, lambda agent: tokenizer_for(agent.model if agent else ""))
        operations = OperationMeter(database, time, directory.zone, directory.plan)
        stack.push_async_callback(operations.close)
        last_use = LastUse(database, time)
        stack.push_async_callback(last_use.settle)
        ledger, backup = JobLedger(database), DatabaseBackup(where.for_owner, keys)
        owner_known = where.owner is not None or database_url != where.database
        learning = LearningRules(extraction, extractor, directory.zone, directory.plan, indexer.due)
        entry_search = EntrySearch(database, embedding, directory.retrieval, directory.zone, time)
        app = App(
            settings=settings,
            clock=time,
            directory=directory,
            database=database,
            cache=cache,
            redis_url=where.redis,
            embedder=embedder,
            composer=composer,
            drafter=drafter,
            responder=responder,
            turns=turns,
            voice_notes=voice_notes,
            tool_servers=tool_servers.tools,
            due_posts=DuePosts(
                database,
                turns,
                time,
                RefusedReminders(locks, directory.agents),
                DueReminders(locks, directory.agents, directory.zone),
                DueDigests(locks, directory.agents, directory.zone),
                QuotaNotices(locks, directory.agents),
            ),
            entry_search=entry_search,
            entry_answerer=EntryAnswerer(meter, tokenizer),
            gateway_meter=GatewayMeter(calls, tokenizer_for),
            gateway_memory=GatewayMemory(database, entry_search, time),
            gateway_learner=GatewayLearner(database, operations, time, uuid.uuid4, learning),
            operations=operations,
            indexer=indexer,
            locks=locks,
            tiers=tiers,
            ledger=ledger,
            backup=backup,
            may_back_up=owner_known,
            erasures=ErasureSignal(),
            audit=AuditLog(database, keys, AuditHeadsFile(settings.home), time),
            credentials=Resolver(database, directory, settings, time, last_use),
            observer=watching,
            extractions=extractions,
            notice=extraction_notice(settings),
        )
        stack.push_async_callback(voice_notes.stop)
        stack.push_async_callback(app.turns.stop)
        if index and extractions is not None:
            stack.push_async_callback(_cancelled, asyncio.create_task(extractions.run()))
        if index:
            stack.push_async_callback(_cancelled, asyncio.create_task(app.indexer.run()))
            stack.push_async_callback(_cancelled, asyncio.create_task(app.gateway_learner.run()))
        if settings.database_url is None or settings.redis_url is None:
            stack.push_async_callback(_cancelled, asyncio.create_task(_restart_servers(settings, servers)))
        yield app


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

"""The parts of a running Nexus, each built from those before it. composer/app.py puts them together."""

import asyncio
import secrets
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import structlog

from composer.app.configured import configured_extractor, configured_servers
from composer.errors import Unavailable, for_operator
from composer.gateway.learning import GatewaySource
from composer.ingest.file_texts import FileTexts
from composer.ingest.tenants import TenantDirectory, configured_prices
from composer.memory.extraction import BatchRules, ConversationSource
from composer.memory.indexer import Indexer
from composer.memory.learner import Learner
from composer.model import Agent
from composer.ports.audit import AuditKeys
from composer.ports.clock import Clock
from composer.ports.documents import DocumentReader
from composer.ports.models import ChatModel, Embedder, Tokenizer, ToolModel
from composer.ports.observer import Observer
from composer.ports.process_locks import PROCESS_NUMBERS, RANDOM_BITS
from composer.repositories.audit import AuditSigner
from composer.repositories.extraction_queue import ExtractionScope
from composer.repositories.gateway_exchanges import ExchangeOwner
from composer.settings import Settings
from composer.stores.audit_keys import AuditKeyRing
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.process_locks import PostgresProcessLocks
from composer.stores.database.schema import prepare
from composer.stores.database.working_cache import RedisWorkingCache
from composer.stores.documents.process import DocumentProcesses
from composer.stores.embedded.servers import EmbeddedServers
from composer.stores.installation_keys import key_ring
from composer.stores.models.configured import (
    Addresses,
    configured_chat_model,
    configured_embedder,
    configured_transcriber,
    extraction_model,
    start_servers,
)
from composer.stores.models.mem0_extraction import Mem0Extractor
from composer.stores.models.tokens import tokenizer_for
from composer.summaries.compaction import Compactor
from composer.summaries.summariser import Summariser
from composer.tasks.shares import Places
from composer.tasks.signals import InteractivePriority
from composer.turn.answers import AnswerStore
from composer.turn.asking import ModelAsker
from composer.turn.compose import Composer
from composer.turn.drafting import Drafter
from composer.turn.image_loader import ImageLoader
from composer.turn.memberships import Memberships
from composer.turn.reading import Reader
from composer.turn.respond import Responder
from composer.turn.scheduled.digests import DueDigests
from composer.turn.scheduled.due_posts import DuePosts
from composer.turn.scheduled.quotas import QuotaNotices
from composer.turn.scheduled.refusals import RefusedReminders
from composer.turn.scheduled.reminders import DueReminders
from composer.turn.tool_servers import ToolServers
from composer.turn.tools import MemoryTools
from composer.turn.used import UsedSources
from composer.turn.worker import TurnWorker
from composer.usage.embedding import EmbeddingMeter
from composer.usage.ledger import CallLedger, UsageRules
from composer.usage.meter import Meter
from composer.usage.transcription import TranscriptionMeter

logger = structlog.get_logger()

SERVER_CHECK_SECONDS: Final = 3.0  # between checks of embedded servers


class LoadableEmbedder(Embedder, Protocol):
    """An embedder that is loaded before its first use."""

    async def load(self) -> None:
        """Load the model. Raises Unavailable or Misconfigured."""
        ...


@dataclass(frozen=True, slots=True)
class Foundation:
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


async def open_foundation(
    stack: AsyncExitStack,
    settings: Settings,
    servers: EmbeddedServers,
    embedder: LoadableEmbedder | None,
    clock: Clock,
    observer: Observer,
) -> Foundation:
    """Start the servers, migrate the database and connect; the embedder is loaded meanwhile, if it is set. Else the
    database says which one it is. `stack` closes all of it.

    Raises Unavailable or Misconfigured.
    """
    if embedder is None and settings.embedder is not None:
        embedder = configured_embedder(settings)
    loading = asyncio.create_task(_load(embedder, settings))
    stack.callback(loading.cancel)
    addresses = await start_servers(settings, servers)
    database_url = await prepare(addresses.database, addresses.owner)
    keys = await key_ring(settings, database_url)
    database = await PostgresDatabase.open(database_url, signer=AuditSigner(keys, clock, uuid.uuid4))
    stack.push_async_callback(database.close)
    cache = RedisWorkingCache(addresses.redis)
    stack.push_async_callback(cache.close)
    locks = PostgresProcessLocks(database_url, PROCESS_NUMBERS << RANDOM_BITS | secrets.randbits(RANDOM_BITS))
    stack.push_async_callback(locks.close)
    await loading
    if embedder is None:
        embedder = configured_embedder(settings, await database.stored_embedder())
        await embedder.load()
    await database.require_embedder(embedder.name, embedder.width)
    return Foundation(
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


@dataclass(frozen=True, slots=True)
class Models:
    """The models that are asked, behind the meters that record each call in one ledger."""

    calls: CallLedger
    chat: Meter
    embedder: EmbeddingMeter
    takes_tools: Callable[[Agent], bool]


def build_models(base: Foundation, model: ChatModel | None) -> Models:
    """Build the meters over the configured models, or over `model`."""
    settings, directory = base.settings, base.directory
    chat = model or configured_chat_model(settings)
    rules = UsageRules(settings.known_models, configured_prices(settings), directory.budgets, directory.zone)
    calls = CallLedger(base.database, base.clock, uuid.uuid4, rules, base.observer)
    uses_models = model is not None or settings.has_model_api
    return Models(
        calls=calls,
        chat=Meter(
            calls, chat, tokenizer_for, base.clock, uses_models=uses_models, mark=partial(prompt_mark, base.keys)
        ),
        embedder=EmbeddingMeter(base.embedder, calls, tokenizer_for),
        takes_tools=partial(_takes_tools, chat),
    )


def prompt_mark(keys: AuditKeys, tenant: uuid.UUID) -> str:
    """What every prompt of a tenant begins with, and no other's: a provider keeps the beginnings of prompts for whoever
    uses the same key, and tells by its time and its count whether it knew one. It is secret, since who asks through the
    gateway writes the beginning themselves."""
    return f"[{keys.sign(b'prompts of ' + tenant.bytes)[:8].hex()}]\n"


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """What makes a prompt of what is stored."""

    reader: Reader
    summariser: Summariser
    composer: Composer


def build_reading(base: Foundation, models: Models, memberships: Memberships) -> PromptBuilder:
    """Build what reads the layers and composes prompts."""
    directory = base.directory
    summariser = Summariser(models.chat, directory.zone)
    reader = Reader(
        base.database,
        base.cache,
        models.embedder,
        agent_tokenizer,
        directory.retrieval,
        directory.zone,
        directory.agents,
        memberships,
    )
    return PromptBuilder(reader, summariser, Composer(reader, Compactor(base.database, summariser)))


@dataclass(frozen=True, slots=True)
class Answering:
    """What answers turns."""

    drafter: Drafter
    responder: Responder
    turns: TurnWorker
    file_texts: FileTexts
    documents: DocumentReader
    tool_servers: ToolServers


def build_answering(
    stack: AsyncExitStack,
    base: Foundation,
    models: Models,
    reading: PromptBuilder,
    indexer: Indexer,
    priority: InteractivePriority,
    memberships: Memberships,
) -> Answering:
    """Build what answers turns, from the tools that a model may call to the worker."""
    settings, clock, database, directory = base.settings, base.clock, base.database, base.directory
    tool_servers = configured_servers(stack, settings, directory, clock, base.observer)
    tools = MemoryTools(
        database,
        reading.reader,
        agent_tokenizer,
        models.takes_tools,
        clock,
        directory.zone,
        tool_servers,
        memberships,
    )
    speech = configured_transcriber(settings)
    if speech is not None:
        stack.push_async_callback(speech.close)
    metered_speech = None if speech is None else TranscriptionMeter(speech, models.calls)
    documents = DocumentProcesses()
    file_texts = FileTexts(database, documents, metered_speech, indexer.due, base.locks)
    asker = ModelAsker(models.chat, tools, priority)
    used_sources = UsedSources(models.embedder)
    drafter = Drafter(database, reading.composer, asker, ImageLoader(), file_texts, used_sources)
    store = AnswerStore(database, base.cache, agent_tokenizer, clock, used_sources)
    responder = Responder(database, drafter, store, clock, memberships)
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
    return Answering(drafter, responder, turns, file_texts, documents, tool_servers)


def build_extractor(stack: AsyncExitStack, settings: Settings, models: Models) -> Mem0Extractor:
    """Build what asks a model for memories."""
    extractor = configured_extractor(settings, models.embedder, models.chat)
    stack.push_async_callback(extractor.close)
    return extractor


def build_extraction(
    base: Foundation, extractor: Mem0Extractor, indexer: Indexer, places: Places
) -> Learner[ExtractionScope]:
    """Build what extracts memories from conversations in the background."""
    rules = BatchRules(base.settings.extraction_batch, tokenizer_for(extraction_model(base.settings)))
    source = ConversationSource(base.directory.quarantine, rules)
    return Learner(base.database, base.clock, uuid.uuid4, source, extractor, base.directory.zone, indexer.due, places)


def build_gateway_learner(
    base: Foundation, source: GatewaySource, extractor: Mem0Extractor | None, indexer: Indexer, places: Places
) -> Learner[ExchangeOwner]:
    """Build what learns from the gateway in the background."""
    return Learner(base.database, base.clock, uuid.uuid4, source, extractor, base.directory.zone, indexer.due, places)


def build_due_posts(base: Foundation, turns: TurnWorker) -> DuePosts:
    """Build what posts reminders, digests and notices when they are due."""
    directory = base.directory
    return DuePosts(
        base.database,
        turns,
        base.clock,
        RefusedReminders(directory.agents),
        DueReminders(directory.agents, directory.zone),
        DueDigests(directory.agents, directory.zone),
        QuotaNotices(directory.agents),
    )


async def _load(embedder: LoadableEmbedder | None, settings: Settings) -> None:
    """Load the large files while the servers start."""
    tables = asyncio.to_thread(_load_tokenizers, settings)
    await (tables if embedder is None else asyncio.gather(embedder.load(), tables))


def _load_tokenizers(settings: Settings) -> None:
    """Load the agents' token tables: each takes 0.2 s, for which the first answer would wait. Counting a word that is
    no token of its own loads the whole table."""
    for agent in settings.agents:
        tokenizer_for(agent.model or "").count("zxqvwkjq")


def _takes_tools(model: ChatModel, agent: Agent) -> bool:
    return isinstance(model, ToolModel) and model.takes_tools(agent)


def agent_tokenizer(agent: Agent) -> Tokenizer:
    """The tokenizer of an agent's model."""
    return tokenizer_for(agent.model)


async def restart_servers(settings: Settings, servers: EmbeddedServers) -> None:
    """Start embedded servers again that have stopped, so that Nexus need not be restarted."""
    while True:
        await asyncio.sleep(SERVER_CHECK_SECONDS)
        try:
            await start_servers(settings, servers)
        except Unavailable as error:
            logger.warning("servers.down", error=for_operator(error))

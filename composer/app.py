"""A running Nexus, as adapters and jobs use it (composer/composition.py builds it)."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from composer.audit.log import AuditLog
from composer.credentials.resolver import Resolver
from composer.entries.answering import EntryAnswerer
from composer.entries.search import EntrySearch
from composer.errors import Unavailable
from composer.gateway.learning import GatewayLearner
from composer.gateway.memory import GatewayMemory
from composer.gateway.metering import GatewayMeter
from composer.ingest import receive as receiving
from composer.ingest.receive import Received
from composer.ingest.tenants import TenantDirectory
from composer.ingest.voice_notes import VoiceNotes, untranscribed
from composer.memory.extraction import ExtractionWorker
from composer.memory.forget import Receipt
from composer.memory.indexer import Indexer
from composer.model import Incoming
from composer.people.export_files import remove_exports
from composer.ports.clock import Clock
from composer.ports.models import Embedder
from composer.ports.observer import Observer
from composer.repositories.imports import ImportRun
from composer.repositories.job_ledger import JobLedger
from composer.scheduled.due_posts import DuePosts
from composer.server_urls import ServerUrl
from composer.settings import Settings
from composer.signals import ErasureSignal
from composer.stores.backup import DatabaseBackup
from composer.stores.postgres import PostgresDatabase
from composer.stores.process_locks import PostgresProcessLocks
from composer.stores.tokens import clear_chunk_caches
from composer.stores.working_cache import RedisWorkingCache
from composer.summaries.tiers import SummaryTiers
from composer.turn.compose import Composer
from composer.turn.drafting import Drafter
from composer.turn.respond import Responder
from composer.turn.tool_servers import ToolServers
from composer.turn.worker import TurnWorker
from composer.usage.operations import OperationMeter
from composer.workspace import Workspace

logger = structlog.get_logger()


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

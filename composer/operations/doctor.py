"""The checks of `nexus doctor`, which open the stores themselves."""

import asyncio
import struct
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from composer.errors import Misconfigured, NotFound, Refused, Unavailable
from composer.ingest.imports import short_id
from composer.ingest.tenants import TenantDirectory, configured_agent, configured_prices
from composer.memory.learner import MAX_ATTEMPTS
from composer.model import API
from composer.operations.backlog import backlog
from composer.operations.tool_places import ServerPlaces, server_places
from composer.ports.clock import Clock
from composer.ports.models import ChatMessage, UsageAccount, Work, WorkKind
from composer.repositories.conversations import UnreadConversation
from composer.repositories.erasure import StoredReceipt, receipt_digest
from composer.repositories.job_ledger import JobLedger, StoredRun
from composer.repositories.usage import INSTALLATION, Dimension
from composer.settings import AgentSettings, Settings, no_model_api_sentence
from composer.settings.server_urls import ServerUrl
from composer.settings.values import is_slug
from composer.stores.audit_keys import KEY_FILE, AuditKeyRing
from composer.stores.backup.backup import DatabaseBackup
from composer.stores.clock import SystemClock
from composer.stores.database.erased_ids import find_ids
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.schema import describe, pending_migrations, prepare, require_known_migrations
from composer.stores.database.working_cache import RedisWorkingCache
from composer.stores.embedded.servers import EmbeddedServers
from composer.stores.installation_keys import key_ring, latest_keys
from composer.stores.models.configured import (
    Addresses,
    configured_chat_model,
    configured_embedder,
    configured_extraction,
    configured_transcriber,
    default_embedder,
    start_servers,
)
from composer.stores.models.mcp_server import McpServer
from composer.stores.models.tokens import tokenizer_for
from composer.text.cleaning import clean_line
from composer.text.counts import counted
from composer.turn.tool_servers import ServerRules
from composer.usage.budgets import states
from composer.usage.embedding import EmbeddingMeter
from composer.usage.ledger import CallLedger, UsageRules
from composer.usage.meter import Meter
from composer.usage.operations import OperationMeter
from composer.usage.transcription import TranscriptionMeter

MAX_SHOWN_TOOLS: Final = 20  # of a tool server, besides those that are allowed
MAX_SHOWN_ROOMS: Final = 5
UNREAD_FOR: Final = timedelta(hours=1)  # a channel that fails is tried again more often
PROBE_REPLY_TOKENS: Final = 1_024
SILENCE_SECONDS: Final = 0.5
_RATE: Final = 8_000  # samples a second, of two bytes each
_SILENT: Final = bytes(int(SILENCE_SECONDS * _RATE) * 2)
SILENCE: Final = (  # a WAV file: RIFF header, format (PCM, one channel), data
    b"RIFF"
    + struct.pack("<I", 36 + len(_SILENT))
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, _RATE, _RATE * 2, 2, 16)
    + b"data"
    + struct.pack("<I", len(_SILENT))
    + _SILENT
)
PROBE: Final = (ChatMessage("user", "Answer with the word: ready"),)


@dataclass(frozen=True, slots=True)
class JobRuns:
    """The ledger of jobs as of `now`: the last run of each."""

    now: datetime
    latest: Sequence[StoredRun]


class Doctor:
    """The checks of `nexus doctor`. Each returns a sentence, or raises a NexusError."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.where = Addresses(ServerUrl(), None, ServerUrl())
        self._service: ServerUrl | None = None
        self._settings, self._clock = settings, clock or SystemClock()
        self._servers = EmbeddedServers(settings.home)

    async def __aenter__(self) -> Self:
        """Start nothing yet: `servers` does."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop embedded servers that this started."""
        await asyncio.to_thread(self._servers.stop)

    async def servers(self) -> str:
        """Start or find the servers."""
        self.where = await start_servers(self._settings, self._servers)
        own = [
            n for n, url in (("Postgres", self._settings.database_url), ("Valkey", self._settings.redis_url)) if not url
        ]
        return f"{' and '.join(own)} embedded in {self._settings.home}" if own else "the configured servers"

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[PostgresDatabase]:
        """The migrated database, as the service sees it; closed afterwards."""
        database = await PostgresDatabase.open(await self._service_url(), connections=1)
        try:
            yield database
        finally:
            await database.close()

    async def _service_url(self) -> ServerUrl:
        self._service = self._service or await prepare(self.where.database, self.where.owner)
        return self._service

    async def _keys(self) -> AuditKeyRing:
        return await key_ring(self._settings, await self._service_url())

    async def database(self) -> str:
        """The versions of the database. The login of the service is made by migrating our own."""
        return await describe(self.where.database if self._settings.database_url else self.where.for_owner)

    async def pending(self) -> list[str]:
        """The migrations that are not applied yet."""
        return await pending_migrations(self.where.for_owner)

    async def schema(self) -> str:
        """Check that this version of Nexus knows all that is applied. Raises Misconfigured."""
        await require_known_migrations(self.where.for_owner)
        return "up to date"

    async def tenant_isolation(self) -> str:
        """Check that the service's role sees no row without naming a tenant."""
        async with self._open() as database:
            return await database.check_tenant_isolation()

    async def restored(self) -> str | None:
        """The backup that the database was restored from, if any."""
        return await DatabaseBackup(self.where.for_owner, await self._keys()).restored()

    async def cache(self) -> str:
        """The version of Redis."""
        cache = RedisWorkingCache(self.where.redis)
        try:
            return await cache.ping()
        finally:
            await cache.close()

    async def embedder(self, *, stored: bool) -> str:
        """Check that the embedder works and, with a database (`stored`), that the vectors in it are its own. Then
        what an API is asked for is recorded."""
        if not stored or await pending_migrations(self.where.for_owner):
            embedder = configured_embedder(self._settings)
            await embedder.load()
            await embedder.embed(["ready"])
            return f"{embedder.name}, {embedder.width} dimensions"
        async with self._open() as database:
            embedder = configured_embedder(self._settings, await database.stored_embedder())
            await embedder.load()
            meter = EmbeddingMeter(embedder, self._probes(database), tokenizer_for)
            await meter.embed(["ready"], UsageAccount(INSTALLATION, WorkKind.PROBE))
            await database.require_embedder(embedder.name, embedder.width)
        default = default_embedder().name
        if self._settings.embedder is None and embedder.name != default:
            better = f"; nexus reembed changes to {default}, which also finds what was said in another language"
        else:
            better = ""
        return f"{embedder.name}, {embedder.width} dimensions{better}"

    async def model(self, entry: AgentSettings, *, stored: bool) -> str:
        """Ask the model of an agent for one word. With a database (`stored`) the call is recorded."""
        if not entry.model:
            return "offline: set NEXUS_OPENAI_BASE_URL, NEXUS_OPENAI_API_KEY and NEXUS_MODEL for real answers"
        if not self._settings.has_model_api:
            raise Misconfigured(no_model_api_sentence(entry.model))
        agent = configured_agent(entry, INSTALLATION)
        # A model that reasons needs room for that even before one word.
        agent = replace(agent, reply_tokens=PROBE_REPLY_TOKENS, fallback_models=())
        model = configured_chat_model(self._settings)
        if not stored or await pending_migrations(self.where.for_owner):
            async for _ in model.stream(agent, PROBE):
                pass
            return f"{entry.model} answers"
        async with self._open() as database:
            meter = Meter(self._probes(database), model, tokenizer_for, self._clock)
            async for _ in meter.stream(Work(INSTALLATION, WorkKind.PROBE, agent), PROBE):
                pass
        return f"{entry.model} answers"

    async def transcription(self, *, stored: bool) -> str:
        """Have a moment of silence transcribed. With a database (`stored`) the call is recorded."""
        model = configured_transcriber(self._settings)
        assert model is not None, "asked only where one is set"
        try:
            if not stored or await pending_migrations(self.where.for_owner):
                await model.transcribe("silence.wav", "audio/wav", SILENCE)
                return f"{model.name} answers"
            async with self._open() as database:
                meter = TranscriptionMeter(model, self._probes(database))
                account = UsageAccount(INSTALLATION, WorkKind.PROBE)
                await meter.transcribe("silence.wav", "audio/wav", SILENCE, account, SILENCE_SECONDS)
            return f"{model.name} answers"
        finally:
            await model.close()

    async def tool_server(self, name: str) -> str:
        """Connect to a tool server and list its tools. Raises Unavailable, Misconfigured, and NotFound for an allowed
        tool that it has not."""
        settings = self._settings.mcp[name]
        server = McpServer(name, settings)
        try:
            listed = await server.tools()
        finally:
            await server.close()
        known = {clean_line(each.name) for each in listed}
        offered = ServerRules(name, settings.offered_tools(name)).offered(listed)
        called = {tool.name for tool in offered}
        missing = [own for called_by, own in settings.offered_tools(name).items() if called_by not in called]
        others = sorted(known - set(settings.tools))
        shown = f"; it also has {', '.join(others[:MAX_SHOWN_TOOLS])}" if others else ""
        if missing:
            raise NotFound(
                f"{server.place} answers, but it has no {', '.join(missing)} that can be offered: change tools of "
                f"[mcp.{name}] in nexus.toml{shown}"
            )
        return f"{server.place} answers; allowed: {', '.join(settings.tools) or 'no tool'}{shown}"

    async def server_places(self, name: str) -> ServerPlaces | None:
        """Where a tool server is offered, and which names of its settings are not known. None before the database is
        migrated."""
        if await pending_migrations(self.where.for_owner):
            return None
        async with self._open() as database:
            return await server_places(self._settings.mcp[name], self._settings, database)

    def _probes(self, database: PostgresDatabase) -> CallLedger:
        """The ledger for what the doctor asks itself: of no tenant, and in no budget."""
        zone = self._settings.zone_of("")
        rules = UsageRules(self._settings.known_models, configured_prices(self._settings), lambda _: (), lambda _: zone)
        return CallLedger(database, self._clock, uuid.uuid4, rules)

    async def extraction(self) -> str:
        """How memories are extracted, and how many messages wait. Raises Unavailable when conversations are parked."""
        mode = configured_extraction(self._settings)
        async with self._open() as database:
            found = await backlog(database)
        if found.parked:
            raise Unavailable(
                f"{counted(found.parked, 'conversation')} parked after {MAX_ATTEMPTS} failures ({found.why}) "
                "Fix the cause, then restart nexus run: it tries them again."
            )
        return f"by {mode}; {counted(found.unextracted, 'message')} waiting for it"

    async def usage(self) -> tuple[str, bool]:
        """How much of each tenant's budgets and plan is used, and whether calls were refused or failed in this period.
        "" when there is nothing to say."""
        prices = configured_prices(self._settings)
        found, degraded = list[str](), False
        async with self._open() as database:
            directory = await TenantDirectory.load(self._settings, database)
            operations = OperationMeter(database, self._clock, directory.zone, directory.plan)
            for tenant, slug in await database.tenants():
                today = self._clock.now().astimezone(directory.zone(tenant)).date()
                async with database.transaction(tenant, "read") as tx:
                    spent = states(directory.budgets(tenant), await tx.usage.spent(today))
                    quotas = await operations.quotas(tx, tenant)
                    kinds = await tx.usage.of_everyone(Dimension.KIND, today, today, ())
                found += [f"{slug}: {state.describe(prices)}" for state in spent]
                found += [f"{slug}: {quota.description} used" for quota in quotas]
                failed = [f"{row.figures.failures:,} of {row.key}" for row in kinds if row.figures.failures]
                found += [f"{slug}: calls that failed today: {', '.join(failed)}"] if failed else []
                degraded = degraded or bool(failed) or any(state.refused for state in spent)
                degraded = degraded or any(quota.used >= quota.most for quota in quotas)
        return "; ".join(found), degraded

    async def audit(self) -> str:
        """The key of the audit log, and how many rows wait for their seal."""
        keys = await self._keys()
        async with self._open() as database:
            lost = sorted(key for key in await latest_keys(database) if not keys.has(key))
            waiting, since = 0, list[datetime]()
            for tenant, _ in await database.tenants():
                async with database.transaction(tenant, "read") as tx:
                    rows, oldest = await tx.audit.count_waiting()
                    waiting, since = waiting + rows, [*since, *([oldest] if oldest else ())]
        if lost:
            raise Misconfigured(
                f"the latest rows are signed with the key {', '.join(lost)}, which is not here: add it to the lines of "
                f"{self._settings.home / KEY_FILE}. nexus audit verify says which rows can't be verified."
            )
        if not waiting:
            return f"signed with the key {keys.current_id}; every row is sealed"
        return (
            f"signed with the key {keys.current_id}; {counted(waiting, 'row')} not sealed yet, the oldest since "
            f"{min(since):%Y-%m-%d %H:%M} UTC: leave nexus run with its jobs running, or run nexus jobs run audit"
        )

    async def job_runs(self) -> JobRuns:
        """The runs of the jobs."""
        now = self._clock.now()
        async with self._open() as database:
            return JobRuns(now, await JobLedger(database).latest(now))

    async def erased(self, receipt: str) -> str:
        """Check that nothing of what a receipt names is stored. Raises NotFound for an unknown receipt, and Refused,
        with the places and, where it was imported again, the imports, when something is there."""
        async with self._open() as database:
            for tenant, _ in await database.tenants():
                async with database.transaction(tenant, "read") as tx:
                    stored = await tx.erasure.receipt(receipt)
                if stored is not None:
                    break
            else:
                raise NotFound(f"There is no receipt '{receipt}'. It stands in the answer to forget or erase.")
        found = await find_ids(
            self.where.for_owner, self.where.redis, tenant, lambda id: receipt_digest(stored.key, id) in stored.digests
        )
        if found:
            places = ", ".join(f"{place} ({count})" for place, count in sorted(found.items()))
            raise Refused(
                f"Of what was erased on {stored.made_at:%Y-%m-%d}, something is stored: "
                f"{await self._came_back(tenant, stored)} It is in: {places}."
            )
        return (
            f"nothing of the {len(stored.digests):,} ids that were erased on {stored.made_at:%Y-%m-%d %H:%M} UTC is in "
            "any table, stored prompt or cache"
        )

    async def _came_back(self, tenant: uuid.UUID, receipt: StoredReceipt) -> str:
        """How what a receipt names came to be stored, as far as that is known, and what to do."""
        async with self._open() as database, database.transaction(tenant, "read") as tx:
            again = [
                (each.run, each.begun_at)
                for each in await tx.imports.imported_since(receipt.made_at)
                if receipt_digest(receipt.key, each.id) in receipt.digests
            ]
        if not again:
            return (
                "no import since has brought it. If a backup from before was restored, erase it again; else tell those "
                "who make Nexus."
            )
        runs = "; ".join(
            f"{counted(count, 'message')} from {run.source}, by import {short_id(run.id)} of "
            f"{begun_at:%Y-%m-%d %H:%M} UTC"
            for (run, begun_at), count in Counter(again).items()
        )
        ids = " and ".join(f"nexus import --undo {short_id(run.id)}" for run in dict.fromkeys(run for run, _ in again))
        return f"it was erased, and imported again since ({runs}). To erase that too: {ids}."

    async def unread_memory(self) -> str:
        """Which workspaces have memory with another tenant than the one that they belong to by the settings; "" when
        none has."""
        left, commands = [], []
        async with self._open() as database:
            directory = await TenantDirectory.load(self._settings, database)
            for tenant, slug in await database.tenants():
                async with database.transaction(tenant, "read") as tx:
                    stored = await tx.people.workspaces()
                for platform, name in stored:
                    owner = slug if platform == API else directory.workspace(platform, name).tenant
                    if owner != slug:
                        left.append(
                            f"{platform}:{name} belongs to the tenant {owner} by nexus.toml, and has memory with the "
                            f"tenant {slug}, which is not read"
                        )
                        former = f"--organisation {slug} " if is_slug(slug) and slug != name else ""
                        commands.append(f"nexus setup {former}--workspace {platform}:{name}")
        return "; ".join(left) and (
            f"{'; '.join(left)}. To have it read again: {' && '.join(commands)}, and start Nexus again "
            "(docs/settings.md, tenants)."
        )

    async def skipped(self) -> str:
        """Which messages can't be indexed or extracted from, by the reason; "" when there are none."""
        reasons = Counter[str]()
        examples: dict[str, str] = {}
        async with self._open() as database:
            for tenant, _ in await database.tenants():
                async with database.transaction(tenant, "read") as tx:
                    for each in await tx.recall.skipped():
                        reasons[each.why] += each.count
                        examples.setdefault(each.why, each.example)
        if not reasons:
            return ""
        listed = "; ".join(f"{count:,} by {why} (such as {examples[why]})" for why, count in reasons.most_common(3))
        return (
            f"{counted(reasons.total(), 'message')} could not be indexed or extracted from, and are not recalled or "
            f"only by their words: {listed}. Report this; they are tried again at each start of nexus run."
        )

    async def unread_rooms(self) -> str:
        """Which channels can't be read on their platform; "" when all can."""
        found = []
        async with self._open() as database:
            for tenant, _ in await database.tenants():
                async with database.transaction(tenant, "read") as tx:
                    found += await tx.conversations.unread(self._clock.now() - UNREAD_FOR)
        if not found:
            return ""
        listed = "; ".join(_named(each) for each in found[:MAX_SHOWN_ROOMS])
        more = len(found) - MAX_SHOWN_ROOMS
        return (
            f"the history of {counted(len(found), 'channel')} can't be read, so what was missed there is not stored: "
            f"{listed}{f'; and {more:,} more' if more > 0 else ''}. The log of nexus run says why (history.retrying); "
            "it goes on trying."
        )

    async def unretracted(self) -> str:
        """What was forgotten and stays where it was posted, since the platform refuses to change it; "" when nothing
        does."""
        found = []
        async with self._open() as database:
            for tenant, _ in await database.tenants():
                async with database.transaction(tenant, "read") as tx:
                    refused = await tx.deliveries.refused_retractions()
                for each in refused:
                    where = f"{each.platform}:{each.workspace}"
                    found.append(f"{counted(each.count, each.what)} in {where}, the first since {each.since:%Y-%m-%d}")
        if not found:
            return ""
        return (
            f"forgotten, but shown where it was posted, since the platform refuses to change that: {'; '.join(found)}. "
            "Let Nexus into the rooms that it was taken out of, and unarchive or unlock those that are closed; or "
            "delete these posts there. Nexus tries again at each start, and once a day for 30 days."
        )

    async def backlog(self) -> str:
        """How much is still to be indexed and embedded."""
        async with self._open() as database:
            found = await backlog(database)
        return (
            f"{counted(found.tenants, 'tenant')}; {counted(found.unindexed, 'message')} to index, "
            f"{counted(found.unembedded, 'item')} to embed"
        )


def _named(room: UnreadConversation) -> str:
    """A channel for whoever runs Nexus: a private one, and a DM, by its id alone."""
    name = f"#{clean_line(room.title)} ({room.id})" if room.title else f"{room.kind} {room.id}"
    until = "" if room.read_to is None else f", read until {room.read_to:%Y-%m-%d %H:%M} UTC"
    return f"{name} in {room.workspace}{until}"

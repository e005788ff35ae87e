"""Learn from what people's tools ask models for: statements of the user, as entries that the tool has written.

An exchange is stored once its answer is whole, and read in the background, in batches of one person and tool: by the
extraction model where there is one, else by patterns. Never read are memory that was put in, results of functions and
system texts.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Final

import structlog

from composer import visibility
from composer.entries.access import access_for_writing
from composer.entries.draft import ENTRY_KINDS, EntryDraft, check_draft
from composer.entries.entries import entry_id
from composer.entries.quota import entry_quota
from composer.entries.search import EntryReader
from composer.errors import BudgetUsedUp, EntriesFull, NexusError, NotFound, QuotaUsedUp, for_operator, where_raised
from composer.memory import entry_index
from composer.memory.index import Extraction, extracted_memories
from composer.model import EVERY_VENDOR, Message, Trust, Visibility, derived_id, entries_namespace
from composer.ports.clock import Clock
from composer.ports.extraction import Extractor, MessageBatch
from composer.ports.models import Vectors
from composer.repositories.database import Database, Transaction
from composer.repositories.entries import Entry, EntryFilter
from composer.repositories.gateway_exchanges import ExchangeOwner, GatewayExchange
from composer.repositories.operations import Operation
from composer.text.cleaning import clean_text
from composer.text.digests import text_digest
from composer.text.masking import mask
from composer.text.work import off_loop
from composer.usage.operations import Actor, OperationMeter
from composer.usage.plans import Plan
from composer.visibility import EntryAccess, Grants

logger = structlog.get_logger()

OWN_KEY: Final = "gateway"  # writes what is learnt from a person's own key: no tool has this name
MAX_BYTES: Final = 64 * 1024  # of a message and of an answer: the last ones count
MAX_STATEMENT_CHARS: Final = 500
MAX_STATEMENTS: Final = 40  # of one batch
MAX_FORGOTTEN: Final = 100  # times that one statement was learnt and forgotten again
BATCH_SIZE: Final = 10  # exchanges; so many are due at once
QUIET_PERIOD: Final = timedelta(minutes=5)  # without an exchange, after which fewer are due
MAX_WAIT: Final = timedelta(hours=1)  # of the oldest one, after which fewer are due, quiet or not
CLAIM_DURATION: Final = timedelta(minutes=10)
RETRY_DELAY: Final = timedelta(seconds=30)  # after the first failure; doubled with each further one
MAX_ATTEMPTS: Final = 6  # then an exchange is given up
MAX_CONCURRENT: Final = 4  # batches of one tenant
POLL_SECONDS: Final = 15.0
GRANTS: Final = frozenset({Grants.READ_ENTRIES, Grants.WRITE_ENTRIES})


@dataclass(frozen=True, slots=True)
class LearningRules:
    """How to learn: the kind of `extraction`, with the extractor where a model does it; a tenant's time zone and plan;
    and `on_stored`, which is called with each tenant that has new entries."""

    extraction: Extraction
    extractor: Extractor | None
    zone: Callable[[uuid.UUID], tzinfo]
    plan: Callable[[uuid.UUID], Plan | None]
    on_stored: Callable[[uuid.UUID], None]


class GatewayLearner:
    """Stores exchanges, and learns from them."""

    def __init__(
        self,
        database: Database,
        operations: OperationMeter,
        clock: Clock,
        new_id: Callable[[], uuid.UUID],
        rules: LearningRules,
    ) -> None:
        self._database, self._operations, self._clock = database, operations, clock
        self._new_id, self._rules = new_id, rules

    @property
    def is_on(self) -> bool:
        """Whether anything is learnt at all."""
        return self._rules.extraction is not Extraction.OFF

    async def note(self, reader: EntryReader, digest: bytes, question: str, answer: str, asked_at: datetime) -> bool:
        """Store an exchange to learn from, once for a turn (`digest`). Not where the key may not write entries, or the
        person has opted out or switched recall off, or has forgotten something since the request came (`asked_at`).
        Returns whether it was stored."""
        said = _end_of(question)
        if not self.is_on or Grants.WRITE_ENTRIES not in reader.grants or not said:
            return False
        now, vendor = self._clock.now(), OWN_KEY if reader.vendor == EVERY_VENDOR else reader.vendor
        id = derived_id("gateway exchange", str(reader.user), vendor, digest.hex())
        async with self._database.transaction(reader.tenant_id) as tx:
            access = await access_for_writing(tx, reader.tenant_id, reader.user, reader.vendor, reader.grants)
            if not access.settings.recall:
                return False
            exchange = GatewayExchange(id, said, _end_of(answer), now)
            return await tx.gateway_exchanges.put(ExchangeOwner(reader.user, vendor), exchange, asked_at)

    async def run(self) -> None:
        """Learn from every batch that becomes due, until cancelled."""
        while True:
            try:
                for tenant, _ in await self._database.tenants():
                    while await self.learn_due(tenant):
                        pass
            except NexusError as error:
                logger.warning("gateway.learning_postponed", error=for_operator(error))
            except Exception as error:
                logger.error("gateway.learning_failed", **where_raised(error))
            await asyncio.sleep(POLL_SECONDS)

    async def learn_due(self, tenant: uuid.UUID) -> int:
        """Learn from one batch of everyone whose exchanges are due, a few at a time; returns how many were read."""
        now = self._clock.now()
        async with self._database.transaction(tenant, "read") as tx:
            due = await tx.gateway_exchanges.due(now, BATCH_SIZE, now - QUIET_PERIOD, now - MAX_WAIT, MAX_CONCURRENT)
        return sum(await asyncio.gather(*(self._learn(tenant, owner) for owner in due)))

    async def _learn(self, tenant: uuid.UUID, owner: ExchangeOwner) -> int:
        claim, now = self._new_id(), self._clock.now()
        async with self._database.transaction(tenant) as tx:
            exchanges = await tx.gateway_exchanges.claim(owner, claim, now, now + CLAIM_DURATION, BATCH_SIZE)
            name = (await tx.people.names([owner.user])).get(owner.user, "")
        if not exchanges:
            return 0
        try:
            found = await self._statements(tenant, owner, name, exchanges)
            stored = await self._store(tenant, owner, name, claim, exchanges, found)
        except Exception as error:  # of whatever kind: it must not hold up others
            await self._fail(tenant, claim, exchanges, error)
            return 0
        if stored:
            self._rules.on_stored(tenant)
        logger.info("gateway.learnt", exchanges=len(exchanges), extracted=len(found), stored=stored)
        return len(exchanges)

    async def _statements(
        self, tenant: uuid.UUID, owner: ExchangeOwner, name: str, exchanges: Sequence[GatewayExchange]
    ) -> list[tuple[str, str]]:
        """The statements in exchanges: (kind, text) each. The extractor is shown nothing that is known already: the
        tool might not be allowed to read it."""
        messages = [each for exchange in exchanges for each in _messages(owner, name, exchange)]

        async def nothing(_: Vectors) -> list[tuple[uuid.UUID, str]]:
            return []

        if self._rules.extractor is not None:
            batch = MessageBatch(tenant, None, messages, self._rules.zone(tenant), owner.user)
            try:
                extracted = await self._rules.extractor.extract(batch, nothing)
                return [(each.kind, each.text) for each in extracted]
            except BudgetUsedUp:
                logger.info("gateway.learnt_by_pattern", exchanges=len(exchanges))
        chars = sum(len(message.text) for message in messages)
        return await off_loop(chars, lambda: [(m.kind, m.text) for each in messages for m in extracted_memories(each)])

    async def _store(
        self,
        tenant: uuid.UUID,
        owner: ExchangeOwner,
        name: str,
        claim: uuid.UUID,
        exchanges: Sequence[GatewayExchange],
        found: Sequence[tuple[str, str]],
    ) -> int:
        """Store statements as entries and take their exchanges off the list, in one transaction. Nothing is stored
        where an exchange was erased meanwhile, the person does not want it any more, or the plan has no room."""
        now = self._clock.now()
        async with self._database.transaction(tenant) as tx:
            access = await access_for_writing(tx, tenant, owner.user, owner.vendor, GRANTS)
            wanted = access.settings.recall and not await tx.people.has_opted_out((owner.user,))
            entries = _entries(access, name, found, now) if wanted else []
            entries = [each for each in entries if not await _is_known(tx, access, each, now)]
            try:
                if entries:
                    await self._operations.require(tx, tenant, Operation.WRITES, len(entries))
                    (await entry_quota(tx, self._rules.plan(tenant))).require_capacity(len(entries))
            except (QuotaUsedUp, EntriesFull):
                entries = []
            if not await tx.gateway_exchanges.still_claimed(claim, exchanges):
                return 0
            stored = [each for each in await _new(tx, access, entries) if await entry_index.store(tx, each)]
            await tx.gateway_exchanges.end(claim, now)
            if stored:
                actor, tokens = Actor(tenant, owner.user, owner.vendor), sum(each.tokens for each in stored)
                await self._operations.add(tx, actor, Operation.WRITES, len(stored), tokens)
        return len(stored)

    async def _fail(
        self, tenant: uuid.UUID, claim: uuid.UUID, exchanges: Sequence[GatewayExchange], error: Exception
    ) -> None:
        now, attempts = self._clock.now(), max(each.attempts for each in exchanges)
        over = attempts + 1 >= MAX_ATTEMPTS or isinstance(error, NotFound)
        if isinstance(error, NexusError):
            logger.warning("gateway.learning_postponed", error=for_operator(error), attempts=attempts + 1)
        else:
            logger.error("gateway.learning_failed", attempts=attempts + 1, **where_raised(error))
        async with self._database.transaction(tenant) as tx:
            if over:
                await tx.gateway_exchanges.end(claim, now)
            else:
                await tx.gateway_exchanges.fail(claim, now + RETRY_DELAY * 2**attempts)


def _messages(owner: ExchangeOwner, name: str, exchange: GatewayExchange) -> list[Message]:
    """An exchange as messages: the person's, and what the model answered, which explains it."""
    said = Message(
        id=exchange.id,
        external_id=str(exchange.id),
        seq=1,
        at=exchange.said_at,
        user_id=owner.user,
        agent_id=None,
        author=name,
        text=exchange.question,
        namespace=entries_namespace(owner.user),
        visibility=Visibility.PRIVATE,
        trust=Trust.TOOL,
    )
    model = derived_id("model of a tool", owner.vendor)
    answered = replace(
        said,
        id=derived_id("answer", str(exchange.id)),
        seq=2,
        user_id=None,
        agent_id=model,
        author="the model",
        text=exchange.answer,
    )
    return [said, answered] if exchange.answer else [said]


def _entries(access: EntryAccess, name: str, found: Sequence[tuple[str, str]], now: datetime) -> list[Entry]:
    tag, made = visibility.entry_tag(access), dict[uuid.UUID, Entry]()
    for kind, text in found[:MAX_STATEMENTS]:
        content = mask(clean_text(text)).strip()[:MAX_STATEMENT_CHARS].strip()
        if not content:
            continue
        known = kind if kind in ENTRY_KINDS else "fact"
        draft = EntryDraft(content, kind=known, metadata={"learnt_from": "gateway"})
        id = _id(access, content)
        size = len(content.encode())
        author = f"{name} ({access.vendor})"
        made[id] = Entry(id, tag, check_draft(draft, now), author, access.vendor, Trust.TOOL, now, size=size)
    return list(made.values())


def _id(access: EntryAccess, content: str, forgotten: int = 0) -> uuid.UUID:
    """The id of a statement, which was learnt and `forgotten` so often before."""
    again = f" {forgotten}" if forgotten else ""
    return entry_id(access, f"learnt {text_digest(content.casefold()).hex()}{again}")


async def _new(tx: Transaction, access: EntryAccess, entries: Sequence[Entry]) -> list[Entry]:
    """Entries with ids that were not erased: what its person forgot, and said again, is another entry. One that was
    forgotten too often is left out."""
    found, waiting = list[Entry](), list(entries)
    for forgotten in range(1, MAX_FORGOTTEN + 1):
        if not waiting:
            break
        gone = await tx.erasure.erased_ids([each.id for each in waiting])
        found += [each for each in waiting if each.id not in gone]
        again = [each for each in waiting if each.id in gone]
        waiting = [replace(each, id=_id(access, each.values.text, forgotten)) for each in again]
    return found


async def _is_known(tx: Transaction, access: EntryAccess, entry: Entry, now: datetime) -> bool:
    """Whether something that the tool may read says the same words."""
    wanted = EntryFilter(words=entry.values.text)
    return bool(await tx.entries.find(visibility.readable_entries(access), wanted, now, limit=1, chars=1))


def _end_of(text: str) -> str:
    """The end of a text as it is stored: cleaned, with secrets masked."""
    end = text.encode("utf-8", "replace")[-MAX_BYTES:].decode(errors="ignore")
    return mask(clean_text(end)).strip()

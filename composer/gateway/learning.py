"""Learn from what people's tools ask models for: statements of the user, as entries that the tool has written.

A message is stored once its answer is whole, and read in the background, in batches of one person and tool
(composer/memory/learner.py). Read are the user's own words alone: not what they quote or paste, not the answer, memory
that was put in, results of functions or system texts. What is learnt is recalled by that tool alone, and never stands,
until its person opens it to others: they have not asked for it to be stored. What stands below the first line of what
they said may be put there by the tool: it waits until its person approves it.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.entries.access import access_for_writing
from composer.entries.draft import ENTRY_KINDS, OWN_KEY, SentEntry, check_entry
from composer.entries.entries import entry_id
from composer.entries.quota import entry_quota
from composer.entries.search import EntryReader
from composer.errors import EntriesFull, QuotaUsedUp
from composer.memory import entry_index
from composer.memory.learner import Finding, LearningBatch
from composer.model import EVERY_VENDOR, Message, Trust, Visibility, derived_id, entries_namespace
from composer.ports.clock import Clock
from composer.ports.models import Vectors
from composer.repositories.database import Database, Transaction
from composer.repositories.entries import Entry, EntryFilter
from composer.repositories.gateway_exchanges import ExchangeOwner, GatewayExchange
from composer.repositories.learning import ReadyRule
from composer.repositories.operations import Operation
from composer.text.cleaning import clean_text
from composer.text.digests import text_digest
from composer.text.masking import mask
from composer.text.names import tool_name
from composer.text.own_words import own_words
from composer.text.work import off_loop
from composer.usage.operations import Actor, OperationMeter
from composer.usage.plans import Plan
from composer.visibility import EntryAccess, Grants

MAX_STATEMENT_CHARS: Final = 500
MAX_STATEMENTS: Final = 40  # of one batch
MAX_FORGOTTEN: Final = 100  # times that one statement was learnt and forgotten again
BATCH_SIZE: Final = 10  # exchanges; so many are due at once
GRANTS: Final = frozenset({Grants.READ_ENTRIES, Grants.WRITE_ENTRIES})


class GatewaySource:
    """The exchanges of people's tools with models, and the entries of those tools. `is_on`: whether anything is learnt
    at all; `plan` is a tenant's."""

    name = "gateway"
    batch_size = BATCH_SIZE

    def __init__(
        self,
        database: Database,
        operations: OperationMeter,
        clock: Clock,
        plan: Callable[[uuid.UUID], Plan | None],
        *,
        is_on: bool,
    ) -> None:
        self._database, self._operations, self._clock = database, operations, clock
        self._plan, self.is_on = plan, is_on

    async def note(self, reader: EntryReader, digest: bytes, question: str, asked_at: datetime) -> bool:
        """Store what a user said to learn from it, once for a turn (`digest`). Not where the key may not write entries,
        or the person has opted out or switched recall off, or has forgotten something since the request came
        (`asked_at`). Returns whether it was stored."""
        said = await off_loop(len(question), lambda: mask(own_words(clean_text(question))))
        if not self.is_on or Grants.WRITE_ENTRIES not in reader.grants or not said:
            return False
        now, vendor = self._clock.now(), OWN_KEY if reader.vendor == EVERY_VENDOR else reader.vendor
        id = derived_id("gateway exchange", str(reader.user), vendor, digest.hex())
        async with self._database.transaction(reader.tenant_id) as tx:
            access = await access_for_writing(tx, reader.tenant_id, reader.user, reader.vendor, reader.grants)
            if not access.settings.recall:
                return False
            exchange = GatewayExchange(id, said, now)
            return await tx.gateway_exchanges.put(ExchangeOwner(reader.user, vendor), exchange, asked_at)

    async def due(self, tx: Transaction, rule: ReadyRule) -> list[ExchangeOwner]:
        """Whose exchanges are due."""
        return await tx.gateway_exchanges.due(rule)

    async def take(self, tx: Transaction, scope: ExchangeOwner, failures: int) -> LearningBatch:
        """The oldest exchanges of a person and a tool."""
        exchanges = await tx.gateway_exchanges.waiting(scope, max(1, self.batch_size >> failures))
        name = await _name(tx, scope)
        messages = [_message(scope, name, each) for each in exchanges]
        return LearningBatch([each.id for each in exchanges], messages, scope.user)

    async def near(self, tx: Transaction, scope: ExchangeOwner, vector: Vectors) -> list[tuple[uuid.UUID, str]]:
        """Nothing: the tool might not be allowed to read what is known already."""
        return []

    async def is_unchanged(self, tx: Transaction, batch: LearningBatch) -> bool:
        """Whether none of the exchanges was erased."""
        return await tx.gateway_exchanges.are_waiting(batch.ids)

    async def store(
        self, tx: Transaction, tenant: uuid.UUID, scope: ExchangeOwner, found: Sequence[Finding], now: datetime
    ) -> int:
        """Store statements as entries of the tool; none where the person does not want it any more, or the plan has no
        room."""
        access = await access_for_writing(tx, tenant, scope.user, scope.vendor, GRANTS)
        wanted = access.settings.recall and not await tx.people.has_opted_out((scope.user,))
        name = await _name(tx, scope)
        made = _entries(access, name, found, now) if wanted else []
        new = [each for each in made if not await _is_known(tx, access, each, now)]
        held = {_content(each.statement.text) for each in found if each.statement.waits}
        entries = [each for each in new if each.values.text not in held]
        waiting = await _new(tx, access, [each for each in new if each.values.text in held])
        await tx.quarantine.add([entry_index.pending_entry(each) for each in waiting])
        try:
            if entries:
                await self._operations.require(tx, tenant, Operation.WRITES, len(entries))
                (await entry_quota(tx, self._plan(tenant))).require_capacity(len(entries))
        except (QuotaUsedUp, EntriesFull):
            entries = []
        stored = [each for each in await _new(tx, access, entries) if await entry_index.store(tx, each)]
        if stored:
            actor, tokens = Actor(tenant, scope.user, scope.vendor), sum(each.tokens for each in stored)
            await self._operations.add(tx, actor, Operation.WRITES, len(stored), tokens)
        return len(stored)

    async def remove(self, tx: Transaction, ids: Sequence[uuid.UUID], now: datetime) -> None:
        """Erase the texts of exchanges."""
        await tx.gateway_exchanges.end(ids, now)


async def _name(tx: Transaction, owner: ExchangeOwner) -> str:
    return (await tx.people.names([owner.user])).get(owner.user, "")


def _message(owner: ExchangeOwner, name: str, exchange: GatewayExchange) -> Message:
    """What a person said, as a message."""
    return Message(
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


def _entries(access: EntryAccess, name: str, found: Sequence[Finding], now: datetime) -> list[Entry]:
    tag, made = visibility.entry_tag(access), dict[uuid.UUID, Entry]()
    for kind, text in [(each.statement.kind, each.statement.text) for each in found[:MAX_STATEMENTS]]:
        content = _content(text)
        if not content:
            continue
        known = kind if kind in ENTRY_KINDS else "fact"
        sent: SentEntry = {
            "content": content,
            "kind": known,
            "metadata": {"learnt_from": "gateway"},
            "vendors": [access.vendor],
        }
        id = _id(access, content)
        size = len(content.encode())
        author = tool_name(name, access.vendor)
        made[id] = Entry(id, tag, check_entry(sent, now), author, access.vendor, Trust.TOOL, now, size=size)
    return list(made.values())


def _content(text: str) -> str:
    return mask(clean_text(text)).strip()[:MAX_STATEMENT_CHARS].strip()


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

"""Review: approve or reject what waits in quarantine, and undo what one author has contributed."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from composer.errors import BadInput
from composer.memory.consolidation import consolidate
from composer.memory.forget import Receipt, forget
from composer.memory.index import memory_entry
from composer.repositories.database import Transaction
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark
from composer.repositories.memories import NewMemory
from composer.repositories.quarantine import PENDING_KIND, PendingItem, QuarantineState
from composer.visibility import Readable


async def approve(tx: Transaction, item: PendingItem, now: datetime) -> None:
    """Store an item that waited, as if its author had been trusted. A fact holds from now on.

    Raises BadInput when it was decided meanwhile.
    """
    await _decide(tx, item, QuarantineState.APPROVED)
    match item.kind:
        case "memory":
            await _store_memory(tx, item)
        case "fact":
            await tx.facts.add(item.item_id, item.tag, None, _fact(item, now), item.origin)
        case "landmark":
            await tx.landmarks.add([_landmark(item)])


async def reject(tx: Transaction, item: PendingItem) -> None:
    """Drop an item that waited. Raises BadInput when it was decided meanwhile."""
    await _decide(tx, item, QuarantineState.REJECTED)


async def _decide(tx: Transaction, item: PendingItem, state: QuarantineState) -> None:
    if not await tx.quarantine.decide(item, state):
        raise BadInput("Somebody has approved or rejected that meanwhile.")


async def _store_memory(tx: Transaction, item: PendingItem) -> None:
    memory = NewMemory(
        id=item.item_id,
        tag=item.tag,
        agent_id=None,
        kind=item.detail,
        text=item.text,
        author=item.author,
        origin=item.origin,
        at=item.at,
        sources=item.sources,
        shown=item.shown,
        trust=item.trust,
    )
    if item.origin == "extracted":
        stored = await consolidate(tx, [memory])
    else:
        stored = [(memory, None)] if await tx.memories.add([memory]) else []
    await tx.recall.index([], [memory_entry(each, until) for each, until in stored], [])


def _fact(item: PendingItem, now: datetime) -> Fact:
    return Fact(
        id=item.item_id,
        namespace=item.namespace,
        visibility=item.visibility,
        user_id=item.user_id,
        key=item.detail,
        value=item.text,
        author=item.author,
        valid_from=now,
        trust=item.trust,
    )


def _landmark(item: PendingItem) -> Landmark:
    return Landmark(
        id=item.item_id,
        namespace=item.namespace,
        visibility=item.visibility,
        user_id=item.user_id,
        text=item.text,
        author=item.author,
        decided_at=item.at,
        trust=item.trust,
    )


@dataclass(frozen=True, slots=True)
class Contributions:
    """What one author has written or caused to be extracted: `stored`, and what waits for approval."""

    stored: tuple[PendingItem, ...]
    pending: tuple[PendingItem, ...]


async def contributions(tx: Transaction, reviewable: Readable, author: uuid.UUID, since: datetime) -> Contributions:
    """What one author has contributed since a time, in the places that a viewer may review."""
    return Contributions(
        tuple(await tx.quarantine.contributions(reviewable, author, since)),
        tuple(await tx.quarantine.find_pending(reviewable, author, since)),
    )


async def undo(tx: Transaction, found: Contributions, now: datetime, conversation: uuid.UUID) -> Receipt:
    """Erase contributions as if they had never been made: what they replaced holds again, and they are not extracted
    from their messages again. The messages stay."""
    stored = found.stored
    items = [(item.kind, item.item_id) for item in stored]
    receipt = await forget(tx, [], [*items, *((PENDING_KIND, item.id) for item in found.pending)], now, conversation)
    await tx.quarantine.withdraw([item for item in (*stored, *found.pending) if item.kind == "memory" and item.sources])
    return receipt

"""Review: approve or reject what waits in quarantine, and undo what one author has contributed."""

import json
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from composer.errors import BadInput
from composer.memory import entry_index
from composer.memory.affected import SPECIFIC_KINDS, ErasureRequest, ItemRef, find_affected
from composer.memory.consolidation import consolidate
from composer.memory.exported import authors_of, withdraw_exports
from composer.memory.forget import Receipt, forget
from composer.memory.index import memory_entries
from composer.repositories.database import Transaction
from composer.repositories.entries import values_from_json
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark
from composer.repositories.memories import NewMemory
from composer.repositories.quarantine import PENDING_KIND, PendingItem, QuarantineState
from composer.text.repetition import words_of
from composer.text.work import in_thread
from composer.visibility import Readable, Reviewable


def whole_text(item: PendingItem) -> str:
    """All the words that approving an item stores: those of an entry also stand in its key, tags and metadata, which
    tools are shown."""
    if item.kind == "fact":
        return f"{item.detail} = {item.text}"
    if item.entry is None:
        return item.text
    values = values_from_json(item.text, item.detail, item.entry)
    metadata = json.dumps(dict(values.metadata), ensure_ascii=False) if values.metadata else ""
    beside = {"key": values.key, "tags": ", ".join(values.tags), "metadata": metadata}
    return "\n".join((item.text, *(f"{name}: {value}" for name, value in beside.items() if value)))


async def approve(tx: Transaction, item: PendingItem, now: datetime) -> None:
    """Store an item that waited, as if its author had been trusted, in a transaction that is alone: it may replace an
    entry. A fact holds from now on. Raises BadInput when it was decided or erased meanwhile."""
    tx.require_alone()
    await _decide(tx, item, QuarantineState.APPROVED)
    match item.kind:
        case "memory":
            await _store_memory(tx, item, now)
        case "fact":
            await tx.facts.add(item.item_id, item.tag, None, _fact(item, now), item.origin)
        case "landmark":
            await tx.landmarks.add([_landmark(item)])


async def reject(tx: Transaction, item: PendingItem, now: datetime) -> Receipt:
    """Drop an item that waited, with its author's exported files. Raises BadInput when it was decided meanwhile."""
    tx.require_alone()  # a file that has the item is put somewhere before, or not at all
    people = await authors_of(tx, [], [(PENDING_KIND, item.id)])
    await _decide(tx, item, QuarantineState.REJECTED)
    await tx.erasure.remember([item.id], now)
    return await withdraw_exports(tx, people, Receipt())


async def _decide(tx: Transaction, item: PendingItem, state: QuarantineState) -> None:
    if not await tx.quarantine.decide(item, state):
        raise BadInput("That was approved, rejected or erased meanwhile.")


async def _store_memory(tx: Transaction, item: PendingItem, now: datetime) -> None:
    if item.entry is not None:
        await entry_index.approve(tx, item, now)
        return
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
    await tx.recall.index([], [entry for each, until in stored for entry in memory_entries(each, until)], [])


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
        set_at=item.at,
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
        tuple(await tx.quarantine.find_pending(Reviewable.alike(reviewable), author, since)),
    )


async def undone(tx: Transaction, found: Contributions) -> Counter[str]:
    """How many items of each kind `undo` erases: the contributions, and what was made from them."""
    items = _items(found)
    texts = await tx.erasure.texts([id for _, id in items])
    words = await in_thread(words_of, *(part for text in texts for part in text.parts))
    affected = await find_affected(tx, ErasureRequest([], items, words, kept=await _amendments(tx, found)))
    made = {(kind, id) for kind, id in affected.items if kind in SPECIFIC_KINDS}
    return Counter(kind for kind, _ in {*items, *made})


async def undo(tx: Transaction, found: Contributions, now: datetime, conversation: uuid.UUID) -> Receipt:
    """Erase contributions as if they had never been made: what they replaced holds again, and they are not extracted
    from their messages again. The messages stay, and so do versions of others that have replaced a landmark since."""
    stored = found.stored
    people = await authors_of(tx, [], _items(found))
    receipt = await forget(tx, [], _items(found), now, conversation, kept=await _amendments(tx, found))
    await tx.quarantine.withdraw([item for item in (*stored, *found.pending) if item.kind == "memory" and item.sources])
    return await withdraw_exports(tx, people, receipt)


async def _amendments(tx: Transaction, found: Contributions) -> list[uuid.UUID]:
    """The versions by others that have replaced contributed landmarks."""
    return await tx.quarantine.find_amendments(_landmarks(found))


def _landmarks(found: Contributions) -> list[uuid.UUID]:
    return [item.item_id for item in found.stored if item.kind == "landmark"]


def _items(found: Contributions) -> list[ItemRef]:
    return [*((item.kind, item.item_id) for item in found.stored), *((PENDING_KIND, item.id) for item in found.pending)]

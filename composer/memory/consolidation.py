"""Keeping statements: each is held against what stands in its own scope, then stored, merged or put in one's place."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from composer.memory.rules import PARAPHRASE, ends, is_worth_storing, merging, standing
from composer.model import derived_id
from composer.repositories.database import Transaction
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.repositories.memories import NewMemory, StoredMemory
from composer.text.terms import terms
from composer.visibility import AccessTag


async def keep(tx: Transaction, memories: Sequence[NewMemory]) -> list[tuple[NewMemory, datetime | None]]:
    """Keep what is worth it; decisions are proposed as landmarks too. Those that are new are returned, each with the
    time from which recall leaves it out.

    The same statement again adds its messages to the one that stands. Only statements of one run, visibility and
    owner are ever held against each other; the order in which they come does not matter, only when they were said.
    """
    worth = [memory for memory in memories if is_worth_storing(memory.kind, memory.text)]
    if not worth:
        return []
    await tx.memories.lock()
    known = await tx.memories.find_known_ids([memory.id for memory in worth])
    scopes: defaultdict[AccessTag, list[NewMemory]] = defaultdict(list)
    for memory in sorted(worth, key=lambda memory: memory.at):  # stable: as they were said, within a message too
        if memory.id not in known:
            scopes[memory.tag].append(memory)
    kept: list[tuple[NewMemory, datetime | None]] = []
    decided: list[NewMemory] = []
    for mark, fresh in scopes.items():
        kept += await _keep_in(tx, mark, fresh, decided)
    decided += [memory for memory, _ in kept if memory.kind == "decision"]
    if decided:
        await tx.landmarks.add([landmark_of(memory) for memory in decided])
    return kept


async def merge(tx: Transaction, embedded: Sequence[uuid.UUID]) -> None:
    """Make one of statements that say the same in other words, now that these have vectors.

    As in `keep`, only within one run, visibility and owner, and by when they were said.
    """
    for id in embedded:
        near = {alike.memory.id: alike for alike in await tx.memories.find_similar(id, PARAPHRASE)}
        if id not in near:
            continue  # it has become one with another a moment ago
        pairs = merging(near[id].memory, [(alike.memory, alike.cosine) for alike in near.values()])
        for gone, first in pairs:
            stays = near[first.id].memory
            await tx.memories.merge(gone.id, stays.id, _landmark_id(gone.id))
            said, stated = max(gone, stays, key=lambda held: held.at), gone.stated + stays.stated
            await tx.memories.record_restatement(stays.id, [], gone.at, ends(stays.kind, said.text, said.at, stated))
            newer = near[gone.id].newer
            if gone.until is not None and newer is not None and stays.until is None:
                await tx.memories.supersede([stays.id], newer, gone.until)
                stays = replace(stays, until=gone.until)
            near[first.id] = replace(near[first.id], memory=replace(stays, stated=stated))


def _landmark_id(memory: uuid.UUID) -> uuid.UUID:
    """The id of the landmark that a decision is proposed as."""
    return derived_id("landmark", str(memory))


def landmark_of(memory: NewMemory) -> Landmark:
    """A decision that was found in talk, proposed where it was said, with who said it, when, and in which message."""
    mark = memory.tag
    return Landmark(
        _landmark_id(memory.id),
        mark.namespace,
        mark.visibility,
        mark.user_id,
        memory.text,
        memory.author,
        memory.at,
        LandmarkState.PROPOSED,
        sources=tuple(("message", source) for source in memory.sources),
    )


async def _keep_in(
    tx: Transaction, mark: AccessTag, fresh: Sequence[NewMemory], decided: list[NewMemory]
) -> list[tuple[NewMemory, datetime | None]]:
    """The same, for one scope. `decided` gets what stood there as something else, and is a decision now."""
    wanted = sorted({term for memory in fresh for term in terms(memory.text)})
    held = {other.id: other for other in await tx.memories.find_comparable(mark, wanted)}
    stored: dict[uuid.UUID, NewMemory] = {}
    until: dict[uuid.UUID, datetime | None] = {}
    for memory in fresh:
        found = standing(memory.kind, memory.text, memory.at, list(held.values()))
        if found.same is not None:
            if memory.kind == "decision" != found.same.kind:
                decided.append(replace(memory, id=found.same.id))
            held[found.same.id] = await _restate(tx, found.same, memory, stored, until)
            continue
        dated = replace(memory, expires_at=ends(memory.kind, memory.text, memory.at))
        await tx.memories.add([dated])
        stored[memory.id], until[memory.id] = dated, dated.expires_at
        over = None if found.replaced_by is None else found.replaced_by.at
        held[memory.id] = StoredMemory(memory.id, memory.kind, memory.text, memory.at, until=over)
        if found.replaced_by is not None:
            await tx.memories.supersede([memory.id], found.replaced_by.id, found.replaced_by.at)
            until[memory.id] = _earlier(dated.expires_at, found.replaced_by.at)
        old = [other.id for other in found.replaces]
        await tx.memories.supersede(old, memory.id, memory.at)
        for id in old:
            held[id] = replace(held[id], until=memory.at)
            if id in stored:
                until[id] = _earlier(stored[id].expires_at, memory.at)
    return [(memory, until[id]) for id, memory in stored.items()]


async def _restate(
    tx: Transaction,
    same: StoredMemory,
    memory: NewMemory,
    stored: dict[uuid.UUID, NewMemory],
    until: dict[uuid.UUID, datetime | None],
) -> StoredMemory:
    """Merge a statement into the one that says the same."""
    said_again, first = same.stated + 1, min(same.at, memory.at)
    over = ends(same.kind, memory.text, max(same.at, memory.at), said_again)
    await tx.memories.record_restatement(same.id, memory.sources, memory.at, over)
    if same.id in stored:
        stored[same.id] = replace(stored[same.id], at=first, expires_at=over)
        until[same.id] = over
    return replace(same, stated=said_again, at=first)


def _earlier(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else min(one, other)

"""Consolidation: store new statements, merge them with memories that say the same, and supersede outdated ones.

Statements are only compared within one scope (namespace, visibility, owner). The order in which they are processed
does not matter, only when they were made.
"""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from composer.memory.decisions import is_group_decision
from composer.memory.rules import expiry_of, is_worth_storing, judge, paraphrase_merges
from composer.memory.wording import PARAPHRASE_LIKENESS, repeats
from composer.model import derived_id
from composer.ports.models import Scale
from composer.repositories.database import Transaction
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.repositories.memories import NewMemory, StoredMemory
from composer.text.masking import mask
from composer.text.terms import sentences, terms
from composer.text.work import off_loop
from composer.visibility import AccessTag


async def consolidate(tx: Transaction, memories: Sequence[NewMemory]) -> list[tuple[NewMemory, datetime | None]]:
    """Store the statements that are worth it, and propose the decisions of the group as landmarks.

    A statement that repeats a stored memory adds its messages to that memory instead. Returns the newly stored ones,
    each with the time from which recall leaves it out (None: never).
    """
    masked = [replace(memory, text=mask(memory.text)) for memory in memories]
    candidates = [memory for memory in masked if is_worth_storing(memory.kind, memory.text)]
    if not candidates:
        return []
    await tx.serialize()
    known = await tx.memories.find_known_ids([memory.id for memory in candidates])
    scopes: defaultdict[AccessTag, list[NewMemory]] = defaultdict(list)
    for memory in sorted(candidates, key=lambda memory: memory.at):  # stable: keeps the order within a message
        if memory.id not in known:
            scopes[memory.tag].append(memory)
    stored: list[tuple[NewMemory, datetime | None]] = []
    decisions: list[NewMemory] = []
    for tag, statements in scopes.items():
        scope = _ScopeConsolidation(tx, tag)
        stored += await scope.consolidate(statements)
        decisions += scope.became_decisions
    decisions += [memory for memory, _ in stored if memory.kind == "decision"]
    proposed = [proposed_landmark(memory) for memory in decisions if _tells_decision(memory.text)]
    if proposed:
        await tx.landmarks.add(await _not_settled(tx, proposed))
    return stored


def _tells_decision(text: str) -> bool:
    """Whether a memory, or a sentence of it, says what a group has decided: short ones around it are shown with it."""
    return is_group_decision(text) or any(map(is_group_decision, sentences(text)))


async def _not_settled(tx: Transaction, proposed: Sequence[Landmark]) -> list[Landmark]:
    """The proposals about which nobody has decided: a message that is read again doesn't propose again what a person
    has accepted, amended or retired."""
    sources = {landmark.id: {source for _, source in landmark.sources} for landmark in proposed}
    settled = await tx.landmarks.find_settled(sorted(set().union(*sources.values())))
    return [
        landmark
        for landmark in proposed
        if not any(source in sources[landmark.id] and repeats(landmark.text, text) for source, _, text in settled)
    ]


async def merge_paraphrases(tx: Transaction, embedded: Sequence[uuid.UUID], scale: Scale) -> None:
    """Merge memories that say the same in other words. `embedded` are those that have just got their vectors, of which
    `scale` says what their cosines say."""
    least = scale.cosine(PARAPHRASE_LIKENESS)
    for id in embedded:
        near = {similar.memory.id: similar for similar in await tx.memories.find_similar(id, least)}
        if id not in near:
            continue  # merged into another one by an earlier round of this loop
        alike = [(each.memory, scale.likeness(each.cosine)) for each in near.values()]
        pairs = paraphrase_merges(near[id].memory, alike)
        for removed, first in pairs:
            remaining = near[first.id].memory
            await tx.memories.merge(removed.id, remaining.id, _landmark_id(removed.id))
            latest = max(removed, remaining, key=lambda memory: memory.at)
            stated = removed.stated + remaining.stated
            expires_at = expiry_of(remaining.kind, latest.text, latest.at, stated)
            await tx.memories.record_restatement(remaining.id, [], removed.at, expires_at)
            newer = near[removed.id].newer
            if removed.until is not None and newer is not None and remaining.until is None:
                await tx.memories.supersede([remaining.id], newer, removed.until)
                remaining = replace(remaining, until=removed.until)
            near[first.id] = replace(near[first.id], memory=replace(remaining, stated=stated))


def proposed_landmark(memory: NewMemory) -> Landmark:
    """The landmark that proposes a decision, in the namespace of its message, with author, time and source."""
    tag = memory.tag
    return Landmark(
        id=_landmark_id(memory.id),
        namespace=tag.namespace,
        visibility=tag.visibility,
        user_id=tag.user_id,
        text=memory.text,
        author=memory.author,
        decided_at=memory.at,
        state=LandmarkState.PROPOSED,
        sources=memory.lineage,
        trust=memory.trust,
    )


def _landmark_id(memory: uuid.UUID) -> uuid.UUID:
    """The id of the landmark that a decision is proposed as."""
    return derived_id("landmark", str(memory))


class _ScopeConsolidation:
    """The consolidation of one scope's new statements within one transaction.

    `became_decisions` are memories of another kind that a decision among the new statements repeats.
    """

    def __init__(self, tx: Transaction, tag: AccessTag) -> None:
        self._tx = tx
        self._tag = tag
        self._memories: dict[uuid.UUID, StoredMemory] = {}
        self._new: dict[uuid.UUID, NewMemory] = {}
        self._recalled_until: dict[uuid.UUID, datetime | None] = {}  # of the new ones
        self.became_decisions: list[NewMemory] = []

    async def consolidate(self, statements: Sequence[NewMemory]) -> list[tuple[NewMemory, datetime | None]]:
        """Judge and store statements in their order; returns what `consolidate` does, for this scope."""
        wanted = sorted({term for statement in statements for term in terms(statement.text)})
        self._memories = {memory.id: memory for memory in await self._tx.memories.find_comparable(self._tag, wanted)}
        for statement in statements:
            stored = list(self._memories.values())
            compared = sum(len(statement.text) + len(memory.text) for memory in stored)
            verdict = await off_loop(compared, partial(judge, statement.kind, statement.text, statement.at, stored))
            if verdict.same is not None:
                await self._merge(statement, verdict.same)
            else:
                await self._store(statement, verdict.replaces, verdict.replaced_by)
        return [(memory, self._recalled_until[id]) for id, memory in self._new.items()]

    async def _merge(self, statement: NewMemory, same: StoredMemory) -> None:
        """Add a statement's messages to the memory that says the same."""
        if statement.kind == "decision" != same.kind:
            self.became_decisions.append(replace(statement, id=same.id))
        stated, first_at = same.stated + 1, min(same.at, statement.at)
        expires_at = expiry_of(same.kind, statement.text, max(same.at, statement.at), stated)
        await self._tx.memories.record_restatement(same.id, statement.lineage, statement.at, expires_at)
        await self._tx.landmarks.add_sources(_landmark_id(same.id), statement.lineage)
        if same.id in self._new:
            self._new[same.id] = replace(self._new[same.id], at=first_at, expires_at=expires_at)
            self._recalled_until[same.id] = expires_at
        self._memories[same.id] = replace(same, stated=stated, at=first_at)

    async def _store(
        self, statement: NewMemory, replaces: Sequence[StoredMemory], replaced_by: StoredMemory | None
    ) -> None:
        """Store a new statement, and supersede what it contradicts."""
        memory = replace(statement, expires_at=expiry_of(statement.kind, statement.text, statement.at))
        await self._tx.memories.add([memory])
        self._new[memory.id], self._recalled_until[memory.id] = memory, memory.expires_at
        superseded_at = None if replaced_by is None else replaced_by.at
        self._memories[memory.id] = StoredMemory(memory.id, memory.kind, memory.text, memory.at, until=superseded_at)
        if replaced_by is not None:
            await self._tx.memories.supersede([memory.id], replaced_by.id, replaced_by.at)
            self._recalled_until[memory.id] = _earlier(memory.expires_at, replaced_by.at)
        old = [other.id for other in replaces]
        if old:
            await self._tx.memories.supersede(old, memory.id, memory.at)
        for id in old:
            self._memories[id] = replace(self._memories[id], until=memory.at)
            if id in self._new:
                self._recalled_until[id] = _earlier(self._new[id].expires_at, memory.at)


def _earlier(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else min(one, other)

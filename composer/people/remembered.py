"""What a room or a project remembers: its decisions as a board, and its facts as they held on a day. Pure but for reads
by a Readable that composer/visibility.py made of that one place."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.entries.namesakes import told_apart
from composer.errors import NotFound
from composer.model import project_namespace
from composer.repositories.database import Transaction
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.text.names import speaker_label
from composer.visibility import EntryAccess, Readable

MAX_REPLACED: Final = 50  # decisions that hold no more, the latest


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision with the versions before it, the latest first. `successor`: the version that replaces it."""

    landmark: Landmark
    earlier: Sequence[Landmark] = ()
    successor: Landmark | None = None

    @property
    def ended(self) -> str:
        """How it ceased to hold: replaced, lapsed or retired; empty while it holds or is proposed."""
        if self.successor is not None:
            return "replaced"
        if self.landmark.lapsed:
            return "lapsed"
        return "retired" if self.landmark.state is LandmarkState.RETIRED else ""


@dataclass(frozen=True, slots=True)
class DecisionBoard:
    """The decisions of a place, the latest first: proposed ones that nobody has accepted yet, those that hold, and
    those that do so no more."""

    proposed: Sequence[Decision]
    current: Sequence[Decision]
    past: Sequence[Decision]

    @property
    def all(self) -> Sequence[Decision]:
        """All of them."""
        return [*self.proposed, *self.current, *self.past]


async def project_counts(tx: Transaction, access: EntryAccess, now: datetime) -> Mapping[uuid.UUID, Mapping[str, int]]:
    """How much of each kind was written for each of the person's projects."""
    shared = visibility.readable_entries(access).within([project_namespace(each.id) for each in access.projects])
    apart = [each.id for each in access.projects if each.isolated and visibility.readable_project(access, each.id)]
    counts = await tx.remembered.counts(shared, now)
    for id in apart:
        counts += await tx.remembered.counts(readable_of_project(access, id), now)
    return {
        each.id: {c.kind: c.count for c in counts if c.namespace == project_namespace(each.id)}
        for each in access.projects
    }


async def decisions_of(
    tx: Transaction, access: EntryAccess, readable: Readable, now: datetime, most: int | None = MAX_REPLACED
) -> DecisionBoard:
    """The board of what a viewer may read. `most`: as of board_of."""
    found = [each for each in await tx.landmarks.find(readable, now, retired=True) if readable.admits(each)]
    shown = told_apart(access, found)
    return board_of(
        [replace(each, settled_by=each.settled_by and speaker_label(each.settled_by)) for each in shown], most
    )


def board_of(landmarks: Sequence[Landmark], most: int | None = MAX_REPLACED) -> DecisionBoard:
    """Landmarks, oldest first, as a board; of those that hold no more the latest `most` (None: all)."""
    by_id = {each.id: each for each in landmarks}
    successors = {each.replaces: each for each in landmarks if each.replaces is not None}
    decisions = [Decision(each, _earlier(each, by_id), successors.get(each.id)) for each in reversed(landmarks)]
    return DecisionBoard(
        [d for d in decisions if not d.ended and d.landmark.state is LandmarkState.PROPOSED],
        [d for d in decisions if not d.ended and d.landmark.state is LandmarkState.PINNED],
        [d for d in decisions if d.ended][:most],
    )


def _earlier(landmark: Landmark, by_id: Mapping[uuid.UUID, Landmark]) -> list[Landmark]:
    found = list[Landmark]()
    before = by_id.get(landmark.replaces) if landmark.replaces is not None else None
    while before is not None and before not in found:
        found.append(before)
        before = by_id.get(before.replaces) if before.replaces is not None else None
    return found


async def facts_of(tx: Transaction, access: EntryAccess, readable: Readable, at: datetime) -> list[Fact]:
    """The facts that a viewer may read, as they held at a time, by key."""
    return told_apart(access, [each for each in await tx.facts.find(readable, at) if readable.admits(each)])


async def fact_history(tx: Transaction, access: EntryAccess, readable: Readable, key: str) -> list[Fact]:
    """Every value that a key has had, oldest first. Raises NotFound."""
    found = [each for each in await tx.facts.history(readable, key) if readable.admits(each)]
    if not found:
        raise NotFound("There is no such fact here.")
    return told_apart(access, found)


def readable_of_project(access: EntryAccess, project: uuid.UUID) -> Readable:
    """What was written for one of the person's projects. Raises NotFound for any other."""
    named = visibility.readable_entries(replace(access, project=project))
    return named.within([project_namespace(project)])

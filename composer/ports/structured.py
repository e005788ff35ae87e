"""What is stated outright: projects, facts, landmarks."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from composer.model import Role, Visibility
from composer.ports.memories import NewMemory
from composer.visibility import AccessTag, Readable


@dataclass(frozen=True, slots=True)
class Project:
    """A project and the asker's role in it (None: not a member)."""

    id: uuid.UUID
    slug: str
    isolated: bool
    role: Role | None
    members: int = 0


@dataclass(frozen=True, slots=True)
class Fact:
    """A typed value. `value` is JSON text; `valid_to` None means that it holds now; `subject` is the name of the person
    whom it is about ("" for one of a place)."""

    id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    key: str
    value: str
    author: str
    valid_from: datetime
    valid_to: datetime | None = None
    subject: str = ""

    @property
    def vendors(self) -> tuple[str, ...]:
        """Facts are not restricted by vendor."""
        return ("*",)


class LandmarkState(StrEnum):
    """Found in talk, said by a person to stand, or no longer pinned. The first two are pinned."""

    PROPOSED = "proposed"
    PINNED = "pinned"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Landmark:
    """A decision that is pinned in every prompt of its scope, until a person retires it.

    `messages` are the external ids of the messages that it was found in; `sources` are what it was made from, as it
    is stored. `replaces` is the version before this one.
    """

    id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    text: str
    author: str
    decided_at: datetime
    state: LandmarkState = LandmarkState.PINNED
    settled_by: str | None = None
    replaces: uuid.UUID | None = None
    messages: tuple[str, ...] = ()
    sources: tuple[tuple[str, uuid.UUID], ...] = ()

    @property
    def vendors(self) -> tuple[str, ...]:
        """Landmarks are not restricted by vendor."""
        return ("*",)


class Projects(Protocol):
    """Projects and who is in them."""

    async def create(self, id: uuid.UUID, slug: str, isolated: bool, by: uuid.UUID, now: datetime) -> bool:
        """False when the name is taken."""
        ...

    async def find(self, slug: str, user: uuid.UUID) -> Project | None:
        """A project by name, with this person's role."""
        ...

    async def all(self, user: uuid.UUID, admin: bool) -> list[Project]:
        """Those that a person is in; every one for an admin."""
        ...

    async def put_member(self, project: uuid.UUID, user: uuid.UUID, role: Role) -> None:
        """Give a role."""
        ...

    async def remove_member(self, project: uuid.UUID, user: uuid.UUID) -> bool:
        """False when they were not in it."""
        ...

    async def members(self, project: uuid.UUID) -> list[tuple[str, Role]]:
        """Names and roles."""
        ...

    async def rooms(self, project: uuid.UUID, user: uuid.UUID) -> list[tuple[str, bool, bool]]:
        """(name, private, pooled) of its rooms that this person may know of."""
        ...


class Structured(Protocol):
    """Facts, landmarks, explicit memories, and the lineage of all of them."""

    async def facts(self, readable: Readable, at: datetime, key: str | None = None) -> list[Fact]:
        """The facts that held at a time."""
        ...

    async def history(self, readable: Readable, key: str) -> list[Fact]:
        """Every value a key has had, oldest first."""
        ...

    async def set_fact(self, id: uuid.UUID, mark: AccessTag, agent: uuid.UUID | None, fact: Fact, origin: str) -> None:
        """Let a value hold from `fact.valid_from`; the one before it ends then."""
        ...

    async def landmarks(self, readable: Readable, at: datetime, *, retired: bool = False) -> list[Landmark]:
        """The decisions that had been made by a time, oldest first; those that are no longer pinned if `retired`."""
        ...

    async def add_landmarks(self, landmarks: Sequence[Landmark]) -> None:
        """Pin or propose decisions, with their lineage; what is known stays as it is."""
        ...

    async def set_landmark_state(self, id: uuid.UUID, state: LandmarkState, by: str, now: datetime) -> bool:
        """Accept or retire a decision; False when it is so already, or was retired."""
        ...

    async def remember(self, memories: Sequence[NewMemory]) -> set[uuid.UUID]:
        """Store memories with their lineage; the ids of those that are new."""
        ...

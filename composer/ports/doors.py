"""Doors: what they have seen, posted and have to take back."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from composer.consent import Memory
from composer.model import ConversationKind


@dataclass(frozen=True, slots=True)
class Destination:
    """Where on its platform an answer goes: `name` is the room's id there (the agent's slug in a DM), `message`
    the id of the message that is answered, `user` the person's id there."""

    platform: str
    workspace: str
    kind: ConversationKind
    name: str
    thread: str | None
    private: bool
    message: str
    user: str | None


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A posted part of an answer that was withdrawn, and where it still shows its words."""

    turn_id: uuid.UUID
    external_id: str
    to: Destination


@dataclass(frozen=True, slots=True)
class SeenConversation:
    """How far a conversation of a platform was received: up to the message `seen_id`, at `seen_at`."""

    id: uuid.UUID
    kind: ConversationKind
    name: str
    thread: str | None
    user: str | None
    seen_id: str
    seen_at: datetime


class Doors(Protocol):
    """What the chat platforms add: who is whom, what was consented to, what was delivered where."""

    async def linked(self, users: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[uuid.UUID, ...]]:
        """The other users that people are, for those who are any."""
        ...

    async def put_code(self, code_hash: str, user: uuid.UUID, expires_at: datetime) -> None:
        """Keep a code by which someone else can link themselves to a user."""
        ...

    async def take_code(self, code_hash: str, now: datetime) -> uuid.UUID | None:
        """Whose code it is; it works once, and not after its time."""
        ...

    async def link(self, user: uuid.UUID, other: uuid.UUID) -> None:
        """Make two users one person."""
        ...

    async def unlink(self, user: uuid.UUID) -> None:
        """Make a user a person of their own again."""
        ...

    async def opt(self, user: uuid.UUID, out: bool) -> None:
        """Someone opts out, or in again."""
        ...

    async def set_memory(self, room: uuid.UUID, memory: str) -> None:
        """What is kept of a room: on, mentions or off."""
        ...

    async def notice(self, turn: uuid.UUID, now: datetime) -> Memory | None:
        """What is kept in the room of a turn, if the room's first-use notice goes with this turn; one turn has it."""
        ...

    async def begin_command(self, id: uuid.UUID, now: datetime) -> bool:
        """Whether this is the first event that brings a command; from now on it is not."""
        ...

    async def said_since(self, conversation: uuid.UUID, since: datetime, most: int) -> dict[str, datetime]:
        """The messages of people that we hold of a conversation, by the platform's ids, latest first, and when each was
        said or changed last."""
        ...

    async def withdraw(self, replies: Sequence[uuid.UUID]) -> None:
        """The posted parts of these answers are to be taken back. Called before anything of them is erased."""
        ...

    async def withdrawals(self, platform: str, most: int) -> list[Withdrawal]:
        """What is still to be taken back on a platform."""
        ...

    async def withdrawn(self, withdrawal: Withdrawal) -> None:
        """The platform shows it, or never will."""
        ...

    async def conversations(self, platform: str, workspace: str) -> list[SeenConversation]:
        """Where to read on after an outage, latest first."""
        ...

    async def destination(self, turn: uuid.UUID) -> Destination | None:
        """Where on its platform an answer goes; None when its question was erased."""
        ...

    async def delivered(self, turn: uuid.UUID) -> dict[int, str]:
        """The parts of an answer that stand on the platform, by number."""
        ...

    async def deliver(self, turn: uuid.UUID, part: int, external_id: str, now: datetime) -> None:
        """A part stands there now."""
        ...

    async def is_ours(self, external_id: str) -> bool:
        """Whether a message on the platform is an answer of ours."""
        ...

    async def passed(self, most: int) -> list[uuid.UUID]:
        """Messages that were kept for an answer alone, and have it."""
        ...

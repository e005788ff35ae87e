"""Doors: what they have seen, posted and have to take back."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from composer.model import Attachment, ConversationKind, Message, RecordingPolicy, Turn


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
class Retractable:
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


@dataclass(frozen=True, slots=True)
class UnansweredCommand:
    """A command that a process which is no more had begun. `done`: what it changes is changed."""

    id: uuid.UUID
    at: datetime
    call: str
    done: bool


class Images(Protocol):
    """Where a door's platform keeps the images of messages."""

    async def fetch(self, turn: Turn, message: Message, attachment: Attachment, most: int) -> bytes:
        """The bytes of an image, at most `most`, for a turn of its conversation.

        Raises Unavailable when the platform does not hand it out now, and Refused when it is gone or too large.
        """
        ...


class Doors(Protocol):
    """What the chat platforms add: who is whom, what was consented to, what was delivered where."""

    async def linked(self, users: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[uuid.UUID, ...]]:
        """The other users that people are, for those who are any."""
        ...

    async def put_code(self, code_hash: str, user: uuid.UUID, expires_at: datetime) -> None:
        """Recording a code by which someone else can link themselves to a user."""
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

    async def set_recording(self, room: uuid.UUID, memory: str) -> None:
        """What is kept of a room: on, mentions or off."""
        ...

    async def notice(self, room: uuid.UUID, message: str, now: datetime) -> tuple[Destination, RecordingPolicy] | None:
        """Where the first-use notice of a room goes, and what is kept there; None when it stands there. The first
        `message` that it is asked for is the one that it stands after."""
        ...

    async def open_notices(self, platform: str, workspace: str) -> list[tuple[uuid.UUID, str]]:
        """(room, message) of the notices that are to be posted, or are not known to be."""
        ...

    async def noticed(self, room: uuid.UUID, external_id: str) -> None:
        """The notice stands there."""
        ...

    async def begin_command(
        self, id: uuid.UUID, adapter: str, workspace: str, process: int, call: str, now: datetime
    ) -> bool:
        """Whether this is the first event that brings a command; from now on it is not. `call` is kept, as JSON text,
        until it is answered."""
        ...

    async def command_done(self, id: uuid.UUID) -> None:
        """What a command changes is changed with this very transaction."""
        ...

    async def command_answered(self, id: uuid.UUID) -> None:
        """Whoever gave it has its answer."""
        ...

    async def forget_commands(self, user: uuid.UUID, but: uuid.UUID) -> None:
        """Nothing is kept of what a person called, but of one command."""
        ...

    async def adopt_commands(self, adapter: str, workspace: str, process: int) -> list[UnansweredCommand]:
        """Take over the commands that dead processes left unanswered, oldest first."""
        ...

    async def said_since(self, conversation: uuid.UUID, since: datetime, most: int) -> dict[str, datetime]:
        """The messages of people that we hold of a conversation, by the platform's ids, latest first, and when each was
        said or changed last."""
        ...

    async def withdraw(self, replies: Sequence[uuid.UUID]) -> None:
        """The posted parts of these answers are to be taken back. Called before anything of them is erased."""
        ...

    async def retractions(self, platform: str, most: int) -> list[Retractable]:
        """What is still to be taken back on a platform."""
        ...

    async def withdrawn(self, withdrawal: Retractable) -> None:
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
        """Whether a message on the platform is an answer of ours, or a notice."""
        ...

    async def passed(self, most: int) -> list[uuid.UUID]:
        """Messages that were kept for an answer alone, and have it."""
        ...

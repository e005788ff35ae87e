"""The log: conversations and their messages."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from composer.model import Agent, Attachment, Conversation, ConversationKind, Message, RecordingPolicy, User
from composer.visibility import AccessContext, Readable


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation as it is locked for writing. `generation` counts the runs that a room has had; `recording` is what
    its room wants kept."""

    conversation: Conversation
    generation: int
    last_seq: int
    recording: RecordingPolicy = RecordingPolicy.ON


@dataclass(frozen=True, slots=True)
class RoomState:
    """Who may read a room now. `reopened`: it was private and was opened, and what is said there since then begins at
    `since` (None: nothing was)."""

    private: bool
    reopened: bool = False
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A conversation to make if it is not there yet."""

    id: uuid.UUID
    kind: ConversationKind
    name: str
    namespace: str
    private: bool = False
    room_id: uuid.UUID | None = None
    thread: str | None = None
    user_id: uuid.UUID | None = None
    agent_id: uuid.UUID | None = None
    project_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a platform means by an id; of who has `opted_out`, nothing is kept."""

    user_id: uuid.UUID
    opted_out: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a platform's events of a conversation were received: its id of a message, when that was said, and what
    people call the conversation (None: as before)."""

    external_id: str
    at: datetime
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """How a conversation's log grew: from `before` to `after` in versions, by `messages`."""

    conversation_id: uuid.UUID
    before: int
    after: int
    messages: tuple[Message, ...]


class Log(Protocol):
    """People, conversations and the messages in them."""

    async def ensure_tenant(
        self,
        slug: str,
        platform: str,
        workspace: str,
        agents: Sequence[Agent],
        now: datetime,
        people: Sequence[str] = (),
    ) -> dict[str, Identity]:
        """Make the tenant, note its workspace and the agents that serve it; whom it knows of some people, by the
        platform's ids."""
        ...

    async def identities(self, platform: str, workspace: str, external_ids: Sequence[str]) -> dict[str, uuid.UUID]:
        """The users behind a platform's ids; unknown ones are left out."""
        ...

    async def ensure_people(
        self, platform: str, workspace: str, people: Mapping[str, tuple[uuid.UUID, str]], now: datetime
    ) -> None:
        """Make people, by external id: (user id, name)."""
        ...

    async def user(self, platform: str, workspace: str, external_id: str) -> User | None:
        """One person as a platform names them."""
        ...

    async def names(self, users: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
        """Names by id."""
        ...

    async def set_admin(self, user: uuid.UUID, admin: bool) -> None:
        """Make someone an admin of the tenant, or no longer one."""
        ...

    async def ensure_conversations(
        self, platform: str, workspace: str, conversations: Sequence[NewConversation], now: datetime
    ) -> None:
        """Make those that are not there."""
        ...

    async def lock(self, conversations: Sequence[uuid.UUID]) -> dict[uuid.UUID, ConversationRow]:
        """Take conversations for writing until the transaction ends."""
        ...

    async def conversation(self, id: uuid.UUID) -> Conversation | None:
        """One conversation as it is now."""
        ...

    async def set_private(self, room: uuid.UUID, private: bool, namespace: str, generation: int) -> None:
        """Close or open a room; its public threads follow it into its run."""
        ...

    async def archive_thread(self, thread: uuid.UUID, at: datetime | None) -> None:
        """A thread was archived on its platform at a time, or (None) is open again. Unknown ones stay unknown."""
        ...

    async def touch(self, conversations: Sequence[uuid.UUID]) -> None:
        """Note that a log changed otherwise than by appending."""
        ...

    async def ensure_members(self, members: Mapping[tuple[uuid.UUID, uuid.UUID], datetime]) -> None:
        """(room, user) pairs of people who spoke there, and when: if they left after that, they stay away."""
        ...

    async def gone(self, rooms: Sequence[uuid.UUID]) -> set[tuple[uuid.UUID, uuid.UUID]]:
        """(room, user) pairs of people who left."""
        ...

    async def join(self, room: uuid.UUID, user: uuid.UUID, now: datetime) -> None:
        """A person came into a room; if they left it after `now`, they stay away."""
        ...

    async def leave(self, room: uuid.UUID, user: uuid.UUID, now: datetime) -> None:
        """A person left a room; if they came back after `now`, they stay."""
        ...

    async def is_room_admin(self, room: uuid.UUID, user: uuid.UUID) -> bool:
        """Whether a person may speak for a room."""
        ...

    async def access_context(self, conversation: uuid.UUID, asker: uuid.UUID) -> AccessContext | None:
        """What visibility judges by, as it is now; None for an unknown conversation."""
        ...

    async def room_states(self, rooms: Sequence[uuid.UUID]) -> dict[uuid.UUID, RoomState]:
        """Of those rooms that are known, who may read them; for filing what was said long ago."""
        ...

    async def known(self, messages: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these are stored, or were and have been erased."""
        ...

    async def append(
        self,
        messages: Sequence[tuple[uuid.UUID, Message]],
        seen: Mapping[uuid.UUID, Seen] | None = None,
        *,
        indexed: bool,
    ) -> None:
        """Append (conversation, message) pairs; note how far conversations were `seen`, also those that got none."""
        ...

    async def latest(
        self, readable: Readable, conversation: Conversation, most: int, before: Message | None
    ) -> list[Message]:
        """The last `most` messages (before one), oldest first; none if the run is not readable."""
        ...

    async def message(self, id: uuid.UUID) -> tuple[Message, uuid.UUID] | None:
        """A message and its conversation, for the turn that answers it."""
        ...

    async def find_message(
        self, platform: str, workspace: str, external_id: str
    ) -> list[tuple[uuid.UUID, uuid.UUID, uuid.UUID | None]]:
        """(message, conversation, author) of every message that a platform gave this id."""
        ...

    async def said_by(self, user: uuid.UUID, conversation: uuid.UUID | None) -> list[uuid.UUID]:
        """Ids of all that a person said, here or anywhere."""
        ...

    async def edit(
        self, id: uuid.UUID, text: str, mentions: Sequence[uuid.UUID], attachments: Sequence[Attachment], now: datetime
    ) -> None:
        """Replace a message's text and what is attached to it."""
        ...

    async def assign(self, conversation: uuid.UUID, project: uuid.UUID | None, pooled: bool) -> None:
        """Put a conversation into a project, or take it out."""
        ...

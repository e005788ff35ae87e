"""The plain values that the core speaks in: who, where, what was said, what is remembered."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

ID_NAMESPACE = uuid.UUID("6f1d4a52-7f0e-5c0b-9a57-2b1c5f6f7a10")


def derived_id(*parts: str) -> uuid.UUID:
    """The id of what `parts` name, the same in every process and every import.

    Ids are derived, never drawn from a counter: a counter would tell a viewer how much was
    written where they may not read, and a repeated event would get a second id.
    """
    return uuid.uuid5(ID_NAMESPACE, "\x1f".join(parts))


class Visibility(StrEnum):
    """Who may read a row within its run."""

    PUBLIC = "public"
    PRIVATE = "private"
    SHARED = "shared"


class ConversationKind(StrEnum):
    """What a conversation is; a public thread is part of its room, a private one is a room."""

    ROOM = "room"
    THREAD = "thread"
    DM = "dm"
    SESSION = "session"


class Role(StrEnum):
    """What a person may do in a project, weakest first."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class RecordingPolicy(StrEnum):
    """What a room wants stored: everything, only messages to an agent, or nothing beyond an answer."""

    ON = "on"
    MENTIONS = "mentions"
    OFF = "off"


GLOBAL_NAMESPACE = "global"
BOT_VENDOR = "nexus"
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif"})


def room_namespace(room: uuid.UUID, generation: int = 0) -> str:
    """The run of a room. A private room that becomes public starts a new generation."""
    return f"room:{room}" if generation == 0 else f"room:{room}.{generation}"


def dm_namespace(user: uuid.UUID, agent: uuid.UUID) -> str:
    """The run of a DM between a user and an agent."""
    return f"dm:{user}:{agent}"


def session_namespace(user: uuid.UUID, agent: uuid.UUID, session: uuid.UUID) -> str:
    """The run of an API session."""
    return f"session:{user}:{agent}:{session}"


def profile_namespace(user: uuid.UUID) -> str:
    """The run of what is known about a person."""
    return f"profile:{user}"


def project_namespace(project: uuid.UUID) -> str:
    """The run of what is known about a project."""
    return f"project:{project}"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message; `text` is its content where it is text, otherwise empty.

    `size` is in bytes, zero where nobody said; `address` is where its platform keeps it, for the door that it came
    by. The log holds these, never the bytes of an image.
    """

    name: str
    type: str
    text: str = ""
    size: int = 0
    address: str = ""

    @property
    def is_image(self) -> bool:
        """Whether it is of a kind that models can be shown."""
        return self.type.partition(";")[0].strip().lower() in IMAGE_TYPES


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was said, in the words of the door it came by.

    `name` is the room's external name, the agent's slug (DM) or the session's name.
    `private` None leaves a known room as it is, and makes a new one public. `title` is what people call it
    where `name` is a platform's id.
    """

    kind: ConversationKind
    name: str
    thread: str | None = None
    private: bool | None = None
    agent: str | None = None
    project: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message as a door hands it in. `id` is the platform's own id: a repeat changes nothing.

    `asks` are slugs of agents that are addressed by the platform's own means (a mention of the bot, a reply
    to it), beside those that the text calls by `@slug`. `by_admin`: the platform says that the person is an
    admin there; commands ask. `reply_to` is the id of the message that this one answers, where the platform knows it.
    """

    adapter: str
    workspace: str
    place: Place
    user: str
    user_name: str
    id: str
    text: str
    at: datetime
    attachments: tuple[Attachment, ...] = ()
    mentions: tuple[str, ...] = ()
    addressed_agents: tuple[str, ...] = ()
    sender_is_admin: bool = False
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """A bot persona. `window` is the model's context window in tokens; `images`: the model can be shown some."""

    id: uuid.UUID
    slug: str
    name: str
    persona: str
    model: str
    window: int
    system_role: bool = True
    reply_tokens: int = 1024
    images: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """One person. `admin` is for the tenant as a whole."""

    id: uuid.UUID
    name: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """A room, a thread of a room, a DM or a session, with the run its words belong to.

    `version` grows with every change to the log (message, edit, deletion): a cached view with
    another version is not this conversation's view.
    """

    id: uuid.UUID
    tenant_id: uuid.UUID
    kind: ConversationKind
    name: str
    namespace: str
    private: bool = False
    room_id: uuid.UUID | None = None
    thread: str | None = None
    user_id: uuid.UUID | None = None
    agent_id: uuid.UUID | None = None
    project_id: uuid.UUID | None = None
    version: int = 0

    @property
    def visibility(self) -> Visibility:
        """The mark that everything said here carries."""
        if self.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
            return Visibility.PUBLIC
        return Visibility.PRIVATE


@dataclass(frozen=True, slots=True)
class Message:
    """What was said, as it was said. `author` is the speaker's name; `seq` orders a conversation.

    `user_id` is whose words they are: the speaker's, and in a DM or session also what an agent says to them.
    An agent's words in a room are nobody's. `passing`: it is there for its answer alone, in nobody's view, and is
    erased once that was sent; known of the message of a turn alone. `reply_to` is the platform's id of the message that
    it answers; known of that message and of a view's.
    """

    id: uuid.UUID
    external_id: str
    seq: int
    at: datetime
    user_id: uuid.UUID | None
    agent_id: uuid.UUID | None
    author: str
    text: str
    namespace: str
    visibility: Visibility
    attachments: tuple[Attachment, ...] = ()
    mentions: tuple[uuid.UUID, ...] = ()
    ephemeral: bool = False
    reply_to: str | None = None

    @property
    def vendors(self) -> tuple[str, ...]:
        """The log is the bot's own: no other vendor's reads reach it by its run."""
        return ("*",)

    @property
    def by_agent(self) -> bool:
        """Whether an agent said it, rather than a person."""
        return self.agent_id is not None


@dataclass(frozen=True, slots=True)
class Item:
    """One recallable thing as a layer found it: text, marks, lineage, and why it was chosen.

    `messages` are the external ids of the messages it came from. `score` is None where the
    layer takes everything in scope (facts, landmarks) or goes by time (working).
    """

    layer: str
    kind: str
    id: str
    text: str
    at: datetime
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None = None
    vendors: tuple[str, ...] = ("*",)
    author: str = ""
    messages: tuple[str, ...] = ()
    score: float | None = None
    reasons: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message that wants an answer, as the worker takes it."""

    id: uuid.UUID
    tenant_id: uuid.UUID
    conversation_id: uuid.UUID
    message_id: uuid.UUID
    agent_id: uuid.UUID
    adapter: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model call cost, in tokens, as the API reported it; zero where it did not."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

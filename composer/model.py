"""The plain values of the core: people, places, messages, what is remembered. They know no database and no SDK."""

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

ID_NAMESPACE = uuid.UUID("6f1d4a52-7f0e-5c0b-9a57-2b1c5f6f7a10")


def derived_id(*parts: str) -> uuid.UUID:
    """The id of the thing that `parts` name: the same in every process and every import.

    Ids are derived, never taken from a counter: a counter would show a viewer how much was written where they may not
    read, and a repeated event would get a second id (docs/decisions/0001).
    """
    return uuid.uuid5(ID_NAMESPACE, "\x1f".join(parts))


class Visibility(StrEnum):
    """Who may read a row within its namespace."""

    PUBLIC = "public"
    PRIVATE = "private"
    SHARED = "shared"


class ConversationKind(StrEnum):
    """The kinds of conversation. A public thread is part of its room; a private thread is a room of its own."""

    ROOM = "room"
    THREAD = "thread"
    DM = "dm"
    SESSION = "session"


ROOM_KINDS: Final = (ConversationKind.ROOM, ConversationKind.THREAD)

# Platforms, and the adapters of the same names.
DISCORD: Final = "discord"
SLACK: Final = "slack"
CONSOLE: Final = "console"  # the terminal and scripts
API: Final = "rest"  # conversations over the API

# As whom a model is told what is remembered, in a request that passes the gateway.
MemoryRole = Literal["system", "developer", "user"]


class Role(StrEnum):
    """What a member may do in a project, weakest first."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @property
    def writes(self) -> bool:
        """Whether its members add to the project, by writing for it and by what they say in their sessions."""
        return self is not Role.READ

    def within(self, other: "Role") -> bool:
        """Whether another role lets its member do all that this one does."""
        weakest_first = list(Role)
        return weakest_first.index(self) <= weakest_first.index(other)


class TeamRole(StrEnum):
    """What a member may do in a team: an admin invites and removes members, and ends what former members share. The
    order of the words is that of the roles, strongest first."""

    ADMIN = "admin"
    MEMBER = "member"


class Trust(StrEnum):
    """Who wrote something, by how much they are trusted: a member, a guest of the workspace, or an external tool.

    What the untrusted write, or cause to be extracted, waits in quarantine until somebody approves it.
    """

    MEMBER = "member"
    GUEST = "guest"
    TOOL = "tool"


class RecordingPolicy(StrEnum):
    """What a room wants stored: everything, only messages to an agent, or nothing beyond an answer."""

    ON = "on"
    MENTIONS = "mentions"
    OFF = "off"


GLOBAL_NAMESPACE = "global"
_OWNED = ("profile", "entries", "dm", "session")  # namespaces of one user, whose id stands next
BOT_VENDOR = "nexus"
EVERY_VENDOR = "*"  # in a list of vendors: all of them. As who reads: a person, whom no list of vendors restricts
QUOTING_POST_PREFIX = "post:quoting:"  # begins the external id of a post that repeats what a person wrote
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif"})


def room_namespace(room: uuid.UUID, generation: int = 0) -> str:
    """The namespace of a room. A private room that becomes public starts a new generation.

    Generation -1 holds what was written in private before a room that was public when it was met: nobody reads it.
    """
    return f"room:{room}" if generation == 0 else f"room:{room}.{generation}"


def dm_namespace(user: uuid.UUID, agent: uuid.UUID) -> str:
    """The namespace of a DM between a user and an agent."""
    return f"dm:{user}:{agent}"


def session_namespace(user: uuid.UUID, agent: uuid.UUID, session: uuid.UUID) -> str:
    """The namespace of an API session."""
    return f"session:{user}:{agent}:{session}"


def profile_namespace(user: uuid.UUID) -> str:
    """The namespace of what is known about a person."""
    return f"profile:{user}"


def entries_namespace(user: uuid.UUID) -> str:
    """The namespace of the entries that a person and their tools keep for themselves."""
    return f"entries:{user}"


def team_namespace(team: uuid.UUID) -> str:
    """The namespace of the entries that are shared with a team."""
    return f"team:{team}"


def other_owners(namespaces: Iterable[str], own: Collection[uuid.UUID]) -> tuple[uuid.UUID, ...]:
    """The users whose profile, DM or session is among these namespaces, without a person's own users. Sorted."""
    parts = (namespace.split(":") for namespace in namespaces)
    owners = {uuid.UUID(user) for kind, user, *_ in (p for p in parts if len(p) > 1) if kind in _OWNED}
    return tuple(sorted(owners.difference(own)))


def project_namespace(project: uuid.UUID) -> str:
    """The namespace of what is known about a project."""
    return f"project:{project}"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message. `text` is what stands in a document, and what is spoken in a voice note that was
    transcribed; otherwise empty. `note` says what was not read of a document, such as "could not be read: it needs a
    password".

    `size` is in bytes, `seconds` how long a voice note is; 0 means unknown. `address` is its URL on the platform, for
    the adapter that it came through. The log stores these values, never the bytes of an image or a voice note.
    """

    name: str
    type: str
    text: str = ""
    size: int = 0
    address: str = ""
    seconds: float = 0
    note: str = ""

    @property
    def words(self) -> str:
        """Its name, and its text if it has one."""
        return f"{self.name} {self.text}" if self.text else self.name

    @property
    def passage(self) -> str:
        """Its text as recall finds and shows it, with the name of its file; "" for an image."""
        if not self.text or self.type.startswith("image/"):
            return ""
        return self.text if self.type.startswith("audio/") or not self.name else f"{self.name}\n{self.text}"

    @property
    def is_audio(self) -> bool:
        """Whether it is a voice note: a file with sound."""
        return self.type.partition(";")[0].strip().lower().startswith("audio/")

    @property
    def is_image(self) -> bool:
        """Whether it has an image type that models accept."""
        return self.type.partition(";")[0].strip().lower() in IMAGE_TYPES


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message was sent, in the platform's own terms.

    `name` is the room's id on the platform, the agent's slug (DM) or the session's name. `private` None leaves a known
    room as it is; a new one is then private, in the terminal and in scripts public. Of a thread it says whether the
    thread is private by itself, and `room_private` whether its room is. `stated_at` is when the platform said so; None:
    it is so now. `title` is the name that people see when `name` is an id. `outsiders`: people of other organisations
    read the room too, stated at `outsiders_at` (None: it is so now); None leaves a room as it is.
    """

    kind: ConversationKind
    name: str
    thread: str | None = None
    private: bool | None = None
    agent: str | None = None
    project: str | None = None
    title: str | None = None
    outsiders: bool | None = None
    outsiders_at: datetime | None = None
    room_private: bool | None = None
    stated_at: datetime | None = None

    @property
    def stated_private(self) -> bool | None:
        """Whether the room, or the room of the thread, is private; None where nothing is said."""
        return self.room_private if self.kind is ConversationKind.THREAD else self.private


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message as an adapter passes it to the core. `id` is the platform's id: receiving it again changes nothing.

    `addressed_agents` are the slugs of agents that the platform says are addressed (a mention of the bot, a reply to
    it), besides those that the text names with `@slug`. `sender_is_admin`: the platform says that the sender is an
    admin of the workspace, `sender_is_room_admin`: of the room; commands need these. `reply_to` is the id of the
    message that this one replies to, if it is known. `may_post`: False if the adapter knows that we can't post there.
    `trust_stated`: False if the platform does not say what the sender is to the workspace: `sender_trust` is assumed.
    `trust_stated_at`: of which time it says so (None: it is so now). `timezone`: the name of the sender's time zone, as
    the platform says it with that ("": it does not). `sent_at`: when a command was sent that has its
    arrival as `at`.

    An adapter may read a message first and look up what stands behind the platform's ids later. Until then, `channel`
    tells it where the message came through, and `quoted` are words outside its own text, as of a forwarded message or a
    card, which address nobody.
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
    sender_is_room_admin: bool = False
    reply_to: str | None = None
    sender_trust: Trust = Trust.MEMBER
    may_post: bool = True
    trust_stated: bool = True
    trust_stated_at: datetime | None = None
    timezone: str = ""
    sent_at: datetime | None = None
    channel: str = ""
    quoted: str = ""

    @property
    def by_tool(self) -> bool:
        """Whether another bot or app wrote it: no agent answers that."""
        return self.sender_trust is Trust.TOOL


@dataclass(frozen=True, slots=True)
class Agent:
    """A bot persona.

    `window` is how many tokens the model takes, prompt and answer together. `images`: the model accepts images.
    `summary_model` chooses the sentences of its summaries and compactions; "" for the model itself. `fallback_models`
    are asked in turn when the model fails. `reasoning_effort` and `summary_effort` ("" for what the API does by itself)
    are passed to models that reason before they answer. `tools`: its model may call the memory tools, whose results
    have at most `tool_tokens` tokens in one turn.
    """

    id: uuid.UUID
    slug: str
    name: str
    persona: str
    model: str
    window: int
    system_role: bool = True
    reply_tokens: int = 1024
    images: bool = False
    summary_model: str = ""
    fallback_models: tuple[str, ...] = ()
    reasoning_effort: str = ""
    summary_effort: str = ""
    tools: bool = False
    tool_tokens: int = 2_000

    @property
    def for_summaries(self) -> "Agent":
        """The same agent, with the model for its summaries. A model of their own has no fallback: an extractive
        summary takes its place."""
        fallback = () if self.summary_model else self.fallback_models
        effort = self.summary_effort or ("" if self.summary_model else self.reasoning_effort)
        model = self.summary_model or self.model
        return replace(self, model=model, fallback_models=fallback, reasoning_effort=effort)


@dataclass(frozen=True, slots=True)
class User:
    """One person. `admin`: an admin of the whole tenant."""

    id: uuid.UUID
    name: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class PersonalSettings:
    """What a person has set for themselves. `recall`: whether tools, and questions over the API, are given
    anything. `strategy` (None: that of the tenant) and `budget` (tokens) are for searches that name none. `trash_days`:
    how long what they threw away can be restored. `keep_days`: how long after their last change entries are kept that
    tools wrote for the person alone; None: until somebody erases them. `timezone`: the zone in which their days and
    hours are read; None: the one that their platform says, or else the tenant's."""

    recall: bool = True
    strategy: str | None = None
    budget: int = 2_000
    trash_days: int = 30
    keep_days: int | None = None
    timezone: str | None = None
    changed_at: datetime | None = None


DEFAULT_SETTINGS: Final = PersonalSettings()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A room, a thread of a room, a DM or a session, with the namespace that its messages are filed under.

    `version` increases with every new, edited or deleted message. A cached view of another version is stale.
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
        """The visibility of every message sent here."""
        if self.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
            return Visibility.PUBLIC
        return Visibility.PRIVATE


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it was sent. `author` is the sender's name; `seq` orders the messages of a conversation.

    `user_id` is the owner: the sender, and in a DM or session also the person an agent replies to. An agent's messages
    in a room have no owner. `ephemeral`: stored only until its answer is sent, shown in nobody's view, then erased; set
    only on the message of a turn. `reply_to` is the platform's id of the message that it replies to; set only on the
    message of a turn and on the messages of a view. `trust` is the sender's when it was sent; it is read only where
    something is extracted. `edited_at`: when it was last edited; set only on messages that are summed up.
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
    trust: Trust = Trust.MEMBER
    edited_at: datetime | None = None

    @property
    def vendors(self) -> tuple[str, ...]:
        """All vendors: messages are not restricted by vendor."""
        return ("*",)

    @property
    def by_agent(self) -> bool:
        """Whether an agent sent it, rather than a person."""
        return self.agent_id is not None

    @property
    def by_agent_itself(self) -> bool:
        """Whether it is an agent's own words: not a post that repeats what a person wrote, such as a reminder."""
        return self.agent_id is not None and not self.external_id.startswith(QUOTING_POST_PREFIX)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a layer found: its text, access tag, source messages, and why it was chosen.

    `messages` are the platform's ids of the messages that it came from. `score` is None for layers that take everything
    in scope (facts, landmarks) or go by time (working). `came_from` names in words the scope that it crossed a border
    from ("from alice's profile"); "" for what was written in the conversation itself. `starts_at`: what it covers began
    then and ended `at`; None for what has no duration. `by_agent`: it is a message that an agent sent. `files` are the
    names and texts of a message's files, as it was read. `passage` says which part of a long text `text` is: "part 7 of
    12". `files_at`: where in `text`, that of a message, what stands in its files begins; None for none. `newer_than` is
    the id of the recalled item that it came after and may replace.
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
    came_from: str = ""
    starts_at: datetime | None = None
    by_agent: bool = False
    files: tuple[str, ...] = ()
    passage: str = ""
    files_at: int | None = None
    newer_than: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message that one agent has to answer. `adapter` is the name of the adapter that it came through."""

    id: uuid.UUID
    tenant_id: uuid.UUID
    conversation_id: uuid.UUID
    message_id: uuid.UUID
    agent_id: uuid.UUID
    adapter: str


class TurnState(StrEnum):
    """How far a turn has come: waiting for its answer, answered and stored, or delivered."""

    QUEUED = "queued"
    ANSWERED = "answered"
    SENT = "sent"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a person can have done by pressing a button below an answer: the `label` on the button, and the `command`
    that it gives in their name, as they would type it."""

    label: str
    command: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a model call as the API reported them; 0 where it reported nothing."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
        )

    def at_least(self, other: "Usage") -> "Usage":
        """The larger prompt and the larger completion of the two."""
        prompt = max(self.prompt_tokens, other.prompt_tokens)
        return Usage(prompt, max(self.completion_tokens, other.completion_tokens), self.cached_tokens)


# --- workspaces of platforms, and the ids of what is in them ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace of a platform and the tenant that owns it."""

    tenant_id: uuid.UUID
    tenant: str
    platform: str
    name: str


def api_workspace(tenant: uuid.UUID, slug: str) -> Workspace:
    """The workspace of a tenant's conversations over the API. People are called there by their own ids."""
    return Workspace(tenant, slug, API, slug)


def tenant_id(slug: str) -> uuid.UUID:
    """The id of a tenant."""
    return derived_id("tenant", slug)


def agent_id(tenant: uuid.UUID, slug: str) -> uuid.UUID:
    """The id of an agent in a tenant."""
    return derived_id("agent", str(tenant), slug)


def user_id(workspace: Workspace, external_id: str) -> uuid.UUID:
    """The id that a new user gets, from their id on the platform."""
    return derived_id("user", str(workspace.tenant_id), workspace.platform, workspace.name, external_id)


def room_id(workspace: Workspace, name: str) -> uuid.UUID:
    """The id of a room."""
    return derived_id("room", str(workspace.tenant_id), workspace.platform, workspace.name, name)


def thread_id(room: uuid.UUID, thread: str) -> uuid.UUID:
    """The id of a public thread."""
    return derived_id("thread", str(room), thread)


def private_thread(place: Place) -> Place:
    """The place of a private thread, which is a room of its own."""
    return Place(ConversationKind.ROOM, f"{place.name}/{place.thread}", private=True)


def conversation_id(workspace: Workspace, place: Place, user: uuid.UUID, agent: uuid.UUID | None) -> uuid.UUID:
    """The id of the conversation at a place. `agent` is the agent of a DM or session."""
    match place.kind:
        case ConversationKind.ROOM:
            return room_id(workspace, place.name)
        case ConversationKind.THREAD:
            return thread_id(room_id(workspace, place.name), place.thread or "")
        case ConversationKind.DM:
            return dm_id(workspace.tenant_id, user, agent)
        case ConversationKind.SESSION:
            return derived_id(
                "session", str(workspace.tenant_id), str(user), str(agent), place.project or "", place.name
            )


def dm_id(tenant: uuid.UUID, user: uuid.UUID, agent: uuid.UUID | None) -> uuid.UUID:
    """The id of a DM."""
    return derived_id("dm", str(tenant), str(user), str(agent))


def message_id(container: uuid.UUID, external_id: str) -> uuid.UUID:
    """The id of a message, from its id on the platform and the id of its room, DM or session."""
    return derived_id("message", str(container), external_id)

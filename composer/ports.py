"""What the core needs from the world at its process and network boundaries."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from composer.consent import Memory
from composer.model import (
    Agent,
    Conversation,
    ConversationKind,
    Item,
    Message,
    Role,
    Turn,
    Usage,
    User,
    Visibility,
)
from composer.visibility import Circumstances, Mark, Readable

Vectors = NDArray[np.float32]


class Clock(Protocol):
    """The time that everything stored and shown is dated with."""

    def now(self) -> datetime:
        """The time now, aware, in UTC."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors. `name` and `width` are stored beside every vector."""

    @property
    def name(self) -> str:
        """The model's name, for example `minilm`."""
        ...

    @property
    def width(self) -> int:
        """Dimensions of a vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), width), float32, L2 norm 1, in the order of `texts`.

        Raises Unavailable when the model does not answer, Misconfigured when it refuses the key or name.
        """
        ...


class Tokenizer(Protocol):
    """Counts the tokens of a text as one model sees it; `exact` is False for an estimate."""

    @property
    def exact(self) -> bool:
        """Whether `count` is this model's own tokenizer rather than an estimate."""
        ...

    def count(self, text: str) -> int:
        """Tokens in `text`; special-token spellings count as ordinary text."""
        ...


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a model request; `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an answer as it streams in; the last one carries the usage."""

    text: str = ""
    usage: Usage | None = None


class ChatModel(Protocol):
    """Answers a prompt, streaming."""

    def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        """The answer, piece by piece.

        Raises Unavailable (unreachable, timed out, rate limited, after retries) or
        Misconfigured (wrong key, unknown model, request refused), each with one plain sentence.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation as it is locked for writing. `generation` counts the runs that a room has had; `memory` is what
    its room wants kept."""

    conversation: Conversation
    generation: int
    last_seq: int
    memory: Memory = Memory.ON


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A conversation to make if it is not there yet."""

    id: uuid.UUID
    kind: ConversationKind
    name: str
    run_id: str
    private: bool = False
    room_id: uuid.UUID | None = None
    thread: str | None = None
    user_id: uuid.UUID | None = None
    agent_id: uuid.UUID | None = None
    project_id: uuid.UUID | None = None


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
    """A typed value. `value` is JSON text; `valid_to` None means that it holds now."""

    id: uuid.UUID
    run_id: str
    visibility: Visibility
    user_id: uuid.UUID | None
    key: str
    value: str
    author: str
    valid_from: datetime
    valid_to: datetime | None = None

    @property
    def vendors(self) -> tuple[str, ...]:
        """Facts are not restricted by vendor."""
        return ("*",)


@dataclass(frozen=True, slots=True)
class Landmark:
    """A decision that is pinned in every prompt of its scope."""

    id: uuid.UUID
    run_id: str
    visibility: Visibility
    user_id: uuid.UUID | None
    text: str
    author: str
    decided_at: datetime

    @property
    def vendors(self) -> tuple[str, ...]:
        """Landmarks are not restricted by vendor."""
        return ("*",)


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A statement to remember, and the messages that it came from."""

    id: uuid.UUID
    mark: Mark
    agent_id: uuid.UUID | None
    kind: str
    text: str
    author: str
    origin: str
    at: datetime
    sources: tuple[uuid.UUID, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Findable:
    """Something to put into the recall index: its marks and its stems with their counts."""

    id: uuid.UUID
    kind: str
    run_id: str
    visibility: Visibility
    user_id: uuid.UUID | None
    at: datetime
    terms: Mapping[str, int]
    vendors: tuple[str, ...] | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate for recall: how near by meaning (cosine, None without a vector) and by words (BM25)."""

    item: Item
    meaning: float | None
    words: float


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn with what is stored of its answer. `prompt` is the JSON text of the prompt; None once emptied."""

    turn: Turn
    state: str
    reply_id: uuid.UUID | None
    failure: str | None
    prompt: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is stored when a turn is answered, or has failed (`failure`: the sentence for the person)."""

    turn: Turn
    prompt: str | None
    timings_ms: str
    model: str
    usage: Usage
    at: datetime
    reply: Message | None = None
    failure: str | None = None
    sources: tuple[tuple[str, uuid.UUID], ...] = ()
    counted_tokens: int = 0


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
        self, slug: str, platform: str, workspace: str, agents: Sequence[Agent], now: datetime
    ) -> None:
        """Make the tenant, note its workspace and the agents that serve it."""
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

    async def set_private(self, room: uuid.UUID, private: bool, run_id: str, generation: int) -> None:
        """Close or open a room; its public threads follow it into its run."""
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

    async def circumstances(self, conversation: uuid.UUID, asker: uuid.UUID) -> Circumstances | None:
        """What visibility judges by, as it is now; None for an unknown conversation."""
        ...

    async def known(self, messages: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these are stored, or were and have been erased."""
        ...

    async def append(
        self, messages: Sequence[tuple[uuid.UUID, Message]], advanced: Mapping[uuid.UUID, int], *, indexed: bool
    ) -> None:
        """Append (conversation, message) pairs and count them per conversation (`advanced`)."""
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

    async def edit(self, id: uuid.UUID, text: str, mentions: Sequence[uuid.UUID], now: datetime) -> None:
        """Replace a message's text."""
        ...

    async def assign(self, conversation: uuid.UUID, project: uuid.UUID | None, pooled: bool) -> None:
        """Put a conversation into a project, or take it out."""
        ...


class Turns(Protocol):
    """Questions on their way to an answer."""

    async def queue(self, turns: Sequence[tuple[Turn, datetime]], process: int) -> None:
        """Queue answers; a turn that is known already stays as it is."""
        ...

    async def adopt(self, process: int, doors: Sequence[str]) -> int:
        """Take over what dead processes left; returns how many."""
        ...

    async def open(self, process: int) -> list[tuple[Turn, str]]:
        """What this process has still to do, oldest first, with its state."""
        ...

    async def get(self, id: uuid.UUID) -> StoredTurn | None:
        """One turn."""
        ...

    async def answer(self, answer: Answer) -> bool:
        """Store an answer, once; False if it was answered already."""
        ...

    async def sent(self, id: uuid.UUID, now: datetime) -> None:
        """The person has it."""
        ...

    async def last_counts(self, conversation: Conversation, model: str) -> tuple[int, int]:
        """(our count, the API's count) of the last prompt that a model got here; zeros if there is none."""
        ...

    async def last_prompt(
        self, readable: Readable, conversation: Conversation, asker: uuid.UUID, external_id: str | None
    ) -> tuple[str, str] | None:
        """(prompt JSON, timings JSON) of the asker's last answered turn here, or of the one asked by a message."""
        ...


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


class Recall(Protocol):
    """What can be found again: by meaning, by words, and the index behind it."""

    async def search(
        self,
        readable: Readable,
        vector: Vectors | None,
        terms: Sequence[str],
        most: int,
        leave_out: Sequence[uuid.UUID],
        now: datetime,
    ) -> list[Found]:
        """Up to `most` candidates by each way, in the order of their ids, with their texts."""
        ...

    async def summaries(self, readable: Readable, tiers: Mapping[str, int], at: datetime) -> list[Item]:
        """The latest of each tier in each run at a time, oldest first."""
        ...

    async def to_index(self, most: int) -> list[Message]:
        """Messages that recall can't find yet, locked."""
        ...

    async def index(
        self, episodes: Sequence[tuple[uuid.UUID, uuid.UUID]], findable: Sequence[Findable], done: Sequence[uuid.UUID]
    ) -> None:
        """Store episodes (id, message), make items findable by words, and mark messages as done."""
        ...

    async def to_embed(self, most: int) -> list[tuple[uuid.UUID, str]]:
        """Items without a vector, with the text to embed."""
        ...

    async def embed(self, ids: Sequence[uuid.UUID], vectors: Vectors) -> None:
        """Store vectors."""
        ...

    async def backlog(self) -> tuple[int, int]:
        """(messages to index, items to embed)."""
        ...

    async def forget(self, ids: Sequence[uuid.UUID]) -> None:
        """Take items out of the index."""
        ...


class Structured(Protocol):
    """Facts, landmarks, explicit memories, and the lineage of all of them."""

    async def facts(self, readable: Readable, at: datetime, key: str | None = None) -> list[Fact]:
        """The facts that held at a time."""
        ...

    async def history(self, readable: Readable, key: str) -> list[Fact]:
        """Every value a key has had, oldest first."""
        ...

    async def set_fact(self, id: uuid.UUID, mark: Mark, agent: uuid.UUID | None, fact: Fact, origin: str) -> None:
        """Let a value hold from `fact.valid_from`; the one before it ends then."""
        ...

    async def landmarks(self, readable: Readable, at: datetime) -> list[Landmark]:
        """The decisions that had been made by a time and stand, oldest first."""
        ...

    async def add_landmark(self, landmark: Landmark, agent: uuid.UUID | None) -> None:
        """Pin a decision."""
        ...

    async def remember(self, memories: Sequence[NewMemory]) -> set[uuid.UUID]:
        """Store memories with their lineage; the ids of those that are new."""
        ...


@dataclass(frozen=True, slots=True)
class StoredReply:
    """An answer of an agent as it stands in the log, and the turn and message that it belongs to."""

    id: uuid.UUID
    turn_id: uuid.UUID
    conversation_id: uuid.UUID
    asked: uuid.UUID
    text: str


class Erasing(Protocol):
    """Taking things out of every layer."""

    async def closure(self, sources: Sequence[uuid.UUID], *, through_answers: bool) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of everything that flowed from some sources; `through_answers`: also into the prompts
        that had an answer in view which was made from them."""
        ...

    async def owned(self, user: uuid.UUID) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of all that is a person's own beside their messages."""
        ...

    async def erase(
        self, messages: Sequence[uuid.UUID], items: Mapping[str, Sequence[uuid.UUID]], now: datetime
    ) -> tuple[dict[str, int], set[uuid.UUID]]:
        """Delete messages and items for good; how many of each kind went, and the conversations changed."""
        ...

    async def replies(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[StoredReply]:
        """The agent's answers in these turns, or to these messages."""
        ...

    async def texts(self, messages: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str]]:
        """(conversation, text) of messages."""
        ...

    async def matching(
        self, user: uuid.UUID, run_ids: Sequence[str], words: str
    ) -> tuple[list[uuid.UUID], list[tuple[str, uuid.UUID]]]:
        """A person's own messages, and (kind, id) of their own entries, in some runs, that hold some words."""
        ...

    async def withdraw(self, replies: Sequence[uuid.UUID], text: str) -> None:
        """Put `text` in the place of answers."""
        ...

    async def empty_prompts(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Empty the stored prompts of these turns, and of those that answered these messages; their conversations."""
        ...


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

    async def opted_out(self, users: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Of whom nothing is kept."""
        ...

    async def set_memory(self, room: uuid.UUID, memory: str) -> None:
        """What is kept of a room: on, mentions or off."""
        ...

    async def notice(self, room: uuid.UUID, now: datetime) -> bool:
        """Whether the first-use notice of a room is still to be posted; it is only asked for once."""
        ...

    async def seen(self, seen: Sequence[tuple[uuid.UUID, str, datetime, str | None]]) -> None:
        """How far a platform's events were received: (conversation, message id there, time), and what people call it
        (None: as before)."""
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


class Transaction(Protocol):
    """One transaction of one tenant, by noun. It commits when its block ends, and not if that raised."""

    @property
    def log(self) -> Log:
        """People, conversations, messages."""
        ...

    @property
    def turns(self) -> Turns:
        """Questions and their answers."""
        ...

    @property
    def projects(self) -> Projects:
        """Projects and their members."""
        ...

    @property
    def recall(self) -> Recall:
        """The recall index."""
        ...

    @property
    def structured(self) -> Structured:
        """Facts, landmarks, memories."""
        ...

    @property
    def erasing(self) -> Erasing:
        """Taking things out."""
        ...

    @property
    def doors(self) -> Doors:
        """What the chat platforms add."""
        ...


class Store(Protocol):
    """The database. Raises Unavailable with one sentence when it can't be reached."""

    def transaction(self, tenant_id: uuid.UUID, *, snapshot: bool = False) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that sees one tenant; `snapshot`: read-only, all reads as of one moment."""
        ...

    async def tenants(self) -> list[tuple[uuid.UUID, str]]:
        """Ids and slugs of all tenants."""
        ...


class WorkingCache(Protocol):
    """The last messages of each conversation, in Redis. It may lose or refuse anything at any time."""

    async def read(self, conversation: Conversation) -> list[Message] | None:
        """The cached messages, oldest first; None when there is none of this very version.

        Raises Unavailable when the cache does not answer.
        """
        ...

    async def replace(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Put a view there that was read from the log at `conversation.version`."""
        ...

    async def append(self, appended: Appended) -> None:
        """Add what was appended to the log; a view of another version is dropped instead."""
        ...

    async def drop(self, conversations: Sequence[uuid.UUID]) -> None:
        """Forget views."""
        ...


class Locks(Protocol):
    """Which process answers in which conversation. Raises Unavailable when the database does not answer."""

    @property
    def number(self) -> int:
        """This process's own number, held for as long as it lives."""
        ...

    async def take(self, conversation: uuid.UUID) -> bool:
        """Take a conversation for answering; False while another process has it."""
        ...

    async def release(self, conversation: uuid.UUID) -> None:
        """Let another process answer there."""
        ...

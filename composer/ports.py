"""What the core needs from the world at its process and network boundaries."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

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
from composer.standing import Held
from composer.visibility import Circumstances, Mark, Readable

Vectors = NDArray[np.float32]
ALWAYS: Final = datetime(1, 1, 2, tzinfo=UTC)  # before anything was said, in every time zone


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
    run_id: str
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


@dataclass(frozen=True, slots=True)
class Compaction:
    """The oldest part of a conversation's view, as one agent sees it, as a summary.

    It covers all messages up to `through` (time, seq); `made` is the newest message that was in view. `before` and
    `after` are the prompt's tokens as compaction judges it. `asked`: a person asked for it.
    """

    id: uuid.UUID
    conversation_id: uuid.UUID
    agent_id: uuid.UUID
    run_id: str
    visibility: Visibility
    user_id: uuid.UUID | None
    through: tuple[datetime, int]
    made: tuple[datetime, int]
    messages: int
    text: str
    tokens: int
    model: str
    before: int
    after: int
    asked: bool
    created_at: datetime
    sources: tuple[tuple[str, uuid.UUID], ...] = ()

    @property
    def vendors(self) -> tuple[str, ...]:
        """A view is the bot's own."""
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
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a talk is filed: extraction never looks over its edge."""

    conversation_id: uuid.UUID
    run_id: str
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class Outdated:
    """A memory that held from `at` until `until`, and what took its place."""

    run_id: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...]
    text: str
    author: str
    at: datetime
    until: datetime
    newer: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A statement that an extractor drew from messages, those that it came from first of all, and from memories that
    it was shown."""

    kind: str
    text: str
    sources: tuple[uuid.UUID, ...]
    built_on: tuple[uuid.UUID, ...] = ()


class Extractor(Protocol):
    """Draws statements from talk. It sees the talk and what is remembered of its own scope, and nothing else."""

    async def extract(
        self, messages: Sequence[Message], near: Callable[[Vectors], Awaitable[list[tuple[uuid.UUID, str]]]]
    ) -> list[Drawn]:
        """What the messages state; `near` gives the memories of their scope nearest to a vector.

        Raises Unavailable or Misconfigured with one sentence: also for an answer that can't be read.
        """
        ...


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
    """A candidate for recall: how near by meaning (cosine, None without a vector) and by words (BM25).

    `before` and `after`: the ids of what was said just before and after it in the same talk, where that was looked up.
    """

    item: Item
    meaning: float | None
    words: float
    before: str | None = None
    after: str | None = None


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
    reused_tokens: int = 0


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

    async def room_states(self, rooms: Sequence[uuid.UUID]) -> dict[uuid.UUID, RoomState]:
        """Of those rooms that are known, who may read them; for filing what was said long ago."""
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

    async def refused(self, id: uuid.UUID, why: str) -> None:
        """The platform will never take the answer: it is not tried again, and why is kept."""
        ...

    async def last_counts(self, conversation: Conversation, model: str) -> tuple[int, int]:
        """(our count, the API's count) of the last prompt that a model got here; zeros if there is none."""
        ...

    async def prompt_before(self, turn: Turn) -> str | None:
        """The role messages (JSON) of the agent's last prompt before this turn in its conversation, to be compared."""
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
        since: datetime = ALWAYS,
    ) -> list[Found]:
        """Up to `most` candidates by each way and the neighbours of the best, in the order of their ids, with texts.

        What was said after `now` or before `since` is not there, also for what is counted.
        """
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

    async def landmarks(self, readable: Readable, at: datetime, *, retired: bool = False) -> list[Landmark]:
        """The decisions that had been made by a time, oldest first; those that are no longer pinned if `retired`."""
        ...

    async def add_landmarks(self, landmarks: Sequence[Landmark]) -> None:
        """Pin or propose decisions, with their lineage; what is known stays as it is."""
        ...

    async def settle_landmark(self, id: uuid.UUID, state: LandmarkState, by: str, now: datetime) -> bool:
        """Accept or retire a decision; False when it is so already, or was retired."""
        ...

    async def remember(self, memories: Sequence[NewMemory]) -> set[uuid.UUID]:
        """Store memories with their lineage; the ids of those that are new."""
        ...


class Memories(Protocol):
    """How memories stand beside each other, and the queue of what a model is to look at."""

    async def lock(self) -> None:
        """One at a time judges how a tenant's statements stand, until the transaction ends."""
        ...

    async def known(self, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these are stored."""
        ...

    async def held(self, mark: Mark, terms: Sequence[str]) -> list[Held]:
        """What stands in one scope and shares a term, oldest first; only to hold new statements against it."""
        ...

    async def restate(self, id: uuid.UUID, sources: Sequence[uuid.UUID], at: datetime, ends: datetime | None) -> None:
        """Note that more messages state a memory."""
        ...

    async def outdate(self, old: Sequence[uuid.UUID], new: uuid.UUID, at: datetime) -> None:
        """Let a memory take the place of older ones from a time on."""
        ...

    async def remake(self, memories: Sequence[uuid.UUID], without: Sequence[uuid.UUID]) -> None:
        """Read the messages of memories that go again, without those that go themselves."""
        ...

    async def outdated(self, readable: Readable, terms: Sequence[str], most: int, at: datetime) -> list[Outdated]:
        """What held once and was outdated since, latest first."""
        ...

    async def near(
        self, talk: Scope, owner: uuid.UUID | None, vector: Vectors, most: int
    ) -> list[tuple[uuid.UUID, str]]:
        """(id, text) of the memories of a talk's own scope that are nearest to it."""
        ...

    async def built_on(self, id: uuid.UUID, memories: Sequence[uuid.UUID]) -> None:
        """Note from which other memories one was made."""
        ...

    async def queue(self, messages: Sequence[uuid.UUID]) -> None:
        """Let a model look at messages."""
        ...

    async def due(self, now: datetime, enough: int, quiet_since: datetime, most: int) -> list[Scope]:
        """Scopes whose turn it is, longest waiting first."""
        ...

    async def claim(
        self, talk: Scope, claim: uuid.UUID, now: datetime, until: datetime, most: int
    ) -> list[Message] | None:
        """The oldest messages of a scope's queue, for one attempt; None while another one has them."""
        ...

    async def unchanged(self, talk: Scope, claim: uuid.UUID, messages: Sequence[Message]) -> bool:
        """Whether an attempt still has its claim, and its messages still say what they said; they do until the
        transaction ends."""
        ...

    async def done(self, talk: Scope, claim: uuid.UUID, messages: Sequence[uuid.UUID]) -> None:
        """Take messages out of the queue, with the claim."""
        ...

    async def release(self, talk: Scope, claim: uuid.UUID) -> None:
        """Give an attempt up, without a failure."""
        ...

    async def attempts(self, talk: Scope) -> int:
        """How often a scope's queue has failed in a row."""
        ...

    async def failed(
        self, talk: Scope, claim: uuid.UUID, sentence: str, due: datetime, parked: datetime | None
    ) -> None:
        """Try again at a time, or not before an admin says so."""
        ...

    async def unpark(self) -> int:
        """Let everything that is parked be tried again; how many scopes that are."""
        ...

    async def backlog(self) -> tuple[int, int, str | None]:
        """(messages waiting, scopes parked, the sentence of the last one that was)."""
        ...


class TenantSettings(Protocol):
    """What the admins of a tenant have set. Nothing that was said."""

    async def all(self) -> dict[str, str]:
        """Every setting that was changed, as JSON text by its key."""
        ...

    async def put(self, key: str, value: str, now: datetime) -> None:
        """Set one, to JSON text."""
        ...

    async def reset(self, key: str) -> None:
        """Let what is configured hold again."""
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

    async def opted_out(self, users: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Of whom nothing is kept."""
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

    async def said_since(self, conversation: uuid.UUID, since: datetime, most: int) -> list[str]:
        """The platform's ids of the messages of people that we hold of a conversation, latest first."""
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


class Compactions(Protocol):
    """The oldest parts of views, as summaries."""

    async def latest(
        self, readable: Readable, conversation: Conversation, agent: uuid.UUID, before: Message
    ) -> Compaction | None:
        """The newest one of an agent's view of a conversation that was made before a message was said."""
        ...

    async def add(self, compaction: Compaction) -> bool:
        """Keep one with its lineage; False when as new a one is there."""
        ...

    async def unchanged(self, messages: Sequence[Message]) -> bool:
        """Whether these messages still stand in the log as they are here."""
        ...


@dataclass(frozen=True, slots=True)
class DueMark:
    """A quarter of an hour of a conversation's run that a tier of summaries has to look at."""

    conversation_id: uuid.UUID
    run_id: str
    quarter: datetime
    kind: ConversationKind
    user_id: uuid.UUID | None
    agent_id: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class Span:
    """What one summary is of: a span of time (its end not included) of one run with one visibility."""

    tier: str
    conversation_id: uuid.UUID
    run_id: str
    visibility: Visibility
    user_id: uuid.UUID | None
    agent_id: uuid.UUID | None
    starts_at: datetime
    ends_at: datetime

    def between(self, first: datetime, last: datetime) -> "Span":
        """The same run, from a first message to a last one."""
        return replace(self, starts_at=first, ends_at=last)


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary to store, with what it was made from (`source_kind`: message or summary)."""

    id: uuid.UUID
    span: Span
    text: str
    tokens: int
    model: str
    source_kind: str
    sources: tuple[uuid.UUID, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A summary as it stands."""

    id: uuid.UUID
    starts_at: datetime
    ends_at: datetime
    text: str


class Summaries(Protocol):
    """Summaries as the job writes them, tier by tier. Nobody reads by it: what is read goes by Recall."""

    async def due(self, tier: str) -> list[DueMark]:
        """What a tier has to look at, oldest first."""
        ...

    async def settle(self, span: Span, quarters: Sequence[datetime]) -> None:
        """A tier has looked at these."""
        ...

    async def mark(self, tier: str, span: Span) -> None:
        """A higher tier has to look at where a span begins."""
        ...

    async def serial(self) -> None:
        """From here to the end of the transaction nobody else stores a summary or erases a message."""
        ...

    async def around(
        self, conversation: uuid.UUID, run_id: str, first: datetime, last: datetime, pause: timedelta
    ) -> tuple[datetime, datetime]:
        """From where to where the talk went on, without such a pause, that was going on between two moments."""
        ...

    async def said(self, span: Span) -> list[tuple[Message, str]]:
        """What people said in a span, oldest first, each with what tells an edited text from the one before; nothing
        of those who opted out."""
        ...

    async def within(self, span: Span, tier: str | None = None) -> list[StoredSummary]:
        """The summaries of the span's tier (or another one) in its conversation's run that overlap it."""
        ...

    async def put(self, summary: NewSummary) -> None:
        """Store a summary with its lineage."""
        ...

    async def replace(self, summaries: Sequence[uuid.UUID]) -> None:
        """Take summaries away whose place is taken; their lineage stays, for the prompts that held them."""
        ...


class Upkeep(Protocol):
    """What has had its time."""

    async def expired(self, now: datetime, most: int) -> list[uuid.UUID]:
        """Memories that have run out."""
        ...

    async def trashed(self, before: datetime, most: int) -> list[uuid.UUID]:
        """Memories that were put into the trash before a moment."""
        ...

    async def retained(self, before: datetime, most: int) -> list[uuid.UUID]:
        """Messages from before a moment."""
        ...

    async def drop_codes(self, now: datetime) -> None:
        """Forget codes that nobody entered in time."""
        ...

    async def drop_commands(self, before: datetime) -> None:
        """Forget which commands were run before a moment."""
        ...

    async def roll_up(self, until: datetime) -> None:
        """Add up what was used, by day, agent and model."""
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
    def memories(self) -> Memories:
        """How memories stand, and what waits for a model."""
        ...

    @property
    def settings(self) -> TenantSettings:
        """What the tenant's admins have set."""
        ...

    @property
    def erasing(self) -> Erasing:
        """Taking things out."""
        ...

    @property
    def doors(self) -> Doors:
        """What the chat platforms add."""
        ...

    @property
    def compactions(self) -> Compactions:
        """The oldest parts of views, as summaries."""
        ...

    @property
    def summaries(self) -> Summaries:
        """Summaries as they are written."""
        ...

    @property
    def upkeep(self) -> Upkeep:
        """What has had its time."""
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


@dataclass(frozen=True, slots=True)
class JobRun:
    """What is known of one run of a job; `slot` is the moment that it stands for."""

    name: str
    slot: datetime
    state: str
    attempts: int
    started_at: datetime
    ended_at: datetime | None
    done: int
    failed: int
    said: str


class Ledger(Protocol):
    """What the schedule has done. It holds figures, and nothing that anybody said."""

    async def begin(self, name: str, slot: datetime, now: datetime) -> bool:
        """A run begins; False when this slot is done."""
        ...

    async def end(
        self, name: str, slot: datetime, state: str, now: datetime, done: int, failed: int, said: str
    ) -> None:
        """A run has ended."""
        ...

    async def latest(self) -> list[JobRun]:
        """The last run of each job."""
        ...

    async def last_done(self, now: datetime) -> dict[str, datetime]:
        """The last slot up to now of each job that is done."""
        ...

    async def prune(self, before: datetime) -> None:
        """Forget runs of long ago."""
        ...

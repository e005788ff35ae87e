"""The JSON document of a person's export, as pydantic models (docs/export.md; its schema: docs/export.schema.json)."""

import uuid
from datetime import date, datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

EXPORT_FORMAT: Final = "nexus-export"
EXPORT_VERSION: Final = 1


class DocumentPart(BaseModel):
    """Any object of the document. An unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ExportedIdentity(DocumentPart):
    """An account on a platform. `user` is the id of the stored user that it belongs to; `trust`: what the platform said
    of it when it last did, member or guest, and `timezone` likewise."""

    user: uuid.UUID
    platform: str
    workspace: str
    id: str
    trust: str | None
    timezone: str | None


class ExportedUser(DocumentPart):
    """A stored user. A person who linked accounts has several. `reads_rooms`: its DMs read the rooms it is in.
    `disabled_at`: since when admins let nothing open its memory from outside; null: they do not."""

    id: uuid.UUID
    name: str
    admin: bool
    opted_out: bool
    reads_rooms: bool
    disabled_at: datetime | None
    since: datetime


class ExportedPlace(DocumentPart):
    """Where items are filed, in words, and who is answered from it. Items name it by `namespace`."""

    namespace: str
    name: str
    readers: str


class ExportedRoom(DocumentPart):
    """A room that the person is or was in. A private one that they left has no name."""

    id: uuid.UUID
    name: str | None
    admin: bool
    joined_at: datetime
    left_at: datetime | None


class ExportedProject(DocumentPart):
    """A project that the person is in, with their role, or is invited to."""

    id: uuid.UUID
    name: str
    isolated: bool
    role: Literal["read", "write", "admin"] | None
    invited_until: datetime | None


class ExportedTeam(DocumentPart):
    """A team that the person is in, with their role, or is invited to."""

    id: uuid.UUID
    name: str
    role: Literal["member", "admin"] | None
    joined_at: datetime | None
    invited_until: datetime | None


class ExportedKey(DocumentPart):
    """A key to the person's memory, by its beginning: its text is stored nowhere. `vendor` null: their own. Of a
    connected app `client` is its id, and `redirect_uri` where it is led back to."""

    id: uuid.UUID
    vendor: str | None
    name: str
    prefix: str
    permissions: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    client: str | None = None
    redirect_uri: str | None = None


class ExportedWebSession(DocumentPart):
    """A browser that is signed in as the person. `browser` is what it calls itself."""

    id: uuid.UUID
    browser: str
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


class ExportedLogin(DocumentPart):
    """An account at the OpenID provider that signs the person in. `name` is what the provider called it."""

    id: uuid.UUID
    issuer: str
    name: str
    created_at: datetime
    last_used_at: datetime | None


class ExportedWebhook(DocumentPart):
    """An address that is told of what the person may see, of these `pages`; `place`: of one room, team or project
    alone. Its secret is stored nowhere."""

    id: uuid.UUID
    name: str
    url: str
    pages: list[str]
    place: uuid.UUID | None
    created_at: datetime
    off_at: datetime | None
    off_why: str | None
    last_at: datetime | None
    last_result: str | None


class ExportedFile(DocumentPart):
    """A file of a message: its size in bytes (0: unknown), and its text if it is a text file."""

    name: str
    type: str
    size: int
    text: str


class FiledPart(DocumentPart):
    """Something that is filed under a namespace with a visibility."""

    id: uuid.UUID
    namespace: str
    visibility: Literal["public", "private", "shared"]


class ExportedMessage(FiledPart):
    """A message that the person wrote. `platform_id` and `reply_to` are ids on the platform."""

    platform_id: str
    conversation: uuid.UUID
    at: datetime
    edited_at: datetime | None
    author: str
    text: str
    reply_to: str | None
    files: list[ExportedFile]


class ExportedPromptMessage(DocumentPart):
    """One message of a prompt as it was sent to the model."""

    role: str
    content: str


class ExportedAnswer(FiledPart):
    """An answer to a question of the person: `id` is that of the turn. `text` and `prompt` are null where the person
    may not read them now, or where they are not stored any more; of a prompt, what they may not read is left out."""

    question: uuid.UUID
    conversation: uuid.UUID
    at: datetime | None
    agent: str
    model: str | None
    text: str | None
    failure: str | None
    prompt: list[ExportedPromptMessage] | None


class ExportedMemory(FiledPart):
    """A remembered statement. It is current until `valid_to`, or until it expires; `superseded_by` and `merged_into`
    are memories. `messages` are the person's messages that it was made from. `content` is what was sent of an entry;
    null where that is its `text`. `allowed_vendors` are the tools that may read it; `*` means all. `history` says which
    of its fields were changed when, and by whom."""

    kind: str
    key: str | None
    title: str | None
    text: str
    content: str | None
    tags: list[str]
    metadata: dict[str, Any]
    session: str | None
    allowed_vendors: list[str]
    author: str
    origin: str
    created_at: datetime
    updated_at: datetime | None
    version: int
    history: list[dict[str, Any]]
    expires_at: datetime | None
    valid_to: datetime | None
    superseded_by: uuid.UUID | None
    merged_into: uuid.UUID | None
    trashed_at: datetime | None
    messages: list[uuid.UUID]


class ExportedFact(FiledPart):
    """A value of a key, from `valid_from` until `valid_to` (null: it is current)."""

    key: str
    value: Any
    author: str
    origin: str
    valid_from: datetime
    valid_to: datetime | None


class ExportedLandmark(FiledPart):
    """A pinned, proposed or retired decision."""

    text: str
    author: str
    decided_at: datetime
    state: str
    retired_at: datetime | None
    replaces: uuid.UUID | None


class ExportedPendingItem(FiledPart):
    """A memory, fact or landmark that waits for approval: nobody is answered from it yet. `detail` is the kind of a
    memory or the key of a fact; `text` of a fact is its value as JSON. `messages` are the person's messages that it was
    found in. `entry` is what else an entry has: title, content, tags and the like."""

    kind: Literal["memory", "fact", "landmark"]
    detail: str
    text: str
    author: str
    origin: str
    at: datetime
    entry: dict[str, Any] | None
    messages: list[uuid.UUID]


class ExportedSummary(FiledPart):
    """A summary of a DM or a session of the person."""

    tier: str
    text: str
    starts_at: datetime
    ends_at: datetime


class ExportedReminder(FiledPart):
    """A reminder that the person asked for. `due_at` is when it is or was due; `repeats` are days of the week (0 is
    Monday) and a local time, null for once. One that has ended is not posted again."""

    text: str
    made_at: datetime
    due_at: datetime
    repeats: str | None
    posted_at: datetime | None
    state: Literal["open", "ended"]


class ExportedSettings(DocumentPart):
    """What the person has set for themselves."""

    recall: bool
    strategy: str | None
    budget: int
    trash_days: int
    keep_days: int | None
    timezone: str | None
    changed_at: datetime


class ExportedUsage(DocumentPart):
    """Calls of a model in the person's name on one day of the workspace's time zone: those for the answers to them, and
    for what was made of their DMs and sessions. `cost` is in the currency of the settings, as far as it is known."""

    day: date
    kind: str
    conversation: uuid.UUID | None
    model: str
    calls: int
    failures: int
    refused: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float


class ExportedOperation(DocumentPart):
    """What was done over the API in a month, by a tool for the person or, as `api`, by the person. `tokens`: an
    estimate of what was stored or handed out."""

    month: date
    operation: str
    vendor: str
    count: int
    tokens: int


class ExportedRead(DocumentPart):
    """When a tool was last handed something out: an entry, fact or decision (its id), over the API, over MCP or through
    the gateway."""

    item_id: uuid.UUID
    vendor: str
    route: str
    at: datetime


class Export(DocumentPart):
    """The whole document. All times are UTC."""

    format: Literal["nexus-export"]
    version: Literal[1]
    made_at: datetime
    workspace: str
    accounts: list[ExportedUser]
    identities: list[ExportedIdentity]
    places: list[ExportedPlace]
    rooms: list[ExportedRoom]
    projects: list[ExportedProject]
    teams: list[ExportedTeam]
    keys: list[ExportedKey]
    web_sessions: list[ExportedWebSession]
    logins: list[ExportedLogin]
    webhooks: list[ExportedWebhook]
    settings: list[ExportedSettings]
    messages: list[ExportedMessage]
    answers: list[ExportedAnswer]
    memories: list[ExportedMemory]
    facts: list[ExportedFact]
    landmarks: list[ExportedLandmark]
    pending: list[ExportedPendingItem]
    summaries: list[ExportedSummary]
    reminders: list[ExportedReminder]
    usage: list[ExportedUsage]
    operations: list[ExportedOperation]
    reads: list[ExportedRead]

    @property
    def counts(self) -> dict[str, int]:
        """How many items of each kind it has."""
        return {kind: len(getattr(self, kind)) for kind in EXPORT_PARTS} | {"pending items": len(self.pending)}

    def as_text(self) -> str:
        """The document as indented JSON."""
        return self.model_dump_json(indent=1) + "\n"


EXPORT_PARTS: Final = ("messages", "answers", "memories", "facts", "landmarks", "summaries", "reminders")

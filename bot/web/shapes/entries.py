"""Entries, as the API takes and answers them."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from bot.web.shapes.values import Flag, Moment
from composer.entries.draft import (
    ENTRY_KINDS,
    MAX_CONTENT_BYTES,
    MAX_ENTRY_KEY_CHARS,
    MAX_SESSION_CHARS,
    MAX_TAG_CHARS,
    MAX_TAGS,
    MAX_TITLE_CHARS,
    MAX_VENDORS,
    SentEntry,
)
from composer.model import Item
from composer.repositories.entries import Entry
from composer.visibility import EntryAccess

Kind = Literal[
    "factual", "episodic", "procedural", "semantic", "note", "preference", "habit", "decision", "action item", "fact"
]
Content = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_CONTENT_BYTES,
        description=f"Stored exactly as sent: at most {MAX_CONTENT_BYTES:,} bytes of UTF-8.",
    ),
]
Title = Annotated[str, Field(max_length=MAX_TITLE_CHARS, description="Without one, the content's first line.")]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=MAX_TAG_CHARS)]], Field(max_length=MAX_TAGS)]
Vendors = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_TAG_CHARS)]],
    Field(min_length=1, max_length=MAX_VENDORS, description="The tools that may read it, or `*` for every tool."),
]
Metadata = Annotated[dict[str, Any], Field(description="Any JSON: at most 10,000 bytes, in 5 levels.")]
SNIPPET_CHARS: Final = 300
STORED_AS: Final = {"allowed_vendors": "vendors"}
CLEARED: Final = ("title", "expires_at")


class RequestBody(BaseModel):
    """What a request may hold: nothing that is not named."""

    model_config = ConfigDict(extra="forbid")


class EntryParts(RequestBody):
    """What may be said of an entry, by the names that an entry has."""

    def sent(self) -> SentEntry:
        """What was said, for the use case. None takes a title or an expiry away; elsewhere it says nothing."""
        said = {STORED_AS.get(name, name): getattr(self, name) for name in self.model_fields_set}
        known = {name: said[name] for name in SentEntry.__annotations__ if name in said}
        return cast(SentEntry, {name: value for name, value in known.items() if value is not None or name in CLEARED})


class EntryFields(EntryParts):
    """An entry to be written."""

    content: Content
    title: Title | None = None
    kind: Kind = "note"
    key: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=MAX_ENTRY_KEY_CHARS,
                description="Writing again with the same key replaces what the same writer wrote with it.",
            ),
        ]
        | None
    ) = None
    tags: Tags = []
    metadata: Metadata = {}
    session: Annotated[str, Field(min_length=1, max_length=MAX_SESSION_CHARS)] | None = None
    allowed_vendors: Vendors | None = None
    expires_at: Moment | None = None


class NewEntry(EntryFields):
    """An entry to be written, among one's own or for a project."""

    project: Annotated[str, Field(min_length=1, max_length=200, description="A project's id or name.")] | None = None


class EntryUpdate(EntryParts):
    """What to change of an entry. What is left out stays; `title` and `expires_at` are taken away by null."""

    content: Content | None = None
    title: Title | None = None
    kind: Kind | None = None
    tags: Tags | None = None
    metadata: Metadata | None = None
    allowed_vendors: Vendors | None = None
    expires_at: Moment | None = None


class EntryOwner(BaseModel):
    """Whose something is. `you`: the person who asks."""

    id: uuid.UUID
    name: str
    you: Flag


class TeamOrProject(BaseModel):
    """A team or a project."""

    id: uuid.UUID
    name: str


class EntrySharing(BaseModel):
    """With whom an entry is shared. `everyone`: it is used in answers wherever its owner takes part. `former_member`:
    its owner has left the team."""

    team: TeamOrProject | None
    project: TeamOrProject | None
    everyone: Flag
    former_member: Flag


class _EntryResponse(BaseModel):
    id: uuid.UUID
    title: str
    kind: str
    key: str | None
    tags: list[str]
    metadata: dict[str, Any]
    session: str | None
    origin: str = Field(description="Who wrote it: the name of a tool, or `api` for the person themselves.")
    allowed_vendors: list[str]
    owner: EntryOwner
    shared: EntrySharing
    tokens: int = Field(description="An estimate of the tokens of its content.")
    version: int
    created_at: datetime
    updated_at: datetime | None
    expires_at: datetime | None
    trashed_at: datetime | None
    purge_at: datetime | None = Field(description="When it is erased for good, since it is in the trash.")


class EntryResponse(_EntryResponse):
    """An entry, whole."""

    content: str


class EntrySnippet(_EntryResponse):
    """An entry with the beginning of its text."""

    snippet: str


class WrittenEntry(EntryResponse):
    """An entry that was written. `pending`: it waits for its person's approval, and is recalled nowhere until then."""

    pending: bool = False


class EntryStats(BaseModel):
    """All entries that fit: how many, by kind, and an estimate of their tokens. `hit_rate`: the share of the person's
    searches of this month and the last, by them and their tools, that found something; null without any, and for tools.
    """

    total: int
    by_kind: dict[str, int]
    tokens: int
    hit_rate: float | None


class EntryList(BaseModel):
    """Entries, newest first. `next` is the cursor of the next page; null after the last."""

    items: list[EntryResponse]
    next: str | None
    stats: EntryStats | None = None


class EntrySnippetList(BaseModel):
    """The beginnings of entries, newest first. `next` is the cursor of the next page; null after the last."""

    items: list[EntrySnippet]
    next: str | None
    stats: EntryStats | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """What ids are called: of people, teams and projects that may be named to whoever asks."""

    access: EntryAccess
    people: Mapping[uuid.UUID, str] = field(default_factory=dict)
    teams: Mapping[uuid.UUID, str] = field(default_factory=dict)


def entry_values(entry: Entry, names: Names, *, snippet: bool = False) -> dict[str, Any]:
    """An entry as EntryResponse, or as EntrySnippet, shows it."""
    return shown_as(EntrySnippet if snippet else EntryResponse, all_values(entry, names))


def all_values(entry: Entry, names: Names) -> dict[str, Any]:
    """All that is ever shown of an entry, by the names that it has there."""
    values = entry.values.plain()
    owner = {
        "id": entry.user_id,
        "name": names.people.get(entry.user_id, ""),
        "you": entry.user_id in names.access.users,
    }
    return {
        **values,
        "id": entry.id,
        "title": entry.title,
        "content": entry.content,
        "snippet": entry.values.text[:SNIPPET_CHARS],
        "origin": entry.origin,
        "allowed_vendors": values["vendors"],
        "owner": owner,
        "shared": shared_values(entry, names),
        "tokens": entry.tokens,
        "version": entry.version,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
        "trashed_at": entry.trashed_at,
        "purge_at": purge_at(entry.trashed_at, names.access),
    }


def purge_at(trashed_at: datetime | None, access: EntryAccess) -> datetime | None:
    """When what is in the trash since a time is erased, as its person has set; None for what is not in it."""
    return None if trashed_at is None else trashed_at + timedelta(days=access.settings.trash_days)


def shown_as(shape: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some values that a shape has, in its order, after the id."""
    return {name: values[name] for name in ("id", *shape.model_fields)}


def shared_values(entry: Entry, names: Names) -> dict[str, Any]:
    """With whom an entry is shared, as EntrySharing shows it."""
    everyone = entry.namespace.startswith("profile:")
    return {**shared_in(entry.namespace, names), "everyone": everyone, "former_member": entry.former}


def shared_in(namespace: str, names: Names) -> dict[str, Any]:
    """The team or the project of a namespace, as EntrySharing shows them."""
    kind, _, rest = namespace.partition(":")
    shared_id = uuid.UUID(rest) if kind in ("team", "project") else None
    slugs = {each.id: each.slug for each in names.access.projects}
    return {
        "team": _named(kind == "team", shared_id, names.teams),
        "project": _named(kind == "project", shared_id, slugs),
    }


def _named(applies: bool, id: uuid.UUID | None, names: Mapping[uuid.UUID, str]) -> dict[str, Any] | None:
    return {"id": id, "name": names.get(id, "")} if applies and id is not None else None


def owners(entries: Sequence[Entry | Item]) -> list[uuid.UUID]:
    """The people whose entries, facts and landmarks these are."""
    return sorted({entry.user_id for entry in entries if entry.user_id is not None})


assert set(ENTRY_KINDS) == set(Kind.__args__)  # type: ignore[attr-defined]

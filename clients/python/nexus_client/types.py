"""The shapes of answers. Times are ISO 8601, ids UUIDs, both as text."""

from typing import Any, TypedDict


class Person(TypedDict):
    """Whose something is. `you`: the person whose key it is."""

    id: str
    name: str
    you: bool


class Named(TypedDict):
    """A team or a project."""

    id: str
    name: str


class Shared(TypedDict):
    """With whom an entry is shared."""

    team: Named | None
    project: Named | None
    everyone: bool
    former_member: bool


class _EntryBase(TypedDict):
    id: str
    title: str
    kind: str
    key: str | None
    tags: list[str]
    metadata: dict[str, Any]
    session: str | None
    origin: str
    allowed_vendors: list[str]
    owner: Person
    shared: Shared
    tokens: int
    version: int
    created_at: str
    updated_at: str | None
    expires_at: str | None
    trashed_at: str | None
    purge_at: str | None


class Entry(_EntryBase):
    """An entry, whole."""

    content: str


class WrittenEntry(Entry):
    """An entry that was written. `pending`: it waits for approval."""

    pending: bool


class Snippet(_EntryBase):
    """An entry with the beginning of its text."""

    snippet: str

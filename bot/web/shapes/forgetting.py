"""What is forgotten for good, and what waits for approval, as the API takes and answers it."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from bot.web.shapes.entries import Kind, RequestBody, Tags, TeamOrProject
from bot.web.shapes.values import Count, Flag, Moment
from composer.memory.forget import Receipt
from composer.repositories.entries import values_from_json
from composer.repositories.quarantine import PendingItem


class ForgetFilter(RequestBody):
    """Which entries to forget, by what they are: those that fit all of it."""

    kind: Kind | None = None
    older_than: Annotated[Moment, Field(description="Written before this time.")] | None = None


class ToolForgetRequest(ForgetFilter):
    """Which of the entries that a tool wrote to forget: those that fit all of it, or everything."""

    everything: Annotated[Flag, Field(description="All of it. Needed where nothing narrows it down.")] = False


class ForgetRequest(ForgetFilter):
    """Which of one's own entries to forget, also in the trash and expired: those that fit all of it."""

    tag: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    vendor: Annotated[str, Field(min_length=1, max_length=64, description="Who wrote them.")] | None = None
    project: (
        Annotated[str, Field(min_length=1, max_length=200, description="Of this project alone: its id or name.")] | None
    ) = None
    confirm: (
        Annotated[
            Count,
            Field(ge=0, description="How many there are. Without it nothing is forgotten, and 409 says the number."),
        ]
        | None
    ) = None


class ForgetReceipt(BaseModel):
    """What was forgotten for good: how many items of each kind, with what was made from them. `id` is that of the
    stored receipt; null where there was nothing to forget."""

    id: str | None
    counts: dict[str, int]


class PendingEntry(BaseModel):
    """An entry that waits for approval. `id` is the one to approve or reject it by; `project`: for which it was
    written."""

    id: uuid.UUID
    title: str | None
    kind: str
    key: str | None
    tags: Tags
    content: str
    origin: str
    project: TeamOrProject | None
    created_at: datetime


class PendingEntryList(BaseModel):
    """What waits for approval, oldest first."""

    items: list[PendingEntry]


def receipt_values(receipt: Receipt) -> dict[str, Any]:
    """A receipt as ForgetReceipt shows it."""
    return {"id": receipt.id or None, "counts": {kind: count for kind, count in receipt.counts.items() if count}}


def pending_values(items: Sequence[PendingItem], projects: Mapping[uuid.UUID, str]) -> dict[str, Any]:
    """What waits as PendingEntryList shows it. `projects` are names."""
    return {"items": [_pending(item, projects) for item in items]}


def _pending(item: PendingItem, projects: Mapping[uuid.UUID, str]) -> dict[str, Any]:
    assert item.entry is not None
    values = values_from_json(item.text, item.detail, item.entry)
    kind, _, rest = item.namespace.partition(":")
    project = uuid.UUID(rest) if kind == "project" else None
    return {
        "id": item.id,
        "title": values.title,
        "kind": values.kind,
        "key": values.key,
        "tags": list(values.tags),
        "content": values.text if values.content is None else values.content,
        "origin": item.origin,
        "project": None if project is None else {"id": project, "name": projects.get(project, "")},
        "created_at": item.at,
    }

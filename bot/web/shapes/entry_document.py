"""The document that a person's entries are taken out and brought in by."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, FailFast, Field

from bot.web.shapes.entries import EntryFields, EntrySharing, Names, RequestBody, shared_values
from bot.web.shapes.values import Moment
from composer.entries.import_plan import ImportedEntry, Outcome
from composer.entries.imports import MAX_ENTRIES, Imported, require_few
from composer.repositories.entries import Entry

ENTRIES_FORMAT: Final = "nexus-entries"
ENTRIES_VERSION: Final = 1


class ExportedEntry(EntryFields):
    """An entry, as it was written. `id` is the one that it was exported from. Who wrote it (`origin`) and when is kept
    by an import; `updated_at` and `shared` are for the reader alone: what is imported is shared with nobody."""

    id: uuid.UUID | None = None
    origin: Annotated[str, Field(max_length=64, description="The name of a tool, or `api` for the person.")] = "api"
    created_at: Moment | None = None
    updated_at: Moment | None = None
    trashed_at: Annotated[Moment | None, Field(description="It is in the trash since then.")] = None
    shared: EntrySharing | None = None

    def imported(self) -> ImportedEntry:
        """The same for the use case."""
        return ImportedEntry(self.draft(), self.id, self.origin, self.created_at, self.trashed_at is not None)


def _few(entries: Any) -> Any:
    """Count the entries before any of them is read."""
    if isinstance(entries, list):
        require_few(len(entries))
    return entries


class EntryDocument(RequestBody):
    """Entries of one person, newest first: what GET /v1/entries/export gives, and POST /v1/entries/import takes."""

    format: Literal["nexus-entries"]
    version: Literal[1]
    made_at: Moment | None = None
    entries: Annotated[
        list[ExportedEntry],
        FailFast(),
        BeforeValidator(_few),
        Field(description=f"An import takes at most {MAX_ENTRIES:,}."),
    ]


class ImportItem(BaseModel):
    """An entry that was imported, by the id that it has here."""

    id: uuid.UUID
    outcome: Literal["created", "replaced", "unchanged", "expired"]


class EntryImportResult(BaseModel):
    """What became of the entries of a document, in its order. `dry_run`: what would become of them. Expired ones, whose
    time is over, are left out."""

    dry_run: bool
    created: int
    replaced: int
    unchanged: int
    expired: int
    items: list[ImportItem]


def document_head(made_at: datetime) -> dict[str, Any]:
    """A document without its entries."""
    return {"format": ENTRIES_FORMAT, "version": ENTRIES_VERSION, "made_at": made_at}


def document_values(entries: Sequence[Entry], names: Names) -> list[dict[str, Any]]:
    """Entries as ExportedEntry shows them."""
    return [
        {
            "id": entry.id,
            "content": entry.content,
            "title": entry.values.title,
            "kind": entry.values.kind,
            "key": entry.values.key,
            "tags": list(entry.values.tags),
            "metadata": dict(entry.values.metadata),
            "session": entry.values.session,
            "allowed_vendors": list(entry.values.vendors),
            "expires_at": entry.values.expires_at,
            "origin": entry.origin,
            "created_at": entry.created_at,
            "updated_at": entry.updated_at,
            "trashed_at": entry.trashed_at,
            "shared": shared_values(entry, names),
        }
        for entry in entries
    ]


def import_values(found: Imported, *, dry_run: bool) -> dict[str, Any]:
    """What became of a document as ImportResult shows it."""
    counts = {str(outcome): count for outcome, count in found.counts.items()}
    items = [{"id": id, "outcome": str(outcome)} for id, outcome in found.entries]
    return {"dry_run": dry_run, **counts, "items": items}


assert {str(outcome) for outcome in Outcome} <= set(EntryImportResult.model_fields)

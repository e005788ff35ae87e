"""Take one's memory out and bring entries in: `/v1/entries/export`, `/v1/entries/import` and `/v1/export`."""

import uuid
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import structlog
from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import to_json

from bot.web.call import ONCE, REPLAYED, ApiCall, Calling, Event
from bot.web.credentials import credential_check
from bot.web.entry_pages import Text, names_for
from bot.web.event_stream import CredentialEnded
from bot.web.json_answer import json_answer
from bot.web.metering import counts_as
from bot.web.principal import KeyedRoute
from bot.web.problems import documented, header
from bot.web.router import Router
from bot.web.routes.entries import writer_of
from bot.web.shapes.entries import EntryFields, EntrySharing, Names, RequestBody, all_values, shown_as
from bot.web.shapes.values import Moment
from composer.entries.export import PAGE, begin_export, read_page
from composer.entries.import_plan import ImportedEntry, Outcome
from composer.entries.imports import MAX_ENTRIES, Imported, import_entries, portions, require_few
from composer.errors import NexusError
from composer.model import derived_id
from composer.people.credentials.principal import KeyPermission
from composer.people.export import export_over_api
from composer.people.export_document import Export
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry
from composer.repositories.operations import Operation
from composer.text.work import off_loop
from composer.visibility import EntryAccess

logger = structlog.get_logger()

ENTRIES_FORMAT: Final = "nexus-entries"
ENTRIES_VERSION: Final = 1
CHARS_PER_ENTRY: Final = 20  # that are read in the time of reading an entry's fields (see off_loop)


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
        return ImportedEntry(self.sent(), self.id, self.origin, self.created_at, self.trashed_at is not None)


def _unread(entries: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Count the entries. `read_entries` reads them, where that doesn't stop the process."""
    if not isinstance(entries, list):
        return read(entries)
    require_few(len(entries))
    return entries


class EntryDocument(RequestBody):
    """Entries of one person, newest first: what GET /v1/entries/export gives, and POST /v1/entries/import takes."""

    format: Literal["nexus-entries"]
    version: Literal[1]
    made_at: Moment | None = None
    entries: Annotated[
        list[ExportedEntry],
        WrapValidator(_unread),
        Field(description=f"An import takes at most {MAX_ENTRIES:,}; an export has all."),
    ]


def read_entries(sent: Sequence[Any]) -> list[ImportedEntry]:
    """The entries of a document, read one after another, so that others can run in between. Raises
    RequestValidationError for the first that is wrong."""
    found = []
    for number, each in enumerate(sent):
        try:
            found.append(ExportedEntry.model_validate(each).imported())
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)
            place = ("body", "entries", number)
            raise RequestValidationError([{**each, "loc": (*place, *each["loc"])} for each in wrong]) from None
    return found


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
    """Entries as ExportedEntry shows them: with the titles that they were given."""
    all = [{**all_values(entry, names), "title": entry.values.title} for entry in entries]
    return [shown_as(ExportedEntry, values) for values in all]


def import_values(found: Imported, *, dry_run: bool) -> dict[str, Any]:
    """What became of a document as ImportResult shows it."""
    counts = {str(outcome): count for outcome, count in found.counts.items()}
    items = [{"id": id, "outcome": str(outcome)} for id, outcome in found.entries]
    return {"dry_run": dry_run, **counts, "items": items}


assert {str(outcome) for outcome in Outcome} <= set(EntryImportResult.model_fields)


router = Router(route_class=KeyedRoute)
IMPORT_PATH: Final = "/v1/entries/import"
IMPORT_BYTES: Final = 32 * 2**20
STOPPED: Final = "The first {done:,} of {total:,} entries are stored: send the same document again for the rest."
# What a credential must give whose bearer sees all that is stored of its person.
ALL_OF_A_PERSON: Final = (
    KeyPermission.MANAGE,
    KeyPermission.CHAT,
    KeyPermission.ENTRIES_READ,
    KeyPermission.TEAMS_READ,
    KeyPermission.PROJECTS_READ,
)
_FILE: Final = {"Content-Disposition": header("The name of the file to save it as.")}
_ERRORS: Final = documented(400, 401, 402, 403, 404, 413, 422, 429)
_EXPORT: Final[dict[int | str, dict[str, Any]]] = {200: {"model": EntryDocument, "headers": _FILE}, **_ERRORS}
_IMPORTED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": EntryImportResult, "headers": ONCE},
    **_ERRORS,
    **documented(410),
}


@router.get(
    "/v1/entries/export", tags=["entries"], summary="Export entries", response_class=Response, responses=_EXPORT
)
@counts_as(Operation.READS)
async def export_entries(
    request: Request,
    call: Calling,
    project: Annotated[
        Text | None, Query(description="Those for this project alone: else those for isolated ones are left out.")
    ] = None,
) -> Response:
    """All entries of the person's own as one document, newest first, those in the trash and expired ones too. It
    is read while it is sent: what is forgotten meanwhile is not in it."""
    return await entries_document(request, call, project)


async def entries_document(request: Request, call: ApiCall, project: str | None = None) -> Response:
    """The answer to an export: a document as a file."""
    async with call.writing(project) as (tx, access):
        ids = await begin_export(tx, access)
    is_valid = credential_check(request, call.app, call.principal)

    async def document() -> AsyncGenerator[bytes, None]:
        yield to_json(document_head(call.now))[:-1] + b',"entries":['
        first = True
        for start in range(0, len(ids), PAGE):
            if not await is_valid():
                raise CredentialEnded
            async with call.reading(project) as (tx, access):
                found = await read_page(tx, access, ids[start : start + PAGE])
                items = document_values(found, await names_for(tx, access, found))
            if items:
                yield (b"" if first else b",") + to_json(items)[1:-1]
                first = False
        yield b"]}"

    return StreamingResponse(document(), headers=_file("nexus-entries.json"), media_type="application/json")


async def _import_in_portions(call: ApiCall, parts: Sequence[Sequence[ImportedEntry]]) -> None:
    """Store the portions of a document, each in a transaction. An error says how far it came."""
    done, total = 0, sum(map(len, parts))
    for portion in parts:
        try:
            async with call.writing(alone=True) as (tx, access):
                writer = await writer_of(call, tx, access)
                stored = await import_entries(tx, access, portion, writer, call.now, dry_run=False)
                call.erased[:] = stored.receipts
                if call.metered is not None:
                    call.metered.times = stored.stored
        except NexusError as error:
            if done:
                error.args = (f"{error} {STOPPED.format(done=done, total=total)}",)
            raise
        done += len(portion)
        logger.info("entries.imported", done=done, of=total)


@router.post(IMPORT_PATH, tags=["entries"], summary="Import entries", response_class=Response, responses=_IMPORTED)
@counts_as(Operation.WRITES)
async def import_document(
    call: Calling,
    sent: EntryDocument,
    dry_run: Annotated[bool, Query(description="Store nothing: only say what would become of each.")] = False,
) -> Response:
    """Store the entries of a document: all of them, or none where one is wrong. One that is there already, or was
    imported before, is replaced where it differs. A request that repeats another by its idempotency key stores nothing,
    and is answered as with `dry_run`. More than 500, or 100,000 characters, are stored in portions, so that others can
    write in between: what stops one of them (a quota, a credential that ends) leaves those before it, and the same
    document goes on there."""
    found, repeated = await import_sent(call, sent, dry_run=dry_run)
    headers = {REPLAYED: "true"} if repeated else None
    return json_answer(import_values(found, dry_run=dry_run or repeated), headers=headers)


async def import_sent(call: ApiCall, sent: EntryDocument, *, dry_run: bool) -> tuple[Imported, bool]:
    """Import a document: what became of it, and whether an earlier request had imported it."""
    items = await off_loop(len(sent.entries) * CHARS_PER_ENTRY, lambda: read_entries(sent.entries))

    async def imported(tx: Transaction, access: EntryAccess, *, dry_run: bool) -> Imported:
        return await import_entries(tx, access, items, await writer_of(call, tx, access), call.now, dry_run=dry_run)

    parts = portions(items)
    if len(parts) > 1 and not dry_run:
        async with call.reading() as (tx, access):
            planned = await imported(tx, access, dry_run=True)  # raises where one is wrong, before anything is stored
        await _import_in_portions(call, parts)
        return planned, False

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, Imported]:
        found = await imported(tx, access, dry_run=dry_run)
        call.erased.extend(found.receipts)
        if call.metered is not None:
            call.metered.times = 1 if dry_run else max(1, found.stored)
        return derived_id("import of entries", event.id), found

    async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> Imported:
        return await imported(tx, access, dry_run=True)

    return await call.once(make, again, alone=not dry_run)


@router.get(
    "/v1/export",
    tags=["person"],
    summary="Export all that is the person's",
    response_class=Response,
    responses={200: {"model": Export, "headers": _FILE}, **documented(401, 403, 409)},
)
async def export_person(call: Calling) -> Response:
    """All that is stored of the person, as `/nexus export` gives it. It needs the permissions manage, chat,
    entries:read, teams:read and projects:read."""
    for permission in ALL_OF_A_PERSON:
        call.principal.require(permission)
    async with call.reading() as (_, access):
        pass
    presence = await call.app.memberships.of(access.tenant_id, access.user)
    document = await export_over_api(call.app.database, access, call.principal.tenant, call.now, presence)
    return Response(document.text, headers=_file("nexus-export.json"), media_type="application/json")


def _file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}

"""Take one's memory out and bring entries in: `/v1/entries/export`, `/v1/entries/import` and `/v1/export`."""

import uuid
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from bot.web.call import ONCE, REPLAYED, Calling, Event
from bot.web.credentials import credential_check
from bot.web.entry_pages import Text, names_for
from bot.web.event_stream import CredentialEnded
from bot.web.json_answer import json_answer
from bot.web.principal import KeyedRoute
from bot.web.problems import documented, header
from bot.web.router import Router
from bot.web.routes.entries import writer_of
from bot.web.shapes.entry_document import (
    EntryDocument,
    EntryImportResult,
    document_head,
    document_values,
    import_values,
)
from composer.credentials.principal import KeyPermission
from composer.entries.export import PAGE, begin_export, read_page
from composer.entries.imports import Imported, import_entries
from composer.model import derived_id
from composer.people.export import export_over_api
from composer.people.export_document import Export
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess

router = Router(route_class=KeyedRoute)
IMPORT_PATH: Final = "/v1/entries/import"
IMPORT_BYTES: Final = 16 * 2**20
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
async def export_entries(
    request: Request,
    call: Calling,
    project: Annotated[
        Text | None, Query(description="Those for this project alone: else those for isolated ones are left out.")
    ] = None,
) -> Response:
    """All entries of the person's own as one document, newest first, those in the trash and expired ones too. It
    is read while it is sent: what is forgotten meanwhile is not in it."""
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


@router.post(IMPORT_PATH, tags=["entries"], summary="Import entries", response_class=Response, responses=_IMPORTED)
async def import_document(
    call: Calling,
    sent: EntryDocument,
    dry_run: Annotated[bool, Query(description="Store nothing: only say what would become of each.")] = False,
) -> Response:
    """Store the entries of a document: all of them, or none where one is wrong. One that is there already, or was
    imported before, is replaced where it differs. A request that repeats another by its idempotency key stores nothing,
    and is answered as with `dry_run`."""

    async def imported(tx: Transaction, access: EntryAccess, *, dry_run: bool) -> Imported:
        items, writer = [each.imported() for each in sent.entries], await writer_of(call, tx, access)
        return await import_entries(tx, access, items, writer, call.now, dry_run=dry_run)

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, Imported]:
        found = await imported(tx, access, dry_run=dry_run)
        call.erased.extend(found.receipts)
        if call.metered is not None:
            call.metered.times = 1 if dry_run else max(1, found.stored)
        return derived_id("import of entries", event.id), found

    async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> Imported:
        return await imported(tx, access, dry_run=True)

    found, repeated = await call.once(make, again, alone=not dry_run)
    headers = {REPLAYED: "true"} if repeated else None
    values = import_values(found, dry_run=dry_run or repeated)
    return json_answer(values, headers=headers)


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
    document = await export_over_api(call.app.database, access, call.principal.tenant, call.now)
    return Response(document.text, headers=_file("nexus-export.json"), media_type="application/json")


def _file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}

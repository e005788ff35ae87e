"""`/v1/admin/imports`: an admin sends the export of a chat platform, sees what is in it, imports channels of it, and
undoes that (bot/importers/uploads.py says what such a file may bring)."""

import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from bot.importers.uploads import MAX_UPLOADED_CHANNELS
from bot.web.call import Calling
from bot.web.dependencies import Nexus
from bot.web.json_answer import json_answer
from bot.web.operating import require_installation
from bot.web.principal import Admin, StreamedRoute, known_principal
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.entries import RequestBody
from bot.web.state import WebState
from composer.ingest.imports import FoundRun
from composer.ingest.uploads import UploadedFile, UploadState

IMPORTS_PATH: Final = "/v1/admin/imports"
UPLOADS_PATH: Final = f"{IMPORTS_PATH}/uploads"
router = Router(IMPORTS_PATH, tags=["admin"])
files = Router(IMPORTS_PATH, tags=["admin"], route_class=StreamedRoute)
_FILE: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class HistoryChannel(BaseModel):
    """A public channel of a file. `tokens` and `cost` are what models are expected to use for it; `cost` is in the
    currency of the settings, null without a price."""

    workspace: str
    id: str
    title: str
    messages: int
    people: int
    first: datetime
    last: datetime
    tokens: int
    cost: float | None


class HistoryUpload(BaseModel):
    """A file that somebody has sent. `channels` can be imported; of `private` ones, and those of which it is `unknown`
    who may view them, there is only how many. Of another admin's file there is no more than its state. `done` of
    `total` messages are read or stored; `skipped` are those that were not stored, by the reason. An upload is stopped
    where Nexus was, while it worked on it: run it again."""

    id: uuid.UUID
    own: bool
    name: str
    size: int
    at: datetime
    state: UploadState
    error: str
    channels: list[HistoryChannel]
    private: int
    unknown: int
    messages: int
    people: int
    done: int
    total: int
    new: int
    known: int
    skipped: dict[str, int]


class HistoryImport(BaseModel):
    """An import of an admin (`by`; empty: they were erased since). `messages` and `rooms` are what of it is stored
    now; `complete`: it was not interrupted."""

    id: uuid.UUID
    source: str
    by: str
    at: datetime
    messages: int
    rooms: int
    complete: bool
    undone_at: datetime | None


class HistoryImports(BaseModel):
    """The file that is here now, and what admins have imported, newest first."""

    upload: HistoryUpload | None
    items: list[HistoryImport]


class ChosenChannels(RequestBody):
    """The ids of the channels to import; null: all that can be."""

    channels: Annotated[list[str] | None, Field(max_length=MAX_UPLOADED_CHANNELS)] = None


_CODES: Final = (400, 401, 403, 404, 429)


@router.get("", summary="Show the imports", response_model=HistoryImports, responses=documented(401, 403, 404, 429))
async def list_history_imports(principal: Admin, nexus: Nexus, call: Calling) -> HistoryImports:
    """The file that was sent last, with what is in it or how far its import is, and the imports of admins. 404 as for
    the jobs."""
    await require_installation(nexus, principal.tenant_id)
    upload = await nexus.uploads.of(principal.tenant_id, principal.user)
    runs = await nexus.uploads.runs(principal.tenant_id, principal.user)
    async with call.reading() as (tx, _access):
        names = await tx.people.names(sorted({user for run in runs for user in uploaders(run)}))
    return HistoryImports(
        upload=None if upload is None else shown_upload(upload, principal.user),
        items=[_line(run, names) for run in runs],
    )


@files.post(
    "/uploads",
    summary="Send a file to import",
    status_code=202,
    response_class=Response,
    responses={202: {"model": HistoryUpload}, **documented(*_CODES, 409, 413, 422)},
    openapi_extra=_FILE,
)
async def upload_history(
    request: Request,
    principal: Admin,
    nexus: Nexus,
    name: Annotated[str, Query(min_length=1, max_length=200, description="The name of the file.")] = "export",
) -> Response:
    """The body is the zip of a Slack export, or JSON of DiscordChatExporter or a zip of it. Nothing is stored of it
    yet: it is read, and GET says what is in it. It is kept until it is imported, thrown away or a day old. 409 while
    there is another."""
    await require_installation(nexus, principal.tenant_id)
    content = _content(request, nexus)
    found = await nexus.uploads.receive(principal.tenant_id, principal.user, name, content)
    return json_answer(shown_upload(found, principal.user), 202)


@router.post(
    "/uploads/{id}/run",
    summary="Import channels of the file",
    status_code=202,
    response_class=Response,
    responses={202: {"model": HistoryUpload}, **documented(*_CODES, 409, 422)},
)
async def run_history_import(
    principal: Admin, nexus: Nexus, call: Calling, id: uuid.UUID, sent: ChosenChannels
) -> Response:
    """It goes on by itself; GET says how far it is. What is stored already stays as it is, so it may be repeated.
    Nobody becomes a member of a room by it, and sources of answers say whose file it was."""
    await require_installation(nexus, principal.tenant_id)
    found = await nexus.uploads.run(principal.tenant_id, principal.user, id, sent.channels)
    return json_answer(shown_upload(found, principal.user), 202)


@router.delete("/uploads/{id}", summary="Throw the file away", status_code=204, responses=documented(*_CODES, 409, 422))
async def discard_history_upload(principal: Admin, nexus: Nexus, call: Calling, id: uuid.UUID) -> None:
    """What was imported of it stays."""
    await require_installation(nexus, principal.tenant_id)
    await nexus.uploads.discard(principal.tenant_id, principal.user, id)


@router.delete(
    "/{id}",
    summary="Undo an import",
    status_code=202,
    response_class=Response,
    responses=documented(*_CODES, 409, 422),
)
async def undo_history_import(principal: Admin, nexus: Nexus, call: Calling, id: uuid.UUID) -> Response:
    """What it brought is erased for good, with all that was made of it; it goes on by itself. Imports of whoever runs
    Nexus are undone by them (404)."""
    await require_installation(nexus, principal.tenant_id)
    await nexus.uploads.undo(principal.tenant_id, principal.user, id)
    return Response(status_code=202)


async def _content(request: Request, nexus: WebState) -> AsyncIterator[bytes]:
    """The pieces of a body. It may take long, and credentials end meanwhile."""
    async for piece in request.stream():
        yield piece
    await known_principal(request, nexus)


def shown_upload(upload: UploadedFile, reader: uuid.UUID) -> HistoryUpload:
    """An upload as it is shown to somebody."""
    return HistoryUpload(
        id=upload.id,
        own=upload.by == reader,
        name=upload.name,
        size=upload.size,
        at=upload.at,
        state=upload.state,
        error=upload.error,
        channels=[
            HistoryChannel(
                workspace=each.workspace,
                id=each.id,
                title=each.title,
                messages=each.messages,
                people=each.people,
                first=each.first,
                last=each.last,
                tokens=each.tokens,
                cost=each.cost,
            )
            for each in upload.channels
        ],
        private=upload.private,
        unknown=upload.unknown,
        messages=upload.messages,
        people=upload.people,
        done=upload.done,
        total=upload.total,
        new=upload.new,
        known=upload.known,
        skipped=upload.skipped,
    )


def uploaders(run: FoundRun) -> set[uuid.UUID]:
    """Who uploaded the file of an import."""
    return {part.uploaded_by for _, part in run.parts if part.uploaded_by is not None}


def _line(run: FoundRun, names: dict[uuid.UUID, str]) -> HistoryImport:
    first = run.parts[0][1]
    return HistoryImport(
        id=run.id,
        source=first.source,
        by=", ".join(sorted(names[user] for user in uploaders(run) if user in names)),
        at=first.begun_at,
        messages=run.messages,
        rooms=run.rooms,
        complete=all(part.ended_at is not None for _, part in run.parts),
        undone_at=run.undone_at,
    )

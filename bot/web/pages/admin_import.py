"""`/admin/import`: an admin drops the export of a chat platform, sees what is in it, chooses channels, imports them,
and undoes that."""

import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Final

from fastapi import Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse

from bot.importers.uploads import MAX_UPLOADED_CHANNELS
from bot.web.dependencies import Nexus
from bot.web.operating import is_of_installation, require_installation
from bot.web.pages.admin import ADMIN
from bot.web.pages.rendering import page
from bot.web.pages.viewer import AdminSignedIn, AdminUploadRoute, PageRouter
from bot.web.routes.admin_imports import uploaders
from bot.web.state import WebState
from composer.ingest.imports import FoundRun
from composer.ingest.tenants import configured_prices
from composer.ingest.uploads import UploadedChannel, UploadState
from composer.model import SLACK, room_id
from composer.people.rooms import joined_rooms

IMPORT: Final = f"{ADMIN}/import"
SAMPLE_SLACK: Final = "T0SAMPLE"  # of which the export is that the sample company offers
UPLOAD_PAGE: Final = f"{IMPORT}/file"
FORM_BYTES: Final = 2**16  # of a form beside its file
PIECE_BYTES: Final = 2**20
router = PageRouter(IMPORT)


files = PageRouter(IMPORT, AdminUploadRoute)


@router.get("")
async def show_import_page(
    request: Request, nexus: Nexus, viewer: AdminSignedIn, undone: Annotated[str, Query(max_length=40)] = ""
) -> Response:
    """What is uploaded, how far it is, and what was imported before. `undone`: the one that was just begun to be
    undone."""
    tenant, user = viewer.principal.tenant_id, viewer.principal.user
    is_here = await is_of_installation(nexus, tenant)
    upload = await nexus.uploads.of(tenant, user) if is_here else None
    is_busy = is_here and nexus.uploads.is_busy(tenant)  # asked before what it has done by then
    runs = await nexus.uploads.runs(tenant, user) if is_here else []
    undoing = next((each.id for each in runs if str(each.id) == undone and each.undone_at is None), None)
    prices = configured_prices(nexus.app.settings)
    channels = () if upload is None else upload.channels
    run_of_upload = next((run for run in runs if upload is not None and run.id == upload.run), None)
    async with viewer.reading() as reading:
        joined = {each.room_id for each in await joined_rooms(reading.tx, reading.access, reading.presence)}
        names = await reading.tx.people.names(sorted({each for run in runs for each in uploaders(run)}))
    return page(
        request,
        "admin_import.html",
        viewer.language,
        chrome=reading.chrome,
        now=viewer.call.now,
        is_here=is_here,
        is_sample=nexus.app.directory.workspace(SLACK, SAMPLE_SLACK).tenant_id == tenant,
        upload=upload,
        own=upload is not None and upload.by == user,
        at_work=upload is not None and upload.state in (UploadState.READING, UploadState.IMPORTING),
        run_of_upload=run_of_upload,
        own_rooms=_own_rooms(nexus, run_of_upload, channels, joined),
        undoing=undoing,
        is_busy=is_busy,
        runs=[(run, ", ".join(names[each] for each in uploaders(run) if each in names)) for run in runs],
        costs=None
        if not any(each.tokens for each in channels) or any(each.cost is None for each in channels)
        else {each.id: prices.format(Decimal(str(each.cost))) for each in channels},
        whole=prices.format(sum((Decimal(str(each.cost or 0)) for each in channels), Decimal(0))),
        tokens=sum(each.tokens for each in channels),
    )


def _own_rooms(
    nexus: WebState, run: FoundRun | None, channels: Sequence[UploadedChannel], joined: Collection[uuid.UUID | None]
) -> Mapping[str, uuid.UUID]:
    """The rooms of the imported channels that the viewer is in, by the ids of the channels."""
    if run is None:
        return {}
    platform, found = run.parts[0][1].platform, dict[str, uuid.UUID]()
    for each in channels:
        room = room_id(nexus.app.directory.workspace(platform, each.workspace), each.id)
        if room in joined:
            found[each.id] = room
    return found


@files.post("/file")
async def upload_history_file(
    nexus: Nexus, viewer: AdminSignedIn, csrf: Annotated[str, Form()], file: UploadFile
) -> Response:
    """Keep a file, and begin to read what is in it."""
    viewer.require_form(csrf)
    await require_installation(nexus, viewer.principal.tenant_id)

    async def content() -> AsyncIterator[bytes]:
        while piece := await file.read(PIECE_BYTES):
            yield piece

    await nexus.uploads.receive(viewer.principal.tenant_id, viewer.principal.user, file.filename or "", content())
    return RedirectResponse(IMPORT, 303)


@router.post("/run")
async def run_import_page(
    nexus: Nexus,
    viewer: AdminSignedIn,
    csrf: Annotated[str, Form()],
    id: Annotated[uuid.UUID, Form()],
    channel: Annotated[list[str] | None, Form(max_length=MAX_UPLOADED_CHANNELS)] = None,
) -> Response:
    """Import the chosen channels."""
    viewer.require_form(csrf)
    await require_installation(nexus, viewer.principal.tenant_id)
    await nexus.uploads.run(viewer.principal.tenant_id, viewer.principal.user, id, channel or [])
    return RedirectResponse(IMPORT, 303)


@router.post("/discard")
async def discard_import_file(
    nexus: Nexus, viewer: AdminSignedIn, csrf: Annotated[str, Form()], id: Annotated[uuid.UUID, Form()]
) -> Response:
    """Throw the file away."""
    viewer.require_form(csrf)
    await require_installation(nexus, viewer.principal.tenant_id)
    await nexus.uploads.discard(viewer.principal.tenant_id, viewer.principal.user, id)
    return RedirectResponse(IMPORT, 303)


@router.post("/undo")
async def undo_import_page(
    nexus: Nexus, viewer: AdminSignedIn, csrf: Annotated[str, Form()], id: Annotated[uuid.UUID, Form()]
) -> Response:
    """Erase what an import brought."""
    viewer.require_form(csrf)
    await require_installation(nexus, viewer.principal.tenant_id)
    await nexus.uploads.undo(viewer.principal.tenant_id, viewer.principal.user, id)
    return RedirectResponse(f"{IMPORT}?undone={id}#imports", 303)

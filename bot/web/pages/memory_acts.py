"""What is done on `/memory`: adding, changing, sharing, throwing away and forgetting, one or many at once, and taking
entries out and bringing them in as JSON."""

import uuid
from typing import Annotated, Any, Final

from fastapi import Form, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from bot.web.bodies import BYTES_PER_READ, json_value
from bot.web.metering import counts_as
from bot.web.pages.memory import shown
from bot.web.pages.memory_wanted import MEMORY, TABLE
from bot.web.pages.rendering import page
from bot.web.pages.viewer import PageRouter, SignedIn, UploadRoute
from bot.web.problems import RequestRefused
from bot.web.routes.exchange import IMPORT_BYTES, EntryDocument, entries_document, import_sent
from composer import visibility
from composer.entries import entries
from composer.entries.bulk import MAX_BULK, BulkAct, act_on_many
from composer.entries.draft import ENTRY_KINDS, MAX_CONTENT_BYTES, SentEntry
from composer.errors import BadInput
from composer.memory.forget import Receipt
from composer.people.erasing import EntriesToErase, count_erasable, erase_entries
from composer.people.own_memory import TRASH, forget_item, own_item
from composer.repositories.database import Transaction
from composer.repositories.operations import Operation
from composer.text.work import off_loop
from composer.visibility import EntryAccess

IMPORT_PAGE: Final = f"{MEMORY}/import"
NO_DOCUMENT: Final = "That file is no document of entries: choose one that was exported here, or see docs/api.md."
router = PageRouter(MEMORY)
uploads = PageRouter(MEMORY, UploadRoute)
Text = Annotated[str, Form(max_length=MAX_CONTENT_BYTES)]
Csrf = Annotated[str, Form()]
Short = Annotated[str, Form(max_length=1_000)]


def _draft(text: str, kind: str, tags: str) -> SentEntry:
    draft: SentEntry = {"content": text, "tags": [tag for each in tags.split(",") if (tag := each.strip())]}
    if kind in ENTRY_KINDS:
        draft["kind"] = kind
    return draft


@router.post("")
@counts_as(Operation.WRITES)
async def add(
    viewer: SignedIn,
    csrf: Csrf,
    text: Text,
    kind: Short = "",
    tags: Short = "",
) -> Response:
    """Store an entry, exactly as written."""
    viewer.require_form(csrf)
    async with viewer.call.writing() as (tx, access):
        writer, now = await viewer.writer(tx, access), viewer.call.now
        made = await entries.write(tx, access, _draft(text, kind, tags), writer, uuid.uuid4().hex, now)
        viewer.call.erased.append(made.receipt)
    return RedirectResponse(f"{MEMORY}/{made.entry.id}", 303)


@router.post("/bulk")
async def act_on_chosen(
    viewer: SignedIn,
    csrf: Csrf,
    act: Annotated[BulkAct, Form()],
    id: Annotated[list[uuid.UUID] | None, Form(max_length=MAX_BULK)] = None,
    team: Annotated[str, Form(max_length=36)] = "",
    back: Short = "",
) -> Response:
    """Do the same to all that were chosen in the table. Raises BadInput where one of them is refused: the others are
    done."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        plan, now = viewer.call.app.directory.plan(access.tenant_id), viewer.call.now
        found = await act_on_many(tx, access, id or [], act, now, team=_id(team), plan=plan)
    refused = [each.refused for each in found if each.refused]
    if refused:
        raise BadInput(f"{len(found) - len(refused)} of {len(found)} are done. {refused[0]}")
    return RedirectResponse(back if back.startswith(f"{MEMORY}?") else f"{MEMORY}?view={TABLE}", 303)


@router.get("/export")
async def export(request: Request, viewer: SignedIn) -> Response:
    """All entries of one's own, as a file."""
    return await entries_document(request, viewer.call)


@router.get("/import")
async def show_import(request: Request, viewer: SignedIn) -> Response:
    """Where to take entries out and bring them in."""
    async with viewer.reading() as reading:
        values: dict[str, Any] = {"chrome": reading.chrome, "result": None, "only_said": False}
    return shown(request, viewer, "memory_exchange", values)


@uploads.post("/import")
@counts_as(Operation.WRITES)
async def import_file(
    request: Request, viewer: SignedIn, csrf: Csrf, file: UploadFile, dry_run: Annotated[bool, Form()] = False
) -> Response:
    """Store the entries of a document, or say what would become of them. The same document stores nothing twice."""
    viewer.require_form(csrf)
    content = await file.read(IMPORT_BYTES)
    sent = await off_loop(len(content) // BYTES_PER_READ, lambda: _document(content))
    found, _ = await import_sent(viewer.call, sent, dry_run=dry_run)
    async with viewer.reading() as reading:
        values: dict[str, Any] = {"chrome": reading.chrome, "result": found.counts, "only_said": dry_run}
    template, part = "memory_one.html", "parts/memory_exchange.html"
    return page(request, template, viewer.language, now=viewer.call.now, part=part, **values)


@router.get("/empty")
async def show_emptying(request: Request, viewer: SignedIn) -> Response:
    """How much is in the trash, before it is erased."""
    async with viewer.reading() as reading:
        count = await count_erasable(reading.tx, reading.access, EntriesToErase(trashed=True), viewer.call.now)
        values: dict[str, Any] = {"chrome": reading.chrome, "count": count}
    return shown(request, viewer, "memory_empty", values)


@router.post("/empty")
async def empty_trash(
    request: Request, viewer: SignedIn, csrf: Csrf, confirm: Annotated[int, Form(ge=0)] = 0
) -> Response:
    """Erase all that is in the trash for good, if it is as much as was shown, and show the receipt."""
    viewer.require_form(csrf)
    home, now = viewer.call.app.settings.home, viewer.call.now
    async with viewer.reading() as reading:
        chrome = reading.chrome

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        wanted = EntriesToErase(trashed=True)
        return await erase_entries(tx, access, home, wanted, now, key=key, confirmed=confirm)

    receipt, _ = await viewer.call.erase(erase)
    return shown(request, viewer, "memory_forgotten", {"chrome": chrome, "receipt": receipt, "stay": ()})


@router.post("/{id}/edit")
async def edit(
    viewer: SignedIn,
    id: uuid.UUID,
    csrf: Csrf,
    text: Text,
    kind: Short = "",
    tags: Short = "",
    version: Annotated[int | None, Form()] = None,
) -> Response:
    """Change an entry, of the version that was shown alone. What was made from words that it no longer has is
    erased."""
    viewer.require_form(csrf)
    changed = _draft(text, kind, tags)
    async with viewer.call.writing(alone=True) as (tx, access):
        made = await entries.change(tx, access, id, changed, viewer.call.now, version)
        viewer.call.erased.append(made.receipt)
    return RedirectResponse(f"{MEMORY}/{id}", 303)


@router.post("/{id}/share")
async def share(
    viewer: SignedIn, id: uuid.UUID, csrf: Csrf, team: Annotated[str, Form(max_length=36)] = ""
) -> Response:
    """Share an entry with a team, or with none any more."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await entries.share(tx, access, id, _id(team), viewer.call.now, None)
    return RedirectResponse(f"{MEMORY}/{id}", 303)


@router.post("/{id}/trash")
async def trash(viewer: SignedIn, id: uuid.UUID, csrf: Csrf) -> Response:
    """Put an entry into the trash, from which it can be taken again for 30 days."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await entries.trash(tx, access, id, viewer.call.now, None)
    return RedirectResponse(f"{MEMORY}/{id}?shelf={TRASH}", 303)


@router.post("/{id}/restore")
async def restore(viewer: SignedIn, id: uuid.UUID, csrf: Csrf) -> Response:
    """Take an entry out of the trash, as it was."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        plan = viewer.call.app.directory.plan(access.tenant_id)
        await entries.restore(tx, access, id, viewer.call.now, None, plan)
    return RedirectResponse(f"{MEMORY}/{id}", 303)


@router.post("/{id}/forget")
async def forget(
    request: Request, viewer: SignedIn, id: uuid.UUID, csrf: Csrf, messages: Annotated[bool, Form()] = False
) -> Response:
    """Erase an item for good, `messages`: with those of one's own that it came from, and show the receipt."""
    viewer.require_form(csrf)
    app, now = viewer.call.app, viewer.call.now
    async with viewer.reading() as reading:
        chrome = reading.chrome
        detail = await own_item(reading.tx, reading.owned, id, now, reading.presence)

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        owned, home = visibility.owned_by_bearer(access), app.settings.home
        return await forget_item(tx, owned, home, detail, now, key=key, messages=messages)

    receipt, _ = await viewer.call.erase(erase)
    stay = () if messages else detail.sources
    return shown(request, viewer, "memory_forgotten", {"chrome": chrome, "receipt": receipt, "stay": stay})


def _document(content: bytes) -> EntryDocument:
    """The document in a file. Raises BadInput."""
    try:
        return EntryDocument.model_validate(json_value(content))
    except (ValidationError, RequestRefused):
        raise BadInput(NO_DOCUMENT) from None


def _id(text: str) -> uuid.UUID | None:
    """The id that a form names; None for an empty one. Raises BadInput."""
    try:
        return uuid.UUID(text) if text else None
    except ValueError:
        raise BadInput("That is the id of no team.") from None

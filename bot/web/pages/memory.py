"""`/memory`: all that is remembered of a person, searched as they type, and one item with who reads it, where it came
from and what it led to."""

import uuid
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.metering import counts_as
from bot.web.pages.rendering import Dates, page
from bot.web.pages.viewer import PageRouter, Reading, SignedIn, Viewer, is_script
from composer import visibility
from composer.entries import entries
from composer.entries.draft import MAX_CONTENT_BYTES, SentEntry
from composer.memory.forget import Receipt
from composer.people.own_memory import (
    SHELVES,
    TRASH,
    WAITING,
    OwnItems,
    forget_item,
    forget_preview,
    own_item,
    own_items,
    own_totals,
)
from composer.repositories.database import Transaction
from composer.repositories.operations import Operation
from composer.repositories.own_data import OwnFilter
from composer.visibility import EntryAccess

MEMORY: Final = "/memory"
PAGE_ITEMS: Final = 50
MAX_WORDS: Final = 8
router = PageRouter(MEMORY)


@dataclass(frozen=True, slots=True)
class WantedMemory:
    """What of the list is wanted, as the address of the page says."""

    shelf: str | None
    tool: str | None
    words: str
    cursor: str | None

    def filter(self) -> OwnFilter:
        """For the use case."""
        return OwnFilter(
            shelf=None if self.shelf == TRASH else self.shelf,
            origins=None if self.tool is None else (self.tool,),
            words=tuple(self.words.split()[:MAX_WORDS]),
            trashed=self.shelf == TRASH,
        )

    def address(self, path: str = MEMORY, **changed: str | None) -> str:
        """The address of the same list with something changed; without it, of this one."""
        values = {"q": self.words or None, "shelf": self.shelf, "tool": self.tool} | changed
        query = urlencode({name: value for name, value in values.items() if value})
        return f"{path}?{query}" if query else path


async def _wanted(shelf: str | None, tool: str | None, q: str, cursor: str | None) -> WantedMemory:
    known = shelf if shelf in (*SHELVES, TRASH, WAITING) else None
    return WantedMemory(known, tool or None, q.strip(), cursor)


_Text = Annotated[str, Query(max_length=200)]
_Choice = Annotated[str | None, Query(max_length=80)]


@router.get("")
async def show_memory(
    request: Request,
    viewer: SignedIn,
    q: _Text = "",
    shelf: _Choice = None,
    tool: _Choice = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    item: uuid.UUID | None = None,
) -> Response:
    """The list; for a script that asks for its rows alone, these."""
    wanted = await _wanted(shelf, tool, q, cursor)
    async with viewer.reading() as reading:
        values = await _list(viewer, reading, wanted)
        rows_only = is_script(request)
        if not rows_only:
            values["totals"] = await own_totals(reading.tx, reading.owned, viewer.call.now)
            values["detail"] = None if item is None else await _details(viewer, reading, item)
    template = "parts/memory_rows.html" if rows_only else "memory.html"
    return page(request, template, viewer.language, **values)


@router.get("/{id}")
async def show_item(
    request: Request, viewer: SignedIn, id: uuid.UUID, q: _Text = "", shelf: _Choice = None, tool: _Choice = None
) -> Response:
    """One item: beside the list, or for a script alone."""
    if not is_script(request):
        return await show_memory(request, viewer, q, shelf, tool, None, id)
    wanted = await _wanted(shelf, tool, q, None)
    async with viewer.reading() as reading:
        values: dict[str, Any] = {"chrome": reading.chrome, "now": viewer.call.now, "wanted": wanted}
        values["detail"] = await _details(viewer, reading, id)
    return page(request, "parts/memory_item.html", viewer.language, **values)


@router.post("")
@counts_as(Operation.WRITES)
async def add(
    request: Request,
    viewer: SignedIn,
    csrf: Annotated[str, Form()],
    text: Annotated[str, Form(max_length=MAX_CONTENT_BYTES)],
) -> Response:
    """Store an entry, exactly as written."""
    viewer.require_form(csrf)
    async with viewer.call.writing() as (tx, access):
        draft: SentEntry = {"content": text}
        made = await entries.write(
            tx, access, draft, await viewer.writer(tx, access), uuid.uuid4().hex, viewer.call.now
        )
        viewer.call.erased.append(made.receipt)
    return RedirectResponse(f"{MEMORY}/{made.entry.id}", 303)


@router.get("/{id}/forget")
async def show_forgetting(request: Request, viewer: SignedIn, id: uuid.UUID) -> Response:
    """What forgetting an item erases with it, before it does."""
    async with viewer.reading() as reading:
        detail = await _details(viewer, reading, id)
        preview = await forget_preview(reading.tx, reading.owned, detail.item)
        values: dict[str, Any] = {"chrome": reading.chrome, "detail": detail, "preview": preview}
    return _shown(request, viewer, "memory_forget", values)


@router.post("/{id}/forget")
async def forget(request: Request, viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Erase an item for good, and show the receipt."""
    viewer.require_form(csrf)
    app, now = viewer.call.app, viewer.call.now
    async with viewer.reading() as reading:
        chrome, item = reading.chrome, (await _details(viewer, reading, id)).item

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        return await forget_item(tx, visibility.owned_by_bearer(access), app.settings.home, item, now, key=key)

    receipt, _ = await viewer.call.erase(erase)
    return _shown(request, viewer, "memory_forgotten", {"chrome": chrome, "receipt": receipt})


@router.post("/{id}/edit")
async def edit(
    viewer: SignedIn,
    id: uuid.UUID,
    csrf: Annotated[str, Form()],
    text: Annotated[str, Form(max_length=MAX_CONTENT_BYTES)],
) -> Response:
    """Change the words of an entry. What was made from words that it no longer has is erased."""
    viewer.require_form(csrf)
    changed: SentEntry = {"content": text}
    async with viewer.call.writing(alone=True) as (tx, access):
        made = await entries.change(tx, access, id, changed, viewer.call.now, None)
        viewer.call.erased.append(made.receipt)
    return RedirectResponse(f"{MEMORY}/{id}", 303)


@router.post("/{id}/trash")
async def trash(viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Put an entry into the trash, from which it can be taken again for 30 days."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await entries.trash(tx, access, id, viewer.call.now, None)
    return RedirectResponse(f"{MEMORY}/{id}?shelf={TRASH}", 303)


@router.post("/{id}/restore")
async def restore(viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Take an entry out of the trash, as it was."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        plan = viewer.call.app.directory.plan(access.tenant_id)
        await entries.restore(tx, access, id, viewer.call.now, None, plan)
    return RedirectResponse(f"{MEMORY}/{id}", 303)


def _shown(request: Request, viewer: Viewer, name: str, values: dict[str, Any]) -> Response:
    """A part beside the list for a script, else a page of its own."""
    template = f"parts/{name}.html" if is_script(request) else "memory_one.html"
    return page(request, template, viewer.language, now=viewer.call.now, part=f"parts/{name}.html", **values)


async def _list(viewer: Viewer, reading: Reading, wanted: WantedMemory) -> dict[str, Any]:
    now = viewer.call.now
    found = await own_items(
        reading.tx, reading.owned, wanted.filter(), wanted.cursor, PAGE_ITEMS, now, reading.presence
    )
    dates = Dates(viewer.language, reading.chrome.zone, now)
    return {
        "chrome": reading.chrome,
        "now": now,
        "wanted": wanted,
        "found": found,
        "days": _by_day(found, dates),
        "shelves": SHELVES,
    }


def _by_day(found: OwnItems, dates: Dates) -> list[tuple[str, list[Any]]]:
    """The items with the day that each group of them is of, in words."""
    return [(day, list(items)) for day, items in groupby(found.items, lambda placed: dates.day(placed.item.at))]


async def _details(viewer: Viewer, reading: Reading, id: uuid.UUID) -> Any:
    return await own_item(reading.tx, reading.owned, id, viewer.call.now, reading.presence)

"""`/admin/places`: all projects and teams of the organisation, with figures of each, and what an admin does with those
that have no admin."""

import secrets
import uuid
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.admin import ADMIN
from bot.web.pages.rendering import page
from bot.web.pages.viewer import AdminSignedIn, PageRouter
from bot.web.routes.admin_places import MAX_WORDS
from composer.memory.forget import RECEIPT_KEY_BYTES
from composer.people.tenant_places import WantedPlaces, appoint, delete, places_page
from composer.repositories.tenant_figures import TenantPlaceKind

PLACES: Final = f"{ADMIN}/places"
ORPHANED: Final = "orphaned"
SHOWN_PLACES: Final = 50
router = PageRouter(PLACES)


@router.get("")
async def show_places(
    request: Request,
    viewer: AdminSignedIn,
    show: Annotated[str, Query(max_length=20)] = "",
    q: Annotated[str, Query(max_length=MAX_WORDS)] = "",
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """All of them, the newest first. `show`: those of a kind alone, or those without an admin."""
    shown = show if show in (*TenantPlaceKind, ORPHANED) else ""
    kind = TenantPlaceKind(shown) if shown in set(TenantPlaceKind) else None
    wanted = WantedPlaces(kind, q, shown == ORPHANED)
    async with viewer.reading() as reading:
        found = await places_page(reading.tx, reading.access, wanted, SHOWN_PLACES, cursor)
        counts = await reading.tx.tenant_figures.counts(viewer.call.now, ("projects", "teams"))
    return page(
        request,
        "admin_places.html",
        viewer.language,
        chrome=reading.chrome,
        now=viewer.call.now,
        found=found,
        counts=counts,
        shown=shown,
        words=q.strip(),
        more=None if found.next is None else _address(shown, q.strip(), found.next),
    )


@router.post("/{id}/admin")
async def appoint_admin(
    viewer: AdminSignedIn,
    id: uuid.UUID,
    csrf: Annotated[str, Form()],
    user: Annotated[uuid.UUID, Form()],
) -> Response:
    """Make a member of a project or team without an admin its admin."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await appoint(tx, access, id, user, viewer.call.now)
    return RedirectResponse(_address(ORPHANED), 303)


@router.post("/{id}/delete")
async def delete_place(viewer: AdminSignedIn, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Delete a project or team without an admin; the page has said what that means."""
    viewer.require_form(csrf)
    call, key = viewer.call, secrets.token_bytes(RECEIPT_KEY_BYTES)
    async with call.writing(alone=True) as (tx, access):
        home = call.app.settings.home
        call.erased.append(await delete(tx, access, home, id, call.now, key=key, confirmed=True))
    return RedirectResponse(_address(ORPHANED), 303)


def _address(shown: str, words: str = "", cursor: str = "") -> str:
    """The address of the page with some of what it can show."""
    query = urlencode({name: each for name, each in (("show", shown), ("q", words), ("cursor", cursor)) if each})
    return f"{PLACES}?{query}" if query else PLACES

"""`/admin/people`: who is in the organisation, with figures of each, and what an admin does with them."""

import secrets
import uuid
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.admin import ADMIN
from bot.web.pages.rendering import page
from bot.web.pages.viewer import AdminSignedIn, PageRouter, Viewer
from composer.people.administration import (
    let_back_in,
    managed_person,
    set_disabled,
    set_tenant_admin,
    sign_out_everywhere,
)
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.sign_in import login_url
from composer.text.cursors import cursor_of, read_cursor

PEOPLE: Final = f"{ADMIN}/people"
SHOWN_PEOPLE: Final = 50
COUNTED_ENTRIES: Final = 1_000  # of each person: whoever has more has at least these
router = PageRouter(PEOPLE)


@router.get("")
async def show_people(
    request: Request, viewer: AdminSignedIn, cursor: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Everybody, those who were known first before the others."""
    call, after = viewer.call, None if cursor is None else read_cursor(cursor)
    await call.app.operations.settle()
    month = call.app.operations.month(viewer.principal.tenant_id)
    async with viewer.reading() as reading:
        found = await reading.tx.tenant_figures.people(month, call.now, SHOWN_PEOPLE + 1, after, most=COUNTED_ENTRIES)
    shown = found[:SHOWN_PEOPLE]
    following = cursor_of(shown[-1].created_at, shown[-1].id) if len(found) > SHOWN_PEOPLE else None
    values = {"people": shown, "next": following, "counted": COUNTED_ENTRIES}
    return _shown(request, viewer, "admin_people.html", reading.chrome, **values)


@router.get("/{user}")
async def show_person(request: Request, viewer: AdminSignedIn, user: uuid.UUID) -> Response:
    """Somebody: what opens their memory, and what can be done."""
    async with viewer.reading() as reading:
        found = await managed_person(reading.tx, viewer.principal.user, user, viewer.call.now)
    own = user in reading.owned.users
    return _shown(request, viewer, "admin_person.html", reading.chrome, person=found, own=own)


@router.post("/{user}/admin")
async def set_admin(
    viewer: AdminSignedIn, user: uuid.UUID, csrf: Annotated[str, Form()], admin: Annotated[bool, Form()]
) -> Response:
    """Make somebody an admin, or no longer one."""
    viewer.require_form(csrf)
    async with viewer.call.writing() as (tx, access):
        await set_tenant_admin(tx, access.user, user, admin, viewer.call.now)
    return RedirectResponse("/" if user == viewer.principal.user else f"{PEOPLE}/{user}", 303)


@router.post("/{user}/disabled")
async def disable(
    viewer: AdminSignedIn, user: uuid.UUID, csrf: Annotated[str, Form()], disabled: Annotated[bool, Form()]
) -> Response:
    """Disable somebody, or enable them again."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await set_disabled(tx, access.user, user, disabled, viewer.call.now)
    return RedirectResponse(f"{PEOPLE}/{user}", 303)


@router.post("/{user}/link")
async def make_link(request: Request, viewer: AdminSignedIn, user: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Make a link that signs in somebody who has no other way, and show it this once."""
    viewer.require_form(csrf)
    call = viewer.call
    async with viewer.reading() as reading:
        person = await managed_person(reading.tx, viewer.principal.user, user, call.now)
    async with call.writing() as (tx, _):
        code = await let_back_in(tx, call.principal, user, secrets.token_bytes(SECRET_BYTES), call.now)
    values: dict[str, Any] = {"person": person, "link": login_url(call.app.settings.web_address, code)}
    return _shown(request, viewer, "admin_link.html", reading.chrome, **values)


@router.post("/{user}/sign-out")
async def sign_out_person(viewer: AdminSignedIn, user: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """End all that opens somebody's memory from outside."""
    viewer.require_form(csrf)
    async with viewer.call.writing() as (tx, access):
        await sign_out_everywhere(tx, access.user, user, viewer.call.now)
    return RedirectResponse(f"{PEOPLE}/{user}", 303)


def _shown(request: Request, viewer: Viewer, template: str, chrome: Any, **values: Any) -> Response:
    return page(request, template, viewer.language, chrome=chrome, now=viewer.call.now, **values)

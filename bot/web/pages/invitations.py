"""`/invitations`: admins invite people, who need no chat platform, and take invitations back. Others find no such
page."""

import secrets
import uuid
from typing import Annotated, Any, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.rendering import page
from bot.web.pages.viewer import AdminSignedIn, PageRouter
from composer.people.credentials import invitations
from composer.people.credentials.keys import SECRET_BYTES

INVITATIONS: Final = "/invitations"
router = PageRouter(INVITATIONS)


@router.get("")
async def show_invitations(request: Request, viewer: AdminSignedIn) -> Response:
    """The form, and the invitations that nobody has accepted yet."""
    async with viewer.reading() as reading:
        found = await invitations.open_invitations(reading.tx, viewer.principal, viewer.call.now)
    values: dict[str, Any] = {"chrome": reading.chrome, "now": viewer.call.now, "invitations": found}
    return page(request, "invitations.html", viewer.language, **values)


@router.post("")
async def make_invitation(
    request: Request,
    viewer: AdminSignedIn,
    csrf: Annotated[str, Form()],
    name: Annotated[str, Form(max_length=invitations.MAX_NAME_CHARS)] = "",
    email: Annotated[str, Form(max_length=invitations.MAX_ADDRESS_CHARS)] = "",
) -> Response:
    """Make an invitation, and show its link this once."""
    viewer.require_form(csrf)
    call = viewer.call
    async with viewer.reading() as reading:
        chrome = reading.chrome
    async with call.writing() as (tx, _):
        secret = secrets.token_bytes(SECRET_BYTES)
        new = await invitations.invite(tx, call.principal, name, secret, call.now, email=email)
    link = invitations.invitation_url(call.app.settings.web_address, new.code)
    values: dict[str, Any] = {"chrome": chrome, "now": call.now, "made": new.made, "link": link}
    return page(request, "invitations_made.html", viewer.language, **values)


@router.post("/{id}/revoke")
async def revoke_invitation(viewer: AdminSignedIn, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Take one back: its link works no more."""
    viewer.require_form(csrf)
    call = viewer.call
    async with call.writing() as (tx, _):
        await invitations.revoke_invitation(tx, call.principal, id, call.now)
    return RedirectResponse(INVITATIONS, 303)

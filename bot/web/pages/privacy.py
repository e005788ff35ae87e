"""`/privacy`: what is stored of a person, who reads what, and how it is taken out, taken back and stopped."""

import secrets
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.credentials import cookie_name
from bot.web.pages.rendering import page
from bot.web.pages.viewer import PageRouter, SignedIn
from bot.web.routes.exchange import ALL_OF_A_PERSON
from composer.memory.forget import RECEIPT_KEY_BYTES
from composer.people import leaving
from composer.people.export import export_over_api
from composer.people.opting import set_opted_out
from composer.people.places import SESSION, NamedPlace
from composer.people.privacy import StoredAt, own_privacy

PRIVACY: Final = "/privacy"
SHOWN_ASKERS: Final = 50
EXPORT_NAME: Final = "nexus-export.json"
router = PageRouter(PRIVACY)
Csrf = Annotated[str, Form()]


@router.get("")
async def privacy(request: Request, viewer: SignedIn) -> Response:
    """What is stored of the person, and who is answered from it."""
    now = viewer.call.now
    async with viewer.reading() as reading:
        found = await own_privacy(reading.tx, reading.owned, now, reading.presence)
    values: dict[str, Any] = {"chrome": reading.chrome, "now": now, "found": found, "shown": SHOWN_ASKERS}
    values["rows"] = _sessions_together(found.stored)
    return page(request, "privacy.html", viewer.language, **values)


def _sessions_together(stored: Sequence[StoredAt]) -> Sequence[tuple[NamedPlace, int, Counter[str]]]:
    """Places with how many they are and what is in them: sessions that the same people read are one."""
    found = dict[tuple[str, str, str], tuple[NamedPlace, int, Counter[str]]]()
    for each in stored:
        place = each.place
        key = (SESSION, place.read_by, place.project) if place.called == SESSION else (place.name, place.readers, "")
        first, number, counts = found.get(key, (place, 0, Counter[str]()))
        found[key] = (first, number + 1, counts + Counter(each.counts))
    return list(found.values())


@router.post("/opt-out")
async def opt_out(viewer: SignedIn, csrf: Csrf, out: Annotated[bool, Form()]) -> Response:
    """Store nothing more of what the person says, or store it again."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await set_opted_out(tx, access, viewer.call.now, out=out)
    return RedirectResponse(f"{PRIVACY}#storing", 303)


@router.get("/export")
async def export(viewer: SignedIn) -> Response:
    """All that is stored of the person, as one file."""
    call = viewer.call
    for permission in ALL_OF_A_PERSON:
        call.principal.require(permission)
    async with viewer.reading() as reading:
        pass
    document = await export_over_api(
        call.app.database, reading.access, call.principal.tenant, call.now, reading.presence
    )
    headers = {"Content-Disposition": f'attachment; filename="{EXPORT_NAME}"', "Cache-Control": "private, no-store"}
    return Response(document.text, headers=headers, media_type="application/json")


@router.get("/forget")
async def show_forgetting(request: Request, viewer: SignedIn) -> Response:
    """How much erasing all of the person erases, before it does."""
    async with viewer.reading() as reading:
        preview = await leaving.count_all(reading.tx, reading.owned, viewer.call.app.settings.home)
    values: dict[str, Any] = {"chrome": reading.chrome, "now": viewer.call.now, "preview": preview, "receipt": None}
    return page(request, "privacy_forget.html", viewer.language, **values)


@router.post("/forget")
async def forget(
    request: Request,
    viewer: SignedIn,
    csrf: Csrf,
    confirm: Annotated[int, Form(ge=0)],
    sure: Annotated[bool, Form()],
) -> Response:
    """Erase all that the person ever said or stored, with what signs them in, and show the receipt this once."""
    viewer.require_form(csrf)
    if not sure:
        return RedirectResponse(f"{PRIVACY}/forget", 303)
    call = viewer.call
    app, who = call.app, call.principal
    read = partial(app.database.transaction, who.tenant_id, "read")
    alone = partial(call.writing, alone=True)
    key = secrets.token_bytes(RECEIPT_KEY_BYTES)
    receipt = await leaving.erase_all(read, alone, app.settings.home, call.now, key=key, confirmed=confirm)
    await app.forgotten(who.tenant_id, receipt)
    values: dict[str, Any] = {"chrome": None, "now": call.now, "preview": None, "receipt": receipt}
    answer = page(request, "privacy_forget.html", viewer.language, **values)
    name, secure = cookie_name(app.settings.public_url)
    answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
    return answer

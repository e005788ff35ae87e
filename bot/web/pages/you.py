"""`/you`: how a person sees the pages: their language, colours and time zone."""

from typing import Annotated, Any, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.credentials import cookie_name
from bot.web.pages.rendering import LANGUAGE_COOKIE, languages, page
from bot.web.pages.viewer import THEME_COOKIE, THEMES, PageRouter, SignedIn
from composer.errors import BadInput
from composer.people.known_people import admins_to_ask
from composer.people.own_settings import change_own_settings, own_settings
from composer.text.zones import zone_names, zone_of_text

YOU: Final = "/you"
CHOICE_SECONDS: Final = 365 * 86_400  # that a browser remembers how its pages are to look
router = PageRouter(YOU)
_Choice = Annotated[str, Form(max_length=80)]


@router.get("")
async def show_you(request: Request, viewer: SignedIn) -> Response:
    """Who is signed in, and how their pages look."""
    async with viewer.reading() as reading:
        zone = own_settings(viewer.principal, reading.access).timezone
        to_ask = await admins_to_ask(reading.tx, reading.access)
    values: dict[str, Any] = {
        "chrome": reading.chrome,
        "now": viewer.call.now,
        "languages": [(each.code, each.own_name) for each in languages()],
        "chosen": viewer.language.code if viewer.language.chosen else "",
        "themes": THEMES,
        "to_ask": to_ask,
        "zone": zone or "",
        "zones": zone_names(),
    }
    return page(request, "you.html", viewer.language, **values)


@router.post("")
async def change_how_pages_look(
    viewer: SignedIn, csrf: Annotated[str, Form()], language: _Choice = "", theme: _Choice = "", zone: _Choice = ""
) -> Response:
    """Set the language and the colours in this browser, and the time zone for the person, as PATCH /v1/settings does;
    what is empty is as the browser or the platform says."""
    viewer.require_form(csrf)
    if language and language not in [each.code for each in languages()]:
        raise BadInput("There is no such language here.")
    if theme and theme not in THEMES:
        raise BadInput("Colours are light or dark, or as the system has them.")
    call = viewer.call
    async with viewer.reading() as reading:
        before = own_settings(call.principal, reading.access).timezone
    if zone != (before or ""):
        meant = zone_of_text(zone) if zone.strip() else None
        async with call.writing(alone=True) as (tx, access):
            of_tenant = call.app.directory.zone(access.tenant_id)
            await change_own_settings(tx, access, {"timezone": meant}, call.now, of_tenant)
    answer = RedirectResponse(YOU, 303)
    secure = cookie_name(call.app.settings.public_url)[1]
    for name, value in ((LANGUAGE_COOKIE, language), (THEME_COOKIE, theme)):
        if value:
            answer.set_cookie(name, value, CHOICE_SECONDS, path="/", secure=secure, httponly=True, samesite="lax")
        else:
            answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
    return answer

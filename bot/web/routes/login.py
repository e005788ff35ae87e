"""`/login`: signs a person in by a link that was shown to them alone, and `/v1/logout`.

Opening the link shows whose account it is and a button; only the button uses it up: programs that show previews open
links, too. The button counts from our own page alone: no page of another site can sign somebody in as somebody else.
"""

import html
import secrets
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from bot.web.bodies import JsonRoute
from bot.web.dependencies import Nexus
from bot.web.limits import counted_by_address
from bot.web.principal import Bearer, cookie_name, is_own_page
from bot.web.problems import documented, header
from composer.credentials.keys import SECRET_BYTES
from composer.credentials.principal import Source
from composer.credentials.sign_in import SESSION_LIFETIME, person_of_link, sign_in
from composer.errors import NotFound, Refused

PATH: Final = "/login"
SIGNED_IN: Final = "/login/done"
MAX_BYTES: Final = 8 * 1024  # of the form: it holds a code
NO_LINK: Final = "This address signs you in with a link: get one with /nexus login, in a direct message."
OTHER_PAGE: Final = "This was not sent by the page that the link opens: open the link again, and press its button."
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    # With no-referrer a browser would say that its own form comes from nowhere, and old ones say nothing else. No other
    # site gets the address either way.
    "Referrer-Policy": "same-origin",
}
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Sign in to Nexus</title>
<h1>Nexus</h1>
<p>{said}</p>
{form}</html>
"""
_FORM: Final = """<form method="post" action="{path}">
<input type="hidden" name="code" value="{code}">
<button>Sign in</button>
</form>
"""

router = APIRouter(route_class=JsonRoute, dependencies=[Depends(counted_by_address)])
signed_in_routes = APIRouter(route_class=JsonRoute)


@router.get(PATH, include_in_schema=False)
async def show_link(nexus: Nexus, code: str = "") -> Response:
    """A page that says whom the link signs in, with the button. It changes nothing."""
    if not code:
        return _page(NO_LINK, status=404)
    try:
        person = await person_of_link(nexus.app.database, code, nexus.app.clock.now())
    except NotFound as error:
        return _page(str(error), status=404)
    return _page(f"This signs this browser in as {person}, for {SESSION_LIFETIME.days} days. Is that you?", code)


@router.post(PATH, include_in_schema=False)
async def use_link(request: Request, nexus: Nexus, code: Annotated[str, Form()] = "") -> Response:
    """Sign the browser in, and lead it to a page without the code."""
    if not is_own_page(request, nexus.app.settings.public_url):
        return _page(OTHER_PAGE, status=403)
    app, browser = nexus.app, request.headers.get("user-agent", "")
    try:
        _, cookie = await sign_in(app.database, code, browser, secrets.token_bytes(SECRET_BYTES), app.clock.now())
    except NotFound as error:
        return _page(str(error), status=404)
    name, secure = cookie_name(app.settings.public_url)
    answer = RedirectResponse(SIGNED_IN, 303, HEADERS)
    lifetime = int(SESSION_LIFETIME.total_seconds())
    answer.set_cookie(name, cookie, lifetime, path="/", secure=secure, httponly=True, samesite="lax")
    return answer


@router.get(SIGNED_IN, include_in_schema=False)
async def signed_in() -> Response:
    """What is shown once the browser is signed in. It asks nobody."""
    return _page("This browser is signed in. /nexus keys list shows it, and /nexus keys revoke ends it.")


_SIGNED_OUT: Final[dict[int | str, dict[str, Any]]] = {
    204: {"description": "The browser is signed out", "headers": {"Set-Cookie": header("Takes its cookie away.")}},
    **documented(401, 403),
}


@signed_in_routes.post("/v1/logout", tags=["keys"], summary="Sign out", status_code=204, responses=_SIGNED_OUT)
async def sign_out(principal: Bearer, nexus: Nexus, response: Response) -> None:
    """End the web session that asks."""
    if principal.source is not Source.WEB_SESSION:
        raise Refused("Only a web session signs out: a key is ended by revoking it.")
    async with nexus.app.database.transaction(principal.tenant_id) as tx:
        await tx.web_sessions.end([principal.id], principal.user)
    name, secure = cookie_name(nexus.app.settings.public_url)
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")


def _page(said: str, code: str = "", status: int = 200) -> Response:
    form = _FORM.format(path=PATH, code=html.escape(code)) if code else ""
    return HTMLResponse(_PAGE.format(said=html.escape(said), form=form), status, HEADERS)

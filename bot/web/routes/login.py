"""`/login`: signs a person in by a link that was shown to them alone, and `/v1/logout`.

Opening the link shows whose account it is and a button; only the button uses it up: programs that show previews open
links, too. The button counts from our own page alone: no page of another site can sign somebody in as somebody else.
"""

import secrets
from typing import Annotated, Any, Final

from fastapi import Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.credentials import cookie_name, is_own_page
from bot.web.dependencies import Nexus, counted_by_address
from bot.web.plain_pages import PAGE_HEADERS, plain_pages
from bot.web.principal import Bearer
from bot.web.problems import documented, header, status_of
from bot.web.return_cookie import return_address
from bot.web.router import Router
from composer.errors import NotFound, Refused
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.principal import Source
from composer.people.credentials.sign_in import SESSION_LIFETIME, person_of_link, sign_in

LOGIN_PATH: Final = "/login"
SIGNED_IN: Final = "/login/done"
HOME: Final = "/"
OPENID_PATH: Final = "/login/openid"
ACCOUNT_PATH: Final = "/login/account"
MAX_LOGIN_FORM_BYTES: Final = 8 * 1024  # of the form: it holds a code
NO_LINK: Final = "You are not signed in here. A link signs you in:"
WAYS_TO_LINKS: Final = (
    "From Discord or Slack: give /nexus login, in a direct message with the agent.",
    "Signed in elsewhere: that browser's page Tools makes a link for this one.",
    "Came by an invitation, and no browser is left: ask an admin of your organisation, who makes a link for you on the "
    "page Admin, People. Are you the only admin, ask whoever runs Nexus: nexus login.",
    "New here: ask an admin of your organisation to invite you.",
)
SIGNS_IN: Final = "This signs this browser in as {name} of {tenant}, for {days} days. Is that you?"
YES: Final = "Sign in"
BY_ACCOUNT: Final = "Or sign in with an account of {host}"
NOT_FROM_LOGIN_PAGE: Final = (
    "This was not sent by the page that the link opens: open the link again, and press its button."
)

router = Router(dependencies=[Depends(counted_by_address)])
signed_in_routes = Router()


@router.get(LOGIN_PATH, include_in_schema=False)
async def show_link(request: Request, nexus: Nexus, code: str = "") -> Response:
    """A page that says whom the link signs in, with the button. It changes nothing."""
    pages = plain_pages(request)
    if not code:
        provider, ways = nexus.app.settings.openid, pages.items(WAYS_TO_LINKS)
        if provider is None:
            return pages.page(NO_LINK, ways, status=404)
        return pages.page(NO_LINK, ways, pages.link(OPENID_PATH, BY_ACCOUNT.format(host=provider.host)))
    try:
        person = await person_of_link(nexus.app.database, code, nexus.app.clock.now())
    except NotFound as error:
        return pages.page(str(error), status=404)
    name, _, tenant = person.rpartition(" of ")
    said = SIGNS_IN.format(name=name, tenant=tenant, days=SESSION_LIFETIME.days)
    return pages.page(said, pages.button(LOGIN_PATH, YES, code=code))


@router.post(LOGIN_PATH, include_in_schema=False)
async def use_link(request: Request, nexus: Nexus, code: Annotated[str, Form()] = "") -> Response:
    """Sign the browser in, and lead it to a page without the code."""
    pages = plain_pages(request)
    if not is_own_page(request, nexus.app.settings.public_url):
        return pages.page(NOT_FROM_LOGIN_PAGE, status=403)
    app, browser = nexus.app, request.headers.get("user-agent", "")
    try:
        _, cookie = await sign_in(app.database, code, browser, secrets.token_bytes(SECRET_BYTES), app.clock.now())
    except (NotFound, Refused) as error:
        return pages.page(str(error), status=status_of(error))
    return signed_in_with(request, cookie, app.settings.public_url)


@router.get(SIGNED_IN, include_in_schema=False)
async def signed_in(request: Request, nexus: Nexus) -> Response:
    """What is shown once the browser is signed in. It asks nobody."""
    pages, provider = plain_pages(request), nexus.app.settings.openid
    more = "" if provider is None else pages.link(ACCOUNT_PATH, f"Sign in with {provider.host} from now on")
    return pages.page("This browser is signed in. /nexus keys list shows it, and /nexus keys revoke ends it.", more)


def signed_in_with(request: Request, cookie: str, public_url: str | None) -> Response:
    """The answer that gives a browser the cookie of its web session, and leads it back to the app that brought it here,
    or to a page without any code."""
    name, secure = cookie_name(public_url)
    answer = RedirectResponse(return_address(request, public_url) or HOME, 303, PAGE_HEADERS)
    lifetime = int(SESSION_LIFETIME.total_seconds())
    answer.set_cookie(name, cookie, lifetime, path="/", secure=secure, httponly=True, samesite="lax")
    return answer


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

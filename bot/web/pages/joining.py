"""`/invite`: by a link that an admin sent, or that Nexus printed at its start, somebody becomes a person of an
organisation.

Opening the link shows what it offers; only the button of that page uses it up, since programs that show previews open
links, too. The link is told to nobody: the page loads and links to nothing elsewhere, and says no more than its origin.
"""

import secrets
from typing import Annotated, Any, Final

from fastapi import Depends, Form, Request, Response

from bot.web.credentials import is_own_page, web_session_of
from bot.web.dependencies import Nexus, counted_by_address
from bot.web.openid import OpenIdProvider
from bot.web.pages.rendering import language_of, page
from bot.web.pages.viewer import PageRouter
from bot.web.problems import RequestRefused, status_of
from bot.web.routes.login import OPENID_PATH, signed_in_with
from bot.web.state import WebState
from composer.errors import BadInput, NotFound
from composer.model import api_workspace, tenant_id
from composer.people.credentials import invitations
from composer.people.credentials.keys import MAX_CREDENTIAL_CHARS, SECRET_BYTES
from composer.people.credentials.sign_in import SESSION_LIFETIME

INVITE_PATH: Final = "/invite"
MAX_INVITE_FORM_BYTES: Final = 8 * 1024
NOT_FROM_INVITE_PAGE: Final = (
    "This was not sent by the page that the link opens: open the link again, and press its button."
)
router = PageRouter(INVITE_PATH, dependencies=[Depends(counted_by_address)])


@router.get("/{code}")
async def show_invitation(request: Request, nexus: Nexus, code: str) -> Response:
    """Say what the link offers, and by whom. It changes nothing."""
    return await _shown(request, nexus, code)


@router.post("")
async def accept_invitation(
    request: Request,
    nexus: Nexus,
    code: Annotated[str, Form(max_length=MAX_CREDENTIAL_CHARS)],
    name: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Become a person of the organisation, and sign the browser in, which forgets whoever was signed in there."""
    app, tenant = nexus.app, invitations.tenant_invited_to(code)
    if not is_own_page(request, app.settings.public_url):
        raise RequestRefused(403, NOT_FROM_INVITE_PAGE)
    if tenant is None:
        raise NotFound(invitations.NO_INVITATION)
    here = api_workspace(tenant_id(tenant), tenant)
    browser, secret = request.headers.get("user-agent", ""), secrets.token_bytes(SECRET_BYTES)
    try:
        cookie = await invitations.accept(
            app.database,
            here,
            app.directory.agents(here.tenant_id),
            code,
            name,
            browser,
            secret,
            app.clock.now(),
            has_accounts=_provider_of(nexus, tenant) is not None,
        )
    except BadInput as error:
        return await _shown(request, nexus, code, name=name, wrong=str(error), status=status_of(error))
    return signed_in_with(request, cookie, app.settings.public_url)


def _provider_of(nexus: WebState, tenant: str) -> OpenIdProvider | None:
    """Whose accounts sign people of an organisation in."""
    return None if nexus.openid is None or nexus.openid.settings.tenant != tenant else nexus.openid


async def _shown(request: Request, nexus: WebState, code: str, *, status: int = 200, **typed: Any) -> Response:
    app = nexus.app
    invited = await invitations.look_at(app.database, code, app.clock.now())
    signed_in = await web_session_of(request, app) if request.method == "GET" else None
    values = {"invited": invited, "code": code, "signed_in": signed_in is not None, "days": SESSION_LIFETIME.days}
    values |= {"name": invited.name, "wrong": "", "chrome": None, "max_chars": invitations.MAX_NAME_CHARS, **typed}
    provider = _provider_of(nexus, invited.tenant) if invited.bound else None
    values |= {"host": None if provider is None else provider.settings.host, "sign_in": OPENID_PATH}
    answer = page(request, "invite.html", language_of(request), status=status, now=app.clock.now(), **values)
    answer.headers["Referrer-Policy"] = "strict-origin"
    return answer

"""`/login/openid` signs a person in by their account at the OpenID provider; `/login/account` connects one.

An account is connected by three steps of its person's own: a button here, signing in there, and a button that names the
account. So no page of another site connects an account, and nobody connects one that they did not mean.
"""

import secrets
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.credentials import cookie_name, is_own_page, only_cookie, web_session_of
from bot.web.dependencies import Nexus, counted_by_address
from bot.web.openid import FLOW_SECONDS, START_AGAIN, OpenIdProvider
from bot.web.plain_pages import PAGE_HEADERS, PlainPages, leading_to, plain_pages
from bot.web.problems import RequestRefused, status_of
from bot.web.router import Router
from bot.web.routes.login import ACCOUNT_PATH, OPENID_PATH, signed_in_with
from bot.web.state import WebState
from composer.entries.access import access_for_reading, access_for_writing
from composer.errors import Misconfigured, NexusError, NotFound
from composer.model import api_workspace, tenant_id
from composer.people.credentials import invitations, openid
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.openid import OpenIdAccount
from composer.people.credentials.principal import Principal
from composer.settings import CALLBACK

CONNECT_PATH: Final = f"{ACCOUNT_PATH}/connect"
CONFIRM_PATH: Final = f"{ACCOUNT_PATH}/confirm"
DISCONNECT_PATH: Final = f"{ACCOUNT_PATH}/disconnect"
COOKIE_SUFFIX: Final = "-openid"
WHOSE: Final = "session"  # in the cookie: the web session for which an account is connected
FOUND_FIELD: Final = "account"  # and what account that is
NOT_SET: Final = "No OpenID provider is set here: sign in with a link (/nexus login, in a direct message)."
NOT_SET_RIGHT: Final = "Signing in this way is not set up right: tell whoever runs Nexus."
NOT_SIGNED_IN: Final = "Nobody is signed in here: sign in with a link first (/nexus login, in a direct message)."
NOT_FROM_OPENID_PAGE: Final = "This was not sent by our own page: open it again, and press its button."

router = Router(dependencies=[Depends(counted_by_address)])


@dataclass(slots=True)
class _Flow:
    """A sign-in that is under way in one browser: what its cookie holds."""

    provider: OpenIdProvider
    nexus: WebState
    session: dict[str, Any]
    pages: PlainPages

    def kept(self, answer: Response) -> Response:
        """The answer, with the cookie as it is now."""
        name, secure = _cookie(self.nexus)
        answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
        if self.session:
            del answer.headers["set-cookie"]
            sealed = self.provider.seal(self.session)
            answer.set_cookie(name, sealed, FLOW_SECONDS, path="/", secure=secure, httponly=True, samesite="lax")
        return answer


async def _flow(request: Request, nexus: Nexus) -> _Flow:
    """The sign-in that is under way. Raises RequestRefused without a provider."""
    if nexus.openid is None:
        raise RequestRefused(404, NOT_SET)
    session = nexus.openid.unseal(only_cookie(request, _cookie(nexus)[0]))
    flow = _Flow(nexus.openid, nexus, session, plain_pages(request))
    request.scope["session"] = flow.session  # where Authlib looks for it
    return flow


def _cookie(nexus: WebState) -> tuple[str, bool]:
    name, secure = cookie_name(nexus.app.settings.public_url)
    return name + COOKIE_SUFFIX, secure


Flow = Annotated[_Flow, Depends(_flow)]


@router.get(OPENID_PATH, include_in_schema=False)
async def start(request: Request, flow: Flow) -> Response:
    """Lead the browser to the provider, to sign in."""
    flow.session.clear()
    try:
        return flow.kept(RedirectResponse(await flow.provider.begin(request), 302, PAGE_HEADERS))
    except NexusError as error:
        return _failed(flow, error)


@router.get(CALLBACK, include_in_schema=False)
async def come_back(request: Request, flow: Flow) -> Response:
    """Take the browser back: sign it in, or go on to connecting the account."""
    whose = flow.session.pop(WHOSE, None)
    try:
        account = await flow.provider.finish(request)
        flow.session.clear()
        if whose is None:
            return flow.kept(await _signed_in(request, flow, account))
    except NexusError as error:
        flow.session.clear()
        return flow.kept(_failed(flow, error))
    flow.session |= {WHOSE: whose, FOUND_FIELD: [account.issuer, account.subject, account.name]}
    return flow.kept(RedirectResponse(ACCOUNT_PATH, 303, PAGE_HEADERS))


async def _signed_in(request: Request, flow: _Flow, account: OpenIdAccount) -> Response:
    app, browser = flow.nexus.app, request.headers.get("user-agent", "")
    tenant, secret, now = flow.provider.settings.tenant, secrets.token_bytes(SECRET_BYTES), app.clock.now()
    try:
        _, cookie = await openid.sign_in_by_account(app.database, tenant, account, browser, secret, now)
    except NotFound:
        here = api_workspace(tenant_id(tenant), tenant)
        agents = app.directory.agents(here.tenant_id)
        cookie = await invitations.accept_by_account(app.database, here, agents, account, browser, secret, now)
    return signed_in_with(request, cookie, app.settings.public_url)


@router.get(ACCOUNT_PATH, include_in_schema=False)
async def show(request: Request, flow: Flow) -> Response:
    """Whose browser this is, which accounts sign them in, and what can be done about that."""
    principal = await web_session_of(request, flow.nexus.app)
    if principal is None:
        return flow.pages.page(NOT_SIGNED_IN, status=401)
    who, app = flow.provider.settings, flow.nexus.app
    if principal.tenant != who.tenant:
        return flow.pages.page(f"{who.host} signs in people of {who.tenant} alone.", status=403)
    async with app.database.transaction(principal.tenant_id, "read") as tx:
        access = await access_for_reading(
            tx, principal.tenant_id, principal.user, principal.reads_as, principal.permissions
        )
        logins = await openid.own_logins(tx, principal, access)
    body = []
    account = _found(flow, principal)
    if account is not None:
        known = account.name or "?"
        body.append(flow.pages.text(f"Connect {known} at {who.host}? It will sign you in here."))
        body.append(flow.pages.button(CONFIRM_PATH, "Connect it"))
    for login in logins:
        body.append(flow.pages.text(f"{login.name or '?'} at {login.issuer} signs you in."))
        body.append(flow.pages.button(DISCONNECT_PATH, "Disconnect it", id=str(login.id)))
    if account is None:
        body.append(flow.pages.button(CONNECT_PATH, f"Connect an account at {who.host}"))
    return flow.pages.page(f"This browser is signed in as {access.name} of {principal.tenant}.", *body)


@router.post(CONNECT_PATH, include_in_schema=False)
async def go_to_connect(request: Request, flow: Flow) -> Response:
    """Lead the browser to the provider, to find out which account to connect."""
    principal = await _own(request, flow)
    flow.session.clear()
    try:
        address = await flow.provider.begin(request)
    except NexusError as error:
        return _failed(flow, error)
    flow.session[WHOSE] = str(principal.id)
    body = flow.pages.link(address, "Go on")
    return flow.kept(flow.pages.page(f"Going on to {flow.provider.settings.host}.", body, head=leading_to(address)))


@router.post(CONFIRM_PATH, include_in_schema=False)
async def confirm(request: Request, flow: Flow) -> Response:
    """Connect the account that the browser came back with."""
    principal = await _own(request, flow)
    account, app = _found(flow, principal), flow.nexus.app
    flow.session.clear()
    if account is None:
        return flow.kept(flow.pages.page(START_AGAIN, status=403))
    try:
        async with app.database.transaction(principal.tenant_id) as tx:
            await openid.connect(tx, principal, account, app.clock.now())
    except NexusError as error:
        return flow.kept(_failed(flow, error))
    return flow.kept(RedirectResponse(ACCOUNT_PATH, 303, PAGE_HEADERS))


@router.post(DISCONNECT_PATH, include_in_schema=False)
async def disconnect(request: Request, flow: Flow, id: Annotated[uuid.UUID, Form()]) -> Response:
    """Disconnect an account. The browsers that it signed in stay so until their web sessions are ended."""
    principal, app = await _own(request, flow), flow.nexus.app
    try:
        async with app.database.transaction(principal.tenant_id) as tx:
            access = await access_for_writing(
                tx, principal.tenant_id, principal.user, principal.reads_as, principal.permissions
            )
            await openid.disconnect_own(tx, principal, access, id)
    except NexusError as error:
        return _failed(flow, error)
    return RedirectResponse(ACCOUNT_PATH, 303, PAGE_HEADERS)


async def _own(request: Request, flow: _Flow) -> Principal:
    """Who is signed in, of the tenant whose people the provider signs in, if our own page asks. Raises
    RequestRefused."""
    if not is_own_page(request, flow.nexus.app.settings.public_url):
        raise RequestRefused(403, NOT_FROM_OPENID_PAGE)
    principal = await web_session_of(request, flow.nexus.app)
    if principal is None:
        raise RequestRefused(401, NOT_SIGNED_IN)
    if principal.tenant != flow.provider.settings.tenant:
        raise RequestRefused(403)
    return principal


def _found(flow: _Flow, principal: Principal) -> OpenIdAccount | None:
    """The account that this web session set out to connect, and came back with."""
    found = flow.session.get(FOUND_FIELD)
    return None if found is None or flow.session.get(WHOSE) != str(principal.id) else OpenIdAccount(*found)


def _failed(flow: _Flow, error: NexusError) -> Response:
    """A page that says what went wrong. What is wrong with the settings is for whoever runs Nexus."""
    misconfigured = isinstance(error, Misconfigured)
    return flow.pages.page(NOT_SET_RIGHT if misconfigured else str(error), status=status_of(error))

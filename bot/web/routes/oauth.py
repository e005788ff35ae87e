"""Signing in AI tools by OAuth: what clients are told of it, `/oauth/authorize` with its consent page, and tokens.

There is nothing at these addresses without NEXUS_PUBLIC_URL. A page leads back to an app only after its address has
been checked, and only once its person has pressed a button there, now or before.
"""

import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response
from fastapi.responses import JSONResponse

from bot.web import return_cookie
from bot.web.credentials import cookie_name, only_cookie, web_session_of
from bot.web.dependencies import Nexus, counted_by_address
from bot.web.limits import address_of
from bot.web.oauth import metadata
from bot.web.oauth.clients import Client
from bot.web.oauth.consent import CONSENT_HEADERS, PARAMETERS, Mistake, consent_page, mistake_page, token_of, vendor_of
from bot.web.oauth.server import OAuthServer
from bot.web.plain_pages import PlainPages, leading_to, plain_pages
from bot.web.problems import RequestRefused, status_of
from bot.web.router import Router
from bot.web.routes.login import BY_ACCOUNT, OPENID_PATH
from bot.web.state import WebState
from composer.entries.access import access_for_reading
from composer.entries.tools import used_names
from composer.errors import BadInput, NexusError
from composer.model import EVERY_VENDOR
from composer.people.credentials import connected_apps
from composer.people.credentials.connected_apps import AuthorizationRequest
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.principal import Principal
from composer.people.credentials.redirects import leads_to_loopback

MAX_OAUTH_FORM_BYTES: Final = 10_000  # of a form, and of what an app says of itself
PUBLIC: Final = {"Cache-Control": "public, max-age=3600"}
SIGN_IN_FIRST: Final = (
    "An app wants to use your memory. Sign in first: get a link with /nexus login, in a direct message, and open it in "
    "this browser. It leads back here."
)
SIGN_IN_AND_COME_AGAIN: Final = (
    "An app wants to use your memory. Sign in first: get a link with /nexus login, in a direct message, and open it in "
    "this browser. Then have the app sign in once more: what it sent is too long to be kept."
)
NOT_FROM_CONSENT_PAGE: Final = "This was not sent by our own page: have the app sign in anew, from its beginning."
SOMEBODY_ELSE: Final = "This page is shown anew, since it was made for somebody else, or for another request."
TWICE: Final = "The app names something twice: have it sign in anew, from its beginning."


async def _oauth(nexus: Nexus) -> OAuthServer:
    """The authorization server. Raises RequestRefused where there is none."""
    if nexus.oauth is None:
        raise RequestRefused(404)
    return nexus.oauth


OAuth = Annotated[OAuthServer, Depends(_oauth)]
router = Router(dependencies=[Depends(_oauth), Depends(counted_by_address)])


@router.get(metadata.PROTECTED_RESOURCE, include_in_schema=False)
@router.get(metadata.PROTECTED_RESOURCE + metadata.RESOURCE_PATH, include_in_schema=False)
async def protected_resource(oauth: OAuth) -> Response:
    """Which server gives tokens for `/mcp`."""
    return JSONResponse(metadata.protected_resource(oauth.public_url), headers=PUBLIC)


@router.get(metadata.AUTHORIZATION_SERVER, include_in_schema=False)
@router.get(metadata.OPENID_CONFIGURATION, include_in_schema=False)
async def authorization_server(oauth: OAuth) -> Response:
    """Where and how clients get tokens. Some ask for it at the address of OpenID's."""
    return JSONResponse(metadata.authorization_server(oauth.public_url), headers=PUBLIC)


@router.get(metadata.AUTHORIZE, include_in_schema=False)
async def authorize(request: Request, nexus: Nexus, oauth: OAuth) -> Response:
    """Ask the person who is signed in for what an app wants; who isn't, signs in first. Nothing of the app is looked up
    before."""
    principal = await web_session_of(request, nexus.app)
    if principal is None:
        return _signed_in_first(request, nexus)
    said = _once(request.query_params.multi_items())
    answer = await _asked(request, nexus, oauth, principal, said)
    return_cookie.delete(answer, oauth.public_url)
    return answer


@router.post(metadata.CONSENT, include_in_schema=False)
async def consent(request: Request, nexus: Nexus, oauth: OAuth) -> Response:
    """Take what the person has decided, and lead back to the app."""
    await request.body()  # it may take a minute, and who is signed in is asked once all of it is here
    principal = await web_session_of(request, nexus.app)  # of a page of ours alone
    if principal is None:
        return plain_pages(request).page(NOT_FROM_CONSENT_PAGE, status=403)
    sent = await _form(request)
    said = {name: value for name, value in sent.items() if name in PARAMETERS}
    return await _asked(request, nexus, oauth, principal, said, sent)


@router.post(metadata.TOKEN, include_in_schema=False)
async def token(request: Request, oauth: OAuth) -> Response:
    """Give tokens for a code, or for a refresh token."""
    return await oauth.handlers.token(request, await _form(request))


@router.post(metadata.REVOKE, include_in_schema=False)
async def revoke(request: Request, oauth: OAuth) -> Response:
    """End the sign-in that a token belongs to (RFC 7009)."""
    return await oauth.handlers.revoke(request, await _form(request))


@router.post(metadata.REGISTER, include_in_schema=False)
async def register(request: Request, nexus: Nexus, oauth: OAuth) -> Response:
    """Register an app (RFC 7591). Anybody may, so there is a lower limit for each address."""
    await nexus.fair_use.admit(f"register:{address_of(request)}", admin=True)
    return await oauth.handlers.register(request)


async def _asked(
    request: Request,
    nexus: WebState,
    oauth: OAuthServer,
    principal: Principal,
    said: Mapping[str, str],
    sent: Mapping[str, str] | None = None,
) -> Response:
    """The answer to a request of an app: the page, or what leads back. `sent` is the form of that page, with what the
    person has chosen; None before."""
    handlers, pages = oauth.handlers, plain_pages(request)
    found = await handlers.authorize(request, said)
    if isinstance(found, str):
        return pages.page(found, status=400)
    if isinstance(found, Mistake):
        return mistake_page(pages, found)
    client, asked = found
    token, vendor, wrong = _token(request, oauth, said, client, asked), None, ""
    if sent is not None and hmac.compare_digest(sent.get("token", "").encode(), token.encode()):
        vendor = sent.get("vendor", "")
    elif sent is not None:
        wrong = SOMEBODY_ELSE
    if vendor is not None and (sent or {}).get("decision") != "allow":
        return _leading_back(pages, handlers.redirect_url(asked.redirect_uri, said, error="access_denied"), client)
    try:
        name, before, used = await _person(nexus, principal, asked)
        if vendor is None and not wrong and before and _is_remembered(request, asked):
            code = await _connected(nexus, oauth, principal, asked, before[0])
            return handlers.redirect(asked.redirect_uri, said, code=code)
        if vendor is not None:
            code = await _connected(nexus, oauth, principal, asked, vendor.strip().lower())
            return _leading_back(pages, handlers.redirect_url(asked.redirect_uri, said, code=code), client)
    except BadInput as error:
        wrong = str(error)
    except NexusError as error:
        return pages.page(str(error), status=status_of(error))
    shown, taken = vendor_of(client.name, used)
    if vendor is not None or before:
        shown, taken = before[0] if vendor is None else vendor, ""
    return consent_page(pages, client, asked, (name, principal.tenant), shown, token, said, wrong, taken)


async def _person(
    nexus: WebState, principal: Principal, asked: AuthorizationRequest
) -> tuple[str, list[str], frozenset[str]]:
    """Whose memory it is about, as which tools they have allowed the same before, and the names of all their tools.
    Raises Refused for who may connect no app."""
    async with nexus.app.database.transaction(principal.tenant_id, "read") as tx:
        await connected_apps.require_may_connect(tx, principal)
        access = await access_for_reading(tx, principal.tenant_id, principal.user, EVERY_VENDOR, principal.permissions)
        before = await connected_apps.find_connected(tx, principal, asked, nexus.app.clock.now())
        used = await used_names(tx, access, nexus.app.clock.now())
    return access.name, [each.vendor for each in before if each.vendor is not None], used


async def _connected(
    nexus: WebState, oauth: OAuthServer, principal: Principal, asked: AuthorizationRequest, vendor: str
) -> str:
    secret = secrets.token_bytes(SECRET_BYTES)
    async with nexus.app.database.transaction(principal.tenant_id) as tx:
        code = await connected_apps.connect(tx, principal, asked, vendor, secret, nexus.app.clock.now())
    await oauth.clients.note_use(asked.client)
    return code


def _is_remembered(request: Request, asked: AuthorizationRequest) -> bool:
    """Whether who has allowed this before is not asked again. They are where any program on their machine may ask, and
    where the app wants them to be."""
    return not leads_to_loopback(asked.redirect_uri) and request.query_params.get("prompt") != "consent"


def _signed_in_first(request: Request, nexus: WebState) -> Response:
    pages, provider, settings = plain_pages(request), nexus.app.settings.openid, nexus.app.settings
    more = "" if provider is None else pages.link(OPENID_PATH, BY_ACCOUNT.format(host=provider.host))
    answer = pages.page(SIGN_IN_FIRST, more, status=401)
    if not return_cookie.store(answer, request.url.query, settings.public_url):
        answer = pages.page(SIGN_IN_AND_COME_AGAIN, more, status=401)
    answer.headers.update(CONSENT_HEADERS)
    return answer


def _leading_back(pages: PlainPages, address: str, client: Client) -> Response:
    """A page that leads back to an app at once: a form can't be answered by leading to another site."""
    answer = pages.page(f"Going back to {client.name}.", pages.link(address, "Go on"), head=leading_to(address))
    answer.headers.update(CONSENT_HEADERS)
    return answer


def _token(
    request: Request, oauth: OAuthServer, said: Mapping[str, str], client: Client, asked: AuthorizationRequest
) -> str:
    cookie = only_cookie(request, cookie_name(oauth.public_url)[0])
    assert cookie is not None  # of the web session that asks
    return token_of(cookie, said, client, asked)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form. Raises RequestRefused where one is there twice, or is a file."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise RequestRefused(415, "The request's body must be application/x-www-form-urlencoded.")
    return _once((await request.form(max_fields=50)).multi_items())


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Parameters by their names. Raises RequestRefused where one is there twice: of two, readers take either."""
    listed = [(name, value) for name, value in pairs if isinstance(value, str)]
    found = dict(listed)
    if len(found) < len(listed):
        raise RequestRefused(400, TWICE)
    return found

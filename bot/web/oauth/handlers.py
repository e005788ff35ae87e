"""The SDK's handlers of OAuth 2.1, with our rules and our store behind them.

The SDK reads and checks requests; what is stored, and what it leaves open, is ours: addresses compared as texts,
secrets by their digests, codes and refresh tokens used once, and the issuer in every answer.
"""

import base64
import binascii
import hmac
import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import structlog
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import OAuthAuthorizationServerProvider
from mcp.server.auth.settings import ClientRegistrationOptions
from pydantic_core import to_json
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from bot.web.oauth.clients import NO_SECRET, Client, Clients
from bot.web.oauth.consent import Mistake
from bot.web.oauth.metadata import OAUTH_SCOPES, resource_of
from bot.web.oauth.provider import (
    NOT_REGISTERED,
    OAUTH_GRANTS,
    ConsentProvider,
    RegistrationProvider,
    SdkClient,
    TokenProvider,
    is_for_us,
)
from composer.errors import BadInput
from composer.people.credentials import connected_apps
from composer.people.credentials.connected_apps import AuthorizationRequest
from composer.people.credentials.keys import digest
from composer.ports.clock import Clock
from composer.repositories.database import Database

logger = structlog.get_logger()
logging.getLogger("mcp.server.auth").setLevel(logging.CRITICAL)  # of a bug it would log what clients sent

NO_STORE: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class _Form(Request):
    """A request of which the form was read: each field once, and all of them texts."""

    def __init__(self, request: Request, said: Mapping[str, str]) -> None:
        super().__init__(request.scope, request.receive)
        self._said = said

    async def form(self, **_: Any) -> FormData:  # type: ignore[override]
        """The form."""
        return FormData(list(self._said.items()))


class _Authenticator(ClientAuthenticator):
    """Knows apps by their secrets, of which digests are stored. An app that has none is known by its id."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def authenticate_request(self, request: Request) -> SdkClient:
        """The app that asks. Raises AuthenticationError."""
        form = await request.form()
        client = await self._clients.find_for_tokens(str(form.get("client_id") or ""))
        if client is None:
            raise AuthenticationError("There is no such client.")
        if client.auth_method == NO_SECRET:
            return SdkClient.of(client)
        basic = _basic(request)
        given = form.get("client_secret") if client.auth_method == "client_secret_post" else basic and basic[1]
        if basic is not None and basic[0] != client.id:
            given = None
        if client.secret_digest is None or not isinstance(given, str):
            raise AuthenticationError(f"This client shows who it is by {client.auth_method}.")
        if not hmac.compare_digest(digest(given), client.secret_digest):
            raise AuthenticationError("The client's secret is wrong.")
        return SdkClient.of(client)


class Handlers:
    """What the routes of OAuth call. Requests are refused as OAuth says, in its own JSON."""

    def __init__(self, database: Database, clients: Clients, clock: Clock, public_url: str) -> None:
        self._database = database
        self._clients = clients
        self._clock = clock
        self._public_url = public_url
        self._authenticator = _Authenticator(clients)

    async def authorize(
        self, request: Request, said: Mapping[str, str]
    ) -> "tuple[Client, AuthorizationRequest] | Mistake | str":
        """Check an authorization request, by its parameters `said`: the app and what it asks for; or its mistake, which
        the app is told; or, where nobody may be redirected, a sentence for the person."""
        consent = ConsentProvider(self._clients, self._public_url, said)
        answer = await AuthorizationHandler(_provider(consent)).handle(_Form(_as_post(request), said))
        if consent.refused is not None:
            if not isinstance(consent.refused, BadInput):
                raise consent.refused
            return str(consent.refused)
        if consent.client is not None and consent.asked is not None:
            return consent.client, consent.asked
        if answer.status_code == 302 and consent.client is not None:
            errors = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
            named = said.get("redirect_uri")
            if errors["error"] == "server_error":
                logger.error("oauth.failed")
            place = named if named is not None else consent.client.redirect_uris[0]
            why = errors.get("error_description")
            return Mistake(
                consent.client,
                errors["error"],
                why or errors["error"],
                place,
                self.redirect_url(place, said, error=errors["error"], error_description=why),
            )
        if consent.client is not None and consent.client.registered_redirect(said.get("redirect_uri")) is None:
            return NOT_REGISTERED
        return "This is no request of an app that can be answered: have it sign in anew, from its beginning."

    def redirect_url(self, redirect_uri: str, said: Mapping[str, str], **values: str | None) -> str:
        """The URL that redirects to an app, with the state that it sent and with the issuer (RFC 9207)."""
        parts = urlsplit(redirect_uri)
        said_back = values | {"state": said.get("state"), "iss": self._public_url}
        more = urlencode({name: value for name, value in said_back.items() if value is not None})
        return urlunsplit(parts._replace(query=f"{parts.query}&{more}" if parts.query else more))

    def redirect(self, redirect_uri: str, said: Mapping[str, str], **values: str | None) -> Response:
        """The answer that redirects to an app."""
        return Response(None, 302, NO_STORE | {"Location": self.redirect_url(redirect_uri, said, **values)})

    async def token(self, request: Request, said: Mapping[str, str]) -> Response:
        """Give tokens for a code, or for a refresh token."""
        basic, said = _basic(request), dict(said)
        if basic is not None:
            said.setdefault("client_id", basic[0])
        if said.get("grant_type", OAUTH_GRANTS[0]) not in OAUTH_GRANTS:
            return refusal(400, "unsupported_grant_type", f"There are {' and '.join(OAUTH_GRANTS)}.")
        if not is_for_us(said.get("resource"), resource_of(self._public_url)):
            return refusal(400, "invalid_target", f"Tokens are given for {resource_of(self._public_url)} alone.")
        tokens = TokenProvider(self._database, self._clients, self._clock, said.get("redirect_uri"))
        answer: Response = await TokenHandler(_provider(tokens), self._authenticator).handle(_Form(request, said))
        if answer.status_code == 401 and basic is not None:
            answer.headers["WWW-Authenticate"] = "Basic"
        return answer

    async def revoke(self, request: Request, said: Mapping[str, str]) -> Response:
        """End the sign-in that a token belongs to. What is no token of the app ends nothing, and is answered alike."""
        basic, said = _basic(request), dict(said)
        if basic is not None:
            said.setdefault("client_id", basic[0])
        try:
            client = await self._authenticator.authenticate_request(_Form(request, said))
        except AuthenticationError as error:
            return refusal(401, "invalid_client", error.message, {"WWW-Authenticate": "Basic"} if basic else {})
        if not said.get("token"):
            return refusal(400, "invalid_request", "The token is missing.")
        await connected_apps.sign_out(self._database, client.client_id, said["token"], self._clock.now())
        return Response(None, 200, NO_STORE)

    async def register(self, request: Request) -> Response:
        """Register an app that asks for it."""
        options = ClientRegistrationOptions(enabled=True, default_scopes=list(OAUTH_SCOPES))
        registration = RegistrationProvider(self._clients, await request.body(), self._clock.now())
        answer = await RegistrationHandler(_provider(registration), options).handle(request)
        answer.headers.update(NO_STORE)
        return answer


def refusal(status: int, error: str, said: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error of the token endpoint (RFC 6749, section 5.2)."""
    body = to_json({"error": error, "error_description": said})
    return Response(body, status, NO_STORE | dict(headers or {}), "application/json")


def _provider(part: Any) -> OAuthAuthorizationServerProvider[Any, Any, Any]:
    """A part of a provider: each of the SDK's handlers calls a few of its methods."""
    found: OAuthAuthorizationServerProvider[Any, Any, Any] = part
    return found


def _as_post(request: Request) -> Request:
    """The request as one whose parameters are a form, wherever they came."""
    return Request({**request.scope, "method": "POST"}, request.receive)


def _basic(request: Request) -> tuple[str, str] | None:
    """The id and the secret of HTTP Basic, as OAuth encodes them; None where there are none."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        id, colon, secret = base64.b64decode(text, validate=True).decode().partition(":")
    except (ValueError, binascii.Error):
        return None
    return (unquote(id), unquote(secret)) if colon else None

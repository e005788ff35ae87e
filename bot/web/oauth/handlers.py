"""The SDK's handlers of OAuth 2.1, with our rules and our store behind them.

The SDK reads and checks requests; what is stored, and what it leaves open, is ours: addresses compared as texts,
secrets by their digests, codes and refresh tokens used once, and the issuer in every answer.
"""

import base64
import binascii
import hmac
import math
import re
import secrets
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import (
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import InvalidRedirectUriError, InvalidScopeError, OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, PrivateAttr
from pydantic_core import from_json, to_json
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from bot.web.oauth.clients import NO_SECRET, Client, Clients
from bot.web.oauth.documents import MAX_NAME_CHARS, MAX_REDIRECTS
from bot.web.oauth.metadata import AUTH_METHODS, SCOPES, resource_of
from composer.credentials import connected_apps
from composer.credentials.connected_apps import AppRequest, Tokens
from composer.credentials.keys import digest
from composer.credentials.redirects import check_redirect_uri, host_of
from composer.errors import BadInput, NexusError, NotFound
from composer.ports.clock import Clock
from composer.repositories.database import Database
from composer.repositories.oauth_clients import RegisteredClient
from composer.text.cleaning import clean_line

NO_STORE: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}
NEVER: Final = math.inf  # for the SDK, which would judge by its own clock what ours has judged
MAX_STATE_CHARS: Final = 4_000
NOT_REGISTERED: Final = "The app asks to be led back to an address that it has not registered: tell who makes it."
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_GRANTS: Final = ("authorization_code", "refresh_token")


class _Client(OAuthClientInformationFull):
    """An app, as the SDK's handlers take it. Who it is, and where it may be led back to, is judged by ours."""

    _client: Client = PrivateAttr()
    _asked: str | None = PrivateAttr(None)

    @classmethod
    def of(cls, client: Client, asked: str | None = None) -> "_Client":
        """`asked` is the address that it asks to be led back to, as it was sent."""
        made = cls(client_id=client.id, client_name=client.name, token_endpoint_auth_method=NO_SECRET)
        made._client, made._asked = client, asked
        return made

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        """The scopes that are asked for; all of them where none is named."""
        asked = sorted({*(requested_scope or "").split(" ")} - {""}) or list(SCOPES)
        unknown = [each for each in asked if each not in SCOPES]
        if unknown:
            raise InvalidScopeError(f"There is no such scope; there are {', '.join(SCOPES)}.")
        return asked

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """Where it is led back to, if it may be."""
        found = self._client.registered_redirect(self._asked)
        if found is None:
            raise InvalidRedirectUriError(NOT_REGISTERED)
        return AnyUrl(self._asked or found)


class _Asking:
    """Takes one request of an app for a person's consent. `asked` is what it asks for, once the SDK has checked it;
    `refused` says why the app itself is not known."""

    def __init__(self, clients: Clients, public_url: str, said: Mapping[str, str]) -> None:
        self._clients = clients
        self._public_url = public_url
        self._said = said
        self.client: Client | None = None
        self.asked: AppRequest | None = None
        self.refused: NexusError | None = None

    async def get_client(self, client_id: str) -> _Client | None:
        """The app of this id."""
        if self.refused is not None:
            return None
        try:
            self.client = self.client or await self._clients.to_be_asked_for(client_id)
        except NexusError as error:
            self.refused = error
            return None
        return _Client.of(self.client, self._said.get("redirect_uri"))

    async def authorize(self, client: _Client, params: AuthorizationParams) -> str:
        """Take what is asked for. Raises AuthorizeError, which leads back to the app."""
        if "code_challenge_method" not in self._said or not _CHALLENGE.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "PKCE is needed: code_challenge_method=S256, and 43 characters.")
        if len(params.state or "") > MAX_STATE_CHARS:
            raise AuthorizeError("invalid_request", f"The state has {MAX_STATE_CHARS:,} characters at most.")
        resource = resource_of(self._public_url)
        if not _is_ours(params.resource, resource):
            raise AuthorizeError("invalid_target", f"Tokens are given for {resource} alone.")
        assert self.client is not None
        named = self._said.get("redirect_uri")
        registered = self.client.registered_redirect(named)
        assert registered is not None
        self.asked = AppRequest(
            self.client.id,
            self.client.name,
            registered,
            named or registered,
            named is not None,
            tuple(params.scopes or ()),
            params.code_challenge,
            resource,
        )
        return "/"  # nobody is led there: the person is asked first


class _Tokens:
    """Gives and renews tokens, for one request of an app."""

    def __init__(self, database: Database, clients: Clients, clock: Clock, redirect_uri: str | None) -> None:
        self._database = database
        self._clients = clients
        self._clock = clock
        self._redirect_uri = redirect_uri

    async def load_authorization_code(self, client: _Client, authorization_code: str) -> AuthorizationCode | None:
        """The code, if it is this app's, and the address is that for which it was given, to the character."""
        found = await connected_apps.find_code(self._database, client.client_id, authorization_code, self._clock.now())
        if found is None or (self._redirect_uri or found.redirect_uri) != found.redirect_uri:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=list(found.permissions),
            expires_at=NEVER,
            client_id=client.client_id,
            code_challenge=found.challenge,
            redirect_uri=AnyUrl(found.redirect_uri),
            redirect_uri_provided_explicitly=found.redirect_given,
            resource=found.resource,
        )

    async def exchange_authorization_code(self, client: _Client, authorization_code: AuthorizationCode) -> OAuthToken:
        """Use the code up. Raises TokenError."""
        found = await connected_apps.redeem_code(
            self._database, client.client_id, authorization_code.code, secrets.token_bytes, self._clock.now()
        )
        if found is None:
            raise TokenError("invalid_grant", connected_apps.UNKNOWN_CODE)
        return await self._given(client, found)

    async def load_refresh_token(self, client: _Client, refresh_token: str) -> RefreshToken | None:
        """The refresh token, if it is this app's and was not used."""
        try:
            allowed = await connected_apps.permissions_of(
                self._database, client.client_id, refresh_token, self._clock.now()
            )
        except NotFound:
            return None
        return RefreshToken(token=refresh_token, client_id=client.client_id, scopes=list(allowed))

    async def exchange_refresh_token(
        self, client: _Client, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Use the refresh token up. Raises TokenError."""
        try:
            found = await connected_apps.renew(
                self._database, client.client_id, refresh_token.token, scopes, secrets.token_bytes, self._clock.now()
            )
        except NotFound as error:
            raise TokenError("invalid_grant", str(error)) from error
        return await self._given(client, found)

    async def _given(self, client: _Client, found: Tokens) -> OAuthToken:
        await self._clients.note_use(client.client_id)
        return OAuthToken(
            access_token=found.access,
            expires_in=int(found.lifetime.total_seconds()),
            scope=" ".join(found.permissions),
            refresh_token=found.refresh,
        )


class _Registering:
    """Stores the app that one request registers."""

    def __init__(self, clients: Clients, sent: bytes, now: datetime) -> None:
        self._clients = clients
        self._sent = sent
        self._now = now

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store an app, and leave in the answer what was stored of it. Raises RegistrationError."""
        uris = from_json(self._sent)["redirect_uris"]  # as they were sent: the SDK writes them in a form of its own
        if uris != [str(each) for each in client_info.redirect_uris or ()]:
            raise RegistrationError("invalid_redirect_uri", "Write each redirect URI in its normal form (RFC 3986).")
        if not 1 <= len(uris) <= MAX_REDIRECTS:
            raise RegistrationError("invalid_redirect_uri", f"An app has 1 to {MAX_REDIRECTS} redirect_uris.")
        try:
            registered = tuple(map(check_redirect_uri, uris))
        except BadInput as error:
            raise RegistrationError("invalid_redirect_uri", str(error)) from error
        method = client_info.token_endpoint_auth_method or NO_SECRET
        if method not in AUTH_METHODS:
            raise RegistrationError("invalid_client_metadata", f"There are the methods {', '.join(AUTH_METHODS)}.")
        name = clean_line(client_info.client_name or "", MAX_NAME_CHARS) or host_of(registered[0])
        secret = client_info.client_secret
        stored = RegisteredClient(
            uuid.UUID(client_info.client_id), name, registered, method, None if secret is None else digest(secret)
        )
        await self._clients.registered.register(stored, self._now)
        client_info.client_name, client_info.scope = name, " ".join(SCOPES)
        client_info.grant_types = list(_GRANTS)
        client_info.response_types = ["code"]
        for each in ("client_uri", "logo_uri", "contacts", "tos_uri", "policy_uri", "jwks_uri", "jwks", "software_id"):
            setattr(client_info, each, None)
        client_info.software_version = None


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

    async def authenticate_request(self, request: Request) -> _Client:
        """The app that asks. Raises AuthenticationError."""
        form = await request.form()
        client = await self._clients.with_tokens(str(form.get("client_id") or ""))
        if client is None:
            raise AuthenticationError("There is no such client.")
        if client.auth_method == NO_SECRET:
            return _Client.of(client)
        basic = _basic(request)
        given = form.get("client_secret") if client.auth_method == "client_secret_post" else basic and basic[1]
        if basic is not None and basic[0] != client.id:
            given = None
        if client.secret_digest is None or not isinstance(given, str):
            raise AuthenticationError(f"This client shows who it is by {client.auth_method}.")
        if not hmac.compare_digest(digest(given), client.secret_digest):
            raise AuthenticationError("The client's secret is wrong.")
        return _Client.of(client)


class Handlers:
    """What the routes of OAuth call. Requests are refused as OAuth says, in its own JSON."""

    def __init__(self, database: Database, clients: Clients, clock: Clock, public_url: str) -> None:
        self._database = database
        self._clients = clients
        self._clock = clock
        self._public_url = public_url
        self._authenticator = _Authenticator(clients)

    async def asked(self, request: Request, said: Mapping[str, str]) -> "tuple[Client, AppRequest] | Response | str":
        """What an app asks a person for, by the parameters `said`; or where that is refused, an answer that leads back
        to the app; or, where nobody may be led there, a sentence for the person."""
        asking = _Asking(self._clients, self._public_url, said)
        answer = await AuthorizationHandler(_provider(asking)).handle(_Form(_as_post(request), said))
        if asking.refused is not None:
            if not isinstance(asking.refused, BadInput):
                raise asking.refused
            return str(asking.refused)
        if asking.client is not None and asking.asked is not None:
            return asking.client, asking.asked
        if answer.status_code == 302 and asking.client is not None:
            errors = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
            named = said.get("redirect_uri")
            back = named if named is not None else asking.client.redirect_uris[0]
            return self.led_back(back, said, error=errors["error"], error_description=errors.get("error_description"))
        if asking.client is not None and asking.client.registered_redirect(said.get("redirect_uri")) is None:
            return NOT_REGISTERED
        return "This is no request of an app that can be answered: have it sign in anew, from its beginning."

    def back(self, redirect_uri: str, said: Mapping[str, str], **values: str | None) -> str:
        """The address that leads back to an app, with the state that it sent and with who answers (RFC 9207)."""
        parts = urlsplit(redirect_uri)
        said_back = values | {"state": said.get("state"), "iss": self._public_url}
        more = urlencode({name: value for name, value in said_back.items() if value is not None})
        return urlunsplit(parts._replace(query=f"{parts.query}&{more}" if parts.query else more))

    def led_back(self, redirect_uri: str, said: Mapping[str, str], **values: str | None) -> Response:
        """The answer that leads back to an app."""
        return Response(None, 302, NO_STORE | {"Location": self.back(redirect_uri, said, **values)})

    async def token(self, request: Request, said: Mapping[str, str]) -> Response:
        """Give tokens for a code, or for a refresh token."""
        basic, said = _basic(request), dict(said)
        if basic is not None:
            said.setdefault("client_id", basic[0])
        if said.get("grant_type", _GRANTS[0]) not in _GRANTS:
            return refusal(400, "unsupported_grant_type", f"There are {' and '.join(_GRANTS)}.")
        if not _is_ours(said.get("resource"), resource_of(self._public_url)):
            return refusal(400, "invalid_target", f"Tokens are given for {resource_of(self._public_url)} alone.")
        tokens = _Tokens(self._database, self._clients, self._clock, said.get("redirect_uri"))
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
        options = ClientRegistrationOptions(enabled=True, default_scopes=list(SCOPES))
        registering = _Registering(self._clients, await request.body(), self._clock.now())
        answer = await RegistrationHandler(_provider(registering), options).handle(request)
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


def _is_ours(asked: str | None, resource: str) -> bool:
    """Whether tokens are asked for our address (RFC 8707); older clients name none."""
    return asked is None or asked == resource


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

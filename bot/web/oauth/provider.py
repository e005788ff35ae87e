"""Our rules and our store, as the SDK's handlers of OAuth call them: one class for each kind of request.

What is asked of an app is judged by us: addresses compared as texts, codes and refresh tokens used once, by our clock.
"""

import math
import re
import secrets
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from mcp.server.auth.provider import (
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import InvalidRedirectUriError, InvalidScopeError, OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, PrivateAttr
from pydantic_core import from_json

from bot.web.oauth.clients import NO_SECRET, Client, Clients
from bot.web.oauth.documents import MAX_APP_NAME_CHARS, MAX_REDIRECTS
from bot.web.oauth.metadata import AUTH_METHODS, OAUTH_SCOPES, resource_of
from composer.errors import BadInput, NexusError, NotFound
from composer.people.credentials import connected_apps
from composer.people.credentials.connected_apps import ACCESS_LIFETIME, AppTokens, AuthorizationRequest
from composer.people.credentials.keys import digest
from composer.people.credentials.redirects import check_redirect_uri, host_of
from composer.ports.clock import Clock
from composer.repositories.database import Database
from composer.repositories.oauth_clients import RegisteredClient
from composer.text.cleaning import clean_line

NEVER: Final = math.inf  # for the SDK, which would judge by its own clock what ours has judged
MAX_STATE_CHARS: Final = 4_000
NOT_REGISTERED: Final = "The app asks to be led back to an address that it has not registered: tell who makes it."
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
OAUTH_GRANTS: Final = ("authorization_code", "refresh_token")


def is_for_us(asked: str | None, resource: str) -> bool:
    """Whether tokens are requested for our address (RFC 8707); older clients name none."""
    return asked is None or asked == resource


class SdkClient(OAuthClientInformationFull):
    """An app, as the SDK's handlers take it. Who it is, and where it may be led back to, is judged by ours."""

    _client: Client = PrivateAttr()
    _asked: str | None = PrivateAttr(None)

    @classmethod
    def of(cls, client: Client, asked: str | None = None) -> "SdkClient":
        """`asked` is the address that it asks to be led back to, as it was sent."""
        made = cls(client_id=client.id, client_name=client.name, token_endpoint_auth_method=NO_SECRET)
        made._client, made._asked = client, asked
        return made

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        """The scopes that are asked for; all of them where none is named."""
        asked = sorted({*(requested_scope or "").split(" ")} - {""}) or list(OAUTH_SCOPES)
        unknown = [each for each in asked if each not in OAUTH_SCOPES]
        if unknown:
            raise InvalidScopeError(f"There is no such scope; there are {', '.join(OAUTH_SCOPES)}.")
        return asked

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """Where it is led back to, if it may be."""
        found = self._client.registered_redirect(self._asked)
        if found is None:
            raise InvalidRedirectUriError(NOT_REGISTERED)
        return AnyUrl(self._asked or found)


class ConsentProvider:
    """The provider for one authorization request. `asked` is what the app asks the person for, once the SDK has checked
    it; `refused` says why the app itself is not known."""

    def __init__(self, clients: Clients, public_url: str, said: Mapping[str, str]) -> None:
        self._clients = clients
        self._public_url = public_url
        self._said = said
        self.client: Client | None = None
        self.asked: AuthorizationRequest | None = None
        self.refused: NexusError | None = None

    async def get_client(self, client_id: str) -> SdkClient | None:
        """The app of this id."""
        if self.refused is not None:
            return None
        try:
            self.client = self.client or await self._clients.find_for_consent(client_id)
        except NexusError as error:
            self.refused = error
            return None
        return SdkClient.of(self.client, self._said.get("redirect_uri"))

    async def authorize(self, client: SdkClient, params: AuthorizationParams) -> str:
        """Take what is asked for. Raises AuthorizeError, which leads back to the app."""
        if "code_challenge_method" not in self._said or not _CHALLENGE.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "PKCE is needed: code_challenge_method=S256, and 43 characters.")
        if len(params.state or "") > MAX_STATE_CHARS:
            raise AuthorizeError("invalid_request", f"The state has {MAX_STATE_CHARS:,} characters at most.")
        resource = resource_of(self._public_url)
        if not is_for_us(params.resource, resource):
            raise AuthorizeError("invalid_target", f"Tokens are given for {resource} alone.")
        assert self.client is not None
        named = self._said.get("redirect_uri")
        registered = self.client.registered_redirect(named)
        assert registered is not None
        self.asked = AuthorizationRequest(
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


class TokenProvider:
    """The provider for one request of an app for tokens: issues and renews them."""

    def __init__(self, database: Database, clients: Clients, clock: Clock, redirect_uri: str | None) -> None:
        self._database = database
        self._clients = clients
        self._clock = clock
        self._redirect_uri = redirect_uri

    async def load_authorization_code(self, client: SdkClient, authorization_code: str) -> AuthorizationCode | None:
        """The code, if it is this app's, and the address is that for which it was given, to the character."""
        found = await connected_apps.find_code(self._database, client.client_id, authorization_code, self._clock.now())
        if found is None or (self._redirect_uri or found.asked.redirect_uri) != found.asked.redirect_uri:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=list(found.permissions),
            expires_at=NEVER,
            client_id=client.client_id,
            code_challenge=found.asked.challenge,
            redirect_uri=AnyUrl(found.asked.redirect_uri),
            redirect_uri_provided_explicitly=found.asked.redirect_given,
            resource=found.asked.resource,
        )

    async def exchange_authorization_code(self, client: SdkClient, authorization_code: AuthorizationCode) -> OAuthToken:
        """Use the code up. Raises TokenError."""
        found = await connected_apps.redeem_code(
            self._database, client.client_id, authorization_code.code, secrets.token_bytes, self._clock.now()
        )
        if found is None:
            raise TokenError("invalid_grant", connected_apps.UNKNOWN_CODE)
        return await self._given(client, found)

    async def load_refresh_token(self, client: SdkClient, refresh_token: str) -> RefreshToken | None:
        """The refresh token, if it is this app's and was not used."""
        try:
            allowed = await connected_apps.permissions_of(
                self._database, client.client_id, refresh_token, self._clock.now()
            )
        except NotFound:
            return None
        return RefreshToken(token=refresh_token, client_id=client.client_id, scopes=list(allowed))

    async def exchange_refresh_token(
        self, client: SdkClient, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Use the refresh token up. Raises TokenError."""
        try:
            found = await connected_apps.renew(
                self._database, client.client_id, refresh_token.token, scopes, secrets.token_bytes, self._clock.now()
            )
        except NotFound as error:
            raise TokenError("invalid_grant", str(error)) from error
        return await self._given(client, found)

    async def _given(self, client: SdkClient, found: AppTokens) -> OAuthToken:
        await self._clients.note_use(client.client_id)
        return OAuthToken(
            access_token=found.access,
            expires_in=int(ACCESS_LIFETIME.total_seconds()),
            scope=" ".join(found.permissions),
            refresh_token=found.refresh,
        )


class RegistrationProvider:
    """The provider for one request to register an app."""

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
        name = clean_line(client_info.client_name or "", MAX_APP_NAME_CHARS) or host_of(registered[0])
        secret = client_info.client_secret
        stored = RegisteredClient(
            uuid.UUID(client_info.client_id), name, registered, method, None if secret is None else digest(secret)
        )
        await self._clients.registered.register(stored, self._now)
        client_info.client_name, client_info.scope = name, " ".join(OAUTH_SCOPES)
        client_info.grant_types = list(OAUTH_GRANTS)
        client_info.response_types = ["code"]
        for each in ("client_uri", "logo_uri", "contacts", "tos_uri", "policy_uri", "jwks_uri", "jwks", "software_id"):
            setattr(client_info, each, None)
        client_info.software_version = None

"""The OpenID provider: where it is found, the way there and back, and what it vouches for.

Code flow with PKCE, state and nonce, by Authlib. What a browser carries meanwhile lies in one signed cookie, so any
process of the service may take it back. Tokens are used up here: none is stored.
"""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import httpx2
import structlog
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from itsdangerous import BadData, URLSafeTimedSerializer
from joserfc.errors import JoseError
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from composer.errors import Misconfigured, NexusError, Refused, Unavailable
from composer.people.credentials.openid import OpenIdAccount
from composer.settings import OpenIdSettings
from composer.text.cleaning import clean_line
from composer.text.counts import counted

logger = structlog.get_logger()
logging.getLogger("authlib").setLevel(logging.WARNING)  # at DEBUG it would log verifiers

FLOW_SECONDS: Final = 600  # from leaving for the provider until the last button is pressed
OPENID_SECONDS: Final = 10.0  # for one answer of the provider
FRESH_SECONDS: Final = 3_600.0  # for which the provider's addresses and keys are taken as they were
LEEWAY_SECONDS: Final = 60  # that the provider's clock and ours may differ
MAX_SUBJECT_CHARS: Final = 255
SCOPE: Final = "openid profile email"
# Signatures that only the provider can make: none, and none made with the client's secret.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
START_AGAIN: Final = "That did not work: start again."
NOT_ADMITTED: Final = "Only accounts with a verified e-mail address in {domains} sign in here."


class _Metadata(BaseModel):
    """What a provider says of itself (OpenID Connect Discovery 1.0). Nothing else of it is used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    id_token_signing_alg_values_supported: list[str] = ["RS256"]
    token_endpoint_auth_methods_supported: list[str] = ["client_secret_basic"]
    authorization_response_iss_parameter_supported: bool = False


@dataclass(frozen=True, slots=True)
class _Client:
    """A provider whose addresses are known. `until` is a time of the loop."""

    authlib: Any
    metadata: _Metadata
    until: float


class OpenIdProvider:
    """One provider. `seal` and `unseal` are for the cookie of a sign-in that is under way."""

    def __init__(self, settings: OpenIdSettings) -> None:
        self.settings = settings
        secret = settings.client_secret.get_secret_value().encode()
        key = hmac.new(secret, b"nexus openid flow", hashlib.sha256).hexdigest()
        self._sealing = URLSafeTimedSerializer(key, signer_kwargs={"digest_method": hashlib.sha256})
        self._tls = httpx2.create_ssl_context()  # once: reading the certificates takes a tenth of a second
        self._found: _Client | None = None

    def seal(self, flow: Mapping[str, Any]) -> str:
        """The text of a cookie that only we can have written."""
        sealed = self._sealing.dumps(dict(flow))
        return sealed if isinstance(sealed, str) else sealed.decode()

    def unseal(self, text: str | None) -> dict[str, Any]:
        """What a cookie says; nothing where it is not ours, or too old."""
        try:
            flow = {} if text is None else self._sealing.loads(text, max_age=FLOW_SECONDS)
        except BadData:
            return {}
        return flow if isinstance(flow, dict) else {}

    async def check(self) -> str:
        """Ask the provider for its addresses and its keys. Raises Unavailable and Misconfigured."""
        client = await self._client()
        try:
            keys = await client.authlib.fetch_jwk_set(force=True)
            number = len(keys["keys"])
        except httpx2.HTTPError as error:
            raise self._unavailable(error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise Misconfigured(f"{client.metadata.jwks_uri} holds no keys.") from error
        who = self.settings
        return f"{who.issuer} answers, with {counted(number, 'key')}; it leads back to {who.redirect_uri}"

    async def begin(self, request: Request) -> str:
        """The address to which the browser goes. What is needed to take it back is put into the request's session.

        Raises Unavailable and Misconfigured.
        """
        client = await self._client()
        answer = await client.authlib.authorize_redirect(request, self.settings.redirect_uri)
        return str(answer.headers["location"])

    async def finish(self, request: Request) -> OpenIdAccount:
        """The account that the provider vouches for, once the browser is back.

        Raises Refused where anything of that is not as it must be, Unavailable and Misconfigured.
        """
        client, query = await self._client(), request.query_params
        issuer = query.get("iss")
        told = client.metadata.authorization_response_iss_parameter_supported or issuer is not None
        if (told and issuer != self.settings.issuer) or not query.get("code") or not query.get("state"):
            raise self._refused("answer")
        try:
            claims = await self._claims(client, request)
        except httpx2.HTTPError as error:
            raise self._unavailable(error) from error
        except (AuthlibBaseError, JoseError, ValueError, KeyError, TypeError) as error:
            raise self._refused(type(error).__name__) from error
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 1 <= len(subject) <= MAX_SUBJECT_CHARS:
            raise self._refused("sub")
        email = _verified_address(claims)
        self._require_admitted(email)
        names = (claims.get(name) for name in (self.settings.name_claim, "email"))
        name = next((each for each in names if isinstance(each, str) and each), "")
        return OpenIdAccount(self.settings.issuer, subject, clean_line(name), email)

    async def _claims(self, client: _Client, request: Request) -> Mapping[str, Any]:
        """The claims of the verified ID token, with those that the provider gives only by its address for them."""
        token = await client.authlib.authorize_access_token(
            request,
            claims_options={
                "iss": {"essential": True, "value": self.settings.issuer},
                "aud": {"essential": True, "value": self.settings.client_id},
            },
            leeway=LEEWAY_SECONDS,
        )
        claims: dict[str, Any] = dict(token["userinfo"])  # of the ID token; there is none without one
        wanted = {self.settings.name_claim, "email", "email_verified"}
        if wanted <= claims.keys() or client.metadata.userinfo_endpoint is None:
            return claims
        more = await client.authlib.userinfo(token=token)
        if more.get("sub") != claims["sub"]:
            raise ValueError("the account of another person")
        return {**more, **claims}

    def _require_admitted(self, email: str) -> None:
        domains = self.settings.email_domains
        if domains and email.rpartition("@")[2] not in domains:
            raise Refused(NOT_ADMITTED.format(domains=" or ".join(domains)))

    async def _client(self) -> _Client:
        now = asyncio.get_running_loop().time()
        if self._found is None or self._found.until <= now:
            metadata = await self._discovered()
            self._found = _Client(self._made(metadata), metadata, now + FRESH_SECONDS)
        return self._found

    async def _discovered(self) -> _Metadata:
        issuer = self.settings.issuer
        address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            async with httpx2.AsyncClient(timeout=OPENID_SECONDS, verify=self._tls) as http:
                answer = (await http.get(address)).raise_for_status()
            metadata = _Metadata.model_validate_json(answer.content)
        except httpx2.HTTPError as error:
            raise self._unavailable(error) from error
        except ValidationError as error:
            raise Misconfigured(f"{address} does not describe an OpenID provider.") from error
        if metadata.issuer != issuer:
            named = clean_line(metadata.issuer)
            raise Misconfigured(f"The provider calls itself {named}: set NEXUS_OIDC_ISSUER to exactly that.")
        schemes = {urlsplit(each).scheme for each in _addresses(metadata)}
        if not schemes <= {"https", urlsplit(issuer).scheme}:
            raise Misconfigured(f"{address} names addresses that do not begin with https.")
        if not set(ALGORITHMS) & set(metadata.id_token_signing_alg_values_supported):
            raise Misconfigured(f"The provider signs in no way that is safe: it has to offer {ALGORITHMS[0]}.")
        return metadata

    def _made(self, metadata: _Metadata) -> Any:
        methods = metadata.token_endpoint_auth_methods_supported
        method: Literal["client_secret_basic", "client_secret_post"] = (
            "client_secret_post"
            if "client_secret_post" in methods and "client_secret_basic" not in methods
            else "client_secret_basic"
        )
        return OAuth().register(
            "openid",
            client_id=self.settings.client_id,
            client_secret=self.settings.client_secret.get_secret_value(),
            authorize_url=metadata.authorization_endpoint,
            access_token_url=metadata.token_endpoint,
            client_kwargs={
                "scope": SCOPE,
                "code_challenge_method": "S256",
                "token_endpoint_auth_method": method,
                "timeout": OPENID_SECONDS,
                "verify": self._tls,
            },
            issuer=metadata.issuer,
            jwks_uri=metadata.jwks_uri,
            userinfo_endpoint=metadata.userinfo_endpoint,
            id_token_signing_alg_values_supported=[
                each for each in ALGORITHMS if each in metadata.id_token_signing_alg_values_supported
            ],
        )

    def _refused(self, why: str) -> NexusError:
        logger.warning("web.openid_refused", why=why)
        return Refused(START_AGAIN)

    def _unavailable(self, error: Exception) -> NexusError:
        return Unavailable(
            f"{self.settings.host} does not answer: try again later, or sign in with a link (/nexus login).",
            operator=f"The OpenID provider {self.settings.issuer} does not answer ({type(error).__name__}).",
        )


def _verified_address(claims: Mapping[str, Any]) -> str:
    """The address that the provider has verified, in lower case; "": there is none."""
    email = claims.get("email")
    verified = claims.get("email_verified") in (True, "true")
    found = clean_line(email).lower() if isinstance(email, str) and verified else ""
    name, _, domain = found.rpartition("@")
    return found if name and domain else ""


def _addresses(metadata: _Metadata) -> list[str]:
    found = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri, metadata.userinfo_endpoint)
    return [each for each in found if each is not None]

"""A small OpenID provider over real HTTP: discovery, keys, signing in without a page, tokens signed with RS256.

It checks what a provider checks: the client's secret, the exact address to lead back to, PKCE, and that a code is used
once. What it answers can be made wrong.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.web import served_at

CLIENT_ID: Final = "nexus"
CLIENT_SECRET: Final = "a-secret-of-the-client-of-the-tests"
KEY: Final = RSAKey.generate_key(2048, {"kid": "first"})
STRANGER: Final = RSAKey.generate_key(2048, {"kid": "first"})

Claims = dict[str, Any]


@dataclass
class Provider:
    """A provider that is served. `account` are the claims of whoever signs in there next; `redirect_uri` is where it
    may lead back to. `forge` changes the claims of an ID token, `sign` writes it, `metadata` changes what it says of
    itself. `asked` are the requests to sign somebody in, `described` is how often it was asked what it is."""

    url: str = ""
    redirect_uri: str = ""
    account: Claims = field(default_factory=lambda: {"sub": "u-1", "preferred_username": "alice@idp"})
    userinfo: Claims = field(default_factory=dict)
    metadata: Claims = field(default_factory=dict)
    forge: Callable[[Claims], Claims] = dict
    sign: Callable[[Claims], str] = field(
        default=lambda claims: jwt.encode({"alg": "RS256", "kid": "first"}, claims, KEY)
    )
    asked: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    described: int = 0

    def app(self) -> Starlette:
        """The provider as an app."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._describe),
                Route("/keys", self._keys),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/userinfo", self._userinfo),
            ]
        )

    async def _describe(self, _: Request) -> Response:
        self.described += 1
        said = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        return JSONResponse({name: value for name, value in (said | self.metadata).items() if value is not None})

    async def _keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [KEY.as_dict(private=False)]})

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        self.asked.append(query)
        wanted = {"client_id": CLIENT_ID, "response_type": "code", "redirect_uri": self.redirect_uri}
        if any(query.get(name) != value for name, value in wanted.items()):
            return Response("wrong client or address", 400)
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**query, "account": dict(self.account)}
        back = {"code": code, "state": query["state"]}
        return RedirectResponse(f"{self.redirect_uri}?{urlencode(back)}", 302)

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        login = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        given = self.codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if request.headers.get("authorization") != f"Basic {login}":
            return JSONResponse({"error": "invalid_client"}, 401)
        if given is None or form.get("redirect_uri") != self.redirect_uri or given.get("code_challenge") != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": given["nonce"]}
        claims = self.forge(claims | given["account"])
        token = {"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "id_token": self.sign(claims)}
        return JSONResponse({name: value for name, value in token.items() if value})

    async def _userinfo(self, request: Request) -> Response:
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return Response(status_code=401)
        return JSONResponse({"sub": self.account["sub"]} | self.userinfo)


def unsigned(claims: Claims) -> str:
    """A token that nobody signed (`alg: none`)."""
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."


@asynccontextmanager
async def open_provider(redirect_uri: str) -> AsyncIterator[Provider]:
    """A provider on a free port of this machine."""
    provider = Provider(redirect_uri=redirect_uri)
    async with served_at(provider.app()) as url:
        provider.url = url
        yield provider

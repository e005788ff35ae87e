"""The model servers that the gateway passes requests on to: one client each, and which headers go where."""

import asyncio
import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2
import structlog

from bot.web.problems import RequestRefused
from composer.settings import Upstream

logger = structlog.get_logger()

UPSTREAM_CONNECT_SECONDS: Final = 10.0
MAX_CONNECTIONS: Final = 1_000  # streams are open for minutes
MAX_IDLE_CONNECTIONS: Final = 50
MASKED: Final = b"[masked]"
UPSTREAM_UNREACHABLE: Final = "upstream_unreachable"

# Of a client's request. What says who asks, and what a proxy or a browser adds, stays here.
REPEATED: Final = "idempotency-key"
SENT_ON: Final = frozenset(
    {"accept", "content-type", "user-agent", "openai-beta", REPEATED, "x-client-request-id", "x-title"}
)
SENT_ON_PREFIX: Final = "x-stainless-"
# Of an upstream's answer: what is about its connection to us or its body's coding, and what is between us and it.
KEPT_BACK: Final = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "trailers"}
    | {"transfer-encoding", "upgrade", "proxy-connection", "content-length", "content-encoding", "date", "server"}
    | {"set-cookie", "set-cookie2", "alt-svc", "strict-transport-security", "www-authenticate"}
    | {"openai-organization", "openai-project", "access-control-allow-origin", "access-control-allow-credentials"}
    | {"x-nexus-memory", "x-nexus-quota"}
)


class Upstreams:
    """The clients, each made when it is first needed. `close` them at the end."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str, float], httpx2.AsyncClient] = {}
        self._tls = httpx2.create_ssl_context()  # now: reading the certificates would hold up the first requests

    def client(self, upstream: Upstream) -> httpx2.AsyncClient:
        """The client of an upstream."""
        url = str.__str__(upstream.url)  # str() of it gives its place alone
        place = (url, upstream.key, upstream.timeout)
        if place not in self._clients:
            self._clients[place] = httpx2.AsyncClient(
                base_url=url,
                headers={"Accept-Encoding": "identity", "User-Agent": "nexus"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # one person's would reach the next
                timeout=httpx2.Timeout(upstream.timeout, connect=min(UPSTREAM_CONNECT_SECONDS, upstream.timeout)),
                limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_IDLE_CONNECTIONS),
                verify=self._tls,
                follow_redirects=False,  # a key goes nowhere but to the server of the settings
            )
        return self._clients[place]

    def request(
        self,
        upstream: Upstream,
        method: str,
        path: str,
        headers: Sequence[tuple[bytes, bytes]] = (),
        body: bytes | None = None,
    ) -> httpx2.Request:
        """A request to a path below the upstream's URL. `headers` are those of a client that go on (`sent_on`)."""
        sent = [*headers]
        if upstream.key:
            sent.append((b"authorization", b"Bearer " + upstream.key.encode()))
        client = self.client(upstream)
        return client.build_request(method, path, headers=sent, content=body)

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(*(client.aclose() for client in self._clients.values()))


@contextmanager
def refused_when_away(upstream: Upstream) -> Iterator[None]:
    """Refuse a request while whose answer is waited for the upstream is silent or away. Raises RequestRefused."""
    try:
        yield
    except httpx2.TimeoutException:
        sentence = f"The model server did not answer within {upstream.timeout:g} seconds."
        raise RequestRefused(504, sentence, code="upstream_timeout") from None
    except httpx2.HTTPError as error:
        logger.warning("gateway.unreachable", upstream=str(upstream.url), error=type(error).__name__)
        raise RequestRefused(502, "The model server can't be reached.", code=UPSTREAM_UNREACHABLE) from None


def relayed_headers(headers: Sequence[tuple[bytes, bytes]], key: str) -> list[tuple[bytes, bytes]]:
    """What a client gets of an upstream's headers; `key` is the upstream's."""
    named = b",".join(value for name, value in headers if name.lower() == b"connection").decode("latin-1")
    of_connection = {each.strip().lower() for each in named.split(",")}
    secret = key.encode()
    return [
        (name.lower(), value)
        for name, value in headers
        if name.lower().decode("latin-1") not in KEPT_BACK | of_connection and not (secret and secret in value)
    ]


def sent_on(
    headers: Iterable[tuple[bytes, bytes]], credential: uuid.UUID, hidden: Sequence[str]
) -> list[tuple[bytes, bytes]]:
    """What an upstream gets of a client's headers: none that holds a `hidden` text. `credential` is the id of what the
    request was let in by."""
    secrets = [text.encode("utf-8", "surrogateescape") for text in hidden]
    found: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        text = name.lower().decode("latin-1")
        if (text in SENT_ON or text.startswith(SENT_ON_PREFIX)) and not any(secret in value for secret in secrets):
            found.append((name, _repeat_of(credential, value) if text == REPEATED else value))
    return found


def masked(body: bytes, key: str) -> bytes:
    """A body without the upstream's key: some servers repeat a key that they refuse."""
    return body.replace(key.encode(), MASKED) if key else body


def _repeat_of(credential: uuid.UUID, value: bytes) -> bytes:
    """What names a repeated request, as that of one key or web session alone: all people of a tenant share an account
    at the server, which answers a repeat as it answered the first."""
    return hashlib.sha256(credential.bytes + value).hexdigest().encode()

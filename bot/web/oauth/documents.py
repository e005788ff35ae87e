"""What an app says of itself at the https address that is its id (a client ID metadata document).

The address comes from whoever asks, so it is fetched with care: each of its addresses has to be public, the connection
goes to one that was checked, no redirect is followed, and little is read in little time.
"""

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import structlog
from cachetools import TLRUCache
from pydantic_core import from_json

from bot.web.oauth.addresses import is_public
from composer.errors import BadInput
from composer.people.credentials.redirects import check_redirect_uri
from composer.text.cleaning import clean_line

logger = structlog.get_logger()

DOCUMENT_SECONDS: Final = 5.0  # for all of it
MAX_DOCUMENT_BYTES: Final = 10_000
MAX_URL_CHARS: Final = 500
MAX_REDIRECTS: Final = 20  # addresses that an app may be led back to
MAX_APP_NAME_CHARS: Final = 80
MAX_DOCUMENTS: Final = 200
LEAST_SECONDS, MOST_SECONDS = 60.0, 86_400.0  # for which a document is taken as it was, whatever its headers say
FAILED_SECONDS: Final = 30.0  # for which an address is left alone that gave none
AT_ONCE: Final = 8
NO_ADDRESS: Final = (
    "An app's address begins with https and has a path, and no login, fragment or segments of dots; this one is none."
)
APP_UNREACHABLE: Final = "What the app says of itself at {host} can't be read: try again later, or tell who makes it."
WRONG: Final = "What the app says of itself at {host} is not as it must be: {why}. Tell who makes it."
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
_ADDRESS: Final = re.compile(r"https://[!$-.0-;=?-Z_a-z~]+/[!$-;=?-Z_a-z~%]*", re.ASCII)
_MAX_AGE: Final = re.compile(r"max-age=([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClientDocument:
    """An app, as it says at its address, which is its id."""

    url: str
    name: str
    redirect_uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What came of fetching an address, and for how long that is taken as it is."""

    found: ClientDocument | str
    seconds: float


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Resolve a host name to its internet addresses. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class ClientDocuments:
    """Fetches documents, and keeps the last of them for a while. Nothing is fetched for who is not signed in."""

    def __init__(self, resolve: Resolve = resolve_host, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """`transport` carries requests to the addresses that were checked."""
        self._resolve = resolve
        self._transport = transport
        self._tls: ssl.SSLContext | None = None
        self._kept: TLRUCache[str, _Kept] = TLRUCache(
            MAX_DOCUMENTS, lambda _, kept, now: now + kept.seconds, timer=time.monotonic
        )
        self._places = asyncio.Semaphore(AT_ONCE)

    async def get(self, url: str) -> ClientDocument:
        """What an app says at its address. Raises BadInput with a sentence for the person who is asked."""
        parts = parse_client_url(url)
        kept = self._kept.get(url)
        if kept is None:
            async with self._places:
                kept = self._kept.get(url) or await self._fetched(url, parts[0], parts[1])
            self._kept[url] = kept
        if isinstance(kept.found, str):
            raise BadInput(kept.found)
        return kept.found

    async def _fetched(self, url: str, host: str, port: int) -> _Kept:
        try:
            async with asyncio.timeout(DOCUMENT_SECONDS):
                body, seconds = await self._read(url, host, port)
            return _Kept(read_document(url, host, body), seconds)
        except BadInput as error:
            return _Kept(str(error), FAILED_SECONDS)
        except (OSError, TimeoutError, ValueError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            logger.info("oauth.document_unread", error=type(error).__name__)
            return _Kept(APP_UNREACHABLE.format(host=host), FAILED_SECONDS)

    async def _read(self, url: str, host: str, port: int) -> tuple[bytes, float]:
        addresses = await self._resolve(host, port)
        if not addresses or not all(map(is_public, addresses)):
            raise OSError("not an address of the public internet")
        name = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
        place = urlsplit(url)
        target = f"https://{name}:{port}{place.path}" + (f"?{place.query}" if place.query else "")
        headers = {"Host": place.netloc, "Accept": "application/json", "Accept-Encoding": "identity"}
        names: dict[str, Any] = {"sni_hostname": host.strip("[]")}
        async with self._client() as client, client.stream("GET", target, headers=headers, extensions=names) as answer:
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            if answer.status_code != 200 or "content-encoding" in answer.headers:
                raise OSError("not the document")
            if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
                raise BadInput(WRONG.format(host=host, why="it is not of the type application/json"))
            body = bytearray()
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) > MAX_DOCUMENT_BYTES:
                    raise BadInput(WRONG.format(host=host, why=f"it is longer than {MAX_DOCUMENT_BYTES:,} bytes"))
            return bytes(body), _seconds(answer.headers.get("cache-control", ""))

    def _client(self) -> httpx2.AsyncClient:
        if self._tls is None and self._transport is None:
            self._tls = httpx2.create_ssl_context(trust_env=False)
        verify: Any = True if self._tls is None else self._tls
        return httpx2.AsyncClient(
            transport=_Shared(self._transport) if self._transport is not None else None,
            verify=verify,
            timeout=DOCUMENT_SECONDS,
            follow_redirects=False,
            trust_env=False,
        )


class _Shared(httpx2.AsyncBaseTransport):
    """A transport that outlives the clients that use it."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        return await self._inner.handle_async_request(request)


def parse_client_url(url: str) -> tuple[str, int]:
    """The host and port of a client URL, which is an app's id. Raises BadInput for what is none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 443
    except ValueError:
        raise BadInput(NO_ADDRESS) from None
    plain = len(url) <= MAX_URL_CHARS and _ADDRESS.fullmatch(url) is not None
    dots = any(segment.lower().replace("%2e", ".") in (".", "..") for segment in parts.path.split("/"))
    if not plain or not host or "@" in parts.netloc or parts.fragment or dots or len(parts.path) < 2:
        raise BadInput(NO_ADDRESS)
    return host, port


def read_document(url: str, host: str, body: bytes) -> ClientDocument:
    """What a document says. Raises BadInput."""
    try:
        said = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise BadInput(WRONG.format(host=host, why="it is no JSON")) from None
    if not isinstance(said, dict) or said.get("client_id") != url:
        raise BadInput(WRONG.format(host=host, why="its client_id is not its address"))
    if said.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in said:
        raise BadInput(WRONG.format(host=host, why="its token_endpoint_auth_method must be none"))
    uris = said.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= MAX_REDIRECTS:
        raise BadInput(WRONG.format(host=host, why=f"it needs 1 to {MAX_REDIRECTS} redirect_uris"))
    usable = tuple(each for each in uris if isinstance(each, str) and _is_redirect(each))
    if not usable:
        raise BadInput(WRONG.format(host=host, why="none of its redirect_uris begins with https or leads to localhost"))
    name = said.get("client_name")
    return ClientDocument(url, clean_line(name if isinstance(name, str) else "", MAX_APP_NAME_CHARS) or host, usable)


def _is_redirect(text: str) -> bool:
    try:
        check_redirect_uri(text)
    except BadInput:
        return False
    return True


def _seconds(cache_control: str) -> float:
    """For how long a document is taken as it is, by its header, within bounds."""
    said = cache_control.lower()
    found = _MAX_AGE.search(said)
    if found is None or "no-store" in said or "no-cache" in said:
        return LEAST_SECONDS
    return min(MOST_SECONDS, max(LEAST_SECONDS, float(found[1])))

"""What an app says of itself at the https address that is its id (a client ID metadata document).

The address comes from whoever asks, so it is fetched with care (bot/web/outgoing.py): little is read in little time.
"""

import asyncio
import re
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx2
import structlog
from cachetools import TLRUCache
from pydantic_core import from_json

from bot.web.outgoing import OutgoingRequests, Resolve, resolve_host
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
_ADDRESS: Final = re.compile(r"https://[!$-.0-;=?-Z_a-z~]+/[!$-;=?-Z_a-z~%]*", re.ASCII)
_MAX_AGE: Final = re.compile(r"max-age=([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClientDocument:
    """An app, as it says at its address."""

    name: str
    redirect_uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What came of fetching an address, and for how long that is taken as it is."""

    found: ClientDocument | str
    seconds: float


class ClientDocuments:
    """Fetches documents, and keeps the last of them for a while. Nothing is fetched for who is not signed in."""

    def __init__(self, resolve: Resolve = resolve_host, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """`transport` carries requests to the addresses that were checked."""
        self._outgoing = OutgoingRequests(DOCUMENT_SECONDS, resolve, transport)
        self._kept: TLRUCache[str, _Kept] = TLRUCache(
            MAX_DOCUMENTS, lambda _, kept, now: now + kept.seconds, timer=time.monotonic
        )
        self._places = asyncio.Semaphore(AT_ONCE)

    async def get(self, url: str) -> ClientDocument:
        """What an app says at its address. Raises BadInput with a sentence for the person who is asked."""
        host, _ = parse_client_url(url)
        kept = self._kept.get(url)
        if kept is None:
            async with self._places:
                kept = self._kept.get(url) or await self._fetched(url, host)
            self._kept[url] = kept
        if isinstance(kept.found, str):
            raise BadInput(kept.found)
        return kept.found

    async def _fetched(self, url: str, host: str) -> _Kept:
        try:
            async with asyncio.timeout(DOCUMENT_SECONDS):
                body, seconds = await self._read(url, host)
            return _Kept(read_document(url, host, body), seconds)
        except BadInput as error:
            return _Kept(str(error), FAILED_SECONDS)
        except (OSError, TimeoutError, ValueError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            logger.info("oauth.document_unread", error=type(error).__name__)
            return _Kept(APP_UNREACHABLE.format(host=host), FAILED_SECONDS)

    async def _read(self, url: str, host: str) -> tuple[bytes, float]:
        async with self._outgoing.stream("GET", url, {"Accept": "application/json"}) as answer:
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
    return ClientDocument(clean_line(name if isinstance(name, str) else "", MAX_APP_NAME_CHARS) or host, usable)


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

"""Requests to addresses that people or programs name: each of the addresses of a host has to be public, the connection
goes to one that was checked, no redirect is followed, no proxy of the environment is used, and little is read."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from bot.web.oauth.addresses import is_public

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
TRIED_ADDRESSES: Final = 4  # of a host, that are tried one after another
RESOLVED_AT_ONCE: Final = 32


class NotPublic(OSError):
    """A host has an address that is not one of the public internet, or none, or is to be asked without https."""


_threads: Final = ThreadPoolExecutor(RESOLVED_AT_ONCE, thread_name_prefix="outgoing")


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Resolve a host name to its internet addresses, in threads of its own: whoever names the host may have a name
    server that never answers. Raises OSError."""
    asked = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_threads, asked)
    return [str(each[4][0]) for each in found]


class OutgoingRequests:
    """Sends requests with care. `hosts` are those that need not be public, which the settings name."""

    def __init__(
        self,
        seconds: float,
        resolve: Resolve = resolve_host,
        transport: httpx2.AsyncBaseTransport | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        """`seconds` for connecting, and for each part of an answer; `transport` carries requests to the addresses that
        were checked."""
        self._seconds = seconds
        self._resolve = resolve
        self._transport = transport
        self._hosts = frozenset(hosts)
        self._tls: ssl.SSLContext | None = None

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """An answer, to be read here. Raises NotPublic, OSError and httpx2.HTTPError."""
        place = urlsplit(url)
        host, port = place.hostname or "", place.port or (443 if place.scheme == "https" else 80)
        if place.scheme != "https" and host not in self._hosts:  # which the settings name no more
            raise NotPublic("not by https")
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:  # told alike: nobody learns which names there are inside the network
            raise NotPublic("not a name of the public internet") from error
        if not addresses or (host not in self._hosts and not all(map(is_public, addresses))):
            raise NotPublic("not an address of the public internet")
        given = {"Host": place.netloc, "Accept-Encoding": "identity", **headers}
        names: dict[str, Any] = {"sni_hostname": host.strip("[]")}
        query = f"?{place.query}" if place.query else ""
        async with self._client() as client, AsyncExitStack() as opened:
            for address in (tried := addresses[:TRIED_ADDRESSES]):
                name = f"[{address}]" if ":" in address else address
                target = f"{place.scheme}://{name}:{port}{place.path}{query}"
                asked = client.stream(method, target, headers=given, content=content, extensions=names)
                try:
                    answer = await opened.enter_async_context(asked)
                    break
                except httpx2.ConnectError:
                    if address == tried[-1]:
                        raise
            yield answer

    def _client(self) -> httpx2.AsyncClient:
        if self._tls is None and self._transport is None:
            self._tls = httpx2.create_ssl_context(trust_env=False)
        verify: Any = True if self._tls is None else self._tls
        return httpx2.AsyncClient(
            transport=_Shared(self._transport) if self._transport is not None else None,
            verify=verify,
            timeout=self._seconds,
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

"""Apps that sign in by OAuth, for tests: browser pages, the https sites that describe them, and the SDK's client."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import httpx2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic_core import to_json

from bot.web.oauth.documents import ClientDocuments
from tests.support.browser import Browser

PUBLIC_ADDRESS: Final = "93.184.216.34"
CALLBACK: Final = "http://127.0.0.1:9/callback"


class Rerouted(httpx2.AsyncHTTPTransport):
    """Sends what is for some host to a server of this machine, with the Host header and the TLS name as they were."""

    def __init__(self, routes: Mapping[str, str], **options: Any) -> None:
        super().__init__(**options)
        self.routes = routes
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        self.asked.append(request.url.host)
        place = self.routes.get(request.url.host)
        if place is None:
            raise httpx2.ConnectError(f"nothing is at {request.url.host}")
        parts = urlsplit(place)
        url = request.url.copy_with(scheme=parts.scheme, host=parts.hostname or "", port=parts.port)
        sent = httpx2.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
        )
        return await super().handle_async_request(sent)


class _Form(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "input":
            self.values[found["name"] or ""] = found.get("value") or ""
        self.scripts += tag == "script"


def fields(page: httpx2.Response) -> dict[str, str]:
    """What the fields of a page's form hold."""
    form = _Form()
    form.feed(page.text)
    assert form.scripts == 0
    return form.values


def back(answer: httpx2.Response) -> str:
    """Where a page or an answer leads back to."""
    if answer.status_code == 302:
        return answer.headers["location"]
    assert answer.status_code == 200, answer.text
    found = answer.text.partition('http-equiv="refresh" content="0;url=')[2].partition('"')[0]
    assert found, answer.text
    return unescape(found)


def told(answer: httpx2.Response) -> str:
    """Where the link leads by which a person tells an app that its request was wrong. Nothing else leads there."""
    assert answer.status_code == 400, answer.text
    assert "location" not in answer.headers
    assert "http-equiv" not in answer.text
    return unescape(answer.text.partition('<a href="')[2].partition('"')[0])


def parameters(address: str) -> dict[str, str]:
    """The parameters of an address."""
    return dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))


async def allow(browser: Browser, address: str, vendor: str | None = None, decision: str = "allow") -> str:
    """Open a request of an app, and decide on it: the address that this leads back to."""
    page = await browser.get(address)
    if page.status_code == 302:
        return back(page)
    assert page.status_code == 200, page.text
    values = fields(page) | {"decision": decision} | ({} if vendor is None else {"vendor": vendor})
    return back(await browser.press("/oauth/consent", **values))


@dataclass
class Storage:
    """What a client keeps (the SDK's TokenStorage)."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class App:
    """An AI tool: the SDK's OAuth client, whose person uses a browser. `led` are the addresses it was led back to."""

    browser: Browser
    public_url: str
    name: str = "Claude"
    vendor: str | None = None
    document: str | None = None
    callback: str = CALLBACK
    storage: Storage = field(default_factory=Storage)
    led: list[str] = field(default_factory=list)
    scope: str | None = None
    method: str = "none"
    signing_in: OAuthClientProvider | None = None

    def auth(self) -> OAuthClientProvider:
        """What signs its requests in."""
        self.signing_in = self.signing_in or self._auth()
        return self.signing_in

    def _auth(self) -> OAuthClientProvider:
        metadata = OAuthClientMetadata(
            client_name=self.name,
            redirect_uris=[self.callback],
            token_endpoint_auth_method=self.method,
            scope=self.scope,
        )

        async def opened(address: str) -> None:
            self.led.append(await allow(self.browser, address, self.vendor))

        async def came_back() -> AuthorizationCodeResult:
            said = parameters(self.led[-1])
            return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))

        return OAuthClientProvider(
            f"{self.public_url}/mcp",
            metadata,
            self.storage,
            redirect_handler=opened,
            callback_handler=came_back,
            client_metadata_url=self.document,
        )


@dataclass
class Site:
    """An https site with documents: by their paths, the answer as bytes of HTTP. `names` are the addresses that names
    have, at each look-up the next list, the last one again and again."""

    port: int
    folder: Path
    answers: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    looked_up: list[str] = field(default_factory=list)
    transport: Rerouted | None = None

    def documents(self, addresses: Sequence[str] = (PUBLIC_ADDRESS,)) -> ClientDocuments:
        """Fetches documents from this site, which stands at these addresses, by TLS that is checked."""
        tls = ssl.create_default_context(cafile=self.folder / "ca.pem")
        self.transport = Rerouted(dict.fromkeys(addresses, f"https://127.0.0.1:{self.port}"), verify=tls)
        return ClientDocuments(self._resolve, self.transport)

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        try:
            return [str(ipaddress.ip_address(host.strip("[]")))]
        except ValueError:
            pass
        lists = self.names.get(host, [[PUBLIC_ADDRESS]])
        return lists.pop(0) if len(lists) > 1 else lists[0]

    def describe(self, path: str, host: str = "app.example", cache: str = "", **said: Any) -> str:
        """Put a document at a path of a host; its address."""
        url = f"https://{host}{path}"
        values = {"client_id": url, "client_name": "Claude", "redirect_uris": [CALLBACK], **said}
        body = to_json({name: value for name, value in values.items() if value is not None})
        self.answers[path] = http(body, cache=cache)
        return url


def http(body: bytes, status: str = "200 OK", kind: str = "application/json", cache: str = "", more: str = "") -> bytes:
    """An answer as bytes of HTTP."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    head += (f"Cache-Control: {cache}\r\n" if cache else "") + more
    return head.encode() + b"\r\n" + body


@asynccontextmanager
async def open_site(folder: Path, *hosts: str) -> AsyncIterator[Site]:
    """A site with a certificate for these hosts, of an authority that `Site.documents` trusts."""
    _certificates(folder, hosts or ("app.example",))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "site.pem", folder / "site.key")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            site.asked.append(path)
            writer.write(site.answers.get(path, http(b"{}", "404 Not Found")))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    site = Site(server.sockets[0].getsockname()[1], folder)
    async with server:
        yield site
        if site.transport is not None:
            await site.transport.aclose()


def _certificates(folder: Path, hosts: Sequence[str]) -> None:
    """An authority (ca.pem) and a certificate of it for these hosts (site.pem, site.key)."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the tests")])

    def certificate(name: x509.Name, public: Any, *more: tuple[x509.ExtensionType, bool]) -> bytes:
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )
        for extension, critical in more:
            made = made.add_extension(extension, critical=critical)
        return made.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    of_ca = (x509.BasicConstraints(ca=True, path_length=None), True)
    (folder / "ca.pem").write_bytes(certificate(ca_name, ca_key.public_key(), of_ca, (usage, True)))
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    (folder / "site.pem").write_bytes(certificate(subject, key.public_key(), (names, False)))
    (folder / "site.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )

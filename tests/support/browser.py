"""A browser for tests: it keeps cookies by exact names, says which page asks, and follows no redirect by itself."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

OWN = {"Sec-Fetch-Site": "same-origin"}
TLS = httpx2.create_ssl_context()  # once: reading the certificates takes a tenth of a second


@dataclass
class Browser:
    """One browser. Requests to `public_url` go to `url`, where that is served."""

    url: str
    public_url: str
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, address: str, **headers: str) -> httpx2.Response:
        """Open an address, of ours or of another site."""
        return await self._send("GET", address, headers)

    async def press(self, path: str, _headers: Any = None, /, **values: str) -> httpx2.Response:
        """Press a button of one of our own pages."""
        return await self._send("POST", path, OWN if _headers is None else _headers, values)

    async def _send(
        self, method: str, address: str, headers: dict[str, str], values: dict[str, str] | None = None
    ) -> httpx2.Response:
        ours = address.startswith(("/", self.public_url))
        local = address.removeprefix(self.public_url)
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        headers = headers | (cookie if ours and self.cookies else {})
        headers |= {"Host": urlsplit(self.public_url).netloc} if ours else {}
        async with httpx2.AsyncClient(base_url=self.url, timeout=60, trust_env=False, verify=TLS) as client:
            answer = await client.request(method, local if ours else address, headers=headers, data=values)
        for each in answer.headers.get_list("set-cookie"):
            name, _, rest = each.partition("=")
            value = rest.partition(";")[0].strip('"')
            if not value or "max-age=0" in each.lower():
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer

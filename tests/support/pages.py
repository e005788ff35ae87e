"""A person's browser on the pages, without a browser: what it is shown, and the forms that it sends."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from bot.web.credentials import COOKIE_ON_LOCALHOST

OWN: Final = {"Sec-Fetch-Site": "same-origin"}
SCRIPT: Final = OWN | {"HX-Request": "true"}
BITES: Final = (
    '<script>alert("1")</script>',
    '<img src=x onerror="alert(1)">',
    '"><b hx-get="/logout" hx-trigger="load">x</b>',
    "{{ 7 * 7 }} {% raw %}",
    "\u202eevil\u2066",
    "&amp;lt;b&amp;gt;",
)


@dataclass
class Person:
    """Somebody's browser, in which they are signed in."""

    client: httpx2.AsyncClient
    cookie: str
    csrf: str = field(default="")

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.client.get(path, headers=OWN | self._cookie() | headers)

    async def page(self, path: str) -> str:
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', answer.text)
        self.csrf = found[1] if found else self.csrf
        return answer.text

    async def press(self, path: str, _headers: Any = OWN, **values: str | list[str]) -> httpx2.Response:
        return await self.client.post(path, data={"csrf": self.csrf} | values, headers=_headers | self._cookie())

    def _cookie(self) -> dict[str, str]:
        return {"Cookie": f"{COOKIE_ON_LOCALHOST}={self.cookie}"}

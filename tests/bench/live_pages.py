"""How long it takes until somebody's change is shown to another who has the same page open."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.event_stream import HEARTBEAT
from bot.web.pages.events import RECONNECT
from bot.web.watching import CHANGED_EVENT

MOST_SECONDS: Final = 30.0  # until a change is shown; later counts as never
MOST_GAP: Final = 1.0  # seconds between two changes: less than a stream's pause, and more


@dataclass
class Seen:
    """Milliseconds from sending a change until the other one's stream told of it, and until their browser showed it."""

    told: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class TwoPeople:
    """Two members of a team, by their cookies: `writer` shares the entries `shared`, one after the other, and `reader`
    looks at the page of the team."""

    url: str
    writer: str
    reader: str
    team: str
    shared: tuple[tuple[str, str], ...]

    @property
    def page(self) -> str:
        """The page of the team."""
        return f"{self.url}/team/{self.team}"


def signed_in(cookie: str) -> dict[str, str]:
    """The headers of somebody's own browser."""
    return {"Cookie": f"{COOKIE_ON_LOCALHOST}={cookie}", "Sec-Fetch-Site": "same-origin"}


async def two_people(url: str, writer: str, reader: str, changes: int) -> TwoPeople:
    """Make a team of two, and entries to share with it."""
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:

        async def made(cookie: str, path: str, **body: object) -> Any:
            key = {"Idempotency-Key": path}
            answer = await client.post(path, json=body, headers=signed_in(cookie) | ({} if "content" in body else key))
            assert answer.status_code < 300, answer.text
            return answer.json() if answer.content else None

        team = (await made(writer, "/v1/teams", name="Both"))["id"]
        whom = (await client.get("/v1/whoami", headers=signed_in(reader))).json()["user"]
        await made(writer, f"/v1/teams/{team}/invites", user=whom)
        await made(reader, f"/v1/teams/{team}/accept")
        texts = [f"The lighthouse has {number} steps." for number in range(100, 100 + changes)]
        shared = [(str((await made(writer, "/v1/entries", content=text))["id"]), text) for text in texts]
    return TwoPeople(url, writer, reader, team, tuple(shared))


async def seen(two: TwoPeople, tab: Any | None) -> Seen:
    """Share one entry after the other, at times that repeat, and wait for each. `tab`: a page of a browser in which the
    reader is signed in, if there is one."""
    found, gaps = Seen(), random.Random(0)
    if tab is not None:
        await tab.goto(two.page)
        await tab.wait_for_load_state("networkidle")
    async with httpx2.AsyncClient(base_url=two.url, timeout=60) as client, _told(client, two) as told:
        for entry, text in two.shared:
            await asyncio.sleep(gaps.uniform(0, MOST_GAP))
            told.clear()
            began = time.perf_counter()
            path, body = f"/v1/entries/{entry}/team", {"team": two.team}
            change = asyncio.create_task(client.put(path, json=body, headers=signed_in(two.writer)))
            async with asyncio.timeout(MOST_SECONDS):
                await told.wait()
                found.told.append((time.perf_counter() - began) * 1_000)
                if tab is not None:
                    await tab.get_by_text(text).wait_for()
                    found.shown.append((time.perf_counter() - began) * 1_000)
            assert (await change).status_code < 300
    return found


@asynccontextmanager
async def _told(client: httpx2.AsyncClient, two: TwoPeople) -> AsyncIterator[asyncio.Event]:
    """Set as soon as the reader's stream tells of a change."""
    told, begun = asyncio.Event(), asyncio.Event()

    async def listen() -> None:
        path = f"/events?page=team&of={two.team}"
        async with client.stream("GET", path, headers=signed_in(two.reader)) as answer:
            async for part in answer.aiter_bytes():
                assert not part.replace(RECONNECT, b"").replace(HEARTBEAT, b"").replace(CHANGED_EVENT, b""), part
                begun.set()
                if CHANGED_EVENT in part:
                    told.set()

    task = asyncio.create_task(listen())
    try:
        await asyncio.wait_for(begun.wait(), MOST_SECONDS)
        yield told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

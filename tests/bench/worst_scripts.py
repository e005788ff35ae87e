"""What one person can do at their worst, in a process of its own: `python -m tests.bench.worst_scripts`, with one line
of JSON to read (name, base, keys, tools, seconds) and one to write (how often it was answered what)."""

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from composer.gateway.requests import MAX_ITEMS
from tests.bench.slow_model import AT_LENGTH, SLOWLY

SOCKETS: Final = 1_100
MARKS: Final = "a" + "\u0301\u0323" * 20_000
WORD: Final = "x" * 90_000
LINES: Final = "\n" * 90_000
SENTENCES: Final = "we will, we should, we must. " * 3_000
UNITS: Final = "1 4 7 - " * 11_000
DATES: Final = "next friday at noon or on 3 may 2026 " * 2_500
MENTIONS: Final = "<@U1> #general @nexus " * 4_000
SCRIPTS: Final = "漢字かな交じり文" * 3_700
PATHOLOGICAL: Final = (WORD, MARKS, LINES, SENTENCES, UNITS, DATES, MENTIONS, SCRIPTS)


@dataclass
class Person:
    """Who does their worst: with keys of their own and of their tools, each used in turn."""

    base: str
    keys: Sequence[str]
    tools: Sequence[str]
    session: aiohttp.ClientSession
    counts: Counter[str] = field(default_factory=Counter)
    numbers: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self._keys, self._tools = cycle(self.keys), cycle(self.tools)

    async def send(self, method: str, path: str, body: Any = None, *, tool: bool = False) -> bytes:
        """Send one request, and count how it was answered. Who is refused waits a little."""
        headers = {"Authorization": f"Bearer {next(self._tools if tool else self._keys)}"}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self.session.request(method, f"{self.base}{path}", data=data, headers=headers) as answer:
                said = await answer.read()
                self.counts[str(answer.status)] += 1
                if answer.status >= 400:
                    await asyncio.sleep(0.2)
                return said
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.counts[type(error).__name__] += 1
            await asyncio.sleep(0.2)
            return b""

    async def many(self, side_by_side: int, act: Callable[[int], Awaitable[object]]) -> None:
        """Do something again and again, so many at once, each time with another number."""

        async def one() -> None:
            for number in self.numbers:
                await act(number)

        await asyncio.gather(*(one() for _ in range(side_by_side)))


def words(number: int) -> str:
    """So many words that nobody has said before."""
    return " ".join(
        "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9))) for _ in range(number)
    )


def document(texts: Sequence[str]) -> bytes:
    """A document of entries to import."""
    entries = [{"content": text} for text in texts]
    return json.dumps({"format": "nexus-entries", "version": 1, "entries": entries}).encode()


async def _import(me: Person) -> None:
    vocabulary = words(20_000).split()

    async def act(number: int) -> None:
        texts = [f"{number} {n} {' '.join(random.choices(vocabulary, k=2_000))}" for n in range(400)]
        await me.send("POST", "/v1/entries/import", document(texts))

    await me.many(2, act)


async def _import_of_many(me: Person) -> None:
    async def act(number: int) -> None:
        await me.send("POST", "/v1/entries/import", document([f"{number} {n} {words(12)}" for n in range(20_000)]))

    await me.many(3, act)


async def _import_and_writes(me: Person) -> None:
    async def act(number: int) -> None:
        await me.send("POST", "/v1/entries", {"content": f"small {number}", "key": f"k{number % 40}"})

    await asyncio.gather(_import(me), me.many(30, act))


async def _slow_chats(me: Person) -> None:
    async def act(number: int) -> None:
        await me.send("POST", "/v1/chat", {"content": f"{SLOWLY} {words(5)}", "session": f"slow{number}"})

    await me.many(70, act)


async def _streams_held(me: Person) -> None:
    async def act(number: int) -> None:
        asked = {"content": f"{SLOWLY} {words(5)}", "session": f"held{number}"}
        await me.send("POST", "/v1/chat/stream", asked)

    await me.many(300, act)


async def _sockets(me: Person) -> None:
    place = urlsplit(me.base)
    heads = (
        b"POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\na",
        b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nX",
        b"",
        f"GET /v1/entries?limit=100 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {me.keys[0]}\r\n\r\n".encode(),
    )

    async def hold(number: int) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1_024)
                me.counts["opened"] += 1
                writer.write(heads[number % len(heads)])
                for _ in range(20):
                    await asyncio.sleep(3)
                    if reader.at_eof():
                        break
                    writer.write(b"a")
                writer.close()
            except OSError as error:
                me.counts[type(error).__name__] += 1
            await asyncio.sleep(0.5)

    await asyncio.gather(*(hold(number) for number in range(SOCKETS)))


async def _searches(me: Person) -> None:
    async def act(number: int) -> None:
        await me.send("POST", "/v1/query", {"question": f"{number} {words(2_500)}", "limit": 50})

    await me.many(40, act)


async def _bodies(me: Person) -> None:
    nested, line = "[" * 190 + "]" * 190, words(45)
    million = b'{"content": [' + b"1," * 500_000 + b"1]}"
    escaped = b'{"content": "' + b"\\u0301" * 170_000 + b'"}'
    entries = f'{{"format": "nexus-entries", "version": 1, "entries": [{",".join([nested] * 80_000)}]}}'.encode()
    unknown = json.dumps({f"f{n}": n for n in range(4_900)}).encode()
    deep = document(["x"])[:-2] + b', "metadata": {"a": [' + b"{}," * 9_000_000 + b"{}]}}]}"
    messages = json.dumps(
        {"model": "slow", "messages": [{"role": "user", "content": f"{n} {line}"} for n in range(MAX_ITEMS)]}
    ).encode()
    sent = cycle(
        [
            ("/v1/entries", million),
            ("/v1/entries/import", entries),
            ("/v1/entries", escaped),
            ("/v1/chat", unknown),
            ("/v1/entries/import", deep),
            ("/v1/chat/completions", messages),
            ("/v1/query", b'{"question": "' + b"a " * 500_000 + b'"}'),
        ]
    )

    async def act(_: int) -> None:
        path, body = next(sent)
        await me.send("POST", path, body, tool="completions" in path)

    await me.many(8, act)


async def _lists(me: Person) -> None:
    async def act(number: int) -> None:
        paths = (
            "/v1/entries/export",
            f"/v1/entries?limit=100&page={number % 20 + 1}&stats=true",
            "/v1/export",
            f"/v1/entries?limit=100&offset={number % 900}",
            "/v1/entries?limit=100&sort=-used&q=a",
            "/v1/chat/sessions?limit=100",
            "/v1/episodes?limit=100",
            "/v1/usage?months=36",
        )
        await me.send("GET", paths[number % len(paths)])

    await me.many(40, act)


async def _giants(me: Person) -> None:
    async def act(number: int) -> None:
        text = PATHOLOGICAL[number % len(PATHOLOGICAL)]
        content = f"{number} {text}".encode()[:99_000].decode("utf-8", "ignore")
        await me.send("POST", "/v1/entries", {"content": content, "key": f"g{number % 50}"})

    await me.many(20, act)


async def _import_of_giants(me: Person) -> None:
    giants = [text.encode()[:96_000].decode("utf-8", "ignore") for text in PATHOLOGICAL]

    async def act(number: int) -> None:
        texts = [f"{number} {n} {giants[n % len(giants)]}" for n in range(130)]
        await me.send("POST", "/v1/entries/import", document(texts))

    await me.many(3, act)


async def _forgetting(me: Person) -> None:
    async def act(number: int) -> None:
        match number % 4:
            case 0:
                await me.send("POST", "/v1/chat", {"content": f"remember {words(8)}", "session": f"f{number}"})
                await me.send("DELETE", f"/v1/chat/session/f{number}")
            case 1:
                await me.send("POST", "/v1/entries/forget", {"kind": "note"})
            case 2:
                written = await me.send("POST", "/v1/entries", {"content": words(20)})
                with suppress(ValueError, KeyError):
                    await me.send("POST", f"/v1/entries/{json.loads(written)['id']}/forget")
            case _:
                await me.send("POST", "/v1/chat", {"content": "/nexus forget everything", "session": "forgetting"})

    await me.many(40, act)


async def _commands(me: Person) -> None:
    said = (
        "/nexus export", "/nexus memory list", "/nexus why", "/nexus catchup", "/nexus usage", "/nexus help",
        "/nexus memory search " + words(60), "/nexus fact list", "/nexus keys list", "/nexus " + words(3_000),
    )  # fmt: skip

    async def act(number: int) -> None:
        await me.send("POST", "/v1/chat", {"content": said[number % len(said)], "session": f"c{number % 30}"})

    await me.many(40, act)


async def _mcp(me: Person) -> None:
    async def act(number: int) -> None:
        calls: Sequence[tuple[str, dict[str, Any]]] = (
            ("search", {"query": words(300)}),
            ("write_entry", {"content": words(4_000)}),
            ("browse_entries", {}),
            ("facts", {}),
        )
        name, arguments = calls[number % len(calls)]
        params = {"name": name, "arguments": arguments}
        asked = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        await me.send("POST", "/mcp", asked, tool=True)

    await me.many(40, act)


async def _gateway_unread(me: Person) -> None:
    place = urlsplit(me.base)

    async def act(number: int) -> None:
        asked = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": f"{AT_LENGTH} {words(9)}"}]}
        body = json.dumps(asked).encode()
        key = me.tools[number % len(me.tools)]
        with suppress(OSError):
            _, writer = await asyncio.open_connection(place.hostname, place.port, limit=1_024)
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
            writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            me.counts["opened"] += 1
            await asyncio.sleep(20)
            writer.close()

    await me.many(200, act)


async def _transcripts(me: Person) -> None:
    """Requests of tools with long, hostile conversations and files."""
    file = {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + "A" * 15_000_000},
    }

    async def act(number: int) -> None:
        text = PATHOLOGICAL[number % len(PATHOLOGICAL)]
        if number % 6 == 0:
            messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": words(9)}, file]}]
        else:
            messages = [{"role": "user" if n % 2 else "assistant", "content": f"{n} {text}"} for n in range(40)]
            messages += [{"role": "user", "content": f"I prefer {text} {words(9)}"}]
        await me.send("POST", "/v1/chat/completions", {"model": "slow", "messages": messages}, tool=True)

    await me.many(8, act)


async def _oauth(me: Person) -> None:
    async def act(number: int) -> None:
        app = {"client_name": f"app {number}", "redirect_uris": [f"http://localhost:{number % 60_000}/"]}
        async with me.session.post(f"{me.base}/oauth/register", json=app) as answer:
            me.counts[str(answer.status)] += 1
        form = {"grant_type": "refresh_token", "refresh_token": words(1), "client_id": "x"}
        async with me.session.post(f"{me.base}/oauth/token", data=form) as answer:
            me.counts[str(answer.status)] += 1

    await me.many(40, act)


async def _long_chats(me: Person) -> None:
    async def act(number: int) -> None:
        text = PATHOLOGICAL[number % len(PATHOLOGICAL)] * 8
        await me.send("POST", "/v1/chat", {"content": f"{number} {text}"[:220_000], "session": f"long{number % 20}"})

    await me.many(20, act)


SCRIPTS_BY_NAME: Final[dict[str, Callable[[Person], Awaitable[None]]]] = {
    "large import": _import,
    "import of many": _import_of_many,
    "import and writes": _import_and_writes,
    "import of giants": _import_of_giants,
    "slow chats": _slow_chats,
    "streams held": _streams_held,
    "sockets": _sockets,
    "searches": _searches,
    "bodies": _bodies,
    "lists and exports": _lists,
    "giant entries": _giants,
    "long chats": _long_chats,
    "forgetting": _forgetting,
    "commands": _commands,
    "MCP": _mcp,
    "gateway unread": _gateway_unread,
    "transcripts": _transcripts,
    "OAuth": _oauth,
}


async def main() -> None:
    """Do one script for so many seconds."""
    asked = json.loads(await asyncio.to_thread(sys.stdin.readline))
    timeout = aiohttp.ClientTimeout(total=200)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        me = Person(asked["base"], asked["keys"], asked["tools"], session)
        with suppress(TimeoutError):
            async with asyncio.timeout(asked["seconds"]):
                await SCRIPTS_BY_NAME[asked["name"]](me)
    sys.stdout.write(json.dumps(me.counts) + "\n")


if __name__ == "__main__":
    asyncio.run(main())

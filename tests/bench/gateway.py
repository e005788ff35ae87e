"""What the gateway adds to the time to a first token, with and without memory, beside asking the model server directly,
in turns; and how much of its prompts a provider's cache can reuse over a conversation, beside memory in one leading
system message."""

import asyncio
import json
import secrets
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Any, Final

import httpx2
import numpy as np
from pydantic import SecretStr

from bot.script.places import incoming, place_of
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.server import open_port
from composer.app import App
from composer.entries import entries
from composer.entries.access import access_for_writing
from composer.entries.draft import SentEntry
from composer.entries.entries import Writer
from composer.model import CONSOLE, EVERY_VENDOR
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.people.credentials.principal import EVERY_PERMISSION
from composer.settings.server_urls import ServerUrl
from composer.stores.models.tokens import tokenizer_for
from tests.bench.cpu import Cpu
from tests.bench.report import Report, quantile
from tests.bench.world import START, Vocabulary, data_folder, opened, settled, stores
from tests.support.upstream import Upstream

ENTRIES: Final = 1_000
QUICK_ENTRIES: Final = 100
STANDING: Final = 12  # of them preferences
ROUNDS: Final = 5  # of each way, in turns
REQUESTS: Final = 100  # of one round
QUICK_REQUESTS: Final = 20
TURNS: Final = 50
SYSTEM: Final = "You are a careful assistant of a small team. Answer briefly, and say what you do not know. " * 6
MODEL: Final = "gpt-4o"
AIM: Final = "aims: 15 ms to the first token with memory, 3 ms without"


@dataclass
class Spent:
    """Seconds to the first token of each request, and ms of CPU of the server and the database in all."""

    times: list[float] = field(default_factory=list)
    cpu: float = 0.0


@dataclass(frozen=True)
class Way:
    """One way of asking: the port, and headers."""

    name: str
    port: int
    headers: str


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Store a person's entries, and ask for them all ways."""
    size, requests = (QUICK_ENTRIES, QUICK_REQUESTS) if quick else (ENTRIES, REQUESTS)
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "gateway") as app, AsyncExitStack() as stack:
            note(f"storing {size:,} entries")
            key, texts = await _person(app, size)
            await settled(app)
            upstream = await _started(stack)
            app = _with_gateway(app, f"http://127.0.0.1:{upstream}/v1")
            address = await open_port(app.settings, web_app(app, Metrics([]), {}, None), stack)
            port, bearer = int(address.rpartition(":")[2]), f"Authorization: Bearer {key}\r\n"
            ways = [
                Way("directly", upstream, ""),
                Way("gateway", port, f"{bearer}X-Nexus-Memory: off\r\n"),
                Way("gateway with memory", port, bearer),
            ]
            note("time to the first token")
            found = await _compare(app, ways, texts, requests)
            note("prefix reuse")
            reused = await _reuse(app, key, texts)
    return _report(found, reused, size)


def _with_gateway(app: App, url: str) -> App:
    update = {"gateway_base_url": ServerUrl(url), "gateway_api_key": SecretStr("upstream"), "web_port": 0}
    return replace(app, settings=app.settings.model_copy(update={**update, "requests_per_minute": 1_000_000}))


async def _compare(app: App, ways: Sequence[Way], texts: Sequence[str], requests: int) -> dict[str, Spent]:
    found = {way.name: Spent() for way in ways}
    cpu, number = Cpu(str.__str__(app.settings.database_url or "")), 0
    for way in ways:
        await _asked(way, [_question(texts, way.name, n) for n in range(5)])  # opens the connections
    await cpu.look()
    for _ in range(ROUNDS):
        for way in ways:
            questions = [_question(texts, way.name, number + n) for n in range(10, 10 + requests)]
            before = cpu.now()
            found[way.name].times += await _asked(way, questions)
            found[way.name].cpu += cpu.now() - before
        number += requests
    return found


def _question(texts: Sequence[str], name: str, number: int) -> str:
    words = texts[number % len(texts)].rstrip(".").split()
    return f"what about {' '.join(words[:5])} {number} {len(name)}"


async def _asked(way: Way, questions: Sequence[str]) -> list[float]:
    """The seconds to the first token of each question, as a client of its own measures them."""
    requests = []
    for question in questions:
        said = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
        body = json.dumps({"model": MODEL, "stream": True, "messages": said})
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n{way.headers}Content-Type: application/json\r\n"
        )
        requests.append(f"{head}Content-Length: {len(body.encode())}\r\n\r\n{body}")
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.gateway_peers", "client"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    said_back, _ = await client.communicate(json.dumps({"port": way.port, "requests": requests}).encode() + b"\n")
    times: list[float] = json.loads(said_back)
    return times


async def _started(stack: AsyncExitStack) -> int:
    upstream = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.gateway_peers", "upstream"), stdout=asyncio.subprocess.PIPE
    )

    async def end() -> None:
        upstream.kill()
        await upstream.wait()

    stack.push_async_callback(end)
    assert upstream.stdout is not None
    return int(await upstream.stdout.readline())


async def _reuse(app: App, key: str, texts: Sequence[str]) -> tuple[float, float, int]:
    """The share of a conversation's prompt tokens that equal the beginning of the prompt before: through the gateway,
    and with all memory in one leading system message; and the tokens of the last prompt."""
    async with Upstream() as server, AsyncExitStack() as stack:
        own = _with_gateway(app, server.url)
        address = await open_port(own.settings, web_app(own, Metrics([]), {}, None), stack)
        client = await stack.enter_async_context(httpx2.AsyncClient(base_url=f"http://{address}", timeout=60))
        said: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        ours, leading = list[str](), list[str]()
        for turn in range(TURNS):
            said.append({"role": "user", "content": _question(texts, "", turn * 7)})
            body = {"model": MODEL, "messages": said}
            answer = await client.post("/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"})
            answer.raise_for_status()
            sent = server.bodies[-1]["messages"]
            ours.append(_as_text(sent))
            memory = [each["content"].removeprefix(SYSTEM) for each in sent if each not in said]
            first = {"role": "system", "content": "\n\n".join([*memory, SYSTEM])}
            leading.append(_as_text([first, *said[1:]]))
            said.append({"role": "assistant", "content": f"It was settled that {texts[turn]}"})
    count = tokenizer_for(MODEL).count
    return _share(ours, count), _share(leading, count), count(ours[-1])


def _as_text(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(f"{each['role']}: {each['content']}" for each in messages)


def _share(prompts: Sequence[str], count: Callable[[str], int]) -> float:
    reused = sum(count(_common(a, b)) for a, b in pairwise(prompts))
    return reused / sum(map(count, prompts[1:])) * 100


def _common(a: str, b: str) -> str:
    return "".join(x for x, _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


async def _person(app: App, size: int) -> tuple[str, list[str]]:
    """A person with entries: the text of their key, and what the entries say."""
    here = app.directory.workspace(CONSOLE, "gateway")
    hello = incoming(here, place_of("general", None, None), "alice", "hello", START, id="hello", name="alice")
    await app.receive(here, [hello], answer=False)
    async with app.database.transaction(here.tenant_id) as tx:
        user = await tx.people.find_user(here.platform, here.name, "alice")
        assert user is not None
        request = KeyRequest("cursor", "bench")
        key = await create_key(tx, here.tenant, user, request, secrets.token_bytes(32), app.clock.now(), by=None)
    random, vocabulary = np.random.default_rng(size), Vocabulary()
    texts = [vocabulary.text(random, 20, 60) for _ in range(size)]
    for start in range(0, size, 250):
        async with app.database.transaction(here.tenant_id) as tx:
            who = (tx, here.tenant_id, user.id, EVERY_VENDOR, frozenset(EVERY_PERMISSION))
            access = await access_for_writing(*who)
            for number, text in enumerate(texts[start : start + 250], start):
                draft: SentEntry = {"content": text, "kind": "preference" if number < STANDING else "note"}
                await entries.write(tx, access, draft, Writer("alice"), uuid.uuid4().hex, app.clock.now())
    await app.indexer.catch_up(here.tenant_id)
    return key.text, texts


def _report(found: dict[str, Spent], reused: tuple[float, float, int], size: int) -> Report:
    report, direct = Report("gateway"), quantile([each * 1_000 for each in found["directly"].times], 0.5)
    rows = []
    for name, spent in found.items():
        ms = [each * 1_000 for each in spent.times]
        median, cpu = quantile(ms, 0.5), spent.cpu / len(ms)
        rows.append((name, median, median - direct, median / direct, quantile(ms, 0.95), cpu))
        report.figures[name] = {"p50_ms": median, "added_ms": median - direct, "cpu_ms": cpu}
    head = ["way", "p50 ms", "added", "ratio", "p95 ms", "CPU ms"]
    report.table(f"time to the first token, {size:,} entries, a new question each time", head, rows)
    gateway, leading, tokens = reused
    report.figures["prefix_reuse_percent"] = {"gateway": gateway, "leading": leading}
    title = f"prompt tokens that a cache can reuse over {TURNS} turns (the last prompt has {tokens:,})"
    report.table(title, ["memory", "%"], [("by the gateway", gateway), ("as one leading system message", leading)])
    report.text.append(AIM)
    return report

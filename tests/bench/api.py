"""What the web port adds to the memory: searches, writes and lists over real HTTP, beside the same functions called in
process, in turns. The client is a process of its own; CPU time is that of the server and of the database's backends."""

import asyncio
import json
import secrets
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any, Final

import numpy as np

from bot.script.places import incoming, place_of
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.server import open_port
from composer.app import App
from composer.entries import entries, listing
from composer.entries.access import access_for_reading, access_for_writing
from composer.entries.draft import SentEntry
from composer.entries.entries import Writer
from composer.entries.search import EntryQuestion, EntryReader
from composer.model import CONSOLE, EVERY_VENDOR
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.people.credentials.principal import EVERY_PERMISSION
from composer.repositories.entries import EntryFilter
from composer.stores.models.configured import configured_embedder
from tests.bench.cpu import Cpu
from tests.bench.report import Report, quantile
from tests.bench.world import START, HashEmbedder, Vocabulary, data_folder, opened, settled, stores

SCOPES: Final = {"alice": 1_000, "bob": 10_000}  # how many entries each person has
QUICK_SCOPES: Final = {"alice": 200, "bob": 500}
CLIENTS: Final = (1, 16, 64)
ROUNDS: Final = 3  # of each way, in turns
REQUESTS: Final = 200  # of one round
QUICK_REQUESTS: Final = 64
BATCH: Final = 250  # entries that are written in one transaction
TAGS: Final = 20
KINDS: Final = ("note", "decision", "preference", "fact", "procedural")
EMBEDDED: Final = 40  # questions that the real embedder is timed with
AIM: Final = "aims: the web's share of a search's CPU, with the vector of its question, at most 15%"
CORES: Final = 2  # for which the lists a second are given

Bare = Callable[[int], Awaitable[object]]
Note = Callable[[str], None]


@dataclass(frozen=True)
class Person:
    """Somebody with entries, their key, and what is asked for them."""

    name: str
    reader: EntryReader
    key: str
    texts: Sequence[str]


@dataclass(frozen=True)
class Work:
    """One kind of request: as bytes for the web port, and as a call of the same function."""

    name: str
    request: Callable[[int], tuple[str, str, dict[str, Any] | None]]
    bare: Bare
    person: Person
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Spent:
    """What the requests of one kind cost in all: ms of the server's and of the database's CPU, and seconds."""

    requests: int = 0
    server: float = 0.0
    database: float = 0.0
    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    @property
    def each(self) -> float:
        """CPU milliseconds of one request."""
        return (self.server + self.database) / self.requests


async def measure(quick: bool, note: Note) -> Report:
    """Store the entries of two people, and ask for them both ways."""
    scopes, requests = (QUICK_SCOPES, QUICK_REQUESTS) if quick else (SCOPES, REQUESTS)
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "api", embedder=HashEmbedder()) as app:
            settings = app.settings.model_copy(update={"requests_per_minute": 1_000_000, "web_port": 0})
            app = replace(app, settings=settings)
            people = {name: await stored_person(app, name, number, note) for name, number in scopes.items()}
            await settled(app)
            async with AsyncExitStack() as stack:
                address = await open_port(settings, web_app(app, Metrics([]), {}, None), stack)
                measuring = Measuring(address, Cpu(str.__str__(settings.database_url or "")), app, requests)
                found = {}
                for work in _works(app, people):
                    note(work.name)
                    for clients in CLIENTS if work.person.name == "alice" else (16,):
                        found[work.name, clients] = await measuring.compare(work, clients)
            embedding = await _embedding(app)
    return _report(found, embedding)


class Measuring:
    """Sends requests to a served app, from a process of their own, and counts what they cost."""

    def __init__(self, address: str, cpu: Cpu, app: App, requests: int) -> None:
        self._host, _, port = address.rpartition(":")
        self._port, self._cpu, self._app, self._requests = int(port), cpu, app, requests
        self._numbers = count()

    async def compare(self, work: Work, clients: int) -> tuple[Spent, Spent]:
        """What a kind of request costs over HTTP, and called in process."""
        web, bare = Spent(), Spent()
        await self.web(work, clients, Spent(), min(2 * clients, self._requests))  # opens the connections
        await self._bare(work, clients, Spent(), min(2 * clients, self._requests))
        await self._cpu.look()
        for _ in range(ROUNDS):
            await self.web(work, clients, web, self._requests)
            await self._bare(work, clients, bare, self._requests)
        return web, bare

    async def web(self, work: Work, clients: int, spent: Spent, number: int) -> None:
        """Send so many requests of a kind over so many connections."""
        requests = [self._bytes(work, each) for each in islice(self._numbers, number)]
        asked = {"host": self._host, "port": self._port, "clients": clients, "requests": requests}
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.bench.api_client"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        server, all_of_it = time.process_time_ns(), self._cpu.now()
        said, _ = await client.communicate(json.dumps(asked).encode() + b"\n")
        found = json.loads(said)
        if found["wrong"]:
            raise RuntimeError(f"{work.name}: {found['wrong'][0]}")
        self._add(spent, number, server, all_of_it, found["seconds"])
        spent.times += found["times"]

    async def _bare(self, work: Work, clients: int, spent: Spent, number: int) -> None:
        numbers = islice(self._numbers, number)

        async def one() -> None:
            for each in numbers:
                await work.bare(each)

        server, all_of_it, started = time.process_time_ns(), self._cpu.now(), time.perf_counter()
        await asyncio.gather(*(one() for _ in range(clients)))
        self._add(spent, number, server, all_of_it, time.perf_counter() - started)

    def _add(self, spent: Spent, number: int, server: int, all_of_it: float, seconds: float) -> None:
        mine = (time.process_time_ns() - server) / 1e6
        spent.requests += number
        spent.server += mine
        spent.database += self._cpu.now() - all_of_it - mine
        spent.seconds += seconds

    def _bytes(self, work: Work, number: int) -> str:
        method, path, body = work.request(number)
        sent = "" if body is None else json.dumps(body)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {work.person.key}\r\n"
        kind = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n"
        more = "".join(f"{name}: {value}\r\n" for name, value in work.headers.items())
        return f"{head}{kind}{more}\r\n{sent}"


def _works(app: App, people: dict[str, Person]) -> list[Work]:
    found = []
    for person in people.values():
        size = f"{len(person.texts):,}"
        found += [
            _searching(app, person, f"search, {size} entries"),
            _listing(
                app, person, f"list by kind and tag, {size} entries", EntryFilter(kinds=("fact",), tags=("tag3",))
            ),
            _listing(app, person, f"list by words, {size} entries", EntryFilter(words="ba")),
            _listing(app, person, f"list with counts, {size} entries", EntryFilter(kinds=("note",)), stats=True),
        ]
    return [*found, _writing(app, people["alice"])]


def _searching(app: App, person: Person, name: str) -> Work:
    def question(number: int) -> str:
        words = person.texts[number % len(person.texts)].rstrip(".").split()
        return f"what about {' '.join(words[:5])} {number}"

    return Work(
        name,
        lambda number: ("POST", "/v1/query", {"question": question(number)}),
        lambda number: app.entry_search.search(person.reader, EntryQuestion(question(number))),
        person,
    )


def _listing(app: App, person: Person, name: str, wanted: EntryFilter, *, stats: bool = False) -> Work:
    who = person.reader
    values = [("kind", each) for each in wanted.kinds] + [("tag", each) for each in wanted.tags]
    values += [("q", wanted.words)] if wanted.words else []
    values += [("stats", "true")] if stats else []
    query = "&".join(f"{key}={value}" for key, value in values)

    async def bare(_: int) -> None:
        now = app.clock.now()
        async with app.database.transaction(who.tenant_id, "read") as tx:
            access = await access_for_reading(tx, who.tenant_id, who.user, who.vendor, who.grants)
            await listing.page(tx, access, wanted, now, limit=20, whole=True)
            if stats:
                await listing.counts(tx, access, wanted, now)

    return Work(name, lambda _: ("GET", f"/v1/entries?{query}", None), bare, person)


def _writing(app: App, person: Person) -> Work:
    async def bare(number: int) -> None:
        await _write(app, person.reader, person.name, [(number, f"written in process {number}")])

    return Work(
        "write", lambda number: ("POST", "/v1/entries", {"content": f"written over HTTP {number}"}), bare, person
    )


async def _write(app: App, who: EntryReader, name: str, contents: Sequence[tuple[int, str]]) -> None:
    async with app.database.transaction(who.tenant_id) as tx:
        access = await access_for_writing(tx, who.tenant_id, who.user, who.vendor, who.grants)
        for number, content in contents:
            draft: SentEntry = {
                "content": content,
                "kind": KINDS[number % len(KINDS)],
                "tags": (f"tag{number % TAGS}",),
            }
            await entries.write(tx, access, draft, Writer(name), uuid.uuid4().hex, app.clock.now())


async def stored_person(app: App, name: str, size: int, note: Note, vendor: str | None = None) -> Person:
    """Somebody with so many entries, and the key of theirs or of a tool of theirs."""
    note(f"storing {size:,} entries")
    here = app.directory.workspace(CONSOLE, "api")
    hello = incoming(here, place_of("general", None, None), name, "hello", START, id=f"of {name}", name=name)
    await app.receive(here, [hello], answer=False)
    async with app.database.transaction(here.tenant_id) as tx:
        user = await tx.people.find_user(here.platform, here.name, name)
        assert user is not None
        request = KeyRequest(vendor, "bench")
        key = await create_key(tx, here.tenant, user, request, secrets.token_bytes(32), app.clock.now(), by=None)
    reader = EntryReader(here.tenant_id, user.id, EVERY_VENDOR, frozenset(EVERY_PERMISSION))
    random, vocabulary = np.random.default_rng(size), Vocabulary()
    texts = [vocabulary.text(random, 20, 60) for _ in range(size)]
    for start in range(0, size, BATCH):
        await _write(app, reader, name, list(enumerate(texts))[start : start + BATCH])
    await app.indexer.catch_up(here.tenant_id)
    return Person(name, reader, key.text, texts)


async def _embedding(app: App) -> float:
    """The CPU milliseconds that the vector of a new question costs: with the embedder that people have."""
    embedder = configured_embedder(app.settings)
    await embedder.load()
    await embedder.embed(["ready"])
    started = time.process_time_ns()
    for number in range(EMBEDDED):
        await embedder.embed([f"when do we deploy the service, and who decides about number {number}?"])
    return (time.process_time_ns() - started) / 1e6 / EMBEDDED


def _report(found: dict[tuple[str, int], tuple[Spent, Spent]], embedding: float) -> Report:
    report = Report("api", figures={"embedding_ms": embedding})
    rows = []
    for (name, clients), (web, bare) in found.items():
        vector = embedding if name.startswith("search") else 0.0
        share = (web.each - bare.each) / (web.each + vector) * 100
        per_second, bare_per_second = web.requests / web.seconds, bare.requests / bare.seconds
        ms = [each * 1_000 for each in web.times]
        rows.append(
            (
                name,
                clients,
                web.each,
                bare.each,
                web.server / web.requests,
                share,
                CORES * 1_000 / web.each,
                per_second,
                bare_per_second,
                quantile(ms, 0.5),
                quantile(ms, 0.95),
            )
        )
        report.figures[f"{name}, {clients} clients"] = {
            "cpu_ms": web.each,
            "bare_cpu_ms": bare.each,
            "server_ms": web.server / web.requests,
            "share_percent": share,
            "per_second": per_second,
            "bare_per_second": bare_per_second,
        }
    head = ["request", "clients", "CPU ms", "bare", "of it Python", "web %", f"a s on {CORES} cores", "a s", "bare a s"]
    title = f"the web port beside the same functions in process; a new question's vector is {embedding:.1f} ms besides"
    report.table(title, [*head, "p50 ms", "p95 ms"], rows)
    report.text.append(AIM)
    return report

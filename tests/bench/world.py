"""The team that is measured: generated messages in 200 rooms, always the same for the same seed."""

import asyncio
import shutil
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import numpy as np

from bot.commands.table import run_command
from bot.importers.history import import_history
from bot.script.events import Line, MessageEvent
from bot.script.places import incoming, place_of
from composer.app import App, open_app
from composer.model import CONSOLE, Place, Workspace
from composer.ports.models import Vectors
from composer.settings import Settings
from composer.stores.embedded.servers import EmbeddedServers, Servers
from composer.text.terms import STOP_WORDS

START: Final = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
ROOMS: Final = 200
PEOPLE: Final = 40
DMS: Final = 20
BUSY_SHARE: Final = 0.10  # of all messages are in one busy room
DM_SHARE: Final = 0.05
POOLED: Final = 20  # rooms of the large project
SMALL_PROJECTS: Final = 10  # of three rooms each
FURNISHED: Final = 60  # rooms with facts and landmarks of their own
WORDS: Final = 20_000
ZIPF: Final = 1.05
SEED: Final = 20260105


class Vocabulary:
    """Generated words whose frequencies fall as in real text; the commonest are English stop words."""

    def __init__(self, seed: int = SEED) -> None:
        random = np.random.default_rng(seed)
        heads, tails = (
            ["b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br", "cl", "st", "tr"],
            ["a", "e", "i", "o", "u", "ai", "ea", "oo"],
        )
        made: dict[str, None] = dict.fromkeys(sorted(STOP_WORDS, key=lambda word: (len(word), word))[:120])
        while len(made) < WORDS:
            size = int(random.integers(2, 5))
            made["".join(f"{random.choice(heads)}{random.choice(tails)}" for _ in range(size))] = None
        self.words = list(made)
        weights = 1 / np.arange(1, WORDS + 1) ** ZIPF
        self._reach = np.cumsum(weights / weights.sum())

    def text(self, random: np.random.Generator, least: int = 6, most: int = 25) -> str:
        """Return a sentence of so many words."""
        drawn = np.searchsorted(self._reach, random.random(int(random.integers(least, most + 1))))
        return " ".join(self.words[min(int(n), WORDS - 1)] for n in drawn) + "."


class HashEmbedder:
    """An embedder for benches that do not measure embedding: it sums random vectors of the words."""

    name = "bench-hash"
    width = 384

    def __init__(self) -> None:
        self._known: dict[str, Vectors] = {}

    async def load(self) -> None:
        """Nothing to load."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text; texts that share words are near."""
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Vectors:
        total = np.sum([self._word(word) for word in text.casefold().split()] or [self._word("")], axis=0)
        unit: Vectors = (total / np.linalg.norm(total)).astype(np.float32)
        return unit

    def _word(self, word: str) -> Vectors:
        if word not in self._known:
            random = np.random.default_rng(zlib.crc32(word.encode()))
            self._known[word] = random.standard_normal(self.width, dtype=np.float32)
        return self._known[word]


@dataclass(frozen=True)
class World:
    """An open app with `size` stored messages, and where to ask."""

    app: App
    workspace: Workspace
    size: int
    talk: dict[str, list[str]]  # room or `dm:person` to some of its messages

    def question(self, place: str, random: np.random.Generator, vocabulary: Vocabulary) -> str:
        """Make a question for this place: a few words from its messages, among others."""
        said = self.talk[place][int(random.integers(len(self.talk[place])))].rstrip(".").split()
        picked = [said[int(n)] for n in random.choice(len(said), size=min(4, len(said)), replace=False)]
        return f"what about {' '.join(picked)} and {vocabulary.text(random, 2, 4).rstrip('.')}"


def room(number: int) -> str:
    """A room's name."""
    return f"room{number:03}"


def person(number: int) -> str:
    """A person's name."""
    return f"person{number:02}"


BUSY: Final = "busy"
POOL: Final = [room(number) for number in range(POOLED)]
SMALL: Final = [[room(POOLED + 3 * n + k) for k in range(3)] for n in range(SMALL_PROJECTS)]
PLAIN: Final = [room(number) for number in range(POOLED + 3 * SMALL_PROJECTS, ROOMS - 1)]


def place(name: str) -> Place:
    """Return a place of this world by its name in `World.talk`."""
    return place_of(None, "nexus", None) if name.startswith("dm:") else place_of(name, None, None)


def history(size: int, vocabulary: Vocabulary, workspace: str, rooms: int = ROOMS, days: int = 120) -> list[Line]:
    """Generate so many messages in so many rooms, over so many days, as if read from a file."""
    random = np.random.default_rng(SEED + size)
    dms = [f"dm:{person(number)}" for number in range(DMS)]
    shares = [BUSY_SHARE] + [(1 - BUSY_SHARE - DM_SHARE) / (rooms - 1)] * (rooms - 1) + [DM_SHARE / DMS] * DMS
    where = [BUSY, *(room(number) for number in range(rooms - 1)), *dms]
    counts = [max(1, int(size * share)) for share in shares]
    counts[0] += max(0, size - sum(counts))
    order = np.repeat(np.arange(len(where)), counts)
    random.shuffle(order)
    step = timedelta(days=days) / size
    lines = []
    for number, index in enumerate(order[:size]):
        name, at = where[int(index)], START + number * step
        dm = name.startswith("dm:")
        speaker = name[3:] if dm else person((int(index) * 7 + int(random.integers(12))) % PEOPLE)
        event = MessageEvent(
            type="message",
            at=at,
            workspace=workspace,
            room=None if dm else name,
            dm="nexus" if dm else None,
            user=speaker,
            id=f"m{number}",
            text=vocabulary.text(random),
        )
        lines.append(Line("bench", number + 1, event))
    return lines


def asker(name: str) -> str:
    """Return the asker in a place."""
    return name[3:] if name.startswith("dm:") else person(0)


async def build(app: App, size: int, vocabulary: Vocabulary, note: Callable[[str], None]) -> World:
    """Fill an empty app by the ordinary import, then with facts, landmarks, projects and profiles."""
    workspace = app.directory.workspace(CONSOLE, f"world{size}")
    lines = history(size, vocabulary, workspace.name)
    note(f"storing {size:,} messages")
    await import_history(app, lines, lambda _: None)
    await _furnish(app, workspace, vocabulary)
    note(f"indexing {size:,} messages")
    await app.indexer.catch_up(workspace.tenant_id)
    talk: dict[str, list[str]] = {}
    for line in lines:
        if isinstance(line.event, MessageEvent):
            key = line.event.room or f"dm:{line.event.user}"
            talk.setdefault(key, []).append(line.event.text)
    return World(app, workspace, size, talk)


async def _furnish(app: App, workspace: Workspace, vocabulary: Vocabulary) -> None:
    random = np.random.default_rng(SEED)
    number = 0

    async def command(user: str, where: str, text: str) -> None:
        nonlocal number
        number += 1
        said = incoming(workspace, place(where), user, f"/nexus {text}", app.clock.now(), id=f"c{number}")
        await run_command(app, workspace, replace(said, sender_is_room_admin=True))

    for project, rooms in [("large", POOL), *((f"small{n}", rooms) for n, rooms in enumerate(SMALL))]:
        await command(person(0), rooms[0], f"project create {project}")
        for name in rooms:
            await command(person(0), name, f"project assign {project} --yes")
        await command(person(0), rooms[0], f'fact set --project --yes deadline "{vocabulary.text(random, 3, 5)}"')
    for name in [BUSY, *POOL[:3], *(rooms[0] for rooms in SMALL), *PLAIN[:FURNISHED]]:
        for key in ("deploy_day", "owner", "status"):
            await command(person(0), name, f'fact set {key} "{vocabulary.text(random, 3, 6)}"')
        for _ in range(2):
            await command(person(0), name, f"landmark add {vocabulary.text(random, 8, 14)}")
    for n in range(PEOPLE):
        await command(
            person(n), PLAIN[n % FURNISHED], f'fact set --everywhere --yes timezone "{vocabulary.text(random, 2, 3)}"'
        )
        for _ in range(2):
            await command(
                person(n), PLAIN[n % FURNISHED], f"remember --everywhere --yes {vocabulary.text(random, 6, 12)}"
            )


@contextmanager
def data_folder() -> Iterator[Path]:
    """Make an empty folder for embedded stores; remove it afterwards."""
    home = Path(tempfile.mkdtemp(prefix="nexus-bench-"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def stores(home: Path) -> AsyncIterator[Servers]:
    """Start embedded servers in a folder; stop them afterwards."""
    servers = EmbeddedServers(home)
    try:
        yield await asyncio.to_thread(servers.start)
    finally:
        await asyncio.to_thread(servers.stop)


@asynccontextmanager
async def opened(home: Path, servers: Servers, name: str, **options: Any) -> AsyncIterator[App]:
    """Open an app on an empty database of its own on these servers."""
    connection = await asyncpg.connect(servers.database_url)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    url = servers.database_url.replace("/nexus?", f"/{name}?")
    settings = Settings(home=home, database_url=url, redis_url=servers.redis_url)
    async with open_app(settings, index=False, **options) as app:
        yield app


_DUE = """
SELECT count(*) FROM pg_stat_user_tables AS s JOIN pg_class AS c ON c.oid = s.relid
WHERE s.n_ins_since_vacuum > 1000 + greatest(c.reltuples, 0) * 0.05
      OR s.n_dead_tup > 50 + greatest(c.reltuples, 0) * 0.05 AND s.n_dead_tup > 1000
      OR s.n_mod_since_analyze > 50 + greatest(c.reltuples, 0) * 0.05 AND s.n_mod_since_analyze > 1000
"""


async def settled(app: App, within: float = 120) -> bool:
    """Wait until autovacuum has processed the large tables; return False after so many seconds."""
    connection = await asyncpg.connect(app.settings.database_url)
    working = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"
    try:
        async with asyncio.timeout(within):
            while await connection.fetchval(_DUE) or await connection.fetchval(working):  # noqa: ASYNC110  it tells nobody
                await asyncio.sleep(0.2)
    except TimeoutError:
        return False
    finally:
        await connection.close()
    return True

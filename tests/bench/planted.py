"""A tenant of any size, written by COPY as the real writer would write it, for `make bench-scale`.

Messages, episodes, memories, lineage, index and postings come from the same functions of the core that the indexer
uses; only the way into the tables differs, and tests/deep/integration/test_bench_rows.py compares it with the real one.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import asyncpg
import numpy as np
from numpy.typing import NDArray

from bot.commands.table import run_command
from bot.importers.history import import_history
from bot.script.events import Line, MessageEvent
from bot.script.places import incoming, place_of
from composer.app import App
from composer.layers.semantic import episode_id
from composer.memory.index import episode_entries, memory_entries
from composer.model import (
    CONSOLE,
    Message,
    Visibility,
    Workspace,
    derived_id,
    message_id,
    room_id,
    room_namespace,
    user_id,
)
from composer.ports.models import Vectors
from composer.repositories.memories import NewMemory
from composer.repositories.recall import IndexEntry
from composer.visibility import AccessTag
from tests.bench.world import SEED, START, Vocabulary

WIDTH: Final = 384
SCOPES: Final = (100, 1_000, 10_000, 50_000)
FILTERS: Final = (1, 3, 20, 50)
THEMES: Final = 200
TOPICS: Final = 3_000
NEAR_THEME: Final = 0.6  # cosine of a topic to its theme
TOPICS_OF_A_ROOM: Final = 12
NEAR_TOPIC: Final = 0.7  # cosine of a row to its topic; of two rows of one topic about 0.49
NEAR_ROW: Final = 0.8  # cosine of a question to the row that it is made from
MEMORIES: Final = 0.2  # of all rows; the others are episodes
BACKGROUND_ROOM: Final = 2_000  # rows
REMEMBERED: Final = 100  # rows of a scope that questions are made from
CHUNK: Final = 20_000
SPEAKER: Final = "person00"
TABLES: Final = ("messages", "episodes", "memories", "lineage", "recall_index", "recall_terms")


class PlantedEmbedder:
    """An embedder that returns the vector written for a text, else `next`."""

    name = "bench-planted"
    width = WIDTH

    def __init__(self) -> None:
        self.next: Vectors = np.full(WIDTH, WIDTH**-0.5, dtype=np.float32)

    async def load(self) -> None:
        """Nothing to load."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the same unit vector for every text."""
        return np.tile(self.next, (len(texts), 1))


@dataclass
class Scope:
    """What a viewer may read: `rows` rows in a number of rooms, pooled by a project if there are several."""

    rows: int
    rooms: tuple[str, ...]
    remembered: list[tuple[str, Vectors]] = field(default_factory=list)  # texts and vectors of some of its rows

    @property
    def label(self) -> tuple[int, int]:
        """Rows and rooms."""
        return self.rows, len(self.rooms)


@dataclass
class Planted:
    """A filled database: `size` rows of recall, and the scopes to ask in."""

    app: App
    embedder: PlantedEmbedder
    workspace: Workspace
    size: int
    scopes: list[Scope]

    def runs(self, scope: Scope) -> list[str]:
        """Return the namespaces of a scope's rooms."""
        return [room_namespace(room_id(self.workspace, name)) for name in scope.rooms]


def scopes_of(size: int) -> list[Scope]:
    """Return the scopes that fit into so many rows, with some rows left for others. A size that fits only one scope
    gets the one of 20 rooms."""
    found: list[Scope] = []
    left = size
    for rows in SCOPES:
        fits = [n for n in FILTERS if n <= rows]
        if rows * len(fits) > left * 0.6:
            fits = [20] if rows <= left * 0.95 and rows > 100 else []
        for count in fits:
            found.append(Scope(rows, tuple(f"s{rows}-{count}-{n}" for n in range(count))))
            left -= rows
    return found


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


class Plan:
    """Assign rows to rooms and texts to rows: always the same for the same size."""

    def __init__(self, size: int) -> None:
        self.scopes = scopes_of(size)
        rooms: list[str] = []
        shares: list[int] = []
        for scope in self.scopes:
            each, more = divmod(scope.rows, len(scope.rooms))
            rooms += scope.rooms
            shares += [each + (n < more) for n in range(len(scope.rooms))]
        others = size - sum(shares)
        for n in range(0, others, BACKGROUND_ROOM):
            rooms.append(f"other-{n // BACKGROUND_ROOM}")
            shares.append(min(BACKGROUND_ROOM, others - n))
        self.rooms = rooms
        self.size = size
        self._random = np.random.default_rng(SEED + size)
        self.order = np.repeat(np.arange(len(rooms)), shares)
        self._random.shuffle(self.order)
        themes = _unit(self._random.standard_normal((THEMES, WIDTH), dtype=np.float32))
        self.topics = near(self._random, themes[self._random.integers(THEMES, size=TOPICS)], NEAR_THEME)
        self.topics_of = self._random.integers(TOPICS, size=(len(rooms), TOPICS_OF_A_ROOM))

    def vectors(self, rooms: NDArray[np.int64]) -> NDArray[np.float32]:
        """Unit vectors for rows in these rooms, shape (len(rooms), WIDTH)."""
        chosen = self.topics_of[rooms, self._random.integers(TOPICS_OF_A_ROOM, size=len(rooms))]
        return near(self._random, self.topics[chosen], NEAR_TOPIC)

    def memories(self, count: int) -> NDArray[np.bool_]:
        """Choose which of so many rows are memories."""
        return self._random.random(count) < MEMORIES

    @property
    def random(self) -> np.random.Generator:
        """The generator that words are drawn with."""
        return self._random


def near(random: np.random.Generator, vectors: NDArray[np.float32], cosine: float) -> NDArray[np.float32]:
    """Unit vectors at about this cosine to the given ones."""
    noise = _unit(random.standard_normal(vectors.shape, dtype=np.float32))
    return _unit(cosine * vectors + np.float32((1 - cosine**2) ** 0.5) * noise)


async def plant(app: App, embedder: PlantedEmbedder, size: int, note: Callable[[str], None]) -> Planted:
    """Fill an empty app: rooms, people and projects through the ordinary interfaces, rows by COPY."""
    workspace = app.directory.workspace(CONSOLE, f"scale{size}")
    plan = Plan(size)
    note(f"{size:,} rows: making {len(plan.rooms):,} rooms")
    await _make_rooms(app, workspace, plan)
    connection = await asyncpg.connect(app.settings.database_url)
    try:
        await connection.set_type_codec("vector", encoder=bytes, decoder=bytes, schema="public", format="binary")
        async with _bare(connection):
            await _copy(connection, workspace, plan, note)
        note(f"{size:,} rows: vacuum and statistics")
        await connection.execute("VACUUM (ANALYZE)")
    finally:
        await connection.close()
    return Planted(app, embedder, workspace, size, plan.scopes)


async def _make_rooms(app: App, workspace: Workspace, plan: Plan) -> None:
    first = [_line(workspace, n, name, "hello there") for n, name in enumerate(plan.rooms)]
    await import_history(app, first, lambda _: None)
    await app.indexer.catch_up(workspace.tenant_id, embed=False)
    number = 0
    for scope in plan.scopes:
        if len(scope.rooms) == 1:
            continue
        slug = f"p{scope.rows}-{len(scope.rooms)}"
        for text, rooms in ((f"project create {slug}", scope.rooms[:1]), (f"project assign {slug} --yes", scope.rooms)):
            for name in rooms:
                number += 1
                said = incoming(
                    workspace, place_of(name, None, None), SPEAKER, f"/nexus {text}", app.clock.now(), id=f"c{number}"
                )
                await run_command(app, workspace, replace(said, sender_is_room_admin=True))


def _line(workspace: Workspace, number: int, room: str, text: str) -> Line:
    at = START - timedelta(days=1) + timedelta(seconds=number)
    event = MessageEvent(
        type="message", at=at, workspace=workspace.name, room=room, user=SPEAKER, id=f"first{number}", text=text
    )
    return Line("bench", number + 1, event)


@asynccontextmanager
async def _bare(connection: asyncpg.Connection) -> AsyncIterator[None]:
    """Drop the secondary indexes and disable triggers within the block; restore both afterwards."""
    rows = await connection.fetch(
        "SELECT indexname, indexdef FROM pg_indexes JOIN pg_class AS c ON c.relname = indexname"
        " WHERE schemaname = 'public' AND tablename = ANY ($1::text[])"
        " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = c.oid)",
        list(TABLES),
    )
    for row in rows:
        await connection.execute(f'DROP INDEX "{row["indexname"]}"')
    await connection.execute("SET session_replication_role = replica; SET maintenance_work_mem = '1GB'")
    await connection.execute("SET synchronous_commit = off")
    yield
    for row in rows:
        await connection.execute(row["indexdef"])
    await connection.execute("SET session_replication_role = origin")


async def _copy(connection: asyncpg.Connection, workspace: Workspace, plan: Plan, note: Callable[[str], None]) -> None:
    vocabulary = Vocabulary()
    speaker = user_id(workspace, SPEAKER)
    scope_of = {name: scope for scope in plan.scopes for name in scope.rooms}
    ids = [room_id(workspace, name) for name in plan.rooms]
    runs = [room_namespace(id) for id in ids]
    seqs = [1] * len(ids)  # one message came through the ordinary interface
    latest: list[Message | None] = [None] * len(ids)
    step = timedelta(days=120) / plan.size
    for start in range(0, plan.size, CHUNK):
        rooms = plan.order[start : start + CHUNK]
        vectors, drawn = plan.vectors(rooms), plan.memories(len(rooms))
        messages: list[tuple[uuid.UUID, Message]] = []  # each with its conversation
        memories: list[NewMemory] = []
        findable: list[IndexEntry] = []
        for n, place in enumerate(rooms.tolist()):
            text, at, before = vocabulary.text(plan.random, 5, 18), START + (start + n) * step, latest[place]
            if drawn[n] and before is not None:
                memory = NewMemory(
                    derived_id("memory", str(before.id), str(start + n)),
                    AccessTag(runs[place], Visibility.PUBLIC, speaker),
                    None,
                    "fact",
                    text,
                    SPEAKER,
                    "extracted",
                    at,
                    (before.id,),
                )
                memories.append(memory)
                findable += memory_entries(memory)
            else:
                seqs[place] += 1
                message = _message(ids[place], runs[place], speaker, seqs[place], f"m{start + n}", at, text)
                latest[place] = message
                messages.append((ids[place], message))
                findable += episode_entries(message)
            scope = scope_of.get(plan.rooms[place])
            if scope is not None and len(scope.remembered) < REMEMBERED:
                scope.remembered.append((text, vectors[n].copy()))
        for table, records in records_of(workspace.tenant_id, messages, memories, findable, vectors).items():
            await connection.copy_records_to_table(table, schema_name="public", **records)
        note(f"{plan.size:,} rows: {start + len(rooms):,} written")
    await connection.executemany(
        "UPDATE conversations SET last_seq = $2, version = version + $2 WHERE id = $1",
        list(zip(ids, seqs, strict=True)),
    )
    note(f"{plan.size:,} rows: building indexes")


def _message(room: uuid.UUID, run: str, speaker: uuid.UUID, seq: int, external: str, at: Any, text: str) -> Message:
    return Message(
        id=message_id(room, external),
        external_id=external,
        seq=seq,
        at=at,
        user_id=speaker,
        agent_id=None,
        author=SPEAKER,
        text=text,
        namespace=run,
        visibility=Visibility.PUBLIC,
    )


def records_of(
    tenant: uuid.UUID,
    messages: Sequence[tuple[uuid.UUID, Message]],
    memories: Sequence[NewMemory],
    findable: Sequence[IndexEntry],
    vectors: NDArray[np.float32],
) -> dict[str, dict[str, Any]]:
    """Return the rows for COPY by table. `messages`: each with its conversation; `vectors`: of `findable`."""
    head = np.array([vectors.shape[1], 0], dtype=">u2").tobytes()
    raw = vectors.astype(">f4")
    return {
        "messages": _table(
            "tenant_id id conversation_id seq external_id at user_id author text namespace visibility indexed",
            (
                (
                    *(tenant, m.id, conversation, m.seq, m.external_id, m.at, m.user_id, m.author, m.text),
                    *(m.namespace, str(m.visibility), True),
                )
                for conversation, m in messages
            ),
        ),
        "episodes": _table("tenant_id id message_id", ((tenant, episode_id(m), m.id) for _, m in messages)),
        "memories": _table(
            "tenant_id id namespace user_id visibility kind text author origin created_at expires_at",
            (
                (
                    *(tenant, m.id, m.tag.namespace, m.tag.user_id, str(m.tag.visibility), m.kind, m.text, m.author),
                    *(m.origin, m.at, m.expires_at),
                )
                for m in memories
            ),
        ),
        "lineage": _table(
            "tenant_id item_kind item_id source_kind source_id",
            ((tenant, "memory", m.id, "message", source) for m in memories for source in m.sources),
        ),
        "recall_index": _table(
            "tenant_id id kind namespace user_id visibility vendors at expires_at length embedding",
            (
                (
                    *(tenant, f.id, f.kind, f.namespace, f.user_id, str(f.visibility), f.vendors, f.at, f.expires_at),
                    *(sum(f.terms.values()), head + raw[n].tobytes()),
                )
                for n, f in enumerate(findable)
            ),
        ),
        "recall_terms": _table(
            "tenant_id namespace term item_id tf length visibility user_id vendors at expires_at",
            _postings(tenant, findable),
        ),
    }


def _postings(tenant: uuid.UUID, findable: Sequence[IndexEntry]) -> Iterator[tuple[Any, ...]]:
    for f in findable:
        length, mark = sum(f.terms.values()), str(f.visibility)
        for term, count in f.terms.items():
            yield (tenant, f.namespace, term, f.id, count, length, mark, f.user_id, f.vendors, f.at, f.expires_at)


def _table(columns: str, records: Any) -> dict[str, Any]:
    return {"columns": columns.split(), "records": records}

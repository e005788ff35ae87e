"""Mem0's own search over its bundled PGVector, on the rows of a generated database, for comparison with ours."""

import asyncio
import contextlib
import io
import json
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

import asyncpg

from composer.ports.models import Vectors
from composer.settings import configure_mem0
from tests.bench.planted import WIDTH, Planted

TABLE: Final = "mem0"
TOP_K: Final = 10
POOL: Final = 60  # the least number that Memory.search requests from its store
COPY_ROWS: Final = f"""
INSERT INTO {TABLE} (id, vector, payload)
SELECT r.id, r.embedding, jsonb_build_object(
           'data', t.text, 'hash', md5(t.text), 'created_at', r.at, 'updated_at', r.at, 'agent_id', 'nexus',
           'room', r.namespace, 'text_lemmatized', lower(t.text))
FROM recall_index AS r
LEFT JOIN episodes AS e ON r.kind = 'episode' AND e.tenant_id = r.tenant_id AND e.id = r.id
LEFT JOIN messages AS m ON m.tenant_id = r.tenant_id AND m.id = e.message_id
LEFT JOIN memories AS y ON r.kind = 'memory' AND y.tenant_id = r.tenant_id AND y.id = r.id
CROSS JOIN LATERAL (SELECT coalesce(m.text, y.text) AS text) AS t
WHERE r.embedding IS NOT NULL
"""
# Copied from mem0/vector_stores/pgvector.py of 2.2.1, for use without its driver.
CREATE: Final = (
    f"CREATE TABLE {TABLE} (id uuid PRIMARY KEY, vector vector({WIDTH}), payload jsonb)",
    f"CREATE INDEX {TABLE}_text_lemmatized_idx ON {TABLE}"
    " USING gin (to_tsvector('simple', payload->>'text_lemmatized'))",
)
SEARCH: Final = f"""
SELECT id, vector <=> $1::vector AS distance, payload FROM {TABLE}
WHERE payload->>'agent_id' = 'nexus' AND payload->>'room' = ANY ($2::text[]) ORDER BY distance LIMIT $3
"""
HNSW: Final = f"CREATE INDEX {TABLE}_hnsw_idx ON {TABLE} USING hnsw (vector vector_cosine_ops)"


class Mem0Search:
    """`search` returns the ids that Mem0 finds and the milliseconds that it took. `driver` names the driver."""

    def __init__(self, planted: Planted) -> None:
        self._planted = planted
        self._url = planted.app.settings.database_url or ""
        self._memory: Any = None
        self._vector: list[float] = []
        self.driver = ""

    async def open(self) -> None:
        """Fill Mem0's table with the same rows; its HNSW index comes by `index`."""
        configure_mem0(self._planted.app.settings.home)
        try:
            self._memory = await asyncio.to_thread(self._made)
            self.driver = "mem0 2.2.1: Memory.search over PGVector"
        except ImportError:
            self.driver = "mem0 2.2.1's SQL of PGVector.search alone, through asyncpg: psycopg is not installed"
        connection = await asyncpg.connect(self._url)
        try:
            if self._memory is None:
                for statement in CREATE:
                    await connection.execute(statement)
            await connection.execute(COPY_ROWS)
            await connection.execute(f"VACUUM (ANALYZE) {TABLE}")
        finally:
            await connection.close()

    async def index(self) -> float:
        """Build the default index of PGVector; return the seconds that it took."""
        connection = await asyncpg.connect(self._url)
        started = time.perf_counter()
        try:
            await connection.execute("SET maintenance_work_mem = '2GB'")
            await connection.execute(HNSW)
        finally:
            await connection.close()
        return time.perf_counter() - started

    async def search(self, text: str, vector: Vectors, runs: Sequence[str]) -> tuple[list[str], float]:
        """Return the ids that were found, and milliseconds."""
        self._vector = vector.tolist()
        if self._memory is None:
            return await self._by_sql(vector, runs)
        return await asyncio.to_thread(self._by_memory, text, runs)

    def close(self) -> None:
        """Close its connections."""
        if self._memory is not None:
            self._memory.vector_store.connection_pool.close()

    def _by_memory(self, text: str, runs: Sequence[str]) -> tuple[list[str], float]:
        said = io.StringIO()  # it logs an advertisement when a search is slow
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            started = time.perf_counter()
            found = self._memory.search(text, top_k=TOP_K, filters={"agent_id": "nexus", "room": {"in": list(runs)}})
            took = time.perf_counter() - started
        return [row["id"] for row in found["results"]], took * 1000

    async def _by_sql(self, vector: Vectors, runs: Sequence[str]) -> tuple[list[str], float]:
        connection = await asyncpg.connect(self._url)
        try:
            started = time.perf_counter()
            rows = await connection.fetch(SEARCH, json.dumps(vector.tolist()), list(runs), POOL)
            took = time.perf_counter() - started
        finally:
            await connection.close()
        return [str(row["id"]) for row in rows[:TOP_K]], took * 1000

    def _made(self) -> Any:
        from mem0 import Memory  # noqa: PLC0415
        from mem0.vector_stores.pgvector import PGVector  # noqa: PLC0415

        asked = self

        class Search(Memory):  # type: ignore[misc]
            """Build it without the factories, which would open clients of their own."""

            def __init__(self) -> None:
                self.config = SimpleNamespace(llm=SimpleNamespace(config={}))
                self.embedding_model = SimpleNamespace(embed=lambda _text, _action: asked._vector)
                self.vector_store = PGVector(
                    None, TABLE, WIDTH, None, None, None, None, False, False, connection_string=asked._url
                )
                self.api_version, self.collection_name = "v1.1", TABLE
                self.llm = self.db = self._entity_store = self.reranker = self.custom_instructions = None

        memory = Search()
        memory.vector_store._ensure_collection()
        return memory

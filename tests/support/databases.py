"""Databases for tests: one migrated cluster for a run, copied for each worker, and a clone for each test."""

import asyncio
import fcntl
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import asyncpg
import pytest

from composer.settings.server_urls import ServerUrl
from composer.stores.database.postgres import SERVICE_ROLE
from composer.stores.database.schema import apply_migrations
from composer.stores.embedded import servers as embedded
from composer.stores.embedded.servers import EmbeddedServers, Servers

TEMPLATE: Final = "template"  # the migrated, empty database that every test's database is cloned from
# Empty all tables of tenants, as only their owner can: the audit log refuses it otherwise.
EMPTY_TENANTS: Final = ";".join(
    (
        *(f"ALTER TABLE audit_{name} DISABLE TRIGGER USER" for name in ("events", "seals", "anchors")),
        "TRUNCATE tenants CASCADE",
        *(f"ALTER TABLE audit_{name} ENABLE TRIGGER USER" for name in ("events", "seals", "anchors")),
    )
)
# What the planner knows of a table that has been in use for a while: then Nexus lets the server keep its plans.
STATISTICS: Final = (
    "SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', '{table}', 'relpages', 100, "
    "'reltuples', 5000::real)"
)
# What is lost when the machine goes down is tested with servers of their own.
# Statistics stay as the template has them.
FAST_POSTGRES: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_compression": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}
FIRST_OWN_OID: Final = 16_384  # types below are PostgreSQL's own (FirstNormalObjectId)


def make_cluster(folder: Path) -> Path:
    """Make the files of a cluster with the template database, once for all workers that share `folder`.

    Returns the folder to copy. Copying it takes a tenth of the time of `initdb` and the migrations.
    """
    home = folder / "cluster"
    with (folder / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "made").exists():
            shutil.rmtree(home, ignore_errors=True)
            servers = EmbeddedServers(home)
            try:
                asyncio.run(make_template(servers.start().database_url))
            finally:
                servers.stop()
            (home / "made").touch()
    return home / "postgres"


def copy_cluster(home: Path, cluster: Path) -> Path:
    """Make the data folder `home` with a copy of the cluster, as if servers had run there before; returns `home`."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(cluster), str(home / "postgres")], check=True)
    return home


def start_fast(servers: EmbeddedServers) -> Servers:
    """Start servers whose data may be lost when the machine goes down."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "POSTGRES_SETTINGS", embedded.POSTGRES_SETTINGS | FAST_POSTGRES)
        return servers.start()


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of this run that all its workers share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def database_url(base: str, name: str) -> ServerUrl:
    """The URL of another database on the same server."""
    return ServerUrl(base).with_database(name)


def service_url(url: str | None) -> ServerUrl:
    """The URL by which the service logs in to a database of the tests' own servers, from its owner's URL."""
    assert url is not None
    return ServerUrl(url).with_login(SERVICE_ROLE)


async def make_template(base: str) -> None:
    """Make and migrate the template database on the server at `base`."""
    await run_sql(base, f"CREATE DATABASE {TEMPLATE}")
    await apply_migrations(database_url(base, TEMPLATE))
    for table in ("messages", "episodes", "recall_index", "recall_terms"):
        await run_sql(database_url(base, TEMPLATE), STATISTICS.format(table=table))


async def run_sql(url: str, statement: str) -> None:
    """Run one statement on a connection of its own."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@asynccontextmanager
async def clone(base: str, name: str, template: str = TEMPLATE) -> AsyncIterator[ServerUrl]:
    """Clone a database under a new name, give its URL, and drop it afterwards."""
    await run_sql(base, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    try:
        yield database_url(base, name)
    finally:
        await run_sql(base, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def shared_type_lookups() -> Iterator[None]:
    """Let all connections of this process share what asyncpg looks up about PostgreSQL's own types.

    asyncpg asks the server again on each connection, several times and with a query of 4 ms, and the suite opens
    thousands. Types of extensions and schemas have other numbers in other databases, and are looked up as ever.
    """
    found: dict[tuple[int, ...], Sequence[Any]] = {}
    look_up: Any = vars(asyncpg.Connection)["_introspect_types"]

    async def cached(connection: asyncpg.Connection, oids: Sequence[int], timeout: float) -> Any:  # noqa: ASYNC109 (asyncpg's own)
        key = tuple(sorted(oids))
        if not all(oid < FIRST_OWN_OID for oid in key):
            return await look_up(connection, oids, timeout)
        if key not in found:
            found[key], statement = await look_up(connection, oids, timeout)
            return found[key], statement
        return found[key], SimpleNamespace(name="cached")  # no statement was sent, so none has to be prepared again

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncpg.Connection, "_introspect_types", cached)
        yield

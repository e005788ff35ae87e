"""The schema: every statement fits it, tenants are isolated in it, and each migration is applied once."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from composer.errors import Misconfigured
from composer.stores.database import postgres, schema
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.schema import apply_migrations, pending_migrations
from composer.stores.embedded.servers import Servers
from sql.loader import Migration, migrations, queries
from tests.support.databases import database_url, service_url
from tests.support.schema_dump import dump
from tests.support.waiting import TIMEOUT_SECONDS

ACME, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)
# Tables of the installation, not of one tenant. None of them contains text of a person.
OF_NO_TENANT = {"deployment", "job_runs", "oauth_clients", "schema_migrations", "tenants"}


@asynccontextmanager
async def connected(url: str, role: str | None = None) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, server_settings={} if role is None else {"role": role})
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def empty_url(servers: Servers) -> AsyncIterator[str]:
    """A database in which no migration was ever applied."""
    async with connected(servers.database_url) as admin:
        await admin.execute("CREATE DATABASE unmigrated")
        yield database_url(servers.database_url, "unmigrated")
        await admin.execute("DROP DATABASE unmigrated WITH (FORCE)")


async def test_every_statement_fits_the_schema_for_the_service(fresh_url: str) -> None:
    async with connected(fresh_url, "nexus_service") as connection:
        for name, query in queries().items():
            if name.startswith("schema_"):
                continue  # the ledger belongs to the migrating user
            try:
                await connection.prepare(query.sql)
            except asyncpg.PostgresError as error:
                pytest.fail(f"{name}: {error}")
    async with connected(fresh_url) as connection:
        for name in (name for name in queries() if name.startswith("schema_")):
            await connection.prepare(queries()[name].sql)


async def test_every_tenant_table_enforces_row_level_security_for_its_owner_too(fresh_url: str) -> None:
    async with connected(fresh_url) as connection:
        rows = await connection.fetch(
            """
            SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
                   EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'
                           AND a.attnotnull) AS of_tenant,
                   ARRAY(SELECT p.polcmd::text || p.polpermissive::text || pg_get_expr(p.polqual, p.polrelid)
                         FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polname <> 'owner') AS policies,
                   ARRAY(SELECT p.polcmd::text FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polname = 'owner'
                         AND p.polroles = ARRAY[c.relowner]) AS of_owner
            FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
            """
        )
    tables = {row["relname"]: row for row in rows}
    assert tables.keys() >= OF_NO_TENANT
    for name, row in tables.items():
        if name in OF_NO_TENANT:
            continue
        assert row["of_tenant"], name
        assert row["relrowsecurity"], name
        assert row["relforcerowsecurity"], name
        assert row["policies"] == ["*true(tenant_id = current_tenant())"], name
        assert row["of_owner"] == (["r"] if name in ("turns", "unread_files") else []), name  # tenants_with_open_work


async def test_every_key_and_unique_index_begins_with_the_tenant(fresh_url: str) -> None:
    async with connected(fresh_url) as connection:
        rows = await connection.fetch(
            """
            SELECT c.relname AS table, i.relname AS index, a.attname AS first
            FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS c ON c.oid = x.indrelid
            LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
            WHERE c.relnamespace = 'public'::regnamespace AND (x.indisunique OR x.indisprimary)
            """
        )
    wrong = {row["index"] for row in rows if row["first"] != "tenant_id"}
    assert wrong == {
        "deployment_pkey",
        "job_runs_pkey",
        "oauth_clients_pkey",
        "schema_migrations_pkey",
        "tenants_slug_key",
    }
    assert len(rows) > 20


async def test_every_reference_stays_within_its_tenant(fresh_url: str) -> None:
    async with connected(fresh_url) as connection:
        rows = await connection.fetch(
            """
            SELECT k.conname, a.attname AS first, b.attname AS target
            FROM pg_constraint AS k
            JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
            JOIN pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]
            WHERE k.contype = 'f'
            """
        )
    assert rows
    assert {(row["first"], row["target"]) for row in rows} == {("tenant_id", "tenant_id")}


async def people_of(connection: asyncpg.Connection, tenant: uuid.UUID | None) -> list[str]:
    async with connection.transaction():
        if tenant is not None:
            await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
        return [row["name"] for row in await connection.fetch("SELECT name FROM users ORDER BY name")]


async def create_two_tenants(connection: asyncpg.Connection) -> None:
    """Create two tenants with one person each, as the service does."""
    for tenant, name in ((ACME, "alice"), (OTHER, "olga")):
        async with connection.transaction():
            await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
            await connection.execute("INSERT INTO tenants VALUES ($1, $2, now())", tenant, name)
            await connection.execute("INSERT INTO users VALUES ($1, gen_random_uuid(), $2, false, now())", tenant, name)


async def test_the_service_sees_only_its_tenant_and_nothing_without_one(fresh_url: str) -> None:
    async with connected(fresh_url, "nexus_service") as service:
        await create_two_tenants(service)
        assert await people_of(service, ACME) == ["alice"]
        assert await people_of(service, OTHER) == ["olga"]
        assert await people_of(service, None) == []
        assert await people_of(service, uuid.uuid4()) == []


async def test_without_a_tenant_no_table_shows_the_service_a_row(fresh_url: str) -> None:
    async with connected(fresh_url, "nexus_service") as service:
        tables = [
            row["relname"]
            for row in await service.fetch(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
            )
        ]
        await create_two_tenants(service)
        for table in set(tables) - OF_NO_TENANT:
            assert await service.fetchval(f"SELECT count(*) FROM {table}") == 0, table


async def execute_for(service: asyncpg.Connection, tenant: uuid.UUID | None, statement: str, *args: object) -> None:
    async with service.transaction():
        if tenant is not None:
            await service.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
        await service.execute(statement, *args)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO users (tenant_id, id, name, created_at) VALUES ($1, gen_random_uuid(), 'mallory', now())",
        "INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)"
        " VALUES ($1, 'memory', gen_random_uuid(), 'message', gen_random_uuid())",
        "UPDATE users SET tenant_id = $1",
    ],
)
@pytest.mark.parametrize("tenant", [ACME, None])
async def test_the_service_can_write_nothing_for_another_tenant(
    fresh_url: str, statement: str, tenant: uuid.UUID | None
) -> None:
    async with connected(fresh_url, "nexus_service") as service:
        await create_two_tenants(service)
        if tenant is None and statement.startswith("UPDATE"):
            assert await service.execute(statement, OTHER) == "UPDATE 0"
        else:
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                await execute_for(service, tenant, statement, OTHER)
        assert await people_of(service, OTHER) == ["olga"]
        assert await people_of(service, ACME) == ["alice"]


async def test_the_service_can_change_and_delete_nothing_of_another_tenant(fresh_url: str) -> None:
    async with connected(fresh_url, "nexus_service") as service:
        await create_two_tenants(service)
        async with service.transaction():
            await service.execute(f"SET LOCAL nexus.tenant = '{ACME}'")
            assert await service.execute("UPDATE users SET name = 'x' WHERE tenant_id = $1", OTHER) == "UPDATE 0"
            assert await service.execute("DELETE FROM settings WHERE tenant_id = $1", OTHER) == "DELETE 0"
        assert await people_of(service, OTHER) == ["olga"]


async def test_the_service_cannot_disable_row_level_security(fresh_url: str) -> None:
    async with connected(fresh_url, "nexus_service") as service:
        for statement in (
            "ALTER TABLE users DISABLE ROW LEVEL SECURITY",
            "DROP POLICY tenant ON users",
            "TRUNCATE users",
            "CREATE TABLE mine (id int)",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await service.execute(statement)
        rows = await service.fetch("SELECT name FROM users")
        assert rows == []


async def test_the_tenant_setting_ends_with_its_transaction(fresh_url: str) -> None:
    database = await PostgresDatabase.open(service_url(fresh_url), connections=1)
    try:
        async with connected(fresh_url, "nexus_service") as service:
            await create_two_tenants(service)
        async with database.transaction(ACME) as tx:
            assert await tx.people.find_user_ids("console", "acme", []) == {}
        with pytest.raises(RuntimeError, match="stop here"):
            await failing(database)
        async with database._pool.acquire() as connection:
            assert await connection.fetchval("SELECT current_tenant()") is None
            assert await connection.fetchval("SELECT count(*) FROM users") == 0
    finally:
        await database.close()


async def failing(database: PostgresDatabase) -> None:
    async with database.transaction(ACME):
        raise RuntimeError("stop here")


async def test_a_connection_that_is_never_released_does_not_block_shutdown(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "CLOSE_TIMEOUT_SECONDS", 0.1)
    database = await PostgresDatabase.open(service_url(fresh_url), connections=2)
    lost = database.connection()
    connection = await lost.__aenter__()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await database.close()
    with pytest.raises(asyncpg.InterfaceError):
        await connection.fetchval("SELECT 1")


# --- migrations ------------------------------------------------------------------------------------------------------


async def test_a_migrated_database_is_complete_and_migrating_again_changes_nothing(fresh_url: str) -> None:
    before = dump(fresh_url)
    assert await pending_migrations(fresh_url) == []
    assert await apply_migrations(fresh_url) == []
    assert dump(fresh_url) == before


async def test_the_ledger_has_every_migration_with_its_checksum(empty_url: str) -> None:
    assert await pending_migrations(empty_url) == [step.name for step in migrations()]
    taken = await apply_migrations(empty_url)
    assert taken == [f"{step.version:04}_{step.name}" for step in migrations()]
    async with connected(empty_url) as connection:
        rows = await connection.fetch("SELECT version, name, checksum FROM schema_migrations ORDER BY version")
    assert [tuple(row) for row in rows] == [(step.version, step.name, step.checksum) for step in migrations()]


async def test_processes_that_migrate_at_once_apply_each_migration_once(empty_url: str) -> None:
    taken = await asyncio.gather(*(apply_migrations(empty_url) for _ in range(4)))
    assert sorted(len(steps) for steps in taken) == [0, 0, 0, len(migrations())]


async def test_a_migration_changed_after_it_was_applied_is_refused(fresh_url: str) -> None:
    async with connected(fresh_url) as connection:
        await connection.execute("UPDATE schema_migrations SET checksum = 'another' WHERE version = 68")
    with pytest.raises(Misconfigured, match=r"Migration 0068 \(baseline\) was changed after it had been applied"):
        await apply_migrations(fresh_url)


async def test_a_database_of_a_newer_nexus_is_refused(fresh_url: str) -> None:
    async with connected(fresh_url) as connection:
        await connection.execute("INSERT INTO schema_migrations VALUES (9999, 'later', 'x')")
    with pytest.raises(Misconfigured, match=r"migration 9999 \(later\), which this version of Nexus does not know"):
        await apply_migrations(fresh_url)


async def test_a_stored_vector_gets_its_sign_and_magnitude(fresh_url: str) -> None:
    async with connected(fresh_url) as connection:
        await connection.execute("INSERT INTO tenants (tenant_id, slug, created_at) VALUES ($1, 't', now())", ACME)
        await connection.execute(
            "INSERT INTO recall_index (tenant_id, id, kind, namespace, visibility, at, length, embedding)"
            " SELECT $1, gen_random_uuid(), 'episode', 'room:here', 'public', now(), 1, v"
            " FROM (VALUES ('[0.1,-0.1,2,-2]'::vector), (NULL)) AS of_it (v)",
            ACME,
        )
        rows = await connection.fetch("SELECT signature::text, magnitude::text FROM recall_index ORDER BY 1")
    assert [tuple(row) for row in rows] == [("1010", "0011"), (None, None)]


@pytest.fixture
def broken_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a migration that fails halfway."""
    step = Migration(migrations()[-1].version + 1, "broken", "CREATE TABLE half (id int); SELECT 1 / 0", "x")
    monkeypatch.setattr(schema, "migrations", lambda: (*migrations(), step))


@pytest.mark.usefixtures("broken_step")
async def test_a_failed_migration_leaves_no_change_and_no_ledger_row(fresh_url: str) -> None:
    before = dump(fresh_url)
    for _ in range(2):
        with pytest.raises(asyncpg.DivisionByZeroError):
            await apply_migrations(fresh_url)
    assert dump(fresh_url) == before
    assert await pending_migrations(fresh_url) == ["broken"]

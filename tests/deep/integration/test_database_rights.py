"""What a session of the service can do by SQL: its statements, and nothing else. It is a login of its own, so that no
statement leads back to the owner."""

import math
import re
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from bot.console import operations
from bot.console.doctor import run_doctor
from composer.errors import Misconfigured, for_operator
from composer.model import tenant_id
from composer.operations import upkeep
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.schema import prepare
from composer.stores.embedded.servers import Servers
from sql.loader import queries
from tests.support.databases import database_url, run_sql, service_url
from tests.support.harness import AppHarness, open_harness

ACME, UMBRELLA = tenant_id("acme"), tenant_id("umbrella")
OF_THE_OWNER = frozenset(
    {
        "schema_record",
        "backup_begin",
        "restore_end",
    }
)


@pytest.fixture
async def service(harness: AppHarness) -> AsyncIterator[asyncpg.Connection]:
    """A session of the service, with two tenants in the database."""
    await harness.say("alice", "secret of acme zqacme", room="general", workspace="acme")
    await harness.say("bob", "secret of umbrella zqumb", room="general", workspace="umbrella")
    connection = await asyncpg.connect(service_url(harness.app.settings.database_url), statement_cache_size=0)
    yield connection
    await connection.close()


async def refused(service: asyncpg.Connection, statement: str) -> None:
    """Check that a statement lacks a right."""
    try:
        await service.execute(statement)
    except asyncpg.InsufficientPrivilegeError:
        return
    pytest.fail(f"the service may: {statement}")


FORBIDDEN: Final = [
    "SET row_security = off; SELECT count(*) FROM messages",
    "ALTER TABLE messages DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE messages NO FORCE ROW LEVEL SECURITY",
    "DROP POLICY tenant ON messages",
    "CREATE TABLE public.evil (x int)",
    "CREATE TEMP TABLE evil (x int)",
    "CREATE FUNCTION public.evil() RETURNS uuid LANGUAGE sql RETURN null::uuid",
    "CREATE SCHEMA evil",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "COPY tenants TO '/tmp/evil'",
    "DROP EXTENSION vector CASCADE",
    "SET SESSION AUTHORIZATION postgres",
    "SET ROLE postgres",
    "UPDATE tenants SET slug = slug || 'x'",
    "DELETE FROM tenants",
    "INSERT INTO schema_migrations VALUES (99, 'evil', '')",
    "UPDATE schema_migrations SET checksum = ''",
    "DELETE FROM schema_migrations",
    "TRUNCATE messages CASCADE",
    "DELETE FROM users",
    "CREATE ROLE evil SUPERUSER",
    "ALTER ROLE nexus_service BYPASSRLS",
    "ALTER SYSTEM SET log_statement = 'all'",
    f"ALTER ROLE nexus_service SET nexus.tenant = '{ACME}'",
]


async def test_a_session_of_the_service_may_do_none_of_these(service: asyncpg.Connection) -> None:
    for statement in FORBIDDEN:
        await refused(service, statement)


UNREADABLE: Final = [
    "pg_read_file('/etc/passwd')",
    "pg_ls_dir('/')",
    "lo_import('/etc/passwd')",
    "lo_create(0)",
    "lo_creat(-1)",
    "lo_from_bytea(0, 'x')",
    "lo_put(1, 0, 'x')",
    "lo_open(1, 131072)",
    "lo_unlink(1)",
    "lowrite(0, 'x')",
    "(SELECT count(*) FROM pg_statistic)",
    "(SELECT count(*) FROM pg_authid)",
    "(SELECT count(*) FROM pg_stat_activity)",
    "(SELECT count(*) FROM pg_stat_get_activity(NULL))",
]


async def test_a_session_of_the_service_may_read_none_of_these(service: asyncpg.Connection) -> None:
    for expression in UNREADABLE:
        await refused(service, f"SELECT {expression}")


async def test_no_statement_turns_the_service_into_somebody_else(service: asyncpg.Connection) -> None:
    for statement in ("RESET ROLE", "RESET SESSION AUTHORIZATION", "SET ROLE NONE", "DISCARD ALL", "RESET ALL"):
        await service.execute(statement)
        who = await service.fetchrow("SELECT current_user, session_user, current_setting('is_superuser')")
        assert who is not None
        assert tuple(who) == ("nexus_service", "nexus_service", "off")
        assert await service.fetchval("SELECT count(*) FROM messages") == 0
    roles = "SELECT count(*) FROM pg_roles WHERE rolname <> session_user AND pg_has_role(session_user, oid, 'MEMBER')"
    assert await service.fetchval(roles) == 0
    definers = "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
    assert {row["proname"] for row in await service.fetch(definers)} == {
        "audit_cut",
        "analyze_grown_table",
        "delete_unused_of_import",
        "tenants_with_open_work",
    }


async def test_a_wrong_tenant_setting_shows_nothing(service: asyncpg.Connection) -> None:
    for setting in ("", str(uuid.UUID(int=0))):
        async with service.transaction():
            await service.execute(f"SET LOCAL nexus.tenant = '{setting}'")
            assert await service.fetchval("SELECT count(*) FROM messages") == 0
    with pytest.raises(asyncpg.InvalidTextRepresentationError):
        await service.execute("SET nexus.tenant = 'x'; SELECT count(*) FROM messages")


async def test_statistics_show_no_values_of_any_tenant(harness: AppHarness, service: asyncpg.Connection) -> None:
    await run_sql(str.__str__(harness.app.settings.database_url or ""), "ANALYZE")
    shown = await service.fetch("SELECT tablename FROM pg_stats WHERE schemaname = 'public'")
    with_tenant = {row["tablename"] for row in shown} - {
        "tenants",
        "deployment",
        "job_runs",
        "schema_migrations",
        "oauth_clients",
    }
    assert with_tenant == set(), "row-level security hides the statistics of tables"


async def test_one_tenant_reaches_nothing_of_another(harness: AppHarness, service: asyncpg.Connection) -> None:
    theirs = await harness_value(harness, "SELECT id FROM users WHERE tenant_id = $1 LIMIT 1", UMBRELLA)
    inserting = "INSERT INTO users (tenant_id, id, name, created_at) VALUES ($1, $2, 'x', now())"
    denied = [
        (inserting, UMBRELLA, uuid.UUID(int=9)),
        (f"{inserting} ON CONFLICT (tenant_id, id) DO UPDATE SET name = 'x'", UMBRELLA, theirs),
        ("UPDATE users SET tenant_id = $1 WHERE id <> $2", UMBRELLA, theirs),
    ]
    for statement, *values in denied:
        async with service.transaction():
            await service.execute(f"SET LOCAL nexus.tenant = '{ACME}'")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with service.transaction():
                    await service.execute(statement, *values)
    async with service.transaction():
        await service.execute(f"SET LOCAL nexus.tenant = '{ACME}'")
        assert await service.fetchval("SELECT count(*) FROM messages WHERE tenant_id = $1", UMBRELLA) == 0
        assert await service.fetchval("SELECT count(*) FROM messages WHERE text LIKE '%zqumb%'") == 0
        assert await service.fetchval("SELECT count(*) FROM messages WHERE text LIKE '%zqacme%'") == 1


async def harness_value(harness: AppHarness, statement: str, *values: object) -> object:
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return await connection.fetchval(statement, *values)
    finally:
        await connection.close()


async def test_the_service_has_the_rights_of_its_statements(service: asyncpg.Connection) -> None:
    """EXPLAIN checks the rights, and runs nothing."""
    for name, query in queries().items():
        if name in OF_THE_OWNER or re.search(r"^SHOW", query.sql, re.MULTILINE):
            continue
        try:
            await service.execute(f"EXPLAIN (GENERIC_PLAN) {query.sql}")
        except asyncpg.InsufficientPrivilegeError as error:
            pytest.fail(f"{name}: {error}")


async def test_the_service_has_no_right_that_no_statement_uses(service: asyncpg.Connection) -> None:
    text = "\n".join(query.sql for name, query in queries().items() if name not in OF_THE_OWNER)
    used = {("UPDATE", table) for table in re.findall(r"\bUPDATE (?!SET|SKIP|OF)(\w+)", text)}
    used |= {("DELETE", table) for table in re.findall(r"\bDELETE FROM (\w+)", text)}
    used |= {("INSERT", table) for table in re.findall(r"\bINSERT INTO (\w+)", text)}
    for query in queries().values():
        for table in re.findall(r"\bINSERT INTO (\w+)(?=.*\bDO UPDATE\b)", query.sql, re.DOTALL):
            used.add(("UPDATE", table))
        if re.search(r"\bFOR (UPDATE|SHARE|NO KEY UPDATE|KEY SHARE)\b", query.sql):
            used |= {("UPDATE", table) for table in re.findall(r"\b(?:FROM|JOIN) (\w+)", query.sql)}
    by_triggers = {("INSERT", "summaries_due"), ("UPDATE", "summaries_due"), ("INSERT", "webhook_changes")}
    used |= by_triggers  # as the service
    granted = await service.fetch(
        "SELECT privilege_type, table_name FROM information_schema.role_table_grants "
        "WHERE grantee = 'nexus_service' AND table_schema = 'public' AND privilege_type <> 'SELECT'"
    )
    assert {tuple(row) for row in granted} - used == set()


UNKNOWN: Final = [
    "'room:x', NULL, NULL, NULL, '{}', '{}', '{}', 'nexus'",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    "'room:x', 'private', NULL, NULL, '{}', '{shared}', '{}', 'nexus'",
    "'room:x', 'private', NULL, '{}', '{room:x}', '{shared}', '{}', 'nexus'",
    "'room:x', 'private', '00000000-0000-0000-0000-000000000001', NULL, '{}', '{shared}', '{NULL}', 'nexus'",
    "'room:x', 'public', NULL, '{NULL}', '{}', '{public}', '{}', 'nexus'",
    "'room:x', 'secret', NULL, NULL, '{}', '{public}', '{}', 'nexus'",
    "NULL, 'public', NULL, NULL, '{}', '{public}', '{}', 'nexus'",
    "'room:x', NULL, NULL, NULL, '{room:x}', '{public}', '{}', 'nexus'",
    "'room:x', 'public', NULL, '{claude}', '{}', '{public}', '{}', NULL",
    "'room:x', 'public', NULL, '{*}', '{}', '{public}', '{}', NULL",
    "'room:x', 'public', NULL, NULL, NULL, '{public}', '{}', 'nexus'",
    "'room:x', 'public', NULL, NULL, '{room:x}', NULL, '{}', 'nexus'",
    "'room:x', 'public', NULL, NULL, '{}', '{public}', NULL, 'nexus'",
    "'room:x', 'public', NULL, NULL, '{}', '{public}', '{}', 'nexus', NULL",
    "'room:x', 'public', NULL, NULL, '{}', '{shared}', '{}', 'nexus', '{NULL}'",
    "'room:x', 'secret', NULL, NULL, '{}', '{shared}', '{}', 'nexus', '{room:x}'",
    "'room:x', 'private', '00000000-0000-0000-0000-000000000001', NULL, '{}', '{shared}', "
    "'{00000000-0000-0000-0000-000000000001}', 'nexus', '{room:x}'",
]


async def test_what_is_unknown_may_not_be_read(service: asyncpg.Connection) -> None:
    for values in UNKNOWN:
        assert await service.fetchval(f"SELECT may_read({values})") is False, values


USER = uuid.UUID(int=1)
# Values of each argument of may_read, the unknown among them.
ARGUMENTS: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "namespace": ("text", (None, "room:x")),
    "visibility": ("text", (None, "public", "private", "secret")),
    "user_id": ("uuid", (None, USER)),
    "vendors": ("text[]", (None, [], ["*"], ["nexus"], ["claude"], [None])),
    "pooled": ("text[]", (None, [], ["room:x"], [None])),
    "visibilities": ("text[]", (None, [], ["public"], [None])),
    "readers": ("uuid[]", (None, [], [USER], [None])),
    "vendor": ("text", (None, "nexus")),
    "rooms": ("text[]", (None, [], ["room:x"], [None])),
}


async def test_the_predicate_is_the_rule_for_every_mixture_of_known_and_unknown(service: asyncpg.Connection) -> None:
    lists = ", ".join(
        f"(VALUES {', '.join(f'({n}, {_literal(value)}::{kind})' for n, value in enumerate(values))}) AS t{m}(n, v)"
        for m, (kind, values) in enumerate(ARGUMENTS.values())
    )
    numbers = ", ".join(f"t{m}.n AS n{m}" for m in range(len(ARGUMENTS)))
    judged = await service.fetch(
        f"SELECT {numbers}, may_read({', '.join(f't{m}.v' for m in range(len(ARGUMENTS)))}) AS admitted FROM {lists}"
    )
    assert len(judged) == math.prod(len(values) for _, values in ARGUMENTS.values())
    for row in judged:
        given = {name: values[row[f"n{m}"]] for m, (name, (_, values)) in enumerate(ARGUMENTS.items())}
        assert row["admitted"] is _admitted(given), given
    assert {row["admitted"] for row in judged} == {True, False}


def _literal(value: object) -> str:
    if isinstance(value, list):
        return "'{" + ",".join("NULL" if each is None else str(each) for each in value) + "}'"
    return "NULL" if value is None else f"'{value}'"


def _admitted(given: dict[str, Any]) -> bool:
    """The rule (docs/architecture.md), where nothing is equal to the unknown."""
    namespace, visibility, user_id, vendors, pooled, visibilities, readers, vendor, rooms = given.values()
    if any(each is None for each in (namespace, visibility, pooled, visibilities, readers, vendor, rooms)):
        return False
    if vendors is not None and not {"*", vendor} & {*vendors}:
        return False
    outside = not {None, namespace} & {*rooms}
    own = visibility == "private" and user_id is not None and user_id in readers and outside
    opened = visibility in ("public", "shared") and namespace in rooms
    return visibility in visibilities or own or namespace in pooled or opened


TAKEN_OVER: Final = {
    "row_security": "off",
    "search_path": "nowhere",
    "default_transaction_read_only": "on",
    "local_preload_libraries": "evil",
}


async def test_what_the_service_sets_for_its_own_login_ends_with_the_owners_next_start(
    settings: Settings,
) -> None:
    """No right can be taken that forbids a login ALTER ROLE … SET for itself: the owner takes back what it did."""
    async with open_harness(settings) as harness:
        await harness.say("alice", "hello", room="general")
        url = harness.app.settings.database_url
        service = await asyncpg.connect(service_url(url))
        for name, value in TAKEN_OVER.items():
            await service.execute(f"ALTER ROLE nexus_service SET {name} = '{value}'")
            here = await service.fetchval("SELECT quote_ident(current_database())")
            await service.execute(f"ALTER ROLE nexus_service IN DATABASE {here} SET {name} = '{value}'")
        await service.execute("ALTER ROLE nexus_service PASSWORD 'evil'")
        await service.close()
    async with open_harness(settings) as harness:
        await harness.say("alice", "hello again", room="general")
        assert await harness_value(harness, "SELECT count(*) FROM messages") == 2
        assert await harness_value(harness, "SELECT count(*) FROM pg_db_role_setting WHERE setrole <> 0") == 0


@pytest.mark.own_database
async def test_row_security_is_on_whatever_the_login_has_set(harness: AppHarness) -> None:
    await harness.say("alice", "secret", room="general", workspace="acme")
    url = service_url(harness.app.settings.database_url)
    service = await asyncpg.connect(url)
    await service.execute("ALTER ROLE nexus_service SET row_security = off")
    try:
        database = await PostgresDatabase.open(url, connections=1)
        try:
            async with database.connection() as connection:
                assert await connection.fetchval("SELECT count(*) FROM messages") == 0  # refused where it is off
        finally:
            await database.close()
        await service.execute("ALTER ROLE nexus_service SET search_path = nowhere")
        with pytest.raises(Misconfigured, match="does not find Nexus's tables") as refusal:
            await PostgresDatabase.open(url, connections=1)
        assert "run nexus migrate" in for_operator(refusal.value)
    finally:
        await service.execute("ALTER ROLE nexus_service RESET ALL")
        await service.close()


# --- logins ----------------------------------------------------------------------------------------------------------


async def test_the_service_refuses_to_work_as_the_owner(fresh_url: ServerUrl) -> None:
    with pytest.raises(Misconfigured, match="a login of its own"):
        await PostgresDatabase.open(fresh_url, connections=1)


@pytest.mark.own_database
async def test_an_older_installation_gets_the_login_at_its_next_start(settings: Settings, servers: Servers) -> None:
    await run_sql(servers.database_url, "ALTER ROLE nexus_service NOLOGIN")  # as the first migration made it
    try:
        async with open_harness(settings) as harness:
            await harness.say("alice", "hello", room="general")
    finally:
        await run_sql(servers.database_url, "ALTER ROLE nexus_service LOGIN")


@pytest.fixture
async def theirs(servers: Servers) -> AsyncIterator[ServerUrl]:
    """The owner's URL, with a password, of an empty database on somebody else's server."""
    await run_sql(servers.database_url, "CREATE ROLE keeper LOGIN PASSWORD 'ow/ner' CREATEROLE")
    await run_sql(servers.database_url, "GRANT nexus_service TO keeper WITH ADMIN OPTION")
    await run_sql(servers.database_url, "CREATE DATABASE theirs OWNER keeper")
    url = database_url(servers.database_url, "theirs")
    await run_sql(url, "CREATE EXTENSION vector")
    yield ServerUrl(url.with_login("keeper").replace("keeper@", "keeper:ow%2Fner@"))
    await run_sql(servers.database_url, "DROP DATABASE theirs WITH (FORCE)")
    for role in ("keeper_service", "keeper"):
        await run_sql(servers.database_url, f"DROP ROLE IF EXISTS {role}")


async def test_migrate_creates_the_services_login_and_run_needs_no_other(
    settings: Settings, theirs: ServerUrl, servers: Servers
) -> None:
    login = ServerUrl(theirs.replace("keeper:ow%2Fner@", "keeper_service:se%2Fcr%40t@"))
    alone = settings.model_copy(update={"database_url": login})
    both = alone.model_copy(update={"owner_database_url": theirs})
    await run_sql(servers.database_url, "CREATE ROLE keeper_service LOGIN")
    with pytest.raises(Misconfigured, match="run nexus migrate with NEXUS_OWNER_DATABASE_URL"):
        async with open_harness(alone):
            pass
    await run_sql(servers.database_url, "DROP ROLE keeper_service")
    await upkeep.migrate(both)
    stored = await asyncpg.connect(servers.database_url)
    try:
        verifier = await stored.fetchval("SELECT rolpassword FROM pg_authid WHERE rolname = 'keeper_service'")
    finally:
        await stored.close()
    assert verifier.startswith("SCRAM-SHA-256$4096:")
    async with open_harness(alone) as harness:
        await harness.say("alice", "hello", room="general")
        assert not harness.app.may_back_up
    checks = {check.name: check for check in await run_doctor(alone)}
    assert [check for check in checks.values() if check.ok is False] == []
    assert "the login keeper_service" in checks["tenant isolation"].detail
    async with open_harness(both) as harness:
        assert harness.app.may_back_up


async def test_what_only_the_owner_may_do_names_the_owners_setting(
    settings: Settings, theirs: ServerUrl, tmp_path: Path
) -> None:
    login = ServerUrl(theirs.replace("keeper:ow%2Fner@", "keeper_service:secret@"))
    alone = settings.model_copy(update={"database_url": login})
    stranger = ServerUrl(theirs.replace("keeper:ow%2Fner@", "stranger:pass@"))
    with pytest.raises(Misconfigured) as refused:
        await upkeep.migrate(alone.model_copy(update={"owner_database_url": stranger}))
    assert for_operator(refused.value).endswith('role "stranger" does not exist. Check NEXUS_OWNER_DATABASE_URL.')
    await upkeep.migrate(alone.model_copy(update={"owner_database_url": theirs}))
    with pytest.raises(Misconfigured, match="for a backup: set NEXUS_OWNER_DATABASE_URL"):
        await operations.backup(alone, tmp_path / "x.backup")


async def test_the_service_does_not_work_on_the_schema_of_a_newer_nexus(settings: Settings, theirs: ServerUrl) -> None:
    login = ServerUrl(theirs.replace("keeper:ow%2Fner@", "keeper_service:secret@"))
    alone = settings.model_copy(update={"database_url": login})
    await upkeep.migrate(alone.model_copy(update={"owner_database_url": theirs}))
    await run_sql(theirs, "INSERT INTO schema_migrations VALUES (9999, 'later', 'x')")
    newer = "The database has migration 9999 (later), which this version of Nexus does not know"
    with pytest.raises(Misconfigured, match=re.escape(newer)):
        await prepare(login, None)
    checks = {check.name: check for check in await run_doctor(alone)}
    assert checks["schema"].detail.startswith(newer)
    assert [name for name, check in checks.items() if check.ok is False] == ["schema"]


async def test_an_owners_url_with_a_password_is_not_enough(theirs: ServerUrl) -> None:
    with pytest.raises(Misconfigured, match="set NEXUS_OWNER_DATABASE_URL to this URL"):
        await prepare(theirs, None)

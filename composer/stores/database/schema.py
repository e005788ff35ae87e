"""The database's schema and logins: migrations, and whom the service works as.

Migrations, backups and restores work as the database's *owner*. The service works as a login of its own, which owns
nothing, can't become another role, and has the rights that its statements use (sql/schema.sql, GRANT).
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import asyncpg
import structlog

from composer.errors import Misconfigured, Unavailable
from composer.settings.server_urls import ServerUrl
from composer.stores.database.postgres import (
    CONNECT_TIMEOUT_SECONDS,
    SERVICE_ROLE,
    SESSION_SETTINGS,
    translate_postgres_errors,
)
from composer.text.counts import counted
from sql.loader import BASELINE, Migration, migrations, queries, upgrade

logger = structlog.get_logger()

LAST_BEFORE_BASELINE: Final = "3f6bbc2b"  # the last commit with the migrations up to 0067
MIGRATION_LOCK: Final = 0x4E65787573  # "Nexus": one process migrates at a time
SCRAM_ROUNDS: Final = 4_096  # as PostgreSQL's own (scram_iterations)
# Roles belong to the cluster and rights on a database to no dump, so this is no migration: it runs at each start of an
# owner, and changes nothing where nothing is to be changed. What only a superuser may do is left out where the owner is
# none. The service may go on reading pg_locks, which shows numbers only. A login may always set defaults for its own
# sessions (ALTER ROLE … SET): what it set is taken back here.
PREPARE_SERVICE_ROLE: Final = """
DO $$
BEGIN
    IF to_regrole('nexus_service') IS NULL THEN
        CREATE ROLE nexus_service LOGIN;
    ELSIF NOT (SELECT rolcanlogin FROM pg_roles WHERE rolname = 'nexus_service') THEN
        ALTER ROLE nexus_service LOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
    NULL;
END
$$;
DO $$
BEGIN
    IF has_database_privilege('nexus_service', current_database(), 'TEMPORARY') THEN
        EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    END IF;
    IF has_schema_privilege('nexus_service', 'public', 'CREATE') THEN
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    END IF;
EXCEPTION WHEN insufficient_privilege OR undefined_object THEN
    NULL;
END
$$;
DO $$
DECLARE
    one record;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        FOR one IN SELECT oid::regprocedure AS name FROM pg_proc
            WHERE pronamespace = 'pg_catalog'::regnamespace
              AND (proname = 'pg_stat_get_activity' OR proname ~ '^lo_' OR proname IN ('loread', 'lowrite'))
              AND has_function_privilege('nexus_service', oid, 'EXECUTE')
        LOOP
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one.name);
        END LOOP;
    END IF;
EXCEPTION WHEN undefined_object THEN
    NULL;
END
$$;
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT r.rolname, d.datname
        FROM pg_db_role_setting AS s
        JOIN pg_roles AS r ON r.oid = s.setrole LEFT JOIN pg_database AS d ON d.oid = s.setdatabase
        WHERE pg_has_role(r.oid, 'nexus_service', 'MEMBER') AND NOT pg_has_role(r.oid, current_user, 'MEMBER')
    LOOP
        BEGIN
            EXECUTE format('ALTER ROLE %I', one.rolname)
                || CASE WHEN one.datname IS NULL THEN '' ELSE format(' IN DATABASE %I', one.datname) END
                || ' RESET ALL';
        EXCEPTION WHEN undefined_object OR invalid_catalog_name OR insufficient_privilege THEN
            NULL;
        END;
    END LOOP;
END
$$;
"""


async def prepare(database_url: ServerUrl, owner_url: ServerUrl | None) -> ServerUrl:
    """Migrate the database as its owner, and return the URL that the service logs in with.

    Without an `owner_url`, `database_url` is the owner's or the service's own. An owner's URL without a password (a
    socket of our own servers, for example) serves for the service's role too. Raises Misconfigured when the service has
    no login, or the schema is not up to date and this login may not change it.
    """
    if owner_url is not None:
        await apply_migrations(owner_url)
        return database_url
    async with _connected(database_url) as connection:
        rights = await connection.fetchrow(queries()["login_rights"].sql)
        if rights is None or not rights["owner"]:
            pending = await _pending(connection)
            if pending:
                raise Misconfigured(
                    f"The database's schema is {counted(len(pending), 'migration')} behind: run nexus migrate with "
                    "NEXUS_OWNER_DATABASE_URL, the URL of the database's owner."
                )
            await _require_known(connection)
            return database_url
        await _migrate(connection)
    if database_url.password:
        raise Misconfigured(
            "NEXUS_DATABASE_URL is the URL of the database's owner, and Nexus works only with a login of its own: set "
            "NEXUS_OWNER_DATABASE_URL to this URL and NEXUS_DATABASE_URL to the same one with the user nexus_service "
            "and a new password, then run nexus migrate, which creates that login."
        )
    return database_url.with_login(SERVICE_ROLE)


async def create_login(database_url: ServerUrl, owner_url: ServerUrl) -> None:
    """Give the user of `database_url` the service's rights, as the owner; a user that is missing is created. Its
    password is set where the URL has one. PostgreSQL is sent its SCRAM verifier, so that no server's log can have it.
    """
    user = database_url.user
    if user == owner_url.user:
        raise Misconfigured(
            "NEXUS_DATABASE_URL and NEXUS_OWNER_DATABASE_URL name the same user: give the service a login of its own, "
            "for example nexus_service."
        )
    async with _connected(owner_url) as connection:
        name = await connection.fetchval("SELECT quote_ident($1)", user)
        if await connection.fetchval("SELECT to_regrole($1::text)", name) is None:
            await connection.execute(f"CREATE ROLE {name} LOGIN")
        if database_url.password:
            with suppress(asyncpg.InsufficientPrivilegeError):  # somebody else made that role, and sets its password
                await connection.execute(f"ALTER ROLE {name} LOGIN PASSWORD '{_scram_verifier(database_url.password)}'")
        if not await connection.fetchval("SELECT pg_has_role($1::name, $2::name, 'USAGE')", user, SERVICE_ROLE):
            await connection.execute(f"GRANT {SERVICE_ROLE} TO {name}")


def _scram_verifier(password: str) -> str:
    """What PostgreSQL stores of a password (RFC 5803): SCRAM-SHA-256$rounds:salt$stored key:server key."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, SCRAM_ROUNDS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    parts = [base64.b64encode(each).decode() for each in (salt, stored, hmac.digest(salted, b"Server Key", "sha256"))]
    return f"SCRAM-SHA-256${SCRAM_ROUNDS}:{parts[0]}${parts[1]}:{parts[2]}"


async def describe(url: ServerUrl) -> str:
    """The versions of the server and of pgvector. Raises Unavailable, or Misconfigured without pgvector."""
    async with _connected(url) as connection:
        found = await connection.fetchrow(queries()["versions"].sql)
    if found is None or found["vector"] is None:
        raise Misconfigured("The database has no pgvector: install the extension vector on its server.")
    return f"PostgreSQL {found['server']}, pgvector {found['vector']}"


async def pending_migrations(url: str) -> list[str]:
    """Names of the migrations that are not applied to this database."""
    async with _connected(ServerUrl(url)) as connection:
        return await _pending(connection)


async def _pending(connection: asyncpg.Connection) -> list[str]:
    applied = await _ledger(connection)
    return [step.name for step in migrations() if step.version not in applied]


async def _ledger(connection: asyncpg.Connection) -> dict[int, asyncpg.Record]:
    """The applied migrations by version; none in an empty database."""
    if await connection.fetchval(queries()["schema_exists"].sql) is None:
        return {}
    return {row["version"]: row for row in await connection.fetch(queries()["schema_applied"].sql)}


async def require_known_migrations(url: str) -> None:
    """Check that this version knows every migration that is applied. Raises Misconfigured when an applied file was
    changed or the database belongs to a newer Nexus, or to one that is too old to be upgraded."""
    async with _connected(ServerUrl(url)) as connection:
        await _require_known(connection)


async def _require_known(connection: asyncpg.Connection) -> set[int]:
    """The versions of the applied migrations. Raises Misconfigured, as `require_known_migrations`."""
    known = {step.version: step for step in migrations()}
    applied = await _ledger(connection)
    if applied and max(applied) < upgrade().version:
        raise Misconfigured(
            f"The database was made by an early Nexus (migration {max(applied):04}), and this version upgrades "
            f"databases at migration {upgrade().version:04} only: run nexus migrate of the commit "
            f"{LAST_BEFORE_BASELINE} first."
        )
    for version, row in applied.items():
        step = known.get(version)
        if version < BASELINE:
            continue
        if step is None:
            raise Misconfigured(
                f"The database has migration {version:04} ({row['name']}), which this version of Nexus does not know: "
                "install the newer version that made it."
            )
        if step.checksum != row["checksum"]:
            raise Misconfigured(
                f"Migration {version:04} ({row['name']}) was changed after it had been applied: restore the file."
            )
    return set(applied)


async def apply_migrations(url: str) -> list[str]:
    """Apply pending migrations as the owner and return their names.

    Each migration and its ledger row commit together, under one advisory lock. Raises Misconfigured when an
    applied file was changed or the database belongs to a newer Nexus, or to one that is too old to be upgraded;
    Unavailable when it does not answer.
    """
    async with _connected(ServerUrl(url)) as connection:
        return await _migrate(connection)


@asynccontextmanager
async def _connected(url: ServerUrl) -> AsyncIterator[asyncpg.Connection]:
    async with translate_postgres_errors(url):
        connection = await asyncpg.connect(url, server_settings=dict(SESSION_SETTINGS), timeout=CONNECT_TIMEOUT_SECONDS)
    try:
        async with translate_postgres_errors(url):
            yield connection
    finally:
        connection.terminate()


async def _migrate(connection: asyncpg.Connection) -> list[str]:
    await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
    await prepare_role(connection)
    applied = await _require_known(connection)
    taken = []
    for step in migrations():
        if step.version in applied:
            continue
        await apply(connection, step, upgraded=upgrade().version in applied)
        logger.info("migration.applied", version=step.version, name=step.name)
        taken.append(f"{step.version:04}_{step.name}")
    if taken and applied:  # index-only scans of a rewritten table need its visibility map
        await connection.execute("VACUUM (ANALYZE)")
    return taken


async def prepare_role(connection: asyncpg.Connection) -> None:
    """Create the service's role, and take from it what it does not use. Raises Unavailable."""
    try:
        await connection.execute(PREPARE_SERVICE_ROLE)
    except asyncpg.InternalServerError as error:  # the same role is changed for another database of the cluster
        raise Unavailable("Another Nexus is starting on the same database server; try again.") from error


async def apply(connection: asyncpg.Connection, step: Migration, *, upgraded: bool = False) -> None:
    """Apply one migration and record it, in one transaction. `upgraded`: a database of the last version before the
    baseline gets the baseline by the upgrade to it."""
    async with connection.transaction():
        if upgraded and step.version == BASELINE:
            await connection.execute(upgrade().sql)
        else:
            await connection.execute(step.sql)
        await connection.execute(queries()["schema_record"].sql, step.version, step.name, step.checksum)

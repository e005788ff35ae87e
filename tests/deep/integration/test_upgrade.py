"""A database at migration 0067 is upgraded to the baseline and keeps all of its data; nothing is done a second time."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg
import pytest

from bot.commands.idempotency import begin_command
from bot.console.doctor import run_doctor
from bot.script.places import incoming, place_of
from composer.errors import Misconfigured
from composer.model import CONSOLE, Workspace, room_id, tenant_id
from composer.settings import Settings
from composer.stores.audit_keys import AuditKeyRing
from composer.stores.backup.backup import DatabaseBackup
from composer.stores.database import schema
from composer.stores.database.schema import apply_migrations, pending_migrations, prepare_role
from composer.stores.embedded.servers import Servers
from sql import loader
from sql.loader import migrations, queries, upgrade
from tests.support.databases import database_url, run_sql
from tests.support.embedder import HashedWords
from tests.support.harness import START, open_harness
from tests.support.schema_dump import dump

ROWS: Final = Path(__file__).parents[2] / "support" / "rows_0067.sql"
# The tables that the upgrade drops.
DROPPED: Final = frozenset(
    {
        *("api_requests", "app_codes", "changes", "commands", "connections", "digests", "extraction_batches"),
        *("gateway_forgets", "link_codes", "login_links", "membership_readings", "personal_settings", "voice_notes"),
        "workspaces",
    }
)
RENAMED: Final = {"team_invites": "invites"}
HERE = Workspace(tenant_id("acme"), "acme", CONSOLE, "acme")
GENERAL, RANDOM = room_id(HERE, "general"), room_id(HERE, "random")
COMMAND = incoming(HERE, place_of("general", None, None), "alice", "/nexus help", START, id="c1")


@pytest.fixture(params=["superuser", "bound"])
async def owner(request: pytest.FixtureRequest, servers: Servers) -> AsyncIterator[str]:
    """An owner of databases: a superuser, or a user whom row-level security binds too."""
    if request.param == "superuser":
        yield "postgres"
        return
    make = "CREATE ROLE tenant LOGIN NOSUPERUSER NOBYPASSRLS CREATEROLE; GRANT nexus_service TO tenant"
    await run_sql(servers.database_url, make)
    yield "tenant"
    await run_sql(servers.database_url, "DROP ROLE tenant")


@asynccontextmanager
async def own_database(servers: Servers, name: str, owner: str) -> AsyncIterator[str]:
    await run_sql(servers.database_url, f"CREATE DATABASE {name} OWNER {owner}")
    await run_sql(database_url(servers.database_url, name), "CREATE EXTENSION vector")
    try:
        yield urlsplit(servers.database_url)._replace(netloc=f"{owner}@", path=f"/{name}").geturl()
    finally:
        await run_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


async def fill(servers: Servers, url: str) -> None:
    """Fill a database as a Nexus of migration 0067 did."""
    async with connected(url) as connection:
        await prepare_role(connection)
        await connection.execute(upgrade().schema)
    await run_sql(
        database_url(servers.database_url, urlsplit(url).path.removeprefix("/")), ROWS.read_text(encoding="utf-8")
    )


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def contents(url: str) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables but the ledger."""
    async with connected(url) as connection:
        names = [row["name"] for row in await connection.fetch(queries()["table_names"].sql)]
        return {
            name: [json.loads(row[0]) for row in await connection.fetch(f"SELECT to_jsonb(t)::text FROM {name} AS t")]
            for name in names
            if name != "schema_migrations"
        }


def in_columns_of(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[str]:
    """Rows without the columns that others lack, in order."""
    kept = {name for other in others for name in other}
    return sorted(json.dumps({name: row[name] for name in sorted(row) if name in kept}) for row in rows)


async def test_an_upgraded_database_has_the_schema_of_a_fresh_one_and_all_of_its_rows(
    servers: Servers, owner: str, fresh_url: str
) -> None:
    async with own_database(servers, "old", owner) as url:
        await fill(servers, url)
        as_superuser = database_url(servers.database_url, "old")
        before = {RENAMED.get(name, name): rows for name, rows in (await contents(as_superuser)).items()}
        assert all(rows for name, rows in before.items() if name != "deployment")
        assert await pending_migrations(url) == [step.name for step in migrations()]
        assert await apply_migrations(url) == [f"{step.version:04}_{step.name}" for step in migrations()]
        upgraded = dump(as_superuser).replace(f" TO {owner} ", " TO postgres ")  # the owner's own policies
        assert upgraded == dump(fresh_url), "upgrade_0067.sql and schema.sql say different things"
        after = await contents(as_superuser)
        assert {name for name, rows in before.items() if rows and name not in after} == DROPPED
        for name in after.keys() & before.keys():
            assert in_columns_of(after[name], before[name]) == in_columns_of(before[name], after[name]), name
        async with connected(as_superuser) as connection:
            ledger = await connection.fetch("SELECT version, name, checksum FROM schema_migrations ORDER BY version")
            moved = await connection.fetchrow(
                "SELECT settings ->> 'trash_days', digest_period, digest_hour FROM users, conversations "
                "WHERE settings_at = '2026-01-05 09:00Z' AND digest_due_at = '2026-01-05 09:00Z'"
            )
        assert tuple(moved or ()) == ("30", "daily", 9), "what was a table of one row for each is a column"
        assert [tuple(row) for row in ledger] == [(step.version, step.name, step.checksum) for step in migrations()]
        assert await apply_migrations(url) == []


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("member", [True, False])
async def test_the_session_of_who_has_left_a_project_has_left_it_too(
    servers: Servers, owner: str, member: bool, isolated: bool
) -> None:
    async with own_database(servers, "old", owner) as url:
        await fill(servers, url)
        async with connected(database_url(servers.database_url, "old")) as connection:
            await connection.execute("UPDATE conversations SET pooled = false")
            await connection.execute("UPDATE projects SET isolated = $1", isolated)
            if not member:
                await connection.execute("DELETE FROM project_members")
            await apply_migrations(url)
            session = await connection.fetchrow(
                "SELECT project_id IS NOT NULL AS is_in, pooled FROM conversations WHERE kind = 'session'"
            )
        assert session is not None
        assert tuple(session) == (member or isolated, member)


async def test_a_failed_upgrade_changes_nothing(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    async with own_database(servers, "old", "postgres") as url:
        await fill(servers, url)
        before, rows = dump(url), await contents(url)
        broken = replace(upgrade(), sql=f"{upgrade().sql}; SELECT 1 / 0")
        with monkeypatch.context() as then:
            then.setattr(schema, "upgrade", lambda: broken)
            with pytest.raises(asyncpg.DivisionByZeroError):
                await apply_migrations(url)
        assert (dump(url), await contents(url)) == (before, rows)


async def test_a_database_older_than_0067_is_refused_and_left_alone(servers: Servers, settings: Settings) -> None:
    async with own_database(servers, "old", "postgres") as url:
        await fill(servers, url)
        await run_sql(url, "DELETE FROM schema_migrations WHERE version > 41")
        before = dump(url)
        with pytest.raises(
            Misconfigured, match=r"^The database was made by an early Nexus \(migration 0041\), .* first\.$"
        ):
            await apply_migrations(url)
        checks = {check.name: check for check in await run_doctor(settings.model_copy(update={"database_url": url}))}
        assert checks["schema"].ok is False
        assert checks["schema"].detail.startswith("The database was made by an early Nexus (migration 0041)")
        assert dump(url) == before


async def test_a_migration_after_the_baseline_is_applied_to_a_fresh_and_to_an_upgraded_database(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the first one after the release will be: a file in sql/migrations."""
    here = Path(loader.__file__).parent
    for name in ("queries", "schema.sql", "schema_0067.sql", "upgrade_0067.sql"):
        (tmp_path / name).symlink_to(here / name)
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0069_likes.sql").write_text("CREATE TABLE likes (id int PRIMARY KEY)", encoding="utf-8")
    monkeypatch.setattr(loader, "_HERE", tmp_path)
    loader.migrations.cache_clear()
    try:
        async with own_database(servers, "new", "postgres") as new, own_database(servers, "old", "postgres") as old:
            assert await apply_migrations(new) == ["0068_baseline", "0069_likes"]
            await fill(servers, old)
            assert await apply_migrations(old) == ["0068_baseline", "0069_likes"]
            assert dump(new) == dump(old)
            assert "CREATE TABLE public.likes" in dump(new)
    finally:
        loader.migrations.cache_clear()


async def test_a_backup_of_0067_is_restored_with_the_newest_schema(
    servers: Servers, owner: str, settings: Settings, tmp_path: Path
) -> None:
    keys = AuditKeyRing.load(settings)
    async with own_database(servers, "old", "postgres") as url:
        await fill(servers, url)
        manifest = await DatabaseBackup(url, keys).write(tmp_path / "old.backup", START)
    assert manifest.schema == 67
    async with own_database(servers, "restored", owner) as url:
        assert await DatabaseBackup(url, keys).restore(tmp_path / "old.backup") == manifest
        assert await pending_migrations(url) == []
        here = settings.model_copy(update={"database_url": url})
        async with open_harness(here, embedder=HashedWords()) as harness:
            await harness.app.indexer.catch_up(HERE.tenant_id)
            assert "quokka7" in (await harness.command("alice", "/nexus recall vault", room="general")).text
            async with harness.app.database.transaction(HERE.tenant_id) as tx:
                stored = await tx.conversations.get(GENERAL)
        assert stored is not None
        assert stored.version > 1_000_000_000  # no view that was cached before it is used


async def test_data_of_an_older_nexus_is_read_and_nothing_is_done_a_second_time(
    servers: Servers, owner: str, settings: Settings
) -> None:
    async with own_database(servers, "old", owner) as old_url:
        await fill(servers, old_url)
        AuditKeyRing.load(settings)  # the audit log has rows, so it has a key
        await read_as_before(old_url, settings)


async def read_as_before(old_url: str, settings: Settings) -> None:
    assert len(await apply_migrations(old_url)) == len(migrations())
    async with open_harness(settings.model_copy(update={"database_url": old_url}), embedder=HashedWords()) as harness:
        assert "quokka7" in (await harness.compose("alice", "hello", room="general")).prompt.as_text()
        await harness.app.indexer.catch_up(HERE.tenant_id)
        assert "quokka7" in (await harness.command("alice", "/nexus recall vault", room="general")).text
        history = (await harness.command("alice", "/nexus history tea", room="general")).text
        assert "I drink tea" in history
        assert "I drink cocoa" in history
        assert not await begin_command(harness.app, HERE, COMMAND, {})  # it was run before
        async with harness.app.database.transaction(HERE.tenant_id) as tx:
            assert await tx.notices.begin(GENERAL, "m3", START) is None  # its notice was posted before
            assert await tx.notices.begin(RANDOM, "m4", START) is not None
        pinned = (await harness.command("alice", "/nexus landmark list", room="general")).text
        assert "Fridays" not in pinned


async def test_a_backup_older_than_0067_is_refused(servers: Servers, settings: Settings, tmp_path: Path) -> None:
    keys = AuditKeyRing.load(settings)
    async with own_database(servers, "old", "postgres") as url:
        await fill(servers, url)
        await run_sql(url, "DELETE FROM schema_migrations WHERE version > 41")
        await DatabaseBackup(url, keys).write(tmp_path / "old.backup", START)
    async with own_database(servers, "restored", "postgres") as url:
        with pytest.raises(
            Misconfigured, match=r"old\.backup is from an early Nexus \(schema 41\), .* back up again\.$"
        ):
            await DatabaseBackup(url, keys).restore(tmp_path / "old.backup")

"""A database filled by an older Nexus is migrated to the newest schema, and keeps all of its data."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bot.commands.idempotency import begin_command
from bot.script.places import PLATFORM, incoming, place_of
from composer.model import derived_id, room_namespace
from composer.repositories.erasure import Selection
from composer.settings import Settings
from composer.stores import schema
from composer.stores.audit_keys import AuditKeyRing
from composer.stores.backup import DatabaseBackup
from composer.stores.embedded.servers import Servers
from composer.stores.schema import apply_migrations, pending_migrations
from composer.workspace import Workspace, message_id, room_id, tenant_id, user_id
from sql.loader import migrations
from tests.support.databases import database_url, run_sql
from tests.support.embedder import HashedWords
from tests.support.harness import START, open_harness

pytestmark = pytest.mark.integration

HERE = Workspace(tenant_id("acme"), "acme", PLATFORM, "acme")
GENERAL, RANDOM = room_id(HERE, "general"), room_id(HERE, "random")
ALICE = user_id(HERE, "alice")
MEMORY, LANDMARK, NEWER = (derived_id("test", name) for name in ("memory", "landmark", "newer"))
COMMAND = incoming(HERE, place_of("general", None, None), "alice", "/nexus help", START, id="c1")


def rows_of_0006() -> str:
    """The rows that a Nexus of schema 0006 left, as SQL."""
    t, at, who, first, second = HERE.tenant_id, START, ALICE, room_namespace(GENERAL), room_namespace(RANDOM)
    run = derived_id("command", PLATFORM, "acme", "room", "general", "", "alice", "c1")
    return f"""
    SET nexus.tenant = '{t}';
    INSERT INTO tenants VALUES ('{t}', 'acme', '{at}');
    INSERT INTO workspaces VALUES ('{t}', '{PLATFORM}', 'acme', '{at}');
    INSERT INTO users (tenant_id, id, name, created_at) VALUES ('{t}', '{who}', 'alice', '{at}');
    INSERT INTO identities VALUES ('{t}', '{PLATFORM}', 'acme', 'alice', '{who}');
    INSERT INTO conversations (tenant_id, id, kind, platform, workspace, name, run_id, last_seq, version, created_at,
                               noticed_at, noticed_by)
    VALUES ('{t}', '{GENERAL}', 'room', '{PLATFORM}', 'acme', 'general', '{first}', 1, 1, '{at}', '{at}', '{who}'),
           ('{t}', '{RANDOM}', 'room', '{PLATFORM}', 'acme', 'random', '{second}', 1, 1, '{at}', NULL, NULL);
    INSERT INTO members (tenant_id, conversation_id, user_id, joined_at)
    VALUES ('{t}', '{GENERAL}', '{who}', '{at}'), ('{t}', '{RANDOM}', '{who}', '{at}');
    INSERT INTO messages (tenant_id, id, conversation_id, seq, external_id, at, user_id, author, text, run_id,
                          visibility)
    VALUES ('{t}', '{message_id(GENERAL, "m1")}', '{GENERAL}', 1, 'm1', '{at}', '{who}', 'alice',
            'the vault opens with quokka7', '{first}', 'public'),
           ('{t}', '{message_id(RANDOM, "m2")}', '{RANDOM}', 1, 'm2', '{at}', '{who}', 'alice',
            'nothing of note', '{second}', 'public');
    INSERT INTO memories (tenant_id, id, run_id, user_id, visibility, kind, text, author, origin, created_at,
                          superseded_by, valid_to)
    VALUES ('{t}', '{MEMORY}', '{first}', '{who}', 'public', 'preference', 'I drink tea', 'alice', 'extracted', '{at}',
            '{NEWER}', '{at}'),
           ('{t}', '{NEWER}', '{first}', '{who}', 'public', 'preference', 'I drink cocoa', 'alice', 'extracted', '{at}',
            NULL, NULL);
    INSERT INTO recall_index (tenant_id, id, kind, run_id, user_id, visibility, at, expires_at, length)
    VALUES ('{t}', '{MEMORY}', 'memory', '{first}', '{who}', 'public', '{at}', '{at}', 1);
    INSERT INTO recall_terms (tenant_id, run_id, term, item_id, tf, length, visibility, user_id, at, expires_at)
    VALUES ('{t}', '{first}', 'tea', '{MEMORY}', 1, 1, 'public', '{who}', '{at}', '{at}');
    INSERT INTO landmarks (tenant_id, id, run_id, visibility, text, author, decided_at, retired_at)
    VALUES ('{t}', '{LANDMARK}', '{first}', 'public', 'we ship on Fridays', 'alice', '{at}', '{at}');
    INSERT INTO commands_run (tenant_id, id, run_at) VALUES ('{t}', '{run}', '{at}');
    """


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


async def fill(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill a database as a Nexus of schema 0006 did."""
    with monkeypatch.context() as then:
        then.setattr(schema, "migrations", lambda: migrations()[:6])
        await apply_migrations(url)
    await run_sql(url, rows_of_0006())


async def test_a_backup_of_an_older_nexus_is_restored_with_the_newest_schema(
    servers: Servers, owner: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It ended in an error of the database: what a restore does to the rows named tables that came later.
    keys = AuditKeyRing.load(settings)
    async with own_database(servers, "old", "postgres") as url:
        await fill(url, monkeypatch)
        manifest = await DatabaseBackup(url, keys).write(tmp_path / "old.backup", START)
    assert manifest.schema == 6
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
    servers: Servers, owner: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with own_database(servers, "old", owner) as old_url:
        await fill(old_url, monkeypatch)
        await read_as_before(old_url, settings)


async def read_as_before(old_url: str, settings: Settings) -> None:
    assert len(await apply_migrations(old_url)) == len(migrations()) - 6
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


# DESIGN 8: what somebody has forgotten of a day is gone. A fact that was approved later than it was set counted from
# when it was set, and no more once that time was stored with the fact.
async def test_a_fact_that_was_approved_before_is_forgotten_with_the_day_on_which_it_was_set(
    servers: Servers, owner: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, fact, namespace = HERE.tenant_id, derived_id("test", "fact"), room_namespace(GENERAL)
    sent, approved = START + timedelta(days=1), START + timedelta(days=9)
    async with own_database(servers, "old", owner) as url:
        await fill(url, monkeypatch)
        with monkeypatch.context() as then:
            then.setattr(schema, "migrations", lambda: migrations()[:57])
            await apply_migrations(url)
        await run_sql(
            url,
            f"""
            SET nexus.tenant = '{t}';
            INSERT INTO facts (tenant_id, id, namespace, user_id, visibility, key, value, author, origin, valid_from,
                               trust)
            VALUES ('{t}', '{fact}', '{namespace}', '{ALICE}', 'public', 'vault', '"zq"', 'alice', 'console',
                    '{approved}', 'guest');
            INSERT INTO quarantine (tenant_id, id, kind, item_id, namespace, user_id, visibility, trust, detail, text,
                                    author, origin, at, state)
            VALUES ('{t}', '{derived_id("test", "row")}', 'fact', '{fact}', '{namespace}', '{ALICE}', 'public', 'guest',
                    '', '', 'alice', 'console', '{sent}', 'approved');
            """,
        )
        await apply_migrations(url)
        async with (
            open_harness(settings.model_copy(update={"database_url": url}), embedder=HashedWords()) as harness,
            harness.app.database.transaction(t) as tx,
        ):
            _, items = await tx.erasure.select(Selection((ALICE,), until=sent + timedelta(days=1)))
    assert ("fact", fact) in items

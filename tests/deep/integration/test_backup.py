"""A backup captures one moment, is restored whole or refused, and is restored only into an empty database."""

import asyncio
import json
import os
import re
import resource
import warnings
import zipfile
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from bot.console import operations, schedule
from bot.console.doctor import run_doctor
from composer.errors import BadInput, Misconfigured, NotFound, Refused, Unavailable, for_operator
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from composer.stores.audit_keys import AuditKeyRing
from composer.stores.backup.backup import BACKUP_MANIFEST, DUMP, INSTALLATION_TABLES, DatabaseBackup, _failed
from composer.stores.embedded.servers import Servers
from tests.integration.test_credentials import new_key, redeem, resolve, signed_in
from tests.support.databases import EMPTY_TENANTS, database_url, run_sql, service_url
from tests.support.harness import START, AppHarness, open_harness

ROOM = {"room": "general"}


@pytest.fixture
async def empty_url(servers: Servers) -> AsyncIterator[str]:
    """The address of an empty database."""
    await run_sql(servers.database_url, "DROP DATABASE IF EXISTS restored WITH (FORCE)")
    await run_sql(servers.database_url, "CREATE DATABASE restored")
    yield database_url(servers.database_url, "restored")
    await run_sql(servers.database_url, "DROP DATABASE IF EXISTS restored WITH (FORCE)")


async def content(url: str) -> dict[str, Any]:
    """Every row of every table, except what differs between installations, and versions, which a restore increases."""
    connection = await asyncpg.connect(url)
    try:
        names = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {
            name: await connection.fetch(
                f"SELECT (to_jsonb(t) - 'version')::text AS row FROM \"{name}\" AS t ORDER BY 1"
            )
            for (name,) in names
            if name not in INSTALLATION_TABLES
        }
    finally:
        await connection.close()


async def test_what_a_killed_process_left_of_a_backup_goes_with_the_old_ones(
    harness: AppHarness, tmp_path: Path
) -> None:
    # docs/operations.md: backups hold what was erased until they are pruned. These were never pruned.
    made = [f"nexus-2026050{day}T060000Z.backup" for day in range(1, 4)]
    parts = [f"{made[-1]}.{word}.part" for word in ("abandoned", "written")]
    for name in (*made, *parts, "mine.backup.old.part"):
        (tmp_path / name).touch()
    for name in (parts[0], "mine.backup.old.part"):
        os.utime(tmp_path / name, (0, 0))
    harness.app.backup.prune(tmp_path, 2)
    assert names(tmp_path) == ["mine.backup.old.part", *made[1:], parts[1]]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.backup*"))


async def add_sample_data(harness: AppHarness) -> None:
    await harness.say("alice", "I prefer tea in the morning.", **ROOM)
    await harness.command("alice", "/nexus remember the vault is quokka7", dm="nexus")
    await harness.ask("alice", "@nexus what do I prefer?", **ROOM)


async def test_a_restore_brings_back_everything_that_was_backed_up(
    harness: AppHarness, settings: Settings, empty_url: str, tmp_path: Path
) -> None:
    await add_sample_data(harness)
    assert settings.database_url is not None
    before = await content(settings.database_url)
    manifest = await harness.app.backup.write(tmp_path / "one.backup", START)
    assert manifest.rows > 10
    assert (tmp_path / "one.backup").stat().st_mode & 0o77 == 0, "others could read it"
    await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(tmp_path / "one.backup")
    assert await content(empty_url) == before
    target = settings.model_copy(update={"database_url": empty_url})
    checks = {check.name: check for check in await run_doctor(target)}
    assert checks["restored"].ok
    assert "unchanged since" in checks["restored"].detail
    assert checks["tenant isolation"].ok
    async with open_harness(target, clock=harness.clock) as restored:
        assert "quokka7" in (await restored.command("alice", "/nexus recall vault", dm="nexus")).text
        assert "tea" in (await restored.ask("alice", "@nexus what do I prefer in the morning?", **ROOM)).text
    assert "and changed since" in {check.name: check for check in await run_doctor(target)}["restored"].detail


async def test_a_restored_backup_of_older_table_names_counts_as_unchanged(
    harness: AppHarness, settings: Settings, empty_url: str, tmp_path: Path
) -> None:
    await add_sample_data(harness)
    await harness.app.backup.write(tmp_path / "one.backup", START)
    await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(tmp_path / "one.backup")
    await run_sql(
        empty_url,
        "UPDATE deployment SET value = (replace(replace(value::text, '\"commands\"', '\"commands_run\"'), "
        "'\"retractions\"', '\"withdrawals\"'))::jsonb WHERE key = 'restored'",
    )
    checks = await run_doctor(settings.model_copy(update={"database_url": empty_url}))
    assert "unchanged since" in {check.name: check for check in checks}["restored"].detail


async def test_a_backup_is_consistent_while_the_service_runs(
    harness: AppHarness, empty_url: str, tmp_path: Path
) -> None:
    await add_sample_data(harness)

    async def send_messages() -> None:
        for n in range(30):
            await harness.say("bob", f"Remark number {n} goes on.", **ROOM)

    path = tmp_path / "busy.backup"
    _, manifest = await asyncio.gather(send_messages(), harness.app.backup.write(path, START))
    assert (
        await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(path) == manifest
    )  # which compares every table's rows


async def test_a_restore_into_a_used_database_is_refused(
    harness: AppHarness, settings: Settings, tmp_path: Path
) -> None:
    await add_sample_data(harness)
    assert settings.database_url is not None
    await harness.app.backup.write(tmp_path / "one.backup", START)
    before = await content(settings.database_url)
    with pytest.raises(Refused, match="into an empty database"):
        await DatabaseBackup(settings.database_url, AuditKeyRing.load(settings)).restore(tmp_path / "one.backup")
    assert await content(settings.database_url) == before


async def test_a_restore_into_a_database_with_foreign_tables_is_refused(
    harness: AppHarness, empty_url: str, tmp_path: Path
) -> None:
    await harness.app.backup.write(tmp_path / "one.backup", START)
    await run_sql(empty_url, "CREATE TABLE theirs AS SELECT 1 AS n")
    with pytest.raises(Refused, match="into an empty database"):
        await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(tmp_path / "one.backup")
    assert list(await content(empty_url)) == ["theirs"]


async def test_a_migrated_database_without_messages_counts_as_empty(
    harness: AppHarness, servers: Servers, empty_url: str, tmp_path: Path
) -> None:
    await add_sample_data(harness)
    await harness.app.backup.write(tmp_path / "one.backup", START)
    await run_sql(servers.database_url, "DROP DATABASE restored")
    await run_sql(servers.database_url, "CREATE DATABASE restored TEMPLATE template")
    assert (
        await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(tmp_path / "one.backup")
    ).rows > 10


async def test_a_backup_that_somebody_else_wrote_needs_trust(
    harness: AppHarness, empty_url: str, tmp_path: Path
) -> None:
    await add_sample_data(harness)
    path, forged = tmp_path / "one.backup", tmp_path / "forged.backup"
    manifest = await harness.app.backup.write(path, START)
    own, foreign = AuditKeyRing.load(harness.app.settings), AuditKeyRing(["another installation's key"])
    claims = asdict(manifest) | {"taken_at": "2020-01-01T00:00:00+00:00"}
    signatures = (
        claims,  # of another text
        claims | {"signature": ""},
        claims | {"signature": "no hex"},
        claims | {"key_id": foreign.current_id, "signature": foreign.sign(manifest.signed_text).hex()},
        {key: value for key, value in claims.items() if key not in ("key_id", "signature")},  # of old
    )
    for written in signatures:
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(forged, "w") as new:
            new.writestr(DUMP, old.read(DUMP))
            new.writestr(BACKUP_MANIFEST, json.dumps(written))
        with pytest.raises(Refused, match="anybody may have written it"):
            await DatabaseBackup(empty_url, own).restore(forged)
        assert await content(empty_url) == {}
    with pytest.raises(Refused, match="anybody may have written it"):
        await DatabaseBackup(empty_url, foreign).restore(path)
    assert (await DatabaseBackup(empty_url, own).restore(forged, trust=True)).rows == manifest.rows


class Meanwhile(AuditKeyRing):
    """Keys that do something right after a backup was found to be signed with them."""

    do: Callable[[], object]

    def verify(self, key_id: str, text: bytes, signature: bytes) -> bool | None:
        verified = super().verify(key_id, text, signature)
        self.do()
        return verified


async def test_what_is_restored_is_the_file_that_was_checked(
    harness: AppHarness, settings: Settings, empty_url: str, tmp_path: Path
) -> None:
    await add_sample_data(harness)
    path, other = tmp_path / "one.backup", tmp_path / "other.backup"
    manifest = await harness.app.backup.write(path, START)
    await harness.say("alice", "the vault is numbat3", **ROOM)
    await harness.app.backup.write(other, START)
    keys = Meanwhile.load(harness.app.settings)
    backup = DatabaseBackup(empty_url, keys)

    def change_in_place(at: int) -> None:
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"????")

    for at in (5_000, path.stat().st_size // 2):
        whole = path.read_bytes()
        keys.do = lambda at=at: change_in_place(at)  # type: ignore[misc]
        with pytest.raises((BadInput, Unavailable)):
            await backup.restore(path)
        assert await content(empty_url) == {}
        path.write_bytes(whole)
    keys.do = lambda: os.replace(other, path)
    assert await backup.restore(path) == manifest
    assert "numbat3" not in str(await content(empty_url))


@pytest.mark.parametrize(
    ("parts", "compression"),
    [
        ([DUMP], zipfile.ZIP_STORED),
        ([DUMP, BACKUP_MANIFEST, "../evil"], zipfile.ZIP_STORED),
        ([DUMP, DUMP, BACKUP_MANIFEST], zipfile.ZIP_STORED),
        ([DUMP, BACKUP_MANIFEST], zipfile.ZIP_DEFLATED),
    ],
)
async def test_a_backup_has_two_parts_as_they_are(
    harness: AppHarness, empty_url: str, tmp_path: Path, parts: list[str], compression: int
) -> None:
    path, forged = tmp_path / "one.backup", tmp_path / "forged.backup"
    await harness.app.backup.write(path, START)
    old, new = zipfile.ZipFile(path), zipfile.ZipFile(forged, "w", compression)
    with old, new, warnings.catch_warnings(action="ignore"):
        for name in parts:
            new.writestr(name, old.read(name) if name in (DUMP, BACKUP_MANIFEST) else b"evil")
    with pytest.raises(BadInput, match="is not a backup of Nexus"):
        await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(forged, trust=True)
    huge = {BACKUP_MANIFEST: b"[" * 2**21, DUMP: b""}
    with zipfile.ZipFile(forged, "w") as new:
        for name, text in huge.items():
            new.writestr(name, text)
    with pytest.raises(BadInput, match="is not a backup of Nexus"):
        await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(forged, trust=True)
    assert await content(empty_url) == {}


async def test_nothing_of_a_backup_is_executed_or_created_but_its_rows(
    harness: AppHarness, settings: Settings, empty_url: str, tmp_path: Path
) -> None:
    await add_sample_data(harness)
    assert settings.database_url is not None
    evil = """
        CREATE TABLE marks (mark text);
        CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO marks VALUES (current_user); RETURN NEW; END $$;
        CREATE TRIGGER evil BEFORE UPDATE ON conversations FOR EACH ROW EXECUTE FUNCTION evil();
        CREATE POLICY evil ON messages USING (true);
        GRANT UPDATE ON tenants TO nexus_service;
        CREATE OR REPLACE FUNCTION current_tenant() RETURNS uuid LANGUAGE sql STABLE
            RETURN (SELECT tenant_id FROM tenants LIMIT 1);
    """
    await run_sql(settings.database_url, evil)
    restoring = DatabaseBackup(empty_url, AuditKeyRing.load(settings))
    await harness.app.backup.write(tmp_path / "evil.backup", START)
    with pytest.raises(BadInput, match=r"a table that Nexus does not know \(marks\)"):
        await restoring.restore(tmp_path / "evil.backup", trust=True)
    assert await content(empty_url) == {}
    await run_sql(settings.database_url, "DROP TRIGGER evil ON conversations; DROP TABLE marks")
    await harness.app.backup.write(tmp_path / "evil.backup", START)
    await restoring.restore(tmp_path / "evil.backup", trust=True)
    connection = await asyncpg.connect(empty_url)
    try:
        assert await connection.fetchval("SELECT to_regproc('evil')") is None
        assert await connection.fetchval("SELECT count(*) FROM pg_policies WHERE policyname = 'evil'") == 0
        assert not await connection.fetchval("SELECT has_table_privilege('nexus_service', 'tenants', 'UPDATE')")
        assert await connection.fetchval("SELECT current_tenant()") is None
    finally:
        await connection.close()


async def test_a_damaged_backup_is_refused_and_changes_nothing(
    harness: AppHarness, empty_url: str, tmp_path: Path
) -> None:
    await add_sample_data(harness)
    path = tmp_path / "one.backup"
    await harness.app.backup.write(path, START)
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"no zip at all", whole[:5000] + b"????" + whole[5004:]):
        path.write_bytes(damage)
        with pytest.raises(BadInput):
            await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(path)
    with pytest.raises(BadInput, match="can't be read"):
        await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(tmp_path / "none.backup")
    assert await content(empty_url) == {}


@pytest.fixture
async def server(servers: Servers) -> AsyncIterator[Callable[[str], str]]:
    """A PostgreSQL server that somebody else runs: the extension and the service's role exist, the user is not a
    superuser, and a password is required. Gives the address of one of two empty databases."""
    make = """
        CREATE ROLE keeper LOGIN PASSWORD 'se/cr@t' NOSUPERUSER BYPASSRLS CREATEROLE CREATEDB;
        GRANT nexus_service TO keeper
    """
    await run_sql(servers.database_url, make)
    for name in ("theirs", "spare"):
        await run_sql(servers.database_url, f"CREATE DATABASE {name} OWNER keeper")
        await run_sql(database_url(servers.database_url, name), "CREATE EXTENSION vector")
    parts = urlsplit(servers.database_url)
    yield lambda name: parts._replace(netloc="keeper:se%2Fcr%40t@", path=f"/{name}").geturl()
    for name in ("theirs", "spare"):
        await run_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")
    await run_sql(servers.database_url, "DROP ROLE keeper")


def _with_owner(settings: Settings, owner: str) -> Settings:
    return settings.model_copy(
        update={"database_url": service_url(owner), "owner_database_url": ServerUrl(owner)},
    )


async def test_a_user_who_is_not_a_superuser_can_back_up_and_restore_on_an_external_server(
    settings: Settings, server: Callable[[str], str], tmp_path: Path
) -> None:
    target, path = _with_owner(settings, server("theirs")), tmp_path / "one.backup"
    async with open_harness(target) as harness:
        await add_sample_data(harness)

        async def send_messages() -> None:
            for n in range(5):
                await harness.say("bob", f"Remark number {n} goes on.", **ROOM)

        _, written = await asyncio.gather(send_messages(), operations.backup(target, path))
        with pytest.raises(Misconfigured) as caught:
            await harness.app.backup.test_restore(path)
        assert re.search(r"superuser do it beforehand .*template1", for_operator(caught.value))
    with pytest.raises(Refused, match="into an empty database"):
        await operations.restore(target, path)
    spare = _with_owner(settings, server("spare"))
    for emptied in (False, True):  # also into a database in which Nexus has created its tables
        if emptied:
            await run_sql(server("spare"), EMPTY_TENANTS)
        assert (await operations.restore(spare, path))["rows"] == written["rows"]
        checks = {check.name: check for check in await run_doctor(spare)}
        assert "unchanged since" in checks["restored"].detail
        assert [check for check in checks.values() if check.ok is False] == []
    async with open_harness(spare, clock=harness.clock) as harness:
        assert "quokka7" in (await harness.command("alice", "/nexus recall vault", dm="nexus")).text


async def test_a_backup_by_a_user_bound_by_row_level_security_is_refused(
    servers: Servers, settings: Settings, server: Callable[[str], str], tmp_path: Path
) -> None:
    await run_sql(servers.database_url, "ALTER ROLE keeper NOBYPASSRLS")
    with pytest.raises(Misconfigured, match="ALTER ROLE … BYPASSRLS"):
        await DatabaseBackup(server("theirs"), AuditKeyRing.load(settings)).write(tmp_path / "one.backup", START)
    assert names(tmp_path) == []


async def test_a_backup_from_a_newer_nexus_is_refused(harness: AppHarness, empty_url: str, tmp_path: Path) -> None:
    path, newer = tmp_path / "one.backup", tmp_path / "newer.backup"
    manifest = await harness.app.backup.write(path, START)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(newer, "w") as new:
        new.writestr(DUMP, old.read(DUMP))
        new.writestr(BACKUP_MANIFEST, json.dumps(asdict(manifest) | {"schema": 9_999}))
    with pytest.raises(Misconfigured, match="from a newer Nexus"):
        await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(newer, trust=True)
    assert await content(empty_url) == {}


async def test_a_full_disk_is_reported_and_leaves_no_partial_backup(harness: AppHarness, tmp_path: Path) -> None:
    await add_sample_data(harness)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))
    try:
        with pytest.raises(BadInput, match="can't be written"):
            await harness.app.backup.write(tmp_path / "one.backup", START)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("line", "kind", "sentence"),
    [
        ('could not extend file "base/5/1": No space left on device', Unavailable, "no disk space left"),
        (
            'relation "messages" already exists',
            Unavailable,
            r'^pg_restore failed: relation "messages" already exists\.$',
        ),
    ],
)
def test_the_error_of_a_postgres_program_becomes_one_sentence(line: str, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        raise _failed("pg_restore", f"pg_restore: error: could not execute query: ERROR:  {line}")


async def test_the_daily_backup_is_tested_and_old_backups_are_deleted(settings: Settings) -> None:
    async with open_harness(settings.model_copy(update={"backups": 2})) as harness:
        await add_sample_data(harness)
        assert "no backup yet" in (await schedule.run(harness.app, "restore-test", START)).message
        for day in (1, 2, 3, 3):
            outcome = await schedule.run(harness.app, "backup", START.replace(day=day, hour=6))
            assert outcome.state == "done"
        names = sorted(path.name for path in (settings.home / "backups").iterdir())
        assert names == ["nexus-20260502T060000Z.backup", "nexus-20260503T060000Z.backup"]
        outcome = await schedule.run(harness.app, "restore-test", START)
        assert outcome.state == "done"
        assert outcome.message.startswith("nexus-20260503T060000Z.backup is whole")
        (settings.home / "backups" / names[-1]).write_bytes(b"rotten")
        assert (await schedule.run(harness.app, "restore-test", START)).state == "failed"


async def test_a_restore_keeps_keys_and_ends_what_was_signed_in(
    harness: AppHarness, settings: Settings, empty_url: str, tmp_path: Path
) -> None:
    made, cookie = await new_key(harness), await signed_in(harness)
    link = (await harness.command("alice", "/nexus login", dm="nexus")).text.partition("code=")[2].split()[0]
    await harness.app.backup.write(tmp_path / "one.backup", START)
    await DatabaseBackup(empty_url, AuditKeyRing.load(harness.app.settings)).restore(tmp_path / "one.backup")
    target = settings.model_copy(update={"database_url": empty_url})
    checks = {check.name: check for check in await run_doctor(target)}
    assert checks["restored"].ok
    async with open_harness(target, clock=harness.clock) as restored:
        assert await resolve(restored, made.text) is not None
        assert await resolve(restored, None, cookie) is None, "who signed out since the backup stays signed out"
        with pytest.raises(NotFound):
            await redeem(restored, link)

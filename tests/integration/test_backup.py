"""A backup is of one moment, whole or refused, and goes only where nothing is."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bot.console import operations, schedule
from composer.errors import BadInput, Refused
from composer.settings import Settings
from composer.stores.backup import OWN, DatabaseBackup
from composer.stores.embedded import Servers
from tests.conftest import START, Stage, _admin, database_url, stage_on

pytestmark = pytest.mark.integration

ROOM = {"room": "general"}


@pytest.fixture
async def empty_url(servers: Servers) -> AsyncIterator[str]:
    """A database with nothing in it."""
    await _admin(servers.database_url, "DROP DATABASE IF EXISTS restored WITH (FORCE)")
    await _admin(servers.database_url, "CREATE DATABASE restored")
    yield database_url(servers.database_url, "restored")
    await _admin(servers.database_url, "DROP DATABASE IF EXISTS restored WITH (FORCE)")


async def content(url: str) -> dict[str, Any]:
    """Every row of every table, but what each installation says of itself, and versions, which a restore lets grow."""
    connection = await asyncpg.connect(url)
    try:
        names = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {
            name: await connection.fetch(
                f"SELECT (to_jsonb(t) - 'version')::text AS row FROM \"{name}\" AS t ORDER BY 1"
            )
            for (name,) in names
            if name not in OWN
        }
    finally:
        await connection.close()


async def furnish(stage: Stage) -> None:
    await stage.say("alice", "I prefer tea in the morning.", **ROOM)
    await stage.command("alice", "/nexus remember the vault is quokka7", dm="nexus")
    await stage.ask("alice", "@nexus what do I prefer?", **ROOM)


async def test_what_is_restored_is_what_was_backed_up(
    stage: Stage, settings: Settings, empty_url: str, tmp_path: Path
) -> None:
    await furnish(stage)
    assert settings.database_url is not None
    before = await content(settings.database_url)
    manifest = await stage.app.backup.write(tmp_path / "one.backup", START)
    assert manifest.rows > 10
    assert (tmp_path / "one.backup").stat().st_mode & 0o77 == 0, "others could read it"
    await DatabaseBackup(empty_url).restore(tmp_path / "one.backup")
    assert await content(empty_url) == before
    there = settings.model_copy(update={"database_url": empty_url})
    checks = {check.name: check for check in await operations.doctor(there)}
    assert checks["restored"].ok
    assert "just as it was" in checks["restored"].said
    assert checks["tenants apart"].ok
    async with stage_on(there, clock=stage.clock) as restored:
        assert "quokka7" in (await restored.command("alice", "/nexus recall vault", dm="nexus")).text
        assert "tea" in (await restored.ask("alice", "@nexus what do I prefer in the morning?", **ROOM)).text
    assert "lived on" in {check.name: check for check in await operations.doctor(there)}["restored"].said


async def test_a_backup_is_of_one_moment_while_the_service_runs(stage: Stage, empty_url: str, tmp_path: Path) -> None:
    await furnish(stage)

    async def go_on() -> None:
        for n in range(30):
            await stage.say("bob", f"Remark number {n} goes on.", **ROOM)

    path = tmp_path / "busy.backup"
    _, manifest = await asyncio.gather(go_on(), stage.app.backup.write(path, START))
    assert await DatabaseBackup(empty_url).restore(path) == manifest  # which compares every table's rows


async def test_nothing_is_restored_over_anything(stage: Stage, settings: Settings, tmp_path: Path) -> None:
    await furnish(stage)
    assert settings.database_url is not None
    await stage.app.backup.write(tmp_path / "one.backup", START)
    before = await content(settings.database_url)
    with pytest.raises(Refused, match="into an empty place only"):
        await DatabaseBackup(settings.database_url).restore(tmp_path / "one.backup")
    assert await content(settings.database_url) == before


async def test_a_database_of_others_is_left_alone(stage: Stage, empty_url: str, tmp_path: Path) -> None:
    await stage.app.backup.write(tmp_path / "one.backup", START)
    await _admin(empty_url, "CREATE TABLE theirs AS SELECT 1 AS n")
    with pytest.raises(Refused, match="into an empty place only"):
        await DatabaseBackup(empty_url).restore(tmp_path / "one.backup")
    assert list(await content(empty_url)) == ["theirs"]


async def test_a_migrated_database_in_which_nothing_was_said_counts_as_empty(
    stage: Stage, servers: Servers, empty_url: str, tmp_path: Path
) -> None:
    await furnish(stage)
    await stage.app.backup.write(tmp_path / "one.backup", START)
    await _admin(servers.database_url, "DROP DATABASE restored")
    await _admin(servers.database_url, "CREATE DATABASE restored TEMPLATE template")
    assert (await DatabaseBackup(empty_url).restore(tmp_path / "one.backup")).rows > 10


async def test_a_damaged_backup_is_refused_and_changes_nothing(stage: Stage, empty_url: str, tmp_path: Path) -> None:
    await furnish(stage)
    path = tmp_path / "one.backup"
    await stage.app.backup.write(path, START)
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"no zip at all", whole[:5000] + b"????" + whole[5004:]):
        path.write_bytes(damage)
        with pytest.raises(BadInput):
            await DatabaseBackup(empty_url).restore(path)
    with pytest.raises(BadInput, match="can't be read"):
        await DatabaseBackup(empty_url).restore(tmp_path / "none.backup")
    assert await content(empty_url) == {}


async def test_the_daily_backup_is_rehearsed_and_old_ones_go(settings: Settings) -> None:
    async with stage_on(settings.model_copy(update={"backups": 2})) as stage:
        await furnish(stage)
        assert "no backup yet" in (await schedule.run(stage.app, "restore-test", START)).said
        for day in (1, 2, 3, 3):
            outcome = await schedule.run(stage.app, "backup", START.replace(day=day, hour=6))
            assert outcome.state == "done"
        names = sorted(path.name for path in (settings.home / "backups").iterdir())
        assert names == ["nexus-20260502T060000Z.backup", "nexus-20260503T060000Z.backup"]
        outcome = await schedule.run(stage.app, "restore-test", START)
        assert outcome.state == "done"
        assert outcome.said.startswith("nexus-20260503T060000Z.backup is whole")
        (settings.home / "backups" / names[-1]).write_bytes(b"rotten")
        assert (await schedule.run(stage.app, "restore-test", START)).state == "failed"

"""Backups: one file with the whole database as of one moment, and a manifest to check a restored database against.

The programs of the PostgreSQL wheel are used for embedded and for external servers. The file is a zip of
`database.dump` (pg_dump's custom format) and `manifest.json`.
"""

import asyncio
import hashlib
import json
import os
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg

from composer.errors import BadInput, Misconfigured, NexusError, Refused, Unavailable
from composer.stores.embedded.service_account import binaries, service_account
from composer.stores.postgres import CONNECT_TIMEOUT_SECONDS, apply_migrations, translate_postgres_errors
from sql.loader import migrations, queries

DUMP: Final = "database.dump"
MANIFEST: Final = "manifest.json"
CHUNK_BYTES: Final = 1 << 20
REHEARSAL_DATABASE: Final = "nexus_restore_test"
# The role of the first migration: the dump has grants to it, but no roles. A user without CREATEROLE can restore where
# the role exists.
CREATE_SERVICE_ROLE: Final = """
DO $$
BEGIN
    IF to_regrole('nexus_service') IS NULL THEN
        CREATE ROLE nexus_service NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$
"""
# Everything that the migrations created. Extensions remain: only a superuser could create them again.
DROP_OWN_OBJECTS: Final = """
DO $$
DECLARE
    made record;
BEGIN
    FOR made IN
        SELECT relname AS name FROM pg_class AS c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
               AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('DROP TABLE public.%I CASCADE', made.name);
    END LOOP;
    FOR made IN
        SELECT oid::regprocedure::text AS name FROM pg_proc AS p WHERE pronamespace = 'public'::regnamespace
               AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('DROP ROUTINE %s CASCADE', made.name);
    END LOOP;
END
$$
"""
# Tables of the installation: a restored one has rows of its own there.
INSTALLATION_TABLES: Final = frozenset({"deployment", "schema_migrations", "job_runs"})
# Tables in which a restore is recorded.
AUDIT_TABLES: Final = frozenset({"audit_events", "audit_seals"})
# Tables that a migration renamed since a backup may have been taken.
RENAMED_TABLES: Final = {"commands_run": "commands", "withdrawals": "retractions"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup's content: when it was taken (ISO 8601), the schema's version, rows by table, the dump's SHA-256."""

    taken_at: str
    schema: int
    tables: Mapping[str, int]
    sha256: str

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.tables.values())


class DatabaseBackup:
    """Backs up and restores the database at one address."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def write(self, path: Path, now: datetime) -> Manifest:
        """Write a backup as of one moment, while other processes go on. The file is complete or does not exist.

        Raises BadInput (the file can't be written), Misconfigured (the database user may not read every tenant),
        Unavailable.
        """
        part = path.with_name(path.name + ".part")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                async with self._connected() as connection:
                    await self._require_all_rows(connection)
                    async with connection.transaction(isolation="repeatable_read", readonly=True):
                        manifest = await self._dump(connection, file, now)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            raise BadInput(f"{path} can't be written: {error.strerror or error}.") from error
        finally:
            with suppress(OSError):
                part.unlink()
        return manifest

    async def _dump(self, connection: asyncpg.Connection, file: BinaryIO, now: datetime) -> Manifest:
        snapshot = await connection.fetchval(queries()["backup_snapshot"].sql)
        schema, tables = await connection.fetchval(queries()["schema_version"].sql), await _counts(connection)
        digest = hashlib.sha256()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            with archive.open(DUMP, "w", force_zip64=True) as entry:
                command = ["pg_dump", "--format=custom", "--compress=1", f"--snapshot={snapshot}"]
                async with self._program(*command) as process:
                    assert process.stdout is not None
                    while chunk := await process.stdout.read(CHUNK_BYTES):
                        digest.update(chunk)
                        await asyncio.to_thread(entry.write, chunk)
            manifest = Manifest(now.isoformat(), schema, tables, digest.hexdigest())
            archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1))
        return manifest

    def prune(self, folder: Path, limit: int) -> None:
        """Delete all but the newest `limit` backups of a folder."""
        for path in sorted(folder.glob("nexus-*.backup"))[:-limit]:
            path.unlink(missing_ok=True)

    async def restore(self, path: Path) -> Manifest:
        """Fill an empty database from a backup, all or nothing, and compare it with the manifest.

        Raises BadInput (no backup, or a damaged one), Refused (the database is not empty), Misconfigured (the backup
        is of a newer Nexus), Unavailable.
        """
        manifest = await asyncio.to_thread(read_manifest, path)
        if manifest.schema > migrations()[-1].version:
            raise Misconfigured(f"{path} is from a newer Nexus (schema {manifest.schema}): install that version first.")
        async with self._connected() as connection:
            await self._require_all_rows(connection)
            await self._clear(connection)
        with zipfile.ZipFile(path) as archive, archive.open(DUMP) as entry:
            command = ["pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-comments"]
            async with self._program(*command, feed=True) as process:
                assert process.stdin is not None
                with suppress(ConnectionError):  # it ended early; its error output says why
                    while chunk := await asyncio.to_thread(entry.read, CHUNK_BYTES):
                        process.stdin.write(chunk)
                        await process.stdin.drain()
                process.stdin.close()
        async with self._connected() as connection:
            _require_whole(path, manifest, await _counts(connection))
        await apply_migrations(self._url)
        async with self._connected() as connection:
            await connection.execute(queries()["invalidate_cached_views"].sql)
            await connection.execute(queries()["deployment_set"].sql, "restored", json.dumps(asdict(manifest)))
            await connection.execute("VACUUM (ANALYZE)")  # index-only scans need the visibility map
        return manifest

    async def _clear(self, connection: asyncpg.Connection) -> None:
        """Drop our empty tables. A database with a tenant, or with other tables, is refused."""
        tables = await connection.fetchval(queries()["tables_count"].sql)
        await connection.execute(CREATE_SERVICE_ROLE)
        if not tables:
            return
        ours = await connection.fetchval(queries()["schema_exists"].sql) is not None
        if not ours or await connection.fetch(queries()["tenant_list"].sql):
            raise Refused(
                "A backup can only be restored into an empty database, and this one is not empty: "
                "set NEXUS_HOME to a new folder, or NEXUS_DATABASE_URL to an empty database."
            )
        await connection.execute(DROP_OWN_OBJECTS)

    async def rehearse(self, path: Path) -> Manifest:
        """Test a backup: restore it into a temporary database, check it against its manifest, and drop it."""
        async with self._connected() as connection:
            await connection.execute(f"DROP DATABASE IF EXISTS {REHEARSAL_DATABASE} WITH (FORCE)")
            await connection.execute(f"CREATE DATABASE {REHEARSAL_DATABASE}")
            try:
                return await DatabaseBackup(_beside(self._url, REHEARSAL_DATABASE)).restore(path)
            finally:
                await connection.execute(f"DROP DATABASE IF EXISTS {REHEARSAL_DATABASE} WITH (FORCE)")

    async def restored(self) -> str | None:
        """The backup that this database was restored from, and whether it changed since; None without a restore."""
        async with self._connected() as connection:
            stored = await connection.fetchval(queries()["deployment_get"].sql, "restored")
            if stored is None:
                return None
            manifest, now = Manifest(**json.loads(stored)), await _counts(connection)
        changed = [
            name
            for name, count in manifest.tables.items()
            if name not in INSTALLATION_TABLES | AUDIT_TABLES and now.get(RENAMED_TABLES.get(name, name)) != count
        ]
        rows = f"{manifest.rows:,} rows in {len(manifest.tables)} tables"
        state = "and changed since" if changed else "and unchanged since"
        return f"restored completely from the backup of {manifest.taken_at} (schema {manifest.schema}, {rows}), {state}"

    async def _require_all_rows(self, connection: asyncpg.Connection) -> None:
        if not await connection.fetchval(queries()["role_bypasses_row_security"].sql):
            raise Misconfigured(
                "The database user is bound by row-level security, so it can't back up every tenant or restore one: "
                "use one with BYPASSRLS (ALTER ROLE … BYPASSRLS) for this."
            )

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[asyncpg.Connection]:
        async with translate_postgres_errors(self._url):
            connection = await asyncpg.connect(self._url, timeout=CONNECT_TIMEOUT_SECONDS)
        try:
            async with translate_postgres_errors(self._url):
                yield connection
        finally:
            connection.terminate()

    @asynccontextmanager
    async def _program(self, name: str, *options: str, feed: bool = False) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run one of PostgreSQL's programs on the database. Raises Unavailable with its error if it fails."""
        parts = urlsplit(self._url)
        place = parts.netloc.replace(f":{parts.password}@", "@", 1) if parts.password else parts.netloc
        url = urlunsplit(parts._replace(netloc=place))  # arguments show in process lists: no password
        secret = {"PGPASSWORD": unquote(parts.password)} if parts.password else {}
        process = await asyncio.create_subprocess_exec(
            str(binaries(service_account()).postgres / name),
            *options,
            f"--dbname={url}",
            stdin=asyncio.subprocess.PIPE if feed else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL if feed else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"LC_ALL": "C", "PATH": os.defpath} | secret,
            cwd="/",
        )
        assert process.stderr is not None
        errors = asyncio.create_task(process.stderr.read())
        try:
            yield process
            status = await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            lines = (await errors).decode(errors="replace").strip().splitlines()
        if status != 0:
            raise _failed(name, next((line for line in lines if "rror: " in line.lower()), f"status {status}"))


def _failed(program: str, line: str) -> NexusError:
    """The error of one of PostgreSQL's programs, as one sentence that says what to do."""
    message = line.rpartition("ERROR:")[2].removeprefix(f"{program}: error:").strip()
    if 'create extension "vector"' in message:
        return Misconfigured(
            "The database user may not create the extension vector: let a superuser do it beforehand "
            "(CREATE EXTENSION vector), for the restore test in template1."
        )
    if "No space left" in message:
        return Unavailable(f"The database server has no disk space left ({program}); nothing was stored.")
    return Unavailable(f"{program} failed: {message.rstrip('.')}.")


def read_manifest(path: Path) -> Manifest:
    """The manifest of a backup, checked against its dump. Raises BadInput."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = Manifest(**json.loads(archive.read(MANIFEST)))
            with archive.open(DUMP) as entry:
                digest = hashlib.file_digest(entry, "sha256")  # type: ignore[arg-type]
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise BadInput(f"{path} is not a backup of Nexus, or it is damaged ({error}).") from error
    if digest.hexdigest() != manifest.sha256:
        raise BadInput(f"{path} is damaged: its content does not match its manifest.")
    return manifest


async def _counts(connection: asyncpg.Connection) -> dict[str, int]:
    """Rows by table."""
    counts = {}
    for row in await connection.fetch(queries()["table_names"].sql):
        counts[row["name"]] = await connection.fetchval(f'SELECT count(*) FROM public."{row["name"]}"')
    return counts


def _require_whole(path: Path, manifest: Manifest, counts: Mapping[str, int]) -> None:
    wrong = [name for name, count in manifest.tables.items() if counts.get(name) != count]
    if wrong:
        raise Unavailable(f"The restored database differs from {path} in: {', '.join(wrong)}. Restore it again.")


def _beside(url: str, name: str) -> str:
    """The URL of another database on the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))

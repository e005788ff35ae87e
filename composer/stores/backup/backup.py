"""Backups: one file with the whole database as of one moment, and a manifest to check a restored database against.

The programs of the PostgreSQL wheel are used for embedded and for external servers. The file is a zip of
`database.dump` (pg_dump's custom format) and `manifest.json`, which is signed with the key of the audit log.
"""

import asyncio
import hashlib
import json
import os
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, Final

import asyncpg

from composer.errors import BadInput, Misconfigured, NexusError, Refused, Unavailable
from composer.ports.audit import AuditKeys
from composer.repositories.audit import Audit, AuditAct, AuditSigner
from composer.settings import private_files
from composer.settings.server_urls import OWNER_SETTING, ServerUrl
from composer.stores.backup.restore import BACKUP_CHUNK_BYTES, load, row_counts
from composer.stores.database.postgres import CONNECT_TIMEOUT_SECONDS, translate_postgres_errors
from composer.stores.database.schema import LAST_BEFORE_BASELINE, prepare_role
from composer.stores.database.statements import PostgresStatements
from composer.stores.embedded.service_account import binaries, service_account
from composer.text.counts import counted
from sql.loader import migrations, queries, upgrade

DUMP: Final = "database.dump"
BACKUP_MANIFEST: Final = "manifest.json"
MAX_MANIFEST_BYTES: Final = 2**20
ABANDONED_SECONDS: Final = 86_400  # after which nobody writes a backup any more that is not whole
REHEARSAL_DATABASE: Final = "nexus_restore_test"
# Tables of the installation: a restored one has rows of its own there.
INSTALLATION_TABLES: Final = frozenset({"deployment", "schema_migrations", "job_runs"})
# Tables in which a restore is recorded.
AUDIT_TABLES: Final = frozenset({"audit_events", "audit_seals", "audit_unsealed"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup's content: when it was taken (ISO 8601), the schema's version, rows by table, and the dump's SHA-256;
    then the keyed digest of all these, with the id of its key (both empty in backups of older versions)."""

    taken_at: str
    schema: int
    tables: Mapping[str, int]
    sha256: str
    key_id: str = ""
    signature: str = ""

    @property
    def signed_text(self) -> bytes:
        """What the signature is of: everything else, as JSON."""
        return b"backup:" + json.dumps(asdict(replace(self, signature="")), sort_keys=True).encode()

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.tables.values())


class DatabaseBackup:
    """Backs up and restores the database at one address, as its owner. `keys` sign and verify the backups."""

    def __init__(self, url: str, keys: AuditKeys) -> None:
        self._keys = keys
        self._url = ServerUrl(url)

    async def write(self, path: Path, now: datetime) -> Manifest:
        """Write a backup as of one moment, while other processes go on. The file is complete or does not exist.

        Raises BadInput (the file can't be written), Misconfigured (the database user may not read every tenant),
        Unavailable.
        """
        try:
            with private_files.replaced(path) as file:
                async with self._connected() as connection:
                    await self._require_all_rows(connection)
                    async with connection.transaction(isolation="repeatable_read", readonly=True):
                        return await self._dump(connection, file, now)
        except OSError as error:
            raise BadInput(f"{path} can't be written: {error.strerror or error}.") from error

    async def _dump(self, connection: asyncpg.Connection, file: BinaryIO, now: datetime) -> Manifest:
        begun = await connection.fetchrow(queries()["backup_begin"].sql)
        assert begun is not None
        schema, tables = begun["schema"], await row_counts(connection)
        digest = hashlib.sha256()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            with archive.open(DUMP, "w", force_zip64=True) as entry:
                command = ["pg_dump", "--format=custom", "--compress=1", f"--snapshot={begun['snapshot']}"]
                async with self._program(*command) as process:
                    assert process.stdout is not None
                    while chunk := await process.stdout.read(BACKUP_CHUNK_BYTES):
                        digest.update(chunk)
                        await asyncio.to_thread(entry.write, chunk)
            manifest = Manifest(now.isoformat(), schema, tables, digest.hexdigest(), self._keys.current_id)
            manifest = replace(manifest, signature=self._keys.sign(manifest.signed_text).hex())
            archive.writestr(BACKUP_MANIFEST, json.dumps(asdict(manifest), indent=1))
        return manifest

    def prune(self, folder: Path, limit: int) -> None:
        """Delete all but the newest `limit` backups of a folder, and what processes that were killed have left of
        theirs: it holds what was forgotten since."""
        abandoned = time.time() - ABANDONED_SECONDS
        parts = [
            path for path in folder.glob(f"nexus-*.backup.*{private_files.PART}") if path.stat().st_mtime < abandoned
        ]
        for path in (*sorted(folder.glob("nexus-*.backup"))[:-limit], *parts):
            path.unlink(missing_ok=True)

    async def restore(
        self,
        path: Path,
        *,
        trust: bool = False,
        signer: AuditSigner | None = None,
        before_commit: Callable[[], None] | None = None,
    ) -> Manifest:
        """Fill an empty database from a backup, of this Nexus or an older one, all or nothing, and compare it with the
        manifest. The file is opened once, and what is loaded is checked again before it is kept, so that nobody can
        replace it in between. With a `signer`, every tenant's audit log records it.

        `trust`: also from a backup that is not signed with a key of this installation. `before_commit` is called once
        all is loaded; one that dies before the commit has restored nothing. Raises BadInput (no backup, or
        a damaged one), Refused (not ours, or the database is not empty), Misconfigured (the backup is of a newer
        Nexus, or of one that is too old), Unavailable.
        """
        with await asyncio.to_thread(_opened, path) as archive:
            manifest = await asyncio.to_thread(_checked_manifest, path, archive)
            self._require_usable(path, manifest, trust=trust)
            async with self._connected() as connection:
                await prepare_role(connection)
                await self._require_empty(connection)
                async with connection.transaction():
                    async with self._decoded(path, archive, manifest) as rows:
                        await load(connection, rows, manifest.schema, partial(_require_whole, path, manifest))
                    await connection.execute(
                        queries()["deployment_set"].sql, "restored", json.dumps(asdict(manifest)), False
                    )
                    if signer is not None:
                        await _record_restore(connection, manifest, signer)
                    if before_commit is not None:
                        before_commit()
        async with self._connected() as connection:
            await connection.execute("VACUUM (ANALYZE)")  # index-only scans need the visibility map
        return manifest

    def _require_usable(self, path: Path, manifest: Manifest, *, trust: bool) -> None:
        if not trust and not self._signed(manifest):
            raise Refused(
                f"{path} is not signed with a key of this installation, so anybody may have written it. If you know "
                "where it comes from: add the lines of that installation's audit.key to the one here, or give --trust."
            )
        if manifest.schema < upgrade().version:
            raise Misconfigured(
                f"{path} is from an early Nexus (schema {manifest.schema}), and this version restores backups of "
                f"schema {upgrade().version} and later: restore it with the commit {LAST_BEFORE_BASELINE}, and back up "
                "again."
            )
        if manifest.schema > migrations()[-1].version:
            raise Misconfigured(f"{path} is from a newer Nexus (schema {manifest.schema}): install that version first.")

    def _signed(self, manifest: Manifest) -> bool:
        try:
            signature = bytes.fromhex(manifest.signature)
        except ValueError:
            return False
        return self._keys.verify(manifest.key_id, manifest.signed_text, signature) is True

    @asynccontextmanager
    async def _decoded(
        self, path: Path, archive: zipfile.ZipFile, manifest: Manifest
    ) -> AsyncIterator[asyncio.StreamReader]:
        """The dump of a backup as text, as pg_restore decodes it without any database. Raises BadInput at its end if
        what was decoded was not what the manifest is of."""
        with archive.open(DUMP) as entry:
            async with self._program("pg_restore", "--data-only", "--file=-", feed=True) as process:
                assert process.stdout is not None
                feeding = asyncio.create_task(_feed(process, entry))
                try:
                    yield process.stdout
                    digest = await feeding
                finally:
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
        if digest != manifest.sha256:
            raise BadInput(f"{path} was changed while it was read: nothing was restored.")

    async def _require_empty(self, connection: asyncpg.Connection) -> None:
        """Refuse a database with a tenant, or with other tables than ours."""
        if not await connection.fetch(queries()["table_names"].sql):
            return
        ours = await connection.fetchval(queries()["schema_exists"].sql) is not None
        if not ours or await connection.fetch(queries()["tenant_list"].sql):
            raise Refused(
                "A backup can only be restored into an empty database, and this one is not empty: "
                "set NEXUS_HOME to a new folder, or NEXUS_DATABASE_URL to an empty database."
            )

    async def test_restore(self, path: Path) -> Manifest:
        """Test a backup: restore it into a temporary database, check it against its manifest, and drop it."""
        async with self._connected() as connection:
            await connection.execute(f"DROP DATABASE IF EXISTS {REHEARSAL_DATABASE} WITH (FORCE)")
            await connection.execute(f"CREATE DATABASE {REHEARSAL_DATABASE}")
            try:
                return await DatabaseBackup(self._url.with_database(REHEARSAL_DATABASE), self._keys).restore(path)
            finally:
                await connection.execute(f"DROP DATABASE IF EXISTS {REHEARSAL_DATABASE} WITH (FORCE)")

    async def restored(self) -> str | None:
        """The backup that this database was restored from, and whether it changed since; None without a restore."""
        async with self._connected() as connection:
            stored = await connection.fetchval(queries()["deployment_get"].sql, "restored")
            if stored is None:
                return None
            manifest = Manifest(**json.loads(stored))
            from_backup = f"restored completely from the backup of {manifest.taken_at} (schema {manifest.schema}"
            rights = await connection.fetchrow(queries()["login_rights"].sql)
            if rights is None or not rights["reads_all"]:
                return f"{from_backup}; only a user with BYPASSRLS can count what has changed since)"
            now = await row_counts(connection)
        changed = [
            name
            for name, count in manifest.tables.items()
            if name not in INSTALLATION_TABLES | AUDIT_TABLES and now.get(name, count) != count
        ]
        rows = f"{counted(manifest.rows, 'row')} in {counted(len(manifest.tables), 'table')}"
        state = "and changed since" if changed else "and unchanged since"
        return f"{from_backup}, {rows}), {state}"

    async def _require_all_rows(self, connection: asyncpg.Connection) -> None:
        rights = await connection.fetchrow(queries()["login_rights"].sql)
        if rights is None or not rights["reads_all"]:
            if rights is None or not rights["owner"]:
                raise Misconfigured(
                    "Only the database's owner may read every tenant, for a backup: set "
                    f"{OWNER_SETTING} to the owner's URL for this command."
                )
            raise Misconfigured(
                "The database user is bound by row-level security, so it can't back up every tenant: "
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
        """Run one of PostgreSQL's programs, on the database, or with `feed` on its input alone. Raises Unavailable with
        its error if it fails. The database's address is in its environment: arguments show in process lists."""
        account = service_account()
        process = await asyncio.create_subprocess_exec(
            str(binaries(account).postgres / name),
            *options,
            stdin=asyncio.subprocess.PIPE if feed else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"LC_ALL": "C", "PATH": os.defpath} | ({} if feed else self._url.libpq_environment()),
            cwd="/",
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        assert process.stderr is not None
        errors = asyncio.create_task(process.stderr.read())
        try:
            yield process
            status = await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            if process.stdout is not None:  # what nobody has read would hold up its end
                await process.stdout.read()
            await process.wait()
            lines = (await errors).decode(errors="replace").strip().splitlines()
        if status != 0:
            raise _failed(name, next((line for line in lines if "rror: " in line.lower()), f"status {status}"))


def _failed(program: str, line: str) -> NexusError:
    """The error of one of PostgreSQL's programs, as one sentence that says what to do."""
    message = line.rpartition("ERROR:")[2].removeprefix(f"{program}: error:").strip()
    if "No space left" in message:
        return Unavailable(f"The database server has no disk space left ({program}); nothing was stored.")
    return Unavailable(f"{program} failed: {message.rstrip('.')}.")


async def _feed(process: asyncio.subprocess.Process, entry: IO[bytes]) -> str:
    """Write a file to a program's input. Returns the SHA-256 of the file; "" for one that can't be read to its end."""
    assert process.stdin is not None
    digest = hashlib.sha256()
    try:
        while chunk := await asyncio.to_thread(entry.read, BACKUP_CHUNK_BYTES):
            digest.update(chunk)
            with suppress(ConnectionError):  # it ended early; its error output says why
                process.stdin.write(chunk)
                await process.stdin.drain()
    except (OSError, EOFError, zipfile.BadZipFile):
        return ""
    finally:
        process.stdin.close()
    return digest.hexdigest()


def _opened(path: Path) -> zipfile.ZipFile:
    with _damage_named(path):
        return zipfile.ZipFile(path)


def _checked_manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    """The manifest of a backup, checked against its dump: the two parts that Nexus writes, each once and as it is.
    Raises BadInput."""
    with _damage_named(path):
        parts = sorted(archive.infolist(), key=lambda part: part.filename)
        if [part.filename for part in parts] != [DUMP, BACKUP_MANIFEST]:
            raise ValueError("it has other parts")
        if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or parts[1].file_size > MAX_MANIFEST_BYTES:
            raise ValueError("its parts are compressed, or too large")
        manifest = Manifest(**json.loads(archive.read(BACKUP_MANIFEST)))
        with archive.open(DUMP) as entry:
            digest = hashlib.file_digest(entry, "sha256")  # type: ignore[arg-type]
    if digest.hexdigest() != manifest.sha256:
        raise BadInput(f"{path} is damaged: its content does not match its manifest.")
    return manifest


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, EOFError, ValueError, TypeError, RecursionError, NotImplementedError) as error:
        raise BadInput(f"{path} is not a backup of Nexus, or it is damaged ({error}).") from error


def _require_whole(path: Path, manifest: Manifest, counts: Mapping[str, int]) -> None:
    wrong = [name for name, count in manifest.tables.items() if counts.get(name) != count]
    if wrong:
        raise BadInput(f"{path} is damaged: it has other rows than its manifest says in {', '.join(wrong)}.")


async def _record_restore(connection: asyncpg.Connection, manifest: Manifest, signer: AuditSigner) -> None:
    """Record in every tenant's audit log that it was restored (as the owner: the service may have no login)."""
    for row in await connection.fetch(queries()["tenant_list"].sql):
        tenant = row["tenant_id"]
        await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
        audit = Audit(PostgresStatements(connection, tenant), tenant, signer)
        await audit.record(AuditAct.RESTORED, details={"rows": manifest.rows, "schema": manifest.schema})

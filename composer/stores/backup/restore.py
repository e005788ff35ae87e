"""The rows of a backup, loaded into tables that our own migrations create.

No statement of a dump is ever executed, for a dump can hold any: pg_restore only decodes it, as text, and of that text
only the rows are used, which are inert.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, Protocol

import asyncpg

from composer.errors import BadInput
from composer.stores.database.schema import apply
from sql.loader import migrations, queries, upgrade

MAX_HEADER_BYTES: Final = 1 << 26  # between two tables' rows: all other statements of the dump
_HEADER = re.compile(rb"^COPY (?:public\.)?(\w+) \(([^()\n]*)\) FROM stdin;\n", re.MULTILINE)
_COLUMN = re.compile(r'"?([a-z_][a-z0-9_]*)"?')
BACKUP_CHUNK_BYTES: Final = 1 << 20  # that are read of a table at once
_END: Final = b"\n\\.\n"  # of a table's rows
LEDGER: Final = "schema_migrations"  # written by the migrations, but for those before the baseline
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


class ByteStream(Protocol):
    """A stream of bytes, such as a program's output."""

    async def read(self, limit: int, /) -> bytes:
        """The next bytes, at most `limit`; none at the end."""
        ...


class DumpReader:
    """The tables of a decoded dump (`pg_restore --data-only`), one after another."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = b""

    async def tables(self) -> AsyncIterator[tuple[str, list[str]]]:
        """The name and the columns of each table. Read its `rows` before the next one."""
        while True:
            found = _HEADER.search(self._buffer)
            if found is None:
                if len(self._buffer) > MAX_HEADER_BYTES:
                    raise BadInput("This backup is damaged: it has no rows where rows should be.")
                if not await self._fill():
                    return
                continue
            self._buffer = b"\n" + self._buffer[found.end() :]  # so that a table without rows ends as all others
            columns = [_COLUMN.fullmatch(name.strip()) for name in found[2].decode(errors="replace").split(",")]
            yield found[1].decode(), [column[1] for column in columns if column]

    async def rows(self) -> AsyncIterator[bytes]:
        """The rows of the present table, in COPY's text format, in pieces of any length."""
        first = True
        while (end := self._buffer.find(_END)) < 0:
            if len(self._buffer) > len(_END):
                piece, self._buffer = self._buffer[: -len(_END)], self._buffer[-len(_END) :]
                yield piece[first:]
                first = False
            if not await self._fill():
                raise BadInput("This backup is damaged: it ends in the middle of a table.")
        piece, self._buffer = self._buffer[: end + 1], self._buffer[end + len(_END) :]
        if len(piece) > first:
            yield piece[first:]

    async def _fill(self) -> bool:
        chunk = await self._stream.read(BACKUP_CHUNK_BYTES)
        self._buffer += chunk
        return bool(chunk)


async def load(
    connection: asyncpg.Connection,
    stream: ByteStream,
    schema: int,
    check: Callable[[Mapping[str, int]], None],
) -> None:
    """Replace our empty tables by those of this schema version, with the rows of a decoded dump; then bring them up to
    the newest version, and make void what must not outlive a restore.

    Call it in a transaction, as the owner. `check` is called with the numbers of rows by table, as the dump has them,
    and may raise. Raises BadInput for rows that do not fit.
    """
    await connection.execute(DROP_OWN_OBJECTS)
    upgraded = schema == upgrade().version
    if upgraded:
        await connection.execute(upgrade().schema)
    for step in migrations():
        if step.version <= schema:
            await apply(connection, step)
    tables = [row["name"] for row in await connection.fetch(queries()["table_names"].sql)]
    found = await connection.fetch(queries()["constraints_and_indexes"].sql)
    keys = [row for row in found if row["owner"] is not None]
    indexes = [row for row in found if row["owner"] is None]  # made after the rows: faster than row by row
    await _execute(connection, [f"ALTER TABLE {key['owner']} DROP CONSTRAINT {key['name']}" for key in keys])
    await _execute(connection, [f"DROP INDEX {index['name']}" for index in indexes])
    await _execute(connection, [f'ALTER TABLE public."{name}" DISABLE TRIGGER USER' for name in tables])
    bound = await _without_row_security(connection)
    await _copy(connection, DumpReader(stream), frozenset(tables), with_ledger=upgraded)
    try:
        await _execute(connection, [index["definition"] for index in indexes])
    except asyncpg.UniqueViolationError as error:
        raise BadInput("This backup is damaged: it has the same row twice.") from error
    try:
        await _execute(
            connection,
            [f"ALTER TABLE {key['owner']} ADD CONSTRAINT {key['name']} {key['definition']}" for key in keys],
        )
    except asyncpg.ForeignKeyViolationError as error:
        raise BadInput("This backup is damaged: its rows refer to rows that it lacks.") from error
    check(await row_counts(connection))
    await _with_row_security(connection, bound)
    await _execute(connection, [f'ALTER TABLE public."{name}" ENABLE TRIGGER USER' for name in tables])
    for step in migrations():
        if step.version > schema:
            await apply(connection, step, upgraded=upgraded)
    bound = await _without_row_security(connection)
    await connection.execute(queries()["restore_end"].sql)
    await _with_row_security(connection, bound)


async def _without_row_security(connection: asyncpg.Connection) -> list[str]:
    """Let the owner see the rows of all tenants, and return the names of the tables for `_with_row_security`."""
    bound = [row["name"] for row in await connection.fetch(queries()["table_names"].sql) if row["row_security"]]
    await _execute(connection, [f'ALTER TABLE public."{name}" DISABLE ROW LEVEL SECURITY' for name in bound])
    return bound


async def _with_row_security(connection: asyncpg.Connection, bound: list[str]) -> None:
    await _execute(connection, [f'ALTER TABLE public."{name}" ENABLE ROW LEVEL SECURITY' for name in bound])


async def _copy(
    connection: asyncpg.Connection, reader: DumpReader, tables: frozenset[str], *, with_ledger: bool
) -> None:
    async for name, columns in reader.tables():
        if name not in tables:
            raise BadInput(f"This backup has a table that Nexus does not know ({name}).")
        rows = reader.rows()
        if name == LEDGER and not with_ledger:
            async for _ in rows:
                pass
            continue
        try:
            await connection.copy_to_table(name, source=rows, columns=columns, schema_name="public")
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.UndefinedColumnError) as error:
            raise BadInput(f"This backup is damaged: its rows do not fit the table {name}.") from error


async def _execute(connection: asyncpg.Connection, statements: list[str]) -> None:
    if statements:
        await connection.execute("; ".join(statements))


async def row_counts(connection: asyncpg.Connection) -> dict[str, int]:
    """Rows by table."""
    counts = {}
    for row in await connection.fetch(queries()["table_names"].sql):
        counts[row["name"]] = await connection.fetchval(f'SELECT count(*) FROM public."{row["name"]}"')
    return counts

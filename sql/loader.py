"""Load the schema, its migrations and the named queries from the files beside this one."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

BASELINE: Final = 68  # the version of schema.sql: it took the place of the migrations 0001 to 0067
_HERE = Path(__file__).parent
_NAME = re.compile(r"^-- (name|part): (\w+)\s*$", re.MULTILINE)
_INCLUDED = re.compile(r"\{\{(\w+)\}\}")
_MADE = re.compile(r"^CREATE (?:TABLE|FUNCTION) (\w+)", re.MULTILINE)
_ADVISORY = re.compile(r"\bpg_(?:try_)?advisory_\w+", re.IGNORECASE)
# A transaction takes the lock of its tenant as its first act, so that no two take locks in different orders
# (docs/decisions/0046-one-lock-of-a-tenant.md). The others are of a connection of its own, and of no transaction.
_LOCKS_OF_TENANTS: Final = ("tenant_share", "tenant_alone")
_LOCKS_OF_CONNECTIONS: Final = ("process_locks_take", "process_locks_release", "process_locks_live", "reembed_lock")
# What is skipped comes first: comments, strings, quoted names, dollar-quoted strings. A parameter never follows a colon
# (`::uuid` is a cast) or the end of an expression (`a[1:n]` is a slice).
_TOKENS = re.compile(
    r"""
    --[^\n]* | /\*.*?\*/
    | \b[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
    | \$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?P=tag)\$ | \$\$.*?\$\$
    | (?P<number>\$\d+)
    | (?<![\w:\])"']):(?P<parameter>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema. `checksum` is the SHA-256 of its text, in hex."""

    version: int
    name: str
    sql: str
    checksum: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration, in order: the baseline, which makes the schema in an empty database, and what came after it.

    Raises ValueError when numbers repeat or skip one.
    """
    steps = [_migration(BASELINE, "baseline", _HERE / "schema.sql")]
    for path in sorted((_HERE / "migrations").glob("*.sql")):
        number, _, name = path.stem.partition("_")
        steps.append(_migration(int(number), name, path))
    if [step.version for step in steps] != list(range(BASELINE, BASELINE + len(steps))):
        raise ValueError(f"migrations must be numbered {BASELINE + 1:04}, {BASELINE + 2:04}, … without a gap")
    return tuple(steps)


def _migration(version: int, name: str, path: Path) -> Migration:
    text = path.read_text(encoding="utf-8")
    return Migration(version, name, text, hashlib.sha256(text.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The upgrade from the last version before the baseline: the `schema` of that version, into which backups of it are
    loaded, and the statements (`sql`) that bring it to the baseline."""

    version: int
    schema: str
    sql: str


@cache
def upgrade() -> Upgrade:
    """The upgrade to the baseline, which may hold paragraphs of its schema, by the tables and functions that they make:
    `{{requests}}`."""
    version, new = BASELINE - 1, dict[str, str]()
    names = (f"schema_{version:04}.sql", f"upgrade_{version:04}.sql", "schema.sql")
    schema, sql, baseline = ((_HERE / name).read_text(encoding="utf-8") for name in names)
    for paragraph in baseline.split("\n\n"):
        if made := _MADE.search(paragraph):
            new[made[1]] = paragraph
    return Upgrade(version, schema, with_included(sql, new))


@dataclass(frozen=True, slots=True)
class Query:
    """A named statement. `source` has named parameters (`:name`); `sql` is the same with `$1`, `$2`, …, in the order of
    `parameters`, as PostgreSQL expects it."""

    name: str
    source: str
    sql: str
    parameters: tuple[str, ...]

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the parameters. Raises TypeError for a missing or an unknown parameter."""
        if len(values) != len(self.parameters):
            raise TypeError(self._mismatch(values))
        try:
            return [values[name] for name in self.parameters]
        except KeyError:
            raise TypeError(self._mismatch(values)) from None

    def _mismatch(self, values: Mapping[str, Any]) -> str:
        missing = [f":{name}" for name in self.parameters if name not in values]
        unknown = [f":{name}" for name in values if name not in self.parameters]
        parts = [f"{', '.join(names)} {what}" for names, what in ((missing, "missing"), (unknown, "unknown")) if names]
        return f"query {self.name}: {'; '.join(parts)}"


def parse_query(name: str, source: str) -> Query:
    """Number the named parameters of a statement. Raises ValueError when it has a numbered one (`$1`), or takes an
    advisory lock and is none of those that may."""
    parameters: dict[str, int] = {}
    if name not in (*_LOCKS_OF_TENANTS, *_LOCKS_OF_CONNECTIONS) and (lock := _ADVISORY.search(source)):
        raise ValueError(
            f"query {name}: calls {lock[0]}, but a transaction has one lock, of its tenant, which it takes as it "
            f'begins: open it as "share" or "alone"'
        )

    def number(token: re.Match[str]) -> str:
        if token["number"]:
            raise ValueError(f"query {name}: give the parameter {token['number']} a name, like :{name}_id")
        if token["parameter"] is None:
            return token[0]
        return f"${parameters.setdefault(token['parameter'], len(parameters) + 1)}"

    sql = _TOKENS.sub(number, source)
    return Query(name, source, sql, tuple(parameters))


@cache
def queries() -> Mapping[str, Query]:
    """Every named statement of queries/*.sql. One may hold others, by their names: `{{entry_rows}}`; and parts, which
    are none by themselves.

    Raises ValueError when a name repeats, or is included and missing, and as parse_query.
    """
    texts, whole = dict[str, str](), list[str]()
    for path in sorted((_HERE / "queries").glob("*.sql")):
        parts = _NAME.split(path.read_text(encoding="utf-8"))
        for kind, name, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            if name in texts:
                raise ValueError(f"{path.name}: the query {name} is defined twice")
            texts[name] = text.strip()
            whole += [name] if kind == "name" else []
    return MappingProxyType({name: parse_query(name, with_included(texts[name], texts)) for name in whole})


def with_included(text: str, texts: Mapping[str, str]) -> str:
    """A statement with the statements that it includes, and with theirs. Raises ValueError for an unknown one."""

    def included(name: re.Match[str]) -> str:
        if name[1] not in texts:
            raise ValueError(f"a query includes {name[1]}, which does not exist")
        return with_included(texts[name[1]], texts)

    return _INCLUDED.sub(included, text)

"""Reads the migrations and the named queries that lie beside this file."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

_HERE = Path(__file__).parent
_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One forward step of the schema. `checksum` is the SHA-256 of its text, in hex."""

    version: int
    name: str
    sql: str
    checksum: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration, in order. Raises ValueError when numbers repeat or leave a gap."""
    steps = []
    for path in sorted((_HERE / "migrations").glob("*.sql")):
        number, _, name = path.stem.partition("_")
        text = path.read_text(encoding="utf-8")
        steps.append(Migration(int(number), name, text, hashlib.sha256(text.encode()).hexdigest()))
    if [step.version for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError("migrations must be numbered 0001, 0002, … without a gap")
    return tuple(steps)


@cache
def queries() -> Mapping[str, str]:
    """Every named statement of queries/*.sql. Raises ValueError when a name repeats."""
    found: dict[str, str] = {}
    for path in sorted((_HERE / "queries").glob("*.sql")):
        parts = _NAME.split(path.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"{path.name}: the query {name} is defined twice")
            found[name] = text.strip()
    return MappingProxyType(found)

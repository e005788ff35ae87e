"""A mutant as the files of this folder declare it, and how it is applied to a copy of the code."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sql.loader import Query, parse_query

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
QUERIES: Final = "sql/queries/"
_STATEMENT: Final = re.compile(r"^-- (?:name|part): (\w+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    `old` is replaced by `new`. It must occur exactly once, unless `occurrence` (from 1) chooses one. `breaks` says what
    goes wrong for people. `tests` are what must notice: arguments of pytest, the fastest first.
    """

    group: str
    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    occurrence: int | None = None

    def apply(self, root: Path) -> str:
        """Change the file below `root` and return what it held before. Raises ValueError when `old` isn't there."""
        path = root / self.file
        before = path.read_text(encoding="utf-8")
        path.write_text(self.mutated(before), encoding="utf-8")
        return before

    def mutated(self, text: str) -> str:
        """A file's text with the change. Raises ValueError when `old` isn't there as often as declared."""
        found = text.count(self.old)
        if found != 1 and (self.occurrence is None or found < self.occurrence):
            raise ValueError(f"mutant '{self.name}': its text occurs {found} times in {self.file}; bring it up to date")
        if self.old == self.new:
            raise ValueError(f"mutant '{self.name}' changes nothing")
        parts = text.split(self.old)
        before = self.occurrence or 1
        return self.old.join(parts[:before]) + self.new + self.old.join(parts[before:])


def load() -> tuple[Mutant, ...]:
    """Every mutant, by group (the name of its file). Raises ValueError for a name that repeats."""
    mutants: list[Mutant] = []
    for path in sorted(HERE.glob("*.toml")):
        declared = tomllib.loads(path.read_text(encoding="utf-8"))
        for each in declared["mutant"]:
            tests = tuple(each.pop("tests", declared["tests"]))
            mutants.append(Mutant(group=path.stem, tests=tests, **each))
    names = [mutant.name for mutant in mutants]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"two mutants have the same name: {', '.join(sorted(repeated))}")
    return tuple(mutants)


def statements(text: str) -> Mapping[str, Query]:
    """The named statements of a file of queries, by name."""
    _, *parts = _STATEMENT.split(text)
    return {name: parse_query(name, source.strip()) for name, source in zip(parts[::2], parts[1::2], strict=True)}

"""The source of a checkout, as the counts read it: parsed Python, SQL and pages."""

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

PRODUCT: Final = ("composer", "bot", "jobs", "sql", "nexus_client", "clients")
_TABLE: Final = re.compile(r"^(CREATE|DROP) TABLE (?:IF (?:NOT )?EXISTS )?(?:public\.)?(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """One file of Python. `name` is its dotted name."""

    name: str
    path: Path
    tree: ast.Module


@dataclass(frozen=True)
class Checkout:
    """A checkout of the repository at `root`."""

    root: Path

    @cached_property
    def modules(self) -> list[Module]:
        """Every module of the product."""
        return [
            Module(".".join(path.relative_to(self.root).with_suffix("").parts), path, ast.parse(path.read_bytes()))
            for path in self.files("py", *PRODUCT)
        ]

    @cached_property
    def _ignored(self) -> frozenset[Path]:
        """Files that are made and not kept."""
        command = [
            "git",
            "-C",
            str(self.root),
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--",
            *PRODUCT,
        ]
        found = subprocess.run(
            command, capture_output=True, text=True, check=False
        )  # none where there is no repository
        return frozenset(self.root / name for name in found.stdout.splitlines())

    def files(self, suffix: str, *folders: str) -> list[Path]:
        """The files below some folders, in order."""
        found = (path for folder in folders for path in (self.root / folder).rglob(f"*.{suffix}"))
        return sorted(path for path in found if path not in self._ignored)

    def lines(self, suffix: str, *folders: str) -> int:
        """The lines of all these files."""
        return sum(path.read_bytes().count(b"\n") for path in self.files(suffix, *folders))

    def text(self, name: str) -> str:
        """The text of a file; empty where there is none."""
        path = self.root / name
        return path.read_text(encoding="utf-8") if path.is_file() and path not in self._ignored else ""

    def glossary(self) -> Iterator[str]:
        """The rows of the glossary in docs/architecture.md."""
        section = self.text("docs/architecture.md").partition("\n## Glossary\n")[2].partition("\n## ")[0]
        for line in section.splitlines():
            if line.startswith("| ") and not line.startswith("| word |"):
                yield line.split("|")[1].strip()

    def tables(self) -> list[str]:
        """The tables that there are after the newest migration."""
        found: dict[str, None] = {}
        for text in self.schema():
            for verb, name in _TABLE.findall(text):
                if verb == "CREATE":
                    found[name] = None
                else:
                    found.pop(name, None)
        return list(found)

    def schema(self) -> list[str]:
        """The statements that make the schema: those of the baseline, and of each migration after it."""
        migrations = [path.read_text(encoding="utf-8") for path in self.files("sql", "sql/migrations")]
        return [self.text("sql/schema.sql"), *migrations]

    def queries(self) -> list[str]:
        """The names of the queries."""
        return [
            name
            for path in self.files("sql", "sql/queries")
            for name in re.findall(r"^-- name: (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        ]

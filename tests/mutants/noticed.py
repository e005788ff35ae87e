"""Which test noticed each mutant last: the first to be asked again (noticed.json, by the names of mutants)."""

import json
from collections.abc import Mapping
from typing import Final

from tests.mutants.mutant import HERE

FILE: Final = HERE / "noticed.json"


def noticed() -> dict[str, str]:
    """The id of the test for each mutant that is known to be noticed."""
    found: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def record(outcomes: Mapping[str, str | None]) -> None:
    """Note which tests noticed these mutants, and forget it of those that none did (None)."""
    known: dict[str, str | None] = {**noticed(), **outcomes}
    left = {name: test for name, test in sorted(known.items()) if test is not None}
    FILE.write_text(json.dumps(left, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

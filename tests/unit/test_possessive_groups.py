"""No pattern repeats a group possessively: Python before 3.11.5 then keeps what a failing repetition had read, so that
"(s1,)" passed for a mark and "sowho" for "so who". An atomic group says the same: (?>(?:...)*)."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
POSSESSIVE_GROUP: Final = re.compile(r"(?<!\\)\)(?:[?*+]|\{\{?\d+,?\d*\}?\})\+")
FILES: Final = sorted(
    str(file.relative_to(ROOT))
    for folder in ("bot", "clients", "composer", "jobs")
    for file in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("pattern", [r"(?:a)*+", r"(?:a)?+", r"(?:a)++", r"(?:a){0,3}+", r"(?:a){{0,3}}+"])
def test_a_possessive_group_is_seen(pattern: str) -> None:
    assert POSSESSIVE_GROUP.search(pattern)


def test_no_pattern_has_a_possessive_group() -> None:
    found = [
        f"{file}:{n}"
        for file in FILES
        for n, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert len(FILES) > 500
    assert found == []

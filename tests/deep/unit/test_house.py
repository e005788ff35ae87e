"""The counts of `make house`, on a small checkout and on ours."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.counts import count, floors, locks, rooms, several_meanings, several_values
from tests.house.source import Checkout

ROOT = Path(__file__).parents[3]


@pytest.fixture
def small(tmp_path: Path) -> Checkout:
    files = {
        "composer/errors.py": "LIMIT = 1\nclass Place: pass\n",
        "composer/model.py": "from composer.errors import Place\nLIMIT: int = 2\n",
        "composer/turn/ask.py": "from composer import model\nimport composer.errors\nclass Place: pass\n",
        "bot/slack.py": "LIMIT = 1\n",
        "sql/queries/a.sql": (
            "-- name: one\nSELECT pg_advisory_xact_lock(hashtextextended('people:' || :id, 0))\n"
            "-- name: two\nSELECT pg_advisory_xact_lock_shared(hashtextextended('people:' || f(:id), 0)),\n"
            "       pg_try_advisory_xact_lock(hashtextextended('usage:' || :id, 0))\n"
            "-- name: three\nSELECT pg_advisory_lock(:key)\n"
        ),
        "sql/schema.sql": "CREATE TABLE a (id int);\nCREATE TABLE b (\n    id int\n);\n",
        "sql/migrations/0069_more.sql": "CREATE TABLE IF NOT EXISTS public.c (id int);\nCREATE TABLE d (id int);\n",
        "sql/migrations/0070_less.sql": "DROP TABLE a;\n",
        "docs/architecture.md": (
            "# X\n\n## Glossary\n\n| word | meaning |\n|---|---|\n| room | x |\n| a, b | y |\n\n## Y\n\n| no | z |\n"
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Checkout(tmp_path)


def test_what_is_there_is_counted(small: Checkout) -> None:
    counts = count(small)
    assert (counts["glossary rows"], counts["tables"], counts["named queries"]) == (2, 3, 3)
    assert small.tables() == ["b", "c", "d"]
    assert locks(small) == ({"people", "usage"}, {"a.sql :key"})
    assert several_meanings(small) == {"Place": ["composer.errors", "composer.turn.ask"]}
    assert several_values(small) == {"LIMIT": ["1", "2"]}
    assert rooms(small) == {"errors": set(), "model": {"errors"}, "turn": {"model", "errors"}}
    assert floors(rooms(small)) == 3


def test_the_table_has_every_row_with_what_was_and_what_is_aimed_at() -> None:
    command = [sys.executable, "-m", "tests.house", "--json"]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert found["rows"].keys() == count(Checkout(ROOT)).keys()
    assert found["rows"]["tables"]["at_3f6bbc2b"] == 66
    assert found["rows"]["tables"]["aim"] == 52

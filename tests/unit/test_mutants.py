"""Every mutant can still be applied: its text is in the code as often as it says, and what must notice it exists."""

import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.mutant import QUERIES, ROOT, Mutant, load, statements
from tests.mutants.noticed import noticed

MUTANTS = load()
GROUPS = sorted({mutant.group for mutant in MUTANTS})
LEAST = 60


@pytest.mark.parametrize("group", GROUPS)
def test_a_mutant_is_up_to_date(group: str) -> None:
    texts = cache(lambda path: (ROOT / path).read_text(encoding="utf-8"))
    for mutant in (each for each in MUTANTS if each.group == group):
        before = texts(mutant.file)
        assert mutant.mutated(before) != before, mutant.name
        assert mutant.breaks, mutant.name
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            path, _, name = test.partition("::")
            known = not name or re.search(rf"^(async )?def {name.partition('[')[0]}\(", texts(path), re.MULTILINE)
            assert known, f"{mutant.name}: {test}"


def test_a_mutant_is_python_and_uses_no_name_that_there_is_not(tmp_path: Path) -> None:
    """Any test that comes by would notice it, whether it knows the rule or not. ruff names what is no Python, too."""
    for number, mutant in enumerate(mutant for mutant in MUTANTS if mutant.file.endswith(".py")):
        mutated = mutant.mutated((ROOT / mutant.file).read_text(encoding="utf-8"))
        (tmp_path / f"{number}.py").write_text(f"# {mutant.name}\n{mutated}", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        "F821,F823",
        str(tmp_path),
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_no_two_mutants_are_the_same_and_there_are_enough() -> None:
    changed = Counter((m.file, m.mutated((ROOT / m.file).read_text(encoding="utf-8"))) for m in MUTANTS)
    assert max(changed.values()) == 1
    assert len(MUTANTS) >= LEAST


@pytest.mark.parametrize("group", GROUPS)
def test_a_mutant_of_a_statement_keeps_its_parameters(group: str) -> None:
    """Else every call of it fails, and any test notices that, whether it knows the rule or not."""
    for mutant in (each for each in MUTANTS if each.group == group and each.file.startswith(QUERIES)):
        before = (ROOT / mutant.file).read_text(encoding="utf-8")
        kept = {name: set(query.parameters) for name, query in statements(mutant.mutated(before)).items()}
        had = {name: set(query.parameters) for name, query in statements(before).items()}
        assert kept == had, f"{mutant.name}: (true OR …) keeps them"


def test_what_noticed_a_mutant_is_in_a_file_that_there_is() -> None:
    """The test itself may have another name by now: then the mutant meets the tests that it declares."""
    names = {mutant.name for mutant in MUTANTS}
    for mutant, test in noticed().items():
        assert mutant in names, f"take '{mutant}' out of tests/mutants/noticed.json"
        assert (ROOT / test.partition("::")[0]).is_file(), f"{mutant}: {test}"


def test_a_mutant_whose_text_is_gone_fails_loudly() -> None:
    gone = Mutant("reading", "gone", "composer/visibility.py", "no such text", "", "nothing", ())
    with pytest.raises(ValueError, match="occurs 0 times"):
        gone.mutated("some text")

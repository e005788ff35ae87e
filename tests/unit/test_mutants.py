"""Every mutant can still be applied: its text is in the code as often as it says, and what must notice it exists."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.mutant import QUERIES, ROOT, Mutant, load, statements
from tests.mutants.noticed import noticed

MUTANTS = load()
LEAST = 60


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.group}: {mutant.name}")
def test_a_mutant_is_up_to_date(mutant: Mutant) -> None:
    before = (ROOT / mutant.file).read_text(encoding="utf-8")
    after = mutant.mutated(before)
    assert after != before
    if mutant.file.endswith(".py"):
        compile(after, mutant.file, "exec")
    assert mutant.breaks
    assert mutant.tests
    for test in mutant.tests:
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not name or re.search(rf"^(async )?def {name.partition('[')[0]}\(", text, re.MULTILINE), test


def test_a_mutant_uses_no_name_that_there_is_not(tmp_path: Path) -> None:
    """Any test that comes by would notice it, whether it knows the rule or not."""
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


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.file.startswith(QUERIES)], ids=lambda mutant: mutant.name)
def test_a_mutant_of_a_statement_keeps_its_parameters(mutant: Mutant) -> None:
    """Else every call of it fails, and any test notices that, whether it knows the rule or not."""
    before = (ROOT / mutant.file).read_text(encoding="utf-8")
    kept = {name: set(query.parameters) for name, query in statements(mutant.mutated(before)).items()}
    assert kept == {name: set(query.parameters) for name, query in statements(before).items()}, "(true OR …) keeps them"


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

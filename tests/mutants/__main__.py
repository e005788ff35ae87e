"""`python -m tests.mutants [NAME …] [--group GROUP] [--list] [--at-once] [--json FILE]`: run the tests against mutants.

Prints a table of which test noticed each one. Exits with 1 when one survives, and with 2 when one can't be applied or
the tests fail without any. The code is copied to a temporary folder; nothing here is changed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants.mutant import ROOT, Mutant, load

COPIED: Final = ("composer", "bot", "jobs", "sql", "tests", "docs", "pyproject.toml", "README.md")
CLUSTER: Final = "cluster"  # the folder of the database cluster that all runs copy
MIGRATIONS: Final = "sql/migrations/"
TIMEOUT_SECONDS: Final = 900
WIDTH: Final = "300"  # characters of a line of pytest's summary, which ends with the error
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", re.MULTILINE)
_NOTICED: Final = ("assert", "AssertionError", "Failed:")  # how a test fails that sees what it was written for
_PASSED, _FAILED_CODE = 0, 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests made of a mutant: `killed_by` is the first test that failed, None if it survived. `error` is what
    it failed with, unless an assertion: such a test may have failed for another reason."""

    mutant: Mutant
    killed_by: str | None
    error: str
    seconds: float


def main() -> None:
    """Run the chosen mutants, or all."""
    parser = argparse.ArgumentParser(prog="make mutants", description="Take out one clause at a time: do tests notice?")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which mutants (all)")
    parser.add_argument("--group", help="only those of one file, such as reading")
    parser.add_argument("--list", action="store_true", help="list them and run nothing")
    parser.add_argument("--at-once", action="store_true", help="do not run the tests without a mutant first")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes there too")
    given = parser.parse_args()
    every = load()
    unknown = [name for name in given.names if name not in {mutant.name for mutant in every}]
    if unknown:
        parser.error(f"there is no mutant '{unknown[0]}'; --list shows them")
    chosen = [m for m in every if (not given.names or m.name in given.names) and given.group in (None, m.group)]
    for mutant in chosen if given.list else ():
        print(f"{mutant.group:10} {mutant.name:45} {mutant.breaks}")
    if not given.list:
        sys.exit(_run_all(chosen, given.json, at_once=given.at_once))


def _run_all(mutants: Sequence[Mutant], file: Path | None, *, at_once: bool) -> int:
    with tempfile.TemporaryDirectory(prefix="nexus-mutants-", dir=_fast_folder()) as folder:
        copy = Path(folder)
        copy.chmod(0o755)
        (copy / CLUSTER).mkdir(mode=0o755)
        for name in COPIED:
            source = ROOT / name
            ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=ignored)
            else:
                shutil.copy(source, copy / name)
        if not at_once and (failed := _failure_without_any(copy, mutants)):
            print(f"The tests fail without any mutant: {failed}", file=sys.stderr)
            return 2
        outcomes = []
        for mutant in mutants:
            outcomes.append(_run(copy, mutant))
            print(_row(outcomes[-1]), flush=True)
    survivors = [outcome.mutant.name for outcome in outcomes if outcome.killed_by is None]
    print(f"\n{len(outcomes)} mutants, {len(survivors)} survived{': ' if survivors else ''}{', '.join(survivors)}")
    if file is not None:
        rows = [
            {"name": o.mutant.name, "killed_by": o.killed_by, "error": o.error, "seconds": round(o.seconds, 1)}
            for o in outcomes
        ]
        file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 1 if survivors else 0


def _failure_without_any(copy: Path, mutants: Sequence[Mutant]) -> str:
    """The first test that fails without any mutant; empty if none does."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    print(f"… the tests without a mutant: {' '.join(tests)}", flush=True)
    code, failed, _ = _run_tests(copy, tests)
    return "" if code == _PASSED else failed


def _run(copy: Path, mutant: Mutant) -> Outcome:
    started = time.monotonic()
    before = mutant.apply(copy)
    try:
        code, failed, error = _run_tests(copy, mutant.tests, own_cluster=mutant.file.startswith(MIGRATIONS))
    finally:
        (copy / mutant.file).write_text(before, encoding="utf-8")
    if code not in (_PASSED, _FAILED_CODE):
        raise SystemExit(f"mutant '{mutant.name}': the tests could not run ({failed}); it must be valid code")
    return Outcome(mutant, failed if code == _FAILED_CODE else None, error, time.monotonic() - started)


def _run_tests(copy: Path, tests: Sequence[str], *, own_cluster: bool = False) -> tuple[int, str, str]:
    """Run tests in the copy, one after another until one fails; return pytest's exit code, the first failure, and what
    that failed with unless an assertion."""
    environment = os.environ | {"PYTHONPATH": str(copy), "COLUMNS": WIDTH}
    if not own_cluster:
        environment["NEXUS_TESTS_CLUSTER"] = str(copy / CLUSTER)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    found = _FAILED.search(done.stdout)
    if found is None:
        return done.returncode, done.stdout[-2_000:], ""
    error = found[2] or ""
    return done.returncode, found[1], "" if error.startswith(_NOTICED) else error


def _row(outcome: Outcome) -> str:
    by = "SURVIVED" if outcome.killed_by is None else outcome.killed_by.removeprefix("tests/")
    by += f"  ({outcome.error})" if outcome.error else ""
    return f"{outcome.mutant.group:9} {outcome.mutant.name:44} {outcome.seconds:5.0f} s  {by}"


def _fast_folder() -> str | None:
    shared = Path("/dev/shm")
    return str(shared) if os.access(shared, os.W_OK) else None


if __name__ == "__main__":
    main()

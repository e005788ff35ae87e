"""`python -m tests.mutants [NAME …] [--group GROUP] [--list] [--at-once] [--jobs N] [--record] [--json FILE]`: run the
tests against mutants.

Prints a table of which test noticed each one. Exits with 1 when one survives, and with 2 when one can't be applied, or
when a test that failed fails without it, too. The code is copied to temporary folders; nothing here is changed but the
record.

First each mutant meets the test that noticed it last (noticed.json). Those that it no longer notices meet the tests
that they declare.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

import structlog

from tests.mutants.mutant import Mutant, load
from tests.mutants.noticed import noticed, record
from tests.mutants.workplace import Workplace
from tests.support import runs
from tests.support.databases import make_cluster

ERROR_WIDTH: Final = 160
_NOTICED: Final = ("assert", "AssertionError", "Failed:")  # how a test fails that sees what it was written for
_PASSED, _FAILED, _NOTHING_RAN = 0, 1, 5  # pytest's exit codes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests made of a mutant: `killed_by` is the first test that failed, None if it survived. `error` is what
    it failed with, unless an assertion: such a test may have failed for another reason."""

    name: str
    killed_by: str | None
    error: str
    seconds: float


class TestsFail(Exception):
    """The tests fail without a mutant, or can't run with one."""


def main() -> None:
    """Run the chosen mutants, or all."""
    parser = argparse.ArgumentParser(prog="make mutants", description="Take out one clause at a time: do tests notice?")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which mutants (all)")
    parser.add_argument("--group", help="only those of one file, such as reading")
    parser.add_argument("--list", action="store_true", help="list them and run nothing")
    parser.add_argument("--at-once", action="store_true", help="do not run the tests that failed without a mutant")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="run N side by side (1)")
    parser.add_argument("--record", action="store_true", help="note which test noticed each; it comes first next time")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the outcomes there too; those that it holds are not run again"
    )
    given = parser.parse_args()
    every = load()
    unknown = [name for name in given.names if name not in {mutant.name for mutant in every}]
    if unknown:
        parser.error(f"there is no mutant '{unknown[0]}'; --list shows them")
    chosen = [m for m in every if (not given.names or m.name in given.names) and given.group in (None, m.group)]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.group:10} {mutant.name:45} {mutant.breaks}")
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    outcomes = _read(given.json)
    left = [mutant for mutant in chosen if mutant.name not in outcomes]
    try:
        with _workplaces(max(1, min(given.jobs, len(left)))) as places:
            for outcome in _outcomes(left, places):
                outcomes[outcome.name] = outcome
                if given.json is not None:
                    given.json.write_text(json.dumps([asdict(each) for each in outcomes.values()], indent=1))
            done = [outcomes[mutant.name] for mutant in chosen]
            if not given.at_once:
                _see_that_they_pass(places[0], sorted({each.killed_by for each in done if each.killed_by is not None}))
    except TestsFail as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    if given.record:
        record({outcome.name: outcome.killed_by for outcome in done})
    survivors = [outcome.name for outcome in done if outcome.killed_by is None]
    print(f"\n{len(done)} mutants, {len(survivors)} survived{': ' if survivors else ''}{', '.join(survivors)}")
    sys.exit(1 if survivors else 0)


def _read(file: Path | None) -> dict[str, Outcome]:
    if file is None or not file.exists():
        return {}
    return {row["name"]: Outcome(**row) for row in json.loads(file.read_text(encoding="utf-8"))}


@contextmanager
def _workplaces(number: int) -> Iterator[list[Workplace]]:
    before = os.environ.get("TMPDIR")
    folder = runs.begin(runs.base_folder())
    os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)  # each run of tests has its own
    tempfile.tempdir = None
    try:
        with ExitStack() as stack:
            cluster = make_cluster(folder)
            yield [stack.enter_context(closing(Workplace(folder / str(n), cluster))) for n in range(number)]
    finally:
        runs.remove(folder)


def _outcomes(mutants: Sequence[Mutant], places: Sequence[Workplace]) -> Iterator[Outcome]:
    """Run the mutants, those first of which it is known which test notices them, and print a row for each."""
    known = noticed()
    first = [mutant for mutant in mutants if mutant.name in known]
    left = [mutant for mutant in mutants if mutant.name not in known]
    for mutant, outcome in _run_all(first, places, known):
        if outcome.killed_by is None:
            left.append(mutant)
        else:
            yield outcome
    for _, outcome in _run_all(left, places, {}):
        yield outcome


def _see_that_they_pass(place: Workplace, tests: Sequence[str]) -> None:
    """See that the tests with these ids, which fail with a mutant, pass without any. Raises TestsFail."""
    if tests:
        print(f"… {len(tests)} tests without a mutant", flush=True)
        run = place.run(_files(tests), tests)
        if run.code != _PASSED:
            raise TestsFail(f"The tests fail without any mutant: {run.failed or place.log()[-2_000:]}\n{run.error}")
        if run.missing:
            raise TestsFail(f"These tests are there only with a mutant: {', '.join(run.missing)}")


def _run_all(
    mutants: Sequence[Mutant], places: Sequence[Workplace], asked: Mapping[str, str]
) -> Iterator[tuple[Mutant, Outcome]]:
    """Run mutants against the test that is asked for each, or else against those that they declare."""
    free: SimpleQueue[Workplace] = SimpleQueue()
    for place in places:
        free.put(place)

    def run(mutant: Mutant) -> tuple[Mutant, Outcome]:
        place = free.get()
        try:
            return mutant, _run(place, mutant, asked.get(mutant.name))
        finally:
            free.put(place)

    with ThreadPoolExecutor(len(places)) as threads:
        started = [threads.submit(run, mutant) for mutant in mutants]
        try:
            for future in as_completed(started):
                mutant, outcome = future.result()
                if outcome.killed_by is not None or mutant.name not in asked:
                    print(_row(mutant, outcome), flush=True)
                yield mutant, outcome
        finally:
            threads.shutdown(cancel_futures=True)


def _run(place: Workplace, mutant: Mutant, test: str | None) -> Outcome:
    started = time.monotonic()
    tests, only = (mutant.tests, []) if test is None else (_files([test]), [test])
    run = place.run(tests, only, mutant)
    error = "" if run.error.startswith(_NOTICED) else run.error.partition("\n")[0][:ERROR_WIDTH]
    if run.code is None:
        run.failed, error = "", "the tests do not end"
    elif run.code not in (_PASSED, _FAILED) and not (only and run.code == _NOTHING_RAN):
        said = run.error or place.log()[-2_000:]
        raise TestsFail(f"mutant '{mutant.name}': the tests could not run ({said}); it must be valid code")
    return Outcome(mutant.name, run.failed or None, error, round(time.monotonic() - started, 1))


def _files(tests: Iterable[str]) -> list[str]:
    return sorted({test.partition("::")[0] for test in tests})


def _row(mutant: Mutant, outcome: Outcome) -> str:
    by = "SURVIVED" if outcome.killed_by is None else outcome.killed_by.removeprefix("tests/")
    by += f"  ({outcome.error})" if outcome.error else ""
    return f"{mutant.group:9} {mutant.name:44} {outcome.seconds:5.0f} s  {by}"


if __name__ == "__main__":
    main()

"""`python -m tests.golden record FOLDER` and `python -m tests.golden compare A B`: the same behaviour, line by line.

`record` plays the week, the attack files, requests over the API, scripts, the wires of both platforms and generated
worlds, and writes what came of each. `compare` prints one line for each kind of difference between two recordings.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.golden.compare import compare
from tests.golden.record import record
from tests.golden.recording import FAMILIES

HERE: Final = Path(__file__).resolve().parent
QUICK: Final = 8  # one of so many cases


def main() -> int:
    """Record or compare; returns the exit status: 1 where recordings differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="play everything, and write what came of it")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--only", default=",".join(FAMILIES), help=f"of {', '.join(FAMILIES)}")
    recording.add_argument("--worlds", type=int, default=1_000, help="how many")
    recording.add_argument("--quick", action="store_true", help="one of eight cases, and 40 worlds")
    recording.add_argument("--code", type=Path, help="another working copy, whose code is recorded by this recorder")
    comparing = verbs.add_parser("compare", help="print how two recordings differ")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--only", default=",".join(FAMILIES))
    comparing.add_argument("--explain", action="store_true", help="with more examples of each kind")
    comparing.add_argument("--note-varying", action="store_true", help="both are of the same code: note what differs")
    given = parser.parse_args()
    if given.verb == "compare":
        return compare(given.before, given.after, given.only.split(","), given.explain, given.note_varying)
    if given.code is not None and given.code.resolve() != HERE.parents[1]:
        return _record_other(given)
    record(
        given.folder,
        given.only.split(","),
        QUICK if given.quick else 1,
        min(given.worlds, 40 if given.quick else given.worlds),
    )
    return 0


def _record_other(given: argparse.Namespace) -> int:
    """Run this recorder in another working copy."""
    there = given.code.resolve()
    shutil.copytree(HERE, there / "tests" / "golden", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    words = ["record", str(given.folder.resolve()), "--only", given.only, "--worlds", str(given.worlds)]
    words += ["--quick"] if given.quick else []
    return subprocess.run([there / ".venv/bin/python", "-m", "tests.golden", *words], cwd=there, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

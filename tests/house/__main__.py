"""Print the table of ideas: at 3f6bbc2b, now, the aim; then what grew. `python -m tests.house [--json] [--names]`."""

import argparse
import json
from pathlib import Path
from typing import Final

from tests.house.counts import (
    ANSWER_FORMS,
    FORMS,
    STEPS,
    count,
    definitions,
    locks,
    several_meanings,
    several_values,
    sizes,
)
from tests.house.source import Checkout

HERE: Final = Path(__file__).parent
RECORDED: Final = HERE / "recorded.json"  # made by `--record` in a checkout of 3f6bbc2b
AIMS: Final = {
    "glossary rows": 55,
    "tables": 52,
    "named queries": 400,
    "advisory lock families": 3,
    "steps of a Slack event until it is a row": 18,
    "forms of a Slack event until it is a row": 4,
    "forms of an answer until it is a row": 3,
    "class names with several meanings": 0,
    "composer/: rooms": 24,
    "composer/: floors": 8,
    "composer/: imports between rooms": 150,
    "places where a route is declared": 3,
    "lines: product": 73_000,
    "lines: tests": 78_000,
    "lines: CHANGELOG": 80,
}
HOW: Final = """
How it counts (tests/house/counts.py):
- Lock families are the texts that keys of transactions' advisory locks are made of. Those of sessions have a row.
- Steps and forms are declared lists, of which those count that exist: change them with the way of a message.
- Rooms are packages and modules directly below composer/; floors are the longest chain of imports between rooms.
- Places of a route are a declared list, of which those count that still name one.
- Lines are those of Python and SQL (product) and of Python (tests). Issue 31 counts the product
  in another way, and had 82,100."""


def main() -> None:
    """Print the table, or write down what is the case as that of 3f6bbc2b."""
    parser = argparse.ArgumentParser(prog="make house", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--names", action="store_true", help="print the names behind the numbers, too")
    parser.add_argument("--record", action="store_true", help="record the numbers, in place of those of 3f6bbc2b")
    parser.add_argument("--root", type=Path, default=HERE.parents[1], help="another checkout")
    asked = parser.parse_args()
    checkout = Checkout(asked.root.resolve())
    now = {"counts": count(checkout), "sizes": sizes(checkout)}
    if asked.record:
        RECORDED.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        return
    before = json.loads(RECORDED.read_text(encoding="utf-8"))
    if asked.json:
        rows = {
            name: {"at_3f6bbc2b": before["counts"].get(name), "now": value, "aim": AIMS.get(name)}
            for name, value in now["counts"].items()
        }
        behind = names(checkout) if asked.names else {}
        print(json.dumps({"rows": rows, "grew": grown(before, now)} | behind, indent=1))
        return
    known = definitions(checkout)
    print(f"{'':44}{'at 3f6bbc2b':>12}{'now':>9}{'aim':>9}")
    for name, value in now["counts"].items():
        aim = AIMS.get(name)
        print(f"{name:44}{before['counts'].get(name, ''):>12,}{value:>9,}{'' if aim is None else f'{aim:,}':>9}")
    grew = grown(before, now)
    if gone := [name for name in (*STEPS, *FORMS, *ANSWER_FORMS) if name not in known and " " not in name]:
        print(f"\nGone from the way of a message or an answer: {', '.join(gone)}")
    print("\nGrew since 3f6bbc2b: " + (", ".join(f"{n} (+{more:,})" for n, more in grew.items()) or "nothing"))
    print(HOW)
    if asked.names:
        print(json.dumps(names(checkout), indent=1))


def grown(before: dict[str, dict[str, int]], now: dict[str, dict[str, int]]) -> dict[str, int]:
    """What is more than it was: counts, and lines of packages."""
    found = {}
    for kind, unit in (("counts", ""), ("sizes", "lines of ")):
        for name, value in now[kind].items():
            if value > before[kind].get(name, 0):
                found[f"{unit}{name}"] = value - before[kind].get(name, 0)
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def names(checkout: Checkout) -> dict[str, object]:
    """The names behind the numbers."""
    known = definitions(checkout)
    of_transactions, of_sessions = locks(checkout)
    return {
        "classes": several_meanings(checkout),
        "constants": several_values(checkout),
        "locks": sorted(of_transactions),
        "locks of sessions": sorted(of_sessions),
        "steps that are gone": [name for name in STEPS if name not in known],
        "forms that are gone": [name for name in (*FORMS, *ANSWER_FORMS) if name not in known and " " not in name],
    }


if __name__ == "__main__":
    main()

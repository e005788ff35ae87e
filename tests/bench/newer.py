"""`python -m tests.bench.newer DATA`: whether a question about a state brings the newer of two statements.

The pairs of newer_pairs.txt are said in one room among the talk of five people (lines of LoCoMo, dealt out to them),
the old one in the first half, the newer one in the second; each question is asked a day after the end. The odd pairs
were looked at while thresholds were chosen, the even ones were not.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from bot.console.conversations import question
from bot.console.logs import configure_logs
from bot.importers.history import import_history
from bot.script.events import Line, MessageEvent
from composer.app import App
from composer.model import CONSOLE, ConversationKind, Place
from tests.bench.embedders import DEFAULT, EMBEDDERS, embedder_named
from tests.bench.quality import read_talks
from tests.bench.report import Report
from tests.bench.world import data_folder, opened, stores

PAIRS: Final = Path(__file__).with_name("newer_pairs.txt")
FILES: Final = {"first": PAIRS} | {
    name: PAIRS.with_name(f"newer_{name}.txt") for name in ("more", "teams", "tuning", "fresh", "held")
}
PEOPLE: Final = ("alice", "bob", "carol", "dave", "erin")
START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ROOM: Final = "office"
TAIL: Final = 60  # lines after the last statement: no statement stands in the view
EVERY: Final = timedelta(minutes=47)


@dataclass(frozen=True)
class Pair:
    """A statement, the one that replaced it, each with who said it, and a question."""

    author: str
    old: str
    newer_author: str
    newer: str
    question: str


def read_pairs(file: Path = PAIRS) -> list[Pair]:
    """The pairs of a file, in its order."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Pair(*line.split("|")) for line in lines if line and not line.startswith("#")]


def talk(pairs: list[Pair], noise: list[str], seed: int = 7) -> list[MessageEvent]:
    """All that is said, in order; the ids of a pair's statements are `old-N` and `new-N`."""
    dice = random.Random(seed)
    said: list[tuple[float, str, str, str]] = [
        (dice.random() if n < len(noise) - TAIL else 1.0 + n, f"n{n}", dice.choice(PEOPLE), text)
        for n, text in enumerate(noise)
    ]
    for n, pair in enumerate(pairs):
        said.append((dice.uniform(0.0, 0.5), f"old-{n}", pair.author, pair.old))
        said.append((dice.uniform(0.5, 1.0), f"new-{n}", pair.newer_author, pair.newer))
    return [
        MessageEvent(type="message", at=START + n * EVERY, workspace="newer", room=ROOM, user=who, id=id, text=text)
        for n, (_, id, who, text) in enumerate(sorted(said))
    ]


async def measure(data: Path, lines: int, embedder: str, *, show: bool, file: Path = PAIRS) -> Report:
    """Import, ask and count."""
    pairs = read_pairs(file)
    noise = [m.text for t in read_talks(data / "locomo" / "locomo-dev.json") for m in t.messages][:lines]
    messages = talk(pairs, noise)
    counts = {"odd": Counter[str](), "even": Counter[str]()}
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "newer", embedder=embedder_named(embedder)) as app:
            await _fill(app, messages)
            for n, pair in enumerate(pairs):
                recalled, marked = await _recalled(app, pair, messages[-1].at, n)
                kind = outcome(n, recalled)
                count = counts["even" if n % 2 else "odd"]
                count.update([kind, "asked"])
                count.update(["marked"] if marked else [])
                count.update(["above"] if above(n, recalled) else [])
                if show:
                    print(f"{n:2} {kind:8} {'*' if marked else ' '} {pair.question}  [{len(recalled)}]")
    report = Report("newer")
    columns = ["both", "new only", "old only", "neither", "marked", "above", "asked"]
    rows = [[half, *(float(count[c]) for c in columns)] for half, count in counts.items()]
    report.table(f"{len(noise)} lines of other talk: what the prompt recalls", ["pairs", *columns], rows)
    return report


def above(n: int, recalled: list[str]) -> bool:
    """Whether the newer statement of a pair stands above the older one, or alone."""
    old, new = f"old-{n}", f"new-{n}"
    return new in recalled and (old not in recalled or recalled.index(new) < recalled.index(old))


def outcome(n: int, recalled: list[str]) -> str:
    """Which of a pair's statements were recalled."""
    old, new = f"old-{n}" in recalled, f"new-{n}" in recalled
    return "both" if old and new else "new only" if new else "old only" if old else "neither"


async def _fill(app: App, messages: list[MessageEvent]) -> None:
    await import_history(app, [Line("newer", n, m) for n, m in enumerate(messages, 1)], lambda _: None)
    await app.indexer.catch_up(app.directory.workspace(CONSOLE, "newer").tenant_id)


async def _recalled(app: App, pair: Pair, last: datetime | None, n: int) -> tuple[list[str], bool]:
    assert last is not None
    workspace, place = app.directory.workspace(CONSOLE, "newer"), Place(ConversationKind.ROOM, ROOM)
    at = last + timedelta(days=1)
    made, _ = await question(app, workspace, place, "frank", pair.question, at, top_k=None, id=f"q{n}")
    prompt = (await app.composer.compose(made)).prompt
    section = next((s for s in prompt.sections if s.name == "RECALL"), None)
    if section is None:
        return [], False
    ids = [id for item in section.sources for id in item.messages]
    lines = section.text.split("\n")
    newer, older = (next((x for x in lines if text in x), "") for text in (pair.newer, pair.old))
    return ids, "newer than" in newer or "older than" in older


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.newer", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with locomo/")
    parser.add_argument("--lines", type=int, default=800, help="of other talk (800)")
    parser.add_argument("--embedder", default=DEFAULT, choices=EMBEDDERS)
    parser.add_argument("--show", action="store_true", help="print each pair")
    parser.add_argument(
        "--pairs", default="first", choices=FILES, help="of which file: by the others nothing was chosen"
    )
    given = parser.parse_args()
    configure_logs("error")
    report = asyncio.run(measure(given.data, given.lines, given.embedder, show=given.show, file=FILES[given.pairs]))
    sys.stdout.write("\n".join(report.text) + "\n")


if __name__ == "__main__":
    main()

"""`python -m tests.bench.relevance DATA`: what recall brings for questions with and without an answer.

100 labelled questions about IRC logs and LoCoMo conversations (tests/bench/relevance_questions.txt), each asked in its
room a day after the end: 70 that lines of the room answer, and 30 that none does (small talk, what has nothing to do
with the room, and what was never spoken of). And lines of small talk in six languages, with short requests and answers
(tests/bench/small_talk_lines.txt), in one room of each kind.
"""

import argparse
import asyncio
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import numpy as np

from bot.console.conversations import question
from bot.console.logs import configure_logs
from bot.importers.history import import_history
from bot.script.events import Line, MessageEvent
from composer.app import App
from composer.layers.relevance import asks_nothing
from composer.model import CONSOLE, ConversationKind, Place
from tests.bench.embedders import DEFAULT, EMBEDDERS, embedder_named
from tests.bench.irc import read_log
from tests.bench.quality import ROOM, read_talks, sources
from tests.bench.report import Report
from tests.bench.world import data_folder, opened, stores

QUESTIONS: Final = Path(__file__).with_name("relevance_questions.txt")
ANSWERABLE: Final = "answerable"
LINES: Final = QUESTIONS.with_name("small_talk_lines.txt")
ROOMS_OF_LINES: Final = ("locomo:2", "irc:2004-11-15_03")


@dataclass(frozen=True)
class Labelled:
    """A question, and the ids of the messages that answer it."""

    room: str
    asker: str
    kind: str
    evidence: frozenset[str]
    text: str


@dataclass(frozen=True)
class Outcome:
    """What was recalled for a question, best first, each item as the ids of its messages. `missing`: the evidence that
    the view does not show anyway. `fitting` are those that do not only stand there because they are newer than another.
    """

    asked: Labelled
    recalled: list[tuple[str, ...]]
    missing: frozenset[str]
    fitting: list[tuple[str, ...]]

    @property
    def newer(self) -> int:
        """How many items are only newer than another."""
        return len(self.recalled) - len(self.fitting)

    @property
    def precision(self) -> float:
        """The share of the items that hold evidence, of those that fit the question."""
        return float(np.mean([not self.missing.isdisjoint(item) for item in self.fitting])) if self.fitting else 0.0

    @property
    def recall(self) -> float:
        """The share of the evidence among the first ten."""
        found = {id for item in self.recalled[:10] for id in item}
        return len(self.missing & found) / len(self.missing)


def labelled() -> list[Labelled]:
    """Return the labelled questions."""
    rows = [line.split("\t") for line in QUESTIONS.read_text().splitlines() if not line.startswith("#")]
    return [
        Labelled(room, asker, kind, frozenset() if ids == "-" else frozenset(ids.split(",")), text)
        for room, asker, kind, ids, text in rows
    ]


def small_talk(room: str) -> list[Labelled]:
    """The lines of small talk, and of what is none, asked by somebody who is new in a room."""
    rows = [line.split("\t") for line in LINES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [Labelled(room, "frank", f"{kind} {language}", frozenset(), text) for kind, language, text in rows]


def rooms(data: Path) -> dict[str, list[MessageEvent]]:
    """Return the messages of each room."""
    found = {f"locomo:{n}": talk.messages for n, talk in enumerate(read_talks(data / "locomo" / "locomo-dev.json"))}
    for path in sorted((data / "irc").glob("*.ascii.txt")):
        name = path.name.partition(".")[0]
        found[f"irc:{name}"] = [
            MessageEvent(type="message", at=m.at, workspace=name, room=ROOM, user=m.author, id=str(n), text=m.text)
            for n, m in sorted(read_log(path).items())
        ]
    return found


async def measure(data: Path, embedder: str) -> Report:
    """Import, ask and count."""
    asked: defaultdict[str, list[Labelled]] = defaultdict(list)
    for one in labelled():
        asked[one.room].append(one)
    outcomes: list[Outcome] = []
    lines: dict[str, list[Outcome]] = {}
    with data_folder() as home:
        async with (
            stores(home) as servers,
            opened(home, servers, "relevance", embedder=embedder_named(embedder)) as app,
        ):
            for name, messages in rooms(data).items():
                sys.stderr.write(f"… {name}: {len(messages)} messages, {len(asked[name])} questions\n")
                await _fill(app, name, messages)
                outcomes += await _ask(app, name, messages, asked[name])
                if name in ROOMS_OF_LINES:
                    lines[name] = await _ask(app, name, messages, small_talk(name))
    return _report(outcomes, lines)


async def _fill(app: App, name: str, messages: list[MessageEvent]) -> None:
    workspace = app.directory.workspace(CONSOLE, name.replace(":", "-"))
    own = [message.model_copy(update={"workspace": workspace.name}) for message in messages]
    await import_history(app, [Line(name, n, m) for n, m in enumerate(own, 1)], lambda _: None)
    await app.indexer.catch_up(workspace.tenant_id)


async def _ask(app: App, name: str, messages: list[MessageEvent], asked: list[Labelled]) -> list[Outcome]:
    workspace = app.directory.workspace(CONSOLE, name.replace(":", "-"))
    at = max(message.at for message in messages if message.at is not None) + timedelta(days=1)
    place, outcomes = Place(ConversationKind.ROOM, ROOM), []
    for n, one in enumerate(asked):
        made, _ = await question(app, workspace, place, one.asker, one.text, at, top_k=None, id=f"q{n}")
        prompt = (await app.composer.compose(made)).prompt
        view = {*sources(prompt, "WORKING"), *sources(prompt, "RELATED")}
        items = [item for s in prompt.sections if s.name == "RECALL" for item in s.sources]
        fitting = [item.messages for item in items if item.score is not None]  # nothing ranked the others
        outcomes.append(Outcome(one, [item.messages for item in items], one.evidence - view, fitting))
    return outcomes


def _report(outcomes: list[Outcome], lines: dict[str, list[Outcome]]) -> Report:
    report = Report("relevance")
    answerable = [each for each in outcomes if each.asked.kind == ANSWERABLE and each.missing]
    rows = []
    for name in ("irc", "locomo"):
        own = [each for each in answerable if each.asked.room.startswith(name)]
        rows.append(
            [
                name,
                len(own),
                100 * float(np.mean([each.recall for each in own])),
                100 * float(np.mean([each.precision for each in own])),
                float(np.mean([len(each.recalled) for each in own])),
                float(np.mean([each.newer for each in own])),
                sum(not each.recalled for each in own),
            ]
        )
    columns = ["", "questions", "R@10, %", "precision, %", "items shown", "of them newer", "recalled nothing"]
    report.table("questions whose answer the view does not show", columns, rows)
    kinds = sorted({each.asked.kind for each in outcomes} - {ANSWERABLE})
    empty = {kind: [not each.recalled for each in outcomes if each.asked.kind == kind] for kind in kinds}
    table = [[kind, len(found), 100 * float(np.mean(found))] for kind, found in empty.items()]
    report.table("questions without an answer", ["", "questions", "recalled nothing, %"], table)
    for kind, title in (
        ("small", "small talk"),
        ("none", "short requests and answers"),
    ):
        by_language: dict[str, list[Outcome]] = defaultdict(list)
        for each in (each for found in lines.values() for each in found if each.asked.kind.startswith(kind)):
            by_language[each.asked.kind.split()[1]].append(each)
        table = [[language, *_nothing(found)] for language, found in by_language.items()]
        table.append(["all", *_nothing([each for found in by_language.values() for each in found])])
        report.table(f"{title}: recalled nothing, %", ["", *ROOMS_OF_LINES, "taken for small talk"], table)
    return report


def _nothing(outcomes: list[Outcome]) -> list[float]:
    """The percentage that recalled nothing in each room, and of those that need no search for it."""
    shares = [[not each.recalled for each in outcomes if each.asked.room == room] for room in ROOMS_OF_LINES]
    return [100 * float(np.mean(each)) for each in (*shares, [asks_nothing(each.asked.text, ()) for each in outcomes])]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench-quality", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with locomo/ and irc/")
    parser.add_argument("--embedder", default=DEFAULT, choices=EMBEDDERS)
    given = parser.parse_args()
    configure_logs("error")
    print("\n".join(asyncio.run(measure(given.data, given.embedder)).text), flush=True)


if __name__ == "__main__":
    main()

"""`python -m tests.bench.hard_cases DATA`: what recall brings for questions that are hard in one of ten ways.

The messages of all cases of hard_cases.txt are said in one room among other talk (lines of LoCoMo, dealt out to the
same people). Each question is asked at its own time in that room, after the last message. Of the view's messages none
belongs to a case. A long message counts as recalled only where the passage with the answer is. The baseline fuses the
ranks by meaning alone and by BM25 alone, of whole messages.
"""

import argparse
import asyncio
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from bot.console.conversations import question
from bot.console.logs import configure_logs
from bot.importers.history import import_history
from bot.script.events import Line, MessageEvent
from composer.app import App
from composer.model import CONSOLE, ConversationKind, Place
from tests.bench.embedders import DEFAULT, EMBEDDERS, embed_question, embedder_named
from tests.bench.quality import read_talks, sources
from tests.bench.quality_lists import Bm25, orders
from tests.bench.report import Report
from tests.bench.world import data_folder, opened, stores

CASES: Final = Path(__file__).with_name("hard_cases.txt")
HALVES: Final = ("tuning", "held")
WORKSPACE: Final = "hard"
ROOM: Final = "office"
YEAR: Final = 2026
START: Final = datetime(YEAR, 3, 2, 8, 0, tzinfo=UTC)
END: Final = datetime(YEAR, 6, 3, 7, 0, tzinfo=UTC)  # after the last message of a case
TAIL: Final = 60  # lines of other talk from END on: they fill the view
BASELINE: Final = "both, rank fusion"
SHOWN: Final = 5

_PERSON: Final = re.compile(r"@ (\S+) = (.+)")
_KIND: Final = re.compile(r"## (\d+) ([^:,]+)")
_HEAD: Final = re.compile(r"\[(\d+)\.(\d+) (tuning|held) (\S+)\]")
_HOLDS: Final = re.compile(r"! (.+)")
_SAID: Final = re.compile(r"([-+~=?]) (\w{3} \d+ \w{3} \d\d:\d\d) (\S+): (.+)")


@dataclass
class Said:
    """A message or the question of a case. The mark says what it is in the case: see the head of the file."""

    id: str
    mark: str
    at: datetime
    who: str
    text: str


@dataclass
class Case:
    """What was said, and the question about it."""

    name: str
    kind: str
    half: str
    language: str
    said: list[Said] = field(default_factory=list)
    holds: str = ""  # what is recalled of the answer must hold these words

    @property
    def question(self) -> Said:
        """The line with the mark of a question."""
        return next(s for s in self.said if s.mark == "?")

    def marked(self, mark: str) -> frozenset[str]:
        """The ids of the messages with that mark."""
        return frozenset(s.id for s in self.said if s.mark == mark)


@dataclass(frozen=True)
class Outcome:
    """What recall brought for a case, best first, and what the baseline did."""

    case: Case
    recalled: list[str]
    baseline: list[str]

    def share(self, k: int, order: Sequence[str]) -> float:
        """The share of the evidence among the first k. Of much evidence no more can be there than there is room."""
        evidence = self.case.marked("+")
        return len(evidence.intersection(order[:k])) / min(k, len(evidence))

    def above(self, order: Sequence[str]) -> float:
        """Whether the current statement stands above all stale ones, or alone; not a number where none is stale."""
        stale = self.case.marked("-")
        if not stale:
            return float("nan")
        ranks = {id: n for n, id in enumerate(order)}
        current = min(ranks.get(id, len(order)) for id in self.case.marked("+"))
        return float(current < min(ranks.get(id, len(order)) for id in stale))


def read_cases(file: Path = CASES) -> tuple[dict[str, str], list[Case]]:
    """The people by handle, and the cases. Raises ValueError for a line that is none of the format."""
    people: dict[str, str] = {}
    cases: list[Case] = []
    kind = ""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if found := _KIND.match(line):
            kind = f"{found[1]} {found[2]}"
        elif not line or line.startswith("#"):
            continue
        elif found := _PERSON.fullmatch(line):
            people[found[1]] = found[2]
        elif found := _HEAD.fullmatch(line):
            cases.append(Case(f"{found[1]}.{found[2]}", kind, found[3], found[4]))
        elif found := _HOLDS.fullmatch(line):
            cases[-1].holds = found[1]
        elif line.startswith("    "):
            cases[-1].said[-1].text += "\n" + line.strip()
        elif (found := _SAID.fullmatch(line)) and found[3] in people:
            id = f"c{cases[-1].name}-{len(cases[-1].said)}"
            cases[-1].said.append(Said(id, found[1], _time(found[2], number), found[3], found[4]))
        else:
            raise ValueError(f"line {number} is neither a head, a message nor a comment: {line[:60]}")
    return people, cases


def _time(text: str, number: int) -> datetime:
    at = datetime.strptime(f"{text} {YEAR}", "%a %d %b %H:%M %Y").replace(tzinfo=UTC)
    if f"{at:%a}" != text[:3]:
        raise ValueError(f"line {number}: {text} is a {at:%a}")
    return at


def talk(people: dict[str, str], cases: Sequence[Case], noise: Sequence[str], seed: int = 7) -> list[MessageEvent]:
    """All that is said, in order of time: the cases, and other talk between 8 and 18 o'clock of all days."""
    dice = random.Random(seed)
    days = (END - START).days
    said = [s for case in cases for s in case.said if s.mark != "?"]
    for n, text in enumerate(noise):
        day, minutes = dice.randrange(days), dice.uniform(0, 600)
        in_tail = n >= len(noise) - TAIL
        at = END + timedelta(minutes=n % TAIL) if in_tail else START + timedelta(days=day, minutes=minutes)
        said.append(Said(f"n{n}", " ", at, dice.choice(list(people)), text))
    return [_event(s, people[s.who]) for s in sorted(said, key=lambda s: (s.at, s.id))]


def _event(s: Said, name: str) -> MessageEvent:
    return MessageEvent(
        type="message", at=s.at, workspace=WORKSPACE, room=ROOM, user=s.who, name=name, id=s.id, text=s.text
    )


async def measure(data: Path, lines: int, embedder: str, halves: Sequence[str], *, show: bool) -> Report:
    """Import, ask and count."""
    people, cases = read_cases()
    noise = [m.text for t in read_talks(data / "locomo" / "locomo-dev.json") for m in t.messages][:lines]
    messages = talk(people, cases, noise)
    model, outcomes = embedder_named(embedder), []
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, WORKSPACE, embedder=model) as app:
            await import_history(app, [Line(WORKSPACE, n, m) for n, m in enumerate(messages, 1)], lambda _: None)
            await app.indexer.catch_up(app.directory.workspace(CONSOLE, WORKSPACE).tenant_id)
            rest = messages[:-TAIL]
            words = Bm25([m.text for m in rest])
            vectors = np.vstack([await model.embed([m.text]) for m in rest])
            for case in (case for case in cases if case.half in halves):
                recalled = await _recalled(app, case)
                vector = await embed_question(model, case.question.text)
                order = orders(case.question.text, vector, vectors, words)[BASELINE]
                outcomes.append(Outcome(case, recalled, [str(rest[i].id) for i in order]))
    if show:
        texts = {str(m.id): f"{m.at:%a %d %b} {m.user}: {m.text}" for m in messages}
        print("\n".join(line for outcome in outcomes for line in _shown(outcome, texts)))
    return _report(outcomes, f"{len(messages)} messages in the room, {embedder}")


async def _recalled(app: App, case: Case) -> list[str]:
    workspace, place = app.directory.workspace(CONSOLE, WORKSPACE), Place(ConversationKind.ROOM, ROOM)
    asked = case.question
    made, _ = await question(app, workspace, place, asked.who, asked.text, asked.at, top_k=None, id=asked.id)
    prompt = (await app.composer.compose(made)).prompt
    seen = {*sources(prompt, "RELATED"), *sources(prompt, "WORKING")}
    if seen & case.marked("+"):
        raise RuntimeError(f"the evidence of case {case.name} is in the view: it is too near to the question")
    recalled = sources(prompt, "RECALL")
    text = " ".join(word for s in prompt.sections if s.name == "RECALL" for word in s.text.split())
    return recalled if case.holds in text else [id for id in recalled if id not in case.marked("+")]


def _shown(outcome: Outcome, texts: dict[str, str]) -> Iterator[str]:
    """A case with the ranks of its messages, and the first lines that were recalled."""
    case, recalled = outcome.case, outcome.recalled
    marks = {s.id: s.mark for s in case.said}
    ranks = {s.id: recalled.index(s.id) + 1 if s.id in recalled else None for s in case.said}
    evidence = ", ".join(str(ranks[s.id] or "none") for s in case.said if s.mark == "+")
    base = ", ".join(str(outcome.baseline.index(id) + 1) for id in sorted(case.marked("+")))
    yield f"{case.name} {case.language} {case.question.text}"
    yield f"     rank {evidence} of {len(recalled)}; baseline {base}; {case.question.at:%a %d %b} {case.question.who}"
    for n, id in enumerate(recalled[:SHOWN], 1):
        yield f"     {n} {marks.get(id, ' ')} {' '.join(texts[id].split())[:150]}"


def _report(outcomes: Sequence[Outcome], room: str) -> Report:
    report = Report("hard_cases")
    head = ["", "cases", "R@1", "R@5", "nothing", "above", "baseline R@1", "R@5 ", "above "]
    for half in (half for half in HALVES if any(o.case.half == half for o in outcomes)):
        own = [o for o in outcomes if o.case.half == half]
        groups = {kind: [o for o in own if o.case.kind == kind] for kind in dict.fromkeys(o.case.kind for o in own)}
        groups["in English"] = [o for o in own if o.case.language == "en"]
        groups["in other languages"] = [o for o in own if o.case.language != "en"]
        groups["all"] = own
        report.table(f"{half}, %: {room}", head, [[name, len(each), *_figures(each)] for name, each in groups.items()])
        report.figures[half] = {name: dict(zip(head[2:], _figures(each), strict=True)) for name, each in groups.items()}
    return report


def _figures(outcomes: Sequence[Outcome]) -> list[float | str]:
    """The columns of a group after its name and count."""
    return [
        _mean([o.share(1, o.recalled) for o in outcomes]),
        _mean([o.share(5, o.recalled) for o in outcomes]),
        _mean([float(not o.recalled) for o in outcomes]),
        _mean([o.above(o.recalled) for o in outcomes]),
        _mean([o.share(1, o.baseline) for o in outcomes]),
        _mean([o.share(5, o.baseline) for o in outcomes]),
        _mean([o.above(o.baseline) for o in outcomes]),
    ]


def _mean(shares: Sequence[float]) -> float | str:
    """The mean of those that are numbers, in percent, or nothing."""
    kept = [share for share in shares if share == share]
    return f"{100 * float(np.mean(kept)):.0f}" if kept else ""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.hard_cases", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with locomo/")
    parser.add_argument("--lines", type=int, default=800, help="of other talk (800)")
    parser.add_argument("--embedder", default=DEFAULT, choices=EMBEDDERS)
    parser.add_argument("--half", choices=HALVES, help="ask only the questions of one half (both)")
    parser.add_argument("--show", action="store_true", help="print each case, with ranks and what was recalled first")
    given = parser.parse_args()
    configure_logs("error")
    halves = [given.half] if given.half else HALVES
    report = asyncio.run(measure(given.data, given.lines, given.embedder, halves, show=given.show))
    sys.stdout.write("\n".join(report.text) + "\n")


if __name__ == "__main__":
    main()

"""`python -m tests.bench.assistant_talks DATA`: what recall brings of a person's long talk with an assistant.

The persons of assistant_talks.txt each talk with an assistant for months. Between their own sessions stand 27 others
that are made of paragraphs with questions (XQuAD) and of dialogues with an assistant (MADial), and an answer of the
assistant that is short goes on with such a paragraph. Questions are asked a day after the end, in a fresh session.

`--way dm` (the default) is a DM with the agent, which answers each turn by a model that says what is written. `--way
import` is what an export brings: a private channel of the person and a bot. There is no importer of another assistant's
own export. What an agent of ours said is never recalled, so of a DM the baselines also rank the person's turns alone.
"""

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from bot.console.conversations import question
from bot.console.logs import configure_logs
from bot.script.places import incoming
from composer.app import App
from composer.model import CONSOLE, Agent, ConversationKind, Item, Place, Trust, Usage, Workspace
from composer.ports.models import ChatMessage, Chunk, Vectors
from composer.prompt.sections import Prompt
from composer.stores.models.minilm import MiniLM
from composer.stores.models.tokens import tokenizer_for
from composer.turn.answers import REPLY_PREFIX
from tests.bench.assistant_persons import Asked, Person, Said, made_long, read_persons
from tests.bench.embedders import DEFAULT, EMBEDDERS, embed_question, embedder_named
from tests.bench.quality import COMPOSED, TOKENS, TOP_K
from tests.bench.quality_lists import Bm25, Scores, orders
from tests.bench.report import Report
from tests.bench.world import data_folder, opened, stores
from tests.support.harness import ManualClock, RecordedDelivery

WAYS: Final = ("dm", "import")
HALVES: Final = ("tuning", "held")
ASSISTANT: Final = "assistant"
COLUMNS: Final = ("R@1", "R@5", "R@10", "R@1k tok", "nothing")
SHOWN: Final = 10  # recalled lines of a question


class ScriptedModel:
    """Says what is written."""

    def __init__(self) -> None:
        self.answer = ""
        self.asked = 0

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        self.asked += 1
        yield Chunk(self.answer, Usage(1, 1))


@dataclass(frozen=True)
class Bench:
    """An open app with what its model says and its clock shows."""

    app: App
    model: ScriptedModel
    clock: ManualClock
    way: str

    def place(self, person: Person) -> Place:
        """Where a person talks with the assistant."""
        return (
            Place(ConversationKind.DM, "nexus")
            if self.way == "dm"
            else Place(ConversationKind.ROOM, f"{person.name}-{ASSISTANT}", private=True)
        )

    async def fill(self, workspace: Workspace, person: Person) -> None:
        """Say everything."""
        place = self.place(person)
        if self.way == "import":
            batch = [
                incoming(
                    workspace,
                    place,
                    ASSISTANT if turn.answers else person.name,
                    turn.text,
                    turn.at,
                    id=turn.id,
                    trust=Trust.TOOL if turn.answers else Trust.MEMBER,
                )
                for turn in person.turns
            ]
            await self.app.receive(workspace, batch, answer=False)
        else:
            for said, answer in zip(person.turns[::2], person.turns[1::2], strict=True):
                self.model.answer = answer.text
                self.clock.set(said.at)
                sent = incoming(workspace, place, person.name, said.text, said.at, id=said.id)
                await self.app.receive(workspace, [sent])
                await self.app.turns.settle()
        await self.app.indexer.catch_up(workspace.tenant_id)


async def measure(
    data: Path, embedder: str, *, way: str = "dm", halves: Sequence[str] = HALVES, show: bool = False
) -> Report:
    """Talk, ask and count."""
    persons = [made_long(person, data, seed) for seed, person in enumerate(read_persons())]
    counts = Counts()
    with data_folder() as home:
        async with AsyncExitStack() as stack:
            servers = await stack.enter_async_context(stores(home))
            embedding, model, clock = embedder_named(embedder), ScriptedModel(), ManualClock()
            options = {"embedder": embedding, "model": model, "clock": clock}
            app = await stack.enter_async_context(opened(home, servers, "talks", **options))
            app.turns.serve(CONSOLE, RecordedDelivery())
            for person in persons:
                turns, sessions = len(person.turns), len(person.sessions)
                sys.stderr.write(f"… {person.name}: {sessions} sessions, {turns} turns\n")
                bench = Bench(app, model, clock, way)
                workspace = app.directory.workspace(CONSOLE, f"talks-{person.name}")
                await bench.fill(workspace, person)
                await _ask(bench, workspace, person, embedding, halves, counts, show=show)
    return _report(counts, embedder, way)


@dataclass
class Counts:
    """What was found, by half, kind and way; and of what was updated, which turn stands first."""

    shares: defaultdict[tuple[str, str, str], list[dict[str, float]]] = field(default_factory=lambda: defaultdict(list))
    above: defaultdict[tuple[str, str], list[bool]] = field(default_factory=lambda: defaultdict(list))
    in_view: int = 0


async def _ask(
    bench: Bench,
    workspace: Workspace,
    person: Person,
    embedding: MiniLM,
    halves: Sequence[str],
    counts: Counts,
    *,
    show: bool,
) -> None:
    app, at = bench.app, person.asked_at
    bench.clock.set(at)
    answers = {said.id: answer.id for said, answer in zip(person.turns[::2], person.turns[1::2], strict=True)}
    size = {turn.id: tokenizer_for("").count(f"{person.name}: {turn.text}") for turn in person.turns}
    lists: Baselines | None = None
    for n, asked in enumerate(person.questions):
        if asked.half not in halves:
            continue
        made, _ = await question(
            app, workspace, bench.place(person), person.name, asked.text, at, top_k=TOP_K, id=f"q{n}"
        )
        prompt = (await app.composer.compose(replace(made, top_k=TOP_K))).prompt
        in_view = {*_turns(_items(prompt, "RELATED"), answers), *_turns(_items(prompt, "WORKING"), answers)}
        items = _items(prompt, "RECALL")
        evidence = frozenset(asked.evidence) - in_view
        counts.in_view += len(asked.evidence) - len(evidence)
        if not evidence:
            continue
        if lists is None:  # the view is the same for every question
            rest = [turn for turn in person.turns if turn.id not in in_view]
            lists = await Baselines.of(rest, embedding, own=bench.way == "dm")
        ways = {COMPOSED: _turns(items, answers), **await lists.orders(asked.text)}
        for way, order in ways.items():
            counts.shares[asked.half, asked.kind, way].append(_shares(order, evidence, size))
            if asked.stale:
                counts.above[asked.half, way].append(is_above(order, asked))
        if show:
            _show(asked, items, ways, answers)


def _items(prompt: Prompt, section: str) -> list[Item]:
    return [item for s in prompt.sections if s.name == section for item in s.sources]


def _turns(items: Iterable[Item], answers: dict[str, str]) -> list[str]:
    """The turns that items came from, in their order, each once."""
    return list(dict.fromkeys(_turn(id, answers) for item in items for id in item.messages))


def _turn(id: str, answers: dict[str, str]) -> str:
    """The id of a turn by that of its message: a reply is named after the message that it answers."""
    return answers.get(id.removeprefix(REPLY_PREFIX).rpartition(":")[0], id) if id.startswith(REPLY_PREFIX) else id


def is_above(order: Sequence[str], asked: Asked) -> bool:
    """Whether what is true now was recalled, and stands above all that was once true."""
    now = min((order.index(id) for id in asked.evidence if id in order), default=None)
    return now is not None and all(now < order.index(id) for id in asked.stale if id in order)


def _shares(order: Sequence[str], evidence: frozenset[str], size: dict[str, int]) -> dict[str, float]:
    """The shares of one question, by column. Of several turns, no more can be among the first than there is room."""
    fitting = int(np.searchsorted(np.cumsum([size[id] for id in order]), TOKENS, side="right"))
    firsts = {f"R@{k}": len(evidence.intersection(order[:k])) / min(k, len(evidence)) for k in (1, 5, 10)}
    return {**firsts, "R@1k tok": len(evidence.intersection(order[:fitting])) / len(evidence), "nothing": not order}


@dataclass(frozen=True)
class Baselines:
    """Orders of turns by plain meaning, by BM25 and by both: of all turns, and of the person's own."""

    turns: list[Said]
    words: Bm25
    vectors: dict[str, tuple[MiniLM, Vectors]]
    own: bool

    @classmethod
    async def of(cls, turns: list[Said], embedding: MiniLM, *, own: bool) -> "Baselines":
        """Those of these turns."""
        models = {"meaning": embedding} | ({} if type(embedding) is MiniLM else {"minilm": MiniLM()})
        vectors = {
            name: (model, np.vstack([await model.embed([turn.text]) for turn in turns]))
            for name, model in models.items()
        }
        return cls(turns, Bm25([turn.text for turn in turns]), vectors, own)

    async def orders(self, text: str) -> dict[str, list[str]]:
        """The ids of the turns by each way, best first."""
        words = self.words.scores(text)
        found: dict[str, list[str]] = {}
        for name, (model, vectors) in self.vectors.items():
            vector = await embed_question(model, text)
            dense, lexical, fused = orders(text, vector, vectors, self.words).values()
            found |= {name: self._ids(dense), "BM25": self._ids(lexical), f"{name} and BM25, ranks": self._ids(fused)}
            summed = np.argsort(-(_scaled(vectors @ vector) + _scaled(words)), kind="stable")
            found[f"{name} and BM25, sum"] = self._ids(summed)
        if not self.own:
            return found
        answers = {turn.id for turn in self.turns if turn.answers}
        own = {f"{way}, own turns": [id for id in order if id not in answers] for way, order in found.items()}
        return {**found, **own}

    def _ids(self, order: Iterable[int]) -> list[str]:
        return [self.turns[n].id for n in order]


def _scaled(values: Vectors | Scores) -> Scores:
    span = float(values.max() - values.min()) or 1.0
    scaled: Scores = ((values - values.min()) / span).astype(np.float64)
    return scaled


def _show(asked: Asked, items: Sequence[Item], ways: dict[str, list[str]], answers: dict[str, str]) -> None:
    """Print what was recalled for a question, with the parts of the scores, and the places of what was needed."""
    places = {way: [order.index(id) + 1 if id in order else 0 for id in asked.evidence] for way, order in ways.items()}
    print(f"\n{asked.kind}, {asked.half}: {asked.text}  evidence {','.join(asked.evidence)} places {places[COMPOSED]}")
    print("  " + "; ".join(f"{way} {place}" for way, place in places.items() if way != COMPOSED))
    if asked.stale:
        print(f"  stale {','.join(asked.stale)}")
    for n, item in enumerate(items, 1):
        turns = _turns([item], answers)
        needed = not frozenset(asked.evidence).isdisjoint(turns)
        if n > SHOWN and not needed:
            continue
        mark = "*" if needed else "-" if not frozenset(asked.stale).isdisjoint(turns) else " "
        parts = " ".join(f"{name} {value:.2f}" for name, value in item.reasons.items())
        text = " ".join(item.text.split())
        print(f"  {mark}{n:2} {item.score or 0:.2f} {','.join(turns):8} {item.kind:8} [{parts}] {text[:90]}")


def _report(counts: Counts, embedder: str, way: str) -> Report:
    report = Report("assistant_talks")
    ways = list(dict.fromkeys(each for _, _, each in counts.shares))
    kinds = list(dict.fromkeys(kind for _, kind, _ in counts.shares))
    for half in dict.fromkeys(half for half, _, _ in counts.shares):
        rows = [
            [kind, *_means(counts.shares[half, kind, COMPOSED]), len(counts.shares[half, kind, COMPOSED])]
            for kind in kinds
            if counts.shares[half, kind, COMPOSED]
        ]
        title = f"{half} half, {way}, {embedder}: evidence recalled, %"
        report.table(f"{title}, by kind", ["", *COLUMNS, "questions"], rows)
        table: list[list[object]] = []
        for each in ways:
            found = [one for kind in kinds for one in counts.shares[half, kind, each]]
            above = counts.above[half, each]
            table.append([each, *_means(found), 100 * float(np.mean(above)) if above else 0.0])
        report.table(title, ["", *COLUMNS, "current above"], table)
        report.figures[half] = {
            str(row[0]): dict(zip((*COLUMNS, "current above"), row[1:], strict=True)) for row in table
        }
    report.text.append(f"{counts.in_view} turns of evidence stood in the view anyway and do not count.")
    return report


def _means(found: Sequence[dict[str, float]]) -> list[float]:
    return [100 * float(np.mean([each[column] for each in found])) for column in COLUMNS]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.assistant_talks", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with xquad/ and madial/")
    parser.add_argument("--way", default="dm", choices=WAYS, help="how the talk came here (dm)")
    parser.add_argument("--half", choices=HALVES, help="one half of the questions (both)")
    parser.add_argument("--embedder", default=DEFAULT, choices=EMBEDDERS)
    parser.add_argument("--show", action="store_true", help="print what each question recalls; only of the tuning half")
    given = parser.parse_args()
    configure_logs("error")
    halves = HALVES if given.half is None else (given.half,)
    if given.show and "held" in halves:
        parser.error("--show is for the tuning half alone: add --half tuning")
    report = asyncio.run(measure(given.data, given.embedder, way=given.way, halves=halves, show=given.show))
    sys.stdout.write("\n".join(report.text) + "\n")


if __name__ == "__main__":
    main()

"""`python -m tests.bench.quality DATA`: the share of the evidence for a question that recall brings into the prompt.

LoCoMo, categories 1 to 4: each conversation is imported as usual into a room of its own, and each
question is asked there a day after its end. The working view (the last messages) is in the prompt
anyway: its messages are not counted as evidence and, for the baselines, not ranked.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from bot.console.conversations import question
from bot.console.logs import configure_logs
from bot.importers.history import import_history
from bot.script.events import Line, MessageEvent
from composer.app import App
from composer.model import CONSOLE, ConversationKind, Place
from composer.prompt.sections import Prompt
from composer.stores.models.minilm import MiniLM
from composer.stores.models.tokens import tokenizer_for
from tests.bench.embedders import DEFAULT, EMBEDDERS, embed_question, embedder_named
from tests.bench.quality_lists import Bm25, orders
from tests.bench.report import Report
from tests.bench.world import data_folder, opened, stores

DEPTHS: Final = (5, 10, 20)
TOKENS: Final = 1_000
TOP_K: Final = 60
ROOM: Final = "talk"
COMPOSED: Final = "nexus compose"
CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


@dataclass(frozen=True)
class Asked:
    """A question with the ids of the messages that hold its answer."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Talk:
    """One conversation: its messages in order and the questions about it."""

    messages: list[MessageEvent]
    questions: list[Asked]


def read_talks(path: Path) -> list[Talk]:
    """Read the conversations of a LoCoMo file. The caption of an image is put into the text, in brackets."""
    return [_talk(entry, f"locomo{n}") for n, entry in enumerate(json.loads(path.read_text()))]


def _talk(entry: Mapping[str, Any], workspace: str) -> Talk:
    said, messages, number = entry["conversation"], [], 1
    while f"session_{number}" in said:
        start = datetime.strptime(said[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for n, turn in enumerate(said[f"session_{number}"]):
            caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            at = start + timedelta(seconds=30 * n)
            messages.append(
                MessageEvent(
                    type="message",
                    at=at,
                    workspace=workspace,
                    room=ROOM,
                    user=turn["speaker"],
                    id=turn["dia_id"],
                    text=turn["text"] + caption,
                )
            )
        number += 1
    ids = {message.id for message in messages}
    questions = []
    for qa in entry["qa"]:
        evidence = frozenset(re.findall(r"D\d+:\d+", " ".join(qa.get("evidence") or []))) & ids
        if qa["category"] in CATEGORIES and evidence:
            questions.append(Asked(qa["question"], qa["category"], frozenset(str(id) for id in evidence)))
    return Talk(messages, questions)


class Tally:
    """Shares of the evidence found, by method, category and depth."""

    def __init__(self) -> None:
        self.shares: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.categories: defaultdict[int, list[float]] = defaultdict(list)

    def count(
        self, way: str, asked: Asked, order: Sequence[str], evidence: frozenset[str], size: Mapping[str, int]
    ) -> None:
        """Count one question; `order` is best first, `size` the tokens of each message."""
        for depth in DEPTHS:
            share = len(evidence.intersection(order[:depth])) / len(evidence)
            self.shares[way, f"R@{depth}"].append(share)
            if way == COMPOSED and depth == 10:
                self.categories[asked.category].append(share)
        fitting = int(np.searchsorted(np.cumsum([size[id] for id in order]), TOKENS, side="right"))
        self.shares[way, "R@1k tok"].append(len(evidence.intersection(order[:fitting])) / len(evidence))


async def measure(data: Path, name: str) -> Report:
    """Import, ask and count."""
    talks, tally = read_talks(data / "locomo" / "locomo-dev.json"), Tally()
    with data_folder() as home:
        async with stores(home) as servers:
            embedder = embedder_named(name)
            async with opened(home, servers, "quality", embedder=embedder) as app:
                for talk in talks:
                    sys.stderr.write(f"… {len(talk.messages)} messages, {len(talk.questions)} questions\n")
                    await _ask(app, embedder, talk, tally)
    return _report(tally, len(talks))


async def _ask(app: App, embedder: MiniLM, talk: Talk, tally: Tally) -> None:
    workspace = app.directory.workspace(CONSOLE, talk.messages[0].workspace)
    await import_history(app, [Line("locomo", n, m) for n, m in enumerate(talk.messages, 1)], lambda _: None)
    await app.indexer.catch_up(workspace.tenant_id)
    last, place = talk.messages[-1], Place(ConversationKind.ROOM, ROOM)
    assert last.at is not None
    size = {str(m.id): tokenizer_for("").count(f"{m.user}: {m.text}") for m in talk.messages}
    words = vectors = None
    for n, asked in enumerate(talk.questions):
        at = last.at + timedelta(days=1)
        made, _ = await question(app, workspace, place, talk.messages[0].user, asked.text, at, top_k=TOP_K, id=f"q{n}")
        prompt = (await app.composer.compose(replace(made, top_k=TOP_K))).prompt
        in_view, recalled = [*sources(prompt, "RELATED"), *sources(prompt, "WORKING")], sources(prompt, "RECALL")
        evidence = asked.evidence - set(in_view)
        if not evidence:
            continue
        if words is None or vectors is None:  # the view is the same for every question
            rest = [m for m in talk.messages if m.id not in in_view]
            words = Bm25([m.text for m in rest])
            vectors = np.vstack([await embedder.embed([m.text]) for m in rest])
        tally.count(COMPOSED, asked, recalled, evidence, size)
        vector = await embed_question(embedder, asked.text)
        for way, order in orders(asked.text, vector, vectors, words).items():
            tally.count(way, asked, [str(rest[i].id) for i in order], evidence, size)


def sources(prompt: Prompt, section: str) -> list[str]:
    """Return the ids of the messages that a section came from, in its order, each once."""
    found = [s for s in prompt.sections if s.name == section]
    return list(dict.fromkeys(id for s in found for item in s.sources for id in item.messages))


def _report(tally: Tally, talks: int) -> Report:
    report = Report("quality")
    columns = [*(f"R@{depth}" for depth in DEPTHS), "R@1k tok"]
    ways = list(dict.fromkeys(way for way, _ in tally.shares))
    rows = [[way, *(100 * float(np.mean(tally.shares[way, c])) for c in columns)] for way in ways]
    asked = len(tally.shares[COMPOSED, columns[0]])
    report.table(f"LoCoMo, {talks} conversations, {asked} questions: evidence recalled, %", ["", *columns], rows)
    report.table(
        "nexus compose by category, %",
        ["", "R@10", "questions"],
        [[CATEGORIES[c], 100 * float(np.mean(v)), len(v)] for c, v in sorted(tally.categories.items())],
    )
    report.figures = {str(row[0]): dict(zip(columns, row[1:], strict=True)) for row in rows}
    return report


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench-quality", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with locomo/")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--embedder", default=DEFAULT, choices=EMBEDDERS)
    given = parser.parse_args()
    configure_logs("error")
    report = asyncio.run(measure(given.data, given.embedder))
    print("\n".join(report.text), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(report.figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

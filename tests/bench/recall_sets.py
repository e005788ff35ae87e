"""`python -m tests.bench.recall_sets DATA`: what recall brings from other talk than LoCoMo's, and in other languages.

Meetings of several (QMSum: a query, and the turns that answer it), dialogues with an assistant in two languages
(MADial: the memories that fit a turn), and paragraphs with questions in twelve languages (XQuAD: asked in the
paragraph's own language, and in English). Each is imported into a room of its own and asked there a day later; what the
view shows anyway does not count. Small samples by default.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
from composer.stores.models.minilm import MiniLM
from composer.stores.models.tokens import tokenizer_for
from tests.bench.embedders import DEFAULT, EMBEDDERS, embed_question, embedder_named
from tests.bench.quality import COMPOSED, ROOM, TOKENS, TOP_K, sources
from tests.bench.quality_lists import Bm25, orders
from tests.bench.report import Report
from tests.bench.world import data_folder, opened, stores

START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SETS: Final = ("xquad", "qmsum", "madial")
COLUMNS: Final = ("R@1", "R@3", "R@10", "R@1k tok", "nothing")
LANGUAGES: Final = ("en", "de", "es", "ru", "ar", "hi", "zh", "th", "tr", "el", "ro", "vi")


@dataclass(frozen=True)
class Question:
    """A question of a group, such as a language, with the ids of what answers it."""

    group: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Talk:
    """What was said in a room, and the questions about it."""

    name: str
    messages: list[MessageEvent]
    questions: list[Question]


def _said(workspace: str, lines: Sequence[tuple[str, str, str]]) -> list[MessageEvent]:
    """Lines of (id, author, text), a few minutes apart."""
    return [
        MessageEvent(
            type="message",
            at=START + n * timedelta(minutes=7),
            workspace=workspace,
            room=ROOM,
            user=who,
            id=id,
            text=text,
        )
        for n, (id, who, text) in enumerate(lines)
    ]


def xquad(data: Path, most: int) -> Iterator[Talk]:
    """A room for each language: the first paragraphs are asked about, as many others come after them."""
    rows = [json.loads(line) for line in (data / "xquad" / "small.jsonl").read_text().splitlines()]
    english = {row["id"]: row["questions"] for row in rows if row["lang"] == "en"}
    for language in LANGUAGES:
        own = [row for row in rows if row["lang"] == language]
        lines = [(f"p{row['id']}", ("ann", "ben", "cem")[n % 3], row["text"].strip()) for n, row in enumerate(own)]
        asked = [
            Question(f"{language}{' from English' * foreign}", text, frozenset({f"p{row['id']}"}))
            for row in own[: most // 2]
            for foreign in (False, True)
            for text in (english[row["id"]] if foreign else row["questions"])[:1]
            if language != "en" or not foreign
        ]
        yield Talk(f"xquad-{language}", _said(f"xquad-{language}", lines), asked)


def qmsum(data: Path, most: int) -> Iterator[Talk]:
    """The first meetings."""
    for n, line in enumerate((data / "qmsum" / "val.jsonl").read_text().splitlines()[: most // 8]):
        meeting = json.loads(line)
        turns = [(f"t{i}", turn["speaker"], turn["content"]) for i, turn in enumerate(meeting["meeting_transcripts"])]
        turns = [(id, re.sub(r"\W+", "", who) or "somebody", text or "…") for id, who, text in turns]
        asked = [
            Question("meetings", each["query"], frozenset(_spans(each["relevant_text_span"])))
            for each in meeting["specific_query_list"]
        ]
        yield Talk(f"qmsum-{n}", _said(f"qmsum-{n}", turns), asked)


def _spans(spans: Sequence[tuple[str, str]]) -> Iterator[str]:
    return (f"t{i}" for first, last in spans for i in range(int(first), int(last) + 1))


def madial(data: Path, most: int) -> Iterator[Talk]:
    """A room for each language, with all memories, each of its day. Asked is what the person says just before memories
    fit."""
    for language in ("en", "zh"):
        memories = _objects(data / "madial" / f"MADial-Bench-{language}-memory.json")
        numbered = [(f"m{id}", each) for memory in memories for id, each in memory.items()]
        days = {id: datetime.fromisoformat(each["time"]).replace(hour=START.hour, tzinfo=UTC) for id, each in numbered}
        said = _said(f"madial-{language}", [(id, "bart", each["event"]) for id, each in numbered])
        said = [m.model_copy(update={"at": days[str(m.id)] + n * timedelta(seconds=1)}) for n, m in enumerate(said)]
        asked = [
            Question(f"madial {language}", _turn(each["dialogue"][turn - 1]), frozenset(_memories(each)))
            for each in _objects(data / "madial" / f"MADial-Bench-{language}-dialogue.json")[:most]
            for turn in each["test-turn"][:1]
        ]
        yield Talk(f"madial-{language}", sorted(said, key=lambda m: m.at or START), asked)


def _memories(dialogue: dict[str, Any]) -> Iterator[str]:
    return (f"m{id}" for id in dialogue["relevant-id"])


def _turn(line: str) -> str:
    return line.partition(":")[2].strip().strip('"')


def _objects(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, which is a list or has one a line."""
    text = path.read_text()
    found = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    return [dict(each) for each in found]


async def measure(data: Path, names: Sequence[str], most: int, embedder: str) -> Report:
    """Import, ask and count."""
    shares: defaultdict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    ways = {"xquad": xquad, "qmsum": qmsum, "madial": madial}
    with data_folder() as home:
        async with stores(home) as servers:
            model = embedder_named(embedder)
            async with opened(home, servers, "sets", embedder=model) as app:
                for talk in (talk for name in names for talk in ways[name](data, most)):
                    sys.stderr.write(f"… {talk.name}: {len(talk.messages)} messages, {len(talk.questions)} questions\n")
                    await _ask(app, model, talk, shares)
    report = Report("recall_sets")
    groups = list(dict.fromkeys(group for group, _ in shares))
    for group in groups:
        rows = [
            [way, *(100 * float(np.mean([each[c] for each in found])) for c in COLUMNS)]
            for (of, way), found in shares.items()
            if of == group
        ]
        count = len(shares[group, COMPOSED])
        report.table(f"{group}, {embedder}, {count} questions: evidence recalled, %", ["", *COLUMNS], rows)
        report.figures[group] = {str(row[0]): dict(zip(COLUMNS, row[1:], strict=True)) for row in rows}
    return report


async def _ask(
    app: App, model: MiniLM, talk: Talk, shares: defaultdict[tuple[str, str], list[dict[str, float]]]
) -> None:
    workspace = app.directory.workspace(CONSOLE, talk.name)
    await import_history(app, [Line(talk.name, n, m) for n, m in enumerate(talk.messages, 1)], lambda _: None)
    await app.indexer.catch_up(workspace.tenant_id)
    last, place = talk.messages[-1], Place(ConversationKind.ROOM, ROOM)
    assert last.at is not None
    size = {str(m.id): tokenizer_for("").count(f"{m.user}: {m.text}") for m in talk.messages}
    words = vectors = None
    for n, asked in enumerate(talk.questions):
        at = last.at + timedelta(days=1)
        made, _ = await question(app, workspace, place, "frank", asked.text, at, top_k=TOP_K, id=f"q{n}")
        prompt = (await app.composer.compose(replace(made, top_k=TOP_K))).prompt
        in_view, recalled = [*sources(prompt, "RELATED"), *sources(prompt, "WORKING")], sources(prompt, "RECALL")
        evidence = asked.evidence - set(in_view)
        if not evidence:
            continue
        if words is None or vectors is None:  # the view is the same for every question
            rest = [m for m in talk.messages if m.id not in in_view]
            words = Bm25([m.text for m in rest])
            vectors = np.vstack([await model.embed([m.text]) for m in rest])
        vector = await embed_question(model, asked.text)
        ways = {COMPOSED: recalled}
        ways |= {w: [str(rest[i].id) for i in order] for w, order in orders(asked.text, vector, vectors, words).items()}
        for way, order in ways.items():
            shares[asked.group, way].append(_shares(order, evidence, size))


def _shares(order: Sequence[str], evidence: frozenset[str], size: dict[str, int]) -> dict[str, float]:
    """The shares of one question, by column. Of much evidence, no more can be among the first than there is room."""
    fitting = int(np.searchsorted(np.cumsum([size[id] for id in order]), TOKENS, side="right"))
    firsts = {f"R@{k}": len(evidence.intersection(order[:k])) / min(k, len(evidence)) for k in (1, 3, 10)}
    return {**firsts, "R@1k tok": len(evidence.intersection(order[:fitting])) / len(evidence), "nothing": not order}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.recall_sets", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with xquad/, qmsum/ and madial/")
    parser.add_argument("sets", nargs="*", default=SETS, help="some of xquad, qmsum, madial (all)")
    parser.add_argument("--most", type=int, default=48, help="questions of a language or dialogues, about (48)")
    parser.add_argument("--embedder", default=DEFAULT, choices=EMBEDDERS)
    given = parser.parse_args()
    configure_logs("error")
    report = asyncio.run(measure(given.data, given.sets, given.most, given.embedder))
    print("\n".join(report.text), flush=True)


if __name__ == "__main__":
    main()

"""Quality of the extractive summary, on annotated logs (see tests/bench/irc.py).

The share of the messages that begin a discussion, as people annotated them, that have at least one sentence in the
summary: at a tenth of the length, compared with the first three sentences, with the beginning up to the same length,
and with sentences drawn at random up to it (the mean of 20 draws).
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from composer.ports.models import Tokenizer, UsageAccount, WorkKind
from composer.stores.models.minilm import MiniLM
from composer.stores.models.tokens import tokenizer_for
from composer.summaries.summariser import Summariser
from composer.summaries.texts import SummaryInput
from composer.text.terms import sentences
from tests.bench.irc import Stretch, stretches
from tests.bench.report import Report
from tests.support.embedder import Unmetered

SHARE: Final = 10  # tokens of text for one token of summary
DRAWS: Final = 20
NOBODYS: Final = UsageAccount(UUID(int=0), WorkKind.SUMMARY)


async def measure(quick: bool, note: Callable[[str], None], data: Path) -> Report:
    """Measure each log, one row per log; only the first one if `quick`."""
    embedder, tokenizer = MiniLM(), tokenizer_for("")
    await embedder.load()
    summariser = Summariser(Unmetered(embedder), None)
    rows: list[list[float]] = []
    names = []
    for stretch in stretches(data)[: 1 if quick else None]:
        note(f"the log {stretch.name}")
        lines = [f"{said.author}: {' '.join(s.split())}" for said in stretch.said for s in sentences(said.text)]
        budget = sum(tokenizer.count(line) + 1 for line in lines) // SHARE
        chosen = (await summariser.extract(stretch.said, budget, tokenizer, NOBODYS)).text.split("\n")
        drawn = [
            represented(stretch, _up_to(random.Random(n).sample(lines, len(lines)), budget, tokenizer))
            for n in range(DRAWS)
        ]
        names.append(stretch.name)
        rows.append(
            [
                len(stretch.said),
                len(stretch.begins),
                represented(stretch, chosen),
                represented(stretch, lines[:3]),
                represented(stretch, _up_to(lines, budget, tokenizer)),
                sum(drawn) / DRAWS,
            ]
        )
    report = Report("summaries")
    total = [sum(column) for column in zip(*rows, strict=True)]
    head = ["log", "messages", "begin a talk", "extractive", "first 3 sentences", "beginning", "random"]
    table = [[name, *row] for name, row in zip([*names, "all"], [*rows, total], strict=True)]
    report.table("messages that begin a talk and are represented in a tenth of the length", head, table)
    report.figures = {name: total[n + 2] / total[1] for n, name in enumerate(head[3:])}
    report.text.append(", ".join(f"{name} {share:.0%}" for name, share in report.figures.items()))
    return report


def represented(stretch: Stretch, summary: Sequence[str]) -> int:
    """Return how many of the messages that begin a discussion have a sentence in a summary, with their speaker."""
    shown = set(summary)
    return sum(any(line in shown for line in _lines(stretch.said[n])) for n in stretch.begins)


def _lines(said: SummaryInput) -> list[str]:
    return [f"{said.author}: {' '.join(sentence.split())}" for sentence in sentences(said.text)]


def _up_to(lines: Sequence[str], budget: int, tokenizer: Tokenizer) -> list[str]:
    kept = []
    for line in lines:
        budget -= tokenizer.count(line) + 1
        if budget < 0:
            break
        kept.append(line)
    return kept

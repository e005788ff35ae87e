"""`python -m tests.bench.view DATA`: the share of a discussion that a busy room's view shows.

Annotated logs of a busy room (see tests/bench/irc.py): each annotated message is taken as a question, and its
discussion is every message connected with it by links, among the 200 messages before it. No agent is in them.
"""

import argparse
import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from composer.layers import disentanglement, working
from composer.model import Conversation, ConversationKind, Message, Visibility, derived_id
from composer.ports.models import Embedder
from composer.stores.models.minilm import MiniLM
from tests.bench.irc import links, read_log
from tests.bench.quality_lists import Bm25, orders
from tests.bench.report import Report

DEPTHS: Final = (10, 20, 40)
CHOSEN: Final = "nexus, nearest to the talk"
ROOM: Final = derived_id("bench", "room")
PLACE: Final = Conversation(ROOM, ROOM, ConversationKind.ROOM, "busy", f"room:{ROOM}")


@dataclass(frozen=True)
class Case:
    """A message, those before it, and the numbers of those that belong to its discussion."""

    log: str
    asked: Message
    before: list[Message]
    own: frozenset[int]


def cases(folder: Path) -> Iterator[Case]:
    """Return every annotated message that continues a discussion."""
    for path in sorted(folder.glob("*.annotation.txt")):
        log = read_log(path.with_name(path.name.replace(".annotation.", ".ascii.")))
        said = [
            Message(
                derived_id(path.name, str(line)),
                str(line),
                number,
                one.at,
                derived_id("nick", one.author),
                None,
                one.author,
                one.text,
                PLACE.namespace,
                Visibility.PUBLIC,
            )
            for number, (line, one) in enumerate(sorted(log.items()), 1)
        ]
        talk = _components(links(path))
        for n, asked in enumerate(said):
            before = said[max(0, n - disentanglement.MAX_VIEW_MESSAGES) : n]
            name = talk.get(int(asked.external_id))
            own = frozenset(
                k for k, m in enumerate(before) if name is not None and talk.get(int(m.external_id)) == name
            )
            if own:
                yield Case(path.name.partition(".")[0], asked, before, own)


def _components(pairs: list[tuple[int, int]]) -> dict[int, int]:
    """Return the discussion of each line: the lowest line that it is connected with."""
    talk = {line: line for pair in pairs for line in pair}
    for a, b in pairs:
        old, new = max(talk[a], talk[b]), min(talk[a], talk[b])
        talk = {line: new if name == old else name for line, name in talk.items()}
    return talk


async def measure(folder: Path) -> Report:
    """Rank the messages before each message by every method, and count."""
    embedder = MiniLM()
    vectors: dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]] = {}
    shares: defaultdict[str, list[list[float]]] = defaultdict(list)
    logs, views, spent, busy = [], [], 0.0, 0
    for case in cases(folder):
        logs.append(case.log)
        started = time.process_time()
        near = disentanglement.relatedness(case.before[-disentanglement.MAX_VIEW_MESSAGES :], case.asked)
        spent += time.process_time() - started
        ranked = {
            "the last ones": list(range(len(near) - 1, -1, -1)),
            **await _plain(embedder, vectors, case),
            CHOSEN: sorted(range(len(near)), key=lambda n: (near[n], n), reverse=True),
        }
        for way, order in ranked.items():
            found = [len(case.own.intersection(order[:depth])) for depth in DEPTHS]
            fit = [min(depth, len(case.own)) for depth in DEPTHS]
            shares[way].append([n / len(case.own) for n in found] + [n / m for n, m in zip(found, fit, strict=True)])
        mixed = working.is_busy_room(PLACE, case.before)
        busy += mixed
        window = working.busy_room_window(case.before, case.asked) if mixed else working.latest_window(case.before)
        shown, last = {m.seq for m in window.shown}, {m.seq for m in case.before[-len(window.shown) :]}
        own = {case.before[n].seq for n in case.own}
        views.append([len(own & shown) / len(own), len(own & last) / len(own), len(shown)])
    return _report(shares, logs, np.array(views), busy / len(views), spent / len(views))


async def _plain(embedder: Embedder, vectors: dict[str, np.ndarray], case: Case) -> Mapping[str, list[int]]:
    for message in (*case.before, case.asked):
        if message.text not in vectors:
            vectors[message.text] = (await embedder.embed([message.text]))[0]
    rows = np.vstack([vectors[m.text] for m in case.before])
    return orders(case.asked.text, vectors[case.asked.text], rows, Bm25([m.text for m in case.before]))


def _report(
    shares: Mapping[str, list[list[float]]],
    logs: list[str],
    views: np.ndarray,
    busy: float,
    spent: float,
) -> Report:
    report, names = Report("view"), sorted(set(logs))
    columns = [*(f"at {depth}" for depth in DEPTHS), *(f"of what fits, {depth}" for depth in DEPTHS)]
    rows = [[way, *_by_log(np.array(found), logs)] for way, found in shares.items()]
    title = f"{len(names)} logs, {len(logs)} messages: share of the talk among so many chosen of the last 200, %"
    report.table(f"{title} (mean of the logs)", ["", *columns], rows)
    composed, plain, size = _by_log(views, logs)
    report.table(
        f"The view as it is composed: {size / 100:.0f} messages, busy {busy:.0%} of the time; choosing took "
        f"{spent * 1000:.1f} ms of CPU",
        ["", "share, %"],
        [["nexus", composed], ["as many of the last ones", plain]],
    )
    report.figures = {str(row[0]): dict(zip(columns, row[1:], strict=True)) for row in rows}
    report.figures["view"] = {"nexus": composed, "last": plain}
    return report


def _by_log(found: np.ndarray, logs: list[str]) -> list[float]:
    """Return the mean over the logs of each log's mean, in percent."""
    of = np.array(logs)
    return [float(n) for n in 100 * np.mean([found[of == name].mean(0) for name in sorted(set(logs))], axis=0)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench-quality", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with irc/")
    given = parser.parse_args()
    print("\n".join(asyncio.run(measure(given.data / "irc")).text), flush=True)


if __name__ == "__main__":
    main()

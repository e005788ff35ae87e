"""Clients that others' programs make of /openapi.json, without a flag."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from tests.deep.conformance.programs import INSTALLED, run
from tests.support.harness import AppHarness
from tests.support.web import served_at


@pytest.fixture
async def document(harness: AppHarness, tmp_path: Path) -> AsyncIterator[Path]:
    """The document of the API, in a file."""
    async with served_at(web_app(harness.app, Metrics([]), {}, None)) as url, httpx2.AsyncClient() as client:
        (tmp_path / "openapi.json").write_text((await client.get(f"{url}/openapi.json")).text)
        yield tmp_path / "openapi.json"


async def test_types_of_typescript_are_made_and_used_without_a_cast(document: Path) -> None:
    folder = document.parent
    made = await run("openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts", folder=folder)
    assert made.status == 0, made.output + made.errors
    shutil.copy(Path(__file__).with_name("use_of_client.ts"), folder)
    checked = await run("typescript/bin/tsc", "--noEmit", "--strict", "use_of_client.ts", folder=folder)
    assert checked.status == 0, checked.output


def test_a_client_of_python_is_made_whole(document: Path) -> None:
    made_by = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", document, "--output-path", "made"],
        cwd=document.parent,
        env={
            "PATH": f"{INSTALLED / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(INSTALLED),
            "HOME": str(document.parent),
        },
        check=False,
        capture_output=True,
        text=True,
    )
    output = made_by.stdout + made_by.stderr
    assert made_by.returncode == 0, output
    assert "arning" not in output, output
    paths = json.loads(document.read_bytes())["paths"]
    made = [path for path in document.parent.glob("made/*/api/*/*.py") if path.name != "__init__.py"]
    assert len(made) == sum(len(methods) for methods in paths.values())

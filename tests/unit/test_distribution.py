"""What `pip install` of the wheel brings, and what runs of it outside the checkout."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from bot.setup import weights
from composer import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = {"torch", "sentence-transformers", "transformers"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required_by(requirements: list[str]) -> set[str]:
    """The names of requirements, without those of extras."""
    kept = (line for line in requirements if "extra ==" not in line)
    return {canonical(match[0]) for line in kept if (match := re.match(r"[A-Za-z0-9._-]+", line))}


def wheel_in(folder: Path) -> Path:
    build = "pip wheel --quiet --no-deps --no-build-isolation --wheel-dir"
    copied = folder / "sources"
    copied.mkdir()
    for name in ("pyproject.toml", "README.md", "composer", "bot", "jobs", "sql", "nexus_client"):
        subprocess.run(["cp", "-R", str(ROOT / name), str(copied)], check=True)
    subprocess.run([sys.executable, "-m", *build.split(), str(folder), str(copied)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_in(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_asks_for_nothing_that_asks_for_torch(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        (metadata,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        headers = Parser().parsestr(opened.read(metadata).decode())
    waiting, seen = required_by(headers.get_all("Requires-Dist", [])), set[str]()
    assert waiting, "the wheel asks for something"
    while waiting:
        seen |= waiting
        found = set[str]()
        for name in waiting:
            try:
                found |= required_by(importlib.metadata.requires(name) or [])
            except importlib.metadata.PackageNotFoundError:
                continue  # required elsewhere, or left out of requirements.lock
        waiting = found - seen
    assert not seen & HEAVY
    assert weights.PACKAGE not in seen


def test_the_wheel_runs_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "installed")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NEXUS_")} | {
        "PYTHONPATH": str(tmp_path / "installed"),
        "NEXUS_HOME": str(tmp_path / "home"),
    }

    def run(*words: str, input: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            input=input,
            text=True,
            capture_output=True,
            check=False,
        )

    assert str(tmp_path) in run("-c", "import bot.console.main as main; print(main.__file__)").stdout
    assert run("-m", "bot.console.main", "--version").stdout == f"nexus {__version__}\n"
    done = run("-m", "bot.console.main", "setup", "--offline", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    done = run("-m", "bot.console.main", "chat", input="hello\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "offline" in done.stdout


def test_the_weights_that_setup_installs_are_those_of_the_lock() -> None:
    locked = (ROOT / "requirements.lock").read_text()
    entry = re.search(rf"^{weights.PACKAGE}==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", locked, re.MULTILINE)
    assert entry is not None
    assert f"=={entry[1]} " in weights.REQUIREMENT
    assert set(re.findall(r"sha256:\w+", weights.REQUIREMENT)) == set(re.findall(r"sha256:\w+", entry[2]))
    assert PROJECT["dependency-groups"]["weights"] == [f"{weights.PACKAGE}=={entry[1]}"]

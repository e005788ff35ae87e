"""What a program loads before it does anything: its own processes say."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
# What a process that has loaded every command has imported.
ALL_COMMANDS = "from bot.console.cli.commands import LazyCommands; dict(LazyCommands())"


def test_nothing_loads_the_frameworks_of_the_web_port_before_it_is_opened() -> None:
    """They take half a second."""
    loaded = "{'fastapi', 'starlette', 'uvicorn', 'limits'} & {name.partition('.')[0] for name in sys.modules}"
    program = f"{ALL_COMMANDS}; import sys, bot.serving, bot.web.metrics; sys.exit(str({loaded} or ''))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def started(*words: str, shown: str, first: str = "") -> str:
    """Run `nexus` with these words, after the statement `first`; returns what `shown` is at the end of that process.

    `collected_early` says of each garbage collection whether it was made while the program or the command `usage` was
    being imported.
    """
    program = f"""
import atexit, gc, sys
from bot.console.main import main
{first}
collected_early = []
def is_partial(module, last):
    return module in sys.modules and not hasattr(sys.modules[module], last)
gc.callbacks.append(lambda *_: collected_early.append(
    is_partial("bot.console.command_line", "run") or is_partial("bot.console.cli.usage", "usage")))
atexit.register(lambda: print({shown}, file=sys.stderr))
sys.argv = {["nexus", *words]!r}
main()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stderr.strip()


def test_a_program_starts_without_the_sdks_that_few_commands_need() -> None:
    """Some take a second and 65 MB."""
    heavy = {
        *("aiohttp", "discord", "fastapi", "jsonschema", "mcp", "mcp_types", "mem0", "onnxruntime", "openai"),
        *("prometheus_client", "prompt_toolkit", "slack_bolt", "slack_sdk", "splintr", "starlette", "tokenizers"),
        "uvicorn",
    }
    assert started("--version", first=ALL_COMMANDS, shown=f"sorted({heavy} & set(sys.modules))") == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads by /proc")
def test_products_of_matrices_take_no_threads_of_their_own() -> None:
    """They would spin on every core after each product, and answers and requests wait."""
    program = """
import atexit, os, sys
from bot.console.main import main
def multiply():
    import numpy as np
    np.ones((2000, 384)) @ np.ones((384, 2000))
    print(len(os.listdir("/proc/self/task")), file=sys.stderr)
atexit.register(multiply)
sys.argv = ["nexus", "--version"]
main()
"""
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "1"


def test_a_program_is_imported_without_garbage_collection() -> None:
    """Else that takes a third of the time of a short command. Afterwards garbage is collected."""
    assert started("--version", shown="any(collected_early), gc.isenabled()") == "False True"
    assert started("usage", "--help", shown="any(collected_early), gc.isenabled()") == "False True"


def test_help_and_version_load_no_command() -> None:
    """Loading them takes ten times as long as all else."""
    loaded = "[name for name in sys.modules if name.startswith(('composer.', 'jobs.'))]"
    for words in ((), ("--help",), ("--version",)):
        assert started(*words, shown=loaded).splitlines()[-1] == "['composer.errors']"

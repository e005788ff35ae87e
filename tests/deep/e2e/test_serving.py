"""`nexus run` serves what is configured, names what is not, and stops on a signal."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.serving import chosen
from composer.errors import BadInput
from composer.settings import Settings
from tests.support.program import NEXUS, Program, servers_of
from tests.support.waiting import TIMEOUT_SECONDS


def settings(tmp_path: Path, **given: str) -> Settings:
    return Settings.model_validate({"home": tmp_path, **given})


def test_with_no_flag_everything_that_is_configured_is_served(tmp_path: Path) -> None:
    assert chosen(settings(tmp_path), set()) == set()
    assert chosen(settings(tmp_path, discord_token="t"), set()) == {"discord"}
    both = settings(tmp_path, slack_bot_token="b", slack_app_token="a", discord_token="t")
    assert chosen(both, set()) == {"discord", "slack"}
    by_http = settings(tmp_path, slack_bot_token="b", slack_signing_secret="s")
    assert chosen(by_http, set()) == {"slack"}


def test_an_adapter_that_is_not_configured_is_refused_with_the_name_of_its_setting(tmp_path: Path) -> None:
    for adapter, name in (
        ("discord", "NEXUS_DISCORD_TOKEN"),
        ("slack", "NEXUS_SLACK_BOT_TOKEN"),
    ):
        with pytest.raises(BadInput, match=name):
            chosen(settings(tmp_path), {adapter})


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_program_serves_until_a_signal_stops_it(tmp_path: Path, stop: signal.Signals) -> None:
    tmp_path.chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
    program = subprocess.Popen(
        [sys.executable, "-m", "bot.console.main", "run"],
        env={**environ, "NEXUS_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stderr is not None
    output = program.stderr.readline()
    assert "Nexus is running" in output
    program.send_signal(stop)
    rest = program.stderr.read()
    assert program.wait(60) == 0
    assert "Stopping: waiting up to" in rest
    assert "{" not in rest


def test_a_cache_that_does_not_answer_is_named_at_the_start_and_stops_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as taken:  # free once this is closed
        port = taken.getsockname()[1]
    program = Program(
        tmp_path, {"NEXUS_HOME": str(tmp_path / "home"), "NEXUS_REDIS_URL": f"redis://user:hidden@127.0.0.1:{port}"}
    )
    with subprocess.Popen([*NEXUS, "run"], env=program.environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        output = [running.stderr.readline(), running.stderr.readline()]
        running.send_signal(signal.SIGTERM)
        rest = running.stderr.read()
    assert running.returncode == 0
    assert f"The working cache at 127.0.0.1:{port} does not answer" in output[0]
    assert "nothing is lost" in output[0]
    assert "Nexus is running" in output[1]
    assert "hidden" not in "".join(output) + rest


@pytest.fixture
def new_folder() -> Iterator[Path]:
    """A data folder that does not exist yet; processes left running there are killed at the end."""
    above = Path(tempfile.mkdtemp(prefix="nexus-serving-"))
    yield above / "home"
    for process in servers_of(above / "home"):
        process.kill()
    shutil.rmtree(above, ignore_errors=True)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_program_stopped_while_its_servers_start_leaves_none_running(
    tmp_path: Path, new_folder: Path, stop: signal.Signals
) -> None:
    program = Program(tmp_path, {"NEXUS_HOME": str(new_folder)})
    with subprocess.Popen([*NEXUS, "migrate"], cwd=tmp_path, env=program.environment, stderr=subprocess.PIPE) as begun:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not servers_of(new_folder):  # the cache starts a second before the new database
            assert begun.poll() is None
            assert time.monotonic() < deadline
        begun.send_signal(stop)
        _, output = begun.communicate(timeout=TIMEOUT_SECONDS)
    assert begun.returncode == 128 + stop, output
    assert output == b""
    assert servers_of(new_folder) == []

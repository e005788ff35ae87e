"""`nexus run` serves what is configured, says what is not, and stops when it is told to."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bot.serving import chosen
from composer.errors import BadInput
from composer.settings import Settings

pytestmark = pytest.mark.e2e


def settings(tmp_path: Path, **given: str) -> Settings:
    return Settings.model_validate({"home": tmp_path, **given})


def test_with_no_flag_everything_that_is_configured_is_served(tmp_path: Path) -> None:
    assert chosen(settings(tmp_path), set()) == set()
    assert chosen(settings(tmp_path, discord_token="t"), set()) == {"discord"}
    both = settings(tmp_path, slack_bot_token="b", slack_app_token="a", discord_token="t")
    assert chosen(both, set()) == {"discord", "slack"}
    by_http = settings(tmp_path, slack_bot_token="b", slack_signing_secret="s")
    assert chosen(by_http, set()) == {"slack", "web"}


def test_a_door_that_is_not_configured_is_refused_with_the_name_of_its_setting(tmp_path: Path) -> None:
    for door, name in (
        ("discord", "NEXUS_DISCORD_TOKEN"),
        ("slack", "NEXUS_SLACK_BOT_TOKEN"),
        ("web", "SIGNING_SECRET"),
    ):
        with pytest.raises(BadInput, match=name):
            chosen(settings(tmp_path), {door})


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_program_serves_until_it_is_told_to_stop(tmp_path: Path, stop: signal.Signals) -> None:
    tmp_path.chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
    program = subprocess.Popen(
        [sys.executable, "-m", "bot.console.main", "run"],
        env={**environ, "NEXUS_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stderr is not None
    said = program.stderr.readline()
    assert "Nexus is up" in said
    program.send_signal(stop)
    rest = program.stderr.read()
    assert program.wait(60) == 0
    assert "Stopping" in rest

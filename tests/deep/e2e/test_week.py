"""A scripted week of a team of eight on both platforms (tests/week), and the demo that shows it."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from composer.settings import Settings
from tests.support import fork_server, runs
from tests.support.program import ROOT, servers_of
from tests.support.waiting import TIMEOUT_SECONDS
from tests.week.player import Line, Player
from tests.week.script import read_week
from tests.week.stage import SERVICE, on_stage, service_for

DEMO = (sys.executable, "-m", "tests.week")


async def test_over_a_week_every_answer_is_in_its_place_once_and_no_secret_is_elsewhere(
    settings: Settings, tmp_path: Path
) -> None:
    """The player checks after each step; here is only that it did look at everything."""
    week, lines = read_week(), list[Line]()

    async def show(line: Line) -> None:
        lines.append(line)

    async with on_stage(week) as stage:
        assert settings.database_url is not None
        assert settings.redis_url is not None
        urls = {"database_url": settings.database_url, "redis_url": settings.redis_url}
        service = service_for(stage, tmp_path / "home", fork_server.command(SERVICE, runs.current()), **urls)
        player = Player(stage, service, show)
        try:
            await player.play()
        finally:
            await service.kill()
    steps = [step for day in week.days for step in day.steps]
    asked = [step for each in steps for step in (each, *each.meanwhile) if step.asks]
    assert player.answers == len(asked)
    assert len([line for line in lines if line.kind == "answer"]) == len(asked)
    assert {secret.word for line in lines for secret in line.kept} == {secret.word for secret in week.secrets}
    assert len([line for line in lines if line.kind == "posted"]) == sum(len(step.posts or ()) for step in steps)
    assert len([line for line in lines if line.kind == "taken"]) >= 5
    assert {"tide-large", "tide-small"} == {asked.model for asked in stage.model.asked}
    assert stage.model.summaries


def test_the_demo_plays_the_week_without_pauses_for_a_pipe_and_leaves_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [*DEMO, "--fast"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert ran.returncode == 0, ran.stderr
    for line in (
        "#general          Sam     who is expecting a baby?",
        "#general          Nexus   I do not know that here.",
        "kept from this answer: “Alma” (Iris's DM)",
        "@iris             Nexus   You are, and she will be called Alma.",
        "each in its place, none lost, none twice",
        "Forgotten for good",
    ):
        assert line in ran.stdout, line
    assert running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_demo_and_leaves_nothing_running(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        DEMO, cwd=ROOT, env=environment(tmp_path), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as demo:
        assert demo.stdout is not None
        assert any("Created the project tides" in line for line in demo.stdout)
        assert len(running(tmp_path)) == 3
        os.killpg(demo.pid, signal.SIGINT)
        assert demo.wait(TIMEOUT_SECONDS) == 128 + signal.SIGINT
        assert demo.stderr is not None
        assert "Traceback" not in demo.stderr.read()
    assert running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_demo_quietly_while_it_is_imported(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'composer.errors':\n"
        "            sys.meta_path.remove(self)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    variables = environment(tmp_path)
    ran = subprocess.run(
        DEMO,
        cwd=ROOT,
        env=variables | {"PYTHONPATH": f"{modules}{os.pathsep}{variables['PYTHONPATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + signal.SIGINT, "", "")


def environment(folder: Path) -> dict[str, str]:
    """Without settings of Nexus, and with a folder of its own for temporary files."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEXUS_")}
    return inherited | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "COLUMNS": "120"}


def running(folder: Path) -> list[psutil.Process]:
    """The processes of a demo that has this folder: its servers, and Nexus."""
    found = [each for home in folder.glob("nexus-demo-*/home") for each in servers_of(home)]
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if SERVICE in process.cmdline() and any(str(folder) in value for value in process.environ().values()):
                found.append(process)
    return found

"""A disk that is full or too small, a folder that two processes make at once, and a text of a megabyte."""

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.deep.e2e.test_bad_input import message_event, rows, stored
from tests.support.program import Program


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A disk of this size; skip the test where none can be mounted."""
    disk = Path(tempfile.mkdtemp(prefix="nexus-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        disk.rmdir()
        pytest.skip("only root can make a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
        disk.rmdir()


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(2**20)):
            pass


def test_a_disk_too_small_to_start_is_reported(tmp_path: Path) -> None:
    with small_disk(30) as disk:
        ran = Program(tmp_path, {"NEXUS_HOME": str(disk / "home")}).run("migrate")
        assert (ran.status, ran.out, len(ran.sentences)) == (1, "", 1), ran.err
        assert "No space left on device" in ran.sentences[0]


def test_a_full_disk_loses_nothing_and_nexus_continues_when_space_is_free(tmp_path: Path) -> None:
    with small_disk(400) as disk:  # a long text takes several times its size, since each of its passages is indexed
        program = Program(tmp_path, {"NEXUS_HOME": str(disk / "home")})
        assert program.play(message_event("before", "m1", "w")).status == 0
        filler = disk / "filler"
        fill(filler)
        many = [message_event(secrets.token_hex(200_000), f"long{number}", "w") for number in range(8)]
        ran = program.play(*many, name="many.jsonl")
        assert ran.status == 1
        assert "Traceback" not in ran.err
        reasons = {event["text"].partition("; ")[2] for event in ran.lines if event["event"] == "error"}
        assert reasons <= {"nothing was stored.", "try again in a moment."}
        assert reasons or ran.sentences
        filler.unlink()
        again = program.play(*many, name="many.jsonl")
        assert (again.status, again.sentences) == (0, [])
        texts = stored(disk / "home", "w")
        assert (len(texts), texts.count("before")) == (9, 1)


def test_two_processes_that_start_on_one_new_folder_share_it(tmp_path: Path) -> None:
    above = Path(tempfile.mkdtemp(prefix="nexus-two-"))
    try:
        folders = [tmp_path / name for name in ("one", "two")]
        for folder in folders:
            folder.mkdir()
        programs = [Program(folder, {"NEXUS_HOME": str(above / "home")}) for folder in folders]
        events = [
            [message_event(f"{name} {number}", f"{name}{number}", "both", user=name) for number in range(5)]
            + [message_event("@nexus hello", name, "both", user=name)]
            for name in ("one", "two")
        ]
        with ThreadPoolExecutor() as pool:
            done = list(pool.map(lambda pair: pair[0].play(*pair[1]), zip(programs, events, strict=True)))
        for ran in done:
            assert (ran.status, ran.sentences) == (0, [])
            assert [event["event"] for event in ran.lines] == ["reply"]
        texts = stored(above / "home", "both")
        assert len(texts) == 14
        assert set(texts) >= {f"{name} {number}" for name in ("one", "two") for number in range(5)}
    finally:
        shutil.rmtree(above, ignore_errors=True)


def test_a_megabyte_is_stored_whole_and_truncated_in_the_prompt(tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", "w"
    program = Program(tmp_path, {"NEXUS_HOME": str(home)})
    long = "we deploy on Fridays " * 50_000
    ran = program.play(
        message_event(long, "m1", workspace, dm="nexus"),
        message_event("when do we deploy?", "m2", workspace, dm="nexus"),
    )
    assert (ran.status, ran.sentences) == (0, [])
    for event in ran.lines:
        prompt = event["prompt"]
        assert prompt["tokens"] <= 0.7 * prompt["window"]
        assert any("characters cut" in message["content"] for message in prompt["role_messages"])
    assert long in stored(home, workspace)
    (size,) = rows(home, "SELECT count(*) FROM messages JOIN tenants USING (tenant_id) WHERE slug = $1", workspace)[0]
    assert size == 4

"""What the program logs, as JSON: one value per line, whoever wrote it."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog

from bot.console.logs import announcer, configure_logs


@contextmanager
def unconfigured() -> Iterator[None]:
    """Nothing configured, before and after; in the test itself, since pytest adds its own handlers for each phase."""
    root, handlers = logging.getLogger(), logging.getLogger().handlers[:]
    level, before = root.level, structlog.get_config()
    root.handlers = []
    logging.captureWarnings(False)  # an earlier test may have left it on, which pytest undid halfway
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers = handlers
        root.setLevel(level)
        structlog.configure(**before)


def lines_of(captured: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in captured.splitlines()]


def fail() -> None:
    raise ValueError("wrong")


def test_every_line_of_the_log_is_json_also_of_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    with unconfigured():
        configure_logs("info", format="json")
        log = structlog.get_logger()
        log.info("turn.ended", turn="t1", total_ms=3.5)
        log.debug("not.shown")
        logging.getLogger("some.library").info("not shown either: it may quote a message")
        logging.getLogger("some.library").warning("a %s\nof two lines", "warning")
        try:
            fail()
        except ValueError:
            logging.getLogger("some.library").exception("it failed")
            log.exception("job.failed", job="day")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("old", DeprecationWarning, stacklevel=1)
        announcer("json", print)("Nexus is running.")
    found = lines_of(capsys.readouterr().err)
    assert [line["event"] for line in found] == [
        "turn.ended",
        "library",
        "library",
        "job.failed",
        "library",
        "announced",
    ]
    assert all({"level", "timestamp"} <= line.keys() for line in found)
    assert all(line["timestamp"].endswith("Z") for line in found)
    assert (found[0]["turn"], found[0]["total_ms"]) == ("t1", 3.5)
    assert (found[1]["logger"], found[1]["message"]) == ("some.library", "a warning\nof two lines")
    assert "ValueError: wrong" in found[2]["exception"]
    assert "ValueError: wrong" in found[3]["exception"]
    assert found[4]["logger"] == "py.warnings"
    assert found[5]["message"] == "Nexus is running."


def test_text_stays_text(capsys: pytest.CaptureFixture[str]) -> None:
    with unconfigured():
        configure_logs("info")
        structlog.get_logger().info("turn.ended", turn="t1")
        announcer("text", print)("Nexus is running.")
    captured = capsys.readouterr()
    assert captured.err.startswith("turn=t1 event=turn.ended level=info timestamp=")
    assert captured.out == "Nexus is running.\n"


def test_who_types_reads_a_sentence_of_a_server_that_failed_and_a_program_reads_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = []
    for tracebacks in (False, True):
        with unconfigured():
            configure_logs("warning", tracebacks=tracebacks)
            log = structlog.get_logger()
            log.warning("tool_server.failed", server="wiki", error="The MCP server wiki can't be reached.")
            log.warning("turn.refused", turn="t1")
        shown.append(capsys.readouterr().err.splitlines())
    sentence, line = shown[0]
    assert sentence == "The MCP server wiki can't be reached. Until it answers, its tools are not offered."
    assert "event=turn.refused" in line
    assert [each.split("event=")[1].split()[0] for each in shown[1]] == ["tool_server.failed", "turn.refused"]

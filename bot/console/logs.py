"""Logs of the program: one line per event on standard error, as text or as JSON, without message texts."""

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from composer.errors import for_operator


class _WithoutTraceback(logging.Formatter):
    """One line for what libraries log."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, with the exception's own line."""
        error = record.exc_info[1] if record.exc_info else None
        text = " ".join(record.getMessage().split())
        return text if error is None else f"{text}: {_line(error)}"


class _JsonLine(logging.Formatter):
    """One line of JSON for what libraries log, with the keys of our own events."""

    def format(self, record: logging.LogRecord) -> str:
        """The line: event "library", logger, message, level, timestamp, and the traceback of an exception."""
        line = {"event": "library", "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        at = datetime.fromtimestamp(record.created, UTC)
        return _as_json(line | {"level": record.levelname.lower(), "timestamp": _stamp(at)})


def _stamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _as_json(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, default=str)


def _name_exception(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Replace the traceback of an event by the exception's line."""
    given = event.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else sys.exc_info()[1] if given else None
    return event if error is None else {**event, "error": _line(error)}


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(for_operator(error).split())}"


def announcer(format: Literal["text", "json"], show: Callable[[str], None]) -> Callable[[str], None]:
    """A function that writes a sentence for whoever runs the program: by `show`, or as a line of JSON."""

    def announce(sentence: str) -> None:
        line = {"event": "announced", "message": sentence, "level": "info", "timestamp": _stamp(datetime.now(UTC))}
        print(_as_json(line), file=sys.stderr, flush=True)

    return announce if format == "json" else show


def configure_logs(level: str, *, format: Literal["text", "json"] = "text", tracebacks: bool = True) -> None:
    """Send events of this level and above to standard error, with their time, and warnings of libraries with them.
    Libraries are never logged below warnings: there they write down what people said.

    Without `tracebacks`, for a terminal in which a person types, an exception is its sentence, and so is an event that
    they can do something about.
    """
    if format == "json" or not tracebacks:
        handler = logging.StreamHandler()
        handler.setFormatter(_JsonLine() if format == "json" else _WithoutTraceback())
        logging.basicConfig(handlers=[handler], level=logging.WARNING)
        logging.captureWarnings(format == "json")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer() if tracebacks else _name_exception,
            _renderer(format, sentences=not tracebacks),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


# What is said of an event to a person who types, in place of its line; with the values of the event.
_SENTENCES: Final = {
    "tool_server.failed": "{error} Until it answers, its tools are not offered.",
    "tool_server.answers_again": "The MCP server {server} answers again: its tools are offered.",
}


def _renderer(format: Literal["text", "json"], *, sentences: bool = False) -> Processor:
    if format == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    lines = structlog.dev.ConsoleRenderer(colors=True) if sys.stderr.isatty() else structlog.processors.LogfmtRenderer()

    def sentence_or_line(logger: WrappedLogger, name: str, event: EventDict) -> str | bytes | Any:
        sentence = _SENTENCES.get(event["event"])
        return lines(logger, name, event) if sentence is None else sentence.format_map(event)

    return sentence_or_line if sentences else lines

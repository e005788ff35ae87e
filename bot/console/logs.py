"""Logs of the terminal program: one line per event on standard error, without message texts."""

import logging
import sys

import structlog
from structlog.typing import EventDict, WrappedLogger

from composer.errors import for_operator


class _WithoutTraceback(logging.Formatter):
    """One line for what libraries log."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, with the exception's own line."""
        error = record.exc_info[1] if record.exc_info else None
        text = " ".join(record.getMessage().split())
        return text if error is None else f"{text}: {_line(error)}"


def _name_exception(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Replace the traceback of an event by the exception's line."""
    given = event.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else sys.exc_info()[1] if given else None
    return event if error is None else {**event, "error": _line(error)}


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(for_operator(error).split())}"


def configure_logs(level: str, *, tracebacks: bool = True) -> None:
    """Send events of this level and above to standard error, with their time. Without `tracebacks`, for a terminal in
    which a person types, an exception is its sentence."""
    if not tracebacks:
        handler = logging.StreamHandler()
        handler.setFormatter(_WithoutTraceback())
        logging.basicConfig(handlers=[handler], level=logging.WARNING)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer() if tracebacks else _name_exception,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
            if sys.stderr.isatty()
            else structlog.processors.LogfmtRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )

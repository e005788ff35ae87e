"""Logs of the terminal program: one line per event on standard error, without message texts."""

import logging
import sys

import structlog


def configure_logs(level: str) -> None:
    """Send events of this level and above to standard error, with their time."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
            if sys.stderr.isatty()
            else structlog.processors.LogfmtRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )

"""Time, as the core asks for it."""

from datetime import UTC, datetime
from typing import Final, Protocol

ALWAYS: Final = datetime(1, 1, 2, tzinfo=UTC)  # before anything was said, in every time zone


class Clock(Protocol):
    """The time that everything stored and shown is dated with."""

    def now(self) -> datetime:
        """The time now, aware, in UTC."""
        ...

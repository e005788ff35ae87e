"""The clock."""

from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

EARLIEST: Final = datetime(1, 1, 2, tzinfo=UTC)  # before every message, in every time zone
MAX_CLOCK_DIFFERENCE: Final = timedelta(seconds=5)  # between the clocks of platforms and ours


class Clock(Protocol):
    """The source of every time that is stored or shown."""

    def now(self) -> datetime:
        """The present time, timezone-aware, in UTC."""
        ...

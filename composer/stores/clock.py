"""The clock of this machine."""

from datetime import UTC, datetime


class SystemClock:
    """The clock of this machine (composer.ports.clock.Clock)."""

    def now(self) -> datetime:
        """The present time, in UTC."""
        return datetime.now(UTC)

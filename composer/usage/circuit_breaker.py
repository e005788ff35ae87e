"""A circuit breaker for each model: one that keeps failing is skipped for a while."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.ports.clock import Clock

FAILURES_THAT_OPEN: Final = 3  # in a row, then the model is skipped
PAUSE: Final = timedelta(minutes=1)  # how long it is skipped


@dataclass(slots=True)
class _Record:
    failures: int = 0
    open_until: datetime | None = None


class CircuitBreaker:
    """Which models to skip. After the pause a model is tried again: when it fails, it is skipped again at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: dict[str, _Record] = {}

    def is_open(self, model: str) -> bool:
        """Whether to skip a model now."""
        record = self._records.get(model)
        return record is not None and record.open_until is not None and self._clock.now() < record.open_until

    def record_success(self, model: str) -> None:
        """Forget a model's failures."""
        self._records.pop(model, None)

    def record_failure(self, model: str) -> None:
        """Count a failure; after MAX_FAILURES in a row the model is skipped for PAUSE."""
        record = self._records.setdefault(model, _Record())
        record.failures += 1
        if record.failures >= FAILURES_THAT_OPEN:
            record.open_until = self._clock.now() + PAUSE

"""What a process tells those who watch it: how turns, calls of models and tool servers, and jobs ended.

Ids, times and counts alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from composer.model import Turn, Usage
from composer.ports.models import WorkKind


class TurnOutcome(StrEnum):
    """How a turn ended for this process. DELIVERED: the platform shows the answer; FAILED: it shows the sentence that
    says why there is none; REFUSED: the platform refused it; ERASED: its answer was withdrawn, mostly because its
    question was erased; ANSWERED_ELSEWHERE: another process, or an earlier attempt of this one, did it; ABANDONED: an
    error that was logged ended it."""

    DELIVERED = "delivered"
    FAILED = "failed"
    REFUSED = "refused"
    ERASED = "erased"
    ANSWERED_ELSEWHERE = "answered_elsewhere"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class TurnReport:
    """The end of a turn. `timings_ms` are the milliseconds of each step of its last attempt; `usage` and `model` are
    empty where that attempt asked no model."""

    turn: Turn
    outcome: TurnOutcome
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    model: str = ""


class CallOutcome(StrEnum):
    """How a call of a model ended. A refused one was never sent, because of a budget."""

    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


class Observer(Protocol):
    """Who watches a process. Its methods return at once and never fail."""

    def turn_ended(self, report: TurnReport) -> None:
        """A turn has ended."""
        ...

    def model_called(self, kind: WorkKind, model: str, outcome: CallOutcome, usage: Usage) -> None:
        """A call of a model has ended."""
        ...

    def server_called(self, server: str, outcome: str) -> None:
        """A tool of a tool server was called: answered or failed."""
        ...

    def job_ended(self, job: str, state: str) -> None:
        """A run of a job has ended: done, failed or late."""
        ...


class NoObserver:
    """Watches nothing."""

    def turn_ended(self, report: TurnReport) -> None:
        """Ignore it."""

    def model_called(self, kind: WorkKind, model: str, outcome: CallOutcome, usage: Usage) -> None:
        """Ignore it."""

    def server_called(self, server: str, outcome: str) -> None:
        """Ignore it."""

    def job_ended(self, job: str, state: str) -> None:
        """Ignore it."""

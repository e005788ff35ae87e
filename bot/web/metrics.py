"""Metrics of one process for Prometheus. Labels hold names of our own and of configured models: no person, no room."""

from collections.abc import Collection, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from composer.model import Usage
from composer.operations.backlog import Backlog
from composer.ports.models import WorkKind
from composer.ports.observer import CallOutcome, TurnReport
from composer.repositories.job_ledger import StoredRun

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER: Final = "other"  # stands for a model that no setting names
SECONDS_BUCKETS: Final = (
    0.005,
    0.02,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
    120,
)  # upper bounds of the histogram


class Metrics:
    """Counts what a process does (composer.ports.observer.Observer), and writes it down with the state of the
    installation."""

    def __init__(self, models: Collection[str]) -> None:
        """`models` are the names that may become labels."""
        self._models = frozenset(models)
        self._registry = registry = CollectorRegistry()
        self._turns = Counter("nexus_turns", "Turns that ended", ["outcome"], registry=registry)
        self._steps = Histogram(
            "nexus_turn_step_seconds",
            "Seconds of each step of a turn",
            ["step"],
            registry=registry,
            buckets=SECONDS_BUCKETS,
        )
        self._calls = Counter("nexus_model_calls", "Calls of models", ["kind", "model", "outcome"], registry=registry)
        self._tokens = Counter(
            "nexus_model_tokens", "Tokens of calls of models", ["kind", "model", "direction"], registry=registry
        )
        self._servers = Counter(
            "nexus_tool_server_calls", "Calls of tools of servers", ["server", "outcome"], registry=registry
        )
        self._jobs = Counter(
            "nexus_job_runs", "Runs of jobs that this process ended", ["job", "state"], registry=registry
        )
        self._open = Gauge("nexus_turns_open", "Turns of this process that are not finished", registry=registry)
        self._backlog = Gauge("nexus_backlog", "What background work has still to do", ["work"], registry=registry)
        self._job_success = Gauge(
            "nexus_job_last_success_timestamp_seconds",
            "When a job last ended successfully, in any process",
            ["job"],
            registry=registry,
        )
        self._backup = Gauge(
            "nexus_backup_age_seconds", "Age of the newest backup; +Inf without one", registry=registry
        )
        self._database = Gauge("nexus_database_up", "1 if the database answered this scrape", registry=registry)

    def turn_ended(self, report: TurnReport) -> None:
        """Count a turn by its outcome, and its steps by their time."""
        self._turns.labels(report.outcome.value).inc()
        for step, milliseconds in report.timings_ms.items():
            self._steps.labels(step).observe(milliseconds / 1_000)

    def model_called(self, kind: WorkKind, model: str, outcome: CallOutcome, usage: Usage) -> None:
        """Count a call and its tokens."""
        name = model if model in self._models else OTHER
        self._calls.labels(kind.value, name, outcome.value).inc()
        for direction, tokens in (
            ("prompt", usage.prompt_tokens),
            ("completion", usage.completion_tokens),
            ("cached", usage.cached_tokens),
        ):
            self._tokens.labels(kind.value, name, direction).inc(tokens)

    def server_called(self, server: str, outcome: str) -> None:
        """Count a call. Servers are named by the settings."""
        self._servers.labels(server, outcome).inc()

    def job_ended(self, job: str, state: str) -> None:
        """Count a run."""
        self._jobs.labels(job, state).inc()

    def set_open_turns(self, count: int) -> None:
        """Note how many turns of this process are not finished."""
        self._open.set(count)

    def set_installation(self, backlog: Backlog | None, runs: Sequence[StoredRun], backup_age: float) -> None:
        """Note the state of the installation. `backlog` is None while the database is away; `backup_age` is in seconds,
        infinite without a backup, not a number where it is not known."""
        self._backlog.clear()
        self._job_success.clear()
        self._backup.set(backup_age)
        self._database.set(backlog is not None)
        if backlog is not None:
            for work, count in (
                ("index", backlog.unindexed),
                ("embed", backlog.unembedded),
                ("extract", backlog.unextracted),
                ("extract_parked", backlog.parked),
            ):
                self._backlog.labels(work).set(count)
        for run in runs:
            if run.succeeded_at is not None:
                self._job_success.labels(run.name).set(run.succeeded_at.timestamp())

    def text(self) -> bytes:
        """Everything in Prometheus's text format."""
        return generate_latest(self._registry)

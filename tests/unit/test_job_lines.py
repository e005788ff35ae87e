"""What `nexus jobs list` says of a job's last run."""

import pytest

from bot.console.schedule import line
from jobs.schedule import JOBS


@pytest.mark.parametrize(
    ("started", "said"),
    [
        ("2026-05-04T06:00:03+00:00", "last: done 2026-05-04 06:00 UTC, 3 done"),
        ("2026-05-04T08:15:00+00:00", "last: done 2026-05-04 08:15 UTC as of 2026-05-04 06:00 UTC, 3 done"),
    ],
)
def test_a_line_says_when_a_job_ran_and_as_of_when_if_that_differs(started: str, said: str) -> None:
    last = {"at": "2026-05-04T06:00:00+00:00", "started_at": started, "state": "done", "done": 3, "failed": 0}
    assert said in line({"name": "backup", "when": "0 6 * * *", "what": "back up", "next": None, "last": last})


def test_the_columns_of_all_jobs_are_below_each_other() -> None:
    at = "2026-05-04T06:00:00+00:00"
    lines = [line({"name": job.name, "when": job.cron, "what": job.help, "next": at, "last": None}) for job in JOBS]
    assert len({each.index(" next 2026-05-04 06:00 UTC ") for each in lines}) == 1
    assert all(each[: len(job.name)] == job.name for each, job in zip(lines, JOBS, strict=True))

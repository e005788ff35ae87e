"""What `nexus jobs list` says of a job's last run."""

import pytest

from bot.console.jobs import line


@pytest.mark.parametrize(
    ("started", "said"),
    [
        ("2026-05-04T06:00:03+00:00", "last: done 2026-05-04T06:00, 3 done"),
        ("2026-05-04T08:15:00+00:00", "last: done 2026-05-04T08:15 as of 2026-05-04T06:00, 3 done"),
    ],
)
def test_a_line_says_when_a_job_ran_and_as_of_when_if_that_differs(started: str, said: str) -> None:
    last = {"at": "2026-05-04T06:00:00+00:00", "started_at": started, "state": "done", "done": 3, "failed": 0}
    assert said in line({"name": "backup", "when": "0 6 * * *", "what": "back up", "next": None, "last": last})

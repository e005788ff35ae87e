"""Where days, weeks and sessions begin and end, and when jobs are due."""

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.summaries.tiers import SESSION_PAUSE, activity_sessions
from composer.text.dates.local_days import day_of, week_of
from jobs.schedule import JOBS

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Pacific/Chatham",
    "America/St_Johns",
    "Asia/Beirut",
)
MOMENTS = st.integers(0, 15 * 365 * 86_400).map(lambda s: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=s))


@pytest.mark.parametrize(
    ("at", "hours"),
    [("2026-03-28T12:00Z", 24), ("2026-03-29T12:00Z", 23), ("2026-10-25T12:00Z", 25), ("2026-10-26T12:00Z", 24)],
)
def test_a_local_day_has_23_to_25_hours(at: str, hours: int) -> None:
    start, end = day_of(datetime.fromisoformat(at), ZoneInfo("Europe/Berlin"))
    assert end - start == timedelta(hours=hours)


@given(MOMENTS, st.sampled_from(ZONES))
def test_days_are_contiguous_and_make_up_weeks(at: datetime, name: str) -> None:
    zone = ZoneInfo(name)
    start, end = day_of(at, zone)
    assert start <= at < end
    assert day_of(end, zone)[0] == end
    assert day_of(start, zone) == (start, end)
    monday, sunday = week_of(at, zone)
    assert monday <= start
    assert end <= sunday
    assert monday.astimezone(zone).weekday() == 0
    assert week_of(sunday, zone)[0] == sunday


@given(MOMENTS, st.sampled_from(ZONES))
def test_no_day_begins_within_a_quarter_of_an_hour(at: datetime, name: str) -> None:
    """Summaries become due at quarters of an hour: a quarter within two days would be completed by the first."""
    start, _ = day_of(at, ZoneInfo(name))
    assert (start.minute % 15, start.second) == (0, 0)


@given(st.lists(MOMENTS, max_size=30).map(sorted))
def test_sessions_are_split_only_at_long_pauses(times: list[datetime]) -> None:
    found = activity_sessions(times)
    assert [at for at in times if not any(first <= at <= last for first, last in found)] == []
    for (_, last), (first, _) in itertools.pairwise(found):
        assert first - last >= SESSION_PAUSE
    for first, last in found:
        inside = [at for at in times if first <= at <= last]
        assert all(b - a < SESSION_PAUSE for a, b in itertools.pairwise(inside))


@given(MOMENTS)
def test_every_job_has_a_latest_slot_up_to_now(now: datetime) -> None:
    for job in JOBS:
        before, after = job.last_due(now), job.next_due(now + timedelta(microseconds=1))
        assert before is not None
        assert after is not None
        assert before <= now < after
        assert job.last_due(before) == before


def test_jobs_have_unique_names() -> None:
    assert len({job.name for job in JOBS}) == len(JOBS)
    assert all(job.limit_seconds > 0 for job in JOBS)

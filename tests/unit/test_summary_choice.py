"""The summaries of a prompt: chosen for the question, within a budget, and no two of the same time."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from composer.layers.episodic import choose
from composer.model import Item, Visibility
from composer.prompt.lines import summary_line
from composer.repositories.recall import Background
from composer.text.dates.periods import asked_periods

NOW = datetime(2026, 5, 14, 9, 30, tzinfo=UTC)  # a Thursday
TOKENS = 100


def day(text: str, days: int = 1, *, shift: int = 0) -> Item:
    """A summary of the day or the week that begins on a date, `shift` hours before midnight UTC."""
    start = datetime.fromisoformat(text).replace(tzinfo=UTC) - timedelta(hours=shift)
    return summary("week" if days > 1 else "day", start, start + timedelta(days=days))


def summary(tier: str, start: datetime, end: datetime) -> Item:
    id = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{tier} {start}"))
    name = f"{tier} {start:%m-%d}"
    return Item("episodic", tier, id, name, end, "room:here", Visibility.PUBLIC, starts_at=start)


WEEKS = [day("2026-04-20", 7), day("2026-04-27", 7), day("2026-05-04", 7)]
DAYS = [day(f"2026-05-{n:02}") for n in range(7, 14)]
TODAY = summary("session", NOW.replace(hour=8), NOW.replace(hour=9))
YESTERDAY = summary("session", NOW.replace(day=13, hour=8), NOW.replace(day=13, hour=9))
ALL = [*WEEKS, *DAYS, YESTERDAY, TODAY]


def chosen(question: str, summaries: Sequence[Item] = ALL, tokens: int = 10_000) -> list[str]:
    background = Background({}, {}, None, list(summaries), {item.id: TOKENS for item in summaries})
    return [item.text for item in choose(background, asked_periods(question, NOW), NOW, tokens)]


def test_the_recent_past_is_shown_day_by_day_and_what_lies_further_back_week_by_week() -> None:
    assert chosen("what is the deadline?") == [
        *("week 04-20", "week 04-27", "week 05-04"),
        *("day 05-11", "day 05-12", "day 05-13", "session 05-14"),
    ]


def test_no_two_summaries_tell_of_the_same_time() -> None:
    for question in ("hello", "what happened on 12 May 2026?", "what happened last week?", "in April"):
        texts = chosen(question)
        spans = [(item.starts_at, item.at) for item in ALL if item.text in texts]
        assert all(a is b or a[1] <= b[0] or b[1] <= a[0] for a in spans for b in spans), question  # type: ignore[operator]


def test_the_budget_is_kept_and_the_latest_come_first() -> None:
    assert chosen("hello", tokens=2 * TOKENS) == ["day 05-12", "day 05-13"]
    assert chosen("hello", tokens=TOKENS - 1) == []


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what happened on 8 May 2026?", ["day 05-08"]),
        ("what did we do two weeks ago?", ["week 04-27"]),
        ("what happened in April?", ["week 04-27"]),
        ("what was said yesterday?", ["day 05-13"]),
    ],
)
def test_the_summaries_of_a_named_time_come_before_all_others(question: str, first: list[str]) -> None:
    assert chosen(question, tokens=TOKENS) == first


def test_a_named_day_is_found_where_days_begin_at_another_midnight() -> None:
    berlin = [day("2026-05-08", shift=2), day("2026-05-09", shift=2)]
    assert chosen("what happened on 8 May 2026?", berlin, TOKENS) == ["day 05-07"]
    assert summary_line(berlin[0]).startswith("- day, 2026-05-08: ")


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (day("2026-05-08"), "- day, 2026-05-08: "),
        (day("2026-05-04", 7), "- week, 2026-05-04 to 2026-05-10: "),
        (TODAY, "- session, 2026-05-14 08:30 to 09:30: "),
        (summary("thread", NOW, NOW + timedelta(days=2, hours=5)), "- thread, 2026-05-14 09:30 to 2026-05-16 14:30: "),
    ],
)
def test_a_summary_is_written_under_the_time_that_it_tells_of(item: Item, words: str) -> None:
    assert summary_line(item).startswith(words)

"""When something is to happen, read from the beginning of a text."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from composer.text.dates.repeats import Repeat
from composer.text.dates.when import read_since, read_when

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 5, 4, 7, 30, tzinfo=UTC)  # a Monday, 9:30 in Berlin


def local(text: str) -> tuple[str, str]:
    """When, in Berlin's time, and what."""
    found = read_when(text, NOW, BERLIN)
    assert found is not None, text
    return f"{found[0].at.astimezone(BERLIN):%a %Y-%m-%d %H:%M}", found[1]


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("in 20 minutes stretch", "Mon 2026-05-04 09:50", "stretch"),
        ("in an hour and 15 minutes to stretch", "Mon 2026-05-04 10:45", "stretch"),
        ("in half an hour: tea", "Mon 2026-05-04 10:00", "tea"),
        ("in 1h 30m tea", "Mon 2026-05-04 11:00", "tea"),
        ("in twelve minutes tea", "Mon 2026-05-04 09:42", "tea"),
        ("in 2 days tea", "Wed 2026-05-06 09:30", "tea"),
        ("in 2 weeks at 8:00 tea", "Mon 2026-05-18 08:00", "tea"),
        ("at 14:00 tea", "Mon 2026-05-04 14:00", "tea"),
        ("9:00 tea", "Tue 2026-05-05 09:00", "tea"),
        ("9pm tea", "Mon 2026-05-04 21:00", "tea"),
        ("tomorrow tea", "Tue 2026-05-05 09:00", "tea"),
        ("Tomorrow 9:00 call Bob at 10:00", "Tue 2026-05-05 09:00", "call Bob at 10:00"),
        ("at 7:15 pm tomorrow tea", "Tue 2026-05-05 19:15", "tea"),
        ("tonight tea", "Mon 2026-05-04 20:00", "tea"),
        ("on Friday at 14:00 send the report", "Fri 2026-05-08 14:00", "send the report"),
        ("monday 9:00 tea", "Mon 2026-05-11 09:00", "tea"),
        ("monday 10:00 tea", "Mon 2026-05-04 10:00", "tea"),
        ("2026-05-04 11:00 renew\nboth", "Mon 2026-05-04 11:00", "renew\nboth"),
        ("2026-06-01T08:15 renew", "Mon 2026-06-01 08:15", "renew"),
        ("on the 3rd of May at 9:00 tea", "Mon 2027-05-03 09:00", "tea"),
        ("June 1, 2026 tea", "Mon 2026-06-01 09:00", "tea"),
        ("2026-03-29 02:30 an hour left out", "Sun 2026-03-29 03:30", "an hour left out"),
        ("every weekday at 9:30 stand-up", "Tue 2026-05-05 09:30", "stand-up"),
        ("every day at 10:00 tea", "Mon 2026-05-04 10:00", "tea"),
        ("every Tuesday and Friday at 9:00 tea", "Tue 2026-05-05 09:00", "tea"),
    ],
)  # fmt: skip
def test_a_time_is_read_in_the_zone_of_its_reader(text: str, at: str, what: str) -> None:
    assert local(text) == (at, what)


@pytest.mark.parametrize(
    "text",
    ["", "stretch", "today tea", "in minutes tea", "at 25:00 tea", "tomorrow at 13pm tea", "2026-02-30 tea",
     "on 31 June tea", "every tea", "in 99999 minutes tea", "in 0 minutes tea", "2026-05-045 tea"],
)  # fmt: skip
def test_what_is_no_time_or_does_not_exist_is_not_read(text: str) -> None:
    assert read_when(text, NOW, BERLIN) is None


def test_what_is_over_is_read_as_it_is_written() -> None:
    assert local("2026-05-01 9:00 tea") == ("Fri 2026-05-01 09:00", "tea")
    assert local("today at 8:00 tea") == ("Mon 2026-05-04 08:00", "tea")


def test_a_repeat_keeps_its_local_time_over_the_change_to_winter_time() -> None:
    found = read_when("every weekday at 9:30 stand-up", NOW, BERLIN)
    assert found is not None
    repeat = found[0].repeat
    assert repeat is not None
    assert Repeat.of(str(repeat)) == repeat
    assert repeat.words == "every weekday at 09:30"
    friday = datetime(2026, 10, 23, 7, 30, tzinfo=UTC)
    assert repeat.after(friday, BERLIN) == datetime(2026, 10, 26, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2 hours", "Mon 2026-05-04 07:30"),
        ("since 3 days ago", "Fri 2026-05-01 09:30"),
        ("seven hours ago", "Mon 2026-05-04 02:30"),
        ("the last half an hour", "Mon 2026-05-04 09:00"),
        ("today", "Mon 2026-05-04 00:00"),
        ("yesterday", "Sun 2026-05-03 00:00"),
        ("yesterday at 14:00", "Sun 2026-05-03 14:00"),
        ("at 14:00 yesterday", "Sun 2026-05-03 14:00"),
        ("9:00", "Mon 2026-05-04 09:00"),
        ("14:00", "Sun 2026-05-03 14:00"),
        ("on Friday at 14:00", "Fri 2026-05-01 14:00"),
        ("monday", "Mon 2026-05-04 00:00"),
        ("this week", "Mon 2026-05-04 00:00"),
        ("last week", "Mon 2026-04-27 00:00"),
        ("2026-05-01", "Fri 2026-05-01 00:00"),
        ("5 May", "Mon 2025-05-05 00:00"),
        ("1 May 2026 8am", "Fri 2026-05-01 08:00"),
    ],
)
def test_a_time_that_is_over_is_the_latest_one(text: str, at: str) -> None:
    found = read_since(text, NOW, BERLIN)
    assert found is not None
    assert f"{found.astimezone(BERLIN):%a %Y-%m-%d %H:%M}" == at


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-05-05", "2 hours or so", "yesterday tea", "2026-02-30", "9"])
def test_what_is_no_time_that_is_over_is_not_read(text: str) -> None:
    assert read_since(text, NOW, BERLIN) is None

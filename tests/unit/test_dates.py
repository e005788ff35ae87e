"""Dates: the periods that a question names, and texts that contain a time."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from composer.text.dates.named_days import asks_when, named_periods, says_when
from composer.text.dates.periods import asked_periods

NOW = datetime(2026, 5, 14, 9, 30, tzinfo=UTC)  # a Thursday


def days(question: str) -> list[tuple[str, str]]:
    return [(f"{start:%Y-%m-%d}", f"{end:%Y-%m-%d}") for start, end in named_periods(question, NOW)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what did we decide in march?", [("2026-03-01", "2026-04-01")]),
        ("what happened in December", [("2025-12-01", "2026-01-01")]),
        ("last May, who came?", [("2026-05-01", "2026-06-01")]),
        ("what was said on 3 May 2023?", [("2023-05-02", "2023-05-05")]),
        ("what was said on May 3rd, 2023?", [("2023-05-02", "2023-05-05")]),
        ("June 2024 in short", [("2024-06-01", "2024-07-01")]),
        ("the note of 2026-02-28", [("2026-02-27", "2026-03-02")]),
        ("what did I say yesterday?", [("2026-05-12", "2026-05-15")]),
        ("what is new today?", [("2026-05-14", "2026-05-15")]),
        ("what did we ship last week?", [("2026-05-01", "2026-05-14")]),
        ("on 31 June 2026", []),
        ("in May 0000", []),
        ("the 31st of December 9999", []),
        ("may I march with you?", []),
        ("", []),
    ],
)
def test_dates_in_a_question_are_parsed_into_periods(question: str, expected: list[tuple[str, str]]) -> None:
    assert days(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what happened on 11 December 2008", [("2008-12-11", "2008-12-12")]),
        ("what was said on 2026-04-30?", [("2026-04-30", "2026-05-01")]),
        ("what happened last week?", [("2026-05-04", "2026-05-11")]),
        ("this week", [("2026-05-11", "2026-05-15")]),
        ("in May", [("2026-05-01", "2026-06-01")]),
        ("what was new in December?", [("2025-12-01", "2026-01-01")]),
        ("what did I say yesterday?", [("2026-05-13", "2026-05-14")]),
        ("and today", [("2026-05-14", "2026-05-15")]),
        ("three days ago", [("2026-05-11", "2026-05-12")]),
        ("two weeks ago", [("2026-04-27", "2026-05-04")]),
        ("a month ago", [("2026-04-01", "2026-05-01")]),
        ("what did we do on Thursday", [("2026-05-07", "2026-05-08")]),
        ("last Friday", [("2026-05-08", "2026-05-09")]),
        ("the past month", [("2026-04-01", "2026-05-01")]),
        ("during 2025", [("2025-01-01", "2026-01-01")]),
        ("last year", [("2025-01-01", "2026-01-01")]),
        ("in May 2024", [("2024-05-01", "2024-06-01")]),
        ("what happened since October?", [("2025-10-01", "2026-05-14")]),
        ("what did we decide between 2026-05-01 and 2026-05-10?", [("2026-05-01", "2026-05-11")]),
        ("from 3 May to 6 May", [("2026-05-03", "2026-05-07")]),
        ("what was said before 3 May 2026?", []),
        ("what is due by Friday, and was it so on Thursday?", []),
        ("what was said by Bob yesterday?", [("2026-05-13", "2026-05-14")]),
        ("since we moved house, what happened last week?", [("2026-05-04", "2026-05-11")]),
        ("what came from Bob on 3 May and on 6 May?", [("2026-05-03", "2026-05-04"), ("2026-05-06", "2026-05-07")]),
        ("from last Friday until yesterday", [("2026-05-08", "2026-05-14")]),
        ("on 1, 2 May, 3 May, 4 May and 5 May", [(f"2026-05-0{day}", f"2026-05-0{day + 1}") for day in (2, 3, 4)]),
        ("in June 2027, which lies ahead", []),
        ("on 31 June 2026", []),
        ("may I march with you?", []),
        ("what was said the day before yesterday?", [("2026-05-12", "2026-05-13")]),
        ("the past three days", [("2026-05-11", "2026-05-15")]),
        ("in the last two weeks", [("2026-04-30", "2026-05-15")]),
        ("the last couple of months", [("2026-02-11", "2026-05-15")]),
        ("a few days ago", [("2026-05-09", "2026-05-13")]),
        ("a couple of weeks ago", [("2026-04-20", "2026-05-04")]),
        ("two years ago", [("2024-01-01", "2025-01-01")]),
        ("what happened in march last year", [("2025-03-01", "2025-04-01")]),
        ("in May of last year", [("2025-05-01", "2025-06-01")]),
        ("last March", [("2026-03-01", "2026-04-01")]),
        ("last May", [("2025-05-01", "2025-06-01")]),
        ("last summer", [("2025-06-01", "2025-09-01")]),
        ("last spring", [("2025-03-01", "2025-06-01")]),
        ("in the winter of 2024", [("2024-12-01", "2025-03-01")]),
        ("what did we do at the weekend?", [("2026-05-09", "2026-05-11")]),
        ("last weekend", [("2026-05-09", "2026-05-11")]),
        ("at the beginning of May", [("2026-05-01", "2026-05-11")]),
        ("mid-May", [("2026-05-11", "2026-05-21")]),
        ("in late April 2025", [("2025-04-21", "2025-05-01")]),
        ("what did we ship in Q2?", [("2026-04-01", "2026-07-01")]),
        ("Q4 2024", [("2024-10-01", "2025-01-01")]),
        ("last quarter", [("2026-01-01", "2026-04-01")]),
        ("the week before last", [("2026-04-27", "2026-05-04")]),
        ("between March and May", [("2026-03-01", "2026-06-01")]),
        ("from October to January", [("2025-10-01", "2026-02-01")]),
        ("since last Friday", [("2026-05-08", "2026-05-14")]),
        ("what was agreed before last summer?", []),
        ("what did we do by the end of May?", []),
        ("the friday deploy, next friday and a mid march", [("2026-03-11", "2026-03-21")]),
        ("this may be wrong", []),
        ("when do we start in June?", []),
        ("1e3 days and 1000 days ago", []),
        ("999 years ago", [("1027-01-01", "1028-01-01")]),
    ],
)
def test_the_periods_that_a_question_asks_for_are_exact(question: str, expected: list[tuple[str, str]]) -> None:
    found = [(f"{start:%Y-%m-%d}", f"{end:%Y-%m-%d}") for start, end in asked_periods(question, NOW)]
    assert found == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what happened last night?", [("2026-05-13 18:00", "2026-05-14 06:00")]),
        ("this morning", [("2026-05-14 04:00", "2026-05-14 12:00")]),
        ("yesterday evening", [("2026-05-13 17:00", "2026-05-14 00:00")]),
        ("on Monday morning", [("2026-05-11 04:00", "2026-05-11 12:00")]),
        ("the last 48 hours", [("2026-05-12 09:30", "2026-05-14 09:30")]),
        ("in the past hour", [("2026-05-14 08:30", "2026-05-14 09:30")]),
        ("two hours ago", [("2026-05-14 07:00", "2026-05-14 08:00")]),
        ("what happens tonight?", []),
        ("and this afternoon?", []),
    ],
)
def test_parts_of_a_day_are_periods_of_hours(question: str, expected: list[tuple[str, str]]) -> None:
    found = [(f"{start:%Y-%m-%d %H:%M}", f"{end:%Y-%m-%d %H:%M}") for start, end in asked_periods(question, NOW)]
    assert found == expected


@pytest.mark.parametrize(
    "question",
    [
        *(
            "what is planned on Friday?",
            "what happens on Friday?",
            "who is on call at the weekend?",
            "what's on Monday?",
        ),
        *("do we meet on Friday evening?", "can you tell me who is on call on Friday?", "what happens in June?"),
        *("who is on call this weekend?", "will the bank be open on Friday?"),
    ],
)
def test_a_question_about_what_lies_ahead_asks_for_no_period(question: str) -> None:
    assert asked_periods(question, NOW) == []


@pytest.mark.parametrize(
    "question",
    [
        *(
            "what did we do on Friday?",
            "what was planned on Friday?",
            "messages on Friday",
            "can you sum up Friday night?",
        ),
        *("is there anything that Bob said on Friday?", "what is it that we decided last Friday?"),
    ],
)
def test_a_question_about_the_past_asks_for_the_latest_day_that_is_over(question: str) -> None:
    assert [f"{start:%Y-%m-%d}" for start, _ in asked_periods(question, NOW)] == ["2026-05-08"]


def test_tonight_after_midnight_is_the_night_that_has_begun() -> None:
    late = datetime(2026, 5, 14, 1, 0, tzinfo=UTC)
    assert asked_periods("what was said tonight?", late) == [
        (datetime(2026, 5, 13, 18, tzinfo=UTC), datetime(2026, 5, 14, 6, tzinfo=UTC))
    ]


def test_the_weekend_that_has_begun_is_this_one() -> None:
    sunday = datetime(2026, 5, 17, 12, 0, tzinfo=UTC)
    for question, day in (("this weekend", 16), ("at the weekend", 16), ("last weekend", 9)):
        assert [start.day for start, _ in asked_periods(question, sunday)] == [day], question


def test_days_are_those_of_the_zone_of_now() -> None:
    berlin = datetime(2026, 3, 30, 0, 30, tzinfo=ZoneInfo("Europe/Berlin"))  # Sunday evening in UTC
    assert asked_periods("yesterday", berlin) == [  # the day on which the clocks were put forward: 23 hours
        (datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))
    ]
    assert asked_periods("today", berlin) == [
        (datetime(2026, 3, 29, 22, tzinfo=UTC), datetime(2026, 3, 30, 22, tzinfo=UTC))
    ]
    assert named_periods("today", berlin) == asked_periods("today", berlin)


def test_questions_about_a_time_and_texts_with_a_time_are_recognised() -> None:
    assert asks_when("When did she leave?")
    assert asks_when("for how long was it?")
    assert asks_when("what year was that")
    assert not asks_when("whenever, who cares")
    assert says_when("we met last Tuesday")
    assert says_when("in 2019")
    assert not says_when("we met at the lake")

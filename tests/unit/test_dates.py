"""Dates: the periods that a question names, and texts that contain a time."""

from datetime import UTC, datetime

import pytest

from composer.text.dates import asked_periods, asks_when, named_periods, says_when

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
    ],
)
def test_the_periods_that_a_question_asks_for_are_exact(question: str, expected: list[tuple[str, str]]) -> None:
    found = [(f"{start:%Y-%m-%d}", f"{end:%Y-%m-%d}") for start, end in asked_periods(question, NOW)]
    assert found == expected


def test_questions_about_a_time_and_texts_with_a_time_are_recognised() -> None:
    assert asks_when("When did she leave?")
    assert asks_when("for how long was it?")
    assert asks_when("what year was that")
    assert not asks_when("whenever, who cares")
    assert says_when("we met last Tuesday")
    assert says_when("in 2019")
    assert not says_when("we met at the lake")

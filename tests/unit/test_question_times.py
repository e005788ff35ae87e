"""The times that a question names are the same for every layer, and each of its texts is told once."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from composer.text.dates import question_times
from composer.text.dates.named_days import named_periods
from composer.text.dates.periods import asked_periods
from composer.text.dates.question_times import QuestionTimes
from composer.text.dates.tongues import Told, told_in_english

NOW = datetime(2026, 5, 15, 12, tzinfo=UTC)
QUESTIONS = ("what was said yesterday?", "was haben wir am 3. Mai besprochen?", "who has the vault key?", "last week")


def test_what_is_named_is_what_each_reader_by_itself_finds() -> None:
    times = QuestionTimes()
    for text in QUESTIONS:
        for _ in range(2):
            assert times.periods(text, NOW) == asked_periods(text, NOW)
            assert times.near(text, NOW) == named_periods(text, NOW)
    later = NOW + timedelta(days=1)
    assert times.periods(QUESTIONS[0], later) == asked_periods(QUESTIONS[0], later) != asked_periods(QUESTIONS[0], NOW)


def test_a_text_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()

    def counted(text: str, *, ahead: bool) -> Iterator[Told]:
        told.append(text)
        return told_in_english(text, ahead=ahead)

    monkeypatch.setattr(question_times, "told_in_english", counted)
    times = QuestionTimes()
    for text in (*QUESTIONS, *QUESTIONS):
        times.periods(text, NOW)
        times.near(text, NOW)
        times.meant(text, NOW)
    assert told == list(QUESTIONS)

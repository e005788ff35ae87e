"""Dates and times on the pages."""

from datetime import UTC, date, datetime

from bot.web.pages.rendering import Dates, languages

NOW = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


def test_english_has_the_day_before_the_month_and_24_hours_everywhere() -> None:
    english = next(Dates(each, UTC, NOW) for each in languages() if each.code == "en")
    at = datetime(2026, 11, 9, 16, 2, tzinfo=UTC)
    assert english.short(at) == "9 Nov, 16:02"
    assert english.exact(at).startswith("Monday, 9 November 2026, 16:02:00")
    assert (english.long(at.date()), english.on(at.date())) == ("9 November 2026", "Monday, 9 November 2026")
    assert english.of_date(date(2025, 3, 2)) == "2 Mar 2025"
    assert english.compact(475_048) == "475K"


def test_german_names_the_weekday_whole_and_groups_the_digits_of_numbers_that_it_has_no_short_word_for() -> None:
    german = next(Dates(each, UTC, NOW) for each in languages() if each.code == "de")
    assert german.on(date(2026, 11, 9)) == "Montag, 9. November 2026"
    assert [german.compact(each) for each in (9_999, 475_048, 1_380_000)] == ["9.999", "475.048", "1,4\xa0Mio."]

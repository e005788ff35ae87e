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

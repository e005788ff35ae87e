"""Local days and weeks, in UTC. Pure."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo

from composer.text.dates.vocabulary import Period


def day_of(at: datetime, zone: tzinfo) -> Period:
    """The local day of a moment, from midnight to midnight, in UTC: 23, 24 or 25 hours."""
    day = at.astimezone(zone).date()
    return _midnight(day, zone), _midnight(day + timedelta(days=1), zone)


def week_of(at: datetime, zone: tzinfo) -> Period:
    """The local week of a moment, from Monday to Monday, in UTC."""
    day = at.astimezone(zone).date()
    monday = day - timedelta(days=day.weekday())
    return _midnight(monday, zone), _midnight(monday + timedelta(days=7), zone)


def start_of_day(day: date, zone: tzinfo) -> datetime:
    """The first moment of a local day, in UTC."""
    return _midnight(day, zone)


def end_of_day(day: date, zone: tzinfo) -> datetime:
    """The last moment of a local day, in UTC."""
    return _midnight(day + timedelta(days=1), zone) - timedelta(microseconds=1)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)

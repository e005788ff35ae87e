"""The days and the local time at which something repeats, and moments of a local day. Pure."""

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from composer.text.dates.vocabulary import WEEKDAYS

WORKDAYS: Final = frozenset(range(5))
EVERY_DAY: Final = frozenset(range(7))
MONDAY: Final = frozenset({0})


@dataclass(frozen=True, slots=True)
class Repeat:
    """The days of the week (0 is Monday), or the day of each month, and the local time at which something repeats. As
    text: "0,1,2,3,4 09:30", "m1 09:00 Europe/London". A month without that day has its last one. `zone`: the name of
    the zone whose time it is; "" for that of the reader."""

    days: frozenset[int]
    at: time
    month_day: int = 0
    zone: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for a day that no month has."""
        if not 0 <= self.month_day <= 31:
            raise ValueError("no month has that day")

    @classmethod
    def of(cls, text: str) -> "Repeat":
        """Read what `str` wrote."""
        days, at, zone = [*text.split(" "), ""][:3]
        if days.startswith("m"):
            return cls(frozenset(), time.fromisoformat(at), int(days[1:]), zone)
        return cls(frozenset(map(int, days.split(","))), time.fromisoformat(at), zone=zone)

    def __str__(self) -> str:
        """The form in which it is stored."""
        days = f"m{self.month_day}" if self.month_day else ",".join(map(str, sorted(self.days)))
        return f"{days} {self.at:%H:%M} {self.zone}".rstrip()

    @property
    def words(self) -> str:
        """For people: "every weekday at 09:30"."""
        zone = f" ({self.zone})" if self.zone else ""
        if self.month_day:
            return f"on day {self.month_day} of every month at {self.at:%H:%M}{zone}"
        names = {EVERY_DAY: "day", WORKDAYS: "weekday"}
        listed = [WEEKDAYS[day].capitalize() for day in sorted(self.days)]
        return f"every {names.get(self.days) or ' and '.join(listed)} at {self.at:%H:%M}{zone}"

    def after(self, now: datetime, zone: tzinfo) -> datetime:
        """The next time after `now`, in UTC; `zone` is the reader's."""
        zone = ZoneInfo(self.zone) if self.zone else zone
        today = now.astimezone(zone).date()
        for later in range(62 if self.month_day else len(WEEKDAYS) + 1):
            day = today + timedelta(days=later)
            at = local_moment(day, self.at, zone)
            if self._has(day) and at > now:
                return at
        raise ValueError("a repeat has at least one day")

    def _has(self, day: date) -> bool:
        if not self.month_day:
            return day.weekday() in self.days
        return day.day == min(self.month_day, calendar.monthrange(day.year, day.month)[1])


def clock_note(day: date, at: time, zone: tzinfo) -> str:
    """What is to be said of a local time that the clocks leave out on that day, or have twice."""
    first, second = (datetime.combine(day, at.replace(fold=fold), zone).utcoffset() for fold in (0, 1))
    if first == second:
        return ""
    if datetime.combine(day, at, zone).astimezone(UTC).astimezone(zone).time() != at:
        return f"The clocks go forward that night and leave out {at:%H:%M}, so it is an hour later."
    return f"The clocks go back that night and have {at:%H:%M} twice: I take the first."


def local_moment(day: date, at: time, zone: tzinfo) -> datetime:
    """A local time, in UTC. One that the change to summer time leaves out is an hour later."""
    return datetime.combine(day, at.replace(second=0, microsecond=0), zone).astimezone(UTC)

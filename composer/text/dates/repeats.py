"""The days and the local time at which something repeats, and moments of a local day. Pure."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from composer.text.dates.vocabulary import WEEKDAYS

WORKDAYS: Final = frozenset(range(5))
EVERY_DAY: Final = frozenset(range(7))
MONDAY: Final = frozenset({0})


@dataclass(frozen=True, slots=True)
class Repeat:
    """The days of the week (0 is Monday) and the local time at which something repeats. As text: "0,1,2,3,4 09:30"."""

    days: frozenset[int]
    at: time

    @classmethod
    def of(cls, text: str) -> "Repeat":
        """Read what `str` wrote."""
        days, _, at = text.partition(" ")
        return cls(frozenset(map(int, days.split(","))), time.fromisoformat(at))

    def __str__(self) -> str:
        """The form in which it is stored."""
        return f"{','.join(map(str, sorted(self.days)))} {self.at:%H:%M}"

    @property
    def words(self) -> str:
        """For people: "every weekday at 09:30"."""
        names = {EVERY_DAY: "day", WORKDAYS: "weekday"}
        listed = [WEEKDAYS[day].capitalize() for day in sorted(self.days)]
        return f"every {names.get(self.days) or ' and '.join(listed)} at {self.at:%H:%M}"

    def after(self, now: datetime, zone: tzinfo) -> datetime:
        """The next time after `now`, in UTC."""
        today = now.astimezone(zone).date()
        for later in range(len(WEEKDAYS) + 1):
            day = today + timedelta(days=later)
            at = local_moment(day, self.at, zone)
            if day.weekday() in self.days and at > now:
                return at
        raise ValueError("a repeat has at least one day")


def local_moment(day: date, at: time, zone: tzinfo) -> datetime:
    """A local time, in UTC. One that the change to summer time leaves out is an hour later."""
    return datetime.combine(day, at.replace(second=0, microsecond=0), zone).astimezone(UTC)

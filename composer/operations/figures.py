"""What happened in an organisation day by day, for its admins: figures, and never what anybody wrote."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo

from composer.repositories.database import Transaction
from composer.repositories.tenant_figures import TenantDay, TenantWaiting
from composer.text.dates.local_days import start_of_day


@dataclass(frozen=True, slots=True)
class DayOfFigures:
    """A day, and what happened on it."""

    day: date
    of: TenantDay


@dataclass(frozen=True, slots=True)
class RunningFigures:
    """The days, oldest first, and the questions that wait now."""

    days: Sequence[DayOfFigures]
    waiting: TenantWaiting

    @property
    def empty(self) -> bool:
        """Whether nothing happened on any of the days."""
        return not any(each.of.answers or each.of.failures or each.of.messages or each.of.learnt for each in self.days)


async def running_figures(tx: Transaction, today: date, days: int, zone: tzinfo) -> RunningFigures:
    """The figures of the last `days` days until today. Whoever asks must be an admin. `zone`: that of the days."""
    shown = [today - timedelta(days=back) for back in reversed(range(days))]
    found = await tx.tenant_figures.days([start_of_day(day, zone) for day in [*shown, today + timedelta(days=1)]])
    listed = [DayOfFigures(day, of) for day, of in zip(shown, found, strict=True)]
    return RunningFigures(listed, await tx.tenant_figures.waiting())

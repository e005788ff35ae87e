"""What models used in some days, as a person may see it of themselves, and an admin of everyone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from composer.errors import BadInput
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.usage import Dimension
from composer.usage.report import UsageLine, lines
from composer.visibility import Owned

MAX_SPAN_DAYS: Final = 366


@dataclass(frozen=True, slots=True)
class UsageSpan:
    """The days that usage is shown of, the last one included."""

    since: date
    until: date

    @property
    def days(self) -> Sequence[date]:
        """Each of them, in their order."""
        return [self.since + timedelta(days=number) for number in range((self.until - self.since).days + 1)]


def usage_span(since: date | None, until: date | None, today: date, days: int = 30) -> UsageSpan:
    """The days from `since` until `until`; by default the last `days` until today. Raises BadInput."""
    last = until or today
    try:
        first = since or last - timedelta(days=days - 1)
    except OverflowError:
        first = date.min
    if last < first:
        raise BadInput(f"The last day, {last}, is before the first, {first}: exchange them.")
    if (last - first).days >= MAX_SPAN_DAYS:
        raise BadInput(f"At most {MAX_SPAN_DAYS} days are shown at once: choose a later first day.")
    return UsageSpan(first, last)


async def model_usage(
    tx: Transaction, by: Dimension, span: UsageSpan, owned: Owned, presence: Presence, *, everyone: bool
) -> list[UsageLine]:
    """What models used, one line for each day, agent, room and so on: for the person whose rows are `owned`, or with
    `everyone` for all, which is for admins. Private rooms are named that the person is in now."""
    joined = await tx.conversations.joined_ids(owned.users, presence)
    if everyone:
        return lines(await tx.usage.of_everyone(by, span.since, span.until, joined), by)
    return lines(await tx.usage.of_owner(by, span.since, span.until, owned, joined), by)

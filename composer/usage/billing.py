"""What a tenant has paid for, by its subscriptions at the billing provider. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.ports.billing import Subscription

# The states of a subscription that gives its plan. past_due: a payment failed, and the provider still tries again.
GIVING: Final = frozenset({"active", "trialing", "past_due"})
TO_BE_PAID: Final = frozenset({"unpaid", "paused"})  # it goes on once its customer pays at the provider
NONE: Final = "none"  # no subscription


@dataclass(frozen=True, slots=True)
class Paid:
    """What a tenant has paid for: the state of its subscription (a word of the provider, or `none`), and the plan that
    it gives."""

    status: str = NONE
    plan: str | None = None
    until: datetime | None = None
    ends: bool = False


def current(subscriptions: Sequence[Subscription], plans: Mapping[str, str]) -> Subscription | None:
    """The one that counts: of those that give a plan, else of all, the newest. `plans`: by their prices."""
    return max(subscriptions, key=lambda each: (each.status in GIVING, each.price in plans, each.created), default=None)


def paid(subscriptions: Sequence[Subscription], plans: Mapping[str, str], before: str | None) -> Paid:
    """What subscriptions give. One with a price that no plan has any more gives the plan that it gave `before`."""
    found = current(subscriptions, plans)
    if found is None:
        return Paid()
    plan = plans.get(found.price, before) if found.status in GIVING else None
    return Paid(found.status, plan, found.until, found.ends)

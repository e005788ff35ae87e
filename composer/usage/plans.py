"""Plans: how much of each kind a tenant may use. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from composer.errors import EntriesFull, QuotaUsedUp
from composer.repositories.operations import ENTRIES, TOKENS, Operation

WARN_AT: Final = (4, 5)  # the share of a quota from which on its use is warned of


@dataclass(frozen=True, slots=True)
class Plan:
    """What a tenant may use: `entries` at any time; in a month operations of each kind, and `tokens` of models. What is
    not named is not limited."""

    name: str
    entries: int | None = None
    tokens: int | None = None
    operations: Mapping[Operation, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuotaState:
    """How much of a quota is used. `begins_again`: the first day on which nothing of it is; None for entries, which are
    counted at any time."""

    quota: str
    used: int
    most: int
    begins_again: date | None

    @property
    def is_nearly_used_up(self) -> bool:
        """Whether most of it is used. What the plan has nothing of is not used."""
        part, whole = WARN_AT
        return self.used > 0 and self.used * whole >= self.most * part

    @property
    def description(self) -> str:
        """The state for people: "812 of 1,000 writes of this month"."""
        when = "" if self.begins_again is None else " of this month"
        return f"{self.used:,} of {self.most:,} {self.quota}{when}"

    def require_capacity(self, times: int = 1, seconds: int = 0) -> None:
        """Return if so many (`times`) more fit. `seconds`: how long until the quota begins again. Raises QuotaUsedUp,
        or EntriesFull, without figures: they tell what others do, and are for admins."""
        if self.used + times <= self.most:
            return
        if self.begins_again is None:
            more = "another entry" if times == 1 else f"{times:,} more entries"
            raise EntriesFull(
                f"The plan of this workspace has no room for {more}: put some into the trash, or ask its operator for "
                "a larger plan."
            )
        few = "no" if times == 1 else f"fewer than {times:,}"
        raise QuotaUsedUp(
            f"The plan of this workspace has {few} {self.quota} left in this month: they begin again on "
            f"{self.begins_again}. Its operator can set a larger plan.",
            seconds=seconds,
        )


UNLIMITED: Final = QuotaState("", 0, 10**18, None)  # where there is no quota


def states(
    plan: Plan, used: Mapping[Operation, int], entries: int, tokens: int, begins_again: date
) -> list[QuotaState]:
    """How much of each quota of a plan is used."""
    found = [] if plan.entries is None else [QuotaState(ENTRIES, entries, plan.entries, None)]
    found += [
        QuotaState(operation.value, used.get(operation, 0), plan.operations[operation], begins_again)
        for operation in Operation
        if operation in plan.operations
    ]
    return found + ([] if plan.tokens is None else [QuotaState(TOKENS, tokens, plan.tokens, begins_again)])

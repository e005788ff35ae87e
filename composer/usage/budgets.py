"""Budgets: whether a call still fits into what a tenant may use in a day or a month. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final

from composer.ports.models import WorkKind
from composer.repositories.usage import Amount, Spent
from composer.text.counts import counted
from composer.usage.prices import Prices


class BudgetPeriod(StrEnum):
    """How long a budget or a quota is for. It begins anew at midnight, or on the first of the month, in the time zone
    of the tenant."""

    DAY = "day"
    MONTH = "month"

    def start(self, today: date) -> date:
        """The first day of the period that today is in."""
        return today if self is BudgetPeriod.DAY else today.replace(day=1)

    def end(self, today: date) -> date:
        """The first day of the next period."""
        if self is BudgetPeriod.DAY:
            return today + timedelta(days=1)
        return (today.replace(day=1) + timedelta(days=31)).replace(day=1)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a tenant may use in each period: of a kind of work and by an agent (its slug), where these are set."""

    period: BudgetPeriod
    tokens: int | None = None
    money: Decimal | None = None
    kind: WorkKind | None = None
    agent: str | None = None

    def counts(self, kind: WorkKind, agent: str) -> bool:
        """Whether this work is within the budget's subject. Probes are in no budget."""
        return kind is not WorkKind.PROBE and self.kind in (None, kind) and self.agent in (None, agent)

    def holds(self, spent: Amount) -> bool:
        """Whether the budget is kept when so much is spent."""
        return (self.tokens is None or spent.tokens <= self.tokens) and (
            self.money is None or spent.money <= self.money
        )

    def describe(self, prices: Prices) -> str:
        """The budget for people: "extraction by @nexus: 200,000 tokens and 1.00 USD a day"."""
        limits = [f"{self.tokens:,} tokens"] if self.tokens is not None else []
        limits += [prices.format(self.money)] if self.money is not None else []
        subject = (self.kind.value if self.kind else "all work") + (f" by @{self.agent}" if self.agent else "")
        return f"{subject}: {' and '.join(limits)} a {self.period.value}"


@dataclass(frozen=True, slots=True)
class BudgetState:
    """How much of a budget is used. `refused`: calls of its subject were refused in this period."""

    budget: Budget
    spent: Amount
    refused: int

    def describe(self, prices: Prices) -> str:
        """The state for people."""
        used = [f"{self.spent.tokens:,} tokens"] if self.budget.tokens is not None else []
        used += [prices.format(self.spent.money)] if self.budget.money is not None else []
        were = "was" if self.refused == 1 else "were"
        degraded = f"; {counted(self.refused, 'call')} refused, which {were} {_DEGRADED[self.budget.kind]}"
        refused = degraded if self.refused else ""
        return f"{self.budget.describe(prices)}: {' and '.join(used)} used{refused}"


_DEGRADED: Final = {
    None: "done without a model, or not answered",
    WorkKind.ANSWER: "not answered",
    WorkKind.EXTRACTION: "extracted by patterns",
    WorkKind.SUMMARY: "summarised without a model",
    WorkKind.EMBEDDING: "done by words alone",
    WorkKind.TRANSCRIPTION: "not transcribed",
    WorkKind.GATEWAY: "not passed on",
}


def states(budgets: Iterable[Budget], spent: Sequence[Spent]) -> list[BudgetState]:
    """How much of each budget is used."""
    found = []
    for budget in budgets:
        own = [each for each in spent if _within(budget, each)]
        refused = sum(each.refused for each in own)
        found.append(BudgetState(budget, sum((each.amount for each in own), Amount()), refused))
    return found


def first_exceeded(
    budgets: Iterable[Budget], spent: Sequence[Spent], kind: WorkKind, agent: str, estimate: Amount
) -> Budget | None:
    """The first budget that a call of such a size would exceed; None when it fits into all."""
    concerned = [budget for budget in budgets if budget.counts(kind, agent)]
    return next((s.budget for s in states(concerned, spent) if not s.budget.holds(s.spent + estimate)), None)


def _within(budget: Budget, spent: Spent) -> bool:
    return budget.counts(spent.kind, spent.agent) and (spent.today or budget.period is BudgetPeriod.MONTH)

"""The work of `nexus usage`: what models were used for, of every tenant."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from composer.app import App
from composer.ingest.tenants import configured_prices
from composer.repositories.usage import INSTALLATION, Dimension
from composer.usage.budgets import BudgetState, states
from composer.usage.report import UsageLine, lines, total, words

INSTALLATION_NAME = "the installation itself (nexus doctor)"


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What one tenant used, and how much of its budgets is used now."""

    tenant: str
    since: date
    until: date
    lines: Sequence[UsageLine]
    budgets: Sequence[BudgetState]


async def usage(app: App, by: Dimension, since: date | None, until: date | None) -> AsyncIterator[TenantUsage]:
    """The usage of each tenant that used or may use something; by default in this month of its time zone."""
    for tenant, slug in [*await app.database.tenants(), (INSTALLATION, INSTALLATION_NAME)]:
        today = app.clock.now().astimezone(app.directory.zone(tenant)).date()
        last = until or today
        first = since or last.replace(day=1)
        async with app.database.transaction(tenant, snapshot=True) as tx:
            rows = await tx.usage.of_everyone(by, first, last, ())
            spent = await tx.usage.spent(today)
        budgets = [] if tenant == INSTALLATION else states(app.directory.budgets(tenant), spent)
        if rows or budgets:
            yield TenantUsage(slug, first, last, lines(rows, by), budgets)


def text(found: TenantUsage, app: App, by: Dimension) -> str:
    """The usage of a tenant, as lines of text."""
    prices = configured_prices(app.settings)
    shown = [f"{found.tenant}, from {found.since} until {found.until}, by {by}:"]
    shown += [f"  {line.words(prices)}" for line in found.lines] or ["  nothing"]
    shown += [f"  together: {words(total(found.lines), prices)}"] if len(found.lines) > 1 else []
    return "\n".join([*shown, *(f"  budget: {state.words(prices)}" for state in found.budgets)])


def as_json(found: TenantUsage, app: App, by: Dimension) -> list[dict[str, Any]]:
    """The usage of a tenant: one object for each line, and one for each budget."""
    currency = app.settings.currency
    rows: list[dict[str, Any]] = [
        {"tenant": found.tenant, "by": by.value, "name": line.name}
        | {**asdict(line.figures), "cost": float(line.figures.cost), "currency": currency}
        for line in found.lines
    ]
    for state in found.budgets:
        budget = {name: value for name, value in asdict(state.budget).items() if value is not None}
        budget |= {} if state.budget.money is None else {"money": float(state.budget.money)}
        used = {"tokens": state.spent.tokens, "money": float(state.spent.money), "refused": state.refused}
        rows.append({"tenant": found.tenant, "budget": budget, "used": used, "currency": currency})
    return rows

"""The work of `nexus usage`: what models were used for, of every tenant."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from composer.app import App
from composer.errors import BadInput
from composer.ingest.tenants import configured_prices
from composer.repositories.operations import Total
from composer.repositories.usage import INSTALLATION, Dimension
from composer.text.dates.named import day_named
from composer.usage.budgets import BudgetState, states
from composer.usage.plans import QuotaState
from composer.usage.report import UsageLine, figures_text, lines, operation_lines, total

INSTALLATION_NAME = "the installation itself (nexus doctor)"


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What one tenant used, and how much of its budgets and of its plan is used now."""

    tenant: str
    since: date
    until: date
    lines: Sequence[UsageLine]
    budgets: Sequence[BudgetState]
    operations: Sequence[Total] = ()
    quotas: Sequence[QuotaState] = ()


async def usage(app: App, by: Dimension, since: str | None, until: str | None) -> AsyncIterator[TenantUsage]:
    """The usage of each tenant that used or may use something, between two days that are named in words, each in the
    tenant's time zone; by default in this month. Raises BadInput for days in the wrong order."""
    for tenant, slug in [*await app.database.tenants(), (INSTALLATION, INSTALLATION_NAME)]:
        now, zone = app.clock.now(), app.directory.zone(tenant)
        today = now.astimezone(zone).date()
        last = today if until is None else day_named(until, now, zone)
        first = last.replace(day=1) if since is None else day_named(since, now, zone)
        if last < first:
            raise BadInput(f"--until {last} is before --since {first}: exchange them.")
        async with app.database.transaction(tenant, "read") as tx:
            rows = await tx.usage.of_everyone(by, first, last, ())
            spent = await tx.usage.spent(today)
            totals = [each for each in await tx.operations.of_everyone(first.replace(day=1)) if each.month <= last]
            quotas = [] if tenant == INSTALLATION else await app.operations.quotas(tx, tenant)
        budgets = [] if tenant == INSTALLATION else states(app.directory.budgets(tenant), spent)
        if rows or budgets or totals or quotas:
            yield TenantUsage(slug, first, last, lines(rows, by), budgets, totals, quotas)


def text(found: TenantUsage, app: App, by: Dimension) -> str:
    """The usage of a tenant, as lines of text."""
    prices = configured_prices(app.settings)
    shown = [f"{found.tenant}, from {found.since} until {found.until}, by {by}:"]
    shown += [f"  {line.describe(prices)}" for line in found.lines] or ["  nothing"]
    shown += [f"  together: {figures_text(total(found.lines), prices)}"] if len(found.lines) > 1 else []
    shown += [f"  over the API in {line}" for line in operation_lines(found.operations, found.until)]
    shown += [f"  budget: {state.describe(prices)}" for state in found.budgets]
    return "\n".join([*shown, *(f"  plan: {state.description} used" for state in found.quotas)])


def as_json(found: TenantUsage, app: App, by: Dimension) -> list[dict[str, Any]]:
    """The usage of a tenant: one object for each line, for each total of the API, for each budget and each quota."""
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
    rows += [
        {"tenant": found.tenant, "month": str(each.month), "operation": each.operation.value}
        | {"vendor": each.vendor, "count": each.count, "tokens": each.tokens}
        for each in found.operations
    ]
    return rows + [
        {"tenant": found.tenant, "quota": each.quota, "used": each.used, "most": each.most} for each in found.quotas
    ]

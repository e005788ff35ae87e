"""`/usage`: what models used for a person, and for an admin what they used for everyone, with what is left of it.
Figures alone: never what anything says."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Form, Query, Request, Response

from bot.web.dependencies import Nexus
from bot.web.pages.rendering import page
from bot.web.pages.viewer import AdminSignedIn, PageRouter, Reading, SignedIn, Viewer
from bot.web.plain_pages import leading_to, plain_pages
from bot.web.routes.admin_operations import MAX_PLAN_CHARS
from bot.web.routes.billing import billing_of
from composer.ingest.tenants import configured_prices
from composer.people.credentials.principal import KeyPermission
from composer.repositories.operations import Total
from composer.repositories.usage import Dimension
from composer.text.offline import OFFLINE_MODEL
from composer.usage.budgets import BudgetState, states
from composer.usage.report import UsageLine, total
from composer.usage.view import UsageSpan, model_usage, usage_span

USAGE: Final = "/usage"
SPANS: Final = (7, 30, 90, 365)  # days
EVERYONE: Final = "everyone"
MAX_MEASURES: Final = 12  # lines of one table
TABLES: Final = (Dimension.MODEL, Dimension.AGENT, Dimension.ROOM, Dimension.KIND)
router = PageRouter(USAGE)


@dataclass(frozen=True, slots=True)
class WantedUsage:
    """Whose usage is wanted, and of how many days, as the address of the page says."""

    everyone: bool
    days: int

    def address(self, *, everyone: bool | None = None, days: int | None = None) -> str:
        """The address of the page with something changed."""
        whose = self.everyone if everyone is None else everyone
        values = {"whose": EVERYONE if whose else "", "days": days or self.days}
        return f"{USAGE}?{urlencode({name: value for name, value in values.items() if value})}"


@dataclass(frozen=True, slots=True)
class Measure:
    """A line of a table: its name for people, its figures, and how long its bar is, of 100."""

    line: UsageLine
    share: float


@dataclass(frozen=True, slots=True)
class DayFigures:
    """What models used on a day."""

    day: date
    tokens: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of a quota or a budget is used. `of`: entries, an operation, or the tokens or the money of models."""

    of: str
    used: int | Decimal
    most: int | Decimal
    kind: str = ""
    agent: str = ""
    per: str = ""
    refused: int = 0

    @property
    def left(self) -> int | Decimal:
        """What is left of it."""
        return max(self.most - self.used, 0)

    @property
    def share(self) -> float:
        """How much is used, of 100."""
        return min(100.0, float(100 * self.used / self.most)) if self.most else 100.0


@router.get("")
async def show_usage_page(
    request: Request,
    nexus: Nexus,
    viewer: SignedIn,
    whose: Annotated[str, Query(max_length=20)] = "",
    days: Annotated[int, Query(ge=1, le=SPANS[-1])] = 30,
) -> Response:
    """Tokens and cost by day, model, agent, room and kind of work; for an admin by person, with budgets and plan."""
    admin = viewer.principal.may(KeyPermission.ADMIN)
    wanted = WantedUsage(admin and whose == EVERYONE, days if days in SPANS else 30)
    await viewer.call.app.operations.settle()
    async with viewer.reading() as reading:
        values = await _figures(viewer, reading, wanted)
        values["limits"] = await limits(viewer, reading) if admin else []
        shown = nexus.billing if admin else None
        values["billing"] = None if shown is None else await shown.state(reading.tx, viewer.principal.tenant_id)
    return page(
        request,
        "usage.html",
        viewer.language,
        chrome=reading.chrome,
        now=viewer.call.now,
        wanted=wanted,
        spans=SPANS,
        **values,
    )


@router.post("/plan")
async def change_plan(
    request: Request,
    nexus: Nexus,
    viewer: AdminSignedIn,
    csrf: Annotated[str, Form()],
    plan: Annotated[str, Form(max_length=MAX_PLAN_CHARS)],
) -> Response:
    """Lead to the provider's page on which a plan is bought."""
    viewer.require_form(csrf)
    who = viewer.principal
    return _leading_to_provider(request, await billing_of(nexus).checkout(who.tenant_id, who.tenant, plan))


@router.post("/billing")
async def manage_billing_page(
    request: Request, nexus: Nexus, viewer: AdminSignedIn, csrf: Annotated[str, Form()]
) -> Response:
    """Lead to the provider's page on which one pays otherwise, cancels, and finds invoices."""
    viewer.require_form(csrf)
    return _leading_to_provider(request, await billing_of(nexus).portal(viewer.principal.tenant_id))


def _leading_to_provider(request: Request, address: str) -> Response:
    pages = plain_pages(request)
    return pages.page("Going on to the page on which you pay.", pages.link(address, "Go on"), head=leading_to(address))


async def _figures(viewer: Viewer, reading: Reading, wanted: WantedUsage) -> dict[str, Any]:
    app, tenant = viewer.call.app, viewer.principal.tenant_id
    span = usage_span(None, None, today_of(viewer), wanted.days)
    shown = (*TABLES, Dimension.PERSON) if wanted.everyone else TABLES
    found = {
        by: await model_usage(reading.tx, by, span, reading.owned, reading.presence, everyone=wanted.everyone)
        for by in (Dimension.DAY, *shown)
    }
    month = app.operations.month(tenant)
    operations = reading.tx.operations
    totals = await (operations.of_everyone(month) if wanted.everyone else operations.of_owner(month, reading.owned))
    days = by_day(found[Dimension.DAY], span)
    return {
        "days": days,
        "busiest": max(days, key=lambda each: each.tokens),
        "together": total_of(found[Dimension.DAY]),
        "tables": {by.value: measures(found[by]) for by in shown},
        "more": {by.value: max(0, len(found[by]) - MAX_MEASURES) for by in shown},
        "tools": _by_tool(totals),
        "prices": configured_prices(app.settings),
        "has_model": any(each.model not in ("", OFFLINE_MODEL) for each in app.directory.agents(tenant)),
    }


def today_of(viewer: Viewer) -> date:
    """The day that it is in the organisation, by which usage is added up."""
    return viewer.call.now.astimezone(viewer.call.app.directory.zone(viewer.principal.tenant_id)).date()


async def limits(viewer: Viewer, reading: Reading) -> list[Limit]:
    """How much of the plan and of the budgets is used now, for admins: these figures tell what others do."""
    app, tenant = viewer.call.app, viewer.principal.tenant_id
    spent = await reading.tx.usage.spent(today_of(viewer))
    budgets = states(app.directory.budgets(tenant), spent)
    quotas = await app.operations.quotas(reading.tx, tenant)
    of_plan = [Limit(each.quota, each.used, each.most, per="month" if each.begins_again else "") for each in quotas]
    known = {(each.of, each.used, each.most) for each in of_plan}
    found = [limit for each in budgets for limit in _of_budget(each)]
    return of_plan + [each for each in found if each.kind or each.agent or (each.of, each.used, each.most) not in known]


def _of_budget(state: BudgetState) -> list[Limit]:
    """A budget may be in tokens, in money, or in both."""
    budget, spent = state.budget, state.spent
    kind = "" if budget.kind is None else budget.kind.value
    of_each = (("tokens", spent.tokens, budget.tokens), ("money", spent.money, budget.money))
    return [
        Limit(of, used, most, kind, budget.agent or "", budget.period.value, state.refused)
        for of, used, most in of_each
        if most is not None
    ]


def by_day(found: list[UsageLine], span: UsageSpan) -> list[DayFigures]:
    """Every day of a span, also those on which nothing was used."""
    known = {line.name: line for line in found}
    return [
        DayFigures(day, line.tokens, line.figures.calls) if (line := known.get(str(day))) else DayFigures(day)
        for day in span.days
    ]


def total_of(found: list[UsageLine]) -> UsageLine:
    """All lines together."""
    return UsageLine("", total(found))


def measures(found: list[UsageLine]) -> list[Measure]:
    """The first lines, with bars in proportion to the longest."""
    most = max((line.tokens for line in found), default=0)
    return [Measure(line, round(100 * line.tokens / most, 1) if most else 0.0) for line in found[:MAX_MEASURES]]


def _by_tool(totals: list[Total]) -> dict[str, dict[str, int]]:
    """How often each tool, or the person as `api`, did what over the API."""
    found: dict[str, dict[str, int]] = {}
    for each in totals:
        of_tool = found.setdefault(each.vendor, {})
        of_tool[each.operation.value] = of_tool.get(each.operation.value, 0) + each.count
    return found

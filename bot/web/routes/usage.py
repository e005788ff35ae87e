"""`/v1/usage`: what was done over the API for a person, and what models used for them, by month."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import BaseModel

from bot.web.call import ApiCall, Calling
from bot.web.problems import documented
from bot.web.router import Router
from composer.people.credentials.principal import KeyPermission
from composer.repositories.operations import Operation, Total
from composer.repositories.usage import Dimension, MonthOfModels
from composer.usage.report import UsageLine
from composer.usage.view import model_usage, usage_span
from composer.visibility import owned_by_bearer

router = Router("/v1/usage", tags=["usage"])
MAX_MONTHS: Final = 36
Months = Annotated[int, Query(ge=1, le=MAX_MONTHS, description="How many months, this one included.")]


class OperationUsage(BaseModel):
    """What was done in a month (its first day) by a tool or, as `api`, by the person. `tokens`: an estimate of what was
    stored or handed out."""

    month: date
    operation: Operation
    vendor: str
    count: int
    tokens: int


class ModelUsage(BaseModel):
    """What models used in a month for one kind of work. `cost` is in `currency`, as far as prices are set."""

    month: date
    kind: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float


class UsageReport(BaseModel):
    """What was used since a month (its first day), the latest first. Months are those of the workspace's time zone."""

    since: date
    operations: list[OperationUsage]
    models: list[ModelUsage]
    currency: str


@router.get("", summary="Show one's usage", response_model=UsageReport, responses=documented(401, 403, 422))
async def show_usage(call: Calling, months: Months = 1) -> UsageReport:
    """One's own, by all of one's tools and accounts. It needs the permission manage."""
    call.principal.require(KeyPermission.MANAGE)
    since = months_since(call, months)
    await call.app.operations.settle()
    async with call.reading() as (tx, access):
        owned = owned_by_bearer(access)
        totals, models = await tx.operations.of_owner(since, owned), await tx.usage.by_month(since, owned)
    return UsageReport(**usage_values(call, since, totals, models))


class UsageLineFigures(BaseModel):
    """What models used for one day, agent, room, person, kind of work or model, by its name for people. `cost` is in
    `currency`, as far as prices are set; `unpriced_tokens` are of models without a price."""

    name: str
    calls: int
    failures: int
    refused: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    unpriced_tokens: int
    cost: float


class UsageLines(BaseModel):
    """What models used from one day until another: days in their order, else the most used first. All DMs are one line,
    and so are all sessions, and all private rooms that the person is not in."""

    since: date
    until: date
    by: Dimension
    items: list[UsageLineFigures]
    currency: str


By = Annotated[Dimension, Query(description="What to show it by.")]
FirstDay = Annotated[date | None, Query(description="The first day; by default 30 days up to the last one.")]
LastDay = Annotated[date | None, Query(description="The last day; by default today.")]


@router.get(
    "/models", summary="Show what models used for one", response_model=UsageLines, responses=documented(401, 403, 422)
)
async def show_model_usage(
    call: Calling, by: By = Dimension.DAY, since: FirstDay = None, until: LastDay = None
) -> UsageLines:
    """One's own, by all of one's tools and accounts. It needs the permission manage."""
    call.principal.require(KeyPermission.MANAGE)
    return await usage_lines(call, by, since, until, everyone=False)


async def usage_lines(
    call: ApiCall, by: Dimension, since: date | None, until: date | None, *, everyone: bool
) -> UsageLines:
    """What models used for who asks, or for everyone."""
    who, app = call.principal, call.app
    span = usage_span(since, until, call.now.astimezone(app.directory.zone(who.tenant_id)).date())
    presence = await app.memberships.of(who.tenant_id, who.user)
    async with call.reading() as (tx, access):
        found = await model_usage(tx, by, span, owned_by_bearer(access), presence, everyone=everyone)
    items = [UsageLineFigures(name=each.name, **_figures(each)) for each in found]
    return UsageLines(since=span.since, until=span.until, by=by, items=items, currency=app.settings.currency)


def _figures(line: UsageLine) -> dict[str, Any]:
    return {name: getattr(line.figures, name) for name in UsageLineFigures.model_fields if name != "name"}


def months_since(call: ApiCall, months: int) -> date:
    """The first day of the first of the last `months` months."""
    this = call.app.operations.month(call.principal.tenant_id)
    before = this.year * 12 + this.month - months
    return date(before // 12, before % 12 + 1, 1)


def usage_values(
    call: ApiCall, since: date, totals: Sequence[Total], models: Sequence[MonthOfModels]
) -> dict[str, object]:
    """The fields of Usage."""
    app = call.app
    return {
        "since": since,
        "operations": [
            OperationUsage(
                month=each.month, operation=each.operation, vendor=each.vendor, count=each.count, tokens=each.tokens
            )
            for each in totals
        ],
        "models": [
            ModelUsage(
                month=each.month,
                kind=each.kind.value,
                calls=each.figures.calls,
                prompt_tokens=each.figures.prompt_tokens,
                completion_tokens=each.figures.completion_tokens,
                cached_tokens=each.figures.cached_tokens,
                cost=float(each.figures.cost),
            )
            for each in models
        ],
        "currency": app.settings.currency,
    }

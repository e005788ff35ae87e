"""`/v1/usage`: what was done over the API for a person, and what models used for them, by month."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Final

from fastapi import Query
from pydantic import BaseModel

from bot.web.call import ApiCall, Calling
from bot.web.problems import documented
from bot.web.router import Router
from composer.people.credentials.principal import KeyPermission
from composer.repositories.operations import Operation, Total
from composer.repositories.usage import MonthOfModels
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

"""`/v1/admin`: figures of a whole workspace, for its admins: who its people are and how much there is, no contents."""

import uuid
from datetime import date, datetime
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import BaseModel

from bot.web.call import ApiCall, Calling
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.usage import (
    By,
    FirstDay,
    LastDay,
    Months,
    UsageLines,
    UsageReport,
    months_since,
    usage_lines,
    usage_values,
)
from composer.repositories.database import Transaction
from composer.repositories.operations import Operation
from composer.repositories.usage import Dimension
from composer.text.cursors import cursor_of, read_cursor
from composer.usage.budgets import states

router = Router("/v1/admin", tags=["admin"])
MAX_AUDIT_PAGE: Final = 100
_ERRORS: Final[dict[int | str, dict[str, Any]]] = documented(401, 403, 422, 429)


class QuotaUsage(BaseModel):
    """How much of a quota of the workspace's plan is used: in this month or, of entries, now."""

    quota: str
    used: int
    most: int


class BudgetUsage(BaseModel):
    """How much of a budget is used in this day or month (`per`): of a kind of work and by an agent, where it is for
    one. `tokens` and `money` (in `currency`) are its limits, null where it has none; `used` and `spent` are what was
    used of them. `refused`: calls that it had no room for."""

    per: str
    kind: str | None
    agent: str | None
    tokens: int | None
    used: int
    money: float | None
    spent: float
    refused: int


class WorkspaceUsage(UsageReport):
    """What everyone used. `plan` is its name, null where nothing is limited; `quotas` are those of the plan, and
    `budgets` the limits of what models may use."""

    plan: str | None
    quotas: list[QuotaUsage]
    budgets: list[BudgetUsage]


class UserFigures(BaseModel):
    """A user, with figures: valid keys, entries, and operations over the API in this month. `person` is the same for
    all users that are one person; null where nothing is linked."""

    id: uuid.UUID
    name: str
    admin: bool
    opted_out: bool
    disabled: bool
    person: uuid.UUID | None
    since: datetime
    platforms: list[str]
    keys: int
    entries: int
    operations: int
    last_used_at: datetime | None


class UserFiguresList(BaseModel):
    """People, those who were known first before the others. `next` is the cursor of the next page; null after the
    last."""

    items: list[UserFigures]
    next: str | None


class WorkspaceFigures(BaseModel):
    """How much there is. `answers_good` and `answers_bad` are those that people called so on the page Ask.
    `operations` are those over the API in this month, by kind."""

    people: int
    admins: int
    keys_of_people: int
    keys_of_tools: int
    web_sessions: int
    teams: int
    projects: int
    rooms: int
    dms_and_sessions: int
    messages: int
    answers_good: int
    answers_bad: int
    memories: int
    entries: int
    in_trash: int
    facts: int
    pending: int
    operations: dict[Operation, int]
    quotas: list[QuotaUsage]


@router.get("/usage", summary="Show everyone's usage", response_model=WorkspaceUsage, responses=_ERRORS)
async def admin_usage(_: Admin, call: Calling, months: Months = 1) -> WorkspaceUsage:
    """What was done over the API and what models used in the workspace, by month, kind and tool."""
    since = months_since(call, months)
    await call.app.operations.settle()
    async with call.reading() as (tx, _access):
        totals, models = await tx.operations.of_everyone(since), await tx.usage.by_month(since, None)
        quotas, spent = await _quotas(call, tx), await tx.usage.spent(_today(call))
    tenant = call.principal.tenant_id
    plan, budgets = call.app.directory.plan(tenant), states(call.app.directory.budgets(tenant), spent)
    return WorkspaceUsage(
        **usage_values(call, since, totals, models),
        plan=None if plan is None else plan.name,
        quotas=quotas,
        budgets=[
            BudgetUsage(
                per=each.budget.period.value,
                kind=None if each.budget.kind is None else each.budget.kind.value,
                agent=each.budget.agent,
                tokens=each.budget.tokens,
                used=each.spent.tokens,
                money=None if each.budget.money is None else float(each.budget.money),
                spent=float(each.spent.money),
                refused=each.refused,
            )
            for each in budgets
        ],
    )


@router.get("/usage/models", summary="Show what models used for everyone", response_model=UsageLines, responses=_ERRORS)
async def admin_model_usage(
    _: Admin, call: Calling, by: By = Dimension.DAY, since: FirstDay = None, until: LastDay = None
) -> UsageLines:
    """By day, agent, room, person, kind of work or model. Private rooms that the admin is not in are one line."""
    return await usage_lines(call, by, since, until, everyone=True)


@router.get("/users", summary="List people", response_model=UserFiguresList, responses=_ERRORS)
async def admin_users(
    _: Admin,
    call: Calling,
    limit: Annotated[int, Query(ge=1, le=MAX_AUDIT_PAGE)] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
) -> UserFiguresList:
    """The workspace's people with figures; who was erased is not among them."""
    after = None if cursor is None else read_cursor(cursor)
    await call.app.operations.settle()
    async with call.reading() as (tx, _access):
        found = await tx.tenant_figures.people(_month(call), call.now, limit + 1, after)
    shown = found[:limit]
    last = shown[-1] if len(found) > limit else None
    return UserFiguresList(
        items=[
            UserFigures(
                id=each.id,
                name=each.name,
                admin=each.admin,
                opted_out=each.opted_out,
                disabled=each.disabled,
                person=each.person,
                since=each.created_at,
                platforms=list(each.platforms),
                keys=each.keys,
                entries=each.entries,
                operations=each.operations,
                last_used_at=each.last_used_at,
            )
            for each in shown
        ],
        next=None if last is None else cursor_of(last.created_at, last.id),
    )


@router.get("/figures", summary="Show figures", response_model=WorkspaceFigures, responses=_ERRORS)
async def admin_figures(_: Admin, call: Calling) -> WorkspaceFigures:
    """How much the workspace has of what."""
    await call.app.operations.settle()
    async with call.reading() as (tx, _access):
        counts = await tx.tenant_figures.counts(call.now)
        operations, entries = await tx.operations.used(_month(call)), await tx.operations.entries()
        quotas = await _quotas(call, tx)
    return WorkspaceFigures(**counts, entries=entries, operations=operations, quotas=quotas)


async def _quotas(call: ApiCall, tx: Transaction) -> list[QuotaUsage]:
    found = await call.app.operations.quotas(tx, call.principal.tenant_id)
    return [QuotaUsage(quota=each.quota, used=each.used, most=each.most) for each in found]


def _today(call: ApiCall) -> date:
    return call.now.astimezone(call.app.directory.zone(call.principal.tenant_id)).date()


def _month(call: ApiCall) -> date:
    return call.app.operations.month(call.principal.tenant_id)

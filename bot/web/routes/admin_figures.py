"""`/v1/admin/figures/days`: what happened in the workspace day by day, and what waits now."""

from datetime import date, datetime
from typing import Annotated, Final

from fastapi import Query
from pydantic import BaseModel

from bot.web.call import Calling
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from composer.operations.figures import running_figures

MAX_FIGURE_DAYS: Final = 90
router = Router("/v1/admin", tags=["admin"])


class FiguresOfDay(BaseModel):
    """A day. `failures`: answers that failed, beside `answers`. `p50_seconds`, `p95_seconds`: what half of the answers,
    and 95 of 100, took at most from the question on (null: there were none). `messages`: those of people, without
    imported ones; `learnt`: memories that were made of them."""

    day: date
    answers: int
    failures: int
    p50_seconds: float | None
    p95_seconds: float | None
    messages: int
    learnt: int


class FiguresByDay(BaseModel):
    """Days, oldest first, the last of them today. `waiting`: questions that are not answered yet, of which the oldest
    came at `waiting_since` (null: none waits)."""

    items: list[FiguresOfDay]
    waiting: int
    waiting_since: datetime | None


@router.get(
    "/figures/days",
    summary="Show figures by day",
    response_model=FiguresByDay,
    responses=documented(401, 403, 422, 429),
)
async def show_figures_by_day(
    _: Admin, call: Calling, days: Annotated[int, Query(ge=1, le=MAX_FIGURE_DAYS)] = 30
) -> FiguresByDay:
    """Days are those of the workspace's time zone. Never what anybody wrote."""
    zone = call.app.directory.zone(call.principal.tenant_id)
    async with call.reading() as (tx, _access):
        found = await running_figures(tx, call.now.astimezone(zone).date(), days, zone)
    items = [
        FiguresOfDay(
            day=each.day,
            answers=each.of.answers,
            failures=each.of.failures,
            p50_seconds=each.of.half_seconds,
            p95_seconds=each.of.most_seconds,
            messages=each.of.messages,
            learnt=each.of.learnt,
        )
        for each in found.days
    ]
    return FiguresByDay(items=items, waiting=found.waiting.questions, waiting_since=found.waiting.since)

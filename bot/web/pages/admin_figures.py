"""`/admin/figures`: what an admin looks at in the morning, as charts: answers and how long they took, what failed, what
came in and was learnt from it, and what waits now."""

from typing import Annotated, Final

from fastapi import Query, Request, Response

from bot.web.pages.admin import ADMIN
from bot.web.pages.rendering import page
from bot.web.pages.usage import by_day, today_of
from bot.web.pages.viewer import AdminSignedIn, PageRouter
from composer.operations.figures import running_figures
from composer.repositories.usage import Dimension
from composer.usage.view import model_usage, usage_span

FIGURES_PAGE: Final = f"{ADMIN}/figures"
FIGURE_SPANS: Final = (7, 30, 90)  # days
router = PageRouter(FIGURES_PAGE)


@router.get("")
async def show_figures_page(
    request: Request, viewer: AdminSignedIn, days: Annotated[int, Query(ge=1, le=FIGURE_SPANS[-1])] = 30
) -> Response:
    """The last days, and today."""
    app, today = viewer.call.app, today_of(viewer)
    shown = days if days in FIGURE_SPANS else 30
    await app.operations.settle()
    span = usage_span(None, None, today, shown)
    async with viewer.reading() as reading:
        found = await running_figures(reading.tx, today, shown, app.directory.zone(viewer.principal.tenant_id))
        used = await model_usage(reading.tx, Dimension.DAY, span, reading.owned, reading.presence, everyone=True)
    return page(
        request,
        "admin_figures.html",
        viewer.language,
        chrome=reading.chrome,
        now=viewer.call.now,
        found=found,
        used=by_day(used, span),
        spans=FIGURE_SPANS,
        shown=shown,
    )

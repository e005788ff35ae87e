"""`/admin`: how Nexus runs, for an admin: health with what to do, jobs with a button, backups, and what was changed
lately. Figures and names of ours: never what anybody wrote."""

from collections.abc import Sequence
from datetime import timedelta, tzinfo
from itertools import groupby
from typing import Annotated, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.dependencies import Nexus
from bot.web.operating import operating, start_job
from bot.web.pages.rendering import page
from bot.web.pages.usage import by_day, limits, today_of, total_of
from bot.web.pages.viewer import AdminSignedIn, PageRouter
from composer import __version__
from composer.operations.backups import stored_backups
from composer.people.audit_log import AuditFilter, audit_page
from composer.repositories.audit import AuditEvent
from composer.repositories.usage import Dimension
from composer.usage.view import model_usage, usage_span

ADMIN: Final = "/admin"
SHOWN_BACKUPS: Final = 5
SHOWN_CHANGES: Final = 8
SHOWN_FIGURES: Final = ("people", "admins", "rooms", "messages", "answers_good", "answers_bad")
READ_CHANGES: Final = 60  # of which those that are alike are shown as one
SHOWN_DETAILS: Final = ("role", "receipt", "key", "keys")
WEEK: Final = 7
MONTH: Final = 30  # days
router = PageRouter(ADMIN)


@router.get("")
async def show_admin(request: Request, nexus: Nexus, viewer: AdminSignedIn) -> Response:
    """Health, figures, jobs, backups and the latest changes."""
    app, tenant = viewer.call.app, viewer.principal.tenant_id
    await app.operations.settle()
    runs = await operating(nexus, tenant)
    span = usage_span(None, None, today_of(viewer), MONTH)
    async with viewer.reading() as reading:
        found = await model_usage(reading.tx, Dimension.DAY, span, reading.owned, reading.presence, everyone=True)
        counts = await reading.tx.tenant_figures.counts(viewer.call.now, SHOWN_FIGURES)
        limited = [each for each in await limits(viewer, reading) if each.of == "tokens" and not each.kind]
    async with viewer.call.recording() as (tx, access):
        changes = await audit_page(tx, access, AuditFilter(), reading.presence, limit=READ_CHANGES, noted=False)
    days = by_day(found, span)
    return page(
        request,
        "admin.html",
        viewer.language,
        chrome=reading.chrome,
        now=viewer.call.now,
        days=days,
        week=sum(each.calls for each in days[-WEEK:]),
        before=sum(each.calls for each in days[-2 * WEEK : -WEEK]),
        together=total_of(found),
        limited=min(limited, key=lambda each: each.left, default=None),
        counts=counts,
        runs=runs,
        backups=stored_backups(app.settings.home)[:SHOWN_BACKUPS] if runs.of_installation else [],
        recent=viewer.call.now - timedelta(minutes=2),
        changes=changes,
        rows=alike_together(changes.events, reading.chrome.zone)[:SHOWN_CHANGES],
        open_turns=app.turns.open,
        version=__version__,
    )


@router.post("/jobs/{name}")
async def run_job_now(nexus: Nexus, viewer: AdminSignedIn, name: str, csrf: Annotated[str, Form()]) -> Response:
    """Begin a run of a job, which goes on by itself."""
    viewer.require_form(csrf)
    await start_job(nexus, viewer.principal.tenant_id, name)
    return RedirectResponse(f"{ADMIN}#jobs", 303)


def alike_together(events: Sequence[AuditEvent], zone: tzinfo) -> Sequence[Sequence[AuditEvent]]:
    """Rows of the log as they are shown: those of a day that follow each other and say the same are one."""

    def said(event: AuditEvent) -> object:
        details = [event.details.get(name) for name in SHOWN_DETAILS]
        day = event.at.astimezone(zone).date()
        return day, event.act, event.actor, event.users, event.conversation, event.project, details

    return [list(alike) for _, alike in groupby(events, said)]

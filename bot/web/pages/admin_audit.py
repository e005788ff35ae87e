"""`/admin/audit`: who did what, by filters, whether the log is whole, and all of it as a file."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Form, Query, Request, Response
from fastapi.responses import StreamingResponse

from bot.web.pages.admin import ADMIN, alike_together
from bot.web.pages.rendering import page
from bot.web.pages.viewer import AdminSignedIn, PageRouter, Viewer
from bot.web.routes.admin_audit import row_of
from composer.audit.chain import Verification
from composer.people.audit_log import AuditFilter, audit_page
from composer.repositories.audit import AuditAct

AUDIT: Final = f"{ADMIN}/audit"
SHOWN_ROWS: Final = 50
EXPORTED_AT_ONCE: Final = 1_000
MAX_EXPORTED: Final = 100_000  # rows of one file
router = PageRouter(AUDIT)


@dataclass(frozen=True, slots=True)
class WantedRows:
    """Which rows are wanted, as the address of the page says: days in the reader's zone."""

    act: str
    user: uuid.UUID | None
    since: date | None
    until: date | None

    def filter(self, zone: Any) -> AuditFilter:
        """For the use case."""
        known = AuditAct(self.act) if self.act in set(AuditAct) else None
        after = None if self.until is None or self.until == date.max else self.until + timedelta(days=1)
        return AuditFilter(_begin(self.since, zone), _begin(after, zone), known, self.user)

    def address(self, path: str = AUDIT, **changed: Any) -> str:
        """The address of the same rows with something changed."""
        values = {"act": self.act, "user": self.user, "since": self.since, "until": self.until} | changed
        query = urlencode({name: str(value) for name, value in values.items() if value})
        return f"{path}?{query}" if query else path


def _begin(day: date | None, zone: Any) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), zone)


def _wanted(act: str, user: str, since: str, until: str) -> WantedRows:
    return WantedRows(act if act in set(AuditAct) else "", _id(user), _day(since), _day(until))


def _id(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _day(text: str) -> date | None:
    """A day that a form names; None for what is none, and for those that no zone can begin."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if 1900 <= found.year <= 2999 else None


_Word = Annotated[str, Query(max_length=60)]


@router.get("")
async def show_audit(
    request: Request,
    viewer: AdminSignedIn,
    act: _Word = "",
    user: _Word = "",
    since: _Word = "",
    until: _Word = "",
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Rows, newest first. That they were looked at is recorded among them."""
    return await _shown(request, viewer, _wanted(act, user, since, until), cursor, None)


@router.post("/verify")
async def verify_log(request: Request, viewer: AdminSignedIn, csrf: Annotated[str, Form()]) -> Response:
    """Compare each row of the log with its signature and its seal."""
    viewer.require_form(csrf)
    found = await viewer.call.app.audit.verify_noted(viewer.principal.tenant_id, viewer.principal.user)
    return await _shown(request, viewer, _wanted("", "", "", ""), None, found)


@router.get("/export")
async def export_audit(
    viewer: AdminSignedIn, act: _Word = "", user: _Word = "", since: _Word = "", until: _Word = ""
) -> Response:
    """The rows as lines of JSON, as the API gives them, newest first. That they were taken is recorded."""
    async with viewer.reading() as reading:
        wanted, presence = _wanted(act, user, since, until).filter(reading.chrome.zone), reading.presence
    call = viewer.call

    async def lines() -> AsyncIterator[bytes]:
        cursor, taken = None, 0
        while taken < MAX_EXPORTED:
            async with call.recording() as (tx, access):
                found = await audit_page(
                    tx, access, wanted, presence, limit=EXPORTED_AT_ONCE, cursor=cursor, noted=taken == 0
                )
            for each in found.events:
                yield row_of(each).model_dump_json().encode() + b"\n"
            cursor, taken = found.next, taken + len(found.events)
            if cursor is None:
                return

    name = f"nexus-audit-{call.now:%Y%m%dT%H%M%SZ}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return StreamingResponse(lines(), headers=headers, media_type="application/x-ndjson")


async def _shown(
    request: Request, viewer: Viewer, wanted: WantedRows, cursor: str | None, verification: Verification | None
) -> Response:
    async with viewer.reading() as reading:
        chrome, presence = reading.chrome, reading.presence
        name = None if wanted.user is None else (await reading.tx.people.names([wanted.user])).get(wanted.user)
    async with viewer.call.recording() as (tx, access):
        found = await audit_page(tx, access, wanted.filter(chrome.zone), presence, limit=SHOWN_ROWS, cursor=cursor)
    return page(
        request,
        "admin_audit.html",
        viewer.language,
        chrome=chrome,
        now=viewer.call.now,
        wanted=wanted,
        of_person=name,
        changes=found,
        rows=alike_together(found.events, chrome.zone),
        acts=sorted(AuditAct),
        verification=verification,
    )

"""`/v1/admin/audit`: who did what, by ids and fixed words, and whether the log is whole."""

import uuid
from datetime import datetime
from typing import Annotated, Final

from fastapi import Query
from pydantic import BaseModel

from bot.web.call import Calling
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.values import AskedMoment
from composer.audit.chain import Verification
from composer.people.audit_log import AuditFilter, audit_page
from composer.repositories.audit import AuditAct, AuditEvent

router = Router("/v1/admin/audit", tags=["admin"])
MAX_ROWS: Final = 1_000


class AuditRow(BaseModel):
    """Something that was done. `actor` is who did it (null: a platform, a job or whoever runs Nexus), `users` whom it
    concerns. `details` are counts, ids and fixed words."""

    id: uuid.UUID
    at: datetime
    act: str
    actor: uuid.UUID | None
    users: list[uuid.UUID]
    conversation: uuid.UUID | None
    project: uuid.UUID | None
    details: dict[str, str | int | bool]


class AuditRows(BaseModel):
    """Rows, newest first. `next` is the cursor of the next page; null after the last."""

    items: list[AuditRow]
    next: str | None


class AuditBreak(BaseModel):
    """Where the log does not hold: at which number (0: at a row without a seal), why, and when that was sealed."""

    number: int
    problem: str
    at: datetime | None


class AuditVerification(BaseModel):
    """Whether the log is whole: `rows` were verified, from the number `first` on; it holds up to `holds_to`; `pending`
    have no seal yet."""

    whole: bool
    first: int
    rows: int
    holds_to: int
    pending: int
    breaks: list[AuditBreak]


@router.get("", summary="List the audit log", response_model=AuditRows, responses=documented(401, 403, 422, 429))
async def list_audit(
    _: Admin,
    call: Calling,
    since: AskedMoment | None = None,
    until: AskedMoment | None = None,
    act: AuditAct | None = None,
    user: uuid.UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
) -> AuditRows:
    """From `since`, before `until`, of one act, of which `user` is the actor or whom it concerns. That it was looked at
    is recorded in it."""
    who = call.principal
    presence = await call.app.memberships.of(who.tenant_id, who.user)
    async with call.recording() as (tx, access):
        found = await audit_page(tx, access, AuditFilter(since, until, act, user), presence, limit=limit, cursor=cursor)
    return AuditRows(items=[row_of(each) for each in found.events], next=found.next)


@router.get(
    "/verification",
    summary="Verify the audit log",
    response_model=AuditVerification,
    responses=documented(401, 403, 429),
)
async def verify_audit(_: Admin, call: Calling) -> AuditVerification:
    """Read the whole log, and compare each row with its signature and its seal. That it was done is recorded."""
    return verification_of(await call.app.audit.verify_noted(call.principal.tenant_id, call.principal.user))


def row_of(event: AuditEvent) -> AuditRow:
    """A row as it is answered, and exported."""
    return AuditRow(
        id=event.id,
        at=event.at,
        act=event.act,
        actor=event.actor,
        users=list(event.users),
        conversation=event.conversation,
        project=event.project,
        details=dict(event.details),
    )


def verification_of(found: Verification) -> AuditVerification:
    """A verification as it is answered."""
    breaks = [AuditBreak(number=each.number, problem=str(each.problem), at=each.at) for each in found.breaks]
    return AuditVerification(
        whole=found.whole,
        first=found.first,
        rows=found.rows,
        holds_to=found.holds_to,
        pending=found.pending,
        breaks=breaks,
    )

"""The audit log for an admin: rows by filters, with the names that they may know. It holds nobody's words."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.ports.memberships import Presence
from composer.repositories.audit import AuditAct, AuditEvent
from composer.repositories.database import Transaction
from composer.rights.relations import TenantFacts
from composer.rights.table import Act, judge
from composer.text.cursors import cursor_of, read_cursor
from composer.visibility import EntryAccess, owned_by_bearer


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which rows are wanted: from a time on, before a time, of one act, of which somebody is the actor or whom it
    concerns."""

    since: datetime | None = None
    until: datetime | None = None
    act: AuditAct | None = None
    user: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Rows, newest first, with the names of people by id, of rooms that the admin may know of, and of projects they
    are in. `next` is the cursor of the next page."""

    events: Sequence[AuditEvent]
    next: str | None
    people: Mapping[uuid.UUID, str]
    rooms: Mapping[uuid.UUID, str]
    projects: Mapping[uuid.UUID, str]


async def audit_page(
    tx: Transaction,
    access: EntryAccess,
    wanted: AuditFilter,
    presence: Presence,
    *,
    limit: int,
    cursor: str | None = None,
    noted: bool = True,
) -> AuditPage:
    """Some rows of the log, after those of a cursor. That they were looked at is recorded, if `noted`. Raises
    AdminNeeded, and BadInput for a wrong cursor."""
    judge([Act.SEE_AUDIT], TenantFacts(await tx.people.is_admin(access.user)))
    after = None if cursor is None else read_cursor(cursor)
    found = await tx.audit.find(
        since=wanted.since, until=wanted.until, act=wanted.act, user=wanted.user, limit=limit + 1, after=after
    )
    shown = found[:limit]
    if noted:
        await tx.audit.record(AuditAct.READ_AUDIT, actor=access.user)
    people = {each for event in shown for each in (event.actor, *event.users) if each is not None}
    places = {event.conversation for event in shown if event.conversation is not None}
    joined = await tx.conversations.joined_ids(owned_by_bearer(access).users, presence)
    return AuditPage(
        shown,
        cursor_of(shown[-1].at, shown[-1].id) if len(found) > limit else None,
        await tx.people.names(sorted(people)),
        await tx.audit.rooms(sorted(places), joined),
        {each.id: each.slug for each in access.projects},
    )

"""The work of `nexus audit list` and `nexus audit verify`."""

import uuid
from dataclasses import dataclass
from typing import Any

from bot.commands import audit as in_chat
from bot.script.places import external
from composer.app import App
from composer.audit.chain import Verification
from composer.errors import BadInput, NotFound
from composer.repositories.audit import AuditAct, AuditEvent
from composer.text.counts import counted
from composer.text.dates.named import moment_named, moment_text


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which rows to list. `since` and `until` are times or days, as `moment_named` reads them; `user` is a name in the
    terminal's workspace, an id on another platform, or our id."""

    since: str | None
    until: str | None
    act: AuditAct | None
    user: str | None
    limit: int


def audit_query(since: str | None, until: str | None, act: str | None, user: str | None, limit: int) -> AuditQuery:
    """The options of `nexus audit list`. Raises BadInput."""
    if act is not None and act not in set(AuditAct):
        raise BadInput(f"There is no act '{act}'. Acts: {', '.join(sorted(AuditAct))}.")
    start, end = (None if each is None else moment_text(each) for each in (since, until))
    return AuditQuery(start, end, None if act is None else AuditAct(act), user, limit)


async def find(app: App, platform: str, workspace: str, query: AuditQuery) -> list[AuditEvent]:
    """Rows of the tenant of a workspace, newest first. Raises NotFound for an unknown user."""
    place = app.directory.workspace(platform, workspace)
    now, zone = app.clock.now(), app.directory.zone(place.tenant_id)
    since, until = (None if each is None else moment_named(each, now, zone) for each in (query.since, query.until))
    async with app.database.transaction(place.tenant_id, "read") as tx:
        user = None
        if query.user is not None:
            found = await tx.people.find_user(platform, place.name, external(query.user, platform))
            user = _id(query.user) if found is None else found.id
            if user is None:
                raise NotFound(f"There is no user '{query.user}' in the workspace {workspace}.")
        return await tx.audit.find(since=since, until=until, act=query.act, user=user, limit=query.limit)


def _id(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


async def verify(app: App) -> list[tuple[str, Verification]]:
    """The verification of every tenant's log, by the tenant's slug."""
    return [(slug, await app.audit.verify_noted(tenant)) for tenant, slug in await app.database.tenants()]


def as_json(event: AuditEvent) -> dict[str, Any]:
    """A row as JSON."""
    return {
        "id": str(event.id),
        "at": event.at.isoformat(),
        "act": str(event.act),
        "actor": _text(event.actor),
        "users": [str(user) for user in event.users],
        "conversation": _text(event.conversation),
        "project": _text(event.project),
        "details": dict(event.details),
    }


def line(event: AuditEvent) -> str:
    """A row as a line of text, as in chat."""
    return in_chat.line(event)


def _text(id: uuid.UUID | None) -> str | None:
    return None if id is None else str(id)


def verification_json(tenant: str, found: Verification) -> dict[str, Any]:
    """A verification as JSON."""
    return {
        "tenant": tenant,
        "whole": found.whole,
        "first": found.first,
        "rows": found.rows,
        "holds_to": found.holds_to,
        "pending": found.pending,
        "oldest_pending": found.oldest_pending and found.oldest_pending.isoformat(),
        "breaks": [
            {"number": each.number, "problem": str(each.problem), "at": each.at and each.at.isoformat()}
            for each in found.breaks
        ],
    }


def verification_text(tenant: str, found: Verification) -> str:
    """A verification as lines of text: one for each cause, with how often it occurs."""
    waiting = f"; {counted(found.pending, 'row')} not sealed yet" if found.pending else ""
    if found.whole:
        span = f"{counted(found.rows, 'row')} from {found.first} to {found.end.number}" if found.rows else "no rows"
        return f"{tenant}: the log holds, {span}{waiting}."
    lines = [f"{tenant}: the log holds up to row {found.holds_to} and is broken after it{waiting}:"]
    for cause in found.causes.values():
        each = cause.first
        where = f"row {each.number}" if each.number else "a row without a seal"
        when = f" ({each.at:%Y-%m-%d %H:%M:%S} UTC)" if each.at else ""
        more = f", and {cause.count - 1:,} more" if cause.count > 1 else ""
        lines.append(f"  {where}{when}{more}: {each}")
    return "\n".join(lines)

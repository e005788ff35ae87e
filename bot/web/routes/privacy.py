"""`/v1/privacy`: how much is stored of a person, who can be answered from it and who was, and when the audit log was
last verified. Figures, never what anything says."""

from datetime import datetime

from pydantic import BaseModel

from bot.web.call import Calling
from bot.web.problems import documented
from bot.web.router import Router
from composer import visibility
from composer.people.credentials.principal import KeyPermission, Source
from composer.people.privacy import own_privacy
from composer.ports.memberships import NOWHERE

router = Router("/v1/privacy", tags=["settings"])


class StoredThere(BaseModel):
    """How much of each kind the person has in one place, and who can be answered from it, in words. A decision is a
    `landmark`."""

    place: str
    readers: str
    counts: dict[str, int]


class AnsweredFromIt(BaseModel):
    """Somebody else who was answered from it, in a room that the person may read."""

    name: str
    room: str
    answers: int
    last_at: datetime | None


class AuditLastVerified(BaseModel):
    """When the audit log was last verified, and whether all of it was as it was written."""

    at: datetime
    whole: bool


class PrivacyResponse(BaseModel):
    """What is stored of the person; `calls` of models and `operations` over the API that were counted in their name;
    how many keys, browsers and accounts open it; whether they have opted out of being stored; and the last verification
    of the audit log, null where there was none."""

    stored: list[StoredThere]
    answered: list[AnsweredFromIt]
    calls: int
    operations: int
    keys: int
    browsers: int
    accounts: int
    opted_out: bool
    audit_verified: AuditLastVerified | None


@router.get("", summary="Show what is stored", response_model=PrivacyResponse, responses=documented(401, 403))
async def show_privacy(call: Calling) -> PrivacyResponse:
    """What the page Privacy shows. It needs the permission manage. Private rooms are named to who is signed in in a
    browser."""
    who = call.principal
    who.require(KeyPermission.MANAGE)
    presence = await call.app.memberships.of(who.tenant_id, who.user) if who.source is Source.WEB_SESSION else NOWHERE
    async with call.reading() as (tx, access):
        found = await own_privacy(tx, visibility.owned_by_bearer(access), call.now, presence)
    return PrivacyResponse(
        stored=[
            StoredThere(place=each.place.name, readers=each.place.readers, counts=dict(each.counts))
            for each in found.stored
        ],
        answered=[
            AnsweredFromIt(name=each.name, room=each.room_name, answers=each.answers, last_at=each.last_at)
            for each in found.askers
        ],
        calls=found.calls,
        operations=found.operations,
        keys=found.keys,
        browsers=found.sessions,
        accounts=found.logins,
        opted_out=found.opted_out,
        audit_verified=None
        if found.verified is None
        else AuditLastVerified(at=found.verified.at, whole=found.verified.whole),
    )

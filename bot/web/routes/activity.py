"""`/v1/activity`: who lately shared, set, decided and changed what, where the person is."""

from datetime import datetime
from typing import Any, Final, Literal

from fastapi import Response
from pydantic import BaseModel

from bot.web.call import Calling
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from composer.people.activity import Activity, activity_of
from composer.people.credentials.principal import Source


class ActivityPlace(BaseModel):
    """Where something was done."""

    kind: Literal["team", "project", "room"]
    id: str
    name: str


class ActivityResponse(BaseModel):
    """Something that somebody did: they wrote or changed an entry, set a fact, pinned a decision (or it was found, as a
    proposal), retired one, or joined a team. `own`: it was the person themselves."""

    what: Literal["written", "changed", "fact", "decision", "proposal", "retired", "joined"]
    at: datetime
    author: str
    own: bool
    text: str
    place: ActivityPlace


class ActivityList(BaseModel):
    """What was done, newest first."""

    items: list[ActivityResponse]


router = Router("/v1/activity", tags=["teams"])
_LISTED: Final[dict[int | str, dict[str, Any]]] = {200: {"model": ActivityList}, **documented(401, 403)}


@router.get("", summary="List what others did", response_class=Response, responses=_LISTED)
async def list_activity(call: Calling) -> Response:
    """What was shared, set, decided and changed in the last 30 days in teams and projects of one's own, and (for who is
    signed in in a browser) rooms: the latest 60. Nothing of isolated projects."""
    who, presence = call.principal, None
    if who.source is Source.WEB_SESSION:
        presence = await call.app.memberships.of(who.tenant_id, who.user)
    async with call.reading() as (tx, access):
        found = await activity_of(tx, access, presence, call.now)
    return json_answer({"items": [_shown(each) for each in found]})


def _shown(each: Activity) -> dict[str, Any]:
    return {
        "what": each.kind,
        "at": each.at,
        "author": each.author,
        "own": each.own,
        "text": each.text,
        "place": {"kind": each.place_kind, "id": each.place_id, "name": each.place},
    }

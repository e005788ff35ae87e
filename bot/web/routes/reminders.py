"""`/v1/reminders`: one's own reminders, and cancelling one."""

import uuid
from datetime import datetime

from fastapi import Response
from pydantic import BaseModel

from bot.web.call import ApiCall, Calling
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.exchange import ALL_OF_A_PERSON
from composer.people.credentials.principal import Source
from composer.people.own_reminders import cancel_reminder, own_reminders
from composer.ports.memberships import NOWHERE
from composer.repositories.database import Transaction
from composer.text.dates.repeats import Repeat
from composer.visibility import EntryAccess, owned_by_bearer

router = Router("/v1/reminders", tags=["settings"])


class ReminderResponse(BaseModel):
    """What somebody wants to be reminded of, and when it is due next. `repeats` says how it repeats, in words; null:
    once. `place`: where it is posted, in words."""

    id: uuid.UUID
    text: str
    due_at: datetime
    repeats: str | None
    made_at: datetime
    place: str


class ReminderList(BaseModel):
    """Open reminders, the next one first."""

    items: list[ReminderResponse]


@router.get(
    "",
    summary="List one's reminders",
    response_class=Response,
    responses={200: {"model": ReminderList}, **documented(401, 403)},
)
async def list_reminders(call: Calling) -> Response:
    """Those that are still to come, by any of the person's accounts: at most 50. It needs the permissions of an
    export. Private rooms are named to who is signed in in a browser."""
    who = call.principal
    _require_all(call)
    presence = await call.app.memberships.of(who.tenant_id, who.user) if who.source is Source.WEB_SESSION else NOWHERE
    async with call.reading() as (tx, access):
        found = await own_reminders(tx, owned_by_bearer(access), presence)
    items = [
        {
            "id": each.reminder.id,
            "text": each.reminder.text,
            "due_at": each.reminder.due_at,
            "repeats": None if each.reminder.repeats is None else Repeat.of(each.reminder.repeats).words,
            "made_at": each.reminder.made_at,
            "place": each.place.name,
        }
        for each in found
    ]
    return json_answer({"items": items})


@router.delete(
    "/{id}", summary="Cancel a reminder", status_code=204, responses=documented(400, 401, 403, 404, 409, 410, 422)
)
async def delete_reminder(call: Calling, id: uuid.UUID) -> None:
    """It is not posted again. What it has posted stays. It needs the permissions of an export."""
    _require_all(call)

    async def cancel(tx: Transaction, access: EntryAccess) -> None:
        await cancel_reminder(tx, owned_by_bearer(access), str(id), listed_by="GET /v1/reminders")

    await call.act(cancel)


def _require_all(call: ApiCall) -> None:
    for permission in ALL_OF_A_PERSON:
        call.principal.require(permission)

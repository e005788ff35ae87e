"""`/v1/admin/invitations`: links by which people come to an organisation that needs no chat platform."""

import secrets
import uuid
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import BaseModel, Field

from bot.web.call import Calling, Event
from bot.web.json_answer import json_answer
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.entries import RequestBody
from composer.errors import Conflict
from composer.people.credentials import invitations
from composer.people.credentials.invitations import MadeInvitation, invitation_url
from composer.people.credentials.keys import SECRET_BYTES
from composer.repositories.database import Transaction
from composer.repositories.one_time_codes import OpenInvitation
from composer.visibility import EntryAccess

SHOWN_ONCE: Final = (
    "An earlier request with this idempotency key made the invitation, whose link is shown once: revoke it, and make "
    "another one."
)
router = Router("/v1/admin/invitations", tags=["admin"])


class NewPersonInvitation(RequestBody):
    """Whom to invite: a name, which they are offered and may change; without one, whoever has the link. `email`: where
    people sign in by OpenID, whoever does with that verified address accepts, and the link alone does not."""

    name: Annotated[str, Field(max_length=invitations.MAX_NAME_CHARS)] = ""
    email: Annotated[str, Field(max_length=invitations.MAX_ADDRESS_CHARS)] = ""


class PersonInvitation(BaseModel):
    """An open invitation. `by` is the admin who made it."""

    id: uuid.UUID
    name: str
    email: str
    by: str
    expires_at: datetime


class CreatedPersonInvitation(PersonInvitation):
    """A new invitation. `link` is shown this once."""

    link: str


class PersonInvitationList(BaseModel):
    """Open invitations, oldest first."""

    items: list[PersonInvitation]


_MADE: Final[dict[int | str, dict[str, Any]]] = {
    201: {"description": "The invitation; its link is shown this once", "model": CreatedPersonInvitation},
    **documented(400, 401, 403, 409, 422),
}


@router.get("", summary="List invitations", response_model=PersonInvitationList, responses=documented(401, 403))
async def list_person_invitations(_: Admin, call: Calling) -> PersonInvitationList:
    """The invitations to the organisation that nobody has accepted yet."""
    async with call.reading() as (tx, _access):
        found = await invitations.open_invitations(tx, call.principal, call.now)
    return PersonInvitationList(items=[PersonInvitation(**_values(each)) for each in found])


@router.post("", summary="Invite somebody", response_class=Response, status_code=201, responses=_MADE)
async def invite_person(_: Admin, call: Calling, sent: NewPersonInvitation) -> Response:
    """Make a link by which somebody becomes a person of the organisation: once, within a week."""

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, MadeInvitation]:
        secret = secrets.token_bytes(SECRET_BYTES)
        new = await invitations.invite(tx, call.principal, sent.name, secret, call.now, email=sent.email)
        return new.made.id, new

    async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> MadeInvitation:
        raise Conflict(SHOWN_ONCE)

    new, _replayed = await call.once(make, again)
    async with call.reading() as (_tx, access):
        by = access.name
    link = invitation_url(call.app.settings.web_address, new.code)
    return json_answer(_values(new.made) | {"by": by, "link": link}, 201)


@router.delete("/{id}", summary="Revoke an invitation", status_code=204, responses=documented(400, 401, 403, 404, 422))
async def revoke_person_invitation(_: Admin, call: Calling, id: uuid.UUID) -> None:
    """Its link works no more."""
    await call.act(lambda tx, access: invitations.revoke_invitation(tx, call.principal, id, call.now))


def _values(each: OpenInvitation) -> dict[str, Any]:
    return {"id": each.id, "name": each.name, "email": each.email, "by": each.by_name, "expires_at": each.expires_at}

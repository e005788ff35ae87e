"""`/v1/admin/users/{user}`: what admins do with the people of their workspace."""

import secrets
import uuid
from datetime import datetime
from typing import Any, Final

from fastapi import Response
from pydantic import BaseModel, ConfigDict

from bot.web.call import IS_REPLAYED, ONCE, Calling, Event
from bot.web.json_answer import json_answer
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.values import Flag
from composer.errors import Conflict
from composer.model import derived_id
from composer.people.administration import (
    ManagedPerson,
    PersonOpeners,
    let_back_in,
    managed_person,
    set_disabled,
    set_tenant_admin,
    sign_out_everywhere,
)
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.sign_in import SENT_LINK_LIFETIME, login_url
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess

router = Router("/v1/admin/users", tags=["admin"])
_CHANGED: Final[dict[int | str, dict[str, Any]]] = {200: {"headers": ONCE}, **documented(400, 401, 403, 404, 409, 429)}
LINK_SHOWN_ONCE: Final = (
    "An earlier request with this idempotency key made the link, which is shown once: make another one."
)


class OpenerFigures(BaseModel):
    """How much opens a person's memory from outside now. `accounts` are those at an OpenID provider."""

    keys: int
    apps: int
    browsers: int
    accounts: int


class PersonOfWorkspace(BaseModel):
    """Somebody, with what opens their memory by any of their accounts. Of who is disabled (`disabled_since`) nothing
    does, and nothing can be made that does."""

    id: uuid.UUID
    name: str
    admin: bool
    disabled_since: datetime | None
    openers: OpenerFigures


class SignInLink(BaseModel):
    """A link that signs somebody in, once. It is shown this once."""

    link: str
    expires_at: datetime


_LINKED: Final[dict[int | str, dict[str, Any]]] = {
    201: {"description": "The link; it is shown this once", "model": SignInLink},
    **documented(400, 401, 403, 404, 409, 429),
}


class PersonUpdate(BaseModel):
    """What to change of a person. What is left out stays."""

    model_config = ConfigDict(extra="forbid")

    admin: Flag | None = None
    disabled: Flag | None = None


@router.get(
    "/{user}", summary="Show a person", response_model=PersonOfWorkspace, responses=documented(401, 403, 404, 429)
)
async def admin_user(_: Admin, call: Calling, user: uuid.UUID) -> PersonOfWorkspace:
    """Who somebody is, and how much opens their memory. Never what they wrote."""
    async with call.reading() as (tx, _access):
        return _shown(await managed_person(tx, call.principal.user, user, call.now))


@router.patch(
    "/{user}", summary="Make somebody an admin, or disable them", response_model=PersonOfWorkspace, responses=_CHANGED
)
async def change_user(_: Admin, call: Calling, user: uuid.UUID, sent: PersonUpdate) -> Response:
    """It holds from the next request on, and is recorded in the audit log. A workspace keeps an admin, and no admin is
    disabled: 409. Who is disabled is signed out everywhere and has no way in until they are enabled (`false`); what
    they said and stored stays, and chat platforms have ways of their own."""
    who = call.principal.user

    async def change(tx: Transaction, access: EntryAccess) -> ManagedPerson:
        if sent.admin is not None:
            await set_tenant_admin(tx, who, user, sent.admin, call.now)
        if sent.disabled is not None:
            await set_disabled(tx, who, user, sent.disabled, call.now)
        return await managed_person(tx, who, user, call.now)

    async def shown(tx: Transaction, access: EntryAccess) -> ManagedPerson:
        return await managed_person(tx, who, user, call.now)

    found, repeated = await call.change(change, shown, alone=True)
    return json_answer(_shown(found), headers=IS_REPLAYED if repeated else None)


@router.post(
    "/{user}/sign-out", summary="Sign somebody out everywhere", response_model=OpenerFigures, responses=_CHANGED
)
async def sign_user_out(_: Admin, call: Calling, user: uuid.UUID) -> Response:
    """All keys of theirs and of their tools, connected apps, browsers and links end; returns how many there were.
    Accounts at an OpenID provider stay: they sign in again with them."""

    async def change(tx: Transaction, access: EntryAccess) -> PersonOpeners:
        return await sign_out_everywhere(tx, call.principal.user, user, call.now)

    async def shown(tx: Transaction, access: EntryAccess) -> PersonOpeners:
        return (await managed_person(tx, call.principal.user, user, call.now)).openers

    found, repeated = await call.change(change, shown)
    return json_answer(_figures(found), headers=IS_REPLAYED if repeated else None)


@router.post(
    "/{user}/link", summary="Let somebody in again", response_class=Response, status_code=201, responses=_LINKED
)
async def link_user(_: Admin, call: Calling, user: uuid.UUID) -> Response:
    """Make a link that signs in somebody who came by an invitation and has no browser left: once, within an hour; it
    ends the one before. For who could get in themselves, and for admins, none is made: 403. They see who made it."""

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, str]:
        code = await let_back_in(tx, call.principal, user, secrets.token_bytes(SECRET_BYTES), call.now)
        return derived_id("link", event.id), code

    async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> str:
        raise Conflict(LINK_SHOWN_ONCE)

    code, _replayed = await call.once(make, again)
    link = SignInLink(link=login_url(call.app.settings.web_address, code), expires_at=call.now + SENT_LINK_LIFETIME)
    return json_answer(link, 201)


def _shown(person: ManagedPerson) -> PersonOfWorkspace:
    return PersonOfWorkspace(
        id=person.id,
        name=person.name,
        admin=person.admin,
        disabled_since=person.disabled_since,
        openers=_figures(person.openers),
    )


def _figures(openers: PersonOpeners) -> OpenerFigures:
    return OpenerFigures(keys=openers.keys, apps=openers.apps, browsers=openers.browsers, accounts=openers.accounts)

"""`/v1/people`: whom one may invite, by name."""

import uuid
from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel

from bot.web.call import Calling
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from composer.people.credentials.principal import Source
from composer.people.known_people import find_people
from composer.ports.memberships import NOWHERE


class PersonResponse(BaseModel):
    """A person: the id by which they are invited, their name, and the chat platforms that they are on."""

    id: uuid.UUID
    name: str
    platforms: list[str]


class PersonList(BaseModel):
    """People, by name."""

    items: list[PersonResponse]


router = Router("/v1/people", tags=["teams"])


@router.get(
    "",
    summary="Find people by name",
    response_class=Response,
    responses={200: {"model": PersonList}, **documented(401, 403, 422)},
)
async def list_people(
    call: Calling, q: Annotated[str, Query(min_length=1, max_length=80, description="How a word of the name begins.")]
) -> Response:
    """To invite them to a team or a project: at most 20 people who are in public rooms, in teams, projects and (for who
    is signed in in a browser) private rooms of one's own, or on no chat platform."""
    signed_in, who = call.principal.source is Source.WEB_SESSION, call.principal
    presence = await call.app.memberships.of(who.tenant_id, who.user) if signed_in else NOWHERE
    async with call.reading() as (tx, access):
        found = await find_people(tx, access, q, presence)
    return json_answer(
        {"items": [{"id": each.id, "name": each.name, "platforms": list(each.platforms)} for each in found]}
    )

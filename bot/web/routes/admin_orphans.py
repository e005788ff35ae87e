"""`/v1/admin/orphans`: projects and teams without an admin, and what an admin of the workspace does with them."""

import uuid
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query, Response
from pydantic import BaseModel

from bot.web.call import Calling
from bot.web.json_answer import json_answer
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.forgetting import FORGET_RESPONSES, receipt_answer
from bot.web.shapes.entries import RequestBody
from composer.memory.forget import Receipt
from composer.people.orphans import OrphanKind, appoint, delete, orphans
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess

router = Router("/v1/admin/orphans", tags=["admin"])
_CHANGED: Final[dict[int | str, dict[str, Any]]] = {
    202: {"description": "Invited: they are its admin once they accept, for 14 days"},
    **documented(400, 401, 403, 404, 409, 429),
}


class OrphanMemberResponse(BaseModel):
    """A member who can be made an admin. `names`: those of their accounts that are members. `is_asked`: they may only
    read the project, and are invited first."""

    id: uuid.UUID
    names: list[str]
    is_asked: bool


class OrphanResponse(BaseModel):
    """A project or team that has no admin, or only some of whom everything was erased; since when there is it, and its
    members."""

    kind: OrphanKind
    id: uuid.UUID
    name: str
    isolated: bool
    since: datetime
    members: list[OrphanMemberResponse]


class OrphanList(BaseModel):
    """Projects and teams without an admin, projects first, by name; at most 50."""

    items: list[OrphanResponse]


class NewAdmin(RequestBody):
    """The member who becomes its admin."""

    user: uuid.UUID


@router.get("", summary="List projects and teams without an admin", response_model=OrphanList)
async def list_orphans(_: Admin, call: Calling) -> Response:
    """Their names and members. Never what is filed there."""
    async with call.reading() as (tx, access):
        found = await orphans(tx, access)
    items = [
        {
            "kind": each.kind,
            "id": each.id,
            "name": each.name,
            "isolated": each.isolated,
            "since": each.since,
            "members": [
                {"id": member.id, "names": list(member.names), "is_asked": member.is_asked} for member in each.members
            ],
        }
        for each in found
    ]
    return json_answer({"items": items})


@router.put("/{id}/admin", summary="Make a member its admin", status_code=204, responses=_CHANGED)
async def appoint_admin(_: Admin, call: Calling, id: uuid.UUID, sent: NewAdmin) -> Response:
    """Of a project or team that has none. Who may only read the project is invited (202): what they say in their
    sessions in it is recalled by its members then."""

    async def change(tx: Transaction, access: EntryAccess) -> bool:
        return await appoint(tx, access, id, sent.user, call.now)

    async def again(tx: Transaction, access: EntryAccess) -> bool:
        return not any(each.id == id for each in await orphans(tx, access))

    is_admin, _replayed = await call.change(change, again, alone=True)
    return Response(status_code=204 if is_admin else 202)


@router.delete(
    "/{id}",
    summary="Delete a project or team without an admin",
    response_class=Response,
    responses=FORGET_RESPONSES,
)
async def delete_orphan(
    _: Admin,
    call: Calling,
    id: uuid.UUID,
    confirm: Annotated[bool, Query(description="Without it nothing is deleted: 409.")] = False,
) -> Response:
    """As one of its admins would: what people wrote for it or shared with it is theirs alone again, and the facts and
    decisions of a project are forgotten for good."""
    home = call.app.settings.home

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        return await delete(tx, access, home, id, call.now, key=key, confirmed=confirm)

    return receipt_answer(*await call.erase(erase))

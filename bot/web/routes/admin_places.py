"""`/v1/admin/projects` and `/v1/admin/teams`: all of a workspace, with figures, for its admins, and what they do with
those that have no admin. Never what is filed there."""

import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query, Response
from pydantic import BaseModel

from bot.web.call import ApiCall, Calling
from bot.web.json_answer import json_answer
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.forgetting import FORGET_RESPONSES, receipt_answer
from bot.web.shapes.entries import RequestBody
from composer.memory.forget import Receipt
from composer.people.tenant_places import OverseenPlace, WantedPlaces, appoint, delete, places_page, without_admin
from composer.repositories.database import Transaction
from composer.repositories.tenant_figures import TenantPlaceKind
from composer.visibility import EntryAccess

router = Router("/v1/admin", tags=["admin"])
MAX_PLACES: Final = 100
MAX_WORDS: Final = 80
_LISTED: Final = documented(401, 403, 422, 429)
_CHANGED: Final[dict[int | str, dict[str, Any]]] = {
    202: {"description": "Invited: they are its admin once they accept, for 14 days"},
    **documented(400, 401, 403, 404, 409, 429),
}
_Words = Annotated[
    str, Query(max_length=MAX_WORDS, description="In its name, as far as that is told, or in the name of an admin.")
]
_Orphaned = Annotated[bool, Query(description="Only those that have no admin.")]
_Limit = Annotated[int, Query(ge=1, le=MAX_PLACES)]
_Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before.")]
_Confirm = Annotated[bool, Query(description="Without it nothing is deleted: 409.")]


class PlaceAdmin(BaseModel):
    """An admin of a project or a team."""

    id: uuid.UUID
    name: str


class CandidateResponse(BaseModel):
    """A member who can be made an admin. `names`: those of their accounts that are members. `is_asked`: they may only
    read the project, and are invited first."""

    id: uuid.UUID
    names: list[str]
    is_asked: bool


class OverseenTeam(BaseModel):
    """A team with figures: how many people are in it, and who manages it. `name` is null for one that has an admin and
    that the person is not in. `orphaned`: it has no admin, or only some of whom everything was erased; then
    `candidates` are the members who can be made one."""

    id: uuid.UUID
    name: str | None
    created_at: datetime
    members: int
    admins: list[PlaceAdmin]
    orphaned: bool
    candidates: list[CandidateResponse]


class OverseenProject(OverseenTeam):
    """A project with figures, also how many rooms are in it. Of an `isolated` one nothing is used outside; any other
    pools what is said in its public rooms."""

    isolated: bool
    rooms: int


class OverseenTeamList(BaseModel):
    """Teams, the newest first. `next` is the cursor of the next page; null after the last."""

    items: list[OverseenTeam]
    next: str | None


class OverseenProjectList(BaseModel):
    """Projects, the newest first. `next` is the cursor of the next page; null after the last."""

    items: list[OverseenProject]
    next: str | None


class NewAdmin(RequestBody):
    """The member who becomes its admin."""

    user: uuid.UUID


@router.get("/projects", summary="List all projects", response_model=OverseenProjectList, responses=_LISTED)
async def admin_projects(
    _: Admin, call: Calling, q: _Words = "", orphaned: _Orphaned = False, limit: _Limit = 50, cursor: _Cursor = None
) -> Response:
    """Of the whole workspace, with figures, to which nobody's membership is needed. Never what is filed there."""
    return await _page(call, WantedPlaces(TenantPlaceKind.PROJECT, q, orphaned), limit, cursor)


@router.get("/teams", summary="List all teams", response_model=OverseenTeamList, responses=_LISTED)
async def admin_teams(
    _: Admin, call: Calling, q: _Words = "", orphaned: _Orphaned = False, limit: _Limit = 50, cursor: _Cursor = None
) -> Response:
    """Of the whole workspace, with figures, to which nobody's membership is needed. Never what is shared there."""
    return await _page(call, WantedPlaces(TenantPlaceKind.TEAM, q, orphaned), limit, cursor)


@router.put("/projects/{id}/admin", summary="Make a member its admin", status_code=204, responses=_CHANGED)
async def appoint_project_admin(_: Admin, call: Calling, id: uuid.UUID, sent: NewAdmin) -> Response:
    """Of a project that has none. Who may only read it is invited (202): what they say in their sessions in it is
    recalled by its members then."""
    return await _appoint(call, TenantPlaceKind.PROJECT, id, sent.user)


@router.put("/teams/{id}/admin", summary="Make a member its admin", status_code=204, responses=_CHANGED)
async def appoint_team_admin(_: Admin, call: Calling, id: uuid.UUID, sent: NewAdmin) -> Response:
    """Of a team that has none."""
    return await _appoint(call, TenantPlaceKind.TEAM, id, sent.user)


@router.delete(
    "/projects/{id}",
    summary="Delete a project without an admin",
    response_class=Response,
    responses=FORGET_RESPONSES,
)
async def delete_orphaned_project(_: Admin, call: Calling, id: uuid.UUID, confirm: _Confirm = False) -> Response:
    """As one of its admins would: what people wrote for it is theirs alone again, and its facts and decisions are
    forgotten for good."""
    return receipt_answer(*await call.erase(_deleting(call, TenantPlaceKind.PROJECT, id, confirmed=confirm)))


@router.delete(
    "/teams/{id}",
    summary="Delete a team without an admin",
    response_class=Response,
    responses=FORGET_RESPONSES,
)
async def delete_orphaned_team(_: Admin, call: Calling, id: uuid.UUID, confirm: _Confirm = False) -> Response:
    """As one of its admins would: what people shared with it is theirs alone again."""
    return receipt_answer(*await call.erase(_deleting(call, TenantPlaceKind.TEAM, id, confirmed=confirm)))


async def _page(call: ApiCall, wanted: WantedPlaces, limit: int, cursor: str | None) -> Response:
    async with call.reading() as (tx, access):
        found = await places_page(tx, access, wanted, limit, cursor)
    return json_answer({"items": [_values(each) for each in found.places], "next": found.next})


async def _appoint(call: ApiCall, kind: TenantPlaceKind, id: uuid.UUID, user: uuid.UUID) -> Response:
    async def change(tx: Transaction, access: EntryAccess) -> bool:
        return await appoint(tx, access, id, user, call.now, kind)

    async def again(tx: Transaction, access: EntryAccess) -> bool:
        return await without_admin(tx, access, id, kind) is None

    is_admin, _replayed = await call.change(change, again, alone=True)
    return Response(status_code=204 if is_admin else 202)


def _deleting(
    call: ApiCall, kind: TenantPlaceKind, id: uuid.UUID, *, confirmed: bool
) -> Callable[[Transaction, EntryAccess, bytes], Awaitable[Receipt]]:
    home = call.app.settings.home

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        return await delete(tx, access, home, id, call.now, key=key, confirmed=confirmed, kind=kind)

    return erase


def _values(place: OverseenPlace) -> dict[str, Any]:
    """A place as OverseenProject or OverseenTeam shows it."""
    found: dict[str, Any] = {
        "id": place.id,
        "name": place.name,
        "created_at": place.created_at,
        "members": place.members,
        "admins": [{"id": id, "name": name} for id, name in place.admins],
        "orphaned": place.orphaned,
        "candidates": [
            {"id": each.id, "names": list(each.names), "is_asked": each.is_asked} for each in place.candidates
        ],
    }
    if place.kind is TenantPlaceKind.PROJECT:
        found |= {"isolated": place.isolated, "rooms": place.rooms}
    return found

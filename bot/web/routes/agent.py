"""`/v1/agent`: what an AI tool writes and reads for its person. It appends: what it wrote, others do not overwrite."""

import uuid
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Query, Response

from bot.web.call import Calling, InProject
from bot.web.conditions import VERSIONED
from bot.web.entry_pages import Wanted, entries_page, wanted
from bot.web.json_answer import json_answer
from bot.web.metering import counts_as
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.entries import WRITTEN, answer, write
from bot.web.routes.projects import ProjectList
from bot.web.routes.teams import TeamList, team_list
from bot.web.shapes.entries import EntryList, EntryResponse, EntrySnippetList, NewEntry
from composer.entries import listing, teams
from composer.errors import NotFound
from composer.repositories.operations import Operation
from composer.visibility import UNKNOWN_ENTRY, readable_project

router = Router("/v1/agent", tags=["agent"])
Listed = Annotated[Wanted, Depends(wanted)]
Snippets = Annotated[bool, Query(description="Only the beginning of each text; the whole text by its id.")]
_LISTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "A page of entries", "model": EntrySnippetList | EntryList},
    **documented(400, 401, 403, 404, 422),
}
_ONE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The entry", "model": EntryResponse, "headers": VERSIONED},
    **documented(401, 403, 404, 422),
}


@router.post("/entries", summary="Write an entry", response_class=Response, status_code=201, responses=WRITTEN)
@counts_as(Operation.WRITES)
async def agent_write_entry(call: Calling, sent: NewEntry) -> Response:
    """Stored exactly as sent, with the tool as its origin. With a `key`, what that tool wrote with it is replaced."""
    return await write(call, sent, sent.project)


@router.get("/entries", summary="List entries", response_class=Response, responses=_LISTS)
@counts_as(Operation.READS)
async def agent_list_entries(call: Calling, asked: Listed, snippets: Snippets = True) -> Response:
    """The entries that the tool may read, newest first."""
    async with call.reading(asked.project) as (tx, access):
        return await entries_page(call, tx, access, asked, snippets=snippets)


@router.get("/entries/latest", summary="Get the latest entry", response_class=Response, responses=_ONE)
@counts_as(Operation.READS)
async def agent_latest_entry(call: Calling, asked: Listed) -> Response:
    """The newest of the entries that the tool may read and that fit."""
    async with call.reading(asked.project) as (tx, access):
        found = await listing.page(
            tx, access, asked.filter, call.now, team=asked.team, only_project=asked.whole_project, limit=1, whole=True
        )
        if not found.entries:
            raise NotFound(UNKNOWN_ENTRY)
        call.note_read([found.entries[0].id])
        return await answer(tx, access, found.entries[0])


@router.get("/entries/by-tag/{name:path}", summary="List entries by tag", response_class=Response, responses=_LISTS)
@counts_as(Operation.READS)
async def agent_entries_by_tag(
    call: Calling,
    asked: Listed,
    name: Annotated[str, Path(min_length=1, max_length=64)],
    snippets: Snippets = True,
) -> Response:
    """The same as the list, of those with this tag."""
    tags = (*asked.filter.tags, name)
    async with call.reading(asked.project) as (tx, access):
        asked = replace(asked, filter=replace(asked.filter, tags=tags))
        return await entries_page(call, tx, access, asked, snippets=snippets)


@router.get("/entries/{id}", summary="Get an entry", response_class=Response, responses=_ONE)
@counts_as(Operation.READS)
async def agent_get_entry(call: Calling, id: uuid.UUID, project: InProject = None) -> Response:
    """One entry, whole."""
    async with call.reading(project) as (tx, access):
        entry = await listing.get(tx, access, id, call.now)
        call.note_read([entry.id])
        return await answer(tx, access, entry)


@router.get("/team/{id}/entries", summary="List a team's entries", response_class=Response, responses=_LISTS)
@counts_as(Operation.READS)
async def agent_team_entries(call: Calling, id: uuid.UUID, asked: Listed, snippets: Snippets = True) -> Response:
    """What the members of a team share with it."""
    async with call.reading() as (tx, access):
        return await entries_page(call, tx, access, replace(asked, team=id, project=None), snippets=snippets)


@router.get(
    "/teams", summary="List teams", response_class=Response, responses={200: {"model": TeamList}, **documented()}
)
async def agent_list_teams(call: Calling) -> Response:
    """The teams whose entries the tool may read."""
    async with call.reading() as (tx, access):
        return json_answer(team_list(await teams.teams(tx, access)))


@router.get(
    "/projects",
    summary="List projects",
    response_class=Response,
    responses={200: {"model": ProjectList}, **documented()},
)
async def agent_list_projects(call: Calling) -> Response:
    """The projects whose entries the tool may read."""
    async with call.reading() as (_, access):
        items = [
            {"id": each.id, "name": each.slug, "isolated": each.isolated, "role": str(each.role)}
            for each in access.projects
            if readable_project(access, each.id) is not None
        ]
    return json_answer({"items": items})

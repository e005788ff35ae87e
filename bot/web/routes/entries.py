"""`/v1/entries`: a person's own memory over the API."""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Query, Response
from pydantic import BaseModel, Field

from bot.web.call import IS_REPLAYED, ONCE, REPLAYED, ApiCall, Calling, Event, InProject
from bot.web.conditions import VERSIONED, IfMatch, etag, only_version
from bot.web.entry_pages import SORTED, Wanted, entries_page, names_for, wanted
from bot.web.json_answer import json_answer
from bot.web.metering import counts_as
from bot.web.problems import documented, header
from bot.web.router import Router
from bot.web.shapes.entries import (
    EntryList,
    EntryResponse,
    EntrySnippetList,
    EntryUpdate,
    NewEntry,
    RequestBody,
    WrittenEntry,
    entry_values,
)
from composer.entries import entries, listing
from composer.entries.bulk import MAX_BULK, BulkAct, BulkResult, act_on_many, are_done
from composer.entries.entries import Writer
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry, tokens_of
from composer.repositories.operations import Operation
from composer.repositories.ordering import Order
from composer.visibility import EntryAccess

router = Router("/v1/entries", tags=["entries"])
Listed = Annotated[Wanted, Depends(wanted)]
_LISTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "A page of entries", "model": EntryList | EntrySnippetList},
    **documented(400, 401, 403, 404, 422),
}
_ONE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The entry", "model": EntryResponse, "headers": VERSIONED},
    **documented(400, 401, 402, 403, 404, 409, 412, 422, 429),
}
_CHANGED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The entry", "model": EntryResponse, "headers": {**VERSIONED, **ONCE}},
    **documented(400, 401, 402, 403, 404, 409, 410, 412, 422, 429),
}
WRITTEN: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "It replaces what was written with the same key",
        "model": WrittenEntry,
        "headers": {**VERSIONED, **ONCE},
    },
    201: {
        "description": "It is new",
        "model": WrittenEntry,
        "headers": {**VERSIONED, **ONCE, "Location": header("The address of the entry.")},
    },
    **documented(400, 401, 402, 403, 404, 409, 410, 413, 415, 422, 429),
}


@router.get("", summary="List entries", response_class=Response, responses=_LISTS)
@counts_as(Operation.READS)
async def list_entries(
    call: Calling,
    asked: Listed,
    snippets: Annotated[bool, Query(description="Only the beginning of each text.")] = False,
    sort: Annotated[Order, Query(description=SORTED)] = Order.NEWEST,
) -> Response:
    """The entries that the person may read: their own, their teams' and their projects'."""
    asked = replace(asked, filter=replace(asked.filter, order=sort))
    async with call.reading(asked.project) as (tx, access):
        return await entries_page(call, tx, access, asked, snippets=snippets)


@router.post("", summary="Write an entry", response_class=Response, status_code=201, responses=WRITTEN)
@counts_as(Operation.WRITES)
async def write_entry(call: Calling, sent: NewEntry) -> Response:
    """Stored exactly as sent; no model touches it. With a `key`, what the person wrote with it before is replaced, and
    the metadata merged."""
    return await write(call, sent, sent.project)


class BulkRequest(RequestBody):
    """What to do to which entries of one's own. `team`: the one to share them with."""

    ids: Annotated[list[uuid.UUID], Field(min_length=1, max_length=MAX_BULK)]
    act: BulkAct
    team: uuid.UUID | None = None


class BulkOutcome(BaseModel):
    """What became of an entry: whether it was done, or why not."""

    id: uuid.UUID
    done: bool
    detail: str


class BulkOutcomes(BaseModel):
    """What became of each entry, in the order in which they were named."""

    items: list[BulkOutcome]


_BULK: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": BulkOutcomes, "headers": ONCE},
    **documented(400, 401, 402, 403, 422, 429),
}


@router.post("/bulk", summary="Change many entries", response_class=Response, responses=_BULK)
@counts_as(Operation.REMOVALS)
async def change_entries(call: Calling, sent: BulkRequest) -> Response:
    """Put many entries into the trash or take them out, share them with a team or with none any more. Each is done or
    refused for itself; what is done already is done. A request that repeats another by its idempotency key does
    nothing."""

    async def act(tx: Transaction, access: EntryAccess) -> Response:
        plan = call.app.directory.plan(access.tenant_id)
        found = await act_on_many(tx, access, sent.ids, sent.act, call.now, team=sent.team, plan=plan)
        return json_answer(_bulk_values(found))

    async def shown(tx: Transaction, access: EntryAccess) -> Response:
        found = await are_done(tx, access, sent.ids, sent.act, call.now, sent.team)
        return json_answer(_bulk_values(found), headers=IS_REPLAYED)

    response, _ = await call.change(act, shown, alone=True)
    return response


def _bulk_values(found: Sequence[BulkResult]) -> dict[str, Any]:
    return {"items": [{"id": each.id, "done": not each.refused, "detail": each.refused} for each in found]}


@router.get("/{id}", summary="Get an entry", response_class=Response, responses=_ONE)
@counts_as(Operation.READS)
async def get_entry(call: Calling, id: uuid.UUID, project: InProject = None) -> Response:
    """One entry, whole; one that is in the trash or has expired to the person whose it is."""
    async with call.reading(project) as (tx, access):
        entry = await listing.get(tx, access, id, call.now)
        call.note_read([entry.id])
        return await answer(tx, access, entry)


VersionChange = Literal[
    "created",
    "content",
    "title",
    "kind",
    "key",
    "tags",
    "metadata",
    "session",
    "allowed_vendors",
    "expires_at",
    "shared",
    "unshared",
    "trashed",
    "restored",
]


class Version(BaseModel):
    """A version of an entry: when and `by` whom it was made (`api`: its person, else their tool; null: whoever deleted
    the team or project that it was shared with), and what `changed`."""

    version: int
    at: datetime
    by: str | None
    changed: list[VersionChange]


class VersionList(BaseModel):
    """The versions of an entry, the latest first: the latest 50, and the first one."""

    items: list[Version]


@router.get(
    "/{id}/versions",
    summary="List an entry's versions",
    response_model=VersionList,
    responses=documented(400, 401, 403, 404, 422),
)
@counts_as(Operation.READS)
async def entry_versions(call: Calling, id: uuid.UUID, project: InProject = None) -> Response:
    """Who changed what of an entry when, for whoever may read it. An edit erases the words that it takes out: what it
    said before is not kept."""
    async with call.reading(project) as (tx, access):
        found = await listing.versions(tx, access, id, call.now)
    items = [{**asdict(each), "by": each.by or None, "changed": list(each.changed)} for each in found]
    return json_answer({"items": items})


@router.patch("/{id}", summary="Change an entry", response_class=Response, responses=_CHANGED)
@counts_as(Operation.WRITES)
async def change_entry(
    call: Calling, id: uuid.UUID, sent: EntryUpdate, version: IfMatch, project: InProject = None
) -> Response:
    """Change some of an entry of one's own. What was made from words that it no longer has is erased."""

    async def change(tx: Transaction, access: EntryAccess) -> Entry:
        changed = await entries.change(tx, access, id, sent.sent(), call.now, version)
        call.erased.append(changed.receipt)
        return changed.entry

    return await _changed(call, id, version, change, project)


@router.delete(
    "/{id}",
    summary="Put an entry into the trash",
    status_code=204,
    responses=documented(400, 401, 403, 404, 409, 412, 422),
)
@counts_as(Operation.REMOVALS)
async def trash_entry(call: Calling, id: uuid.UUID, version: IfMatch, project: InProject = None) -> None:
    """It is recalled nowhere from then on, can be restored for 30 days, and is erased after that."""
    with only_version(version):
        await call.act(lambda tx, access: entries.trash(tx, access, id, call.now, version), project)


@router.post("/{id}/restore", summary="Take an entry out of the trash", response_class=Response, responses=_CHANGED)
@counts_as(Operation.WRITES)
async def restore_entry(call: Calling, id: uuid.UUID, version: IfMatch, project: InProject = None) -> Response:
    """As it was."""
    plan = call.app.directory.plan(call.principal.tenant_id)

    async def restore(tx: Transaction, access: EntryAccess) -> Entry:
        return await entries.restore(tx, access, id, call.now, version, plan)

    return await _changed(call, id, version, restore, project)


class ShareRequest(RequestBody):
    """The team to share with."""

    team: uuid.UUID


@router.put("/{id}/team", summary="Share an entry with a team", response_class=Response, responses=_CHANGED)
@counts_as(Operation.WRITES)
async def share_entry(call: Calling, id: uuid.UUID, sent: ShareRequest, version: IfMatch) -> Response:
    """Its members and their tools read it then, as far as its list of vendors lets them."""

    async def share(tx: Transaction, access: EntryAccess) -> Entry:
        return await entries.share(tx, access, id, sent.team, call.now, version)

    return await _changed(call, id, version, share)


@router.delete("/{id}/team", summary="Share an entry no more", response_class=Response, responses=_CHANGED)
@counts_as(Operation.REMOVALS)
async def unshare_entry(call: Calling, id: uuid.UUID, version: IfMatch) -> Response:
    """It is the person's alone again."""

    async def unshare(tx: Transaction, access: EntryAccess) -> Entry:
        return await entries.share(tx, access, id, None, call.now, version)

    return await _changed(call, id, version, unshare)


async def write(call: ApiCall, sent: NewEntry, project: str | None) -> Response:
    """Write an entry for the person, or for their tool, and answer with it."""

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, Response]:
        made = await entries.write(tx, access, sent.sent(), await writer_of(call, tx, access), event.id, call.now)
        if not made.created:  # else there are no words that it had before
            call.erased.append(made.receipt)
        if call.metered is not None:
            call.metered.tokens = tokens_of(made.entry.size)
        status = 201 if made.created else 200
        return made.entry.id, await answer(tx, access, made.entry, status, pending=made.pending)

    async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> Response:
        draft, writer = sent.sent(), await writer_of(call, tx, access)
        waits = await entries.repeated_pending(tx, access, draft, writer, event.id, event.at, id, call.now)
        if waits is not None:
            return await answer(tx, access, waits.entry, 201 if waits.created else 200, pending=True)
        before = await entries.repeated_write(tx, access, draft, writer, event.id, event.at, id, call.now)
        status = 201 if id == entries.entry_id(access, event.id) else 200
        return await answer(tx, access, before, status, pending=False)

    response, repeated = await call.once(make, again, project, alone=sent.key is not None)
    if repeated:
        response.headers[REPLAYED] = "true"
    return response


async def answer(
    tx: Transaction, access: EntryAccess, entry: Entry, status: int = 200, *, pending: bool | None = None
) -> Response:
    """An entry as EntryResponse shows it; as WrittenEntry where it says whether it is `pending`."""
    values = entry_values(entry, await names_for(tx, access, [entry]))
    if pending is not None:
        values["pending"] = pending
    headers = {"ETag": etag(entry.version)}
    if status == 201:
        headers["Location"] = _location(access, entry)
    return json_answer(values, status, headers)


def _location(access: EntryAccess, entry: Entry) -> str:
    """Where whoever wrote an entry gets it."""
    path = f"/v1/entries/{entry.id}" if access.is_person else f"/v1/agent/entries/{entry.id}"
    return path if access.project is None else f"{path}?project={access.project}"


async def _changed(
    call: ApiCall,
    id: uuid.UUID,
    version: int | None,
    change: Callable[[Transaction, EntryAccess], Awaitable[Entry]],
    project: str | None = None,
) -> Response:
    """Change an entry, once for an idempotency key: a request that repeats another is answered with the entry as it is
    now."""

    async def changed(tx: Transaction, access: EntryAccess) -> Response:
        return await answer(tx, access, await change(tx, access))

    async def shown(tx: Transaction, access: EntryAccess) -> Response:
        return await answer(tx, access, await listing.get(tx, access, id, call.now))

    with only_version(version):
        response, repeated = await call.change(changed, shown, project, alone=True)
    if repeated:
        response.headers[REPLAYED] = "true"
    return response


async def writer_of(call: ApiCall, tx: Transaction, access: EntryAccess) -> Writer:
    """Who writes by a request."""
    trust = await tx.people.trust(access.user)
    directory = call.app.directory
    return Writer(access.name, trust, directory.quarantine(access.tenant_id), directory.plan(access.tenant_id))

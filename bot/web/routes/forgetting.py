"""Forget entries for good, one or many, and decide about those that wait for approval."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import BaseModel, Field

from bot.web.call import IS_REPLAYED, ONCE, ApiCall, Calling, InProject
from bot.web.json_answer import json_answer
from bot.web.metering import counts_as
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.entries import Kind, RequestBody, Tags, TeamOrProject, shown_as
from bot.web.shapes.values import Count, Flag, Moment
from composer.entries import listing
from composer.memory.forget import Receipt
from composer.people.erasing import EntriesToErase, entries_of_tool, erase_entries, erase_entry
from composer.repositories.database import Transaction
from composer.repositories.entries import values_from_json
from composer.repositories.operations import Operation
from composer.repositories.quarantine import PendingItem
from composer.text.cleaning import clean_line
from composer.visibility import EntryAccess


class ForgetFilter(RequestBody):
    """Which entries to forget, by what they are: those that fit all of it."""

    kind: Kind | None = None
    older_than: Annotated[Moment, Field(description="Written before this time.")] | None = None


class ToolForgetRequest(ForgetFilter):
    """Which of the entries that a tool wrote to forget: those that fit all of it, or everything."""

    everything: Annotated[Flag, Field(description="All of it. Needed where nothing narrows it down.")] = False


class ForgetRequest(ForgetFilter):
    """Which of one's own entries to forget, also in the trash and expired: those that fit all of it."""

    tag: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    vendor: Annotated[str, Field(min_length=1, max_length=64, description="Who wrote them.")] | None = None
    project: (
        Annotated[str, Field(min_length=1, max_length=200, description="Of this project alone: its id or name.")] | None
    ) = None
    trashed: Annotated[Flag, Field(description="Of those in the trash alone: all of them empties it.")] = False
    confirm: (
        Annotated[
            Count,
            Field(
                ge=0,
                le=2**31 - 1,
                description="How many there are. Without it nothing is forgotten, and 409 says the number.",
            ),
        ]
        | None
    ) = None


class ForgetReceipt(BaseModel):
    """What was forgotten for good: how many items of each kind, with what was made from them. `id` is that of the
    stored receipt; null where there was nothing to forget."""

    id: str | None
    counts: dict[str, int]


class PendingEntry(BaseModel):
    """An entry that waits for approval. `id` is the one to approve or reject it by; `project`: for which it was
    written."""

    id: uuid.UUID
    title: str | None
    kind: str
    key: str | None
    tags: Tags
    content: str
    origin: str
    project: TeamOrProject | None
    created_at: datetime


class PendingEntryList(BaseModel):
    """What waits for approval, oldest first."""

    items: list[PendingEntry]


def receipt_values(receipt: Receipt) -> dict[str, Any]:
    """A receipt as ForgetReceipt shows it."""
    return {"id": receipt.id or None, "counts": {kind: count for kind, count in receipt.counts.items() if count}}


def pending_values(items: Sequence[PendingItem], projects: Mapping[uuid.UUID, str]) -> dict[str, Any]:
    """What waits as PendingEntryList shows it. `projects` are names."""
    return {"items": [_pending(item, projects) for item in items]}


def _pending(item: PendingItem, projects: Mapping[uuid.UUID, str]) -> dict[str, Any]:
    assert item.entry is not None
    values = values_from_json(item.text, item.detail, item.entry)
    kind, _, rest = item.namespace.partition(":")
    project = uuid.UUID(rest) if kind == "project" else None
    of_item = {
        "id": item.id,
        "content": values.whole,
        "origin": item.origin,
        "project": None if project is None else {"id": project, "name": projects.get(project, "")},
        "created_at": item.at,
    }
    return shown_as(PendingEntry, {**values.plain(), **of_item})


router = Router()
FORGET_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "What was forgotten", "model": ForgetReceipt, "headers": ONCE},
    **documented(400, 401, 403, 404, 409, 422, 503),
}
_DECIDED: Final = documented(400, 401, 403, 404, 422)


@router.post(
    "/v1/entries/forget",
    tags=["entries"],
    summary="Forget many entries",
    response_class=Response,
    responses=FORGET_RESPONSES,
)
@counts_as(Operation.REMOVALS)
async def forget_entries(call: Calling, sent: ForgetRequest) -> Response:
    """Erase entries of one's own for good, with what was made from them. Without `confirm` nothing is erased, and 409
    says how many there are."""
    wanted = EntriesToErase(_tuple(sent.kind), _tuple(sent.tag), _origins(sent.vendor), sent.older_than, sent.trashed)
    return await _forget_many(call, wanted, sent.confirm, sent.project)


@router.post(
    "/v1/entries/{id}/forget",
    tags=["entries"],
    summary="Forget an entry",
    response_class=Response,
    responses=FORGET_RESPONSES,
)
@counts_as(Operation.REMOVALS)
async def forget_entry(call: Calling, id: uuid.UUID, project: InProject = None) -> Response:
    """Erase it for good, also from the trash or once it has expired, with what was made from it; answers that used it
    are retracted."""
    return await _forget(call, id, project)


@router.post(
    "/v1/agent/forget",
    tags=["agent"],
    summary="Forget what the tool wrote",
    response_class=Response,
    responses=FORGET_RESPONSES,
)
@counts_as(Operation.REMOVALS)
async def agent_forget_entries(call: Calling, sent: ToolForgetRequest) -> Response:
    """Erase for good what the tool itself wrote, where that is shared with nobody: of one kind, older than a time, or
    everything. A person forgets many by /v1/entries/forget."""
    wanted = entries_of_tool(sent.kind, sent.older_than, everything=sent.everything)
    return await _forget_many(call, wanted, None)


@router.post(
    "/v1/agent/entries/{id}/forget",
    tags=["agent"],
    summary="Forget an entry",
    response_class=Response,
    responses=FORGET_RESPONSES,
)
@counts_as(Operation.REMOVALS)
async def agent_forget_entry(call: Calling, id: uuid.UUID) -> Response:
    """Erase for good an entry that the tool itself wrote, while it is shared with nobody."""
    return await _forget(call, id)


@router.get(
    "/v1/entries/pending",
    tags=["entries"],
    summary="List what waits for approval",
    response_class=Response,
    responses={200: {"description": "What waits", "model": PendingEntryList}, **_DECIDED},
)
@counts_as(Operation.READS)
async def list_pending_entries(call: Calling, project: InProject = None) -> Response:
    """What the person's tools wrote for a project, and is recalled nowhere until it is approved. With `project`, for an
    admin of it: what anybody's tools wrote for that one."""
    async with call.reading(project) as (tx, access):
        found = await listing.pending(tx, access)
        projects = {each.id: each.slug for each in access.projects}
    return json_answer(pending_values(found, projects))


@router.post(
    "/v1/entries/pending/{id}/approve", tags=["entries"], summary="Approve", status_code=204, responses=_DECIDED
)
@counts_as(Operation.WRITES)
async def approve_entry(call: Calling, id: uuid.UUID, project: InProject = None) -> None:
    """Store it, as if its writer had been trusted. What is for a project its admins approve, with
    `project`, or in a chat."""
    await call.act(lambda tx, access: listing.decide(tx, access, id, call.now, approved=True), project, alone=True)


@router.post("/v1/entries/pending/{id}/reject", tags=["entries"], summary="Reject", status_code=204, responses=_DECIDED)
@counts_as(Operation.REMOVALS)
async def reject_entry(call: Calling, id: uuid.UUID, project: InProject = None) -> None:
    """It is not stored."""

    async def reject(tx: Transaction, access: EntryAccess) -> None:
        call.erased.append(await listing.decide(tx, access, id, call.now, approved=False))

    await call.act(reject, project, alone=True)


def _tuple(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


def _origins(vendor: str | None) -> tuple[str, ...]:
    """A tool as entries name it; people write Claude, too."""
    return () if vendor is None else (clean_line(vendor).lower(),)


async def _forget_many(
    call: ApiCall, wanted: EntriesToErase, confirmed: int | None, project: str | None = None
) -> Response:
    home = call.app.settings.home

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        return await erase_entries(tx, access, home, wanted, call.now, key=key, confirmed=confirmed)

    return receipt_answer(*await call.erase(erase, project))


async def _forget(call: ApiCall, id: uuid.UUID, project: str | None = None) -> Response:
    home = call.app.settings.home

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        return await erase_entry(tx, access, home, id, call.now, key=key)

    return receipt_answer(*await call.erase(erase, project))


def receipt_answer(receipt: Receipt, repeated: bool) -> Response:
    """The answer to a request that erases. `repeated`: an earlier one with the same idempotency key did."""
    return json_answer(receipt_values(receipt), headers=IS_REPLAYED if repeated else None)

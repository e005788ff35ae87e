"""Forget entries for good, one or many, and decide about those that wait for approval."""

import uuid
from typing import Any, Final

from fastapi import Response

from bot.web.call import IS_REPLAYED, ONCE, Call, Calling, InProject
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.forgetting import (
    ForgetReceipt,
    ForgetRequest,
    PendingEntryList,
    ToolForgetRequest,
    pending_values,
    receipt_values,
)
from composer.entries import listing
from composer.memory.forget import Receipt
from composer.people.erasing import EntriesToErase, entries_of_tool, erase_entries, erase_entry
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess

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
async def forget_entries(call: Calling, sent: ForgetRequest) -> Response:
    """Erase entries of one's own for good, with what was made from them. Without `confirm` nothing is erased, and 409
    says how many there are."""
    wanted = EntriesToErase(_tuple(sent.kind), _tuple(sent.tag), _tuple(sent.vendor), sent.older_than)
    return await _forget_many(call, wanted, sent.confirm, sent.project)


@router.post(
    "/v1/entries/{id}/forget",
    tags=["entries"],
    summary="Forget an entry",
    response_class=Response,
    responses=FORGET_RESPONSES,
)
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
async def list_pending_entries(call: Calling, project: InProject = None) -> Response:
    """What the person's tools wrote for a project, and is recalled nowhere until it is approved."""
    async with call.reading(project) as (tx, access):
        found = await listing.pending(tx, access)
        projects = {each.id: each.slug for each in access.projects}
    return json_answer(pending_values(found, projects))


@router.post(
    "/v1/entries/pending/{id}/approve", tags=["entries"], summary="Approve", status_code=204, responses=_DECIDED
)
async def approve_entry(call: Calling, id: uuid.UUID, project: InProject = None) -> None:
    """Store it, as if its writer had been trusted. What is for a project its admins approve, in a chat."""
    await call.act(lambda tx, access: listing.decide(tx, access, id, call.now, approved=True), project, alone=True)


@router.post("/v1/entries/pending/{id}/reject", tags=["entries"], summary="Reject", status_code=204, responses=_DECIDED)
async def reject_entry(call: Calling, id: uuid.UUID, project: InProject = None) -> None:
    """It is not stored."""

    async def reject(tx: Transaction, access: EntryAccess) -> None:
        call.erased.append(await listing.decide(tx, access, id, call.now, approved=False))

    await call.act(reject, project, alone=True)


def _tuple(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


async def _forget_many(
    call: Call, wanted: EntriesToErase, confirmed: int | None, project: str | None = None
) -> Response:
    home = call.app.settings.home

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        return await erase_entries(tx, access, home, wanted, call.now, key=key, confirmed=confirmed)

    return receipt_answer(*await call.erase(erase, project))


async def _forget(call: Call, id: uuid.UUID, project: str | None = None) -> Response:
    home = call.app.settings.home

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        return await erase_entry(tx, access, home, id, call.now, key=key)

    return receipt_answer(*await call.erase(erase, project))


def receipt_answer(receipt: Receipt, repeated: bool) -> Response:
    """The answer to a request that erases. `repeated`: an earlier one with the same idempotency key did."""
    return json_answer(receipt_values(receipt), headers=IS_REPLAYED if repeated else None)

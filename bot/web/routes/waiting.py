"""`/v1/waiting`: what waits for a person to accept, amend or reject it, wherever they may. For who is signed in, since
it is of their rooms too."""

import uuid
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from fastapi import Response
from pydantic import BaseModel, Field, model_validator

from bot.web.call import IS_REPLAYED, ONCE, Calling
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.entries import writer_of
from bot.web.routes.rooms import require_signed_in
from bot.web.shapes.entries import RequestBody
from bot.web.shapes.remembered import DecisionSource, source_values
from composer.memory.remember import MAX_STATEMENT_CHARS
from composer.memory.review import whole_text
from composer.people import reviewing
from composer.people.decisions import PlaceOfDecisions, WaitingDecision
from composer.people.reviewing import MAX_DECIDED, ReviewAct, WaitingItem
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess

_PLACES: Final = {PlaceOfDecisions.ROOM: "room", PlaceOfDecisions.PROJECT: "project", PlaceOfDecisions.TALK: "own"}


class WaitingPlace(BaseModel):
    """Where it was written, and is filed once it is accepted: a room, a project or a session of one, or what is one's
    own (`own`): entries, DMs and sessions, which have no `id`."""

    kind: Literal["room", "project", "own"]
    id: uuid.UUID | None


class WaitingResponse(BaseModel):
    """Something that waits. A `decision` was found in what was said, and is proposed; a memory, fact or landmark (a
    decision that somebody pinned) was written by a guest or a tool, or learnt from their words. `key`: of a fact, whose
    value as JSON is the `text`; below the text of an entry stand its key, tags and metadata. `sources`: the messages
    that a decision was found in, as far as one may read them there; of anything else none."""

    id: uuid.UUID
    kind: Literal["decision", "memory", "fact", "landmark"]
    key: str | None
    text: str
    author: str
    at: datetime
    place: WaitingPlace
    sources: list[DecisionSource]


class WaitingList(BaseModel):
    """What waits, oldest first: at first what was written, then decisions."""

    items: list[WaitingResponse]


class WaitingUpdate(RequestBody):
    """What to do with it: accept or reject it, or keep other words in its place (of a fact: another value), as one's
    own. One of both."""

    act: Literal["accept", "reject"] | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_STATEMENT_CHARS)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.act is None) == (self.text is None):
            raise ValueError("say whether to accept or reject it, or the text to keep in its place")
        return self

    @property
    def review(self) -> ReviewAct:
        """For composer.people.reviewing.decide."""
        return {"accept": ReviewAct.APPROVE, "reject": ReviewAct.REJECT}.get(self.act or "", ReviewAct.AMEND)


class WaitingBulk(RequestBody):
    """What to do with several things that wait: accept or reject them all."""

    ids: Annotated[list[uuid.UUID], Field(min_length=1, max_length=MAX_DECIDED)]
    act: Literal["accept", "reject"]


class WaitingDecided(BaseModel):
    """How many of the things that were named were decided by this; the others did not wait any more."""

    decided: int


router = Router("/v1/waiting", tags=["memory"])
_LISTED: Final[dict[int | str, dict[str, Any]]] = {200: {"model": WaitingList}, **documented(401, 403)}
_DECIDED: Final = documented(400, 401, 403, 404, 422)
_ALL_DECIDED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": WaitingDecided, "headers": ONCE},
    **documented(400, 401, 403, 422),
}


@router.get("", summary="List what waits for one", response_class=Response, responses=_LISTED)
async def list_waiting(call: Calling) -> Response:
    """What guests and tools wrote in the rooms and for the projects that the person is an admin of, in their own DMs
    and sessions, and the proposed decisions that they may accept."""
    require_signed_in(call)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    quarantine = call.app.directory.quarantine(call.principal.tenant_id)
    async with call.reading() as (tx, access):
        found = await reviewing.waiting(tx, access, presence, quarantine, call.now)
    return json_answer({"items": [*map(_item, found.items), *map(_decision, found.decisions)]})


@router.post("", summary="Accept or reject several things that wait", response_class=Response, responses=_ALL_DECIDED)
async def decide_all_waiting(call: Calling, sent: WaitingBulk) -> Response:
    """All of them or, where one is refused, none. What was decided meanwhile, or never waited for the person, is left
    as it is."""
    require_signed_in(call)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    act = ReviewAct.APPROVE if sent.act == "accept" else ReviewAct.REJECT

    async def decide(tx: Transaction, access: EntryAccess) -> int:
        writer, event = await writer_of(call, tx, access), uuid.uuid4().hex
        receipts = await reviewing.decide_all(tx, access, presence, sent.ids, act, writer, event, call.now)
        call.erased.extend(receipts)
        return len(receipts)

    async def again(tx: Transaction, access: EntryAccess) -> int:
        return 0

    count, repeated = await call.change(decide, again, alone=True)
    return json_answer({"decided": count}, headers=IS_REPLAYED if repeated else None)


@router.post("/{id}", summary="Accept, amend or reject something that waits", status_code=204, responses=_DECIDED)
async def decide_waiting(call: Calling, id: uuid.UUID, sent: WaitingUpdate) -> None:
    """Nobody is answered from what was written until it is accepted; rejecting erases it. A rejected decision is
    retired, and an amended one stays in the history."""
    require_signed_in(call)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)

    async def decide(tx: Transaction, access: EntryAccess) -> None:
        writer, event, text = await writer_of(call, tx, access), uuid.uuid4().hex, sent.text or ""
        _, receipt = await reviewing.decide(tx, access, presence, id, sent.review, text, writer, event, call.now)
        call.erased.append(receipt)

    await call.act(decide, alone=True)


def _item(found: WaitingItem) -> dict[str, Any]:
    item = found.item
    place: dict[str, str | uuid.UUID | None] = {"kind": "own", "id": None}
    if found.room is not None:
        place = {"kind": "room", "id": found.room.room_id}
    elif found.project is not None:
        place = {"kind": "project", "id": found.project}
    return {
        "id": item.id,
        "kind": item.kind,
        "key": item.detail if item.kind == "fact" else None,
        "text": item.text if item.entry is None else whole_text(item),
        "author": item.author,
        "at": item.at,
        "place": place,
        "sources": [],
    }


def _decision(found: WaitingDecision) -> dict[str, Any]:
    return {
        "id": found.landmark.id,
        "kind": "decision",
        "key": None,
        "text": found.landmark.text,
        "author": found.landmark.author,
        "at": found.landmark.decided_at,
        "place": {"kind": _PLACES[found.place.kind], "id": found.place.id},
        "sources": [source_values(each) for each in found.messages],
    }

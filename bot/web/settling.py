"""Accept, amend or retire a decision of a room or a project, in one request."""

import uuid
from collections.abc import Awaitable, Callable

from fastapi import Response

from bot.web.call import IS_REPLAYED, ApiCall, Event
from bot.web.json_answer import json_answer
from bot.web.shapes.remembered import DecisionUpdate, decision_values
from composer.people import decisions
from composer.people.decisions import DecidingIn
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess

Placed = Callable[[Transaction, EntryAccess], Awaitable[DecidingIn]]


async def settled_decision(call: ApiCall, placed: Placed, id: uuid.UUID, sent: DecisionUpdate) -> Response:
    """The decision as it is then, or its new version. `placed` finds the room or the project."""

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, Response]:
        place = await placed(tx, access)
        landmark = await decisions.settle(tx, access, place, id, sent.wanted, event.id, call.now)
        return landmark.id, await _shown(tx, access, call, place, landmark.id)

    async def again(tx: Transaction, access: EntryAccess, event: Event, made: uuid.UUID) -> Response:
        return await _shown(tx, access, call, await placed(tx, access), made)

    found, repeated = await call.once(make, again)
    if repeated:
        found.headers.update(IS_REPLAYED)
    return found


async def _shown(tx: Transaction, access: EntryAccess, call: ApiCall, place: DecidingIn, id: uuid.UUID) -> Response:
    decision = await decisions.decision_of(tx, access, place, id, call.now)
    sources = await decisions.messages_of(tx, access, place.readable, [decision.landmark])
    return json_answer(decision_values(decision, sources))

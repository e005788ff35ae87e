"""The buttons of a decision, on the boards of rooms and projects and on the page of what waits."""

import uuid
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import Form
from fastapi.responses import RedirectResponse

from bot.web.pages.viewer import Reading, Viewer
from composer.memory.remember import MAX_STATEMENT_CHARS
from composer.people import decisions
from composer.people.decisions import DecidingIn, PlaceOfDecisions
from composer.people.remembered import decisions_of
from composer.repositories.database import Transaction
from composer.repositories.landmarks import LandmarkState
from composer.visibility import EntryAccess


class DecisionAct(StrEnum):
    """What is done with a decision."""

    ACCEPT = "accept"
    AMEND = "amend"
    RETIRE = "retire"


class DecidedOn(StrEnum):
    """The page on which that is done, which is shown again then."""

    BOARD = "board"
    WAITING = "waiting"


DECLINED: Final = "decline"  # what was done on the page of what waits, with an invitation


ActOnDecision = Annotated[DecisionAct, Form()]
NewText = Annotated[str, Form(max_length=MAX_STATEMENT_CHARS)]
DecidedThere = Annotated[DecidedOn, Form()]


async def settle(
    viewer: Viewer, tx: Transaction, access: EntryAccess, place: DecidingIn, id: uuid.UUID, act: DecisionAct, text: str
) -> None:
    """Do it, by the rights of who looks at the page."""
    states = {DecisionAct.ACCEPT: LandmarkState.PINNED, DecisionAct.RETIRE: LandmarkState.RETIRED}
    await decisions.settle(tx, access, place, id, states.get(act, text), uuid.uuid4().hex, viewer.call.now)


def back_to(page: DecidedOn, kind: PlaceOfDecisions, id: uuid.UUID, act: DecisionAct) -> RedirectResponse:
    """The page on which it was done: that of what waits says what was, and leads to the room or project."""
    waiting = f"/waiting?done={act}&{kind}={id}"
    return RedirectResponse(waiting if page is DecidedOn.WAITING else f"/{kind}s/{id}?view=decisions", 303)


def back_from_declining(page: DecidedOn, elsewhere: str) -> RedirectResponse:
    """The page on which an invitation was declined: that of what waits, or the one `elsewhere` that lists such."""
    return RedirectResponse(f"/waiting?done={DECLINED}" if page is DecidedOn.WAITING else elsewhere, 303)


async def board_values(viewer: Viewer, reading: Reading, place: DecidingIn) -> dict[str, Any]:
    """What a board shows."""
    board = await decisions_of(reading.tx, reading.access, place.readable, viewer.call.now)
    found = (each.landmark for each in (*board.proposed, *board.current))
    sources = await decisions.messages_of(reading.tx, reading.access, place.readable, found)
    return {"board": board, "place": place, "sources": sources, "zone": viewer.zone}

"""Facts and decisions of a room or a project, as the API shows them."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_core import from_json

from composer.people.remembered import Decision, DecisionBoard
from composer.repositories.facts import Fact


class FactResponse(BaseModel):
    """An exact value under a key: as JSON, with who set it, and from when to when it holds (`until` null: it does
    now)."""

    id: uuid.UUID
    key: str
    value: Any
    author: str
    since: datetime
    until: datetime | None


class FactList(BaseModel):
    """Facts by key; of one key's history, oldest first."""

    items: list[FactResponse]


class DecisionResponse(BaseModel):
    """A decision (a landmark). `state`: it is proposed, until somebody accepts it; it holds; or it was replaced by
    another version, was retired, or lapsed since nobody accepted it. `settled_by`: who accepted, amended or retired it.
    `replaces`: the id of the version before it. `messages`: the ids, on the chat platform, of those that it was found
    in."""

    id: uuid.UUID
    text: str
    author: str
    decided_at: datetime
    state: Literal["proposed", "current", "replaced", "retired", "lapsed"]
    settled_by: str | None
    replaces: uuid.UUID | None
    messages: list[str]


class DecisionList(BaseModel):
    """Decisions, latest first: those that hold, those that are proposed, and up to 50 that hold no more."""

    items: list[DecisionResponse]


def fact_list(found: Sequence[Fact]) -> dict[str, Any]:
    """Facts as FactList shows them."""
    return {
        "items": [
            {
                "id": each.id,
                "key": each.key,
                "value": from_json(each.value),
                "author": each.author,
                "since": each.valid_from,
                "until": each.valid_to,
            }
            for each in found
        ]
    }


def decision_list(board: DecisionBoard) -> dict[str, Any]:
    """A board as DecisionList shows it."""
    shown = [
        *(_decision(each, "current") for each in board.current),
        *(_decision(each, "proposed") for each in board.proposed),
        *(_decision(each, each.ended) for each in board.past),
    ]
    return {"items": shown}


def _decision(decision: Decision, state: str) -> dict[str, Any]:
    landmark = decision.landmark
    return {
        "id": landmark.id,
        "text": landmark.text,
        "author": landmark.author,
        "decided_at": landmark.decided_at,
        "state": state,
        "settled_by": landmark.settled_by,
        "replaces": landmark.replaces,
        "messages": list(landmark.messages),
    }

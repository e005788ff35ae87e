"""Facts and decisions of a room or a project, as the API shows them."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import from_json

from bot.web.links import message_link
from bot.web.shapes.entries import RequestBody
from composer.memory.remember import MAX_STATEMENT_CHARS
from composer.people.remembered import Decision, DecisionBoard
from composer.repositories.facts import Fact
from composer.repositories.landmarks import LandmarkMessage, LandmarkState

DecisionSources = Mapping[uuid.UUID, Sequence[LandmarkMessage]]


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


class DecisionSource(BaseModel):
    """A message that a decision was found in. `uploaded_by`: the admin from whose file it came (empty: from none).
    `link` leads to it on Discord or Slack (null: it has none)."""

    id: uuid.UUID
    author: str
    text: str
    at: datetime
    uploaded_by: str
    link: str | None


class DecisionResponse(BaseModel):
    """A decision (a landmark). `state`: it is proposed, until somebody accepts it; it holds; or it was replaced by
    another version, was retired, or lapsed since nobody accepted it. `settled_by`: who accepted, amended or retired it.
    `replaces`: the id of the version before it. `messages`: the ids, on the chat platform, of those that it was found
    in; `sources`: those of these that may be read here, but of people who opted out."""

    id: uuid.UUID
    text: str
    author: str
    decided_at: datetime
    state: Literal["proposed", "current", "replaced", "retired", "lapsed"]
    settled_by: str | None
    replaces: uuid.UUID | None
    messages: list[str]
    sources: list[DecisionSource]


class DecisionUpdate(RequestBody):
    """What to do with a decision: accept a proposed one (`current`), reject or retire it, or amend it by the text of a
    new version. One of both."""

    state: Literal["current", "retired"] | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_STATEMENT_CHARS)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.state is None) == (self.text is None):
            raise ValueError("say the state that the decision is to have, or the text of its new version")
        return self

    @property
    def wanted(self) -> LandmarkState | str:
        """For composer.people.decisions.settle."""
        return self.text or _STATES[self.state or "retired"]


_STATES: Final = {"current": LandmarkState.PINNED, "retired": LandmarkState.RETIRED}


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


def decision_list(board: DecisionBoard, sources: DecisionSources) -> dict[str, Any]:
    """A board as DecisionList shows it."""
    return {
        "items": [decision_values(each, sources) for each in (*board.current, *board.proposed, *board.past)],
    }


def decision_values(decision: Decision, sources: DecisionSources) -> dict[str, Any]:
    """A decision as DecisionResponse shows it."""
    landmark = decision.landmark
    proposed = landmark.state is LandmarkState.PROPOSED
    state = decision.ended or ("proposed" if proposed else "current")
    found_in = sources.get(landmark.id, ())
    return {
        "id": landmark.id,
        "text": landmark.text,
        "author": landmark.author,
        "decided_at": landmark.decided_at,
        "state": state,
        "settled_by": landmark.settled_by,
        "replaces": landmark.replaces,
        "messages": list(landmark.messages),
        "sources": [source_values(each) for each in found_in],
    }


def source_values(message: LandmarkMessage) -> dict[str, Any]:
    """A message as DecisionSource shows it."""
    return {
        "id": message.id,
        "author": message.author,
        "text": message.text,
        "at": message.at,
        "uploaded_by": message.uploaded_by,
        "link": message_link(message.address),
    }

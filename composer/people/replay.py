"""Compose the prompt of an earlier answer again, as of then, and say where and why it differs. No text is shown.

Messages, facts, landmarks and memories are taken as of the question; who may read what is judged as it is now.
"""

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from composer.errors import NotFound
from composer.model import Agent
from composer.ports.memberships import Presence
from composer.prompt.sections import CONTEXT, MESSAGE, SYSTEM, TOOLS, WORKING
from composer.repositories.database import Database, Transaction
from composer.repositories.explanations import SourceState
from composer.turn.compose import Composer
from composer.turn.explanation import explain_stored
from composer.turn.memberships import Memberships
from composer.turn.reading import PromptRequest, presence_of_asker

SAME: Final = "same"
DIFFERENT: Final = "different"
SOURCE_NOT_STORED: Final = "not stored"

SOURCE_ERASED: Final = "erased: forgotten, or deleted on the platform"
EDITED: Final = "edited or replaced since"
MOVED: Final = "filed elsewhere by its owner since"
HIDDEN: Final = "may not be read there now: a membership, a project or the room's privacy changed"
REMADE: Final = "made anew since, as summaries are"
OUTRANKED: Final = "no longer among the best: more is indexed now"
LATER: Final = "made or indexed after the answer"
READABLE_SINCE: Final = "may be read there now, and was not in the prompt then"
SETTING_CHANGED: Final = "an admin changed a setting since"
_OF_SECTION: Final[Mapping[str, str]] = {
    SYSTEM: "the agent's instructions or the rules changed",
    CONTEXT: "a name, the room, its project or the time zone changed",
    MESSAGE: EDITED,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A section that differs, and how many of its sources do so for which reason."""

    section: str
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of composing a turn again. `result` is `same`, `different` or `not stored`; then `note` says why."""

    turn: uuid.UUID
    result: str
    differences: tuple[Difference, ...] = ()
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The result in the format of `nexus replay --json`."""
        sections = [
            {"section": each.section, "reasons": [{"reason": why, "sources": count} for why, count in each.reasons]}
            for each in self.differences
        ]
        return {"turn": str(self.turn), "result": self.result, "differences": sections, "note": self.note}


async def replay(
    database: Database,
    composer: Composer,
    memberships: Memberships,
    agents: Mapping[uuid.UUID, Agent],
    turn: uuid.UUID,
    tenant: uuid.UUID,
) -> Replay:
    """Compose the prompt of a turn again and compare. Raises NotFound for a turn that is unknown, or unanswered."""
    async with database.transaction(tenant, "read") as tx:
        stored = await tx.turns.get(turn)
        if stored is None or stored.answered_at is None:
            raise NotFound(f"There is no answered turn {turn}; /nexus why shows the id of an answer's turn.")
        question = stored.question
        if stored.prompt is None or question is None or question.user_id is None:
            return Replay(turn, SOURCE_NOT_STORED, note=await _why_not_stored(tx, turn))
    agent = agents.get(stored.turn.agent_id)
    if agent is None:
        return Replay(turn, SOURCE_NOT_STORED, note="Its agent is no longer configured.")
    before: dict[str, Any] = json.loads(stored.prompt)
    request = PromptRequest(tenant, stored.turn.conversation_id, question.user_id, agent, question)
    try:
        now = (await composer.compose(request)).prompt.as_json()
    except NotFound:  # the asker may not be there any more
        return Replay(turn, DIFFERENT, _all_hidden(before))
    presence = await presence_of_asker(memberships, request)
    async with database.transaction(tenant, "read") as tx:
        differences = await _differences(tx, request, before, now, stored.answered_at, presence)
    return Replay(turn, DIFFERENT if differences else SAME, tuple(differences))


async def _why_not_stored(tx: Transaction, turn: uuid.UUID) -> str:
    edited = await tx.explanations.edited_sources(turn)
    if edited:
        return f"Its prompt was cleared because {edited} of the messages in it were edited since."
    return "Its prompt was cleared: something in it was erased since, or it has expired."


def _all_hidden(before: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Each section that was made of something, for an asker who may not be there any more: they read nothing of it."""
    made = (section for section in before["sections"] if section["sources"] and section["name"] != TOOLS)
    return tuple(Difference(each["name"], ((HIDDEN, len(each["sources"])),)) for each in made)


async def _differences(
    tx: Transaction,
    request: PromptRequest,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    answered_at: datetime,
    presence: Presence,
) -> list[Difference]:
    """The sections whose text differs, each with its reasons."""
    then, again = _by_name(before), _by_name(now)
    then.pop(TOOLS, None)  # calls of the model while it answered, of which a prompt that is composed again has none
    differing = [name for name in then if then[name]["text"] != again.get(name, {}).get("text", "")]
    if not differing:
        return []
    access = await tx.conversations.access_context(
        request.conversation_id, request.asker, request.message.trust, presence
    )
    readable: set[str] = set()
    try:
        if access is not None:
            explanation = await explain_stored(tx, access, json.dumps(before))
            readable = {str(source.id) for section in explanation.sections for source in section.sources}
    except NotFound:
        pass  # the asker may not be there any more: nothing of it is readable
    ids = {source["id"] for name in differing for part in (then, again) for source in part[name]["sources"]}
    states = await tx.explanations.states([uuid.UUID(id) for id in sorted(ids)])
    settings = await tx.settings.changed_since(answered_at)
    known = {source["id"] for section in before["sections"] for source in section["sources"]}
    return [
        _difference(then[name], again[name], states, readable, known, answered_at, settings=settings)
        for name in differing
    ]


def _difference(
    then: Mapping[str, Any],
    again: Mapping[str, Any],
    states: Mapping[uuid.UUID, SourceState],
    readable: set[str],
    known: set[str],
    answered_at: datetime,
    *,
    settings: bool,
) -> Difference:
    old, new = ({source["id"]: source for source in section["sources"]} for section in (then, again))
    reasons: Counter[str] = Counter()
    for id, source in old.items():
        if id not in new:
            reasons[_why_missing(source, states[uuid.UUID(id)], id in readable, answered_at)] += 1
        elif _changed_since(states[uuid.UUID(id)], answered_at):
            reasons[EDITED] += 1
    for id in new.keys() - known:
        made = states[uuid.UUID(id)].made_at
        reasons[LATER if made is not None and made > answered_at else READABLE_SINCE] += 1
    if settings and then["name"] not in (SYSTEM, CONTEXT, MESSAGE, WORKING):
        reasons[SETTING_CHANGED] += 1
    if not reasons:
        reasons[_OF_SECTION.get(then["name"], "the same sources in other words or another order")] += 1
    return Difference(then["name"], tuple(sorted(reasons.items())))


def _why_missing(source: Mapping[str, Any], state: SourceState, readable: bool, answered_at: datetime) -> str:
    if not state.present:
        return SOURCE_ERASED if state.erased else REMADE
    if (state.namespace, state.visibility) != (source["namespace"], source["visibility"]):
        return MOVED
    if not readable:
        return HIDDEN
    return EDITED if _changed_since(state, answered_at) else OUTRANKED


def _changed_since(state: SourceState, answered_at: datetime) -> bool:
    return state.changed_at is not None and state.changed_at > answered_at


def _by_name(prompt: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    sections: Sequence[Mapping[str, Any]] = prompt["sections"]
    return {section["name"]: section for section in sections}

"""What waits for approval in rooms, projects and somebody's own DMs and sessions, and which decisions are proposed
there, for whoever may approve or accept it, away from the chat: by the rights and the functions of
`/nexus memory pending` and `/nexus landmark`."""

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from composer import visibility
from composer.entries import entries
from composer.entries.draft import SentEntry
from composer.entries.entries import Writer
from composer.entries.namesakes import Labels
from composer.errors import NotFound
from composer.memory import review
from composer.memory.forget import Receipt
from composer.memory.remember import Author, add_landmark, parse_value, remember, set_fact
from composer.model import API, Trust, project_namespace
from composer.people.decisions import WaitingDecision, settle, waiting_decisions, waiting_readable
from composer.ports.memberships import Presence
from composer.repositories.conversations import PersonInFrame
from composer.repositories.database import Transaction
from composer.repositories.entries import values_from_json
from composer.repositories.landmarks import LandmarkState
from composer.repositories.quarantine import PendingItem
from composer.visibility import AccessTag, EntryAccess, JoinedRoom

MAX_DECIDED: Final = 200  # things at once
NOTHING_WAITS: Final = "Nothing waits with that id for your approval: somebody has decided about it, or it was erased."


class ReviewAct(StrEnum):
    """What is done with something that waits. AMEND: it goes, and words of who decides are stored in its place."""

    APPROVE = "approve"
    AMEND = "amend"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """Something that waits; `room` is the room that it was written in, `project` the one that it was written for, or
    whose session it was written in; both None for what is the person's own. `own`: it was written in a DM or session of
    theirs."""

    item: PendingItem
    room: JoinedRoom | None
    project: uuid.UUID | None
    own: bool


@dataclass(frozen=True, slots=True)
class AllWaiting:
    """All that waits for somebody, oldest first: `items`, and the `decisions` that are proposed."""

    items: Sequence[WaitingItem]
    decisions: Sequence[WaitingDecision]


async def waiting(
    tx: Transaction, access: EntryAccess, presence: Presence, quarantine: Collection[Trust], now: datetime
) -> AllWaiting:
    """`_waits`, with what its authors are called there."""
    found = await _waits(tx, access, presence, quarantine, now)
    people: list[tuple[str, uuid.UUID | None]] = [(each.item.author, each.item.user_id) for each in found.items]
    people += [(each.landmark.author, each.landmark.user_id) for each in found.decisions]
    labels = Labels(access, people)

    def item(waiting: WaitingItem) -> WaitingItem:
        it = waiting.item
        return replace(waiting, item=replace(it, author=labels(it.author, it.user_id)))

    def decision(waiting: WaitingDecision) -> WaitingDecision:
        it = waiting.landmark
        return replace(waiting, landmark=replace(it, author=labels(it.author, it.user_id)))

    return AllWaiting([item(each) for each in found.items], [decision(each) for each in found.decisions])


async def _waits(
    tx: Transaction, access: EntryAccess, presence: Presence, quarantine: Collection[Trust], now: datetime
) -> AllWaiting:
    """What waits of the person's own entries, in their own DMs and sessions, and in the rooms and projects that they
    are an admin of, and the proposed decisions that they may accept. `presence`: which rooms their platforms say these
    are; `quarantine`: whose writes wait. Raises Refused for a tool."""
    visibility.owned_by_bearer(access)
    person = await tx.conversations.in_frame(access.users, presence, now)
    items = await _waiting_items(tx, access, person)
    return AllWaiting(items, await waiting_decisions(tx, access, person, quarantine, now))


async def _waiting_items(tx: Transaction, access: EntryAccess, person: PersonInFrame) -> Sequence[WaitingItem]:
    found = await tx.quarantine.find_pending(
        visibility.decidable_items(access, person.rooms, person.trust, person.talks)
    )
    rooms = {room.namespace: room for room in person.rooms}
    projects = {project_namespace(each.id): each.id for each in access.projects}
    projects |= {
        talk.member.namespace: talk.project for talk in person.talks if not talk.own and talk.project is not None
    }
    own = {talk.member.namespace for talk in person.talks if talk.own}
    return [
        WaitingItem(item, rooms.get(item.namespace), projects.get(item.namespace), item.namespace in own)
        for item in found
    ]


async def count_waiting(
    tx: Transaction, access: EntryAccess, person: PersonInFrame, quarantine: Collection[Trust], now: datetime
) -> int:
    """How much `waiting` lists, and how many invitations to teams and projects the person has."""
    reviewable = visibility.decidable_items(access, person.rooms, person.trust, person.talks)
    decidable = waiting_readable(access, person, quarantine)
    return await tx.quarantine.count(reviewable, decidable, access.users, now)


async def decide(
    tx: Transaction,
    access: EntryAccess,
    presence: Presence,
    id: uuid.UUID,
    act: ReviewAct,
    text: str,
    writer: Writer,
    event: str,
    now: datetime,
) -> tuple[WaitingItem | WaitingDecision, Receipt]:
    """Approve, amend or reject something of `waiting`, in a transaction that is alone. `text` is what is stored in
    place of what is amended (of a fact: its value), by its `writer`, who decides; `event` identifies the request. The
    caller gives the receipt to `app.forgotten` after the commit. Raises NotFound, BadInput when it was decided
    meanwhile, for an entry as `composer.entries.entries.write`, and for a decision as
    `composer.people.decisions.settle`."""
    waits = await _waits(tx, access, presence, writer.quarantined, now)
    return await _decide(tx, access, waits, id, act, text, writer, event, now)


async def decide_all(
    tx: Transaction,
    access: EntryAccess,
    presence: Presence,
    ids: Collection[uuid.UUID],
    act: ReviewAct,
    writer: Writer,
    event: str,
    now: datetime,
) -> Sequence[Receipt]:
    """Approve or reject those of these things that still wait, all or none, in a transaction that is alone, with a
    receipt of each for `app.forgotten`. What was decided meanwhile stays so. Raises as `decide`."""
    waits = await _waits(tx, access, presence, writer.quarantined, now)
    chosen = frozenset(ids)
    waiting_ids = [*(each.item.id for each in waits.items), *(each.landmark.id for each in waits.decisions)]
    wanted = [id for id in waiting_ids if id in chosen]
    return [(await _decide(tx, access, waits, id, act, "", writer, event, now))[1] for id in wanted]


async def _decide(
    tx: Transaction,
    access: EntryAccess,
    waits: AllWaiting,
    id: uuid.UUID,
    act: ReviewAct,
    text: str,
    writer: Writer,
    event: str,
    now: datetime,
) -> tuple[WaitingItem | WaitingDecision, Receipt]:
    decision = next((each for each in waits.decisions if each.landmark.id == id), None)
    if decision is not None:
        wanted = {ReviewAct.APPROVE: LandmarkState.PINNED, ReviewAct.REJECT: LandmarkState.RETIRED}.get(act, text)
        await settle(tx, access, decision.place, id, wanted, event, now)
        return decision, Receipt()
    found = next((each for each in waits.items if each.item.id == id), None)
    if found is None:
        raise NotFound(NOTHING_WAITS)
    item = found.item
    if act is ReviewAct.APPROVE:
        await review.approve(tx, item, now)
        return found, Receipt()
    receipt = await review.reject(tx, item, now)
    if act is ReviewAct.AMEND:
        if item.entry is not None:
            there = replace(access, project=found.project)
            await entries.write(tx, there, _amended(item, text), writer, event, now)
            return found, receipt
        tag, author = AccessTag(item.namespace, item.visibility, access.user), Author(access.name)
        if item.kind == "landmark":
            await add_landmark(tx, tag, text, author, API, event, now)
        elif item.kind == "fact":
            await set_fact(tx, tag, item.detail, _value(text), author, API, event, now)
        else:
            await remember(tx, tag, text, author, API, event, now)
    return found, receipt


def _amended(item: PendingItem, text: str) -> SentEntry:
    """An entry with other words: of its kind, with its tags, for the tools that might have read it, until its day."""
    assert item.entry is not None
    values = values_from_json(item.text, item.detail, item.entry)
    return SentEntry(
        content=text,
        kind=values.kind,
        tags=values.tags,
        metadata=values.metadata,
        vendors=values.vendors,
        expires_at=values.expires_at,
    )


def _value(text: str) -> str:
    """A fact's value as JSON, of what somebody typed: what is none is a text."""
    try:
        parse_value(text)
    except json.JSONDecodeError:
        return json.dumps(text.strip())
    except ValueError:
        return text  # a number that can't be kept: `set_fact` says so
    return text

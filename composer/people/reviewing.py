"""What waits for approval in rooms and projects, for whoever may approve it there, away from the chat: by the rights
and the functions of `/nexus memory pending`."""

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from composer import visibility
from composer.errors import NotFound
from composer.memory import review
from composer.memory.forget import Receipt
from composer.memory.remember import Author, add_landmark, parse_value, remember, set_fact
from composer.model import API, Trust
from composer.people.decisions import waiting_readable
from composer.ports.memberships import Presence
from composer.repositories.conversations import PersonInFrame
from composer.repositories.database import Transaction
from composer.repositories.quarantine import PendingItem
from composer.visibility import AccessTag, EntryAccess, JoinedRoom

NOTHING_WAITS: Final = "Nothing waits with that id for your approval: somebody has decided about it, or it was erased."


class ReviewAct(StrEnum):
    """What is done with something that waits. AMEND: it goes, and words of who decides are stored in its place."""

    APPROVE = "approve"
    AMEND = "amend"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """Something that waits; `room` is the room that it was written in, None for what is the person's own, or was
    written for a project."""

    item: PendingItem
    room: JoinedRoom | None


async def waiting_items(tx: Transaction, access: EntryAccess, presence: Presence) -> Sequence[WaitingItem]:
    """What waits of the person's own entries, and in the rooms and projects that they are an admin of, oldest first.
    `presence`: which rooms their platforms say these are. Raises Refused for a tool."""
    visibility.owned_by_bearer(access)
    trust = await tx.people.least_trust(access.users)
    rooms = await tx.conversations.rooms_joined(access.users, presence)
    by_namespace = {room.namespace: room for room in rooms}
    found = await tx.quarantine.find_pending(visibility.decidable_items(access, rooms, trust))
    return [WaitingItem(item, by_namespace.get(item.namespace)) for item in found]


async def count_waiting(
    tx: Transaction, access: EntryAccess, person: PersonInFrame, quarantine: Collection[Trust], now: datetime
) -> int:
    """How much waits for the person: of `waiting_items`, and of proposed decisions
    (composer.people.decisions.waiting_decisions)."""
    reviewable = visibility.decidable_items(access, person.rooms, person.trust)
    decidable = waiting_readable(access, person.rooms, person.trust, quarantine)
    return await tx.quarantine.count(reviewable, decidable, now)


async def decide(
    tx: Transaction,
    access: EntryAccess,
    presence: Presence,
    id: uuid.UUID,
    act: ReviewAct,
    text: str,
    event: str,
    now: datetime,
) -> tuple[WaitingItem, Receipt]:
    """Approve, amend or reject one of `waiting_items`, in a transaction that is alone. `text` is what is stored in
    place of what is amended (of a fact: its value), and `event` identifies the request. The caller gives the receipt to
    `app.forgotten` after the commit. Raises NotFound, and BadInput when it was decided meanwhile."""
    found = next((each for each in await waiting_items(tx, access, presence) if each.item.id == id), None)
    if found is None:
        raise NotFound(NOTHING_WAITS)
    item = found.item
    if act is ReviewAct.APPROVE:
        await review.approve(tx, item, now)
        return found, Receipt()
    receipt = await review.reject(tx, item, now)
    if act is ReviewAct.AMEND:
        if item.entry is not None:
            raise NotFound(NOTHING_WAITS)  # no form of ours asks for it
        tag, author = AccessTag(item.namespace, item.visibility, access.user), Author(access.name)
        if item.kind == "landmark":
            await add_landmark(tx, tag, text, author, API, event, now)
        elif item.kind == "fact":
            await set_fact(tx, tag, item.detail, _value(text), author, API, event, now)
        else:
            await remember(tx, tag, text, author, API, event, now)
    return found, receipt


def _value(text: str) -> str:
    """A fact's value as JSON, of what somebody typed: what is none is a text."""
    try:
        parse_value(text)
    except json.JSONDecodeError:
        return json.dumps(text.strip())
    except ValueError:
        return text  # a number that can't be kept: `set_fact` says so
    return text

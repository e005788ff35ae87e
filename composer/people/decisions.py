"""Decisions of rooms and projects, as whoever looks into these may accept, amend and retire them: by the rights and the
functions of `/nexus landmark`."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from composer import visibility
from composer.entries.namesakes import told_apart
from composer.errors import NexusError, NotFound, Refused
from composer.memory.remember import amend_landmark, set_landmark_state
from composer.model import Conversation, ConversationKind, Trust, project_namespace
from composer.people.projects.projects import require_writing
from composer.people.remembered import Decision, decisions_of, readable_of_project
from composer.people.rooms import room_of
from composer.ports.memberships import Presence
from composer.repositories.conversations import PersonInFrame
from composer.repositories.database import Transaction
from composer.repositories.landmarks import Landmark, LandmarkMessage, LandmarkState
from composer.rights.project_names import distinct_names
from composer.rights.relations import ActorFacts, Facts, MembershipFacts
from composer.rights.table import Act, judge
from composer.turn.explanation import uploaders_of
from composer.visibility import AccessContext, EntryAccess, JoinedRoom, PoolMember, Readable

UNKNOWN_DECISION: Final = "There is no such decision here that is proposed or holds."
_GUESTS_REFUSED: Final = "Guests can't change what is pinned: ask a member of this workspace."


class PlaceOfDecisions(StrEnum):
    """Where decisions are kept that people see on pages. TALK: a DM or session of their own."""

    ROOM = "room"
    PROJECT = "project"
    TALK = "talk"


@dataclass(frozen=True, slots=True)
class DecidingIn:
    """A room, a project or a DM or session of their own in which somebody decides: what they may read there, and what
    they are to it. `id`: of a room or a project. `trusted`: what they write does not wait for approval."""

    kind: PlaceOfDecisions
    id: uuid.UUID | None
    name: str
    readable: Readable
    facts: ActorFacts | MembershipFacts
    users: Collection[uuid.UUID]
    trusted: bool

    def may_accept(self, landmark: Landmark) -> bool:
        """Whether they may accept a decision that is kept there."""
        return landmark.state is LandmarkState.PROPOSED and self._may(Act.ACCEPT_LANDMARK, landmark)

    def may_settle(self, landmark: Landmark) -> bool:
        """Whether they may amend and retire one."""
        return self._may(Act.SETTLE_LANDMARK, landmark)

    def _may(self, act: Act, landmark: Landmark) -> bool:
        try:
            self.require(act, landmark)
        except NexusError:
            return False
        return True

    def require(self, act: Act, landmark: Landmark) -> None:
        """Return if they may. Raises as `composer.rights.table.judge`, and Refused for a guest."""
        judge((act,), self._about(landmark))
        if not self.trusted:
            raise Refused(_GUESTS_REFUSED)

    def _about(self, landmark: Landmark) -> Facts:
        proposed = landmark.state is LandmarkState.PROPOSED
        if isinstance(self.facts, ActorFacts):
            return replace(self.facts, item=landmark, proposed=proposed)
        return replace(self.facts, item=landmark, authored=proposed or landmark.user_id in self.users)


@dataclass(frozen=True, slots=True)
class WaitingDecision:
    """A proposed decision that somebody may accept or reject, where that is, and the messages that it was found in, as
    far as they may read them there."""

    landmark: Landmark
    place: DecidingIn
    messages: Sequence[LandmarkMessage] = field(default=())


async def in_room(
    tx: Transaction,
    access: EntryAccess,
    id: uuid.UUID,
    presence: Presence,
    quarantine: Collection[Trust],
    now: datetime,
) -> DecidingIn:
    """A room that the person is in. `presence`: in which private rooms their platforms say that they are; `quarantine`:
    whose writes wait for approval. Raises NotFound for any other room."""
    room, readable = await room_of(tx, access, id, presence, now)
    facts = _of_room(access, id, room.name, room.namespace, private=room.private, managed=room.managed)
    trusted = await tx.people.least_trust(access.users) not in quarantine
    return DecidingIn(PlaceOfDecisions.ROOM, id, room.name, readable, facts, access.users, trusted)


async def in_project(tx: Transaction, access: EntryAccess, id: uuid.UUID, quarantine: Collection[Trust]) -> DecidingIn:
    """A project of the person's. Raises NotFound for any other."""
    readable, project = readable_of_project(access, id), visibility.readable_project(access, id)
    if project is not None:
        admins, _ = await tx.projects.admins(id, access.user)
        project = replace(project, admins=admins)
    facts = MembershipFacts(project, str(id))
    trusted = await tx.people.least_trust(access.users) not in quarantine
    name = "" if project is None else project.slug
    return DecidingIn(PlaceOfDecisions.PROJECT, id, name, readable, facts, access.users, trusted)


async def settle(
    tx: Transaction,
    access: EntryAccess,
    place: DecidingIn,
    id: uuid.UUID,
    wanted: LandmarkState | str,
    event: str,
    now: datetime,
) -> Landmark:
    """Accept (PINNED) or retire (RETIRED) a decision of a place, or amend it: then `wanted` is the text of its new
    version, which is returned, and `event` identifies the request. Raises NotFound where it is not proposed and does
    not hold, BadInput where it was settled meanwhile, and Refused for what the person may not do."""
    found = [each for each in await tx.landmarks.find(place.readable, now) if place.readable.admits(each)]
    landmark = next((each for each in found if each.id == id), None)
    if landmark is None:
        raise NotFound(UNKNOWN_DECISION)
    place.require(Act.ACCEPT_LANDMARK if wanted is LandmarkState.PINNED else Act.SETTLE_LANDMARK, landmark)
    if place.kind is PlaceOfDecisions.PROJECT and place.id is not None:
        require_writing(access, place.id)
    if isinstance(wanted, LandmarkState):
        await set_landmark_state(tx, landmark, wanted, access.name, now)
        return landmark
    return await amend_landmark(tx, landmark, wanted, access.name, access.user, event, now)


async def decision_of(
    tx: Transaction, access: EntryAccess, place: DecidingIn, id: uuid.UUID, now: datetime
) -> Decision:
    """A decision of a place, also one that holds no more. Raises NotFound."""
    board = await decisions_of(tx, access, place.readable, now, most=None)
    decision = next((each for each in board.all if each.landmark.id == id), None)
    if decision is None:
        raise NotFound(UNKNOWN_DECISION)
    return decision


async def waiting_decisions(
    tx: Transaction, access: EntryAccess, person: PersonInFrame, quarantine: Collection[Trust], now: datetime
) -> list[WaitingDecision]:
    """The proposed decisions that somebody may accept, in all of their rooms, projects, DMs and sessions, oldest first.
    Raises Refused for a tool."""
    visibility.owned_by_bearer(access)
    if await tx.people.least_trust(access.users) in quarantine:
        return []
    talks = [talk.member for talk in person.talks if talk.own]
    readable = visibility.decidable_decisions(access, person.rooms, person.trust)
    of_talks = visibility.decidable_decisions(access, (), person.trust, person.talks).within(
        [talk.namespace for talk in talks]
    )
    rooms = visibility.rooms_of_person(access, person.rooms, person.trust)
    names = distinct_names((each.id, each.slug) for each in access.projects)
    places = {room.namespace: _room_place(access, room, readable) for room in rooms}
    for each in access.projects:
        facts, namespace = MembershipFacts(each, str(each.id)), project_namespace(each.id)
        places[namespace] = DecidingIn(
            PlaceOfDecisions.PROJECT, each.id, names[each.id], readable, facts, access.users, trusted=True
        )
    places |= {talk.namespace: _talk_place(access, talk, of_talks) for talk in talks}
    found = await _proposed(tx, access, readable, places, now)
    if talks:
        found += await _proposed(tx, access, of_talks, places, now)
    return sorted(found, key=lambda each: (each.landmark.decided_at, each.landmark.id))


async def _proposed(
    tx: Transaction, access: EntryAccess, readable: Readable, places: Mapping[str, DecidingIn], now: datetime
) -> list[WaitingDecision]:
    proposed = [
        each
        for each in await tx.landmarks.find(readable, now)
        if readable.admits(each) and each.state is LandmarkState.PROPOSED
    ]
    messages = await messages_of(tx, access, readable, proposed)
    return [WaitingDecision(each, places[each.namespace], messages.get(each.id, ())) for each in proposed]


def waiting_readable(access: EntryAccess, person: PersonInFrame, quarantine: Collection[Trust]) -> Readable:
    """Where `waiting_decisions` looks; nowhere for whose own writing waits for approval."""
    if person.trust in quarantine:
        return visibility.readable_rooms(access, (), person.trust)
    return visibility.decidable_decisions(access, person.rooms, person.trust, person.talks)


async def messages_of(
    tx: Transaction, access: EntryAccess, readable: Readable, landmarks: Iterable[Landmark]
) -> Mapping[uuid.UUID, Sequence[LandmarkMessage]]:
    """The messages that landmarks were found in, oldest first, by landmark."""
    found = defaultdict[uuid.UUID, list[LandmarkMessage]](list)
    messages = told_apart(access, await tx.landmarks.messages(readable, [each.id for each in landmarks]))
    uploaders = await uploaders_of(tx, {each.id for each in messages})
    for message in messages:
        found[message.landmark_id].append(replace(message, uploaded_by=uploaders.get(message.id, "")))
    return found


def _room_place(access: EntryAccess, room: JoinedRoom, readable: Readable) -> DecidingIn:
    assert room.room_id is not None  # of those that are read from the database
    facts = _of_room(access, room.room_id, room.name, room.namespace, private=room.private, managed=room.managed)
    return DecidingIn(PlaceOfDecisions.ROOM, room.room_id, room.name, readable, facts, access.users, trusted=True)


def _talk_place(access: EntryAccess, talk: PoolMember, readable: Readable) -> DecidingIn:
    """A DM or session of the person's own. Its id is not judged by."""
    conversation = Conversation(
        access.user, access.tenant_id, talk.kind, "", talk.namespace, private=True, user_id=access.user
    )
    linked = {access.user: access.linked} if access.linked else {}
    facts = ActorFacts(AccessContext(conversation, access.user, linked=linked))
    return DecidingIn(PlaceOfDecisions.TALK, None, "", readable, facts, access.users, trusted=True)


def _of_room(
    access: EntryAccess, id: uuid.UUID, name: str, namespace: str, *, private: bool, managed: bool
) -> ActorFacts:
    """What somebody is to a room that they are in."""
    conversation = Conversation(id, access.tenant_id, ConversationKind.ROOM, name, namespace, private, id)
    linked = {access.user: access.linked} if access.linked else {}
    return ActorFacts(AccessContext(conversation, access.user, joined=True, linked=linked), room_admin=managed)

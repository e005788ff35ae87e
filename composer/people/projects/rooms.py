"""Put a room into a project, or take it out, away from the chat: by the rights of `/nexus project assign`, with what it
opens to whom said first."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from composer import visibility
from composer.errors import BadInput, Conflict, NexusError, NotFound
from composer.model import Conversation, ConversationKind
from composer.people.projects.projects import own_projects, require_writing
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.rights.project_names import distinct_names
from composer.rights.relations import ActorFacts
from composer.rights.table import Act, judge, opening
from composer.visibility import AccessContext, EntryAccess, JoinedRoom, ProjectFacts

UNKNOWN_ROOM: Final = "There is no such room: you are not in it and no admin of it, or it is not there."
IN_NO_PROJECT: Final = "This room is in no project."


@dataclass(frozen=True, slots=True)
class Move:
    """A room that is to go into the project that the facts name or, where they name none, out of the one that it is in.
    `pooled`: of a private room, that project is to recall what is said in it."""

    room: JoinedRoom
    facts: ActorFacts
    pooled: bool = False

    @property
    def acts(self) -> Sequence[Act]:
        """All that it does."""
        if self.facts.named is None:
            return (Act.UNASSIGN_ROOM,)
        return (Act.ASSIGN_ROOM, Act.POOL_ROOM) if self.pooled else (Act.ASSIGN_ROOM,)

    @property
    def opens(self) -> str:
        """What it opens to whom, in sentences; empty where it opens nothing."""
        return opening(self.acts, self.facts)

    @property
    def allowed(self) -> bool:
        """Whether the person may do it."""
        try:
            self.require()
        except NexusError:
            return False
        return True

    def require(self) -> None:
        """Return if the person may do it. Raises Refused."""
        judge(self.acts, self.facts)


async def movable_rooms(tx: Transaction, access: EntryAccess, presence: Presence) -> Sequence[JoinedRoom]:
    """The rooms that a person is in and, of those that they have never spoken in (as in imported ones), the public ones
    whose admin they are as their platforms say (`presence`), by name."""
    trust = await tx.people.least_trust(access.users)
    found = [*await tx.conversations.rooms_joined(access.users, presence)]
    known = {each.room_id for each in found}
    found += [each for each in await tx.conversations.rooms_managed(presence) if each.room_id not in known]
    return sorted(visibility.rooms_of_person(access, found, trust), key=lambda room: room.name.casefold())


async def move(
    tx: Transaction,
    access: EntryAccess,
    id: uuid.UUID,
    to: uuid.UUID | None,
    presence: Presence,
    *,
    pooled: bool = False,
) -> Move:
    """A room of `movable_rooms` on its way into a project of the person's, or out of its own (None). Raises NotFound
    for others, BadInput where there is none that it could leave, and Refused where the person may not."""
    room = await movable_room(tx, access, id, presence)
    if room is None:
        raise NotFound(UNKNOWN_ROOM)
    if to is None and room.project_id is None:
        raise BadInput(IN_NO_PROJECT)
    found = Move(room, _facts(access, room, await _here(tx, access, room), to), pooled)
    if to is not None and found.facts.named is None:
        raise NotFound(visibility.unknown_project_sentence(str(to)))
    found.require()
    return found


async def movable_room(tx: Transaction, access: EntryAccess, id: uuid.UUID, presence: Presence) -> JoinedRoom | None:
    """One of `movable_rooms`."""
    return next((each for each in await movable_rooms(tx, access, presence) if each.room_id == id), None)


async def moves_of(tx: Transaction, access: EntryAccess, room: JoinedRoom) -> Sequence[Move]:
    """All that the person may do with a room: put it into one of their projects, by name, or take it out."""
    here = await _here(tx, access, room)
    others = [each.id for each in await own_projects(tx, access) if each.id != room.project_id]
    wanted = [*others, *([] if room.project_id is None else [None])]
    found = (Move(room, _facts(access, room, here, to)) for to in wanted)
    return [each for each in found if each.allowed]


async def moves_into(tx: Transaction, access: EntryAccess, project: uuid.UUID, presence: Presence) -> Sequence[Move]:
    """The rooms that the person may put into a project of theirs, by name, as they go there."""
    rooms = [each for each in await movable_rooms(tx, access, presence) if each.managed and each.project_id != project]
    here = {each: await _here(tx, access, room) for each, room in {room.project_id: room for room in rooms}.items()}
    found = (Move(room, _facts(access, room, here[room.project_id], project)) for room in rooms)
    return [each for each in found if each.allowed]


async def do_move(tx: Transaction, access: EntryAccess, wanted: Move, *, confirmed: bool) -> None:
    """Do it, in the transaction in which it was judged, which is alone. Raises Conflict, which says what it opens,
    where that is not confirmed, and Refused for a credential that may not."""
    project = wanted.facts.named
    require_writing(access, None if project is None else project.id)
    if wanted.opens and not confirmed:
        raise Conflict(wanted.opens)
    assert wanted.room.room_id is not None  # it is stored
    tx.audit.act_for(access.user)
    await tx.conversations.assign_project(
        wanted.room.room_id, None if project is None else project.id, wanted.pooled and project is not None
    )


async def _here(tx: Transaction, access: EntryAccess, room: JoinedRoom) -> ProjectFacts | None:
    """The project that a room is in, as the person is in it."""
    if room.project_id is None or room.project is None:
        return None
    admins, _ = await tx.projects.admins(room.project_id, access.user)
    own = next((each for each in access.projects if each.id == room.project_id), None)
    role = None if own is None else own.role
    return ProjectFacts(room.project_id, room.project, room.isolated, role, admins=admins)


def _facts(access: EntryAccess, room: JoinedRoom, here: ProjectFacts | None, to: uuid.UUID | None) -> ActorFacts:
    """What the person is to a room, to the project that it is in, and to one of theirs that they name."""
    assert room.room_id is not None  # it is stored
    named = None if to is None else visibility.readable_project(access, to)
    conversation = Conversation(
        room.room_id,
        access.tenant_id,
        ConversationKind.ROOM,
        room.name,
        room.namespace,
        room.private,
        room.room_id,
        project_id=room.project_id,
    )
    linked = {access.user: access.linked} if access.linked else {}
    context = AccessContext(conversation, access.user, joined=True, project=here, linked=linked)
    names = distinct_names({each.id: each.slug for each in (here, named) if each is not None}.items())
    own = () if named is None else (named,)
    return ActorFacts(context, room_admin=room.managed, named_projects=own, project_name=str(to or ""), names=names)

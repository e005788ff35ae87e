"""Who lately shared, set, decided and changed what, in a person's teams, projects and rooms: of what they may read."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer import visibility
from composer.entries.namesakes import told_apart
from composer.model import project_namespace, team_namespace
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.remembered import KeptItem
from composer.rights.project_names import distinct_names
from composer.visibility import EntryAccess

ACTIVITY_DAYS: Final = timedelta(days=30)
MAX_ACTIVITY: Final = 60


@dataclass(frozen=True, slots=True)
class Activity:
    """Something that somebody did. `kind`: written or changed (an entry), fact, decision, proposal, retired or joined.
    `user_id`: who did it, where that is known; `own`: the person themselves. `place_kind`: team, project or room;
    `place_id`: its id; `place`: its name."""

    kind: str
    at: datetime
    author: str
    user_id: uuid.UUID | None
    own: bool
    text: str
    place_kind: str
    place_id: str
    place: str


@dataclass(frozen=True, slots=True)
class _Place:
    kind: str
    id: str
    name: str


async def activity_of(
    tx: Transaction, access: EntryAccess, presence: Presence | None, now: datetime
) -> Sequence[Activity]:
    """What was done in the last 30 days, newest first, at most 60. `presence`: in which private rooms the person's
    platforms say that they are; None: of rooms nothing is shown. Nothing of isolated projects is. Raises Refused for a
    tool."""
    visibility.owned_by_bearer(access)
    since, places = now - ACTIVITY_DAYS, await _shared_places(tx, access)
    shared = visibility.readable_entries(access).within(places)
    found = await tx.remembered.changes(shared, since, now, MAX_ACTIVITY)
    if presence is not None:
        trust = await tx.people.least_trust(access.users)
        joined = await tx.conversations.rooms_joined(access.users, presence)
        rooms = [room for room in visibility.rooms_of_person(access, joined, trust) if not room.isolated]
        readable = visibility.readable_rooms(access, rooms, trust)
        found += await tx.remembered.changes(readable, since, now, MAX_ACTIVITY)
        places |= {room.namespace: _Place("room", str(room.room_id), room.name) for room in rooms}
    latest = sorted(found, key=lambda each: (each.at, str(each.id)), reverse=True)[:MAX_ACTIVITY]
    return told_apart(access, [_activity(each, places[each.namespace], access) for each in latest])


async def _shared_places(tx: Transaction, access: EntryAccess) -> dict[str, _Place]:
    """The teams, and the projects that are not isolated, by namespace."""
    teams = await tx.teams.find_for(access.users) if visibility.may_see_teams(access) else []
    projects = [each for each in access.projects if not each.isolated and visibility.readable_project(access, each.id)]
    names = distinct_names((each.id, each.slug) for each in projects)
    found = {team_namespace(team.id): _Place("team", str(team.id), team.name) for team in teams}
    return found | {project_namespace(each.id): _Place("project", str(each.id), names[each.id]) for each in projects}


def _activity(change: KeptItem, place: _Place, access: EntryAccess) -> Activity:
    own = change.user_id in access.users
    user = None if change.kind == "retired" else change.user_id  # who retired it is known by name alone
    return Activity(change.kind, change.at, change.author, user, own, change.text, place.kind, place.id, place.name)

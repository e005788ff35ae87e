"""Find what a person may open by a few words: their rooms and projects, people whom they may know of, what is
remembered of them, and what others decided where they are. Each is judged as on its own page."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer import visibility
from composer.model import project_namespace
from composer.people.decisions import PlaceOfDecisions
from composer.people.known_people import find_people
from composer.people.own_memory import PlacedItem, own_items
from composer.people.remembered import readable_of_project
from composer.people.rooms import joined_rooms
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.landmarks import Landmark
from composer.repositories.own_data import OwnFilter
from composer.repositories.people import KnownPerson
from composer.visibility import EntryAccess, JoinedRoom

MAX_FOUND_OF_A_KIND: Final = 6
MAX_FIND_WORDS: Final = 8


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """A room or a project."""

    id: uuid.UUID
    name: str


@dataclass(frozen=True, slots=True)
class FoundDecision:
    """A decision that somebody else made in a room or a project of the person's, or that was found there."""

    text: str
    kind: PlaceOfDecisions
    place: FoundPlace


@dataclass(frozen=True, slots=True)
class FoundAnything:
    """What fits some words: at most six of each kind."""

    rooms: Sequence[FoundPlace] = ()
    projects: Sequence[FoundPlace] = ()
    people: Sequence[KnownPerson] = ()
    items: Sequence[PlacedItem] = ()
    decisions: Sequence[FoundDecision] = ()


async def find_anything(
    tx: Transaction, access: EntryAccess, words: str, now: datetime, presence: Presence
) -> FoundAnything:
    """All that has all of these words in its name, or its text; people, a word of whose name begins so. Without words,
    the first rooms and projects. `presence`: in which private rooms the person's platforms say that they are. Raises
    Refused for a tool."""
    owned = visibility.owned_by_bearer(access)
    wanted = words.casefold().split()[:MAX_FIND_WORDS]
    joined = await joined_rooms(tx, access, presence)
    rooms = [FoundPlace(room.room_id, room.name) for room in joined if room.room_id]
    readable = [each for each in access.projects if visibility.readable_project(access, each.id) is not None]
    projects = sorted((FoundPlace(each.id, each.slug) for each in readable), key=lambda each: each.name)
    found = FoundAnything(_named(rooms, wanted), _named(projects, wanted))
    if not wanted:
        return found
    people = await find_people(tx, access, words, presence)
    wanted_items = OwnFilter(words=tuple(wanted))
    items = await own_items(tx, owned, wanted_items, None, MAX_FOUND_OF_A_KIND, now, presence)
    decisions = await _decisions(tx, access, joined, projects, wanted, now)
    return FoundAnything(found.rooms, found.projects, people[:MAX_FOUND_OF_A_KIND], items.items, decisions)


async def _decisions(
    tx: Transaction,
    access: EntryAccess,
    rooms: Sequence[JoinedRoom],
    projects: Sequence[FoundPlace],
    words: Sequence[str],
    now: datetime,
) -> Sequence[FoundDecision]:
    """The latest decisions of others, in these rooms and projects."""
    places = {
        room.namespace: (PlaceOfDecisions.ROOM, FoundPlace(room.room_id, f"#{room.name}"))
        for room in rooms
        if room.room_id is not None
    }
    places |= {project_namespace(each.id): (PlaceOfDecisions.PROJECT, each) for each in projects}
    trust = await tx.people.least_trust(access.users)
    scopes = [visibility.readable_rooms(access, rooms, trust), *(readable_of_project(access, p.id) for p in projects)]
    found = list[Landmark]()
    for readable in scopes:
        if readable.all_namespaces:
            found += await tx.landmarks.with_words(readable, words, access.users, now, MAX_FOUND_OF_A_KIND)
    latest = sorted(found, key=lambda each: (each.decided_at, each.id), reverse=True)[:MAX_FOUND_OF_A_KIND]
    return [FoundDecision(each.text, *places[each.namespace]) for each in latest]


def _named(places: Sequence[FoundPlace], words: Sequence[str]) -> Sequence[FoundPlace]:
    fitting = [each for each in places if all(word in each.name.casefold() for word in words)]
    return fitting[:MAX_FOUND_OF_A_KIND]

"""Find what a person may open by a few words: their rooms and projects, people whom they may know of, and what is
remembered of them. Each is judged as on its own page."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer import visibility
from composer.people.known_people import find_people
from composer.people.own_memory import PlacedItem, own_items
from composer.people.rooms import joined_rooms
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.own_data import OwnFilter
from composer.repositories.people import KnownPerson
from composer.visibility import EntryAccess

MAX_FOUND_OF_A_KIND: Final = 6
MAX_FIND_WORDS: Final = 8


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """A room or a project."""

    id: uuid.UUID
    name: str


@dataclass(frozen=True, slots=True)
class FoundAnything:
    """What fits some words: at most six of each kind."""

    rooms: Sequence[FoundPlace] = ()
    projects: Sequence[FoundPlace] = ()
    people: Sequence[KnownPerson] = ()
    items: Sequence[PlacedItem] = ()


async def find_anything(
    tx: Transaction, access: EntryAccess, words: str, now: datetime, presence: Presence
) -> FoundAnything:
    """All that has all of these words in its name, or its text; people, a word of whose name begins so. Without words,
    the first rooms and projects. `presence`: in which private rooms the person's platforms say that they are. Raises
    Refused for a tool."""
    owned = visibility.owned_by_bearer(access)
    wanted = words.casefold().split()[:MAX_FIND_WORDS]
    rooms = [FoundPlace(room.room_id, room.name) for room in await joined_rooms(tx, access, presence) if room.room_id]
    readable = [each for each in access.projects if visibility.readable_project(access, each.id) is not None]
    projects = sorted((FoundPlace(each.id, each.slug) for each in readable), key=lambda each: each.name)
    found = FoundAnything(_named(rooms, wanted), _named(projects, wanted))
    if not wanted:
        return found
    people = await find_people(tx, access, words, presence)
    wanted_items = OwnFilter(words=tuple(wanted))
    items = await own_items(tx, owned, wanted_items, None, MAX_FOUND_OF_A_KIND, now, presence)
    return FoundAnything(found.rooms, found.projects, people[:MAX_FOUND_OF_A_KIND], items.items)


def _named(places: Sequence[FoundPlace], words: Sequence[str]) -> Sequence[FoundPlace]:
    fitting = [each for each in places if all(word in each.name.casefold() for word in words)]
    return fitting[:MAX_FOUND_OF_A_KIND]

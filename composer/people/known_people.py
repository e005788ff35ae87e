"""Find people by name, to invite them or to give them a role: those whom the person may know of anyway."""

from collections.abc import Sequence
from typing import Final

from composer import visibility
from composer.model import Trust
from composer.people.rooms import least_trust
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.people import KnownPerson
from composer.text.cleaning import is_storable
from composer.visibility import EntryAccess

MAX_FOUND_PEOPLE: Final = 20


async def find_people(tx: Transaction, access: EntryAccess, words: str, presence: Presence) -> Sequence[KnownPerson]:
    """The people a word of whose name begins as typed, by name: those in public rooms, in rooms, teams and projects
    that the person is in, and those of the organisation who are on no chat platform; at most 20. `presence`: in which
    private rooms the person's platforms say that they are. A guest of the organisation finds people by what they are
    in alone. Raises Refused for a tool."""
    visibility.owned_by_bearer(access)
    beginning = " ".join(words.split()).lower()
    if not beginning or not is_storable(beginning):
        return ()
    trust = await least_trust(tx, access.users)
    joined = visibility.rooms_of_person(access, await tx.conversations.rooms_joined(access.users, presence), trust)
    rooms = [room.room_id for room in joined if room.room_id is not None]
    teams = access.teams if visibility.may_see_teams(access) else ()
    projects = [each.id for each in access.projects if visibility.readable_project(access, each.id) is not None]
    return await tx.people.find_known(
        beginning,
        access.users,
        rooms=rooms,
        teams=teams,
        projects=projects,
        public=trust is Trust.MEMBER,
        limit=MAX_FOUND_PEOPLE,
    )

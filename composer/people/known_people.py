"""Find people by name, to invite them or to give them a role: those whom the person may know of anyway; the admins whom
they may ask, and who let them in."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.model import Trust
from composer.ports.memberships import Presence
from composer.prompt.lines import numbers_of_namesakes
from composer.repositories.audit import AuditAct
from composer.repositories.database import Transaction
from composer.repositories.people import KnownPerson
from composer.text.cleaning import is_storable
from composer.text.names import speaker_label
from composer.visibility import EntryAccess

MAX_FOUND_PEOPLE: Final = 20
MAX_ADMINS_TO_ASK: Final = 3
MAX_LINKS: Final = 5


async def find_people(tx: Transaction, access: EntryAccess, words: str, presence: Presence) -> Sequence[KnownPerson]:
    """The people a word of whose name begins as typed (all where nothing is), by name: those in public rooms, in rooms,
    teams and projects that the person is in, and those of the organisation who are on no chat platform; at most 20,
    with a number behind names that are nearly the same. `presence`: in which private rooms the person's platforms say
    that they are. A guest of the organisation finds people by what they are in alone. Raises Refused for a tool."""
    visibility.owned_by_bearer(access)
    beginning = " ".join(words.split()).lower()
    if not is_storable(beginning):
        return ()
    trust = await tx.people.least_trust(access.users)
    joined = visibility.rooms_of_person(access, await tx.conversations.rooms_joined(access.users, presence), trust)
    rooms = [room.room_id for room in joined if room.room_id is not None]
    teams = access.teams if visibility.may_see_teams(access) else ()
    projects = [each.id for each in access.projects if visibility.readable_project(access, each.id) is not None]
    found = await tx.people.find_known(
        beginning,
        access.users,
        rooms=rooms,
        teams=teams,
        projects=projects,
        public=trust is Trust.MEMBER,
        limit=MAX_FOUND_PEOPLE,
    )
    numbers = numbers_of_namesakes([(access.name, access.user), *((each.name, each.id) for each in found)])
    return [each if each.id not in numbers else _numbered(each, numbers[each.id]) for each in found]


def _numbered(person: KnownPerson, number: str) -> KnownPerson:
    return replace(person, name=speaker_label(person.name) + number)


async def admins_to_ask(tx: Transaction, access: EntryAccess) -> Sequence[str]:
    """The names of admins whom a person may ask for help, those who were known first before the others; at most three,
    without the person. A guest of the organisation gets none."""
    if not all([await tx.people.trust(each) is Trust.MEMBER for each in access.users]):
        return ()
    return [name for id, name, _ in await tx.people.admins() if id not in access.users][:MAX_ADMINS_TO_ASK]


async def links_by_others(tx: Transaction, access: EntryAccess, since: datetime) -> Sequence[tuple[datetime, str]]:
    """When others last made a link that signs in as this person, since a time, the latest first, and the admin who did;
    no name: whoever runs Nexus."""
    visibility.owned_by_bearer(access)
    found = [
        event
        for user in access.users
        for event in await tx.audit.find(since=since, act=AuditAct.LOGIN_LINK, user=user, limit=MAX_LINKS)
        if user in event.users and event.actor not in access.users
    ]
    names = await tx.people.names([event.actor for event in found if event.actor is not None])
    latest: dict[str, datetime] = {}
    for event in found:
        name = names.get(event.actor, "") if event.actor is not None else ""
        latest[name] = max(event.at, latest.get(name, event.at))
    return sorted(((at, name) for name, at in latest.items()), reverse=True)

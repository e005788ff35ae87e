"""The reminders of one person, for that person: a list, and cancelling one. Chat commands and the API do it by these
functions; composer/memory/reminding.py stores them."""

from dataclasses import dataclass

from composer.errors import BadInput, NotFound
from composer.people.places import NamedPlace, named, room_ids
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.reminders import Reminder
from composer.visibility import Owned


@dataclass(frozen=True, slots=True)
class PlacedReminder:
    """An open reminder, and where it is posted, in words for its person."""

    reminder: Reminder
    place: NamedPlace


async def own_reminders(tx: Transaction, owned: Owned, presence: Presence) -> list[PlacedReminder]:
    """The person's open reminders, the next one first. `presence`: in which private rooms their platforms say they
    are."""
    found = await tx.reminders.open(owned)
    namespaces = {each.namespace for each in found}
    joined = await tx.conversations.joined_ids(owned.users, presence)
    places = await tx.own_data.places(owned, room_ids(namespaces), joined)
    projects = await tx.own_data.projects(owned)
    return [PlacedReminder(each, named(each.namespace, places, projects, owned.users)) for each in found]


async def cancel_reminder(tx: Transaction, owned: Owned, beginning: str, *, listed_by: str) -> Reminder:
    """Cancel the open reminder of the person whose id begins with some hexadecimal digits. `listed_by`: what lists
    them, for who names none of theirs. Raises NotFound, and BadInput where several begin so."""
    found = await tx.reminders.open(owned, beginning.replace("-", ""))
    if not found:
        raise NotFound(f"There is no reminder '{beginning}' of yours; {listed_by} shows those that you have.")
    if len(found) > 1:
        raise BadInput(f"Several of yours begin with '{beginning}'; write more of the id: {found[0].id.hex}")
    await tx.reminders.end([found[0].id])
    return found[0]

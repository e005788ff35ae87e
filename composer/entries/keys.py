"""Keys of entries: one names an entry of its writer (a person, or one tool for them) in one place: among the person's
own, or in one project. Whoever writes with one is alone: two would not see each other's.
"""

from datetime import datetime
from typing import Final

from composer import visibility
from composer.errors import Conflict
from composer.model import entries_namespace, project_namespace, team_namespace
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry
from composer.visibility import EntryAccess, Readable

KEY_TAKEN: Final = "Another entry has the key of that one by now: put that other one into the trash first."

KEY_SHARED: Final = (
    "The entry with this key is shared with a team by its person, so a tool replaces it no more: nothing was stored. "
    "Ask them to change it, or write with another key."
)


async def find_same(tx: Transaction, access: EntryAccess, entry: Entry, now: datetime) -> Entry | None:
    """The entry that the same writer stored with the same key, in a transaction that is alone. Raises Conflict where it
    was shared with a team since and a tool writes, which changes nothing that others read: a second entry would part
    from the shared one unseen."""
    tx.require_alone()
    assert entry.values.key is not None
    readable = places_of_key(access, entry.namespace)
    id = await tx.entries.find_by_key(readable, access.users, entry.origin, entry.values.key, now)
    found = None if id is None else await tx.entries.get(readable, id, now)
    if found is not None and found.namespace in _of_teams(access) and not access.is_person:
        raise Conflict(KEY_SHARED)
    return found


async def require_free(tx: Transaction, access: EntryAccess, entry: Entry, now: datetime) -> None:
    """Return if an entry that was out of use may have its key again, in a transaction that is alone. Raises Conflict
    where another one has it."""
    tx.require_alone()
    if entry.values.key is None:
        return
    places = places_of_key(access, entry.namespace)
    found = await tx.entries.find_by_key(places, access.users, entry.origin, entry.values.key, now)
    if found not in (None, entry.id):
        raise Conflict(KEY_TAKEN)


def places_of_key(access: EntryAccess, namespace: str) -> Readable:
    """Where the key of an entry that is filed somewhere is looked for: in its project, else among the person's own,
    also those that are shared with a team."""
    if namespace in [project_namespace(each.id) for each in access.projects]:
        return visibility.readable_entries(access).within([namespace])
    own = [entries_namespace(user) for user in access.users]
    return visibility.readable_entries(access).within([*own, *_of_teams(access)])


def _of_teams(access: EntryAccess) -> list[str]:
    return [team_namespace(team) for team in (*access.teams, *access.shared_with)]

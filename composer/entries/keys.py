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
from composer.visibility import EntryAccess, Grants, Readable

KEY_TAKEN: Final = "Another entry has the key of that one by now: put that other one into the trash first."


async def find_same(tx: Transaction, access: EntryAccess, entry: Entry, now: datetime) -> Entry | None:
    """The entry that the same writer stored with the same key, in a transaction that is alone."""
    tx.require_alone()
    assert entry.values.key is not None
    readable = replaceable(access, entry.namespace)
    found = await tx.entries.find_by_key(readable, access.users, entry.origin, entry.values.key, now)
    return None if found is None else await tx.entries.get(readable, found, now)


async def require_free(tx: Transaction, access: EntryAccess, entry: Entry, now: datetime) -> None:
    """Return if an entry that was out of use may have its key again, in a transaction that is alone. Raises Conflict
    where another one has it."""
    tx.require_alone()
    if entry.values.key is None:
        return
    places = replaceable(access, entry.namespace)
    found = await tx.entries.find_by_key(places, access.users, entry.origin, entry.values.key, now)
    if found not in (None, entry.id):
        raise Conflict(KEY_TAKEN)


def replaceable(access: EntryAccess, namespace: str) -> Readable:
    """Where the key of an entry that is filed somewhere is looked for: in its project, else among the person's own; a
    person who may write for teams finds those too that are shared with one."""
    if namespace in [project_namespace(each.id) for each in access.projects]:
        return visibility.readable_entries(access).within([namespace])
    places = [entries_namespace(user) for user in access.users]
    if access.is_person and Grants.WRITE_TEAMS in access.grants:
        places += [team_namespace(team) for team in (*access.teams, *access.shared_with)]
    return visibility.readable_entries(access).within(places)

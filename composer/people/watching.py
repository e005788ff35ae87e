"""What somebody's open pages show: whether a change may be told to them. Facts are gathered first, and each change is
judged by them."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from composer import visibility
from composer.model import Role, TeamRole, Trust
from composer.people.changes import Change
from composer.people.decisions import waiting_readable
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess, Owned, Readable, Reviewable


class WatchedPage(StrEnum):
    """A page that shows what others change while it is open."""

    MEMORY = "memory"
    WAITING = "waiting"
    ASK = "ask"
    ROOMS = "rooms"
    TEAM = "team"
    TOOLS = "tools"
    ADMIN = "admin"
    PEOPLE = "people"


_ITEMS: Final = frozenset({"memories", "facts", "landmarks"})
_MESSAGES: Final = "messages"
_FILED: Final = _ITEMS | {"summaries", _MESSAGES}
_WAITING: Final = "quarantine"
_INVITES: Final = "invites"
_OPENERS: Final = frozenset({"api_keys", "web_sessions", "openid_logins"})  # of somebody's memory
_PLACES: Final = frozenset({"teams", "team_members", "projects", "project_members"})
# The tables that a page shows something of.
SHOWN: Final[Mapping[WatchedPage, frozenset[str]]] = {
    WatchedPage.MEMORY: _ITEMS | {_WAITING},
    WatchedPage.WAITING: _ITEMS | {_WAITING, _INVITES},
    WatchedPage.ASK: frozenset({"conversations"}),
    WatchedPage.ROOMS: _FILED | {"conversations", "members", "projects", "project_members", _INVITES},
    WatchedPage.TEAM: _ITEMS | {"teams", "team_members", _INVITES},
    WatchedPage.TOOLS: _OPENERS | {"webhooks"},
    WatchedPage.ADMIN: frozenset({"job_runs"}),
    WatchedPage.PEOPLE: _OPENERS | _PLACES | {"users", "one_time_codes"},
}


@dataclass(frozen=True, slots=True)
class Watcher:
    """What somebody may see on their pages now. `places`: their teams and projects; `led`: those of these that they
    are an admin of; `reviewed` and `decided`: where they approve what waits, and accept what is proposed."""

    owned: Owned
    rooms: Readable
    places: Readable
    led: Collection[str]
    reviewed: Reviewable
    decided: Readable
    is_admin: bool

    def sees(self, page: WatchedPage, change: Change, of: uuid.UUID | None = None) -> bool:
        """Whether a page of theirs may show what has changed. `of`: it shows one room, team or project alone; no other
        page shows messages."""
        if change.table not in SHOWN[page] or (change.place != str(of) if of else change.table == _MESSAGES):
            return False
        own = self.owned.admits(change.user_id)
        match page:
            case WatchedPage.ADMIN | WatchedPage.PEOPLE:
                return self.is_admin
            case WatchedPage.WAITING:
                return own or self._decides(change)
            case WatchedPage.ROOMS | WatchedPage.TEAM:
                return self._looks_into(change) or (own and change.table not in _FILED)
            case _:
                return own

    def _decides(self, change: Change) -> bool:
        """Whether something waits for them, or does no more."""
        if change.table == _WAITING:
            return self.reviewed.memories.admits(change) or self.reviewed.others.admits(change)
        return change.table == "landmarks" and self.decided.admits(change)

    def _looks_into(self, change: Change) -> bool:
        """Whether it is in a room, team or project of theirs; an invitation is shown to who leads the place."""
        if change.table == _INVITES:
            return change.place in self.led
        return self.rooms.admits(change) or self.places.admits(change)


async def watcher(
    tx: Transaction, access: EntryAccess, presence: Presence, quarantine: Collection[Trust], now: datetime
) -> Watcher:
    """Somebody as of now. `presence` and `quarantine`: as of `composer.people.reviewing.waiting`. Raises Refused for a
    tool."""
    owned = visibility.owned_by_bearer(access)
    person = await tx.conversations.in_frame(access.users, presence, now)
    teams = [each.id for each in await tx.teams.find_for(access.users) if each.role is TeamRole.ADMIN]
    projects = [each.id for each in access.projects if each.role is Role.ADMIN]
    return Watcher(
        owned,
        visibility.readable_rooms(access, person.rooms, person.trust),
        visibility.readable_places(access),
        frozenset(map(str, (*teams, *projects))),
        visibility.decidable_items(access, person.rooms, person.trust, person.talks),
        waiting_readable(access, person, quarantine),
        person.admin,
    )

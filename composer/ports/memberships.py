"""Who is in which private room of a chat platform, as the platform says."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from composer.ports.clock import EARLIEST


@dataclass(frozen=True, slots=True)
class RoomsOnPlatform:
    """The `private` rooms of a workspace that somebody is in now, and Nexus too, and the rooms, private or not, that
    they are an admin of (`managed`): each by its ids on the platform."""

    private: Collection[str] = ()
    managed: Collection[str] = ()


class MembershipSource(Protocol):
    """A chat platform, as one process is connected to it."""

    async def rooms_of(self, workspace: str, person: str) -> RoomsOnPlatform | None:
        """The rooms of somebody; None if the platform does not say. Raises a NexusError where it does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class Presence:
    """The private rooms of chat platforms that a person is in, and the rooms that they are an admin of (`managed`), by
    our own ids, as their platforms said. `asked_at`: when the first of them was asked. `complete`: all of them said
    it."""

    rooms: frozenset[uuid.UUID] = frozenset()
    managed: frozenset[uuid.UUID] = frozenset()
    asked_at: datetime = EARLIEST
    complete: bool = True


NOWHERE: Final = Presence()  # nobody was asked: no private room of a chat platform counts

"""The ids of channels: within Nexus a channel keeps its first id as its name, also when Slack gives it another one.

Slack does so with a private channel that is shared with another organisation, and then knows the later id alone. Events
and lists of channels are translated to the stored name where they come in, and calls to the present id where they go
out.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cachetools import LRUCache

from composer.app import App
from composer.ingest.rooms import add_room_id, rooms_with_later_ids
from composer.model import Workspace
from composer.repositories.conversations import RoomIds

MAX_AGE_SECONDS: Final = 30.0  # after which ids that another process was told of are looked up
MAX_KNOWN: Final = 10_000  # ids by which messages came


_CHANGING: Final = (
    "message_changed",
    "message_deleted",
    "channel_convert_to_private",
    "channel_convert_to_public",
)


class ChannelIds:
    """Which ids belong to one channel. Pure."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._split: dict[str, tuple[str, ...]] = {}

    def replace(self, rooms: Sequence[RoomIds]) -> None:
        """Know these rooms, and no others."""
        self._names = {id: room.name for room in rooms for id in room.later_ids}
        self._ids = {room.name: room.later_ids[-1] for room in rooms}
        self._split = {room.name: room.stored_ids for room in rooms}

    def name(self, channel: str) -> str:
        """The name under which a channel is stored, by any of its ids."""
        return self._names.get(channel, channel)

    def present(self, name: str) -> str:
        """The id that Slack knows a stored channel by."""
        return self._ids.get(name, name)

    def split(self, name: str) -> tuple[str, ...]:
        """The later ids of a stored channel under which something is stored itself: it came before Slack told whose
        ids they are."""
        return self._split.get(name, ())


class SlackChannels:
    """Keeps the ids of the channels of one workspace up to date, also with what other processes are told."""

    def __init__(
        self,
        app: App,
        ids: ChannelIds,
        workspace: Callable[[], Awaitable[Workspace]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self.ids = ids
        self._workspace = workspace
        self._monotonic = monotonic
        self._read_at: float | None = None
        self._begun = self._ended = 0  # reads, by number: the latest that began, and the latest that ended
        self._known: LRUCache[str, bool] = LRUCache(MAX_KNOWN)  # ids by which messages came

    async def refresh(self, max_age: float = MAX_AGE_SECONDS) -> None:
        """Read the ids, unless that was done lately. Raises Unavailable."""
        if self._read_at is None or self._monotonic() - self._read_at >= max_age:
            await self._read()

    async def change(self, name: str, id: str, at: datetime | None = None) -> None:
        """A stored channel has another id from now on, as Slack told at a time. Raises Unavailable."""
        await add_room_id(self._app.database, await self._workspace(), name, id, at)
        await self._read()

    async def named(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """An event with the name under which its channel is stored. Raises Unavailable.

        A message is stored under the id that this process knows: one that it does not know yet is that of a private
        room. What has changed, such as who is in a channel, is not told again: for that the ids are read anew, and for
        the first message that comes by an id.
        """
        channel = event.get("channel")
        id = channel.get("id") if isinstance(channel, dict) else channel
        if not isinstance(id, str):
            return dict(event)
        is_message = event.get("type") in ("message", "app_mention") and event.get("subtype") not in _CHANGING
        await self.refresh(MAX_AGE_SECONDS if is_message and id in self._known else 0.0)
        self._known[id] = True
        name = self.ids.name(id)
        return {**event, "channel": {**channel, "id": name} if isinstance(channel, dict) else name}

    async def _read(self) -> None:
        read_at, number = self._monotonic(), self._begun + 1
        self._begun = number
        rooms = await rooms_with_later_ids(self._app.database, await self._workspace())
        if number > self._ended:  # else one that began later has ended already
            self.ids.replace(rooms)
            self._read_at, self._ended = read_at, number

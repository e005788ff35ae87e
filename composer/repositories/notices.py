"""Privacy notices: one message in each room that says what is stored of it."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from composer.model import RecordingPolicy
from composer.ports.database import Statements
from composer.repositories.deliveries import Destination, destination_from_row


@dataclass(frozen=True, slots=True)
class BegunNotice:
    """An attempt to post a room's notice. `first`: nobody can have posted it before."""

    destination: Destination
    policy: RecordingPolicy
    first: bool


class Notices:
    """The privacy notices of rooms."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def begin(self, room: uuid.UUID, message: str, now: datetime) -> BegunNotice | None:
        """Begin an attempt to post a room's notice; None when it is posted already. The first `message` (external id)
        that this is called with is the one that the notice follows."""
        row = await self._sql.fetch_one("notice_begin", room_id=room, message=message, now=now)
        if row is None:
            return None
        return BegunNotice(destination_from_row(row), RecordingPolicy(row["recording"]), row["first"])

    async def pending(self, platform: str, workspace: str) -> list[tuple[uuid.UUID, str]]:
        """(room, message) of the notices that are not known to be posted."""
        rows = await self._sql.fetch("notices_pending", platform=platform, workspace=workspace)
        return [(row["id"], row["notice_for"]) for row in rows]

    async def mark_posted(self, room: uuid.UUID, external_id: str) -> None:
        """Record that a room's notice is posted, with its id on the platform."""
        await self._sql.execute("notice_posted", room_id=room, external_id=external_id)

"""First notices: one message in each room that says what is stored of it, and one question in a person's DMs."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from composer.model import RecordingPolicy
from composer.ports.database import Statements
from composer.repositories.deliveries import Destination, destination_from_row


@dataclass(frozen=True, slots=True)
class BegunNotice:
    """An attempt to post the first notice of a room or a DM. `first`: nobody can have posted it before."""

    destination: Destination
    policy: RecordingPolicy
    first: bool


class Notices:
    """The first notices of rooms and DMs."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def begin(self, conversation: uuid.UUID, message: str, now: datetime) -> BegunNotice | None:
        """Begin an attempt to post a notice; None when it is posted already, or a DM's person is not to be asked. The
        first `message` (external id) that this is called with is the one that the notice follows."""
        row = await self._sql.fetch_one("notice_begin", conversation_id=conversation, message=message, now=now)
        if row is None:
            return None
        return BegunNotice(destination_from_row(row), RecordingPolicy(row["recording"]), row["first"])

    async def pending(self, platform: str, workspace: str) -> list[tuple[uuid.UUID, str]]:
        """(conversation, message) of the notices that are not known to be posted."""
        rows = await self._sql.fetch("notices_pending", platform=platform, workspace=workspace)
        return [(row["id"], row["notice_for"]) for row in rows]

    async def mark_posted(self, conversation: uuid.UUID, external_id: str) -> None:
        """Record that a notice is posted, with its id on the platform."""
        await self._sql.execute("notice_posted", conversation_id=conversation, external_id=external_id)

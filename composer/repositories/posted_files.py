"""Files for one person that were put into their DM on a platform, and those of them that are to be deleted there."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from composer.ports.database import Statements


@dataclass(frozen=True, slots=True)
class DueFile:
    """A file that is to be deleted on its platform. `sharing`: it may not be shared yet, so that the platform does not
    find it, and be shared later. `refused_since`: since when the platform refuses to delete it."""

    external_id: str
    sharing: bool
    refused_since: datetime | None = None


class PostedFiles:
    """The files in people's DMs, by their ids on the platform."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def record(
        self, platform: str, workspace: str, external_id: str, user: uuid.UUID, sharing_until: datetime
    ) -> None:
        """Record a file that is shared before `sharing_until`, or never. Call it before anybody can see the file."""
        await self._sql.execute(
            "posted_file_insert",
            platform=platform,
            workspace=workspace,
            external_id=external_id,
            user_id=user,
            sharing_until=sharing_until,
        )

    async def share(self, platform: str, workspace: str, external_id: str) -> bool:
        """Note that a recorded file was shared. False if it is to be deleted, or was taken for deleted."""
        row = await self._sql.fetch_one(
            "posted_file_share", platform=platform, workspace=workspace, external_id=external_id
        )
        return row is not None and not row["due"]

    async def withdraw(self, users: Collection[uuid.UUID]) -> int:
        """Have the files of these users deleted, and return how many there were."""
        return len(await self._sql.fetch("posted_files_withdraw", users=list(users)))

    async def due(self, platform: str, workspace: str, now: datetime, limit: int) -> list[DueFile]:
        """The files that are to be deleted in a workspace now, those last that may not be shared yet."""
        return await self._sql.fetch_as(
            DueFile, "posted_files_due", platform=platform, workspace=workspace, now=now, limit=limit
        )

    async def postpone(
        self, platform: str, workspace: str, external_id: str, retry_at: datetime, refused_since: datetime | None
    ) -> None:
        """Try to delete a file again from a time on; `refused_since`: since when the platform refuses it."""
        await self._sql.execute(
            "posted_file_postpone",
            platform=platform,
            workspace=workspace,
            external_id=external_id,
            retry_at=retry_at,
            refused_since=refused_since,
        )

    async def deleted(self, platform: str, workspace: str, external_id: str) -> None:
        """A file is deleted on its platform, or never will be."""
        await self._sql.execute("posted_file_delete", platform=platform, workspace=workspace, external_id=external_id)

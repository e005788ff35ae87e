"""Files for one person that were put into their DM on a platform, and those of them that are to be deleted there."""

import uuid
from collections.abc import Collection

from composer.ports.database import Statements


class PostedFiles:
    """The files in people's DMs, by their ids on the platform."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def record(self, platform: str, workspace: str, external_id: str, user: uuid.UUID) -> None:
        """Record a file. Call it before anybody can see the file."""
        await self._sql.execute(
            "posted_file_insert", platform=platform, workspace=workspace, external_id=external_id, user_id=user
        )

    async def count(self, users: Collection[uuid.UUID]) -> int:
        """How many files of these users there are."""
        return int(await self._sql.fetch_value("posted_files_count", users=list(users)))

    async def withdraw(self, users: Collection[uuid.UUID]) -> int:
        """Have the files of these users deleted, and return how many there were."""
        return len(await self._sql.fetch("posted_files_withdraw", users=list(users)))

    async def due(self, platform: str, workspace: str, limit: int) -> list[str]:
        """The ids of files that are to be deleted in a workspace."""
        rows = await self._sql.fetch("posted_files_due", platform=platform, workspace=workspace, limit=limit)
        return [row["external_id"] for row in rows]

    async def deleted(self, platform: str, workspace: str, external_id: str) -> None:
        """A file is deleted on its platform, or never will be."""
        await self._sql.execute("posted_file_delete", platform=platform, workspace=workspace, external_id=external_id)

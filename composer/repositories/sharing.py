"""The reach of a person's own memories, facts and landmarks: how they are filed, and filing them elsewhere."""

import uuid
from datetime import datetime

from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct
from composer.repositories.own_data import OwnItem
from composer.visibility import AccessTag


class Sharing:
    """How a person's items are filed. What an item was made from, and what it replaced, stays as it is."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def isolated_project(self, namespace: str) -> uuid.UUID | None:
        """The isolated project that a namespace lies in, if any."""
        found: uuid.UUID | None = await self._sql.fetch_value("sharing_isolated_project", namespace=namespace)
        return found

    async def move(self, item: OwnItem, tag: AccessTag, scope: str, now: datetime) -> None:
        """File an item under another tag, with its entries in the recall index. Recorded in the audit log with the
        words `scope`."""
        where = {"namespace": tag.namespace, "visibility": str(tag.visibility)}
        owner = {"id": item.id, "user_id": tag.user_id}
        if item.kind in ("memory", "landmark"):
            await self._sql.execute("sharing_move", **where, **owner)
        else:
            ended = await self._sql.fetch_one("fact_close", **where, key=item.key, id=item.id, now=now, moved=True)
            since = None if ended is None else ended["valid_to"]
            await self._sql.execute("sharing_file_fact", **where, **owner, since=since)
        await self._audit.record(
            AuditAct.MEMORY_REACH, users=[tag.user_id], details={"kind": item.kind, "id": str(item.id), "scope": scope}
        )

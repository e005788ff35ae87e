"""The reach of a person's own memories, facts and landmarks: how they are filed, and filing them elsewhere."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from composer.model import Visibility
from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct
from composer.visibility import AccessTag, Owned


@dataclass(frozen=True, slots=True)
class OwnItem:
    """A current memory, fact or landmark. `text` is one of a memory or landmark, or `key = value` of a fact. `pending`:
    it waits for approval, and nobody reads it yet; its id is that in the quarantine."""

    kind: str
    id: uuid.UUID
    namespace: str
    visibility: Visibility
    text: str
    key: str | None
    at: datetime
    pending: bool


class Sharing:
    """How a person's items are filed. What an item was made from, and what it replaced, stays as it is."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def find(self, owned: Owned, beginning: str, limit: int, now: datetime) -> list[OwnItem]:
        """The person's current and pending items whose id begins so, latest first."""
        rows = await self._sql.fetch(
            "sharing_items", user_ids=list(owned.users), beginning=beginning, limit=limit, now=now
        )
        return [
            OwnItem(
                row["kind"],
                row["id"],
                row["namespace"],
                Visibility(row["visibility"]),
                row["text"],
                row["key"],
                row["at"],
                row["pending"],
            )
            for row in rows
            if owned.admits(row["user_id"])
        ]

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
            since = await self._sql.fetch_value("sharing_end_fact", **where, key=item.key, id=item.id, now=now)
            await self._sql.execute("sharing_file_fact", **where, **owner, since=since)
        await self._audit.record(
            AuditAct.MEMORY_REACH, users=[tag.user_id], details={"kind": item.kind, "id": str(item.id), "scope": scope}
        )

"""What was handed out to people's tools: ids and times alone."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from composer.ports.database import Statements
from composer.repositories.people import NAMELESS
from composer.visibility import Owned

READS_RETENTION: Final = timedelta(days=30)
MAX_TOOL_READS: Final = 1_000  # of one tool of a person; the oldest go


class ReadRoute(StrEnum):
    """How a tool is handed something out."""

    API = "api"
    MCP = "mcp"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class ToolRead:
    """An entry, a fact or a decision that a tool (`vendor`) was handed out by a route, last at a time."""

    id: uuid.UUID
    vendor: str
    route: ReadRoute
    at: datetime


class ToolReads:
    """Records of what tools read."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def add(self, added: Sequence[tuple[uuid.UUID, ToolRead]]) -> None:
        """Record what tools of users read, each once, in a transaction that blocks erasure: not what was erased since,
        and nothing of who has opted out."""
        await self._sql.execute(
            "tool_reads_add",
            item_ids=[read.id for _, read in added],
            user_ids=[user for user, _ in added],
            vendors=[read.vendor for _, read in added],
            routes=[read.route.value for _, read in added],
            times=[read.at for _, read in added],
            nameless=NAMELESS,
            kept=MAX_TOOL_READS - 1,
        )

    async def of_tool(self, owned: Owned, vendor: str, limit: int) -> list[ToolRead]:
        """What a tool of a person read, the latest first."""
        return await self._sql.fetch_as(
            ToolRead, "tool_reads_of_tool", user_ids=list(owned.users), vendor=vendor, limit=limit
        )

    async def of_item(self, owned: Owned, id: uuid.UUID, limit: int) -> list[ToolRead]:
        """Which tools of a person read an item, the latest first."""
        return await self._sql.fetch_as(ToolRead, "tool_reads_of_item", user_ids=list(owned.users), id=id, limit=limit)

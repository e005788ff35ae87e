"""What the background work of an installation has still to do."""

from dataclasses import dataclass

from composer.repositories.database import Database


@dataclass(frozen=True, slots=True)
class Backlog:
    """Messages to index, items to embed, and messages that wait for extraction, of all `tenants` together. Of `parked`
    conversations extraction failed too often; `why` is our own sentence about one of them."""

    tenants: int = 0
    unindexed: int = 0
    unembedded: int = 0
    unextracted: int = 0
    parked: int = 0
    why: str = ""


async def backlog(database: Database) -> Backlog:
    """Count what is to be done. Raises Unavailable."""
    unindexed = unembedded = unextracted = parked = 0
    why = ""
    tenants = await database.tenants()
    for tenant, _ in tenants:
        async with database.transaction(tenant, "read") as tx:
            messages, items = await tx.recall.backlog()
            waiting, stuck, error = await tx.learning.backlog()
        unindexed, unembedded = unindexed + messages, unembedded + items
        unextracted, parked, why = unextracted + waiting, parked + stuck, error or why
    return Backlog(len(tenants), unindexed, unembedded, unextracted, parked, why)

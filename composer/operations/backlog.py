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
            found = await tx.maintenance.backlog()
        unindexed, unembedded = unindexed + found.unindexed, unembedded + found.unembedded
        unextracted, parked, why = unextracted + found.unextracted, parked + found.parked, found.why or why
    return Backlog(len(tenants), unindexed, unembedded, unextracted, parked, why)

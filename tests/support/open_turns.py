"""The open turns of a tenant, in every conversation."""

import uuid

from composer.model import Turn, TurnState
from composer.stores.database.postgres import PostgresDatabase


async def open_turns(database: PostgresDatabase, tenant: uuid.UUID) -> list[tuple[Turn, TurnState]]:
    """The open turns with their states, conversation by conversation, in the order in which they are answered."""
    async with database.connection() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
        rows = await connection.fetch(
            "SELECT conversation_id AS id FROM turns WHERE state <> 'sent' GROUP BY 1 ORDER BY min(queued_at), 1"
        )
    found = []
    for row in rows:
        async with database.statement(tenant) as tx:
            found += [(each.turn, each.state) for each in await tx.turns.open(row["id"])]
    return found

"""Lineage: which sources each stored item was made from."""

import uuid
from collections.abc import Sequence

from composer.ports.database import Statements


async def insert_lineage(statements: Statements, links: Sequence[tuple[str, uuid.UUID, str, uuid.UUID]]) -> None:
    """Store links (item kind, item id, source kind, source id). Existing ones stay unchanged."""
    if links:
        await statements.execute(
            "lineage_insert",
            item_kinds=[item_kind for item_kind, _, _, _ in links],
            item_ids=[item for _, item, _, _ in links],
            source_kinds=[source_kind for _, _, source_kind, _ in links],
            source_ids=[source for _, _, _, source in links],
        )

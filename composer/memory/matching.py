"""Find what somebody wants erased by its words: in all that is their own, wherever it is filed."""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Final

from composer.memory.affected import ItemRef
from composer.repositories.database import Transaction
from composer.text.repetition import matches

PAGE_SIZE: Final = 2_000  # rows that are compared at a time


async def find_matching(
    tx: Transaction, users: Sequence[uuid.UUID], words: str
) -> tuple[list[uuid.UUID], list[ItemRef]]:
    """The messages and other items of these users that contain `words`, in any case, Unicode form or spacing.

    The comparison is not left to the database: its idea of case depends on how it was set up.
    """
    found: list[ItemRef] = []
    after: uuid.UUID | None = None
    while True:
        page = await tx.erasure.own_texts(users, after, PAGE_SIZE)
        found += await asyncio.to_thread(
            lambda rows: [(kind, id) for kind, id, parts in rows if any(matches(part, words) for part in parts)], page
        )
        if len(page) < PAGE_SIZE:
            break
        after = page[-1][1]
    messages = [id for kind, id in found if kind == "message"]
    return messages, [(kind, id) for kind, id in found if kind != "message"]

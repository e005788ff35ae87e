"""Find what somebody wants erased by its words: in all that is their own, wherever it is filed."""

import uuid
from collections.abc import Iterable, Sequence

from composer.repositories.database import Transaction
from composer.repositories.erasure import OwnText
from composer.text.repetition import matches
from composer.text.work import in_thread


async def find_matching(tx: Transaction, users: Sequence[uuid.UUID], words: str) -> list[OwnText]:
    """The messages and other items of these users that contain `words` as whole words, in any case, Unicode form or
    spacing.

    The comparison is not left to the database: its idea of case depends on how it was set up.
    """
    found: list[OwnText] = []
    async for page in tx.erasure.own_texts(users):
        found += await in_thread(_matching, page, words)
    return found


def _matching(texts: Iterable[OwnText], words: str) -> list[OwnText]:
    return [text for text in texts if any(matches(part, words) for part in text.parts)]

"""Exported files hold what was there when they were made, so they go with any part of it that is erased."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

from composer.memory.affected import ItemRef
from composer.memory.forget import Receipt
from composer.repositories.database import Transaction


async def authors_of(
    tx: Transaction, messages: Sequence[uuid.UUID], items: Sequence[ItemRef] = ()
) -> tuple[uuid.UUID, ...]:
    """The people whose messages and items these are, with their other accounts: an export holds what is of all. Call it
    before they are erased."""
    authors = await tx.erasure.authors(messages, items)
    linked = await tx.people.linked_users(authors)
    return tuple({*authors, *(other for others in linked.values() for other in others)})


async def withdraw_exports(tx: Transaction, people: Collection[uuid.UUID], receipt: Receipt) -> Receipt:
    """Have the files of these people in DMs deleted, and let those that the terminal wrote go after the commit
    (`App.forgotten`). Call it after the erasure, under its lock: no file is recorded between."""
    await tx.posted_files.withdraw(people)
    return replace(receipt, owners=receipt.owners | frozenset(people))

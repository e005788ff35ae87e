"""Blank the names of people who had everything erased, wherever they are stored."""

import re
import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

from composer.memory.forget import Receipt, edit
from composer.repositories.database import Transaction
from composer.repositories.people import NAMELESS


async def names_of(tx: Transaction, users: Sequence[uuid.UUID]) -> set[str]:
    """Every name under which these people are stored, now or with an earlier message."""
    return set(await tx.people.stored_names(users)) if users else set()


async def blank_names(tx: Transaction, users: Sequence[uuid.UUID], names: Collection[str], now: datetime) -> Receipt:
    """Replace these people's names, also in other people's messages that mention them.

    A mention is edited away like a text: what was made from the message is made anew. Where others wrote the name
    without mentioning the person, it stays: those are their words.
    """
    total = Receipt()
    pattern = re.compile("|".join(f"@{re.escape(name)}" for name in sorted(names, key=len, reverse=True) if name))
    for id in await tx.people.messages_mentioning(users) if pattern.pattern else []:
        message = await tx.messages.get(id)
        if message is not None and pattern.search(message.text):
            text = pattern.sub(f"@{NAMELESS}", message.text)
            total = total.joined(await edit(tx, message, text, message.mentions, message.attachments, now))
    await tx.people.blank_names(users, sorted(names))
    return Receipt(conversations=total.conversations)

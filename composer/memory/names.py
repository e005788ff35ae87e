"""Blank the names of people who had everything erased, wherever they are stored."""

import re
import uuid
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from composer.memory.forget import Receipt, edit
from composer.repositories.database import Transaction
from composer.repositories.people import NAMELESS

# No letter or digit follows the last one, but one of a script that is written without spaces may.
_WORD_ENDS: Final = re.compile(r"(?!(?<=\w)_{0,80}[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")


async def names_of(tx: Transaction, users: Sequence[uuid.UUID]) -> set[str]:
    """Every name under which these people are stored, now or with an earlier message."""
    return set(await tx.people.stored_names(users)) if users else set()


def without_mentions_of(names: Collection[str], text: str, others: Collection[str] = ()) -> str:
    """A text in which whole mentions of these names are blanked: neither the beginning of a longer word, nor that of a
    longer name among those of the `others` whom it mentions."""
    known = sorted({*names, *others} - {""}, key=len, reverse=True)
    parts, end = [], 0
    while known and (start := text.find("@", end)) >= 0:
        parts.append(text[end : start + 1])
        end = start + 1
        # No pattern with the names in it: `re` would keep it.
        named = next((each for each in known if _is_named(text, each, end)), "")
        parts.append(NAMELESS if named and named in names else named)
        end += len(named)
    return "".join((*parts, text[end:]))


def _is_named(text: str, name: str, start: int) -> bool:
    """Whether a name stands at a place of a text, and ends there."""
    return text.startswith(name, start) and _WORD_ENDS.match(text, start + len(name)) is not None


async def blank_names(tx: Transaction, users: Sequence[uuid.UUID], names: Collection[str], now: datetime) -> Receipt:
    """Replace these people's names, also in other people's messages that mention them.

    A mention is edited away like a text: what was made from the message is made anew. Where others wrote the name
    without mentioning the person, it stays: those are their words.
    """
    total = Receipt()
    for id in await tx.people.messages_mentioning(users) if names else []:
        message = await tx.messages.get(id)
        if message is None:
            continue
        others = await names_of(tx, [user for user in message.mentions if user not in users])
        text = without_mentions_of(names, message.text, others)
        if text != message.text:
            total = total.joined(await edit(tx, message, text, message.mentions, message.attachments, now))
    await tx.people.blank_names(users, sorted(names))
    return Receipt(conversations=total.conversations)

"""Find where on their platform the messages are that an answer cites by source marks, such as (s1)."""

import re
from collections.abc import Mapping
from typing import Final

from composer.errors import NotFound
from composer.model import Message, Turn
from composer.ports.memberships import Presence
from composer.prompt.sections import RECALL, TOOLS
from composer.repositories.database import Transaction
from composer.repositories.explanations import MessageAddress
from composer.turn.explanation import explain_stored

CITED_MARK: Final = re.compile(r"\bs[1-9]\d{0,2}\b")


def cites(text: str) -> bool:
    """Whether a text has source marks."""
    return CITED_MARK.search(text) is not None


async def cited_messages(
    tx: Transaction, turn: Turn, question: Message, prompt: str | None, text: str, presence: Presence
) -> Mapping[str, MessageAddress]:
    """For each mark in the text of an answer, the latest message that its source in the `prompt` (JSON) came from.

    Marks of sources that may not be read there any more are left out, those of sources without a message, and those of
    messages whose place may not be named there (`visibility.may_be_named`). `presence`: in which private rooms the
    asker is.
    """
    cited = set(CITED_MARK.findall(text))
    if prompt is None or question.user_id is None:
        return {}
    access = await tx.conversations.access_context(turn.conversation_id, question.user_id, question.trust, presence)
    if access is None:
        return {}
    try:
        explanation = await explain_stored(tx, access, prompt)
    except NotFound:
        return {}
    sources = {
        source.mark: source.id
        for section in explanation.sections
        if section.name in (RECALL, TOOLS)
        for source in section.sources
        if source.mark in cited and source.id is not None
    }
    addresses = {mark: next(iter(explanation.addresses.get(id, ())), None) for mark, id in sources.items()}
    return {mark: address for mark, address in addresses.items() if address is not None}

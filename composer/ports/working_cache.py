"""The cache of each conversation's last messages."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from composer.model import Conversation, Message


@dataclass(frozen=True, slots=True)
class Appended:
    """Messages that were appended to a conversation, whose version grew from `before` to `after`."""

    conversation_id: uuid.UUID
    before: int
    after: int
    messages: tuple[Message, ...]


class WorkingCache(Protocol):
    """The last messages of each conversation, in Redis. It may lose or refuse anything at any time."""

    async def read(self, conversation: Conversation, limit: int) -> list[Message] | None:
        """The last `limit` cached messages, oldest first; None when this version of the conversation is not cached.

        Raises Unavailable when the cache does not answer.
        """
        ...

    async def replace(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Cache messages that were read from the database at `conversation.version`."""
        ...

    async def append(self, appended: Sequence[Appended]) -> None:
        """Add appended messages to cached conversations. An entry of another version is dropped instead."""
        ...

    async def erase(self, conversations: Sequence[uuid.UUID]) -> None:
        """Remove conversations in which something was erased, also what is being cached of them just now."""
        ...

    async def drop(self, conversations: Sequence[uuid.UUID]) -> None:
        """Remove conversations from the cache."""
        ...

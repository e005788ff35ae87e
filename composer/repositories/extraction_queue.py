"""The queue of messages from which a model extracts memories, scope by scope."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from composer.model import Message, Trust, Visibility
from composer.ports.database import Statements
from composer.repositories.learning import ReadyRule
from composer.repositories.messages import message_from_row


@dataclass(frozen=True, slots=True)
class ExtractionScope:
    """The messages that are extracted together: of one author (`user`), so that what one says says nothing in the name
    of another. Extraction never reads beyond it."""

    conversation_id: uuid.UUID
    namespace: str
    visibility: Visibility
    user: uuid.UUID

    @property
    def key(self) -> str:
        """Its name among all that is learnt from."""
        return f"{self.conversation_id} {self.namespace} {self.visibility} {self.user}"


class ExtractionQueue:
    """Messages to extract from."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def add(self, messages: Sequence[uuid.UUID]) -> None:
        """Queue messages."""
        await self._sql.execute("extraction_enqueue", message_ids=list(messages))

    async def due(self, rule: ReadyRule) -> list[ExtractionScope]:
        """Scopes that are due, longest waiting first."""
        return await self._sql.fetch_as(ExtractionScope, "extraction_due", **rule.parameters)

    async def messages(self, scope: ExtractionScope, limit: int) -> list[Message]:
        """The oldest queued messages of a scope."""
        rows = await self._sql.fetch(
            "extraction_messages",
            conversation_id=scope.conversation_id,
            namespace=scope.namespace,
            visibility=str(scope.visibility),
            user_id=scope.user,
            limit=limit,
        )
        return [replace(message_from_row(row), trust=Trust(row["trust"])) for row in rows]

    async def are_unchanged(self, messages: Sequence[Message]) -> bool:
        """Whether messages are still queued, with the same texts; they are locked until the transaction ends."""
        rows = await self._sql.fetch(
            "extraction_lock_unchanged", ids=[m.id for m in messages], texts=[m.text for m in messages]
        )
        return len(rows) == len(messages)

    async def remove(self, messages: Sequence[uuid.UUID]) -> None:
        """Remove messages from the queue."""
        await self._sql.execute("extraction_remove", message_ids=list(messages))

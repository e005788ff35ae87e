"""The store as a whole, and what stands beside it: cache and locks."""

import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from composer.model import Conversation, Message
from composer.ports.doors import Doors
from composer.ports.erasing import Erasing
from composer.ports.log import Appended, Log
from composer.ports.memories import Memories
from composer.ports.recall import Recall
from composer.ports.structured import Projects, Structured
from composer.ports.summaries import Compactions, Summaries
from composer.ports.turns import Turns
from composer.ports.upkeep import TenantSettings, Upkeep


class Transaction(Protocol):
    """One transaction of one tenant, by noun. It commits when its block ends, and not if that raised."""

    @property
    def log(self) -> Log:
        """People, conversations, messages."""
        ...

    @property
    def turns(self) -> Turns:
        """Questions and their answers."""
        ...

    @property
    def projects(self) -> Projects:
        """Projects and their members."""
        ...

    @property
    def recall(self) -> Recall:
        """The recall index."""
        ...

    @property
    def structured(self) -> Structured:
        """Facts, landmarks, memories."""
        ...

    @property
    def memories(self) -> Memories:
        """How memories stand, and what waits for a model."""
        ...

    @property
    def settings(self) -> TenantSettings:
        """What the tenant's admins have set."""
        ...

    @property
    def erasing(self) -> Erasing:
        """Taking things out."""
        ...

    @property
    def doors(self) -> Doors:
        """What the chat platforms add."""
        ...

    @property
    def compactions(self) -> Compactions:
        """The oldest parts of views, as summaries."""
        ...

    @property
    def summaries(self) -> Summaries:
        """Summaries as they are written."""
        ...

    @property
    def upkeep(self) -> Upkeep:
        """What has had its time."""
        ...


class Store(Protocol):
    """The database. Raises Unavailable with one sentence when it can't be reached."""

    def transaction(self, tenant_id: uuid.UUID, *, snapshot: bool = False) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that sees one tenant; `snapshot`: read-only, all reads as of one moment."""
        ...

    async def tenants(self) -> list[tuple[uuid.UUID, str]]:
        """Ids and slugs of all tenants."""
        ...


class WorkingCache(Protocol):
    """The last messages of each conversation, in Redis. It may lose or refuse anything at any time."""

    async def read(self, conversation: Conversation, most: int) -> list[Message] | None:
        """The last `most` of the cached messages, oldest first; None when there is none of this very version.

        Raises Unavailable when the cache does not answer.
        """
        ...

    async def replace(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Put a view there that was read from the log at `conversation.version`."""
        ...

    async def append(self, appended: Sequence[Appended]) -> None:
        """Add what was appended to the logs of conversations; a view of another version is dropped instead."""
        ...

    async def drop(self, conversations: Sequence[uuid.UUID]) -> None:
        """Forget views."""
        ...


class Locks(Protocol):
    """Which process answers in which conversation. Raises Unavailable when the database does not answer."""

    @property
    def number(self) -> int:
        """This process's own number, held for as long as it lives."""
        ...

    async def take(self, conversation: uuid.UUID) -> bool:
        """Take a conversation for answering; False while another process has it."""
        ...

    async def release(self, conversation: uuid.UUID) -> None:
        """Let another process answer there."""
        ...

"""Extraction of memories from messages: how it is done, and what a model is given for it and says."""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from typing import Protocol

from composer.model import Message
from composer.ports.models import Vectors


class Extraction(StrEnum):
    """How statements are extracted from messages: by pattern at once, by a model later, or not at all."""

    PATTERN = "pattern"
    MEM0 = "mem0"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class ExtractedStatement:
    """A statement that was extracted. `sources` are its messages; `built_on` are the memories that the extractor
    received and used for it. `waits`: by its place in them it may be somebody else's, so their author decides."""

    kind: str
    text: str
    sources: tuple[uuid.UUID, ...]
    built_on: tuple[uuid.UUID, ...] = ()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Messages of one scope, oldest first, at least one. Their days are those of `zone`, the tenant's time zone.
    `owner` is the person whose private messages they are; None for public ones. `conversation_id` None: they are of
    none, as what people's tools say to models."""

    tenant_id: uuid.UUID
    conversation_id: uuid.UUID | None
    messages: Sequence[Message]
    zone: tzinfo
    owner: uuid.UUID | None = None


class Extractor(Protocol):
    """Extracts statements from messages. It receives the messages and the memories of the same scope, nothing else."""

    async def extract(
        self, batch: MessageBatch, near: Callable[[Vectors], Awaitable[list[tuple[uuid.UUID, str]]]]
    ) -> list[ExtractedStatement]:
        """The statements of these messages. `near` returns (id, text) of the scope's memories nearest to a vector.

        Raises Unavailable, Misconfigured or BudgetUsedUp with one sentence, also for an unreadable answer of the model.
        """
        ...

"""Rows of everything that can be read, stored under any access tag, for tests of who may read them."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import asyncpg
import numpy as np

from composer.model import Conversation, Visibility, derived_id
from composer.repositories.recall import episode_id_of
from tests.support.harness import START

TERMS: Final = ["budget", "launch"]  # of every row
WIDTH: Final = 384
NOW: Final = START + timedelta(days=1)  # later than every row


@dataclass(frozen=True)
class Tag:
    """An access tag for rows. `vendors` applies to tables that have the column."""

    namespace: str
    visibility: Visibility
    user: uuid.UUID | None
    vendors: tuple[str, ...] | None = None
    mark: str = "visible"  # in all texts and keys


class Rows:
    """Inserts one row of everything that can be read, under an access tag."""

    def __init__(
        self, raw: asyncpg.Connection, tenant: uuid.UUID, conversation: Conversation, agent: uuid.UUID
    ) -> None:
        self._raw = raw
        self._tenant = tenant
        self._conversation = conversation
        self._agent = agent

    async def insert(self, tag: Tag, n: int, newer_vendors: Sequence[str] = ()) -> None:
        """Insert rows under one tag, of the n-th minute. `newer_vendors`: of the memory that supersedes the other."""
        id, newer, at = derived_id("row", str(n)), derived_id("newer", str(n)), START + timedelta(minutes=n)
        await self._index(id, "memory", at, tag)
        for memory, successor in ((id, newer), (newer, None)):
            await self._insert(
                "memories",
                tag,
                id=memory,
                allowed_vendors=list((() if successor else newer_vendors) or tag.vendors or ["*"]),
                kind="fact",
                text=f"{tag.mark} memory {n}, {'old' if successor else 'new'}",
                author="alice",
                origin="test",
                created_at=at,
                superseded_by=successor,
                valid_to=at if successor else None,
            )
        if tag.vendors is None:
            await self._insert_what_every_vendor_may_read(tag, n, id, at)

    async def _insert_what_every_vendor_may_read(self, tag: Tag, n: int, id: uuid.UUID, at: datetime) -> None:
        place, message = self._conversation.id, derived_id("message", str(n))
        owned = replace(tag, user=tag.user or derived_id("somebody"))
        said = {"author": "alice", "text": f"{tag.mark} message {n}", "indexed": True}
        await self._insert(
            "messages",
            owned,
            id=message,
            conversation_id=place,
            seq=1_000 + n,
            external_id=f"{tag.mark}{n}",
            at=at,
            **said,
        )
        await self._insert("episodes", None, id=episode_id_of(message), message_id=message)
        # Half of the messages are indexed with words and a vector: the others are found as neighbours alone.
        await self._index(episode_id_of(message), "episode", at, tag, found=n % 4 < 2)
        made = {"tokens": 1, "model": "test", "created_at": at, "conversation_id": place}
        await self._insert(
            "summaries", tag, id=id, tier="day", text=f"{tag.mark} summary {n}", starts_at=at, ends_at=at, **made
        )
        await self._insert(
            "compactions", tag, id=id, agent_id=self._agent, through_at=at, through_seq=n, made_at=at, made_seq=n,
            messages=1, text=f"{tag.mark} compaction {n}", before_tokens=2, after_tokens=1, requested=False, **made
        )  # fmt: skip
        waits = {
            "kind": "memory",
            "item_id": id,
            "trust": "guest",
            "detail": "note",
            "origin": "test",
            "state": "pending",
        }
        waiting = derived_id("pending", str(n))
        await self._insert(
            "quarantine", owned, id=waiting, at=at, author="alice", text=f"{tag.mark} pending {n}", **waits
        )
        for fact, key in ((id, "key"), (derived_id("marked", str(n)), tag.mark)):
            value = {
                "key": key,
                "value": f'"{tag.mark} value {n}"',
                "valid_from": at,
                "valid_to": NOW + timedelta(days=1),
            }
            await self._insert("facts", tag, id=fact, author="alice", origin="test", **value)
        for landmark, state in ((id, "pinned"), (derived_id("proposed", str(n)), "proposed")):
            decided = {"text": f"{tag.mark} landmark {n}", "author": "alice", "decided_at": at, "state": state}
            await self._insert("landmarks", tag, id=landmark, **decided)

    async def _index(self, id: uuid.UUID, kind: str, at: datetime, tag: Tag, *, found: bool = True) -> None:
        vendors = None if tag.vendors is None else list(tag.vendors)
        vector = str(np.random.default_rng(id.int % 2**32).normal(size=WIDTH).tolist()) if found else None
        row = {"vendors": vendors, "at": at, "length": 3}
        await self._insert("recall_index", tag, id=id, kind=kind, embedding=vector, **row)
        for term in (*TERMS, f"launch{id.hex}") if found else ():  # and one of its own
            await self._insert("recall_terms", tag, item_id=id, term=term, tf=1, **row)

    async def _insert(self, table: str, tag: Tag | None, **values: Any) -> None:
        values["tenant_id"] = self._tenant
        if tag is not None:
            values |= {"namespace": tag.namespace, "visibility": str(tag.visibility), "user_id": tag.user}
        casts = {"value": "::text::jsonb", "embedding": "::text::vector"}
        places = ", ".join(f"${n}{casts.get(name, '')}" for n, name in enumerate(values, 1))
        await self._raw.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", *values.values())

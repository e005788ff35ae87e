"""Receiver without an agent behind it: the log and its cache, with a short method for what tests do with them."""

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import asyncpg

from composer.ingest.receive import Leases, Received, receive
from composer.ingest.rooms import record_membership
from composer.memory.forget import Receipt, forget
from composer.model import (
    CONSOLE,
    Agent,
    Conversation,
    ConversationKind,
    Incoming,
    Message,
    Place,
    Trust,
    Turn,
    Workspace,
    agent_id,
    message_id,
    room_id,
    tenant_id,
    user_id,
)
from composer.repositories.audit import AuditSigner
from composer.repositories.database import Transaction
from composer.settings import Settings
from composer.stores.audit_keys import AuditKeyRing
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.statements import PostgresStatements
from composer.stores.database.working_cache import RedisWorkingCache
from composer.visibility import AccessContext, readable_conversation
from tests.support.databases import service_url
from tests.support.harness import START, ManualClock
from tests.support.open_turns import open_turns

TENANT = tenant_id("acme")
HERE = Workspace(TENANT, "acme", CONSOLE, "acme")
AGENTS = tuple(Agent(agent_id(TENANT, slug), slug, slug.title(), "", "", 128_000) for slug in ("nexus", "scout"))
GENERAL = Place(ConversationKind.ROOM, "general")
BOARD = Place(ConversationKind.ROOM, "board", private=True)
DM = Place(ConversationKind.DM, "nexus")


def said(
    id: str, text: str = "hello", *, user: str = "alice", place: Place = GENERAL, minute: float = 0, **more: Any
) -> Incoming:
    return Incoming(CONSOLE, HERE.name, place, user, user.title(), id, text, START + timedelta(minutes=minute), **more)


async def unannounced(tx: Transaction, turns: Sequence[Turn]) -> Leases:
    """No process answers what is stored."""
    return {}


@dataclass
class Receiver:
    """The log and its cache. Call it to receive a batch of messages, as an adapter does."""

    database: PostgresDatabase
    cache: RedisWorkingCache
    now: datetime = START

    async def __call__(self, *batch: Incoming, answer: bool = True, workspace: Workspace = HERE) -> Received:
        return await receive(
            self.database,
            self.cache,
            workspace,
            AGENTS,
            batch,
            announce=unannounced,
            follow_up=timedelta(hours=1),
            answer=answer,
            now=self.now,
        )

    async def move(self, user: str, room: str, *, joined: bool, at: datetime) -> None:
        async with self.database.transaction(TENANT) as tx:
            await record_membership(tx, HERE, AGENTS, room, user, user, joined=joined, now=at)

    async def forget(self, *ids: str, room: str = "general") -> Receipt:
        async with self.database.transaction(TENANT, "alone") as tx:
            return await forget(tx, [message_id(room_id(HERE, room), id) for id in ids], [], self.now)

    async def conversation(self, id: uuid.UUID) -> Conversation:
        async with self.database.transaction(TENANT, "read") as tx:
            found = await tx.conversations.get(id)
        assert found is not None
        return found

    async def access_context(self, room: str = "general", user: str = "alice") -> AccessContext:
        async with self.database.transaction(TENANT, "read") as tx:
            found = await tx.conversations.access_context(room_id(HERE, room), user_id(HERE, user), Trust.MEMBER)
        assert found is not None
        return found

    async def log(self, id: uuid.UUID | None = None, *, user: str = "alice", limit: int = 10_000) -> list[Message]:
        """The messages of a conversation (by default #general), oldest first, as a viewer in it reads them."""
        async with self.database.transaction(TENANT, "read") as tx:
            access = await tx.conversations.access_context(
                id or room_id(HERE, "general"), user_id(HERE, user), Trust.MEMBER
            )
            return (
                []
                if access is None
                else await tx.messages.latest(readable_conversation(access), access.conversation, limit, None)
            )

    async def turns(self) -> list[str]:
        """The open turns, as `external id of the message>slug of the agent`."""
        turns = await open_turns(self.database, TENANT)
        async with self.database.transaction(TENANT, "read") as tx:
            found = []
            for turn, _ in turns:
                message = await tx.messages.get(turn.message_id)
                slug = next(agent.slug for agent in AGENTS if agent.id == turn.agent_id)
                found.append(f"{message.external_id if message else '?'}>{slug}")
            return found

    async def rows(self) -> dict[str, int]:
        """How many rows of the tenant each table has, and under `versions` the sum of the conversations' versions."""
        counts: dict[str, int] = {}
        async with self.database._pool.acquire() as connection, connection.transaction():
            await connection.execute(f"SET LOCAL nexus.tenant = '{TENANT}'")
            tables = await connection.fetch(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity"
            )
            for row in tables:
                counts[row["relname"]] = await connection.fetchval(f"SELECT count(*) FROM {row['relname']}")
            counts["versions"] = await connection.fetchval("SELECT sum(version) FROM conversations")
        return counts


async def open_database(settings: Settings) -> PostgresDatabase:
    """The database of these settings, open for whatever the audit log records."""
    assert settings.database_url is not None
    signer = AuditSigner(AuditKeyRing.load(settings), ManualClock(), uuid.uuid4)
    return await PostgresDatabase.open(service_url(settings.database_url), signer=signer)


@asynccontextmanager
async def open_receiver(settings: Settings) -> AsyncIterator[Receiver]:
    assert settings.redis_url is not None
    database, cache = await open_database(settings), RedisWorkingCache(settings.redis_url)
    await database.require_embedder("of the test", 32)
    try:
        yield Receiver(database, cache)
    finally:
        await cache.close()
        await database.close()


def connection_of(tx: Transaction) -> asyncpg.Connection:
    """The connection that a transaction runs on, for statements that no repository has."""
    statements = tx.messages._sql
    assert isinstance(statements, PostgresStatements)
    return cast("asyncpg.Connection", statements._connection)

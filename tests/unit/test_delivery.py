"""An answer on its way to a platform: whatever is cut off, each part is posted once and its id is stored."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from bot.delivery.streaming import StreamingDelivery
from composer.model import ConversationKind, Turn
from composer.repositories.deliveries import Destination
from composer.turn.respond import Reply

TEXT = "that is all that I know of it, and it is enough."


class Store:
    """Stores the ids of parts, as slowly as `allowed` lets it."""

    def __init__(self) -> None:
        self.noted: dict[int, str] = {}
        self.allowed = asyncio.Event()
        self.asked = asyncio.Event()
        self.deliveries = self

    @asynccontextmanager
    async def transaction(self, tenant: uuid.UUID, *, snapshot: bool = False) -> AsyncIterator["Store"]:
        yield self

    async def destination(self, turn: uuid.UUID) -> Destination:
        return Destination("discord", "w", ConversationKind.ROOM, "general", None, False, "m1", "u1")

    async def parts(self, turn: uuid.UUID) -> dict[int, str]:
        return dict(self.noted)

    async def record_part(self, turn: uuid.UUID, part: int, external_id: str, now: datetime) -> None:
        self.asked.set()
        await self.allowed.wait()
        self.noted[part] = external_id


class Outbox:
    """A platform that answers at once."""

    pace, limit = 0.0, 2000

    def __init__(self) -> None:
        self.shown: dict[str, str] = {}

    async def find(self, to: Destination, key: str) -> str | None:
        return None

    async def post(self, to: Destination, text: str, key: str) -> str:
        self.shown[f"p{len(self.shown)}"] = text
        return f"p{len(self.shown) - 1}"

    async def edit(self, to: Destination, message: str, text: str) -> None:
        self.shown[message] = text


async def test_a_part_that_was_posted_while_the_answer_ended_is_stored_too() -> None:
    store, wire = Store(), Outbox()
    app: Any = SimpleNamespace(database=store, clock=SimpleNamespace(now=lambda: datetime.now(UTC)))
    platform: Any = wire
    door = StreamingDelivery(app, platform)
    turn = Turn(uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), "discord")
    await door.on_chunk(turn, TEXT)
    await store.asked.wait()  # the part stands there, and its id is on its way to the store
    sending = asyncio.create_task(door.deliver(Reply(turn.id, TEXT, turn, "m1", None)))
    await asyncio.sleep(0)
    store.allowed.set()
    await sending
    assert wire.shown == {"p0": TEXT}
    assert store.noted == {0: "p0"}

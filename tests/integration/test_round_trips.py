"""How often the database and the cache are asked for what is heard: each time costs a wait, and grows with the load."""

from collections import Counter

import pytest
import redis.asyncio as redis
from redis.asyncio.client import Pipeline

from composer.model import ConversationKind, Place
from composer.stores.statements import PostgresStatements
from tests.support.receiver import Receiver, said

pytestmark = pytest.mark.integration


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each statement is run; `cache`: how often the cache is asked."""
    counts: Counter[str] = Counter()

    def count(owner: type, method: str, name: str | None) -> None:
        doing = getattr(owner, method)

        async def counted(self: object, *args: object, **options: object) -> object:
            counts[name or str(args[0])] += 1
            return await doing(self, *args, **options)

        monkeypatch.setattr(owner, method, counted)

    for method in ("fetch", "fetch_one", "fetch_value", "execute"):
        count(PostgresStatements, method, None)
    count(redis.Redis, "execute_command", "cache")
    count(Pipeline, "execute", "cache")
    return counts


async def test_a_mention_by_someone_known_takes_six_statements(receiver: Receiver, asked: Counter[str]) -> None:
    await receiver(said("m1", "hello"))
    asked.clear()
    received = await receiver(said("m2", "@nexus and now?", minute=1))
    assert len(received.turns) == 1
    statements = ["tenant_ensure", "conversations_lock", "messages_known", "members_ensure", "messages_append"]
    assert asked == Counter([*statements, "turns_insert", "cache"])


async def test_a_batch_over_many_rooms_asks_no_more_often_than_one_message(
    receiver: Receiver, asked: Counter[str]
) -> None:
    rooms = [Place(ConversationKind.ROOM, f"room{number}", private=False) for number in range(7)]
    batch = [said(f"m{number}", place=rooms[number % 7], minute=number) for number in range(21)]
    await receiver(*batch[:7])
    asked.clear()
    received = await receiver(*batch)
    assert len(received.new) == 14
    assert max(asked.values()) == 1, asked
    assert "turns_insert" not in asked

"""How many round trips to the database and the cache a received message takes; each costs latency under load."""

from collections import Counter

import pytest
import redis.asyncio as redis
from redis.asyncio.client import Pipeline

from composer.model import ConversationKind, Place
from composer.stores.statements import PostgresStatements
from tests.support.receiver import Receiver, said

pytestmark = pytest.mark.integration


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each statement is run; `cache` counts the calls of the cache."""
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


async def test_a_mention_by_a_known_user_takes_six_statements(receiver: Receiver, calls: Counter[str]) -> None:
    await receiver(said("m1", "hello"))
    calls.clear()
    received = await receiver(said("m2", "@nexus and now?", minute=1))
    assert len(received.turns) == 1
    statements = ["tenant_ensure", "conversations_lock", "messages_known", "members_ensure", "messages_append"]
    assert calls == Counter([*statements, "turns_insert", "cache"])


async def test_a_batch_over_many_rooms_takes_no_more_round_trips_than_one_message(
    receiver: Receiver, calls: Counter[str]
) -> None:
    rooms = [Place(ConversationKind.ROOM, f"room{number}", private=False) for number in range(7)]
    batch = [said(f"m{number}", place=rooms[number % 7], minute=number) for number in range(21)]
    await receiver(*batch[:7])
    calls.clear()
    received = await receiver(*batch)
    assert len(received.new) == 14
    assert max(calls.values()) == 1, calls
    assert "turns_insert" not in calls

"""How many round trips to the database and the cache a received message takes; each costs latency under load."""

import uuid
from collections import Counter
from datetime import UTC, date

import pytest
import redis.asyncio as redis
from redis.asyncio.client import Pipeline

from bot.commands.table import run_command
from bot.console.conversations import question
from bot.script.places import incoming, place_of
from composer.model import ConversationKind, Place, room_id, user_id
from composer.ports.database import Mode
from composer.ports.models import UsageAccount, WorkKind
from composer.repositories.usage import Dimension, Figures
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.statements import PostgresStatements
from composer.usage.ledger import CallLedger, UsageRules
from composer.usage.prices import Prices
from tests.support.harness import AppHarness
from tests.support.receiver import BOARD, Receiver, said


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


async def test_a_mention_by_a_known_user_takes_three_statements(receiver: Receiver, calls: Counter[str]) -> None:
    await receiver(said("m1", "hello"))
    calls.clear()
    received = await receiver(said("m2", "@nexus and now?", minute=1))
    assert len(received.turns) == 1
    assert calls == Counter(["tenant_ensure", "received_known", "messages_append", "cache"])


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


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[uuid.UUID]:
    """The tenants of all transactions that were begun."""
    begun: list[uuid.UUID] = []
    begin = PostgresDatabase.transaction

    def counted(self: PostgresDatabase, tenant_id: uuid.UUID, mode: Mode = "share") -> object:
        begun.append(tenant_id)
        return begin(self, tenant_id, mode)

    monkeypatch.setattr(PostgresDatabase, "transaction", counted)
    return begun


async def test_a_mention_takes_three_transactions_and_its_indexing_two(
    harness: AppHarness, transactions: list[uuid.UUID]
) -> None:
    for _ in range(2):  # then those whose names are left out of what is embedded are known
        await harness.ask("alice", "@nexus hi", room="general")
    transactions.clear()
    here = harness.workspace()
    asked = incoming(here, place_of("general", None, None), "alice", "@nexus hello", harness.clock.tick())
    await harness.app.receive(here, [asked])
    await harness.app.turns.settle()
    assert len(transactions) == 3, "receive, compose, store the answer"
    transactions.clear()
    await harness.app.indexer.catch_up(here.tenant_id)
    assert len(transactions) == 2, "index, store the vectors"


async def test_a_mention_takes_six_reads_for_its_answer_two_to_store_it_and_one_to_deliver_it(
    harness: AppHarness, calls: Counter[str]
) -> None:
    for _ in range(2):
        await harness.say("alice", "hello", room="general")  # then what is remembered has its vector
    await harness.ask("alice", "@nexus hi", room="general")
    calls.clear()
    here = harness.workspace()
    asked = incoming(
        here, place_of("general", None, None), "alice", "@nexus where is the deploy?", harness.clock.tick()
    )
    await harness.app.receive(here, [asked])
    await harness.app.turns.settle()
    received = ["tenant_ensure", "received_known", "messages_append"]
    begun = ["turns_open"]  # earlier questions are answered first
    composed = ["access_context", "recall_background", "recall_search", "structured_readable"]
    composed += ["deployment_get"]  # nothing is found: perhaps the vectors are another embedder's
    stored = ["turn_to_answer", "turn_answer"]
    delivered = ["turn_delivered"]
    caches = ["cache"] * 3  # append the question, read the view, append the answer
    assert calls == Counter([*received, *begun, *composed, *stored, *delivered, *caches])


async def test_a_call_of_a_model_takes_one_round_trip_before_it_and_one_after_it(
    harness: AppHarness, calls: Counter[str], transactions: list[uuid.UUID]
) -> None:
    await harness.say("alice", "hello", room="general")
    here = harness.workspace()
    rules = UsageRules((), Prices({}), lambda _: (), lambda _: UTC)
    ledger = CallLedger(harness.app.database, harness.clock, uuid.uuid4, rules)
    account = UsageAccount(here.tenant_id, WorkKind.ANSWER, None, room_id(here, "general"), user_id(here, "alice"))
    calls.clear()
    transactions.clear()
    await ledger.record(account, "m", Figures(calls=1), await ledger.begin(account))
    assert calls == Counter(["usage_erasure_count", "usage_add"])
    assert transactions == []
    async with harness.app.database.transaction(here.tenant_id) as tx:
        [row] = await tx.usage.of_everyone(Dimension.PERSON, date.min, date.max, ())
    assert (row.name, row.figures.calls) == ("alice", 1)


async def test_a_command_that_changes_something_takes_two_transactions(
    harness: AppHarness, transactions: list[uuid.UUID]
) -> None:
    await harness.say("alice", "hello", room="general")
    here = harness.workspace()
    transactions.clear()
    place, text = place_of("general", None, None), "/nexus fact set day Friday"
    await run_command(harness.app, here, incoming(here, place, "alice", text, harness.clock.tick()))
    assert len(transactions) == 2, "judge its sender, change"


async def test_a_conversation_that_is_created_is_not_locked_once_more(receiver: Receiver, calls: Counter[str]) -> None:
    await receiver(said("m1", "hello"))
    assert (calls["conversations_ensure"], calls["conversations_lock"]) == (1, 1), (
        "people are created before it is locked"
    )
    calls.clear()
    await receiver(said("m2", "hello", place=BOARD))
    assert (calls["conversations_ensure"], calls["conversations_lock"]) == (1, 0)


async def test_a_prompt_takes_one_statement_for_each_layer_and_one_for_whom_it_names(
    harness: AppHarness, calls: Counter[str]
) -> None:
    for text in ("fact set --everywhere --yes timezone CET", "remember --everywhere --yes the deploy is on Friday"):
        await harness.command("bob", f"/nexus {text}", room="general")
    await harness.say("bob", "hello", room="general")
    text = "when is the deploy, @bob?"
    await harness.ask("alice", f"@nexus {text}", room="general")  # then it is known who takes part
    await harness.compose("alice", text, room="general")
    here, place, now = harness.workspace(), place_of("general", None, None), harness.clock.now()
    wanted, _ = await question(harness.app, here, place, "alice", text, now, top_k=None, id="question")
    calls.clear()
    composed = await harness.app.composer.compose(wanted)
    statements = ["access_context", "recall_people", "recall_background", "recall_search", "structured_readable"]
    assert calls == Counter([*statements, "cache"])
    assert "the deploy is on Friday" in repr(composed.prompt)
    assert "bob's profile" in repr(composed.prompt)


async def test_a_prompt_is_read_once_though_others_have_spoken_since(harness: AppHarness, calls: Counter[str]) -> None:
    for user in ("alice", "bob", "carol"):
        await harness.say(user, "hello", room="general")
        await harness.compose("alice", "who is there?", room="general")  # then the cache has the view
        await harness.say(f"{user}2", "me too", room="general")
        calls.clear()
        composed = await harness.compose("alice", "when is the deploy?", room="general")
        assert f"{user}2 (" in repr(composed.prompt.role_messages)
        assert calls["cache"] == 1, "the view is read once"


async def test_a_question_that_names_who_spoke_since_is_embedded_and_read_again(
    harness: AppHarness, calls: Counter[str]
) -> None:
    await harness.say("alice", "hello", room="general")
    await harness.compose("alice", "what does bob need?", room="general")
    await harness.say("bob", "hello", room="general")
    calls.clear()
    await harness.compose("alice", "what does bob need?", room="general")
    assert calls["cache"] == 2, "the view is read twice"


async def test_a_look_for_what_is_due_takes_one_statement_where_nothing_is(
    harness: AppHarness, calls: Counter[str], transactions: list[uuid.UUID]
) -> None:
    await harness.say("alice", "hello", room="general")
    await harness.command("alice", "/nexus remind me tomorrow 9:00 stretch", room="general")
    await harness.app.due_posts.post_due()  # then it is known whether there are statistics
    calls.clear()
    transactions.clear()
    assert await harness.app.due_posts.post_due() == 0
    assert calls == Counter(["tenant_list", "posts_due"])
    assert len(transactions) == 1

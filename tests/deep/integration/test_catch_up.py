"""Catching up: what one person missed in a room, from what they may read there, and for them alone."""

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.console import schedule
from bot.script.places import incoming, place_of
from composer.errors import BadInput, NotFound, Refused
from composer.ingest.rooms import set_room_private
from composer.model import Agent, Attachment, Usage
from composer.people.catch_up import MAX_CATCH_UP_CHARS, REST
from composer.ports.models import ChatMessage, Chunk
from composer.settings import AgentSettings, BudgetSettings, Settings
from tests.support.harness import AppHarness, open_harness

GENERAL = {"room": "general"}
CABLE = "The crane needs a new cable before the harbour inspection."


async def caught_up(harness: AppHarness, user: str = "alice", since: str = "", **place: Any) -> str:
    return (await harness.command(user, f"/nexus catch-up {since}", **(place or GENERAL))).text


async def test_it_tells_what_others_said_since_one_last_wrote_in_the_room_or_a_thread(harness: AppHarness) -> None:
    await harness.say("bob", "The zqowl was here before.", **GENERAL)
    await harness.say("alice", "good morning", **GENERAL)
    for number in range(2):
        await harness.say("bob", CABLE, **GENERAL, id=f"cable{number}")
    await harness.say("carol", "@alice can you order it in Rotterdam?", **GENERAL, thread="t1")
    text = await caught_up(harness)
    assert text.startswith("Since you last wrote here (Mon 2026-05-04 09:02): 3 messages by bob (2), carol (1).")
    assert "crane" in text
    assert "To you:\ncarol, Mon 09:05: @alice can you order it in Rotterdam?" in text
    assert text.endswith("The first of it: bob, Mon 09:03 (message cable0)")
    assert "zqowl" not in text
    await harness.say("alice", "I am back", **GENERAL, thread="t1")
    assert "nobody else has written here" in await caught_up(harness)


async def test_it_takes_a_time(harness: AppHarness) -> None:
    await harness.say("alice", "good morning", **GENERAL)
    await harness.say("bob", CABLE, **GENERAL)
    await harness.say("alice", "I see", **GENERAL)
    assert "nobody else has written here" in await caught_up(harness)
    assert "1 message by bob (1)" in await caught_up(harness, since="2 hours")
    for wrong in ("tomorrow", "sometimes"):
        with pytest.raises(BadInput, match="no time before now"):
            await caught_up(harness, since=wrong)


async def test_whole_days_are_told_by_their_summaries(harness: AppHarness) -> None:
    await harness.say("alice", "good morning", **GENERAL)
    harness.clock.set(datetime(2026, 5, 5, 9, 0, tzinfo=UTC))
    for text in (CABLE, "We decided to order the cable from Rotterdam.", "The inspection is on the twentieth of May."):
        await harness.say("bob", text, **GENERAL)
    harness.clock.set(datetime(2026, 5, 6, 9, 0, tzinfo=UTC))
    await schedule.run(harness.app, "day", harness.clock.now())
    await harness.say("carol", "The zqowl sleeps in the crane.", **GENERAL)
    text = await caught_up(harness)
    assert "Tuesday, 2026-05-05:\n" in text
    assert "Rotterdam" in text
    assert "zqowl" in text.partition("Besides these days:")[2]


async def test_it_tells_only_where_the_first_message_is_since_a_later_one_may_deny_it(harness: AppHarness) -> None:
    at, place = harness.workspace(), place_of("general", None, None)
    sent = incoming(at, place, "bob", "", harness.clock.tick(), id="m1")
    await harness.app.receive(at, [replace(sent, attachments=(Attachment("plan.txt", "text/plain", "CRANE"),))])
    await harness.say("bob", CABLE, **GENERAL)
    assert (await caught_up(harness)).endswith("The first of it: bob, Mon 09:01 (message m1)")


async def test_whoever_never_wrote_there_is_told_of_a_week(harness: AppHarness) -> None:
    await harness.say("bob", "The zqowl is old news.", **GENERAL)
    harness.clock.tick(timedelta(days=8).total_seconds())
    await harness.say("bob", CABLE, **GENERAL)
    text = await caught_up(harness, "newcomer")
    assert "1 message by bob (1)" in text
    assert "zqowl" not in text


async def test_what_is_older_than_a_week_stands_with_its_date(harness: AppHarness) -> None:
    for number in range(3):
        await harness.say("bob", f"@alice crane {number}", **GENERAL, id=f"crane{number}")
        harness.clock.tick(timedelta(days=1).total_seconds())
    harness.clock.set(datetime(2026, 5, 12, 9, 0, tzinfo=UTC))
    text = await caught_up(harness, since="2026-05-01")
    assert "bob, Mon 2026-05-04 09:01: @alice crane 0 (message crane0)" in text
    assert "bob, Wed 09:" in text
    assert "The first of it: bob, Mon 2026-05-04" in text


async def test_of_more_than_are_read_the_first_is_called_that_of_the_latest(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("composer.people.catch_up.MAX_MISSED_MESSAGES", 2)
    for number in range(3):
        await harness.say("bob", f"crane {number}", **GENERAL, id=f"crane{number}")
    text = await caught_up(harness, since="2 hours")
    assert "The first of the latest 2: bob, Mon 09:0" in text
    assert text.endswith(" (message crane1)")


async def test_it_is_the_same_whatever_was_said_where_one_may_not_read(harness: AppHarness) -> None:
    texts = []
    for name in ("acme", "acme-eu"):
        where = {"workspace": name}
        harness.clock.set(datetime(2026, 5, 4, 9, 0, tzinfo=UTC))
        await harness.say("alice", "good morning", **GENERAL, **where)
        await harness.say("bob", CABLE, **GENERAL, **where, id="cable")
        if name == "acme-eu":
            now = harness.clock.now()
            others = (
                {"room": "cave", "private": True},
                {"dm": "nexus"},
                {"room": "general", "thread": "t9", "private": True},
            )
            for place in others:
                await harness.say("bob", "@alice the zqlynx of the crane", **place, **where)
            harness.clock.set(now)
        harness.clock.set(datetime(2026, 5, 4, 12, 0, tzinfo=UTC))
        texts.append(await caught_up(harness, since="5 hours", **GENERAL, **where))
    assert texts[0] == texts[1]
    assert "crane" in texts[0]


async def test_nothing_of_a_rooms_private_time_is_told_after_its_opening(harness: AppHarness) -> None:
    await harness.say("bob", "the vault code is zqlynx", room="general", private=True)
    agents = harness.app.directory.agents(harness.workspace().tenant_id)
    await set_room_private(harness.app.database, harness.workspace(), agents, "general", False, harness.clock.tick())
    await harness.say("bob", CABLE, **GENERAL)
    text = await caught_up(harness, "eve", since="5 hours")
    assert "1 message by bob (1)" in text
    assert "zqlynx" not in text


async def test_who_is_not_in_a_private_room_learns_nothing_of_it(harness: AppHarness) -> None:
    await harness.say("bob", "the vault code is zqlynx", room="cave", private=True)
    with pytest.raises(NotFound, match="There is no room"):
        await caught_up(harness, "eve", room="cave")


async def test_it_fits_one_message_with_what_is_to_the_person_first(harness: AppHarness) -> None:
    await harness.say("alice", "good morning", **GENERAL)
    for day in range(1, 12):
        harness.clock.set(datetime(2026, 5, 4, 9, 0, tzinfo=UTC) + timedelta(days=day))
        for number in range(3):
            await harness.say("bob", f"Day {day}: the crane {number} gets a cable of {day} metres. " * 4, **GENERAL)
    harness.clock.set(datetime(2026, 5, 16, 9, 0, tzinfo=UTC))
    await schedule.run(harness.app, "day", harness.clock.now())
    await harness.say_all("carol", [f"@alice you must sign the contract {'now ' * 50}" for _ in range(15)], **GENERAL)
    text = await caught_up(harness)
    assert len(text) <= MAX_CATCH_UP_CHARS
    assert text.splitlines()[1].startswith("To you (and 1")
    assert text.index("sign the contract") < text.index("2026-05-15:")
    assert "2026-05-05" not in text.splitlines()[-3]
    assert REST in text


async def test_one_person_has_one_summary_written_at_a_time(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.say("alice", "good morning", **GENERAL)
    await harness.say("bob", CABLE, **GENERAL)
    summarise, refused = harness.app.tiers._writer.summarise, list[str]()

    async def asked_again(*given: Any, **named: Any) -> Any:
        with pytest.raises(Refused, match="still summing up") as error:
            await caught_up(harness)
        refused.append(str(error.value))
        return await summarise(*given, **named)

    with monkeypatch.context() as slow:
        slow.setattr(harness.app.tiers._writer, "summarise", asked_again)
        assert "crane" in await caught_up(harness)
    assert len(refused) == 1
    assert "crane" in await caught_up(harness)


@pytest.mark.parametrize("text", [None, "The crane is fine."])
async def test_what_is_deleted_or_edited_while_it_is_summed_up_is_not_told(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    # Before, the answer, which nothing takes back, told what was forgotten while a model wrote it.
    await harness.say("alice", "good morning", **GENERAL)
    await harness.say("bob", "@alice the vault code is zqlynx", **GENERAL, id="told")
    await harness.say("bob", CABLE, **GENERAL)
    with monkeypatch.context() as slow:
        before_each_summary(harness, slow, lambda asked: harness.change("told", text) if asked == 1 else None)
        answer = await caught_up(harness)
    assert "zqlynx" not in answer
    assert ("1 message" if text is None else "2 messages") in answer


async def test_who_leaves_a_room_while_it_is_summed_up_for_them_is_told_nothing(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.say("bob", "the vault code is zqlynx", room="cave", private=True)
    await harness.move("alice", "cave", joined=True)
    with monkeypatch.context() as slow:
        before_each_summary(harness, slow, lambda _: harness.move("alice", "cave", joined=False))
        with pytest.raises(NotFound, match="There is no room"):
            await caught_up(harness, room="cave")


async def test_where_something_is_edited_again_and_again_it_asks_to_be_asked_again(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.say("bob", CABLE, **GENERAL, id="told")
    with monkeypatch.context() as slow:
        before_each_summary(harness, slow, lambda asked: harness.change("told", f"The crane has {asked} cables."))
        with pytest.raises(Refused, match="ask for it again"):
            await caught_up(harness)


def before_each_summary(
    harness: AppHarness, patched: pytest.MonkeyPatch, act: Callable[[int], Awaitable[None] | None]
) -> None:
    """Let something happen while a summary is being written; `act` gets how many were begun."""
    summarise, begun = harness.app.tiers._writer.summarise, itertools.count(1)

    async def slow(*given: Any, **named: Any) -> Any:
        done = act(next(begun))
        if done is not None:
            await done
        return await summarise(*given, **named)

    patched.setattr(harness.app.tiers._writer, "summarise", slow)


class Writer:
    """A model that chooses the first sentence."""

    def __init__(self) -> None:
        self.asked = 0

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        self.asked += 1
        yield Chunk("1", Usage(90, 10))


async def test_a_model_writes_it_in_the_askers_name_until_the_budget_is_used_up(settings: Settings) -> None:
    agents = (AgentSettings(model="m1"),)
    budgets = (BudgetSettings(per="day", tokens=3_000),)
    limited = settings.model_copy(update={"agents": agents, "budgets": budgets})
    model = Writer()
    async with open_harness(limited, model=model) as harness:
        await harness.say("alice", "good morning", **GENERAL)
        await harness.say("bob", CABLE, **GENERAL)
        for n in range(40):  # what is short would stand whole
            await harness.say("carol", f"Container number {n} of the ship from Rotterdam is unloaded.", **GENERAL)
        assert f"In short:\nbob: {CABLE}" in await caught_up(harness)
        assert model.asked == 1
        used = (await harness.command("alice", "/nexus usage --by kind", **GENERAL)).text
        assert "summaries" in used
        told = [await caught_up(harness) for _ in range(40)]
        assert "number 39 of the ship" in told[-1], "without the model it is the end"
        assert 1 < model.asked < 40

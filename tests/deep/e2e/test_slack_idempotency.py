"""Nexus on Slack: repeated events take effect once, refused answers are closed, and replies are retracted there."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from bot.console.doctor import run_doctor
from bot.delivery.notices import ROOMS_QUESTION
from composer.memory.forget import RETRACTED
from composer.repositories.notices import Notices
from composer.settings import Settings
from tests.deep.e2e.test_slack_faults import CrashingStep
from tests.support.slack.harness import Office, office_on


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


async def rows(office: Office, query: str) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(office.settings.database_url)
    try:
        return [dict(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


@pytest.mark.parametrize("code", ["channel_not_found", "not_in_channel", "is_archived"])
async def test_an_answer_that_slack_refuses_for_good_is_closed_with_the_reason(office: Office, code: str) -> None:
    async with office.socket() as running:
        for method in ("chat.startStream", "chat.postMessage"):
            office.slack.fail(method, "error", times=20, error=code)
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        await running.settle()
    (turn,) = await rows(office, "SELECT state, failure, sent_at FROM turns")
    assert (turn["state"], turn["sent_at"]) == ("sent", None)
    assert code in turn["failure"]
    async with office.socket() as running:
        await running.settle()
    assert office.answers() == []
    assert len(office.model.prompts) == 1


async def test_a_repeated_command_is_run_and_answered_once_even_after_a_restart(office: Office) -> None:
    async with office.socket() as running:
        office.slack.hold()
        await office.slack.post(office.general, office.bob, office.mention("/nexus fact set day 1"))
        held, office.slack.outbox.held = list(office.slack.outbox.held or []), None
        for payload in held * 2:
            office.slack.outbox.send(payload)
        await office.slack.wait_for(lambda: office.slack.ephemerals(office.bob))
        await running.settle()
    async with office.socket() as running:
        for payload in held:
            office.slack.outbox.send(payload)
        await office.slack.settled()
        await running.settle()
    assert len(office.slack.ephemerals(office.bob)) == 1
    assert len(await rows(office, "SELECT id FROM facts")) == 1


async def test_the_first_user_is_no_admin_but_an_admin_of_the_workspace_is(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.post(office.general, office.bob, "I am the first to speak")
        await running.settle()
        refused = await office.slack.command(office.general, office.bob, "memory off")
        assert "Only an admin" in refused.ack["text"]
        assert "off" in (await office.slack.command(office.general, office.alice, "memory off")).ack["text"]


async def test_a_mentioned_person_is_invited_to_a_project(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.post(office.general, office.bob, "hello")
        await running.settle()
        await office.slack.command(office.general, office.alice, "project create apollo")
        for words in (f"add apollo <@{office.bob}>", f"add apollo <@{office.bob}|bob> read"):
            done = await office.slack.command(office.general, office.alice, f"project member {words}")
            assert "Invited bob to apollo" in done.ack["text"]


async def test_a_room_gets_the_privacy_notice_once(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        im = await office.slack.add_im(office.team, office.bob)
        await office.slack.post(im, office.bob, "hello")
        await office.answered()
        await office.answered(1, im)
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("and when else?"))
        await office.answered(2)
        await office.slack.wait_for(office.notices)
        await running.settle()
    (notice,) = office.notices()
    assert "/nexus memory" in notice["text"]
    assert "/nexus opt-out" in notice["text"]
    assert "thread_ts" not in notice
    assert [each["text"] for each in office.notices(im)] in ([], [ROOMS_QUESTION]), "a DM is asked something else"


@pytest.mark.own_database  # what a process leaves that stops at once is ended with its own connections
@pytest.mark.parametrize("step", ["begin", "mark_posted"])
async def test_a_room_gets_one_privacy_notice_despite_a_crash(
    office: Office, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing_step = CrashingStep()
    with monkeypatch.context() as patch:
        patch.setattr(Notices, step, crashing_step)
        async with office.socket() as running:
            await office.slack.post(office.general, office.alice, "nobody is asked anything")
            await office.slack.wait_for(crashing_step.reached.is_set)
            await crashing_step.end(running)
    assert len(office.notices()) == (step == "mark_posted")
    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, "and again")
        await office.slack.wait_for(office.notices)
        await running.settle()
    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, "and once more")
        await running.settle()
    assert len(office.notices()) == 1


async def test_a_room_that_stores_nothing_gets_the_privacy_notice_at_its_first_answer(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.command(office.general, office.alice, "memory off")
        await office.slack.post(office.general, office.alice, "nobody is asked anything")
        await running.settle()
        assert office.notices() == []
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.slack.wait_for(office.notices)
        assert "I store nothing" in office.notices()[0]["text"]


async def test_messages_deleted_while_the_adapter_was_down_are_forgotten(office: Office) -> None:
    async with office.socket() as running:
        stays = await office.slack.post(office.general, office.bob, "the launch is on Friday")
        deleted = await office.slack.post(office.general, office.bob, "the code is 1111")
        root = await office.slack.post(office.general, office.bob, "a root with the code 2222")
        reply = await office.slack.post(office.general, office.bob, "a reply with the code 3333", thread=root)
        staying = await office.slack.post(office.general, office.bob, "a reply that stays", thread=root)
        im = await office.slack.add_im(office.team, office.bob)
        first = await office.slack.post(im, office.bob, "a DM with the code 4444")
        await office.slack.post(im, office.bob, "in its thread", thread=first)
        second = await office.slack.post(im, office.bob, "a DM to be deleted")
        await office.answered(3, im)
        await running.settle()
    assert stays
    assert staying
    for channel, ts in ((office.general, deleted), (office.general, reply), (office.general, root), (im, second)):
        await office.slack.delete(channel, ts)
    async with office.socket() as running:
        await running.settle()
        left = {"the launch is on Friday", "a reply that stays", "a DM with the code 4444", "in its thread"}
        assert set(await running.stored()) == left


async def test_messages_edited_while_the_adapter_was_down_are_edited_also_where_they_are_hours_old(
    office: Office,
) -> None:
    # docs/architecture.md: what was edited away on the platform is gone everywhere. What was said more than an hour
    # before the last message stayed as it had been.
    async with office.socket() as running:
        edited = await office.slack.post(office.general, office.bob, "the code is 1111")
        root = await office.slack.post(office.general, office.bob, "a root")
        reply = await office.slack.post(office.general, office.bob, "a reply with the code 3333", thread=root)
        await office.slack.post(office.general, office.bob, "the last reply", thread=root)
        im = await office.slack.add_im(office.team, office.bob)
        direct = await office.slack.post(im, office.bob, "a DM with the code 4444")
        await office.slack.post(im, office.bob, "the last DM")
        await office.answered(2, im)
        await office.slack.post(office.general, office.bob, "the last message")
        await running.settle()
    for channel, ts in ((office.general, edited), (office.general, reply), (im, direct)):
        await office.slack.edit(channel, ts, "nothing")
    async with office.socket() as running:
        await running.settle()
        stored = await running.stored()
    assert sorted(stored) == [
        "a root",
        "nothing",
        "nothing",
        "nothing",
        "the last DM",
        "the last message",
        "the last reply",
    ]


async def test_all_messages_that_were_deleted_while_the_adapter_was_down_are_forgotten_however_many(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    # docs/slack.md: what was deleted meanwhile is forgotten. Of a channel that was cleaned up, it was the latest 50.
    monkeypatch.setattr("bot.platform.reconciliation.MAX_LOOKED_UP", 1)
    async with office.socket() as running:
        deleted = [await office.slack.post(office.general, office.bob, f"the code is {n}") for n in range(4)]
        im = await office.slack.add_im(office.team, office.bob)
        root = await office.slack.post(im, office.bob, "a root")
        edited = await office.slack.post(im, office.bob, "in a thread, the code is 4", thread=root)
        await office.slack.post(im, office.bob, "in a thread, something else", thread=root)
        await office.answered(3, im)
        await running.settle()
    for ts in deleted:
        await office.slack.delete(office.general, ts)
    await office.slack.edit(im, edited, "in a thread, nothing")
    async with office.socket() as running:
        await running.settle()
        stored = await running.stored()
    assert sorted(stored) == ["a root", "in a thread, nothing", "in a thread, something else"]


@pytest.mark.parametrize("fault", ["missing_scope", "not_in_channel"])
async def test_an_unreadable_history_is_not_taken_for_a_deletion(office: Office, fault: str) -> None:
    async with office.socket() as running:
        await office.slack.post(office.general, office.bob, "one")
        await office.slack.post(office.general, office.bob, "two")
        await running.settle()
    for method in ("conversations.history", "conversations.replies"):
        office.slack.fail(method, "error", times=50, error=fault)
    async with office.socket() as running:
        await running.settle()
        assert await running.stored() == ["one", "two"]


async def test_a_retracted_answer_is_retracted_in_the_channel_too(office: Office) -> None:
    office.model.pieces = ("The vault code ", "is heliotrope, as bob said.")
    async with office.socket() as running:
        secret = await office.slack.post(office.general, office.bob, "the vault code is heliotrope")
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("what is the vault code?"))
        await office.answered()
        await running.settle()
        await office.slack.delete(office.general, secret)
        await office.slack.wait_for(lambda: [a["text"] for a in office.answers()] == [RETRACTED])


async def test_an_answer_that_slack_lets_nobody_edit_any_more_is_deleted_to_retract_it(office: Office) -> None:
    office.model.pieces = ("The vault code ", "is heliotrope, as bob said.")
    async with office.socket() as running:
        secret = await office.slack.post(office.general, office.bob, "the vault code is heliotrope")
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("what is the vault code?"))
        await office.answered()
        await running.settle()
        office.slack.fail("chat.update", "error", error="edit_window_closed")
        await office.slack.delete(office.general, secret)
        await office.slack.wait_for(lambda: office.answers() == [])


async def test_a_retraction_that_failed_in_slack_is_retried_after_a_restart(office: Office) -> None:
    office.model.pieces = ("The vault code ", "is heliotrope, as bob said.")
    async with office.socket() as running:
        await office.slack.post(office.general, office.bob, "the vault code is heliotrope")
        asked = await office.slack.post(office.general, office.alice, office.mention("what is the vault code?"))
        await office.answered()
        await running.settle()
        office.slack.fail("chat.update", "http500", times=4)
        await office.slack.delete(office.general, asked)  # the question itself: its place must still be known
        await office.slack.wait_for(lambda: len(office.slack.calls_of("chat.update")) >= 4)
    async with office.socket() as running:
        await office.slack.wait_for(lambda: [a["text"] for a in office.answers()] == [RETRACTED])
        await running.settle()
    assert await rows(office, "SELECT * FROM retractions") == []


async def test_a_person_who_opted_out_keeps_the_given_answer(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.command(office.general, office.bob, "opt-out")
        await office.slack.post(office.general, office.bob, office.mention("when?"))
        await office.answered()
        await running.settle()
        assert await running.stored() == []
        assert await rows(office, "SELECT * FROM retractions") == []
    assert [answer["text"] for answer in office.answers()] == [office.model.answer]


async def test_doctor_checks_slack_if_a_token_is_set(office: Office) -> None:
    office.slack.world.tokens[office.team.bot_token].scopes -= {"groups:history"}
    found = {(c.name, c.ok): c.detail for c in await run_doctor(office.settings, office.slack.base_url, live=True)}
    assert "nexus" in found["slack", True] or "token" in found["slack", True]
    assert "groups:history" in found["slack", False]


async def test_who_asks_while_another_is_answered_sees_that_they_are_heard(office: Office) -> None:
    office.model.gates[0] = asyncio.Event()
    async with office.socket() as running:
        first = await office.slack.post(office.general, office.alice, office.mention("one?"))
        await office.slack.wait_for(lambda: office.signs and office.model.prompts)
        second = await office.slack.post(office.general, office.bob, office.mention("two?"))
        await office.slack.wait_for(lambda: [sign.args["thread_ts"] for sign in office.signs] == [first, second])
        assert await running.stored() == ["@nexus one?", "@nexus two?"]
        office.model.gates[0].set()
        await office.answered(2)
        assert {sign.args["thread_ts"] for sign in office.signs if sign.args["status"]} == {first, second}


async def test_a_status_set_after_the_answer_is_cleared(office: Office) -> None:
    async with office.open() as running:
        call = running.adapter._slack.call

        async def slow(method: str, **arguments: Any) -> dict[str, Any]:
            if arguments.get("status"):
                await office.answered()
            return await call(method, **arguments)

        running.adapter._slack.call = slow  # type: ignore[method-assign]
        async with running.serving():
            await office.slack.wait_for(lambda: running.adapter.reconciliation.completed)
            await office.slack.post(office.general, office.alice, office.mention("when?"))
            await office.slack.wait_for(lambda: len(office.signs) == 2)
            assert [sign.args["status"] for sign in office.signs] == ["is thinking…", ""]


@pytest.mark.parametrize("when", ["before its end", "afterwards"])
async def test_an_answer_that_a_person_has_stopped_is_retracted_once_its_source_is_deleted(
    office: Office, when: str
) -> None:
    # README: a notice takes the place of an answer that drew on what is forgotten, also where it was posted. What
    # somebody had stopped stayed as it was.
    gate = office.model.gates[1] = asyncio.Event()
    office.model.pieces = ("The code is 1111, as I recall. ", "More to come.")
    async with office.socket() as running:
        source = await office.slack.post(office.general, office.bob, "the code is 1111")
        await running.settle()
        question = await office.slack.post(office.general, office.alice, office.mention("what is the code?"))
        await office.slack.wait_for(office.answers)
        await office.slack.press_stop(office.general, office.alice, question)
        if when == "before its end":
            await office.slack.delete(office.general, source)
            await office.slack.settled()
        gate.set()
        await running.settle()
        if when == "afterwards":
            assert [answer["text"] for answer in office.answers()] == ["The code is 1111, as I recall."]
            await office.slack.delete(office.general, source)
            await running.settle()
            await office.slack.wait_for(lambda: office.answers()[0]["text"] == RETRACTED)
        assert [answer["text"] for answer in office.answers()] == [RETRACTED]


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("stopped", [True, False])
async def test_an_answer_whose_question_is_deleted_while_it_streams_is_retracted(
    office: Office, streams: bool, stopped: bool
) -> None:
    if not streams:
        office.slack.fail("chat.startStream", "error", times=9, error="unknown_method")
    gate = office.model.gates[1] = asyncio.Event()
    office.model.pieces = ("It is on a Friday, I recall. ", "More to come.")
    async with office.socket() as running:
        question = await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.slack.wait_for(office.answers)
        if streams and stopped:
            await office.slack.press_stop(office.general, office.alice, question)
        await office.slack.delete(office.general, question)
        await office.slack.settled()
        assert await running.stored() == []
        gate.set()
        await running.settle()
        assert [answer["text"] for answer in office.answers()] == [RETRACTED]
        assert running.adapter._delivery._streams == {}
        assert len(running.adapter.outbox._streams) == 0


async def test_in_a_dm_outside_the_pane_the_status_stands_at_the_question_until_it_is_answered(office: Office) -> None:
    dm = await office.slack.add_im(office.team, office.alice)
    office.model.gates[0] = asyncio.Event()
    async with office.socket() as running:
        asked = await office.slack.post(dm, office.alice, "when?")
        await office.slack.wait_for(lambda: office.signs and office.model.prompts)
        assert {(sign.args["channel_id"], sign.args["thread_ts"]) for sign in office.signs} == {(dm, asked)}
        office.model.gates[0].set()
        await office.answered(1, dm)
        await running.settle()
        assert [sign.args["status"] for sign in office.signs] == ["is thinking\u2026", ""]
        (answer,) = office.answers(dm)
        assert "thread_ts" not in answer

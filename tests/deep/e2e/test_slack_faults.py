"""Nexus on Slack during faults: every message is stored once, and every answer is posted once."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from bot.platform import inbox as platform_inbox
from bot.platform.events import MessageChanged
from bot.slack.client import TokenRefused
from composer.errors import Unavailable
from composer.ingest.changes import change_message
from composer.model import Incoming
from composer.repositories.deliveries import Deliveries
from composer.repositories.messages import Messages
from composer.repositories.turns import Turns
from composer.settings import Settings
from tests.support.slack.harness import Office, Running, office_on
from tests.support.slack.told import deleted, edited, told
from tests.support.waiting import until


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


# Events


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_repeated_and_reordered_events_take_effect_once(office: Office, wire: str) -> None:
    async with office.socket() if wire == "socket" else office.http() as running:
        office.slack.hold()
        await office.slack.post(office.general, office.bob, "one")
        first = await office.slack.post(office.general, office.bob, "two")
        deletion = await office.slack.post(office.general, office.bob, "three")
        await office.slack.edit(office.general, first, "two, once")
        await office.slack.edit(office.general, first, "two, twice")
        await office.slack.delete(office.general, deletion)
        await office.slack.post(office.general, office.alice, office.mention("how many?"))

        def shuffled(held: list[dict[str, Any]]) -> list[dict[str, Any]]:
            copies = held * 3
            random.Random(7).shuffle(copies)
            return copies

        await office.slack.release(shuffled)
        await office.answered()
        await running.settle()
        assert await running.stored() == ["one", "two, twice", "@nexus how many?"]
        assert [answer["text"] for answer in office.answers()] == [office.model.answer]
        assert len(office.model.prompts) == 1


async def test_changes_that_arrive_before_their_message_take_effect(office: Office) -> None:
    async with office.socket() as running:
        office.slack.hold()
        edited = await office.slack.post(office.general, office.bob, "the code is 1111")
        deleted = await office.slack.post(office.general, office.bob, "the code is 2222")
        await office.slack.edit(office.general, edited, "no code")
        await office.slack.delete(office.general, deleted)
        held, office.slack.outbox.held = office.slack.outbox.held or [], None
        for payload in held[::-1]:  # one by one, in reverse order
            office.slack.outbox.send(payload)
            await office.slack.settled()
        await running.settle()
        assert await running.stored() == ["no code"]
        await office.slack.edit(office.general, edited, "no code at all")
        await running.settle()
        assert await running.stored() == ["no code at all"]
        # What may be forgotten later is no longer in memory.
        assert {change.text for change in running.adapter.inbox._changes.values()} == {None}


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_an_event_that_could_not_be_stored_is_not_acknowledged_and_is_sent_again(
    office: Office, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office.socket() if wire == "socket" else office.http() as running:
        failures = iter([OSError("the database is away")] * 2)
        append = Messages.append

        async def fail_at_first(self: Messages, *args: Any, **options: Any) -> None:
            await append(self, *args, **options)
            for failure in failures:
                raise failure

        monkeypatch.setattr(Messages, "append", fail_at_first)
        office.slack.outbox.ack_seconds = 0.5
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.slack.settled()
        for seconds in (60, 300):
            await office.slack.advance(seconds)
            await office.slack.settled()
        assert await office.answered() == [office.model.answer]
        await running.settle()
        assert await running.stored() == ["@nexus when?"]
        assert any(attempt.retry for attempt in office.slack.outbox.attempts)


# Connections


async def test_messages_missed_while_down_are_read_and_answered_once(office: Office) -> None:
    async with office.socket() as running:
        root = await office.slack.post(office.general, office.bob, "before")
        old = await office.slack.post(office.general, office.bob, "a thread without replies")
        im = await office.slack.add_im(office.team, office.bob)
        await office.slack.post(im, office.bob, "hello")
        await office.answered(1, im)
        await running.settle()
        caught_up = running.adapter.reconciliation.completed
        await office.slack.go_down()
        await office.slack.post(office.general, office.bob, "the launch is on Friday")
        await office.slack.post(office.general, office.bob, "in a new thread", thread=old)
        await office.slack.edit(office.general, root, "before, edited")
        await office.slack.post(office.general, office.alice, office.mention("when is the launch?"))
        await office.slack.post(im, office.bob, "are you there?")
        await office.slack.post(office.general, office.bob, office.mention("/nexus forget everything --yes"))
        await office.slack.come_back()
        await office.slack.wait_for(lambda: running.adapter.reconciliation.completed > caught_up)
        await office.answered(1)
        await office.answered(2, im)
        await running.settle()
        rooms = {"before, edited", "a thread without replies", "the launch is on Friday", "in a new thread"}
        assert set(await running.stored()) == rooms | {"@nexus when is the launch?", "hello", "are you there?"}
        assert "the launch is on Friday" in "".join(office.model.prompts)
        assert len(office.answers()) == 1


async def test_what_was_missed_in_every_channel_is_read_before_anything_is_compared(office: Office) -> None:
    # Comparing takes many calls, at Slack's limits minutes of them; a question in the last channel was too old by then.
    channels = [office.general, *[await office.slack.add_channel(office.team, f"c{n}", [office.bob]) for n in range(3)]]
    async with office.socket() as running:
        for channel in channels:
            await office.slack.post(channel, office.bob, f"hello in {channel}")
        await running.settle()
    before = len(office.slack.calls)
    async with office.socket() as running:
        await running.settle()
    calls = [call for call in office.slack.calls[before:] if call.method == "conversations.history"]
    asked = [str(call.args["channel"]) for call in calls]
    assert sorted(asked[: len(channels)]) == sorted(asked[len(channels) :]) == sorted(channels)


async def test_missed_messages_are_stored_with_the_privacy_of_their_time(office: Office) -> None:
    secret = await office.slack.add_channel(office.team, "secret", [office.alice], private=True)
    await office.slack.post(secret, office.alice, "canary-one")
    await office.slack.set_private(secret, False, office.alice)
    await office.slack.post(secret, office.bob, office.mention("what of the canary?"))
    async with office.socket() as running:
        assert await office.answered(1, secret) == [office.model.answer]
        await running.settle()
        assert await running.stored() == ["canary-one", "@nexus what of the canary?"]
        assert "canary-" not in office.model.prompts[0].replace("what of the canary", "")


async def test_missed_replies_are_stored_with_the_privacy_of_their_time(office: Office) -> None:
    general = office.general
    root = await office.slack.post(general, office.alice, "a thread begins")
    async with office.socket() as running:
        await running.settle()
    await office.slack.set_private(general, True, office.alice)
    await office.slack.post(general, office.alice, "canary-one", thread=root)
    await office.slack.set_private(general, False, office.alice)
    await office.slack.post(general, office.bob, "after it was opened", thread=root)
    async with office.socket() as running:
        await running.settle()
        await office.slack.post(general, office.bob, office.mention("what of the canary?"), thread=root)
        await office.answered(1)
        assert "canary-one" in await running.stored()
        assert "canary-one" not in office.model.prompts[-1]


async def test_old_questions_are_stored_and_not_answered(office: Office) -> None:
    await office.slack.post(office.general, office.alice, office.mention("when is the launch?"))
    channel = office.slack.world.channels[office.general]
    (ts,) = channel.messages
    old = f"{int(ts.partition('.')[0]) - 3600}.000100"
    channel.messages = {old: channel.messages[ts] | {"ts": old}}
    async with office.socket() as running:
        await running.settle()
        assert await running.stored() == ["@nexus when is the launch?"]
        assert (office.model.prompts, office.answers()) == ([], [])


async def test_messages_from_before_the_agent_joined_are_not_read(office: Office) -> None:
    late = await office.slack.add_channel(office.team, "late", [office.alice], bot=False)
    await office.slack.post(late, office.alice, "before you came")
    await office.slack.join(late, office.team.bot_user)
    await office.slack.post(late, office.alice, "after you came")
    async with office.socket() as running:
        await running.settle()
        assert await running.stored() == ["after you came"]


@pytest.mark.parametrize("again", [False, True])
async def test_messages_from_before_the_agent_joined_are_read_by_no_later_connection(
    office: Office, *, again: bool
) -> None:
    late = await office.slack.add_channel(office.team, "late", [office.alice], bot=False)
    if again:
        await office.slack.join(late, office.team.bot_user)
    async with office.socket() as running:
        root = await office.slack.post(late, office.alice, "a thread begins")
        await office.slack.post(late, office.alice, "a first reply", thread=root)
        await running.settle()
        if again:
            await office.slack.leave(late, office.team.bot_user)
        await office.slack.post(late, office.alice, "this is not for nexus")
        await office.slack.post(late, office.alice, "nor is this", thread=root)
        await office.slack.join(late, office.team.bot_user)
        await office.slack.post(late, office.alice, "after you came")
        await office.slack.post(late, office.alice, "a last reply", thread=root)
        await running.settle()
        caught_up = running.adapter.reconciliation.completed
        await office.slack.ask_to_reconnect()
        await office.slack.wait_for(lambda: running.adapter.reconciliation.completed > caught_up)
        await running.settle()
        before = ["a thread begins", "a first reply"] if again else []
        assert await running.stored() == [*before, "after you came", "a last reply"]


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_requested_reconnect_loses_nothing(office: Office, reason: str) -> None:
    async with office.socket() as running:
        await office.slack.ask_to_reconnect(reason)
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        assert await office.answered() == [office.model.answer]
        await running.settle()
        assert await running.stored() == ["@nexus when?"]


async def test_a_first_connection_that_breaks_is_retried(office: Office) -> None:
    office.slack.fail("auth.test", "reset", times=2)
    office.slack.fail("apps.connections.open", "http500", times=2)
    async with office.socket():
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        assert await office.answered() == [office.model.answer]


async def test_an_expired_address_is_not_retried_forever(office: Office) -> None:
    office.slack.routes.tickets = _Forgetful(3)
    async with office.socket(ping=0.05):  # seconds, after which the SDK tries again
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        assert await office.answered() == [office.model.answer]


class _Forgetful(set[str]):
    """Tickets, the first of which are invalid."""

    def __init__(self, bad: int) -> None:
        super().__init__()
        self._bad = bad

    def add(self, ticket: str) -> None:
        if self._bad:
            self._bad -= 1
        else:
            super().add(ticket)


# Tokens


async def test_a_revoked_token_is_reported_once_and_the_answer_comes_with_a_new_one(office: Office) -> None:
    async with office.socket() as running:
        gate = office.model.gates[0] = asyncio.Event()
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.slack.wait_for(lambda: office.model.prompts)
        await office.slack.revoke(office.team)
        gate.set()
        await office.slack.wait_for(lambda: office.reports)
        assert "token_revoked" in office.reports[0]
        assert "NEXUS_SLACK_BOT_TOKEN" in office.reports[0]
        await office.slack.wait_for(lambda: office.slack.calls_of("chat.postMessage"))  # refused
        office.slack.world.tokens[office.team.bot_token].dead = ""
        assert (await office.answered())[-1] == office.model.answer
        await running.settle()
        assert len(office.reports) == 1


async def test_a_call_from_before_the_token_was_revoked_does_not_have_that_reported_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office.open() as running:
        slack, arrives = running.adapter._slack, asyncio.Event()
        send = slack._send

        async def late(method: str, *arguments: Any) -> Any:
            response = await send(method, *arguments)
            if method == "users.info":
                await arrives.wait()
            return response

        monkeypatch.setattr(slack, "_send", late)
        early = asyncio.create_task(slack.call("users.info", user=office.bob))
        await office.slack.wait_for(lambda: office.slack.calls_of("users.info"))
        await office.slack.revoke(office.team)
        for _ in range(2):
            with pytest.raises(TokenRefused):
                await slack.call("auth.test")
            arrives.set()
            await early
        assert len(office.reports) == 1


@pytest.mark.parametrize(("setting", "named"), [("slack_bot_token", "BOT_TOKEN"), ("slack_app_token", "APP_TOKEN")])
async def test_a_bad_token_is_reported_and_the_adapter_keeps_running(office: Office, setting: str, named: str) -> None:
    token = office.team.bot_token if setting == "slack_bot_token" else office.slack.app_token
    office.slack.world.tokens[token].dead = "invalid_auth"
    async with office.open() as running, running.serving():
        await office.slack.wait_for(lambda: office.reports)
        assert f"NEXUS_SLACK_{named}" in office.reports[0]
        office.slack.world.tokens[token].dead = ""
        await office.slack.wait_for(lambda: office.slack.outbox.connections)
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        assert await office.answered() == [office.model.answer]


# Answers


@pytest.mark.parametrize(
    ("kind", "after"), [("ratelimited", False), *((k, a) for k in ("http500", "reset", "error") for a in (False, True))]
)
@pytest.mark.parametrize("method", ["chat.startStream", "chat.postMessage", "chat.appendStream", "chat.stopStream"])
async def test_a_failed_call_still_gives_one_whole_answer(office: Office, method: str, kind: Any, after: bool) -> None:
    async with office.socket() as running:
        where = office.general
        if method == "chat.postMessage":
            where = await office.slack.add_im(office.team, office.alice)
        gate = office.model.gates[1] = asyncio.Event()
        office.model.pieces = ("It is on a Friday, I recall. ", "More to come.")
        office.slack.fail(method, kind, times=2, after=after, error="internal_error")
        text = "when?" if method == "chat.postMessage" else office.mention("when?")
        await office.slack.post(where, office.alice, text)
        await office.slack.wait_for(lambda: office.answers(where))
        gate.set()
        assert await office.answered(1, where) == [office.model.answer]
        await running.settle()
        assert [answer["text"] for answer in office.answers(where)] == [office.model.answer]
        assert len(office.model.prompts) == 1


async def test_a_failed_edit_is_retried(office: Office) -> None:
    async with office.socket() as running:
        im = await office.slack.add_im(office.team, office.alice)
        gate = office.model.gates[1] = asyncio.Event()
        office.model.pieces = ("It is on a Friday, I recall. ", "More to come.")
        for kind in ("http500", "reset", "ratelimited"):
            office.slack.fail("chat.update", kind)
        await office.slack.post(im, office.alice, "when?")
        await office.slack.wait_for(lambda: office.answers(im))
        gate.set()
        assert await office.answered(1, im) == [office.model.answer]
        await running.settle()
        assert len(office.answers(im)) == 1


async def test_a_broken_stream_becomes_an_edit_of_the_whole_text(office: Office) -> None:
    async with office.socket() as running:
        gate = office.model.gates[1] = asyncio.Event()
        office.model.pieces = ("It is on a Friday, I recall. ", "More to come.")
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.slack.wait_for(lambda: office.slack.api.streams)
        await office.slack.advance(300)
        gate.set()
        assert await office.answered() == [office.model.answer]
        await running.settle()
        assert [answer["text"] for answer in office.answers()] == [office.model.answer]
        assert office.slack.api.updates[-1][2] == office.model.answer
        assert office.answers()[0]["metadata"]["event_type"] == "nexus_answer"


async def test_a_person_can_stop_an_answer(office: Office) -> None:
    async with office.socket() as running:
        gate = office.model.gates[1] = asyncio.Event()
        office.model.pieces = ("It is on a Friday, I recall. ", "More to come.")
        ts = await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.slack.wait_for(lambda: office.slack.api.streams)
        await office.slack.press_stop(office.general, office.alice, ts)
        gate.set()
        await running.settle()
        assert [answer["text"] for answer in office.answers()] == ["It is on a Friday, I recall."]


async def test_a_deleted_answer_stays_deleted(office: Office) -> None:
    async with office.socket() as running:
        im = await office.slack.add_im(office.team, office.alice)
        gate = office.model.gates[1] = asyncio.Event()
        office.model.pieces = ("It is on a Friday, I recall. ", "More to come.")
        await office.slack.post(im, office.alice, "when?")
        await office.slack.wait_for(lambda: office.answers(im))
        await office.slack.delete(im, office.answers(im)[0]["ts"])
        gate.set()
        await running.settle()
        assert office.answers(im) == []


# Crashes


class CrashingStep:
    """A step at which a process waits until `end` stops it, as in a crash."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._ended = asyncio.Event()

    async def __call__(self, *args: Any) -> None:
        self.reached.set()
        await self._ended.wait()
        raise asyncio.CancelledError

    async def end(self, running: Running) -> None:
        """Stop the process together with everything that it began."""
        await running.app.turns.stop()
        self._ended.set()


async def no_connection_left(office: Office) -> bool:
    """Whether the server has noticed that a process is gone."""
    connection = await asyncpg.connect(office.settings.database_url)
    try:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        return bool(await connection.fetchval(others) == 0)
    finally:
        await connection.close()


@pytest.mark.own_database  # what a process leaves that stops at once is ended with its own connections
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("step", ["posted", "noted", "sent"])
async def test_after_a_crash_each_part_is_seen_once(
    office: Office, step: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = await office.slack.add_im(office.team, office.alice) if direct else office.general
    crashing_step, deliver = CrashingStep(), Deliveries.record_part

    async def deliver_one(self: Deliveries, *args: Any) -> bool:
        if args[1] == 1:  # the second part is posted, and only the first is recorded
            await crashing_step()
        return await deliver(self, *args)

    office.model.pieces = tuple(f"Point {number}: {'word ' * 60}\n\n" for number in range(20))
    with monkeypatch.context() as patch:
        match step:
            case "posted":
                patch.setattr(Deliveries, "record_part", crashing_step)
            case "noted":
                patch.setattr(Deliveries, "record_part", deliver_one)
            case "sent":
                patch.setattr(Turns, "mark_delivered", crashing_step)
        async with office.socket() as running:
            text = "all the points?" if direct else office.mention("all the points?")
            await office.slack.post(where, office.alice, text)
            await office.slack.wait_for(crashing_step.reached.is_set)
            await crashing_step.end(running)
    await until(lambda: no_connection_left(office))  # else its turn counts as that of a process that lives
    async with office.socket() as running:
        await office.slack.wait_for(lambda: any("Point 19" in answer["text"] for answer in office.answers(where)))
        await running.settle()
        texts = [answer["text"] for answer in office.answers(where)]
        assert "".join(" ".join(texts).split()) == "".join(office.model.answer.split())


@pytest.mark.own_database  # what a process leaves that stops at once is ended with its own connections
async def test_an_answer_begun_by_a_dead_process_is_resumed_by_the_next(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing_step = CrashingStep()
    office.model.pieces = ("It is on a Friday, I recall. ", "More to come.")
    office.model.gates[1] = asyncio.Event()  # never set: it dies in mid-stream, before it recorded what it posted
    with monkeypatch.context() as patch:
        patch.setattr(Deliveries, "record_part", crashing_step)
        async with office.socket() as running:
            await office.slack.post(office.general, office.alice, office.mention("when?"))
            await office.slack.wait_for(crashing_step.reached.is_set)
            await crashing_step.end(running)
    office.model.gates.clear()
    async with office.socket() as running:
        assert await office.answered() == [office.model.answer]
        await running.settle()
        assert [answer["text"] for answer in office.answers()] == [office.model.answer]


@pytest.mark.parametrize("when", ["after", "while"])
async def test_a_deletion_during_a_database_outage_is_done_later(
    office: Office, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    failed: list[str] = []
    unseen: list[None] = [] if when == "after" else [None]

    async def away_once(**given: Any) -> Any:
        if unseen:  # it looks before the message is committed, and sees nothing
            return unseen.pop()
        if not failed and given["text"] is None:
            failed.append(given["external_id"])
            raise Unavailable("The database does not answer.")
        return await change_message(**given)

    monkeypatch.setattr(platform_inbox, "change_message", away_once)
    async with office.socket() as running:
        inbox = running.adapter.inbox
        message = told(office.general, "1777885200.000100", office.bob, "the code is 1111")
        deletion = deleted(office.general, message.id, office.bob, "1777885201.000100")
        if when == "after":
            await inbox.receive_message(message)
            for _ in range(2):
                with suppress(Unavailable):
                    await inbox.change_message(deletion)
        else:  # the deletion comes while its message is being stored, and finds nothing yet
            together = inbox._store_together

            async def meanwhile(incoming: Incoming) -> None:
                await inbox.change_message(deletion)
                await together(incoming)

            monkeypatch.setattr(inbox, "_store_together", meanwhile)
            for _ in range(2):
                with suppress(Unavailable):
                    await inbox.receive_message(message)
        assert failed == [message.id]
        assert await running.stored() == []


async def test_an_older_edit_that_comes_again_after_a_restart_brings_no_old_text_back(office: Office) -> None:
    # Before, a process knew the latest edits of those that it had seen itself alone; over HTTP there are several.
    ts = "1777885200.000100"

    def edit(text: str, at: str) -> MessageChanged:
        return edited(office.general, ts, office.bob, text, at)

    async with office.socket() as running:
        inbox = running.adapter.inbox
        await inbox.receive_message(told(office.general, ts, office.bob, "it is 1"))
        await inbox.change_message(edit("nothing of it", "1777885203.000000"))
    async with office.socket() as running:
        inbox = running.adapter.inbox
        await inbox.change_message(edit("it is 1, the code is 1111", "1777885202.000000"))
        assert await running.stored() == ["nothing of it"]
        await inbox.change_message(edit("nothing", "1777885204.000000"))
        assert await running.stored() == ["nothing"]
        await inbox.change_message(edit("nothing", "1777885206.000000"))  # as it is, since another edit is on its way
    async with office.socket() as running:
        await running.adapter.inbox.change_message(edit("the code is 1111", "1777885205.000000"))
        assert await running.stored() == ["nothing"]


async def test_an_edit_that_comes_to_another_process_before_its_message_is_delivered_again(office: Office) -> None:
    # docs/architecture.md: what was acknowledged is not lost. Only the process that had seen the edit knew of it.
    async with office.socket() as running, office.http() as other:
        ts = office.slack.post_untold(office.general, office.bob, "it is 1", time.time())  # as it is after the edit
        late = told(office.general, ts, office.bob, "it is 1, the code is 1111")
        edit = edited(office.general, ts, office.bob, "it is 1", f"{time.time() + 1:.6f}")
        with pytest.raises(Unavailable):
            await running.adapter.inbox.change_message(edit, 0)
        await other.adapter.inbox.receive_message(late)
        await running.adapter.inbox.change_message(edit, 1)
        assert await running.stored() == ["it is 1"]


@pytest.mark.parametrize("how", ["memory mentions", "memory off", "opt-out"])
@pytest.mark.parametrize("still", [False, True])
async def test_an_edit_of_a_question_is_delivered_again_also_where_only_questions_are_stored(
    office: Office, how: str, still: bool
) -> None:
    # Where only what is said to an agent is stored, an edit that came first was lost, and the old text answered.
    ts = f"{time.time():.6f}"
    question = office.mention("the code is 1111")
    late = told(office.general, ts, office.bob, question)
    text = office.mention("it is 1") if still else "it is 1"
    edit = edited(office.general, ts, office.bob, text, f"{time.time() + 1:.6f}", before=question)
    async with office.socket() as running, office.http() as other:
        await office.slack.command(office.general, office.bob if how == "opt-out" else office.alice, how)
        with pytest.raises(Unavailable):
            await running.adapter.inbox.change_message(edit, 0)
        await other.adapter.inbox.receive_message(late)
        await running.adapter.inbox.change_message(edit, 1)
        assert not any("1111" in text for text in await running.stored())


@pytest.mark.parametrize("why", ["off", "opted out", "erased", "old", "last"])
async def test_an_edit_of_a_message_that_is_not_to_come_is_acknowledged(office: Office, why: str) -> None:
    async with office.socket() as running:
        inbox, now = running.adapter.inbox, time.time()
        ts = f"{now - (3600 if why == 'old' else 0):.6f}"
        edit = edited(office.general, ts, office.bob, "it is 1", f"{now + 1:.6f}")
        if why in ("off", "opted out"):
            user, text = (office.alice, "memory off") if why == "off" else (office.bob, "opt-out")
            await office.slack.command(office.general, user, text)
        if why == "erased":
            await inbox.receive_message(told(office.general, ts, office.bob, "it is"))
            await office.slack.command(office.general, office.bob, f"forget message {ts} --yes")
        await inbox.change_message(edit, 3 if why == "last" else 0)
        assert await running.stored() == []


async def test_what_was_missed_is_read_before_what_is_still_to_be_compared(office: Office) -> None:
    # README: questions of the last 15 minutes are answered. Comparing may take hours, at Slack's limits.
    channels = [office.general, await office.slack.add_channel(office.team, "later", [office.alice])]
    async with office.socket() as running:
        for channel in channels:
            await office.slack.post(channel, office.bob, "before")
        await running.settle()
    async with office.open() as running:
        compares, goes_on, compared = asyncio.Event(), asyncio.Event(), list[str]()

        async def long(work: Any) -> bool:
            compared.append(work.channel.id)
            compares.set()
            await (goes_on.wait() if len(compared) == 1 else asyncio.Event().wait())
            return True

        running.adapter.reconciliation._compare = long  # type: ignore[method-assign]
        async with running.serving():
            await compares.wait()
            await office.slack.go_down()
            await office.slack.post(office.general, office.alice, office.mention("when is the launch?"))
            await office.slack.come_back()
            await office.slack.wait_for(lambda: running.adapter.reconciliation._is_missed)
            goes_on.set()
            await office.answered()


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_what_slack_gives_up_to_deliver_is_read_once_it_can_be_stored(
    office: Office, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # docs/troubleshooting.md, "PostgreSQL": what Nexus has missed it reads from Slack, also where it ran on meanwhile.
    async with office.socket() if wire == "socket" else office.http() as running:
        await office.slack.post(office.general, office.bob, "before")
        await running.settle()
        append, is_away = Messages.append, [True]

        async def away(self: Messages, *args: Any, **options: Any) -> None:
            await append(self, *args, **options)
            if is_away:
                raise OSError("the database is away")

        monkeypatch.setattr(Messages, "append", away)
        office.slack.outbox.ack_seconds = 0.5
        await office.slack.post(office.general, office.bob, "missed")
        await office.slack.settled()
        for seconds in (60, 300):
            await office.slack.advance(seconds)
            await office.slack.settled()
        assert len(office.slack.outbox.given_up) == 1
        is_away.clear()

        async def is_stored() -> bool:
            return await running.stored() == ["before", "missed"]

        await until(is_stored)


async def test_what_was_said_before_the_first_start_is_read_though_nexus_stops_before_it_has_read_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing was noted of a workspace that was not stored yet: the next start read an hour instead of a day.
    said, is_reading = {await _say(office, office.general, "before")}, asyncio.Event()

    async def stops(*_: object) -> None:
        is_reading.set()
        await asyncio.Event().wait()

    async with office.open() as running:
        monkeypatch.setattr(running.adapter.reconciliation, "_advance", stops)
        async with running.serving():
            await is_reading.wait()
            said.add(await _say(office, office.general, "said meanwhile"))
            await office.slack.settled()
            assert len(await running.stored()) == 1
    async with office.socket() as running:
        assert set(await running.stored()) == said


async def _say(office: Office, channel: str, text: str, thread: str = "") -> str:
    text = f"{text} in {channel}"
    await office.slack.post(channel, office.alice, text, thread=thread)
    return text

"""What is forgotten is retracted where it was posted, also if the platform refuses that at first, or if nobody recorded
that it was posted."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from bot.console.doctor import run_doctor
from bot.delivery.retraction import MAX_REFUSED
from bot.slack.client import SlackRefused
from bot.slack.reading import ChannelFound
from composer.app import open_app
from composer.ingest.changes import change_message
from composer.memory.forget import RETRACTED
from composer.model import ConversationKind, Place
from composer.repositories.deliveries import Deliveries
from composer.settings import Settings
from composer.stores.clock import SystemClock
from tests.deep.e2e.test_slack_faults import CrashingStep, no_connection_left
from tests.support.discord.harness import Model, on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import Office, Running, office_on
from tests.support.slack.told import deleted
from tests.support.waiting import until

EDIT = "PATCH /channels/{channel_id}/messages/{message_id}"
SECRET = "The vault code is heliotrope, as bob said."


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as office:
        office.model.pieces = ("The vault code ", "is heliotrope, as bob said.")
        yield office


async def rows(settings: Settings, query: str = "SELECT * FROM retractions") -> Sequence[Any]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return await connection.fetch(query)
    finally:
        await connection.close()


async def unretracted(settings: Settings) -> list[str]:
    """What the doctor says of posts that could not be retracted."""
    return [check.detail for check in await run_doctor(settings) if check.name == "retractions"]


async def answered_from_a_secret(office: Office, running: Running) -> str:
    secret = await office.slack.post(office.general, office.bob, "the vault code is heliotrope")
    await running.settle()  # else the question may be answered before this is stored, and has nothing from it
    await office.slack.post(office.general, office.alice, office.mention("what is the vault code?"))
    await office.answered()
    await running.settle()
    return secret


async def is_refused(settings: Settings) -> bool:
    return any(row["refused_since"] for row in await rows(settings))


async def is_tried(settings: Settings) -> bool:
    return await _none_left(settings) or await is_refused(settings)


async def test_a_retraction_that_slack_refuses_is_named_and_made_once_nexus_is_let_in_again(
    office: Office, settings: Settings
) -> None:
    # The answer stayed for ever: a retraction that was refused once was dropped.
    async with office.socket() as running:
        secret = await answered_from_a_secret(office, running)
        office.slack.fail("chat.update", "error", times=9, error="is_archived")
        await office.slack.delete(office.general, secret)
        await until(lambda: is_refused(settings))
        [said] = await unretracted(settings)
        assert f"1 answer in slack:{office.team.id}" in said
        assert "heliotrope" not in said
        office.slack.routes.faults["chat.update"].clear()
        await running.adapter._apply(ChannelFound(office.general), 0)
        await office.slack.wait_for(lambda: [a["text"] for a in office.answers()] == [RETRACTED])
        await until(lambda: _none_left(settings))
        assert await unretracted(settings) == []


async def _none_left(settings: Settings) -> bool:
    return not await rows(settings)


async def test_an_answer_that_slack_neither_lets_edit_nor_delete_stays_to_be_retracted(
    office: Office, settings: Settings
) -> None:
    async with office.socket() as running:
        secret = await answered_from_a_secret(office, running)
        office.slack.fail("chat.update", "error", error="edit_window_closed")
        office.slack.fail("chat.delete", "error", error="compliance_exports_prevent_deletion")
        await office.slack.delete(office.general, secret)
        await office.slack.wait_for(lambda: office.slack.calls_of("chat.delete"))
        await until(lambda: is_tried(settings))
        assert await is_refused(settings)
        running.adapter._retraction.wake()
        await office.slack.wait_for(lambda: [a["text"] for a in office.answers()] == [RETRACTED])


class Later(SystemClock):
    """Real time, and a while more."""

    def __init__(self, more: timedelta) -> None:
        self._more = more

    def now(self) -> Any:
        return super().now() + self._more


async def test_what_a_platform_refuses_for_too_long_is_given_up(office: Office, settings: Settings) -> None:
    async with office.socket() as running:
        secret = await answered_from_a_secret(office, running)
        office.slack.fail("chat.update", "error", times=9, error="is_archived")
        await office.slack.delete(office.general, secret)
        await until(lambda: is_refused(settings))
        retraction = running.adapter._retraction
        for days, left in ((MAX_REFUSED - timedelta(hours=1), 1), (MAX_REFUSED + timedelta(hours=1), 0)):
            retraction._app = replace(running.app, clock=Later(days))
            retraction.wake()
            await retraction.catch_up()
            assert len(await rows(settings)) == left


async def test_a_retraction_that_discord_refuses_is_made_at_the_next_start(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with on_discord(settings, server, guild) as here:
        secret = await server.post(room, ada, "the vault code is heliotrope")
        await here.stored("the vault code is heliotrope")
        here.model.says = [SECRET]
        answer = await here.answer(await server.post(room, ada, f"{server.bot.mention} what is the vault code?"))
        server.fail(EDIT, 403, times=9)
        await server.delete(secret)
        await until(lambda: is_refused(settings))
        assert "1 answer in discord:" in (await unretracted(settings))[0]
        assert answer.content == SECRET
    server.rest.faults.clear()
    async with on_discord(settings, server, guild) as here:
        await server.until(lambda: answer.content == RETRACTED)
        await until(lambda: _none_left(settings))


async def test_a_post_that_cannot_be_retracted_holds_up_no_other(office: Office, settings: Settings) -> None:
    async with office.socket() as running:
        secret = await answered_from_a_secret(office, running)
        edit = running.adapter.outbox.edit
        async with running.app.database.transaction((await running.adapter.inbox.workspace()).tenant_id) as tx:
            [row] = await rows(settings, "SELECT t.id FROM turns AS t")
            to = await tx.deliveries.destination(row["id"])
            assert to is not None
            await tx.deliveries.queue_retraction(row["id"], to, "0.1")

        async def broken(to: Any, message: str, text: str) -> None:
            if message == "0.1":
                raise ValueError(message)
            await edit(to, message, text)

        running.adapter.outbox.edit = broken  # type: ignore[method-assign]
        await office.slack.delete(office.general, secret)
        await office.slack.wait_for(lambda: [a["text"] for a in office.answers()] == [RETRACTED])


@pytest.mark.own_database  # what a process leaves that stops at once is ended with its own connections
@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("direct", [False, True])
async def test_what_slack_shows_though_nobody_recorded_it_is_retracted_once_its_question_is_deleted(
    office: Office, settings: Settings, monkeypatch: pytest.MonkeyPatch, *, streams: bool, direct: bool
) -> None:
    # docs/architecture.md, "Forgetting … reaches every layer": a process died after it posted a part, and before it
    # recorded that.
    if not streams:
        office.slack.fail("chat.startStream", "error", times=9, error="unknown_method")
    where = await office.slack.add_im(office.team, office.alice) if direct else office.general
    crashing_step = CrashingStep()
    office.model.gates[1] = asyncio.Event()  # never set: it dies in mid-answer
    office.model.pieces = ("It is heliotrope, as I recall. ", "More to come.")
    with monkeypatch.context() as patch:
        patch.setattr(Deliveries, "record_part", crashing_step)
        async with office.socket() as running:
            asked = "what is it?" if direct else office.mention("what is it?")
            question = await office.slack.post(where, office.alice, asked)
            await office.slack.wait_for(crashing_step.reached.is_set)
            await crashing_step.end(running)
    await until(lambda: no_connection_left(office))
    await office.slack.delete(where, question)
    async with office.open() as running:  # another process hears of it, which answers nothing
        change = deleted(where, question, office.alice, question, direct=direct)
        await running.adapter.inbox.change_message(change)
        await running.adapter._close()
    assert [(row["external_id"], row["part"]) for row in await rows(settings)] == [("", 0)]
    assert "heliotrope" in office.answers(where)[0]["text"]
    async with office.socket():
        await office.slack.wait_for(lambda: [a["text"] for a in office.answers(where)] == [RETRACTED])


@pytest.mark.own_database  # what a process leaves that stops at once is ended with its own connections
@pytest.mark.parametrize("part", [0, 1])
async def test_what_discord_shows_though_nobody_recorded_it_is_retracted_once_its_question_is_deleted(
    settings: Settings,
    server: DiscordServer,
    guild: Guild,
    room: Channel,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
    part: int,
) -> None:
    model, crashing_step, record = Model(), CrashingStep(), Deliveries.record_part

    async def dies(self: Deliveries, *args: Any) -> bool:
        if args[1] == part:
            await crashing_step()
        return await record(self, *args)

    model.says = ["First. " * 300 + "\n\n" + "Second. " * 200]
    with monkeypatch.context() as patch:
        patch.setattr(Deliveries, "record_part", dies)
        async with on_discord(settings, server, guild, model) as here:
            question = await server.post(room, ada, f"{server.bot.mention} tell me much")
            await crashing_step.reached.wait()
            await here.app.turns.stop()
            crashing_step._ended.set()
    await server.delete(question)
    shown = here.answers(room)
    assert len(shown) == part + 1
    async with open_app(settings) as app:  # another process hears of it, which answers nothing
        workspace = app.directory.workspace("discord", str(guild.id))
        await change_message(
            database=app.database,
            workspace=workspace,
            agents=app.directory.agents(workspace.tenant_id),
            place=Place(ConversationKind.ROOM, str(room.id)),
            user=str(ada.id),
            external_id=str(question.id),
            text=None,
            mentions=(),
            now=app.clock.now(),
        )
    assert RETRACTED not in [message.content for message in shown]
    async with on_discord(settings, server, guild):
        await server.until(lambda: all(message.content == RETRACTED for message in shown))


async def test_what_may_be_posted_where_slack_shows_nothing_for_now_is_looked_for_as_long_as_it_refuses_that(
    office: Office, settings: Settings
) -> None:
    # It was given up after five minutes, though Nexus was let in again later.
    async with office.socket() as running:
        await answered_from_a_secret(office, running)
        [row] = await rows(settings, "SELECT id FROM turns")
        async with running.app.database.transaction((await running.adapter.inbox.workspace()).tenant_id) as tx:
            to = await tx.deliveries.destination(row["id"])
            assert to is not None
            await tx.deliveries.queue_retraction(row["id"], to, "", 0)
        retraction, outbox = running.adapter._retraction, running.adapter.outbox
        find = outbox.find

        async def refused(*_: Any) -> str | None:
            raise SlackRefused("conversations.replies", "not_in_channel")

        outbox.find = refused  # type: ignore[method-assign,assignment]
        for days in (timedelta(0), timedelta(days=1)):
            retraction._app = replace(running.app, clock=Later(days))
            retraction.wake()
            await retraction.catch_up()
            assert len(await rows(settings)) == 1
        outbox.find = find  # type: ignore[method-assign]
        retraction.wake()
        await office.slack.wait_for(lambda: [a["text"] for a in office.answers()] == [RETRACTED])

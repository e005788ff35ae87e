"""Nexus on Discord: repeated events take effect once, refused answers are closed, and replies are retracted there."""

import asyncio
from typing import Any

import pytest
from pydantic import SecretStr

from bot.console.doctor import run_doctor
from bot.delivery.notices import ROOMS_QUESTION
from bot.delivery.streaming import DELAY_PART
from composer.memory.forget import RETRACTED
from composer.model import user_id
from composer.settings import Settings
from tests.support.discord.gateway import MESSAGE_CONTENT
from tests.support.discord.harness import Discord, Model, on_discord
from tests.support.discord.model import Channel, Guild, Interaction, Permission, User
from tests.support.discord.rest import Call
from tests.support.discord.server import DiscordServer
from tests.support.waiting import until

POST = "POST /channels/{channel_id}/messages"


def searches(server: DiscordServer) -> list[Call]:
    """Requests for what follows a message: how an interrupted post is looked for."""
    return [call for call in server.calls("GET /channels/{channel_id}/messages") if "after" in call.query]


async def answer_of(server: DiscordServer, called: Interaction) -> str:
    await server.until(lambda: called.original and called.original.content)
    assert called.original is not None
    return called.original.content


async def test_an_answer_that_discord_refuses_for_good_is_closed_with_the_reason(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    model = Model()
    async with on_discord(settings, server, guild, model) as here:
        server.fail(POST, 403, times=20)
        await server.post(room, ada, f"{server.bot.mention} hello")
        await until(lambda: here._value("SELECT id FROM turns WHERE state = 'sent'"))
        assert "Discord refused" in await here._value("SELECT failure FROM turns")
        assert await here._value("SELECT sent_at FROM turns") is None
    server.rest.faults.clear()
    async with on_discord(settings, server, guild, model) as here:
        await here.settled()
        assert here.answers(room) == []
    assert len(model.shown) == 1


async def test_a_repeated_command_is_run_and_answered_once(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    with server.rearranged(lambda events: events * 3):
        called = await server.invoke("nexus project create", room, ada, name="apollo")
    assert "Created the project" in await answer_of(server, called)
    listed = await answer_of(server, await server.invoke("nexus project list", room, ada))
    assert "apollo" in listed
    assert len(server.calls("POST /interactions/")) <= 4  # the repeats are deferred at most and get no answer
    assert not any("taken" in str(call.body) for call in server.rest.calls)


async def test_the_first_user_is_no_room_admin_but_whoever_manages_channels_is(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    chief = await server.add_member(guild, "Chief", await server.add_role(guild, "chief", Permission.MANAGE_CHANNELS))
    await server.post(room, ada, "I am the first to speak")
    await here.stored("I am the first to speak")
    assert "Only an admin" in await answer_of(server, await server.invoke("nexus memory set", room, ada, mode="off"))
    assert "off" in await answer_of(server, await server.invoke("nexus memory set", room, chief, mode="off"))


async def test_a_mentioned_person_is_invited_to_a_project(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    bob = await server.add_member(guild, "Bob")
    await server.post(room, bob, "hello")
    await here.stored("hello")
    await answer_of(server, await server.invoke("nexus project create", room, ada, name="apollo"))
    for role in ({}, {"role": "read"}):
        filled = {"action": "add", "name": "apollo", "user": str(bob.id), **role}
        done = await answer_of(server, await server.invoke("nexus project member", room, ada, **filled))
        assert "Invited Bob to apollo" in done
    gap = await server.invoke("nexus project member", room, ada, action="add", name="apollo", role="read")
    assert await answer_of(server, gap) == "With role, fill in user too."
    query = "SELECT role FROM invites WHERE user_id = $1"
    assert await here._value(query, user_id(here.workspace, str(bob.id))) == "read"


async def test_a_room_gets_the_privacy_notice_once(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    for number in range(2):
        async with on_discord(settings, server, guild) as here:
            await here.answer(await server.post(room, ada, f"{server.bot.mention} {number}"))
            await here.answer(await server.post(server.dm(ada), ada, f"a DM {number}"))
            await server.until(lambda: here.notices(room))
    (notice,) = here.notices(room)
    assert "/nexus memory" in notice
    assert here.notices(server.dm(ada)) in ([], [ROOMS_QUESTION]), "a DM is asked something else"


async def test_a_room_gets_one_privacy_notice_at_its_first_stored_message_despite_a_crash(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "nobody is asked anything")
        await until(lambda: here._value("SELECT notice_id FROM conversations"))
        assert len(here.notices(room)) == 1
        assert searches(server) == []  # the first attempt has nothing to look for
        await here._value(
            "UPDATE conversations SET notice_id = NULL"
        )  # as if the process had died before this was stored
    server.rest.nonces.clear()  # the minutes in which Discord itself deduplicates are over
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "and again")
        await until(lambda: here._value("SELECT notice_id FROM conversations"))
        await here.stored("and again")
    assert len(here.notices(room)) == 1
    assert here.answers(room) == []


@pytest.mark.parametrize("noted", [False, True])
async def test_a_delay_is_reported_once_even_after_a_restart(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, noted: bool
) -> None:
    sentence = "The database does not answer. Your message is kept, and will be answered."
    async with on_discord(settings, server, guild) as here:
        await here.answer(await server.post(room, ada, f"{server.bot.mention} one"))
        turn = await _latest(here)
        adapter = here.app.turns._adapters["discord"].delivery
        for _ in range(2):
            await adapter.on_delay(turn, sentence)
        if not noted:
            await here._value("DELETE FROM deliveries WHERE part = $1", DELAY_PART)
    server.rest.nonces.clear()  # the minutes in which Discord itself deduplicates are over
    async with on_discord(settings, server, guild) as here:
        await here.app.turns._adapters["discord"].delivery.on_delay(turn, sentence)
        assert [m.content for m in here.answers(room)].count(sentence) == 1


async def _latest(here: Discord) -> Any:
    id = await here._value("SELECT id FROM turns")
    async with here.app.database.transaction(here.workspace.tenant_id) as tx:
        stored = await tx.turns.get(id)
    assert stored is not None
    return stored.turn


async def test_messages_deleted_while_the_adapter_was_down_are_forgotten(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "the launch is on Friday")
        deleted = [await server.post(room, ada, "the code is 1111")]
        thread = await server.add_thread(room, "inner", ada)
        deleted.append(await server.post(thread, ada, "the code is 2222"))
        await server.post(thread, ada, "a reply that stays")
        dm = await server.post(server.dm(ada), ada, "the code is 3333")
        await here.answer(dm)
        await here.stored("a reply that stays")
    for message in (*deleted, dm):
        await server.delete(message)
    async with on_discord(settings, server, guild) as here:
        await until(lambda: _texts_are(here, "a reply that stays", "the launch is on Friday"))


async def _texts_are(here: Discord, *texts: str) -> bool:
    return sorted(await here.texts()) == sorted(texts)


@pytest.mark.parametrize("fault", [403, 404, 500])
async def test_an_unreadable_history_is_not_taken_for_a_deletion(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User, fault: int
) -> None:
    async with on_discord(settings, server, guild) as here:
        await server.post(room, ada, "one")
        await server.until(lambda: here.notices(room))  # the last message is from a person
        deleted = await server.post(room, ada, "two")
        await server.post(room, ada, "three")
        await here.stored("three")
    await server.delete(deleted)
    server.fail("GET /channels/{channel_id}/messages", fault, times=100)
    async with on_discord(settings, server, guild) as here:
        await until(lambda: _was_read_twice(here))
        assert await here.texts() == ["one", "two", "three"]


async def _was_read_twice(here: Discord) -> bool:
    """Whether what may be read was compared, and what fails was tried again."""
    reading = here.adapter._reconciliations[here.guild.id, str(here.guild.id)]
    return bool(reading.completed) or any(work.failures > 1 for work in reading._work.values())


async def test_a_retracted_answer_is_retracted_in_the_channel_too(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    secret = await server.post(room, ada, "the vault code is heliotrope-42")
    here.model.says = ["The vault code is heliotrope-42, and " + "that is all that I know. " * 150]
    await here.answer(await server.post(room, ada, f"{server.bot.mention} what is the vault code?"))
    assert len(here.answers(room)) > 1
    await server.delete(secret)
    await server.until(lambda: all(part.content == RETRACTED for part in here.answers(room)))


async def test_doctor_checks_discord_if_a_token_is_set(settings: Settings, server: DiscordServer) -> None:
    server.gateway.allowed_intents &= ~MESSAGE_CONTENT
    given = settings.model_copy(update={"discord_token": SecretStr(server.token)})
    found = [(check.ok, check.detail) for check in await run_doctor(given, live=True) if check.name == "discord"]
    assert (False, "in the developer portal, under Bot, switch on Message Content Intent") in found
    assert found[0][0] is True


async def test_messages_edited_while_the_adapter_was_down_are_updated(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    async with on_discord(settings, server, guild) as here:
        changed = [await server.post(room, ada, "the launch is on Friday")]
        thread = await server.add_thread(room, "inner", ada)
        changed.append(await server.post(thread, ada, "the price is 10"))
        dm = await server.post(server.dm(ada), ada, "my leave begins in May")
        await here.answer(dm)
        await server.post(room, ada, "and this stays")
        await here.stored("and this stays")
    for message, text in zip((*changed, dm), ("the launch is on Monday", "the price is 12", "in June"), strict=True):
        await server.edit(message, text)
    async with on_discord(settings, server, guild) as here:
        await until(lambda: _texts_are(here, "the launch is on Monday", "the price is 12", "in June", "and this stays"))


async def test_an_answer_in_a_thread_that_was_archived_meanwhile_is_retracted_there_too(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    secret = await server.post(room, ada, "the vault code is heliotrope")
    await here.stored("the vault code is heliotrope")
    thread = await server.add_thread(room, "codes", ada)
    here.model.says = ["It is heliotrope, as Ada said."]
    answer = await here.answer(await server.post(thread, ada, f"{server.bot.mention} what is the vault code?"))
    await server.archive(thread)
    await server.delete(secret)
    await server.until(lambda: answer.content == RETRACTED)


async def test_an_answer_whose_question_is_deleted_while_it_streams_is_retracted(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    here.model.gate = asyncio.Event()
    here.model.says = ["This is the first half of it, and this is the second half."]
    question = await server.post(room, ada, f"{server.bot.mention} slowly, please")
    shown = await server.wait_for_message(lambda m: m.author is server.bot and m.content.startswith("This is"))
    await server.delete(question)
    await until(lambda: _is_erased(here))
    here.model.gate.set()
    await here.settled()
    assert [message.content for message in here.answers(room)] == [RETRACTED]
    assert shown.content == RETRACTED
    assert here.adapter._delivery._streams == {}


async def _is_erased(here: Discord) -> bool:
    return await here.texts() == []

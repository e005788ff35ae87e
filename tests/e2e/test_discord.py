"""Nexus on Discord: discord.py with only its addresses patched, over real sockets, with real Postgres and Valkey."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import discord
import pytest
from pydantic import SecretStr

from bot.commands.confirmations import USED
from bot.console import schedule
from bot.discord.doctor import BAD_TOKEN, inspect
from bot.discord.guilds import STILL_CONNECTING
from bot.discord.waiting import WAITING
from composer.settings import Settings
from tests.support.discord.gateway import MESSAGE_CONTENT
from tests.support.discord.harness import NOTICES, Discord, on_discord, up
from tests.support.discord.model import Channel, Guild, Permission, User
from tests.support.discord.model import Message as Posted
from tests.support.discord.server import DiscordServer
from tests.support.documents import docx, paragraph
from tests.support.waiting import until

POST = "POST /channels/{channel_id}/messages"
SECRET = "the vault code is heliotrope-42"


@pytest.fixture
async def bob(server: DiscordServer, guild: Guild) -> User:
    return await server.add_member(guild, "Bob")


# Questions


async def test_a_mention_is_answered_once_as_a_reply_that_pings_nobody(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    asked = await server.post(room, ada, f"{server.bot.mention} when do we ship?")
    answer = await here.answer(asked)
    assert here.answers(room) == [answer]
    assert answer.content.startswith("Answer 1")
    assert answer.mentions == []
    assert "@nexus when do we ship?" in await here.texts(room)
    assert server.rest.typing


async def test_a_message_that_does_not_address_the_bot_is_stored_and_not_answered(
    here: Discord, server: DiscordServer, room: Channel, ada: User, bob: User
) -> None:
    await server.post(room, ada, f"{bob.mention} the launch is on Friday")
    await here.stored("@Bob the launch is on Friday")
    asked = await server.post(room, bob, f"{server.bot.mention} when?")
    await here.answer(asked)
    assert len(here.answers(room)) == 1
    assert "the launch is on Friday" in here.model.shown[0]


async def test_a_reply_to_the_bot_is_answered_even_without_a_ping(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    first = await here.answer(await server.post(room, ada, f"{server.bot.mention} one"))
    again = await server.post(room, ada, "and then?", reply_to=first)
    assert (await here.answer(again)).content.startswith("Answer 2")


async def test_a_dm_is_answered_and_not_readable_in_any_room(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    asked = await server.post(server.dm(ada), ada, f"keep this: {SECRET}")
    await here.answer(asked)
    await here.answer(await server.post(server.dm(ada), ada, "what is the vault code?"))
    assert "heliotrope-42" in here.model.shown[1]
    await here.answer(await server.post(room, ada, f"{server.bot.mention} what is the vault code?"))
    assert "heliotrope-42" not in here.model.shown[2]


async def test_an_answer_makes_discord_ask_for_no_preview(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    here.model.says = ["As you say: https://evil.example/?q=heliotrope-42 and ![x](https://evil.example/heliotrope-42)"]
    answer = await here.answer(await server.post(room, ada, f"{server.bot.mention} what is the vault code?"))
    links = "<https://evil.example/?q=heliotrope-42> and ![x](<https://evil.example/heliotrope-42>)"
    assert answer.content == f"As you say: {links}"
    shown = [text for _, text in answer.edits]
    assert not any(" https://" in text or "(https://" in text for text in shown)


async def test_an_answer_to_a_command_makes_discord_ask_for_no_preview(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    # docs/discord.md: Discord asks for a preview at the address itself, and a model has written some of such answers.
    address = "https://evil.example/?q=heliotrope-42"
    await server.post(room, ada, f"the vault code is at {address} as they say")
    await here.stored(f"the vault code is at {address} as they say")
    await here.app.indexer.catch_up(here.workspace.tenant_id)
    called = await server.invoke("nexus recall", room, ada, text="vault code")
    await server.until(lambda: called.original and called.original.content)
    shown = "".join(message.content for message in called.messages)
    assert f"<{address}>" in shown
    assert f" {address}" not in shown


async def test_a_message_of_a_webhook_is_stored_and_not_answered(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    await server.post_by_webhook(room, "Ada", f"{server.bot.mention} build 7 is green")
    await here.stored("@nexus build 7 is green")
    await here.answer(await server.post(room, ada, f"{server.bot.mention} is it?"))
    assert len(here.answers(room)) == 1
    assert {row["trust"] for row in await here.log(room) if row["text"] == "@nexus build 7 is green"} == {"tool"}


async def test_a_message_of_a_bot_is_stored_and_not_answered(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel
) -> None:
    other = server.world.add_user("Deployer", bot=True)
    await server.add_member(guild, other)
    await server.post(room, other, f"{server.bot.mention} build 7 is green")
    await here.stored("@nexus build 7 is green")
    await here.settled()
    assert here.answers(room) == []


async def test_documents_are_read(here: Discord, server: DiscordServer, room: Channel, ada: User) -> None:
    files = {
        "plan.md": b"The codename is marigold.",
        "photo.png": b"\x89PNG",
        "tour.docx": docx(paragraph("To Porto.")),
    }
    asked = await server.post(room, ada, f"{server.bot.mention} what is the codename?", files=files)
    await here.answer(asked)
    assert "The codename is marigold." in here.model.shown[0]
    assert "photo.png" in here.model.shown[0]
    assert "  | To Porto." in here.model.shown[0]


# Rooms, threads and privacy


async def test_a_public_thread_shares_its_channels_memory(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    await server.post(room, ada, "the colour is teal")
    await here.stored("the colour is teal")
    thread = await server.add_thread(room, "details", ada)
    asked = await server.post(thread, ada, f"{server.bot.mention} which colour?")
    answer = await here.answer(asked)
    assert answer.channel is thread
    (stored_message,) = [row for row in await here.log(thread) if row["agent_id"] is None]
    assert stored_message["namespace"] == f"room:{here.room(room)}"


async def test_an_archived_thread_is_closed_and_summarised_at_once(
    server: DiscordServer, here: Discord, room: Channel, ada: User
) -> None:
    thread = await server.add_thread(room, "details", ada)
    for n in range(3):
        await server.post(thread, ada, f"The crane needs part number {n} from the harbour.")
    await here.stored("The crane needs part number 2 from the harbour.")
    summaries = "SELECT count(*) FROM summaries WHERE tier = 'thread'"
    archived = "SELECT archived_at IS NOT NULL FROM conversations WHERE thread IS NOT NULL"
    for closed in (False, True):
        thread.archived = not closed
        server.world.archive(thread, archived=closed)

        async def archive_is_stored(closed: bool = closed) -> bool:
            return bool(await here._value(archived)) is closed

        await until(archive_is_stored)
        await schedule.run(here.app, "thread", here.app.clock.now())
        assert await here._value(summaries) == int(closed)


async def test_a_private_thread_is_a_room_of_its_own(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    thread = await server.add_thread(room, "hush", ada, private=True)
    await server.join_thread(thread, server.bot)
    asked = await server.post(thread, ada, f"{server.bot.mention} {SECRET}")
    await here.answer(asked)
    (stored_message,) = [row for row in await here.log(thread) if row["agent_id"] is None]
    assert stored_message["private"]
    assert stored_message["namespace"] == f"room:{here.room(thread)}"
    await here.answer(await server.post(room, ada, f"{server.bot.mention} what is the vault code?"))
    assert "heliotrope-42" not in here.model.shown[1]


async def test_messages_of_a_private_channel_stay_private_when_it_becomes_public(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada])
    await server.post(board, ada, SECRET)
    await here.stored(SECRET)
    question = f"{server.bot.mention} what is the vault code?"
    await here.answer(await server.post(board, ada, question))
    assert "heliotrope-42" in here.model.shown[0]
    await here.answer(await server.post(room, ada, question))
    assert "heliotrope-42" not in here.model.shown[1]
    await server.make_public(board)
    await here.answer(await server.post(board, ada, question))
    assert "heliotrope-42" not in here.model.shown[2]
    thread = await server.add_thread(board, "open", ada)
    await here.answer(await server.post(thread, ada, question))
    assert "heliotrope-42" not in here.model.shown[3]


async def test_the_last_message_before_a_channel_becomes_public_is_private(
    here: Discord, server: DiscordServer, guild: Guild, ada: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada])
    await server.post(board, ada, SECRET)  # both events reach the client at once
    await server.make_public(board)
    await server.post(board, ada, "hello everyone")
    secret, hello = await here.stored(SECRET), await here.stored("hello everyone")
    assert secret["namespace"] != hello["namespace"]


async def test_a_thread_of_a_private_channel_is_private_even_if_its_message_comes_first(
    here: Discord, server: DiscordServer, guild: Guild, ada: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada])
    thread = await server.add_thread(board, "inner", ada)
    await server.post(thread, ada, SECRET)
    await here.stored(SECRET)
    assert await here.is_private(board)


async def test_a_channel_that_the_bot_was_never_shown_is_private(
    here: Discord, server: DiscordServer, guild: Guild, ada: User
) -> None:
    with server.rearranged(lambda events: []):
        hidden = await server.add_channel(guild, "board", only=[ada])
        hidden.overwrites.pop(server.bot.id)
    called = await server.invoke("nexus remember", hidden, ada, text=SECRET)
    await server.until(lambda: called.original and called.original.content)
    assert await here.is_private(hidden)


# Edits, deletions and members


async def test_edits_and_deletions_change_what_is_stored(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    one, two = await server.post(room, ada, "lunch at noon"), await server.post(room, ada, SECRET)
    await here.stored(SECRET)
    await server.edit(one, "lunch at one")
    await server.delete(two)
    await here.stored("lunch at one")
    await until(lambda: _are_erased(here, SECRET))
    await here.answer(await server.post(room, ada, f"{server.bot.mention} lunch? vault code?"))
    assert "lunch at one" in here.model.shown[0]
    assert "noon" not in here.model.shown[0]
    assert "heliotrope" not in here.model.shown[0]


async def test_a_bulk_deletion_and_one_in_a_dm_erase_what_is_stored(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    stored_message = [await server.post(room, ada, f"secret number {n}") for n in range(3)]
    dm = await server.post(server.dm(ada), ada, SECRET)
    await here.answer(dm)
    await here.stored("secret number 2")
    await server.delete(*stored_message)
    await server.delete(dm)
    await until(lambda: _are_erased(here, "secret number 0", "secret number 1", "secret number 2", SECRET))


async def _are_erased(here: Discord, *texts: str) -> bool:
    return not set(texts) & set(await here.texts())


async def test_a_preview_of_a_link_changes_nothing(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    link = await server.post(room, ada, "https://example.org/")
    await server.unfurl(link)
    await server.post(room, ada, "after")
    await here.stored("after")
    assert await here.texts(room) == ["https://example.org/", "after"]


async def test_a_member_who_leaves_the_guild_leaves_its_private_rooms_and_may_return(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada, bob])
    await server.post(board, bob, "hello from bob")
    await server.post(board, ada, "hello from ada")
    await here.stored("hello from ada")
    await server.remove_member(guild, bob)
    await until(lambda: here.has_left(board, bob))
    await server.add_member(guild, bob)
    await server.post(board, bob, "back again")
    await here.stored("back again")
    assert not await here.has_left(board, bob)


async def test_a_member_who_loses_access_to_a_private_channel_has_left_it(
    here: Discord, server: DiscordServer, guild: Guild, ada: User, bob: User
) -> None:
    board = await server.add_channel(guild, "board", only=[ada, bob])
    await server.post(board, bob, "hello from bob")
    await here.stored("hello from bob")
    await server.make_private(board, [ada, server.bot])
    await until(lambda: here.has_left(board, bob))
    staff = await server.add_role(guild, "staff", Permission.ADMINISTRATOR)
    await server.set_roles(guild, bob, staff)
    await until(lambda: here.is_back(board, bob))


# Replies


async def test_a_long_answer_is_split_and_its_code_blocks_stay_whole(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    code = "```python\n" + "print('x')\n" * 120 + "```"
    here.model.says = ["An introduction. " * 90 + "\n\n" + code + "\n\nThe end."]
    asked = await server.post(room, ada, f"{server.bot.mention} write a lot")
    first = await here.answer(asked)
    parts = here.answers(room)
    assert len(parts) > 1
    assert parts[0] is first
    assert all(len(part.content) <= 2000 and part.content.count("```") % 2 == 0 for part in parts)
    assert parts[-1].content.endswith("The end.")
    assert all(part.referenced is None for part in parts[1:])


async def test_an_answer_is_shown_while_it_streams(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    here.model.gate = asyncio.Event()
    here.model.says = ["This is the first half of it, and this is the second half."]
    asked = await server.post(room, ada, f"{server.bot.mention} slowly, please")
    shown = await server.wait_for_message(lambda m: m.author is server.bot and m.content not in NOTICES)
    assert shown.content == "This is the first half of it,"
    here.model.gate.set()
    assert await here.answer(asked) is shown
    assert shown.content == "This is the first half of it, and this is the second half."
    assert len(here.answers(room)) == 1


# Commands


async def test_a_command_is_answered_to_its_caller_alone(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    called = await server.invoke("nexus remember", room, ada, text="the adapter code is 7")
    await server.until(lambda: called.original and called.original.content)
    assert called.original is not None
    assert called.original.ephemeral
    listed = await server.invoke("nexus landmark add", room, ada, text="we ship on Friday")
    await server.until(lambda: listed.original and listed.original.content)
    await here.answer(await server.post(room, ada, f"{server.bot.mention} what is pinned?"))
    assert "we ship on Friday" in here.model.shown[0]


async def say_what_is_recalled(here: Discord, server: DiscordServer, room: Channel, ada: User) -> Posted:
    """Post a message, and as many others as push it out of the view."""
    said = await server.post(room, ada, "the launch code is heron")
    for number in range(60):
        await server.post(room, ada, f"nothing new {number}")
    await here.stored("nothing new 59")
    await here.app.indexer.catch_up(here.workspace.tenant_id)
    return said


async def test_why_links_to_the_messages_and_attaches_the_exact_prompt(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    said = await say_what_is_recalled(here, server, room, ada)
    assert room.guild is not None
    await here.answer(await server.post(room, ada, f"{server.bot.mention} what is the launch code?"))
    why = await server.invoke("nexus why", room, ada)
    await server.until(lambda: why.original and why.original.content)
    shown = "\n".join(message.content for message in (why.original, *why.messages) if message is not None)
    assert f"https://discord.com/channels/{room.guild.id}/{room.id}/{said.id}" in shown
    asked = await server.invoke("nexus why", room, ada, prompt=True)
    await server.until(lambda: [m for m in asked.messages if m.attachments])
    (carrier,) = [m for m in asked.messages if m.attachments]
    assert carrier.ephemeral
    assert carrier.attachments[0].filename == "prompt.txt"
    assert b"the launch code is heron" in carrier.attachments[0].content


async def test_a_mark_in_an_answer_links_to_the_message(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    said = await say_what_is_recalled(here, server, room, ada)
    assert room.guild is not None
    here.model.says = ["It is heron (s1), and no more is known of it than that (s99)."]
    answer = await here.answer(await server.post(room, ada, f"{server.bot.mention} what is the launch code?"))
    link = f"https://discord.com/channels/{room.guild.id}/{room.id}/{said.id}"
    expected = f"It is heron ([s1](<{link}>)), and no more is known of it than that (s99)."
    await server.until(lambda: answer.content == expected)


async def test_a_mark_in_a_dm_links_to_the_message_of_that_dm(here: Discord, server: DiscordServer, ada: User) -> None:
    said = await server.post(server.dm(ada), ada, "the launch code is heron")
    await here.answer(said)
    for number in range(30):
        await here.answer(await server.post(server.dm(ada), ada, f"nothing new {number}"))
    await here.app.indexer.catch_up(here.workspace.tenant_id)
    here.model.says = ["It is heron (s1)."]
    answer = await here.answer(await server.post(server.dm(ada), ada, "what is the launch code?"))
    link = f"https://discord.com/channels/@me/{server.dm(ada).id}/{said.id}"
    await server.until(lambda: answer.content == f"It is heron ([s1](<{link}>)).")


async def test_a_button_confirms_a_command_once_and_for_its_caller_alone(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    keeper = await server.add_role(guild, "keeper", Permission.MANAGE_CHANNELS)
    await server.set_roles(guild, ada, keeper)
    bob = await server.add_member(guild, "Bob", keeper)
    await server.answer_to(await server.invoke("nexus project create", room, ada, name="apollo"))
    refused = await server.answer_to(await server.invoke("nexus project assign", room, bob, name="apollo"))
    assert refused.content == "There is no project 'apollo' here."
    shown = await server.answer_to(await server.invoke("nexus project assign", room, ada, name="apollo"))
    assert "can then recall what apollo remembers" in shown.content
    button = shown.components[0]["components"][0]["custom_id"]
    listed = await server.answer_to(await server.invoke("nexus project list", room, ada))
    assert "rooms: none" in listed.content, "it was only shown"
    assert "another person's" in (await server.answer_to(await server.click(shown, button, bob))).content
    assert (
        "To undo: /nexus project unassign" in (await server.answer_to(await server.click(shown, button, ada))).content
    )
    assert (await server.answer_to(await server.click(shown, button, ada))).content == USED
    listed = await server.answer_to(await server.invoke("nexus project list", room, ada))
    assert "rooms: none" not in listed.content


async def test_of_two_presses_at_once_one_counts(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    await server.set_roles(guild, ada, await server.add_role(guild, "keeper", Permission.MANAGE_CHANNELS))
    await server.answer_to(await server.invoke("nexus project create", room, ada, name="apollo"))
    shown = await server.answer_to(await server.invoke("nexus project assign", room, ada, name="apollo"))
    button = shown.components[0]["components"][0]["custom_id"]
    both = await asyncio.gather(*(server.click(shown, button, ada) for _ in range(2)))
    texts = sorted([(await server.answer_to(interaction)).content for interaction in both], key=USED.__eq__)
    assert "To undo: /nexus project unassign" in texts[0]
    assert texts[1] == USED


async def test_pooling_a_private_channel_is_confirmed_as_it_was_asked(
    here: Discord, server: DiscordServer, guild: Guild, ada: User
) -> None:
    await server.set_roles(guild, ada, await server.add_role(guild, "keeper", Permission.MANAGE_CHANNELS))
    staff = await server.add_channel(guild, "staff", only=[ada])
    await server.answer_to(await server.invoke("nexus project create", staff, ada, name="apollo"))
    asked = await server.invoke("nexus project assign", staff, ada, name="apollo", pool=True)
    assert "recall all that is said in this private room" in (await server.answer_to(asked)).content
    assert asked.original is not None
    button = asked.original.components[0]["components"][0]["custom_id"]
    assert (
        "and everyone in apollo what is said here"
        in (await server.answer_to(await server.click(asked.original, button, ada))).content
    )
    await server.answer_to(await server.invoke("nexus project unassign", staff, ada, yes=True))
    both = await server.invoke("nexus project assign", staff, ada, name="apollo", pool=True, yes=True)
    assert "and everyone in apollo what is said here" in (await server.answer_to(both)).content


async def test_a_button_does_not_confirm_what_has_changed_since_it_was_shown(
    here: Discord, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    await server.set_roles(guild, ada, await server.add_role(guild, "keeper", Permission.MANAGE_CHANNELS))
    for name in ("apollo", "gemini"):
        await server.answer_to(await server.invoke("nexus project create", room, ada, name=name))
    shown = await server.answer_to(await server.invoke("nexus project assign", room, ada, name="apollo"))
    await server.answer_to(await server.invoke("nexus project assign", room, ada, name="gemini", yes=True))
    again = await server.answer_to(await server.click(shown, shown.components[0]["components"][0]["custom_id"], ada))
    assert "nobody in gemini recalls" in again.content, "the room would now leave gemini, which was not shown"
    listed = await server.answer_to(await server.invoke("nexus project list", room, ada))
    assert "apollo  your role: admin; 1 member; rooms: none" in listed.content


async def test_a_wrong_command_is_answered_with_its_usage(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    called = await server.invoke("nexus project create", room, ada, name="No Spaces!")
    await server.until(lambda: called.original and called.original.content)
    assert called.original is not None
    assert called.original.ephemeral
    assert "Usage: /nexus project create NAME" in called.original.content


async def test_answers_name_commands_as_they_stand_on_discord(
    here: Discord, server: DiscordServer, room: Channel, ada: User
) -> None:
    async def shown(name: str, end: str, **options: str) -> str:
        called = await server.invoke(name, room, ada, **options)
        await server.until(lambda: called.messages and called.messages[-1].content.endswith(end))
        return "\n".join(message.content for message in called.messages)

    await shown("nexus room digest", "To get one: /nexus room digest daily")
    listed = await shown("nexus help", "such as help forget", command="more")
    for own in ("room digest [daily|weekly|off]", "room catch-up", "memory set [on|mentions|off]"):
        assert f"/nexus {own}" in listed
    assert not re.search(r"/nexus (digest|catch-up|login|agents|compact|memory \[)", listed)


async def test_only_the_callers_own_projects_are_suggested(
    here: Discord, server: DiscordServer, room: Channel, ada: User, bob: User
) -> None:
    made = await server.invoke("nexus project create", room, ada, name="apollo", isolated=True)
    await server.until(lambda: made.original and made.original.content)
    of_ada = await server.autocomplete("nexus project assign", room, ada, "name", name="ap")
    of_bob = await server.autocomplete("nexus project assign", room, bob, "name", name="ap")
    await server.until(lambda: of_ada.choices is not None and of_bob.choices is not None)
    assert [choice["value"] for choice in of_ada.choices or []] == ["apollo"]
    assert of_bob.choices == []


async def test_autocomplete_offers_only_what_the_caller_may_read_there(
    here: Discord, server: DiscordServer, room: Channel, ada: User, bob: User
) -> None:
    async def run(command: str, where: Channel, who: User, **filled: str) -> None:
        called = await server.invoke(command, where, who, **filled)
        await server.until(lambda: called.original and called.original.content)

    async def offered(command: str, where: Channel, who: User, focused: str, **filled: str) -> list[str]:
        asked = await server.autocomplete(command, where, who, focused, **filled)
        await server.until(lambda: asked.choices is not None)
        return [choice["name"] for choice in asked.choices or []]

    await run("nexus fact set", room, ada, key="deploy_day", value='"Friday"')
    await run("nexus fact set", server.dm(ada), ada, key="deploy_fear", value="9")
    await run("nexus landmark add", room, ada, text="we ship on Friday")
    await run("nexus landmark add", server.dm(ada), ada, text="I leave on Friday")
    assert await offered("nexus fact get", room, bob, "key", key="DEPLOY") == ["deploy_day"]
    assert await offered("nexus fact get", server.dm(ada), ada, "key", key="deploy") == ["deploy_fear"]
    (shown,) = await offered("nexus landmark retire", room, bob, "id", id="friday")
    assert shown.startswith("1. we ship on Friday (")
    assert await offered("nexus landmark amend", room, bob, "id", id="1") == [shown]
    assert await offered("nexus room compact", room, ada, "agent", agent="") == ["nexus"]
    assert await offered("nexus room settings", room, ada, "value", key="strategy", value="s") == ["semantic"]
    assert await offered("nexus room settings", room, ada, "value", key="top_k", value="") == ["default"]
    assert await offered("nexus forget", room, ada, "what", what="he") == ["here"]


async def test_guilds_are_isolated_from_each_other_over_several_shards(
    settings: Settings, server: DiscordServer, guild: Guild, ada: User
) -> None:
    server.gateway.shards = 2
    guilds = [await server.add_guild(f"Guild {n}", shard=(n, 2)) for n in range(2)]
    rooms = [await server.add_channel(each, "general") for each in guilds]
    for each in guilds:
        await server.add_member(each, ada)
    async with on_discord(settings, server, guilds[0]) as here:
        await server.wait_for("identify", 2)
        await up(here.adapter)
        await server.post(rooms[0], ada, SECRET)
        await here.stored(SECRET)
        for where in rooms:
            await here.answer(await server.post(where, ada, f"{server.bot.mention} what is the vault code?"))
    assert ["heliotrope-42" in shown for shown in here.model.shown] == [True, False]


async def test_a_dm_waits_for_the_shards_that_are_still_to_connect(
    settings: Settings, server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.gateway.shards, gate = 2, asyncio.Event()
    guilds = [await server.add_guild(f"Guild {n}", shard=(n, 2)) for n in range(2)]
    bob, other = await server.add_member(guilds[1], "Bob"), await server.add_channel(guilds[0], "general")

    async def one_after_another(client: discord.Client, shard: int, *, initial: bool) -> None:
        if not initial:
            await gate.wait()

    monkeypatch.setattr(discord.Client, "before_identify_hook", one_after_another)
    async with on_discord(settings, server, guilds[1], wait=False) as here:
        await server.wait_for("identify")
        await until(lambda: here.adapter._was_ready)  # the first shard is connected
        asked = await server.post(server.dm(bob), bob, "hello")
        command = await server.invoke("nexus rooms", server.dm(bob), bob, mode="on")
        await here.answer(await server.post(other, server.world.guilds[guilds[0].id].owner, f"{server.bot.mention} hi"))
        gate.set()
        await here.answer(asked)
        await until(lambda: command.messages and command.messages[-1].content.startswith("From now on"))
        assert await here.texts() == ["hello"]  # in the organisation of Bob's server
        again = await server.invoke("nexus rooms", server.dm(bob), bob)
        await until(lambda: again.messages and again.messages[-1].content)
        assert "off" not in again.messages[-1].content.split(".")[0]


@asynccontextmanager
async def with_a_shard_away(
    settings: Settings, server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Discord, User, asyncio.Event]]:
    """Two shards, of which the second one, with Bob's guild, does not connect before an event is set."""
    server.gateway.shards, gate = 2, asyncio.Event()
    guilds = [await server.add_guild(f"Guild {n}", shard=(n, 2)) for n in range(2)]
    bob = await server.add_member(guilds[1], "Bob")

    async def one_alone(client: discord.Client, shard: int, *, initial: bool) -> None:
        if not initial:
            await gate.wait()

    monkeypatch.setattr(discord.Client, "before_identify_hook", one_alone)
    monkeypatch.setattr("bot.discord.guilds.SHARDS_SECONDS", 0.01)
    async with on_discord(settings, server, guilds[1], wait=False) as here:
        await server.wait_for("identify")
        await until(lambda: here.adapter._was_ready)  # the first shard is connected
        yield here, bob, gate


async def test_a_command_in_a_dm_is_refused_while_a_shard_does_not_connect(
    settings: Settings, server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was shown as being thought of, for ever.
    async with with_a_shard_away(settings, server, monkeypatch) as (here, bob, gate):
        asked = await server.post(server.dm(bob), bob, "hello")
        refused = await server.invoke("nexus rooms", server.dm(bob), bob, mode="on")
        await until(lambda: [message.content for message in refused.messages] == [STILL_CONNECTING])
        gate.set()
        await here.answer(asked)
        command = await server.invoke("nexus rooms", server.dm(bob), bob, mode="on")
        await until(lambda: command.messages and command.messages[-1].content.startswith("From now on"))


async def test_who_writes_in_a_dm_while_a_shard_does_not_connect_is_told_once_that_they_wait(
    settings: Settings, server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # README: in a DM the agent answers every message. It was silent for as long as the shard did not connect.
    async with with_a_shard_away(settings, server, monkeypatch) as (here, bob, gate):
        first = await server.post(server.dm(bob), bob, "hello")
        await server.wait_for_message(lambda m: m.content == WAITING)
        second = await server.post(server.dm(bob), bob, "are you there?")
        gate.set()
        for asked in (first, second):
            await here.answer(asked)
        assert [said.content for said in here.answers(server.dm(bob))].count(WAITING) == 1
        assert await here.texts() == ["hello", "are you there?"]


async def test_doctor_reports_problems_of_the_token_and_the_intents(settings: Settings, server: DiscordServer) -> None:
    good = settings.model_copy(update={"discord_token": SecretStr(server.token)})
    assert [ok for ok, _ in await inspect(good)] == [True, True, True]
    server.gateway.allowed_intents &= ~MESSAGE_CONTENT
    assert (False, "in the developer portal, under Bot, switch on Message Content Intent") in await inspect(good)
    bad = settings.model_copy(update={"discord_token": SecretStr("another")})
    assert await inspect(bad) == [(False, BAD_TOKEN)]

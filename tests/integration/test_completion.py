"""What the terminal completes while a command is typed."""

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from bot.console.chat import Chat, ChatPosition
from bot.console.line_editor import CommandCompleter
from bot.script.places import place_of
from tests.support.harness import AppHarness


async def completed(chat: Chat, typed: str) -> list[str]:
    found = CommandCompleter(chat.suggest).get_completions_async(Document(typed), CompleteEvent())
    return [typed[: len(typed) + each.start_position] + each.text async for each in found]


async def test_commands_and_arguments_are_completed_from_what_the_user_may_read(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus fact set deploy_day 5", room="general")
    await harness.command("alice", "/nexus fact set deploy_fear 9", dm="nexus")
    await harness.command("alice", "/nexus project create apollo", room="general")
    alice = Chat(harness.app, ChatPosition(harness.workspace(), "alice", place_of("general", None, None)))
    bob = Chat(harness.app, ChatPosition(harness.workspace(), "bob", place_of("general", None, None)))
    assert await completed(alice, "/fact g") == ["/fact get"]
    assert await completed(alice, "/fact get dep") == ["/fact get deploy_day"]
    assert await completed(alice, "/memory m") == ["/memory mentions"]
    assert await completed(alice, "/project member add apollo alice w") == ["/project member add apollo alice write"]
    assert await completed(alice, "/project assign ") == ["/project assign apollo"]
    assert await completed(bob, "/project assign ") == []


async def test_nothing_of_a_room_is_suggested_to_others_once_its_platform_calls_it_private(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus fact set deploy_day 5", room="general")
    for user, shown in (("alice", ["/fact get deploy_day"]), ("bob", [])):
        chat = Chat(harness.app, ChatPosition(harness.workspace(), user, place_of("general", None, None, None, True)))
        assert await completed(chat, "/fact get dep") == shown

"""Nexus on Slack: the real slack-bolt and slack-sdk over real sockets, to a server that speaks Slack's protocol."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
import yaml

from bot.commands.confirmations import BUTTON_EXPIRED, USED
from bot.slack.doctor import SLACK_SCOPES, inspect
from composer.memory.forget import RETRACTED
from composer.model import room_id
from composer.settings import Settings
from tests.support.documents import pdf
from tests.support.program import ROOT
from tests.support.slack.harness import Office, Running, office_on


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


# Messages and where they are answered


@pytest.mark.parametrize("wire", ["socket", "http"])
@pytest.mark.parametrize("first", ["message", "app_mention"])
async def test_a_mention_is_answered_once_in_a_thread_under_it(office: Office, wire: str, first: Any) -> None:
    office.slack.world.mention_first = first
    async with office.socket() if wire == "socket" else office.http() as running:
        ts = await office.slack.post(office.general, office.alice, office.mention("when do we ship?"))
        assert await office.answered() == [office.model.answer]
        await running.settle()
        assert await running.stored() == ["@nexus when do we ship?"]
        assert len(office.model.prompts) == 1
        assert office.answers()[0]["thread_ts"] == ts
        assert {attempt.outcome for attempt in office.slack.outbox.attempts} == {"acked"}


async def test_a_message_that_does_not_address_the_agent_is_stored_and_not_answered(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.post(office.general, office.bob, "the launch is on &lt;Friday&gt; &amp; <@U00000002> knows")
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("when is the launch?"))
        await office.answered()
        assert "the launch is on <Friday> & @alice knows" in office.model.prompts[0]
        assert "bob" in office.model.prompts[0]
        assert len(office.model.prompts) == 1


async def test_a_dm_is_answered_next_to_the_question(office: Office) -> None:
    async with office.socket() as running:
        im = await office.slack.add_im(office.team, office.bob)
        await office.slack.post(im, office.bob, "my salary is 91k")
        assert await office.answered(1, im) == [office.model.answer]
        assert "thread_ts" not in office.answers(im)[0]
        await office.slack.post(office.general, office.bob, office.mention("what is my salary?"))
        await office.answered()
        await running.settle()
        assert "91k" in office.model.prompts[0]
        assert "91k" not in office.model.prompts[1]


async def test_a_thread_in_the_agents_pane_is_answered_in_that_thread_with_status(office: Office) -> None:
    async with office.socket() as running:
        thread = await office.slack.start_assistant_thread(office.team, office.bob)
        im = await office.slack.add_im(office.team, office.bob)
        await office.slack.settled()
        await office.slack.post(im, office.bob, "plan the &lt;offsite&gt;", thread=thread)
        await office.answered(1, im)
        await running.settle()
        assert office.answers(im)[-1]["thread_ts"] == thread
        await office.slack.post(im, office.bob, "and the budget", thread=thread)
        await office.answered(2, im)
        assert office.slack.calls_of("assistant.threads.setStatus")


async def test_what_is_said_in_the_agents_pane_stands_in_no_title(office: Office) -> None:
    # README, "Forgetting a message erases it": a title is no message, so nothing that forgets its words reaches it.
    async with office.socket() as running:
        thread = await office.slack.start_assistant_thread(office.team, office.bob)
        im = await office.slack.add_im(office.team, office.bob)
        await office.slack.settled()
        asked = await office.slack.post(im, office.bob, "plan the offsite", thread=thread)
        await office.answered(1, im)
        await running.settle()
        await office.slack.delete(im, asked)
        await office.slack.wait_for(lambda: office.answers(im)[-1]["text"] == RETRACTED)
        await running.settle()
    assert office.slack.calls_of("assistant.threads.setTitle") == []


async def test_a_reply_in_a_thread_is_answered_there_with_the_thread_in_view(office: Office) -> None:
    async with office.socket() as running:
        root = await office.slack.post(office.general, office.alice, "shall we use Rust?")
        await office.slack.post(office.general, office.bob, "rather Zig", thread=root)
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("what did bob prefer?"), thread=root)
        await office.answered()
        await running.settle()
        assert office.answers()[0]["thread_ts"] == root
        assert "rather Zig" in office.model.prompts[0]


async def test_documents_are_read_and_other_files_are_only_listed(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.upload(office.general, office.bob, "plan.md", "Ship on Fridäy.".encode(), "text/markdown")
        await office.slack.upload(
            office.general, office.bob, "tour.pdf", pdf([["The tour ends in Porto."]]), "application/pdf"
        )
        await office.slack.upload(office.general, office.bob, "locked.pdf", pdf([["x"]], password="heron"))
        await office.slack.upload(office.general, office.bob, "tool.zip", b"PK xxxx", "application/zip")
        await office.slack.upload(office.general, office.bob, "cat.png", b"\x89PNG secret", "image/png")
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("what is the plan?"))
        await office.answered()
        prompt = office.model.prompts[0]
        assert "Ship on Fridäy." in prompt
        assert "# Page 1\n  | The tour ends in Porto." in prompt
        assert '[attachment "locked.pdf", text/plain: could not be read: it needs a password]' in prompt
        assert "tool.zip" in prompt
        assert "cat.png" in prompt
        assert "xxxx" not in prompt
        assert "PNG secret" not in prompt


async def test_messages_of_other_apps_are_stored_and_never_answered(office: Office) -> None:
    async with office.socket() as running:
        await office.slack.post_as_other_bot(office.general, office.mention("deployed 4.2"))
        await running.settle()
        assert office.model.prompts == []
        await office.slack.post(office.general, office.alice, office.mention("what was deployed?"))
        await office.answered()
        assert "deployed 4.2" in office.model.prompts[0]


async def test_a_long_answer_becomes_several_messages(office: Office) -> None:
    office.model.pieces = tuple(f"Point {number}: {'word ' * 60}\n\n" for number in range(30))
    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, office.mention("all the points?"))
        await office.slack.wait_for(lambda: any("Point 29" in answer["text"] for answer in office.answers()))
        await running.settle()
        texts = [answer["text"] for answer in office.answers()]
        assert len(texts) == 3
        assert all(len(text) <= 3_500 for text in texts)
        assert [text.count("Point") for text in texts] == [11, 11, 8]
        assert "".join(" ".join(texts).split()) == "".join(office.model.answer.split())


async def test_an_answer_mentions_nobody(office: Office) -> None:
    office.model.pieces = ("Attention <!channel>, ", f"<@{office.bob}>!")
    async with office.socket():
        await office.slack.post(office.general, office.alice, office.mention("call them"))
        await office.slack.wait_for(lambda: any("!" in answer["text"][-1:] for answer in office.answers()))
        assert [a["text"] for a in office.answers()] == [f"Attention &lt;!channel>, &lt;@{office.bob}>!"]


# Streaming


async def test_an_answer_in_a_thread_is_streamed_and_ends_with_its_key(office: Office) -> None:
    gate = office.model.gates[1] = office.model.gates[2] = asyncio.Event()
    office.model.pieces = ("It is on a Friday, I recall. ", "More ", "to come.")
    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.slack.wait_for(lambda: office.slack.api.streams)
        assert [a["text"] for a in office.answers()] == ["It is on a Friday, I recall."]
        gate.set()
        await office.answered()
        await running.settle()
        assert [a["text"] for a in office.answers()] == [office.model.answer]
        assert office.answers()[0]["metadata"]["event_type"] == "nexus_answer"
        assert office.slack.api.streams[0].dead
        assert not office.slack.calls_of("chat.update")


async def test_without_streams_an_answer_grows_by_edits(office: Office) -> None:
    office.slack.fail("chat.startStream", "error", times=9, error="unknown_method")
    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.answered(1)
        await office.slack.post(office.general, office.alice, office.mention("and where?"))
        assert await office.answered(2) == [office.model.answer] * 2
        await running.settle()
        assert len(office.slack.calls_of("chat.startStream")) <= 1


# Edits and deletions


@pytest.mark.parametrize("away", [False, True])
async def test_a_file_removed_from_a_message_is_erased(office: Office, away: bool) -> None:
    # Slack marks a message whose file was deleted as no edit: what was removed while Nexus was away stayed.
    async def attached() -> list[str]:
        connection = await asyncpg.connect(office.settings.database_url)
        try:
            stored = await connection.fetchval("SELECT attachments::text FROM messages")
        finally:
            await connection.close()
        return [file["name"] for file in json.loads(stored)]

    async with office.socket() as running:
        await office.slack.upload(office.general, office.bob, "codes.txt", b"quokka7", "text/plain", text="for later")
        await office.slack.wait_for(lambda: bool(office.slack.world.channels[office.general].messages))
        place = office.slack.world.channels[office.general]
        (message,) = (m for m in place.messages.values() if m.get("files"))
        await running.settle()
        assert await attached() == ["codes.txt"]
        if not away:
            office.slack.world.change(place, message, message["user"], text="for much later")
            await running.settle()
            assert await attached() == ["codes.txt"]
            office.slack.world.change(place, message, "", files=[{"id": "F1", "mode": "tombstone"}])
            await running.settle()
            assert await attached() == []
    if away:
        office.slack.world.change(place, message, "", files=[{"id": "F1", "mode": "tombstone"}])
        async with office.socket() as running:
            await running.settle()
            assert await attached() == []


async def test_edits_and_deletions_change_what_is_stored(office: Office) -> None:
    async with office.socket() as running:
        launch = await office.slack.post(office.general, office.bob, "the launch is at noon")
        secret = await office.slack.post(office.general, office.bob, "the vault code is zqorchid")
        im = await office.slack.add_im(office.team, office.bob)
        private = await office.slack.post(im, office.bob, "my cat is called Mia")
        await office.answered(1, im)
        await running.settle()
        await office.slack.edit(office.general, launch, "the launch is at midnight")
        await office.slack.delete(office.general, secret)
        await office.slack.delete(im, private)
        await running.settle()
        assert await running.stored() == ["the launch is at midnight"]
        await office.slack.post(office.general, office.alice, office.mention("launch? vault code?"))
        await office.answered()
        prompt = office.model.prompts[-1]
        assert "midnight" in prompt
        assert "noon" not in prompt
        assert "zqorchid" not in prompt


async def test_a_deletion_is_followed_also_where_slack_does_not_tell_what_was_deleted(office: Office) -> None:
    async with office.socket() as running:
        im = await office.slack.add_im(office.team, office.bob)
        private = await office.slack.post(im, office.bob, "my salary is 91k")
        await office.answered(1, im)
        said = await office.slack.post(office.general, office.bob, "the launch is on Friday")
        await running.settle()
        await office.slack.delete(im, private, bare=True)
        await office.slack.delete(office.general, said, bare=True)
        await running.settle()
        assert await running.stored() == []


async def test_a_deleted_message_with_replies_is_erased_although_its_thread_remains(office: Office) -> None:
    async with office.socket() as running:
        root = await office.slack.post(office.general, office.bob, "the vault code is zqorchid")
        await office.slack.post(office.general, office.alice, "thanks", thread=root)
        await running.settle()
        await office.slack.delete(office.general, root)
        await running.settle()
        assert await running.stored() == ["thanks"]


# Privacy


async def test_a_private_message_appears_nowhere_else(office: Office) -> None:
    async with office.socket() as running:
        secret = await office.slack.add_channel(office.team, "secret", [office.alice], private=True)
        root = await office.slack.post(secret, office.alice, "canary-one: the merger is with Initech")
        await office.slack.post(secret, office.alice, "canary-two: for 4 million", thread=root)
        group = await office.slack.add_im(office.team, office.alice, office.bob)
        await office.slack.post(group, office.bob, "canary-three: bob is leaving")
        im = await office.slack.add_im(office.team, office.alice)
        await office.slack.post(im, office.alice, "canary-four: I am ill")
        await office.answered(1, im)
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("what of the canary, merger, leaving?"))
        await office.answered()
        await running.settle()
        assert "canary-" not in office.model.prompts[-1]
        await office.slack.post(secret, office.alice, office.mention("what of the merger?"), thread=root)
        await office.answered(1, secret)
        assert "canary-one" in office.model.prompts[-1]
        assert "canary-two" in office.model.prompts[-1]
        assert "canary-three" not in office.model.prompts[-1]
        assert "canary-four" not in office.model.prompts[-1]


@pytest.mark.parametrize("first_in_thread", [False, True])
async def test_a_channel_that_becomes_public_no_longer_reads_its_private_memory(
    office: Office, first_in_thread: bool
) -> None:
    async with office.socket() as running:
        secret = await office.slack.add_channel(office.team, "secret", [office.alice], private=True)
        office.slack.hold()
        root = await office.slack.post(secret, office.alice, "canary-one")
        reply = await office.slack.post(secret, office.alice, "canary-two", thread=root)
        await office.slack.release(lambda held: held[::-1] if first_in_thread else held)
        await running.settle()
        assert root
        assert reply
        await office.slack.set_private(secret, False, office.alice)
        await running.settle()
        await office.slack.post(secret, office.bob, office.mention("what of the canary?"))
        await office.answered(1, secret)
        assert "canary-" not in office.model.prompts[-1]


async def test_a_member_who_rejoined_unnoticed_is_answered_again(office: Office) -> None:
    async with office.socket() as running:
        secret = await office.slack.add_channel(office.team, "secret", [office.alice, office.bob], private=True)
        await office.slack.post(secret, office.bob, "one")
        await running.settle()
        await office.slack.leave(secret, office.bob)
        await running.settle()
        office.slack.hold()
        await office.slack.join(secret, office.bob)
        await office.slack.release(lambda held: [])  # the join event is lost
        await office.slack.post(secret, office.bob, office.mention("two"))
        await office.answered(1, secret)
        await running.settle()
        assert await running.stored() == ["one", "@nexus two"]


# Commands


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_a_slash_command_is_answered_to_its_caller_alone(office: Office, wire: str) -> None:
    async with office.socket() if wire == "socket" else office.http() as running:
        answered = await office.slack.command(office.general, office.bob, "remember the launch is on Friday")
        assert answered.error == ""
        assert [ephemeral["text"] for ephemeral in office.slack.ephemerals(office.bob)]
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("when is the launch?"))
        await office.answered()
        assert "the launch is on Friday" in office.model.prompts[0]
        unknown = await office.slack.command(office.general, office.bob, "remembr x")
        assert "There is no command" in unknown.ack["text"]
        listed = await office.slack.command(office.general, office.bob, "help")
        assert listed.ack["text"].startswith("```")
        assert listed.ack["response_type"] == "ephemeral"


async def test_answers_to_commands_ask_slack_for_no_previews(office: Office) -> None:
    # A model writes some of them, and Slack requests the addresses in them: that may tell somebody what it knows.
    async with office.socket():
        listed = await office.slack.command(office.general, office.bob, "help")
        shown = [each for each in (listed.ack, *listed.responses) if each]
        assert shown
        assert all(each["unfurl_links"] is each["unfurl_media"] is False for each in shown)


async def say_what_is_recalled(office: Office) -> str:
    """Post a message, and as many others as push it out of the view."""
    said: str = await office.slack.post(office.general, office.bob, "the launch code is heron")
    for number in range(60):
        await office.slack.post(office.general, office.bob, f"nothing new {number}")
    return said


async def test_why_links_to_the_messages_and_sends_the_exact_prompt_as_a_file(office: Office) -> None:
    async with office.socket() as running:
        said = await say_what_is_recalled(office)
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("what is the launch code?"))
        await running.settle()  # an answer is shown while it comes in, before it is stored
        why = await office.slack.command(office.general, office.alice, "why")
        shown = "\n".join([why.ack["text"], *(each["text"] for each in office.slack.ephemerals(office.alice))])
        assert f"https://acme.slack.com/archives/{office.general}/p{said.replace('.', '')}" in shown
        asked = await office.slack.command(office.general, office.alice, "why --prompt")
        assert "prompt.txt is in our direct messages" in asked.ack["text"]
        (file,) = [content for about, content in office.slack.world.files.values() if about["name"] == "prompt.txt"]
        assert "the launch code is heron" in file.decode()
        assert office.model.prompts[0][:200] in file.decode()


async def test_an_exported_file_is_deleted_once_its_person_forgets(office: Office) -> None:
    def files() -> list[str]:
        return [str(about["name"]) for about, _ in office.slack.world.files.values()]

    async with office.socket() as running:
        for user in (office.alice, office.bob):
            await office.slack.post(office.general, user, "the launch code is heron")
        await running.settle()
        for user in (office.alice, office.bob):
            exported = await office.slack.command(office.general, user, "export")
            assert "is in our direct messages" in exported.ack["text"]
        assert files() == ["nexus-export.json"] * 2
        asked = await office.slack.command(office.general, office.alice, "forget everything")
        shown = "\n".join([asked.ack["text"], *(each["text"] for each in office.slack.ephemerals(office.alice))])
        assert "It deletes 1 exported file of yours too." in shown
        assert len(files()) == 2, "it was only shown"
        forgotten = await office.slack.command(office.general, office.alice, "forget everything --yes")
        assert "1 exported file" in forgotten.ack["text"]
        await office.slack.wait_for(lambda: len(files()) == 1)
        again = await office.slack.command(office.general, office.alice, "forget everything --yes")
        assert "exported file" not in again.ack["text"]
        assert len(files()) == 1, "Bob's stays"


async def test_a_mark_in_an_answer_links_to_the_message(office: Office) -> None:
    office.model.pieces = ("It is heron ", "(s1), as Bob said.")
    async with office.socket() as running:
        said = await say_what_is_recalled(office)
        await running.settle()
        await office.slack.post(office.general, office.alice, office.mention("what is the launch code?"))
        await running.settle()
        link = f"https://acme.slack.com/archives/{office.general}/p{said.replace('.', '')}"
        assert [a["text"] for a in office.answers()] == [f"It is heron ([s1]({link})), as Bob said."]


async def test_a_mark_in_a_dm_links_to_the_message_of_that_dm(office: Office) -> None:
    async with office.socket() as running:
        dm = await office.slack.add_im(office.team, office.alice)
        said = await office.slack.post(dm, office.alice, "the launch code is heron")
        for number in range(30):
            await office.slack.post(dm, office.alice, f"nothing new {number}")
        await running.settle()
        office.model.pieces = ("It is heron ", "(s1).")
        await office.slack.post(dm, office.alice, "what is the launch code?")
        await running.settle()
        link = f"https://acme.slack.com/archives/{dm}/p{said.replace('.', '')}"
        assert office.answers(dm)[-1]["text"] == f"It is heron ([s1]({link}))."


async def test_a_wrong_command_is_answered_with_its_usage_and_the_known_names(office: Office) -> None:
    async with office.socket():
        await office.slack.command(office.general, office.alice, "project create apollo")
        wrong = await office.slack.command(office.general, office.alice, "memory never")
        assert wrong.ack["text"] == (
            "'never' is not possible here: write on, mentions or off. Usage: /nexus memory [on|mentions|off]. "
            "Example: /nexus memory mentions"
        )
        for who, known in ((office.alice, "\nNAME: apollo"), (office.bob, "")):
            unknown = await office.slack.command(office.general, who, "project assign apolo")
            usage = "Usage: /nexus project assign NAME [--pool]"
            assert unknown.ack["text"] == f"There is no project 'apolo' here.\n{usage}{known}"


async def test_a_command_by_mention_is_answered_in_a_thread_and_not_stored(office: Office) -> None:
    async with office.socket() as running:
        root = await office.slack.post(office.general, office.alice, "about the launch")
        await office.slack.post(office.general, office.bob, office.mention("/nexus remember it is blue"), thread=root)
        await office.slack.wait_for(lambda: office.slack.ephemerals(office.bob))
        await running.settle()
        (answer,) = office.slack.ephemerals(office.bob)
        assert answer["thread_ts"] == root
        assert (office.answers(), await running.stored()) == ([], ["about the launch"])
        await office.slack.post(office.general, office.bob, office.mention("nexus recall blue"), thread=root)
        await office.slack.wait_for(lambda: len(office.slack.ephemerals(office.bob)) == 2)
        assert "it is blue" in office.slack.ephemerals(office.bob)[1]["text"]
        assert office.model.prompts == []


async def is_private(running: Running, channel: str) -> bool:
    workspace = await running.adapter.inbox.workspace()
    async with running.app.database.transaction(workspace.tenant_id, "read") as tx:
        found = await tx.conversations.get(room_id(workspace, channel))
    return found is not None and found.private


async def test_a_private_channel_is_private_also_when_its_first_event_is_a_command_in_a_thread(office: Office) -> None:
    async with office.socket() as running:
        slack = office.slack
        await slack.command(office.general, office.bob, "project create apollo")
        cave = await slack.add_channel(office.team, "cave", [office.alice, office.bob], private=True, bot=False)
        parent = await slack.post(cave, office.bob, "said before the bot came")
        await slack.join(cave, office.team.bot_user)
        await slack.settled()
        await slack.post(cave, office.bob, office.mention("/nexus remember the code is zqcave"), thread=parent)
        await slack.wait_for(lambda: slack.ephemerals(office.bob))
        await running.settle()
        assert await is_private(running, cave)


async def test_a_private_channel_is_private_also_when_its_first_event_is_a_slash_command(office: Office) -> None:
    async with office.socket() as running:
        cave = await office.slack.add_channel(office.team, "cave", [office.alice, office.bob], private=True)
        await office.slack.command(cave, office.bob, "remember the code is zqcave")
        await running.settle()
        assert await is_private(running, cave)


async def test_whoever_made_a_channel_is_its_admin(office: Office) -> None:
    async with office.socket():
        slack = office.slack
        carol, dan = await slack.add_user(office.team, "carol"), await slack.add_user(office.team, "dan")
        club = await slack.add_channel(office.team, "club", [carol, dan])
        for person in (carol, dan):
            await slack.command(club, person, f"project create {'alpha' if person == carol else 'beta'}")
        refused = await slack.command(club, dan, "project assign beta --yes")
        assert "may put it into a project" in refused.ack["text"]
        shown = await slack.command(club, carol, "project assign alpha")
        assert "can then recall what alpha remembers" in shown.ack["text"]
        assert "To undo" in (await slack.command(club, carol, "project assign alpha --yes")).ack["text"]


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_a_button_confirms_a_command_once_and_for_its_caller_alone(office: Office, wire: str) -> None:
    async with office.socket() if wire == "socket" else office.http():
        slack, general = office.slack, office.general
        await slack.command(general, office.alice, "project create apollo")

        async def texts(user: str, count: int) -> str:
            await slack.wait_for(lambda: len(slack.ephemerals(user)) >= count)
            return str(slack.ephemerals(user)[-1]["text"])

        async def project() -> str:
            return str((await slack.command(general, office.alice, "project list")).ack["text"])

        await slack.command(general, office.alice, "project assign apollo")
        shown = slack.ephemerals(office.alice)[-1]
        assert "can then recall what apollo remembers" in shown["text"]
        assert "rooms: none" in await project(), "it was only shown"
        button = shown["blocks"][-1]["elements"][0]["action_id"]
        slack.api.ephemerals.append(shown | {"user": office.bob})  # as if he could see it
        told = len(slack.ephemerals(office.bob))
        await slack.click(general, office.bob, shown["ts"], button)
        assert "another person's" in await texts(office.bob, told + 1)
        assert "rooms: none" in await project()
        for expected in ("To undo: /nexus project unassign", USED):
            told = len(slack.ephemerals(office.alice))
            await slack.click(general, office.alice, shown["ts"], button)
            assert expected in await texts(office.alice, told + 1)
        assert "rooms: none" not in await project()


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_of_two_presses_at_once_one_counts(office: Office, wire: str) -> None:
    async with office.socket() if wire == "socket" else office.http():
        slack, general = office.slack, office.general
        await slack.command(general, office.alice, "project create apollo")
        await slack.command(general, office.alice, "project assign apollo")
        shown, told = slack.ephemerals(office.alice)[-1], len(slack.ephemerals(office.alice))
        button = shown["blocks"][-1]["elements"][0]["action_id"]
        await asyncio.gather(*(slack.click(general, office.alice, shown["ts"], button) for _ in range(2)))
        await slack.wait_for(lambda: len(slack.ephemerals(office.alice)) >= told + 2)
        texts = sorted((each["text"] for each in slack.ephemerals(office.alice)[told:]), key=USED.__eq__)
        assert "To undo: /nexus project unassign" in texts[0]
        assert texts[1:] == [USED]


async def test_a_button_that_an_earlier_process_showed_is_refused_with_a_sentence(office: Office) -> None:
    slack, general = office.slack, office.general
    async with office.socket():
        await slack.command(general, office.alice, "forget everything")
        shown = slack.ephemerals(office.alice)[-1]
    async with office.socket():
        told = len(slack.ephemerals(office.alice))
        await slack.click(general, office.alice, shown["ts"], shown["blocks"][-1]["elements"][0]["action_id"])
        await slack.wait_for(lambda: len(slack.ephemerals(office.alice)) > told)
        assert slack.ephemerals(office.alice)[-1]["text"] == BUTTON_EXPIRED


async def test_workspace_admins_may_run_admin_commands(office: Office) -> None:
    async with office.socket() as running:
        carol = await office.slack.add_user(office.team, "carol")
        await office.slack.join(office.general, carol)
        await office.slack.post(office.general, office.bob, "hello")
        await running.settle()
        refused = await office.slack.command(office.general, carol, "memory off")
        assert "Only an admin" in refused.ack["text"]
        done = await office.slack.command(office.general, office.alice, "memory off")
        assert "off" in done.ack["text"]
        await office.slack.post(office.general, office.bob, "the wombat is blue")
        await running.settle()
        assert await running.stored() == ["hello"]


async def test_a_long_answer_to_a_command_is_shown_to_its_end(office: Office) -> None:
    async with office.socket():
        for number in range(16):
            value = f"begin{number} {'word ' * 300}end{number}"
            await office.slack.command(office.general, office.bob, f"fact set key{number} {value}")
        seen = len(office.slack.ephemerals(office.bob))
        await office.slack.command(office.general, office.bob, "fact list")
        await office.slack.wait_for(lambda: "end9" in _shown(office, seen))
        assert all(f"{mark}{number}" in _shown(office, seen) for mark in ("begin", "end") for number in range(16))


def _shown(office: Office, since: int) -> str:
    return "".join(said["text"] for said in office.slack.ephemerals(office.bob)[since:])


async def test_a_slow_command_is_acknowledged_and_answered_later(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.slack.commands.ACKNOWLEDGE_SECONDS", 0.0)
    async with office.socket():
        answered = await office.slack.command(office.general, office.bob, "agents")
        await office.slack.wait_for(lambda: answered.responses)
        assert answered.error == ""
        assert not answered.ack.get("text")
        assert "@nexus" in answered.responses[0]["text"]
        assert answered.responses[0]["response_type"] == "ephemeral"


# HTTP


async def test_only_requests_signed_by_slack_are_accepted(office: Office) -> None:
    async with office.http() as running:
        assert await office.slack.verify_url()
        office.slack.outbox.secret = "wrong"
        await office.slack.post(office.general, office.alice, "forged")
        await office.slack.settled()
        assert office.slack.outbox.attempts[-1].status == 401
        office.slack.outbox.secret = office.slack.outbox.signing_secret
        await office.slack.post(office.general, office.alice, "real")
        await running.settle()
        assert await running.stored() == ["real"]


# Setting up


async def test_the_manifest_requests_what_is_used_and_doctor_reports_what_is_missing(office: Office) -> None:
    manifest = yaml.safe_load((ROOT / "docs" / "slack-manifest.yaml").read_text())
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == SLACK_SCOPES
    token = office.slack.world.tokens[office.team.bot_token]
    token.scopes = set(SLACK_SCOPES)
    office.slack.world.subscribed = set(manifest["settings"]["event_subscriptions"]["bot_events"])
    found = await inspect(office.settings, office.slack.base_url)
    assert [ok for ok, _ in found] == [True, True]
    async with office.socket() as running:  # no other scope and no other event is needed
        im = await office.slack.add_im(office.team, office.bob)
        await office.slack.upload(im, office.bob, "plan.md", b"Ship on Friday.", "text/markdown")
        await office.answered(1, im)
        await office.slack.post(office.general, office.alice, office.mention("when?"))
        await office.answered()
        await running.settle()
        errors = {call.answer.get("error") for call in office.slack.calls}
        assert errors == {None}
    token.scopes -= {"groups:history"}
    found = await inspect(office.settings, office.slack.base_url)
    assert [ok for ok, _ in found] == [True, False, True]
    assert "groups:history" in found[1][1]
    token.dead = "invalid_auth"
    found = await inspect(office.settings.model_copy(update={"slack_app_token": None}), office.slack.base_url)
    assert found == [
        (
            False,
            "Slack refuses the token (invalid_auth): install the app again, and set "
            "NEXUS_SLACK_BOT_TOKEN to its token.",
        )
    ]

"""`recall` shows the ids that `forget` takes, and where each thing was said."""

import re

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.repositories.explanations import MessageAddress
from tests.support.harness import AppHarness

GENERAL = {"room": "general"}
YOURS = re.compile(r"\[yours: ((?:message|item) \w+)\]")


async def recalled(harness: AppHarness, user: str = "alice", words: str = "the zqlynx", **place: str) -> str:
    return (await harness.command(user, f"/nexus recall {words}", **(place or GENERAL))).text


async def test_each_id_that_is_shown_as_ones_own_is_one_that_forget_takes(harness: AppHarness) -> None:
    await harness.say("alice", "The zqlynx sleeps under the crane.", **GENERAL, id="m1a")
    await harness.command("alice", "/nexus remember the zqlynx belongs to the harbour", **GENERAL)
    await harness.say("bob", "I saw the zqlynx today.", **GENERAL, id="m1b")
    text = await recalled(harness)
    assert '(in "#general"): I saw the zqlynx today. [message m1b]' in text
    assert text.endswith("/nexus forget item ID")
    ids = YOURS.findall(text)
    assert {id.split()[0] for id in ids} == {"message", "item"}
    for id in ids:
        await harness.command("alice", f"/nexus forget {id} --yes", **GENERAL)
    left = await recalled(harness)
    assert "I saw the zqlynx today." in left
    assert "yours" not in left
    assert "forget" not in left


async def test_what_is_said_in_another_private_room_of_a_project_has_no_id_there(harness: AppHarness) -> None:
    for room, private in (("base", None), ("cave", True)):
        await harness.say("alice", "hello", room=room, private=private)
    await harness.command("alice", "/nexus project create apollo", room="base")
    await harness.command("alice", "/nexus project assign apollo --yes", room="base")
    await harness.command("alice", "/nexus project assign apollo --pool --yes", room="cave")
    await harness.say("alice", "The zqlynx sleeps under the crane.", room="cave", id="secretid")
    text = await recalled(harness, "bob", room="base")
    assert "zqlynx" in text
    assert "secretid" not in text


async def test_where_the_platform_has_links_each_has_one(harness: AppHarness) -> None:
    await harness.say("bob", "I saw the zqlynx today.", **GENERAL, id="m1b")

    def link(address: MessageAddress) -> str:
        return f"https://chat.test/{address.name}/{address.external_id}"

    at = harness.workspace()
    asked = incoming(at, place_of("general", None, None), "alice", "/nexus recall the zqlynx", harness.clock.tick())
    answer = await run_command(harness.app, at, asked, permalink=link)
    assert "[message m1b] https://chat.test/general/m1b" in answer.text

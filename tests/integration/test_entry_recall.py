"""Entries in the bot: recalled where their person alone reads the answer, and nowhere else; forgotten by every
route."""

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from composer.errors import NotFound, Refused
from composer.model import Trust
from composer.people import erasing
from composer.settings import Settings
from tests.integration.test_teams import manage, team_of
from tests.support.entries import Hub
from tests.support.erased_ids import find_remains


async def prompt(hub: Hub, user: str, question: str, **place: str) -> str:
    composed = await hub.harness.compose(user, question, **place)
    return "\n".join(message.content for message in composed.prompt.role_messages)


async def read_by(hub: Hub, user: str, marker: str) -> list[str]:
    """The places in which a person's question is answered from a marked text."""
    await hub.harness.say(user, "hello there", room="general")
    await hub.harness.say(user, "hello there", session="s1")
    await hub.harness.say(user, "hello there", dm="nexus")
    places: dict[str, dict[str, str]] = {
        "room": {"room": "general"},
        "dm": {"dm": "nexus"},
        "session": {"session": "s1"},
    }
    return [
        name
        for name, place in places.items()
        if f"{marker}is" in await prompt(hub, user, f"@nexus what about the {marker} budget?", **place)
    ]


async def test_an_own_entry_is_recalled_in_a_dm_and_a_session_and_in_no_room(hub: Hub) -> None:
    await hub.write("alice", "the zqown budget zqownis nine")
    await hub.write("alice", "the zqtool budget zqtoolis nine", "claude")
    for marker in ("zqown", "zqtool"):
        assert await read_by(hub, "alice", marker) == ["dm", "session"]
        assert await read_by(hub, "bob", marker) == []


async def test_an_entry_for_another_tool_alone_is_recalled_nowhere(hub: Hub) -> None:
    await hub.write("alice", "the zqfor budget zqforis nine", vendors=["claude"])
    assert await read_by(hub, "alice", "zqfor") == []
    await hub.write("alice", "the zqbot budget zqbotis nine", vendors=["nexus"])
    assert await read_by(hub, "alice", "zqbot") == ["dm", "session"]


async def test_what_is_shared_with_a_team_the_bot_recalls_to_its_owner_alone(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    id = (await hub.write("alice", "the zqteam budget zqteamis nine")).entry.id
    await hub.share("alice", id, team)
    assert await read_by(hub, "alice", "zqteam") == ["dm", "session"]
    assert await read_by(hub, "bob", "zqteam") == []


async def test_what_is_for_a_project_is_recalled_in_its_conversations(hub: Hub) -> None:
    await hub.harness.command("alice", "/nexus project create apollo", dm="nexus")
    await hub.harness.say("alice", "hello", room="general")
    await hub.harness.command("alice", "/nexus project assign apollo --yes", room="general")
    async with hub.harness.app.database.transaction(hub.harness.workspace().tenant_id) as tx:
        (apollo,) = await tx.projects.named("apollo")
    await hub.write("alice", "the zqapollo budget zqapollois nine", project=apollo)
    assert await read_by(hub, "alice", "zqapollo") == ["room"]
    assert await read_by(hub, "bob", "zqapollo") == ["room"]


async def test_trashed_and_expired_and_pending_entries_are_recalled_nowhere(hub: Hub) -> None:
    id = (await hub.write("alice", "the zqtrash budget zqtrashis nine")).entry.id
    at = hub.harness.clock.now() + timedelta(hours=1)
    await hub.write("alice", "the zqpast budget zqpastis nine", expires_at=at)
    await hub.trash("alice", id)
    hub.harness.clock.tick(2 * 3_600)
    assert await read_by(hub, "alice", "zqtrash") == []
    assert await read_by(hub, "alice", "zqpast") == []
    await hub.restore("alice", id)
    assert await read_by(hub, "alice", "zqtrash") == ["dm", "session"]


async def test_why_names_an_entry_and_no_longer_shows_it_once_it_is_in_the_trash(hub: Hub) -> None:
    id = (await hub.write("alice", "the launch is on Friday zqlaunch")).entry.id
    await hub.harness.ask("alice", "when is the launch?", dm="nexus")
    assert "own entries" in (await hub.harness.command("alice", "/nexus why --details", dm="nexus")).text
    await hub.trash("alice", id)
    assert "zqlaunch" not in (await hub.harness.command("alice", "/nexus why --prompt", dm="nexus")).text


async def test_privacy_and_share_and_recall_name_entries(hub: Hub) -> None:
    team = await team_of(hub, "alice", "bob")
    await hub.write("alice", "zqone")
    id = (await hub.write("alice", "zqtwo")).entry.id
    await hub.share("alice", id, team)
    report = (await hub.harness.command("alice", "/nexus privacy", dm="nexus")).text
    assert "your entries: 1 memory" in report
    assert "a team's entries: 1 memory" in report
    listed = (await hub.harness.command("alice", "/nexus share", dm="nexus")).text
    assert "your entries: zqone" in listed
    found = (await hub.harness.command("alice", "/nexus recall zqone", dm="nexus")).text
    assert "[yours: item " in found
    item = found.partition("[yours: item ")[2][:8]
    await hub.harness.command("alice", f"/nexus forget item {item} --yes", dm="nexus")
    assert await hub.titles("alice") == ["zqtwo"]


MARKED: Final[dict[str, Any]] = {
    "title": "zqtitle",
    "key": "zqkey",
    "tags": ["zqtag"],
    "session": "zqsession",
    "metadata": {"zqname": "zqvalue"},
}
MARKERS = ("zqcontent", "zqtitle", "zqkey", "zqtag", "zqsession", "zqname", "zqvalue")


@pytest.mark.parametrize("words", MARKERS)
async def test_forgetting_words_finds_them_anywhere_in_an_entry(hub: Hub, settings: Settings, words: str) -> None:
    await hub.write("alice", "zqcontent here", "claude", **MARKED)
    await hub.write("bob", "zqcontent of bob")
    await hub.harness.command("alice", f"/nexus forget {words} --yes", dm="nexus")
    left = await find_remains(settings, *MARKERS)
    assert set(left) <= {"zqcontent"}
    assert await hub.titles("alice") == []


async def test_an_entry_is_erased_over_the_api_by_its_person_alone(hub: Hub, settings: Settings) -> None:
    id = (await hub.write("alice", "zqcontent here", "claude", **MARKED)).entry.id
    answer = await hub.harness.ask("alice", "what of zqcontent?", dm="nexus")
    assert "zqcontent" in answer.text
    home = Path(settings.home)
    for name, vendor, error in (("alice", "cursor", Refused), ("bob", None, NotFound)):
        async with hub.request(name, vendor) as (tx, access):
            with pytest.raises(error):
                await erasing.erase_entry(tx, access, home, id, hub.harness.clock.now(), key=bytes(32))
    await hub.trash("alice", id)
    async with hub.request("alice") as (tx, access):
        receipt = await erasing.erase_entry(tx, access, home, id, hub.harness.clock.now(), key=bytes(32))
        with pytest.raises(NotFound):
            await erasing.erase_entry(tx, access, home, uuid.uuid4(), hub.harness.clock.now(), key=bytes(32))
    await hub.harness.app.forgotten(hub.harness.workspace().tenant_id, receipt)
    assert receipt.id
    assert set(await find_remains(settings, *MARKERS)) <= {"zqcontent"}  # of the question: the asker's own message


async def test_what_waits_is_erased_too(hub: Hub, settings: Settings) -> None:
    hub.quarantined = {Trust.TOOL}
    await hub.write("alice", "zqcontent here", "claude", **MARKED)
    await hub.harness.command("alice", "/nexus forget zqvalue --yes", dm="nexus")
    assert await find_remains(settings, *MARKERS) == {}


async def test_replaced_words_are_taken_out_of_answers(hub: Hub, settings: Settings) -> None:
    id = (await hub.write("alice", "the vault word is zqsecret")).entry.id
    answer = await hub.harness.ask("alice", "what is the vault word?", dm="nexus")
    assert "zqsecret" in answer.text
    await hub.change("alice", id, content="the vault word is zqopen")
    assert await find_remains(settings, "zqsecret") == {}


async def test_erasing_a_person_erases_their_entries_also_of_a_team(hub: Hub, settings: Settings) -> None:
    team = await team_of(hub, "alice", "bob")
    id = (await hub.write("alice", "zqcontent here", "claude", **MARKED)).entry.id
    await hub.share("alice", id, team)
    async with hub.harness.app.database.transaction(hub.harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(await hub.user("root"), True)
    await hub.harness.command("root", "/nexus erase user alice --yes", room="general")
    assert await find_remains(settings, *MARKERS) == {}
    assert await manage(hub, "bob", lambda tx, access, now: tx.teams.find_for(access.users))

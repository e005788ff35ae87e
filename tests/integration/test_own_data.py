"""`/nexus privacy` and `/nexus export`: what is stored of a person, for that person alone."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from bot.console.files import write_private
from composer.errors import BadInput
from composer.people.export_document import Export
from composer.repositories import own_data
from tests.support.harness import AppHarness

SCHEMA = Path(__file__).parents[2] / "docs" / "export.schema.json"
ROOM, CAVE, DM = {"room": "general"}, {"room": "cave"}, {"dm": "nexus"}


async def exported(harness: AppHarness, user: str, **place: Any) -> dict[str, Any]:
    answer = await harness.command(user, "/nexus export", **place)
    assert answer.file is not None
    assert Export.model_validate_json(answer.file.text).as_text() == answer.file.text
    found: dict[str, Any] = json.loads(answer.file.text)
    return found


async def small_world(harness: AppHarness) -> None:
    await harness.say("bob", "bobs word is heron", **ROOM)
    await harness.say("alice", "alices word is osprey", **ROOM)
    await harness.say("bob", "bobs cave word is adit", **CAVE, private=True)
    await harness.move("alice", "cave", joined=True)
    await harness.say("alice", "alices cave word is shaft", **CAVE)
    await harness.say("alice", "I prefer tea.", **DM)
    await harness.command("alice", "/nexus fact set diet vegan --everywhere --yes", **DM)
    await harness.command("alice", "/nexus remember alices note is kestrel", **DM)
    await harness.command("alice", "/nexus landmark add we ship on Fridays", **ROOM)
    await harness.ask("alice", "@nexus what is bobs cave word?", **CAVE)


async def test_an_export_holds_all_that_is_the_persons_and_nothing_of_others(harness: AppHarness) -> None:
    await small_world(harness)
    document = await exported(harness, "alice", **DM)
    texts = [message["text"] for message in document["messages"]]
    assert "alices word is osprey" in texts
    assert "I prefer tea." in texts
    assert [fact["value"] for fact in document["facts"]] == ["vegan"]
    assert "we ship on Fridays" in [each["text"] for each in document["landmarks"]]
    assert "alices note is kestrel" in [each["text"] for each in document["memories"]]
    assert {identity["id"] for identity in document["identities"]} == {"alice"}
    assert "heron" not in json.dumps(document["messages"])
    prompt = json.dumps([answer["prompt"] for answer in document["answers"]])
    assert "bobs cave word is adit" in prompt, "the prompt of an answer to alice, in a room that she may read"

    await harness.move("alice", "cave", joined=False)
    document = await exported(harness, "alice", **DM)
    assert "adit" not in json.dumps(document)
    assert "cave" not in [room["name"] for room in document["rooms"]]
    assert [(a["text"], a["prompt"]) for a in document["answers"] if a["prompt"] is None] == [(None, None)]
    assert "alices cave word is shaft" in json.dumps(document["messages"]), "her own words stay hers"


async def test_the_schema_in_the_docs_is_the_one_that_exports_have() -> None:
    assert json.loads(SCHEMA.read_text()) == Export.model_json_schema()


async def test_an_export_of_many_pages_has_every_message_once_and_in_order(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_data, "OWN_DATA_PAGE", 2)
    said = [f'number {n} says "messages": []' for n in range(7)]
    for text in said:
        await harness.say("alice", text, **ROOM)
        await harness.say("bob", "not alices", **ROOM)
    document = await exported(harness, "alice", **DM)
    assert [message["text"] for message in document["messages"]] == said
    assert [message["text"] for message in (await exported(harness, "carol", **DM))["messages"]] == []


async def test_privacy_counts_by_place_and_says_who_reads(harness: AppHarness) -> None:
    await small_world(harness)
    report = (await harness.command("alice", "/nexus privacy", **ROOM)).text
    assert "  #general: 1 landmark, 1 message. Readers: everyone in the room." in report
    assert "  the private room #cave: 1 answer, 2 messages. Readers: its members." in report
    assert "Readers: you, in your DMs with @nexus." in report
    assert "  your profile: 1 fact. Readers: everyone, wherever you take part or are mentioned" in report
    await harness.move("alice", "cave", joined=False)
    report = (await harness.command("alice", "/nexus privacy", **ROOM)).text
    assert "cave" not in report
    assert "a private room that you are not in" in report


async def test_privacy_names_who_was_answered_only_where_the_person_may_read(harness: AppHarness) -> None:
    await small_world(harness)

    async def report() -> str:
        return (await harness.command("alice", "/nexus privacy", **DM)).text

    before = await report()
    await harness.ask("bob", "@nexus what is alices cave word?", **CAVE)
    assert "#cave: bob (1 answer, last on 2026-05-04)" in await report()
    await harness.move("alice", "cave", joined=False)
    left = await report()
    assert "bob" not in left
    await harness.ask("bob", "@nexus what is alices cave word, again?", **CAVE)
    await harness.ask("bob", "what is alices word?", **DM)
    assert await report() == left, "what is asked where she may not read changes nothing"
    assert "nobody else was answered" in before


NOBODY = "In the rooms that you may read, nobody else was answered from it."


async def test_privacy_does_not_name_who_was_answered_from_what_others_own(harness: AppHarness) -> None:
    await harness.say("carol", "carols word is heron", **ROOM)
    await harness.command("carol", "/nexus remember carols note is kestrel", **ROOM)
    await harness.command("carol", "/nexus fact set diet vegan", **ROOM)
    await harness.command("carol", "/nexus landmark add we ship on Fridays", **ROOM)
    composed = await harness.compose("bob", "@nexus carols note, word, diet?", **ROOM)
    used = {section.name: section.text for section in composed.prompt.sections if section.sources}
    assert used.keys() >= {"FACTS", "LANDMARKS", "WORKING"}, "the answer draws on all of it"
    assert "carols note is kestrel" in used["RECALL"]
    await harness.ask("bob", "@nexus carols note, word, diet?", **ROOM)
    assert "#general: bob (1 answer" in (await harness.command("carol", "/nexus privacy", **ROOM)).text
    assert NOBODY in (await harness.command("alice", "/nexus privacy", **ROOM)).text


async def test_privacy_does_not_ask_the_database_who_was_answered_where_the_person_may_not_read(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await small_world(harness)
    await harness.ask("bob", "@nexus what is alices cave word?", **CAVE)
    await harness.move("alice", "cave", joined=False)
    monkeypatch.setattr(own_data, "may_enter_room", lambda **_: True)  # the check after it
    assert NOBODY in (await harness.command("alice", "/nexus privacy", **DM)).text


async def test_what_was_asked_in_a_rooms_private_time_is_not_told_after_its_opening(harness: AppHarness) -> None:
    await small_world(harness)
    await harness.ask("bob", "@nexus what is alices cave word?", **CAVE)
    assert "#cave: bob" in (await harness.command("alice", "/nexus privacy", **DM)).text
    (answer,) = await answers_in_rooms(harness)
    assert None not in (answer["text"], answer["prompt"])
    await harness.say("bob", "we are open now", **CAVE, private=False)
    assert NOBODY in (await harness.command("alice", "/nexus privacy", **DM)).text
    (answer,) = await answers_in_rooms(harness)
    assert (answer["text"], answer["prompt"]) == (None, None)


async def answers_in_rooms(harness: AppHarness) -> list[dict[str, Any]]:
    """The answers to alice's questions in rooms, as she exports them."""
    answers = (await exported(harness, "alice", **DM))["answers"]
    return [answer for answer in answers if answer["namespace"].startswith("room:")]


@pytest.mark.parametrize("place", [ROOM, DM])
async def test_nothing_that_others_do_where_the_person_may_not_read_changes_an_answer(
    harness: AppHarness, place: dict[str, Any]
) -> None:
    await small_world(harness)
    await harness.move("alice", "cave", joined=False)
    await harness.say("alice", "good morning", **place)

    async def everything() -> list[str]:
        answers = [await harness.command("alice", f"/nexus {name}", **place) for name in ("privacy", "share")]
        document = await exported(harness, "alice", **place)
        del document["made_at"]
        return [*(answer.text for answer in answers), json.dumps(document)]

    before = await everything()
    await harness.say("bob", "alices cave word is known to bob", **CAVE)
    await harness.ask("bob", "@nexus what are alices words?", **CAVE)
    await harness.ask("bob", "what is alices word?", **DM)
    await harness.ask("bob", "what is alices word?", session="s1")
    await harness.command("bob", "/nexus remember alice likes herons", **DM)
    await harness.command("bob", "/nexus project create apollo", **CAVE)
    await harness.command("bob", "/nexus project assign apollo --yes", **CAVE)
    await harness.ask("mallory", "@nexus what is alices word?", room="attic", private=True)
    assert await everything() == before


async def test_an_export_is_recorded_without_content(harness: AppHarness) -> None:
    await small_world(harness)
    document = await exported(harness, "alice", **DM)
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        (row,) = await tx.audit.find(act="exported", limit=10)
    assert [str(user) for user in row.users] == [account["id"] for account in document["accounts"]]
    assert row.details["messages"] == len(document["messages"])


def test_a_private_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "exports" / "mine.json"
    write_private(path, "{}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(BadInput, match="exists already"):
        write_private(path, "[]")
    assert path.read_text() == "{}"

"""Entries: stored exactly as sent, appended by tools, edited by the person whose they are."""

import asyncio
import json
import uuid
from datetime import timedelta
from typing import Any

import pytest

from bot.console import schedule
from composer.entries import entries, listing
from composer.entries.entries import WriteResult
from composer.errors import BadInput, Conflict, NotFound, Refused
from composer.memory import review
from composer.model import Trust
from composer.text.terms import terms
from composer.visibility import Grants, readable_entries
from jobs.work import TRASH_DAYS
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import AppHarness

KEY = "AKIA" + "Z7Q2" * 4


async def recalled(hub: Hub, user: str, words: str) -> str:
    return (await hub.harness.command(user, f"/nexus recall {words}", dm="nexus")).text


async def test_content_is_stored_exactly_and_recalled_cleaned_and_masked(hub: Hub) -> None:
    sent = f"  The vault\u200b key is {KEY}\r\nand zqorchid \n"
    written = await hub.write("alice", sent, title=" Vault\u202e ", tags=["ops ", "ops", "b"], metadata={"n": [1.5]})
    entry = await hub.get("alice", written.entry.id)
    assert entry.content == sent
    assert entry.values.text == "Vault\nThe vault key is [masked: AWS key]\nand zqorchid"
    assert (entry.title, entry.values.tags, dict(entry.values.metadata)) == ("Vault", ("ops", "b"), {"n": [1.5]})
    assert (entry.origin, entry.version, entry.trust) == ("api", 1, Trust.MEMBER)
    assert "[masked: AWS key]" in await recalled(hub, "alice", "zqorchid")
    assert KEY not in await recalled(hub, "alice", "zqorchid")


async def test_a_title_is_the_first_line_if_none_is_sent(hub: Hub) -> None:
    written = await hub.write("alice", "\nDeploy on Fridays\nnot on Mondays")
    assert (await hub.get("alice", written.entry.id)).title == "Deploy on Fridays"


async def test_the_same_writer_replaces_with_a_key_and_merges_metadata(hub: Hub) -> None:
    await hub.write("alice", "tabs zqold", "claude", key="style", metadata={"a": 1, "b": 1}, tags=["x"])
    written = await hub.write("alice", "spaces zqnew", "claude", key="style", metadata={"b": 2})
    assert (written.created, written.entry.version) == (False, 2)
    (entry,) = await hub.find("alice")
    assert (entry.title, dict(entry.values.metadata), entry.values.tags) == ("spaces zqnew", {"a": 1, "b": 2}, ())
    assert "zqnew" in await recalled(hub, "alice", "zqnew")
    assert "zqold" not in await recalled(hub, "alice", "zqold")


async def test_tools_and_their_person_do_not_overwrite_each_other(hub: Hub) -> None:
    for vendor in ("claude", "cursor", None):
        await hub.write("alice", f"by {vendor}", vendor, key="style")
    await hub.write("bob", "by bob", key="style")
    assert await hub.titles("alice") == ["by None", "by cursor", "by claude"]
    assert await hub.titles("bob") == ["by bob"]


async def test_a_tool_does_not_replace_what_it_may_not_read_any_more(hub: Hub) -> None:
    first = await hub.write("alice", "mine now", "claude", key="style", metadata={"secret": 1})
    await hub.change("alice", first.entry.id, vendors=["cursor"])
    async with hub.request("alice", "claude") as (tx, access):
        readable, now = readable_entries(access), hub.harness.clock.now()
        assert await tx.entries.find_by_key(readable, access.users, "claude", "style", now) is None
    second = await hub.write("alice", "again", "claude", key="style")
    assert second.created
    assert dict(second.entry.values.metadata) == {}
    assert (await hub.get("alice", first.entry.id)).content == "mine now"


async def test_a_tool_never_widens_who_reads_and_may_not_leave_itself_out(hub: Hub) -> None:
    first = await hub.write("alice", "v1", "claude", key="style")
    await hub.change("alice", first.entry.id, vendors=["claude", "zed"])
    await hub.write("alice", "v2", "claude", key="style")
    assert (await hub.get("alice", first.entry.id)).vendors == ("claude", "zed")
    await hub.write("alice", "v3", "claude", key="style", vendors=["claude", "cursor"])
    assert (await hub.get("alice", first.entry.id)).vendors == ("claude",)
    with pytest.raises(BadInput, match="leaves out claude itself"):
        await hub.write("alice", "v4", "claude", vendors=["cursor"])


async def test_twenty_writes_with_one_key_at_once_make_one_entry(hub: Hub) -> None:
    await hub.user("alice")
    await asyncio.gather(*(hub.write("alice", f"n{n}", "claude", key="k") for n in range(20)))
    (entry,) = await hub.find("alice")
    assert entry.version == 20


@pytest.mark.parametrize(
    ("draft", "sentence"),
    [
        ({"content": ""}, "content is empty"),
        ({"content": "\u200b \n"}, "content is empty"),
        ({"content": "é" * 50_001}, "100,002 bytes; the limit is 100,000"),
        ({"content": "a\x00b"}, "cannot be stored"),
        ({"content": "a\ud800b"}, "cannot be stored"),
        ({"title": "x" * 201}, "title has 201 characters"),
        ({"kind": "message"}, "kind of an entry is one of"),
        ({"key": ""}, "key is a text of 1 to 200"),
        ({"key": "k" * 201}, "key is a text of 1 to 200"),
        ({"tags": ["a"] * 33}, "at most 32 tags"),
        ({"tags": ["x" * 65]}, "tag is a text of 1 to 64"),
        ({"tags": ["\u200b"]}, "tag is a text of 1 to 64"),
        ({"metadata": {"a": {"b": {"c": {"d": {"e": {}}}}}}}, "5 levels"),
        ({"metadata": {"a": "x" * 10_000}}, "more than 10,000 bytes"),
        ({"metadata": {"a": "\x00"}}, "cannot be stored"),
        ({"metadata": {"a": "\ud800"}}, "cannot be stored"),
        ({"metadata": {"a": float("nan")}}, "object of JSON"),
        ({"vendors": []}, "allowed_vendors is"),
        ({"vendors": ["a b"]}, "name of a tool"),
        ({"vendors": ["extracted"]}, "name of a tool"),
        ({"session": ""}, "session is a text"),
    ],
)
async def test_what_an_entry_may_not_be_is_refused_with_a_sentence(
    hub: Hub, draft: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        await hub.write("alice", **{"content": "x", **draft})
    assert await hub.titles("alice") == []


async def test_what_is_expired_is_refused_and_what_expires_is_gone_then(hub: Hub) -> None:
    now = hub.harness.clock.now()
    with pytest.raises(BadInput, match="time that is over"):
        await hub.write("alice", "zqshort", expires_at=now - timedelta(days=1))
    written = await hub.write("alice", "zqshort", expires_at=now + timedelta(hours=1))
    assert "zqshort" in await recalled(hub, "alice", "zqshort")
    hub.harness.clock.tick(3_600)
    assert "zqshort" not in await recalled(hub, "alice", "zqshort")
    assert await hub.titles("alice") == []
    with pytest.raises(NotFound):
        await hub.get("alice", written.entry.id, "claude")
    assert (await hub.get("alice", written.entry.id)).content == "zqshort", "she may forget it, or revive it"


async def test_a_long_entry_is_found_by_words_anywhere_in_it(hub: Hub) -> None:
    words = [f"word{n}x" for n in range(2_000)]
    await hub.write("alice", " ".join([*words[:1_000], "zqmiddle", *words[1_000:], "zqend"]))
    for word in ("zqmiddle", "zqend"):
        found = await recalled(hub, "alice", word)
        assert word in found
        assert len(found) < 4_000
        prompt = await hub.harness.compose("alice", f"what of {word}?", dm="nexus")
        recall = next(s for s in prompt.prompt.sections if s.name == "RECALL")
        assert word in recall.text


async def test_a_person_changes_their_entry_with_its_version(hub: Hub) -> None:
    id = (await hub.write("alice", "zqbefore", "claude", tags=["a"])).entry.id
    changed = await hub.change("alice", id, 1, content="zqafter", title="T", tags=["b"], kind="decision")
    assert (changed.version, changed.title, changed.values.tags, changed.values.kind) == (2, "T", ("b",), "decision")
    assert changed.updated_at is not None
    with pytest.raises(Conflict):
        await hub.change("alice", id, 1, content="zqother")
    assert (await hub.change("alice", id, 2, content="zqafter")).version == 2
    assert "zqafter" in await recalled(hub, "alice", "zqafter")
    assert "zqbefore" not in await recalled(hub, "alice", "zqbefore")
    await hub.change("alice", id, content="zqafter and zqmore")
    async with hub.request("alice") as (tx, _):
        raw: Any = tx.recall._sql
        found = await raw._connection.fetch("SELECT term FROM recall_terms WHERE item_id = $1", id)
    assert set(terms("zqafter and zqmore")) == {row["term"] for row in found}, "it has lost no word, and has a new one"


async def test_nobody_else_changes_an_entry_and_a_tool_changes_none(hub: Hub) -> None:
    id = (await hub.write("alice", "mine", "claude")).entry.id
    with pytest.raises(NotFound):
        await hub.trash("bob", id)
    async with hub.request("alice", "claude") as (tx, access):
        with pytest.raises(Refused, match="A tool adds entries"):
            await entries.trash(tx, access, id, hub.harness.clock.now())
    with pytest.raises(NotFound):
        await hub.trash("alice", uuid.uuid4())


async def test_the_trash_is_out_of_recall_restorable_and_erased_after_thirty_days(hub: Hub) -> None:
    id = (await hub.write("alice", "zqtrash here")).entry.id
    await hub.trash("alice", id)
    assert "zqtrash" not in await recalled(hub, "alice", "zqtrash")
    assert await hub.titles("alice") == []
    assert await hub.titles("alice", trashed=True) == ["zqtrash here"]
    assert await hub.titles("bob", trashed=True) == []
    with pytest.raises(Refused):
        await hub.titles("alice", "claude", trashed=True)
    with pytest.raises(NotFound):
        await hub.get("alice", id, "claude")
    await hub.restore("alice", id)
    assert "zqtrash" in await recalled(hub, "alice", "zqtrash")
    await hub.trash("alice", id)
    hub.harness.clock.tick(TRASH_DAYS * 86_400 - 3_600)
    await schedule.run(hub.harness.app, "trash", hub.harness.clock.now())
    assert await hub.titles("alice", trashed=True) == ["zqtrash here"]
    hub.harness.clock.tick(7_200)
    await schedule.run(hub.harness.app, "trash", hub.harness.clock.now())
    assert await hub.titles("alice", trashed=True) == []


async def test_what_was_trashed_is_not_restored_over_a_newer_one_of_its_key(hub: Hub) -> None:
    id = (await hub.write("alice", "old", key="k")).entry.id
    await hub.trash("alice", id)
    assert (await hub.write("alice", "new", key="k")).created
    with pytest.raises(Conflict):
        await hub.restore("alice", id)


async def test_what_a_tool_writes_for_its_person_alone_waits_for_nobody(hub: Hub) -> None:
    hub.quarantined = {Trust.TOOL, Trust.GUEST}
    assert not (await hub.write("alice", "zqmine", "claude")).pending
    assert await hub.titles("alice") == ["zqmine"]


async def test_what_a_tool_writes_for_a_project_waits_where_the_settings_say_so(hub: Hub) -> None:
    hub.quarantined = {Trust.TOOL}
    await hub.harness.command("alice", "/nexus project create apollo", dm="nexus")
    await hub.harness.command("alice", "/nexus project assign apollo", dm="nexus")
    async with hub.request("alice") as (_, access):
        (project,) = (each.id for each in access.projects)

    async def write(content: str, **values: Any) -> WriteResult:
        grants = OF_TOOL | {Grants.WRITE_PROJECTS}
        return await hub.write("alice", content, "claude", project=project, grants=grants, key="k", **values)

    assert (await write("zqwaits", tags=["t"], metadata={"a": 1})).pending
    assert await hub.titles("alice") == []
    assert "zqwaits" not in await recalled(hub, "alice", "zqwaits")
    shown = (await hub.harness.command("alice", "/nexus memory pending", dm="nexus")).text
    assert "alice (app claude) (tool), memory: zqwaits key: k tags: t metadata: {" in shown
    await write("zqnewer", metadata={"b": 2})
    shown = (await hub.harness.command("alice", "/nexus memory pending", dm="nexus")).text
    assert "zqnewer" in shown
    assert "zqwaits" not in shown
    await hub.harness.command("alice", f"/nexus memory approve {shown.split()[0]}", dm="nexus")
    (entry,) = await hub.find("alice")
    assert (entry.title, entry.origin, entry.values.key) == ("zqnewer", "claude", "k")
    assert dict(entry.values.metadata) == {"b": 2}
    assert "zqnewer" in await recalled(hub, "alice", "zqnewer")
    await write("zqthird", metadata={"c": 3})
    assert await hub.titles("alice") == ["zqnewer"]
    shown = (await hub.harness.command("alice", "/nexus memory pending", dm="nexus")).text
    await hub.harness.command("alice", f"/nexus memory approve {shown.split()[0]}", dm="nexus")
    (entry,) = await hub.find("alice")
    assert (entry.title, dict(entry.values.metadata), entry.version) == ("zqthird", {"b": 2, "c": 3}, 2)
    await write("zqfourth", metadata={"d": ["x" * 200, "zqhidden"]})  # which a tool is shown
    shown = (await hub.harness.command("alice", "/nexus memory pending", dm="nexus")).text
    asked = await hub.harness.command("alice", f"/nexus memory approve {shown.split()[0]}", dm="nexus")
    assert "zqhidden" not in shown
    assert "zqhidden" in asked.text
    assert [entry.title for entry in await hub.find("alice")] == ["zqthird"]


async def test_a_key_without_the_permission_writes_nothing(hub: Hub) -> None:
    with pytest.raises(Refused, match="entries:write"):
        await hub.write("alice", "x", "claude", grants=OF_TOOL - {Grants.WRITE_ENTRIES})
    with pytest.raises(NotFound):
        await hub.write("alice", "x", "claude", project=uuid.uuid4())


async def test_nothing_is_stored_by_a_tool_of_somebody_who_opted_out(hub: Hub) -> None:
    await hub.harness.command("alice", "/nexus opt-out", dm="nexus")
    with pytest.raises(Refused, match="opted out"):
        await hub.write("alice", "x", "claude")
    assert (await hub.write("alice", "I do this myself")).created


async def test_a_person_sees_what_waits_and_takes_it_back_and_no_tool_does(hub: Hub) -> None:
    hub.quarantined = {Trust.TOOL}
    await hub.user("bob")
    await hub.harness.command("alice", "/nexus project create apollo", dm="nexus")
    await hub.harness.command("alice", "/nexus project member add apollo bob write", dm="nexus")
    await hub.harness.command("bob", "/nexus project accept apollo", dm="nexus")
    async with hub.harness.app.database.transaction(hub.harness.workspace().tenant_id) as tx:
        (apollo,) = await tx.projects.named("apollo")
    writing = OF_TOOL | {Grants.WRITE_PROJECTS}
    for n in range(2):
        assert (await hub.write("bob", f"waits {n}", "claude", title=f"W{n}", project=apollo, grants=writing)).pending
    async with hub.request("alice") as (tx, access):
        assert await listing.pending(tx, access) == []
    async with hub.request("bob", "claude") as (tx, access):
        with pytest.raises(Refused):
            await listing.pending(tx, access)
    async with hub.request("bob") as (tx, access):
        first, second = await listing.pending(tx, access)
        assert first.text == "W0\nwaits 0"
        now = hub.harness.clock.now()
        with pytest.raises(Refused, match="one of its admins"):
            await listing.decide(tx, access, first.id, now, approved=True)
        await listing.decide(tx, access, second.id, now, approved=False)
        with pytest.raises(NotFound):
            await listing.decide(tx, access, second.id, now, approved=False)
        assert await listing.pending(tx, access) == [first]
    assert await hub.titles("bob") == []


async def test_who_may_only_read_a_project_by_now_changes_nothing_in_it(hub: Hub) -> None:
    await hub.user("bob")
    await hub.harness.command("alice", "/nexus project create apollo", dm="nexus")
    await hub.harness.command("alice", "/nexus project member add apollo bob write", dm="nexus")
    await hub.harness.command("bob", "/nexus project accept apollo", dm="nexus")
    async with hub.harness.app.database.transaction(hub.harness.workspace().tenant_id) as tx:
        (apollo,) = await tx.projects.named("apollo")
    id = (await hub.write("bob", "for apollo", project=apollo)).entry.id
    assert (await hub.change("bob", id, content="for apollo, better")).version == 2
    await hub.harness.command("alice", "/nexus project member add apollo bob read", dm="nexus")
    for act in (hub.change("bob", id, content="worse"), hub.trash("bob", id)):
        with pytest.raises(Refused, match="You may read the project apollo"):
            await act
    assert await hub.titles("alice") == ["for apollo, better"]


async def test_metadata_comes_back_as_it_was_sent(hub: Hub) -> None:
    sent: dict[str, Any] = {
        "z": [1e308, 1e16, -0.0, 5e-324, 1.0, 10**30, 0.1],
        "a": {"true": True, "one": 1, "text": 'é"\n\\', "none": None},
    }
    text = json.dumps(sent)
    written = await hub.write("alice", "zqvault", metadata=sent, key="k")
    assert json.dumps(written.entry.values.metadata) == text
    assert json.dumps((await hub.get("alice", written.entry.id)).values.metadata) == text
    await hub.write("alice", "zqagain", metadata={"b": 1}, key="k")
    merged = (await hub.get("alice", written.entry.id)).values.metadata
    assert json.dumps(merged) == json.dumps({**sent, "b": 1})
    for value in (True, 1, 1.0, [-0.0], [0.0]):
        await hub.change("alice", written.entry.id, metadata={"b": value})
        assert json.dumps((await hub.get("alice", written.entry.id)).values.metadata) == json.dumps({"b": value})


async def test_metadata_that_waits_comes_back_as_it_was_sent(harness: AppHarness) -> None:
    hub = Hub(harness, quarantined={Trust.TOOL})
    await harness.command("alice", "/nexus project create apollo", room="general")
    async with hub.request("alice") as (_, access):
        (project,) = access.projects
    grants = OF_TOOL | {Grants.WRITE_PROJECTS}
    await hub.write("alice", "zqwaits", "claude", project=project.id, grants=grants, metadata={"n": 1e308, "a": -0.0})
    async with hub.request("alice") as (tx, access):
        (item,) = await listing.pending(tx, access)
        await review.approve(tx, item, harness.clock.now())
    (entry,) = await hub.find("alice")
    assert json.dumps(entry.values.metadata) == '{"n": 1e+308, "a": -0.0}'

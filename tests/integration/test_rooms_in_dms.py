"""`/nexus rooms on`: a person's DMs recall the rooms that they are in now. It shows nothing to anybody else, and
nothing that the person could not read in the room itself."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from composer.errors import BadInput
from composer.ingest.rooms import set_room_members, set_room_private, set_room_shared
from composer.model import Trust, user_id
from composer.prompt.sections import PROJECT_ROOMS_CLOSED, ROOMS_CLOSED
from composer.repositories.audit import AuditAct, AuditEvent
from composer.settings import AgentSettings, Settings, TenantSettings
from tests.support.harness import AppHarness, open_harness

QUESTION: Final = "what is the code of the harbour?"
DM: Final[dict[str, Any]] = {"dm": "nexus"}
VAULT: Final[dict[str, Any]] = {"room": "vault"}
GENERAL: Final[dict[str, Any]] = {"room": "general"}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """A tenant of two workspaces. In home, alice is in general and in the private vault; ops is of others."""
    tenants = {"acme": TenantSettings(workspaces=("home", "annex"))}
    agents = (AgentSettings(), AgentSettings(slug="sage", name="Sage"))
    async with open_harness(settings.model_copy(update={"tenants": tenants, "agents": agents})) as harness:
        object.__setattr__(harness, "name", "home")
        for user in ("bob", "alice"):
            await harness.say(user, "hello", **GENERAL)
            await harness.say(user, "hello", **VAULT, private=True)
        await tell(harness, "zqgeneral", **GENERAL)
        await tell(harness, "zqvault", **VAULT)
        await tell(harness, "zqops", room="ops")
        await tell(harness, "zqbobsdm", **DM)
        for agent in ("nexus", "sage"):
            await harness.say("alice", "hello", dm=agent)
        yield harness


async def tell(harness: AppHarness, code: str, user: str = "bob", **place: Any) -> None:
    await harness.say(user, f"The code of the harbour is {code}.", id=code, **place)


async def open_rooms(harness: AppHarness, user: str = "alice", **place: Any) -> str:
    return (await harness.command(user, "/nexus rooms on", **(place or DM))).text


async def codes(harness: AppHarness, user: str = "alice", **place: Any) -> set[str]:
    """The codes in the prompt that answers the question."""
    composed = await harness.compose(user, QUESTION, **(place or DM))
    return found_in(composed.prompt.as_text())


def found_in(text: str) -> set[str]:
    return set(re.findall(r"zq[a-z]+", text))


async def test_a_dm_reads_the_rooms_that_its_person_is_in_once_they_say_so(harness: AppHarness) -> None:
    assert await codes(harness) == set()
    text = await open_rooms(harness)
    assert '"#general", the private room "#vault"' in text
    assert "ops" not in text
    assert await codes(harness) == {"zqgeneral", "zqvault"}
    assert await codes(harness, dm="sage") == {"zqgeneral", "zqvault"}  # the DMs of this account, with every agent
    composed = await harness.compose("alice", QUESTION, **DM)
    recall = next(section for section in composed.prompt.sections if section.name == "RECALL")
    assert 'bob (from the room "#vault"): The code of the harbour is zqvault' in recall.text
    assert {item.came_from for item in recall.sources} == {'from the room "#general"', 'from the room "#vault"'}
    text = (await harness.command("alice", "/nexus rooms off", **DM)).text
    assert text.startswith("Rooms are from now on not read")
    assert await codes(harness) == set()


async def test_it_opens_nothing_to_anybody_else_and_nothing_elsewhere(harness: AppHarness) -> None:
    await harness.say("alice", "hello", session="s1")
    await harness.say("carol", "hello", **DM)
    await open_rooms(harness)
    assert await codes(harness, session="s1") == set()
    assert await codes(harness, **GENERAL) == {"zqgeneral"}
    assert await codes(harness, **VAULT) == {"zqvault"}
    assert await codes(harness, "carol", **DM) == set()
    assert await codes(harness, "bob", **DM) == {"zqbobsdm"}
    for place in (GENERAL, VAULT, {"session": "s1"}):
        with pytest.raises(BadInput, match="works only in a DM"):
            await open_rooms(harness, **place)


async def test_only_what_is_recalled_is_read(harness: AppHarness) -> None:
    await harness.command("bob", '/nexus fact set harbour "zqfact"', **GENERAL)
    await harness.command("bob", "/nexus landmark add the code of the harbour is zqlandmark", **GENERAL)
    await harness.command("bob", "/nexus remember the code of the harbour was zqmemory", **GENERAL)
    await harness.command("bob", "/nexus remember the code of the harbour is zqprofile --everywhere --yes", **GENERAL)
    await open_rooms(harness)
    assert await codes(harness) == {"zqgeneral", "zqvault", "zqmemory"}
    for line in ("fact list", "fact get harbour", "fact history harbour", "landmark list", "history harbour"):
        assert found_in((await harness.command("alice", f"/nexus {line}", **DM)).text) == set(), line
    recalled = (await harness.command("alice", f"/nexus recall {QUESTION}", **DM)).text
    assert found_in(recalled) == {"zqgeneral", "zqvault", "zqmemory"}


async def test_who_leaves_or_is_removed_reads_the_room_no_more(harness: AppHarness) -> None:
    await open_rooms(harness)
    await harness.move("alice", "vault", joined=False)
    assert await codes(harness) == {"zqgeneral"}
    members, at = {"general": {"alice": False}}, harness.clock.tick()
    await set_room_members(harness.app.database, harness.workspace(), members, at)
    assert await codes(harness) == set()
    assert "I know of none now" in (await harness.command("alice", "/nexus rooms", **DM)).text
    await harness.move("alice", "vault", joined=True)
    assert await codes(harness) == {"zqvault"}


async def test_who_left_a_public_room_is_no_member_again_by_what_was_told_before(harness: AppHarness) -> None:
    await open_rooms(harness)
    database, here = harness.app.database, harness.workspace()
    early, left, late = (harness.clock.tick() for _ in range(3))
    for joined, at, expected in ((False, left, False), (True, early, False), (True, late, True)):
        await set_room_members(database, here, {"general": {"alice": joined}}, at)
        assert ("zqgeneral" in await codes(harness)) is expected


async def test_a_public_room_counts_only_for_its_recorded_members(harness: AppHarness) -> None:
    await open_rooms(harness)
    assert await codes(harness, room="ops") == {"zqops"}  # anyone may ask there
    assert "zqops" not in await codes(harness)
    await harness.move("alice", "ops", joined=True)
    assert "zqops" in await codes(harness)


async def test_of_a_room_its_present_generation_is_read_as_in_the_room(harness: AppHarness) -> None:
    await open_rooms(harness)
    database, here, agents = harness.app.database, harness.workspace(), harness.app.directory.agents
    for private, code in ((False, "zqopened"), (True, "zqclosed"), (False, "zqagain")):
        await set_room_private(
            database,
            here,
            agents(here.tenant_id),
            "vault",
            private,
            harness.clock.tick(),
            stated_at=harness.clock.now(),
        )
        await tell(harness, code, **VAULT)
        assert await codes(harness) - {"zqgeneral"} == await codes(harness, **VAULT)
    assert await codes(harness) == {"zqgeneral", "zqagain"}


async def test_a_private_thread_is_read_by_those_who_are_in_it(harness: AppHarness) -> None:
    thread = {**GENERAL, "thread": "t1", "private": True}
    await tell(harness, "zqthread", **thread)
    await tell(harness, "zqpublicthread", **GENERAL, thread="t2")
    await open_rooms(harness)
    assert await codes(harness) == {"zqgeneral", "zqvault", "zqpublicthread"}
    await harness.say("alice", "hello", **thread)
    assert await codes(harness) == {"zqgeneral", "zqvault", "zqpublicthread", "zqthread"}
    await harness.move("alice", "general/t1", joined=False)
    assert "zqthread" not in await codes(harness)


async def test_a_guest_reads_the_rooms_that_they_are_in_and_rooms_with_outsiders_likewise(harness: AppHarness) -> None:
    await set_room_shared(harness.app.database, harness.workspace(), "vault", harness.clock.tick())
    await tell(harness, "zqshared", **VAULT)
    await open_rooms(harness)
    assert await codes(harness) == {"zqgeneral", "zqvault", "zqshared"}
    here, place = harness.workspace(), place_of("vault", None, None, None, True)
    guest = incoming(here, place, "gina", "hello", harness.clock.tick(), id="g1", trust=Trust.GUEST)
    await harness.app.receive(here, [guest])
    await open_rooms(harness, "gina")
    assert await codes(harness, "gina") == {"zqvault", "zqshared"}


async def test_an_isolated_project_lets_nothing_out_and_nothing_in(harness: AppHarness) -> None:
    await harness.say("alice", "hello", room="camp")
    await harness.say("alice", "hello", room="tent", private=True)
    await harness.command("alice", "/nexus project create ares --isolated", room="camp")
    for room in ("camp", "tent"):
        await tell(harness, f"zq{room}", "alice", room=room)
        await harness.command("alice", "/nexus project assign ares --yes", room=room)
    await open_rooms(harness)
    assert await codes(harness) == {"zqgeneral", "zqvault"}
    assert "camp" not in (await harness.command("alice", "/nexus rooms", **DM)).text
    await harness.command("alice", "/nexus project assign ares --yes", dm="sage")
    assert await codes(harness, dm="sage") == {"zqcamp", "zqtent"}
    assert await codes(harness) == {"zqgeneral", "zqvault"}
    listed = (await harness.command("alice", "/nexus rooms", dm="sage")).text
    assert "tent" in listed
    assert "vault" not in listed
    await harness.command("alice", "/nexus rooms off", dm="sage")
    assert await codes(harness, dm="sage") == {"zqcamp"}  # the project's pool
    # A room that enters the project is read in no DM outside it from then on.
    await open_rooms(harness)
    await harness.command("bob", "/nexus project create moon --isolated", **VAULT)
    await harness.command("bob", "/nexus project assign moon --yes", **VAULT)
    assert await codes(harness) == {"zqgeneral"}


async def test_a_dm_in_a_project_does_not_say_that_no_room_is_read(harness: AppHarness) -> None:
    async def context(**place: Any) -> str:
        sections = (await harness.compose("alice", QUESTION, **place)).prompt.sections
        return next(section.text for section in sections if section.name == "CONTEXT")

    assert ROOMS_CLOSED in await context(dm="sage")
    nothing = "/nexus recall airspeed of a swallow"
    assert "I do not search rooms in this DM" in (await harness.command("alice", nothing, dm="sage")).text
    await tell(harness, "zqcamp", "alice", room="camp")
    await harness.command("alice", "/nexus project create ares", room="camp")
    await harness.command("alice", "/nexus project assign ares --yes", room="camp")
    await harness.command("alice", "/nexus project assign ares --yes", dm="sage")
    await tell(harness, "zqpooled", "alice", room="camp")
    assert "zqpooled" in await codes(harness, dm="sage")
    assert ROOMS_CLOSED not in await context(dm="sage")
    assert PROJECT_ROOMS_CLOSED in await context(dm="sage")
    nothing = "/nexus recall airspeed of a swallow"
    assert "I search only the rooms of its project" in (await harness.command("alice", nothing, dm="sage")).text
    await open_rooms(harness)
    assert PROJECT_ROOMS_CLOSED not in await context(dm="sage")


async def link(harness: AppHarness) -> None:
    found = re.search(r"link ([A-Z0-9]{8})", (await harness.command("alice", "/nexus link", **DM)).text)
    assert found is not None
    shown = await harness.command("alice2", f"/nexus link {found[1]}", workspace="annex", **DM)
    assert "with /nexus rooms on the rooms that you are in" in shown.text  # linking opens these too
    await harness.command("alice2", f"/nexus link {found[1]} --yes", workspace="annex", **DM)


async def test_the_rooms_of_linked_accounts_are_judged_one_by_one(harness: AppHarness) -> None:
    there = {**DM, "workspace": "annex"}
    await harness.say("alice2", "hello", room="lobby", workspace="annex")
    await tell(harness, "zqlobby", "carol2", room="lobby", workspace="annex")
    await tell(harness, "zqroof", "carol2", room="roof", workspace="annex")
    await link(harness)
    await open_rooms(harness)
    assert await codes(harness) == {"zqgeneral", "zqvault", "zqlobby"}
    assert await codes(harness, "alice2", **there) == set()  # the setting is that of one account
    await open_rooms(harness, "alice2", **there)
    await harness.move("alice", "vault", joined=False)
    await harness.move("alice2", "lobby", joined=False, workspace="annex")
    assert await codes(harness) == await codes(harness, "alice2", **there) == {"zqgeneral"}
    await harness.command("alice2", "/nexus unlink", **there)
    assert await codes(harness, "alice2", **there) == set()
    assert await codes(harness) == {"zqgeneral"}


async def test_an_answer_from_a_room_stays_in_the_dm(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", "hello", session="s1")
    await open_rooms(harness)
    reply = await harness.ask("alice", QUESTION, **DM)
    assert found_in(reply.text) == {"zqgeneral", "zqvault"}
    raw = await asyncpg.connect(settings.database_url)
    try:
        filed = await raw.fetch(
            "SELECT DISTINCT split_part(namespace, ':', 1) AS kind, visibility, user_id FROM ("
            " SELECT namespace, visibility, user_id, text FROM messages"
            " UNION ALL SELECT namespace, visibility, user_id, text FROM memories"
            " UNION ALL SELECT namespace, visibility, user_id, text FROM summaries) AS rows WHERE text LIKE '%zqvault%'"
        )
    finally:
        await raw.close()
    alice, bob = (user_id(harness.workspace(), user) for user in ("alice", "bob"))
    assert {tuple(row) for row in filed} == {("room", "public", bob), ("dm", "private", alice)}
    for place, expected in (
        (GENERAL, {"zqgeneral"}),
        ({"session": "s1"}, set()),
        ({"dm": "sage"}, {"zqgeneral", "zqvault"}),
    ):
        assert await codes(harness, **place) == expected
    assert await codes(harness, "bob", **DM) == {"zqbobsdm"}
    assert "read.across" not in {event.act for event in await events(harness)}


async def test_why_judges_rooms_as_they_are_now(harness: AppHarness) -> None:
    await open_rooms(harness)
    await harness.ask("alice", QUESTION, **DM)
    explained = (await harness.command("alice", "/nexus why --details", **DM)).text
    assert found_in(explained) == {"zqgeneral", "zqvault"}
    assert 'from the room "#vault"' in explained
    await harness.move("alice", "vault", joined=False)
    for line in ("why", "why --prompt"):
        answer = await harness.command("alice", f"/nexus {line}", **DM)
        shown = answer.text + ("" if answer.file is None else answer.file.text)
        assert found_in(shown) == {"zqgeneral"}
        assert "vault" not in shown
    await harness.command("alice", "/nexus rooms off", **DM)
    assert found_in((await harness.command("alice", "/nexus why --details", **DM)).text) == set()


async def test_forgetting_in_the_room_reaches_the_answers_in_dms(harness: AppHarness) -> None:
    await open_rooms(harness)
    reply = await harness.ask("alice", QUESTION, **DM)
    assert "zqvault" in reply.text
    await harness.command("bob", "/nexus forget message zqvault --yes", **VAULT)
    composed = await harness.compose("alice", "what did you say before?", **DM)
    assert "zqvault" not in composed.prompt.as_text()
    assert "zqvault" not in (await harness.command("alice", "/nexus why --details", **DM)).text


async def test_a_dm_says_that_rooms_can_be_read_there_until_they_are(harness: AppHarness) -> None:
    reply = await harness.ask("alice", QUESTION, **DM)
    assert "To search the rooms that you are in, give /nexus rooms on." in reply.text
    prompts = [(await harness.compose("alice", text, **DM)).prompt.sections[1].text for text in (QUESTION, "and now?")]
    assert prompts[0] == prompts[1]
    assert "/nexus rooms on" in prompts[0]
    assert "give /nexus rooms on" in (await harness.command("dora", "/nexus recall walrus", **DM)).text
    await open_rooms(harness)
    await open_rooms(harness, "dora")
    assert "/nexus rooms" not in (await harness.compose("alice", QUESTION, **DM)).prompt.sections[1].text
    assert "/nexus rooms" not in (await harness.command("dora", "/nexus recall walrus", **DM)).text
    for place in (GENERAL, {"session": "s1"}):
        await harness.say("alice", "hello", **place)
        assert "/nexus rooms" not in (await harness.compose("alice", QUESTION, **place)).prompt.as_text()


async def events(harness: AppHarness) -> list[AuditEvent]:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        return await tx.audit.find(limit=100)


async def test_the_change_is_recorded_and_looking_is_not(harness: AppHarness) -> None:
    before = len(await events(harness))
    await harness.command("alice", "/nexus rooms", **DM)
    assert len(await events(harness)) == before
    await open_rooms(harness)
    await harness.command("alice", "/nexus rooms off", **DM)
    found = (await events(harness))[: len(await events(harness)) - before]
    alice = user_id(harness.workspace(), "alice")
    assert [event.act for event in found] == [AuditAct.PERSON_ROOMS_OFF, AuditAct.PERSON_ROOMS_ON]
    assert {(event.actor, event.users) for event in found} == {(alice, (alice,))}


async def test_a_fact_that_moved_to_a_room_is_explained_there_and_not_in_the_dm(harness: AppHarness) -> None:
    """An answer in the DM used it while it was alice's own; now it is the room's, of which the DM reads no facts."""
    await open_rooms(harness)
    await harness.command("alice", '/nexus fact set harbour "zqfact"', **DM)
    await harness.ask("alice", QUESTION, **DM)
    assert "zqfact" in (await harness.command("alice", "/nexus why --details", **DM)).text
    listed = (await harness.command("alice", "/nexus share", **DM)).text
    id = next(line.split()[0] for line in listed.splitlines() if "zqfact" in line)
    await harness.command("alice", f"/nexus share {id} here --yes", **VAULT)
    assert "zqfact" not in (await harness.command("alice", "/nexus why --details", **DM)).text


async def test_the_export_says_whether_an_account_reads_rooms(harness: AppHarness) -> None:
    await open_rooms(harness)
    exported = await harness.command("alice", "/nexus export", **DM)
    assert exported.file is not None
    (account,) = json.loads(exported.file.text)["accounts"]
    assert account["reads_rooms"] is True


async def test_a_private_row_of_a_room_is_read_by_nobody_in_a_dm(harness: AppHarness, settings: Settings) -> None:
    """Not even by its owner, who may not read it in the room either."""
    await harness.command("alice", "/nexus remember the code of the harbour was zqkept", **VAULT)
    await open_rooms(harness)
    assert "zqkept" in await codes(harness)
    raw = await asyncpg.connect(settings.database_url)
    try:
        for table in ("memories", "recall_index", "recall_terms"):
            key = "item_id" if table == "recall_terms" else "id"
            await raw.execute(
                f"UPDATE {table} SET visibility = 'private' WHERE {key} ="
                " (SELECT id FROM memories WHERE text LIKE '%zqkept%')"
            )
    finally:
        await raw.close()
    assert "zqkept" not in await codes(harness)
    assert "zqvault" in await codes(harness)


async def test_on_a_chat_platform_private_rooms_are_left_out(harness: AppHarness) -> None:
    """Who left a private channel while Nexus was away is still recorded as a member."""
    await open_rooms(harness)
    assert await codes(harness) == {"zqgeneral", "zqvault"}
    raw = await asyncpg.connect(harness.app.settings.database_url)
    try:
        await raw.execute("UPDATE conversations SET platform = 'slack' WHERE kind = 'room'")
    finally:
        await raw.close()
    assert await codes(harness) == {"zqgeneral"}
    assert "vault" not in (await harness.command("alice", "/nexus rooms", **DM)).text

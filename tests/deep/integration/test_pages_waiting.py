"""The page of what waits: who decides about what, that it shows nothing to others, and what accepting and rejecting
do."""

import re
import uuid
from typing import Any, Final

import httpx2
import pytest

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.entries import listing
from composer.model import Trust
from composer.repositories.entries import EntryFilter
from composer.repositories.invites import INVITE_LIFETIME
from composer.visibility import Grants
from tests.support.api import bearer, cookie_of, key_of
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import AppHarness
from tests.support.pages import BITES, OWN, Person

BELOW: Final = "It suits all of us, also those who were not there."  # on a line of its own, which is not learnt
ROOM, DM = {"room": "general"}, {"dm": "nexus"}
WRITING = OF_TOOL | {Grants.WRITE_PROJECTS}


@pytest.fixture
async def hub(harness: AppHarness) -> Hub:
    return Hub(harness, quarantined={Trust.TOOL})


async def project(hub: Hub, name: str, *members: str, by: str = "alice", flags: str = "") -> uuid.UUID:
    """A project of `by`, with members who may write."""
    await hub.harness.command(by, f"/nexus project create {name} {flags}", **DM)
    for member in members:
        await hub.user(member)
        await hub.harness.command(by, f"/nexus project member add {name} {member} write", **DM)
        await hub.harness.command(member, f"/nexus project accept {name}", **DM)
    async with hub.harness.app.database.transaction(hub.harness.workspace().tenant_id) as tx:
        (found,) = await tx.projects.named(name)
    return found


async def proposed(hub: Hub, who: str, text: str, project: uuid.UUID) -> None:
    assert (await hub.write(who, text, "claude", project=project, grants=WRITING)).pending


def decisions(page: str) -> list[str]:
    """The address of each proposal."""
    return list(dict.fromkeys(re.findall(r'action="(/waiting/[0-9a-f-]{36})/accept"', page)))


async def test_an_empty_page_says_what_would_stand_here(alice: Person) -> None:
    shown = await alice.page("/waiting")
    assert "Nothing waits for you." in shown
    assert "stand here until you accept or reject them" in shown


async def test_an_admin_of_the_project_accepts_and_rejects(hub: Hub, alice: Person) -> None:
    apollo = await project(hub, "apollo", "bob")
    await proposed(hub, "bob", "zqpnpm is used", apollo)
    await proposed(hub, "bob", "zqyarn is used", apollo)
    shown = await alice.page("/waiting")
    assert "2 things wait for you." in shown
    assert "bob (app claude)" in shown
    assert "project apollo" in shown
    first, second = decisions(shown)
    assert await hub.titles("alice") == []
    accepted = (await alice.press(f"{first}/accept")).headers["location"]
    told = await alice.page(accepted)
    assert "Accepted: it is stored for apollo." in told
    assert "zqpnpm is used" in await alice.page(f"/projects/{apollo}?view=entries")
    assert f'href="/projects/{apollo}?view=entries"' in told
    rejected = (await alice.press(f"{second}/reject")).headers["location"]
    assert "Rejected: it is erased." in await alice.page(rejected)
    for forged in (f"?done=store&project={uuid.uuid4()}", "?done=frobnicate", f"?done=accept&room={uuid.uuid4()}"):
        assert 'class="settled"' not in await alice.page(f"/waiting{forged}")
    assert await hub.titles("alice") == ["zqpnpm is used"]
    assert "Nothing waits for you." in await alice.page("/waiting")
    for act in ("accept", "reject"):
        assert (await alice.press(f"{first}/{act}")).status_code == 404


async def test_every_page_says_how_much_waits(hub: Hub, client: httpx2.AsyncClient, alice: Person) -> None:
    apollo = await project(hub, "apollo", "bob")
    assert 'class="count"' not in await alice.page("/memory")
    for number in range(2):
        await proposed(hub, "bob", f"zqpnpm {number}", apollo)
    bob = Person(client, await cookie_of(hub.harness, "bob"))
    for path in ("/ask", "/memory", "/waiting", "/tools", "/privacy"):
        assert '<b class="count">2</b>' in await alice.page(path)
        assert 'class="count"' not in await bob.page(path), "bob decides about nothing"
    address, _ = decisions(await alice.page("/waiting"))
    await alice.press(f"{address}/reject")
    assert '<b class="count">1</b>' in await alice.page("/ask")


async def test_who_is_invited_to_a_team_or_project_finds_it_here_and_accepts_or_declines(
    hub: Hub, client: httpx2.AsyncClient, alice: Person
) -> None:
    await hub.harness.say("bob", "hello", **ROOM)
    bob, mallory = [Person(client, await cookie_of(hub.harness, who)) for who in ("bob", "mallory")]
    before = await mallory.page("/waiting")
    await alice.page("/team")
    team = (await alice.press("/team", name="Crew")).headers["location"].partition("?")[0]
    [user] = re.findall(r'name="user" value="([0-9a-f-]{36})"', await alice.page(f"{team}?view=people&q=bob"))
    for name in ("apollo", "zephyr"):
        await hub.harness.command("alice", f"/nexus project create {name}", **DM)
        await hub.harness.command("alice", f"/nexus project member add {name} bob read", **DM)
    await alice.press(f"{team}/invites", user=user)
    assert '<b class="count">3</b>' in await bob.page("/ask")
    shown = await bob.page("/waiting")
    assert "3 things wait for you." in shown
    assert "alice invites you to the team Crew" in shown
    of_apollo, _ = re.findall(r'action="(/projects/[0-9a-f-]{36})/accept"', shown)
    assert (await bob.press(f"{of_apollo}/accept", role="read")).headers["location"] == of_apollo
    assert (await bob.press(f"{team}/decline")).status_code == 303
    shown = await bob.page("/waiting")
    assert "1 thing waits for you." in shown
    assert "project zephyr" in shown
    assert "Crew" not in shown
    assert "apollo" not in shown
    assert '<b class="count">1</b>' in shown
    assert await mallory.page("/waiting") == before
    hub.harness.clock.tick(INVITE_LIFETIME.total_seconds())
    bob = Person(client, await cookie_of(hub.harness, "bob"))
    assert 'class="count"' not in await bob.page("/waiting"), "it is over"


async def test_who_wrote_it_sees_it_and_takes_it_back_but_does_not_accept_it(
    hub: Hub, client: httpx2.AsyncClient, alice: Person
) -> None:
    apollo = await project(hub, "apollo", "bob", "carol")
    await proposed(hub, "bob", "zqpnpm is used", apollo)
    [address] = decisions(await alice.page("/waiting"))
    bob, carol = [Person(client, await cookie_of(hub.harness, name)) for name in ("bob", "carol")]
    of_bob = await bob.page("/waiting")
    assert "Nothing waits for you." in of_bob
    assert "zqpnpm" in of_bob
    assert decisions(of_bob) == []
    assert (await bob.press(f"{address}/accept")).status_code == 404
    assert "zqpnpm" not in await carol.page("/waiting")
    for act in ("accept", "reject"):
        assert (await carol.press(f"{address}/{act}")).status_code == 404
    assert await hub.titles("bob") == []
    [back] = set(re.findall(r'href="(/memory/[0-9a-f-]{36}/forget)"', of_bob))
    await bob.page(back)
    assert (await bob.press(back)).status_code == 200
    assert "zqpnpm" not in await bob.page("/waiting")
    assert decisions(await alice.page("/waiting")) == []


async def test_what_waits_elsewhere_changes_nothing_of_the_page(
    hub: Hub, client: httpx2.AsyncClient, alice: Person
) -> None:
    apollo = await project(hub, "apollo", "bob")
    theirs = await project(hub, "zeus", "carol", by="bob")
    await proposed(hub, "bob", "zqpnpm is used", apollo)
    before = await alice.page("/waiting")
    await proposed(hub, "carol", "zqyarn is used", theirs)
    await proposed(hub, "bob", "zqnpm is used", theirs)
    assert await alice.page("/waiting") == before
    bob = Person(client, await cookie_of(hub.harness, "bob"))
    for address in decisions(await bob.page("/waiting")):
        for act in ("accept", "reject"):
            assert (await alice.press(f"{address}/{act}")).status_code == 404
    assert await hub.titles("bob") == []


async def test_a_form_of_another_page_decides_nothing(hub: Hub, client: httpx2.AsyncClient, alice: Person) -> None:
    apollo = await project(hub, "apollo", "bob")
    await proposed(hub, "bob", "zqpnpm is used", apollo)
    before = await alice.page("/waiting")
    [address] = decisions(before)
    bob = Person(client, await cookie_of(hub.harness, "bob"))
    await bob.page("/waiting")
    await bob.page("/tools")
    token, alice.csrf = alice.csrf, bob.csrf
    for act in ("accept", "reject"):
        assert (await alice.press(f"{address}/{act}")).status_code == 403
        for headers in ({}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await alice.press(f"{address}/{act}", headers)).headers["location"] == "/login"
    alice.csrf = token
    assert await alice.page("/waiting") == before


async def test_an_isolated_project_s_proposals_are_decided_too(hub: Hub, alice: Person) -> None:
    apollo = await project(hub, "apollo", "bob", flags="--isolated")
    await proposed(hub, "bob", "zqpnpm is used", apollo)
    [address] = decisions(await alice.page("/waiting"))
    assert (await alice.press(f"{address}/accept")).status_code == 303
    async with hub.request("alice", project=apollo) as (tx, access):
        page = await listing.page(tx, access, EntryFilter(), hub.harness.clock.now())
    assert [each.title for each in page.entries] == ["zqpnpm is used"]
    assert decisions(await alice.page("/waiting")) == []


async def test_no_text_that_waits_is_markup(hub: Hub, alice: Person) -> None:
    apollo = await project(hub, "apollo", "bob")
    for bite in (*BITES, BITES[0] * 60):
        await proposed(hub, "bob", bite, apollo)
    shown = await alice.page("/waiting")
    assert len(decisions(shown)) == len(BITES) + 1
    assert "<script>alert" not in shown
    assert "<img src=x" not in shown
    assert "<b hx-get" not in shown
    assert " 49 " not in shown
    assert "All of it" in shown


async def test_what_a_guest_of_a_room_wrote_is_theirs_to_see_alone(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    here, place = harness.workspace(), place_of("general", None, None)
    text = "/nexus remember the vault code is red"
    await run_command(
        harness.app, here, incoming(here, place, "mallory", text, harness.clock.tick(), trust=Trust.GUEST)
    )
    mallory, bob = [Person(client, await cookie_of(harness, name)) for name in ("mallory", "bob")]
    assert decisions(await mallory.page("/waiting")) == []
    assert "vault code" in await mallory.page("/waiting")
    assert "vault code" not in await bob.page("/waiting")


async def as_guest(harness: AppHarness, text: str, dm: str | None = None, session: str | None = None) -> None:
    place = place_of(None if dm or session else "general", dm, session)
    message = incoming(harness.workspace(), place, "mallory", text, harness.clock.tick(), trust=Trust.GUEST)
    await run_command(harness.app, harness.workspace(), message)


async def pressed(person: Person, word: str, act: str, **values: str) -> str:
    """Press a button of the item that has a word; the page that is shown then."""
    item = next(each for each in (await person.page("/waiting")).split("<li>") if word in each)
    [address] = set(re.findall(r'action="(/waiting/[0-9a-f-]{36})/accept"', item))
    answer = await person.press(f"{address}/{act}", **values)
    assert answer.status_code == 303, answer.text
    return await person.page(answer.headers["location"])


async def test_admins_of_a_room_accept_amend_and_reject_what_guests_wrote_there(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    for name in ("alice", "bob"):
        await harness.say(name, "good morning", **ROOM)
    for told in (
        "remember zqvault is red",
        "remember zqkey is old",
        "landmark add zqmoney is mine",
        "fact set zqday 1",
    ):
        await as_guest(harness, f"/nexus {told}")
    bob = Person(client, await cookie_of(harness, "bob"))
    before = await alice.page("/waiting")
    assert "4 things wait for you." in before
    assert '<b class="count">4</b>' in before
    assert "zqday = 1" in before
    ids = re.findall(r'action="(/waiting/[0-9a-f-]{36})/accept"', before)
    assert "zqvault" not in await bob.page("/waiting"), "who is no admin of the room"
    for act in ("accept", "reject", "amend"):
        assert (await bob.press(f"{ids[0]}/{act}", text="zqbob")).status_code == 404
    assert "Accepted: it is stored for #general." in await pressed(alice, "zqvault", "accept")
    assert "Rejected: it is erased." in await pressed(alice, "zqkey", "reject")
    amended = await pressed(alice, "zqmoney", "amend", text="zqmoney goes to the bank")
    [room] = set(re.findall(r'href="(/rooms/[0-9a-f-]{36})\?view=decisions"', amended))
    await pressed(alice, "zqday", "amend", text="Friday")
    shown = [await alice.page(f"{room}?view={view}") for view in ("memories", "decisions", "facts")]
    assert "zqvault is red" in shown[0]
    assert "zqkey" not in shown[0]
    assert "zqmoney goes to the bank" in shown[1]
    assert "is mine" not in shown[1]
    assert "Friday" in shown[2]
    assert "Nothing waits for you." in await alice.page("/waiting")


async def test_an_admin_keeps_other_words_in_place_of_what_a_tool_wrote_in_their_own_name(
    hub: Hub, alice: Person
) -> None:
    apollo = await project(hub, "apollo", "bob")
    written = await hub.write(
        "bob", "zqpnpm is used", "claude", project=apollo, grants=WRITING, tags=["build"], vendors=["claude"]
    )
    assert written.pending
    told = await pressed(alice, "zqpnpm", "amend", text="zqyarn is used")
    assert "Accepted: it is stored for apollo." in told
    [entry] = await hub.find("alice", project=apollo)
    assert (entry.values.text, entry.author, entry.origin) == ("zqyarn is used", "alice", "api")
    assert (entry.values.tags, entry.values.vendors) == (("build",), ("claude",)), "no other tool reads it by this"
    assert "zqpnpm" not in await alice.page(f"/projects/{apollo}?view=entries")
    assert "Nothing waits for you." in await alice.page("/waiting")


async def test_what_waits_in_own_dms_and_sessions_is_decided_here_too(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await as_guest(harness, "/nexus remember zqmoon is far", dm="nexus")
    await as_guest(harness, "/nexus remember zqsun is far", session="mine")
    mallory = Person(client, await cookie_of(harness, "mallory"))
    shown = await mallory.page("/waiting")
    assert "2 things wait for you." in shown
    assert '<b class="count">2</b>' in shown
    assert "In your own DMs and sessions" in shown
    assert "your DM with @nexus" in shown
    listed = await mallory.page("/memory")
    assert "Nothing is remembered of you yet. 2 more wait for approval." in listed
    assert "<span>All 2</span>" in listed
    assert listed.count("· waits for approval") == 2
    one = await mallory.page(re.findall(r'href="(/memory/[0-9a-f-]{36})"', listed)[0])
    assert '<b dir="auto">You</b>: to decide' in one
    assert 'href="/waiting">See it under Waiting</a>' in one
    assert decisions(await alice.page("/waiting")) == []
    for address in decisions(shown):
        for act in ("accept", "reject", "amend"):
            assert (await alice.press(f"{address}/{act}", text="zqstolen")).status_code == 404
    assert "Accepted: it is in your memory." in await pressed(mallory, "zqmoon", "accept")
    await pressed(mallory, "zqsun", "amend", text="zqsun is near")
    memory = await mallory.page("/memory")
    assert "zqmoon is far" in memory
    assert "zqsun is near" in memory
    assert "Nothing waits for you." in await mallory.page("/waiting")


async def test_what_a_guest_s_session_puts_into_a_project_is_for_its_admins(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    for name in ("alice", "bob"):
        await harness.say(name, "good morning", **ROOM)
    await as_guest(harness, "good morning")
    await harness.command("alice", "/nexus project create apollo", **DM)
    for member in ("mallory", "bob"):
        await harness.command("alice", f"/nexus project member add apollo {member} write", **DM)
    await harness.command("bob", "/nexus project accept apollo", **DM)
    await as_guest(harness, "/nexus project accept apollo")
    await as_guest(harness, "/nexus project assign apollo --yes", session="ours")
    await as_guest(harness, "/nexus remember zqcomet is near", session="ours")
    await as_guest(harness, "/nexus fact set zqcomet near", session="ours")
    mallory, bob = [Person(client, await cookie_of(harness, name)) for name in ("mallory", "bob")]
    shown = await alice.page("/waiting")
    assert "1 thing waits for you." in shown, "facts are never pooled"
    assert "a session of project apollo" in shown
    assert "Written by guests" in shown
    [address] = decisions(shown)
    for other in (mallory, bob):
        assert address not in await other.page("/waiting")
        assert (await other.press(f"{address}/accept")).status_code == 404
    assert '<b class="count">' not in await bob.page("/waiting")
    assert "Accepted: it is stored for apollo." in await pressed(alice, "zqcomet is near", "accept")
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)
    assert "zqcomet is near" in str(await harness.compose("alice", "@nexus where is the zqcomet?", **ROOM))


async def test_facts_and_decisions_of_a_session_in_a_project_are_for_its_person(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await harness.say("alice", "good morning", **ROOM)
    await as_guest(harness, "good morning")
    await harness.command("alice", "/nexus project create apollo", **DM)
    await harness.command("alice", "/nexus project member add apollo mallory write", **DM)
    await as_guest(harness, "/nexus project accept apollo")
    await as_guest(harness, "/nexus project assign apollo --yes", session="ours")
    for told in ("remember zqmoon is far", "fact set zqcomet near", "landmark add zqsun is ours", "fact set zqkey 1"):
        await as_guest(harness, f"/nexus {told}", session="ours")
    mallory = Person(client, await cookie_of(harness, "mallory"))
    shown = await mallory.page("/waiting")
    assert "3 things wait for you." in shown
    assert '<b class="count">3</b>' in shown
    assert "In your own DMs and sessions" in shown
    assert len(decisions(shown)) == 3, "what the project reads is for its admins"
    addresses = decisions(shown)
    [of_project] = decisions(await alice.page("/waiting"))
    assert of_project not in addresses
    for address in addresses:
        for act in ("accept", "reject", "amend"):
            assert (await alice.press(f"{address}/{act}", text="zqstolen")).status_code == 404
    assert "Accepted: it is in your memory." in await pressed(mallory, "zqcomet = near", "accept")
    await pressed(mallory, "zqsun", "amend", text="zqsun is far")
    await pressed(mallory, "zqkey", "reject")
    memory = await mallory.page("/memory")
    assert "zqcomet" in memory
    assert "zqsun is far" in memory
    assert "zqkey" not in memory
    assert decisions(await mallory.page("/waiting")) == []


@pytest.mark.parametrize("place", [{"dm": "nexus"}, {"session": "mine"}], ids=["dm", "session"])
async def test_decisions_found_in_own_dms_and_sessions_are_accepted_here_too(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, place: dict[str, str]
) -> None:
    await harness.say("alice", "good morning", **ROOM)
    bob = Person(client, await cookie_of(harness, "bob"))
    before = await bob.page("/waiting")
    for said in ("to ship zqmoon on Fridays.", "to use zqsun.", "to buy zqstar."):
        await harness.say("alice", f"We decided {said}\n{BELOW}", **place)
    shown = await alice.page("/waiting")
    assert "3 things wait for you." in shown
    assert '<b class="count">3</b>' in await alice.page("/memory")
    assert BELOW in shown, "the source"
    assert ("your DM with @nexus" in shown) is ("dm" in place)
    assert await bob.page("/waiting") == before
    for address in decisions(shown):
        for act in ("accept", "reject", "amend"):
            assert (await bob.press(f"{address}/{act}", text="zqstolen")).status_code == 404
    assert "Accepted: it is in your memory." in await pressed(alice, "zqmoon", "accept")
    assert "Rejected: it is no decision." in await pressed(alice, "zqsun", "reject")
    await pressed(alice, "zqstar", "amend", text="We rent zqstar.")
    told = (await harness.command("alice", "/nexus landmark list --retired", **place)).text
    assert re.search(r"alice: We decided to ship zqmoon", told), told
    assert re.search(r"\(retired by alice\): We decided to use zqsun", told), told
    assert "alice: We rent zqstar." in told
    assert "Nothing waits for you." in await alice.page("/waiting")
    assert 'class="count"' not in await alice.page("/memory")


async def test_what_waits_is_listed_and_settled_over_the_api_by_the_same_rule(
    hub: Hub, client: httpx2.AsyncClient, alice: Person
) -> None:
    harness = hub.harness
    apollo = await project(hub, "apollo", "bob")
    written = await hub.write("bob", "zqpnpm is used", "claude", project=apollo, grants=WRITING, tags=("build",))
    assert written.pending
    await harness.say("bob", "We decided to ship zqrocket on Fridays.", **ROOM)
    await harness.say("alice", "We decided to buy zqstar.", **DM)
    await hub.user("carol")
    people = {
        name: OWN | Person(client, await cookie_of(harness, name))._cookie() for name in ("alice", "bob", "carol")
    }

    async def listed(name: str) -> list[dict[str, Any]]:
        answer = await client.get("/v1/waiting", headers=people[name])
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["items"]
        return found

    found = await listed("alice")
    assert [(each["kind"], each["author"], each["place"]["kind"]) for each in found] == [
        ("memory", "bob (app claude)", "project"),
        ("decision", "bob", "room"),
        ("decision", "alice", "own"),
    ]
    assert [[(of["author"], of["text"]) for of in each["sources"]] for each in found] == [
        [],
        [("bob", "We decided to ship zqrocket on Fridays.")],
        [("alice", "We decided to buy zqstar.")],
    ]
    assert found[0]["place"]["id"] == str(apollo)
    assert found[0]["text"].splitlines()[0] == "zqpnpm is used"
    assert "tags: build" in found[0]["text"], "what is accepted besides"
    assert (await client.get("/v1/waiting", headers=bearer(await key_of(harness, "alice")))).status_code == 403
    assert await listed("carol") == []
    [of_room] = await listed("bob")
    assert of_room == found[1]
    memory, decision, own = [f"/v1/waiting/{each['id']}" for each in found]
    for name in ("bob", "carol"):
        for path in (memory, own):
            answer = await client.post(path, json={"act": "accept"}, headers=people[name])
            assert answer.status_code == 404, (name, path)
    for wrong in ({}, {"act": "accept", "text": "x"}, {"act": "frobnicate"}, {"text": ""}):
        assert (await client.post(memory, json=wrong, headers=people["alice"])).status_code == 422
    assert (await client.post(memory, json={"text": "zqyarn is used"}, headers=people["alice"])).status_code == 204
    assert (await client.post(decision, json={"act": "accept"}, headers=people["bob"])).status_code == 204
    assert (await client.post(own, json={"act": "reject"}, headers=people["alice"])).status_code == 204
    assert await listed("alice") == []
    for path in (memory, decision, own):
        assert (await client.post(path, json={"act": "accept"}, headers=people["alice"])).status_code == 404
    assert await hub.titles("alice") == ["zqyarn is used"]
    assert "Nothing waits for you." in await alice.page("/waiting")


async def test_all_of_one_for_one_place_is_decided_at_once(hub: Hub, client: httpx2.AsyncClient, alice: Person) -> None:
    apollo, zeus = await project(hub, "apollo", "bob", "carol"), await project(hub, "zeus", "bob")
    for n in range(3):
        await proposed(hub, "bob", f"zqone{n} is used", apollo)
    await proposed(hub, "carol", "zqtwo is used", apollo)
    for n in range(2):
        await proposed(hub, "bob", f"zqthree{n} is used", zeus)
    shown = await alice.page("/waiting")
    forms = re.findall(r'(?s)<form class="all-of".*?</form>', shown)
    groups = [re.findall(r'name="id" value="([0-9a-f-]{36})"', form) for form in forms]
    assert [len(group) for group in groups] == [3, 2], "one thing alone has its own buttons"
    assert ["Accept all 3" in forms[0], "bob (app claude), project apollo" in forms[0]] == [True, True]
    stranger = Person(client, await cookie_of(hub.harness, "carol"))
    await stranger.page("/waiting")
    assert (await stranger.press("/waiting/all", act="store", id=groups[0])).headers["location"].endswith("many=0")
    accepted = await alice.press("/waiting/all", act="store", id=groups[0])
    assert "3 things are accepted." in await alice.page(accepted.headers["location"])
    again = await alice.press("/waiting/all", act="erase", id=groups[0])
    assert again.headers["location"].endswith("many=0"), "what was decided stays so"
    assert "zqone1 is used" in await alice.page(f"/projects/{apollo}?view=entries")
    rejected = await alice.press("/waiting/all", act="erase", id=[*groups[1], str(uuid.uuid4())])
    told = await alice.page(rejected.headers["location"])
    assert ["2 things are rejected." in told, "zqtwo" in told, "zqthree" in told] == [True, True, False]
    assert (await alice.press("/waiting/all", act="frobnicate", id=groups[1])).status_code == 422
    assert (await alice.press("/waiting/all", act="store")).status_code == 422


async def test_all_decisions_of_a_place_are_decided_at_once(hub: Hub, alice: Person) -> None:
    for text in ("We decided to ship zqrocket on Fridays.", "We decided to paint zqblue."):
        await hub.harness.say("alice", text, **ROOM)
    [form] = re.findall(r'(?s)<form class="all-of".*?</form>', await alice.page("/waiting"))
    ids = re.findall(r'name="id" value="([0-9a-f-]{36})"', form)
    assert (len(ids), "#general" in form) == (2, True)
    answer = await alice.press("/waiting/all", act="store", id=ids)
    told = await alice.page(answer.headers["location"])
    assert ["2 things are accepted." in told, "Nothing waits for you." in told] == [True, True]


async def test_several_are_decided_at_once_over_the_api(hub: Hub, client: httpx2.AsyncClient, alice: Person) -> None:
    apollo = await project(hub, "apollo", "bob")
    for n in range(2):
        await proposed(hub, "bob", f"zqone{n} is used", apollo)
    owner, other = [OWN | Person(client, await cookie_of(hub.harness, name))._cookie() for name in ("alice", "bob")]
    ids = [each["id"] for each in (await client.get("/v1/waiting", headers=owner)).json()["items"]]

    async def decided(headers: dict[str, str], act: str) -> tuple[int, Any]:
        answer = await client.post("/v1/waiting", json={"ids": ids, "act": act}, headers=headers)
        return answer.status_code, answer.json().get("decided")

    assert await decided(other, "accept") == (200, 0)
    assert await hub.titles("alice") == []
    assert await decided(owner, "accept") == (200, 2)
    assert await decided(owner, "reject") == (200, 0)
    assert sorted(await hub.titles("alice")) == ["zqone0 is used", "zqone1 is used"]
    for wrong in ({"ids": [], "act": "accept"}, {"ids": ids, "act": "amend"}, {"act": "accept"}):
        assert (await client.post("/v1/waiting", json=wrong, headers=owner)).status_code == 422
    key = bearer(await key_of(hub.harness, "alice"))
    assert (await client.post("/v1/waiting", json={"ids": ids, "act": "accept"}, headers=key)).status_code == 403


async def test_declining_on_the_page_of_what_waits_stays_there(hub: Hub, client: httpx2.AsyncClient) -> None:
    await hub.user("bob")
    await hub.harness.command("alice", "/nexus project create apollo", **DM)
    await hub.harness.command("alice", "/nexus project member add apollo bob write", **DM)
    bob = Person(client, await cookie_of(hub.harness, "bob"))
    shown = await bob.page("/waiting")
    [path] = re.findall(r'action="(/projects/[0-9a-f-]{36}/decline)"', shown)
    [on] = re.findall(r'name="on" value="(\w+)"', shown)
    declined = await bob.press(path, on=on)
    told = await bob.page(declined.headers["location"])
    assert declined.headers["location"].startswith("/waiting?")
    assert ["Declined: the invitation is gone." in told, path in told] == [True, False]

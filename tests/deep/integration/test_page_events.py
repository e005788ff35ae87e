"""Open pages are told that something of theirs has changed: soon, of nothing of others, and nothing but that."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import httpx2
import pytest
from structlog.testing import capture_logs

from bot.console import schedule
from bot.web import app as web
from bot.web import watching as streams
from bot.web.app import web_app
from bot.web.event_stream import HEARTBEAT
from bot.web.metrics import Metrics
from bot.web.pages.events import RECONNECT
from bot.web.watching import CHANGED_EVENT, LATER
from composer.model import TeamRole, Trust
from composer.tasks.shares import Places
from composer.visibility import Grants
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import AppHarness
from tests.support.pages import OWN, Person
from tests.support.waiting import until
from tests.support.web import served_at

ROOM, DM = {"room": "general"}, {"dm": "nexus"}
WRITING: Final = OF_TOOL | {Grants.WRITE_PROJECTS}


@pytest.fixture
async def client(harness: AppHarness, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    monkeypatch.setattr(streams, "PAUSE_SECONDS", 0.02)
    served = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


class Told:
    """What an open page is told."""

    def __init__(self) -> None:
        self.text = b""
        self.ended = False
        self._known = 0

    @property
    def changes(self) -> int:
        return self.text.count(CHANGED_EVENT)

    async def is_told(self) -> None:
        """Wait until there are more changes than the last time."""
        await until(lambda: self.changes > self._known)
        self._known = self.changes

    async def begun(self) -> None:
        await until(lambda: self.text.startswith(RECONNECT))


@asynccontextmanager
async def watching(person: Person, page: str) -> AsyncIterator[Told]:
    """An open page of somebody."""
    told = Told()

    async def listen() -> None:
        headers = OWN | person._cookie()
        async with person.client.stream("GET", f"/events?page={page}", headers=headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "private, no-store"
            async for part in answer.aiter_bytes():
                told.text += part
        told.ended = True

    task = asyncio.create_task(listen())
    try:
        await told.begun()
        yield told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_page_is_told_of_what_its_person_may_read_and_of_nothing_else(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    """Twin worlds: whatever bob does, alice's page hears what it hears without that."""
    await harness.say("alice", "good morning", **ROOM)
    await harness.say("bob", "good morning", **ROOM)
    alice, bob = [Person(client, await cookie_of(harness, name)) for name in ("alice", "bob")]
    await bob.page("/memory")
    async with watching(alice, "memory") as hers, watching(alice, "waiting") as waits, watching(bob, "memory") as his:
        address = (await bob.press("/memory", text="zqheron")).headers["location"]
        await his.is_told()
        await bob.press(f"{address}/edit", text="zqheron flies")
        await his.is_told()
        await harness.command("bob", "/nexus fact set zqday Monday --yes", **DM)
        await his.is_told()
        await bob.press(f"{address}/forget")
        await his.is_told()
        assert (hers.changes, waits.changes) == (0, 0)
        await Hub(harness).write("alice", "zqvault", "claude")
        await until(lambda: hers.changes >= 1 and waits.changes >= 1)
        told = hers.text.replace(CHANGED_EVENT, b"").replace(RECONNECT, b"").replace(b": still there\n\n", b"")
        assert told == b"", "no content"


async def test_what_others_change_moves_no_sign_of_life(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much others change, and whenever: the stream's own clock says when it beats."""
    monkeypatch.setattr(streams, "SILENT_SECONDS", 0.3)
    alice, hub = Person(client, await cookie_of(harness, "alice")), Hub(harness)
    await alice.page("/memory")
    async with watching(alice, "memory") as hers:

        async def bob_writes() -> bool:
            await hub.write("bob", "zqheron")
            return hers.text.count(HEARTBEAT) >= 2

        await until(bob_writes)
        assert hers.changes == 0


async def made(person: Person, path: str, **body: object) -> dict[str, Any]:
    """What the API makes for somebody who is signed in."""
    answer = await person.client.post(path, json=body, headers=OWN | person._cookie())
    assert answer.status_code < 300, answer.text
    return cast(dict[str, Any], answer.json() if answer.content else {})


async def test_rooms_and_projects_tell_who_is_in_them_and_nobody_else(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    vault: dict[str, Any] = {"room": "vault", "private": True}
    for name in ("alice", "bob"):
        await harness.say(name, "good morning", **vault)
    await harness.say("carol", "good morning", **ROOM)
    people = [Person(client, await cookie_of(harness, name)) for name in ("alice", "bob", "carol")]
    alice, bob, carol = people
    [room] = (await alice.get("/v1/rooms")).json()["items"]
    async with (
        watching(bob, "rooms") as listed,
        watching(bob, f"rooms&of={room['id']}") as opened,
        watching(bob, f"rooms&of={uuid.uuid4()}") as another,
        watching(carol, "rooms") as outside,
        watching(carol, f"rooms&of={room['id']}") as guessed,
        watching(bob, "memory") as own,
    ):
        for command in ("fact set zqday Monday --yes", "landmark add we use zqheron", "remember zqheron flies"):
            await harness.command("alice", f"/nexus {command}", **vault)
            await listed.is_told()
            await opened.is_told()
        project = (await made(alice, "/v1/projects", name="apollo"))["id"]
        await harness.command("alice", "/nexus project assign apollo --yes", **vault)
        await opened.is_told()
        headers = OWN | alice._cookie()
        await client.put(
            f"/v1/projects/{project}/members/{await id_of(harness, 'bob')}", json={"role": "read"}, headers=headers
        )
        await listed.is_told()
        await made(bob, f"/v1/projects/{project}/accept?role=read")
        await listed.is_told()
        assert (outside.changes, guessed.changes, another.changes) == (0, 0, 0)
        assert own.changes == 0, "what is in a room is none of one's own"
        await all_is_heard(alice)
        async with watching(bob, f"rooms&of={project}") as his, watching(bob, "rooms") as again:
            await client.put(
                f"/v1/projects/{project}/members/{await id_of(harness, 'carol')}",
                json={"role": "read"},
                headers=headers,
            )
            await outside.is_told()  # carol is invited
            await all_is_heard(alice)
            assert (his.changes, again.changes) == (0, 0), "whom admins invite is shown to admins"
            await made(carol, f"/v1/projects/{project}/accept?role=read")
            await his.is_told()


async def test_a_team_tells_its_members_and_of_invitations_its_admins(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    for name in ("alice", "bob", "carol"):
        await harness.say(name, "good morning", **ROOM)
    alice, bob, carol = [Person(client, await cookie_of(harness, name)) for name in ("alice", "bob", "carol")]
    team = (await made(alice, "/v1/teams", name="Ops"))["id"]
    async with (
        watching(bob, "team") as his,
        watching(bob, "waiting") as waits,
        watching(carol, "team") as hers,
        watching(alice, f"team&of={team}") as led,
        watching(alice, "waiting") as of_hers,
    ):
        await made(alice, f"/v1/teams/{team}/invites", user=await id_of(harness, "bob"))
        await his.is_told()
        await waits.is_told()
        await led.is_told()
        await made(bob, f"/v1/teams/{team}/accept")
        await his.is_told()
        await waits.is_told()
        await led.is_told()
        assert (hers.changes, of_hers.changes) == (0, 0)
        await all_is_heard(alice)
        async with watching(bob, "team") as again:
            await made(alice, f"/v1/teams/{team}/invites", user=await id_of(harness, "carol"))
            await hers.is_told()
            await led.is_told()
            await all_is_heard(alice)
            assert again.changes == 0, "whom admins invite is shown to admins"
        entry = (await made(bob, "/v1/entries", content="zqheron"))["id"]
        await client.put(f"/v1/entries/{entry}/team", json={"team": team}, headers=OWN | bob._cookie())
        await led.is_told()
        await client.patch(f"/v1/teams/{team}", json={"name": "Crew"}, headers=OWN | alice._cookie())
        await his.is_told()
        await led.is_told()


async def test_conversations_tools_and_admin_tell_those_whose_they_are(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    for name in ("alice", "bob", "carol"):
        await harness.say(name, "good morning", **ROOM)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        for name in ("alice", "bob"):
            await tx.people.set_admin(uuid.UUID(await id_of(harness, name)), True)
    alice, bob, carol = [Person(client, await cookie_of(harness, name)) for name in ("alice", "bob", "carol")]
    async with (
        watching(alice, "ask") as asks,
        watching(bob, "ask") as his_asks,
        watching(alice, "tools") as tools,
        watching(bob, "tools") as his_tools,
        watching(bob, "admin") as admin,
        watching(bob, "people") as people,
        watching(carol, "admin") as no_admin,
        watching(carol, "people") as no_people,
    ):
        await made(alice, "/v1/chat", content="hello", session="plans")
        await asks.is_told()
        key = (await made(alice, "/v1/keys", vendor="claude"))["id"]
        await tools.is_told()
        await people.is_told()
        await client.delete(f"/v1/keys/{key}", headers=OWN | alice._cookie())
        await tools.is_told()
        await people.is_told()
        invited = (await made(alice, "/v1/admin/invitations", name="Dana"))["id"]
        await people.is_told()
        await client.delete(f"/v1/admin/invitations/{invited}", headers=OWN | alice._cookie())
        await people.is_told()
        user = await id_of(harness, "carol")
        await client.patch(f"/v1/admin/users/{user}", json={"disabled": True}, headers=OWN | alice._cookie())
        await people.is_told()
        assert admin.changes == 0, "on its page stand jobs alone"
        harness.clock.tick(7.5)
        await schedule.run(harness.app, "trash", harness.app.clock.now())
        await admin.is_told()
        assert (his_asks.changes, his_tools.changes, no_admin.changes, no_people.changes) == (0, 0, 0, 0)


async def test_admins_see_places_lose_their_admin_and_get_one(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    for name in ("alice", "bob", "carol"):
        await harness.say(name, "good morning", **ROOM)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(uuid.UUID(await id_of(harness, "carol")), True)
    alice, bob, carol = [Person(client, await cookie_of(harness, name)) for name in ("alice", "bob", "carol")]
    team = (await made(alice, "/v1/teams", name="Ops"))["id"]
    await made(alice, f"/v1/teams/{team}/invites", user=await id_of(harness, "bob"))
    await made(bob, f"/v1/teams/{team}/accept")
    async with watching(carol, "people") as people, watching(bob, "people") as no_admin:
        left = uuid.UUID(await id_of(harness, "alice"))
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            assert await tx.teams.set_role(uuid.UUID(team), left, TeamRole.MEMBER, left)
        await people.is_told()
        assert "without an admin" in await carol.page("/admin/places")
        user = await id_of(harness, "bob")
        await client.put(f"/v1/admin/teams/{team}/admin", json={"user": user}, headers=OWN | carol._cookie())
        await people.is_told()
        assert "without an admin" not in await carol.page("/admin/places")
        assert no_admin.changes == 0


async def test_the_page_of_a_room_tells_what_is_said_there(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    vault: dict[str, Any] = {"room": "vault", "private": True}
    for name in ("alice", "bob"):
        await harness.say(name, "good morning", **vault)
    await harness.say("alice", "good morning", thread="t1", **vault)
    await harness.say("carol", "good morning", **ROOM)
    await harness.say("bob", "good morning", **ROOM)
    alice, bob, carol = [Person(client, await cookie_of(harness, name)) for name in ("alice", "bob", "carol")]
    rooms = {each["name"]: each["id"] for each in (await bob.get("/v1/rooms")).json()["items"]}
    async with (
        watching(bob, f"rooms&of={rooms['vault']}") as opened,
        watching(bob, f"rooms&of={rooms['general']}") as another,
        watching(bob, "rooms") as listed,
        watching(carol, f"rooms&of={rooms['vault']}") as guessed,
    ):
        await harness.say("alice", "zqheron", id="said", **vault)
        await opened.is_told()
        await harness.change("said", "zqheron flies")
        await opened.is_told()
        await harness.say("alice", "zqheron again", thread="t1", **vault)
        await opened.is_told()
        await harness.change("said", None)
        await opened.is_told()
        await all_is_heard(alice)
        assert (another.changes, guessed.changes) == (0, 0)
        assert listed.changes == 0, "the list of rooms shows no message"


async def test_a_run_of_the_schedule_tells_no_page(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(uuid.UUID(await id_of(harness, "alice")), True)
    alice = Person(client, await cookie_of(harness, "alice"))
    async with watching(alice, "admin") as admin, watching(alice, "memory") as own:
        at = harness.app.clock.now().replace(second=0, microsecond=0)
        await schedule.run(harness.app, "trash", at)
        await Hub(harness).write("alice", "zqvault")
        await own.is_told()
        assert admin.changes == 0


async def all_is_heard(person: Person) -> None:
    """Wait until this process has heard of all that was changed until now: notices come in their order."""
    async with watching(person, "memory") as own:
        await made(person, "/v1/entries", content=f"zq{uuid.uuid4().hex}")
        await own.is_told()


async def id_of(harness: AppHarness, name: str) -> str:
    return str((await person(harness, name)).id)


async def test_two_admins_of_a_project_see_each_other_decide(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    hub = Hub(harness, quarantined={Trust.TOOL})
    await harness.command("alice", "/nexus project create apollo", **DM)
    for name, role in (("bob", "admin"), ("carol", "write")):
        await hub.user(name)
        await harness.command("alice", f"/nexus project member add apollo {name} {role}", **DM)
        await harness.command(name, "/nexus project accept apollo", **DM)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        [project] = await tx.projects.named("apollo")
    people = [Person(client, await cookie_of(harness, name)) for name in ("bob", "carol")]
    async with watching(people[0], "waiting") as admin, watching(people[1], "waiting") as member:
        await hub.write("alice", "zqpnpm is used", "claude", project=project, grants=WRITING)
        await admin.is_told()
        alice = Person(client, await cookie_of(harness, "alice"))
        shown = await alice.page("/waiting")
        [path] = {part.partition('"')[0] for part in shown.split('action="')[1:] if "/accept" in part[:60]}
        await alice.press(path, project=str(project))
        await admin.is_told()
        assert member.changes == 0, "who decides about nothing there is told of nothing"


async def test_a_page_is_told_of_nothing_once_its_person_is_signed_out(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = Person(client, await cookie_of(harness, "alice"))
    await alice.page("/memory")
    async with watching(alice, "memory") as told:
        await alice.press("/logout")
        await Hub(harness).write("alice", "zqvault")
        await until(lambda: told.ended)
        assert told.changes == 0


async def test_events_are_for_who_is_signed_in_on_a_page_that_has_some(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = Person(client, await cookie_of(harness, "alice"))
    assert (await alice.get("/events?page=anything")).status_code == 422
    assert (await client.get("/events?page=memory", headers=OWN)).headers["location"] == "/login"
    key = bearer(await key_of(harness, "alice", "claude"))
    assert (await client.get("/events?page=memory", headers=key)).status_code == 403


async def test_open_pages_hold_places_of_their_own(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Places] = []
    taking = Places.take

    def noted(places: Places, *tenant: object) -> object:
        held.append(places)
        return taking(places, *tenant)  # type: ignore[arg-type]

    monkeypatch.setattr(Places, "take", noted)
    alice = Person(client, await cookie_of(harness, "alice"))
    async with watching(alice, "memory"), watching(alice, "memory"):
        [watched] = {each for each in held if each._most == 400}
        assert watched.taken == 2
        await until(lambda: all(each.taken == 0 for each in held if each is not watched))  # none of those for requests
    await until(lambda: watched.taken == 0)


async def test_a_page_too_many_is_told_to_ask_later(harness: AppHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "WATCHING_AT_ONCE", 4)
    monkeypatch.setattr(web, "PLACE_SECONDS", 0.01)
    served = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        alice, bob = [Person(client, await cookie_of(harness, name)) for name in ("alice", "bob")]
        with capture_logs() as logs:
            async with watching(alice, "memory"), watching(alice, "memory"):
                assert (await alice.get("/events?page=memory")).content == LATER
                async with watching(bob, "memory") as his:
                    assert his.text == RECONNECT
    assert "web.failed" not in {line["event"] for line in logs}


async def test_the_same_is_told_over_the_api_for_as_long_as_it_is_asked_for(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await harness.say("alice", "good morning", **ROOM)
    alice, reader = bearer(await key_of(harness, "alice")), ["entries:read"]

    async def asked(page: str, headers: dict[str, str], seconds: int = 0) -> httpx2.Response:
        return await client.get("/v1/events", params={"page": page, "seconds": seconds}, headers=headers)

    assert (await asked("memory", alice)).text == HEARTBEAT.decode()
    told = b""
    async with client.stream("GET", "/v1/events?page=memory&seconds=600", headers=alice) as answer:
        async for part in answer.aiter_bytes():
            told += part
            if CHANGED_EVENT in told:
                break
            await Hub(harness).write("alice", "zqvault")
    assert told.replace(CHANGED_EVENT, b"").replace(HEARTBEAT, b"") == b""
    browser = OWN | Person(client, await cookie_of(harness, "alice"))._cookie()
    for page in ("rooms", "team", "waiting"):
        assert (await asked(page, alice)).status_code == 403, "no key opens a room"
        assert (await asked(page, browser)).status_code == 200
    for page in ("admin", "people"):
        assert (await asked(page, browser)).status_code == 403
    assert (await asked("memory", bearer(await key_of(harness, "alice", permissions=reader)))).status_code == 403
    assert (await asked("memory", bearer(await key_of(harness, "alice", "claude")))).status_code == 403
    assert (await asked("memory", alice, 601)).status_code == 422

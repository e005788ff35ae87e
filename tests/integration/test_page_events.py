"""Open pages are told that something of theirs has changed: soon, of nothing of others, and nothing but that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx2
import pytest
from structlog.testing import capture_logs

from bot.web import app as web
from bot.web.app import web_app
from bot.web.event_stream import HEARTBEAT
from bot.web.metrics import Metrics
from bot.web.pages import events
from bot.web.pages.events import CHANGED_EVENT, LATER, RECONNECT
from composer.model import Trust
from composer.tasks.shares import Places
from composer.visibility import Grants
from tests.support.api import bearer, cookie_of, key_of
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import AppHarness
from tests.support.pages import OWN, Person
from tests.support.waiting import until
from tests.support.web import served_at

ROOM, DM = {"room": "general"}, {"dm": "nexus"}
WRITING: Final = OF_TOOL | {Grants.WRITE_PROJECTS}


@pytest.fixture
async def client(harness: AppHarness, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    monkeypatch.setattr(events, "PAUSE_SECONDS", 0.02)
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
    monkeypatch.setattr(events, "SILENT_SECONDS", 0.3)
    alice, hub = Person(client, await cookie_of(harness, "alice")), Hub(harness)
    await alice.page("/memory")
    async with watching(alice, "memory") as hers:

        async def bob_writes() -> bool:
            await hub.write("bob", "zqheron")
            return hers.text.count(HEARTBEAT) >= 2

        await until(bob_writes)
        assert hers.changes == 0


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

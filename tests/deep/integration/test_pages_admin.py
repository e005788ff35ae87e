"""The pages and routes of admins: who sees them, what they show of whom, and what each button does."""

import asyncio
import json
import re
import secrets
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from bot.console import schedule
from bot.console.schedule import ServedJobs
from bot.web import app as web
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.pages import admin_people
from composer.errors import Refused
from composer.ingest.chosen_settings import agent_over
from composer.ingest.tenants import TenantDirectory, configured_agent
from composer.model import Trust
from composer.people.credentials.openid import OpenIdAccount, sign_in_by_account
from composer.people.credentials.sign_in import make_login_link
from composer.ports.process_locks import PROCESS_NUMBERS, RANDOM_BITS
from composer.repositories.audit import AuditAct
from composer.repositories.openid_logins import LoginEntry
from composer.repositories.operations import Operation
from composer.settings import AgentSettings, PlanSettings, Settings
from composer.settings.agents import PERSONA
from composer.stores.database.process_locks import PostgresProcessLocks
from composer.usage.plans import Plan
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.pages import BITES, OWN, Person
from tests.support.waiting import until
from tests.support.web import served_at

SECRET: Final = "zqsecret"
ROOM, DM = {"room": "general"}, {"dm": "nexus"}
PAGES: Final = ("/admin", "/admin/figures", "/admin/people", "/admin/audit", "/admin/import", "/admin/settings")
ROUTES: Final = [
    route
    for route in web.ROUTES
    if route.path.startswith("/admin") and isinstance(route, APIRoute) and route.methods is not None
]
HTML: Final = {"Accept": "text/html"}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    many = {"requests_per_minute": 10_000, "admin_requests_per_minute": 10_000}
    async with open_harness(settings.model_copy(update=many)) as harness:
        yield harness


@pytest.fixture
def jobs(harness: AppHarness) -> ServedJobs:
    return ServedJobs(harness.app)


@pytest.fixture
async def client(harness: AppHarness, jobs: ServedJobs) -> AsyncIterator[httpx2.AsyncClient]:
    served: FastAPI = web_app(harness.app, Metrics([]), {"discord": _connected}, None, jobs=jobs)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client
    await jobs.close()


async def _connected() -> bool:
    return False


async def root_of(harness: AppHarness, client: httpx2.AsyncClient, name: str = "root") -> Person:
    found = await person(harness, name)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(found.id, True)
    return Person(client, await cookie_of(harness, name))


async def acts_of(harness: AppHarness) -> list[tuple[str, uuid.UUID | None, tuple[uuid.UUID, ...]]]:
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        return [(str(each.act), each.actor, each.users) for each in await tx.audit.find(limit=50)]


async def say_secrets(harness: AppHarness) -> None:
    """Something of everybody, in every kind of place, that no admin is to see."""
    hub = Hub(harness)
    await hub.write("alice", f"{SECRET} of an entry")
    await hub.trash("alice", (await hub.write("alice", f"{SECRET} in the trash")).entry.id)
    await harness.say("bob", SECRET, room=SECRET, private=True)
    await harness.say("bob", SECRET, **ROOM)
    await harness.command("bob", f"/nexus fact set {SECRET} bees", **DM)
    await harness.command("bob", f"/nexus remember {SECRET} likes tea", **DM)
    await harness.command("bob", f"/nexus project create {SECRET}", **DM)
    await harness.command("bob", "/nexus project create apollo", **ROOM)
    await harness.ask("bob", f"what of {SECRET}?", **DM)


async def test_to_who_is_no_admin_these_pages_do_not_exist(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root, alice = await root_of(harness, client), Person(client, await cookie_of(harness, "alice"))
    await alice.page("/memory")
    nothing = await alice.get("/nothing-is-here", **HTML)
    assert nothing.status_code == 404
    assert len(ROUTES) >= 10
    for route in ROUTES:
        path = re.sub(r"{\w+}", str(uuid.UUID(int=7)), route.path)
        if "GET" in (route.methods or ()):
            answer = await alice.get(path, **HTML)
        else:
            answer = await alice.press(path, {"Sec-Fetch-Site": "same-origin"} | HTML, admin="true", value="1")
        assert (answer.status_code, answer.content) == (404, nothing.content), path
        assert sorted(set(answer.headers) - {"date"}) == sorted(set(nothing.headers) - {"date"}), path
    assert "/admin" not in (await alice.page("/memory"))
    assert 'href="/admin"' in await root.page("/memory")


async def test_no_page_or_route_of_admins_shows_a_word_of_anybody(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await root_of(harness, client)
    await say_secrets(harness)
    pages = [await root.page(path) for path in (*PAGES, "/admin/audit/export", "/usage?whose=everyone")]
    users = re.findall(r"/admin/people/([0-9a-f-]{36})", pages[2])
    pages += [await root.page(f"/admin/people/{user}") for user in users]
    pages += [await root.page(f"/admin/audit?user={user}") for user in users]
    key = bearer(await key_of(harness, "root"))
    of_all = ("health", "figures/days", "jobs", "backups", "imports", "settings", "audit", "audit/verification")
    for path in (*of_all, *(f"users/{each}" for each in users)):
        answer = await client.get(f"/v1/admin/{path}", headers=key)
        assert answer.status_code == 200, answer.text
        pages.append(answer.text)
    for text in pages:
        assert SECRET not in text
    assert "bob" in pages[2]
    assert "joined a private room" in pages[3]
    assert "#<span" in pages[3], "public rooms have names"


async def test_of_many_entries_of_somebody_the_first_are_counted(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await root_of(harness, client)
    for text in ("one", "two", "three"):
        await Hub(harness).write("alice", text)
    assert "3 entries" in await root.page("/admin/people")
    monkeypatch.setattr(admin_people, "COUNTED_ENTRIES", 2)
    bounded = await root.page("/admin/people")
    assert ("at least 2 entries" in bounded, "3 entries" in bounded) == (True, False)
    users = (await client.get("/v1/admin/users", headers=bearer(await key_of(harness, "root")))).json()["items"]
    assert {each["name"]: each["entries"] for each in users}["alice"] == 3, "the API counts all"


async def test_another_organisation_changes_nothing_of_a_page(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await root_of(harness, client)
    await harness.say("carol", "good morning", room="general", workspace="umbrella")
    await key_of(harness, "carol", workspace="umbrella")
    paths = ("/admin", "/admin/figures", "/admin/people", "/admin/settings", "/usage?whose=everyone")
    await root.page("/admin")
    await harness.app.credentials._last_use.settle()
    now = harness.clock.tick()
    before = [await root.page(path) for path in paths]
    assert "This Nexus serves several organisations" in before[0]
    for words in ("zqother", "and more"):
        await harness.say("carol", words, room="general", workspace="umbrella")
        await harness.command("carol", f"/nexus remember {words}", dm="nexus", workspace="umbrella")
    await harness.app.audit.seal(harness.workspace("umbrella").tenant_id)
    harness.clock.set(now)
    assert [await root.page(path) for path in paths] == before
    carol = (await person(harness, "carol", "umbrella")).id
    assert (await root.get(f"/admin/people/{carol}")).status_code == 404
    for act in ("admin", "sign-out"):
        assert (await root.press(f"/admin/people/{carol}/{act}", admin="true")).status_code == 404
    key = bearer(await key_of(harness, "root"))
    for path in ("jobs", "backups", "imports"):
        assert (await client.get(f"/v1/admin/{path}", headers=key)).status_code == 404
    assert (await client.post("/v1/admin/jobs/audit/run", headers=key)).status_code == 404
    assert (await client.post("/v1/admin/imports/uploads", content=b"x", headers=key)).status_code == 404
    assert "whoever runs it imports" in await root.page("/admin/import")
    assert (await root.press("/admin/import/undo", id=str(uuid.UUID(int=7)))).status_code == 404
    assert (await root.press("/admin/jobs/audit")).status_code == 404
    assert (await client.get(f"/v1/admin/users/{carol}", headers=key)).status_code == 404


async def test_somebody_becomes_an_admin_and_stops_and_one_is_always_left(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await root_of(harness, client)
    me, bob = (await person(harness, "root")).id, (await person(harness, "bob")).id
    bobs = Person(client, await cookie_of(harness, "bob"))
    assert (await bobs.get("/admin")).status_code == 404
    assert "Make them an admin" in await root.page(f"/admin/people/{bob}")
    made = await root.press(f"/admin/people/{bob}/admin", admin="true")
    assert made.headers["location"] == f"/admin/people/{bob}"
    assert "bob" in await bobs.page("/admin")
    assert ("admin.granted", me, (bob,)) in await acts_of(harness)
    again = await root.press(f"/admin/people/{bob}/admin", admin="true")
    assert again.status_code == 303
    assert [act for act, actor, _ in await acts_of(harness) if actor == me].count("admin.granted") == 1
    await bobs.page(f"/admin/people/{me}")
    assert (await bobs.press(f"/admin/people/{me}/admin", admin="false")).status_code == 303
    assert (await root.get("/admin")).status_code == 404
    kept = await bobs.press(f"/admin/people/{bob}/admin", admin="false")
    assert (kept.status_code, "keeps an admin" in kept.text) == (409, True)
    key = bearer(await key_of(harness, "bob"))
    answer = await client.patch(f"/v1/admin/users/{bob}", json={"admin": False}, headers=key)
    assert answer.status_code == 409
    answer = await client.patch(f"/v1/admin/users/{me}", json={"admin": True}, headers=key)
    assert (answer.status_code, answer.json()["admin"]) == (200, True)
    assert (await client.patch(f"/v1/admin/users/{uuid.uuid4()}", json={"admin": True}, headers=key)).status_code == 404
    refused = await client.patch(
        f"/v1/admin/users/{me}", json={"admin": False}, headers=bearer(await key_of(harness, "alice"))
    )
    assert refused.status_code == 403


async def test_two_admins_who_end_each_other_s_rights_at_once_leave_one(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    admins = {name: await root_of(harness, client, name) for name in ("ann", "ben")}
    ids = {name: (await person(harness, name)).id for name in admins}
    for each in admins.values():
        await each.page("/admin/people")
    await asyncio.gather(
        admins["ann"].press(f"/admin/people/{ids['ben']}/admin", admin="false"),
        admins["ben"].press(f"/admin/people/{ids['ann']}/admin", admin="false"),
    )
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        assert sum([await tx.people.is_admin(each) for each in ids.values()]) == 1


async def test_who_is_signed_out_everywhere_is_let_in_by_nothing(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root, bob = await root_of(harness, client), (await person(harness, "bob")).id
    keys = [await key_of(harness, "bob"), await key_of(harness, "bob", "claude")]
    alices = await key_of(harness, "alice")
    bobs = Person(client, await cookie_of(harness, "bob"))
    await bobs.page("/memory")
    shown = await root.page(f"/admin/people/{bob}")
    assert "Sign out everywhere…" in shown
    assert all(key not in shown for key in keys)
    assert (await root.press(f"/admin/people/{bob}/sign-out")).status_code == 303
    assert [(await client.get("/v1/whoami", headers=bearer(key))).status_code for key in keys] == [401, 401]
    assert (await bobs.get("/memory")).headers["location"] == "/login"
    assert (await client.get("/v1/whoami", headers=bearer(alices))).status_code == 200
    me = (await person(harness, "root")).id
    acts = await acts_of(harness)
    assert ("key.revoked", me, (bob,)) in acts
    assert ("signed.out", me, (bob,)) in acts
    assert "Sign out everywhere…" not in await root.page(f"/admin/people/{bob}")
    await key_of(harness, "bob")
    key = bearer(await key_of(harness, "root"))
    ended = (await client.post(f"/v1/admin/users/{bob}/sign-out", headers=key)).json()
    assert ended == {"keys": 1, "apps": 0, "browsers": 0, "accounts": 0}


async def test_who_is_disabled_gets_no_way_in_until_they_are_enabled(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root, bob = await root_of(harness, client), (await person(harness, "bob")).id
    me, here = (await person(harness, "root")).id, harness.workspace()
    key = await key_of(harness, "bob")
    bobs = Person(client, await cookie_of(harness, "bob"))
    await bobs.page("/memory")
    async with harness.app.database.transaction(here.tenant_id) as tx:
        link = await make_login_link(tx, here.tenant, bob, secrets.token_bytes(32), harness.clock.now(), by=None)
    shown = await root.page(f"/admin/people/{bob}")
    assert "They can sign in, and let tools use their memory." in shown
    assert "Disable…" not in await root.page(f"/admin/people/{me}"), "an admin is no admin first"
    assert (await root.press(f"/admin/people/{me}/disabled", disabled="true")).status_code == 409
    for _ in range(2):
        assert (await root.press(f"/admin/people/{bob}/disabled", disabled="true")).status_code == 303
    assert (await client.get("/v1/whoami", headers=bearer(key))).status_code == 401
    assert (await bobs.get("/memory")).headers["location"] == "/login"
    assert (await client.post("/login", data={"code": link}, headers=OWN)).status_code == 404
    for make in (key_of(harness, "bob"), key_of(harness, "bob", "claude"), cookie_of(harness, "bob")):
        with pytest.raises(Refused, match="disabled this person"):
            await make
    account = OpenIdAccount("https://login.example", "bob", "bob")
    async with harness.app.database.transaction(here.tenant_id) as tx:
        login = LoginEntry(uuid.uuid4(), bob, account.issuer, "bob", harness.clock.now(), None)
        await tx.openid_logins.connect(login, account.digest)
    with pytest.raises(Refused, match="disabled this person"):
        await sign_in_by_account(
            harness.app.database, here.tenant, account, "x", secrets.token_bytes(32), harness.clock.now()
        )
    said = (await harness.command("bob", "/nexus landmark list", **DM)).text
    assert "no landmarks" in said, "chats have their own ways"
    assert "Disabled since" in await root.page(f"/admin/people/{bob}")
    assert "disabled" in (await root.page("/admin/people")).partition("bob")[2][:300]
    acts = [each for each in await acts_of(harness) if each[0].startswith("person.")]
    assert acts == [("person.disabled", me, (bob,))]
    admins = bearer(await key_of(harness, "root"))
    assert (await client.patch(f"/v1/admin/users/{bob}", json={"admin": True}, headers=admins)).status_code == 409
    enabled = await client.patch(f"/v1/admin/users/{bob}", json={"disabled": False}, headers=admins)
    assert (enabled.status_code, enabled.json()["disabled_since"]) == (200, None)
    assert (await client.get("/v1/whoami", headers=bearer(key))).status_code == 401, "what was ended stays ended"
    assert (await client.get("/v1/whoami", headers=bearer(await key_of(harness, "bob")))).status_code == 200
    assert (await Person(client, await cookie_of(harness, "bob")).get("/memory")).status_code == 200


async def test_who_signs_in_while_they_are_disabled_is_not_let_in(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root, bob = await root_of(harness, client), (await person(harness, "bob")).id
    await root.page("/admin/people")
    links, here = [], harness.workspace()
    for _ in range(6):
        async with harness.app.database.transaction(here.tenant_id) as tx:
            await tx.people.set_disabled(bob, None)
            links = [await make_login_link(tx, here.tenant, bob, secrets.token_bytes(32), harness.clock.now(), by=None)]
        await asyncio.gather(
            client.post("/login", data={"code": links[0]}, headers=OWN),
            root.press(f"/admin/people/{bob}/disabled", disabled="true"),
        )
        async with harness.app.database.transaction(here.tenant_id, "read") as tx:
            assert await tx.people.disabled_since(bob) is not None
            assert await tx.web_sessions.of([bob], harness.clock.now()) == []


async def test_all_is_well_is_not_said_above_what_is_worth_knowing(harness: AppHarness) -> None:
    served = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        text = re.sub(r"\s+", " ", await (await root_of(harness, client)).page("/admin"))
    assert "<p>Nothing is wrong. Worth knowing: Models, Backup.</p>" in text
    assert "All is well" not in text


async def test_health_says_what_is_wrong_and_what_to_do(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await root_of(harness, client)
    text = await root.page("/admin")
    assert "One thing is wrong: Discord." in re.sub(r"\s+", " ", text)
    assert "not connected: Nexus tries again by itself" in text
    harness.clock.tick(timedelta(hours=3).total_seconds())
    assert "run the job that seals them" in await root.page("/admin")
    await harness.app.audit.seal(harness.workspace().tenant_id)
    assert "every row is sealed" in await root.page("/admin")
    key = bearer(await key_of(harness, "root"))
    found = (await client.get("/v1/admin/health", headers=key)).json()["items"]
    assert (found[0]["name"], found[0]["ok"]) == ("discord", False)


async def test_jobs_are_run_by_a_button_and_backups_listed(
    harness: AppHarness, client: httpx2.AsyncClient, jobs: ServedJobs
) -> None:
    root = await root_of(harness, client)
    await harness.say("alice", "good morning", **ROOM)
    assert "not run yet" in await root.page("/admin")
    for name in ("audit", "backup"):
        begun = await root.press(f"/admin/jobs/{name}")
        assert begun.headers["location"] == "/admin#jobs"
    await asyncio.gather(*jobs._begun)
    assert "1 is running" in await root.page("/admin")
    url = harness.app.settings.database_url
    assert url is not None
    other = PostgresProcessLocks(url, PROCESS_NUMBERS << RANDOM_BITS)
    await other.open()
    await other.take([uuid.uuid4()])
    assert "2 are running" in await root.page("/admin")
    await other.close()
    key = bearer(await key_of(harness, "root"))
    found = (await client.get("/v1/admin/jobs", headers=key)).json()["items"]
    states = {each["name"]: each["last"] and each["last"]["state"] for each in found}
    assert (states["audit"], states["day"]) == ("done", None)
    assert (await root.press("/admin/jobs/nonsense")).status_code == 404
    assert (await client.post("/v1/admin/jobs/nonsense/run", headers=key)).status_code == 404
    assert (await client.post("/v1/admin/jobs/day/run", headers=key)).status_code == 202
    await asyncio.gather(*jobs._begun)
    backups = (await client.get("/v1/admin/backups", headers=key)).json()["items"]
    made = states["backup"] == "done"
    assert len(backups) == made
    assert ("None in the data folder yet." in await root.page("/admin")) != made


async def test_the_audit_log_is_filtered_verified_and_taken(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await root_of(harness, client)
    me = (await person(harness, "root")).id
    bob = (await person(harness, "bob")).id
    await harness.command("bob", "/nexus opt-out --yes", **DM)
    await harness.app.audit.seal(harness.workspace().tenant_id)
    rows = await root.page("/admin/audit")
    assert "opted out of being stored" in rows
    listed = rows.split('<ul class="events">')[1]
    assert "became an admin" in listed
    of_act = (await root.page("/admin/audit?act=person.opted_out")).split('<ul class="events">')[1]
    assert ("opted out of being stored" in of_act, "became an admin" in of_act) == (True, False)
    of_bob = (await root.page(f"/admin/audit?user={bob}")).split('<ul class="events">')[1]
    assert ("opted out of being stored" in of_bob, "became an admin" in of_bob) == (True, False)
    day = harness.clock.now().date()
    assert "Nothing fits that." in await root.page(f"/admin/audit?until={day - timedelta(days=2)}")
    for odd in ("?act=x&user=x&since=x&until=x", "?since=0001-01-01&until=9999-12-31", "?cursor="):
        assert (await root.get(f"/admin/audit{odd}")).status_code in (200, 422)
    assert (str(AuditAct.READ_AUDIT), me, ()) in await acts_of(harness)
    verified = await root.press("/admin/audit/verify")
    assert "The log is whole" in verified.text
    looked = (await root.page("/admin/audit?act=read.audit")).split('<ul class="events">')[1].split("</ul>")[0]
    assert looked.count("looked at the audit log") == 1, "rows that say the same are one"
    assert re.search(r" · \d+ times since \d\d:\d\d", looked)
    taken = await root.get(f"/admin/audit/export?user={bob}")
    assert "attachment" in taken.headers["content-disposition"]
    lines = [json.loads(line) for line in taken.text.splitlines()]
    assert [each["act"] for each in lines].count("person.opted_out") == 1
    key = bearer(await key_of(harness, "root"))
    assert (await client.get("/v1/admin/audit/verification", headers=key)).json()["whole"] is True
    first = (await client.get("/v1/admin/audit", params={"limit": 2}, headers=key)).json()
    second = (await client.get("/v1/admin/audit", params={"limit": 2, "cursor": first["next"]}, headers=key)).json()
    ids = [each["id"] for each in first["items"] + second["items"]]
    assert len(set(ids)) == 4
    assert (await client.get("/v1/admin/audit", params={"act": "x"}, headers=key)).status_code == 422


async def test_settings_are_shown_and_those_of_recall_changed(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await root_of(harness, client)
    shown = await root.page("/admin/settings")
    assert "@nexus" in shown
    assert "nexus.toml" in shown
    names, texts = ["strategy", "top_k", "recall_tokens"], ["recent", "3", "4000"]
    changed = await root.press("/admin/settings", group="retrieval", name=names, value=texts)
    assert (changed.status_code, changed.headers["location"]) == (303, "/admin/settings#retrieval")
    said = (await harness.command("root", "/nexus settings", **DM)).text
    assert ("strategy = recent" in said, "top_k = 3" in said, "recall_tokens = 4000  (as configured)" in said) == (
        True, True, True,
    )  # fmt: skip
    me = (await person(harness, "root")).id
    assert [act for act, actor, _ in await acts_of(harness) if actor == me].count("setting.set") == 2
    assert "Take that again" in await root.page("/admin/settings")
    await root.press("/admin/settings", group="retrieval", reset="top_k")
    assert "top_k = 3" not in (await harness.command("root", "/nexus settings", **DM)).text
    for name, value in (("top_k", "1000"), ("strategy", "best"), ("persona", "x"), ("top_k", "x" * 41)):
        assert (await root.press("/admin/settings", group="retrieval", name=name, value=value)).status_code == 422
    assert (await root.press("/admin/settings", group="retrieval", reset="persona")).status_code == 422
    assert (await root.press("/admin/settings", group="retrieval", name="top_k")).status_code == 422
    assert (await root.press("/admin/settings", group="audit", name="days", value="1")).status_code == 404
    key = bearer(await key_of(harness, "root"))
    sent = {"top_k": 5, "strategy": None}
    found = (await client.patch("/v1/admin/settings", json=sent, headers=key)).json()
    values = {each["name"]: each["value"] for each in found["retrieval"]}
    assert (values["top_k"], values["strategy"]) == (5, "hybrid")
    assert found["configured"]["plan"] == ""
    for refused in ({"top_k": 1_000}, {"persona": "x"}, {"strategy": "best"}):
        assert (await client.patch("/v1/admin/settings", json=refused, headers=key)).status_code == 422
    bobs = bearer(await key_of(harness, "bob"))
    assert (await client.patch("/v1/admin/settings", json=sent, headers=bobs)).status_code == 403


async def test_how_long_what_is_kept_is_changed_once_it_is_known_what_that_erases(
    harness: AppHarness, client: httpx2.AsyncClient, jobs: ServedJobs
) -> None:
    root = await root_of(harness, client)
    await harness.say("bob", "the heron likes the pond", **ROOM)
    harness.clock.tick(timedelta(days=20).total_seconds())
    root = await root_of(harness, client)
    key = bearer(await key_of(harness, "root"))
    await root.page("/admin/settings")
    kept_days: dict[str, str | list[str]] = {
        "group": "retention",
        "name": ["keep_days", "prompt_days", "usage_days"],
        "value": ["10", "30", "400"],
    }
    asked = await root.press("/admin/settings", **kept_days)
    assert asked.status_code == 409
    said = re.sub(r"\s+", " ", asked.text)
    assert re.search(r"[1-9]\d* stored messages? (is|are) older than 10 days now", said)
    refused = await client.patch("/v1/admin/settings", json={"keep_days": 10}, headers=key)
    assert refused.status_code == 409
    assert re.search(r"messages that are older than 10 days \([1-9]\d* now\)", refused.json()["detail"])
    assert "prompts" not in refused.json()["detail"]
    assert "keep_days = for ever  (in nexus.toml)" in (await harness.command("root", "/nexus settings", **DM)).text
    await schedule.run(harness.app, "retention", harness.clock.now())
    assert "heron" in (await harness.command("bob", "/nexus recall heron", **ROOM)).text
    kept = await root.press("/admin/settings", **kept_days, confirmed="true")
    assert kept.headers["location"] == "/admin/settings#retention"
    assert "keep_days = 10  (on the web page Admin)" in (await harness.command("root", "/nexus settings", **DM)).text
    await schedule.run(harness.app, "retention", harness.clock.now())
    assert "heron" not in (await harness.command("bob", "/nexus recall heron", **ROOM)).text
    longer = await client.patch("/v1/admin/settings", json={"keep_days": 20, "prompt_days": 60}, headers=key)
    assert longer.status_code == 200, "what keeps more asks nothing"
    lines = {each["name"]: (each["value"], each["configured"]) for each in longer.json()["retention"]}
    assert lines == {"keep_days": (20, 0), "prompt_days": (60, 30), "usage_days": (400, 400)}
    back = {"group": "retention", "reset": "prompt_days"}
    assert (await root.press("/admin/settings", **back)).status_code == 409
    assert (await root.press("/admin/settings", **back, confirmed="true")).status_code == 303
    assert (await root.press("/admin/settings", group="retention", reset="keep_days")).status_code == 303
    shown = await root.page("/admin/settings")
    assert "Changed here" not in shown.partition('id="retention"')[2].partition("</section>")[0]
    for name, value in (("keep_days", "36501"), ("usage_days", "30"), ("prompt_days", "0"), ("audit_days", "9")):
        wrong = {"group": "retention", "name": name, "value": value, "confirmed": "true"}
        assert (await root.press("/admin/settings", **wrong)).status_code == 422, wrong
    for odd in ({"keep_days": -1}, {"audit_days": 5}, {"usage_days": 30}, {"keep_days": "9"}):
        assert (await client.patch("/v1/admin/settings?confirm=true", json=odd, headers=key)).status_code == 422, odd
    acts = sorted(act for act, _, _ in await acts_of(harness) if act.startswith("setting."))
    assert acts == ["setting.reset"] * 2 + ["setting.set"] * 3


async def test_agents_quarantine_and_the_plan_are_changed_over_nexus_toml_and_back(settings: Settings) -> None:
    """By one way, which the page and the API share; every process takes it, and the audit log has it."""
    changed = {
        "agents": (AgentSettings(model="gpt-4o", persona="You are brief."),),
        "plans": {"free": PlanSettings(entries=100, searches=50)},
        "plan": "free",
    }
    async with (
        open_harness(settings.model_copy(update=changed), model=Model()) as harness,
        served_at(web_app(harness.app, Metrics([]), {}, None)) as url,
        httpx2.AsyncClient(base_url=url, timeout=60) as client,
    ):
        root, tenant = await root_of(harness, client), harness.workspace().tenant_id
        directory = harness.app.directory
        page = await root.page("/admin/settings")
        for shown in ("You are brief.", 'value="gpt-4o"', 'value="100"', "0 used, 50 left.", "Nothing waits now."):
            assert shown in page, shown
        for group, name, value in (
            ("agents.nexus", "persona", "You speak of herons."),
            ("agents.nexus", "model", "gpt-9"),
            ("agents.nexus", "name", "Heron"),
            ("agents.nexus", "fallback_models", "gpt-8, gpt-7"),
            ("agents.nexus", "tools", "off"),
            ("quarantine", "guest", "off"),
            ("plan", "searches", ""),
            ("plan", "writes", "7"),
        ):
            pressed = await root.press("/admin/settings", group=group, name=name, value=value)
            assert pressed.status_code == 303, (group, name, pressed.text)
        await until(lambda: directory.plan(tenant) == Plan("free", 100, None, {Operation.WRITES: 7}))
        [agent] = directory.agents(tenant)
        assert (agent.persona, agent.model, agent.tools) == ("You speak of herons.", "gpt-9", False)
        assert (agent.name, agent.fallback_models) == ("Heron", ("gpt-8", "gpt-7"))
        for name, value in (("name", " "), ("fallback_models", ",".join("abcdef")), ("model", "")):
            pressed = await root.press("/admin/settings", group="agents.nexus", name=name, value=value)
            assert pressed.status_code == 422, (name, pressed.text)
        assert directory.quarantine(tenant) == {Trust.TOOL}
        other = await TenantDirectory.load(harness.app.settings, harness.app.database)
        assert other.agents(tenant) == (agent,)
        page = await root.page("/admin/settings")
        for shown in (
            "Changed here. In nexus.toml: gpt-4o.",
            "Changed here. In nexus.toml: 50.",
            "herons",
            "gpt-8, gpt-7",
        ):
            assert shown in page, shown
        key = bearer(await key_of(harness, "root"))
        back = {"model": None, "persona": None, "name": "Ibis", "fallback_models": ["gpt-6"]}
        sent = {"agents": {"nexus": back}, "plan": {"writes": None, "entries": "unlimited"}}
        found = (await client.patch("/v1/admin/settings", json=sent, headers=key)).json()
        lines = {each["name"]: (each["value"], each["configured"]) for each in found["plan"]}
        assert (lines["entries"], lines["writes"], lines["searches"]) == ((None, 100), (None, None), (None, 50))
        await until(lambda: directory.agents(tenant)[0].model == "gpt-4o")
        assert (directory.agents(tenant)[0].name, directory.agents(tenant)[0].fallback_models) == ("Ibis", ("gpt-6",))
        for odd in (
            {"agents": {"nexus": {"slug": "x"}}},
            {"agents": {"nexus": {"window": 1}}},
            {"plan": {"writes": -1}},
            {"quarantine": {"member": True}},
        ):
            assert (await client.patch("/v1/admin/settings", json=odd, headers=key)).status_code == 422, odd
        nobody = {"agents": {"nobody": {"persona": "x"}}}
        assert (await client.patch("/v1/admin/settings", json=nobody, headers=key)).status_code == 404
        acts = [act for act, _, _ in await acts_of(harness) if act.startswith("setting.")]
        assert (acts.count("setting.set"), acts.count("setting.reset")) == (11, 3)


async def test_admins_of_one_organisation_of_several_change_nothing_that_costs_the_operator(settings: Settings) -> None:
    agents = (AgentSettings(model="gpt-4o"),)
    async with (
        open_harness(settings.model_copy(update={"agents": agents}), model=Model()) as harness,
        served_at(web_app(harness.app, Metrics([]), {}, None)) as url,
        httpx2.AsyncClient(base_url=url, timeout=60) as client,
    ):
        await harness.say("eve", "good morning", workspace="rival", **ROOM)
        root, key = await root_of(harness, client), bearer(await key_of(harness, "root"))
        page = await root.page("/admin/settings")
        assert ('name="value" value="gpt-4o"' in page, "sets it." in page) == (False, True)
        for group, name, value in (("agents.nexus", "model", "x"), ("plan", "entries", "9"), ("plan", "tokens", "")):
            assert (await root.press("/admin/settings", group=group, name=name, value=value)).status_code == 403
        assert (await client.patch("/v1/admin/settings", json={"plan": {"reads": 5}}, headers=key)).status_code == 403
        own = await root.press("/admin/settings", group="agents.nexus", name="persona", value="Be brief.")
        assert own.status_code == 303
        await until(lambda: harness.app.directory.agents(harness.workspace().tenant_id)[0].persona == "Be brief.")
        assert harness.app.directory.agents(harness.workspace("rival").tenant_id)[0].persona != "Be brief."


async def test_no_name_is_markup(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await root_of(harness, client)
    for bite in BITES:
        found = await person(harness, bite)
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            await tx.people.set_admin(found.id, True)
    pages = [await root.page(path) for path in PAGES]
    pages += [await root.page(f"/admin/people/{each}") for each in re.findall(r"people/([0-9a-f-]{36})", pages[1])]
    for text in pages:
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "<b hx-get" not in text
        assert " 49 " not in text


def test_an_agent_that_was_told_its_name_alone_is_told_the_new_one() -> None:
    given = configured_agent(AgentSettings(persona=PERSONA.format(name="Nexus")), uuid.uuid4())
    named = agent_over(given, {"agents.nexus.name": '"Heron"'})
    assert named.persona == PERSONA.format(name="Heron")
    assert agent_over(replace(given, persona="Be brief."), {"agents.nexus.name": '"Heron"'}).persona == "Be brief."

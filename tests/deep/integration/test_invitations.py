"""Coming to an organisation by a link: what it opens to whom, once, and how the first admin gets in."""

import asyncio
import html
import re
import secrets
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, unquote

import httpx2
import pytest

from bot.console import first_admin, operations
from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.metrics import Metrics
from composer.errors import Unavailable
from composer.model import Trust
from composer.people.credentials.invitations import invitation_url, let_first_admin_in
from composer.people.credentials.sign_in import make_login_link
from composer.repositories.audit import AuditAct
from composer.settings import TenantSettings
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.pages import BITES, OWN, Person
from tests.support.web import served_at

WEEK = 7 * 24 * 3_600


@asynccontextmanager
async def served_with(harness: AppHarness, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    changed = harness.app.settings.model_copy(update={"requests_per_minute": 10_000, **settings})
    served = web_app(replace(harness.app, settings=changed), Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture
async def client(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    async with served_with(harness) as client:
        yield client


async def admin(harness: AppHarness, client: httpx2.AsyncClient, name: str = "root") -> Person:
    """An admin's browser, with a page open."""
    found = await person(harness, name)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(found.id, True)
    browser = Person(client, await cookie_of(harness, name))
    await browser.page("/invitations")
    return browser


async def invited(browser: Person, name: str = "") -> str:
    """The code of a new invitation."""
    made = await browser.press("/invitations", name=name)
    assert made.status_code == 200, made.text
    [code] = set(re.findall(r"/invite/(nxi_\S+?)<", made.text))
    return str(code)


async def accepted(client: httpx2.AsyncClient, code: str, name: str, **headers: str) -> httpx2.Response:
    client.cookies.clear()
    answer = await client.post("/invite", data={"code": code, "name": name}, headers=OWN | headers)
    client.cookies.clear()
    return answer


def cookie_in(answer: httpx2.Response) -> str:
    assert answer.status_code == 303, answer.text
    name, _, rest = answer.headers["set-cookie"].partition("=")
    assert name == COOKIE_ON_LOCALHOST
    return str(rest.partition(";")[0])


async def names(harness: AppHarness) -> list[str]:
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        return await tx.people.every_name()


async def test_who_accepts_is_a_person_of_the_organisation_and_has_its_pages(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness, client)
    code = await invited(root, "Dana")
    listed = await root.page("/invitations")
    assert "Dana" in listed
    assert code not in listed, "a link is shown once"
    shown = await client.get(f"/invite/{code}")
    assert "root invites you to" in shown.text
    assert 'value="Dana"' in shown.text
    dana = Person(client, cookie_in(await accepted(client, code, "  Dana\tMoss ")))
    assert "Dana Moss" in await dana.page("/ask")
    assert "Nobody is invited just now." in await root.page("/invitations")
    answer = await dana.press("/ask", text="remember that I like herons")
    assert answer.status_code == 303
    assert (await dana.press("/tools", vendor="claude")).status_code == 200, "a member makes keys"
    for path in ("/memory", "/waiting", "/privacy"):
        await dana.page(path)
    assert (await dana.get("/invitations")).status_code == 404, "who is invited is no admin"
    who = {each["name"]: each for each in (await _people(harness, client))}
    assert (who["Dana Moss"]["admin"], who["Dana Moss"]["platforms"]) == (False, [])


async def _people(harness: AppHarness, client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    answer = await client.get("/v1/admin/users", headers=bearer(await key_of(harness, "root")))
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def test_a_preview_of_the_link_uses_nothing_up_and_its_button_works_once(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    code = await invited(await admin(harness, client))
    before = await names(harness)
    for _ in range(3):
        await client.head(f"/invite/{code}")
        shown = await client.get(f"/invite/{code}", headers={"Sec-Fetch-Site": "cross-site"})
        assert shown.status_code == 200
    assert shown.headers["referrer-policy"] == "strict-origin", "no address with the code goes anywhere"
    assert shown.headers["cache-control"] == "private, no-store"
    assert "set-cookie" not in shown.headers
    assert await names(harness) == before
    cookie_in(await accepted(client, code, "Dana"))
    again = await accepted(client, code, "Erik")
    assert (again.status_code, "set-cookie" in again.headers) == (404, False)
    assert (await client.get(f"/invite/{code}")).status_code == 404
    assert await names(harness) == sorted([*before, "Dana"])


async def test_wrong_used_revoked_and_old_invitations_are_answered_alike(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root, tenant = await admin(harness, client), harness.workspace().tenant
    used, revoked, old = [await invited(root) for _ in range(3)]
    cookie_in(await accepted(client, used, "Dana"))
    await root.page("/invitations")
    [id, _] = re.findall(r"/invitations/([0-9a-f-]{36})/revoke", await root.page("/invitations"))
    assert (await root.press(f"/invitations/{id}/revoke")).status_code == 303
    assert (await root.press(f"/invitations/{id}/revoke")).status_code == 404
    harness.clock.tick(WEEK)
    elsewhere = f"nxi_none_{'0' * 64}"
    wrong = [used, revoked, old, f"nxi_{tenant}_{'0' * 64}", elsewhere, old.replace("nxi", "nxl"), old[:-1]]
    answers = {(await client.get(f"/invite/{each}")).text for each in wrong}
    assert len(answers) == 1
    posted = {(await accepted(client, each, "Erik")).text for each in wrong}
    assert posted == answers
    assert "Erik" not in await names(harness)


async def test_a_name_is_cleaned_and_is_that_of_no_agent(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    code = await invited(await admin(harness, client))
    for name in (
        "nexus",
        "Nexus Bot",
        "system",
        "You",
        "someone",
        "",
        " ",
        "🙂",
        "x" * 61,
    ):
        answer = await accepted(client, code, name)
        assert answer.status_code == 422, name
        assert "set-cookie" not in answer.headers
        assert 'role="alert"' in answer.text
        assert code in answer.text, "the link still works"
    for bite in BITES:
        answer = await accepted(client, await invited(await admin(harness, client), bite), bite)
        assert answer.status_code == 303 or bite not in answer.text
    cookie_in(await accepted(client, code, "Alice Moss"))
    assert "Alice Moss" in await names(harness)


async def test_a_link_tells_nobody_who_is_there_before_it_is_used_up(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await harness.say("alice", "hello", room="general")
    root, long, joined = await admin(harness, client), "Dana " * 12, dict[str, str]()
    await harness.say(long.strip(), "hello", room="general")
    for name in ("alice", "ALICE", "\u0430lice", "Alice!", long, "zoe"):
        code, before = await invited(root), await names(harness)
        answer = await accepted(client, code, name)
        assert (answer.status_code, answer.headers["location"], answer.text) == (303, "/", ""), name
        assert (await client.get(f"/invite/{code}")).status_code == 404
        [joined[name]] = set(await names(harness)) - {*before}
        assert joined[name] in await Person(client, cookie_in(answer)).page("/ask")
    assert joined["alice"] == "alice 2"
    assert joined["ALICE"] == "ALICE 3"
    assert joined["\u0430lice"].endswith(" 4")
    assert joined["Alice!"] == "Alice! 5"
    assert joined[long].endswith(" 2")
    assert len(joined[long]) <= 60
    assert joined["zoe"] == "zoe"


async def test_no_page_of_another_site_makes_anybody_join_and_no_session_is_kept(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness, client)
    code = await invited(root)
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {},
    ):
        answer = await client.post("/invite", data={"code": code, "name": "Dana"}, headers=headers)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    before = root.cookie
    here = {"Cookie": f"{COOKIE_ON_LOCALHOST}={before}"}
    assert "signed in here already" in (await client.get(f"/invite/{code}", headers=here)).text
    joined = cookie_in(await accepted(client, code, "Dana", **here))
    assert joined != before, "a cookie that was there is not made one of the new person"
    assert "root" in await root.page("/ask")
    forced = f"nxs_{harness.workspace().tenant}_{'1' * 64}"
    code = await invited(root)
    joined = cookie_in(await accepted(client, code, "Erik", Cookie=f"{COOKIE_ON_LOCALHOST}={forced}"))
    assert joined != forced


async def test_only_admins_invite_and_a_form_counts_from_a_page_of_theirs(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness, client)
    await invited(root, "Dana")
    await harness.say("bob", "hello", room="general")
    bob = Person(client, await cookie_of(harness, "bob"))
    page = await bob.page("/ask")
    assert "/invitations" not in page
    [id] = re.findall(r"/invitations/([0-9a-f-]{36})/revoke", await root.page("/invitations"))
    for path in ("/invitations", f"/invitations/{id}/revoke"):
        assert (await bob.press(path)).status_code == 404
        assert (await Person(client, root.cookie, "0" * 32).press(path)).status_code == 403
        assert (await root.press(path, {"Sec-Fetch-Site": "cross-site"})).status_code != 200
    stranger = Person(client, await cookie_of(harness, "zoe"))
    refused, nothing = await stranger.get("/invitations"), await stranger.get("/admin")
    assert (refused.status_code, refused.text) == (404, nothing.text)
    assert re.findall(r"/invitations/([0-9a-f-]{36})/revoke", await root.page("/invitations")) == [id]


async def test_an_invitation_ends_with_the_rights_of_who_made_it(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness, client)
    first, second = await invited(root), await invited(root)
    await operations.set_admin(harness.app, harness.name, "root", False)
    assert (await client.get(f"/invite/{first}")).status_code == 404
    await operations.set_admin(harness.app, harness.name, "root", True)
    assert (await client.get(f"/invite/{first}")).status_code == 404, "for good"
    third = await invited(root)
    assert (await client.get(f"/invite/{third}")).status_code == 200
    await harness.command("root", "/nexus forget everything --yes", dm="nexus")
    for code in (first, second, third):
        assert (await accepted(client, code, "Dana")).status_code == 404


async def test_the_api_does_the_same_and_shows_a_link_once(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await admin(harness, client)
    key = bearer(await key_of(harness, "root"))
    once = key | {"Idempotency-Key": "one"}
    made = await client.post("/v1/admin/invitations", json={"name": "Dana"}, headers=once)
    assert made.status_code == 201
    assert (made.json()["by"], made.json()["name"]) == ("root", "Dana")
    again = await client.post("/v1/admin/invitations", json={"name": "Dana"}, headers=once)
    assert again.status_code == 409
    assert made.json()["link"] not in again.text
    listed = (await client.get("/v1/admin/invitations", headers=key)).json()["items"]
    assert listed == [{name: value for name, value in made.json().items() if name != "link"}]
    code = made.json()["link"].rpartition("/")[2]
    assert (await client.get(f"/invite/{code}")).status_code == 200
    assert (await client.delete(f"/v1/admin/invitations/{listed[0]['id']}", headers=key)).status_code == 204
    assert (await client.get(f"/invite/{code}")).status_code == 404
    for wrong in ({"name": "x" * 61}, {"mail": "dana@example.com"}, {"email": f"{'x' * 250}@example.com"}):
        assert (await client.post("/v1/admin/invitations", json=wrong, headers=key)).status_code == 422


async def test_an_invitation_may_name_an_address_to_write_to(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await admin(harness, client)
    key = bearer(await key_of(harness, "root"))
    made = await client.post("/v1/admin/invitations", json={"email": " Dana@Example.com "}, headers=key)
    assert (made.status_code, made.json()["email"]) == (201, "dana@example.com")
    assert "dana@example.com" in await root.page("/invitations")
    for wrong in ("dana", "@example.com", "dana@", "dana@com", "da na@example.com"):
        answer = await client.post("/v1/admin/invitations", json={"email": wrong}, headers=key)
        assert (answer.status_code, "dana@example.com" in answer.text) == (422, True), wrong
    shown = (await root.press("/invitations", name="Erin", email="erin+new@example.com")).text
    mail = re.search(r'href="mailto:([^"?]+)\?([^"]+)"', shown)
    link = re.search(r"http[^<]*/invite/[^<\s]+", shown)
    assert mail is not None
    assert link is not None
    body = parse_qs(html.unescape(mail[2]))["body"][0]
    assert (unquote(mail[1]), link[0] in body) == ("erin+new@example.com", True)
    code = link[0].rpartition("/")[2]
    assert (await accepted(client, code, "Erin")).status_code == 303, "where no account signs in, the link does"


async def test_two_who_accept_at_once_are_one_and_the_log_holds_no_link(
    harness: AppHarness, client: httpx2.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await invited(await admin(harness, client))
    answers = await asyncio.gather(
        *[
            client.post("/invite", data={"code": code, "name": f"Dana {n}"}, headers=OWN)
            for n in ("One", "Two", "Three")
        ]
    )
    assert sorted(each.status_code for each in answers) == [303, 404, 404]
    assert len([each for each in await names(harness) if each.startswith("Dana")]) == 1
    said = capsys.readouterr()
    assert code not in said.out + said.err
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        acts = [each.act for each in await tx.audit.find(limit=100)]
    assert acts.count(AuditAct.PERSON_JOINED) == acts.count(AuditAct.PERSON_INVITED) == 1


async def test_what_another_organisation_does_changes_nothing_of_an_invitation(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    code = await invited(await admin(harness, client), "Dana")
    before = (await client.get(f"/invite/{code}")).text
    await harness.say("Dana", "zqcanary", room="general", workspace="umbrella")
    await person(harness, "Dana", workspace="umbrella")
    assert (await client.get(f"/invite/{code}")).text == before
    dana = Person(client, cookie_in(await accepted(client, code, "Dana")))
    for path in ("/ask", "/memory", "/waiting", "/tools", "/privacy"):
        assert "zqcanary" not in await dana.page(path)


# --- the first admin -------------------------------------------------------------------------------------------------


async def first(harness: AppHarness, tenant: str | None = None) -> Any:
    here = harness.workspace(tenant)
    app = harness.app
    agents = app.directory.agents(here.tenant_id)
    return await let_first_admin_in(app.database, here, agents, secrets.token_bytes(32), app.clock.now())


async def test_the_first_admin_of_a_new_organisation_gets_in_by_a_link_once(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    earlier, made = await first(harness), await first(harness)
    assert made.name is None
    assert (await client.get(f"/invite/{earlier.code}")).status_code == 404, "a new one takes its place"
    assert "Be the first admin of" in (await client.get(f"/invite/{made.code}")).text
    ann = Person(client, cookie_in(await accepted(client, made.code, "Ann")))
    assert "admin" in await ann.page("/invitations")
    assert (await accepted(client, made.code, "Ben")).status_code == 404
    assert await first(harness) is None, "from then on none is made"
    code = await invited(ann, "Ben")
    assert "Ann invites you" in (await client.get(f"/invite/{code}")).text
    harness.clock.tick(31 * 24 * 3_600)
    assert await first(harness) is None, "also after their web session has ended"


async def test_an_admin_who_never_signed_in_is_the_first(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    waiting = await first(harness)
    await harness.say("alice", "hello", room="general")
    await operations.set_admin(harness.app, harness.name, "alice", True)
    made = await first(harness)
    assert made.name == "alice"
    assert made.code.startswith("nxl_")
    assert (await client.get("/login", params={"code": made.code})).status_code == 200
    await cookie_of(harness, "alice")
    assert await first(harness) is None
    assert (await accepted(client, waiting.code, "Eve")).status_code == 404, "nobody becomes a second first admin"


async def test_nexus_run_prints_the_link_of_each_organisation_that_has_no_admin(
    harness: AppHarness, client: httpx2.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    await admin(harness, client)
    await first_admin.show_first_links(harness.app)
    assert "/invite/" not in capsys.readouterr().out, "here an admin has signed in"
    settings = harness.app.settings.model_copy(
        update={"tenants": {"acme": TenantSettings(), "larch": TenantSettings()}}
    )
    await first_admin.show_first_links(replace(harness.app, settings=settings))
    printed = capsys.readouterr().out.splitlines()
    [link] = [each for each in printed if re.fullmatch(r"http://localhost:\d+/invite/nxi_larch_[0-9a-f]{64}", each)]
    assert (await client.get(link[link.index("/invite") :])).status_code == 200
    assert "acme" not in str(printed)
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        assert await tx.people.trust((await tx.people.admins())[0][0]) is Trust.MEMBER


async def test_a_start_goes_on_without_the_database(
    harness: AppHarness, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(app: object) -> None:
        raise Unavailable("The database does not answer; try again in a moment.")

    monkeypatch.setattr(first_admin, "show_first_links", away)
    await first_admin.try_first_links(harness.app)
    assert not capsys.readouterr().out


def test_a_link_is_below_the_address_of_the_web_port() -> None:
    assert invitation_url("https://nexus.example.com", "nxi_x") == "https://nexus.example.com/invite/nxi_x"


async def test_a_person_signs_in_another_browser_of_theirs(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    code = await invited(await admin(harness, client))
    dana = Person(client, cookie_in(await accepted(client, code, "Dana")))
    await dana.page("/tools")
    assert (await Person(client, dana.cookie, "0" * 32).press("/tools/browser")).status_code == 403
    shown = await dana.press("/tools/browser")
    [link] = set(re.findall(r"/login\?code=(nxl_\w+)", shown.text))
    used = await client.post("/login", data={"code": link}, headers=OWN)
    other = Person(client, cookie_in(used))
    assert "Dana" in await other.page("/ask")
    assert (await other.page("/tools")).count("A browser") >= 2


async def joined(harness: AppHarness, client: httpx2.AsyncClient, root: Person, name: str) -> tuple[Person, str]:
    """Somebody who came by an invitation, and their id."""
    browser = Person(client, cookie_in(await accepted(client, await invited(root), name)))
    await browser.page("/ask")
    who = {each["name"]: each["id"] for each in await _people(harness, client)}
    return browser, str(who[name])


def link_in(page: str) -> str:
    [link] = set(re.findall(r"/login\?code=(nxl_[0-9a-z_]+)", page))
    return str(link)


async def test_an_admin_lets_in_again_who_came_by_an_invitation_and_has_no_browser(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness, client)
    dana, id = await joined(harness, client, root, "Dana")
    page = f"/admin/people/{id}"
    assert "A browser is signed in as them" in await root.page(page)
    refused = await root.press(f"{page}/link")
    assert (refused.status_code, "A browser is signed in as them" in refused.text) == (403, True)
    assert (await dana.press("/logout")).status_code == 303
    assert "Make a link to sign in" in await root.page(page)
    first = link_in((await root.press(f"{page}/link")).text)
    second = link_in((await root.press(f"{page}/link")).text)
    harness.clock.tick(59 * 60)
    assert (await client.get("/login", params={"code": first})).status_code == 404, "the newer one ends it"
    assert "as Dana of" in (await client.get("/login", params={"code": second})).text
    signed = await client.post("/login", data={"code": second}, headers=OWN)
    client.cookies.clear()
    back = Person(client, cookie_in(signed))
    told = await back.page("/tools")
    assert "root, an admin, made a link that signs in as you" in told
    assert "made a link that signs in as you" not in await root.page("/tools")
    assert (await client.post("/login", data={"code": second}, headers=OWN)).status_code == 404, "once"
    root_id = (await person(harness, "root")).id
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        made = await tx.audit.find(act=AuditAct.LOGIN_LINK, user=uuid.UUID(id), limit=50)
    assert [(each.actor, each.users) for each in made] == [(root_id, (uuid.UUID(id),))] * 2


async def test_a_link_is_too_old_after_an_hour(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await admin(harness, client)
    dana, id = await joined(harness, client, root, "Dana")
    await dana.press("/logout")
    link = link_in((await root.press(f"/admin/people/{id}/link")).text)
    harness.clock.tick(61 * 60)
    assert (await client.get("/login", params={"code": link})).status_code == 404


async def test_a_link_ends_with_the_rights_of_whoever_made_it(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await admin(harness, client)
    dana, id = await joined(harness, client, root, "Dana")
    await dana.press("/logout")
    link = link_in((await root.press(f"/admin/people/{id}/link")).text)
    own = await own_link(harness, "root")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin((await person(harness, "root")).id, False)
    assert (await client.post("/login", data={"code": link}, headers=OWN)).status_code == 404
    assert (await client.post("/login", data={"code": own}, headers=OWN)).status_code == 303, "their own is theirs"


async def own_link(harness: AppHarness, name: str) -> str:
    """The code of a link that somebody has asked for."""
    found, here = await person(harness, name), harness.workspace()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        return await make_login_link(tx, here.tenant, found.id, bytes(32), harness.clock.now(), by=found.id)


async def test_no_link_opens_the_memory_of_who_can_get_in_alone_or_is_an_admin(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness, client)
    await harness.say("alice", "good morning", room="general")
    alice = (await person(harness, "alice")).id
    assert (await root.press(f"/admin/people/{alice}/link")).status_code == 403, "they have a DM to get one in"
    dana, id = await joined(harness, client, root, "Dana")
    await dana.press("/logout")
    await root.press(f"/admin/people/{id}/admin", admin="true")
    refused = await root.press(f"/admin/people/{id}/link")
    assert (refused.status_code, "whoever runs Nexus makes a link" in refused.text) == (403, True)
    await root.press(f"/admin/people/{id}/admin", admin="false")
    await root.press(f"/admin/people/{id}/disabled", disabled="true")
    assert (await root.press(f"/admin/people/{id}/link")).status_code == 403
    await root.press(f"/admin/people/{id}/disabled", disabled="false")
    assert (await root.press(f"/admin/people/{id}/link")).status_code == 200
    erik, _ = await joined(harness, client, root, "Erik")
    for path in (f"/admin/people/{id}/link", f"/admin/people/{alice}/link"):
        assert (await erik.press(path)).status_code == 404, "to a member there is no such page"


async def test_who_is_new_reads_what_to_do_first_and_whom_to_ask(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness, client)
    dana, _ = await joined(harness, client, root, "Dana")
    for path in ("/ask", "/rooms", "/team", "/you"):
        assert re.search(r"[Aa]sk (an admin: )?root\.", await dana.page(path)), path
    assert "What to do first" in await dana.page("/ask")
    signing_in = await client.get("/login")
    assert "ask an admin of your organisation, who makes a link for you" in signing_in.text
    assert "root" not in signing_in.text, "a stranger is told no name"
    await dana.press("/ask", text="remember that I like herons")
    assert "What to do first" not in await dana.page("/ask")


async def test_what_went_wrong_is_said_in_the_language_of_the_reader(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness, client)
    dana, id = await joined(harness, client, root, "Dana")
    german = OWN | {"Accept-Language": "de"}
    assert "In einem Browser ist diese Person angemeldet" in (await root.press(f"/admin/people/{id}/link", german)).text
    assert "In einem Browser ist diese Person" in (await root.get(f"/admin/people/{id}", **german)).text
    assert "Diesen Eintrag gibt es nicht" not in (await dana.get(f"/memory/{id}")).text
    assert "Nichts von dir hat diese ID" in (await dana.get(f"/memory/{id}", **german)).text
    assert (
        "Wähle einen Namen, in dem Buchstaben sind."
        in (await accepted(client, await invited(root), "...", **{"Accept-Language": "de"})).text
    )
    assert "Du bist hier nicht angemeldet." in (await client.get("/login", headers=german)).text


async def test_the_api_makes_that_link_by_the_same_rights(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await admin(harness, client)
    dana, id = await joined(harness, client, root, "Dana")
    key, path = bearer(await key_of(harness, "root")), f"/v1/admin/users/{id}/link"
    assert (await client.post(path, headers=key)).status_code == 403, "a browser is signed in as them"
    await dana.press("/logout")
    made = await client.post(path, headers=key | {"Idempotency-Key": "one"})
    assert made.status_code == 201, made.text
    assert "as Dana of" in (await client.get("/login", params={"code": made.json()["link"].partition("code=")[2]})).text
    assert (await client.post(path, headers=key | {"Idempotency-Key": "one"})).status_code == 409, "shown once"
    others = bearer(await key_of(harness, "alice"))
    assert (await client.post(path, headers=others)).status_code == 403
    assert (await client.post(f"/v1/admin/users/{uuid.uuid4()}/link", headers=key)).status_code == 404
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        assert await tx.audit.find(act=AuditAct.LOGIN_LINK, user=uuid.UUID(id), limit=5)

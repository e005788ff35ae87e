"""Signing in AI tools by OAuth: the whole way with the SDK's own client, over HTTP, and what people see of it."""

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.model import Trust
from composer.people.credentials.issuing import delete_credentials
from composer.people.credentials.leaving import end_access
from composer.repositories.oauth_clients import UNUSED_LIFETIME, USED_LIFETIME
from composer.settings import Settings
from jobs.work import JobRun, expire
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.mcp_clients import MODES, called
from tests.support.oauth import CALLBACK, App, allow, back, fields, parameters, told
from tests.support.oauth_stage import PUBLIC, RESOURCE, SESSION, Nexus, address_of, open_nexus
from tests.support.web import served_at

pytestmark = pytest.mark.usefixtures("tools_made_once")

ALL = ["entries:read", "entries:write", "projects:read", "teams:read"]
WEB = "https://claude.example/callback"


@pytest.fixture
async def nexus(settings: Settings, tmp_path: Path) -> AsyncIterator[Nexus]:
    async with open_nexus(settings, tmp_path) as nexus:
        yield nexus


async def keys_of(nexus: Nexus, name: str = "alice") -> list[dict[str, Any]]:
    """The keys of a person, as they list them over the API."""
    async with nexus.http() as http:
        answer = await http.get(f"{PUBLIC}/v1/keys", headers=bearer(await key_of(nexus.harness, name)))
    return [each for each in answer.json()["items"] if each["client"] is not None]


async def audit_of(nexus: Nexus) -> list[str]:
    async with nexus.harness.app.database.transaction(nexus.harness.workspace().tenant_id) as tx:
        events = await tx.audit.find(limit=100)
    return [event.act for event in events]


# --- the whole way ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["document", "registration", "client_secret_basic", "client_secret_post"])
async def test_a_tool_signs_in_by_the_sdks_client_and_uses_the_memory(nexus: Nexus, mode: str, way: str) -> None:
    app = App(await nexus.signed_in(), PUBLIC, vendor="claude")
    if way == "document":
        app.document = nexus.site.describe("/claude.json")
    elif way != "registration":
        app.method = way
    async with nexus.mcp(app, mode) as client:
        written = await called(client, "write_entry", content="We deploy on Fridays", kind="decision")
        assert written["state"] == "written"
        [entry] = (await called(client, "browse_entries"))["entries"]
        assert entry["origin"] == "claude"
    assert len(app.led) == 1
    assert parameters(app.led[0])["iss"] == PUBLIC
    assert app.storage.client is not None
    assert app.storage.tokens is not None
    assert app.storage.client.client_id == (app.document or app.storage.client.client_id)
    assert nexus.site.asked == ([] if app.document is None else ["/claude.json"])
    assert sorted((app.storage.tokens.scope or "").split()) == ALL


async def test_the_sdks_client_renews_its_tokens_without_its_person(nexus: Nexus) -> None:
    app = App(await nexus.signed_in(), PUBLIC, vendor="claude")
    async with nexus.mcp(app):
        pass
    first = app.storage.tokens
    assert first is not None
    nexus.harness.clock.tick(3_601)
    assert not await nexus.opens(first.access_token), "it is over after an hour"
    app.auth().context.token_expiry_time = 1
    async with nexus.mcp(app) as client:
        assert (await called(client, "browse_entries"))["entries"] == []
    assert app.storage.tokens is not None
    assert app.storage.tokens.refresh_token != first.refresh_token
    assert len(app.led) == 1, "nobody was asked again"


async def test_a_key_of_ours_still_opens_mcp(nexus: Nexus) -> None:
    assert await nexus.opens(await key_of(nexus.harness, "alice", "claude"))
    assert await nexus.opens(await key_of(nexus.harness, "alice"))


# --- what clients are told -------------------------------------------------------------------------------------------


async def test_clients_are_told_where_and_how_to_sign_in(nexus: Nexus) -> None:
    async with nexus.http() as http:
        resources = [await http.get(f"{PUBLIC}/.well-known/oauth-protected-resource{path}") for path in ("/mcp", "")]
        servers = [
            await http.get(f"{PUBLIC}/.well-known/{name}")
            for name in ("oauth-authorization-server", "openid-configuration")
        ]
    assert {each.text for each in resources} == {resources[0].text}
    assert resources[0].json() == {
        "resource": RESOURCE,
        "authorization_servers": [PUBLIC],
        "scopes_supported": ALL,
        "bearer_methods_supported": ["header"],
        "resource_name": "Nexus",
    }
    said = servers[0].json()
    assert servers[1].json() == said
    assert said["issuer"] == PUBLIC
    assert said["code_challenge_methods_supported"] == ["S256"]
    assert said["client_id_metadata_document_supported"] is True
    assert said["authorization_response_iss_parameter_supported"] is True
    assert "none" in said["token_endpoint_auth_methods_supported"]
    assert not {"chat", "manage", "admin"} & set(said["scopes_supported"])
    assert all(each.headers["cache-control"] == "public, max-age=3600" for each in (*resources, *servers))


async def test_addresses_are_made_from_the_setting_whatever_the_request_says(nexus: Nexus) -> None:
    async with httpx2.AsyncClient(base_url=nexus.url) as http:
        said = await http.get("/.well-known/oauth-authorization-server", headers={"X-Forwarded-Host": "evil.example"})
        refused = await http.post("/mcp", headers={"X-Forwarded-Host": "evil.example"})
    assert said.json()["issuer"] == PUBLIC
    assert nexus.url not in said.text
    assert "evil" not in said.text + refused.headers["www-authenticate"]


async def test_who_has_no_valid_token_is_told_where_to_get_one(nexus: Nexus) -> None:
    where = f'scope="{" ".join(ALL)}", resource_metadata="{PUBLIC}/.well-known/oauth-protected-resource/mcp"'
    without = await nexus.ask_mcp(None)
    assert (without.status_code, without.headers["www-authenticate"]) == (401, f"Bearer {where}")
    for wrong in ("x", "nx_acme_" + "0" * 64, "nxa_acme_" + "0" * 64):
        refused = await nexus.ask_mcp(wrong)
        assert (refused.status_code, refused.text) == (401, without.text)
        assert refused.headers["www-authenticate"] == f'Bearer error="invalid_token", {where}'
    async with nexus.http() as http:
        elsewhere = await http.get(f"{PUBLIC}/v1/whoami")
    assert elsewhere.headers["www-authenticate"] == "Bearer", "an app's token opens nothing there"


async def test_without_a_public_url_there_is_nothing_of_it(harness: AppHarness) -> None:
    await key_of(harness, "alice", "claude")
    async with served_at(web_app(harness.app, Metrics([]), {}, None)) as url, httpx2.AsyncClient(base_url=url) as http:
        for path in (
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-authorization-server",
            "/.well-known/openid-configuration",
            "/oauth/authorize",
        ):
            assert (await http.get(path)).status_code == 404
        for path in ("/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/consent"):
            assert (await http.post(path)).status_code == 404
        refused = await http.post("/mcp")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")


# --- scopes ----------------------------------------------------------------------------------------------------------


async def test_an_app_has_what_it_was_allowed_and_is_told_to_ask_for_more(nexus: Nexus) -> None:
    _, given = await nexus.connected(scope="entries:read")
    assert given["scope"] == "entries:read"
    token = given["access_token"]
    call = {"method": "tools/call", "params": {"name": "write_entry", "arguments": {"content": "x"}}}
    refused = await nexus.ask_mcp(token, **call)
    assert refused.status_code == 403
    assert refused.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", scope="entries:read entries:write", '
        f'resource_metadata="{PUBLIC}/.well-known/oauth-protected-resource/mcp"'
    )
    read = await nexus.ask_mcp(token, method="tools/call", params={"name": "browse_entries", "arguments": {}})
    assert read.status_code == 200


async def test_the_sdks_client_asks_its_person_for_more_and_goes_on(nexus: Nexus) -> None:
    browser = await nexus.signed_in()
    app = App(browser, PUBLIC, vendor="claude")
    _, given = await nexus.connected(scope="entries:read")
    async with nexus.mcp(app) as session:
        tokens = app.auth().context.current_tokens
        assert tokens is not None
        tokens.access_token = given["access_token"]
        assert (await called(session, "write_entry", content="more"))["state"] == "written"
    assert len(app.led) == 2


async def test_who_has_opted_out_is_told_by_the_tool_and_not_asked_in_vain(nexus: Nexus) -> None:
    _, given = await nexus.connected()
    await nexus.harness.command("alice", "/nexus opt-out", dm="nexus")
    answer = await nexus.ask_mcp(
        given["access_token"], method="tools/call", params={"name": "write_entry", "arguments": {"content": "x"}}
    )
    assert answer.status_code == 200
    assert answer.json()["result"]["isError"] is True


NEVER = ["chat", "manage", "admin", "gateway", "entries:read admin", "openid", "projects:write"]


@pytest.mark.parametrize("scope", NEVER)
async def test_no_app_is_given_what_no_tool_gets(nexus: Nexus, scope: str) -> None:
    client = (await nexus.registered())["client_id"]
    answer = await (await nexus.signed_in()).get(address_of(client, scope=scope))
    said = parameters(told(answer))
    assert (said["error"], said["state"], said["iss"]) == ("invalid_scope", "st&te=1", PUBLIC)
    assert "code" not in said


async def test_a_renewed_token_may_be_for_less_and_never_for_more(nexus: Nexus) -> None:
    client, given = await nexus.connected(scope="entries:read entries:write")
    more = await nexus.renew(client, given["refresh_token"], scope="entries:read teams:read")
    assert (more.status_code, more.json()["error"]) == (400, "invalid_scope")
    less = (await nexus.renew(client, given["refresh_token"], scope="entries:read")).json()
    assert less["scope"] == "entries:read"
    again = (await nexus.renew(client, less["refresh_token"])).json()
    assert again["scope"] == "entries:read entries:write", "as its person allowed"


# --- the page --------------------------------------------------------------------------------------------------------


async def test_the_page_says_who_asks_where_it_leads_what_for_and_as_which_tool(nexus: Nexus) -> None:
    document = nexus.site.describe("/claude.json", redirect_uris=[WEB], client_name="Claude Code")
    page = await (await nexus.signed_in()).get(address_of(document, redirect_uri=WEB, scope="entries:read"))
    assert page.status_code == 200
    for said in (
        "&quot;Claude Code&quot; wants to use the memory of alice of acme.",
        f"It is the app described at {document}",
        "It leads back to claude.example.",
        "read your own entries",
    ):
        assert said in page.text
    for unsaid in ("on this computer", "nobody has checked", "write entries", "<script"):
        assert unsaid not in page.text
    assert fields(page)["vendor"] == "claude-code"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"


async def test_the_page_warns_of_programs_on_this_computer_and_of_names_that_nobody_checked(nexus: Nexus) -> None:
    registered = await nexus.registered()
    page = await (await nexus.signed_in()).get(address_of(registered["client_id"]))
    assert "It leads back to 127.0.0.1:9, a program on this computer." in page.text
    assert "nobody has checked that" in page.text
    assert "described at" not in page.text


@pytest.mark.parametrize(
    ("name", "shown", "vendor"),
    [
        ("Claude\u202e\u200b", "Claude", "claude"),
        ("\u0421laude", "\u0421laude", "laude"),
        ("<b>Claude</b>", "&lt;b&gt;Claude&lt;/b&gt;", "b-claude-b"),
        ("Nexus", "Nexus", ""),
        ('" is safe. "', "is safe.", "is-safe"),
        ("", "127.0.0.1:9", "127-0-0-1-9"),
        ("C" * 500, "C" * 79, "c" * 32),
        ("a\nb\x07c", "a b", "a-bc"),
    ],
)
async def test_names_of_apps_are_cleaned_and_never_taken_for_the_tool(
    nexus: Nexus, name: str, shown: str, vendor: str
) -> None:
    client = (await nexus.registered(client_name=name))["client_id"]
    page = await (await nexus.signed_in()).get(address_of(client))
    assert shown in page.text
    assert not re.search("[\u202a-\u202e\u200b\x07]", page.text)
    assert "<b>" not in page.text
    assert fields(page)["vendor"] == vendor
    assert ("look like others" in page.text) == (not shown.isascii())
    assert ("it may want to be taken for" in page.text) == (not shown.isascii())


async def test_an_app_that_would_be_called_like_a_tool_of_the_person_gets_another_name(nexus: Nexus) -> None:
    browser = await nexus.signed_in()
    first = await browser.get(address_of((await nexus.registered(client_name="Cursor"))["client_id"]))
    assert fields(first)["vendor"] == "cursor"
    assert "already" not in first.text
    values = fields(first) | {"decision": "allow"}
    assert "code" in parameters(back(await browser.press("/oauth/consent", **values)))
    page = await browser.get(address_of((await nexus.registered(client_name="Cursor!"))["client_id"]))
    assert fields(page)["vendor"] == "cursor-2"
    assert "You have a tool of the name &quot;cursor&quot; already." in page.text


async def test_the_tool_is_what_the_person_writes_whatever_the_app_calls_itself(nexus: Nexus) -> None:
    app = App(await nexus.signed_in(), PUBLIC, name="Claude", vendor="my-agent")
    async with nexus.mcp(app) as client:
        await called(client, "write_entry", content="mine")
        [entry] = (await called(client, "browse_entries"))["entries"]
    assert entry["origin"] == "my-agent"


@pytest.mark.parametrize("vendor", ["", "nexus", "you", "approved", "Claude Code!", "x" * 33, "api", "claud\u0435"])
async def test_what_is_no_name_of_a_tool_is_asked_for_again(nexus: Nexus, vendor: str) -> None:
    browser = await nexus.signed_in()
    page = await browser.get(address_of((await nexus.registered())["client_id"]))
    again = await browser.press("/oauth/consent", **fields(page) | {"vendor": vendor, "decision": "allow"})
    assert again.status_code == 200
    assert "That is no name of a tool" in again.text
    assert "http-equiv" not in again.text
    values = fields(again) | {"vendor": "ok", "decision": "allow"}
    assert "code" in parameters(back(await browser.press("/oauth/consent", **values)))


async def test_who_does_not_allow_it_leads_back_with_that(nexus: Nexus) -> None:
    client = (await nexus.registered())["client_id"]
    led = await allow(await nexus.signed_in(), address_of(client), decision="deny")
    assert led.startswith(CALLBACK + "?")
    assert parameters(led) == {"error": "access_denied", "state": "st&te=1", "iss": PUBLIC}
    assert await keys_of(nexus) == []


async def test_who_is_not_signed_in_signs_in_first_and_comes_back_to_the_very_request(nexus: Nexus) -> None:
    document = nexus.site.describe("/claude.json")
    browser, address = nexus.browser(), address_of(document)
    page = await browser.get(address)
    assert page.status_code == 401
    assert "/nexus login" in page.text
    assert nexus.site.asked == [], "nothing is fetched for who is not signed in"
    made = await nexus.harness.command("alice", "/nexus login", dm="nexus")
    [code] = re.findall(r"login\?code=(\S+)", made.text)
    done = await browser.press("/login", code=code)
    assert (done.status_code, done.headers["location"]) == (303, address)
    asked = await browser.get(done.headers["location"])
    assert "wants to use the memory of alice" in asked.text
    assert list(browser.cookies) == [SESSION], "where it came from is forgotten then"
    other = nexus.browser()
    made = await nexus.harness.command("alice", "/nexus login", dm="nexus")
    [code] = re.findall(r"login\?code=(\S+)", made.text)
    assert (await other.press("/login", code=code)).headers["location"] == "/"


@pytest.mark.parametrize("value", ["aHR0cHM6Ly9ldmls", "eD0xDQpTZXQtQ29va2llOiBh", "%%%", "4oKs", ""])
async def test_after_signing_in_a_browser_goes_to_our_own_page_whatever_its_cookie_says(
    nexus: Nexus, value: str
) -> None:
    browser = nexus.browser()
    browser.cookies[f"{SESSION}-return"] = value
    made = await nexus.harness.command("alice", "/nexus login", dm="nexus")
    [code] = re.findall(r"login\?code=(\S+)", made.text)
    led = (await browser.press("/login", code=code)).headers["location"]
    assert led == "/" or led.startswith("/oauth/authorize?")


async def test_what_was_allowed_is_remembered_but_for_programs_on_ones_own_computer(nexus: Nexus) -> None:
    browser = await nexus.signed_in()
    document = nexus.site.describe("/claude.json", redirect_uris=[WEB, CALLBACK])
    await nexus.code(browser, document, "claude", redirect_uri=WEB)
    again = await browser.get(address_of(document, redirect_uri=WEB))
    assert again.status_code == 302
    assert "code" in parameters(again.headers["location"])
    for asked in ({"prompt": "consent"}, {"scope": "entries:read"}, {"redirect_uri": CALLBACK}):
        assert (await browser.get(address_of(document, **{"redirect_uri": WEB, **asked}))).status_code == 200, asked
    await nexus.code(browser, document, "claude")
    local = await browser.get(address_of(document))
    assert (local.status_code, fields(local)["vendor"]) == (200, "claude")
    bobs = await (await nexus.signed_in("bob")).get(address_of(document, redirect_uri=WEB))
    assert bobs.status_code == 200, "what alice allowed, bob has not"


async def test_allowing_one_tool_allows_no_other(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    codes = [await nexus.code(browser, client, vendor) for vendor in ("claude", "cursor", "claude")]
    tokens = [(await nexus.tokens(client, code)).json()["access_token"] for code in codes]
    found = [await nexus.harness.app.credentials.resolve(token, None, RESOURCE) for token in tokens]
    assert [each and each.vendor for each in found] == ["claude", "cursor", "claude"]
    assert len(await keys_of(nexus)) == 2
    for key in await keys_of(nexus):
        if key["vendor"] == "claude":
            await nexus.harness.command("alice", f"/nexus keys revoke {key['id'][:8]}", dm="nexus")
    assert [await nexus.opens(token) for token in tokens] == [False, True, False]


# --- people see and end them -----------------------------------------------------------------------------------------


async def test_a_connected_app_is_listed_and_ended_as_a_key_is(nexus: Nexus) -> None:
    client, given = await nexus.connected()
    token = given["access_token"]
    assert await nexus.opens(token)
    await nexus.harness.app.credentials._last_use.settle()
    listed = (await nexus.harness.command("alice", "/nexus keys list", dm="nexus")).text
    assert re.search(r"connected app 'Claude' at 127\.0\.0\.1:9, as claude: since 2026-05-04, last used", listed)
    [key] = await keys_of(nexus)
    assert (key["client"], key["redirect_uri"], key["vendor"], key["permissions"]) == (client, CALLBACK, "claude", ALL)
    assert key["last_used_at"] is not None
    ended = await nexus.harness.command("alice", f"/nexus keys revoke {key['id'][:8]}", dm="nexus")
    assert ended.text == "The connected app 'Claude' has ended: from now on it opens nothing."
    assert not await nexus.opens(token)
    refused = await nexus.renew(client, given["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    page = await (await nexus.signed_in()).get(address_of(client))
    assert page.status_code == 200, "it has to ask again"
    acts = await audit_of(nexus)
    assert {"app.connected", "key.revoked"} <= set(acts)


async def test_a_connected_app_is_ended_over_the_api_by_its_person_alone(nexus: Nexus) -> None:
    _, given = await nexus.connected()
    [key] = await keys_of(nexus)
    async with nexus.http() as http:
        for name, status in (("bob", 404), ("alice", 204)):
            own = bearer(await key_of(nexus.harness, name))
            assert (await http.delete(f"{PUBLIC}/v1/keys/{key['id']}", headers=own)).status_code == status
            assert await nexus.opens(given["access_token"]) == (name == "bob")


async def test_an_app_signs_itself_out(nexus: Nexus) -> None:
    for name in ("access_token", "refresh_token"):
        client, given = await nexus.connected()
        other = (await nexus.registered())["client_id"]
        for asking, ends in ((other, False), (client, True)):
            sent = {"token": given[name], "client_id": asking, "token_type_hint": "nothing"}
            assert (await nexus.post("/oauth/revoke", sent)).status_code == 200
            assert await nexus.opens(given["access_token"]) != ends
        assert (await nexus.renew(client, given["refresh_token"])).status_code == 400
        assert (await nexus.post("/oauth/revoke", {"token": "x", "client_id": client})).status_code == 200
    assert (await audit_of(nexus)).count("app.signed_out") == 2
    assert all(key["revoked_at"] is not None for key in await keys_of(nexus))


async def test_apps_end_with_their_person(nexus: Nexus) -> None:
    client, given = await nexus.connected()
    found = await person(nexus.harness, "alice")
    async with nexus.harness.app.database.transaction(nexus.harness.workspace().tenant_id, "alone") as tx:
        await delete_credentials(tx, [found.id])
    assert not await nexus.opens(given["access_token"])
    assert (await nexus.renew(client, given["refresh_token"])).status_code == 400
    client, given = await nexus.connected("bob")
    assert await end_access(nexus.harness.app.database, nexus.harness.workspace(), "bob") > 0
    assert not await nexus.opens(given["access_token"])
    assert (await nexus.renew(client, given["refresh_token"])).status_code == 400


async def test_who_forgets_everything_ends_their_apps(nexus: Nexus) -> None:
    _, given = await nexus.connected()
    await nexus.harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    assert not await nexus.opens(given["access_token"])


async def test_an_export_and_the_privacy_report_tell_of_apps(nexus: Nexus) -> None:
    client, given = await nexus.connected()
    report = (await nexus.harness.command("alice", "/nexus privacy", dm="nexus")).text
    assert "1 key" in report
    document = json.loads("".join([part async for part in _exported(nexus)]))
    [key] = [each for each in document["keys"] if each["client"]]
    assert (key["client"], key["redirect_uri"], key["name"]) == (client, CALLBACK, "Claude")
    assert given["access_token"] not in json.dumps(document)


async def _exported(nexus: Nexus) -> AsyncIterator[str]:
    async with nexus.http() as http:
        answer = await http.get(f"{PUBLIC}/v1/export", headers=bearer(await key_of(nexus.harness, "alice")))
    yield answer.text


async def test_what_is_over_is_purged(nexus: Nexus) -> None:
    await nexus.connected()
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    await nexus.code(browser, client, "claude")
    unused = (await nexus.registered())["client_id"]
    app, tenant = nexus.harness.app, nexus.harness.workspace().tenant_id

    async def rows() -> list[int]:
        async with app.database.connection() as connection, connection.transaction():
            await connection.execute("SELECT set_config('nexus.tenant', $1, true)", str(tenant))
            return [
                await connection.fetchval(f"SELECT count(*) FROM {table}")
                for table in ("one_time_codes WHERE purpose = 'app'", "app_tokens", "oauth_clients")
            ]

    async def purged() -> list[int]:
        await expire(JobRun(app, nexus.harness.clock.now(), lambda *_: None))
        return await rows()

    assert await purged() == [1, 1, 3]
    nexus.harness.clock.tick(61)
    assert await purged() == [0, 1, 3]
    nexus.harness.clock.tick(UNUSED_LIFETIME.total_seconds())
    assert await purged() == [0, 1, 2]
    assert unused is not None
    nexus.harness.clock.tick(timedelta(days=30).total_seconds())
    assert await purged() == [0, 0, 2]
    nexus.harness.clock.tick(USED_LIFETIME.total_seconds())
    assert await purged() == [0, 0, 0]


async def test_guests_keys_and_tools_connect_nothing(nexus: Nexus, monkeypatch: pytest.MonkeyPatch) -> None:
    client = (await nexus.registered())["client_id"]
    address = address_of(client)
    for key in (await key_of(nexus.harness, "alice"), await key_of(nexus.harness, "alice", "claude")):
        async with nexus.http(headers=bearer(key)) as http:
            assert (await http.get(PUBLIC + address)).status_code == 401
            assert (await http.post(f"{PUBLIC}/oauth/consent", data={})).status_code == 403

    async def guest(*_: object) -> Trust:
        return Trust.GUEST

    browser = await nexus.signed_in()
    page = await browser.get(address)
    monkeypatch.setattr("composer.repositories.people.People.trust", guest)
    for refused in (
        await browser.get(address),
        await browser.press("/oauth/consent", **fields(page) | {"decision": "allow"}),
    ):
        assert refused.status_code == 403
        assert "Guests" in refused.text
    assert await keys_of(nexus) == []


async def test_a_cookie_alone_names_nobody_at_mcp_from_another_site(nexus: Nexus) -> None:
    cookie = await cookie_of(nexus.harness, "alice")
    async with nexus.http(headers={"Cookie": f"{SESSION}={cookie}", "Origin": "https://evil.example"}) as http:
        assert (await http.post(RESOURCE, json={})).status_code == 401

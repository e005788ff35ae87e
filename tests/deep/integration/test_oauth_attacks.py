"""Signing in AI tools by OAuth: what attackers send, and that it gives them nothing."""

import asyncio
import re
import secrets
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import pytest
import pytest_asyncio

from bot.web.oauth.clients import NO_SECRET
from bot.web.oauth.documents import FAILED_SECONDS, LEAST_SECONDS, MAX_DOCUMENTS, MOST_SECONDS, ClientDocuments
from composer.errors import BadInput, NotFound
from composer.people.credentials import connected_apps
from composer.people.credentials.connected_apps import MAX_SIGN_INS
from composer.repositories.oauth_clients import MAX_UNUSED, OAuthClients, RegisteredClient
from composer.settings import Settings
from tests.support.api import bearer, key_of
from tests.support.oauth import CALLBACK, PUBLIC_ADDRESS, Site, allow, back, fields, http, open_site, parameters, told
from tests.support.oauth_stage import PUBLIC, RESOURCE, SESSION, VERIFIER, Nexus, address_of, open_nexus

pytestmark = pytest.mark.usefixtures("tools_made_once")

in_module = pytest.mark.asyncio(loop_scope="module")

WEB: Final = "https://claude.example/callback"


@pytest.fixture
async def nexus(settings: Settings, tmp_path: Path) -> AsyncIterator[Nexus]:
    async with open_nexus(settings, tmp_path) as nexus:
        yield nexus


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_nexus(shared_settings: Settings, tools_made_once: None) -> AsyncIterator[Nexus]:
    """One for the tests whose apps get nothing, or have a new app each."""
    async with open_nexus(shared_settings, shared_settings.home) as nexus:
        yield nexus


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path / "site", "app.example", "other.example") as site:
        yield site


async def sign_ins(nexus: Nexus) -> int:
    """How many sign-ins of apps there are."""
    app = nexus.harness.app
    async with app.database.connection() as connection, connection.transaction():
        tenant = str(nexus.harness.workspace().tenant_id)
        await connection.execute("SELECT set_config('nexus.tenant', $1, true)", tenant)
        return int(await connection.fetchval("SELECT count(*) FROM app_tokens"))


# --- tokens ----------------------------------------------------------------------------------------------------------


async def test_an_apps_token_opens_mcp_and_nothing_else(nexus: Nexus) -> None:
    _, given = await nexus.connected()
    token = given["access_token"]
    assert await nexus.opens(token)
    async with nexus.http(headers=bearer(token)) as client:
        for path in ("/v1/whoami", "/v1/entries", "/v1/agent/entries", "/v1/keys", "/v1/export", "/v1/mcp", "/mcp2"):
            assert (await client.get(PUBLIC + path)).status_code in (401, 404), path
        assert (await client.get(f"{PUBLIC}/v1/whoami")).status_code == 401
        assert (await client.post(f"{PUBLIC}/v1/query", json={"query": "x"})).status_code == 401
    for other in (given["refresh_token"], token.upper(), token[:-1], token.replace("nxa_", "nx_")):
        assert not await nexus.opens(other)


async def test_a_token_for_another_address_opens_nothing_here(nexus: Nexus) -> None:
    _, given = await nexus.connected()
    resolve = nexus.harness.app.credentials.resolve
    assert await resolve(given["access_token"], None, RESOURCE) is not None
    for other in (None, PUBLIC, f"{RESOURCE}/", "https://other.example/mcp", ""):
        assert await resolve(given["access_token"], None, other) is None


@in_module
@pytest.mark.parametrize(
    "resource", ["https://other.example/mcp", PUBLIC, f"{RESOURCE}/", f"{RESOURCE}#x", f"{RESOURCE}?x", "x", ""]
)
async def test_no_token_is_given_for_another_address(shared_nexus: Nexus, resource: str) -> None:
    browser, client = await shared_nexus.signed_in(), (await shared_nexus.registered())["client_id"]
    said = parameters(told(await browser.get(address_of(client, resource=resource))))
    assert (said["error"], said["iss"]) == ("invalid_target", PUBLIC)
    refused = await shared_nexus.tokens(client, await shared_nexus.code(browser, client, "claude"), resource=resource)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target")


async def test_older_clients_that_name_no_address_get_tokens_for_mcp_alone(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    given = await nexus.tokens(client, await nexus.code(browser, client, "claude", resource=None), resource=None)
    assert await nexus.opens(given.json()["access_token"])


async def test_every_wrong_token_stands_for_nobody_by_the_same_statement(
    nexus: Nexus, statements: Counter[str]
) -> None:
    client, expired = await nexus.connected(vendor="expired")
    nexus.harness.clock.tick(3_600)
    client, renewed = await nexus.connected(vendor="renewed")
    await nexus.renew(client, renewed["refresh_token"])
    client, signed_out = await nexus.connected(vendor="signedout")
    await nexus.post("/oauth/revoke", {"token": signed_out["refresh_token"], "client_id": client})
    _, revoked = await nexus.connected(vendor="revoked")
    listed = (await nexus.harness.command("alice", "/nexus keys list", dm="nexus")).text
    [id] = re.findall(r"^([0-9a-f]{8})  .* as revoked:", listed, re.MULTILINE)
    await nexus.harness.command("alice", f"/nexus keys revoke {id}", dm="nexus")
    _, good = await nexus.connected(vendor="good")
    secret = "_" + "0" * 64
    wrong = [each["access_token"] for each in (expired, renewed, signed_out, revoked)]
    wrong += ["nxa_acme" + secret, "nxa_umbrella" + secret, "nxa_nowhere" + secret, good["access_token"][:-1] + "x"]
    for text in wrong[:-1]:
        statements.clear()
        assert await nexus.harness.app.credentials.resolve(text, None, RESOURCE) is None
        del statements["tables_have_statistics"]
        assert statements == Counter({"app_access_find": 1})
    statements.clear()
    assert await nexus.harness.app.credentials.resolve(wrong[-1], None, RESOURCE) is None, "no token at all"
    assert statements["api_key_find"] == 1
    assert await nexus.harness.app.credentials.resolve(good["access_token"], None, RESOURCE) is not None
    answers = [await nexus.ask_mcp(text) for text in wrong]
    assert {(each.status_code, each.text, each.headers["www-authenticate"]) for each in answers} == {
        (401, answers[0].text, answers[0].headers["www-authenticate"])
    }


async def test_a_token_of_one_tenant_opens_nothing_under_anothers_name(nexus: Nexus) -> None:
    _, given = await nexus.connected()
    await key_of(nexus.harness, "bob", workspace="umbrella")
    token = given["access_token"].replace("nxa_acme_", "nxa_umbrella_")
    assert token != given["access_token"]
    assert not await nexus.opens(token)


# --- codes -----------------------------------------------------------------------------------------------------------


async def test_a_code_works_once_and_its_replay_ends_what_it_began(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    code = await nexus.code(browser, client, "claude")
    given = (await nexus.tokens(client, code)).json()
    assert await nexus.opens(given["access_token"])
    replayed = await nexus.tokens(client, code)
    assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    assert not await nexus.opens(given["access_token"])
    assert (await nexus.renew(client, given["refresh_token"])).status_code == 400


async def test_of_many_at_once_one_gets_tokens_for_a_code_and_loses_them(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    code = await nexus.code(browser, client, "claude")
    answers = await asyncio.gather(*(nexus.tokens(client, code) for _ in range(8)))
    given = [each.json() for each in answers if each.status_code == 200]
    assert len(given) == 1
    assert not await nexus.opens(given[0]["access_token"])
    assert await sign_ins(nexus) == 0


async def test_a_code_is_over_after_a_minute(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    for seconds, status in ((59, 200), (61, 400)):
        code = await nexus.code(browser, client, "claude")
        nexus.harness.clock.tick(seconds)
        assert (await nexus.tokens(client, code)).status_code == status


async def test_another_apps_code_is_none_and_stays_its_own(nexus: Nexus) -> None:
    browser = await nexus.signed_in()
    client, thief = [(await nexus.registered())["client_id"] for _ in range(2)]
    code = await nexus.code(browser, client, "claude")
    document = nexus.site.describe("/thief.json")
    for other in (thief, document, secrets.token_hex(16)):
        refused = await nexus.tokens(other, code)
        assert refused.status_code in (400, 401)
        assert "access_token" not in refused.text
    database, now = nexus.harness.app.database, nexus.harness.clock.now()
    assert await connected_apps.find_code(database, thief, code, now) is None
    assert await connected_apps.redeem_code(database, thief, code, secrets.token_bytes, now) is None
    given = await nexus.tokens(client, code)
    assert given.status_code == 200
    for other in (thief, document):
        assert (await nexus.renew(other, given.json()["refresh_token"])).status_code == 400
    assert await nexus.opens(given.json()["access_token"]), "who is nobody's app ends nothing of another's"


@in_module
@pytest.mark.parametrize(
    "changed",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": None},
        {"code_verifier": ""},
        {"code_verifier": VERIFIER + "="},
        {"redirect_uri": "http://127.0.0.1:10/callback"},
        {"redirect_uri": f"{CALLBACK}/"},
        {"redirect_uri": None},
        {"grant_type": "client_credentials"},
        {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "x"},
        {"grant_type": None},
    ],
)
async def test_a_code_is_bound_to_its_request(shared_nexus: Nexus, changed: dict[str, str | None]) -> None:
    browser, client = await shared_nexus.signed_in(), (await shared_nexus.registered())["client_id"]
    code = await shared_nexus.code(browser, client, "claude")
    refused = await shared_nexus.tokens(client, code, **changed)
    assert refused.status_code == 400
    assert refused.json()["error"] in ("invalid_grant", "invalid_request", "unsupported_grant_type")
    assert refused.headers["cache-control"] == "no-store"


@in_module
@pytest.mark.parametrize(
    "changed",
    [
        {"code_challenge": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge_method": "s256"},
        {"code_challenge": "short"},
        {"code_challenge": VERIFIER + "="},
        {"response_type": "token"},
        {"response_type": "code token"},
        {"response_type": None},
    ],
)
async def test_nobody_is_asked_without_pkce_by_s256(shared_nexus: Nexus, changed: dict[str, str | None]) -> None:
    client = (await shared_nexus.registered())["client_id"]
    answer = await (await shared_nexus.signed_in()).get(address_of(client, **changed))
    said = parameters(told(answer))
    assert said["error"] in ("invalid_request", "unsupported_response_type")
    assert (said["state"], said["iss"], "code" in said) == ("st&te=1", PUBLIC, False)


async def test_a_secret_that_an_app_has_is_asked_for(nexus: Nexus) -> None:
    for method in ("client_secret_post", "client_secret_basic"):
        browser, made = await nexus.signed_in(), await nexus.registered(token_endpoint_auth_method=method)
        code = await nexus.code(browser, made["client_id"], "claude")
        for wrong in ({}, {"client_secret": "x"}, {"client_secret": ""}):
            refused = await nexus.tokens(made["client_id"], code, **wrong)
            assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
        }
        if method == "client_secret_basic":
            basic = httpx2.BasicAuth(made["client_id"], "wrong")
            refused = await nexus.post("/oauth/token", sent, auth=basic)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Basic")
            basic = httpx2.BasicAuth(made["client_id"], made["client_secret"])
            assert (await nexus.post("/oauth/token", sent, auth=basic)).status_code == 200
        else:
            of_post = {"client_id": made["client_id"], "client_secret": made["client_secret"]}
            assert (await nexus.post("/oauth/token", sent | of_post)).status_code == 200


# --- refresh tokens --------------------------------------------------------------------------------------------------


async def test_a_refresh_token_that_comes_again_ends_its_sign_in(nexus: Nexus) -> None:
    client, first = await nexus.connected()
    second = (await nexus.renew(client, first["refresh_token"])).json()
    third = (await nexus.renew(client, second["refresh_token"])).json()
    assert not await nexus.opens(first["access_token"]), "its successor took its place"
    assert await nexus.opens(third["access_token"])
    refused = await nexus.renew(client, first["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert not await nexus.opens(third["access_token"])
    assert (await nexus.renew(client, third["refresh_token"])).status_code == 400
    async with nexus.harness.app.database.transaction(nexus.harness.workspace().tenant_id) as tx:
        [event] = await tx.audit.find(act="app.signed_out", limit=10)
    assert event.details["why"] == "refresh_token_used_twice"


async def test_of_two_refreshes_at_once_one_wins_and_both_lose(nexus: Nexus) -> None:
    client, first = await nexus.connected()
    answers = await asyncio.gather(*(nexus.renew(client, first["refresh_token"]) for _ in range(8)))
    given = [each.json() for each in answers if each.status_code == 200]
    assert len(given) == 1
    assert {each.json()["error"] for each in answers if each.status_code != 200} == {"invalid_grant"}
    assert not await nexus.opens(given[0]["access_token"])
    assert (await nexus.renew(client, given[0]["refresh_token"])).status_code == 400


async def test_of_two_that_have_looked_up_the_same_token_or_code_the_second_ends_the_sign_in(nexus: Nexus) -> None:
    """What two requests at once do, one step after the other: both have looked it up before either uses it."""
    app, now = nexus.harness.app, nexus.harness.clock.now
    client, given = await nexus.connected()
    for _ in range(2):
        assert await connected_apps.permissions_of(app.database, client, given["refresh_token"], now())
    asked = (app.database, client, given["refresh_token"], ["entries:read"], secrets.token_bytes, now())
    first = await connected_apps.renew(*asked)
    assert await nexus.opens(first.access)
    with pytest.raises(NotFound):
        await connected_apps.renew(*asked)
    assert not await nexus.opens(first.access)
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    code = await nexus.code(browser, client, "claude")
    for _ in range(2):
        assert await connected_apps.find_code(app.database, client, code, now())
    tokens = await connected_apps.redeem_code(app.database, client, code, secrets.token_bytes, now())
    assert tokens is not None
    assert await nexus.opens(tokens.access)
    assert await connected_apps.redeem_code(app.database, client, code, secrets.token_bytes, now()) is None
    assert not await nexus.opens(tokens.access)


async def test_a_refresh_token_is_over_after_a_month_without_use(nexus: Nexus) -> None:
    client, given = await nexus.connected()
    nexus.harness.clock.tick(29 * 86_400)
    given = (await nexus.renew(client, given["refresh_token"])).json()
    nexus.harness.clock.tick(29 * 86_400)
    given = (await nexus.renew(client, given["refresh_token"])).json()
    nexus.harness.clock.tick(30 * 86_400)
    assert (await nexus.renew(client, given["refresh_token"])).status_code == 400


async def test_renewing_for_ever_stores_nothing_more(nexus: Nexus) -> None:
    client, given = await nexus.connected()
    for _ in range(30):
        given = (await nexus.renew(client, given["refresh_token"])).json()
    assert await sign_ins(nexus) == 1
    assert await nexus.opens(given["access_token"])


async def test_an_app_has_so_many_sign_ins_and_the_oldest_make_room(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    tokens = []
    for _ in range(MAX_SIGN_INS + 2):
        nexus.harness.clock.tick(1)
        tokens.append((await nexus.tokens(client, await nexus.code(browser, client, "claude"))).json()["access_token"])
    assert await sign_ins(nexus) == MAX_SIGN_INS
    assert not await nexus.opens(tokens[0])
    assert await nexus.opens(tokens[-1])


# --- where it leads back to ------------------------------------------------------------------------------------------

GAMES: Final = [
    f"{WEB}/",
    f"{WEB}?x=1",
    f"{WEB}#x",
    f"{WEB}/../callback",
    f"{WEB}/..;/x",
    "https://claude.example/a/../callback",
    "https://claude.example/%63allback",
    "https://claude.example//callback",
    "https://claude.example:443/callback",
    "https://claude.example:8443/callback",
    "https://CLAUDE.example/callback",
    "https://claude.example.evil.example/callback",
    "https://evil.example/callback",
    "https://evil.example/?https://claude.example/callback",
    "https://user@claude.example/callback",
    "https://claude.example@evil.example/callback",
    "https://claude.example\\@evil.example/callback",
    "https://claude.example%2f@evil.example/callback",
    "http://claude.example/callback",
    "//claude.example/callback",
    "javascript:alert(1)",
    "data:text/html,x",
    "cursor://callback",
    "https://claude.example/callback\r\nSet-Cookie: a=b",
    " https://claude.example/callback",
    "https://\u0441laude.example/callback",
    "",
    "x",
]


@in_module
@pytest.mark.parametrize("game", GAMES)
async def test_nobody_is_led_to_an_address_that_was_not_registered(shared_nexus: Nexus, game: str) -> None:
    browser, client = await shared_nexus.signed_in(), (await shared_nexus.registered(WEB))["client_id"]
    for changed in ({}, {"scope": "admin"}, {"code_challenge": None}, {"resource": "x"}, {"response_type": "token"}):
        answer = await browser.get(address_of(client, redirect_uri=game, **changed))
        assert answer.status_code == 400, (game, changed)
        assert "location" not in answer.headers
        assert "http-equiv" not in answer.text


LOOPBACK_GAMES: Final = [
    "http://127.0.0.1:9/callback2",
    "http://127.0.0.1:9/callback/",
    "http://127.0.0.1:9/callback?x",
    "http://127.0.0.1:9/callback#x",
    "http://127.0.0.1:9/x/../callback",
    "https://127.0.0.1:9/callback",
    "http://localhost:9/callback",
    "http://[::1]:9/callback",
    "http://127.0.0.2:9/callback",
    "http://127.1:9/callback",
    "http://2130706433:9/callback",
    "http://0x7f.0.0.1:9/callback",
    "http://127.0.0.1.evil.example:9/callback",
    "http://localhost.evil:9/callback",
    "http://evil@127.0.0.1:9/callback",
    "http://127.0.0.1:9@evil.example/callback",
    "http://127.0.0.1:0/callback",
    "http://127.0.0.1:99999/callback",
    "http://127.0.0.1:/callback",
    "http://127.0.0.1:9x/callback",
]


@in_module
@pytest.mark.parametrize("game", LOOPBACK_GAMES)
async def test_of_a_loopback_address_the_port_alone_may_differ(shared_nexus: Nexus, game: str) -> None:
    browser, client = (
        await shared_nexus.signed_in(),
        (await shared_nexus.registered("http://127.0.0.1/callback"))["client_id"],
    )
    assert (await browser.get(address_of(client, redirect_uri=game))).status_code == 400
    led = await allow(browser, address_of(client, redirect_uri="http://127.0.0.1:54321/callback"), "claude")
    assert led.startswith("http://127.0.0.1:54321/callback?code=")


@in_module
@pytest.mark.parametrize("loopback", ["http://127.0.0.1/cb", "http://[::1]/cb", "http://localhost/cb"])
async def test_programs_on_a_computer_take_any_port(shared_nexus: Nexus, loopback: str) -> None:
    browser, client = await shared_nexus.signed_in(), (await shared_nexus.registered(loopback))["client_id"]
    for port in (1024, 65535):
        asked = loopback.replace("/cb", f":{port}/cb")
        code = await shared_nexus.code(browser, client, "claude", redirect_uri=asked)
        assert (await shared_nexus.tokens(client, code, redirect_uri=asked)).status_code == 200


@in_module
@pytest.mark.parametrize(
    "game", [*GAMES[2:4], *GAMES[14:18], *GAMES[18:], "http://localhost.evil/", "http://10.0.0.1/"]
)
async def test_no_such_address_is_registered(shared_nexus: Nexus, game: str) -> None:
    refused = await shared_nexus.register(game)
    assert refused.status_code == 400
    assert refused.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


async def test_an_address_keeps_its_parameters_when_it_is_led_back_to(nexus: Nexus) -> None:
    uri = "https://claude.example/callback?a=1&b="
    browser, client = await nexus.signed_in(), (await nexus.registered(uri))["client_id"]
    led = await allow(browser, address_of(client, redirect_uri=uri), "claude")
    assert led.startswith(f"{uri}&code=nxc_")
    said = parameters(led)
    assert (said["state"], said["iss"]) == ("st&te=1", PUBLIC)


@in_module
@pytest.mark.parametrize("client", ["x", "", "0" * 32, "https://app.example", "http://app.example/x"])
async def test_who_is_no_app_leads_nobody_anywhere(shared_nexus: Nexus, client: str) -> None:
    answer = await (await shared_nexus.signed_in()).get(address_of(client))
    assert answer.status_code == 400
    assert "location" not in answer.headers


async def test_an_app_that_nobody_has_chosen_leads_nobody_away_by_a_wrong_request(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered("https://evil.example/login"))["client_id"]
    changes: list[dict[str, str | None]] = [
        {"scope": "admin"},
        {"resource": "https://evil.example/mcp"},
        {"response_type": "token"},
        {"code_challenge": None},
        {"scope": "x", "redirect_uri": None},
    ]
    for changed in changes:
        said: dict[str, str | None] = {"redirect_uri": "https://evil.example/login", **changed}
        page = await browser.get(address_of(client, **said))
        assert told(page).startswith("https://evil.example/login?error=")
        assert "Go back to evil.example" in page.text


@pytest.mark.parametrize("changed", [{"redirect_uris": ["https://evil.example/cb"]}, {"client_name": "Claude by Evil"}])
async def test_a_page_allows_what_it_showed_though_the_app_says_something_else_by_now(
    nexus: Nexus, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, id = await nexus.signed_in(), nexus.site.describe("/app", redirect_uris=["https://good.example/cb"])
    monkeypatch.setattr("bot.web.oauth.documents.LEAST_SECONDS", 0.0)
    page = await browser.get(address_of(id, redirect_uri=None))
    assert "It leads back to good.example." in page.text
    nexus.site.describe("/app", **{"redirect_uris": ["https://good.example/cb"], **changed})
    again = await browser.press("/oauth/consent", **fields(page), decision="allow")
    assert "This page is shown anew" in again.text
    assert "http-equiv" not in again.text
    assert "code" in parameters(back(await browser.press("/oauth/consent", **fields(again), decision="allow")))


@in_module
@pytest.mark.parametrize(
    "id", ["https://app.example/\0", "https://app.example", "https://a b/c", "https://", "\0", "é"]
)
@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
async def test_what_can_be_no_apps_id_is_no_client(shared_nexus: Nexus, id: str, path: str) -> None:
    values = {"grant_type": "refresh_token", "refresh_token": f"nxr_acme_{'0' * 64}", "token": f"nxr_acme_{'0' * 64}"}
    answer = await shared_nexus.post(path, values | {"client_id": id})
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


async def test_of_twenty_refreshes_at_once_one_wins_and_none_keeps_anything(nexus: Nexus) -> None:
    client, given = await nexus.connected()
    answers = await asyncio.gather(*(nexus.renew(client, given["refresh_token"]) for _ in range(20)))
    assert Counter(answer.status_code for answer in answers) == {200: 1, 400: 19}
    won = next(answer.json() for answer in answers if answer.status_code == 200)
    assert not await nexus.opens(won["access_token"])
    assert (await nexus.renew(client, won["refresh_token"])).status_code == 400
    assert await sign_ins(nexus) == 0


async def test_a_parameter_that_is_there_twice_is_refused(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered(WEB))["client_id"]
    for more in (f"&redirect_uri={quote(WEB)}", "&scope=entries:read&scope=teams:read", f"&client_id={client}"):
        answer = await browser.get(address_of(client, redirect_uri=WEB) + more)
        assert (answer.status_code, "location" in answer.headers) == (400, False)
    twice = await nexus.post("/oauth/token", {"grant_type": ["authorization_code", "refresh_token"]})
    assert twice.status_code == 400


# --- the page --------------------------------------------------------------------------------------------------------


async def test_only_our_own_page_of_the_same_session_allows_anything(nexus: Nexus) -> None:
    alice, bob = await nexus.signed_in(), await nexus.signed_in("bob")
    client, other = [(await nexus.registered())["client_id"] for _ in range(2)]
    shown = fields(await alice.get(address_of(client))) | {"decision": "allow", "vendor": "claude"}
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}):
        refused = await alice.press("/oauth/consent", headers, **shown)
        assert (refused.status_code, "http-equiv" in refused.text) == (403, False)
    forged = [
        (alice, shown | {"token": ""}),
        (alice, shown | {"token": "0" * 64}),
        (alice, shown | {"client_id": other}),
        (alice, shown | {"scope": "entries:read"}),
        (alice, shown | {"state": "x"}),
        (alice, {name: value for name, value in shown.items() if name != "token"}),
        (bob, shown),
    ]
    for browser, values in forged:
        again = await browser.press("/oauth/consent", **values)
        assert (again.status_code, "http-equiv" in again.text) == (200, False), values
        assert "is shown anew" in again.text
    assert "of bob of acme" in again.text
    assert "code" in parameters(back(await alice.press("/oauth/consent", **shown)))


async def test_two_people_in_one_browser_each_decide_for_themselves(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    shown = fields(await browser.get(address_of(client))) | {"decision": "allow", "vendor": "claude"}
    browser.cookies[SESSION] = (await nexus.signed_in("bob")).cookies[SESSION]
    again = await browser.press("/oauth/consent", **shown)
    assert "wants to use the memory of bob of acme" in again.text
    code = parameters(back(await browser.press("/oauth/consent", **fields(again) | {"decision": "allow"})))["code"]
    given = (await nexus.tokens(client, code)).json()["access_token"]
    whose = await nexus.harness.app.credentials.resolve(given, None, RESOURCE)
    bobs = await nexus.harness.app.credentials.resolve(None, browser.cookies[SESSION])
    assert whose is not None
    assert bobs is not None
    assert whose.user == bobs.user


async def test_a_session_that_ended_allows_nothing(nexus: Nexus) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    shown = fields(await browser.get(address_of(client))) | {"decision": "allow"}
    await browser.press("/v1/logout")
    assert (await browser.press("/oauth/consent", **shown)).status_code == 403


# --- registration ----------------------------------------------------------------------------------------------------


async def test_a_thousand_registrations_leave_a_bounded_table_and_connected_apps_in_it(nexus: Nexus) -> None:
    client, given = await nexus.connected()
    secret = await nexus.registered(token_endpoint_auth_method="client_secret_post")
    app, redirects = nexus.harness.app, (CALLBACK,)
    clients = OAuthClients(app.database)
    for _ in range(19):  # as the route does with what it has read
        unused = [RegisteredClient(uuid.uuid4(), "Claude", redirects, NO_SECRET, None) for _ in range(50)]
        await asyncio.gather(*(clients.register(each, app.clock.now()) for each in unused))
    await asyncio.gather(*(nexus.registered() for _ in range(50)))
    async with nexus.harness.app.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM oauth_clients") <= MAX_UNUSED + 50
        digests = await connection.fetch("SELECT secret_digest FROM oauth_clients WHERE secret_digest IS NOT NULL")
    assert all(secret["client_secret"].encode() not in row["secret_digest"] for row in digests)
    assert await nexus.opens(given["access_token"])
    assert (await nexus.renew(client, given["refresh_token"])).status_code == 200
    newest = (await nexus.registered())["client_id"]
    assert (await (await nexus.signed_in()).get(address_of(newest))).status_code == 200


async def test_registering_has_a_lower_limit_for_each_address(settings: Settings, tmp_path: Path) -> None:
    async with open_nexus(settings, tmp_path, admin_requests_per_minute=3) as nexus:
        answers = [await nexus.register() for _ in range(5)]
        assert [each.status_code for each in answers] == [201, 201, 201, 429, 429]


@in_module
@pytest.mark.parametrize(
    "said",
    [
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": "https://x.example/"},
        {"redirect_uris": [f"https://x.example/{n}" for n in range(21)]},
        {"redirect_uris": ["https://x.example/" + "x" * 500]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "tls_client_auth"},
        {"grant_types": ["client_credentials"]},
        {"response_types": ["token"]},
        {"client_name": ["x"]},
    ],
)
async def test_what_is_no_app_of_ours_is_not_registered(shared_nexus: Nexus, said: dict[str, Any]) -> None:
    refused = await shared_nexus.register(**said)
    assert (refused.status_code, "client_id" in refused.json()) == (400, False)


async def test_huge_requests_are_refused(nexus: Nexus) -> None:
    assert (await nexus.register(client_name="x" * 10_000)).status_code == 413
    assert (await nexus.post("/oauth/token", {"code": "x" * 10_000})).status_code == 413
    assert (await nexus.register(logo_uri="https://x.example/" + "x" * 9_000)).status_code == 201
    async with nexus.http() as client:
        assert (await client.post(f"{PUBLIC}/oauth/token", json={"grant_type": "x"})).status_code == 415
        assert (await client.post(f"{PUBLIC}/oauth/register", content=b"{")).status_code == 400


async def test_what_an_app_registers_besides_is_not_kept(nexus: Nexus) -> None:
    made = await nexus.registered(
        client_uri="https://evil.example/", logo_uri="https://evil.example/x.png", scope="admin", software_id="x"
    )
    assert not {"client_uri", "logo_uri", "software_id", "client_secret"} & made.keys()
    assert made["scope"] == "entries:read entries:write projects:read teams:read"


# --- documents at addresses ------------------------------------------------------------------------------------------


async def test_a_document_is_fetched_by_tls_from_a_public_address_that_was_checked(site: Site) -> None:
    url, documents = site.describe("/claude.json"), site.documents()
    found = await documents.get(url)
    assert (found.name, found.redirect_uris) == ("Claude", (CALLBACK,))
    assert site.transport is not None
    assert site.transport.asked == [PUBLIC_ADDRESS], "the connection goes to the address, not to the name"
    assert site.looked_up == ["app.example"]


NOT_PUBLIC: Final = [
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_nothing_is_asked_for_at_an_address_that_is_not_public(site: Site, address: str) -> None:
    url, documents = site.describe("/claude.json"), site.documents([PUBLIC_ADDRESS, address])
    for addresses in ([address], [PUBLIC_ADDRESS, address], [address, PUBLIC_ADDRESS]):
        site.names["app.example"] = [addresses]
        with pytest.raises(BadInput, match="can't be read"):
            await documents.get(f"{url}?{len(addresses)}{addresses[0]}".replace("%", "%25").replace("\\", ""))
    literal = f"[{address}]" if ":" in address else address
    with pytest.raises(BadInput):
        await documents.get(f"https://{literal}/claude.json")
    assert site.transport is not None
    assert (site.transport.asked, site.asked) == ([], [])


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
async def test_public_addresses_are_asked_for(site: Site, address: str) -> None:
    url, documents = site.describe("/claude.json"), site.documents([address])
    site.names["app.example"] = [[address]]
    assert (await documents.get(url)).name == "Claude"


async def test_a_name_that_leads_elsewhere_at_the_next_look_up_gains_nothing(site: Site) -> None:
    url = site.describe("/claude.json")
    site.names["app.example"] = [[PUBLIC_ADDRESS], ["127.0.0.1"]]
    documents = site.documents([PUBLIC_ADDRESS, "127.0.0.1"])
    await documents.get(url)
    assert site.transport is not None
    assert site.transport.asked == [PUBLIC_ADDRESS]
    with pytest.raises(BadInput):
        await documents.get(f"{url}?again")
    assert site.transport.asked == [PUBLIC_ADDRESS], "it is looked up once for each connection"


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example/x",
        "https://app.example",
        "https://app.example/",
        "https://user@app.example/x",
        "https://user:password@app.example/x",
        "https://app.example/x#y",
        "https://app.example/../x",
        "https://app.example/a/./x",
        "https://app.example/a/%2E%2e/x",
        "https://app.example\\@evil.example/x",
        "https://app.example/x y",
        "https://app.example/x\n",
        "https://app.example:0x50/x",
        "https://app.example:99999/x",
        "https://\u0430pp.example/x",
        "https:///x",
        "https://app.example/" + "x" * 500,
        "file:///etc/passwd",
        "HTTPS://app.example/x",
    ],
)
async def test_what_is_no_address_of_an_app_is_not_asked_for(site: Site, url: str) -> None:
    with pytest.raises(BadInput):
        await site.documents().get(url)
    assert site.looked_up == []


async def test_a_site_that_is_not_who_it_says_is_not_read(site: Site) -> None:
    site.describe("/claude.json", "third.example")
    with pytest.raises(BadInput, match="can't be read"):
        await site.documents().get("https://third.example/claude.json")
    assert site.asked == [], "its certificate is for other names"


BODY: Final = b'{"client_id": "https://app.example/x", "redirect_uris": ["https://claude.example/callback"]}'
ANSWERS: Final = {
    "a redirect": http(b"", "302 Found", more="Location: https://app.example/good\r\n"),
    "another status": http(BODY, "404 Not Found"),
    "a created one": http(BODY, "201 Created"),
    "HTML": http(BODY, kind="text/html"),
    "no type": http(BODY, kind=""),
    "too long": http(BODY[:-1] + b" " * 10_000 + b"}"),
    "longer than it says": http(b"x" * 20_000)[:-10_000],
    "compressed": http(BODY, more="Content-Encoding: gzip\r\n"),
    "no JSON": http(b"{"),
    "a list": http(b"[]"),
    "null": http(b"null"),
    "not UTF-8": http(b'{"client_id": "\xff"}'),
    "deep": http(b"[" * 5_000),
    "of another address": http(BODY.replace(b"/x", b"/y")),
    "without its address": http(BODY.replace(b"client_id", b"id")),
    "with a secret": http(BODY[:-1] + b', "client_secret": "x"}'),
    "with a way of its own": http(BODY[:-1] + b', "token_endpoint_auth_method": "private_key_jwt"}'),
    "leading nowhere": http(b'{"client_id": "https://app.example/x"}'),
    "leading to a scheme": http(b'{"client_id": "https://app.example/x", "redirect_uris": ["cursor://x"]}'),
    "leading to many": http(BODY.replace(b"[", b"[" + b'"https://x.example/", ' * 20)),
    "no HTTP": b"hello\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("wrong", ANSWERS)
async def test_what_is_no_document_of_an_app_is_refused(site: Site, wrong: str) -> None:
    site.answers["/x"] = ANSWERS[wrong]
    site.answers["/good"] = http(BODY)
    documents = site.documents()
    with pytest.raises(BadInput):
        await documents.get("https://app.example/x")
    assert site.asked == ["/x"]
    assert site.transport is not None
    assert site.transport.asked == [PUBLIC_ADDRESS], "no redirect is followed"
    with pytest.raises(BadInput):
        await documents.get("https://app.example/x")
    assert site.asked == ["/x"], f"it is left alone for {FAILED_SECONDS} seconds"
    site.answers["/x"] = http(BODY)
    assert (await site.documents().get("https://app.example/x")).name == "app.example"


async def test_a_site_that_does_not_answer_in_time_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.web.oauth.documents.DOCUMENT_SECONDS", 0.2)
    asked = asyncio.Event()

    async def never(host: str, port: int) -> list[str]:
        asked.set()
        return await asyncio.Future()

    with pytest.raises(BadInput, match="can't be read"):
        await ClientDocuments(never).get("https://app.example/x")
    assert asked.is_set()


async def test_documents_are_kept_by_their_headers_within_bounds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("bot.web.oauth.documents.time.monotonic", lambda: now[0])
    for cache, seconds in (
        ("", LEAST_SECONDS),
        ("max-age=600", 600),
        ("max-age=600, no-store", LEAST_SECONDS),
        ("max-age=0", LEAST_SECONDS),
        ("max-age=999999999", MOST_SECONDS),
    ):
        url, documents = site.describe("/claude.json", cache=cache), site.documents()
        site.asked.clear()
        await documents.get(url)
        now[0] += seconds - 1
        await documents.get(url)
        assert len(site.asked) == 1, cache
        now[0] += 2
        await documents.get(url)
        assert len(site.asked) == 2, cache


async def test_so_many_documents_are_kept(site: Site) -> None:
    documents = site.documents()
    for n in range(MAX_DOCUMENTS + 50):
        with pytest.raises(BadInput):
            await documents.get(f"https://app.example/{n}")
    assert len(documents._kept) <= MAX_DOCUMENTS


async def test_an_app_with_an_address_has_its_tokens_while_its_site_is_away(nexus: Nexus) -> None:
    url = nexus.site.describe("/claude.json")
    code = await nexus.code(await nexus.signed_in(), url, "claude")
    nexus.site.answers.clear()
    given = (await nexus.tokens(url, code)).json()
    assert (await nexus.renew(url, given["refresh_token"])).status_code == 200
    assert nexus.site.asked == ["/claude.json"]

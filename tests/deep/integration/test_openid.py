"""Signing in by an account at an OpenID provider: connected once by its person, known by issuer and subject alone."""

import json
import re
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from pydantic import SecretStr

from bot.console.doctor import Check, run_doctor
from bot.console.operations import export_user
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.openid import OpenIdProvider
from composer.errors import Misconfigured
from composer.model import Trust
from composer.people.credentials.invitations import BY_ACCOUNT
from composer.people.credentials.issuing import delete_credentials
from composer.people.credentials.openid import ANOTHERS, NO_LOGINS_FOR_GUESTS, NOT_CONNECTED, OpenIdAccount
from composer.people.credentials.resolver import Resolver
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.browser import Browser
from tests.support.harness import AppHarness
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    KEY,
    STRANGER,
    Claims,
    Provider,
    open_provider,
    unsigned,
)
from tests.support.web import served_at

PUBLIC: Final = "https://nexus.example.com"
CALLBACK: Final = f"{PUBLIC}/login/openid/done"
SESSION: Final = "__Host-nexus"
FLOW: Final = "__Host-nexus-openid"
OWN: Final = {"Sec-Fetch-Site": "same-origin"}


def settings_of(harness: AppHarness, provider: Provider, **more: Any) -> dict[str, Any]:
    return {
        "public_url": PUBLIC,
        "oidc_issuer": provider.url,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": SecretStr(CLIENT_SECRET),
        "oidc_tenant": harness.workspace().tenant,
        **more,
    }


@asynccontextmanager
async def nexus(harness: AppHarness, provider: Provider, **more: Any) -> AsyncIterator[Callable[[], Browser]]:
    """A served Nexus with the provider: makes a new browser with each call."""
    settings = harness.app.settings.model_copy(update=settings_of(harness, provider, **more))
    served = web_app(replace(harness.app, settings=settings), Metrics([]), {}, None)
    async with served_at(served) as url:
        yield lambda: Browser(url, PUBLIC)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with open_provider(CALLBACK) as provider:
        yield provider


@pytest.fixture
async def browsers(harness: AppHarness, provider: Provider) -> AsyncIterator[Callable[[], Browser]]:
    async with nexus(harness, provider, requests_per_minute=10_000) as browsers:
        yield browsers


async def of_person(harness: AppHarness, browser: Browser, name: str = "alice") -> Browser:
    """A browser in which a person is signed in by a link."""
    browser.cookies[SESSION] = await cookie_of(harness, name)
    return browser


async def go_and_return(browser: Browser, address: str) -> Any:
    """Go to the provider, sign in there, and come back: the answer of ours."""
    there = await browser.get(address)
    assert there.status_code == 302, there.text
    return await browser.get(there.headers["location"])


async def leave_to_connect(browser: Browser) -> str:
    """Press the button that leads to the provider: its address."""
    page = await browser.press("/login/account/connect")
    assert page.status_code == 200, page.text
    found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page.text)
    assert found is not None
    return found[1].replace("&amp;", "&")


async def connect(harness: AppHarness, browser: Browser, name: str = "alice") -> Browser:
    """A browser of a person, who has connected the provider's account."""
    await of_person(harness, browser, name)
    back = await go_and_return(browser, await leave_to_connect(browser))
    assert (back.status_code, back.headers["location"]) == (303, "/login/account"), back.text
    done = await browser.press("/login/account/confirm")
    assert (done.status_code, done.headers["location"]) == (303, "/login/account"), done.text
    return browser


async def sign_in(browser: Browser) -> Any:
    """Sign in by the provider's account: the last answer."""
    return await go_and_return(browser, (await browser.get("/login/openid")).headers["location"])


async def who(harness: AppHarness, browser: Browser) -> uuid.UUID | None:
    resolver: Resolver = harness.app.credentials
    found = await resolver.resolve(None, browser.cookies.get(SESSION))
    return None if found is None else found.user


async def logins(harness: AppHarness, name: str = "alice") -> list[str]:
    found = await person(harness, name)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        return [each.name for each in await tx.openid_logins.of([found.id])]


async def test_who_connected_an_account_signs_in_by_it_in_any_browser(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    mine = await connect(harness, browsers())
    assert await logins(harness) == ["alice@idp"]
    shown = await mine.get("/login/account")
    assert "signed in as alice" in shown.text
    assert f"alice@idp at {provider.url} signs you in." in shown.text
    new = browsers()
    done = await sign_in(new)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert await who(harness, new) == (await person(harness, "alice")).id
    assert FLOW not in new.cookies, "what was needed on the way is gone"
    set_cookie = next(each for each in done.headers.get_list("set-cookie") if each.startswith(f"{SESSION}="))
    assert {"httponly", "secure", "path=/", "samesite=lax", "max-age=2592000"} == {
        part.strip().lower() for part in set_cookie.split(";")[1:]
    }


async def test_the_way_there_has_a_challenge_a_state_and_a_nonce_of_its_own_and_one_address_back(
    provider: Provider, browsers: Callable[[], Browser]
) -> None:
    asked = []
    for query in ("", "?next=https://evil.example&redirect_uri=https://evil.example"):
        there = await browsers().get(f"/login/openid{query}")
        asked.append({name: values[0] for name, values in parse_qs(urlsplit(there.headers["location"]).query).items()})
    one, other = asked
    assert one["redirect_uri"] == other["redirect_uri"] == CALLBACK
    assert one["code_challenge_method"] == "S256"
    assert one["scope"].split()[0] == "openid"
    for name in ("state", "nonce", "code_challenge"):
        assert len(one[name]) >= 20
        assert one[name] != other[name]


async def test_an_account_that_nobody_connected_signs_nobody_in_whatever_it_is_called(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    await person(harness, "alice")
    provider.account = {"sub": "alice", "preferred_username": "alice", "name": "alice", "email": "alice@example.com"}
    browser = browsers()
    answer = await sign_in(browser)
    assert (answer.status_code, NOT_CONNECTED.split(":")[0].split("(")[0].strip() in answer.text) == (404, True)
    assert SESSION not in browser.cookies
    await connect(harness, browsers())
    provider.account |= {"sub": "ALICE"}
    assert (await sign_in(browser)).status_code == 404, "another subject is another account"


FORGERIES: Final[dict[str, Callable[[Claims], Claims]]] = {
    "another nonce": lambda claims: claims | {"nonce": "another"},
    "no nonce": lambda claims: {name: value for name, value in claims.items() if name != "nonce"},
    "another audience": lambda claims: claims | {"aud": "another"},
    "another audience, though the party is ours": lambda claims: claims | {"aud": "another", "azp": CLIENT_ID},
    "the token of another party": lambda claims: claims | {"aud": [CLIENT_ID, "another"], "azp": "another"},
    "expired": lambda claims: claims | {"iat": claims["iat"] - 3_600, "exp": claims["iat"] - 3_000},
    "not valid yet": lambda claims: claims | {"nbf": claims["iat"] + 3_000},
    "another issuer": lambda claims: claims | {"iss": "https://evil.example"},
    "no issuer": lambda claims: {name: value for name, value in claims.items() if name != "iss"},
    "no subject": lambda claims: {name: value for name, value in claims.items() if name != "sub"},
    "an empty subject": lambda claims: claims | {"sub": ""},
    "a subject that is no text": lambda claims: claims | {"sub": ["u-1"]},
    "another access token": lambda claims: claims | {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}
SIGNATURES: Final[dict[str, Callable[[Claims], str]]] = {
    "no signature": unsigned,
    "no algorithm, signature left": lambda claims: (
        unsigned(claims) + jwt.encode({"alg": "RS256"}, claims, KEY).split(".")[2]
    ),
    "signed with the client's secret": lambda claims: jwt.encode(
        {"alg": "HS256"}, claims, OctKey.import_key(CLIENT_SECRET), algorithms=["HS256"]
    ),
    "signed by a stranger": lambda claims: jwt.encode({"alg": "RS256", "kid": "first"}, claims, STRANGER),
    "signed with an unknown key": lambda claims: jwt.encode({"alg": "RS256", "kid": "second"}, claims, STRANGER),
    "no token": lambda claims: "",
    "no token at all": lambda claims: "nonsense",
}


async def test_a_wrong_answer_of_the_provider_signs_nobody_in(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    await connect(harness, browsers())
    right, sign = provider.forge, provider.sign
    for name, forge in FORGERIES.items():
        provider.forge = forge
        browser = browsers()
        answer = await sign_in(browser)
        assert (answer.status_code, browser.cookies) == (403, {}), (name, answer.text)
    provider.forge = right
    for name, wrong in SIGNATURES.items():
        provider.sign = wrong
        browser = browsers()
        answer = await sign_in(browser)
        assert (answer.status_code, browser.cookies) == (403, {}), (name, answer.text)
    provider.sign = sign
    assert (await sign_in(browsers())).status_code == 303, "and with nothing wrong it does"


async def test_a_browser_comes_back_only_from_where_it_went_and_once(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    await connect(harness, browsers())
    mine, other = browsers(), browsers()
    back = (await mine.get((await mine.get("/login/openid")).headers["location"])).headers["location"]
    assert (await other.get(back)).status_code == 403, "a browser that did not go there"
    await other.get("/login/openid")
    assert (await other.get(back)).status_code == 403, "one that went with another state"
    assert SESSION not in other.cookies
    saved = dict(mine.cookies)
    assert (await mine.get(back)).status_code == 303
    del mine.cookies[SESSION]
    assert (await mine.get(back)).status_code == 403, "the same answer again"
    mine.cookies = saved
    assert (await mine.get(back)).status_code == 403, "its code is used up, also with the cookie of before"
    state = parse_qs(urlsplit(back).query)["state"][0]
    for query in (
        "",
        "?code=x",
        f"?state={state}",
        f"?error=access_denied&error_description=<b>evil</b>&state={state}",
    ):
        mine.cookies = dict(saved)
        refused = await mine.get(f"/login/openid/done{query}")
        assert (refused.status_code, "evil" in refused.text) == (403, False), query
    assert SESSION not in mine.cookies


async def test_an_answer_that_names_another_issuer_is_refused(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    await connect(harness, browsers())
    for issuer, status in (("https://evil.example", 403), (provider.url, 303)):
        browser = browsers()
        back = (await browser.get((await browser.get("/login/openid")).headers["location"])).headers["location"]
        assert (await browser.get(f"{back}&iss={issuer}")).status_code == status
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    async with nexus(harness, provider) as others:
        assert (await sign_in(others())).status_code == 403, "a provider that says it names itself must do so"


async def test_what_a_browser_carries_is_believed_only_as_we_wrote_it(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    victim, attacker = await of_person(harness, browsers()), await of_person(harness, browsers(), "eve")
    back = await go_and_return(attacker, await leave_to_connect(attacker))
    assert back.status_code == 303
    sealed = attacker.cookies[FLOW]
    victim.cookies[FLOW] = sealed
    assert "Connect it" not in (await victim.get("/login/account")).text
    assert (await victim.press("/login/account/confirm")).status_code == 403, "what another web session set out to do"
    changed = settings_of(harness, provider, oidc_client_secret=SecretStr("another secret of a client"))
    other = harness.app.settings.model_copy(update=changed).openid
    assert other is not None
    body, _, signature = sealed.rpartition(".")
    wrong = (
        f"{body}.{signature[::-1]}",
        "x",
        f"{sealed}x",
        OpenIdProvider(other).seal({"session": "x"}),
    )
    for text in wrong:
        attacker.cookies[FLOW] = text
        assert (await attacker.press("/login/account/confirm")).status_code == 403, text
    attacker.cookies = {**attacker.cookies, FLOW: sealed, f" {FLOW}": sealed}
    assert (await attacker.press("/login/account/confirm")).status_code == 403, "two cookies of one name"
    assert await logins(harness) == await logins(harness, "eve") == []


async def test_an_old_cookie_holds_nothing(
    provider: Provider, harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = harness.app.settings.model_copy(update=settings_of(harness, provider)).openid
    assert settings is not None
    mine, same = OpenIdProvider(settings), OpenIdProvider(settings)
    sealed = mine.seal({"session": "x"})
    assert same.unseal(sealed) == {"session": "x"}, "any process of the service reads it"
    monkeypatch.setattr("bot.web.openid.FLOW_SECONDS", -1)
    assert same.unseal(sealed) == {}


async def test_nothing_is_connected_without_the_persons_own_buttons(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    stranger = browsers()
    assert (await stranger.get("/login/account")).status_code == 401
    assert (await stranger.press("/login/account/connect")).status_code == 401
    browser = await of_person(harness, browsers())
    foreign: list[dict[str, str]] = [{}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}]
    for headers in foreign:
        assert (await browser.press("/login/account/connect", headers)).status_code == 403
    back = await go_and_return(browser, await leave_to_connect(browser))
    assert back.status_code == 303
    assert "Connect alice@idp at" in (await browser.get("/login/account")).text
    assert await logins(harness) == [], "looking connects nothing"
    for headers in foreign:
        assert (await browser.press("/login/account/confirm", headers)).status_code == 403
    assert await logins(harness) == []
    assert (await browser.press("/login/account/confirm")).status_code == 303
    assert await logins(harness) == ["alice@idp"]
    assert (await browser.press("/login/account/confirm")).status_code == 403, "once"


async def test_going_to_connect_signs_nobody_in_and_signing_in_connects_nothing(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    await connect(harness, browsers())
    eve = await of_person(harness, browsers(), "eve")
    before = eve.cookies[SESSION]
    back = await go_and_return(eve, await leave_to_connect(eve))
    assert (back.headers["location"], eve.cookies[SESSION]) == ("/login/account", before)
    refused = await eve.press("/login/account/confirm")
    assert (refused.status_code, ANOTHERS in refused.text) == (409, True), "an account signs in one person"
    assert await logins(harness, "eve") == []
    provider.account |= {"sub": "u-2"}
    assert (await sign_in(eve)).status_code == 404
    assert (await eve.press("/login/account/confirm")).status_code == 403
    assert await logins(harness, "eve") == []


async def test_guests_and_people_of_another_tenant_connect_nothing(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with nexus(harness, provider, oidc_tenant="umbrella") as others:
        browser = await of_person(harness, others())
        assert (await browser.get("/login/account")).status_code == 403
        assert (await browser.press("/login/account/connect")).status_code == 403
        assert (await browser.press("/login/account/confirm")).status_code == 403
        assert (await browser.press("/login/account/disconnect", id=str(uuid.uuid4()))).status_code == 403
    await connect(harness, browsers())
    async with nexus(harness, provider, oidc_tenant="umbrella") as others:
        assert (await sign_in(others())).status_code == 404, "a connection holds in its own tenant"

    async def guest(*_: object) -> Trust:
        return Trust.GUEST

    eve = await of_person(harness, browsers(), "eve")
    provider.account |= {"sub": "u-2"}
    await go_and_return(eve, await leave_to_connect(eve))
    monkeypatch.setattr("composer.repositories.people.People.trust", guest)
    refused = await eve.press("/login/account/confirm")
    assert (refused.status_code, NO_LOGINS_FOR_GUESTS.split(",")[0] in refused.text) == (403, True)


async def test_only_verified_addresses_in_the_allowed_domains_are_admitted(
    harness: AppHarness, provider: Provider
) -> None:
    async with nexus(harness, provider, oidc_email_domains=("example.com",), requests_per_minute=10_000) as browsers:
        provider.account |= {"email": "alice@example.com", "email_verified": True}
        await connect(harness, browsers())
        refused: list[Claims] = [
            {"email_verified": False},
            {"email_verified": None},
            {"email_verified": "yes"},
            {"email": "alice@evil.example"},
            {"email": "alice@example.com.evil.example"},
            {"email": "alice@sub.example.com"},
            {"email": "example.com"},
            {"email": None},
            {"email": ["alice@example.com"]},
        ]
        for each in refused:
            right = dict(provider.account)
            provider.account |= each
            answer = await sign_in(browsers())
            assert (answer.status_code, "set-cookie" in answer.headers) == (403, True), each
            assert not any(cookie.startswith(f"{SESSION}=") for cookie in answer.headers.get_list("set-cookie")), each
            provider.account = right
        assert (await sign_in(browsers())).status_code == 303
        for name in ("email", "email_verified"):
            del provider.account[name]
        provider.userinfo = {"email": "alice@Example.com", "email_verified": True}
        assert (await sign_in(browsers())).status_code == 303, "by the provider's address for that"
        provider.userinfo |= {"sub": "u-2"}
        assert (await sign_in(browsers())).status_code == 403, "what it says there of somebody else is nothing"


async def test_a_disconnected_account_signs_nobody_in(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    browser = await connect(harness, browsers())
    eve = await of_person(harness, browsers(), "eve")
    found = re.search(r'name="id" value="([^"]+)"', (await browser.get("/login/account")).text)
    assert found is not None
    assert (await eve.press("/login/account/disconnect", id=found[1])).status_code == 404, "another person's"
    assert (await browser.press("/login/account/disconnect", {}, id=found[1])).status_code == 403
    assert (await sign_in(browsers())).status_code == 303
    assert (await browser.press("/login/account/disconnect", id=found[1])).status_code == 303
    assert (await sign_in(browsers())).status_code == 404
    assert (await browser.get("/login/account")).status_code == 200, "who is signed in stays so"


async def test_logins_are_listed_and_disconnected_over_the_api_and_by_commands(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    browser = await connect(harness, browsers())
    listed = await browser.get("/v1/logins", **bearer(await key_of(harness, "alice")))
    (item,) = listed.json()["items"]
    assert (item["issuer"], item["name"], item["last_used_at"]) == (provider.url, "alice@idp", None)
    assert "u-1" not in listed.text
    shown = (await harness.command("alice", "/nexus keys list", dm="nexus")).text
    assert f"{item['id'][:8]}  login, an account at {provider.url} as alice@idp: since" in shown
    assert "1 login" in (await harness.command("alice", "/nexus privacy", dm="nexus")).text
    ended = (await harness.command("alice", f"/nexus keys revoke {item['id'][:8]}", dm="nexus")).text
    assert ended == "The login has ended: from now on it opens nothing."
    assert (await sign_in(browsers())).status_code == 404
    rows = await acts_of(harness)
    assert [act for act in rows if act.startswith("login.") and act != "login.link"] == [
        "login.connected",
        "login.disconnected",
    ]


async def acts_of(harness: AppHarness) -> list[str]:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        return [each.event.act for each in await tx.audit.unsealed(100)]


async def test_erasing_a_person_disconnects_their_account(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    await connect(harness, browsers())
    alice = await person(harness, "alice")
    async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
        assert (await delete_credentials(tx, [alice.id]))["login"] == 1
    assert (await sign_in(browsers())).status_code == 404


async def test_a_provider_that_is_away_or_is_not_one_stops_nothing_else(
    harness: AppHarness, provider: Provider
) -> None:
    async with nexus(harness, provider, oidc_issuer="http://127.0.0.1:1") as browsers:
        away = await browsers().get("/login/openid")
        assert (away.status_code, "does not answer" in away.text) == (503, True)
        browser = await of_person(harness, browsers())
        assert (await browser.press("/login/account/connect")).status_code == 503
        assert (await browser.get("/login/account")).status_code == 200
    wrong: list[Claims] = [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"token_endpoint": None},
        {"jwks_uri": "ftp://evil.example"},
        {"id_token_signing_alg_values_supported": ["none", "HS256"]},
    ]
    for each in wrong:
        provider.metadata = each
        async with nexus(harness, provider) as browsers:
            answer = await browsers().get("/login/openid")
            assert (answer.status_code, "evil" in answer.text) == (500, False), each
        openid = harness.app.settings.model_copy(update=settings_of(harness, provider)).openid
        assert openid is not None
        with pytest.raises(Misconfigured):
            await OpenIdProvider(openid).check()
    provider.metadata = {}
    assert openid is not None
    assert (await OpenIdProvider(openid).check()).startswith(f"{provider.url} answers")


async def test_doctor_asks_the_provider_only_with_live(harness: AppHarness, provider: Provider) -> None:
    settings = harness.app.settings.model_copy(update=settings_of(harness, provider))

    async def said(*, live: bool = False) -> Check:
        [found] = [each for each in await run_doctor(settings, live=live) if each.name == "openid"]
        return found

    assert await said() == Check("openid", None, f"{provider.url}: not asked; nexus doctor --live does")
    assert provider.described == 0
    whole = f"{provider.url} answers, with 1 key; it leads back to {CALLBACK}"
    assert await said(live=True) == Check("openid", True, whole)
    provider.metadata = {"issuer": "https://evil.example"}
    wrong = "The provider calls itself https://evil.example: set NEXUS_OIDC_ISSUER to exactly that."
    assert await said(live=True) == Check("openid", False, wrong)
    assert not [each for each in await run_doctor(harness.app.settings) if each.name == "openid"]


async def test_a_login_is_in_its_persons_export_and_in_nobody_elses(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    await connect(harness, browsers())
    here = harness.workspace()
    for name, expected in (("alice", ["alice@idp"]), ("bob", [])):
        await person(harness, name)
        document = json.loads((await export_user(harness.app, here.platform, here.name, name)).text)
        assert [each["name"] for each in document["logins"]] == expected
        assert "u-1" not in json.dumps(document)


async def test_without_a_provider_its_pages_say_so(harness: AppHarness) -> None:
    served = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(served) as url:
        browser = Browser(url, "http://localhost")
        for path in ("/login/openid", "/login/openid/done", "/login/account"):
            answer = await browser.get(path)
            assert (answer.status_code, "No OpenID provider is set" in answer.text) == (404, True)
        assert "openid" not in (await browser.get("/login/done")).text


def test_an_account_is_its_issuer_and_its_subject() -> None:
    one = OpenIdAccount("https://a.example", "b", "alice")
    assert one.digest == OpenIdAccount("https://a.example", "b", "another name").digest
    assert one.digest != OpenIdAccount("https://a.example", "c", "alice").digest
    assert one.digest != OpenIdAccount("https://c.example", "b", "alice").digest
    assert OpenIdAccount("a", 'b","c', "").digest != OpenIdAccount('a","b', "c", "").digest


async def invite(harness: AppHarness, browser: Browser, **whom: str) -> str:
    """The path of the link of a new invitation by an admin."""
    alice = await person(harness, "alice")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(alice.id, True)
    headers = bearer(await key_of(harness, "alice")) | {"Host": urlsplit(PUBLIC).netloc}
    async with httpx2.AsyncClient(base_url=browser.url) as client:
        made = await client.post("/v1/admin/invitations", json=whom, headers=headers)
    assert made.status_code == 201, made.text
    return str(urlsplit(made.json()["link"]).path)


async def test_an_invitation_to_an_address_is_accepted_by_the_account_that_has_it(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    path = await invite(harness, browsers(), email="Dana@Example.com")
    first = browsers()
    page = await first.get(path)
    assert 'href="/login/openid"' in page.text
    assert 'action="/invite"' not in page.text
    refused = await first.press("/invite", code=path.rpartition("/")[2], name="Mallory")
    assert (refused.status_code, BY_ACCOUNT in refused.text) == (403, True)
    account = {"sub": "u-dana", "preferred_username": "dana@idp", "email": "dana@example.com", "email_verified": True}
    for wrong in ({"email_verified": False}, {"email": "eve@example.com"}, {"email": None}):
        provider.account = account | wrong
        assert (await sign_in(browsers())).status_code == 404, wrong
    provider.account = account
    dana = browsers()
    assert (await sign_in(dana)).headers["location"] == "/"
    found = await who(harness, dana)
    assert found is not None
    again = browsers()
    provider.account = account | {"email": "dana@elsewhere.example"}
    assert (await sign_in(again)).headers["location"] == "/"
    assert await who(harness, again) == found, "from then on the account is connected, whatever its address"
    provider.account = account | {"sub": "u-another"}
    assert (await sign_in(browsers())).status_code == 404, "it works once"
    assert (await browsers().get(path)).status_code == 404


async def test_who_came_by_an_address_is_called_as_invited_or_as_the_account(
    harness: AppHarness, provider: Provider, browsers: Callable[[], Browser]
) -> None:
    names = []
    for n, (invited, called) in enumerate((("Dana", "dana@idp"), ("", "Erin Example"), ("", "…"))):
        email = f"person{n}@example.com"
        await invite(harness, browsers(), name=invited, email=email)
        of = {"sub": f"u-{n}", "preferred_username": called}
        provider.account = of | {"email": email, "email_verified": True}
        browser = browsers()
        assert (await sign_in(browser)).headers["location"] == "/"
        names.append((await browser.get("/v1/whoami")).json()["name"])
    assert names == ["Dana", "Erin Example", "person2"]

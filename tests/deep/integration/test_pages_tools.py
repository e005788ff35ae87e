"""The page of what opens a person's memory: what it shows of whom, how a tool is connected, and how each ends."""

import re

import httpx2
import pytest

from composer.model import derived_id
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.repositories.api_keys import KeyEntry
from composer.repositories.openid_logins import LoginEntry
from composer.settings import Settings
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.gateway import gateway_stage
from tests.support.harness import AppHarness
from tests.support.pages import BITES, Person

DM = {"dm": "nexus"}


@pytest.fixture
async def alice(harness: AppHarness, client: httpx2.AsyncClient) -> Person:
    await harness.say("alice", "good morning", **DM)
    return Person(client, await cookie_of(harness, "alice"))


async def known(client: httpx2.AsyncClient, key: str) -> int:
    return (await client.get("/v1/whoami", headers=bearer(key))).status_code


def endings(page: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r'href="(/tools/\w+/[0-9a-f-]{36}/end)"', page)))


async def test_a_key_is_made_shown_once_and_opens_what_the_page_says(client: httpx2.AsyncClient, alice: Person) -> None:
    assert "No AI tool is connected yet." in await alice.page("/tools")
    made = await alice.press("/tools", vendor="Claude", lifetime="90d")
    assert made.status_code == 200
    assert made.headers["cache-control"] == "private, no-store"
    [key] = set(re.findall(r"nx_\w+_[0-9a-f]{64}", made.text))
    said = (await client.get("/v1/whoami", headers=bearer(key))).json()
    assert (said["vendor"], said["kind"], said["expires_at"] is None) == ("claude", "tool", False)
    assert "chat" not in said["permissions"]
    address = re.search(r"claude mcp add --transport http nexus (\S+)/mcp --header", made.text)
    assert address is not None
    assert "OPENAI_BASE_URL" not in made.text, "there is no gateway here"
    assert 'value="gateway"' not in made.text
    assert f"curl {address[1]}/v1/query" in made.text
    assert made.text.count(key) == 6, "by itself, and where it is pasted"
    listed = await alice.page("/tools")
    assert key not in listed
    assert key[:-56] in listed, "its beginning"
    assert "read your entries, write entries of yours" in listed
    assert "see rooms, DMs or conversations" in listed


async def test_a_key_is_tried_with_what_an_entry_answers(alice: Person) -> None:
    assert 'title="Letters, digits, - and _, without a space: my-tool"' in await alice.page("/tools")
    empty = await alice.press("/tools", vendor="claude")
    assert re.search(r'name="question"[^>]* value=""', empty.text)
    assert "It finds entries alone" in empty.text
    await alice.press("/memory", text="zqherons nest in March")
    made = await alice.press("/tools", vendor="claude")
    assert re.search(r'name="question"[^>]* value="zqherons nest in March"', made.text)


async def test_where_there_is_a_gateway_a_key_is_pasted_for_it_and_tried(settings: Settings) -> None:
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url) as client:
        alice = Person(client, await cookie_of(stage.harness, "alice"))
        await alice.page("/tools")
        made = (await alice.press("/tools", vendor="claude")).text
    address = re.search(r"curl (\S+)/v1/query", made)
    assert address is not None
    assert f"OPENAI_BASE_URL={address[1]}/v1" in made
    assert 'value="mcp"' in made
    assert 'value="gateway"' in made


async def test_how_long_a_key_works_is_chosen(client: httpx2.AsyncClient, alice: Person) -> None:
    await alice.page("/tools")
    for lifetime, ends in (("", False), ("30d", True), ("365d", True)):
        made = await alice.press("/tools", vendor="cursor", lifetime=lifetime)
        [key] = set(re.findall(r"nx_\w+_[0-9a-f]{64}", made.text))
        said = (await client.get("/v1/whoami", headers=bearer(key))).json()
        assert (said["expires_at"] is not None) == ends
    for values in ({"vendor": "claude", "lifetime": "soon"}, {"vendor": "no tool!"}, {"vendor": "x" * 33}, {}):
        refused = await alice.press("/tools", **values)
        assert refused.status_code in (400, 422)
        assert "nx_" not in refused.text
    assert len(endings(await alice.page("/tools"))) == 4, "three keys and this browser"


async def test_what_ends_is_shown_first_and_ends_at_once(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    key = await key_of(harness, "alice", "cursor")
    other = Person(client, await cookie_of(harness, "alice"))
    listed = await alice.page("/tools")
    assert listed.count("this browser") == 1
    for address in endings(listed):
        asked = await alice.page(address)
        assert "csrf" in asked
    assert await known(client, key) == 200, "nothing ended by being looked at"
    [of_key] = [each for each in endings(listed) if "/keys/" in each]
    assert (await alice.press(of_key)).headers["location"] == "/tools"
    assert await known(client, key) == 401
    ended = await alice.page("/tools")
    assert of_key not in ended
    assert ">ended<" in ended
    assert (await alice.get(of_key)).status_code == 404
    [here] = [each for each in endings(await alice.page("/tools")) if "at once" in await alice.page(each)]
    [there] = [each for each in endings(ended) if "/sessions/" in each and each != here]
    await other.page("/tools")
    await alice.press(there)
    assert (await other.get("/tools")).headers["location"] == "/login"
    assert (await alice.press(here)).headers["location"] == "/login"
    assert (await alice.get("/tools")).headers["location"] == "/login"


async def test_nobody_sees_or_ends_what_is_another_s(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    key = await key_of(harness, "alice", "cursor")
    before = await alice.page("/tools")
    bob = Person(client, await cookie_of(harness, "bob"))
    bobs = await key_of(harness, "bob", "claude")
    await client.get("/v1/whoami", headers=bearer(bobs))
    assert await alice.page("/tools") == before, "of bob's nothing is there"
    of_bob = await bob.page("/tools")
    assert "cursor" not in re.sub(r"(?s)<datalist.*?</datalist>", "", of_bob)
    for address in endings(before):
        assert (await bob.get(address)).status_code == 404
        assert (await bob.press(address)).status_code == 404
        token, bob.csrf = bob.csrf, alice.csrf
        assert (await bob.press(address)).status_code == 403
        bob.csrf = token
    assert await known(client, key) == 200
    token, alice.csrf = alice.csrf, bob.csrf
    for address in ("/tools", *endings(before)):
        assert (await alice.press(address, vendor="claude")).status_code == 403
        for headers in ({}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await alice.press(address, headers, vendor="claude")).headers["location"] == "/login"
    alice.csrf = token
    assert endings(await alice.page("/tools")) == endings(before), "nothing was made or ended"


async def test_names_are_no_markup_and_permissions_are_said_in_words(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    found, here, now = await person(harness, "alice"), harness.workspace(), harness.clock.now()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        for number, bite in enumerate(BITES):
            request = KeyRequest("claude", bite, ["entries:read"])
            await create_key(tx, here.tenant, found, request, bytes([number]) * 32, now, by=found.id)
    shown = await alice.page("/tools")
    pages = [shown, *[await alice.page(each) for each in endings(shown)]]
    for text in pages:
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "<b hx-get" not in text
        assert " 49 " not in text
    assert "Can: read your entries</span>" in shown
    assert "Can't: write entries of yours, " in shown


async def test_apps_and_accounts_are_shown_and_ended_too(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    found, here, now = await person(harness, "alice"), harness.workspace(), harness.clock.now()
    app = KeyEntry(
        derived_id("key", "app"), found.id, "claude", BITES[0], "", ("entries:read",), now, None, None, None,
        client="c1", redirect_uri="https://claude.example/back?x=1",
    )  # fmt: skip
    login = LoginEntry(derived_id("login", "a"), found.id, "https://id.example", BITES[1], now, None)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        await tx.api_keys.insert(app, None, found.id)
        await tx.openid_logins.connect(login, b"d" * 32)
    shown = await alice.page("/tools")
    bob = Person(client, await cookie_of(harness, "bob"))
    await bob.page("/tools")
    for text in ("claude.example", "writes as claude", "https://id.example", "Accounts that sign you in"):
        assert text in shown
    assert "<script>alert" not in shown
    assert "<img src=x" not in shown
    for address in (f"/tools/keys/{app.id}/end", f"/tools/logins/{login.id}/end"):
        assert "Disconnect this" in await alice.page(address)
        assert (await bob.press(address)).status_code == 404
        assert (await alice.press(address)).headers["location"] == "/tools"
        assert (await alice.get(address)).status_code == 404
    async with harness.app.database.transaction(here.tenant_id) as tx:
        assert await tx.openid_logins.of([found.id]) == []
        assert all(each.revoked_at is not None for each in await tx.api_keys.of([found.id]))


async def test_a_key_for_one_project_says_which(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "/nexus project create apollo", **DM)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        (apollo,) = await tx.projects.named("apollo")
    await key_of(harness, "alice", "claude", [f"project-{apollo}:read"])
    shown = await alice.page("/tools")
    assert "Can: read the entries of project apollo</span>" in shown
    assert "Can't: read your entries, write entries of yours, " in shown


async def test_the_tool_of_who_has_opted_out_is_said_to_read_alone(harness: AppHarness, alice: Person) -> None:
    await key_of(harness, "alice", "cursor")
    assert "write entries of yours" in (await alice.page("/tools")).split("Can't:")[0]
    await harness.command("alice", "/nexus opt-out --yes", **DM)
    can = (await alice.page("/tools")).split("Can:")[1].split("Can't:")[0]
    assert "read your entries" in can
    assert "write entries of yours" not in can

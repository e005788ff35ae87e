"""Webhooks: a person's programs are told what that person's open pages are told, signed, at least once, and no word."""

import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import asyncpg
import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.people.credentials.leaving import end_access
from composer.people.watching import SHOWN, WatchedPage
from composer.people.webhook_messages import GIVEN_UP_AFTER, LONGEST_PAUSE, WHAT, pause_after, signed_headers
from composer.settings import Settings
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness, open_harness
from tests.support.hooks import HookReceiver, hook_receiver, is_id, send_due
from tests.support.pages import OWN, Person
from tests.support.web import served_at

VAULT: Final[dict[str, Any]] = {"room": "vault", "private": True}
WORDS: Final = ("zqheron", "zqvault", "vault", "alice", "bob", "apollo")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"webhook_hosts": "localhost"})) as harness:
        yield harness


@pytest.fixture
async def client(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    async with serving(harness) as client:
        yield client


@asynccontextmanager
async def serving(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    """The web port of an app."""
    served = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture
async def receiver() -> AsyncIterator[HookReceiver]:
    async with hook_receiver() as receiver:
        yield receiver


async def signed_in(harness: AppHarness, client: httpx2.AsyncClient, name: str) -> Person:
    return Person(client, await cookie_of(harness, name))


async def sent(person: Person, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = await person.client.request(method, path, json=body, headers=OWN | person._cookie())
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def hook_of(person: Person, receiver: HookReceiver, **more: Any) -> dict[str, Any]:
    """A new webhook of somebody, which was told of itself already."""
    return cast(dict[str, Any], await sent(person, "POST", "/v1/webhooks", {"url": receiver.url, **more}, 201))


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The vector that its libraries are tested with."""
    now = datetime.fromtimestamp(1614265330, tz=UTC)
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    headers = signed_headers(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", now, body)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_everything_that_pages_watch_has_a_word() -> None:
    assert set(WHAT) == set().union(*(tables for page, tables in SHOWN.items() if page is not WatchedPage.ADMIN))


def test_pauses_grow_to_eight_hours() -> None:
    assert [pause_after(n).total_seconds() for n in (1, 2, 3)] == [10, 40, 160]
    assert pause_after(9) == pause_after(90) == LONGEST_PAUSE


async def test_a_program_waits_for_a_decision_in_a_project_and_asks_for_it_with_its_own_key(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    for name in ("alice", "bob"):
        await harness.say(name, "good morning", **VAULT)
    alice = await signed_in(harness, client, "alice")
    project = (await sent(alice, "POST", "/v1/projects", {"name": "apollo"}, 201))["id"]
    hook = await hook_of(alice, receiver, pages=["rooms"], of=project)
    assert hook["secret"].startswith("whsec_")
    await harness.command("alice", "/nexus project assign apollo --yes", **VAULT)
    await send_due(harness.app)
    receiver.taken.clear()
    await harness.command("alice", "/nexus landmark add we use zqheron --project --yes", **VAULT)
    assert await send_due(harness.app) == 1
    assert receiver.changes(hook["secret"]) == [("decisions", project)]
    [message] = receiver.messages(hook["secret"])
    assert all(each["pages"] == ["rooms"] for each in message["data"]["changes"])
    key = bearer(await key_of(harness, "alice"))
    found = await client.get(f"/v1/projects/{project}/landmarks", headers=key)
    assert "zqheron" in found.text
    assert await send_due(harness.app) == 0, "it is told once"


async def test_a_webhook_is_told_what_its_person_may_see_and_nothing_else(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    """Twin worlds: whatever bob does where alice may not read, her webhook hears what it hears without that."""
    for name in ("bob", "carol"):
        await harness.say(name, "good morning", **VAULT)
    await harness.say("alice", "good morning", room="general")
    alice, bob = [await signed_in(harness, client, name) for name in ("alice", "bob")]
    hook = await hook_of(alice, receiver)
    await send_due(harness.app)
    before = [each async for each in lists_of(alice)]
    receiver.taken.clear()
    for command in ("fact set zqday Monday --yes", "landmark add we use zqheron --yes", "remember zqheron flies --yes"):
        await harness.command("bob", f"/nexus {command}", **VAULT)
    await harness.say("bob", "zqheron", **VAULT)
    await sent(bob, "POST", "/v1/entries", {"content": "zqheron"}, 201)
    await sent(bob, "POST", "/v1/teams", {"name": "Ops"}, 201)
    await sent(bob, "POST", "/v1/projects", {"name": "apollo"}, 201)
    await sent(bob, "POST", "/v1/keys", {"vendor": "claude"}, 201)
    await send_due(harness.app)
    assert receiver.taken == []
    assert [each async for each in lists_of(alice)] == before
    await sent(alice, "POST", "/v1/entries", {"content": "zqvault"}, 201)
    await harness.command("alice", "/nexus fact set zqday Monday --yes", room="general")
    assert await send_due(harness.app) == 1
    assert {what for what, _ in receiver.changes(hook["secret"])} == {"memories", "facts"}


async def lists_of(person: Person) -> AsyncIterator[Any]:
    yield await sent(person, "GET", "/v1/webhooks")


async def test_what_is_sent_is_ids_kinds_and_times(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    for name in ("alice", "bob"):
        await harness.say(name, "good morning", **VAULT)
    alice = await signed_in(harness, client, "alice")
    [room] = (await sent(alice, "GET", "/v1/rooms"))["items"]
    everything, of_room = await hook_of(alice, receiver), await hook_of(alice, receiver, of=room["id"])
    await send_due(harness.app)
    receiver.taken.clear()
    for command in ("fact set zqheron Monday --yes", "landmark add we use zqheron --yes", "remember zqheron --yes"):
        await harness.command("bob", f"/nexus {command}", **VAULT)
    await harness.say("bob", "zqheron flies", **VAULT)
    await sent(alice, "POST", "/v1/chat", {"content": "what of zqheron?", "session": "zqvault"}, 200)
    await sent(alice, "POST", "/v1/projects", {"name": "apollo"}, 201)
    assert await send_due(harness.app) == 2
    seen = set[str]()
    for headers, body in receiver.taken:
        assert not [word for word in WORDS if word in str(headers) + body.decode()]
        secret = everything["secret"] if b'"messages"' not in body else of_room["secret"]
        receiver_of_one = HookReceiver(0, taken=[(headers, body)])
        [message] = receiver_of_one.messages(secret)
        assert set(message) == {"type", "timestamp", "data"}
        assert message["type"] == "changed"
        for each in message["data"]["changes"]:
            assert set(each) == {"what", "place", "pages"}
            assert each["what"] in WHAT.values()
            assert is_id(each["place"])
            seen.add(each["what"])
    assert {"facts", "decisions", "memories", "conversations", "projects", "messages"} <= seen


async def test_several_changes_are_one_message_and_each_is_said_once(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory"])
    for n in range(5):
        await sent(alice, "POST", "/v1/entries", {"content": f"zq{n}"}, 201)
    assert await send_due(harness.app) == 1
    assert receiver.changes(hook["secret"]) == [("memories", None)]


async def test_what_was_not_taken_is_sent_again_as_the_same_message_and_nothing_is_lost(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory"])
    receiver.answer = "500 Internal Server Error"
    await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)
    assert await send_due(harness.app) == 1
    assert await send_due(harness.app) == 0, "not before the pause is over"
    [shown] = (await sent(alice, "GET", "/v1/webhooks"))["items"]
    assert (shown["failures"], shown["last_result"]) == (1, "500")
    assert "secret" not in shown
    await harness.command("alice", "/nexus fact set zqday Monday --yes", dm="nexus")
    harness.clock.tick(10)
    assert await send_due(harness.app) == 1
    receiver.answer = "204 No Content"
    harness.clock.tick(40)
    assert [await send_due(harness.app) for _ in range(3)] == [1, 1, 0]
    ids = [headers["webhook-id"] for headers, _ in receiver.taken]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    assert receiver.changes(hook["secret"]) == [("memories", None)] * 3 + [("facts", None)]
    [shown] = (await sent(alice, "GET", "/v1/webhooks"))["items"]
    assert (shown["failures"], shown["failing_since"], shown["last_result"]) == (0, None, "204")


async def test_switching_on_what_is_on_loses_nothing(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory"])
    await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)
    await sent(alice, "PATCH", f"/v1/webhooks/{hook['id']}", {"on": True})
    assert await send_due(harness.app) == 1
    await sent(alice, "POST", "/v1/entries", {"content": "zqvault"}, 201)
    await sent(alice, "PATCH", f"/v1/webhooks/{hook['id']}", {"on": False})
    assert await send_due(harness.app) == 0


async def test_a_process_that_is_killed_on_the_way_sends_it_after_a_restart(
    harness: AppHarness, settings: Settings, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory"])
    await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)

    class Killed(BaseException):
        pass

    async def killed(*_: object) -> str:
        raise Killed

    [due] = await harness.app.webhooks.due()
    with pytest.raises(Killed):
        await harness.app.webhooks.send(due, killed)
    assert await send_due(harness.app) == 1
    assert receiver.changes(hook["secret"]) == [("memories", None)]


async def test_what_is_stored_later_than_what_was_told_is_told_too(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    """Of two that write at once the one that began first may be stored last."""
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory", "tools"])
    user = (await person(harness, "alice")).id
    await send_due(harness.app)
    receiver.taken.clear()
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx._sql.execute("webhook_insert", id=uuid.uuid4(), user_id=user, name="late", url=receiver.url,
                              pages=["ask"], place=None, key_id="lost", now=harness.clock.now())  # fmt: skip
        await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)
        assert await send_due(harness.app) == 1
    assert await send_due(harness.app) == 1
    assert receiver.changes(hook["secret"]) == [("memories", None), ("webhooks", None)]


async def test_a_write_is_noted_once_however_many_webhooks_and_rows_there_are(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    for _ in range(10):
        await hook_of(alice, receiver, pages=["memory"])
    await send_due(harness.app)
    await expire(harness)
    before = await left_of(harness)
    user = (await person(harness, "alice")).id
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        for _ in range(3):
            await tx.webhooks.tried((await tx.webhooks.of([user]))[0].id, "204", harness.clock.now())
            await tx._sql.execute("webhook_insert", id=uuid.uuid4(), user_id=user, name="more", url=receiver.url,
                                  pages=["memory"], place=None, key_id="lost", now=harness.clock.now())  # fmt: skip
    assert (await left_of(harness))[1] == before[1] + 1


async def test_what_was_told_is_deleted_as_soon_as_all_webhooks_were(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    async with hook_receiver() as other:
        hooks = [await hook_of(alice, each, pages=["memory"]) for each in (receiver, other)]
        other.answer = "503 Service Unavailable"
        await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)
        await send_due(harness.app)
        await expire(harness)
        other.answer = "204 No Content"
        harness.clock.tick(10)
        assert await send_due(harness.app) == 1
        assert other.changes(hooks[1]["secret"]) == [("memories", None)] * 2
    while await harness.app.webhooks.due():
        await send_due(harness.app)
    await expire(harness)
    assert await left_of(harness) == (2, 0)


async def test_of_several_processes_one_sends(
    harness: AppHarness, settings: Settings, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory"])
    await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)
    async with open_harness(harness.app.settings, clock=harness.clock) as other:
        [due] = await harness.app.webhooks.due()
        inside = list[bool]()

        async def post(url: str, headers: Any, body: bytes) -> str:
            inside.append(await other.app.webhooks.send(due, post))
            return "204"

        assert await harness.app.webhooks.send(due, post)
        assert inside == [False]
        assert await send_due(other.app) == 0
        await sent(alice, "POST", "/v1/entries", {"content": "zqvault"}, 201)
        assert await send_due(other.app) == 1
    assert receiver.changes(hook["secret"]) == [("memories", None)]


@pytest.mark.parametrize(("answer", "why"), [("410 Gone", "gone"), ("503 Service Unavailable", "failing")])
async def test_an_address_that_is_gone_or_takes_nothing_for_days_is_switched_off_and_its_person_sees_why(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver, answer: str, why: str
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory"])
    await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)
    receiver.answer = answer
    await send_due(harness.app)
    if why == "failing":
        harness.clock.tick(GIVEN_UP_AFTER.total_seconds() - 60)
        assert await send_due(harness.app) == 1
        assert (await sent(alice, "GET", "/v1/webhooks"))["items"][0]["off_at"] is None
        harness.clock.tick(LONGEST_PAUSE.total_seconds())
        assert await send_due(harness.app) == 1
    [shown] = (await sent(alice, "GET", "/v1/webhooks"))["items"]
    assert shown["off_why"] == why
    assert "switched off" in await alice.page("/tools")
    receiver.answer, taken = "204 No Content", len(receiver.taken)
    await sent(alice, "POST", "/v1/entries", {"content": "zqvault"}, 201)
    harness.clock.tick(LONGEST_PAUSE.total_seconds())
    assert await send_due(harness.app) == 0
    await sent(alice, "POST", f"/v1/webhooks/{hook['id']}/test", status=409)
    await sent(alice, "PATCH", f"/v1/webhooks/{hook['id']}", {"on": True})
    assert await send_due(harness.app) == 0, "what changed while it was off is not told"
    await sent(alice, "POST", "/v1/entries", {"content": "zqother"}, 201)
    assert await send_due(harness.app) == 1
    assert len(receiver.taken) == taken + 1


async def test_a_redirect_is_not_followed(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory"])
    async with hook_receiver() as other:
        receiver.answer = f"307 Temporary Redirect\r\nLocation: {other.url}"
        assert await sent(alice, "POST", f"/v1/webhooks/{hook['id']}/test") == {"result": "307"}
        assert (len(receiver.taken), len(other.taken)) == (1, 0)


async def test_a_test_says_nothing_but_ping(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver)
    assert await sent(alice, "POST", f"/v1/webhooks/{hook['id']}/test") == {"result": "204"}
    [message] = receiver.messages(hook["secret"])
    assert (message["type"], message["data"]) == ("ping", {})
    [shown] = (await sent(alice, "GET", "/v1/webhooks"))["items"]
    assert shown["last_result"] == "204"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/x",
        "https://user:pass@example.com/",
        "https://example.com/#x",
        "https:///x",
        "ftp://example.com/",
        "https://exa mple.com/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://b\u00fccher.example/",
        "javascript:alert(1)",
        "https://[::1/",
        "https://example.com/" + "x" * 490,
        "https://a\\@b/",
    ],
)
async def test_what_is_no_address_is_refused(harness: AppHarness, client: httpx2.AsyncClient, url: str) -> None:
    alice = await signed_in(harness, client, "alice")
    await sent(alice, "POST", "/v1/webhooks", {"url": url}, 422)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "169.254.169.254", "10.0.0.1", "[::ffff:127.0.0.1]", "2130706433"]
)
async def test_nothing_is_sent_to_an_address_that_is_not_public(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver, host: str
) -> None:
    """Only localhost is named by the settings: not its address, nor what leads there."""
    alice = await signed_in(harness, client, "alice")
    url = f"https://{host}:{receiver.port}/hook?from=nexus"
    hook = await sent(alice, "POST", "/v1/webhooks", {"url": url, "pages": ["memory"]}, 201)
    assert await sent(alice, "POST", f"/v1/webhooks/{hook['id']}/test") == {"result": "not public"}
    assert "no public address" in await alice.page("/tools")
    assert receiver.taken == []


async def test_only_the_person_makes_one_and_for_no_more_than_they_may_watch(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    await harness.say("alice", "good morning", room="general")
    alice, bob = [await signed_in(harness, client, name) for name in ("alice", "bob")]
    hook = await hook_of(alice, receiver)
    assert hook["pages"] == ["memory", "waiting", "ask", "rooms", "team", "tools"]
    await sent(alice, "POST", "/v1/webhooks", {"url": receiver.url, "pages": ["people"]}, 403)
    await sent(alice, "POST", "/v1/webhooks", {"url": receiver.url, "pages": ["admin"]}, 422)
    made, own = {"url": receiver.url}, bearer(await key_of(harness, "alice"))
    answer = await client.post("/v1/webhooks", json=made, headers=own)
    assert answer.json()["pages"] == ["memory", "ask", "tools"]
    answer = await client.post("/v1/webhooks", json=made | {"pages": ["rooms"]}, headers=own)
    assert answer.status_code == 403, "rooms are for who is signed in"
    tool = bearer(await key_of(harness, "alice", "claude"))
    narrow = bearer(await key_of(harness, "alice", permissions=["manage"]))
    for headers in (tool, narrow):
        assert (await client.post("/v1/webhooks", json=made, headers=headers)).status_code == 403
    ends = {"name": "short", "expires_at": (harness.clock.now() + timedelta(days=1)).isoformat()}
    short = (await sent(alice, "POST", "/v1/keys", ends, 201))["key"]
    answer = await client.post("/v1/webhooks", json=made, headers=bearer(short))
    assert answer.status_code == 403
    assert "outlast" in answer.text
    id, random = hook["id"], uuid.uuid4()
    for method, path, body in (("DELETE", "", None), ("PATCH", "", {"on": False}), ("POST", "/test", None)):
        await sent(bob, method, f"/v1/webhooks/{random}{path}", body, 404)
        await sent(bob, method, f"/v1/webhooks/{id}{path}", body, 404)
    assert (await sent(bob, "GET", "/v1/webhooks"))["items"] == []
    await sent(alice, "DELETE", f"/v1/webhooks/{id}", status=204)
    await send_due(harness.app)
    await sent(alice, "DELETE", f"/v1/webhooks/{id}", status=404)


async def test_a_person_has_ten_at_most(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    for _ in range(10):
        await hook_of(alice, receiver)
    await sent(alice, "POST", "/v1/webhooks", {"url": receiver.url}, 403)


async def test_who_loses_a_right_is_told_no_more_also_not_of_what_waits(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    for name in ("alice", "bob"):
        await harness.say(name, "good morning", **VAULT)
    alice, bob = [await signed_in(harness, client, name) for name in ("alice", "bob")]
    team = (await sent(alice, "POST", "/v1/teams", {"name": "Ops"}, 201))["id"]
    user = str((await person(harness, "bob")).id)
    await sent(alice, "POST", f"/v1/teams/{team}/invites", {"user": user}, 201)
    await sent(bob, "POST", f"/v1/teams/{team}/accept", status=204)
    hook = await hook_of(bob, receiver, pages=["team"], of=team)
    await send_due(harness.app)
    receiver.taken.clear()
    receiver.answer = "503 Service Unavailable"
    await sent(alice, "PATCH", f"/v1/teams/{team}", {"name": "Crew"})
    assert await send_due(harness.app) == 1
    assert receiver.changes(hook["secret"]) == [("teams", team)]
    await sent(alice, "DELETE", f"/v1/teams/{team}/members/{user}", status=204)
    await sent(alice, "PATCH", f"/v1/teams/{team}", {"name": "Gang"})
    harness.clock.tick(60)
    receiver.taken.clear()
    receiver.answer = "204 No Content"
    while await send_due(harness.app):
        pass
    assert set(receiver.changes(hook["secret"])) <= {("team_members", team)}, "that they were removed they may know"


async def test_who_is_disabled_leaves_or_is_erased_is_sent_nothing(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    for name in ("alice", "bob", "carol", "dave"):
        await harness.say(name, "good morning", room="general")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin((await person(harness, "alice")).id, True)
    alice, bob, carol, dave = [await signed_in(harness, client, each) for each in ("alice", "bob", "carol", "dave")]
    for each in (bob, carol, dave):
        await hook_of(each, receiver)
        await sent(each, "POST", "/v1/entries", {"content": "zqheron"}, 201)
    user = str((await person(harness, "bob")).id)
    await sent(alice, "PATCH", f"/v1/admin/users/{user}", {"disabled": True})
    await end_access(harness.app.database, harness.workspace(), "carol")
    await dave.page("/privacy/forget")
    assert (await dave.press("/privacy/forget", confirm="1000", sure="true")).status_code < 400
    assert await send_due(harness.app) == 0
    assert receiver.taken == []
    await expire(harness)
    assert await left_of(harness) == (0, 0)


async def expire(harness: AppHarness) -> None:
    """What the job of each hour deletes."""
    now = harness.clock.now()
    before = dict.fromkeys(("keys_before", "turns_before", "reads_before", "exchanges_before"), now)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.maintenance.delete_expired(now, **before)


async def left_of(harness: AppHarness) -> tuple[int, int]:
    """How many webhooks there are in the database, and changes that are to be told."""
    at, raw = harness.workspace().tenant_id, await asyncpg.connect(harness.app.settings.database_url)
    try:
        async with raw.transaction():
            await raw.execute("SELECT set_config('nexus.tenant', $1, true)", str(at))
            found = await raw.fetchrow("SELECT (SELECT count(*) FROM webhooks), (SELECT count(*) FROM webhook_changes)")
    finally:
        await raw.close()
    assert found is not None
    return found[0], found[1]


async def test_an_organisation_may_have_none(settings: Settings, receiver: HookReceiver) -> None:
    on = settings.model_copy(update={"webhook_hosts": "localhost"})
    async with open_harness(on) as harness, serving(harness) as client:
        alice = await signed_in(harness, client, "alice")
        hook = await hook_of(alice, receiver, pages=["memory"])
        await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)
    async with open_harness(on.model_copy(update={"webhooks": False})) as harness, serving(harness) as client:
        alice = await signed_in(harness, client, "alice")
        assert await send_due(harness.app) == 0
        assert receiver.taken == []
        answer = await sent(alice, "POST", "/v1/webhooks", {"url": receiver.url}, 403)
        assert "NEXUS_WEBHOOKS" in answer["detail"]
        await sent(alice, "POST", f"/v1/webhooks/{hook['id']}/test", status=403)
        shown = await alice.page("/tools")
        assert "switched off here" in shown
        assert "Have a program told" not in shown


async def test_no_secret_is_in_the_database_and_a_lost_key_switches_off(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    hook = await hook_of(alice, receiver, pages=["memory"])
    await sent(alice, "POST", "/v1/entries", {"content": "zqheron"}, 201)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        [stored] = await tx.webhooks.of([(await person(harness, "alice")).id])
        assert hook["secret"] not in repr(stored)
        await tx._sql.execute("webhook_insert", id=uuid.uuid4(), user_id=stored.user_id, name="lost", url=receiver.url,
                              pages=["memory"], place=None, key_id="lost", now=harness.clock.now())  # fmt: skip
    await sent(alice, "POST", "/v1/entries", {"content": "zqvault"}, 201)
    assert await send_due(harness.app) == 1
    shown = {each["name"]: each["off_why"] for each in (await sent(alice, "GET", "/v1/webhooks"))["items"]}
    assert shown == {"localhost": None, "lost": "key"}


async def test_on_the_page_tools_one_makes_tries_switches_and_deletes_a_webhook(
    harness: AppHarness, client: httpx2.AsyncClient, receiver: HookReceiver
) -> None:
    alice = await signed_in(harness, client, "alice")
    shown = await alice.page("/tools")
    assert "Have a program told" in shown
    assert 'value="people"' not in shown, "of the people of the organisation admins are told"
    made = await alice.press("/tools/webhooks", url=receiver.url, name="n8n", told=["memory", "ask"])
    [secret] = re.findall(r"whsec_[A-Za-z0-9+/=]+", made.text)
    assert made.headers["cache-control"] == "private, no-store"
    shown = await alice.page("/tools")
    assert secret not in shown
    assert "Nothing was sent yet." in shown
    assert "Told of: your memory, your conversations" in re.sub(r"<[^>]*>", "", shown)
    [id] = set(re.findall(r"/tools/webhooks/([0-9a-f-]{36})/test", shown))
    assert (await alice.press(f"/tools/webhooks/{id}/test")).status_code == 303
    assert [each["type"] for each in receiver.messages(secret)] == ["ping"]
    assert "answered with status 204" in await alice.page("/tools")
    await alice.press(f"/tools/webhooks/{id}/switch", on="false")
    shown = await alice.page("/tools")
    assert "Turn on" in shown
    assert f"/tools/webhooks/{id}/test" not in shown
    await alice.press(f"/tools/webhooks/{id}/switch", on="true")
    assert "Delete this webhook?" in await alice.page(f"/tools/webhooks/{id}/end")
    assert (await alice.press(f"/tools/webhooks/{id}/end")).headers["location"] == "/tools"
    assert id not in await alice.page("/tools")
    refused = await alice.press("/tools/webhooks", url="http://example.com/", told="memory")
    assert (refused.status_code, "begins with https" in refused.text) == (422, True)
    nothing = await alice.press("/tools/webhooks", url=receiver.url)
    assert (nothing.status_code, "Choose what" in nothing.text) == (422, True)

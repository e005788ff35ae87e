"""Attacks on what was repaired: the same race a little earlier or later, the sibling of what was mended, and what a
repeat or a slow client makes of it."""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import httpx2
import pytest

from bot.commands.command import CommandAnswer
from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from bot.web.sessions import ApiSessions, EventKind
from composer import visibility
from composer.app import App
from composer.entries import entries
from composer.ingest.imports import find_import, undo_import
from composer.ingest.rooms import erase_room
from composer.memory.forget import RECEIPT_KEY_BYTES, RETRACTED
from composer.memory.remember import Author, set_fact
from composer.memory.review import approve
from composer.model import Trust, Visibility
from composer.people.credentials.issuing import require_valid
from composer.repositories.gateway_exchanges import ExchangeOwner, GatewayExchange
from composer.repositories.imports import ImportRun, Imports
from composer.settings import AgentSettings, Settings
from composer.visibility import AccessTag
from jobs.work import JobRun, purge
from tests.integration.test_compaction import rows
from tests.support.api import bearer, key_of
from tests.support.api_sessions import serve_sessions, valid
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.gateway import MODEL, gateway_stage
from tests.support.harness import AppHarness, open_harness
from tests.support.held_erasure import HeldErasure
from tests.support.lock_waits import until_stopped
from tests.support.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.integration


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        yield harness


# docs/keys.md: when its person forgets everything, a key goes with it. docs/architecture.md: forgetting reaches every
# layer. A message waited for an erasure that went on; one that began right after that was not seen, and the message was
# stored and answered behind it.
@pytest.mark.parametrize("before", ["it is opened", "it is stored"])
@pytest.mark.parametrize("known", [False, True])
async def test_no_message_is_stored_by_a_key_that_ends_before(
    harness: AppHarness,
    client: httpx2.AsyncClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    known: bool,
) -> None:
    key = bearer(await key_of(harness, "alice"))
    if known:
        assert (await client.post("/v1/chat", json={"content": "hello", "session": "zqname"}, headers=key)).is_success
    receive, ask, forgets = App.receive, ApiSessions.ask, [True]

    async def forget() -> None:
        if forgets:
            forgets.clear()
            await harness.command("alice", "/nexus forget everything --yes", dm="nexus")

    async def asks(sessions: ApiSessions, *arguments: Any, **named: Any) -> Any:
        if before == "it is opened":
            await forget()
        return await ask(sessions, *arguments, **named)

    async def receives(app: App, *arguments: Any, **named: Any) -> Any:
        if "admit" in named or arguments[0].platform == "api":
            await forget()
        return await receive(app, *arguments, **named)

    monkeypatch.setattr(ApiSessions, "ask", asks)
    monkeypatch.setattr(App, "receive", receives)
    answer = await client.post("/v1/chat", json={"content": "zqlate", "session": "zqname"}, headers=key)
    assert answer.status_code == 401, answer.text
    await harness.app.turns.settle()
    assert await rows(settings, "SELECT 1 FROM messages WHERE text LIKE '%zqlate%'") == []
    assert await rows(settings, "SELECT 1 FROM conversations WHERE name = 'zqname'") == []


# docs/architecture.md: forgetting reaches every layer. What a key was let in with is stored before an erasure that
# begins after it was looked at: that finds the message, and the name of the session. One that made the person known to
# the API waited for their row, which the erasure had locked, and the erasure for the message.
@pytest.mark.parametrize("command", ["forget everything --yes", "erase user alice --yes"])
@pytest.mark.parametrize("step", [1, 2], ids=["it is opened", "it is stored"])
async def test_what_is_said_by_a_key_while_all_of_its_person_is_forgotten_goes_too(
    harness: AppHarness,
    client: httpx2.AsyncClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    command: str,
) -> None:
    seen, forgetting = itertools.count(1), list[asyncio.Task[CommandAnswer]]()

    async def valid(*arguments: Any) -> None:
        await require_valid(*arguments)
        if next(seen) == step:
            forget = harness.command("alice", f"/nexus {command}", dm="nexus")
            forgetting.append(asyncio.create_task(forget))
            await until_stopped(settings, forgetting[0])

    key = bearer(await key_of(harness, "alice"))
    await harness.say("alice", "hello", dm="nexus")
    await rows(settings, "UPDATE users SET admin = true WHERE name = 'alice' RETURNING 1")
    monkeypatch.setattr("bot.web.routes.chat.require_valid", valid)
    await client.post("/v1/chat", json={"content": "zqlate", "session": "zqname"}, headers=key)
    assert (await forgetting[0]).text.startswith("Forgotten for good")
    await harness.app.turns.settle()
    assert await rows(settings, "SELECT 1 FROM messages WHERE text LIKE '%zqlate%'") == []
    assert await rows(settings, "SELECT 1 FROM conversations WHERE name = 'zqname'") == []


# docs/architecture.md: forgetting reaches every layer. The pieces of an answer are judged while it is written; who read
# it slowly was given the rest of them after it was whole, and retracted.
@pytest.mark.parametrize("forgotten", [True, False])
async def test_who_reads_slowly_is_given_no_piece_of_what_was_retracted_since(
    settings: Settings, model: Model, forgotten: bool
) -> None:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        await harness.say("alice", "hello", room="general")
        sessions = serve_sessions(harness, look_seconds=0.0)
        alice = await sessions.bearer("alice")
        await sessions.answer(alice, "the vault is behind zqorchid")
        answer = "As you told me a moment ago: it is behind zqorchid."
        model.says = [answer]
        asked = await sessions.ask(alice, "where is the vault?")
        await harness.app.turns.settle()  # it is whole, and nothing of it was read
        if forgotten:
            await harness.command("alice", "/nexus forget zqorchid --yes", dm="nexus")
        heard = [event async for event in sessions.served.follow(asked, valid)]
    assert (heard[-1].kind, heard[-1].text) == (EventKind.ANSWER, RETRACTED if forgotten else answer)
    assert any("zqorchid" in event.text for event in heard) is not forgotten


FUNCTION = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALLS = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
FURTHER = [{"role": "assistant", "tool_calls": [CALLS]}, {"role": "tool", "tool_call_id": "c1", "content": "a wall"}]


# docs/decisions/0030: what somebody is told is forgotten does not leave after that. The first request of a turn that
# offers functions was looked at once more before it was sent; one without functions, and the further ones, were not.
@pytest.mark.parametrize("further", [True, False])
async def test_what_is_forgotten_while_a_request_is_read_for_does_not_leave_after_that(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, further: bool
) -> None:
    asked: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "what is the vault code?"}]}
    if further:
        asked["tools"] = [FUNCTION]
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url, timeout=60) as http:
        headers = bearer(await key_of(stage.harness, "alice", "cursor"))
        for text in ("orchid, as a note", "orchid, as a preference", "on a wall"):
            kind = "preference" if "preference" in text else "note"
            await stage.hub.write("alice", f"the vault code is {text}", kind=kind)
        first = await http.post("/v1/chat/completions", json=asked, headers=headers)
        assert first.headers["x-nexus-memory"].startswith("3 entries")
        if further:
            asked["messages"] += FURTHER
        held = HeldErasure(monkeypatch)
        erasing = asyncio.create_task(stage.harness.command("alice", "/nexus forget orchid --yes", dm="nexus"))
        await held.until_held()
        asking = asyncio.create_task(http.post("/v1/chat/completions", json=asked, headers=headers))
        waiting = asyncio.create_task(held.lock_wanted.wait())
        await asyncio.wait({asking, waiting}, timeout=TIMEOUT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        held.go.set()
        assert "memor" in (await erasing).text
        answer, told = await asking, str(stage.upstream.bodies[-1])
    assert (answer.status_code, "orchid" in told, "on a wall" in told) == (200, False, True)
    assert answer.headers["x-nexus-memory"].startswith("1 entry")


# docs/architecture.md: forgetting reaches every layer. What an agent stores for somebody is stored before an erasure
# that waits for it, and was left out where the erasure had listed beforehand what it takes.
@pytest.mark.parametrize("how", ["a session is forgotten over the API", "a room is deleted on its platform"])
async def test_what_is_stored_while_all_of_a_place_is_erased_goes_with_it(
    harness: AppHarness, settings: Settings, how: str
) -> None:
    await harness.say("alice", "hello", room="general")
    sessions, database = serve_sessions(harness), harness.app.database
    alice, at = await sessions.bearer("alice"), harness.workspace()
    asked = await sessions.ask(alice, "hello", session="s1")
    await harness.app.turns.settle()
    namespace, visible = asked.session.conversation.namespace, Visibility.PRIVATE
    if how == "a room is deleted on its platform":
        [[namespace]] = await rows(settings, "SELECT namespace FROM conversations WHERE name = 'general'")
        visible = Visibility.PUBLIC

    async def erase() -> object:
        if how == "a room is deleted on its platform":
            return await erase_room(database, at, "general", None, harness.clock.now())
        return await sessions.forget(alice, None, "s1", None)

    async with database.transaction(at.tenant_id) as tx:
        tag, now = AccessTag(namespace, visible, alice.user), harness.clock.now()
        await set_fact(tx, tag, "vault", '"zqorchid"', Author("alice"), "console", "e", now)
        erasing = asyncio.create_task(erase())
        await until_stopped(settings, erasing)
    await erasing
    assert await rows(settings, "SELECT 1 FROM facts") == []


# docs/architecture.md: whoever stores an answer shares the lock of an erasure, and locks the conversation after it.
# Deleting a project took them the other way round, so each waited for the other.
async def test_a_project_is_deleted_while_an_answer_is_stored_in_it(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings
) -> None:
    await harness.command("alice", "/nexus project create apollo", room="general")
    await harness.command("alice", "/nexus project assign apollo --yes", room="general")
    told = await harness.command("alice", "/nexus fact set day Friday --project --yes", room="general")
    assert await rows(settings, "SELECT 1 FROM facts WHERE namespace LIKE 'project:%'"), told.text
    key = bearer(await key_of(harness, "alice"))
    [project] = (await client.get("/v1/projects", headers=key)).json()["items"]
    [[room]] = await rows(settings, "SELECT id FROM conversations WHERE name = 'general'")

    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:  # as an answer is stored
        path = f"/v1/projects/{project['id']}?confirm=true"
        deleting = asyncio.create_task(client.delete(path, headers=key))
        await until_stopped(settings, deleting)
        await tx.conversations.lock([room])
    answer = await deleting
    assert answer.status_code == 200, answer.text


# docs/architecture.md: admins take back what others wrote here. What another admin approved just then was listed as
# waiting, and stayed.
async def test_what_is_approved_while_it_is_taken_back_does_not_stay(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", "good morning all", room="board")
    at, place = harness.workspace(), place_of("board", None, None)
    given = incoming(at, place, "mallory", "/nexus remember zqplanted", harness.clock.tick(), trust=Trust.GUEST)
    await run_command(harness.app, at, given)
    [[alice, room]] = await rows(
        settings, "SELECT u.id, c.id FROM users AS u, conversations AS c WHERE u.name = 'alice' AND c.name = 'board'"
    )

    async with harness.app.database.transaction(at.tenant_id, "alone") as tx:
        access = await tx.conversations.access_context(room, alice, Trust.MEMBER)
        assert access is not None
        [item] = await tx.quarantine.find_pending(visibility.reviewable(access, room_admin=True, pooled=True))
        await approve(tx, item, harness.clock.now())
        undoing = asyncio.create_task(harness.command("alice", "/nexus memory undo mallory --yes", room="board"))
        await until_stopped(settings, undoing)
    assert (await undoing).text.startswith("Taken back: 1 memory")
    assert await rows(settings, "SELECT text FROM memories") == []


async def did(
    client: httpx2.AsyncClient, method: str, path: str, headers: dict[str, str], **body: Any
) -> httpx2.Response:
    return await client.request(method, path, json=body or None, headers=headers)


# docs/api.md: a request with an Idempotency-Key takes effect once in a day. Changes of names, roles, settings and
# memberships took effect each time, and so did forgetting a session: one that came late undid what came after it.
async def test_a_change_of_who_is_in_something_that_is_sent_again_late_undoes_nothing(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
    of_bob = (await did(client, "GET", "/v1/whoami", bob)).json()["user"]
    team = f"/v1/teams/{(await did(client, 'POST', '/v1/teams', alice, name='Ops')).json()['id']}"
    project = f"/v1/projects/{(await did(client, 'POST', '/v1/projects', alice, name='apollo')).json()['id']}"

    async def joins() -> None:
        assert (await did(client, "POST", f"{team}/invites", alice, user=of_bob)).status_code == 201
        assert (await did(client, "POST", f"{team}/accept", bob)).status_code == 204

    async def state() -> list[Any]:
        found = [
            await did(client, "GET", f"{path}{more}", alice) for path in (team, project) for more in ("", "/members")
        ]
        settings = await did(client, "GET", "/v1/settings", alice)
        return [each.json() for each in (*found, settings)]

    await joins()
    role, member = f"{team}/members/{of_bob}", f"{project}/members/{of_bob}"
    # Whose, what, how it is undone, and by whom.
    steps: list[
        tuple[dict[str, str], str, str, dict[str, Any], list[tuple[dict[str, str], str, str, dict[str, Any]]]]
    ] = [
        (alice, "PATCH", team, {"name": "Dev"}, [(alice, "PATCH", team, {"name": "Sec"})]),
        (alice, "PATCH", role, {"role": "admin"}, [(alice, "PATCH", role, {"role": "member"})]),
        (alice, "DELETE", role, {}, []),
        (bob, "POST", f"{team}/leave", {}, []),
        (alice, "PATCH", project, {"name": "zeus"}, [(alice, "PATCH", project, {"name": "hera"})]),
        (alice, "PUT", member, {"role": "write"}, [(alice, "PUT", member, {"role": "read"})]),
        (alice, "DELETE", member, {}, [(alice, "PUT", member, {"role": "read"})]),
        (alice, "PATCH", "/v1/settings", {"trash_days": 3}, [(alice, "PATCH", "/v1/settings", {"trash_days": 5})]),
    ]
    for n, (who, method, path, body, undoing) in enumerate(steps):
        once = who | {"Idempotency-Key": str(n)}
        first = await did(client, method, path, once, **body)
        assert first.is_success, first.text
        if undoing:
            for other, another, there, with_body in undoing:
                assert (await did(client, another, there, other, **with_body)).is_success
        else:
            await joins()
        before = await state()
        again = await did(client, method, path, once, **body)
        assert again.status_code == first.status_code, again.text
        assert await state() == before, (method, path)
        assert first.status_code == 204 or again.headers["idempotency-replayed"] == "true"


async def test_a_session_that_is_forgotten_again_by_a_repeat_keeps_what_was_said_since(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    once, path = alice | {"Idempotency-Key": "one"}, "/v1/chat/session/default"
    assert (await did(client, "POST", "/v1/chat", alice, content="zqfirst")).is_success
    first = await did(client, "DELETE", path, once)
    assert (await did(client, "POST", "/v1/chat", alice, content="zqsecond")).is_success
    again = await did(client, "DELETE", path, once)
    assert (again.status_code, again.json()) == (200, first.json()), "it has the receipt of what it forgot"
    said = (await did(client, "GET", "/v1/episodes", alice)).json()["items"]
    assert [each["content"] for each in said] == ["zqsecond"]


# docs/api.md: what a request is answered with that is sent again. Whoever missed the first answer was told that nothing
# had been there, or that there is no such entry.
async def test_who_missed_the_answer_to_forgetting_gets_its_receipt_by_asking_again(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    ids = [(await did(client, "POST", "/v1/entries", alice, content=f"zq{n}")).json()["id"] for n in range(2)]
    for n, (path, body) in enumerate(((f"/v1/entries/{ids[0]}/forget", {}), ("/v1/entries/forget", {"confirm": 1}))):
        answers = [await did(client, "POST", path, alice | {"Idempotency-Key": str(n)}, **body) for _ in range(2)]
        assert [each.status_code for each in answers] == [200, 200]
        assert answers[0].json() == answers[1].json()
        assert answers[0].json()["counts"] == {"memory": 1}


# docs/architecture.md: whatever stores something that an erasure must find shares its lock. What is filed by user (a
# reminder, an exchange of the gateway, an exported file) waited for the row of its user, which the erasure had locked,
# and the erasure for it.
@pytest.mark.parametrize("command", ["forget everything --yes", "erase user alice --yes"])
async def test_something_is_stored_for_a_person_while_all_of_theirs_is_to_be_erased(
    harness: AppHarness, settings: Settings, command: str
) -> None:
    await harness.say("alice", "hello", dm="nexus")
    await rows(settings, "UPDATE users SET admin = true WHERE name = 'alice' RETURNING 1")
    [[alice]] = await rows(settings, "SELECT id FROM users WHERE name = 'alice'")

    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        erasing = asyncio.create_task(harness.command("alice", f"/nexus {command}", dm="nexus"))
        await until_stopped(settings, erasing)
        exchange = GatewayExchange(uuid.uuid4(), "the vault is zqorchid", "", harness.clock.now())
        assert await tx.gateway_exchanges.put(ExchangeOwner(alice, "cursor"), exchange, harness.clock.now())
    assert (await erasing).text.startswith("Forgotten for good")
    assert await rows(settings, "SELECT 1 FROM gateway_exchanges") == []


# docs/keys.md: when its person forgets everything, a key goes with it, and so does what they have set. A write of
# entries by a key that ends meanwhile was refused; what it set, and the team or project that it made, stayed.
@pytest.mark.parametrize(
    ("method", "path", "body", "left"),
    [
        ("PATCH", "/v1/settings", {"trash_days": 3}, "SELECT 1 FROM personal_settings"),
        ("POST", "/v1/teams", {"name": "zqteam"}, "SELECT 1 FROM teams"),
        ("POST", "/v1/projects", {"name": "zqproject"}, "SELECT 1 FROM projects"),
    ],
)
async def test_nothing_is_set_or_made_by_a_key_behind_the_erasure_that_ended_it(
    harness: AppHarness,
    client: httpx2.AsyncClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: dict[str, Any],
    left: str,
) -> None:
    held = HeldErasure(monkeypatch, "store_receipt")
    key = bearer(await key_of(harness, "alice"))
    await harness.say("alice", "hello", dm="nexus")
    erasing = asyncio.create_task(harness.command("alice", "/nexus forget everything --yes", dm="nexus"))
    await held.until_held()
    asking = asyncio.create_task(did(client, method, path, key, **body))
    await asyncio.wait_for(held.credential_read.wait(), TIMEOUT_SECONDS)
    held.go.set()
    await erasing
    assert ((await asking).status_code, await rows(settings, left)) == (401, [])


async def says(harness: AppHarness, trust: Trust, stated_at: datetime | None = None) -> Trust:
    """What alice is in Slack once she has written something with what Slack says of her, as of a time."""
    here, at = replace(harness.workspace(), platform="slack", name="T1"), harness.clock.tick()
    place = replace(place_of("general", None, None), private=False)
    said = incoming(here, place, "alice", "hello", at, id=f"m{at.timestamp()}", trust=trust)
    await harness.app.receive(here, [replace(said, trust_stated_at=stated_at)], answer=False)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        user = await tx.people.find_user("slack", "T1", "alice")
        assert user is not None
        return await tx.people.trust(user.id)


# docs/architecture.md: whether somebody is a member or a guest has a time, and an older statement changes nothing. One
# that said again what was stored was not noted, so what had been looked up before it counted as newer.
async def test_what_was_looked_up_before_a_platform_said_the_same_again_changes_nothing(harness: AppHarness) -> None:
    first, looked_up, later = (harness.clock.tick() for _ in range(3))
    assert await says(harness, Trust.GUEST, first) is Trust.GUEST
    assert await says(harness, Trust.GUEST, later) is Trust.GUEST
    assert await says(harness, Trust.MEMBER, looked_up) is Trust.GUEST, "another process had looked that up"
    assert await says(harness, Trust.MEMBER, harness.clock.tick()) is Trust.MEMBER


# docs/architecture.md: what was acknowledged is not lost; an entry in the trash is restorable. The job that empties the
# trash listed what it erases before it waited for the restore of one of them.
async def test_an_entry_that_is_restored_while_the_trash_is_emptied_stays(
    harness: AppHarness, settings: Settings
) -> None:
    hub = Hub(harness)
    kept, gone = [(await hub.write("alice", f"zq{name}")).entry for name in ("kept", "gone")]
    async with hub.request("alice") as (tx, access):
        for each in (kept, gone):
            await entries.trash(tx, access, each.id, harness.clock.now())
    now = harness.clock.tick(31 * 24 * 3_600)

    async with hub.request("alice") as (tx, access):
        await entries.restore(tx, access, kept.id, now)
        emptying = asyncio.create_task(purge(JobRun(harness.app, now, lambda *_: None)))
        await until_stopped(settings, emptying)
    await emptying
    assert [row["text"] for row in await rows(settings, "SELECT text FROM memories")] == ["zqkept"]


# docs/import.md: undoing an import leaves what platforms delivered. A message of the import that its platform delivered
# just then was acknowledged, and erased with the others.
@pytest.mark.parametrize("is_new", [True, False], ids=["a room of the import", "a room that was there"])
async def test_a_message_that_its_platform_delivers_while_its_import_is_undone_stays(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, *, is_new: bool
) -> None:
    if not is_new:
        await harness.say("alice", "hello", room="general")
    at, place, run = harness.workspace(), place_of("general", None, None), ImportRun(uuid.uuid4(), "export.zip")
    both = [incoming(at, place, "alice", f"zq{n}", harness.clock.tick(), id=f"zq{n}") for n in range(2)]
    await harness.app.receive(at, both, answer=False, run=run)
    database, keep, undoing = harness.app.database, Imports.keep, list[asyncio.Task[None]]()

    async def undo() -> None:
        found = await find_import(database, run.id.hex)
        async for _ in undo_import(database, found, lambda: b"k" * RECEIPT_KEY_BYTES, harness.clock.now()):
            pass

    async def kept(imports: Imports, messages: Any) -> None:
        undoing.append(asyncio.create_task(undo()))
        await until_stopped(settings, undoing[0])
        await keep(imports, messages)

    monkeypatch.setattr(Imports, "keep", kept)
    await harness.app.receive(at, both[:1])
    await undoing[0]
    assert [row["text"] for row in await rows(settings, "SELECT text FROM messages WHERE text LIKE 'zq%'")] == ["zq0"]

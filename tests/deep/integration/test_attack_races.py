"""Attacks on what was repaired lately, again: two acts at the same time, and the same act once more."""

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from bot.script.places import incoming, place_of
from bot.web.sessions import EventKind
from composer.entries import entries
from composer.errors import Unavailable
from composer.gateway.memory import GatewayMemory
from composer.ingest.changes import change_message
from composer.ingest.imports import find_import, undo_import
from composer.ingest.rooms import add_room_id, erase_room, rooms_with_later_ids
from composer.memory.forget import RECEIPT_KEY_BYTES
from composer.repositories.imports import ImportRun
from composer.repositories.messages import Messages
from composer.repositories.people import People
from composer.settings import AgentSettings, Settings
from composer.turn.answers import AnswerStore
from tests.integration.test_compaction import rows
from tests.support.api import bearer, key_of
from tests.support.api_sessions import serve_sessions, valid
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.gateway import MODEL, gateway_stage
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped
from tests.support.waiting import until

pytestmark = pytest.mark.integration


# docs/architecture.md: a message that was acknowledged is stored, and forgetting is done. Whoever has had everything
# forgotten gets their name back with their next message. A chat over the API waited with the lock of an erasure for the
# row of its person, which an admin or another account of theirs that erased them had locked, and this for the chat: the
# database ended one of the two.
async def test_a_chat_gives_a_name_back_while_its_person_is_erased_again(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore, erasing = People.restore_names, list[asyncio.Task[Any]]()

    async def restored(people: People, names: Any) -> None:
        if not erasing:
            forget = harness.command("bob", "/nexus erase user alice --yes", room="general")
            erasing.append(asyncio.create_task(forget))
            await until_stopped(settings, erasing[0])
        await restore(people, names)

    key = bearer(await key_of(harness, "alice"))
    for user in ("alice", "bob"):
        await harness.say(user, "hello", room="general")
    await rows(settings, "UPDATE users SET admin = true WHERE name = 'bob' RETURNING 1")
    await rows(settings, "UPDATE users SET name = 'someone' WHERE name = 'alice' RETURNING 1")
    monkeypatch.setattr(People, "restore_names", restored)
    answer = await client.post("/v1/chat", json={"content": "zqword"}, headers=key)
    assert answer.status_code == 200, answer.text
    assert (await erasing[0]).text.startswith("Forgotten for good")
    await harness.app.turns.settle()
    assert await rows(settings, "SELECT 1 FROM messages WHERE text LIKE '%zqword%'") == []
    await harness.say("alice", "hello", dm="nexus")
    assert await rows(settings, "SELECT name FROM users WHERE name = 'alice'")


# docs/decisions/0030, docs/architecture.md: words that an entry no longer has are erased as what is forgotten is. An
# entry that its person changed, threw away or shared no more while memory was read for a request left with what had
# been read.
@pytest.mark.parametrize("how", ["changed", "thrown away"])
@pytest.mark.parametrize("kind", ["note", "preference"])
async def test_what_is_changed_while_a_request_is_read_for_does_not_leave_after_that(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, how: str, kind: str
) -> None:
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url, timeout=60) as http:
        headers = bearer(await key_of(stage.harness, "alice", "cursor"))
        entry = (await stage.hub.write("alice", "the vault code is orchid", kind=kind)).entry
        await stage.hub.write("alice", "the vault code is on a wall")
        check = GatewayMemory._not_erased

        async def checked(memory: GatewayMemory, *args: Any) -> Any:
            now = stage.harness.clock.tick()
            async with stage.hub.request("alice") as (tx, access):
                if how == "changed":
                    await entries.change(tx, access, entry.id, {"content": "the vault code is rose"}, now)
                else:
                    await entries.trash(tx, access, entry.id, now)
            return await check(memory, *args)

        monkeypatch.setattr(GatewayMemory, "_not_erased", checked)
        asked = {"model": MODEL, "messages": [{"role": "user", "content": "what is the vault code?"}]}
        answer = await http.post("/v1/chat/completions", json=asked, headers=headers)
        told = str(stage.upstream.bodies[-1])
    assert (answer.status_code, "orchid" in told, "on a wall" in told) == (200, False, True)


# docs/gateway.md: nothing is put into the requests of who has switched recall off, also by a key of their own, which
# reads their entries on. It was looked at before memory was read for a request, which takes a while.
async def test_nothing_leaves_of_who_switches_recall_off_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url, timeout=60) as http:
        own = bearer(await key_of(stage.harness, "alice"))
        await stage.hub.write("alice", "the vault code is orchid")
        check = GatewayMemory._not_erased

        async def checked(memory: GatewayMemory, *args: Any) -> Any:
            assert (await http.patch("/v1/settings", json={"recall": False}, headers=own)).is_success
            return await check(memory, *args)

        monkeypatch.setattr(GatewayMemory, "_not_erased", checked)
        asked = {"model": MODEL, "messages": [{"role": "user", "content": "what is the vault code?"}]}
        answer = await http.post("/v1/chat/completions", json=asked, headers=own)
    assert (answer.status_code, "orchid" in str(stage.upstream.bodies[-1])) == (200, False)


# docs/api.md: a request with an Idempotency-Key takes effect once in a day. One that ends what a former member shares,
# and came again late, ended what they had shared once more since.
async def test_what_ends_a_share_and_is_sent_again_late_ends_nothing_more(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    async def did(method: str, path: str, headers: dict[str, str], **body: Any) -> httpx2.Response:
        return await client.request(method, path, json=body or None, headers=headers)

    alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
    of_bob = (await did("GET", "/v1/whoami", bob)).json()["user"]
    team = f"/v1/teams/{(id := (await did('POST', '/v1/teams', alice, name='Ops')).json()['id'])}"
    entry = (await did("POST", "/v1/entries", bob, content="zqshared")).json()["id"]

    async def shares_and_leaves() -> None:
        assert (await did("POST", f"{team}/invites", alice, user=of_bob)).status_code == 201
        assert (await did("POST", f"{team}/accept", bob)).status_code == 204
        assert (await did("PUT", f"/v1/entries/{entry}/team", bob, team=id)).is_success
        assert (await did("POST", f"{team}/leave", bob)).status_code == 204

    await shares_and_leaves()
    once = alice | {"Idempotency-Key": "one"}
    assert (await did("DELETE", f"{team}/entries/{entry}", once)).status_code == 200
    await shares_and_leaves()
    assert (await did("DELETE", f"{team}/entries/{entry}", once)).status_code == 409
    assert (await did("GET", f"/v1/entries/{entry}", alice)).status_code == 200, "it is shared again"


# docs/decisions/0045: calls go to the present id of a channel. Of one that got its first id back they went to the
# other one.
async def test_a_channel_that_gets_its_first_id_back_is_called_by_it(harness: AppHarness) -> None:
    at = harness.workspace()
    await harness.say("alice", "hello", room="c1")
    for id in ("c2", "c1"):
        await add_room_id(harness.app.database, at, "c1", id)
    [ids] = await rooms_with_later_ids(harness.app.database, at)
    assert (ids.name, ids.later_ids, ids.stored_ids) == ("c1", ("c2", "c1"), ())
    assert await rooms_with_later_ids(harness.app.database, replace(at, name="another")) == []


# README: an edit on the platform reaches every layer. An edit of a message that an import was storing found none, and
# the old text stayed.
async def test_an_edit_finds_the_message_that_is_being_stored(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, place, database = harness.workspace(), place_of("general", None, None), harness.app.database
    await harness.say("alice", "hello", room="general")
    append, editing = Messages.append, list[asyncio.Task[Any]]()

    async def appended(messages: Messages, *args: Any, **named: Any) -> Any:
        agents, now = harness.app.directory.agents(at.tenant_id), harness.clock.now()
        edit = change_message(database, at, agents, place, "alice", "edited", "zqnew", [], now, edited_at=now)
        editing.append(asyncio.create_task(edit))
        await until_stopped(settings, editing[0])
        return await append(messages, *args, **named)

    monkeypatch.setattr(Messages, "append", appended)
    old = incoming(at, place, "alice", "zqold", harness.clock.tick(), id="edited")
    await harness.app.receive(at, [old], answer=False)
    await editing[0]
    assert await rows(settings, "SELECT 1 FROM messages WHERE text = 'zqnew'")
    assert await rows(settings, "SELECT 1 FROM messages WHERE text = 'zqold'") == []


# docs/architecture.md: what was acknowledged is not lost. Undoing an import deletes the rooms that it made and that
# nothing uses. A message that came into one of them just then, of which the last batch had none, was deleted with it.
async def test_a_message_in_a_room_of_an_import_that_is_being_undone_stays(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, place, run = harness.workspace(), place_of("general", None, None), ImportRun(uuid.uuid4(), "export.zip")
    monkeypatch.setattr("composer.ingest.imports.UNDO_BATCH", 1)
    old = incoming(at, place, "alice", "zqold", harness.clock.tick(), id="old")
    await harness.app.receive(at, [old], answer=False, run=run)
    database, append, undoing = harness.app.database, Messages.append, list[asyncio.Task[None]]()
    found = await find_import(database, run.id.hex)
    undone = undo_import(database, found, lambda: b"k" * RECEIPT_KEY_BYTES, harness.clock.now())

    async def undo() -> None:
        async for _ in undone:
            pass

    async def append_and_undo(messages: Messages, *args: Any, **named: Any) -> None:
        await append(messages, *args, **named)
        undoing.append(asyncio.create_task(undo()))
        await until_stopped(settings, undoing[0])

    await anext(undone)  # the messages; the rooms are deleted by the next step
    monkeypatch.setattr(Messages, "append", append_and_undo)
    new = incoming(at, place, "alice", "zqnew", harness.clock.tick(), id="new")
    await harness.app.receive(at, [new], answer=False)
    await undoing[0]
    assert [row["text"] for row in await rows(settings, "SELECT text FROM messages")] == ["zqnew"]


# docs/api.md: a tool forgets what it wrote while it is shared with nobody. It was looked at before its person, who was
# sharing it, was waited for, and was erased for all of the team.
async def test_a_tool_forgets_nothing_that_is_being_shared(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings
) -> None:
    hub = Hub(harness)

    alice, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "cursor"))
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=alice)).json()["id"]
    entry = (await hub.write("alice", "zqshared", "cursor")).entry.id
    async with hub.request("alice") as (tx, access):
        await entries.share(tx, access, entry, uuid.UUID(team), harness.clock.now())
        forgetting = asyncio.create_task(client.post(f"/v1/agent/entries/{entry}/forget", headers=tool))
        await until_stopped(settings, forgetting)
    assert (await forgetting).status_code in (403, 404)
    assert [row["text"] for row in await rows(settings, "SELECT text FROM memories")] == ["zqshared"]


# README: what is deleted on the platform is forgotten. A message that was being stored when its room was deleted was
# not seen, and stayed.
@pytest.mark.parametrize("thread", [None, "t1"])
async def test_a_message_that_is_being_stored_goes_with_its_room(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, thread: str | None
) -> None:
    at, append, erasing = harness.workspace(), Messages.append, list[asyncio.Task[Any]]()
    await harness.say("alice", "zqold", room="general")
    await harness.say("alice", "zqold", room="general", thread="t1")

    async def append_and_erase(messages: Messages, *args: Any, **named: Any) -> None:
        await append(messages, *args, **named)
        erase = erase_room(harness.app.database, at, "general", None, harness.clock.now())
        erasing.append(asyncio.create_task(erase))
        await until_stopped(settings, erasing[0])

    monkeypatch.setattr(Messages, "append", append_and_erase)
    new = incoming(at, place_of("general", None, None, thread), "alice", "zqnew", harness.clock.tick(), id="new")
    await harness.app.receive(at, [new], answer=False)
    await erasing[0]
    assert await rows(settings, "SELECT text FROM messages") == []


# docs/architecture.md: a message is answered once, and when something fails the person is told so. Nothing of somebody
# who has opted out is kept once it is answered: who read that answer slowly was told that their question had been
# erased.
async def test_who_has_opted_out_and_reads_slowly_gets_the_answer(settings: Settings, model: Model) -> None:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        await harness.say("alice", "hello", room="general")
        await harness.command("alice", "/nexus opt-out", dm="nexus")
        sessions = serve_sessions(harness, look_seconds=0.0)
        model.says = ["The harbour opens at nine."]
        asked = await sessions.ask(await sessions.bearer("alice"), "when does the harbour open?")
        await harness.app.turns.settle()
        await harness.app.indexer.catch_up(harness.workspace().tenant_id)  # it is answered, and not kept
        heard = [event async for event in sessions.served.follow(asked, valid)]
    assert (heard[-1].kind, heard[-1].text) == (EventKind.ANSWER, "The harbour opens at nine.")


# docs/architecture.md: forgetting reaches every layer. An answer is written anew where the first one could not be
# stored. Whoever read slowly was given the pieces of the first one while the second was written, without what was
# forgotten between.
async def test_who_reads_slowly_is_given_no_piece_of_an_answer_that_was_thrown_away(
    settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        await harness.say("alice", "hello", room="general")
        sessions = serve_sessions(harness, look_seconds=0.0)
        alice = await sessions.bearer("alice")
        await sessions.answer(alice, "the vault is behind zqorchid")
        store = AnswerStore.store

        async def stored(*_: Any) -> None:
            monkeypatch.setattr(AnswerStore, "store", store)
            await harness.command("alice", "/nexus forget zqorchid --yes", dm="nexus")
            model.gate = asyncio.Event()
            raise Unavailable("The database is away.")

        async def written_anew() -> bool:
            return len(model.shown) == before + 2

        monkeypatch.setattr(AnswerStore, "store", stored)
        model.says, before = ["zqorchid is before it.", "I do not know that."], len(model.shown)
        asked = await sessions.ask(alice, "where is the vault?")
        await until(written_anew)
        heard = []
        async for event in sessions.served.follow(asked, valid):
            heard.append(event)
            if len(heard) > 1 and model.gate is not None:
                model.gate.set()
    assert (heard[-1].kind, heard[-1].text) == (EventKind.ANSWER, "I do not know that.")
    assert not any("zqorchid" in event.text for event in heard)

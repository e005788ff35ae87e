"""Attacks on repairs that had not been attacked: what waits for what, what is deleted while it is waited for, and what
dies between two steps."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot.console import operations
from bot.script.places import incoming, place_of
from composer.entries import entries
from composer.gateway.memory import GatewayMemory
from composer.ingest.imports import find_import, undo_import
from composer.ingest.rooms import erase_room
from composer.memory.forget import RECEIPT_KEY_BYTES
from composer.model import Incoming
from composer.repositories.audit import Audit
from composer.repositories.imports import ImportRun, Imports
from composer.repositories.messages import Messages
from composer.settings import Settings
from composer.stores.embedded.servers import Servers
from tests.integration.test_compaction import rows
from tests.integration.test_interrupted_commands import adopted, answered, interrupt
from tests.support.api import bearer, key_of
from tests.support.databases import clone
from tests.support.entries import Hub
from tests.support.gateway import MODEL, gateway_stage
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped

pytestmark = pytest.mark.integration

BOARD: dict[str, Any] = {"room": "board"}
MORE_THAN_THE_POOL = 16  # connections of a process to the database


# docs/architecture.md: a message that was acknowledged is stored. What somebody says for the first time waits for the
# undoing of the import that made their room and them, and deletes both: the database refused it then, and on Discord,
# which delivers nothing again, it was lost.
async def test_a_message_of_somebody_whose_import_is_being_undone_is_stored(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, run = harness.workspace(), await imported(harness)
    new = said(harness, "zqnew", "general")
    delete, receiving = Imports.delete_unused, list[asyncio.Task[Any]]()

    async def delete_while_it_waits(imports: Imports, id: uuid.UUID) -> tuple[int, int]:
        receiving.append(asyncio.create_task(harness.app.receive(at, [new])))
        await until_stopped(settings, receiving[0])
        return await delete(imports, id)

    monkeypatch.setattr(Imports, "delete_unused", delete_while_it_waits)
    await undo(harness, run)
    assert len((await receiving[0]).new) == 1
    assert await rows(settings, MEMBERS_OF_ALICE)


# The same beside a message in another room: its person was deleted, and with them that they are in that room.
async def test_who_speaks_elsewhere_while_their_import_is_undone_stays(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = harness.workspace()
    await harness.say("bob", "hello", room="elsewhere")
    run, append, undoing = await imported(harness), Messages.append, list[asyncio.Task[None]]()

    async def append_while_it_is_undone(messages: Messages, *args: Any, **named: Any) -> None:
        await append(messages, *args, **named)
        undoing.append(asyncio.create_task(undo(harness, run)))
        await until_stopped(settings, undoing[0])

    monkeypatch.setattr(Messages, "append", append_while_it_is_undone)
    await harness.app.receive(at, [said(harness, "zqnew", "elsewhere")])
    await undoing[0]
    assert await rows(settings, MEMBERS_OF_ALICE)


MEMBERS_OF_ALICE = "SELECT 1 FROM members AS m JOIN users AS u ON u.id = m.user_id WHERE u.name = 'alice'"


def said(harness: AppHarness, text: str, room: str) -> Incoming:
    """A message of alice's."""
    return incoming(harness.workspace(), place_of(room, None, None), "alice", text, harness.clock.tick(), id=text)


async def imported(harness: AppHarness) -> ImportRun:
    """An import that makes alice known, and a room."""
    run = ImportRun(uuid.uuid4(), "export.zip")
    await harness.app.receive(harness.workspace(), [said(harness, "zqold", "general")], answer=False, run=run)
    return run


async def undo(harness: AppHarness, run: ImportRun) -> None:
    database, new_key = harness.app.database, lambda: b"k" * RECEIPT_KEY_BYTES
    async for _ in undo_import(database, await find_import(database, run.id.hex), new_key, harness.clock.now()):
        pass


# docs/decisions/0030: what is changed or shared no more does not leave after that. A fact or a decision that its person
# replaced or withdrew while memory was read for a request left with what had been read.
@pytest.mark.parametrize("then", ["fact set code zqrose --everywhere --yes", "share {id} here --yes"])
async def test_a_fact_that_is_replaced_while_a_request_is_read_for_does_not_leave_after_that(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url, timeout=60) as http:
        harness = stage.harness
        headers = bearer(await key_of(harness, "alice", "cursor"))
        await harness.say("alice", "hello", room="general")
        for fact in ("code zqorchid", "wall zqwall"):
            await harness.command("alice", f"/nexus fact set {fact} --everywhere --yes", dm="nexus")
        [[id]] = await rows(settings, "SELECT id FROM facts WHERE key = 'code'")
        check = GatewayMemory._not_erased

        async def checked(memory: GatewayMemory, *args: Any) -> Any:
            await harness.command("alice", f"/nexus {then.format(id=id.hex[:8])}", dm="nexus")
            return await check(memory, *args)

        monkeypatch.setattr(GatewayMemory, "_not_erased", checked)
        asked = {"model": MODEL, "messages": [{"role": "user", "content": "what is the code?"}]}
        answer = await http.post("/v1/chat/completions", json=asked, headers=headers)
        told = str(stage.upstream.bodies[-1])
    assert (answer.status_code, "zqorchid" in told, "zqwall" in told) == (200, False, True)


# The same for an entry of another person that ceased to be shared.
async def test_an_entry_that_ceases_to_be_shared_while_a_request_is_read_for_does_not_leave_after_that(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url, timeout=60) as http:
        alice, bob = bearer(await key_of(stage.harness, "alice")), bearer(await key_of(stage.harness, "bob", "cursor"))
        of_bob = bearer(await key_of(stage.harness, "bob"))
        user = (await http.get("/v1/whoami", headers=of_bob)).json()["user"]
        team = (await http.post("/v1/teams", json={"name": "Ops"}, headers=alice)).json()["id"]
        await http.post(f"/v1/teams/{team}/invites", json={"user": user}, headers=alice)
        assert (await http.post(f"/v1/teams/{team}/accept", headers=of_bob)).status_code == 204
        shared = [
            (await stage.hub.write("alice", f"the vault code is {word}")).entry for word in ("zqorchid", "zqrose")
        ]
        for entry in shared:
            await stage.hub.share("alice", entry.id, uuid.UUID(team))
        check = GatewayMemory._not_erased

        async def checked(memory: GatewayMemory, *args: Any) -> Any:
            async with stage.hub.request("alice") as (tx, access):
                await entries.share(tx, access, shared[0].id, None, stage.harness.clock.tick())
            return await check(memory, *args)

        monkeypatch.setattr(GatewayMemory, "_not_erased", checked)
        asked = {"model": MODEL, "messages": [{"role": "user", "content": "what is the vault code?"}]}
        answer = await http.post("/v1/chat/completions", json=asked, headers=bob)
        told = str(stage.upstream.bodies[-1])
    assert (answer.status_code, "zqorchid" in told, "zqrose" in told) == (200, False, True)


# docs/architecture.md: what is deleted on its platform is gone from every layer. A message that its platform delivered,
# perhaps once more, after its room or thread was deleted was stored, and stayed.
@pytest.mark.parametrize("thread", [None, "t1"])
async def test_a_message_that_arrives_after_its_room_was_deleted_is_not_stored(
    harness: AppHarness, settings: Settings, thread: str | None
) -> None:
    def said(text: str, thread: str | None) -> Incoming:
        place = place_of("general", None, None, thread)
        return incoming(harness.workspace(), place, "alice", text, harness.clock.tick(), id=text)

    at, now = harness.workspace(), harness.clock.now
    for place in (None, "t1"):
        await harness.app.receive(at, [said(f"zqearly {place}", place)])
    late = [said("zqlate in the thread", "t1"), said("zqlate in the room", None)]
    harness.clock.tick()
    await erase_room(harness.app.database, at, "general", thread, now())
    await harness.app.receive(at, late)
    await harness.app.receive(at, [said("zqafter that", "t1")])  # where a platform was wrong, nothing is lost
    stored = [row["text"] for row in await rows(settings, "SELECT text FROM messages ORDER BY at")]
    room = [] if thread is None else ["zqearly None", "zqlate in the room"]
    assert stored == [*room, "zqafter that"]


# docs/architecture.md: an erasure that is done late takes what there was when it was asked for. An entry counted as it
# was made first, so that what had been written with its key since then went with it.
async def test_what_is_written_with_a_key_stays_where_all_from_before_is_forgotten_late(
    harness: AppHarness, settings: Settings
) -> None:
    hub = Hub(harness)
    await harness.say("alice", "hello", **BOARD)
    await hub.write("alice", "zqold", "cursor", key="replaced")
    await hub.write("alice", "zqsame", "cursor", key="again")
    await hub.write("alice", "zqpart", "cursor", key="in part", metadata={"from": "before"})
    changed = (await hub.write("alice", "zqchanged", "cursor")).entry
    await interrupt(harness, "alice", "forget everything --yes")
    harness.clock.tick(60)
    await hub.write("alice", "zqnew", "cursor", key="replaced")
    await hub.write("alice", "zqsame", "cursor", key="again")
    await hub.write("alice", "zqother part", "cursor", key="in part")
    await hub.change("alice", changed.id, title="zqtitle")
    [given] = await adopted(harness, settings)
    assert (await answered(harness, given)).startswith("Forgotten for good")
    assert await texts(settings) == {"zqnew", "zqsame"}


async def texts(settings: Settings) -> set[str]:
    return {row["text"] for row in await rows(settings, "SELECT text FROM memories")}


# docs/operations.md: every tenant's audit log says that it was restored. A restore that died before that had filled the
# database, in which no restore could be done any more.
async def test_a_restore_that_dies_before_it_is_recorded_is_done_again(
    settings: Settings, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    async def die(*_: Any, **__: Any) -> None:
        raise Killed

    async with open_harness(settings) as harness:
        await harness.say("alice", "hello", room="general")
        await harness.app.backup.write(tmp_path / "one.backup", harness.clock.now())
    async with clone(servers.database_url, "dying_restore", "template0") as url:
        target = settings.model_copy(update={"database_url": url})
        with monkeypatch.context() as patched:
            patched.setattr(Audit, "record", die)
            with pytest.raises(Killed):
                await operations.restore(target, tmp_path / "one.backup")
        await operations.restore(target, tmp_path / "one.backup")
        assert await rows(target, "SELECT 1 FROM audit_events WHERE act = 'restored'")

"""What is taken away while memory is read for a request to a model does not leave with it."""

import asyncio
import uuid
from typing import Any

import httpx2
import pytest

from composer.entries import entries
from composer.gateway.memory import GatewayMemory
from composer.settings import Settings
from tests.integration.test_compaction import rows
from tests.support.api import bearer, key_of
from tests.support.gateway import MODEL, gateway_stage
from tests.support.held_erasure import HeldErasure
from tests.support.waiting import TIMEOUT_SECONDS

CALLS = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
FURTHER = [{"role": "assistant", "tool_calls": [CALLS]}, {"role": "tool", "tool_call_id": "c1", "content": "a wall"}]
FUNCTION = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


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

"""Attacks on what the gateway learns: requests that others have a say in, and forgetting while something is asked,
learnt or said again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import httpx2
import openai
import pytest

from bot.commands import forget as commands
from bot.commands.table import run_command
from bot.console.doctor import check_receipt
from bot.script.places import incoming, place_of
from composer.people import erasing
from composer.people.credentials.leaving import end_access
from composer.settings import Settings
from tests.deep.integration.test_gateway_learning import ENTRIES, TEA, TOOLS, answered, learn, waits
from tests.support.api import bearer, key_of
from tests.support.gateway import MODEL, GatewayStage, gateway_stage
from tests.support.model_server import Say
from tests.support.waiting import until

EXCHANGES: Final = "SELECT question FROM gateway_exchanges"
TEXTS: Final = "SELECT * FROM gateway_exchanges WHERE question <> ''"
WAITING_LOCKS: Final = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
async def stage(settings: Settings) -> AsyncIterator[GatewayStage]:
    async with gateway_stage(settings, extraction="pattern") as stage:
        yield stage


@pytest.fixture
async def http(stage: GatewayStage) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=stage.url, timeout=60) as http:
        yield http


# docs/architecture.md: what a person asks to be forgotten is gone everywhere; docs/gateway.md: what waits to be learnt
# goes with whatever its person forgets.


async def _forget_an_entry(stage: GatewayStage, http: httpx2.AsyncClient, tool: str) -> None:
    own = bearer(await key_of(stage.harness, "alice"))
    made = await http.post("/v1/entries", json={"content": "zqtea is good"}, headers=own)
    assert (await http.post(f"/v1/entries/{made.json()['id']}/forget", headers=own)).status_code == 200


async def _forget_by_tool(stage: GatewayStage, http: httpx2.AsyncClient, tool: str) -> None:
    answer = await http.post("/v1/agent/forget", json={"everything": True}, headers=bearer(tool))
    assert answer.status_code == 200, answer.text


async def _forget_words(stage: GatewayStage, http: httpx2.AsyncClient, tool: str) -> None:
    await stage.harness.command("alice", "/nexus forget zqtea --yes", dm="nexus")


async def _forget_everything(stage: GatewayStage, http: httpx2.AsyncClient, tool: str) -> None:
    await stage.harness.command("alice", "/nexus forget everything --yes", dm="nexus")


async def _look_for_words(stage: GatewayStage, http: httpx2.AsyncClient, tool: str) -> None:
    answer = await stage.harness.command("alice", "/nexus forget zqtea", dm="nexus")
    assert "Nothing" in answer.text, "there is nothing to confirm"


async def _forget_after_a_restart(stage: GatewayStage, http: httpx2.AsyncClient, tool: str) -> None:
    """The command was given before the request came, and is run later."""
    sent = incoming(
        stage.harness.workspace(),
        place_of(None, "nexus", None),
        "alice",
        "/nexus forget zqtea --yes",
        stage.harness.clock.now() - timedelta(minutes=10),
        id="interrupted",
    )
    await run_command(stage.harness.app, stage.harness.workspace(), sent)


Forget = Callable[[GatewayStage, httpx2.AsyncClient, str], Awaitable[None]]


async def _asked_and_held(
    stage: GatewayStage, client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> tuple[asyncio.Task[Any], asyncio.Event]:
    """A request that the model server holds until the event is set."""
    came, goes_on, received = asyncio.Event(), asyncio.Event(), stage.upstream._received

    async def held(request: Any) -> Any:
        found = await received(request)
        came.set()
        await goes_on.wait()
        return found

    monkeypatch.setattr(stage.upstream, "_received", held)
    asked = asyncio.create_task(client.chat.completions.create(model=MODEL, messages=TEA))
    await came.wait()
    return asked, goes_on


@pytest.mark.parametrize(
    "forget",
    [
        _forget_an_entry,
        _forget_by_tool,
        _forget_words,
        _forget_everything,
        _look_for_words,
        _forget_after_a_restart,
    ],
)
async def test_what_is_forgotten_while_a_request_is_answered_is_not_learnt(
    stage: GatewayStage, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, forget: Forget
) -> None:
    client = await stage.client()
    asked, goes_on = await _asked_and_held(stage, client, monkeypatch)
    await forget(stage, http, client.api_key)
    goes_on.set()
    await asked
    await answered(stage, 1)
    await learn(stage)
    assert (await stage.rows(ENTRIES), await stage.rows(TEXTS)) == ([], [])


async def test_nothing_is_learnt_by_a_key_that_is_revoked_while_its_request_is_answered(
    stage: GatewayStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # docs/keys.md: a key that is revoked writes nothing any more. What its request taught was written after that.
    client = await stage.client()
    asked, goes_on = await _asked_and_held(stage, client, monkeypatch)
    assert await end_access(stage.harness.app.database, stage.harness.workspace(), "alice") > 0
    goes_on.set()
    await asyncio.gather(asked, return_exceptions=True)  # it may be cut off, which is looked at now and then
    await answered(stage, 1)
    await learn(stage)
    assert (await stage.rows(ENTRIES), await stage.rows(EXCHANGES)) == ([], [])


async def test_what_is_forgotten_in_the_middle_of_a_turn_with_functions_is_not_learnt_at_its_end(
    stage: GatewayStage, http: httpx2.AsyncClient
) -> None:
    client = await stage.client()
    stage.upstream.script += [Say((), calls=[("look", {})]), Say(("Drink tea.",))]
    called = await client.chat.completions.create(model=MODEL, messages=TEA, tools=TOOLS)
    stage.harness.clock.tick(60)
    await _forget_by_tool(stage, http, client.api_key)
    stage.harness.clock.tick(60)
    loop: list[Any] = [
        *TEA,
        called.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": "call-0", "content": "nothing"},
    ]
    await client.chat.completions.create(model=MODEL, messages=loop, tools=TOOLS)
    await answered(stage, 2)
    await learn(stage)
    assert await stage.rows(ENTRIES) == []
    since: list[Any] = [{"role": "user", "content": "I prefer zqjuice over tea."}]
    await client.chat.completions.create(model=MODEL, messages=since)
    await waits(stage, 1)
    await learn(stage)
    assert [row[0] for row in await stage.rows(ENTRIES)] == ["I prefer zqjuice over tea."], "said since"


@pytest.mark.parametrize(
    ("module", "finds", "forget"),
    [
        (erasing, "_forgettable", _forget_by_tool),
        (commands, "_own", _forget_words),
        (commands, "_own", _forget_everything),
    ],
)
async def test_what_is_learnt_while_it_is_forgotten_does_not_stay(
    stage: GatewayStage,
    http: httpx2.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    finds: str,
    forget: Forget,
) -> None:
    client = await stage.client()
    await client.chat.completions.create(model=MODEL, messages=TEA)
    await waits(stage, 1)
    find, learning = getattr(module, finds), list[asyncio.Task[int]]()

    async def found(*args: Any, **options: Any) -> Any:
        """What is to be forgotten; then what waits is learnt, unless it has to wait for the end of this."""
        result = await find(*args, **options)
        learning.append(asyncio.create_task(learn(stage)))

        async def is_over() -> bool:
            return learning[-1].done() or await stage.rows(WAITING_LOCKS) != [(0,)]

        await until(is_over)
        return result

    monkeypatch.setattr(module, finds, found)
    await forget(stage, http, client.api_key)
    await asyncio.gather(*learning)
    assert learning
    await learn(stage)
    assert (await stage.rows(ENTRIES), await stage.rows(TEXTS)) == ([], [])


# docs/operations.md: `nexus doctor --erased RECEIPT` says whether anything of what was erased is stored.


async def _require_erased(stage: GatewayStage, receipt: str) -> None:
    checks = await check_receipt(stage.harness.app.settings, receipt)
    [check] = [each for each in checks if each.name == "erased"]
    assert check.ok, check.detail


async def test_a_receipt_finds_nothing_of_an_entry_that_was_written_with_an_idempotency_key(
    stage: GatewayStage, http: httpx2.AsyncClient
) -> None:
    own = bearer(await key_of(stage.harness, "alice"))
    once = own | {"Idempotency-Key": "once"}
    made = await http.post("/v1/entries", json={"content": "zqtea is good"}, headers=once)
    receipt = (await http.post(f"/v1/entries/{made.json()['id']}/forget", headers=own)).json()["id"]
    await _require_erased(stage, receipt)
    again = await http.post("/v1/entries", json={"content": "zqtea is good"}, headers=once)
    assert again.status_code == 410, "and what is repeated does not bring it back"


@pytest.mark.parametrize("kind", ["preference", "note"])
async def test_a_receipt_finds_nothing_of_an_entry_that_was_put_into_a_turn_with_functions(
    stage: GatewayStage, http: httpx2.AsyncClient, kind: str
) -> None:
    client, own = await stage.client(), bearer(await key_of(stage.harness, "alice"))
    ids = [
        (await http.post("/v1/entries", json={"content": f"zqtea {n}", "kind": kind}, headers=own)).json()["id"]
        for n in range(2)
    ]
    await stage.harness.app.indexer.catch_up(stage.harness.workspace().tenant_id)
    asking: Any = [{"role": "user", "content": "what about zqtea?"}]
    await client.chat.completions.create(model=MODEL, messages=asking, tools=TOOLS)
    receipt = (await http.post(f"/v1/entries/{ids[0]}/forget", headers=own)).json()["id"]
    await _require_erased(stage, receipt)
    kept = await stage.rows("SELECT standing || recalled FROM gateway_turns")
    assert [[str(id) for id in each] for (each,) in kept] == [[ids[1]]]


async def test_a_receipt_finds_nothing_of_what_was_learnt_and_is_learnt_again(
    stage: GatewayStage, http: httpx2.AsyncClient
) -> None:
    client, own = await stage.client(), bearer(await key_of(stage.harness, "alice"))
    said: list[Any] = list(TEA)
    for _ in range(3):
        await client.chat.completions.create(model=MODEL, messages=said)
        await waits(stage, 1)
        await learn(stage)
        [entry] = (await http.get("/v1/entries", headers=own)).json()["items"]
        assert entry["content"] == "I prefer zqtea over coffee.", "who says it again is learnt from again"
        receipt = (await http.post(f"/v1/entries/{entry['id']}/forget", headers=own)).json()["id"]
        await _require_erased(stage, receipt)
        said = [*said, {"role": "assistant", "content": "hi"}, *TEA]
        stage.harness.clock.tick(60)
    await client.chat.completions.create(model=MODEL, messages=said)
    await waits(stage, 1)
    await learn(stage)
    await _require_erased(stage, receipt)

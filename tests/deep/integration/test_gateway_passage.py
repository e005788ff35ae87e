"""The gateway without memory: what comes to the upstream and back, by the real client of the OpenAI API."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from typing import Any, Final

import httpx2
import openai
import pytest
from pydantic import BaseModel, SecretStr

from bot.web.gateway import relay
from composer.ports.models import TOKENS_PER_PROMPT, WorkKind
from composer.settings import (
    BudgetSettings,
    PlanSettings,
    PriceSettings,
    Settings,
    TenantGatewaySettings,
    TenantSettings,
)
from tests.support.api import bearer, key_of
from tests.support.gateway import MODEL, UPSTREAM_KEY, GatewayStage, gateway_stage
from tests.support.model_server import Fail, Hang, Raw, Say
from tests.support.waiting import until

OFF: Final = {"X-Nexus-Memory": "off"}
HI: Final[list[Any]] = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def stage(settings: Settings) -> AsyncIterator[GatewayStage]:
    async with gateway_stage(settings) as stage:
        yield stage


USED: Final = "SELECT calls, failures, estimated, prompt_tokens, completion_tokens, cached_tokens FROM model_usage"


async def raw_post(stage: GatewayStage, path: str, body: bytes, key: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=60) as client:
        sent = {"Content-Type": "application/json", **bearer(key), **headers}
        return await client.post(f"{stage.url}{path}", content=body, headers=sent)


async def test_an_answer_and_a_stream_come_as_the_upstream_sends_them(stage: GatewayStage) -> None:
    client = await stage.client(headers=OFF)
    stage.upstream.default = Say(("Hello", " there."), headers={"x-ratelimit-remaining-requests": "41"})
    raw = await client.chat.completions.with_raw_response.create(model=MODEL, messages=HI)
    assert raw.headers["x-ratelimit-remaining-requests"] == "41"
    assert raw.parse().choices[0].message.content == "Hello there."
    stream = await client.chat.completions.create(model=MODEL, messages=HI, stream=True)
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello there."
    assert all(chunk.choices for chunk in chunks), "what the stream used is left out: the client did not ask for it"
    options: Any = {"include_usage": True}
    asked = await client.chat.completions.create(model=MODEL, messages=HI, stream=True, stream_options=options)
    last = [chunk async for chunk in asked][-1]
    assert (last.choices, last.usage is not None) == ([], True)


async def test_a_body_is_passed_on_byte_for_byte(stage: GatewayStage) -> None:
    key = await key_of(stage.harness, "alice", "cursor")
    bodies = [
        b'{"model":"gpt-4o","messages":[{"role":"user","content":"caf\\u00e9 \xc3\xa9"}],'
        b'"seed":1.0e2,"x_new":[1.50,-0.0,1e400]}',
        b' { "messages" : [ ] , "model" : "gpt-4o" , "metadata":{"b":1,"a":2,"b":3}, "stream" : false } ',
        b'{"model":"gpt-4o","messages":[{"role":"user","content":null,"name":"\\ud83d"}]}',
    ]
    for body in bodies:
        await raw_post(stage, "/v1/chat/completions", body, key, **OFF)
        assert stage.upstream.requests[-1].raw == body
    streamed = b'{"model":"gpt-4o", "stream":true, "n": 1.0, "messages":[{"role":"user","content":"x"}]}'
    wanted = b'{"stream_options":{"include_usage":true},' + streamed[1:]
    await raw_post(stage, "/v1/chat/completions", streamed, key, **OFF)
    assert stage.upstream.requests[-1].raw == wanted
    for given, made in (
        (b"null", b'{"include_usage":true}'),
        (b'{"include_usage": false, "x":1}', b'{"include_usage": true, "x":1}'),
        (b'{"x":1}', b'{"include_usage":true,"x":1}'),
        (b"{}", b'{"include_usage":true}'),
        (b'{"include_usage":true}', b'{"include_usage":true}'),
    ):
        body = b'{"model":"gpt-4o","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":%b}'
        await raw_post(stage, "/v1/chat/completions", body % given, key, **OFF)
        assert stage.upstream.requests[-1].raw == body % made


async def test_tools_images_and_structured_outputs_pass(stage: GatewayStage) -> None:
    client = await stage.client(headers=OFF)
    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    stage.upstream.script += [Say((), calls=[("look", {"at": "sky"})]), Say((), calls=[("look", {"at": "sky"})])]
    called = await client.chat.completions.create(model=MODEL, messages=HI, tools=tools)
    calls = called.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].function.arguments == '{"at": "sky"}'  # type: ignore[union-attr]
    stream = await client.chat.completions.create(model=MODEL, messages=HI, tools=tools, stream=True)
    parts = [part for chunk in [c async for c in stream] for part in chunk.choices[0].delta.tool_calls or []]
    assert "".join(part.function.arguments or "" for part in parts if part.function) == '{"at": "sky"}'
    assert stage.upstream.bodies[-1]["tools"] == tools
    image: Any = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}]
    await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": image}])
    assert stage.upstream.bodies[-1]["messages"] == [{"role": "user", "content": image}]

    class Place(BaseModel):
        city: str

    stage.upstream.script.append(Say(('{"city":', '"Porto"}')))
    parsed = await client.chat.completions.parse(model=MODEL, messages=HI, response_format=Place)
    assert parsed.choices[0].message.parsed == Place(city="Porto")


async def test_responses_embeddings_and_models_pass(stage: GatewayStage) -> None:
    client = await stage.client(headers=OFF)
    answer = await client.responses.create(model=MODEL, input="hi", instructions="be brief")
    assert answer.output_text == "Hello there."
    assert stage.upstream.bodies[-1] == {"model": MODEL, "input": "hi", "instructions": "be brief"}
    stream = await client.responses.create(model=MODEL, input="hi", stream=True)
    events = [event async for event in stream]
    assert events[-1].type == "response.completed"
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hello there."
    vectors = await client.embeddings.create(model="text-embedding-3-small", input=["a", "b"])
    assert len(vectors.data) == 2
    stage.upstream.models = {MODEL, "other/model"}
    assert [model.id async for model in client.models.list()] == [MODEL, "other/model"]
    said_by_clients = {"client_version": "0.99.0"}  # Codex says it; no parameter is refused here
    assert len((await client.models.list(extra_query=said_by_clients)).data) == 2
    assert (await client.models.retrieve("other/model")).id == "other/model"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("../secrets")


async def test_what_was_used_is_recorded_for_the_owner(stage: GatewayStage) -> None:
    client = await stage.client(headers=OFF)
    stage.upstream.default = Say(("Hello", " there."), cached=1)
    await client.chat.completions.create(model=MODEL, messages=HI)
    await until(lambda: _has(stage, [(1, 0, 0, 1, 2, 1)]))
    async with await client.chat.completions.create(model=MODEL, messages=HI, stream=True) as stream:
        assert [chunk async for chunk in stream]
    await until(lambda: _has(stage, [(2, 0, 0, 2, 4, 2)]))
    await client.responses.create(model=MODEL, input="hi")
    await until(lambda: _has(stage, [(3, 0, 0, 13, 11, 5)]))
    async with await client.responses.create(model=MODEL, input="hi", stream=True) as events:
        assert [event async for event in events]
    await until(lambda: _has(stage, [(4, 0, 0, 24, 18, 8)]))
    stage.upstream.script.append(Fail(429))
    with pytest.raises(openai.RateLimitError):
        await client.chat.completions.create(model=MODEL, messages=HI)
    await until(lambda: _has(stage, [(5, 1, 0, 24, 18, 8)]))
    alice = await stage.hub.user("alice")
    assert await stage.rows("SELECT DISTINCT user_id, kind FROM model_usage") == [(alice, WorkKind.GATEWAY)]
    assert (await stage.rows("SELECT count(*) FROM usage_reservations")) == [(0,)]


async def _has(stage: GatewayStage, rows: list[tuple[Any, ...]]) -> bool:
    return await stage.rows(USED) == rows


async def test_errors_of_the_upstream_arrive_as_they_are(stage: GatewayStage) -> None:
    client = await stage.client(headers=OFF)
    limits = {"retry-after": "17", "x-ratelimit-limit-tokens": "90"}
    stage.upstream.script.append(Fail(429, "slow down", "rate_limit_exceeded", headers=limits))
    with pytest.raises(openai.RateLimitError, match="slow down") as limited:
        await client.chat.completions.create(model=MODEL, messages=HI)
    assert limited.value.code == "rate_limit_exceeded"
    assert {name: limited.value.response.headers[name] for name in limits} == limits
    stage.upstream.script.append(Fail(404, "no such thing", "model_not_found", "model"))
    with pytest.raises(openai.NotFoundError) as missing:
        await client.responses.create(model=MODEL, input="hi")
    assert missing.value.code == "model_not_found"
    stage.upstream.script.append(Raw(b"<h1>broken</h1>", "text/html"))
    broken = await client.chat.completions.with_raw_response.create(model=MODEL, messages=HI)
    assert (broken.headers["content-type"], broken.content) == ("text/html", b"<h1>broken</h1>")


async def test_a_stream_ends_where_the_upstream_breaks_off(stage: GatewayStage) -> None:
    client = await stage.client(headers=OFF)
    stage.upstream.script.append(Say(("Hello",), drop=True))
    with pytest.raises((openai.APIError, httpx2.HTTPError)):
        async for _ in await client.chat.completions.create(model=MODEL, messages=HI, stream=True):
            pass
    await until(lambda: _has_estimate(stage))


async def _has_estimate(stage: GatewayStage) -> bool:
    rows = await stage.rows("SELECT calls, failures, estimated, completion_tokens FROM model_usage")
    return rows == [(1, 0, 1, 1)]


async def test_who_leaves_ends_the_request_to_the_upstream(stage: GatewayStage) -> None:
    client = await stage.client(headers=OFF)
    stage.upstream.script.append(Hang(("Hello",)))
    stream = await client.chat.completions.create(model=MODEL, messages=HI, stream=True)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    assert not stage.upstream.left.is_set()
    await stream.close()
    await asyncio.wait_for(stage.upstream.left.wait(), 60)
    await until(lambda: _has_estimate(stage))
    stage.upstream.left.clear()
    stage.upstream.script.append(Hang())
    waiting = asyncio.create_task(client.chat.completions.create(model=MODEL, messages=HI))
    await until(lambda: len(stage.upstream.requests) == 2)
    waiting.cancel()
    await asyncio.wait_for(stage.upstream.left.wait(), 60)
    await until(lambda: _has_both_prompts(stage))


async def _has_both_prompts(stage: GatewayStage) -> bool:
    """Who leaves before an answer comes has used the prompt all the same."""
    rows = await stage.rows("SELECT calls, failures, estimated, prompt_tokens FROM model_usage")
    return len(rows) == 1 and rows[0][:3] == (2, 1, 2) and rows[0][3] >= 2 * TOKENS_PER_PROMPT


async def test_of_an_endless_error_only_the_beginning_is_read(stage: GatewayStage) -> None:
    key = await key_of(stage.harness, "alice", "cursor")
    for streams in ("true", "false"):
        stage.upstream.script.append(Fail(400, "x" * 5 * relay.MAX_ERROR_BYTES))
        body = b'{"model":"gpt-4o","stream":%b,"messages":[{"role":"user","content":"x"}]}' % streams.encode()
        answer = await raw_post(stage, "/v1/chat/completions", body, key, **OFF)
        assert answer.status_code == 400
        assert relay.MAX_ERROR_BYTES <= len(answer.content) < 2 * relay.MAX_ERROR_BYTES


async def test_a_key_that_is_revoked_ends_its_stream(stage: GatewayStage, monkeypatch: pytest.MonkeyPatch) -> None:
    found_revoked: list[bool] = []
    has_ended = relay._has_ended

    async def watched(stands: Callable[[], Awaitable[bool]]) -> None:
        async def noted() -> bool:
            if not (valid := await stands()):
                found_revoked.append(True)
            return valid

        await has_ended(noted)

    monkeypatch.setattr(relay, "_has_ended", watched)
    monkeypatch.setattr(relay, "STREAM_LOOK_SECONDS", 0.05)
    client = await stage.client(headers=OFF)
    stage.upstream.script.append(Hang(("Hello",)))
    stream = await client.chat.completions.create(model=MODEL, messages=HI, stream=True)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    tenant = stage.harness.workspace().tenant_id
    async with stage.harness.app.database.transaction(tenant) as tx:
        [entry] = await tx.api_keys.of(None)
        await tx.api_keys.revoke([entry.id], stage.harness.clock.now(), None)

    async def rest() -> list[Any]:
        return [chunk async for chunk in stream]

    ending = asyncio.create_task(rest())
    await until(lambda: ending.done() or len(found_revoked) > 1)
    assert len(found_revoked) == 1, "the first look that finds it revoked ends the stream"
    with pytest.raises((openai.APIError, httpx2.HTTPError)):
        await ending
    await asyncio.wait_for(stage.upstream.left.wait(), 60)


async def test_no_key_and_no_cookie_crosses_over(stage: GatewayStage) -> None:
    key = await key_of(stage.harness, "alice", "cursor")
    body = b'{"model":"gpt-4o","messages":[{"role":"user","content":"x"}]}'
    theirs = {"Cookie": "a=b", "api-key": key, "X-Forwarded-For": "10.1.1.1", "Origin": "https://a.example"}
    theirs |= {"User-Agent": f"tool {key}", "OpenAI-Beta": "yes", "OpenAI-Organization": "org", "X-Own": "1"}
    set_cookies = {"set-cookie": "upstream=1; Path=/", "openai-organization": "operator", "x-kept": "1"}
    stage.upstream.script.append(
        Say(headers={**set_cookies, "x-key": UPSTREAM_KEY, "connection": "x-hop", "x-hop": "1"})
    )
    answer = await raw_post(stage, "/v1/chat/completions", body, key, **theirs, **OFF)
    assert answer.headers["x-kept"] == "1"
    assert not {"set-cookie", "openai-organization", "x-key", "x-hop"} & set(answer.headers)
    await raw_post(stage, "/v1/chat/completions", body, key, **OFF)
    for sent in stage.upstream.requests:
        assert sent.headers["Authorization"] == f"Bearer {UPSTREAM_KEY}"
        held = {name.lower(): value for name, value in sent.headers.items()}
        assert key not in str(held)
        assert not {"cookie", "api-key", "x-forwarded-for", "origin", "openai-organization", "x-own"} & set(held)
        assert not any(name.startswith("x-nexus") for name in held)
    assert {name.lower(): value for name, value in stage.upstream.requests[0].headers.items()}["openai-beta"] == "yes"
    stage.upstream.key = "another"
    refused = await raw_post(stage, "/v1/chat/completions", body, key, **OFF)
    assert refused.status_code == 401
    assert "Incorrect API key provided: [masked]" in refused.text


async def test_a_name_of_a_repeat_is_that_of_one_key_alone(stage: GatewayStage) -> None:
    body = b'{"model":"gpt-4o","messages":[{"role":"user","content":"x"}]}'
    alices, bobs = await key_of(stage.harness, "alice", "cursor"), await key_of(stage.harness, "bob", "cursor")
    for key in (alices, alices, bobs):
        await raw_post(stage, "/v1/chat/completions", body, key, **{"Idempotency-Key": "one", **OFF})
    first, again, others = (sent.headers["idempotency-key"] for sent in stage.upstream.requests)
    assert first == again
    assert others not in (first, "one")


async def test_only_listed_models_are_asked_for(settings: Settings) -> None:
    async with gateway_stage(settings, {"models": ["gpt-4o", "text-embedding-3-small"]}) as stage:
        stage.upstream.models = {"gpt-4o", "gpt-5", "text-embedding-3-small"}
        client = await stage.client(headers=OFF)
        assert [model.id async for model in client.models.list()] == ["gpt-4o", "text-embedding-3-small"]
        await client.chat.completions.create(model="gpt-4o", messages=HI)
        for ask in (
            lambda: client.chat.completions.create(model="gpt-5", messages=HI),
            lambda: client.responses.create(model="gpt-5", input="hi"),
            lambda: client.embeddings.create(model="gpt-5", input="hi"),
            lambda: client.models.retrieve("gpt-5"),
        ):
            with pytest.raises(openai.NotFoundError) as refused:
                await ask()
            assert refused.value.code == "model_not_found"
        key = client.api_key
        for twice in (
            b'"model":"gpt-4o","model":"gpt-5"',
            b'"model":"gpt-4o","Model":"gpt-5"',
            b'"mod\\u0065l":"gpt-5","model":"gpt-4o"',
        ):
            body = b'{%b,"messages":[{"role":"user","content":"x"}]}' % twice
            answer = await raw_post(stage, "/v1/chat/completions", body, key, **OFF)
            assert answer.status_code == 400
            assert answer.json()["error"]["message"].startswith("The request has `model` twice")
        assert len(stage.upstream.requests) == 1


async def test_what_is_no_request_is_refused_in_the_shape_that_clients_read(stage: GatewayStage) -> None:
    key = await key_of(stage.harness, "alice", "cursor")
    for body in (
        b"",
        b"{",
        b"[]",
        b'{"model":1}',
        b'{"messages":[]}',
        b"\xff",
        b'{"model":"a"}x',
        b'{"a":' + b"[" * 100_000,
    ):
        answer = await raw_post(stage, "/v1/chat/completions", body, key)
        assert answer.status_code == 400, body
        assert answer.headers["content-type"] == "application/json"
        error = answer.json()["error"]
        assert (error["type"], error["message"][-1]) == ("invalid_request_error", ".")
    packed = await raw_post(stage, "/v1/chat/completions", b"{}", key, **{"Content-Encoding": "gzip"})
    assert packed.status_code == 415
    wrong = openai.AsyncOpenAI(base_url=f"{stage.url}/v1", api_key="nx_acme_" + "0" * 64, max_retries=0)
    with pytest.raises(openai.AuthenticationError, match="A valid key is needed") as unknown:
        await wrong.chat.completions.create(model=MODEL, messages=HI)
    assert unknown.value.code == "invalid_api_key"
    without = await stage.client(permissions=["entries:read"])
    with pytest.raises(openai.PermissionDeniedError, match="permission gateway"):
        await without.chat.completions.create(model=MODEL, messages=HI)
    async with httpx2.AsyncClient() as client:
        answer = await client.get(f"{stage.url}/v1/chat/completions", headers=bearer(key))
        assert (answer.status_code, answer.json()["error"]["type"]) == (405, "invalid_request_error")
        foreign = await client.get(f"{stage.url}/v1/models", headers={**bearer(key), "Host": "evil.example"})
        assert (foreign.status_code, "error" in foreign.json()) == (421, True)
        elsewhere = await client.get(f"{stage.url}/v1/nothing", headers=bearer(key))
        assert elsewhere.headers["content-type"] == "application/problem+json"
    assert stage.upstream.requests == []


async def test_twenty_megabytes_pass_and_more_is_refused(stage: GatewayStage) -> None:
    key = await key_of(stage.harness, "alice", "cursor")
    part = b'{"type":"image_url","image_url":{"url":"data:%b"}}'
    body = b'{"model":"gpt-4o","messages":[{"role":"user","content":[' + part + b"]}]}"
    most = 20 * 2**20
    whole = body % (b"A" * (most - len(body) + 2))
    assert len(whole) == most
    answer = await raw_post(stage, "/v1/chat/completions", whole, key)
    assert answer.status_code == 200, answer.text
    assert stage.upstream.requests[-1].raw == whole
    over = await raw_post(stage, "/v1/chat/completions", whole + b" ", key)
    assert (over.status_code, over.json()["error"]["code"]) == (413, "request_too_large")


async def test_budgets_and_plans_are_kept_before_the_request_is_sent(settings: Settings) -> None:
    budgets = (BudgetSettings(per="day", tokens=100, kind="gateway"),)
    async with gateway_stage(settings, budgets=budgets) as stage:
        client = await stage.client(headers=OFF)
        stage.upstream.script.append(Say(("word ",) * 50))
        await client.chat.completions.create(model=MODEL, messages=HI, max_tokens=50)
        with pytest.raises(openai.RateLimitError, match="smaller than what this may need") as refused:
            await client.chat.completions.create(model=MODEL, messages=HI)
        assert (refused.value.code, refused.value.type) == ("insufficient_quota", "insufficient_quota")
        assert refused.value.response.headers["x-should-retry"] == "false"
        with pytest.raises(openai.RateLimitError, match="used up"):
            await client.responses.create(model=MODEL, input="hi", max_output_tokens=50)
        assert len(stage.upstream.requests) == 1


PRICED: Final = {MODEL: PriceSettings(input=Decimal(1_000), output=Decimal(1_000))}
NAMES: Final = ["GPT-4o", " gpt-4o", "openai/gpt-4o", "gpt-4o-2024-11-20", "gpt-4o\n", "my diagnosis is zq"]


async def test_a_budget_in_money_asks_no_model_without_a_price(settings: Settings) -> None:
    budgets = (BudgetSettings(per="day", money=Decimal("0.5"), kind="gateway"),)
    async with gateway_stage(settings, {"models": ["*"]}, budgets=budgets, prices=PRICED) as stage:
        client = await stage.client(headers=OFF)
        for name in NAMES:
            with pytest.raises(openai.RateLimitError, match=r"has no price.* models with a price: gpt-4o") as refused:
                await client.chat.completions.create(model=name, messages=HI, max_tokens=20)
            assert "\n" not in refused.value.message
            with pytest.raises(openai.RateLimitError, match="has no price"):
                await client.embeddings.create(model=name, input="hi")
        assert not stage.upstream.requests
        await client.chat.completions.create(model=MODEL, messages=HI, max_tokens=20)
        assert len(stage.upstream.requests) == 1


async def test_a_budget_in_money_of_other_work_or_in_tokens_asks_any_model(settings: Settings) -> None:
    budgets = (BudgetSettings(per="day", tokens=10**6), BudgetSettings(per="day", money=Decimal(1), kind="answers"))
    async with gateway_stage(settings, {"models": ["*"]}, budgets=budgets, prices=PRICED) as stage:
        client = await stage.client(headers=OFF)
        await client.chat.completions.create(model="of-tomorrow", messages=HI, max_tokens=20)


async def test_a_call_costs_what_was_asked_for_whatever_the_answer_is_named(settings: Settings) -> None:
    budgets = (BudgetSettings(per="day", money=Decimal(10)),)
    async with gateway_stage(settings, {"models": ["*"]}, budgets=budgets, prices=PRICED) as stage:
        client = await stage.client(headers=OFF)
        usage = {"prompt_tokens": 2, "completion_tokens": 3}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "free", "choices": [choice]}
        stage.upstream.script.append(Raw(json.dumps(body | {"usage": usage}).encode(), "application/json"))
        await client.chat.completions.create(model=MODEL, messages=HI, max_tokens=20)
        await until(lambda: _has_cost(stage, Decimal("0.005")))


async def _has_cost(stage: GatewayStage, cost: Decimal) -> bool:
    return await stage.rows("SELECT model, cost FROM model_usage") == [(MODEL, cost)]


async def test_only_models_that_a_setting_names_are_stored_by_their_names(settings: Settings) -> None:
    tenants = {"other": TenantSettings(gateway=TenantGatewaySettings(models=("of-another-tenant",)))}
    gateway = {"models": ["*", "listed"], "memory_roles": {"of-a-role": "user"}}
    async with gateway_stage(settings, gateway, prices=PRICED, tenants=tenants) as stage:
        client = await stage.client(headers=OFF)
        known = {MODEL, "listed", "of-a-role", "of-another-tenant"}
        for name in (*known, *NAMES, *(f"m-{number}" for number in range(20)), "a\n  gpt-4o: 0 calls", "\u202eevil"):
            await client.chat.completions.create(model=name, messages=HI, max_tokens=20)
        await until(lambda: _has_models(stage, {*known, "other"}))


async def _has_models(stage: GatewayStage, names: set[str]) -> bool:
    calls = await stage.rows("SELECT sum(calls) FROM model_usage")
    rows = await stage.rows("SELECT model FROM model_usage")
    assert {name for (name,) in rows} <= names
    return calls == [(len(names) - 1 + len(NAMES) + 22,)]


LONG: Final = "word " * 1_000
SILLY: Final[list[Any]] = [
    None,
    {},
    {"prompt_tokens": 0, "completion_tokens": 0},
    {"prompt_tokens": 1, "completion_tokens": 1},
    {"prompt_tokens": -5_000, "completion_tokens": -5_000},
    {"prompt_tokens": 10**12, "completion_tokens": "1e999"},
    {"prompt_tokens": "many", "completion_tokens": [7]},
    {"prompt_tokens": True, "completion_tokens": {"a": 1}},
]


@pytest.mark.parametrize("usage", SILLY)
async def test_a_report_that_can_not_be_true_is_replaced_by_our_own_count(stage: GatewayStage, usage: Any) -> None:
    client = await stage.client(headers=OFF)
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": LONG}}
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": MODEL, "choices": [choice], "usage": usage}
    stage.upstream.script.append(Raw(json.dumps(body).encode(), "application/json"))
    await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": LONG}])
    await until(lambda: _has_counted(stage))


async def _has_counted(stage: GatewayStage) -> bool:
    rows = await stage.rows("SELECT calls, estimated, prompt_tokens, completion_tokens FROM model_usage")
    assert all(1_000 <= prompt < 1_100 and 1_000 <= completion < 1_100 for _, _, prompt, completion in rows)
    return [row[:2] for row in rows] == [(1, 1)]


async def test_a_text_in_the_place_of_an_image_is_held_within_a_budget_and_an_image_is_not_held_up(
    settings: Settings,
) -> None:
    async with gateway_stage(settings, budgets=(BudgetSettings(per="day", tokens=10_000, kind="gateway"),)) as stage:
        client = await stage.client(headers=OFF)

        def shown(url: str) -> list[Any]:
            return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]

        texts: list[Any] = [
            {"messages": [{"role": "user", "content": f"data:{LONG * 20}"}]},
            {"messages": HI, "extra_body": {"prediction": {"type": "content", "content": LONG * 20}}},
            {"messages": HI, "extra_body": {"of_a_later_year": [{LONG * 20: 1}]}},
            {"messages": shown(f"data:image/png,{LONG * 20}")},
        ]
        for each in texts:
            with pytest.raises(openai.RateLimitError, match="smaller than what this may need"):
                await client.chat.completions.create(model=MODEL, max_tokens=10, stream=True, **each)
        assert not stage.upstream.requests
        url = f"data:image/png;base64,{'iVBORw0K' * 20_000}"
        await client.chat.completions.create(model=MODEL, messages=shown(url), max_tokens=10)
        assert len(stage.upstream.requests) == 1


async def test_who_leaves_a_stream_again_and_again_uses_up_the_budget(settings: Settings) -> None:
    async with gateway_stage(settings, budgets=(BudgetSettings(per="day", tokens=10_000, kind="gateway"),)) as stage:
        client = await stage.client(headers=OFF)
        said: list[Any] = [{"role": "user", "content": LONG * 4}]
        for times in (1, 2):
            stage.upstream.left.clear()
            stage.upstream.script.append(Hang(("Hello",)))
            stream = await client.chat.completions.create(model=MODEL, messages=said, stream=True, max_tokens=10)
            async for _ in stream:
                break
            await stream.close()
            await asyncio.wait_for(stage.upstream.left.wait(), 60)
            await until(lambda times=times: _has_used(stage, times * 4_000))  # type: ignore[misc]
        with pytest.raises(openai.RateLimitError, match="used up"):
            await client.chat.completions.create(model=MODEL, messages=said, stream=True, max_tokens=10)


async def _has_used(stage: GatewayStage, tokens: int) -> bool:
    rows = await stage.rows("SELECT coalesce(sum(prompt_tokens), 0) FROM model_usage")
    reserved = await stage.rows("SELECT count(*) FROM usage_reservations")
    return rows[0][0] >= tokens and reserved == [(0,)]


async def test_requests_count_as_chats_of_a_plan(settings: Settings) -> None:
    async with gateway_stage(settings, plan="small", plans={"small": PlanSettings(chats=2)}) as stage:
        client = await stage.client(headers=OFF)
        stage.upstream.script.append(Fail(500))
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model=MODEL, messages=HI)
        await client.chat.completions.create(model=MODEL, messages=HI)
        await client.responses.create(model=MODEL, input="hi")
        await client.embeddings.create(model=MODEL, input="hi")
        await stage.harness.app.operations.settle()
        with pytest.raises(openai.RateLimitError, match="no chats left") as refused:
            await client.chat.completions.create(model=MODEL, messages=HI)
        assert refused.value.code == "insufficient_quota"


async def test_a_key_without_an_owner_passes_and_opens_nothing_else(settings: Settings) -> None:
    chosen = "k" * 32
    keys: dict[str, Any] = {"gateway_keys": {"ci": SecretStr(chosen)}, "gateway_tenant": "acme"}
    async with gateway_stage(settings, **keys) as stage:
        await stage.hub.write("alice", "zqsecret is mine")
        client = openai.AsyncOpenAI(base_url=f"{stage.url}/v1", api_key=chosen, max_retries=0)
        raw = await client.chat.completions.with_raw_response.create(model=MODEL, messages=HI)
        assert raw.headers["x-nexus-memory"] == "off"
        assert stage.upstream.bodies[-1]["messages"] == HI
        await until(lambda: _used_by_nobody(stage))
        for path in ("/v1/whoami", "/v1/agent/entries"):
            async with httpx2.AsyncClient() as other:
                assert (await other.get(stage.url + path, headers=bearer(chosen))).status_code == 401


async def _used_by_nobody(stage: GatewayStage) -> bool:
    rows = await stage.rows("SELECT user_id::text, calls FROM model_usage WHERE kind = 'gateway'")
    return rows == [("00000000-0000-0000-0000-000000000000", 1)]


async def test_each_tenant_has_its_own_upstream_or_none(settings: Settings) -> None:
    async with gateway_stage(settings, {"enabled": False}) as stage:
        key = await key_of(stage.harness, "alice", "cursor")
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/embeddings"):
            answer = await raw_post(stage, path, b"{}", key)
            assert (answer.status_code, answer.json()["error"]["message"]) == (404, "There is nothing at this address.")
    tenants: dict[str, Any] = {"acme": {"gateway": {"enabled": False}}}
    changed = Settings.model_validate({"home": settings.home, "tenants": tenants}).tenants
    async with gateway_stage(settings, tenants=changed) as stage:
        key = await key_of(stage.harness, "alice", "cursor")
        other = await key_of(stage.harness, "alice", "cursor", workspace="other")
        body = b'{"model":"gpt-4o","messages":[]}'
        assert (await raw_post(stage, "/v1/chat/completions", body, key)).status_code == 404
        assert (await raw_post(stage, "/v1/chat/completions", body, other)).status_code == 200


async def test_an_upstream_that_is_silent_is_said_plainly(settings: Settings) -> None:
    async with gateway_stage(settings, {"timeout": 0.3}) as stage:
        client = await stage.client(headers=OFF)
        stage.upstream.script.append(Hang())
        with pytest.raises(openai.APIStatusError, match=r"did not answer within 0\.3 seconds") as late:
            await client.chat.completions.create(model=MODEL, messages=HI)
        assert late.value.status_code == 504
        stage.upstream.script.append(Hang(("Hello",)))
        with pytest.raises((openai.APIError, httpx2.HTTPError)):
            async for _ in await client.chat.completions.create(model=MODEL, messages=HI, stream=True):
                pass


async def test_an_upstream_that_is_away_is_said_plainly(stage: GatewayStage) -> None:
    client = await stage.client(headers=OFF)
    await stage.upstream.__aexit__()
    with pytest.raises(openai.APIStatusError, match="can't be reached") as away:
        await client.chat.completions.create(model=MODEL, messages=HI)
    assert away.value.status_code == 502


async def test_a_server_that_knows_no_stream_options_is_asked_without(stage: GatewayStage) -> None:
    stage.upstream.refuses_stream_options = True
    client = await stage.client(headers=OFF)
    stream = await client.chat.completions.create(model=MODEL, messages=HI, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert (text, ["stream_options" in each for each in stage.upstream.bodies]) == ("Hello there.", [True, False])
    await until(lambda: _estimated(stage))


async def _estimated(stage: GatewayStage) -> bool:
    return await stage.rows("SELECT calls, failures, estimated, completion_tokens FROM model_usage") == [(1, 0, 1, 3)]

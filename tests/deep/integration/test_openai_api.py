"""The adapters for chat and embeddings over the real SDK and a local server."""

import asyncio
import json
import math
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from openai import AsyncOpenAI

from composer.errors import EmptyAnswer, Misconfigured, NexusError, PromptTooLong, Unavailable, for_operator
from composer.model import Agent, Usage
from composer.ports.models import MINILM_SCALE, ChatMessage, Chunk, Image, Scale, Tool, ToolCall, whole_text
from composer.settings import load_settings
from composer.stores.models import calibration
from composer.stores.models.configured import configured_chat_model
from composer.stores.models.openai_chat import LENGTH_NOTE, REASONING_ROOMS, OpenAIChat
from composer.stores.models.openai_embedder import OpenAIEmbedder
from tests.support.model_server import Fail, Hang, ModelServer, Raw, Say

KEY = "sk-secret-4711"
AGENT = Agent(uuid.UUID(int=1), "nexus", "Nexus", "You are Nexus.", "test-model", 8000, reply_tokens=77)
PROMPT = (
    ChatMessage("system", "You are Nexus."),
    ChatMessage("user", "alice (2026-05-04 09:00): hello"),
    ChatMessage("assistant", "Hi."),
    ChatMessage("user", "[MESSAGE]\nbob (2026-05-04 10:00): when do we deploy?"),
)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(key=KEY, models={"test-model"}) as started:
        yield started


@pytest.fixture
async def new_chat(server: ModelServer) -> AsyncIterator[OpenAIChat]:
    opened = OpenAIChat(server.url, KEY, timeout=20)
    yield opened
    await opened.close()


@pytest.fixture
async def chat(server: ModelServer, new_chat: OpenAIChat) -> OpenAIChat:
    """One whose model is known to begin its answers plainly."""
    await chunks_of(new_chat)
    server.requests.clear()
    return new_chat


async def chunks_of(chat: OpenAIChat, agent: Agent = AGENT, prompt: Sequence[ChatMessage] = PROMPT) -> list[Chunk]:
    return [chunk async for chunk in chat.stream(agent, prompt)]


def text_of(chunks: Sequence[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


async def failure_of(chat: OpenAIChat, agent: Agent = AGENT) -> NexusError:
    with pytest.raises(NexusError) as caught:
        await chunks_of(chat, agent)
    sentence = str(caught.value)
    assert KEY not in sentence
    assert "\n" not in sentence
    return caught.value


async def test_an_answer_streams_piece_by_piece_and_ends_with_its_usage(server: ModelServer, chat: OpenAIChat) -> None:
    server.default = Say(("On ", "Thurs", "day."), cached=5)
    chunks = await chunks_of(chat)
    assert [chunk.text for chunk in chunks] == ["On ", "Thurs", "day.", ""]
    assert [chunk.usage for chunk in chunks[:3]] == [None, None, None]
    assert chunks[3].usage == Usage(prompt_tokens=16, completion_tokens=3, cached_tokens=5)
    (request,) = server.requests
    assert request.body["messages"] == [{"role": m.role, "content": m.content} for m in PROMPT]
    assert request.body["max_completion_tokens"] == 77
    assert request.body["model"] == "test-model"
    assert "max_tokens" not in request.body


async def test_a_request_has_the_bytes_that_the_client_would_make_of_it(server: ModelServer, chat: OpenAIChat) -> None:
    # The client is handed messages and tools past its own comparison of each with every type that there is.
    called = ToolCall("c1", "recall", '{"query": "tea"}')
    prompt = (
        *PROMPT[:-1],
        ChatMessage("user", "what is on it?", images=(Image("image/png", b"picture"),)),
        ChatMessage("assistant", "", calls=(called,)),
        ChatMessage("tool", "nothing", call_id="c1"),
    )
    tools = (
        Tool("recall", "Look it up", (("query", "words"),)),
        Tool("wiki__search", "Search", parameters='{"type": "object", "properties": {"q": {"enum": [1, null]}}}'),
    )
    async with aclosing(chat.stream_with_tools(AGENT, prompt, tools)) as chunks:
        assert [chunk async for chunk in chunks]
    mine = server.requests[-1].raw
    async with AsyncOpenAI(base_url=server.url, api_key=KEY) as client:
        await client.chat.completions.create(**json.loads(mine))
    assert server.requests[-1].raw == mine
    assert b'"tools":[{' in mine
    assert b'"tool_call_id":"c1"' in mine


TOOLS = (Tool("recall", "Look it up", (("query", "words"),)),)


def streamed(*pieces: str, end: bool = True) -> Raw:
    """A stream of pieces whose server never says why it ends."""
    events = [json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in pieces]
    return Raw("".join(f"data: {each}\n\n" for each in (*events, "[DONE]")[: len(events) + end]).encode())


async def test_a_first_answer_shows_nothing_before_it_is_known_where_its_reasoning_ends(
    server: ModelServer, new_chat: OpenAIChat
) -> None:
    server.default = Say(("SECRET plan.", "\n</thi", "nk>", "\n\nOn ", "Thursday."))
    for _ in range(2):  # it is remembered of the model
        assert [chunk.text for chunk in await chunks_of(new_chat)] == ["On ", "Thursday.", ""]
    server.default = Say(("On ", "Thursday."))
    assert [chunk.text for chunk in await chunks_of(new_chat)] == ["On Thursday.", ""]


async def test_a_model_that_reasons_for_the_first_time_takes_back_what_it_showed(
    server: ModelServer, chat: OpenAIChat
) -> None:
    server.default = Say(("SECRET plan.", "\n</think>\n", "On Thursday."))
    first, *later = await chunks_of(chat)
    assert (first.text, whole_text([first, *later])) == ("SECRET plan.", "On Thursday.")
    assert whole_text(await chunks_of(chat)) == "On Thursday."


async def test_a_stream_that_is_said_to_be_over_is_whole_and_one_that_is_not_is_not(
    server: ModelServer, chat: OpenAIChat
) -> None:
    server.default = streamed("On ", "Thursday.")
    assert text_of(await chunks_of(chat)) == "On Thursday."
    server.default = streamed("On ", "Thurs", end=False)
    assert "broke off in the middle" in str(await failure_of(chat))


async def test_an_empty_answer_is_asked_for_once_more_without_a_stream(server: ModelServer, chat: OpenAIChat) -> None:
    for empty in (Say(()), Say((" \n",)), streamed("<think>SECRET"), Raw(b""), Say((), error_event=True)):
        server.script.append(empty)
        server.default = Say(("On Thursday.",))
        chunks = await chunks_of(chat)
        assert text_of(chunks) == "On Thursday."
        assert [each.body["stream"] for each in server.requests] == [True, False]
        assert "stream_options" not in server.requests[-1].body
        server.requests.clear()


async def test_a_server_that_streams_nothing_but_json_is_read(server: ModelServer, chat: OpenAIChat) -> None:
    message = {"role": "assistant", "content": "<think>SECRET</think>On Thursday."}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": "7.0"}}
    server.default = Raw(json.dumps(whole).encode(), "application/json")
    chunks = await chunks_of(chat)
    assert (text_of(chunks), chunks[-1].usage) == ("On Thursday.", Usage(7, 0))
    assert len(server.requests) == 1


async def test_a_call_that_is_written_as_text_is_a_call_where_it_is_offered(
    server: ModelServer, chat: OpenAIChat
) -> None:
    written = '<tool_call>\n{"name": "recall", "arguments": {"query": "tea"}}\n</tool_call><|im_end|>'
    server.default = Say(("Let me look.\n", written))
    async with aclosing(chat.stream_with_tools(AGENT, PROMPT, TOOLS)) as chunks:
        found = [chunk async for chunk in chunks]
    assert text_of(found).strip() == "Let me look."
    assert [(call.name, json.loads(call.arguments)) for call in found[-1].calls] == [("recall", {"query": "tea"})]
    assert text_of(await chunks_of(chat)).strip() == "Let me look."


async def test_only_nexus_settings_are_sent_to_the_server(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_ORG_ID", "other-org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "other-project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-other\nX-Other: sk-other")
    chat = OpenAIChat(server.url, KEY)
    await chunks_of(chat)
    await chat.close()
    headers = server.requests[0].headers
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert not [value for value in headers.values() if "other" in value]
    server.key = "none"
    keyless = OpenAIChat(server.url, "")
    await chunks_of(keyless)
    await keyless.close()


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (
            Fail(401, f"Incorrect API key provided: {KEY}"),
            Misconfigured,
            "refused the key (401). Check NEXUS_OPENAI_AP",
        ),
        (Fail(403), Misconfigured, "(403)"),
        (Fail(404, "no such model", code="model_not_found"), Misconfigured, "does not know model test-model (404)"),
        (Fail(400, "test-model is not a valid model ID"), Misconfigured, "does not know model test-model (400)"),
        (Fail(404, "page not found"), Misconfigured, "Check NEXUS_OPENAI_BASE_URL"),
        (Fail(400, "temperature", "unsupported_value", "temperature"), Misconfigured, "400, unsupported_value, temper"),
        (Fail(400, "the maximum context length is 4096 tokens"), PromptTooLong, "longer than model test-model takes"),
        (Fail(429, "quota", code="insufficient_quota"), Unavailable, "quota"),
        (Fail(429, headers={"Retry-After": "3600"}), Unavailable, "limiting the rate of model test-model (429)"),
        (Fail(500, headers={"Retry-After": "3600"}), Unavailable, "has trouble with model test-model (500)"),
        (Raw(b"<html>login</html>", "text/html"), EmptyAnswer, "empty answer"),
        (Raw(b"data: {not json\n\n"), EmptyAnswer, "empty answer"),
        (Raw(b'data: "text"\n\n'), EmptyAnswer, "empty answer"),
        (Say(()), EmptyAnswer, "empty answer"),
        (Say(("", " \n")), EmptyAnswer, "empty answer"),
        (Say((), finish="content_filter"), Unavailable, "content filter"),
        (Say((), error_event=True), Unavailable, "reported an error instead of an answer"),
    ],
)
async def test_every_failure_is_one_plain_sentence(
    server: ModelServer, chat: OpenAIChat, reply: Fail | Raw | Say, kind: type[NexusError], words: str
) -> None:
    server.default = reply
    failure = await failure_of(chat)
    assert type(failure) is kind
    assert words in for_operator(failure)
    assert server.host in for_operator(failure)
    told = str(failure)
    assert server.host not in told, "people in chat are told no place"
    assert "NEXUS_" not in told, "nor a setting"
    assert "Set " not in told
    if not isinstance(failure, Misconfigured):
        assert words in told
    asked_again = isinstance(failure, EmptyAnswer) or (isinstance(reply, Say) and reply.error_event)
    assert [each.body.get("stream") for each in server.requests] == [True, False][: 1 + asked_again]


async def test_an_address_that_is_no_model_api_is_named(server: ModelServer, chat: OpenAIChat) -> None:
    for reply, advised in ((Raw(b"<html>login</html>", "text/html"), True), (Say(()), False)):
        server.default = reply
        failure = await failure_of(chat)
        assert str(failure) == "The model API gave an empty answer (model test-model). Ask again."
        assert ("check NEXUS_OPENAI_BASE_URL" in for_operator(failure)) is advised


async def test_a_wrong_key_and_an_unknown_model_name_their_settings(server: ModelServer) -> None:
    chat = OpenAIChat(server.url, "sk-wrong-1234")
    failure = await failure_of(chat)
    await chat.close()
    assert for_operator(failure) == f"The model API at {server.host} refused the key (401). Check NEXUS_OPENAI_API_KEY."
    chat = OpenAIChat(server.url, KEY)
    failure = await failure_of(chat, replace(AGENT, model="gpt-9"))
    await chat.close()
    assert (
        for_operator(failure) == f"The model API at {server.host} does not know model gpt-9 (404). Check NEXUS_MODEL."
    )


async def test_an_unknown_model_names_the_setting_that_holds_it(server: ModelServer, tmp_path: Path) -> None:
    environ = {"NEXUS_HOME": str(tmp_path), "NEXUS_OPENAI_BASE_URL": server.url, "NEXUS_OPENAI_API_KEY": KEY}
    models = {"NEXUS_MODEL": "gpt-4o", "NEXUS_SUMMARY_MODEL": "gpt-9"}
    chat = configured_chat_model(load_settings(environ | models, tmp_path))
    with pytest.raises(NexusError) as raised:
        async for _ in chat.stream(replace(AGENT, model="gpt-9"), [ChatMessage("user", "hello")]):
            pass
    assert for_operator(raised.value).endswith("does not know model gpt-9 (404). Check NEXUS_SUMMARY_MODEL.")


async def test_an_unreachable_server_is_named_in_the_error(unused_port: int) -> None:
    chat = OpenAIChat(f"http://user:hidden@127.0.0.1:{unused_port}/v1", KEY, timeout=3)
    failure = await failure_of(chat)
    await chat.close()
    assert isinstance(failure, Unavailable)
    assert f"at 127.0.0.1:{unused_port} cannot be reached (model test-model)" in for_operator(failure)
    assert "hidden" not in str(failure)


@pytest.mark.parametrize("base_url", ["", "localhost:8080/v1", "ftp://host/v1", "http://"])
def test_an_invalid_base_url_is_refused_at_once(base_url: str) -> None:
    with pytest.raises(Misconfigured, match="NEXUS_OPENAI_BASE_URL"):
        OpenAIChat(base_url, KEY)


def test_an_invalid_key_is_refused_at_once() -> None:
    with pytest.raises(Misconfigured, match="NEXUS_OPENAI_API_KEY") as caught:
        OpenAIChat("http://127.0.0.1:1/v1", "sk-\u00e9\u00e9")
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("reply", [Hang(), Hang(("On Thurs",))])
async def test_a_request_to_a_hanging_server_times_out(server: ModelServer, reply: Hang) -> None:
    server.default = reply
    chat = OpenAIChat(server.url, KEY, timeout=0.3)
    failure = await failure_of(chat)
    await chat.close()
    assert isinstance(failure, Unavailable)
    assert "0.3 seconds" in str(failure)


async def test_a_transient_failure_is_retried_after_the_requested_delay(server: ModelServer, chat: OpenAIChat) -> None:
    server.script.extend([Fail(429, headers={"Retry-After": "0.01"}), Fail(503, headers={"Retry-After": "0.01"})])
    assert text_of(await chunks_of(chat)) == "Hello there."
    assert len(server.requests) == 3


async def test_retries_end(server: ModelServer, chat: OpenAIChat) -> None:
    server.default = Fail(500, headers={"Retry-After": "0.01"})
    await failure_of(chat)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "reply",
    [
        Say(("On Thurs",), drop=True),
        Say(("On Thurs",), finish=None),
        Say(("On Thurs",), error_event=True),
    ],
)
async def test_an_interrupted_answer_is_reported_and_not_retried(
    server: ModelServer, chat: OpenAIChat, reply: Say
) -> None:
    server.default = reply
    got: list[str] = []

    async def read() -> None:
        async for chunk in chat.stream(AGENT, PROMPT):
            got.append(chunk.text)

    with pytest.raises(Unavailable, match="broke off in the middle of its answer"):
        await read()
    assert "".join(got) == "On Thurs"
    assert len(server.requests) == 1


async def test_a_truncated_answer_is_marked(server: ModelServer, chat: OpenAIChat) -> None:
    server.default = Say(("On Thurs",), finish="length")
    assert text_of(await chunks_of(chat)) == "On Thurs" + LENGTH_NOTE


async def test_a_refused_system_role_becomes_a_first_user_message_and_is_remembered(
    server: ModelServer, chat: OpenAIChat
) -> None:
    server.refuses_system = True
    assert text_of(await chunks_of(chat)) == "Hello there."
    assert server.requests[-1].body["messages"][0] == {"role": "user", "content": "You are Nexus."}
    assert len(server.requests) == 2
    await chunks_of(chat)
    assert len(server.requests) == 3


async def test_a_model_that_requires_alternating_roles_gets_them(server: ModelServer, chat: OpenAIChat) -> None:
    server.refuses_system = server.refuses_repeated_roles = True
    assert text_of(await chunks_of(chat)) == "Hello there."
    sent = server.requests[-1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[0]["content"] == "You are Nexus.\n\nalice (2026-05-04 09:00): hello"


@pytest.mark.parametrize(
    "refusal",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "After the (optional) system message(s), user and assistant roles should be alternating.",
        "deepseek-reasoner does not support successive user or assistant messages",
        "messages: roles must alternate between user and assistant, but found multiple user roles in a row",
        "Invalid request: consecutive messages with the same role are not allowed",
        "Unexpected role 'user' after role 'user'",
    ],
)
async def test_that_roles_must_alternate_is_found_out_once(server: ModelServer, chat: OpenAIChat, refusal: str) -> None:
    prompt = (*PROMPT[:2], ChatMessage("user", "bob: and?"))
    server.script.append(Fail(400, refusal))
    assert text_of(await chunks_of(chat, prompt=prompt)) == "Hello there."
    await chunks_of(chat, prompt=prompt)
    roles = [[each["role"] for each in request.body["messages"]] for request in server.requests]
    assert roles == [["system", "user", "user"], ["system", "user"], ["system", "user"]]


@pytest.mark.parametrize(
    "model", ["google/gemma-3-27b-it", "mistralai/Mistral-7B-Instruct-v0.3", "mixtral-8x7b-instruct"]
)
async def test_what_is_known_of_a_model_needs_no_refusal(server: ModelServer, chat: OpenAIChat, model: str) -> None:
    server.models = {"test-model", model}
    await chunks_of(chat, replace(AGENT, model=model), (*PROMPT, ChatMessage("user", "and?")))
    assert [each["role"] for each in server.requests[-1].body["messages"]] == ["user", "assistant", "user"]
    assert len(server.requests) == 1


async def test_an_agent_without_a_system_role_never_sends_one(server: ModelServer, chat: OpenAIChat) -> None:
    await chunks_of(chat, replace(AGENT, system_role=False))
    assert [message["role"] for message in server.requests[0].body["messages"]] == ["user", "user", "assistant", "user"]


async def test_refused_options_are_omitted_from_then_on(server: ModelServer, chat: OpenAIChat) -> None:
    server.refuses_stream_options = server.refuses_completion_limit = True
    chunks = await chunks_of(chat)
    assert text_of(chunks) == "Hello there."
    assert chunks[-1].usage == Usage()
    assert len(server.requests) == 3
    assert server.requests[-1].body["max_tokens"] == 77
    assert "stream_options" not in server.requests[-1].body
    await chunks_of(chat)
    assert len(server.requests) == 4


async def test_a_model_that_spends_the_answer_on_hidden_reasoning_is_asked_again_with_more_room_and_remembered(
    server: ModelServer, chat: OpenAIChat
) -> None:
    server.default = Say(reasoning=300)
    agent = replace(AGENT, window=128_000)
    chunks = await chunks_of(chat, agent)
    assert text_of(chunks) == "Hello there."
    limits = [request.body["max_completion_tokens"] for request in server.requests]
    assert limits == [77, 77 + REASONING_ROOMS[1]]
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [77, 302], "both requests are reported"
    await chunks_of(chat, agent)
    assert server.requests[-1].body["max_completion_tokens"] == 77 + REASONING_ROOMS[1]
    assert len(server.requests) == 3


async def test_a_model_that_was_seen_to_reason_gets_room_for_it_from_then_on(
    server: ModelServer, chat: OpenAIChat
) -> None:
    server.default = Say(reasoning=50)
    for _ in range(2):
        assert text_of(await chunks_of(chat, replace(AGENT, window=128_000))) == "Hello there."
    limits = [request.body["max_completion_tokens"] for request in server.requests]
    assert limits == [77, 77 + REASONING_ROOMS[1]]


async def test_a_model_that_never_stops_reasoning_is_a_clear_error(server: ModelServer, chat: OpenAIChat) -> None:
    server.default = Say(reasoning=1_000_000)
    usages: list[Usage | None] = []

    async def read() -> None:
        usages.extend([chunk.usage async for chunk in chat.stream(replace(AGENT, window=1_000_000), PROMPT)])

    with pytest.raises(Unavailable, match="thought for so long") as raised:
        await read()
    assert "on hidden reasoning, without writing any text" in for_operator(raised.value)
    assert len(server.requests) == len(REASONING_ROOMS)


async def test_the_effort_is_passed_on_until_the_server_refuses_it(server: ModelServer, chat: OpenAIChat) -> None:
    await chunks_of(chat)
    assert "reasoning_effort" not in server.requests[-1].body
    agent = replace(AGENT, reasoning_effort="low")
    await chunks_of(chat, agent)
    assert server.requests[-1].body["reasoning_effort"] == "low"
    server.refuses_effort = True
    for _ in range(2):
        assert text_of(await chunks_of(chat, agent)) == "Hello there."
    assert ["reasoning_effort" in request.body for request in server.requests] == [False, True, True, False, False]


async def test_cancellation_is_not_swallowed(server: ModelServer, chat: OpenAIChat) -> None:
    server.default = Hang(("On Thurs",))
    first = asyncio.Event()

    async def read() -> None:
        async for _ in chat.stream(AGENT, PROMPT):
            first.set()

    reading = asyncio.create_task(read())
    await first.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_a_reader_may_close_the_stream_early(server: ModelServer, chat: OpenAIChat) -> None:
    server.default = Hang(("On Thurs",))
    async with aclosing(chat.stream(AGENT, PROMPT)) as chunks:
        assert (await anext(chunks)).text == "On Thurs"


@pytest.fixture
async def embedder(server: ModelServer) -> AsyncIterator[OpenAIEmbedder]:
    opened = OpenAIEmbedder(server.url, KEY, "test-model", timeout=20)
    yield opened
    await opened.close()


async def test_vectors_come_in_the_order_of_the_texts_with_norm_one(
    server: ModelServer, embedder: OpenAIEmbedder
) -> None:
    texts = [f"text {number}" for number in range(300)]
    vectors = await embedder.embed(texts)
    assert vectors.shape == (300, 8)
    assert vectors.dtype == np.float32
    expected = np.asarray([server.vector(text) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(vectors - expected).max() < 1e-6
    assert [len(request.body["input"]) for request in server.requests] == [1, 128, 128, 44]


async def test_the_width_is_requested_once_unless_known(server: ModelServer, embedder: OpenAIEmbedder) -> None:
    with pytest.raises(Misconfigured, match="load the embedder"):
        _ = embedder.width
    await embedder.load()
    await embedder.load()
    assert embedder.width == 8
    assert len(server.requests) == 1
    assert (await embedder.embed([])).shape == (0, 8)
    assert len(server.requests) == 1
    assert OpenAIEmbedder(server.url, KEY, "text-embedding-3-small").width == 1536


async def test_what_the_cosines_of_a_model_say_is_measured_once_and_kept(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, topics = tmp_path / "embedder.json", np.eye(6)
    known = {
        text: [2.0 + (n > 5), *topics[n // 2].tolist(), (-0.5) ** (n % 2)]
        for language in calibration.pairs()
        for n, text in enumerate(language)
    }
    monkeypatch.setattr(server, "vector", lambda text: known[text])
    monkeypatch.setattr(server, "models", None)

    async def scale_of(model: str) -> tuple[Scale, int]:
        opened, before = OpenAIEmbedder(server.url, KEY, model, width=8, scale_file=file), len(server.requests)
        await opened.load()
        await opened.close()
        return opened.scale, len(server.requests) - before

    measured, requests = await scale_of("one")
    assert (requests, measured.apart > 0.5) == (4, True)
    assert await scale_of("one") == (measured, 0)
    assert await scale_of("another") == (measured, 4), "each model has its own"
    file.write_text("{", encoding="utf-8")
    assert await scale_of("another") == (measured, 4)


async def test_a_start_goes_on_where_an_api_does_not_answer_about_its_cosines(
    server: ModelServer, tmp_path: Path
) -> None:
    server.script.extend([Fail(400)])
    opened = OpenAIEmbedder(server.url, KEY, "test-model", width=8, scale_file=tmp_path / "embedder.json")
    await opened.load()
    assert opened.scale == MINILM_SCALE
    assert not (tmp_path / "embedder.json").exists(), "the next start asks again"
    await opened.close()


async def test_texts_that_an_api_refuses_are_made_valid(server: ModelServer, embedder: OpenAIEmbedder) -> None:
    vectors = await embedder.embed(["", "a\ud800b", "\u65e5" * 100_000])
    assert vectors.shape == (3, 8)
    sent = server.requests[-1].body["input"]
    assert sent[:2] == ["-", "a?b"]
    assert len(sent[2].encode()) <= 8000


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Fail(401), Misconfigured, "NEXUS_OPENAI_API_KEY"),
        (Fail(404, "model x not found"), Misconfigured, "Check NEXUS_EMBEDDER"),
        (Raw(b'{"data": []}', "application/json"), Unavailable, "not the OpenAI protocol"),
        (Raw(b"<html>", "text/html"), Unavailable, "not the OpenAI protocol"),
        (Raw(b'{"data": [{"index": 0, "embedding": [0, 0]}]}', "application/json"), Unavailable, "direction"),
        (Raw(b'{"data": [{"index": 0, "embedding": [1, 0]}]}', "application/json"), Misconfigured, "2 dimensions"),
    ],
)
async def test_a_failing_embedder_is_reported(
    server: ModelServer, reply: Fail | Raw, kind: type[NexusError], words: str
) -> None:
    width = 2 if words == "direction" else 3
    embedder = OpenAIEmbedder(server.url, KEY, "test-model", width=width)
    server.script.append(reply)
    with pytest.raises(NexusError) as caught:
        await embedder.embed(["one"])
    await embedder.close()
    assert type(caught.value) is kind
    assert words in for_operator(caught.value)
    assert server.host in for_operator(caught.value)
    assert server.host not in str(caught.value), "people in chat are told no place"


async def test_vectors_stay_finite(embedder: OpenAIEmbedder) -> None:
    (vector,) = await embedder.embed(["one"])
    assert math.isclose(float(np.linalg.norm(vector)), 1.0, rel_tol=1e-6)


@pytest.fixture
async def unused_port() -> int:
    listening = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    port: int = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    return port

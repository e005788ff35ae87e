"""An OpenAI-compatible server for tests: the real protocol over a real socket, with scripted answers."""

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Say:
    """Streams `pieces`, under `headers`; `finish` None leaves the stream without an end, `drop` cuts the connection
    after them. With `reasoning`, so many hidden tokens come first: a request with a lower limit gets no text. `calls`
    are functions with their arguments (a text as it stands), streamed in pieces."""

    pieces: Sequence[str] = ("Hello", " there.")
    finish: str | None = "stop"
    cached: int = 0
    drop: bool = False
    reasoning: int = 0
    error_event: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """Refuses with a status and the API's error object."""

    status: int
    message: str = "refused"
    code: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answers; with `pieces`, stops after them."""

    pieces: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Raw:
    """Answers with this body as it stands."""

    body: bytes
    type: str = "text/event-stream"


Reply = Say | Fail | Hang | Raw


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw: bytes = b""


class ModelServer:
    """Use as `async with ModelServer() as server`; then `server.url` is a base URL.

    `script` holds the next answers; when it is empty, `default` answers. `key` None takes any key,
    `models` None any model. The `refuses_*` flags answer 400 as real servers of that kind do.
    """

    notices_leaving = False  # a handler is cancelled when its client leaves

    def __init__(self, *, key: str | None = None, models: set[str] | None = None, width: int = 8) -> None:
        self.key, self.models, self.width = key, models, width
        self.default: Reply = Say()
        self.script: deque[Reply] = deque()
        self.spoken: deque[str | Fail | Raw] = deque()  # the next transcripts
        self.requests: list[Recorded] = []
        self.refuses_system = False
        self.refuses_repeated_roles = False
        self.refuses_stream_options = False
        self.refuses_completion_limit = False
        self.refuses_images = False
        self.refuses_effort = False
        self.refuses_tools = False
        self.max_words = 0  # of a prompt; 0: any
        self.url = ""
        self._stopped = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._list)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        self.add_routes(app)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=self.notices_leaving)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopped.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def add_routes(self, app: web.Application) -> None:
        """Add what a kind of server has besides."""

    def reply(self, body: Mapping[str, Any]) -> Reply:
        """The answer to a request for a chat completion that nothing refuses."""
        return self.script.popleft() if self.script else self.default

    @property
    def host(self) -> str:
        """host:port, as errors name it."""
        return self.url.removeprefix("http://").removesuffix("/v1")

    async def _list(self, request: web.Request) -> web.Response:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.json_response({"error": {"message": "Incorrect API key provided."}}, status=401)
        listed = [{"id": name, "object": "model"} for name in sorted(self.models or ())]
        return web.json_response({"object": "list", "data": listed})

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        """Answers a recording, which is a form with a file, with the next of `spoken`."""
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        body = {"model": form["model"], "name": file.filename, "type": file.content_type, "bytes": file.file.read()}
        self.requests.append(Recorded(request.path, dict(request.headers), body))
        reply = self.spoken.popleft() if self.spoken else ""
        if isinstance(reply, Fail):
            return _failed(reply)
        if isinstance(reply, Raw):
            return web.Response(body=reply.body, content_type=reply.type)
        return web.json_response({"text": reply, "usage": {"type": "duration", "seconds": 6}})

    async def _received(self, request: web.Request) -> tuple[dict[str, Any], Fail | None]:
        body: dict[str, Any] = await request.json()
        self.requests.append(Recorded(request.path, dict(request.headers), body, await request.read()))
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.key is not None and key != self.key:
            return body, Fail(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")
        if self.models is not None and body["model"] not in self.models:
            return body, Fail(404, f"The model `{body['model']}` does not exist.", code="model_not_found")
        return body, None

    def _refused(self, body: Mapping[str, Any]) -> Fail | None:
        roles = [message["role"] for message in body["messages"]]
        if self.refuses_stream_options and "stream_options" in body:
            return Fail(400, "Unrecognized request argument supplied: stream_options")
        if self.refuses_completion_limit and "max_completion_tokens" in body:
            return Fail(
                400, "Unsupported parameter: 'max_completion_tokens'.", "unsupported_parameter", "max_completion_tokens"
            )
        if self.refuses_effort and "reasoning_effort" in body:
            return Fail(400, "Unsupported parameter: 'reasoning_effort'.", "unsupported_parameter", "reasoning_effort")
        if self.refuses_tools and "tools" in body:
            return Fail(400, f"{body['model']} does not support tools")
        words = sum(len(_text(message.get("content")).split()) for message in body["messages"])
        if self.max_words and words > self.max_words:
            return Fail(
                400, f"This model's maximum context length is {self.max_words} tokens.", "context_length_exceeded"
            )
        if self.refuses_images and any(isinstance(message.get("content"), list) for message in body["messages"]):
            return Fail(400, "Invalid content type. image_url is only supported by certain models.")
        if self.refuses_system and "system" in roles:
            return Fail(400, "System role not supported")
        if self.refuses_repeated_roles and any(a == b for a, b in pairwise(roles)):
            return Fail(400, "Conversation roles must alternate user/assistant/user/assistant/...")
        return None

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body, failure = await self._received(request)
        failure = failure or self._refused(body)
        reply: Reply = failure or self.reply(body)
        if isinstance(reply, Fail):
            return _failed(reply)
        if isinstance(reply, Raw):
            return web.Response(body=reply.body, content_type=reply.type)
        if isinstance(reply, Hang) and not reply.pieces:
            await self._stopped.wait()
            return web.Response(status=503)
        if not body.get("stream"):
            headers = reply.headers if isinstance(reply, Say) else {}
            return web.json_response(_completion(body, reply), headers=headers)
        return await self._streamed(request, body, reply)

    async def _streamed(self, request: web.Request, body: Mapping[str, Any], reply: Say | Hang) -> web.StreamResponse:
        limit: int = body.get("max_completion_tokens") or body.get("max_tokens") or 10**9
        if isinstance(reply, Say) and reply.reasoning > limit:
            reply = replace(reply, pieces=(), finish="length", reasoning=limit)
        more = reply.headers if isinstance(reply, Say) else {}
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", **more}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await _event(response, _chunk(body, {"role": "assistant", "content": ""}))
        for piece in reply.pieces:
            await _event(response, _chunk(body, {"content": piece}))
        if isinstance(reply, Hang):
            await self._stopped.wait()
            return response
        if reply.error_event:
            await _event(response, {"error": {"message": "The server had an error", "type": "server_error"}})
            return response
        if reply.drop:
            assert request.transport is not None
            request.transport.abort()
            return response
        if reply.finish is None:
            return response
        for index, (name, arguments) in enumerate(reply.calls):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            head = {
                "index": index,
                "id": f"call-{len(body['messages'])}-{index}",
                "type": "function",
                "function": {"name": name, "arguments": ""},
            }
            await _event(response, _chunk(body, {"tool_calls": [head]}))
            for part in (text[:5], text[5:]):
                sent = {"index": index, "function": {"arguments": part}}
                await _event(response, _chunk(body, {"tool_calls": [sent]}))
        finish = "tool_calls" if reply.calls and reply.finish == "stop" else reply.finish
        await _event(response, _chunk(body, {}, finish))
        if (body.get("stream_options") or {}).get("include_usage"):
            await _event(response, _chunk(body, None) | {"usage": _usage(body, reply)})
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _embeddings(self, request: web.Request) -> web.Response:
        body, failure = await self._received(request)
        reply = failure or (self.script.popleft() if self.script else None)
        if isinstance(reply, Fail):
            return _failed(reply)
        if isinstance(reply, Raw):
            return web.Response(body=reply.body, content_type=reply.type)
        if isinstance(reply, Hang):
            await self._stopped.wait()
        inputs: list[str] = body["input"] if isinstance(body["input"], list) else [body["input"]]
        if "" in inputs:
            return _failed(Fail(400, "'$.input' is invalid.", param="input"))
        data = [
            {"object": "embedding", "index": place, "embedding": self.vector(text)} for place, text in enumerate(inputs)
        ]
        tokens = sum(len(text.split()) for text in inputs)
        return web.json_response(
            {
                "object": "list",
                "data": data[::-1],  # The order is not promised, only the index.
                "model": body["model"],
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }
        )

    def vector(self, text: str) -> list[float]:
        """The embedding of a text before it is normalised: its digest, so the same in every run."""
        digest = hashlib.shake_256(text.encode()).digest(self.width)
        return [byte - 127.5 for byte in digest]


def _failed(reply: Fail) -> web.Response:
    error = {"message": reply.message, "type": "invalid_request_error", "param": reply.param, "code": reply.code}
    return web.json_response({"error": error}, status=reply.status, headers=reply.headers)


async def _event(response: web.StreamResponse, data: Mapping[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(data).encode() + b"\n\n")


def _text(content: str | list[dict[str, Any]] | None) -> str:
    """The text of a message, whether it comes as a string or in parts."""
    if content is None:
        return ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _usage(body: Mapping[str, Any], reply: Say) -> dict[str, Any]:
    prompt = sum(len(_text(message.get("content")).split()) for message in body["messages"])
    return {
        "prompt_tokens": prompt,
        "completion_tokens": len(reply.pieces) + reply.reasoning,
        "total_tokens": prompt + len(reply.pieces) + reply.reasoning,
        "prompt_tokens_details": {"cached_tokens": reply.cached},
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning},
    }


def _chunk(body: Mapping[str, Any], delta: Mapping[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    """One chunk; `delta` None makes the one that carries the usage, which has no choices."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [] if delta is None else [{"index": 0, "delta": dict(delta), "finish_reason": finish}],
    }


def _completion(body: Mapping[str, Any], reply: Say | Hang) -> dict[str, Any]:
    said = reply if isinstance(reply, Say) else Say(reply.pieces)
    if said.error_event:
        return {"error": {"message": "The server had an error", "type": "server_error"}}
    message: dict[str, Any] = {"role": "assistant", "content": "".join(said.pieces)}
    if said.calls:
        message["tool_calls"] = [
            {
                "id": f"call-{len(body['messages'])}-{index}",
                "type": "function",
                "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)},
            }
            for index, (name, args) in enumerate(said.calls)
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if said.calls else said.finish or "stop",
            }
        ],
        "usage": _usage(body, said),
    }

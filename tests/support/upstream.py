"""The model server behind the gateway: that of `model_server` with the Responses API, and with who leaves midway."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.support.model_server import Fail, Hang, ModelServer, Raw, Reply, Say


class Upstream(ModelServer):
    """A model server that also has `/v1/responses`. `left` is set when a client leaves an answer that hangs."""

    notices_leaving = True

    def __init__(self, *, key: str | None = None, models: set[str] | None = None) -> None:
        super().__init__(key=key, models=models)
        self.left = asyncio.Event()

    def add_routes(self, app: web.Application) -> None:
        """Add the Responses API, and single models."""
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_get("/v1/models/{id:.+}", self._one)
        app.middlewares.append(self._watch)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests so far."""
        return [each.body for each in self.requests]

    @web.middleware
    async def _watch(self, request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            answer: web.StreamResponse = await handler(request)
            return answer
        except asyncio.CancelledError:
            self.left.set()
            raise

    async def _one(self, request: web.Request) -> web.Response:
        return web.json_response({"id": request.match_info["id"], "object": "model"}, headers={"x-own": "1"})

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        body, failure = await self._received(request)
        reply: Reply = failure or self.reply(body)
        if isinstance(reply, Fail):
            error = {"message": reply.message, "type": "invalid_request_error", "code": reply.code}
            return web.json_response({"error": error}, status=reply.status, headers=reply.headers)
        if isinstance(reply, Raw):
            return web.Response(body=reply.body, content_type=reply.type)
        if isinstance(reply, Hang):
            await self._stopped.wait()
            return web.Response(status=503)
        whole = response_object(body, reply)
        if not body.get("stream"):
            return web.json_response(whole)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "status": "in_progress"}}]
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
        events += [{"type": "response.output_text.delta", "delta": piece, **place} for piece in reply.pieces]
        events += [{"type": f"response.{whole['status']}", "response": whole}]
        for number, event in enumerate(events):
            data = json.dumps({**event, "sequence_number": number})
            await response.write(f"event: {event['type']}\ndata: {data}\n\n".encode())
        await response.write_eof()
        return response


def response_object(body: Mapping[str, Any], reply: Say) -> dict[str, Any]:
    """A response of the Responses API."""
    text = "".join(reply.pieces)
    output: list[dict[str, Any]] = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for number, (name, args) in enumerate(reply.calls):
        arguments = args if isinstance(args, str) else json.dumps(args)
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call-{number}", "name": name}
        output.append({**call, "arguments": arguments, "status": "completed"})
    used = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    details = {"input_tokens_details": {"cached_tokens": 3}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed" if reply.finish == "stop" else "incomplete",
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": used | details,
    }


class EchoingUpstream(Upstream):
    """A model server whose model repeats all that it is told, with the headers that came, and any model by name."""

    def reply(self, body: Mapping[str, Any]) -> Reply:
        """What was received last, as JSON."""
        headers = {k.lower(): v for k, v in self.requests[-1].headers.items() if k.lower() != "authorization"}
        told = json.dumps({"told": dict(body), "came": headers}, ensure_ascii=False)
        return Say((told,))

"""What Slack serves by HTTP: Web API, Socket Mode, files and response_urls, with the faults and limits of a test."""

import asyncio
import json
import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import aiohttp
from aiohttp import web

from tests.support.slack.methods import WebApi
from tests.support.slack.model import Answered, Channel, Json
from tests.support.slack.outbox import Connection, Outbox
from tests.support.slack.request import Call, arguments

Breakage = Literal["http500", "hang", "reset", "ratelimited", "error"]
BrokenHistory = Literal["error", "malformed"]  # a history that Slack fails to send, or sends with a nameless message


@dataclass(slots=True)
class Fault:
    """What goes wrong with one request; with `after` it has its effect first."""

    kind: Breakage
    after: bool = False
    retry_after: int = 1
    error: str = "internal_error"


class Routes:
    """Answers the app's requests. Faults and limits are plain fields, which the driver sets at any time."""

    def __init__(self, api: WebApi, outbox: Outbox, touch: Callable[[], None]) -> None:
        self.api, self.outbox, self._touch = api, outbox, touch
        self.world, self.clock = api.world, api.clock
        self.calls: list[Call] = []  # every Web API request so far, oldest first
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.limits: dict[str, tuple[int, float, str]] = {}  # by method: requests, seconds, "token" or "channel"
        self.tickets: set[str] = set()  # each opens one Socket Mode connection
        self.links: dict[str, tuple[Answered, Channel, str, str, float]] = {}  # the response_urls
        self.broken: dict[str, BrokenHistory] = {}  # by channel, for as long as it stands here
        self.free = asyncio.Event()  # lets go of the requests that hang
        self._spent: dict[tuple[str, str], deque[float]] = defaultdict(deque)

    def table(self) -> list[web.RouteDef]:
        """The routes of an aiohttp application."""
        return [
            web.route("*", "/api/{method}", self._serve),
            web.get("/link", self._link),
            web.get("/files/{file}/{name}", self._download),
            web.post("/upload/{file}", self._upload),
            web.get("/login", self._login),
            web.post("/commands/{link}", self._respond),
        ]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        """One Web API request: recorded, then a fault, a 429 or the answer."""
        method = request.match_info["method"]
        args = await arguments(request)
        secret = request.headers.get("Authorization", "").removeprefix("Bearer ") or str(args.pop("token", ""))
        call = Call(method, dict(args), secret, self.clock.now())
        self.calls.append(call)
        self._touch()
        fault = self._fault(method)
        if fault and not fault.after:
            return await self._misbehave(request, call, fault)
        if wait := self._over_limit(method, secret, str(args.get("channel", ""))):
            return self._too_many(call, wait)
        call.answer, call.status = self.api.answer(method, secret, args), 200
        self._break(call)
        self._touch()
        if fault:
            return await self._misbehave(request, call, fault)
        token = self.world.tokens.get(secret)
        headers = {"X-OAuth-Scopes": ",".join(sorted(token.scopes))} if token else {}
        return web.json_response(call.answer, headers=headers)

    def _break(self, call: Call) -> None:
        """Spoil the history of a channel that is broken."""
        kind = self.broken.get(str(call.args.get("channel")))
        if kind is None or call.method not in ("conversations.history", "conversations.replies"):
            return
        if kind == "error":
            call.answer = {"ok": False, "error": "internal_error"}
        elif "messages" in call.answer:
            call.answer["messages"].append({"type": "message"})

    def _fault(self, name: str) -> Fault | None:
        queue = self.faults[name] or self.faults["*"]
        return Fault("reset") if self.outbox.down else queue.popleft() if queue else None

    async def _misbehave(self, request: web.Request, call: Call | None, fault: Fault) -> web.StreamResponse:
        if call and not fault.after:
            call.answer = {"fault": fault.kind}
        if fault.kind == "hang":
            self.free.clear()
            await self.free.wait()
        if fault.kind in {"hang", "reset"}:
            if request.transport:
                request.transport.abort()
            return web.Response()
        if fault.kind == "ratelimited":
            return self._too_many(call, fault.retry_after)
        if fault.kind == "error":
            return web.json_response({"ok": False, "error": fault.error})
        return web.Response(status=500, text="<html>Server Error</html>", content_type="text/html")

    def _too_many(self, call: Call | None, wait: int) -> web.Response:
        answer = {"ok": False, "error": "ratelimited"}
        if call:
            call.answer, call.status = answer, 429
        return web.json_response(answer, status=429, headers={"Retry-After": str(wait)})

    def _over_limit(self, method: str, secret: str, channel: str) -> int:
        """Seconds to wait before the next request of this kind, 0 when it may pass."""
        if method not in self.limits:
            return 0
        times, seconds, per = self.limits[method]
        spent, now = self._spent[method, f"{secret} {channel if per == 'channel' else ''}"], self.clock.now()
        while spent and spent[0] <= now - seconds:
            spent.popleft()
        if len(spent) >= times:
            return math.ceil(spent[0] + seconds - now)
        spent.append(now)
        return 0

    async def _link(self, request: web.Request) -> web.StreamResponse:
        """A Socket Mode connection: hello, then acknowledgements until it closes."""
        if self.outbox.down:
            return await self._misbehave(request, None, Fault("reset"))
        if request.query.get("ticket") not in self.tickets:
            return web.Response(status=408)
        self.tickets.remove(request.query["ticket"])
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        connection = Connection(socket, request)
        if len(self.outbox.connections) >= 10:
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets", "debug_info": {}})
            return socket
        self.outbox.connections.append(connection)
        count = len(self.outbox.connections)
        debug = {"host": "applink-1", "approximate_connection_time": 18060}
        about = {"app_id": self.world.app_id}
        await socket.send_json(
            {"type": "hello", "num_connections": count, "connection_info": about, "debug_info": debug}
        )
        self._touch()
        try:
            async for message in socket:
                said = json.loads(message.data) if message.type is aiohttp.WSMsgType.TEXT else {}
                answer = connection.waiting.get(said.get("envelope_id", ""))
                if answer and not answer.done():
                    answer.set_result(said.get("payload") or {})
        finally:
            self.outbox.connections.remove(connection)
            for answer in connection.waiting.values():
                if not answer.done():
                    answer.set_result(None)
            self._touch()
        return socket

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """A private file. Who may not have it is sent to a page to log in, with 200: so does Slack."""
        if fault := self._fault("files"):
            return await self._misbehave(request, None, fault)
        token = self.world.tokens.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        found = self.world.files.get(request.match_info["file"])
        if not token or token.dead or "files:read" not in token.scopes or not found:
            raise web.HTTPFound("/login")
        return web.Response(body=found[1], content_type=found[0]["mimetype"])

    async def _upload(self, request: web.Request) -> web.Response:
        """The content of a file, at the address that files.getUploadURLExternal gave for it."""
        name, length, _ = self.world.uploads.get(file := request.match_info["file"], ("", -1, b""))
        content = await request.read()
        if length != len(content):
            return web.Response(status=400)
        self.world.uploads[file] = (name, length, content)
        return web.Response(text=f"OK - {length}")

    async def _login(self, request: web.Request) -> web.Response:
        return web.Response(text="<!DOCTYPE html><title>Sign in</title>", content_type="text/html")

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        """A response_url: at most five times, within half an hour."""
        if fault := self._fault("response_url"):
            return await self._misbehave(request, None, fault)
        if request.match_info["link"] not in self.links:
            return web.json_response({"ok": False, "error": "invalid_url"}, status=404)
        answered, channel, user, source, since = self.links[request.match_info["link"]]
        if len(answered.responses) >= 5 or self.clock.now() - since > 1800:
            error = "used_url" if len(answered.responses) >= 5 else "expired_url"
            return web.json_response({"ok": False, "error": error}, status=404)
        body = json.loads(await request.text())
        answered.responses.append(body)
        self.show(channel, user, body, source)
        self._touch()
        return web.Response(text="ok")

    def show(self, channel: Channel, user: str, body: Json, source: str = "") -> None:
        """What people see of an answer to a command or a click; `source` is the message clicked on."""
        content = {key: body[key] for key in ("text", "blocks", "attachments") if body.get(key)}
        message, team = channel.messages.get(source), channel.team
        if message and body.get("delete_original"):
            self.world.remove(channel, message)
        elif message and body.get("replace_original"):
            self.world.change(channel, message, team.bot_user, **{"blocks": None, **content})
        elif content and body.get("response_type") == "in_channel":
            own = {"user": team.bot_user, "bot_id": team.bot_id, "app_id": self.world.app_id}
            self.world.post(channel, own | content, str(body.get("thread_ts") or ""))
        elif content:
            said = {"channel": channel.id, "user": user, "ts": self.world.ts(), "thread_ts": body.get("thread_ts")}
            self.api.ephemerals.append(said | content)

"""How Discord's REST API answers: records, rate limits and their headers, errors, and the faults that tests ask for."""

import asyncio
import json
import math
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web

from tests.support.discord.gateway import MESSAGE_CONTENT, Gateway, reset
from tests.support.discord.model import (
    JSON,
    LOADING,
    ApiError,
    Channel,
    Guild,
    Message,
    Permission,
    User,
    bad_field,
)
from tests.support.discord.world import World

Answer = int | Literal["reset", "hang", "hangup"]
BrokenHistory = Literal["error", "malformed"]  # a history that Discord fails to send, or sends without its authors

API = "/api/v10"
HISTORY = "GET /channels/{channel_id}/messages"
MAX_UPLOAD = 10 * 1024 * 1024  # bytes a file


@dataclass(frozen=True, slots=True)
class Fault:
    """What befalls a request in place of its answer: a status, a reset connection, or silence."""

    answer: Answer = 502
    effect: bool = False  # what was asked for happens all the same
    retry_after: float = 0.05  # seconds, of a 429
    scope: Literal["user", "global", "shared"] = "shared"  # of a 429


@dataclass(slots=True)
class Call:
    """One request, as handlers use it and as tests find it in the record."""

    at: float  # monotonic seconds
    route: str  # as in Discord's documentation: "POST /channels/{channel_id}/messages"
    path: dict[str, str]
    query: dict[str, str]
    body: JSON | list[JSON] | None
    files: list[tuple[str, bytes]]
    status: int | str | None = None  # of the answer; "reset", "hang", "hangup"; None while it is worked on

    @property
    def form(self) -> JSON:
        return self.body if isinstance(self.body, dict) else {}

    def limit(self, default: int, most: int) -> int:
        limit = int(self.query.get("limit", default))
        if not 1 <= limit <= most:
            raise bad_field("limit", "NUMBER_TYPE_MAX", f"int value should be less than or equal to {most}.")
        return limit


@dataclass(slots=True)
class Bucket:
    """So many requests in a window that starts with its first one."""

    limit: int = 10_000
    per: float = 1.0  # seconds
    used: int = 0
    ends: float = 0.0  # monotonic seconds

    def take(self) -> bool:
        if time.monotonic() >= self.ends:
            self.used, self.ends = 0, time.monotonic() + self.per
        self.used += 1
        return self.used <= self.limit

    @property
    def left(self) -> float:
        return max(0.0, self.ends - time.monotonic())


Handler = Callable[["Rest", Call], Any]  # gives JSON, or None for 204, or raises ApiError
UNAUTHENTICATED = ("POST /interactions/", "POST /webhooks/", "GET /webhooks/", "PATCH /webhooks/", "DELETE /webhooks/")


class Rest:
    """Answers requests for one world. Settings are plain fields, to be changed by tests at any time."""

    def __init__(self, world: World, gateway: Gateway, changed: Callable[[], None]) -> None:
        self.world, self.gateway, self._changed = world, gateway, changed
        self.calls: list[Call] = []  # every request so far, oldest first
        self.typing: list[tuple[float, int]] = []  # (monotonic seconds, channel id)
        self.faults: list[tuple[str, Fault]] = []  # (start of the route, fault); the first that fits is used up
        self.limits: dict[str, tuple[int, float]] = {}  # by route: requests, seconds
        self.overall: Bucket = Bucket()  # the global limit
        self.down = False
        self.broken: dict[int, BrokenHistory] = {}  # by channel, for as long as it stands here
        self.hides = False  # whether a channel that the bot may not view is answered for as one that does not exist
        self.answer_within = 3.0  # seconds that an interaction waits for its first answer
        self.nonce_window = 300.0  # seconds
        self.nonces: dict[str, tuple[float, Message]] = {}
        self.closing = asyncio.Event()
        self._buckets: dict[str, Bucket] = {}

    def serve(self, handlers: dict[str, Handler]) -> list[web.RouteDef]:
        """The routes of an aiohttp application. Literal paths first, so that @me is no user id."""
        made = []
        for route in sorted(handlers, key=lambda r: r.count("{")):
            method, path = route.split(" ")
            made.append(web.route(method, API + path, self._serve(route, handlers[route])))
        made.append(web.route("*", API + "/{path:.*}", self._serve("UNKNOWN", not_spoken)))
        return [*made, web.get("/attachments/{channel_id}/{id}/{filename}", self.download)]

    def _serve(self, route: str, handler: Handler) -> Callable[[web.Request], Any]:
        async def serve(request: web.Request) -> web.Response:
            try:
                call = await read(request, route)
            except ValueError:
                return answer(400, {"message": "The request body contains invalid JSON.", "code": 50109})
            self.calls.append(call)
            try:
                response = await self.respond(request, call, handler)
            finally:
                self._changed()
            return response

        return serve

    async def respond(self, request: web.Request, call: Call, handler: Handler) -> web.Response:
        fault = next((f for f in self.faults if call.route.startswith(f[0])), None)
        if fault:
            self.faults.remove(fault)
        if fault and not fault[1].effect:
            return await self.fail(request, call, fault[1])
        response = self.perform(request, call, handler)
        call.status = response.status
        return await self.fail(request, call, fault[1]) if fault else response

    def perform(self, request: web.Request, call: Call, handler: Handler) -> web.Response:
        if self.down:
            return answer(503, {"message": "Service Unavailable", "code": 0})
        anonymous = call.route.startswith(UNAUTHENTICATED)
        if not anonymous and request.headers.get("Authorization") != f"Bot {self.gateway.token}":
            return answer(401, {"message": "401: Unauthorized", "code": 0})
        if not anonymous and not self.overall.take():
            return limited(self.overall.left, "global")
        major = "/".join(call.path[k] for k in ("channel_id", "guild_id", "token") if k in call.path)
        bucket = self._buckets.setdefault(f"{call.route} {major}", Bucket())
        bucket.limit, bucket.per = self.limits.get(call.route, (10_000, 1.0))
        allowed = bucket.take()
        headers = {
            "X-RateLimit-Limit": str(bucket.limit),
            "X-RateLimit-Remaining": str(max(0, bucket.limit - bucket.used)),
            "X-RateLimit-Reset": f"{time.time() + bucket.left:.3f}",
            "X-RateLimit-Reset-After": f"{bucket.left:.3f}",
            "X-RateLimit-Bucket": f"{zlib.crc32(call.route.encode()):032x}",
        }
        if not allowed:
            return limited(bucket.left, "user", headers)
        broken = call.route == HISTORY and self.broken.get(int(call.path["channel_id"]))
        if broken == "error":
            return answer(500, {"message": "Internal Server Error", "code": 0}, headers)
        try:
            result = handler(self, call)
        except ApiError as error:
            return answer(error.status, error.body, headers)
        if broken:
            result = [{key: value for key, value in each.items() if key != "author"} for each in result]
        return answer(204, None, headers) if result is None else answer(200, result, headers)

    async def fail(self, request: web.Request, call: Call, fault: Fault) -> web.Response:
        call.status = fault.answer
        self._changed()
        if fault.answer == 429:
            return limited(fault.retry_after, fault.scope)
        if isinstance(fault.answer, int):
            return answer(fault.answer, {"message": f"{fault.answer}: injected", "code": 0})
        if fault.answer == "hang":
            await self.closing.wait()
        if fault.answer == "hangup":  # says goodbye, without an answer
            assert request.transport is not None
            request.transport.close()
        else:
            reset(request.transport)
        return web.Response()

    async def download(self, request: web.Request) -> web.Response:
        """The CDN: whoever has the signed address gets the file, without a token."""
        file = self.world.attachments.get(int(request.match_info["id"]))
        if file is None or f"hm={request.query.get('hm')}&" not in file.url:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(
            body=file.content, headers={"Content-Type": file.content_type or "application/octet-stream"}
        )

    # What requests are about

    def guild(self, call: Call) -> Guild:
        guild = self.world.guilds.get(int(call.path["guild_id"]))
        if guild is None:
            raise ApiError(404, 10004, "Unknown Guild")
        if self.world.bot.id not in guild.members:
            raise ApiError(403, 50001, "Missing Access")
        return guild

    def channel(self, call: Call, needed: Permission = Permission.VIEW_CHANNEL) -> Channel:
        channel = self.world.channels.get(int(call.path["channel_id"]))
        if channel is None:
            raise ApiError(404, 10003, "Unknown Channel")
        if not self.world.sees(channel):
            raise ApiError(404, 10003, "Unknown Channel") if self.hides else ApiError(403, 50001, "Missing Access")
        if needed not in self.world.permissions(channel, self.world.bot):
            raise ApiError(403, 50013, "Missing Permissions")
        return channel

    def require_reading(self, channel: Channel) -> None:
        if not self.world.reads(channel):
            raise ApiError(403, 50001, "Missing Access")

    def message(self, call: Call, needed: Permission = Permission.VIEW_CHANNEL) -> Message:
        channel = self.channel(call, needed)
        self.require_reading(channel)
        found = channel.messages.get(int(call.path["message_id"]))
        if found is None:
            raise ApiError(404, 10008, "Unknown Message")
        return found

    def user(self, user_id: str | int) -> User:
        found = self.world.users.get(int(user_id))
        if found is None:
            raise ApiError(404, 10013, "Unknown User")
        return found

    def shown(self, message: Message) -> JSON:
        """As history shows it: without content where the application may not have it."""
        data = message.json(self.world.bot)
        return data if self.gateway.allowed_intents & MESSAGE_CONTENT else self.gateway.blanked(message, data)

    def compose(self, channel: Channel, form: JSON, files: list[tuple[str, bytes]], **extra: Any) -> Message:
        """A message of the bot's from a request's body, checked but in no channel yet."""
        content = check_content(form)
        if not (content or files or form.get("embeds") or form.get("components")):
            raise ApiError(400, 50006, "Cannot send an empty message")
        if any(len(data) > MAX_UPLOAD for _, data in files):
            raise ApiError(413, 40005, "Request entity too large")
        message = Message(self.world.ids.next(), channel, self.world.bot, content, **extra)
        message.embeds, message.components = form.get("embeds") or [], form.get("components") or []
        message.attachments = self.world.attach(channel, files)
        return message

    def rewrite(self, message: Message, call: Call) -> JSON:
        form = call.form
        content = check_content(form) if "content" in form else message.content
        message.components = form.get("components", message.components) or []
        message.embeds = form.get("embeds", message.embeds) or []
        message.attachments += self.world.attach(message.channel, call.files)
        message.flags &= ~LOADING
        self.world.edit(message, content, form.get("allowed_mentions"))
        return message.json(self.world.bot)


def not_spoken(rest: Rest, call: Call) -> None:
    """A route that this server lacks; it is in the record, so that a test can tell."""
    raise ApiError(404, 0, f"404: Not Found: {call.path['path']}")


def check_content(form: JSON) -> str:
    content = form.get("content") or ""
    if len(content) > 2000:
        raise bad_field("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
    return str(content).strip()


async def read(request: web.Request, route: str) -> Call:
    body, files = None, []
    if request.content_type.startswith("multipart/"):
        for name, value in (await request.post()).items():
            if name == "payload_json":
                body = json.loads(value if isinstance(value, str) else value.file.read())  # type: ignore[union-attr]
            elif isinstance(value, web.FileField):
                files.append((value.filename, value.file.read()))
    elif text := await request.text():
        body = json.loads(text)
    return Call(time.monotonic(), route, dict(request.match_info), dict(request.query), body, files)


def answer(status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    """JSON with the content type that clients compare letter by letter."""
    headers = {"Via": "1.1 google"} | (headers or {})
    if status == 204:
        return web.Response(status=204, headers=headers)
    return web.Response(
        status=status, body=json.dumps(body).encode(), headers=headers | {"Content-Type": "application/json"}
    )


def limited(retry_after: float, scope: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"message": "You are being rate limited.", "retry_after": round(retry_after, 3), "global": scope == "global"}
    more = {"Retry-After": str(math.ceil(retry_after)), "X-RateLimit-Scope": scope}
    more |= {"X-RateLimit-Global": "true"} if scope == "global" else {}
    return answer(429, body, (headers or {}) | more)

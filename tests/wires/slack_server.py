"""A Slack for tests: Web API, Socket Mode and signed HTTP over real sockets, and a driver that plays the people.

Four parts: `World` (what Slack knows, and which events follow from a change), `Outbox` (events on their way to the
app, with acknowledgement and retries), `WebApi` (what the app may call) and `SlackServer` (routes, faults, driver).
Times are seconds. Text is Slack's own: `&`, `<` and `>` escaped, people as `<@U…>`.
"""

import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import math
import re
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

Json = dict[str, Any]
Kind = Literal["channel", "group", "im", "mpim"]
Envelope = Literal["events_api", "slash_commands", "interactive"]
Breakage = Literal["http500", "hang", "reset", "ratelimited", "error"]

FAMILY = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
# Requests a minute, by Slack's tiers; 0 is "special": one a second in each channel.
TIERS = {0: 60, 1: 1, 2: 20, 3: 50, 4: 100}
# Method: scope (several: any of them; "": by the kind of channel), tier.
METHODS: dict[str, tuple[str, int]] = {
    "auth.test": ("", 4), "apps.connections.open": ("connections:write", 1), "team.info": ("team:read", 3),
    "bots.info": ("users:read", 3), "users.info": ("users:read", 4), "users.list": ("users:read", 2),
    "users.lookupByEmail": ("users:read.email", 3), "users.conversations": ("", 3), "conversations.info": ("", 3),
    "conversations.list": ("", 2), "conversations.members": ("", 4), "conversations.history": ("", 3),
    "conversations.replies": ("", 3), "conversations.open": ("im:write,mpim:write", 3),
    "conversations.join": ("channels:join", 3), "chat.postMessage": ("chat:write", 0), "chat.update": ("chat:write", 3),
    "chat.delete": ("chat:write", 3), "chat.postEphemeral": ("chat:write", 4), "chat.startStream": ("chat:write", 2),
    "chat.appendStream": ("chat:write", 4), "chat.stopStream": ("chat:write", 2), "views.open": ("", 4),
    "views.publish": ("", 4), "reactions.add": ("reactions:write", 3), "files.info": ("files:read", 4),
    "assistant.threads.setStatus": ("assistant:write,chat:write", 2), "agents.sessions.rename": ("chat:write", 2),
    "assistant.threads.setTitle": ("assistant:write", 2), "agents.sessions.setStatus": ("chat:write", 2),
    "assistant.threads.setSuggestedPrompts": ("assistant:write", 2),
}  # fmt: skip
BOT_SCOPES = frozenset(
    {"app_mentions:read", "assistant:write", "channels:join", "chat:write", "commands", "files:read", "im:write"}
    | {"mpim:write", "reactions:write", "team:read", "users:read", "users:read.email"}
    | {f"{family}:{right}" for family in FAMILY.values() for right in ("history", "read")}
)


class SlackError(Exception):
    """An answer of `{"ok": false, "error": …}`; `more` is what stands beside it."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.body: Json = {"ok": False, "error": error, **more}


@dataclass(slots=True)
class Team:
    """A workspace with the app installed in it."""

    id: str
    name: str
    bot_user: str
    bot_id: str
    bot_token: str


@dataclass(slots=True)
class Token:
    """What a token is allowed; `dead` is the error that it answers with, once it is revoked."""

    kind: Literal["bot", "app"]
    scopes: set[str]
    team: Team | None = None
    dead: str = ""


@dataclass(slots=True)
class Channel:
    """A conversation of any kind; `messages` in the order of their ts."""

    id: str
    team: Team
    name: str
    kind: Kind
    members: list[str]
    created: int
    archived: bool = False
    messages: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True)
class Stream:
    """A streamed message; `dead` is the error that any further call gets."""

    channel: str
    ts: str
    started: float
    mode: str = ""
    text: str = ""
    pieces: list[str] = field(default_factory=list)
    dead: str = ""


@dataclass(slots=True)
class Call:
    """A Web API request as it came, and what it was answered."""

    method: str
    args: Json
    token: str
    at: float
    answer: Json = field(default_factory=dict)
    status: int = 0


@dataclass(slots=True)
class Attempt:
    """One try to bring something to the app; `outcome` is empty while it waits, "acked" or why it failed."""

    payload: Json
    kind: Envelope
    retry: int
    reason: str
    outcome: str = ""
    status: int = 0
    answer: Json = field(default_factory=dict)
    connection: "Connection | None" = None


@dataclass(slots=True)
class Fault:
    """What goes wrong with one request; with `after` it has its effect first."""

    kind: Breakage
    after: bool = False
    retry_after: int = 1
    error: str = "internal_error"


@dataclass(slots=True)
class Answered:
    """What the app answered to a command or a click: at once (`ack`), later (`responses`), or the `error` shown."""

    ack: Json = field(default_factory=dict)
    error: str = ""
    responses: list[Json] = field(default_factory=list)


class Clock:
    """Real time plus what a test added; sleepers wake by `advance` only."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._alarms: dict[asyncio.Future[None], float] = {}

    def now(self) -> float:
        return time.time() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds
        for alarm in sorted(self._alarms, key=self._alarms.__getitem__):
            if self._alarms[alarm] <= self.now() and not alarm.done():
                alarm.set_result(None)

    def alarm(self, seconds: float) -> asyncio.Future[None]:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._alarms[waiting] = self.now() + seconds
        waiting.add_done_callback(lambda done: self._alarms.pop(done, None))
        return waiting

    async def within(self, work: asyncio.Future[Any], seconds: float, real: float) -> bool:
        """Whether `work` is done before the clock was advanced by `seconds`, and before `real` seconds passed."""
        alarm = self.alarm(seconds)
        await asyncio.wait({work, alarm}, timeout=real, return_when=asyncio.FIRST_COMPLETED)
        alarm.cancel()
        return work.done()


class World:
    """What Slack knows. Every change that an app may hear of is emitted as an event, if this app may hear of it."""

    def __init__(self, clock: Clock, emit: Callable[[Team, Json], None]) -> None:
        self.clock, self._emit = clock, emit
        self.app_id = "A00000001"
        self.teams: dict[str, Team] = {}
        self.tokens: dict[str, Token] = {}
        self.users: dict[str, Json] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, tuple[Json, bytes]] = {}
        self.mention_first: Literal["message", "app_mention"] = "message"
        self.subscribed: set[str] | None = None
        self._numbers: dict[str, Any] = defaultdict(lambda: itertools.count(1))
        self._last = 0

    def id(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers[prefix]):08d}"

    def ts(self) -> str:
        """The next timestamp, like 1714813200.000100: never given twice, always growing."""
        self._last = max(int(self.clock.now() * 1_000_000), self._last + 100)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def scopes(self, team: Team) -> set[str]:
        return self.tokens[team.bot_token].scopes

    def tell(
        self, team: Team, event: Json, channel: Channel | None = None, *, scope: str = "", anyone: bool = False
    ) -> None:
        """Emit an event, if the app subscribed to it, has the scope, and is in the channel (or `anyone` may know)."""
        name = event["type"]
        if name == "message" and channel:
            family = FAMILY[channel.kind]
            name, scope = f"message.{family}", f"{family}:history"
        hears = channel is None or anyone or team.bot_user in channel.members
        wanted = self.subscribed is None or name in self.subscribed
        if hears and wanted and (not scope or scope in self.scopes(team)):
            self._emit(team, {"event_ts": event.get("ts") or self.ts(), **deepcopy(event)})

    def channel(self, team: Team, name: str, kind: Kind, members: Iterable[str]) -> Channel:
        made = Channel(self.id("D" if kind == "im" else "C"), team, name, kind, list(members), int(self.clock.now()))
        self.channels[made.id] = made
        return made

    def im(self, team: Team, user: str) -> Channel:
        """The direct channel of the app and this person."""
        for channel in self.channels.values():
            if channel.kind == "im" and channel.members == [user, team.bot_user]:
                return channel
        return self.channel(team, "directmessage", "im", [user, team.bot_user])

    def post(self, channel: Channel, message: Json, thread: str = "", *, broadcast: bool = False) -> Json:
        """Store a message and tell of it. In a thread whose parent is gone, Slack silently posts it unthreaded."""
        team = channel.team
        message = {"type": "message", **message, "ts": self.ts(), "team": team.id}
        if thread and (parent := channel.messages.get(thread)):
            message |= {"thread_ts": thread, "parent_user_id": parent.get("user", "")}
            users = list(dict.fromkeys([*parent.get("reply_users", []), message.get("user", "")]))
            parent |= {"thread_ts": thread, "latest_reply": message["ts"], "reply_users": users}
            parent |= {"reply_count": parent.get("reply_count", 0) + 1, "reply_users_count": len(users)}
            if broadcast:
                message |= {"subtype": "thread_broadcast", "root": deepcopy(parent)}
        channel.messages[message["ts"]] = message
        event = {**message, "channel": channel.id, "channel_type": channel.kind}
        events = [event]
        says = message.get("subtype", "") in {"", "thread_broadcast", "file_share", "bot_message"}
        if says and channel.kind != "im" and re.search(rf"<@{team.bot_user}(\|[^>]*)?>", message.get("text", "")):
            kept = {key: value for key, value in event.items() if key not in {"subtype", "channel_type", "root"}}
            events.insert(0 if self.mention_first == "app_mention" else 1, {**kept, "type": "app_mention"})
        for one in events:
            self.tell(team, one, channel, scope="app_mentions:read")
        return message

    def note(self, channel: Channel, subtype: str, user: str, text: str) -> None:
        self.post(channel, {"subtype": subtype, "user": user, "text": text})

    def enter(self, channel: Channel, user: str) -> None:
        channel.members.append(user)
        self._moved(channel, "member_joined_channel", user)
        self.note(channel, "channel_join", user, f"<@{user}> has joined the channel")

    def exit(self, channel: Channel, user: str) -> None:
        """A person goes; when it is the app that is put out, it hears `channel_left` or `group_left` only."""
        channel.members.remove(user)
        if user == channel.team.bot_user:
            gone = "group_left" if channel.kind == "group" else "channel_left"
            self.tell(channel.team, {"type": gone, "channel": channel.id, "actor_id": ""}, channel, anyone=True)
            return
        self._moved(channel, "member_left_channel", user)
        self.note(channel, "channel_leave", user, f"<@{user}> has left the channel")

    def _moved(self, channel: Channel, kind: str, user: str) -> None:
        letter = "G" if channel.kind == "group" else "C"
        event = {"type": kind, "user": user, "channel": channel.id, "channel_type": letter, "team": channel.team.id}
        self.tell(channel.team, event, channel, scope=f"{FAMILY[channel.kind]}:read")

    def change(self, channel: Channel, message: Json, by: str, **fields: Any) -> None:
        """Edit a message in place; a field of None goes away."""
        before, ts = deepcopy(message), self.ts()
        message |= fields
        if by:
            message["edited"] = {"user": by, "ts": ts}
        for key in [key for key, value in message.items() if value is None]:
            del message[key]
        self._hidden(channel, "message_changed", ts, message=message, previous_message=before)

    def remove(self, channel: Channel, message: Json) -> None:
        """Delete a message; one that has replies leaves a tombstone, which arrives as an edit."""
        if message.get("reply_count") and message.get("subtype") != "tombstone":
            gone = {"subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.", "hidden": True}
            self.change(channel, message, "", **gone, blocks=None, files=None, bot_id=None, metadata=None)
            return
        del channel.messages[message["ts"]]
        parent = channel.messages.get(message.get("thread_ts", ""))
        if parent and parent is not message:
            parent["reply_count"] -= 1
        self._hidden(channel, "message_deleted", self.ts(), deleted_ts=message["ts"], previous_message=message)

    def _hidden(self, channel: Channel, subtype: str, ts: str, **fields: Any) -> None:
        event = {"type": "message", "subtype": subtype, "hidden": True, "ts": ts, "channel": channel.id, **fields}
        self.tell(channel.team, {**event, "channel_type": channel.kind}, channel)


@dataclass(slots=True, eq=False)
class Connection:
    """One Socket Mode connection; `fresh` until Slack asked it to go."""

    socket: web.WebSocketResponse
    request: web.Request
    fresh: bool = True
    waiting: dict[str, asyncio.Future[Json | None]] = field(default_factory=dict)

    def drop(self) -> None:
        """Break the connection without a word."""
        if self.request.transport:
            self.request.transport.abort()


class Outbox:
    """What is on its way to the app: by one of its sockets, or by HTTP once `urls` are set."""

    RETRIES = (0.0, 60.0, 300.0)

    def __init__(self, clock: Clock, touch: Callable[[], None]) -> None:
        self.clock, self._touch = clock, touch
        self.connections: list[Connection] = []
        self.urls: dict[Envelope, str] = {}
        self.secret = self.signing_secret = "8f742231b10e8888abcd99yyyzzz85a5"
        self.skew = 0.0
        self.ack_seconds = 3.0  # real ones; `advance(3)` ends the wait as well
        self.down = False
        self.copies = 1
        self.held: list[Json] | None = None
        self.attempts: list[Attempt] = []
        self.missed: list[Json] = []
        self.given_up: list[Json] = []
        self._turn = itertools.count()
        self._sending = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._http: aiohttp.ClientSession | None = None

    def send(self, payload: Json) -> None:
        """Bring an event to the app, or keep it while deliveries are held."""
        if self.held is not None:
            self.held.append(payload)
        elif self.down or not (self.urls or self.connections):
            self.missed.append(payload)
        else:
            for _ in range(self.copies):
                self._sending += 1
                task = asyncio.get_running_loop().create_task(self._insist(payload))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    @property
    def idle(self) -> bool:
        """Every event is acknowledged, or waits for its retry, or was given up."""
        return self._sending == 0

    async def _insist(self, payload: Json) -> None:
        """Bring it once, and up to three times more: at once, after a minute, after five."""
        attempt = await self._counted(payload, 0, "")
        for retry, pause in enumerate(self.RETRIES, 1):
            if attempt.outcome in {"acked", "no_retry"}:
                return
            if pause:
                await self.clock.alarm(pause)
                self._sending += 1
            attempt = await self._counted(payload, retry, attempt.outcome)
        if attempt.outcome not in {"acked", "no_retry"}:
            self.given_up.append(payload)

    async def _counted(self, payload: Json, retry: int, reason: str) -> Attempt:
        attempt = await self.attempt(payload, "events_api", retry, reason)
        again_at_once = retry == 0 and attempt.outcome not in {"acked", "no_retry"}
        self._sending -= 0 if again_at_once else 1
        return attempt

    async def attempt(self, payload: Json, kind: Envelope, retry: int = 0, reason: str = "") -> Attempt:
        attempt = Attempt(payload, kind, retry, reason)
        self.attempts.append(attempt)
        await (self._post(attempt) if self.urls else self._push(attempt))
        self._touch()
        return attempt

    async def _push(self, attempt: Attempt) -> None:
        living = [c for c in self.connections if not c.socket.closed]
        living = [c for c in living if c.fresh] or living
        if not living:
            attempt.outcome = "timeout"
            return
        attempt.connection = connection = living[next(self._turn) % len(living)]
        envelope: Json = {"envelope_id": str(uuid.uuid4()), "type": attempt.kind, "payload": attempt.payload}
        envelope["accepts_response_payload"] = attempt.kind != "events_api"
        if attempt.kind == "events_api":
            envelope |= {"retry_attempt": attempt.retry, "retry_reason": attempt.reason}
        answer: asyncio.Future[Json | None] = asyncio.get_running_loop().create_future()
        connection.waiting[envelope["envelope_id"]] = answer
        self._touch()
        try:
            await connection.socket.send_json(envelope)
            acked = await self.clock.within(answer, 3, self.ack_seconds) and answer.result() is not None
        except ConnectionError:
            acked = False
        connection.waiting.pop(envelope["envelope_id"], None)
        attempt.outcome = "acked" if acked else "timeout"
        attempt.answer = (answer.result() or {}) if acked else {}

    def signed(self, body: str) -> dict[str, str]:
        """The headers of a request signed now: v0 = HMAC-SHA256 of "v0:{timestamp}:{body}"."""
        stamp = str(int(time.time() + self.skew))
        digest = hmac.new(self.secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}", "User-Agent": "Slackbot 1.0"}

    async def _post(self, attempt: Attempt) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if attempt.kind == "events_api":
            body, headers = json.dumps(attempt.payload), {"Content-Type": "application/json"}
        elif attempt.kind == "interactive":
            body = urlencode({"payload": json.dumps(attempt.payload)})
        else:
            body = urlencode(attempt.payload)
        if attempt.retry:
            headers |= {"X-Slack-Retry-Num": str(attempt.retry), "X-Slack-Retry-Reason": attempt.reason}
        request = asyncio.ensure_future(self._request(self.urls[attempt.kind], body, headers | self.signed(body)))
        try:
            if not await self.clock.within(request, 3, self.ack_seconds):
                attempt.outcome = "http_timeout"
                return
            attempt.status, said, attempt.answer = request.result()
        except aiohttp.ClientError:
            attempt.outcome = "connection_failed"
            return
        finally:
            request.cancel()
        refused = "no_retry" if said.get("X-Slack-No-Retry") == "1" else "http_error"
        attempt.outcome = "acked" if 200 <= attempt.status < 300 else refused

    async def _request(self, url: str, body: str, headers: dict[str, str]) -> tuple[int, Any, Json]:
        self._http = self._http or aiohttp.ClientSession()
        async with self._http.post(url, data=body.encode(), headers=headers) as response:
            text = await response.text()
            try:
                answer = json.loads(text or "{}")
            except ValueError:
                answer = {"text": text}
            return response.status, response.headers, answer if isinstance(answer, dict) else {"text": text}

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._http:
            await self._http.close()


class Args(Json):
    """The arguments of a request, from its query, form or JSON."""

    def need(self, *names: str) -> list[str]:
        """The named arguments as text; refused, as Slack does, when one is missing."""
        missing = [f"[ERROR] missing required field: {name}" for name in names if not self.get(name)]
        if missing:
            raise SlackError("invalid_arguments", response_metadata={"messages": missing})
        return [str(self[name]) for name in names]

    def flag(self, name: str) -> bool:
        return self.get(name) in {True, "1", "true", "True"}

    def page(self, most: int) -> tuple[int, str]:
        """The page's size, and what its cursor says (empty on the first page)."""
        cursor = str(self.get("cursor") or "")
        try:
            said = base64.b64decode(cursor, validate=True).decode().removeprefix("next:")
            return max(1, min(int(self.get("limit") or 100), most)), said
        except ValueError as error:
            raise SlackError("invalid_cursor" if cursor else "invalid_limit") from error


def _cursor(place: object) -> str:
    return base64.b64encode(f"next:{place}".encode()).decode()


def _rich_text(text: str) -> list[Json]:
    """The block that Slack's own clients send beside the text."""
    parts = [part for part in re.split(r"(<@U\w+>)", text) if part]
    elements = [
        {"type": "user", "user_id": part[2:-1]} if part.startswith("<@U") else {"type": "text", "text": part}
        for part in parts
    ]
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}]


class WebApi:
    """What an app may call: each `do_…` is one method, with its documented errors."""

    def __init__(self, world: World) -> None:
        self.world, self.clock = world, world.clock
        self.stream_seconds = 300.0  # Slack ends a stream then, whether text still comes or not
        self.page_max: dict[str, int] = {}  # 15 for conversations.history is what unlisted distributed apps get
        self.streams: list[Stream] = []
        self.updates: list[tuple[str, str, str]] = []
        self.ephemerals: list[Json] = []
        self.views: dict[str, Json] = {}
        self.homes: dict[str, Json] = {}
        self.statuses: list[tuple[str, Json]] = []
        self.triggers: dict[str, float] = {}
        self.socket_url: Callable[[], str] = str

    def answer(self, method: str, secret: str, args: Args) -> Json:
        if method not in METHODS:
            return {"ok": False, "error": "unknown_method", "req_method": method}
        try:
            token = self._token(method, secret)
            said: Json = getattr(self, "do_" + method.replace(".", "_"))(token, token.team, args)
            return {"ok": True, **deepcopy(said)}
        except SlackError as error:
            return error.body

    def _token(self, method: str, secret: str) -> Token:
        if not (token := self.world.tokens.get(secret)):
            raise SlackError("invalid_auth" if secret else "not_authed")
        if token.dead:
            raise SlackError(token.dead)
        if method != "auth.test" and (method == "apps.connections.open") != (token.kind == "app"):
            raise SlackError("not_allowed_token_type")
        self._scope(token, METHODS[method][0])
        return token

    def _scope(self, token: Token, needed: str) -> None:
        if needed and not token.scopes & set(needed.split(",")):
            raise SlackError("missing_scope", needed=needed, provided=",".join(sorted(token.scopes)))

    def _channel(self, token: Token, team: Team, name: str, right: str = "", *, member: bool = False) -> Channel:
        """The conversation, if it is there for this app; `right` is the scope's second half."""
        found = self.world.channels.get(name)
        if not found or found.team is not team:
            raise SlackError("channel_not_found")
        if right:
            self._scope(token, f"{FAMILY[found.kind]}:{right}")
        if team.bot_user not in found.members and (found.kind != "channel" or member):
            raise SlackError("not_in_channel" if found.kind == "channel" else "channel_not_found")
        return found

    def _writable(self, token: Token, team: Team, a: Args) -> Channel:
        (name,) = a.need("channel")
        if self.world.users.get(name, {}).get("team_id") == team.id:
            name = self.world.im(team, name).id
        found = self._channel(token, team, name, member="chat:write.public" not in token.scopes)
        if found.archived:
            raise SlackError("is_archived")
        return found

    def _message(self, channel: Channel, ts: str, not_own: str = "") -> Json:
        message = channel.messages.get(ts)
        if not message or message.get("subtype") == "tombstone":
            raise SlackError("message_not_found")
        if not_own and message.get("bot_id") != channel.team.bot_id:
            raise SlackError(not_own)
        return message

    def _content(self, a: Args) -> Json:
        """The text and blocks of a message, within Slack's limits (40,000 characters are kept, 50 blocks)."""
        blocks, markdown = a.get("blocks"), str(a.get("markdown_text") or "")
        text = str(a.get("text") or "") or markdown
        if markdown and (a.get("text") or blocks):
            raise SlackError("markdown_text_conflict")
        if not (text or blocks or a.get("attachments")):
            raise SlackError("no_text")
        if blocks is not None and not (
            isinstance(blocks, list) and all(isinstance(b, dict) and "type" in b for b in blocks)
        ):
            raise SlackError("invalid_blocks_format")
        sizes = [len(b["text"]["text"]) for b in blocks or [] if b["type"] == "section" and b.get("text")]
        if len(blocks or []) > 50 or max(sizes, default=0) > 3000:
            raise SlackError(
                "invalid_blocks", response_metadata={"messages": ["[ERROR] must be less than 3001 characters"]}
            )
        if sum(sizes) > 13_200:
            raise SlackError("msg_blocks_too_long")
        written = [b["text"] for b in blocks or [] if b["type"] == "markdown"]
        if len(markdown) > 12_000 or sum(map(len, written)) > 12_000:
            raise SlackError("msg_too_long")
        kept = {"blocks": blocks, "attachments": a.get("attachments"), "metadata": a.get("metadata")}
        return {"text": text[:40_000], **{key: value for key, value in kept.items() if value}}

    def _as_bot(self, team: Team, a: Args) -> Json:
        profile = {"id": team.bot_id, "name": "nexus", "app_id": self.world.app_id, "team_id": team.id}
        own = {"user": team.bot_user, "bot_id": team.bot_id, "app_id": self.world.app_id, "bot_profile": profile}
        return (
            {"subtype": "bot_message", "bot_id": team.bot_id, "username": a["username"]} if a.get("username") else own
        )

    def do_auth_test(self, token: Token, team: Team | None, a: Args) -> Json:
        if not team:
            return {"app_id": self.world.app_id, "app_name": "nexus"}
        who = {"user": "nexus", "user_id": team.bot_user, "bot_id": team.bot_id, "is_enterprise_install": False}
        return {"url": f"https://{team.name}.slack.com/", "team": team.name, "team_id": team.id, **who}

    def do_apps_connections_open(self, token: Token, team: None, a: Args) -> Json:
        return {"url": self.socket_url()}

    def do_team_info(self, token: Token, team: Team, a: Args) -> Json:
        return {"team": {"id": team.id, "name": team.name, "domain": team.name, "email_domain": "", "icon": {}}}

    def do_bots_info(self, token: Token, team: Team, a: Args) -> Json:
        if a.get("bot") != team.bot_id:
            raise SlackError("bot_not_found")
        bot = {"id": team.bot_id, "name": "nexus", "deleted": False, "app_id": self.world.app_id}
        return {"bot": {**bot, "user_id": team.bot_user, "icons": {}}}

    def _seen(self, token: Token, user: Json) -> Json:
        """A user without the address, unless the token may know it."""
        shown = deepcopy(user)
        if "users:read.email" not in token.scopes:
            shown["profile"].pop("email", None)
        return shown

    def do_users_info(self, token: Token, team: Team, a: Args) -> Json:
        user = self.world.users.get(a.need("user")[0])
        if not user or user["team_id"] != team.id:
            raise SlackError("user_not_found")
        return {"user": self._seen(token, user)}

    def do_users_lookupByEmail(self, token: Token, team: Team, a: Args) -> Json:
        (email,) = a.need("email")
        for user in self.world.users.values():
            if user["team_id"] == team.id and user["profile"].get("email") == email:
                return {"user": deepcopy(user)}
        raise SlackError("users_not_found")

    def _paged(self, method: str, key: str, rows: list[Any], a: Args, most: int = 1000) -> Json:
        size, place = a.page(self.page_max.get(method, most))
        start = int(place or 0)
        more = _cursor(start + size) if len(rows) > start + size else ""
        return {key: rows[start : start + size], "response_metadata": {"next_cursor": more}}

    def do_users_list(self, token: Token, team: Team, a: Args) -> Json:
        rows = [self._seen(token, user) for user in self.world.users.values() if user["team_id"] == team.id]
        return self._paged("users.list", "members", rows, a)

    def _shown(self, channel: Channel, a: Args) -> Json:
        kinds = {f"is_{kind}": channel.kind == kind for kind in FAMILY} | {"is_private": channel.kind != "channel"}
        member = channel.team.bot_user in channel.members
        shown: Json = {"id": channel.id, "created": channel.created, "is_archived": channel.archived, **kinds}
        if channel.kind == "im":
            return {**shown, "user": channel.members[0], "is_open": True}
        shown |= {"name": channel.name, "name_normalized": channel.name, "is_member": member, "is_general": False}
        shown |= {
            "topic": {"value": ""},
            "purpose": {"value": ""},
            "context_team_id": channel.team.id,
            "is_shared": False,
        }
        return shown | ({"num_members": len(channel.members)} if a.flag("include_num_members") else {})

    def _listed(self, method: str, token: Token, team: Team, a: Args, *, mine: bool) -> Json:
        names = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
        kinds = {names[kind.strip()] for kind in str(a.get("types") or "public_channel").split(",")}
        for kind in sorted(kinds):
            self._scope(token, f"{FAMILY[kind]}:read")
        rows = [
            self._shown(channel, a)
            for channel in self.world.channels.values()
            if channel.team is team and channel.kind in kinds and not (channel.archived and a.flag("exclude_archived"))
            if team.bot_user in channel.members or (channel.kind == "channel" and not mine)
        ]
        return self._paged(method, "channels", rows, a)

    def do_conversations_list(self, token: Token, team: Team, a: Args) -> Json:
        return self._listed("conversations.list", token, team, a, mine=False)

    def do_users_conversations(self, token: Token, team: Team, a: Args) -> Json:
        return self._listed("users.conversations", token, team, a, mine=True)

    def do_conversations_info(self, token: Token, team: Team, a: Args) -> Json:
        return {"channel": self._shown(self._channel(token, team, a.need("channel")[0], "read"), a)}

    def do_conversations_members(self, token: Token, team: Team, a: Args) -> Json:
        channel = self._channel(token, team, a.need("channel")[0], "read")
        return self._paged("conversations.members", "members", channel.members, a)

    def do_conversations_join(self, token: Token, team: Team, a: Args) -> Json:
        channel = self.world.channels.get(a.need("channel")[0])
        if not channel or channel.team is not team or channel.kind == "group":
            raise SlackError("channel_not_found")
        if channel.kind != "channel" or channel.archived:
            raise SlackError("is_archived" if channel.archived else "method_not_supported_for_channel_type")
        if team.bot_user not in channel.members:
            self.world.enter(channel, team.bot_user)
        return {"channel": self._shown(channel, a)}

    def do_conversations_open(self, token: Token, team: Team, a: Args) -> Json:
        if a.get("channel"):
            return {"channel": {"id": self._channel(token, team, a["channel"]).id}, "no_op": True, "already_open": True}
        people = a.need("users")[0].split(",")
        if any(self.world.users.get(user, {}).get("team_id") != team.id for user in people):
            raise SlackError("user_not_found")
        many = len(people) > 1
        made = (
            self.world.channel(team, "mpdm", "mpim", [*people, team.bot_user])
            if many
            else self.world.im(team, people[0])
        )
        return {"channel": {"id": made.id}}

    def _between(self, method: str, rows: list[Json], a: Args, *, forward: bool) -> tuple[list[Json], Json]:
        """A page of rows (in the order of ts), from the near end, and what the answer says of more."""
        size, place = a.page(self.page_max.get(method, 999))
        oldest, latest, at = str(a.get("oldest") or "0"), str(a.get("latest") or "9" * 10), a.flag("inclusive")
        rows = [m for m in rows if oldest < m["ts"] < latest or (at and m["ts"] in {oldest, latest})]
        if place:
            rows = [m for m in rows if (m["ts"] >= place if forward else m["ts"] <= place)]
        page, rest = (rows[:size], rows[size:]) if forward else (rows[-size:], rows[:-size][::-1])
        page = [{k: v for k, v in m.items() if k != "metadata" or a.flag("include_all_metadata")} for m in page]
        more = {"response_metadata": {"next_cursor": _cursor(rest[0]["ts"])}} if rest else {}
        return page, {"has_more": bool(rest), **more}

    def do_conversations_history(self, token: Token, team: Team, a: Args) -> Json:
        """Newest first. With `oldest` alone the first page is the one nearest to it, as Slack has it."""
        channel = self._channel(token, team, a.need("channel")[0], "history", member=True)
        tops = [m for m in channel.messages.values() if m.get("thread_ts", m["ts"]) == m["ts"] or "root" in m]
        forward = bool(a.get("oldest")) and not a.get("latest")
        page, more = self._between("conversations.history", tops, a, forward=forward)
        return {"messages": page[::-1], "pin_count": 0, **more}

    def do_conversations_replies(self, token: Token, team: Team, a: Args) -> Json:
        """Oldest first; the first page begins with the parent, whatever `oldest` says."""
        name, ts = a.need("channel", "ts")
        channel = self._channel(token, team, name, "history", member=True)
        if not (asked := channel.messages.get(ts)):
            raise SlackError("thread_not_found")
        replies = [m for m in channel.messages.values() if m.get("thread_ts") == ts != m["ts"]]
        page, more = self._between("conversations.replies", replies, a, forward=True)
        return {"messages": page if a.get("cursor") else [asked, *page], **more}

    def do_chat_postMessage(self, token: Token, team: Team, a: Args) -> Json:
        channel, thread = self._writable(token, team, a), str(a.get("thread_ts") or "")
        fields = self._as_bot(team, a) | self._content(a)
        message = self.world.post(channel, fields, thread, broadcast=a.flag("reply_broadcast"))
        cut = {"warning": "message_truncated"} if len(str(a.get("text") or "")) > 40_000 else {}
        return {"channel": channel.id, "ts": message["ts"], "message": message, **cut}

    def do_chat_postEphemeral(self, token: Token, team: Team, a: Args) -> Json:
        channel, (user,) = self._writable(token, team, a), a.need("user")
        if user not in channel.members:
            raise SlackError("user_not_in_channel")
        said = {"channel": channel.id, "user": user, "ts": self.world.ts(), "thread_ts": a.get("thread_ts")}
        self.ephemerals.append(said | self._content(a))
        return {"message_ts": said["ts"]}

    def do_chat_update(self, token: Token, team: Team, a: Args) -> Json:
        (ts,), channel = a.need("ts"), self._writable(token, team, a)
        message, content = self._message(channel, ts, "cant_update_message"), self._content(a)
        if any(stream.ts == ts and not self._ended(stream) for stream in self.streams):
            raise SlackError("streaming_state_conflict")
        blocks = None if a.get("text") else message.get("blocks")
        self.updates.append((channel.id, ts, content["text"]))
        self.world.change(channel, message, team.bot_user, **{"blocks": blocks, **content})
        return {"channel": channel.id, "ts": ts, "text": content["text"], "message": message}

    def do_chat_delete(self, token: Token, team: Team, a: Args) -> Json:
        (ts,), channel = a.need("ts"), self._writable(token, team, a)
        self.world.remove(channel, self._message(channel, ts, "cant_delete_message"))
        return {"channel": channel.id, "ts": ts}

    def _ended(self, stream: Stream) -> str:
        if not stream.dead and self.clock.now() - stream.started >= self.stream_seconds:
            stream.dead = "message_not_in_streaming_state"
        return stream.dead

    def _piece(self, stream: Stream, a: Args) -> bool:
        """Add what the call brings; a stream keeps the mode (text or chunks) that it began with."""
        text, chunks = str(a.get("markdown_text") or ""), a.get("chunks")
        mode = "chunks" if chunks else "text" if text else ""
        if mode and stream.mode and mode != stream.mode:
            raise SlackError("streaming_mode_mismatch")
        piece = text + "".join(chunk.get("text", "") for chunk in chunks or [] if chunk["type"] == "markdown_text")
        if len(piece) > 12_000 or len(stream.text) + len(piece) > 40_000:
            raise SlackError("msg_too_long")
        stream.mode, stream.text = stream.mode or mode, stream.text + piece
        stream.pieces += [piece] if piece else []
        return bool(mode)

    def do_chat_startStream(self, token: Token, team: Team, a: Args) -> Json:
        channel, thread = self._writable(token, team, a), str(a.get("thread_ts") or "")
        if channel.kind == "im" and not thread:
            a.need("thread_ts")
        for name in ("recipient_team_id", "recipient_user_id"):
            if channel.kind != "im" and not a.get(name):
                raise SlackError(f"missing_{name}")
        stream = Stream(channel.id, "", self.clock.now())
        self._piece(stream, a)
        stream.ts = self.world.post(channel, {**self._as_bot(team, a), "text": stream.text}, thread)["ts"]
        self.streams.append(stream)
        return {"channel": channel.id, "ts": stream.ts}

    def _stream(self, token: Token, team: Team, a: Args) -> tuple[Channel, Json, Stream]:
        (ts,), channel = a.need("ts"), self._writable(token, team, a)
        message = self._message(channel, ts, "message_not_owned_by_app")
        stream = next((s for s in self.streams if s.ts == ts), None)
        if not stream or self._ended(stream):
            raise SlackError(stream.dead if stream else "message_not_in_streaming_state")
        return channel, message, stream

    def do_chat_appendStream(self, token: Token, team: Team, a: Args) -> Json:
        channel, message, stream = self._stream(token, team, a)
        if not self._piece(stream, a):
            raise SlackError("no_text")
        message["text"] = stream.text
        return {"channel": channel.id, "ts": stream.ts}

    def do_chat_stopStream(self, token: Token, team: Team, a: Args) -> Json:
        channel, message, stream = self._stream(token, team, a)
        self._piece(stream, a)
        stream.dead = "message_not_in_streaming_state"
        kept = {key: a[key] for key in ("blocks", "metadata") if a.get(key)}
        self.world.change(channel, message, "", text=stream.text, **kept)
        return {"channel": channel.id, "ts": stream.ts, "message": message}

    def do_views_open(self, token: Token, team: Team, a: Args) -> Json:
        trigger, _ = a.need("trigger_id", "view")
        if trigger not in self.triggers:
            raise SlackError("invalid_trigger_id")
        if self.clock.now() - self.triggers[trigger] > 3:
            raise SlackError("expired_trigger_id")
        self.triggers[trigger] = -math.inf
        view = {**a["view"], "id": self.world.id("V"), "team_id": team.id, "hash": uuid.uuid4().hex}
        self.views[view["id"]] = view
        return {"view": view}

    def do_views_publish(self, token: Token, team: Team, a: Args) -> Json:
        user, _ = a.need("user_id", "view")
        self.homes[user] = {**a["view"], "id": self.world.id("V"), "team_id": team.id}
        return {"view": self.homes[user]}

    def do_reactions_add(self, token: Token, team: Team, a: Args) -> Json:
        name, place, ts = a.need("name", "channel", "timestamp")
        message = self._message(self._channel(token, team, place, member=True), ts)
        if any(reaction["name"] == name for reaction in message.setdefault("reactions", [])):
            raise SlackError("already_reacted")
        message["reactions"].append({"name": name, "users": [team.bot_user], "count": 1})
        return {}

    def do_files_info(self, token: Token, team: Team, a: Args) -> Json:
        if not (found := self.world.files.get(a.need("file")[0])):
            raise SlackError("file_not_found")
        return {"file": found[0], "comments": [], "response_metadata": {"next_cursor": ""}}

    def _thread_note(self, token: Token, team: Team, a: Args) -> Json:
        channel = self._channel(token, team, a.need("channel_id")[0], member=True)
        self.statuses.append((channel.id, dict(a)))
        return {}

    do_assistant_threads_setStatus = do_assistant_threads_setTitle = _thread_note
    do_assistant_threads_setSuggestedPrompts = do_agents_sessions_rename = do_agents_sessions_setStatus = _thread_note


class SlackServer:
    """The running server and its driver: `async with SlackServer() as slack`, then post, edit, click, break things."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.outbox = Outbox(self.clock, self._touch)
        self.world = World(self.clock, self._event)
        self.api = WebApi(self.world)
        self.api.socket_url = self._ticket
        self.calls: list[Call] = []
        self.app_token = "xapp-1-A00000001"
        self.world.tokens[self.app_token] = Token("app", {"connections:write"})
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._limits: dict[str, tuple[int, float, str]] = {}
        self._spent: dict[tuple[str, str], deque[float]] = defaultdict(deque)
        self._tickets: set[str] = set()
        self._links: dict[str, tuple[Answered, Channel, str, str, float]] = {}
        self._changed, self._free = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/api/{method}", self._serve)
        app.router.add_get("/link", self._link)
        app.router.add_get("/files/{file}/{name}", self._download)
        app.router.add_get("/login", self._login)
        app.router.add_post("/commands/{link}", self._respond)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.base_url = f"{self.url}/api/"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.release_hung()
        self.drop_connections()
        await self.outbox.close()
        await self._runner.cleanup()

    def _touch(self) -> None:
        self._changed.set()

    async def wait_for(self, predicate: Callable[[], Any], within: float = 180) -> Any:
        """The predicate's value, as soon as it is true; TimeoutError names what was last called otherwise."""
        end = asyncio.get_running_loop().time() + within
        while not (value := predicate()):
            if asyncio.get_running_loop().time() > end:
                raise TimeoutError(f"nothing came; last calls: {[(c.method, c.answer) for c in self.calls[-5:]]}")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), 0.02)  # what a test watches may be the app's own state
            except TimeoutError:
                continue
        return value

    # Routes

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        """One Web API request: recorded, then a fault, a 429 or the answer."""
        method = request.match_info["method"]
        args = await _arguments(request)
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
        self._touch()
        if fault:
            return await self._misbehave(request, call, fault)
        token = self.world.tokens.get(secret)
        headers = {"X-OAuth-Scopes": ",".join(sorted(token.scopes))} if token else {}
        return web.json_response(call.answer, headers=headers)

    def _fault(self, name: str) -> Fault | None:
        queue = self._faults[name] or self._faults["*"]
        return Fault("reset") if self.outbox.down else queue.popleft() if queue else None

    async def _misbehave(self, request: web.Request, call: Call | None, fault: Fault) -> web.StreamResponse:
        if call and not fault.after:
            call.answer = {"fault": fault.kind}
        if fault.kind == "hang":
            self._free.clear()
            await self._free.wait()
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
        if method not in self._limits:
            return 0
        times, seconds, per = self._limits[method]
        spent, now = self._spent[method, f"{secret} {channel if per == 'channel' else ''}"], self.clock.now()
        while spent and spent[0] <= now - seconds:
            spent.popleft()
        if len(spent) >= times:
            return math.ceil(spent[0] + seconds - now)
        spent.append(now)
        return 0

    def _ticket(self) -> str:
        ticket = uuid.uuid4().hex
        self._tickets.add(ticket)
        return f"{self.url.replace('http', 'ws')}/link?ticket={ticket}&app_id={self.world.app_id}"

    async def _link(self, request: web.Request) -> web.StreamResponse:
        """A Socket Mode connection: hello, then acknowledgements until it closes."""
        if self.outbox.down:
            return await self._misbehave(request, None, Fault("reset"))
        if request.query.get("ticket") not in self._tickets:
            return web.Response(status=408)
        self._tickets.remove(request.query["ticket"])
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

    async def _login(self, request: web.Request) -> web.Response:
        return web.Response(text="<!DOCTYPE html><title>Sign in</title>", content_type="text/html")

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        """A response_url: at most five times, within half an hour."""
        if fault := self._fault("response_url"):
            return await self._misbehave(request, None, fault)
        if request.match_info["link"] not in self._links:
            return web.json_response({"ok": False, "error": "invalid_url"}, status=404)
        answered, channel, user, source, since = self._links[request.match_info["link"]]
        if len(answered.responses) >= 5 or self.clock.now() - since > 1800:
            error = "used_url" if len(answered.responses) >= 5 else "expired_url"
            return web.json_response({"ok": False, "error": error}, status=404)
        body = json.loads(await request.text())
        answered.responses.append(body)
        self._show(channel, user, body, source)
        self._touch()
        return web.Response(text="ok")

    def _show(self, channel: Channel, user: str, body: Json, source: str = "") -> None:
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

    def _event(self, team: Team, event: Json) -> None:
        who = {"enterprise_id": None, "team_id": team.id, "user_id": team.bot_user}
        payload: Json = {"token": "verification", "team_id": team.id, "api_app_id": self.world.app_id, "event": event}
        payload |= {"type": "event_callback", "event_id": self.world.id("Ev"), "event_time": int(self.clock.now())}
        payload["authorizations"] = [{**who, "is_bot": True, "is_enterprise_install": False}]
        self.outbox.send(payload | {"is_ext_shared_channel": False, "event_context": f"4-{event['type']}"})

    # The driver: the workspace

    async def add_team(self, name: str = "acme", scopes: Iterable[str] = BOT_SCOPES) -> Team:
        """A workspace with the app in it."""
        team = Team(
            self.world.id("T"), name, self.world.id("U"), self.world.id("B"), f"xoxb-{name}-{uuid.uuid4().hex[:8]}"
        )
        self.world.teams[team.id] = team
        self.world.tokens[team.bot_token] = Token("bot", set(scopes), team)
        self.world.users[team.bot_user] = _user(team, team.bot_user, "nexus", bot=True)
        return team

    async def add_user(self, team: Team, name: str, *, admin: bool = False, **fields: Any) -> str:
        """A person; `fields` (`deleted`, `is_restricted`, `tz`, …) go into the user object as they are."""
        user = self.world.id("U")
        self.world.users[user] = _user(team, user, name, admin=admin) | fields
        return user

    async def add_channel(
        self, team: Team, name: str, members: Iterable[str] = (), *, private: bool = False, bot: bool = True
    ) -> str:
        people = [*members, team.bot_user] if bot else list(members)
        return self.world.channel(team, name, "group" if private else "channel", people).id

    async def add_im(self, team: Team, *users: str) -> str:
        """A direct channel of the app with one person, or a group one with several."""
        if len(users) == 1:
            return self.world.im(team, users[0]).id
        return self.world.channel(team, "mpdm-" + "--".join(users), "mpim", [*users, team.bot_user]).id

    async def join(self, channel: str, user: str) -> None:
        self.world.enter(self.world.channels[channel], user)

    async def leave(self, channel: str, user: str) -> None:
        self.world.exit(self.world.channels[channel], user)

    async def set_private(self, channel: str, private: bool, by: str) -> None:
        """Turn a channel private or public: the id stays, and only a message with a subtype tells of it."""
        place = self.world.channels[channel]
        place.kind = "group" if private else "channel"
        word = "private" if private else "public"
        self.world.note(place, f"channel_convert_to_{word}", by, f"made this channel *{word}*.")

    async def rename(self, channel: str, name: str, by: str) -> None:
        place = self.world.channels[channel]
        place.name = name
        about = {"id": channel, "name": name, "created": place.created}
        self._lifecycle(place, "rename", channel=about)
        self.world.note(place, "channel_name", by, f"has renamed the channel to {name}")

    async def archive(self, channel: str, by: str) -> None:
        place = self.world.channels[channel]
        place.archived = True
        self._lifecycle(place, "archive", channel=channel, user=by)

    def _lifecycle(self, place: Channel, what: str, **fields: Any) -> None:
        event = {"type": f"{'group' if place.kind == 'group' else 'channel'}_{what}", **fields}
        scope = f"{FAMILY[place.kind]}:read"
        self.world.tell(place.team, event, place, scope=scope, anyone=place.kind == "channel")

    async def revoke(self, team: Team, *, uninstall: bool = False) -> None:
        """Take the bot's token away; `uninstall` takes the app out of the workspace as well."""
        self.world.tell(team, {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [team.bot_user]}})
        if uninstall:
            self.world.tell(team, {"type": "app_uninstalled"})
        self.world.tokens[team.bot_token].dead = "account_inactive" if uninstall else "token_revoked"

    # The driver: people

    async def post(self, channel: str, user: str, text: str, *, thread: str = "", broadcast: bool = False) -> str:
        """A person says something; returns its ts."""
        said = {"user": user, "text": text, "client_msg_id": str(uuid.uuid4()), "blocks": _rich_text(text)}
        return str(self.world.post(self.world.channels[channel], said, thread, broadcast=broadcast)["ts"])

    async def post_as_other_bot(self, channel: str, text: str, *, thread: str = "") -> str:
        said = {"subtype": "bot_message", "bot_id": "B99999999", "username": "deploys", "text": text}
        return str(self.world.post(self.world.channels[channel], said, thread)["ts"])

    async def edit(self, channel: str, ts: str, text: str) -> None:
        place = self.world.channels[channel]
        message = place.messages[ts]
        self.world.change(place, message, message["user"], text=text, blocks=_rich_text(text))

    async def delete(self, channel: str, ts: str) -> None:
        place = self.world.channels[channel]
        self.world.remove(place, place.messages[ts])

    async def upload(
        self,
        channel: str,
        user: str,
        name: str,
        content: bytes,
        mimetype: str = "text/plain",
        *,
        text: str = "",
        thread: str = "",
    ) -> str:
        """Share a file; returns the ts of the message that carries it."""
        file, kind = self.world.id("F"), name.rpartition(".")[2]
        url = f"{self.url}/files/{file}/{name}"
        about = {"id": file, "name": name, "title": name, "mimetype": mimetype, "filetype": kind, "size": len(content)}
        about |= {"mode": "hosted", "user": user, "url_private": url, "url_private_download": url, "permalink": url}
        self.world.files[file] = (about | {"channels": [channel]}, content)
        said = {"subtype": "file_share", "user": user, "text": text, "files": [about], "upload": False}
        return str(self.world.post(self.world.channels[channel], said, thread)["ts"])

    async def open_home(self, team: Team, user: str, tab: Literal["home", "messages"] = "home") -> None:
        self.world.tell(
            team, {"type": "app_home_opened", "user": user, "channel": self.world.im(team, user).id, "tab": tab}
        )

    async def start_assistant_thread(self, team: Team, user: str, looking_at: str = "") -> str:
        """A person opens the app's pane, with a channel in sight or not; returns the thread's ts."""
        im = self.world.im(team, user)
        root = self.world.post(im, {"user": team.bot_user, "bot_id": team.bot_id, "text": "New Assistant Thread"})["ts"]
        await self._assistant(team, user, root, looking_at, "assistant_thread_started")
        return str(root)

    async def change_assistant_context(self, team: Team, user: str, thread: str, looking_at: str) -> None:
        await self._assistant(team, user, thread, looking_at, "assistant_thread_context_changed")

    async def _assistant(self, team: Team, user: str, thread: str, looking_at: str, kind: str) -> None:
        context = {"channel_id": looking_at, "team_id": team.id, "enterprise_id": None} if looking_at else {}
        place = {"user_id": user, "context": context, "channel_id": self.world.im(team, user).id, "thread_ts": thread}
        self.world.tell(team, {"type": kind, "assistant_thread": place}, scope="assistant:write")

    async def press_stop(self, channel: str, user: str, thread: str) -> None:
        """A person stops the agent: its running streams in the thread end at once."""
        place = self.world.channels[channel]
        mine = [s for s in self.api.streams if not s.dead and place.messages.get(s.ts, {}).get("thread_ts") == thread]
        for stream in mine:
            stream.dead = "stopped_by_user"
        event = {"type": "agent_session_stopped", "channel": channel, "user": user, "thread_ts": thread}
        self.world.tell(place.team, event | {"streaming_message_ts": [stream.ts for stream in mine]}, place)

    async def command(self, channel: str, user: str, text: str, command: str = "/nexus") -> Answered:
        """Run a slash command (never in a thread: there Slack refuses them itself) and return what is answered."""
        place, answered = self.world.channels[channel], Answered()
        name = {"im": "directmessage", "group": "privategroup"}.get(place.kind, place.name)
        payload = {
            "token": "verification",
            "team_id": place.team.id,
            "team_domain": place.team.name,
            "command": command,
        }
        payload |= {"channel_id": channel, "channel_name": name, "user_id": user, "text": text}
        payload |= {"user_name": self.world.users[user]["name"], "api_app_id": self.world.app_id}
        payload |= {"is_enterprise_install": "false", "trigger_id": self._trigger()}
        payload["response_url"] = self._response_url(answered, place, user)
        return await self._ask(payload, "slash_commands", answered, place, user)

    async def click(self, channel: str, user: str, ts: str, action_id: str, **fields: Any) -> Answered:
        """Use an element of a message, seen by all or by this person only; `fields` go into the action."""
        place, answered = self.world.channels[channel], Answered()
        private = next((said for said in self.api.ephemerals if said["ts"] == ts and said["user"] == user), None)
        message = private or place.messages[ts]
        elements = [
            (block, element)
            for block in message.get("blocks", [])
            for element in [*block.get("elements", []), block.get("accessory", {})]
        ]
        block, element = next(pair for pair in elements if pair[1].get("action_id") == action_id)
        action = {**element, "block_id": block.get("block_id", "b1"), "action_ts": self.world.ts(), **fields}
        payload = self._interaction("block_actions", place.team, user) | {"message": message, "actions": [action]}
        container = {"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": bool(private)}
        payload |= {"channel": {"id": channel, "name": place.name}, "container": container, "state": {"values": {}}}
        payload["response_url"] = self._response_url(answered, place, user, ts)
        return await self._ask(payload, "interactive", answered, place, user)

    async def submit(self, user: str, view_id: str, values: Json) -> Answered:
        """Send a modal that the app opened; `values` are the view's state."""
        view = self.api.views[view_id]
        team = self.world.teams[view["team_id"]]
        payload = self._interaction("view_submission", team, user) | {"view": view | {"state": {"values": values}}}
        return await self._ask(payload, "interactive", Answered(), self.world.im(team, user), user)

    def _interaction(self, kind: str, team: Team, user: str) -> Json:
        name = self.world.users[user]["name"]
        who = {"id": user, "username": name, "name": name, "team_id": team.id}
        payload = {"type": kind, "user": who, "team": {"id": team.id, "domain": team.name}, "token": "verification"}
        common = {"api_app_id": self.world.app_id, "enterprise": None, "is_enterprise_install": False}
        return payload | common | {"trigger_id": self._trigger()}

    def _trigger(self) -> str:
        self.api.triggers[trigger := uuid.uuid4().hex] = self.clock.now()
        return trigger

    def _response_url(self, answered: Answered, place: Channel, user: str, source: str = "") -> str:
        self._links[link := uuid.uuid4().hex] = (answered, place, user, source, self.clock.now())
        return f"{self.url}/commands/{link}"

    async def _ask(self, payload: Json, kind: Envelope, answered: Answered, place: Channel, user: str) -> Answered:
        """Bring it once (these are never retried), and show what comes back."""
        attempt = await self.outbox.attempt(payload, kind)
        timed_out = attempt.outcome in {"timeout", "http_timeout"} and (self.outbox.urls or self.outbox.connections)
        answered.ack = attempt.answer
        answered.error = "" if attempt.outcome == "acked" else "operation_timeout" if timed_out else "dispatch_failed"
        if kind == "slash_commands":
            self._show(place, user, answered.ack)
        return answered

    # The driver: what there is to see

    def messages(self, channel: str) -> list[Json]:
        """Everything in a conversation, threads too, oldest first."""
        return list(self.world.channels[channel].messages.values())

    def texts(self, channel: str) -> list[str]:
        """What the app said there, oldest first."""
        bot = self.world.channels[channel].team.bot_id
        return [message["text"] for message in self.messages(channel) if message.get("bot_id") == bot]

    def calls_of(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def ephemerals(self, user: str) -> list[Json]:
        return [said for said in self.api.ephemerals if said["user"] == user]

    # The driver: what goes wrong, and time

    def fail(self, name: str, kind: Breakage = "http500", *, times: int = 1, **fields: Any) -> None:
        """The next requests of a method (or "files", "response_url", "*" for any) meet a `Fault`."""
        self._faults[name].extend(Fault(kind, **fields) for _ in range(times))

    def release_hung(self) -> None:
        self._free.set()

    def limit(self, method: str, times: int, seconds: float, per: Literal["token", "channel"] = "token") -> None:
        """Answer 429 when a method is called more often than this."""
        self._limits[method] = (times, seconds, per)

    def limit_as_documented(self) -> None:
        """Slack's tiers, and the one edit a second in each channel that it bears in practice."""
        for method, (_, tier) in METHODS.items():
            self.limit(method, TIERS[tier], 60, "token")
        self.limit("chat.postMessage", 1, 1, "channel")
        self.limit("chat.update", 1, 1, "channel")

    def use_http(self, events: str, commands: str = "", interactivity: str = "") -> None:
        """Deliver by signed HTTP from now on; one address may serve for all."""
        self.outbox.urls = {
            "events_api": events,
            "slash_commands": commands or events,
            "interactive": interactivity or events,
        }

    async def verify_url(self) -> bool:
        """Send the url_verification challenge, as saving the app's settings does; whether it came back."""
        challenge = {"type": "url_verification", "token": "verification", "challenge": uuid.uuid4().hex}
        answer = (await self.outbox.attempt(challenge, "events_api")).answer
        return challenge["challenge"] in {answer.get("challenge"), answer.get("text")}

    async def ask_to_reconnect(self, reason: str = "refresh_requested") -> None:
        """Send `disconnect` ("warning", "refresh_requested", "link_disabled") to every connection."""
        for connection in list(self.outbox.connections):
            connection.fresh = reason == "warning"
            await connection.socket.send_json(
                {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}}
            )

    def drop_connections(self) -> None:
        for connection in list(self.outbox.connections):
            connection.drop()

    async def go_down(self) -> None:
        """Every connection breaks and none is taken; what happens now is in the history only."""
        self.outbox.down = True
        self.drop_connections()

    async def come_back(self) -> None:
        self.outbox.down = False

    def hold(self) -> None:
        """Keep what happens from the app, until `release` brings it in an order of the test's choice."""
        self.outbox.held = []

    async def release(self, order: Callable[[list[Json]], list[Json]] = list) -> None:
        """Bring what was held: `lambda held: held[::-1]` reorders, `lambda held: held * 3` repeats."""
        held, self.outbox.held = self.outbox.held or [], None
        for payload in order(held):
            self.outbox.send(payload)

    async def advance(self, seconds: float) -> None:
        """Move the clock: acknowledgements run out, retries fall due, streams and links die."""
        self.clock.advance(seconds)
        await asyncio.sleep(0)

    async def settled(self) -> None:
        """Until every event was acknowledged, waits for its retry (`advance`), or was given up."""
        await self.wait_for(lambda: self.outbox.idle)


def _user(team: Team, user: str, name: str, *, admin: bool = False, bot: bool = False) -> Json:
    email = {} if bot else {"email": f"{name}@{team.name}.test"}
    profile = {"display_name": name, "real_name": name.capitalize(), "team": team.id, **email}
    rights = {"is_admin": admin, "is_owner": False, "is_primary_owner": False, "is_restricted": False}
    about = {"id": user, "team_id": team.id, "name": name, "real_name": name.capitalize(), "deleted": False}
    return {**about, **rights, "is_bot": bot, "is_app_user": False, "tz": "Europe/Berlin", "profile": profile}


async def _arguments(request: web.Request) -> Args:
    """Query, form and JSON together; in a form, structures are JSON in text."""
    args = Args(request.query)
    if request.content_type == "application/json":
        args.update(json.loads(await request.text() or "{}"))
    elif request.can_read_body:
        args.update({key: value for key, value in (await request.post()).items() if isinstance(value, str)})
    for name in ("blocks", "attachments", "metadata", "chunks", "view", "prompts"):
        if isinstance(args.get(name), str):
            args[name] = json.loads(args[name])
    return args

"""Events on their way to the app, by Socket Mode or by signed HTTP, with their acknowledgements and retries."""

import asyncio
import hashlib
import hmac
import itertools
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from tests.support.slack.clock import Clock
from tests.support.slack.model import Json

Envelope = Literal["events_api", "slash_commands", "interactive"]


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
    connection: Connection | None = None


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

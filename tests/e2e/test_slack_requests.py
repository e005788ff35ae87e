"""What anybody can send to the HTTP address of the Slack adapter: only what Slack signed and means is stored."""

import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import pytest

from bot.discord.file_source import is_discord_address
from bot.slack.client import Slack
from bot.slack.directory import SlackDirectory
from composer.settings import Settings
from tests.support.harness import ManualClock
from tests.support.slack.harness import Office, Running, office_on

JSON: Final = {"Content-Type": "application/json"}
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class Sender:
    """Sends requests to the address, signed as Slack does unless told otherwise."""

    def __init__(self, office: Office, http: aiohttp.ClientSession) -> None:
        self.office = office
        self.url = office.slack.outbox.urls["events_api"]
        self._http = http

    def event(self, ts: str, text: str, **changes: Any) -> dict[str, Any]:
        event = {"type": "message", "channel": self.office.general, "channel_type": "channel", "ts": ts, "text": text}
        body = {"type": "event_callback", "team_id": self.office.team.id, "event": event | {"user": self.office.alice}}
        body["event"] = {**event, "user": self.office.alice, **changes.pop("event", {})}
        return body | changes

    def signed(self, body: bytes, timestamp: str, secret: str | None = None) -> dict[str, str]:
        key = (self.office.slack.outbox.signing_secret if secret is None else secret).encode()
        digest = hmac.new(key, b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}"}

    async def send(
        self, body: Any, headers: dict[str, str] | None = None, *, kind: dict[str, str] = JSON, at: str | None = None
    ) -> int:
        data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        signature = self.signed(data, at or str(int(time.time()))) if headers is None else headers
        async with self._http.post(self.url, data=data, headers={**kind, **signature}) as response:
            return response.status


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


@pytest.fixture
async def running(office: Office) -> AsyncIterator[Running]:
    async with office.http() as it:
        yield it


@pytest.fixture
async def sender(office: Office, running: Running) -> AsyncIterator[Sender]:
    async with aiohttp.ClientSession() as http:
        yield Sender(office, http)


async def test_a_request_that_slack_did_not_sign_is_refused(sender: Sender, running: Running) -> None:
    assert await sender.send(sender.event("1700000001.000100", "good")) == 200
    body = json.dumps(sender.event("1700000002.000100", "evil")).encode()
    now, other = int(time.time()), json.dumps(sender.event("1700000001.000100", "good")).encode()
    refused = {
        "unsigned": {},
        "no timestamp": {"X-Slack-Signature": sender.signed(body, str(now))["X-Slack-Signature"]},
        "empty signature": {"X-Slack-Request-Timestamp": str(now), "X-Slack-Signature": ""},
        "signature that is no text": {"X-Slack-Request-Timestamp": str(now), "X-Slack-Signature": "v0=\u00fc\u00df"},
        "wrong secret": sender.signed(body, str(now), "x"),
        "empty secret": sender.signed(body, str(now), ""),
        "of another body": sender.signed(other, str(now)),
    }
    outdated = [str(each) for each in (now - 302, now + 302, now + 3_000, 0, -1, 10**30)]
    for timestamp in (*outdated, "abc", "nan", "inf", f"{now},{now}", "[]", f"{now}.5", f" {now}x", "1e9", "\u0661"):
        refused[f"at {timestamp!r}"] = sender.signed(body, timestamp)
    for why, headers in refused.items():
        assert await sender.send(body, headers) == 401, why
    for unsigned in (b"\xff\xfe{", b"[" * 200_000, b'{"type":"url_verification","challenge":"c"}', b""):
        assert await sender.send(unsigned, {}) == 401
    assert await sender.send("ssl_check=1&command=/nexus&text=help", {}, kind=FORM) == 401
    await running.settle()
    assert await running.stored() == ["good"]


async def test_a_signed_request_that_is_no_event_is_refused(sender: Sender, running: Running) -> None:
    good = sender.event("1700000003.000100", "evil")
    malformed: list[Any] = [
        b"\xff\xfe{",
        b"",
        b"{",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        "[]",
        "null",
        "1",
        {"type": "event_callback", "event": {"type": "message", "channel": 5, "ts": "x"}},
        {"type": "event_callback", "event": [1, 2]},
        {"type": "event_callback", "team_id": sender.office.team.id, "event": "message"},
        {"type": "url_verification", "challenge": {"a": 1}},
        {key: value for key, value in good.items() if key != "team_id"},
    ]
    for changed in (
        {"channel": 5},
        {"ts": "x"},
        {"ts": 1700000003.0001},
        {"ts": "nan"},
        {"ts": "9" * 400 + ".1"},
        {"thread_ts": ["1"]},
        {"user": ["U1"]},
        {"text": {"a": 1}},
        {"files": {"a": 1}},
        {"files": ["x"]},
        {"type": ["message"]},
        {"subtype": "message_changed", "message": [1]},
        {"subtype": "message_changed"},
        {"subtype": "message_changed", "message": {"ts": 5}},
        {"ts": None},
        {"channel": None},
        {"channel": {"id": "C1"}},
    ):
        malformed.append(sender.event("1700000003.000100", "evil", event=changed))
    for body in malformed:
        assert await sender.send(body) == 400, str(body)[:100]
    for form in ("", "command=/nexus&text=help", "payload=", "payload=[]", "payload=" + "[" * 100_000, "a=1&" * 500):
        assert await sender.send(form, kind=FORM) == 400, form[:50]
    await running.settle()
    assert await running.stored() == []


async def test_an_event_of_another_workspace_is_refused(sender: Sender, running: Running) -> None:
    foreign = sender.event("1700000004.000100", "foreign", team_id="T0OTHER", event={"team": "T0OTHER"})
    assert await sender.send(foreign) == 401
    command = "command=/nexus&text=help&team_id=T0OTHER&channel_id=C1&user_id=U1&trigger_id=1.2"
    assert await sender.send(command, kind=FORM) == 401
    pressed = {
        "type": "block_actions",
        "team": {"id": "T0OTHER"},
        "user": {"id": "U1"},
        "actions": [{"action_id": "x"}],
    }
    assert await sender.send("payload=" + json.dumps(pressed), kind=FORM) == 401
    assert await sender.send({"type": "url_verification", "challenge": "c"}) == 200  # Slack's own, of no workspace
    shared = foreign | {"authorizations": [{"team_id": sender.office.team.id}]}  # a channel of both
    assert await sender.send(shared) == 200
    await running.settle()
    assert await running.stored() == ["foreign"]


async def test_bodies_and_headers_of_any_size_are_survived(sender: Sender, running: Running) -> None:
    assert await sender.send(b"x" * (4 * 2**20 + 10), {}) == 413
    body = json.dumps(sender.event("1700000005.000100", "repeated")).encode()
    for number in ("9" * 5_000, "\u00b2", "-1", "1"):
        headers = sender.signed(body, str(int(time.time()))) | {"X-Slack-Retry-Num": number}
        assert await sender.send(body, headers) == 200, number[:10]
    await running.settle()
    assert await running.stored() == ["repeated"]


@pytest.mark.parametrize(
    ("url", "slack", "discord"),
    [
        ("https://files.slack.com/x", True, False),
        ("https://slack.com/x", True, False),
        ("HTTPS://FILES.SLACK.COM/x", True, False),
        ("http://files.slack.com/x", False, False),
        ("https://files.slack.com@evil.com/x", False, False),
        ("https://evil.com/files.slack.com", False, False),
        ("https://files.slack.com.evil.com/", False, False),
        ("https://evilslack.com/", False, False),
        ("https://evil.com#.slack.com", False, False),
        ("https://evil.com\\.slack.com/", False, False),
        ("https://a.slack.com\n.evil.com/", False, False),
        ("//files.slack.com/x", False, False),
        ("https://[::1]/", False, False),
        ("https://xn--slck-5cd.com/", False, False),
        ("https://evil.com/?.slack.com", False, False),
        ("https://evil.com%2f.slack.com/", False, False),
        ("https://evil.com%00.slack.com/", False, False),
        ("file:///etc/passwd", False, False),
        ("http://169.254.169.254/.slack.com", False, False),
        ("https://foo.slack.com%40evil.com/", False, False),
        ("https://files.slack.com%2eevil.com/", False, False),
        ("https://cdn.discordapp.com/x", False, True),
        ("https://CDN.discordapp.com/", False, True),
        ("http://cdn.discordapp.com/x", False, False),
        ("https://cdn.discordapp.com.evil.com/", False, False),
        ("https://cdn.discordapp.com@evil.com/", False, False),
    ],
)
def test_files_are_loaded_from_the_platforms_hosts_only(url: str, slack: bool, discord: bool) -> None:
    directory = SlackDirectory(Slack("xoxb-x", report=print), ManualClock())
    assert (directory.is_slack_address(url), is_discord_address(url)) == (slack, discord)

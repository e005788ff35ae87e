"""The Slack server for tests, seen by the real slack-bolt and slack-sdk: it behaves as Slack does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from tests.support.slack.model import BOT_SCOPES, Team
from tests.support.slack.server import SlackServer


@dataclass
class Office:
    """A workspace with Alice, Bob and #general, and a small Bolt app that records its events and answers mentions."""

    slack: SlackServer
    team: Team
    alice: str
    bob: str
    general: str
    app: AsyncApp
    seen: list[dict[str, Any]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def client(self) -> AsyncWebClient:
        return AsyncWebClient(token=self.team.bot_token, base_url=self.slack.base_url, retry_handlers=[])

    def kinds(self) -> list[str]:
        return [event.get("subtype") or event["type"] for event in self.seen]

    async def until(self, *kinds: str) -> None:
        await self.slack.wait_for(lambda: sorted(self.kinds()) == sorted(kinds))

    @asynccontextmanager
    async def socket(self) -> AsyncIterator[AsyncSocketModeHandler]:
        before = len(self.slack.outbox.connections)
        handler = AsyncSocketModeHandler(self.app, self.slack.app_token, ping_interval=0.5)
        await handler.connect_async()  # type: ignore[no-untyped-call]
        await self.slack.wait_for(lambda: len(self.slack.outbox.connections) > before)
        try:
            yield handler
        finally:
            await handler.close_async()  # type: ignore[no-untyped-call]

    @asynccontextmanager
    async def http(self, app: web.Application | None = None) -> AsyncIterator[str]:
        runner = web.AppRunner(app or self.app.web_app("/slack/events"))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.slack.use_http(f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events")
        try:
            yield self.slack.outbox.urls["events_api"]
        finally:
            await runner.cleanup()


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    async with SlackServer() as slack:
        team = await slack.add_team()
        alice, bob = await slack.add_user(team, "alice", admin=True), await slack.add_user(team, "bob")
        general = await slack.add_channel(team, "general", [alice, bob])
        client = AsyncWebClient(token=team.bot_token, base_url=slack.base_url)
        app = AsyncApp(name="wires", client=client, signing_secret=slack.outbox.signing_secret)
        it = Office(slack, team, alice, bob, general, app)
        it.gate.set()

        @app.middleware
        async def gate(next: Any) -> None:
            await it.gate.wait()
            await next()

        @app.event("app_mention")
        async def mentioned(event: dict[str, Any], say: Any) -> None:
            it.seen.append(event)
            await say(text="hello", thread_ts=event.get("thread_ts") or event["ts"])

        @app.event({"type": "message", "subtype": None})
        async def message(event: dict[str, Any]) -> None:
            it.seen.append(event)

        yield it


def mention(office: Office, text: str = "hi") -> str:
    return f"<@{office.team.bot_user}> {text}"


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_a_mention_arrives_as_two_events_and_is_answered(office: Office, wire: str) -> None:
    async with office.socket() if wire == "socket" else office.http():
        ts = await office.slack.post(office.general, office.alice, mention(office))
        await office.slack.wait_for(lambda: office.slack.texts(office.general) == ["hello"])
        await office.until("message", "app_mention")
        assert {event["ts"] for event in office.seen} == {ts}
        assert office.slack.messages(office.general)[1]["thread_ts"] == ts
        await office.slack.settled()
        payloads = [attempt.payload for attempt in office.slack.outbox.attempts]
        assert len({payload["event_id"] for payload in payloads}) == 3
        assert payloads[-1]["event"]["bot_id"] == office.team.bot_id, "the app receives its own message"
        assert {attempt.outcome for attempt in office.slack.outbox.attempts} == {"acked"}


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_an_event_that_is_not_acknowledged_in_three_seconds_is_delivered_again(office: Office, wire: str) -> None:
    async with office.socket() if wire == "socket" else office.http():
        office.gate.clear()
        await office.slack.post(office.general, office.alice, "hi")
        attempts = office.slack.outbox.attempts
        await office.slack.wait_for(lambda: len(attempts) == 1)
        await office.slack.advance(2)
        await office.client.auth_test()
        assert [attempt.outcome for attempt in attempts] == [""]
        await office.slack.advance(1)
        await office.slack.wait_for(lambda: len(attempts) == 2)
        office.gate.set()
        await office.slack.settled()
        reason = "timeout" if wire == "socket" else "http_timeout"
        assert [(a.retry, a.reason, a.outcome) for a in attempts] == [(0, "", reason), (1, reason, "acked")]


async def test_slack_retries_immediately_after_one_minute_and_after_five_and_then_stops(office: Office) -> None:
    headers: list[tuple[str, str]] = []

    async def refuse(request: web.Request) -> web.Response:
        headers.append((request.headers.get("X-Slack-Retry-Num", ""), request.headers.get("X-Slack-Retry-Reason", "")))
        return web.Response(status=500)

    app = web.Application()
    app.router.add_post("/slack/events", refuse)
    async with office.http(app):
        await office.slack.post(office.general, office.alice, "hi")
        await office.slack.settled()
        assert headers == [("", ""), ("1", "http_error")]
        for seconds, count in ((59, 2), (1, 3), (299, 3), (1, 4), (9999, 4)):
            await office.slack.advance(seconds)
            await office.slack.settled()
            assert len(headers) == count
        assert headers[-1] == ("3", "http_error")
        assert len(office.slack.outbox.given_up) == 1


async def test_only_requests_signed_by_slack_within_five_minutes_are_accepted(office: Office) -> None:
    async with office.http():
        assert await office.slack.verify_url()
        for secret, skew, status in (("wrong", 0, 401), ("", -301, 401), ("", -200, 200)):
            office.slack.outbox.secret = secret or office.slack.outbox.signing_secret
            office.slack.outbox.skew = skew
            await office.slack.post(office.general, office.alice, "hi")
            await office.slack.settled()
            assert office.slack.outbox.attempts[-1].status == status
        assert office.kinds() == ["message"]


async def test_an_expired_stream_keeps_its_text_and_can_be_updated(office: Office) -> None:
    ts = await office.slack.post(office.general, office.alice, "hi")
    client = office.client
    with pytest.raises(SlackApiError, match="missing_recipient_team_id"):
        await client.chat_startStream(channel=office.general, thread_ts=ts)
    who: Any = {"recipient_team_id": office.team.id, "recipient_user_id": office.alice}
    made = await client.chat_startStream(channel=office.general, thread_ts=ts, markdown_text="one", **who)
    with pytest.raises(SlackApiError, match="streaming_mode_mismatch"):
        await client.chat_appendStream(
            channel=office.general, ts=made["ts"], chunks=[{"type": "markdown_text", "text": "two"}]
        )
    await office.slack.advance(300)
    for call in (client.chat_appendStream, client.chat_stopStream):
        with pytest.raises(SlackApiError, match="message_not_in_streaming_state"):
            await call(channel=office.general, ts=made["ts"], markdown_text=" two")
    assert office.slack.texts(office.general) == ["one"]
    await client.chat_update(channel=office.general, ts=made["ts"], text="one two")
    assert office.slack.texts(office.general) == ["one two"]
    assert office.slack.api.updates == [(office.general, made["ts"], "one two")]


async def test_a_token_allows_what_its_scopes_say_until_it_is_revoked(office: Office) -> None:
    office.slack.world.tokens[office.team.bot_token].scopes = set(BOT_SCOPES - {"channels:history"})
    with pytest.raises(SlackApiError) as caught:
        await office.client.conversations_history(channel=office.general)
    assert caught.value.response["error"] == "missing_scope"
    assert caught.value.response["needed"] == "channels:history"
    with pytest.raises(SlackApiError, match="not_allowed_token_type"):
        await office.client.apps_connections_open(app_token=office.team.bot_token)
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await office.client.auth_test(token="xoxb-nobody")
    who = await office.client.auth_test()
    assert (who["user_id"], who["bot_id"]) == (office.team.bot_user, office.team.bot_id)
    assert "chat:write" in who.headers["x-oauth-scopes"]
    await office.slack.revoke(office.team)
    with pytest.raises(SlackApiError, match="token_revoked"):
        await office.client.auth_test()


async def test_events_outside_the_scopes_are_not_sent(office: Office) -> None:
    office.slack.world.tokens[office.team.bot_token].scopes = set(BOT_SCOPES - {"groups:history"})
    office.slack.hold()
    secret = await office.slack.add_channel(office.team, "secret", [office.alice], private=True)
    elsewhere = await office.slack.add_channel(office.team, "elsewhere", [office.alice], bot=False)
    for channel in (secret, elsewhere):
        await office.slack.post(channel, office.alice, "psst")
    assert office.slack.outbox.held == []
    with pytest.raises(SlackApiError, match="not_in_channel"):
        await office.client.chat_postMessage(channel=elsewhere, text="hi")
    open_to_all = await office.slack.add_channel(office.team, "open", [office.alice], bot=False)
    await office.client.conversations_join(channel=open_to_all)
    await office.slack.post(open_to_all, office.alice, "welcome")
    told = [payload["event"] for payload in office.slack.outbox.held or []]
    assert [event.get("subtype") or event["type"] for event in told] == [
        "member_joined_channel", "channel_join", "message",
    ]  # fmt: skip
    await office.slack.set_private(elsewhere, True, office.alice)
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await office.client.conversations_info(channel=elsewhere)


async def test_the_sdk_waits_after_a_429_and_limits_are_per_channel(office: Office) -> None:
    client = office.client
    client.retry_handlers.append(AsyncRateLimitErrorRetryHandler())
    office.slack.fail("chat.postMessage", "ratelimited", retry_after=0)
    said = await client.chat_postMessage(channel=office.general, text="hi")
    assert [call.status for call in office.slack.calls_of("chat.postMessage")] == [429, 200]
    office.slack.limit("chat.update", 1, 100, "channel")
    im = await office.client.chat_postMessage(channel=office.alice, text="hi")
    for message in (said, im):
        await office.client.chat_update(channel=message["channel"], ts=message["ts"], text="ho")
    with pytest.raises(SlackApiError) as caught:
        await office.client.chat_update(channel=office.general, ts=said["ts"], text="he")
    assert (caught.value.response["error"], caught.value.response.status_code) == ("ratelimited", 429)
    await office.slack.advance(int(caught.value.response.headers["Retry-After"]))
    await office.client.chat_update(channel=office.general, ts=said["ts"], text="he")


async def test_changes_in_a_channel_have_slacks_events(office: Office) -> None:
    slack, general = office.slack, office.general
    slack.hold()
    ts = await slack.post(general, office.alice, "one")
    reply = await slack.post(general, office.bob, "two", thread=ts, broadcast=True)
    await slack.edit(general, ts, "uno")
    await slack.delete(general, ts)
    await slack.delete(general, reply)
    await slack.leave(general, office.bob)
    await slack.join(general, office.bob)
    await slack.set_private(general, True, office.alice)
    await slack.rename(general, "core", office.alice)
    await slack.archive(general, office.alice)
    await slack.leave(general, office.team.bot_user)
    await slack.post(general, office.alice, "unheard")
    await slack.revoke(office.team, uninstall=True)
    events = [payload["event"] for payload in slack.outbox.held or []]
    subtypes = [event.get("subtype") or event["type"] for event in events]
    assert subtypes[:5] == ["message", "thread_broadcast", "message_changed", "message_changed", "message_deleted"]
    assert (events[2]["previous_message"]["text"], events[2]["message"]["text"]) == ("one", "uno")
    assert events[3]["message"]["subtype"] == "tombstone", "a deleted parent with replies becomes a tombstone"
    assert events[4]["deleted_ts"] == reply
    assert subtypes[5:9] == ["member_left_channel", "channel_leave", "member_joined_channel", "channel_join"]
    assert (subtypes[9], events[9]["channel_type"]) == ("channel_convert_to_private", "group")
    assert subtypes[10:] == [
        "group_rename", "channel_name", "group_archive", "group_left", "tokens_revoked", "app_uninstalled",
    ]  # fmt: skip


async def test_messages_are_limited_as_by_slack(office: Office) -> None:
    said = await office.client.chat_postMessage(channel=office.general, text="x" * 40_001)
    assert len(said["message"]["text"]) == 40_000
    with pytest.raises(SlackApiError, match="msg_too_long"):
        await office.client.chat_postMessage(channel=office.general, markdown_text="x" * 12_001)
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3000}}
    with pytest.raises(SlackApiError, match="msg_blocks_too_long"):
        await office.client.chat_postMessage(channel=office.general, text="x", blocks=[section] * 5)
    with pytest.raises(SlackApiError, match="invalid_blocks"):
        await office.client.chat_postMessage(channel=office.general, text="x", blocks=[section] * 51)


@pytest.mark.parametrize(("kind", "after", "posted"), [("reset", False, 0), ("reset", True, 1), ("http500", True, 1)])
async def test_a_request_can_fail_before_or_after_its_effect(
    office: Office, kind: Any, after: bool, posted: int
) -> None:
    office.slack.fail("chat.postMessage", kind, after=after)
    with pytest.raises((aiohttp.ClientError, SlackApiError)):
        await office.client.chat_postMessage(channel=office.general, text="hello")
    assert len(office.slack.texts(office.general)) == posted
    await office.client.chat_postMessage(channel=office.general, text="hello")
    assert len(office.slack.texts(office.general)) == posted + 1


async def test_workspaces_share_only_the_connection(office: Office) -> None:
    other = await office.slack.add_team("umbrella")
    eve = await office.slack.add_user(other, "eve")
    office.slack.hold()
    await office.slack.post(await office.slack.add_channel(other, "general", [eve]), eve, "theirs")
    await office.slack.post(office.general, office.alice, "ours")
    told = [(payload["team_id"], payload["event"]["text"]) for payload in office.slack.outbox.held or []]
    assert told == [(other.id, "theirs"), (office.team.id, "ours")]
    theirs = AsyncWebClient(token=other.bot_token, base_url=office.slack.base_url)
    for call in (theirs.conversations_info, theirs.conversations_history, theirs.conversations_join):
        with pytest.raises(SlackApiError, match="channel_not_found"):
            await call(channel=office.general)
    with pytest.raises(SlackApiError, match="user_not_found"):
        await theirs.users_info(user=office.alice)
    assert [user["name"] for user in (await theirs.users_list())["members"]] == ["nexus", "eve"]

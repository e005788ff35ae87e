"""Slack's events, commands and interactions by HTTP: what Slack signed is dispatched, and all else is refused."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.slack.requests import Malformed, check_shape, is_signed

logger = structlog.get_logger()

SLACK_EVENTS_PATH: Final = "/slack/events"  # of events, commands and interactions alike
MAX_REQUEST_BYTES: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class SlackAnswer:
    """What Slack is answered. `headers` are of its body."""

    status: int
    headers: Mapping[str, str]
    body: str = ""


@dataclass(frozen=True, slots=True)
class SlackHttp:
    """Takes requests that are said to come from Slack. `clock`: Unix seconds; `dispatch` hands a request to bolt."""

    secret: str
    clock: Callable[[], float]
    dispatch: Callable[[AsyncBoltRequest], Awaitable[BoltResponse]]

    async def receive(self, body: bytes, headers: Mapping[str, str], query: str) -> SlackAnswer:
        """The answer to one request; `headers` are found by any case of their names. Nothing is parsed before its
        signature is checked: 401 without one of Slack, 400 for what is no event."""
        stamp, signature = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
        if not is_signed(body, stamp, signature, self.secret, self.clock()):
            return SlackAnswer(401, {})
        try:
            text = check_shape(body, headers.get("Content-Type", "").partition(";")[0].strip().lower())
        except Malformed:
            logger.warning("slack.request_malformed")
            return SlackAnswer(400, {})
        answer = await self.dispatch(AsyncBoltRequest(body=text, query=query, headers=dict(headers)))
        return SlackAnswer(answer.status, answer.first_headers_without_set_cookie(), answer.body or "")

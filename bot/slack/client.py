"""Slack's Web API with one token. Every failure becomes one of our errors, and a bad token is reported once."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from yarl import URL

from bot.platform.download import OK, download
from composer.errors import Refused, Unavailable

SLACK_API: Final = "https://slack.com/api/"
SLACK_SECONDS: Final = 15
MESSAGES_A_PAGE: Final = 500  # Slack's maximum is 999
MAX_RATE_LIMIT_WAITS: Final = 6  # of one call, each as long as Slack asks for
_TOKEN_ERRORS: Final = frozenset(
    {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "not_allowed_token_type"}
    | {"user_removed_from_team", "team_access_not_granted"}
)
_RATE_LIMIT_ERRORS: Final = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_SERVER_ERRORS: Final = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})

# At detailed levels the libraries log the text of messages. What matters of it is logged here in our own words.
QUIET: Final = logging.getLogger("nexus.slack")
_CHANNELS: Final = ("channel", "channel_id")  # what calls name a channel by
QUIET.setLevel(logging.CRITICAL)


HIDDEN_CHANNEL: Final = "channel_not_found"  # Slack's error, also for a private channel that we are not in


async def _no_news() -> None:
    pass


class TokenRefused(Unavailable):
    """Slack does not accept the token: a person must install the app again, or set another token."""


class OutcomeUnknown(Unavailable):
    """Slack did not answer, or failed: the call may or may not have taken effect."""


class SlackRefused(Refused):
    """Slack refuses a call; `code` is its error code."""

    def __init__(self, method: str, code: str, needed: str = "") -> None:
        scope = f"Slack needs the scope {needed} for {method}: install the app again with docs/slack-manifest.yaml."
        super().__init__(scope if code == "missing_scope" else f"Slack refuses {method}: {code}.")
        self.code = code


class Slack:
    """The Web API of one workspace. `close` it at the end."""

    def __init__(
        self,
        token: str,
        base_url: str = SLACK_API,
        *,
        setting: str = "NEXUS_SLACK_BOT_TOKEN",
        report: Callable[[str], None],
        channel_id: Callable[[str], str] = lambda name: name,
        renew_ids: Callable[[], Awaitable[None]] = _no_news,
    ) -> None:
        """`setting` is where the token comes from; `report` gets a sentence when Slack stops accepting it. `channel_id`
        gives the present id of a channel, by the name under which it is stored (bot/slack/channels.py); `renew_ids`
        looks up what another process was told of that."""
        self._token = token
        self._base_url = base_url
        self._setting = setting
        self._report = report
        self._channel_id = channel_id
        self._renew_ids = renew_ids
        self._reported = ""
        self._session: aiohttp.ClientSession | None = None
        self.scopes: frozenset[str] = frozenset()  # of the token, as in the last response

    @property
    def origin(self) -> URL:
        """Scheme, host and port of the API."""
        return URL(self._base_url).origin()

    @property
    def session(self) -> aiohttp.ClientSession:
        """One session for all calls, so that connections are reused."""
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SLACK_SECONDS))
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, *, wait_for_limits: bool = True, **arguments: Any) -> dict[str, Any]:
        """The response to a call. `wait_for_limits`: when rate limited, wait as long as Slack asks for, and try again.

        Raises TokenRefused, OutcomeUnknown, Unavailable (rate limited) and SlackRefused, each with one sentence.
        """
        reported = self._reported
        return self._data(await self._send_known(method, wait_for_limits, arguments), reported)

    async def pages(self, method: str, **arguments: Any) -> AsyncIterator[dict[str, Any]]:
        """The pages of a paged response, fetched by slack_sdk's own cursor. Raises as `call`."""
        reported = self._reported
        pages = aiter(await self._send_known(method, True, arguments))
        while True:
            with self._translate_errors(method):
                page = await anext(pages, None)
            if page is None:
                return
            yield self._data(page, reported)
            reported = self._reported

    async def messages(self, method: str, **arguments: Any) -> list[dict[str, Any]]:
        """All messages of a paged response. Raises as `call`."""
        pages = self.pages(method, limit=MESSAGES_A_PAGE, **arguments)
        return [message async for page in pages for message in page["messages"]]

    async def download(self, url: str, max_bytes: int) -> bytes:
        """A private file. Raises OutcomeUnknown, and Refused if the file is larger or we may not have it: Slack then
        redirects to its login page."""
        try:
            status, content = await download(self.session, url, max_bytes, {"Authorization": f"Bearer {self._token}"})
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise OutcomeUnknown("Slack does not serve a file at the moment.") from error
        if status >= 500 or status == 429:
            raise OutcomeUnknown(f"Slack does not serve a file at the moment ({status}).")
        if status != OK:
            raise Refused(f"Slack does not serve a file ({status}).")
        if len(content) > max_bytes:
            raise Refused("The file is larger than Slack said.")
        return content

    async def _send_known(self, method: str, wait_for_limits: bool, arguments: dict[str, Any]) -> AsyncSlackResponse:
        """The response to a call, which is sent again if Slack does not know a channel that has another id by now."""
        before = self._present(arguments)
        try:
            with self._translate_errors(method):
                return await self._send(method, wait_for_limits, arguments)
        except SlackRefused as error:
            if error.code != HIDDEN_CHANNEL or not before:
                raise
            await self._renew_ids()
            if self._present(arguments) == before:
                raise
        with self._translate_errors(method):
            return await self._send(method, wait_for_limits, arguments)

    def _present(self, arguments: dict[str, Any]) -> dict[str, str]:
        """Those arguments that name a channel, with its present id."""
        return {name: self._channel_id(arguments[name]) for name in _CHANNELS if name in arguments}

    async def _send(self, method: str, wait_for_limits: bool, arguments: dict[str, Any]) -> AsyncSlackResponse:
        handlers = [AsyncRateLimitErrorRetryHandler(max_retry_count=MAX_RATE_LIMIT_WAITS)] if wait_for_limits else []
        # Never the library's default, which posts again after a broken connection, whether or not it had posted.
        web = AsyncWebClient(
            self._token, self._base_url, SLACK_SECONDS, session=self.session, retry_handlers=[*handlers], logger=QUIET
        )
        call = getattr(web, method.replace(".", "_"))
        response: AsyncSlackResponse = await call(**arguments | self._present(arguments))
        return response

    def _data(self, response: AsyncSlackResponse, reported: str) -> dict[str, Any]:
        """The data of a response. Also records that the token works, and its scopes. `reported` is what had been
        reported when the call began: one that began before the token was refused does not say that it works again."""
        if self._reported == reported:
            self._reported = ""
        self.scopes = frozenset(scope.strip() for scope in response.headers.get("x-oauth-scopes", "").split(","))
        assert isinstance(response.data, dict)
        return dict(response.data)

    @contextmanager
    def _translate_errors(self, method: str) -> Iterator[None]:
        try:
            yield
        except SlackApiError as error:
            raise self._translated(method, error) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise OutcomeUnknown(f"Slack does not answer {method}.") from error

    def _translated(self, method: str, error: SlackApiError) -> Unavailable | SlackRefused:
        response = error.response
        status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0))
        data = getattr(response, "data", None)
        code = str(data.get("error", "")) if isinstance(data, dict) else ""
        if code in _TOKEN_ERRORS:
            sentence = f"Slack refuses the token ({code}): install the app again, and set {self._setting} to its token."
            if sentence != self._reported:
                self._reported = sentence
                self._report(sentence)
            return TokenRefused(sentence)
        if status == 429 or code in _RATE_LIMIT_ERRORS:
            return Unavailable(f"Slack limits how often {method} may be called; try again later.")
        if not code or status >= 500 or code in _SERVER_ERRORS:
            return OutcomeUnknown(f"Slack failed at {method} ({code or status}).")
        return SlackRefused(method, code, str(data.get("needed", "")) if isinstance(data, dict) else "")

"""Slack's Web API with one token: every failure becomes one of our errors, and a bad token is told once."""

import logging
from collections.abc import Callable
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from bot.platform.download import OK, download
from composer.errors import Refused, Unavailable

SLACK: Final = "https://slack.com/api/"
TIMEOUT: Final = 15  # seconds
RATE_LIMITED: Final = 6  # times that one call waits as long as Slack tells it to
_TOKEN: Final = frozenset(
    {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "not_allowed_token_type"}
    | {"user_removed_from_team", "team_access_not_granted"}
)
_EPHEMERAL: Final = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_DOUBTFUL: Final = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})

# The libraries log what people said when they log in detail; what matters of it is logged here in our own words.
QUIET: Final = logging.getLogger("nexus.slack")
QUIET.setLevel(logging.CRITICAL)


class TokenRefused(Unavailable):
    """Slack does not take the token: someone must install the app again, or set another token."""


class Doubtful(Unavailable):
    """Slack did not answer, or with an error of its own: what was asked for may have been done."""


class SlackRefused(Refused):
    """Slack will not do it; `code` is its word for why."""

    def __init__(self, method: str, code: str, needed: str = "") -> None:
        wants = f"wants the scope {needed} for {method}: install the app again with docs/slack-manifest.yaml"
        super().__init__(f"Slack {wants}." if code == "missing_scope" else f"Slack refuses {method}: {code}.")
        self.code = code


class Slack:
    """The Web API of one workspace; `close` it."""

    def __init__(
        self, token: str, base_url: str = SLACK, *, setting: str = "NEXUS_SLACK_BOT_TOKEN", tell: Callable[[str], None]
    ) -> None:
        """`setting` is where the token comes from; `tell` gets a sentence when Slack stops taking it."""
        self._token = token
        self._base_url = base_url
        self._setting = setting
        self._tell = tell
        self._told = ""
        self._session: aiohttp.ClientSession | None = None
        self.scopes: frozenset[str] = frozenset()  # of the token, as the last answer told

    @property
    def origin(self) -> URL:
        """Where the API is: scheme, host and port."""
        return URL(self._base_url).origin()

    @property
    def session(self) -> aiohttp.ClientSession:
        """One session for all, so that connections are kept."""
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT))
        return self._session

    async def close(self) -> None:
        """Leave no connection."""
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, *, patient: bool = True, **arguments: Any) -> dict[str, Any]:
        """Call a method; `patient` waits as long as a rate limit says.

        Raises TokenRefused, Doubtful, Unavailable (rate limited) and SlackRefused, each with one sentence.
        """
        handlers = [AsyncRateLimitErrorRetryHandler(max_retry_count=RATE_LIMITED)] if patient else []
        # Never the library's default, which posts again after a broken connection, whether or not it had posted.
        web = AsyncWebClient(
            self._token, self._base_url, TIMEOUT, session=self.session, retry_handlers=[*handlers], logger=QUIET
        )
        try:
            answer = await getattr(web, method.replace(".", "_"))(**arguments)
        except SlackApiError as error:
            raise self._ours(method, error) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Doubtful(f"Slack does not answer to {method}.") from error
        self._told = ""
        self.scopes = frozenset(scope.strip() for scope in answer.headers.get("x-oauth-scopes", "").split(","))
        return dict(answer.data)

    async def download(self, url: str, most: int) -> bytes:
        """A private file of at most `most` bytes. Raises Doubtful, or Refused where we may not have it: Slack sends us
        to a page to log in then."""
        try:
            status, content = await download(self.session, url, most, {"Authorization": f"Bearer {self._token}"})
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Doubtful("Slack does not hand out a file now.") from error
        if status >= 500 or status == 429:
            raise Doubtful(f"Slack does not hand out a file now ({status}).")
        if status != OK:
            raise Refused(f"Slack does not hand out a file ({status}).")
        if len(content) > most:
            raise Refused("The file is longer than Slack said.")
        return content

    def _ours(self, method: str, error: SlackApiError) -> Unavailable | SlackRefused:
        answer = error.response
        status = int(getattr(answer, "status_code", 0) or getattr(answer, "status", 0))
        data = getattr(answer, "data", None)
        code = str(data.get("error", "")) if isinstance(data, dict) else ""
        if code in _TOKEN:
            sentence = f"Slack refuses the token ({code}): install the app again, and set {self._setting} to its token."
            if sentence != self._told:
                self._told = sentence
                self._tell(sentence)
            return TokenRefused(sentence)
        if status == 429 or code in _EPHEMERAL:
            return Unavailable(f"Slack limits how often {method} may be called; that passes.")
        if not code or status >= 500 or code in _DOUBTFUL:
            return Doubtful(f"Slack failed at {method} ({code or status}).")
        return SlackRefused(method, code, str(data.get("needed", "")) if isinstance(data, dict) else "")

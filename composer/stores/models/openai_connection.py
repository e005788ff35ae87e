"""A connection to an OpenAI-compatible API: retries within a total time, and one plain sentence for every failure."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from composer.errors import Misconfigured, NexusError, PromptTooLong, Unavailable
from composer.text.model_roles import names_alternation, names_system_role

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI
    from tenacity import RetryCallState

T = TypeVar("T")

MODEL_CONNECT_SECONDS = 5.0
MAX_REQUEST_ATTEMPTS = 3
INITIAL_BACKOFF_SECONDS = 0.5  # doubles with each attempt
PLACEHOLDER_KEY = "none"  # Local servers need no key, but without one the SDK looks into the environment.

_IDENTIFIER = re.compile(r"[\w.\-\[\]]{1,60}")
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|not a valid model|(unknown|invalid) model|model\b.{0,90}(not exist|not found)"
)
_IMAGE = re.compile(r"image_url|image input|images?\b.{0,40}not support|not support\w*.{0,40}\bimages?\b|multimodal")
_TOO_LONG = re.compile(r"context_length_exceeded|context (length|window|size)|maximum context|too many tokens")


NOT_SET_UP: Final = "The model that answers here is not set up as it should be: tell whoever runs Nexus."
PROMPT_TOO_LONG: Final = "This is too long for the model that answers here: write less, or tell whoever runs Nexus."
MODEL_UNREACHABLE: Final = "The model that answers here can't be reached now: try again in a while."
_FOR_ASKERS: Final = ((PromptTooLong, PROMPT_TOO_LONG), (Misconfigured, NOT_SET_UP))


class ServerReported(Exception):
    """A server has reported an error where its answer was to come. The text is the server's: it is never shown."""


@dataclass(frozen=True, slots=True)
class ApiSubject:
    """What an error sentence names: the server, the model, and the setting that names the model."""

    host: str
    model: str
    setting: str

    def error(self, kind: type[NexusError], happened: str, advice: str = "", *, told: str = "") -> NexusError:
        """An error whose sentence says what happened, as far as that helps who asks (`told`, where that is said another
        way). Only the one for the operator names the server, says what is set wrong, and has the `advice`."""
        operator = " ".join(part for part in (f"The model API at {self.host} {happened}", advice) if part)
        general = next((said for of, said in _FOR_ASKERS if issubclass(kind, of)), MODEL_UNREACHABLE if advice else "")
        return kind(told or general or f"The model API {happened}", operator=operator)


class OpenAIConnection:
    """A client of one server. It retries requests within a total time, and raises nothing but NexusErrors."""

    def __init__(self, base_url: str, api_key: str, timeout: float) -> None:
        address = urlsplit(base_url.strip())
        if address.scheme not in ("http", "https") or not address.hostname:
            raise Misconfigured("NEXUS_OPENAI_BASE_URL must be an address such as https://api.openai.com/v1.")
        self.host = address.netloc.rpartition("@")[2]
        key = api_key.strip()
        if not key.isascii() or not key.isprintable():
            raise Misconfigured("NEXUS_OPENAI_API_KEY holds a character that no key has; copy it again.")
        self.timeout = timeout
        self._base_url, self._key = base_url.strip(), key or PLACEHOLDER_KEY
        self._client: AsyncOpenAI | None = None

    @property
    def client(self) -> "AsyncOpenAI":
        """The SDK's client, created on first use: importing the SDK takes 0.3 s."""
        if self._client is None:
            import httpx2  # noqa: PLC0415
            from openai import AsyncOpenAI  # noqa: PLC0415

            for name in ("openai", "httpx2", "httpcore2"):  # Their debug logs contain prompts.
                logging.getLogger(name).setLevel(logging.WARNING)
            limits = httpx2.Timeout(self.timeout, connect=min(MODEL_CONNECT_SECONDS, self.timeout))
            client = AsyncOpenAI(base_url=self._base_url, api_key=self._key, timeout=limits, max_retries=0)
            # Read by the SDK from OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_ADMIN_KEY and
            # OPENAI_CUSTOM_HEADERS; only our settings may count. The last has no public switch.
            client.organization = client.project = client.admin_api_key = None
            client._custom_headers = {}
            self._client = client
        return self._client

    async def call(self, subject: ApiSubject, seconds: float, request: Callable[[], Awaitable[T]]) -> T:
        """Send a request and return its result. Transient failures are retried, within `seconds` altogether.

        Raises Unavailable or Misconfigured, with one sentence.
        """
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay  # noqa: PLC0415

        retrying = AsyncRetrying(
            stop=stop_after_attempt(MAX_REQUEST_ATTEMPTS) | stop_before_delay(seconds),
            wait=_retry_delay,
            retry=retry_if_exception(_is_transient),
            reraise=True,
        )
        try:
            async with asyncio.timeout(seconds):
                return await retrying(request)
        except Exception as error:  # The SDK also raises the errors of its parsers.
            raise to_nexus_error(error, subject, self.timeout) from error

    async def close(self) -> None:
        """Close the connections; a later request would open them again."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()


def _retry_delay(state: "RetryCallState") -> float:
    """Seconds until the next attempt: what the server asks for, else 0.5, 1, 2, ..."""
    from tenacity import wait_exponential  # noqa: PLC0415

    error = state.outcome.exception() if state.outcome else None
    response = getattr(error, "response", None)
    try:
        return max(0.0, float(response.headers["retry-after"]))  # type: ignore[union-attr]
    except (AttributeError, KeyError, ValueError):
        return float(wait_exponential(multiplier=INITIAL_BACKOFF_SECONDS)(state))


def _is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed in a moment."""
    from openai import APIConnectionError, APIStatusError  # noqa: PLC0415

    if isinstance(error, APIStatusError):
        if error.code == "insufficient_quota" or error.response.headers.get("x-should-retry") == "false":
            return False
        return error.status_code in (408, 409, 429) or (error.status_code >= 500 and not _names_roles(error))
    return isinstance(error, APIConnectionError)


def reason_of(error: Exception) -> str:
    """The server's reason for a refusal, to be searched and never shown: it may repeat the key or the prompt."""
    return f"{getattr(error, 'code', None) or ''} {getattr(error, 'param', None) or ''} {error}".lower()


def _names_roles(error: Exception) -> bool:
    reason = reason_of(error)
    return names_system_role(reason) or names_alternation(reason)


def to_nexus_error(error: Exception, subject: ApiSubject, timeout: float) -> NexusError:
    """The error for a failure: one plain sentence without any of the server's own text. A NexusError stays as it is."""
    from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError  # noqa: PLC0415

    if isinstance(error, NexusError):
        return error
    if isinstance(error, APIStatusError):
        return _refusal(error, subject)
    if isinstance(error, TimeoutError | APITimeoutError):
        return subject.error(Unavailable, f"did not answer with model {subject.model} within {timeout:g} seconds.")
    if isinstance(error, APIConnectionError):
        return subject.error(
            Unavailable,
            f"cannot be reached (model {subject.model}).",
            "Check NEXUS_OPENAI_BASE_URL and that it is running.",
        )
    if isinstance(error, APIError | ServerReported):  # reported inside a stream
        return subject.error(Unavailable, f"reported an error instead of an answer (model {subject.model}).")
    return subject.error(Unavailable, f"gave an answer for model {subject.model} that is not the OpenAI protocol.")


def _refusal(error: "APIStatusError", subject: ApiSubject) -> NexusError:
    status, reason, model = error.status_code, reason_of(error), subject.model
    if status == 401:
        return subject.error(Misconfigured, f"refused the key ({status}).", "Check NEXUS_OPENAI_API_KEY.")
    if status == 403:
        return subject.error(
            Misconfigured,
            f"does not let this key use model {model} ({status}).",
            f"Check NEXUS_OPENAI_API_KEY and {subject.setting}.",
        )
    if status == 402 or error.code == "insufficient_quota":
        return subject.error(Unavailable, f"says that the account's quota is used up ({status}, model {model}).")
    if status in (400, 404, 422) and _UNKNOWN_MODEL.search(reason):
        return subject.error(Misconfigured, f"does not know model {model} ({status}).", f"Check {subject.setting}.")
    if status in (404, 405):
        return subject.error(
            Misconfigured,
            f"has nothing at this address for model {model} ({status}).",
            f"Check NEXUS_OPENAI_BASE_URL, which mostly ends in /v1, and {subject.setting}.",
        )
    if status == 429:
        return subject.error(Unavailable, f"is limiting the rate of model {model} ({status}). Try again in a while.")
    if status >= 500 or status in (408, 409):
        return subject.error(Unavailable, f"has trouble with model {model} ({status}). Try again in a while.")
    if status in (400, 413) and (_TOO_LONG.search(reason) or status == 413):
        return subject.error(
            PromptTooLong,
            f"finds the prompt longer than model {model} takes ({status}).",
            "Give the agent a smaller window.",
        )
    if status in (400, 404, 415, 422) and _IMAGE.search(reason):
        return subject.error(
            Misconfigured,
            f"does not take images with model {model} ({status}).",
            "Set images = false for this agent.",
        )
    named = [part for part in (error.code, error.param) if part and _IDENTIFIER.fullmatch(part)]
    return subject.error(Misconfigured, f"refused the request for model {model} ({', '.join([str(status), *named])}).")

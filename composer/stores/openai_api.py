"""Chat and embeddings over any OpenAI-compatible API; every failure becomes one plain sentence."""

import asyncio
import base64
import logging
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from composer.errors import Misconfigured, NexusError, Unavailable
from composer.model import Agent, Usage
from composer.ports.models import ChatMessage, Chunk, Image, Vectors

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk
    from tenacity import RetryCallState

T = TypeVar("T")

CONNECT_SECONDS = 5.0
ATTEMPTS = 3
FIRST_PAUSE = 0.5  # seconds; doubles with each attempt
BATCH = 128  # texts of one embedding request; the API takes at most 2,048
MAX_BYTES = 8000  # of a text to embed: no byte-level tokenizer makes more than 8,191 tokens of it
KNOWN_WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
NO_KEY = "none"  # Local servers want no key, but the SDK wants something, or looks into the environment.

CUT_MARK = " [\u2026 cut at the longest answer allowed]"
FILTER_MARK = " [\u2026 cut by the provider's content filter]"

_IDENTIFIER = re.compile(r"[\w.\-\[\]]{1,60}")
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|not a valid model|(unknown|invalid) model|model\b.{0,90}(not exist|not found)"
)
_IMAGE = re.compile(r"image_url|image input|images?\b.{0,40}not support|not support\w*.{0,40}\bimages?\b|multimodal")
_TOO_LONG = re.compile(r"context_length_exceeded|context (length|window|size)|maximum context|too many tokens")


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a failure is told about: the server, the model, and the setting that names the model."""

    host: str
    model: str
    setting: str

    def __str__(self) -> str:
        return f"The model API at {self.host}"


class _Api:
    """One client of one server. Its requests are retried within a total time, and its errors are ours."""

    def __init__(self, base_url: str, api_key: str, timeout: float) -> None:
        address = urlsplit(base_url.strip())
        if address.scheme not in ("http", "https") or not address.hostname:
            raise Misconfigured("NEXUS_OPENAI_BASE_URL must be an address such as https://api.openai.com/v1.")
        self.host = address.netloc.rpartition("@")[2]
        key = api_key.strip()
        if not key.isascii() or not key.isprintable():
            raise Misconfigured("NEXUS_OPENAI_API_KEY holds a character that no key has; copy it again.")
        self.timeout = timeout
        self._base_url, self._key = base_url.strip(), key or NO_KEY
        self._opened: AsyncOpenAI | None = None

    @property
    def client(self) -> "AsyncOpenAI":
        """The SDK's client, made on first use: importing it costs 0.3 s."""
        if self._opened is None:
            import httpx2  # noqa: PLC0415
            from openai import AsyncOpenAI  # noqa: PLC0415

            for name in ("openai", "httpx2", "httpcore2"):  # Their debug logs hold prompts.
                logging.getLogger(name).setLevel(logging.WARNING)
            limits = httpx2.Timeout(self.timeout, connect=min(CONNECT_SECONDS, self.timeout))
            opened = AsyncOpenAI(base_url=self._base_url, api_key=self._key, timeout=limits, max_retries=0)
            # Read by the SDK from OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_ADMIN_KEY and
            # OPENAI_CUSTOM_HEADERS; only our settings may count. The last has no public switch.
            opened.organization = opened.project = opened.admin_api_key = None
            opened._custom_headers = {}
            self._opened = opened
        return self._opened

    async def call(self, subject: _Subject, seconds: float, request: Callable[[], Awaitable[T]]) -> T:
        """The request's result; passing failures are tried again, within `seconds` altogether."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay  # noqa: PLC0415

        retrying = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS) | stop_before_delay(seconds),
            wait=_pause,
            retry=retry_if_exception(_passing),
            reraise=True,
        )
        try:
            async with asyncio.timeout(seconds):
                return await retrying(request)
        except Exception as error:  # Besides its own errors the SDK lets those of its parsers through.
            raise _plain(error, subject, self.timeout) from error

    async def close(self) -> None:
        """Close the connections; a later request would open them again."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()


def _pause(state: "RetryCallState") -> float:
    """Seconds until the next attempt: what the server asked for, else 0.5, 1, 2, ..."""
    error = state.outcome.exception() if state.outcome else None
    response = getattr(error, "response", None)
    try:
        return max(0.0, float(response.headers["retry-after"])) if response is not None else _backoff(state)
    except (KeyError, ValueError):
        return _backoff(state)


def _backoff(state: "RetryCallState") -> float:
    return float(FIRST_PAUSE * 2 ** (state.attempt_number - 1))


def _passing(error: BaseException) -> bool:
    """Whether the same request may succeed in a moment."""
    from openai import APIConnectionError, APIStatusError  # noqa: PLC0415

    if isinstance(error, APIStatusError):
        if error.code == "insufficient_quota" or error.response.headers.get("x-should-retry") == "false":
            return False
        return error.status_code in (408, 409, 429) or (error.status_code >= 500 and not _names_system_role(error))
    return isinstance(error, APIConnectionError)


def _said(error: Exception) -> str:
    """What the server said about its refusal, for looking into only: it may echo the key or the prompt."""
    return f"{getattr(error, 'code', None) or ''} {getattr(error, 'param', None) or ''} {error}".lower()


def _names_system_role(error: Exception) -> bool:
    said = _said(error)
    return "system" in said and ("role" in said or "system message" in said or "support" in said)


def _plain(error: Exception, subject: _Subject, timeout: float) -> NexusError:
    """One plain sentence for a failure, without a word of the server's own."""
    from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError  # noqa: PLC0415

    if isinstance(error, NexusError):
        return error
    if isinstance(error, APIStatusError):
        return _refusal(error, subject)
    if isinstance(error, TimeoutError | APITimeoutError):
        return Unavailable(f"{subject} did not answer with model {subject.model} within {timeout:g} seconds.")
    if isinstance(error, APIConnectionError):
        return Unavailable(
            f"{subject} cannot be reached (model {subject.model}). Check NEXUS_OPENAI_BASE_URL and that it is running."
        )
    if isinstance(error, APIError):  # an error that came inside a stream
        return Unavailable(f"{subject} reported an error instead of an answer (model {subject.model}).")
    return Unavailable(f"{subject} gave an answer for model {subject.model} that is not the OpenAI protocol.")


def _refusal(error: "APIStatusError", subject: _Subject) -> NexusError:
    status, said, model = error.status_code, _said(error), subject.model
    if status == 401:
        return Misconfigured(f"{subject} refused the key ({status}). Check NEXUS_OPENAI_API_KEY.")
    if status == 403:
        return Misconfigured(
            f"{subject} does not let this key use model {model} ({status}). "
            f"Check NEXUS_OPENAI_API_KEY and {subject.setting}."
        )
    if status == 402 or error.code == "insufficient_quota":
        return Unavailable(f"{subject} says that the account's quota is used up ({status}, model {model}).")
    if status in (400, 404, 422) and _UNKNOWN_MODEL.search(said):
        return Misconfigured(f"{subject} does not know model {model} ({status}). Check {subject.setting}.")
    if status in (404, 405):
        return Misconfigured(
            f"{subject} has nothing at this address for model {model} ({status}). "
            f"Check NEXUS_OPENAI_BASE_URL, which mostly ends in /v1, and {subject.setting}."
        )
    if status == 429:
        return Unavailable(f"{subject} is limiting the rate of model {model} ({status}). Try again in a while.")
    if status >= 500 or status in (408, 409):
        return Unavailable(f"{subject} has trouble with model {model} ({status}). Try again in a while.")
    if status in (400, 413) and (_TOO_LONG.search(said) or status == 413):
        return Misconfigured(
            f"{subject} finds the prompt longer than model {model} takes ({status}). Give the agent a smaller window."
        )
    if status in (400, 404, 415, 422) and _IMAGE.search(said):
        return Misconfigured(
            f"{subject} does not take images with model {model} ({status}). Set images = false for this agent."
        )
    named = [part for part in (error.code, error.param) if part and _IDENTIFIER.fullmatch(part)]
    return Misconfigured(f"{subject} refused the request for model {model} ({', '.join([str(status), *named])}).")


@dataclass(frozen=True, slots=True)
class _Quirks:
    """What a model's server refused so far, and is therefore not sent again."""

    system_role: bool = False
    repeated_roles: bool = False
    usage_option: bool = False
    completion_limit: bool = False

    def after(self, error: "APIStatusError", sent: "Sequence[ChatMessage]") -> "_Quirks":
        """With what this refusal names; the same quirks if it names nothing that can be left out."""
        said = _said(error)
        if error.status_code in (400, 422) and ("stream_options" in said or "include_usage" in said):
            return replace(self, usage_option=True)
        if error.status_code in (400, 422) and "max_completion_tokens" in said:
            return replace(self, completion_limit=True)
        if error.status_code not in (400, 422, 500):  # llama.cpp and vLLM answer 500 when a template refuses.
            return self
        if any(message.role == "system" for message in sent) and _names_system_role(error):
            return replace(self, system_role=True)
        if "alternate" in said:
            return replace(self, repeated_roles=True)
        return self

    def applied(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """The messages as this model takes them."""
        sent = [replace(m, role="user") if self.system_role and m.role == "system" else m for m in messages]
        if not self.repeated_roles:
            return sent
        merged: list[ChatMessage] = []
        for message in sent:
            if merged and merged[-1].role == message.role:
                before = merged.pop()
                both = before.images + message.images
                message = ChatMessage(message.role, f"{before.content}\n\n{message.content}", both)
            merged.append(message)
        return merged


class OpenAIChat:
    """A chat model at an OpenAI-compatible API; which model is each agent's own setting.

    A server that refuses the system role, repeated roles, `stream_options` or `max_completion_tokens`
    gets the request without it, and this is remembered for the model as long as this object lives.
    """

    def __init__(self, base_url: str, api_key: str, timeout: float = 120.0) -> None:
        """`timeout` is for the whole answer, in seconds. Raises Misconfigured for a base URL or key that cannot be."""
        self._api = _Api(base_url, api_key, timeout)
        self._quirks: defaultdict[str, _Quirks] = defaultdict(_Quirks)

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """The answer, piece by piece; the last chunk carries the usage.

        Requests that fail in passing are sent again until text has arrived, never after. Raises Unavailable
        or Misconfigured with one sentence; also for an answer that is empty or breaks off. An answer that
        ends at `agent.reply_tokens` carries a visible mark.
        """
        subject = _Subject(self._api.host, agent.model, "NEXUS_MODEL")
        loop = asyncio.get_running_loop()
        started = loop.time()
        opened = await self._opened(subject, agent, messages)
        left = self._api.timeout - (loop.time() - started)
        answer = _Answer()
        try:
            chunks = aiter(opened)
            while True:
                started = loop.time()  # Only waiting for the model counts, not what the caller does with a chunk.
                try:
                    async with asyncio.timeout(left):
                        chunk = await anext(chunks)
                    text = answer.take(chunk)
                except StopAsyncIteration:
                    break
                except Exception as error:
                    raise answer.broken_off(subject, error, self._api.timeout) from error
                left -= loop.time() - started
                if text:
                    yield Chunk(text=text)
        finally:
            await opened.close()
        yield answer.ending(subject, agent)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def _opened(
        self, subject: _Subject, agent: Agent, messages: Sequence[ChatMessage]
    ) -> "AsyncStream[ChatCompletionChunk]":
        """The stream after its headers, with what the server refuses left out."""
        given = list(messages)
        if not agent.system_role:
            given = _Quirks(system_role=True).applied(given)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._api.timeout
        while True:
            quirks = self._quirks[agent.model]
            sent = quirks.applied(given)
            try:
                return await self._api.call(subject, deadline - loop.time(), partial(self._ask, agent, sent, quirks))
            except NexusError as error:
                cause = error.__cause__
                learnt = quirks.after(cause, sent) if _is_refusal(cause) else quirks
                if learnt == quirks:
                    raise
                self._quirks[agent.model] = learnt

    async def _ask(
        self, agent: Agent, messages: Sequence[ChatMessage], quirks: _Quirks
    ) -> "AsyncStream[ChatCompletionChunk]":
        options: dict[str, Any] = {} if quirks.usage_option else {"stream_options": {"include_usage": True}}
        options["max_tokens" if quirks.completion_limit else "max_completion_tokens"] = agent.reply_tokens
        sent: Any = [{"role": message.role, "content": _content(message)} for message in messages]
        opened: AsyncStream[ChatCompletionChunk] = await self._api.client.chat.completions.create(
            model=agent.model, messages=sent, stream=True, **options
        )
        return opened


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    """Text alone as a string, which every server takes; with images as parts, each image as a data URL."""
    if not message.images:
        return message.content
    return [{"type": "text", "text": message.content}, *map(_image_part, message.images)]


def _image_part(image: Image) -> dict[str, Any]:
    encoded = base64.b64encode(image.content).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.type};base64,{encoded}"}}


def _is_refusal(error: BaseException | None) -> "TypeGuard[APIStatusError]":
    from openai import APIStatusError  # noqa: PLC0415

    return isinstance(error, APIStatusError)


class _Answer:
    """What has come of one answer so far, and whether that is all of it."""

    def __init__(self) -> None:
        self._any_text = False
        self._finish = ""
        self._usage = Usage()

    def take(self, chunk: "ChatCompletionChunk") -> str:
        """The text of a chunk, which other servers fill less carefully than its type says."""
        if chunk.usage is not None:
            details = chunk.usage.prompt_tokens_details
            self._usage = Usage(
                prompt_tokens=chunk.usage.prompt_tokens or 0,
                completion_tokens=chunk.usage.completion_tokens or 0,
                cached_tokens=(details.cached_tokens or 0) if details else 0,
            )
        text = ""
        for choice in (chunk.choices or [])[:1]:
            text = (choice.delta.content or choice.delta.refusal or "") if choice.delta else ""
            self._finish = choice.finish_reason or self._finish
        self._any_text = self._any_text or bool(text.strip())
        return text

    def broken_off(self, subject: _Subject, error: Exception, timeout: float) -> NexusError:
        """The sentence for a stream that failed before its end."""
        if not self._any_text:
            return _plain(error, subject, timeout)
        if isinstance(error, TimeoutError):
            return Unavailable(f"{subject} broke off its answer after {timeout:g} seconds (model {subject.model}).")
        return Unavailable(f"{subject} broke off in the middle of its answer (model {subject.model}).")

    def ending(self, subject: _Subject, agent: Agent) -> Chunk:
        """The last chunk of a complete answer; raises Unavailable for one that is not."""
        if not self._any_text:
            if self._finish == "length":
                raise Unavailable(
                    f"{subject} spent all {agent.reply_tokens} tokens of the answer without a word of it "
                    f"(model {subject.model}). Give the agent more reply tokens."
                )
            if self._finish == "content_filter":
                raise Unavailable(f"{subject} withheld the answer by its content filter (model {subject.model}).")
            raise Unavailable(f"{subject} gave an empty answer (model {subject.model}).")
        if not self._finish:
            raise Unavailable(f"{subject} broke off in the middle of its answer (model {subject.model}).")
        mark = {"length": CUT_MARK, "content_filter": FILTER_MARK}.get(self._finish, "")
        return Chunk(text=mark, usage=self._usage)


class OpenAIEmbedder:
    """An embedding model at an OpenAI-compatible API. Each text is cut at 8,000 bytes."""

    def __init__(
        self, base_url: str, api_key: str, model: str, width: int | None = None, timeout: float = 30.0
    ) -> None:
        """`width` is asked of the server by `load` if neither given nor known; `timeout` is per request, in seconds."""
        self._api = _Api(base_url, api_key, timeout)
        self._model = model
        self._width = width or KNOWN_WIDTHS.get(model.rsplit("/", 1)[-1])
        self._subject = _Subject(self._api.host, model, "NEXUS_EMBEDDER")

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def width(self) -> int:
        """Dimensions of a vector. Raises Misconfigured before `load`, for a model that is not well known."""
        if self._width is None:
            raise Misconfigured(f"The width of {self._model} is not known yet: load the embedder first.")
        return self._width

    async def load(self) -> None:
        """Learn the width, by embedding one word, unless it is known. Raises as `embed`."""
        if self._width is None:
            self._width = len((await self._answered(["width"]))[0])

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), width), float32, L2 norm 1, in the order of `texts`.

        Raises Unavailable when the server does not answer, or not with usable vectors; Misconfigured when
        it refuses the key or the model, or when its vectors have another width than this embedder.
        """
        await self.load()
        parts = [np.empty((0, self.width), dtype=np.float32)]
        for start in range(0, len(texts), BATCH):
            parts.append(await self._answered([_embeddable(text) for text in texts[start : start + BATCH]]))
        return np.concatenate(parts)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def _answered(self, inputs: list[str]) -> Vectors:
        # "float" rather than the SDK's base64, which not every server speaks.
        vectors = await self._api.call(self._subject, self._api.timeout, partial(self._ask, inputs))
        if self._width is not None and vectors.shape[1] != self._width:
            raise Misconfigured(
                f"{self._subject} gives vectors of {vectors.shape[1]} dimensions with model {self._model}, "
                f"not {self._width}. Check NEXUS_EMBEDDER."
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.all(np.isfinite(norms)) or not np.all(norms > 0):
            raise Unavailable(f"{self._subject} gave a vector without a direction (model {self._model}).")
        return np.asarray(vectors / norms, dtype=np.float32)

    async def _ask(self, inputs: list[str]) -> NDArray[np.float64]:
        answer = await self._api.client.embeddings.create(model=self._model, input=inputs, encoding_format="float")
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(inputs))):
            raise ValueError("an answer with other rows than the request")
        vectors = np.asarray([row.embedding for row in rows], dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise ValueError("an answer without vectors")
        return vectors


def _embeddable(text: str) -> str:
    """What the API takes of a text: not nothing, no lone surrogate, not too long."""
    return text.encode("utf-8", "replace")[:MAX_BYTES].decode("utf-8", "ignore").strip() or "-"

"""Chat models at an OpenAI-compatible API, streamed, also from servers that refuse parts of the protocol."""

import asyncio
import base64
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from composer.errors import NexusError, Unavailable
from composer.model import Agent, Usage
from composer.ports.models import ChatMessage, Chunk, Image
from composer.stores.openai_connection import ApiSubject, OpenAIConnection, names_system_role, reason_of, to_nexus_error

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncStream
    from openai.types.chat import ChatCompletionChunk

MODEL = "NEXUS_MODEL"
LENGTH_NOTE = " [\u2026 cut at the agent's limit of reply_tokens]"
REASONING_ROOMS = (0, 4_096, 16_384)  # tokens for hidden reasoning, each tried when the one before was used up
FILTER_NOTE = " [\u2026 cut by the provider's content filter]"


@dataclass(frozen=True, slots=True)
class _Quirks:
    """What a model's server has refused, and is therefore not sent again; and how much room its model needs to reason
    (an index of REASONING_ROOMS)."""

    system_role: bool = False
    repeated_roles: bool = False
    usage_option: bool = False
    completion_limit: bool = False
    no_effort: bool = False
    reasoning: int = 0

    def after(self, error: "APIStatusError", sent: "Sequence[ChatMessage]") -> "_Quirks":
        """These quirks and what a refusal names; the same quirks if it names nothing that can be left out."""
        reason = reason_of(error)
        if error.status_code in (400, 422) and ("stream_options" in reason or "include_usage" in reason):
            return replace(self, usage_option=True)
        if error.status_code in (400, 422) and "max_completion_tokens" in reason:
            return replace(self, completion_limit=True)
        if error.status_code in (400, 422) and "reasoning_effort" in reason:
            return replace(self, no_effort=True)
        if error.status_code not in (400, 422, 500):  # llama.cpp and vLLM answer 500 when a template refuses.
            return self
        if any(message.role == "system" for message in sent) and names_system_role(error):
            return replace(self, system_role=True)
        if "alternate" in reason:
            return replace(self, repeated_roles=True)
        return self

    def applied(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """The messages as this model accepts them."""
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
    """Chat models at an OpenAI-compatible API; each agent names its model.

    A server that refuses the system role, repeated roles, `stream_options` or `max_completion_tokens` gets the request
    without it. This object remembers that for the model.
    """

    def __init__(
        self, base_url: str, api_key: str, timeout: float = 120.0, setting_of: Callable[[str], str] = lambda _: MODEL
    ) -> None:
        """`timeout` is for the whole answer, in seconds. `setting_of` gives the setting that names a model, for errors.
        Raises Misconfigured for an impossible base URL or key."""
        self._connection, self._setting_of = OpenAIConnection(base_url, api_key, timeout), setting_of
        self._quirks: defaultdict[str, _Quirks] = defaultdict(_Quirks)

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """Stream the answer in chunks; the last ones carry the usage, one for each request that was made.

        Transient failures are retried until text has arrived, never after. Raises Unavailable or Misconfigured with one
        sentence, also for an answer that is empty or incomplete. An answer that is cut at `agent.reply_tokens` ends
        with a note. A model that spends them all on hidden reasoning is asked again, with more room, and is given that
        room from then on.
        """
        subject = ApiSubject(self._connection.host, agent.model, self._setting_of(agent.model))
        while True:
            limit = agent.reply_tokens + self._room(agent)
            answer = _AnswerReader()
            async with aclosing(self._streamed(subject, agent, messages, limit, answer)) as texts:
                async for text in texts:
                    yield Chunk(text=text)
            if answer.reasoned or answer.ran_out:
                self._learn_reasoning(agent.model, more=answer.ran_out)
            if answer.ran_out and agent.reply_tokens + self._room(agent) > limit:
                yield Chunk(usage=answer.usage)
                continue
            if (error := answer.failure(subject, limit)) is not None:
                yield Chunk(usage=answer.usage)
                raise error
            yield Chunk(text=answer.note, usage=answer.usage)
            return

    async def _streamed(
        self, subject: ApiSubject, agent: Agent, messages: Sequence[ChatMessage], limit: int, answer: "_AnswerReader"
    ) -> AsyncGenerator[str, None]:
        """The texts of one request's answer, which `answer` reads."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        stream = await self._open_stream(subject, agent, messages, limit)
        remaining = self._connection.timeout - (loop.time() - started)
        try:
            chunks = aiter(stream)
            while True:
                started = loop.time()  # Only waiting for the model counts, not the caller's work on a chunk.
                try:
                    async with asyncio.timeout(remaining):
                        chunk = await anext(chunks)
                    text = answer.add(chunk)
                except StopAsyncIteration:
                    break
                except Exception as error:
                    raise answer.interrupted(subject, error, self._connection.timeout) from error
                remaining -= loop.time() - started
                if text:
                    yield text
        finally:
            await stream.close()

    def _room(self, agent: Agent) -> int:
        """Tokens for hidden reasoning, besides those of the reply; at most half of the window."""
        return min(REASONING_ROOMS[self._quirks[agent.model].reasoning], agent.window // 2)

    def _learn_reasoning(self, model: str, *, more: bool) -> None:
        """Remember that a model reasons before it answers, or that it needs more room for that."""
        quirks = self._quirks[model]
        level = quirks.reasoning + 1 if more else max(quirks.reasoning, 1)
        self._quirks[model] = replace(quirks, reasoning=min(level, len(REASONING_ROOMS) - 1))

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def _open_stream(
        self, subject: ApiSubject, agent: Agent, messages: Sequence[ChatMessage], limit: int
    ) -> "AsyncStream[ChatCompletionChunk]":
        """The stream after its headers. The request is repeated without what the server refuses."""
        original = list(messages)
        if not agent.system_role:
            original = _Quirks(system_role=True).applied(original)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connection.timeout
        while True:
            quirks = self._quirks[agent.model]
            sent = quirks.applied(original)
            try:
                return await self._connection.call(
                    subject, deadline - loop.time(), partial(self._request, agent, sent, quirks, limit)
                )
            except NexusError as error:
                cause = error.__cause__
                learned = quirks.after(cause, sent) if _is_refusal(cause) else quirks
                if learned == quirks:
                    raise
                self._quirks[agent.model] = learned

    async def _request(
        self, agent: Agent, messages: Sequence[ChatMessage], quirks: _Quirks, limit: int
    ) -> "AsyncStream[ChatCompletionChunk]":
        options: dict[str, Any] = {} if quirks.usage_option else {"stream_options": {"include_usage": True}}
        options["max_tokens" if quirks.completion_limit else "max_completion_tokens"] = limit
        if agent.reasoning_effort and not quirks.no_effort:
            options["reasoning_effort"] = agent.reasoning_effort
        sent: Any = [{"role": message.role, "content": _content(message)} for message in messages]
        stream: AsyncStream[ChatCompletionChunk] = await self._connection.client.chat.completions.create(
            model=agent.model, messages=sent, stream=True, **options
        )
        return stream


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    """The text as a string, which every server accepts; with images as parts, each image as a data URL."""
    if not message.images:
        return message.content
    return [{"type": "text", "text": message.content}, *map(_image_part, message.images)]


def _image_part(image: Image) -> dict[str, Any]:
    encoded = base64.b64encode(image.content).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.type};base64,{encoded}"}}


def _is_refusal(error: BaseException | None) -> "TypeGuard[APIStatusError]":
    from openai import APIStatusError  # noqa: PLC0415

    return isinstance(error, APIStatusError)


class _AnswerReader:
    """Collects the chunks of one answer, and decides whether it is complete."""

    def __init__(self) -> None:
        self._any_text = False
        self._finish = ""
        self.usage = Usage()
        self.reasoned = False  # the model has reasoned before it answered

    def add(self, chunk: "ChatCompletionChunk") -> str:
        """Add a chunk and return its text. Many servers leave out fields that the SDK's type requires."""
        if chunk.usage is not None:
            details = chunk.usage.prompt_tokens_details
            hidden = chunk.usage.completion_tokens_details
            self.reasoned = self.reasoned or bool(hidden and hidden.reasoning_tokens)
            self.usage = Usage(
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

    def interrupted(self, subject: ApiSubject, error: Exception, timeout: float) -> NexusError:
        """The error for a stream that failed before its end."""
        if not self._any_text:
            return to_nexus_error(error, subject, timeout)
        if isinstance(error, TimeoutError):
            return subject.error(
                Unavailable, f"broke off its answer after {timeout:g} seconds (model {subject.model})."
            )
        return subject.error(Unavailable, f"broke off in the middle of its answer (model {subject.model}).")

    @property
    def ran_out(self) -> bool:
        """Whether all tokens of the answer were spent before any text."""
        return not self._any_text and self._finish == "length"

    @property
    def note(self) -> str:
        """What to say at the end of an answer that was cut."""
        return {"length": LENGTH_NOTE, "content_filter": FILTER_NOTE}.get(self._finish, "")

    def failure(self, subject: ApiSubject, limit: int) -> NexusError | None:
        """The error for an answer that is empty or incomplete, when its stream has ended."""
        if self.ran_out:
            return subject.error(
                Unavailable,
                f"spent all {limit:,} tokens of the answer on hidden reasoning, without writing any text "
                f"(model {subject.model}). Give the agent more reply_tokens, or a lower reasoning_effort.",
            )
        if not self._any_text and self._finish == "content_filter":
            return subject.error(
                Unavailable, f"withheld the answer by its content filter (model {subject.model}). Ask in other words."
            )
        if not self._any_text:
            return subject.error(Unavailable, f"gave an empty answer (model {subject.model}). Ask again.")
        if not self._finish:
            return subject.error(Unavailable, f"broke off in the middle of its answer (model {subject.model}).")
        return None

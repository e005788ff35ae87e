"""Chat models at an OpenAI-compatible API, streamed, also from servers that refuse parts of the protocol."""

import asyncio
import base64
import json
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import structlog

from composer.errors import EmptyAnswer, NexusError, PromptTooLong, Unavailable
from composer.model import Agent, Usage
from composer.ports.models import ChatMessage, Chunk, Image, Tool, ToolCall
from composer.stores.models.openai_connection import (
    ApiSubject,
    OpenAIConnection,
    names_system_role,
    reason_of,
    to_nexus_error,
)
from composer.text.cleaning import clean_text, storable

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncStream
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

MODEL = "NEXUS_MODEL"
LENGTH_NOTE = " [\u2026 cut at the longest answer of this agent]"
REASONING_ROOMS = (0, 4_096, 16_384)  # tokens for hidden reasoning, each tried when the one before was used up
FILTER_NOTE = " [\u2026 cut by the provider's content filter]"
RETURNED: Final = "A function that you called returned:"
_NO_TOOLS: Final = re.compile(r"\btools?\b|\btool[_ -](?:use|call|choice)|\bfunctions?\b|\bfunction[_ -]call")

logger = structlog.get_logger()


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
    no_tools: bool = False
    no_calls: bool = False  # in the history: calls that were made before, and their results

    def after(self, error: "APIStatusError", sent: "Sequence[ChatMessage]", *, tools: bool = False) -> "_Quirks":
        """These quirks and what a refusal names; the same quirks if it names nothing that can be left out. `tools`: the
        request offered some."""
        reason = reason_of(error)
        too_long = "context" in reason or "length" in reason  # which counts the tokens "in the functions"
        if error.status_code in (400, 422, 500) and any(m.role == "tool" for m in sent) and not too_long:
            return replace(self, no_calls=True)
        if tools and error.status_code in (400, 404, 422, 500, 501) and _NO_TOOLS.search(reason) and not too_long:
            return replace(self, no_tools=True)
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
        if self.no_tools or self.no_calls:
            sent = [_without_calls(message) for message in sent if message.content]
        if not self.repeated_roles:
            return sent
        merged: list[ChatMessage] = []
        for message in sent:
            if merged and merged[-1].role == message.role and message.role != "tool" and not message.calls:
                before = merged.pop()
                both = before.images + message.images
                message = ChatMessage(message.role, f"{before.content}\n\n{message.content}", both)
            merged.append(message)
        return merged


def _without_calls(message: ChatMessage) -> ChatMessage:
    """What was called before, and what it returned, as plain text."""
    if message.role == "tool":
        return ChatMessage("user", f"{RETURNED}\n{message.content}")
    return replace(message, calls=())


class OpenAIChat:
    """Chat models at an OpenAI-compatible API; each agent names its model.

    A server that refuses the system role, repeated roles, `stream_options`, `max_completion_tokens`, functions or calls
    that were made before gets the request without it. This object remembers that for the model.
    """

    def __init__(
        self, base_url: str, api_key: str, timeout: float = 120.0, setting_of: Callable[[str], str] = lambda _: MODEL
    ) -> None:
        """`timeout` is for the whole answer, in seconds. `setting_of` gives the setting that names a model, for errors.
        Raises Misconfigured for an impossible base URL or key."""
        self._connection, self._setting_of = OpenAIConnection(base_url, api_key, timeout), setting_of
        self._quirks: defaultdict[str, _Quirks] = defaultdict(_Quirks)
        self._took_tools: set[str] = set()  # models that have answered a request with tools
        self._refused_tools: defaultdict[str, frozenset[Tool]] = defaultdict(frozenset)  # of servers, by model

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """Stream the answer in chunks; the last ones carry the usage, one for each request that was made.

        Transient failures are retried until text has arrived, never after. Raises Unavailable or Misconfigured with one
        sentence, also for an answer that is empty or incomplete. An answer that is cut at `agent.reply_tokens` ends
        with a note. A model that spends them all on hidden reasoning is asked again, with more room, and is given that
        room from then on.
        """
        async for chunk in self.stream_with_tools(agent, messages, ()):
            yield chunk

    def takes_tools(self, agent: Agent) -> bool:
        """Whether the agent's model can call functions: until its server has refused them."""
        return not self._quirks[agent.model].no_tools

    async def stream_with_tools(
        self, agent: Agent, messages: Sequence[ChatMessage], tools: Sequence[Tool]
    ) -> AsyncGenerator[Chunk, None]:
        """As `stream`; the last chunk may hold calls of `tools`. A server that refuses them gets the request without,
        and is not offered any again for this model."""
        subject = ApiSubject(self._connection.host, agent.model, self._setting_of(agent.model))
        while True:
            limit = agent.reply_tokens + self._room(agent)
            answer = _AnswerReader(offered=bool(tools))
            async with aclosing(self._streamed(subject, agent, messages, tools, limit, answer)) as texts:
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
            yield Chunk(text="" if answer.calls else answer.note, usage=answer.usage, calls=answer.calls)
            return

    async def _streamed(
        self,
        subject: ApiSubject,
        agent: Agent,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool],
        limit: int,
        answer: "_AnswerReader",
    ) -> AsyncGenerator[str, None]:
        """The texts of one request's answer, which `answer` reads."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        stream = await self._open_stream(subject, agent, messages, tools, limit)
        remaining = self._connection.timeout - (loop.time() - started)
        try:
            chunks = aiter(stream)
            while True:
                started = loop.time()  # Only waiting for the model counts, not the caller's work on a chunk.
                try:
                    async with asyncio.timeout(remaining):
                        chunk = await anext(chunks)
                    text = storable(answer.add(chunk))
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
        self, subject: ApiSubject, agent: Agent, messages: Sequence[ChatMessage], tools: Sequence[Tool], limit: int
    ) -> "AsyncStream[ChatCompletionChunk]":
        """The stream after its headers. The request is repeated without what the server refuses."""
        original = list(messages)
        if not agent.system_role:
            original = _Quirks(system_role=True).applied(original)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connection.timeout
        tools = [tool for tool in tools if tool not in self._refused_tools[agent.model]]
        left_out: Sequence[Tool] = ()
        while True:
            quirks = self._quirks[agent.model]
            sent = quirks.applied(original)
            try:
                stream = await self._connection.call(
                    subject, deadline - loop.time(), partial(self._request, agent, sent, tools, quirks, limit)
                )
            except NexusError as error:
                cause = error.__cause__
                offered = bool(tools) and not quirks.no_tools
                learned = quirks.after(cause, sent, tools=offered) if _is_refusal(cause) else quirks
                if (learned == quirks or learned.no_tools) and _may_be_of_servers(error, tools if offered else ()):
                    left_out = [tool for tool in tools if tool.parameters]
                    tools = [tool for tool in tools if not tool.parameters]
                    continue
                if learned == quirks:
                    raise
                if learned.no_tools and not quirks.no_tools:
                    if agent.model in self._took_tools:  # it can call functions; what it refuses is this request
                        tools = ()
                        continue
                    logger.warning("model.refuses_tools", model=agent.model)
                self._quirks[agent.model] = learned
            else:
                if tools and not quirks.no_tools:
                    self._took_tools.add(agent.model)
                if left_out:  # so it was one of them; others of the same names are tried again
                    logger.warning("model.refuses_server_tools", model=agent.model, tools=[t.name for t in left_out])
                    self._refused_tools[agent.model] = frozenset(left_out)
                return stream

    async def _request(
        self, agent: Agent, messages: Sequence[ChatMessage], tools: Sequence[Tool], quirks: _Quirks, limit: int
    ) -> "AsyncStream[ChatCompletionChunk]":
        options: dict[str, Any] = {} if quirks.usage_option else {"stream_options": {"include_usage": True}}
        options["max_tokens" if quirks.completion_limit else "max_completion_tokens"] = limit
        if agent.reasoning_effort and not quirks.no_effort:
            options["reasoning_effort"] = agent.reasoning_effort
        # The client compares each part of these with every type of message and tool that there is, and changes nothing:
        # 4 to 6 ms of the event loop for twelve messages and six tools. `extra_body` takes the place of the empty lists
        # as it is.
        written: dict[str, Any] = {"messages": [_wire_message(message) for message in messages]}
        if tools and not quirks.no_tools:
            written["tools"], options["tools"] = [_function(tool) for tool in tools], []
        stream: AsyncStream[ChatCompletionChunk] = await self._connection.client.chat.completions.create(
            model=agent.model, messages=[], stream=True, extra_body=written, **options
        )
        return stream


def _wire_message(message: ChatMessage) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.calls and not message.content:  # some servers refuse an empty text
        sent["content"] = None
    if message.role == "tool":
        sent["tool_call_id"] = message.call_id
    if message.calls:
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return sent


def _function(tool: Tool) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": words} for name, words in tool.arguments}
    required = [name for name, _ in tool.arguments if name not in tool.optional]
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if tool.parameters:
        parameters = json.loads(tool.parameters)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    """The text as a string, which every server accepts; with images as parts, each image as a data URL."""
    if not message.images:
        return message.content
    return [{"type": "text", "text": message.content}, *map(_image_part, message.images)]


def _image_part(image: Image) -> dict[str, Any]:
    encoded = base64.b64encode(image.content).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.type};base64,{encoded}"}}


def _may_be_of_servers(error: NexusError, tools: Sequence[Tool]) -> bool:
    """Whether a refusal may be of tools of servers, whose schemas are not ours."""
    cause = error.__cause__
    refused = _is_refusal(cause) and cause.status_code in (400, 422, 500) and not isinstance(error, PromptTooLong)
    return refused and any(tool.parameters for tool in tools)


def _is_refusal(error: BaseException | None) -> "TypeGuard[APIStatusError]":
    from openai import APIStatusError  # noqa: PLC0415

    return isinstance(error, APIStatusError)


@dataclass(slots=True)
class _StreamedCall:
    """A call while its parts come in, with the server's index of it."""

    index: int
    id: str
    name: str = ""
    arguments: str = ""


class _AnswerReader:
    """Collects the chunks of one answer, and decides whether it is complete. Calls count if tools were `offered`."""

    def __init__(self, *, offered: bool) -> None:
        self._offered = offered
        self._any_text = False
        self._finish = ""
        self._calls: list[_StreamedCall] = []
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
            for part in (choice.delta.tool_calls or []) if choice.delta else []:
                self._add_call(part)
        self._any_text = self._any_text or bool(text.strip())
        return text

    def _add_call(self, part: "ChoiceDeltaToolCall") -> None:
        """Add a part of a call. It belongs to the last call of its index, unless it has an id of its own: some servers
        give all calls one index, or none."""
        index, known = part.index or 0, reversed(self._calls)
        call = next((each for each in known if each.index == index and part.id in (None, "", each.id)), None)
        if call is None:
            call = _StreamedCall(index, clean_text(part.id or ""))
            self._calls.append(call)
        if part.function is not None:
            call.name = call.name or clean_text(part.function.name or "")
            call.arguments += part.function.arguments or ""

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
    def calls(self) -> tuple[ToolCall, ...]:
        """The functions that the model calls, when its stream has ended."""
        found = self._calls if self._offered else ()
        return tuple(ToolCall(call.id, call.name, clean_text(call.arguments)) for call in found if call.name)

    @property
    def ran_out(self) -> bool:
        """Whether all tokens of the answer were spent before any text."""
        return not self._any_text and not self.calls and self._finish == "length"

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
                f"(model {subject.model}).",
                "Give the agent more reply_tokens, or a lower reasoning_effort.",
                told="The model thought for so long that nothing was left of its answer: ask for less, or ask again.",
            )
        if not self._any_text and self._finish == "content_filter":
            return subject.error(
                Unavailable, f"withheld the answer by its content filter (model {subject.model}). Ask in other words."
            )
        if not self._any_text and not self.calls:
            empty = f"gave an empty answer (model {subject.model})."
            if self._finish:
                return subject.error(EmptyAnswer, f"{empty} Ask again.")
            return subject.error(  # not even an end: whatever answers there, it may be no model API
                EmptyAnswer,
                empty,
                "Ask again; if it goes on, check NEXUS_OPENAI_BASE_URL, which mostly ends in /v1.",
                told=f"The model API {empty} Ask again.",
            )
        if not self._finish:
            return subject.error(Unavailable, f"broke off in the middle of its answer (model {subject.model}).")
        return None

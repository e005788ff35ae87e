"""Chat models at an OpenAI-compatible API, streamed, also from servers that refuse parts of the protocol."""

import asyncio
import base64
import json
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
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
    ServerReported,
    reason_of,
    to_nexus_error,
)
from composer.text.answer_text import AnswerText
from composer.text.cleaning import clean_text, storable
from composer.text.completions import CallPart, CompletionDecoder, read_completion
from composer.text.model_roles import known_needs, names_alternation, names_system_role

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError

MODEL = "NEXUS_MODEL"
LENGTH_NOTE = " [\u2026 cut at the longest answer of this agent]"
REASONING_ROOMS = (0, 4_096, 16_384)  # tokens for hidden reasoning, each tried when the one before was used up
FILTER_NOTE = " [\u2026 cut by the provider's content filter]"
RETURNED: Final = "A function that you called returned:"
_NO_TOOLS: Final = re.compile(r"\btools?\b|\btool[_ -](?:use|call|choice)|\bfunctions?\b|\bfunction[_ -]call")

logger = structlog.get_logger()


# Models whose makers' servers never put reasoning into the answer: theirs is shown from its first word on.
SEPARATES_REASONING: Final = re.compile(r"(?:^|/)(?:gpt-(?!oss)|chatgpt|o[1-9]|claude|gemini)", re.IGNORECASE)


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
        if names_alternation(reason) and not self.repeated_roles:
            return replace(self, repeated_roles=True)
        if any(message.role == "system" for message in sent) and names_system_role(reason):
            return replace(self, system_role=True)
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


class _KnownQuirks(dict[str, _Quirks]):
    """By model; at first what is known by its name."""

    def __missing__(self, model: str) -> _Quirks:
        needs = known_needs(model)
        return self.setdefault(model, _Quirks(system_role=needs.no_system, repeated_roles=needs.alternate))


def _without_calls(message: ChatMessage) -> ChatMessage:
    """What was called before, and what it returned, as plain text."""
    if message.role == "tool":
        return ChatMessage("user", f"{RETURNED}\n{message.content}")
    return replace(message, calls=())


@dataclass(frozen=True, slots=True)
class _Request:
    """A request for one answer, of at most `limit` tokens. `stream`: as it is written, else at once."""

    agent: Agent
    messages: Sequence[ChatMessage]
    tools: Sequence[Tool]
    limit: int
    stream: bool = True


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
        self._quirks = _KnownQuirks()
        self._begin_plainly: set[str] = set()  # models whose answers do not begin with reasoning that has no mark
        self._close_only: set[str] = set()  # models of which one did
        self._took_tools: set[str] = set()  # models that have answered a request with tools
        self._refused_tools: defaultdict[str, frozenset[Tool]] = defaultdict(frozenset)  # of servers, by model

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """Stream the answer in chunks; the last ones carry the usage, one for each request that was made.

        Transient failures are retried until text has arrived, never after. Raises Unavailable or Misconfigured with one
        sentence, also for an answer that is empty or incomplete. An answer that is cut at `agent.reply_tokens` ends
        with a note. A model that spends them all on hidden reasoning is asked again, with more room, and is given that
        room from then on. One that answers nothing, or an error within its stream, is asked once more, without a
        stream: what breaks is often the server's own streaming.
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
        stream = True
        while True:
            limit = agent.reply_tokens + self._room(agent)
            answer = _AnswerReader(tools, hold=self._may_begin_with_reasoning(agent.model))
            request = _Request(agent, messages, tools, limit, stream)
            try:
                async with aclosing(self._streamed(subject, request, answer)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            except NexusError as failed:
                if not (stream and answer.is_empty and isinstance(failed.__cause__, ServerReported)):
                    raise
                stream = False
                continue
            self._learn_beginning(agent.model, answer)
            if answer.reasoned or answer.ran_out:
                self._learn_reasoning(agent.model, more=answer.ran_out)
            if answer.ran_out and agent.reply_tokens + self._room(agent) > limit:
                yield Chunk(usage=answer.usage)
                continue
            if (error := answer.failure(subject, limit)) is not None:
                yield Chunk(usage=answer.usage)
                if stream and isinstance(error, EmptyAnswer):
                    stream = False
                    continue
                raise error
            yield Chunk(text="" if answer.calls else answer.note, usage=answer.usage, calls=answer.calls)
            return

    async def _streamed(
        self, subject: ApiSubject, request: "_Request", answer: "_AnswerReader"
    ) -> AsyncGenerator[Chunk, None]:
        """The texts of one request's answer, which `answer` reads."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        response = await self._open_stream(subject, request)
        remaining = self._connection.timeout - (loop.time() - started)
        try:
            pieces = response.aiter_bytes()
            while answer.is_open:
                started = loop.time()  # Only waiting for the model counts, not the caller's work on a chunk.
                try:
                    async with asyncio.timeout(remaining):
                        piece = await anext(pieces, None)
                    text = answer.end() if piece is None else answer.add(piece)
                except Exception as error:
                    raise answer.interrupted(subject, error, self._connection.timeout) from error
                remaining -= loop.time() - started
                if text or answer.restarts:
                    yield Chunk(text=storable(text), restarts=answer.take_restart())
        finally:
            await response.aclose()

    def _may_begin_with_reasoning(self, model: str) -> bool:
        """Whether what an answer begins with may turn out to be reasoning."""
        return model not in self._begin_plainly and not SEPARATES_REASONING.search(model)

    def _learn_beginning(self, model: str, answer: "_AnswerReader") -> None:
        """Remember whether answers of a model begin with reasoning of which only the end is marked: what the beginning
        is, is then known at that end. Until a first answer has shown that they do not, none is shown before its end."""
        if answer.closed_only:
            self._begin_plainly.discard(model)
            self._close_only.add(model)
        elif answer.any_text and model not in self._close_only:
            self._begin_plainly.add(model)

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

    async def _open_stream(self, subject: ApiSubject, request: "_Request") -> "Response":
        """The answer after its headers. The request is repeated without what the server refuses."""
        agent, original = request.agent, list(request.messages)
        if not agent.system_role:
            original = _Quirks(system_role=True).applied(original)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connection.timeout
        tools = [tool for tool in request.tools if tool not in self._refused_tools[agent.model]]
        left_out: Sequence[Tool] = ()
        while True:
            quirks = self._quirks[agent.model]
            sent = quirks.applied(original)
            try:
                stream = await self._connection.call(
                    subject,
                    deadline - loop.time(),
                    partial(self._send, replace(request, messages=sent, tools=tools), quirks),
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
                        tools = []
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

    async def _send(self, request: "_Request", quirks: _Quirks) -> "Response":
        agent, tools = request.agent, request.tools
        asks_usage = request.stream and not quirks.usage_option
        options: dict[str, Any] = {"stream_options": {"include_usage": True}} if asks_usage else {}
        options["max_tokens" if quirks.completion_limit else "max_completion_tokens"] = request.limit
        if agent.reasoning_effort and not quirks.no_effort:
            options["reasoning_effort"] = agent.reasoning_effort
        # The client compares each part of these with every type of message and tool that there is, and changes nothing:
        # 4 to 6 ms of the event loop for twelve messages and six tools. `extra_body` takes the place of the empty lists
        # as it is.
        written: dict[str, Any] = {"messages": [_wire_message(message) for message in request.messages]}
        if tools and not quirks.no_tools:
            written["tools"], options["tools"] = [_function(tool) for tool in tools], []
        # The body is read by us (composer/text/completions.py): the client breaks off at what it does not know.
        if not request.stream:
            written["stream"] = False
        raw = await self._connection.client.chat.completions.with_raw_response.create(
            model=agent.model, messages=[], stream=True, extra_body=written, **options
        )
        response: Response = raw.http_response
        return response


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
    """Reads the body of one answer, and decides whether it is complete. Calls count if they are of tools that were
    offered."""

    def __init__(self, tools: Sequence[Tool], *, hold: bool) -> None:
        """`hold`: give no text until it is known that it is no reasoning."""
        self._offered = bool(tools)
        self._decoder = CompletionDecoder()
        self._text = AnswerText({tool.name: [name for name, _ in tool.arguments] for tool in tools}, hold=hold)
        self._finish = ""
        self._calls: list[_StreamedCall] = []
        self._begun = self._said_usage_last = self._restarted = False
        self.any_text = self.reasoned = False  # the model has reasoned before it answered
        self.is_open = True
        self.usage = Usage()

    def add(self, piece: bytes) -> str:
        """Add a piece of the body and return the text that it completes. Raises ServerReported."""
        return self._read(self._decoder.feed(piece))

    def end(self) -> str:
        """The text that the end of the body completes. Raises ServerReported."""
        self.is_open = False
        text = self._read(self._decoder.end()) + self._text.end()
        self.any_text = self.any_text or bool(text.strip())
        self.reasoned = self.reasoned or self._text.reasoned
        return text

    def _read(self, events: Sequence[Mapping[str, Any]]) -> str:
        text = ""
        for event in events:
            said = read_completion(event)
            self.usage = said.usage or self.usage
            if said.error is not None:
                raise ServerReported(said.error)
            self._begun = True
            self._said_usage_last = said.is_usage_alone
            self._finish = said.finish or self._finish
            if said.reasoned:
                self.reasoned = True
                self._text.release()
            for part in said.calls:
                self._add_call(part)
            text += self._text.feed(said.text)
        self.any_text = self.any_text or bool(text.strip())
        return text

    def _add_call(self, part: CallPart) -> None:
        """Add a part of a call. It belongs to the last call of its index, unless it has an id of its own: some servers
        give all calls one index, or none."""
        known = reversed(self._calls)
        call = next((each for each in known if each.index == part.index and part.id in ("", each.id)), None)
        if call is None:
            call = _StreamedCall(part.index, clean_text(part.id))
            self._calls.append(call)
        call.name = call.name or clean_text(part.name)
        call.arguments += part.arguments

    @property
    def restarts(self) -> bool:
        """Whether what was given before is no part of the answer, which nobody was told yet."""
        return self._text.restarted and not self._restarted

    def take_restart(self) -> bool:
        """As `restarts`; whoever asks is told now."""
        found, self._restarted = self.restarts, self._text.restarted
        return found

    @property
    def closed_only(self) -> bool:
        """Whether the answer began with reasoning of which only the end was marked."""
        return self._text.closed_only

    def interrupted(self, subject: ApiSubject, error: Exception, timeout: float) -> NexusError:
        """The error for an answer that failed before its end."""
        if isinstance(error, TimeoutError) and not self.any_text:
            return to_nexus_error(error, subject, timeout)
        if not self._begun:
            return to_nexus_error(error, subject, timeout)
        if isinstance(error, TimeoutError):
            return subject.error(
                Unavailable, f"broke off its answer after {timeout:g} seconds (model {subject.model})."
            )
        return subject.error(Unavailable, f"broke off in the middle of its answer (model {subject.model}).")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The functions that the model calls, when its answer has ended: of its own, else those that it wrote as
        text."""
        if not self._offered:
            return ()
        own = tuple(ToolCall(call.id, call.name, clean_text(call.arguments)) for call in self._calls if call.name)
        return own or tuple(ToolCall("", name, clean_text(given)) for name, given in self._text.calls)

    @property
    def is_empty(self) -> bool:
        """Whether the answer has neither text nor calls."""
        return not self.any_text and not self.calls

    @property
    def ran_out(self) -> bool:
        """Whether all tokens of the answer were spent before any text."""
        return self.is_empty and self._finish == "length"

    @property
    def note(self) -> str:
        """What to say at the end of an answer that was cut."""
        return {"length": LENGTH_NOTE, "content_filter": FILTER_NOTE}.get(self._finish, "")

    def failure(self, subject: ApiSubject, limit: int) -> NexusError | None:
        """The error for an answer that is empty or incomplete, when its body has ended."""
        if self.ran_out:
            return subject.error(
                Unavailable,
                f"spent all {limit:,} tokens of the answer on hidden reasoning, without writing any text "
                f"(model {subject.model}).",
                "Give the agent more reply_tokens, or a lower reasoning_effort.",
                told="The model thought for so long that nothing was left of its answer: ask for less, or ask again.",
            )
        if not self.any_text and self._finish == "content_filter":
            return subject.error(
                Unavailable, f"withheld the answer by its content filter (model {subject.model}). Ask in other words."
            )
        if self.is_empty:
            empty = f"gave an empty answer (model {subject.model})."
            if self._finish or self._decoder.done:
                return subject.error(EmptyAnswer, f"{empty} Ask again.")
            return subject.error(  # not even an end: whatever answers there, it may be no model API
                EmptyAnswer,
                empty,
                "Ask again; if it goes on, check NEXUS_OPENAI_BASE_URL, which mostly ends in /v1.",
                told=f"The model API {empty} Ask again.",
            )
        if not (self._finish or self._decoder.done or self._said_usage_last) or self._finish == "error":
            return subject.error(Unavailable, f"broke off in the middle of its answer (model {subject.model}).")
        return None

"""Mem0 as an extractor only: its `AsyncMemory.add` over our model, our embedder and a store for each batch.

It stores and reads nothing itself: it is shown similar memories that we look up, and what it would store is returned.
It runs in its own event loop and threads, so that it never delays a turn.

Mem0 2.2 sends a fixed prompt of 33,653 characters with every call and offers no way to leave it out: its `prompt` and
`custom_instructions` are added to it, and it dates every message today. So our model for Mem0 does not send the prompt
that it is given. It sends our own, short one about the same messages and memories (composer/text/instructions).
"""

import asyncio
import hashlib
import json
import logging
import re
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, TypeVar

import numpy as np

from composer.errors import NexusError, Unavailable
from composer.model import Message
from composer.ports.extraction import ExtractedStatement, MessageBatch
from composer.ports.models import ChatMessage, MeteredEmbedder, Tokenizer, UsageAccount, Vectors, WorkKind
from composer.prompt.lines import quote
from composer.text.instructions import template
from composer.text.masking import mask
from composer.text.names import speaker_label
from composer.text.terms import terms

T = TypeVar("T")
Near = Callable[[Vectors], Awaitable[list[tuple[uuid.UUID, str]]]]
Ask = Callable[[MessageBatch, Sequence[ChatMessage]], Awaitable[str]]

MAX_MEM0_THREADS: Final = 8  # for all batches; each uses one at a time
MAX_EXTRACTED_MESSAGE_CHARS: Final = 4_000  # of one message; of a longer one only the end is read
MAX_EXTRACTED_CHARS: Final = 500
MAX_EXTRACTED_STATEMENTS: Final = 40  # of one batch
MEMORY_KINDS: Final = ("preference", "decision", "habit", "action item", "fact")
MAX_KNOWN_TOKENS: Final = 400  # of the similar memories that the model is shown
EXTRACTION_PROMPT_VERSION: Final = "extraction.v3"
MALFORMED: Final = "The model's answer to the extraction prompt was not the requested JSON."
_FENCE: Final = re.compile(r"```\w*")


@dataclass(slots=True)
class _Batch:
    """One batch while it is extracted.

    `statements` are the model's answer, by text; `shown` are the similar memories that it was shown; `stored` are the
    texts that Mem0 would store; `waiting` are the calls that run in the main loop.
    """

    source: MessageBatch
    near: Near
    main: asyncio.AbstractEventLoop
    seconds: float
    statements: dict[str, dict[str, Any]] = field(default_factory=dict)
    shown: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    failure: NexusError | None = None
    waiting: set[Future[Any]] = field(default_factory=set)
    over: bool = False

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the main loop, from one of Mem0's threads, and wait for it. A NexusError is stored in
        `failure` too, because Mem0 wraps or drops it."""
        if self.over:
            work.close()
            raise CancelledError
        future = asyncio.run_coroutine_threadsafe(work, self.main)
        self.waiting.add(future)
        try:
            return future.result(self.seconds)
        except NexusError as error:
            self.failure = error
            raise
        finally:
            self.waiting.discard(future)
            future.cancel()

    def cancel(self) -> None:
        """Make every waiting thread of this batch end with an error."""
        self.over = True
        for future in list(self.waiting):
            future.cancel()


class _Mem0Model:
    """Our model for Mem0. It is asked with our own prompt in place of Mem0's. Its answer is sanitised first, because
    Mem0 fails on many malformed answers."""

    def __init__(self, batch: _Batch, ask: Ask) -> None:
        self._batch, self._ask = batch, ask

    def generate_response(self, messages: Sequence[Mapping[str, str]], **_: object) -> str:
        prompt = extraction_prompt(self._batch.source, [text for _, text in self._batch.shown])

        async def answer() -> str:
            return await self._ask(self._batch.source, prompt)

        try:
            self._batch.statements = sanitise(self._batch.wait(answer()), len(self._batch.source.messages))
        except Unavailable as error:
            self._batch.failure = error
            raise
        return json.dumps({"memory": [{"id": str(n), "text": text} for n, text in enumerate(self._batch.statements)]})


class _Vectors:
    """Our embedder for Mem0."""

    def __init__(self, batch: _Batch, embedder: MeteredEmbedder) -> None:
        self._batch, self._embedder = batch, embedder

    def embed(self, text: str, _: object = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], _: object = None) -> list[list[float]]:
        async def vectors() -> Vectors:
            source = self._batch.source
            account = UsageAccount(source.tenant_id, WorkKind.EMBEDDING, None, source.conversation_id, source.owner)
            return await self._embedder.embed([text[-MAX_EXTRACTED_MESSAGE_CHARS:] for text in texts], account)

        result: list[list[float]] = self._batch.wait(vectors()).tolist()
        return result


class _Store:
    """A vector store for Mem0: it shows the similar memories of the batch's scope and collects what Mem0 stores."""

    def __init__(self, batch: _Batch, tokenizer: Tokenizer) -> None:
        self._batch, self._tokenizer = batch, tokenizer

    def search(self, *, vectors: Sequence[float], **_: object) -> list[SimpleNamespace]:
        async def near() -> list[tuple[uuid.UUID, str]]:
            return await self._batch.near(np.asarray(vectors, dtype=np.float32))

        self._batch.shown = _fitting(self._batch.wait(near()), self._tokenizer)
        return [
            SimpleNamespace(id=str(id), payload={"data": text, "hash": hashlib.md5(text.encode()).hexdigest()})
            for id, text in self._batch.shown
        ]

    def insert(self, *, payloads: Sequence[Mapping[str, Any]], **_: object) -> None:
        self._batch.stored += [str(payload["data"]) for payload in payloads]


class _NoHistory:
    """An empty history for Mem0: its own would retain texts that were forgotten."""

    def get_last_messages(self, *_: object) -> list[Any]:
        return []

    def save_messages(self, *_: object) -> None:
        """Do nothing."""

    def batch_add_history(self, *_: object) -> None:
        """Do nothing."""


class Mem0Extractor:
    """Extracts memories with `AsyncMemory.add` (composer.ports.extraction.Extractor)."""

    def __init__(
        self,
        embedder: MeteredEmbedder,
        ask: Ask,
        tokenizer: Tokenizer,
        prepare: Callable[[], None],
        seconds: float,
    ) -> None:
        """`ask` calls the model, whose tokens `tokenizer` counts; `prepare` sets the variables that Mem0 reads, before
        its first import; `seconds` is the timeout of each wait of a batch."""
        self._embedder, self._ask, self._prepare, self._seconds = embedder, ask, prepare, seconds
        self._tokenizer = tokenizer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = ThreadPoolExecutor(MAX_MEM0_THREADS, thread_name_prefix="mem0")
        self._running: list[_Batch] = []

    async def extract(self, source: MessageBatch, near: Near) -> list[ExtractedStatement]:
        """Extract the statements of messages. Raises Unavailable."""
        batch = _Batch(source, near, asyncio.get_running_loop(), self._seconds)
        self._running.append(batch)
        try:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._add(batch), self._mem0_loop()))
        except Exception as error:
            if batch.failure is not None:
                raise batch.failure from error
            raise Unavailable(f"The extraction failed ({type(error).__name__}).") from error
        finally:
            batch.cancel()
            self._running.remove(batch)
        if batch.failure is not None:  # Mem0 goes on without what it could not embed; a retry gets all
            raise batch.failure
        statements = batch.statements
        return [
            with_lineage(text, statements[text], source.messages, batch.shown)
            for text in batch.stored
            if text in statements
        ]

    async def close(self) -> None:
        """Cancel the running batches and stop the threads."""
        for batch in self._running:
            batch.cancel()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _mem0_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = self._loop = asyncio.new_event_loop()
            loop.set_default_executor(self._threads)  # which asyncio.to_thread uses in that loop
            threading.Thread(target=loop.run_forever, name="mem0", daemon=True).start()
        return self._loop

    async def _add(self, batch: _Batch) -> None:
        memory = await asyncio.to_thread(self._memory, batch)
        # What Mem0 embeds to look for similar memories. It requires a scope: we set the real one on what it returns, so
        # these values filter nothing.
        lines = [{"role": "user", "content": line} for line in message_lines(batch.source)]
        await memory.add(lines, user_id="scope", run_id="batch")

    def _memory(self, batch: _Batch) -> Any:
        """An AsyncMemory around one batch. The first import takes 1.5 seconds, so it happens here, in a thread."""
        self._prepare()
        from mem0 import AsyncMemory  # noqa: PLC0415

        for name in ("mem0", "mem0.memory.main"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # they log the messages

        class Extraction(AsyncMemory):  # type: ignore[misc]
            """Without Mem0's factories, which would open stores and clients of their own."""

            def __init__(self, model: _Mem0Model, vectors: _Vectors, store: _Store) -> None:
                self.config = SimpleNamespace(llm=SimpleNamespace(config={}))
                self.llm, self.embedding_model, self.vector_store = model, vectors, store
                self.db, self.collection_name, self.api_version = _NoHistory(), "nexus", "v1.1"
                self.custom_instructions, self._entity_store, self.reranker = None, None, None

        return Extraction(_Mem0Model(batch, self._ask), _Vectors(batch, self._embedder), _Store(batch, self._tokenizer))


def extraction_prompt(batch: MessageBatch, known: Sequence[str]) -> list[ChatMessage]:
    """The prompt that asks for the statements of a batch. `known` are texts of similar memories.

    Every message stands with its own day; the day of the last one is the present.
    """
    instruction = template(EXTRACTION_PROMPT_VERSION).format(kinds=", ".join(MEMORY_KINDS))
    known_lines = [f"- {_one_line(text)}" for text in known] or ["- nothing"]
    present = batch.messages[-1].at.astimezone(batch.zone)
    parts = ("Known already:", *known_lines, "", f"Messages until {present:%a %Y-%m-%d}:", *message_lines(batch))
    return [ChatMessage("system", instruction), ChatMessage("user", "\n".join(parts))]


def message_lines(batch: MessageBatch) -> list[str]:
    """The messages as the model is shown them: no line of a text can look like another message."""
    return [
        f"[{number}] {message.at.astimezone(batch.zone):%a %Y-%m-%d %H:%M} {speaker_label(message.author)}: "
        + quote(mask(message.text[-MAX_EXTRACTED_MESSAGE_CHARS:]))
        for number, message in enumerate(batch.messages, 1)
    ]


def _one_line(text: str) -> str:
    return " ".join(quote(text).split())


def _fitting(found: Sequence[tuple[uuid.UUID, str]], tokenizer: Tokenizer) -> list[tuple[uuid.UUID, str]]:
    """The nearest of these memories that fit into MAX_KNOWN_TOKENS. A longer one is left out, and a further one may
    fit."""
    left, fitting = MAX_KNOWN_TOKENS, []
    for id, text in found:
        cost = tokenizer.count(f"- {_one_line(text)}") + 1
        if cost <= left:
            fitting.append((id, text))
            left -= cost
    return fitting


def sanitise(answer: str, messages: int) -> dict[str, dict[str, Any]]:
    """The valid statements of a model's answer, by text: each with its kind and the numbers of its messages.

    Raises Unavailable when the answer is not the requested JSON: a retry may get a proper one.
    """
    try:
        parsed = json.loads(without_fence(answer), strict=False)
    except (ValueError, RecursionError):
        raise Unavailable(MALFORMED) from None
    rows = parsed.get("memory") if isinstance(parsed, dict) else None
    if not isinstance(rows, list):
        raise Unavailable(MALFORMED)
    found: dict[str, dict[str, Any]] = {}
    for row in rows[:MAX_EXTRACTED_STATEMENTS]:
        text = row.get("text") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(text, str) or row.get("attributed_to") == "assistant":
            continue
        text = " ".join(text.replace("\x00", " ").encode("utf-8", "replace").decode().split())[:MAX_EXTRACTED_CHARS]
        sources = row.get("sources")
        numbers = [n for n in sources if type(n) is int and 1 <= n <= messages] if isinstance(sources, list) else []
        if text:
            found[text] = {"kind": row.get("kind"), "sources": numbers}
    if rows and not found and not any(isinstance(row, dict) for row in rows):
        raise Unavailable(MALFORMED)
    return found


def without_fence(answer: str) -> str:
    """A model's answer without the code fence that some put around JSON."""
    bare = answer.strip()
    opening = _FENCE.match(bare)
    return bare[opening.end() if opening else 0 :].removesuffix("```")


def with_lineage(
    text: str, statement: Mapping[str, Any], messages: Sequence[Message], shown: Sequence[tuple[uuid.UUID, str]]
) -> ExtractedStatement:
    """A statement with its lineage, which forgetting follows, so it must not miss anything.

    Its messages are those that the model named, then every other one that shares a word with it, and all of them if
    there are none. It is built on each memory the model was shown that has a word of it that no message has.
    """
    words = set(terms(text))
    named = [messages[n - 1] for n in statement["sources"]]
    similar = [message for message in messages if words & set(terms(message.text))]
    sources = list(dict.fromkeys(message.id for message in (*named, *similar))) or [message.id for message in messages]
    unexplained = words - {term for message in messages for term in (*terms(message.text), *terms(message.author))}
    built_on = [id for id, other in shown if unexplained & set(terms(other))]
    kind = statement["kind"] if statement["kind"] in MEMORY_KINDS else "fact"
    return ExtractedStatement(kind, text, tuple(sources), tuple(built_on))

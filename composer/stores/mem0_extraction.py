"""Mem0 as an extractor and nothing else: its `add` over our model, our embedder and one batch's own store.

It keeps nothing and reads nothing: what it is shown of earlier memories is given to it, and what it would store is
handed back. It runs in a thread and an event loop of its own, so that its threads never stand in a turn's way.
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
from composer.instructions import template
from composer.model import Message
from composer.ports.extraction import ExtractedStatement
from composer.ports.models import ChatMessage, Embedder, Vectors
from composer.text.terms import terms

T = TypeVar("T")
Near = Callable[[Vectors], Awaitable[list[tuple[uuid.UUID, str]]]]

AT_ONCE: Final = 4  # batches
THREADS: Final = 8  # for them all; one works for a batch at a time
LONGEST_MESSAGE: Final = 4_000  # characters of one message; of a longer one the end is read
LONGEST_STATEMENT: Final = 500
MOST_STATEMENTS: Final = 40
KINDS: Final = ("preference", "decision", "habit", "action item", "fact")
PROMPT_VERSION: Final = "extraction.v1"
MALFORMED: Final = "The model's answer to the extraction was not the JSON that was asked for."
_FENCE: Final = re.compile(r"^\s*```\w*\s*|\s*```\s*$")


@dataclass(slots=True)
class _Batch:
    """One batch on its way: what is read, what the model said, and what is being waited for in the main loop."""

    messages: Sequence[Message]
    near: Near
    main: asyncio.AbstractEventLoop
    seconds: float
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    shown: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    failure: NexusError | None = None
    waiting: set[Future[Any]] = field(default_factory=set)
    over: bool = False

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the main loop do something, from a thread of Mem0's. What we raise is kept: Mem0 wraps or drops it."""
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
        """Let every thread of this batch go on, into an error."""
        self.over = True
        for future in list(self.waiting):
            future.cancel()


class _Model:
    """Mem0's model: ours, with its answer put in order before Mem0 sees it, which breaks on half of what models say."""

    def __init__(self, batch: _Batch, ask: Callable[[Sequence[ChatMessage]], Awaitable[str]]) -> None:
        self._batch, self._ask = batch, ask

    def generate_response(self, messages: Sequence[Mapping[str, str]], **_: object) -> str:
        asked = [ChatMessage(message["role"], message["content"]) for message in messages]

        async def answer() -> str:
            return await self._ask(asked)

        try:
            self._batch.said = sanitised(self._batch.wait(answer()), len(self._batch.messages))
        except Unavailable as error:
            self._batch.failure = error
            raise
        return json.dumps({"memory": [{"id": str(n), "text": text} for n, text in enumerate(self._batch.said)]})


class _Vectors:
    """Mem0's embedder: ours."""

    def __init__(self, batch: _Batch, embedder: Embedder) -> None:
        self._batch, self._embedder = batch, embedder

    def embed(self, text: str, _: object = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], _: object = None) -> list[list[float]]:
        async def vectors() -> Vectors:
            return await self._embedder.embed([text[-LONGEST_MESSAGE:] for text in texts])

        made: list[list[float]] = self._batch.wait(vectors()).tolist()
        return made


class _Store:
    """Mem0's vector store for one batch: shows the memories of its scope, and collects."""

    def __init__(self, batch: _Batch) -> None:
        self._batch = batch

    def search(self, *, vectors: Sequence[float], **_: object) -> list[SimpleNamespace]:
        async def near() -> list[tuple[uuid.UUID, str]]:
            return await self._batch.near(np.asarray(vectors, dtype=np.float32))

        self._batch.shown = self._batch.wait(near())
        return [
            SimpleNamespace(id=str(id), payload={"data": text, "hash": hashlib.md5(text.encode()).hexdigest()})
            for id, text in self._batch.shown
        ]

    def insert(self, *, payloads: Sequence[Mapping[str, Any]], **_: object) -> None:
        self._batch.stored += [str(payload["data"]) for payload in payloads]


class _NoHistory:
    """Mem0's history, which would keep the text of what is forgotten: none."""

    def get_last_messages(self, *_: object) -> list[Any]:
        return []

    def save_messages(self, *_: object) -> None:
        """Nothing."""

    def batch_add_history(self, *_: object) -> None:
        """Nothing."""


class Mem0Extractor:
    """composer.ports.Extractor, by `AsyncMemory.add`."""

    def __init__(
        self,
        embedder: Embedder,
        ask: Callable[[Sequence[ChatMessage]], Awaitable[str]],
        prepare: Callable[[], None],
        seconds: float,
    ) -> None:
        """`ask` is the model; `prepare` sets what Mem0 reads from the environment, before it is first imported;
        `seconds` bounds each wait of a batch."""
        self._embedder, self._ask, self._prepare, self._seconds = embedder, ask, prepare, seconds
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="mem0")
        self._running: list[_Batch] = []

    async def extract(self, messages: Sequence[Message], near: Near) -> list[ExtractedStatement]:
        """What the messages state (composer.ports.Extractor)."""
        async with self._slots:
            batch = _Batch(messages, near, asyncio.get_running_loop(), self._seconds)
            self._running.append(batch)
            try:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._add(batch), self._own_loop()))
            except Exception as error:
                if batch.failure is not None:
                    raise batch.failure from error
                raise Unavailable(f"The extraction failed ({type(error).__name__}).") from error
            finally:
                batch.cancel()
                self._running.remove(batch)
            if batch.failure is not None:  # Mem0 goes on without what it could not embed: then it is tried again
                raise batch.failure
        return [drawn(text, batch.said[text], messages, batch.shown) for text in batch.stored if text in batch.said]

    async def close(self) -> None:
        """Let go of the threads."""
        for batch in self._running:
            batch.cancel()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = self._loop = asyncio.new_event_loop()
            loop.set_default_executor(self._threads)  # what asyncio.to_thread uses there
            threading.Thread(target=loop.run_forever, name="mem0", daemon=True).start()
        return self._loop

    async def _add(self, batch: _Batch) -> None:
        memory = await asyncio.to_thread(self._memory, batch)
        spoken = [
            {"role": "user", "content": f"[{n}] {message.author}: {message.text[-LONGEST_MESSAGE:]}"}
            for n, message in enumerate(batch.messages, 1)
        ]
        # Scope is ours to stamp: what Mem0 is told of it names nothing and filters nothing.
        await memory.add(
            spoken, user_id="speaker", run_id="talk", prompt=template(PROMPT_VERSION).format(kinds=", ".join(KINDS))
        )

    def _memory(self, batch: _Batch) -> Any:
        """An AsyncMemory around one batch. The first import takes a second and a half, so it happens here."""
        self._prepare()
        from mem0 import AsyncMemory  # noqa: PLC0415

        for name in ("mem0", "mem0.memory.main"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # they log what was said

        class Extraction(AsyncMemory):  # type: ignore[misc]
            """Without the factories, which would open stores and clients of their own."""

            def __init__(self, model: _Model, vectors: _Vectors, store: _Store) -> None:
                self.config = SimpleNamespace(llm=SimpleNamespace(config={}))
                self.llm, self.embedding_model, self.vector_store = model, vectors, store
                self.db, self.collection_name, self.api_version = _NoHistory(), "nexus", "v1.1"
                self.custom_instructions, self._entity_store, self.reranker = None, None, None

        return Extraction(_Model(batch, self._ask), _Vectors(batch, self._embedder), _Store(batch))


def sanitised(answer: str, messages: int) -> dict[str, dict[str, Any]]:
    """What a model said, by text: its kind and the numbers of its messages. Raises Unavailable when it is not what
    was asked for: the same question may be answered properly another time."""
    try:
        said = json.loads(_FENCE.sub("", answer), strict=False)
    except (ValueError, RecursionError):
        raise Unavailable(MALFORMED) from None
    rows = said.get("memory") if isinstance(said, dict) else None
    if not isinstance(rows, list):
        raise Unavailable(MALFORMED)
    found: dict[str, dict[str, Any]] = {}
    for row in rows[:MOST_STATEMENTS]:
        text = row.get("text") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(text, str) or row.get("attributed_to") == "assistant":
            continue
        text = " ".join(text.replace("\x00", " ").encode("utf-8", "replace").decode().split())[:LONGEST_STATEMENT]
        given = row.get("sources")
        numbers = [n for n in given if type(n) is int and 1 <= n <= messages] if isinstance(given, list) else []
        if text:
            found[text] = {"kind": row.get("kind"), "sources": numbers}
    if rows and not found and not any(isinstance(row, dict) for row in rows):
        raise Unavailable(MALFORMED)
    return found


def drawn(
    text: str, said: Mapping[str, Any], messages: Sequence[Message], shown: Sequence[tuple[uuid.UUID, str]]
) -> ExtractedStatement:
    """A statement with its lineage: the messages that the model named first, then every other that shares a word with
    it, all of them if there is none: forgetting must miss nothing that flowed into it. Likewise the memories that
    the model was shown, for words that no message has."""
    words = set(terms(text))
    named = [messages[n - 1] for n in said["sources"]]
    alike = [message for message in messages if words & set(terms(message.text))]
    sources = list(dict.fromkeys(message.id for message in (*named, *alike))) or [message.id for message in messages]
    unexplained = words - {term for message in messages for term in (*terms(message.text), *terms(message.author))}
    built_on = [id for id, other in shown if unexplained & set(terms(other))]
    kind = said["kind"] if said["kind"] in KINDS else "fact"
    return ExtractedStatement(kind, text, tuple(sources), tuple(built_on))

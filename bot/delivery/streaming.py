"""Takes answers to a chat platform: streaming by edits at its pace, cut into parts it takes, each part once.

Every part of an answer has a key. What was posted is noted; what was posted and could not be noted, because
the process died in between, is found again by its key. So a person sees each part once, whatever happens.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from bot.delivery.splitting import split
from composer.app import App
from composer.errors import NexusError, Refused
from composer.model import Turn
from composer.repositories.deliveries import Destination
from composer.turn.respond import Reply

logger = structlog.get_logger()

TROUBLE: Final = -1  # in place of a part's number: the sentence that an answer must wait
TROUBLE_MARK: Final = "t"  # ends the keys of what is no part of an answer: this, and the notice of a room
INTRODUCTION_MARK: Final = "n"
NO_MORE: Final = "…"  # what is left of a part that the answer has no words for any more
FIRST_TEXT: Final = 24  # characters before the first part is posted, so that it doesn't open with half a word


class Outbox(Protocol):
    """What a platform must be able to do. Raises Unavailable when it can't now, and Refused when it won't ever."""

    @property
    def limit(self) -> int:
        """Characters that one message may have."""
        ...

    @property
    def pace(self) -> float:
        """Seconds between edits of one message."""
        ...

    async def post(self, to: Destination, text: str, key: str) -> str:
        """Post a message and return its id there. A second call with the same key soon after posts no second one."""
        ...

    async def edit(self, to: Destination, message: str, text: str) -> None:
        """Replace the text of a message of ours."""
        ...

    async def find(self, to: Destination, key: str) -> str | None:
        """The id of the message that an earlier process posted with this key, if it did."""
        ...

    async def typing(self, to: Destination, key: str) -> None:
        """Show that an answer is being written, whose first part will have this key, unless that stands there."""
        ...


@dataclass(slots=True)
class _Stream:
    """One answer on its way: what has come in, what stands there, and since when."""

    to: Destination
    text: str = ""
    parts: dict[int, str] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)
    beside: dict[int, str] = field(default_factory=dict)  # what is no part of the answer, by TROUBLE
    unnoted: set[int] = field(default_factory=set)  # parts that stand there, and whose ids are not stored yet
    edited_at: float = 0.0
    task: asyncio.Task[None] | None = None


class StreamingDelivery:
    """The way back to one platform (composer.turn.worker.Door)."""

    def __init__(self, app: App, wire: Outbox, now: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._outbox = wire
        self._now = now
        self._streams: dict[uuid.UUID, _Stream] = {}
        self._reading: dict[uuid.UUID, asyncio.Task[_Stream | None]] = {}
        self._signs: set[asyncio.Task[None]] = set()

    def on_start(self, turn: Turn) -> None:
        """Show that an answer is being written, and look up where it will stand, while the model is being asked."""
        sign = asyncio.create_task(self._quietly(self._sign(turn)))
        self._signs.add(sign)
        sign.add_done_callback(self._signs.discard)

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Show a piece as soon as the pace allows; never waits for the platform, so the model is never slowed."""
        stream = await self._stream(turn)
        if stream is None:
            return
        stream.text += text
        if stream.task is None or stream.task.done():
            stream.task = asyncio.create_task(self._show(turn, stream))

    async def deliver(self, reply: Reply) -> None:
        """Bring what stands there to the whole answer, part by part. Raises Unavailable when the platform does not
        answer: the turn stays answered and unsent, and is sent later."""
        stream = await self._stream(reply.turn)
        if stream is None:
            return
        if stream.task is not None:
            stream.task.cancel()
            await asyncio.gather(stream.task, return_exceptions=True)  # it is only for show
        stream.text = reply.text
        try:
            await self._bring(reply.turn, stream)
        except Refused:
            self._streams.pop(reply.turn.id, None)  # nothing more comes of it
            raise
        self._streams.pop(reply.turn.id, None)

    async def abandon(self, turn: Turn) -> None:
        """Forget the state of a turn that ends without a reply."""
        self._streams.pop(turn.id, None)

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """Say in the conversation that an answer must wait, once, if that much is possible."""
        await self._quietly(self._tell(turn, sentence))

    async def _tell(self, turn: Turn, sentence: str) -> None:
        stream = await self._stream(turn)
        if stream is not None:
            await self._post_once(turn, stream, TROUBLE, f"{_key(turn, 0)}{TROUBLE_MARK}", sentence)

    async def _post_once(self, turn: Turn, stream: _Stream, number: int, key: str, text: str) -> None:
        """Post what is no part of the answer, unless it stands there already."""
        if number in stream.beside:
            return
        found = await self._outbox.find(stream.to, key) or await self._outbox.post(stream.to, text, key)
        stream.beside[number] = found
        await self._note(turn, number, found)

    async def _sign(self, turn: Turn) -> None:
        stream = await self._stream(turn)
        if stream is not None and not stream.parts:
            await self._outbox.typing(stream.to, _key(turn, 0))

    async def _stream(self, turn: Turn) -> _Stream | None:
        """What there is of an answer, read once, however many ask."""
        if turn.id not in self._streams:
            if turn.id not in self._reading:
                self._reading[turn.id] = reading = asyncio.create_task(self._read_stream(turn))
                reading.add_done_callback(lambda _: self._reading.pop(turn.id))
            return await asyncio.shield(self._reading[turn.id])
        return self._streams[turn.id]

    async def _read_stream(self, turn: Turn) -> _Stream | None:
        async with self._app.database.transaction(turn.tenant_id, snapshot=True) as tx:
            to = await tx.deliveries.destination(turn.id)
            parts = await tx.deliveries.parts(turn.id)
        if to is None:
            return None
        beside = {number: id for number, id in parts.items() if number < 0}
        stream = _Stream(to, parts={n: id for n, id in parts.items() if n >= 0}, beside=beside)
        self._streams[turn.id] = stream
        return stream

    async def _show(self, turn: Turn, stream: _Stream) -> None:
        """Show what has come in so far, at most once in a pace."""
        wait = stream.edited_at + self._outbox.pace - self._now()
        if wait > 0:
            await asyncio.sleep(wait)
        if len(stream.text) >= FIRST_TEXT or stream.parts:
            await self._quietly(self._bring(turn, stream))

    async def _bring(self, turn: Turn, stream: _Stream) -> None:
        texts = split(stream.text, self._outbox.limit)
        for number, text in enumerate(texts):
            if number in stream.unnoted:
                await self._note_part(turn, stream, number)
            if stream.shown.get(number) == text:
                continue
            if number not in stream.parts:
                await self._post(turn, stream, number, text)
            else:
                await self._outbox.edit(stream.to, stream.parts[number], text)
            stream.shown[number] = text
        for number in sorted(stream.parts.keys() - range(len(texts))):  # the text has become shorter
            if number in stream.unnoted:
                await self._note_part(turn, stream, number)
            if stream.shown.get(number) != NO_MORE:
                await self._outbox.edit(stream.to, stream.parts[number], NO_MORE)
                stream.shown[number] = NO_MORE
        stream.edited_at = self._now()

    async def _post(self, turn: Turn, stream: _Stream, number: int, text: str) -> None:
        """Post a part, unless an earlier process or try did; then bring that one to this text."""
        key = _key(turn, number)
        found = await self._outbox.find(stream.to, key)
        if found is None:
            found = await self._outbox.post(stream.to, text, key)
        else:
            await self._outbox.edit(stream.to, found, text)
        stream.parts[number] = found
        stream.unnoted.add(number)
        await self._note_part(turn, stream, number)

    async def _note_part(self, turn: Turn, stream: _Stream, number: int) -> None:
        """Store which message a part is: what is not stored can't be taken back. May be cut off, and is done again."""
        await self._note(turn, number, stream.parts[number])
        stream.unnoted.discard(number)

    async def _note(self, turn: Turn, number: int, message: str) -> None:
        async with self._app.database.transaction(turn.tenant_id) as tx:
            await tx.deliveries.record_part(turn.id, number, message, self._app.clock.now())

    async def _quietly(self, doing: Awaitable[object]) -> None:
        """What is only for show may fail: the whole answer is sent at the end anyway."""
        try:
            await doing
        except NexusError as error:
            logger.warning("delivery.postponed", error=str(error))
        except Exception:
            logger.exception("delivery.not_shown")


def _key(turn: Turn, part: int) -> str:
    """What makes posting a part idempotent; at most 25 characters, as Discord wants its nonces."""
    return f"{turn.id.hex[:21]}-{part}"

"""Delivers answers to a chat platform: streamed by edits, split into messages that the platform takes, each part once.

Every part of an answer has a key. The id of a posted part is stored; a part that was posted but not stored, because
the process died in between, is found again by its key. So a person sees each part once, whatever happens.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog

from bot.delivery.citations import link_marks
from bot.delivery.outbox import Outbox, delay_key, offer_key, part_key
from bot.delivery.splitting import split
from bot.platform.retry import Backoff
from bot.platform.tasks import BackgroundTasks
from composer.app import App
from composer.errors import NexusError, Refused, Unavailable
from composer.memory.forget import RETRACTED
from composer.model import Turn
from composer.repositories.deliveries import Destination
from composer.repositories.explanations import MessageAddress
from composer.repositories.turns import Answer
from composer.turn.answers import ROOM_OPENED

logger = structlog.get_logger()

# Markdown links to messages, by mark, in an answer that is posted there.
Links = Callable[[Destination, Mapping[str, MessageAddress]], Awaitable[Mapping[str, str]]]

OFFER_PART: Final = -2  # the part number under which the buttons below an answer are stored
DELAY_PART: Final = -1  # the part number under which the sentence that an answer is delayed is stored
EMPTY_PART: Final = "…"  # replaces a part that the answer has no text for any more
HEARD_SECONDS: Final = 1.0  # after which a question that still waits is shown to be heard
TYPING_SECONDS: Final = 8.0  # after which that an answer is being written is shown again
MAX_TYPING: Final = 75  # times
MIN_FIRST_CHARS: Final = 24  # before the first part is posted, so that it does not open with half a word


@dataclass(slots=True)
class _Stream:
    """One answer while it is being delivered.

    `parts` are the ids of the posted parts, `shown` the text that each has, `unstored` the parts whose ids are not in
    the database yet. `notices` are the ids of posted sentences that are no part of the answer, by part number. `links`
    are the links of the source marks in the text (Markdown, by mark); they are known when the answer is whole.
    """

    to: Destination
    text: str = ""
    parts: dict[int, str] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)
    notices: dict[int, str] = field(default_factory=dict)
    unstored: set[int] = field(default_factory=set)
    written_anew: bool = False  # what is shown may be of an answer that was thrown away
    posting: int | None = None  # a part that may be posted without our having its id
    links: Mapping[str, str] = field(default_factory=dict)
    edited_at: float = 0.0
    task: asyncio.Task[None] | None = None


class _QuestionErased(Exception):
    """A part was posted whose question was erased meanwhile: nothing but this object knows of it."""


class StreamingDelivery:
    """Delivers answers to one platform (composer.turn.delivery.Delivery)."""

    def __init__(
        self,
        app: App,
        outbox: Outbox,
        links: Links,
        monotonic: Callable[[], float] = time.monotonic,
        backoff: Backoff | None = None,
        written: Callable[[str], str] = lambda text: text,
    ) -> None:
        """`links` makes the platform's links to messages, `written` its Markdown of an answer."""
        self._app = app
        self._outbox = outbox
        self._links = links
        self._monotonic = monotonic
        self._backoff = backoff or Backoff()
        self._written = written
        self._streams: dict[uuid.UUID, _Stream] = {}
        self._loading: dict[uuid.UUID, asyncio.Task[_Stream | None]] = {}
        self._typing: dict[uuid.UUID, asyncio.Event] = {}
        self._tasks = BackgroundTasks()

    def on_wait(self, turn: Turn) -> None:
        """Show that the question is heard, unless an answer has begun by then."""
        if turn.id not in self._typing:
            self._begin_typing(turn, HEARD_SECONDS)

    def on_start(self, turn: Turn) -> None:
        """Show that an answer is being written, and look up where it goes, while the model is being asked. Hide what is
        shown of one that could not be stored: it is written anew, perhaps since something was forgotten."""
        stream = self._streams.get(turn.id)
        if stream is not None and stream.text:
            stream.text = ""
            stream.written_anew = True
            self._show_soon(turn, stream)
        self._tasks.start(self._log_failure(partial(self._stream, turn)))
        self._begin_typing(turn, 0.0)

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Show more of the answer as soon as the platform allows; never waits for it, so the model is not slowed."""
        stream = await self._stream(turn)
        if stream is None:
            return
        stream.text += text
        self._show_soon(turn, stream)

    async def deliver(self, answer: Answer) -> None:
        """Post or edit the parts until they show the whole answer. Raises Unavailable when the platform does not
        answer: the turn stays answered and unsent, and is delivered later."""
        self._end_typing(answer.turn)
        stream = await self._stream(answer.turn)
        if stream is None:
            return
        await _stop_progress(stream)
        try:
            # A notice, why there is none, or an answer that was written anew takes the place of what is shown.
            if stream.written_anew or not answer.text.startswith(stream.text):
                await self._close_streams(answer.turn)
            stream.links = await self._links(stream.to, answer.cited)
            await self._update(answer.turn, stream, answer.text)
            await self._post_offers(answer, stream)
        except Refused:  # the platform refuses it for good
            if answer.text in (RETRACTED, ROOM_OPENED):
                await self._queue_retractions(answer.turn, stream)
            self._streams.pop(answer.turn.id, None)
            raise
        except _QuestionErased:
            await self.abandon(answer.turn)
            return
        self._streams.pop(answer.turn.id, None)

    async def abandon(self, turn: Turn) -> None:
        """Retract what was shown of an answer that will not be delivered, since its question was erased.

        Does not fail: what the platform does not take now is queued (bot/delivery/retraction.py).
        """
        self._end_typing(turn)
        loading = self._loading.get(turn.id)
        if loading is not None:
            await asyncio.wait({loading})
        stream = self._streams.pop(turn.id, None)
        if stream is None:
            return
        await _stop_progress(stream)
        try:
            await self._close_streams(turn)
            await self._retract(turn, stream)
        except Unavailable:
            self._tasks.start(self._queue_later(turn, stream))
        except Exception:
            logger.exception("delivery.retraction_failed", turn=str(turn.id))

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """Post the notice that an answer is delayed, once; a failure to post it is only logged."""
        await self._log_failure(partial(self._post_delay, turn, sentence))

    async def close(self) -> None:
        """Stop what runs in the background."""
        await self._tasks.cancel()

    async def _close_streams(self, turn: Turn) -> None:
        """Close the platform's own streams of an answer, so that another text can take the place of what they show.
        Does nothing by default."""

    async def _retract(self, turn: Turn, stream: _Stream) -> None:
        """Edit every part that is or may be posted, and queue those that the platform does not take now. Raises
        Unavailable if they can't be queued."""
        try:
            await self._find_posting(turn, stream)
            while stream.parts:
                number = max(stream.parts)
                await self._outbox.edit(stream.to, stream.parts[number], RETRACTED)
                del stream.parts[number]
        except NexusError as error:
            logger.warning("delivery.retraction_queued", turn=str(turn.id), error=str(error))
            await self._queue_retractions(turn, stream)

    async def _find_posting(self, turn: Turn, stream: _Stream) -> None:
        """Find the part whose post was interrupted, if it was posted."""
        if stream.posting is not None and stream.posting not in stream.parts:
            found = await self._outbox.find(stream.to, part_key(turn, stream.posting))
            if found is not None:
                stream.parts[stream.posting] = found
        stream.posting = None

    async def _queue_retractions(self, turn: Turn, stream: _Stream) -> None:
        """Have every part that is or may be posted retracted as soon as the platform takes it, whatever becomes of this
        process. Raises Unavailable."""
        async with self._app.database.transaction(turn.tenant_id) as tx:
            for posted in stream.parts.values():
                await tx.deliveries.queue_retraction(turn.id, stream.to, posted)
            if stream.posting is not None:
                await tx.deliveries.queue_retraction(turn.id, stream.to, "", stream.posting)
        self._app.erasures.emit()

    async def _queue_later(self, turn: Turn, stream: _Stream) -> None:
        await self._backoff.retry(
            lambda: self._retract(turn, stream), "delivery.retraction_retrying", turn=str(turn.id)
        )

    async def _post_delay(self, turn: Turn, sentence: str) -> None:
        stream = await self._stream(turn)
        if stream is None or DELAY_PART in stream.notices or not stream.to.message:
            return  # nobody waits for a post that answers nothing
        key = delay_key(turn)
        posted = await self._outbox.find(stream.to, key) or await self._outbox.post(stream.to, sentence, key)
        stream.notices[DELAY_PART] = posted
        await self._store_part(turn, DELAY_PART, posted)

    async def _post_offers(self, answer: Answer, stream: _Stream) -> None:
        """Post the buttons below an answer, once. They hold words of its question, and are retracted with it."""
        if OFFER_PART in stream.notices and answer.text == RETRACTED:
            await self._outbox.edit(stream.to, stream.notices[OFFER_PART], RETRACTED)
        if not answer.offers or OFFER_PART in stream.notices:
            return
        text = "\n".join(f"{offer.label}: `{offer.command}`" for offer in answer.offers)
        key = offer_key(answer.turn)
        posted = await self._outbox.find(stream.to, key)
        if posted is None:
            posted = await self._outbox.post(stream.to, text, key, answer.offers)
        stream.notices[OFFER_PART] = posted
        if not await self._store_part(answer.turn, OFFER_PART, posted):
            stream.parts[OFFER_PART] = posted
            raise _QuestionErased

    def _begin_typing(self, turn: Turn, wait: float) -> None:
        self._end_typing(turn)
        self._typing[turn.id] = ended = asyncio.Event()
        self._tasks.start(self._log_failure(partial(self._show_typing, turn, wait, ended)))

    def _end_typing(self, turn: Turn) -> None:
        ended = self._typing.pop(turn.id, None)
        if ended is not None:
            ended.set()

    async def _show_typing(self, turn: Turn, wait: float, ended: asyncio.Event) -> None:
        """Show again and again that an answer is being written, until it has ended, or a part of it is posted by
        whichever process. What is being shown is not cut off: an adapter may have to take it back."""
        for _ in range(MAX_TYPING):
            if await _is_set(ended, wait):
                return
            loading = self._loading.get(turn.id)
            stream = await (asyncio.shield(loading) if loading is not None else self._read(turn))
            if stream is None or stream.parts or not stream.to.message or ended.is_set():
                break
            await self._outbox.show_typing(stream.to, part_key(turn, 0))
            wait = TYPING_SECONDS
        if self._typing.get(turn.id) is ended:
            del self._typing[turn.id]

    async def _stream(self, turn: Turn) -> _Stream | None:
        """The state of an answer, loaded once however many callers ask; None when its question was erased."""
        if turn.id not in self._streams:
            if turn.id not in self._loading:
                self._loading[turn.id] = loading = asyncio.create_task(self._load(turn))
                loading.add_done_callback(lambda _: self._loading.pop(turn.id))
            return await asyncio.shield(self._loading[turn.id])
        return self._streams[turn.id]

    async def _load(self, turn: Turn) -> _Stream | None:
        stream = await self._read(turn)
        if stream is not None:
            self._streams[turn.id] = stream
        return stream

    async def _read(self, turn: Turn) -> _Stream | None:
        """An answer that is being delivered here, or as it is stored."""
        if (known := self._streams.get(turn.id)) is not None:
            return known
        async with self._app.database.transaction(turn.tenant_id, "read") as tx:
            found = await tx.deliveries.posted(turn.id)
        if found is None:
            return None
        to, stored = found
        parts = {number: id for number, id in stored.items() if number >= 0}
        notices = {number: id for number, id in stored.items() if number < 0}
        return _Stream(to, parts=parts, notices=notices)

    def _show_soon(self, turn: Turn, stream: _Stream) -> None:
        if stream.task is None or stream.task.done():
            stream.task = asyncio.create_task(self._show_progress(turn, stream))

    async def _show_progress(self, turn: Turn, stream: _Stream) -> None:
        """Show the text so far, not more often than the platform allows; once more if another one was begun
        meanwhile."""
        text: str | None = None
        while text is None or not stream.text.startswith(text):
            wait = stream.edited_at + self._outbox.edit_interval - self._monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            text = stream.text
            if len(text) >= MIN_FIRST_CHARS or stream.parts:
                await self._log_failure(partial(self._show_more, turn, stream))

    async def _show_more(self, turn: Turn, stream: _Stream) -> None:
        """Show the text so far, unless its question or something that it is made from was erased since, or its room
        opened: then what was shown is hidden until the turn ends, with the whole text, another one or `abandon`."""
        shows = await self._app.drafter.may_show(turn.tenant_id, turn.id)
        if shows is False:
            await self._close_streams(turn)
        if shows is not None:
            await self._update(turn, stream, stream.text if shows else "")

    async def _update(self, turn: Turn, stream: _Stream, text: str) -> None:
        """Post and edit parts until they show a text."""
        texts = split(self._written(link_marks(text, stream.links)), self._outbox.limit)
        for number, text in enumerate(texts):
            if number in stream.unstored:
                await self._store_posted(turn, stream, number)
            if stream.shown.get(number) == text:
                continue
            if number not in stream.parts:
                await self._post(turn, stream, number, text)
            else:
                await self._outbox.edit(stream.to, stream.parts[number], text)
            stream.shown[number] = text
        for number in sorted(stream.parts.keys() - range(len(texts))):  # the text has become shorter
            if number in stream.unstored:
                await self._store_posted(turn, stream, number)
            if stream.shown.get(number) != EMPTY_PART:
                await self._outbox.edit(stream.to, stream.parts[number], EMPTY_PART)
                stream.shown[number] = EMPTY_PART
        stream.edited_at = self._monotonic()

    async def _post(self, turn: Turn, stream: _Stream, number: int, text: str) -> None:
        """Post a part; if an earlier process or an interrupted call has posted it, edit that one instead."""
        key = part_key(turn, number)
        stream.posting = number
        posted = await self._outbox.find(stream.to, key)
        if posted is None:
            posted = await self._outbox.post(stream.to, text, key)
        else:
            await self._outbox.edit(stream.to, posted, text)
        stream.parts[number] = posted
        stream.posting = None
        stream.unstored.add(number)
        await self._store_posted(turn, stream, number)

    async def _store_posted(self, turn: Turn, stream: _Stream, number: int) -> None:
        """Store the id of a posted part: without it, the part could not be retracted. Safe to cut off and repeat."""
        if not await self._store_part(turn, number, stream.parts[number]):
            raise _QuestionErased
        stream.unstored.discard(number)

    async def _store_part(self, turn: Turn, number: int, message: str) -> bool:
        """False where the question was erased. An erasure either finds the part, or has ended before it is stored: then
        the turn ends with what is left of its answer."""
        async with self._app.database.transaction(turn.tenant_id) as tx:
            return await tx.deliveries.record_part(turn.id, number, message, self._app.clock.now())

    async def _log_failure(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run `work` and log its failure: the whole answer is delivered at the end anyway."""
        try:
            await work()
        except NexusError as error:
            logger.warning("delivery.postponed", error=str(error))
        except _QuestionErased:
            pass  # the turn ends with `abandon`, which retracts the part
        except Exception:
            logger.exception("delivery.progress_failed")


async def _stop_progress(stream: _Stream) -> None:
    if stream.task is not None:
        stream.task.cancel()
        await asyncio.gather(stream.task, return_exceptions=True)


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event is set within so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()

"""The way back to Slack: posts, streams, edits and finds messages (bot.delivery.streaming.Outbox).

In channels an answer stands in a thread under what was asked, in a DM beside it, or in its thread. In threads it
is streamed as Slack's own agents do. A stream may die at any time: then the whole text is put there by an edit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from bot.delivery.streaming import INTRODUCTION_MARK, StreamingDelivery
from bot.slack.client import Doubtful, Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.inbox import Recent
from bot.slack.text import written
from composer.app import App
from composer.errors import NexusError, Unavailable
from composer.model import ConversationKind, Turn
from composer.repositories.deliveries import Destination
from composer.turn.respond import Reply

logger = structlog.get_logger()

LIMIT: Final = 3_500  # characters a message
PACE: Final = 1.1  # seconds; Slack takes about one edit a second in a channel
TRIES: Final = 4  # of one call that Slack fails at
PAUSE: Final = 0.3  # seconds before the second try, doubled for each further one
THINKING: Final = "is thinking…"
KIND: Final = "nexus_answer"  # the type of our messages' metadata, which carry their key
_GONE: Final = frozenset({"message_not_found", "thread_not_found", "cant_update_message", "edit_window_closed"})
_STREAMING: Final = "streaming_state_conflict"
_STOPPED: Final = "stopped_by_user"
_NO_STREAMS: Final = frozenset({"unknown_method", "missing_scope", "not_allowed_token_type", "feature_not_enabled"})


@dataclass(frozen=True, slots=True)
class Where:
    """A channel, and the thread there that a message goes into."""

    channel: str
    thread: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """As the API takes them."""
        return {"channel": self.channel} | ({"thread_ts": self.thread} if self.thread else {})


@dataclass(slots=True)
class _Stream:
    """A message of ours that is still being streamed; `stopped`: the person has had enough of it."""

    where: Where
    key: str
    text: str
    stopped: bool = False


def _beside(where: Where, key: str) -> Where:
    """A room is introduced to us for all to see, not in a thread."""
    return replace(where, thread=None) if key.endswith(INTRODUCTION_MARK) else where


def head(turn: Turn) -> str:
    """What the keys of a turn's messages begin with."""
    return turn.id.hex[:21]


def _head(key: str) -> str:
    return key.partition("-")[0]


class SlackOutbox:
    """Posts nothing twice: a message of ours carries its key, and is looked for wherever it may have been posted."""

    def __init__(
        self,
        slack: Slack,
        directory: SlackDirectory,
        noted: Callable[[str], Awaitable[bool]],
        *,
        pause: float = PAUSE,
        pace: float = PACE,
    ) -> None:
        """`noted`: whether a message is known to be (part of) an answer."""
        self._slack = slack
        self._directory = directory
        self._noted = noted
        self._pause = pause
        self._pace = pace
        self._threads: Recent[str | None] = Recent()
        self._fresh: Recent[bool] = Recent()
        self._coming: set[str] = set()
        self._doubtful: set[str] = set()
        self._posting: dict[str, asyncio.Task[str]] = {}
        self._posted: Recent[str] = Recent()
        self._editing: dict[str, asyncio.Task[None]] = {}
        self._streams: dict[str, _Stream] = {}
        self._streaming = self._status = True

    @property
    def limit(self) -> int:
        """Characters that one message may have."""
        return LIMIT

    @property
    def pace(self) -> float:
        """Seconds between edits of one message."""
        return self._pace

    # What the door tells

    def note_question(self, channel: str, ts: str, thread: str | None) -> None:
        """Something was asked, in a thread or not."""
        self._threads.note((channel, ts), thread)

    def note_fresh(self, turn: Turn) -> None:
        """This process is the first to answer a turn: none of its messages can stand there yet."""
        self._fresh.note((head(turn), ""), True)

    def streams(self, turn: Turn) -> None:
        """An answer is coming in."""
        self._coming.add(head(turn))

    def is_whole(self, turn: Turn) -> None:
        """All of an answer is there: what is still to be posted of it need not be streamed."""
        self._coming.discard(head(turn))

    async def finish(self, turn: Turn) -> None:
        """Close the streams of an answer that stands there as a whole."""
        self._fresh.pop((head(turn), ""), None)
        for ts, stream in [(ts, stream) for ts, stream in self._streams.items() if _head(stream.key) == head(turn)]:
            await self._stop(ts, stream)

    def stopped(self, messages: Sequence[str]) -> None:
        """A person has had enough of these: they stay as they are."""
        for ts in messages:
            if ts in self._streams:
                self._streams[ts].stopped = True

    async def _show_status(self, where: Where, status: str) -> None:
        try:
            await self._slack.call(
                "assistant.threads.setStatus",
                patient=False,
                channel_id=where.channel,
                thread_ts=where.thread,
                status=status,
            )
        except SlackRefused as error:
            self._status = error.code not in _NO_STREAMS
        except NexusError as error:
            logger.info("slack.status_not_shown", error=str(error))

    # bot.delivery.streaming.Outbox

    async def post(self, to: Destination, text: str, key: str) -> str:
        """Post a message, unless one with this key stands there; then bring that one to this text."""
        known = self._posted.get((key, ""))
        if known is None and key in self._posting:
            known = await self._result(key)
        if known is not None:
            await self.edit(to, known, text)
            return known
        self._posting[key] = task = asyncio.create_task(self._post(to, text, key))
        # What is under way is not cut off with who waits for it: it may have had its effect.
        try:
            return await asyncio.shield(task)
        finally:
            if task.done() and self._posting.get(key) is task:
                del self._posting[key]

    async def edit(self, to: Destination, message: str, text: str) -> None:
        """Replace the text of a message of ours; one that somebody has deleted stays deleted."""
        before = self._editing.get(message)
        self._editing[message] = task = asyncio.create_task(self._edit(to, message, text, before))
        try:
            await asyncio.shield(task)
        finally:
            if task.done() and self._editing.get(message) is task:
                del self._editing[message]

    async def find(self, to: Destination, key: str) -> str | None:
        """The message that an earlier process, or a try that was cut off, posted with this key."""
        known = self._posted.get((key, "")) or await self._result(key)
        if known is not None:
            return known
        if not self._may_stand(key):
            return None
        return await self._look(_beside(await self.where(to), key), to.message, key)

    async def typing(self, to: Destination, key: str) -> None:
        """Show that an answer is being thought of, unless it has begun already; Slack has that in threads. An answer
        takes the status away, but not one that comes to stand there behind it: such a one is taken away here."""
        where = await self.where(to)
        if where.thread is None or not self._status or self._has_begun(key):
            return
        await self._show_status(where, THINKING)
        if self._status and self._has_begun(key):
            await self._show_status(where, "")

    def _has_begun(self, key: str) -> bool:
        return key in self._posting or (key, "") in self._posted

    async def where(self, to: Destination) -> Where:
        """Where an answer goes. Raises Unavailable when Slack must be asked and does not answer."""
        if to.kind is not ConversationKind.DM:
            channel, _, thread = to.name.partition("/")
            return Where(channel, to.thread or thread or to.message)
        channel = await self._directory.im(to.user or "")
        key = (channel, to.message)
        if key not in self._threads:
            try:
                page = await self._slack.call("conversations.replies", channel=channel, ts=to.message, limit=1)
                threads = [m.get("thread_ts") for m in page["messages"] if m["ts"] == to.message]
            except SlackRefused:
                threads = []
            inside = [str(thread) for thread in threads if thread not in (None, to.message)]
            self._threads.note(key, inside[0] if inside else None)
        return Where(channel, self._threads[key])

    # Editing

    async def _edit(self, to: Destination, message: str, text: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        where = await self.where(to)
        stream = self._streams.get(message)
        if stream is None:
            await self._update(where, message, written(text))
            return
        if stream.stopped or await self._append(message, stream, written(text)):
            return
        await self._stop(message, stream)
        await self._update(where, message, written(text), metadata=_metadata(stream.key))

    # Posting

    def _may_stand(self, key: str) -> bool:
        """Whether a message with this key may stand there without our knowing."""
        return (_head(key), "") not in self._fresh or key in self._doubtful

    async def _result(self, key: str) -> str | None:
        """What a post that is under way comes to; None when there is none, or it fails."""
        task = self._posting.get(key)
        if task is None:
            return None
        await asyncio.wait({task})
        return None if task.cancelled() or task.exception() is not None else task.result()

    async def _post(self, to: Destination, text: str, key: str) -> str:
        where, pause = _beside(await self.where(to), key), self._pause
        for number in range(TRIES):
            if self._may_stand(key):
                found = await self._look(where, to.message, key)
                if found is not None:
                    self._posted.note((key, ""), found)
                    await self.edit(to, found, text)
                    return found
            try:
                ts = await self._post_once(where, to, text, key)
            except Doubtful as error:
                self._doubtful.add(key)
                if number == TRIES - 1:
                    raise
                logger.warning("slack.post_doubtful", error=str(error))
                await asyncio.sleep(pause)
                pause *= 2
                continue
            self._doubtful.discard(key)
            self._posted.note((key, ""), ts)
            return ts
        raise Unavailable("Slack does not take the answer now.")

    async def _post_once(self, where: Where, to: Destination, text: str, key: str) -> str:
        if self._streaming and where.thread is not None and _head(key) in self._coming and key[-1].isdigit():
            try:
                return await self._start(where, to, text, key)
            except SlackRefused as error:
                self._streaming = error.code not in _NO_STREAMS
                logger.info("slack.stream_refused", error=str(error))
        answer = await self._slack.call(
            "chat.postMessage",
            **where.arguments,
            markdown_text=written(text),
            metadata=_metadata(key),
            unfurl_links=False,
            unfurl_media=False,
        )
        return str(answer["ts"])

    async def _start(self, where: Where, to: Destination, text: str, key: str) -> str:
        me = await self._directory.me()
        recipient: dict[str, Any] = {"recipient_team_id": me.team, "recipient_user_id": to.user}
        answer = await self._slack.call("chat.startStream", **where.arguments, markdown_text=written(text), **recipient)
        self._streams[answer["ts"]] = _Stream(where, key, written(text))
        return str(answer["ts"])

    async def _append(self, ts: str, stream: _Stream, text: str) -> bool:
        """Add to a stream what its text is short of; False when that can't be."""
        if text == stream.text:
            return True
        if not text.startswith(stream.text):
            return False
        try:
            await self._slack.call(
                "chat.appendStream", channel=stream.where.channel, ts=ts, markdown_text=text[len(stream.text) :]
            )
        except SlackRefused as error:
            stream.stopped = error.code == _STOPPED
            logger.info("slack.stream_died", error=str(error))
            return stream.stopped
        except Doubtful as error:  # it may have been added, or not
            logger.info("slack.stream_doubtful", error=str(error))
            return False
        stream.text = text
        return True

    async def _stop(self, ts: str, stream: _Stream) -> None:
        """Close a stream; one that is closed already, or dies with time, does no harm."""
        del self._streams[ts]
        if stream.stopped:
            return
        try:
            await self._slack.call(
                "chat.stopStream", channel=stream.where.channel, ts=ts, metadata=_metadata(stream.key)
            )
        except NexusError as error:
            logger.info("slack.stream_not_stopped", error=str(error))

    async def _update(self, where: Where, ts: str, text: str, **more: Any) -> None:
        pause = self._pause
        for number in range(TRIES):
            try:
                await self._slack.call("chat.update", channel=where.channel, ts=ts, markdown_text=text, **more)
                return
            except SlackRefused as error:
                if error.code in _GONE:
                    return
                if error.code != _STREAMING:
                    raise
                if number == TRIES - 1:
                    raise Unavailable("Slack does not let go of a stream.") from error
                await self._stop_foreign(where, ts)
            except Doubtful:
                if number == TRIES - 1:
                    raise
                await asyncio.sleep(pause)
                pause *= 2

    async def _stop_foreign(self, where: Where, ts: str) -> None:
        """Close a stream that an earlier process left open, or whose end we were not told."""
        try:
            await self._slack.call("chat.stopStream", channel=where.channel, ts=ts)
        except SlackRefused as error:
            logger.info("slack.stream_not_stopped", error=str(error))

    # Looking for what may stand there

    async def _look(self, where: Where, asked: str, key: str) -> str | None:
        """The message with this key among those after the question. A stream carries its key only once it is closed:
        one of ours without any key, that is no known part of an answer, is the one that was cut off."""
        orphans = []
        for message in await self._after(where, asked):
            metadata = message.get("metadata") or {}
            if metadata.get("event_type") == KIND:
                if (metadata.get("event_payload") or {}).get("key") == key:
                    return str(message["ts"])
            elif message["ts"] > asked and message["ts"] not in self._streams:
                orphans.append(str(message["ts"]))
        for ts in orphans if key[-1].isdigit() else ():
            if not await self._noted(ts):
                return ts
        return None

    async def _after(self, where: Where, asked: str) -> list[dict[str, Any]]:
        """Our own messages since a question, oldest first."""
        me = await self._directory.me()
        arguments: dict[str, Any] = {"channel": where.channel, "oldest": asked, "limit": 200}
        arguments["include_all_metadata"] = True
        method = "conversations.history"
        if where.thread is not None:
            method, arguments["ts"] = "conversations.replies", where.thread
        ours: dict[str, dict[str, Any]] = {}
        while True:
            try:
                page = await self._slack.call(method, **arguments)
            except SlackRefused as error:
                if error.code in _GONE:
                    return []
                raise
            ours |= {m["ts"]: m for m in page["messages"] if m.get("user") == me.user or m.get("bot_id") == me.bot}
            arguments["cursor"] = (page.get("response_metadata") or {}).get("next_cursor", "")
            if not arguments["cursor"]:
                return [ours[ts] for ts in sorted(ours)]


def _metadata(key: str) -> dict[str, Any]:
    return {"event_type": KIND, "event_payload": {"key": key}}


class SlackDelivery(StreamingDelivery):
    """Answers on their way to Slack (composer.turn.worker.Door): streamed while they come in."""

    def __init__(self, app: App, wire: SlackOutbox) -> None:
        super().__init__(app, wire)
        self._slack_wire = wire

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Show a piece as soon as the pace allows."""
        self._slack_wire.streams(turn)
        await super().on_chunk(turn, text)

    async def deliver(self, reply: Reply) -> None:
        """Bring what stands there to the whole answer. Raises as StreamingDelivery."""
        self._slack_wire.is_whole(reply.turn)
        await super().deliver(reply)
        await self._slack_wire.finish(reply.turn)

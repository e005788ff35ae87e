"""Posts, edits and finds messages on Slack (bot.delivery.outbox.Outbox).

In a channel, an answer goes into a thread under its question; in a DM beside it, or into its thread. In threads it is
streamed (bot/slack/streams.py). A stream may end at any time: then the whole text is set by an edit.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import structlog
from cachetools import LRUCache

from bot.delivery.offers import OFFER_PREFIX, buttons
from bot.delivery.outbox import (
    CLOCK_SKEW,
    PRIVACY_SUFFIX,
    PostedMessages,
    is_answer_part,
    owner_of,
    turn_key,
)
from bot.platform.retry import Backoff
from bot.slack.client import OutcomeUnknown, Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.streams import METADATA_TYPE, Location, Streams, message_metadata
from bot.slack.text import escaped, safe_markdown
from composer.errors import NexusError, Unavailable
from composer.memory.forget import RETRACTED
from composer.model import ConversationKind, Offer, Turn
from composer.repositories.deliveries import Destination

logger = structlog.get_logger()

MAX_SLACK_MESSAGE_CHARS: Final = 3_500
EDIT_INTERVAL_SECONDS: Final = 1.1  # Slack takes about one edit a second in a channel
MAX_POST_TRIES: Final = 4  # of one call whose outcome is unknown
POST_BACKOFF: Final = Backoff(first_seconds=0.3)
MAX_REMEMBERED_POSTS: Final = 10_000  # posted messages, and threads of questions
SLACK_PAGE: Final = 200
THINKING: Final = "is thinking…"
MAX_BUTTON_CHARS: Final = 2_000  # that a button carries
_NO_MESSAGE: Final = "message_not_found"
_CANNOT_BE_EDITED: Final = frozenset({_NO_MESSAGE, "thread_not_found", "cant_update_message", "edit_window_closed"})
_CLOSED_TO_EDITS: Final = frozenset({"cant_update_message", "edit_window_closed"})
_STREAMING: Final = "streaming_state_conflict"
_NO_STREAMS: Final = frozenset({"unknown_method", "missing_scope", "not_allowed_token_type", "feature_not_enabled"})


class SlackOutbox:
    """Posts nothing twice: a message carries its key as metadata, and is looked for where it may have been posted."""

    def __init__(
        self,
        slack: Slack,
        directory: SlackDirectory,
        posted: PostedMessages,
        *,
        backoff: Backoff = POST_BACKOFF,
        edit_interval: float = EDIT_INTERVAL_SECONDS,
    ) -> None:
        self._slack = slack
        self._directory = directory
        self._posted = posted
        self._backoff = backoff
        self._edit_interval = edit_interval
        self._threads: LRUCache[tuple[str, str], str | None] = LRUCache(MAX_REMEMBERED_POSTS)  # by message
        self._incomplete: set[str] = set()  # turns whose answers are still coming in
        self._uncertain: set[str] = set()  # keys of posts that may or may not have taken effect
        self._posting: dict[str, asyncio.Task[str]] = {}  # by key
        self._known: LRUCache[str, str] = LRUCache(MAX_REMEMBERED_POSTS)  # posted messages by key
        self._editing: dict[str, asyncio.Task[None]] = {}  # by message
        self._signs: LRUCache[str, Location] = LRUCache(MAX_REMEMBERED_POSTS)  # to be cleared, by key
        self._streams = Streams(slack, directory)
        self._can_stream = self._can_show_status = True

    @property
    def limit(self) -> int:
        """How many characters one message may have."""
        return MAX_SLACK_MESSAGE_CHARS

    @property
    def edit_interval(self) -> float:
        """Seconds between two edits of one message."""
        return self._edit_interval

    # What the adapter and the delivery know of questions and answers

    def note_question(self, channel: str, ts: str, thread: str | None) -> None:
        """Remember which thread a question was asked in (None: in none)."""
        self._threads[channel, ts] = thread

    def begin(self, turn: Turn) -> None:
        """The model has begun to answer this turn: post its parts as streams."""
        self._incomplete.add(turn_key(turn))

    def complete(self, turn: Turn) -> None:
        """The whole answer to a turn is known: what is not posted of it yet need not be streamed."""
        self._incomplete.discard(turn_key(turn))

    async def finish(self, turn: Turn) -> None:
        """Close the streams of an answer whose delivery has ended."""
        await self._streams.stop_all_of(turn_key(turn))

    def stop_streams(self, messages: Sequence[str]) -> None:
        """A person has stopped these messages: they stay as they are."""
        self._streams.mark_stopped(messages)

    # bot.delivery.outbox.Outbox

    async def post(self, to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
        """Post a message; if one with this key is posted already, edit that one to this text. `offers` are buttons
        below it."""
        known = self._known.get(key)
        if known is None and key in self._posting:
            known = await self._result(key)
        if known is not None:
            await self.edit(to, known, text)
            return known
        self._posting[key] = task = asyncio.create_task(self._post(to, text, key, offers))
        # Shielded: cancelling the caller must not cancel a call that may have taken effect.
        try:
            posted = await asyncio.shield(task)
        finally:
            if task.done() and self._posting.get(key) is task:
                del self._posting[key]
        if (sign := self._signs.pop(key, None)) is not None:  # what is posted elsewhere does not clear it
            await self._set_status(sign, "")
        return posted

    async def edit(self, to: Destination, message: str, text: str) -> None:
        """Replace the text of one of our messages; do nothing if somebody has deleted it."""
        before = self._editing.get(message)
        self._editing[message] = task = asyncio.create_task(self._edit(to, message, text, before))
        try:
            await asyncio.shield(task)
        finally:
            if task.done() and self._editing.get(message) is task:
                del self._editing[message]

    async def find(self, to: Destination, key: str) -> str | None:
        """The message that an earlier process or an interrupted call posted with this key, if any."""
        known = self._known.get(key) or await self._result(key)
        if known is not None:
            return known
        if not self._may_be_posted(key):
            return None
        return await self._search(_location_of(key, await self.location(to)), to, key)

    async def show_typing(self, to: Destination, key: str) -> None:
        """Show the status that an answer is being written, which Slack has in threads only: in a DM outside the pane,
        at the question.

        An answer that is posted there clears the status; one that is posted elsewhere, or before the status is set, is
        followed by a call that does.
        """
        location = await self.location(to)
        shown = replace(location, thread=location.thread or to.message or None)
        if shown.thread is None or not self._can_show_status or self._has_begun(key):
            return
        await self._set_status(shown, THINKING)
        if self._can_show_status and self._has_begun(key):
            await self._set_status(shown, "")
        elif self._can_show_status and location.thread is None:
            self._signs[key] = shown

    async def location(self, to: Destination) -> Location:
        """Where an answer goes. Raises Unavailable when Slack must be asked and does not answer."""
        if to.kind is not ConversationKind.DM:
            channel, _, thread = to.name.partition("/")
            return Location(channel, to.thread or thread or to.message or None)  # a post of an agent's own: no thread
        channel = await self._directory.dm(to.user or "")
        if not to.message:
            return Location(channel, None)
        return Location(channel, await self._thread_in_pane(channel, to.message))

    async def _thread_in_pane(self, channel: str, ts: str) -> str | None:
        """The conversation of the agent's pane, in a DM, that a message is in."""
        message = (channel, ts)
        if message not in self._threads:
            try:
                page = await self._slack.call("conversations.replies", channel=channel, ts=ts, limit=1)
                threads = [m.get("thread_ts") for m in page["messages"] if m["ts"] == ts]
            except SlackRefused:
                threads = []
            inside = [str(thread) for thread in threads if thread not in (None, ts)]
            self._threads[message] = inside[0] if inside else None
        return self._threads[message]

    def _has_begun(self, key: str) -> bool:
        return key in self._posting or key in self._known

    async def _set_status(self, location: Location, status: str) -> None:
        try:
            await self._slack.call(
                "assistant.threads.setStatus",
                wait_for_limits=False,
                channel_id=location.channel,
                thread_ts=location.thread,
                status=status,
            )
        except SlackRefused as error:
            self._can_show_status = error.code not in _NO_STREAMS
        except NexusError as error:
            logger.info("slack.status_not_set", error=str(error))

    # Editing

    async def _edit(self, to: Destination, message: str, text: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        location, new = await self.location(to), safe_markdown(text)
        if message not in self._streams:
            await self._update(location, message, new)
        elif not await self._streams.extend(message, new):
            key = await self._streams.stop(message)
            await self._update(location, message, new, metadata=message_metadata(key))

    async def _update(self, location: Location, ts: str, text: str, **more: Any) -> None:
        """Set the text of a message. Does nothing if it was deleted or cannot be edited any more."""

        async def update() -> bool:
            try:
                await self._slack.call("chat.update", channel=location.channel, ts=ts, **_edited(text), **more)
            except SlackRefused as error:
                if error.code == _STREAMING:
                    return False
                if error.code not in _CANNOT_BE_EDITED:
                    raise
                if error.code in _CLOSED_TO_EDITS and text == RETRACTED:
                    await self._delete(location, ts)
            return True

        for _ in range(MAX_POST_TRIES):
            if await self._backoff.retry(update, "slack.edit_retrying", on=OutcomeUnknown, max_tries=MAX_POST_TRIES):
                return
            await self._streams.stop_unknown(location, ts)
        raise Unavailable("Slack does not close a stream.")

    async def _delete(self, location: Location, ts: str) -> None:
        """Delete a message whose text must not stay. Raises SlackRefused."""
        try:
            await self._slack.call("chat.delete", channel=location.channel, ts=ts)
        except SlackRefused as error:
            if error.code != _NO_MESSAGE:
                raise

    # Posting

    def _may_be_posted(self, key: str) -> bool:
        """Whether a message with this key may be posted without our knowing its id."""
        return self._posted.may_have(key) or key in self._uncertain

    async def _result(self, key: str) -> str | None:
        """The message that a post in progress ends in; None if there is none, or it fails."""
        task = self._posting.get(key)
        if task is None:
            return None
        await asyncio.wait({task})
        return None if task.cancelled() or task.exception() is not None else task.result()

    async def _post(self, to: Destination, text: str, key: str, offers: Sequence[Offer]) -> str:
        location = _location_of(key, await self.location(to))

        async def post() -> str:
            if self._may_be_posted(key):
                found = await self._search(location, to, key)
                if found is not None:
                    self._known[key] = found
                    await self.edit(to, found, text)
                    return found
            try:
                ts = await self._post_once(location, to, text, key, offers)
            except OutcomeUnknown:
                self._uncertain.add(key)
                raise
            self._uncertain.discard(key)
            self._known[key] = ts
            return ts

        return await self._backoff.retry(post, "slack.post_retrying", on=OutcomeUnknown, max_tries=MAX_POST_TRIES)

    async def _post_once(
        self, location: Location, to: Destination, text: str, key: str, offers: Sequence[Offer]
    ) -> str:
        incomplete = owner_of(key) in self._incomplete and is_answer_part(key)
        if self._can_stream and location.thread is not None and incomplete:
            try:
                return await self._streams.start(location, to.user, safe_markdown(text), key)
            except SlackRefused as error:
                self._can_stream = error.code not in _NO_STREAMS
                logger.info("slack.stream_refused", error=str(error))
        answer = await self._slack.call(
            "chat.postMessage",
            **location.arguments,
            **_content(to, text, offers),
            metadata=message_metadata(key),
            unfurl_links=False,
            unfurl_media=False,
        )
        return str(answer["ts"])

    # Searching for what may be posted

    async def _search(self, location: Location, to: Destination, key: str) -> str | None:
        """The message with this key among those after the question.

        A stream carries its key only once it is closed. So one of our messages without any key, that is not stored as a
        part of an answer, is a stream that was interrupted.
        """
        unkeyed, first = [], to.message or _ts_before(to.since)
        for message in await self._own_messages(location, first):
            metadata = message.get("metadata") or {}
            if metadata.get("event_type") == METADATA_TYPE:
                if (metadata.get("event_payload") or {}).get("key") == key:
                    return str(message["ts"])
            elif message["ts"] > first and message["ts"] not in self._streams:
                unkeyed.append(str(message["ts"]))
        for ts in unkeyed if is_answer_part(key) and to.message else ():  # only answers are streamed
            if not await self._posted.contain(to, ts):
                return ts
        return None

    async def _own_messages(self, location: Location, question: str) -> list[dict[str, Any]]:
        """Our own messages since a question, oldest first."""
        me = await self._directory.me()
        arguments: dict[str, Any] = {"channel": location.channel, "oldest": question, "limit": SLACK_PAGE}
        arguments["include_all_metadata"] = True
        method = "conversations.history"
        if location.thread is not None:
            method, arguments["ts"] = "conversations.replies", location.thread
        own: dict[str, dict[str, Any]] = {}
        try:
            async for page in self._slack.pages(method, **arguments):
                own |= {m["ts"]: m for m in page["messages"] if m.get("user") == me.user or m.get("bot_id") == me.bot}
        except SlackRefused as error:
            if error.code in _CANNOT_BE_EDITED:
                return []
            raise
        return [own[ts] for ts in sorted(own)]


def _content(to: Destination, text: str, offers: Sequence[Offer]) -> dict[str, Any]:
    """The words of a message, and its buttons."""
    found = buttons(to.user or "", offers, MAX_BUTTON_CHARS)
    if not found:
        return {"markdown_text": safe_markdown(text)}
    elements = [
        {"type": "button", "action_id": f"{OFFER_PREFIX}{number}", "text": {"type": "plain_text", "text": label}}
        | {"value": carried}
        for number, (label, carried) in enumerate(found)
    ]
    shown = {"type": "section", "text": {"type": "mrkdwn", "text": escaped(text)}}
    return {"text": escaped(text), "blocks": [shown, {"type": "actions", "elements": elements}]}


def _edited(text: str) -> dict[str, Any]:
    """The new words of a message. What is retracted loses its buttons too, which Slack keeps unless it is told."""
    return {"text": text, "blocks": []} if text == RETRACTED else {"markdown_text": text}


def _ts_before(at: datetime | None) -> str:
    """A message id that is surely before what was posted after a time."""
    return "0" if at is None else f"{(at - CLOCK_SKEW).timestamp():.6f}"


def _location_of(key: str, location: Location) -> Location:
    """A privacy notice is posted in the room itself, for everyone to see, and not in a thread."""
    return replace(location, thread=None) if key.endswith(PRIVACY_SUFFIX) else location

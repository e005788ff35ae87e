"""Compares what is stored with what Slack has, and applies the edits and deletions that were missed: Slack does not
tell them later."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import structlog

from bot.slack.channels import SlackChannels
from bot.slack.client import Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.inbox import SlackInbox
from bot.slack.reading import PLATFORM, SlackMessage, SlackMessageChange, edit_of, read_message, time_of, ts_of
from composer.app import App
from composer.errors import Unavailable
from composer.model import ConversationKind
from composer.repositories.conversations import ReceivedConversation

logger = structlog.get_logger()

COMPARED_SPAN: Final = timedelta(days=1)  # before the last message received in a conversation
MAX_COMPARED_THREADS: Final = 20  # of a channel, latest first
MAX_COMPARED_MESSAGES: Final = 500  # of each conversation
MAX_COMPARED_WHOLLY: Final = 10_000  # of each conversation of a channel whose history was changed at once
MAX_CHECKED_MESSAGES: Final = 50  # of each conversation, before all others: each missing one takes a call
MAX_FAILURES: Final = 3  # after which Slack or the database counts as down
MAX_THREADS: Final = 100  # of a channel, latest first
MAX_COMPARED_AGE: Final = timedelta(days=30)  # since the last message of a conversation: a free plan hides older ones
_NO_THREAD: Final = "thread_not_found"


@dataclass(frozen=True, slots=True)
class Compared:
    """A conversation to compare with what Slack has: in which channel Slack has it, and under which id it is stored
    (one of the channel's later ids, if something came by that before Slack told whose it is). `noted_at`: when it was
    noted that it is to be compared."""

    channel: str
    stored: str
    seen: ReceivedConversation
    noted_at: datetime | None


class Failures:
    """What fails of several channels or conversations, of which one keeps no other from being tried. What Slack refuses
    is left out; all else is to be tried again."""

    def __init__(self) -> None:
        self._last: Exception | None = None
        self._unavailable = 0

    @contextmanager
    def of(self, channel: str, leave_out: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Try one. Raises Unavailable once Slack or the database counts as down."""
        try:
            yield
        except SlackRefused as error:
            logger.warning("slack.history_refused", channel=channel, error=str(error))
            leave_out()
        except Unavailable as error:
            self._last = error
            self._unavailable += 1
            if self._unavailable == MAX_FAILURES:
                raise
        except Exception as error:
            logger.exception("slack.history_failed", channel=channel)
            self._last = error

    def raise_last(self) -> None:
        """Raise what failed last, if anything did."""
        if self._last is not None:
            raise self._last


class SlackComparison:
    """What is stored of one workspace, beside what Slack has of it now."""

    def __init__(
        self, app: App, slack: Slack, directory: SlackDirectory, inbox: SlackInbox, channels: SlackChannels
    ) -> None:
        self._app = app
        self._slack = slack
        self._directory = directory
        self._inbox = inbox
        self._ids = channels
        self._waiting: dict[uuid.UUID, Compared] = {}  # what is to be compared, by conversation
        self._due = asyncio.Event()

    async def note_changed(self, channel: str, *, direct: bool) -> None:
        """Compare all that is stored of a channel ("": of every one), or (`direct`) of all DMs, when the history is
        read next, also by a later process. Raises Unavailable."""
        workspace = await self._inbox.workspace()
        await self._ids.refresh()
        rooms = [] if direct or not channel else [channel, *self._ids.ids.split(channel)]
        async with self._app.database.transaction(workspace.tenant_id) as tx:
            await tx.conversations.note_history_changed(
                PLATFORM, workspace.name, rooms, direct=direct, now=self._app.clock.now()
            )

    def add(self, compared: Sequence[Compared]) -> None:
        """Compare these conversations, too; one that waits already, from where it was to be compared first."""
        for each in compared:
            waiting = self._waiting.get(each.seen.id)
            self._waiting[each.seen.id] = each if waiting is None else _merged(waiting, each)
        self._due.set()

    async def due(self) -> None:
        """Wait until something was added."""
        await self._due.wait()
        self._due.clear()

    async def compare(self) -> None:
        """Apply what was missed in the conversations that wait for that. One that fails keeps no other from it. Raises
        why the last one failed; then those wait on that were not compared."""
        failures = Failures()
        left: list[tuple[Compared, Sequence[str]]] = []
        for each in list(self._waiting.values()):
            with failures.of(each.channel, partial(self._end, each)):
                if missing := await self._apply_changes(each):
                    left.append((each, missing))
                else:
                    await self._note_compared(each)
        for each, missing in left:
            with failures.of(each.channel, partial(self._end, each)):
                await self._apply_changes_of(each, missing)
                await self._note_compared(each)
        failures.raise_last()

    def _end(self, compared: Compared) -> None:
        """Compare a conversation no more, unless it was added again meanwhile."""
        if self._waiting.get(compared.seen.id) is compared:
            del self._waiting[compared.seen.id]

    async def _note_compared(self, compared: Compared) -> None:
        """Compare a conversation no more because of what was noted before it was compared."""
        if compared.noted_at is not None:
            workspace = await self._inbox.workspace()
            async with self._app.database.transaction(workspace.tenant_id) as tx:
                await tx.conversations.clear_history_changed(compared.seen.id, compared.noted_at)
        self._end(compared)

    async def _apply_changes(self, compared: Compared) -> Sequence[str]:
        """Erase the messages of a conversation whose deletion was missed, and edit those whose edit was, or the
        deletion of a file, of which nothing says when it was: of the last day, or of 30 days if its history was changed
        at once. Returns those that are missing in its history and were not looked up yet.

        A message counts as deleted only if it is missing from a history that was read completely, and Slack says that
        it does not exist; as edited only if it was edited after it was stored: its text may also differ because a name
        in it has changed. Raises SlackRefused or Unavailable when the history could not be read completely; then
        nothing was changed.
        """
        seen = compared.seen
        said, posted = await self._stored(seen, whole=seen.changed_at is not None)
        stored = {*said, *posted}
        if not stored or seen.seen_at < self._app.clock.now() - MAX_COMPARED_AGE:  # a free plan hides older messages
            return ()
        span: dict[str, Any] = {
            "channel": compared.channel,
            "oldest": min(stored),
            "latest": max(stored),
            "inclusive": True,
        }
        method = "conversations.history"
        if seen.thread is not None:
            method, span["ts"] = "conversations.replies", seen.thread
        try:
            messages = await self._slack.messages(method, **span)
        except SlackRefused as error:
            if error.code != _NO_THREAD:
                raise
            messages = []  # nothing of the thread is left
        present = {message["ts"]: message for message in messages if message.get("subtype") != "tombstone"}
        missing = sorted(stored - present.keys(), reverse=True)  # in a DM also the messages of its threads
        await self._apply_changes_of(compared, missing[:MAX_CHECKED_MESSAGES])
        await self._apply_edits(compared, said, present)
        return missing[MAX_CHECKED_MESSAGES:]

    async def _apply_changes_of(self, compared: Compared, missing: Sequence[str]) -> None:
        """The same for messages that are missing in the history of their conversation, of which each is looked up."""
        if not missing:
            return
        found, seen = {ts: await self._look_up(compared.channel, ts) for ts in missing}, compared.seen
        direct, changed_ts = seen.kind is ConversationKind.DM, ts_of(self._app.clock.now())
        for ts, message in found.items():
            if message is None:
                change = SlackMessageChange(compared.stored, ts, seen.user or "", None, direct, changed_ts)
                await self._inbox.change_message(change)
        said, _ = await self._stored(seen, whole=True)
        await self._apply_edits(compared, said, {ts: each for ts, each in found.items() if each is not None})

    async def _stored(
        self, seen: ReceivedConversation, *, whole: bool
    ) -> tuple[dict[str, datetime], dict[str, datetime]]:
        """What is stored of a conversation's last day, or (`whole`) of 30 days: when its people's messages were written
        or last edited, and when parts of answers were posted, by `ts`."""
        workspace, since, limit = await self._inbox.workspace(), seen.seen_at - COMPARED_SPAN, MAX_COMPARED_MESSAGES
        if whole:
            since, limit = min(since, self._app.clock.now() - MAX_COMPARED_AGE), MAX_COMPARED_WHOLLY
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            said = await tx.messages.change_times(seen.id, since, limit)
            return said, await tx.deliveries.posted(seen.id, since, limit)

    async def _apply_edits(
        self, compared: Compared, said: Mapping[str, datetime], present: Mapping[str, dict[str, Any]]
    ) -> None:
        """Edit the messages that Slack has in another version than is stored."""
        channel, direct = compared.stored, compared.seen.kind is ConversationKind.DM
        for ts in sorted(said.keys() & present.keys()):
            edited_ts = str((present[ts].get("edited") or {}).get("ts") or ts)
            lost_file = any(file.get("mode") == "tombstone" for file in present[ts].get("files") or ())
            if lost_file or time_of(edited_ts) > said[ts]:
                event = read_message(present[ts], channel, "im" if direct else "", await self._directory.me())
                if isinstance(event, SlackMessage):
                    await self._inbox.change_message(edit_of(event, present[ts], edited_ts))

    async def _look_up(self, channel: str, ts: str) -> dict[str, Any] | None:
        """A message; empty where Slack does not say. None if it says that there is none, or that only its thread is
        left of it."""
        try:
            page = await self._slack.call("conversations.replies", channel=channel, ts=ts, limit=1)
        except SlackRefused as error:
            if error.code in (_NO_THREAD, "message_not_found"):
                return None
            raise
        found: dict[str, Any] = next((m for m in page["messages"] if m["ts"] == ts), {})
        return None if found.get("subtype") == "tombstone" else found


def _merged(waiting: Compared, added: Compared) -> Compared:
    """A conversation that waits to be compared and is to be compared again: as far back as at first, or wholly if its
    history was changed at once since."""
    changed_at = None if added.seen.changed_at == waiting.noted_at else added.seen.changed_at
    seen = replace(waiting.seen, changed_at=changed_at or waiting.seen.changed_at)
    return replace(added, seen=seen, noted_at=added.noted_at or waiting.noted_at)


def conversations_of(
    channel: str,
    stored: str,
    seen: ReceivedConversation | None,
    threads: Sequence[ReceivedConversation],
    noted: Mapping[uuid.UUID, datetime],
) -> list[Compared]:
    """A channel and its threads, as far as they are compared: the latest threads, and those of which more may have
    changed. `noted`: conversations of which messages were missed, with the time at which that was noted."""
    changed = [thread for thread in threads[MAX_COMPARED_THREADS:] if thread.changed_at is not None]
    latest = [*threads[:MAX_COMPARED_THREADS], *changed][:MAX_THREADS]
    each_of = ([] if seen is None else [seen]) + latest
    return [Compared(channel, stored, each, each.changed_at or noted.get(each.id)) for each in each_of]

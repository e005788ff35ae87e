"""Reads the messages that were written while the bot was not connected: Slack does not deliver them later."""

import asyncio
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import structlog

from bot.platform.events import RoomPrivacyChanged
from bot.slack.channels import SlackChannels
from bot.slack.client import Slack, SlackRefused
from bot.slack.comparison import MAX_THREADS, Compared, Failures, conversations_of
from bot.slack.directory import MAX_CLOCK_DIFFERENCE, SlackDirectory
from bot.slack.inbox import SlackInbox
from bot.slack.reading import PLATFORM, SlackMessage, edit_of, read_message, ts_of
from bot.slack.text import command
from composer.app import App
from composer.model import ConversationKind
from composer.repositories.conversations import ReceivedConversation
from composer.workspace import message_id, room_id

logger = structlog.get_logger()

OVERLAP: Final = timedelta(hours=1)  # before the last message received: events come in any order, and edits after
REDELIVERY_SPAN: Final = timedelta(minutes=10)  # more than that in which Slack delivers an event again
NEW_CHANNEL_SPAN: Final = timedelta(days=1)  # of a channel of which nothing was received yet
MAX_THREAD_AGE: Final = timedelta(days=30)  # since its last message; older threads are not read
PAGE_SIZE: Final = 200
CHANNEL_TYPES: Final = "public_channel,private_channel,mpim,im"
_KINDS: Final = (("is_im", "im"), ("is_mpim", "mpim"), ("is_private", "group"), ("is_group", "group"))


class _Positions:
    """How far the conversations of a workspace were received."""

    def __init__(self, seen: Iterable[ReceivedConversation]) -> None:
        self.all = {each.id: each for each in seen}
        self.rooms = {c.name: c for c in self.all.values() if c.kind is ConversationKind.ROOM}
        self.dms = {c.user: c for c in self.all.values() if c.kind is ConversationKind.DM}
        self.threads: dict[str, list[ReceivedConversation]] = {}
        for thread in self.all.values():
            if thread.kind is ConversationKind.THREAD:
                self.threads.setdefault(thread.name, []).append(thread)

    def merged(self, later: "_Positions", read: Collection[str | None]) -> "_Positions":
        """These positions, and the later ones of what was `read` since: channels by their names, DMs by their people.
        What was stored first since then, in one that was not read, has none."""
        was_read = {each.id for each in later.all.values() if _reading_of(each) in read}
        return _Positions(
            each if each.id in was_read else self.all[each.id]
            for each in later.all.values()
            if each.id in was_read or each.id in self.all
        )


class SlackHistory:
    """What was missed in the channels that we are in, from the last message that was received in each before anything
    came again."""

    def __init__(
        self,
        app: App,
        slack: Slack,
        directory: SlackDirectory,
        inbox: SlackInbox,
        channels: SlackChannels,
    ) -> None:
        self._app = app
        self._slack = slack
        self._directory = directory
        self._inbox = inbox
        self._ids = channels
        self._is_missed = True  # something may have been missed, and nothing is noted of that yet
        self._noting = asyncio.Lock()
        self._noted = 0  # how often positions were noted
        self._before: _Positions | None = None  # as they were noted, until all is read from there
        self._unread_since = app.clock.now()  # as it is noted for other processes
        self._read: set[str | None] = set()  # the channels, and people of DMs, that were read from there

    def miss(self) -> None:
        """Something may have been missed: it is to be read from the last message received before `begin`."""
        self._is_missed = True

    async def begin(self) -> None:
        """Note how far each conversation was received, if something was missed: what comes now moves that on. Raises
        Unavailable."""
        if not (self._is_missed or self._noting.locked()):
            return
        async with self._noting:  # what comes meanwhile waits, too
            if self._is_missed:
                self._is_missed = False  # `miss` takes it back
                try:
                    await self._note()
                except BaseException:
                    self._is_missed = True
                    raise

    async def _note(self) -> None:
        """Note it also for the next process, in case this one ends before it has read everything."""
        workspace, now = await self._inbox.workspace(), self._app.clock.now()
        async with self._app.database.transaction(workspace.tenant_id) as tx:
            await tx.people.ensure_tenant(workspace.tenant, PLATFORM, workspace.name, (), now)
            since = await tx.conversations.note_history_unread(PLATFORM, workspace.name, now)
            ended = since if self._before is None else None  # another process has noted that, which may have ended
            before = None if ended is None else ended - REDELIVERY_SPAN
            positions = _Positions(await tx.conversations.received(PLATFORM, workspace.name, before))
        self._unread_since = since or now
        self._before = positions if self._before is None else self._before.merged(positions, self._read)
        self._read, self._noted = set(), self._noted + 1

    async def _note_all_read(self, number: int) -> None:
        """Note that all was read from where it was noted, unless more was missed since. `number`: of that noting."""
        async with self._noting:
            if self._before is None or number != self._noted:
                return
            workspace = await self._inbox.workspace()
            async with self._app.database.transaction(workspace.tenant_id) as tx:
                await tx.conversations.note_history_read(PLATFORM, workspace.name, self._unread_since)
            self._before = None
            self._read.clear()

    async def _received(self) -> _Positions:
        workspace = await self._inbox.workspace()
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            return _Positions(await tx.conversations.received(PLATFORM, workspace.name))

    async def catch_up(self) -> list[Compared]:
        """Store what was missed, and queue turns for recent questions. Returns what is then to be compared, which takes
        long: a question is answered for 15 minutes only. A channel that fails keeps no other from being read. Raises
        why the last one failed."""
        await self.begin()
        noted_before, before = self._noted, self._before or await self._received()
        present = await self._received() if self._read else before  # for what an earlier try has read
        asked_at, channels = self._app.clock.now(), await self._channels()
        await self._close(channels)
        compared: list[Compared] = []
        noted: dict[uuid.UUID, datetime] = {}
        failures = Failures()
        for channel in channels:
            id, user = channel["id"], channel.get("user")
            if user is not None:
                self._directory.note_dm(user, id)
            at = present if id in self._read else before
            rooms, threads = at.rooms, at.threads
            known = at.dms.get(user) if channel.get("is_im") else rooms.get(id)
            others = [other for other in self._ids.ids.split(id) if other in rooms or other in threads]
            own_threads = threads.get(id, [])
            other_threads = [each for other in others for each in threads.get(other, [])]
            read, number = {id, user, *others}, self._noted
            with failures.of(id, partial(self._note_read, read, number)):
                await self._catch_up_channel(channel, known, own_threads, other_threads, noted)
                await self._open(channel, asked_at)
                self._note_read(read, number)
                compared += conversations_of(id, id, known, own_threads, noted)
                for other in others:
                    compared += conversations_of(id, other, rooms.get(other), threads.get(other, []), noted)
        failures.raise_last()
        await self._note_all_read(noted_before)
        return compared

    def _note_read(self, read: Collection[str | None], number: int) -> None:
        """Read no more from where it was noted. `number`: of the noting before which the reading began."""
        if number == self._noted:
            self._read.update(read)

    async def _close(self, channels: Iterable[dict[str, Any]]) -> None:
        """Make the rooms of private channels private before anything is read: one may have been public when we last
        heard of it, and what was said in public meanwhile opens it no more."""
        for channel in channels:
            if _kind(channel) == "group":
                for id in (channel["id"], *self._ids.ids.split(channel["id"])):
                    await self._inbox.apply(RoomPrivacyChanged(id, private=True))

    async def _open(self, channel: dict[str, Any], asked_at: datetime) -> None:
        """Make the room of a public channel public, after what was said there in private was stored."""
        if _kind(channel) == "channel":
            at = asked_at - MAX_CLOCK_DIFFERENCE
            await self._inbox.apply(RoomPrivacyChanged(channel["id"], private=False, at=at))

    async def _channels(self) -> list[dict[str, Any]]:
        """The channels that we are in."""
        pages = self._slack.pages("users.conversations", types=CHANNEL_TYPES, exclude_archived=True, limit=PAGE_SIZE)
        listed = [channel async for page in pages for channel in page["channels"]]
        await self._ids.refresh()
        return [channel | {"id": self._ids.ids.name(channel["id"])} for channel in listed]

    async def _catch_up_channel(
        self,
        channel: dict[str, Any],
        seen: ReceivedConversation | None,
        threads: Sequence[ReceivedConversation],
        others: Sequence[ReceivedConversation],
        noted: dict[uuid.UUID, datetime],
    ) -> None:
        """Store what was missed in a channel and its threads; `others` are those that are stored under later ids of
        it themselves. `noted` gets those of which messages were missed."""
        id, now = channel["id"], self._app.clock.now()
        kind = _kind(channel)
        oldest = ts_of(now - NEW_CHANNEL_SPAN if seen is None else seen.seen_at - OVERLAP)
        found = await self._slack.messages("conversations.history", channel=id, oldest=oldest)
        joined = _joined(found, (await self._directory.me()).user)
        messages = [message for message in found if message["ts"] > joined]  # earlier ones are not ours to read
        if seen is None:
            oldest = min((m["ts"] for m in messages), default=ts_of(now))
        latest = sorted((*threads, *others), key=lambda thread: thread.seen_at, reverse=True)[:MAX_THREADS]
        known = {thread.thread or "": thread for thread in reversed(latest)}
        since_heard = joined or _first_heard(seen, threads)
        for root in self._active_threads(found, known, oldest):
            since = max(ts_of(known[root].seen_at - OVERLAP) if root in known else oldest, since_heard)
            try:
                replies = await self._slack.messages("conversations.replies", channel=id, ts=root, oldest=since)
            except SlackRefused as error:
                logger.info("slack.thread_unread", channel=id, error=str(error))
                continue
            messages += [message for message in replies if message["ts"] != root and message["ts"] >= since]
        elsewhere = await self._stored_elsewhere(id, [message["ts"] for message in messages])
        new = {message["ts"]: message for message in messages if message["ts"] not in elsewhere}
        noted |= await self._note_missed([*([] if seen is None else [seen]), *threads], new)
        await self._store(id, kind, new, oldest)

    async def _note_missed(
        self, known: Sequence[ReceivedConversation], messages: Mapping[str, dict[str, Any]]
    ) -> dict[uuid.UUID, datetime]:
        """Note of which conversations messages were missed, before these are stored: what was deleted or edited
        meanwhile is looked for before the last message that is stored, and this process may end before it has done
        that."""
        now, workspace = self._app.clock.now(), await self._inbox.workspace()
        missed = {each.id: now for each in known if each.changed_at is None and _is_missed(each, messages)}
        if missed:
            async with self._app.database.transaction(workspace.tenant_id) as tx:
                await tx.conversations.note_missed(missed, now)
        return missed

    async def _stored_elsewhere(self, channel: str, messages: Sequence[str]) -> set[str]:
        """Which messages are stored, or erased, under a later id of a channel itself: they are not stored twice."""
        others = self._ids.ids.split(channel)
        if not others:
            return set()
        workspace = await self._inbox.workspace()
        ids = {message_id(room_id(workspace, other), ts): ts for other in others for ts in messages}
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            return {ids[id] for id in await tx.messages.find_known_ids(list(ids))}

    def _active_threads(
        self, messages: Iterable[dict[str, Any]], known: dict[str, ReceivedConversation], oldest: str
    ) -> list[str]:
        """The threads that may have new replies, by the `ts` of their first messages."""
        since = self._app.clock.now() - MAX_THREAD_AGE
        active, quiet = [], set()
        for message in messages:
            if not message.get("reply_count"):
                continue
            latest, thread = str(message.get("latest_reply") or ""), known.get(message["ts"])
            if latest and latest <= (oldest if thread is None else thread.seen_id):
                quiet.add(message["ts"])
            else:
                active.append(message["ts"])
        for ts, thread in known.items():
            if ts not in quiet and ts not in active and thread.seen_at >= since:
                active.append(ts)
        return active

    async def _store(self, channel: str, kind: str, messages: dict[str, dict[str, Any]], oldest: str) -> None:
        """Store messages, each as private or public as the channel was when it was written."""
        me = await self._directory.me()
        missed: list[SlackMessage] = []
        converted: list[RoomPrivacyChanged] = []
        for ts in sorted(messages, reverse=True):  # backwards from the present privacy
            event = read_message(messages[ts], channel, kind, me)
            if isinstance(event, RoomPrivacyChanged):
                kind = "channel" if event.private else "group"
                converted.append(event)
            elif isinstance(event, SlackMessage) and command(event.text, me.user, direct=event.direct) is None:
                missed.append(event)  # a command may have been run already: whoever gave it can repeat it
        missed.reverse()
        await self._store_in_order(missed, converted[::-1])
        for message in missed:
            edited_ts = (messages[message.ts].get("edited") or {}).get("ts")
            if edited_ts is not None and edited_ts >= oldest:
                await self._inbox.change_message(edit_of(message, messages[message.ts], edited_ts))

    async def _store_in_order(self, missed: Sequence[SlackMessage], converted: Sequence[RoomPrivacyChanged]) -> None:
        """Store messages, and between them when their channel became private or public; both oldest first."""
        remaining = list(missed)
        for change in converted:
            before = [message for message in remaining if change.at is None or message.at < change.at]
            await self._inbox.receive_history(before)
            await self._inbox.apply(change)
            remaining = remaining[len(before) :]
        await self._inbox.receive_history(remaining)


def _reading_of(seen: ReceivedConversation) -> str | None:
    """By what a conversation is read: its channel, or the person of a DM."""
    return seen.user if seen.kind is ConversationKind.DM else seen.name


def _is_missed(seen: ReceivedConversation, messages: Mapping[str, dict[str, Any]]) -> bool:
    """Whether one of these messages of a channel is later than what was received of a conversation in it."""
    later = [message for ts, message in messages.items() if ts > seen.seen_id]
    if seen.kind is ConversationKind.DM:
        return bool(later)
    return any((m["thread_ts"] if m.get("thread_ts") not in (None, m["ts"]) else None) == seen.thread for m in later)


def _kind(channel: dict[str, Any]) -> str:
    """The kind of a channel, as Slack's events call it."""
    return next((kind for flag, kind in _KINDS if channel.get(flag)), "channel")


def _joined(messages: list[dict[str, Any]], me: str) -> str:
    """When we last joined a channel, by its messages, as the `ts` of that; empty if they do not say."""
    joined = [m["ts"] for m in messages if m.get("subtype") in ("channel_join", "group_join") and m.get("user") == me]
    return max(joined, default="")


def _first_heard(seen: ReceivedConversation | None, threads: Sequence[ReceivedConversation]) -> str:
    """The `ts` of the first message that is stored of a channel and its threads: by then we were in it."""
    heard = [each.first_at for each in (seen, *threads) if each is not None and each.first_at is not None]
    return ts_of(min(heard)) if heard else ""

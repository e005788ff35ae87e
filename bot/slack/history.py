"""Reads the messages that were written while the bot was not connected: Slack does not deliver them later."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from bot.platform.events import RoomPrivacyChanged
from bot.slack.channels import SlackChannels
from bot.slack.client import Slack, SlackRefused
from bot.slack.directory import MAX_CLOCK_DIFFERENCE, SlackDirectory
from bot.slack.inbox import SlackInbox
from bot.slack.reading import PLATFORM, SlackMessage, SlackMessageChange, addresses, read_message, time_of, ts_of
from bot.slack.text import command
from composer.app import App
from composer.model import ConversationKind
from composer.repositories.conversations import ReceivedConversation
from composer.workspace import message_id, room_id

logger = structlog.get_logger()

OVERLAP: Final = timedelta(hours=1)  # before the last message received: events come in any order, and edits after
NEW_CHANNEL_SPAN: Final = timedelta(days=1)  # of a channel of which nothing was received yet
MAX_THREAD_AGE: Final = timedelta(days=30)  # since its last message; older threads are not read
MAX_THREADS: Final = 100  # of a channel, latest first
COMPARED_SPAN: Final = timedelta(days=1)  # before the last message received in a conversation
MAX_COMPARED_THREADS: Final = 20  # of a channel, latest first
MAX_COMPARED_MESSAGES: Final = 500  # of each conversation
MAX_COMPARED_WHOLLY: Final = 10_000  # of each conversation of a channel whose history was changed at once
MAX_CHECKED_MESSAGES: Final = 50  # of each conversation, before all others: each missing one takes a call
PAGE_SIZE: Final = 200
CHANNEL_TYPES: Final = "public_channel,private_channel,mpim,im"
_NO_THREAD: Final = "thread_not_found"
_KINDS: Final = (("is_im", "im"), ("is_mpim", "mpim"), ("is_private", "group"), ("is_group", "group"))


@dataclass(frozen=True, slots=True)
class _Compared:
    """A conversation to compare with what Slack has: in which channel Slack has it, and under which id it is stored
    (one of the channel's later ids, if something came by that before Slack told whose it is)."""

    channel: str
    stored: str
    seen: ReceivedConversation


class SlackHistory:
    """What was missed in the channels that we are in, from the last message received in each."""

    def __init__(
        self, app: App, slack: Slack, directory: SlackDirectory, inbox: SlackInbox, channels: SlackChannels
    ) -> None:
        self._app = app
        self._slack = slack
        self._directory = directory
        self._inbox = inbox
        self._ids = channels

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

    async def catch_up(self) -> None:
        """Store what was missed, and queue turns for recent questions. Raises Unavailable."""
        workspace = await self._inbox.workspace()
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            seen = await tx.conversations.received(PLATFORM, workspace.name)
        rooms = {c.name: c for c in seen if c.kind is ConversationKind.ROOM}
        dms = {c.user: c for c in seen if c.kind is ConversationKind.DM}
        threads: dict[str, list[ReceivedConversation]] = {}
        for thread in seen:
            if thread.kind is ConversationKind.THREAD:
                threads.setdefault(thread.name, []).append(thread)
        asked_at, channels = self._app.clock.now(), await self._channels()
        await self._close(channels)
        compared: list[_Compared] = []
        for channel in channels:
            id, user = channel["id"], channel.get("user")
            if user is not None:
                self._directory.note_dm(user, id)
            known = dms.get(user) if channel.get("is_im") else rooms.get(id)
            others = [other for other in self._ids.ids.split(id) if other in rooms or other in threads]
            own_threads = threads.get(id, [])
            other_threads = [each for other in others for each in threads.get(other, [])]
            try:
                await self._catch_up_channel(channel, known, own_threads, other_threads)
                await self._open(channel, asked_at)
            except SlackRefused as error:
                logger.warning("slack.history_refused", channel=id, error=str(error))
                continue
            compared += _compared(id, id, known, own_threads)
            for other in others:
                compared += _compared(id, other, rooms.get(other), threads.get(other, []))
        # After the messages of all channels: comparing takes long, and a question is answered for 15 minutes only.
        left: list[tuple[_Compared, Sequence[str]]] = []
        for each in compared:
            try:
                left.append((each, await self._apply_changes(each)))
            except SlackRefused as error:
                logger.warning("slack.history_refused", channel=each.channel, error=str(error))
        for each, missing in left:
            try:
                await self._apply_changes_of(each, missing)
                await self._note_compared(each)
            except SlackRefused as error:
                logger.warning("slack.history_refused", channel=each.channel, error=str(error))

    async def _note_compared(self, compared: _Compared) -> None:
        """Compare a conversation no more because of a change of its history, if that was known when it was compared."""
        changed_at = compared.seen.changed_at
        if changed_at is not None:
            workspace = await self._inbox.workspace()
            async with self._app.database.transaction(workspace.tenant_id) as tx:
                await tx.conversations.clear_history_changed(compared.seen.id, changed_at)

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

    async def _apply_changes(self, compared: _Compared) -> Sequence[str]:
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
        if not stored or seen.seen_at < self._app.clock.now() - MAX_THREAD_AGE:  # a free plan hides older messages
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
            messages = await self._messages(method, **span)
        except SlackRefused as error:
            if error.code != _NO_THREAD:
                raise
            messages = []  # nothing of the thread is left
        present = {message["ts"]: message for message in messages if message.get("subtype") != "tombstone"}
        missing = sorted(stored - present.keys(), reverse=True)  # in a DM also the messages of its threads
        await self._apply_changes_of(compared, missing[:MAX_CHECKED_MESSAGES])
        await self._apply_edits(compared, said, present)
        return missing[MAX_CHECKED_MESSAGES:]

    async def _apply_changes_of(self, compared: _Compared, missing: Sequence[str]) -> None:
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
            since, limit = min(since, self._app.clock.now() - MAX_THREAD_AGE), MAX_COMPARED_WHOLLY
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            said = await tx.messages.change_times(seen.id, since, limit)
            return said, await tx.deliveries.posted(seen.id, since, limit)

    async def _apply_edits(
        self, compared: _Compared, said: Mapping[str, datetime], present: Mapping[str, dict[str, Any]]
    ) -> None:
        """Edit the messages that Slack has in another version than is stored."""
        channel, direct = compared.stored, compared.seen.kind is ConversationKind.DM
        for ts in sorted(said.keys() & present.keys()):
            edited_ts = str((present[ts].get("edited") or {}).get("ts") or ts)
            lost_file = any(file.get("mode") == "tombstone" for file in present[ts].get("files") or ())
            if lost_file or time_of(edited_ts) > said[ts]:
                event = read_message(present[ts], channel, "im" if direct else "", await self._directory.me())
                if isinstance(event, SlackMessage):
                    await self._inbox.change_message(_edit_of(event, present[ts], edited_ts))

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

    async def _channels(self) -> list[dict[str, Any]]:
        """The channels that we are in."""
        pages = self._slack.pages("users.conversations", types=CHANNEL_TYPES, exclude_archived=True, limit=PAGE_SIZE)
        listed = [channel async for page in pages for channel in page["channels"]]
        await self._ids.refresh()
        return [channel | {"id": self._ids.ids.name(channel["id"])} for channel in listed]

    async def _messages(self, method: str, **arguments: Any) -> list[dict[str, Any]]:
        pages = self._slack.pages(method, limit=PAGE_SIZE, **arguments)
        return [message async for page in pages for message in page["messages"]]

    async def _catch_up_channel(
        self,
        channel: dict[str, Any],
        seen: ReceivedConversation | None,
        threads: Sequence[ReceivedConversation],
        others: Sequence[ReceivedConversation],
    ) -> None:
        """Store what was missed in a channel and its threads; `others` are those that are stored under later ids of
        it themselves."""
        id, now = channel["id"], self._app.clock.now()
        kind = _kind(channel)
        oldest = ts_of(now - NEW_CHANNEL_SPAN if seen is None else seen.seen_at - OVERLAP)
        found = await self._messages("conversations.history", channel=id, oldest=oldest)
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
                replies = await self._messages("conversations.replies", channel=id, ts=root, oldest=since)
            except SlackRefused as error:
                logger.info("slack.thread_unread", channel=id, error=str(error))
                continue
            messages += [message for message in replies if message["ts"] != root and message["ts"] >= since]
        elsewhere = await self._stored_elsewhere(id, [message["ts"] for message in messages])
        new = {message["ts"]: message for message in messages if message["ts"] not in elsewhere}
        await self._store(id, kind, new, oldest)

    async def _stored_elsewhere(self, channel: str, messages: Sequence[str]) -> set[str]:
        """Which messages are stored, or erased, under a later id of a channel itself: they are not stored twice."""
        others = self._ids.ids.split(channel)
        if not others:
            return set()
        workspace = await self._inbox.workspace()
        ids = {message_id(room_id(workspace, other), ts): ts for other in others for ts in messages}
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
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
                await self._inbox.change_message(_edit_of(message, messages[message.ts], edited_ts))

    async def _store_in_order(self, missed: Sequence[SlackMessage], converted: Sequence[RoomPrivacyChanged]) -> None:
        """Store messages, and between them when their channel became private or public; both oldest first."""
        remaining = list(missed)
        for change in converted:
            before = [message for message in remaining if change.at is None or message.at < change.at]
            await self._inbox.receive_history(before)
            await self._inbox.apply(change)
            remaining = remaining[len(before) :]
        await self._inbox.receive_history(remaining)


def _edit_of(message: SlackMessage, said: dict[str, Any], edited_ts: str) -> SlackMessageChange:
    """The edit that made a message what it is. `said` is the message as Slack has it."""
    return SlackMessageChange(
        channel=message.channel,
        ts=message.ts,
        user=message.user,
        text=message.text,
        direct=message.direct,
        changed_ts=edited_ts,
        attached=addresses(said),
    )


def _compared(
    channel: str, stored: str, seen: ReceivedConversation | None, threads: Sequence[ReceivedConversation]
) -> list[_Compared]:
    """A channel and its threads, as far as they are compared: the latest threads, and those of which more may have
    changed."""
    changed = [thread for thread in threads[MAX_COMPARED_THREADS:] if thread.changed_at is not None]
    latest = [*threads[:MAX_COMPARED_THREADS], *changed][:MAX_THREADS]
    return [_Compared(channel, stored, each) for each in ([] if seen is None else [seen]) + latest]


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

"""What Slack keeps of the channels that we are in: messages, threads, and when a channel was made private or public."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import structlog

from bot.platform.events import RoomPrivacyChanged
from bot.platform.reconciliation import MAX_CLOCK_DIFFERENCE, Page, ReadChannel, Said
from bot.slack.channels import SlackChannels
from bot.slack.client import Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.inbox import SlackInbox
from bot.slack.reading import read_message, time_of, ts_of
from bot.slack.text import command
from composer.app import App
from composer.model import ConversationKind, Incoming
from composer.repositories.conversations import FollowedConversation

logger = structlog.get_logger()

NEW_CHANNEL_SPAN: Final = timedelta(days=1)  # before the first message that was received of a channel
MAX_ROOT_AGE: Final = timedelta(days=30)  # of the first message of a thread, before what is read
PAGE_SIZE: Final = 200
CHANNEL_TYPES: Final = "public_channel,private_channel,mpim,im"
_KINDS: Final = (("is_im", "im"), ("is_mpim", "mpim"), ("is_private", "group"), ("is_group", "group"))
_GONE: Final = ("thread_not_found", "message_not_found")


@dataclass(frozen=True, slots=True)
class _Listed:
    """A channel as Slack listed it at a time; its kind as Slack's events call it."""

    kind: str
    asked_at: datetime


class SlackHistory:
    """bot.platform.reconciliation.PlatformHistory for one workspace. A channel is a room with its threads, or a DM."""

    kinds = (ConversationKind.ROOM, ConversationKind.DM)
    with_threads = True

    def __init__(
        self, app: App, slack: Slack, directory: SlackDirectory, inbox: SlackInbox, channels: SlackChannels
    ) -> None:
        self._app = app
        self._slack = slack
        self._directory = directory
        self._inbox = inbox
        self._ids = channels

    async def channels(self, stored: Sequence[FollowedConversation]) -> list[ReadChannel]:
        """The channels that we are in. The rooms of private ones are made private before anything is read: one may have
        been public when we last heard of it, and what was said in public meanwhile opens it no more."""
        rooms = {each.name: each for each in stored if each.kind is ConversationKind.ROOM}
        dms = {each.user: each for each in stored if each.kind is ConversationKind.DM}
        asked_at, found = self._app.clock.now(), list[ReadChannel]()
        pages = self._slack.pages("users.conversations", types=CHANNEL_TYPES, exclude_archived=True, limit=PAGE_SIZE)
        listed = [channel async for page in pages for channel in page["channels"]]
        await self._ids.refresh()
        for channel in listed:
            id, user, kind = self._ids.ids.name(channel["id"]), channel.get("user"), _kind(channel)
            if user is not None:
                self._directory.note_dm(user, id)
            others = self._ids.ids.split(id)
            if kind == "group":
                for each in (id, *others):
                    await self._inbox.apply(RoomPrivacyChanged(each, private=True))
            own = dms.get(user) if kind == "im" else rooms.get(id)
            all_stored = ([] if own is None else [own]) + [rooms[other] for other in others if other in rooms]
            found.append(ReadChannel(id, tuple(all_stored), _since(own, asked_at), _Listed(kind, asked_at)))
        return found

    async def pages(self, channel: ReadChannel, since: datetime) -> AsyncIterator[Page]:
        """One page: only when all is read, it is known when we joined the channel, and whether it was private. Threads
        are read in which somebody replied since, if their first message is not much older."""
        assert isinstance(channel.source, _Listed)
        begins = since - MAX_ROOT_AGE if channel.stored else since
        found = await self._slack.messages(
            "conversations.history", channel=channel.id, oldest=ts_of(begins), inclusive=True
        )
        joined, oldest = _joined(found, (await self._directory.me()).user), ts_of(since)
        floor = max(joined, oldest)
        for root in [m["ts"] for m in found if m.get("reply_count") and (m.get("latest_reply") or floor) >= floor]:
            found += await self._replies(channel.id, root, floor)
        messages = {m["ts"]: m for m in found if m["ts"] >= oldest and m["ts"] > joined}  # earlier ones are not ours
        yield await self._page(channel.id, channel.source, messages)

    async def message(self, channel: ReadChannel, id: str) -> Said | None:
        """A message, if Slack says what it is. None if Slack says that there is none, or that only its thread is
        left."""
        try:
            page = await self._slack.call("conversations.replies", channel=channel.id, ts=id, limit=1)
        except SlackRefused as error:
            if error.code in _GONE:
                return None
            raise
        found = next((message for message in page["messages"] if message["ts"] == id), None)
        if found is None:
            return Said(id)
        assert isinstance(channel.source, _Listed)
        event = read_message(found, channel.id, channel.source.kind, await self._directory.me())
        return None if found.get("subtype") == "tombstone" else self._said(found, event)

    async def _replies(self, channel: str, root: str, oldest: str) -> list[dict[str, Any]]:
        try:
            replies = await self._slack.messages(
                "conversations.replies", channel=channel, ts=root, oldest=oldest, inclusive=True
            )
        except SlackRefused as error:
            logger.info("slack.thread_unread", channel=channel, error=str(error))
            return []
        return [message for message in replies if message["ts"] != root]

    async def _page(self, channel: str, listed: _Listed, messages: Mapping[str, dict[str, Any]]) -> Page:
        """Messages, each as private or public as the channel was when it was written, and at last as it is now."""
        me, kind = await self._directory.me(), listed.kind
        page: list[Said | RoomPrivacyChanged] = []
        if kind == "channel":
            page.append(RoomPrivacyChanged(channel, private=False, at=listed.asked_at - MAX_CLOCK_DIFFERENCE))
        for ts in sorted(messages, reverse=True):  # backwards from the present privacy
            event = read_message(messages[ts], channel, kind, me)
            if isinstance(event, RoomPrivacyChanged):
                kind = "channel" if event.private else "group"
                page.append(event)
            elif messages[ts].get("subtype") != "tombstone":
                # A command may have been run already: whoever gave it can repeat it.
                given = isinstance(event, Incoming) and _is_command(event, me.user)
                page.append(Said(ts) if given else self._said(messages[ts], event))
        return page[::-1]

    def _said(self, message: Mapping[str, Any], event: object) -> Said:
        edited_ts = (message.get("edited") or {}).get("ts")
        return Said(
            id=message["ts"],
            edited_at=None if edited_ts is None else time_of(str(edited_ts)),
            lost_file=any(file.get("mode") == "tombstone" for file in message.get("files") or ()),
            read=partial(self._inbox.resolve, event) if isinstance(event, Incoming) else None,
        )


def _is_command(message: Incoming, me: str) -> bool:
    return command(message.text, me, direct=message.place.kind is ConversationKind.DM) is not None


def _since(stored: FollowedConversation | None, now: datetime) -> datetime:
    """From where a channel is read."""
    if stored is not None and stored.read_to is not None:
        return stored.read_to
    return (now if stored is None else stored.began_at) - NEW_CHANNEL_SPAN


def _kind(channel: Mapping[str, Any]) -> str:
    """The kind of a channel, as Slack's events call it."""
    return next((kind for flag, kind in _KINDS if channel.get(flag)), "channel")


def _joined(messages: Sequence[Mapping[str, Any]], me: str) -> str:
    """When we last joined a channel, by its messages, as the `ts` of that; empty if they do not say."""
    joined = [m["ts"] for m in messages if m.get("subtype") in ("channel_join", "group_join") and m.get("user") == me]
    return max(joined, default="")

"""What Slack told while nobody was listening, read from its history: it never tells it again."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import structlog

from bot.slack.client import Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.inbox import PLATFORM, SlackInbox
from bot.slack.reading import Closed, Edited, Said, addresses, read_message, stamp
from bot.slack.text import command
from composer.app import App
from composer.model import ConversationKind
from composer.repositories.conversations import ReceivedConversation

logger = structlog.get_logger()

OVERLAP: Final = timedelta(hours=1)  # before the last message seen: events come in any order, and edits after
NEW: Final = timedelta(days=1)  # of a channel that we never heard of
THREADS_LIVE: Final = timedelta(days=30)  # a thread that was silent for longer is not looked at
MOST_THREADS: Final = 100  # of a channel, latest first
DELETIONS_LOOKED_UP: Final = timedelta(days=1)  # before the last message seen in a conversation
THREADS_COMPARED: Final = 20  # of a channel, latest first
MOST_COMPARED: Final = 500  # messages of each conversation
PAGE: Final = 200
MOST_ASKED: Final = 50  # messages of each conversation that are asked for one by one
_NO_THREAD: Final = "thread_not_found"
KINDS: Final = "public_channel,private_channel,mpim,im"
_KIND: Final = (("is_im", "im"), ("is_mpim", "mpim"), ("is_private", "group"), ("is_group", "group"))


class SlackHistory:
    """Reads on in every channel from the last message seen there."""

    def __init__(self, app: App, slack: Slack, directory: SlackDirectory, inbox: SlackInbox) -> None:
        self._app = app
        self._slack = slack
        self._directory = directory
        self._inbox = inbox

    async def read_on(self) -> None:
        """Store what was missed, and answer what of it was for the agent and is recent. Raises Unavailable."""
        workspace = await self._inbox.workspace()
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            seen = await tx.conversations.received(PLATFORM, workspace.name)
        rooms = {c.name: c for c in seen if c.kind is ConversationKind.ROOM}
        ims = {c.user: c for c in seen if c.kind is ConversationKind.DM}
        threads: dict[str, list[ReceivedConversation]] = {}
        for thread in seen:
            if thread.kind is ConversationKind.THREAD:
                threads.setdefault(thread.name, []).append(thread)
        for channel in await self._channels():
            id, user = channel["id"], channel.get("user")
            if user is not None:
                self._directory.note_im(user, id)
            known = ims.get(user) if channel.get("is_im") else rooms.get(id)
            here = threads.get(id, [])
            try:
                await self._channel(channel, known, here)
                for each in [*([known] if known is not None else []), *here[:THREADS_COMPARED]]:
                    await self._forget_deleted(id, each)
            except SlackRefused as error:
                logger.warning("slack.history_refused", channel=id, error=str(error))

    async def _forget_deleted(self, channel: str, seen: ReceivedConversation) -> None:
        """Forget what was deleted while nobody listened, of the last that was said before. A message is gone only if it
        is missing from a history that was read as a whole, and Slack says of itself that there is none.

        Raises SlackRefused and Unavailable when Slack does not say what stands there: then nothing was forgotten.
        """
        workspace, since = await self._inbox.workspace(), seen.seen_at - DELETIONS_LOOKED_UP
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            held = set(await tx.messages.change_times(seen.id, since, MOST_COMPARED))
        if not held or seen.seen_at < self._app.clock.now() - THREADS_LIVE:  # a free plan hides what is old
            return
        asked: dict[str, Any] = {"channel": channel, "oldest": min(held), "latest": max(held), "inclusive": True}
        method = "conversations.history"
        if seen.thread is not None:
            method, asked["ts"] = "conversations.replies", seen.thread
        try:
            messages = await self._pages(method, "messages", limit=PAGE, **asked)
        except SlackRefused as error:
            if error.code != _NO_THREAD:
                raise
            messages = []  # a thread of which nothing is left
        standing = {message["ts"] for message in messages if message.get("subtype") != "tombstone"}
        direct = seen.kind is ConversationKind.DM
        missing = sorted(held - standing)[-MOST_ASKED:]  # in a DM also what stands in threads
        gone = [ts for ts in missing if await self._is_gone(channel, ts)]
        for ts in gone:
            await self._inbox.edited(Edited(channel, ts, seen.user or "", None, direct, stamp(self._app.clock.now())))

    async def _is_gone(self, channel: str, ts: str) -> bool:
        """Whether Slack says that there is no such message, or that it was deleted and only its thread is left."""
        try:
            page = await self._slack.call("conversations.replies", channel=channel, ts=ts, limit=1)
        except SlackRefused as error:
            if error.code in (_NO_THREAD, "message_not_found"):
                return True
            raise
        return any(m["ts"] == ts and m.get("subtype") == "tombstone" for m in page["messages"])

    async def _channels(self) -> list[dict[str, Any]]:
        """The channels that we are in."""
        return await self._pages("users.conversations", "channels", types=KINDS, exclude_archived=True, limit=PAGE)

    async def _channel(
        self, channel: dict[str, Any], seen: ReceivedConversation | None, threads: list[ReceivedConversation]
    ) -> None:
        id, now = channel["id"], self._app.clock.now()
        kind = next((kind for mark, kind in _KIND if channel.get(mark)), "channel")
        oldest = stamp(now - NEW if seen is None else seen.seen_at - OVERLAP)
        messages = await self._pages("conversations.history", "messages", channel=id, oldest=oldest, limit=PAGE)
        if seen is None:
            messages = _since_we_came(messages, (await self._directory.me()).user)
            oldest = min((m["ts"] for m in messages), default=stamp(now))
        known = {thread.thread or "": thread for thread in threads[:MOST_THREADS]}
        for root in self._roots(messages, known, oldest):
            since = stamp(known[root].seen_at - OVERLAP) if root in known else oldest
            try:
                page = await self._pages(
                    "conversations.replies", "messages", channel=id, ts=root, oldest=since, limit=PAGE
                )
            except SlackRefused as error:
                logger.info("slack.thread_gone", channel=id, error=str(error))
                continue
            messages += [message for message in page if message["ts"] != root and message["ts"] >= since]
        await self._take(id, kind, {message["ts"]: message for message in messages}, oldest)

    def _roots(
        self, messages: Iterable[dict[str, Any]], known: dict[str, ReceivedConversation], oldest: str
    ) -> list[str]:
        """The threads that may have got replies."""
        live = self._app.clock.now() - THREADS_LIVE
        roots, quiet = [], set()
        for message in messages:
            if not message.get("reply_count"):
                continue
            latest, thread = str(message.get("latest_reply") or ""), known.get(message["ts"])
            if latest and latest <= (oldest if thread is None else thread.seen_id):
                quiet.add(message["ts"])
            else:
                roots.append(message["ts"])
        for ts, thread in known.items():
            if ts not in quiet and ts not in roots and thread.seen_at >= live:
                roots.append(ts)
        return roots

    async def _take(self, channel: str, kind: str, messages: dict[str, dict[str, Any]], oldest: str) -> None:
        """Store messages, each as open or closed as the channel was when it was said."""
        me = await self._directory.me()
        told = []
        for ts in sorted(messages, reverse=True):
            one = read_message(messages[ts], channel, kind, me)
            if isinstance(one, Closed):
                kind = "channel" if one.private else "group"
            elif isinstance(one, Said) and command(one.text, me.user, direct=one.direct) is None:
                told.append(one)  # a command may have been run already, so it is left to who gave it
        told.reverse()
        await self._inbox.history(told)
        for said in told:
            edit = (messages[said.ts].get("edited") or {}).get("ts")
            if edit is not None and edit >= oldest:
                files = addresses(messages[said.ts])
                edited = Edited(channel, said.ts, said.user, said.text, said.direct, edit, files)
                await self._inbox.edited(edited)

    async def _pages(self, method: str, key: str, **arguments: Any) -> list[dict[str, Any]]:
        """All pages of an answer."""
        rows: list[dict[str, Any]] = []
        while True:
            page = await self._slack.call(method, **arguments)
            rows += page[key]
            arguments["cursor"] = (page.get("response_metadata") or {}).get("next_cursor", "")
            if not arguments["cursor"]:
                return rows


def _since_we_came(messages: list[dict[str, Any]], me: str) -> list[dict[str, Any]]:
    """What was said since we last came into the channel; what was before is not ours to read."""
    came = [m["ts"] for m in messages if m.get("subtype") in ("channel_join", "group_join") and m.get("user") == me]
    return [message for message in messages if message["ts"] > max(came, default="")]

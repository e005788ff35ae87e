"""Reads on a chat platform what was missed while nobody was connected: messages, edits and deletions.

Each channel has a watermark, `conversations.read_to`: all that was written in it until then was received. A channel is
read from there, and once more from a day earlier, to compare what is stored with what the platform has; then the
watermark moves to the time at which that began. Whatever stops in between is done again from the same watermark, and
changes nothing twice. What arrives meanwhile moves no watermark.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from bot.platform.events import MessageChanged, PlatformEvent
from bot.platform.inbox import PlatformInbox
from bot.platform.retry import Backoff
from composer.app import App
from composer.errors import NexusError, Refused, for_operator
from composer.model import ConversationKind, Incoming, Workspace, message_id, room_id
from composer.repositories.conversations import FollowedConversation
from composer.repositories.messages import OnPlatform

logger = structlog.get_logger()

LOOK_BACK: Final = timedelta(days=1)  # before the watermark, for edits and deletions
MAX_LOOK_BACK: Final = timedelta(
    days=30
)  # where a history was changed at once; a free plan of Slack hides older messages
MAX_COMPARED: Final = 5_000  # stored messages of a channel, latest first
MAX_LOOKED_UP: Final = 50  # messages of a channel before all others: each takes a call
MAX_CLOCK_DIFFERENCE: Final = timedelta(seconds=5)  # between the platform's clock and ours
MAX_IN_A_ROW: Final = 3  # channels that fail, after which the platform or the database counts as down
PERIOD_SECONDS: Final = 3600.0  # after which all is read again, in case an event was lost unnoticed


@dataclass(frozen=True, slots=True)
class Said:
    """A message as its platform has it. `edited_at` is its last edit (None: never, or not known), `lost_file`: a file
    of it was deleted since, at an unknown time. `read` reads it as it is stored (None: it is ours, or has no
    content)."""

    id: str
    edited_at: datetime | None = None
    lost_file: bool = False
    read: Callable[[], Awaitable[Incoming | None]] | None = None


Page = Sequence[Said | PlatformEvent]  # oldest first; events are what happened to the channel between two messages


@dataclass(frozen=True, slots=True)
class ReadChannel:
    """A channel that can be read: with its stored conversation first, then those that are stored of it under other
    names, and the watermark to read from (None: nothing of it is to be read). `source` is the platform's own."""

    id: str
    stored: tuple[FollowedConversation, ...]
    since: datetime | None
    source: object

    @property
    def other_names(self) -> frozenset[str]:
        return frozenset(each.name for each in self.stored[1:])


class PlatformHistory(Protocol):
    """What a platform keeps of its channels. Every method raises Unavailable, and Refused for what we may not read."""

    @property
    def kinds(self) -> Sequence[ConversationKind]:
        """Those of the stored conversations that are read by themselves."""

    @property
    def with_threads(self) -> bool:
        """Whether the pages of a room have what is said in its threads."""

    async def channels(self, stored: Sequence[FollowedConversation]) -> Sequence[ReadChannel]:
        """The channels that we may read now, in the order in which they are to be read."""

    def pages(self, channel: ReadChannel, since: datetime) -> AsyncIterator[Page]:
        """All that was written in a channel since a time, and what happened to the channel."""

    async def message(self, channel: ReadChannel, id: str) -> Said | None:
        """One message, as far as the platform tells of it; None if it says that there is none."""


@dataclass(slots=True)
class _Work:
    """What is left to do of a channel. `since`: where the next reading begins. `begun_at`: when what is being done
    began, `queued_at`: when the channel was first queued. `present`: messages that were looked up, and are there."""

    channel: ReadChannel
    since: datetime | None
    begun_at: datetime
    queued_at: datetime
    is_read: bool = False
    present: set[str] = field(default_factory=set)
    failures: int = 0
    retry_at: float = 0.0  # by the loop's clock


class Reconciliation:
    """The reading of one workspace, or of its DMs. A channel that fails is tried again, and holds up no other."""

    def __init__(
        self,
        app: App,
        platform: str,
        workspace: Callable[[], Awaitable[Workspace]],
        inbox: PlatformInbox,
        history: PlatformHistory,
        backoff: Backoff,
        on_tried: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_tried` is called once every channel was tried after each `miss`: what was missed is stored then, but for
        channels that fail. It must return at once."""
        self.history = history  # of the present connection
        self.completed = 0  # how often nothing was left to do
        self._app = app
        self._platform = platform
        self._workspace = workspace
        self._inbox = inbox
        self._backoff = backoff
        self._on_tried = on_tried
        self._is_missed = self._is_tried = False
        self._wake = asyncio.Event()
        self._work: dict[str, _Work] = {}
        self._failures = 0  # in a row

    def miss(self) -> None:
        """Something may have been missed: read every channel. Returns at once."""
        self._is_missed, self._is_tried = True, False
        self._wake.set()

    async def note_changed(self, rooms: Sequence[str], *, direct: bool) -> None:
        """The history of rooms (none: of all), or of all DMs, was changed at once: compare what is stored of 30 days of
        it, also where this process ends before that. Raises Unavailable."""
        workspace = await self._workspace()
        async with self._app.database.transaction(workspace.tenant_id) as tx:
            await tx.conversations.note_history_changed(
                self._platform, workspace.name, rooms, direct=direct, now=self._app.clock.now()
            )
        self._is_missed = True
        self._wake.set()

    async def run(self) -> None:
        """Read what may have been missed, until cancelled."""
        while True:
            self._wake.clear()
            if self._is_missed:
                await self._list()
            elif (work := self._next()) is not None:
                await self._try(work)
            else:
                await self._rest()

    async def _rest(self) -> None:
        """Wait until a channel is to be tried again, or something may have been missed."""
        due = [work.retry_at - asyncio.get_running_loop().time() for work in self._work.values()]
        try:
            await asyncio.wait_for(self._wake.wait(), max(min(due), 0.0) if due else PERIOD_SECONDS)
        except TimeoutError:
            self._is_missed = self._is_missed or not due

    async def _list(self) -> None:
        """Queue every channel that we may read."""
        self._is_missed = False
        try:
            workspace, begun_at = await self._workspace(), self._app.clock.now()
            async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
                stored = await tx.conversations.followed(self._platform, workspace.name, self.history.kinds)
            listed = await self.history.channels(stored)
        except Exception as error:
            self._is_missed = True
            await self._note_failure(error, "channels")
            return
        self._failures = 0
        earlier = self._work
        self._work = {each.id: _queued(each, earlier.get(each.id), begun_at) for each in listed}
        if not listed:
            self._end_round()

    def _next(self) -> _Work | None:
        """What to do next: read each channel once, and those again that failed; then compare."""
        now = asyncio.get_running_loop().time()
        untried = [work for work in self._work.values() if not (work.is_read or work.failures)]
        if untried:
            return untried[0]
        self._note_tried()
        due = [work for work in self._work.values() if work.retry_at <= now]
        return min(due, key=lambda work: (work.is_read, work.retry_at, work.queued_at), default=None)

    def _note_tried(self) -> None:
        if not self._is_tried:
            self._is_tried = True
            self._on_tried()

    async def _try(self, work: _Work) -> None:
        """Do the next step of a channel. What the platform refuses is left out until all is read again."""
        is_done, channel = False, work.channel.id
        try:
            is_done = await self._advance(work)
        except Refused as error:
            logger.warning("history.refused", platform=self._platform, channel=channel, error=str(error))
            is_done = True
        except Exception as error:
            work.failures += 1
            work.retry_at = asyncio.get_running_loop().time() + self._wait(work.failures)
            await self._note_unread(work.channel)
            await self._note_failure(error, channel)
        else:
            self._failures = work.failures = 0
            work.retry_at = 0.0
        if is_done and self._work.get(channel) is work:
            del self._work[channel]
            if not self._work:
                self._end_round()

    def _end_round(self) -> None:
        self._note_tried()
        self.completed += 1

    def _wait(self, failures: int) -> float:
        return float(min(self._backoff.first_seconds * 2 ** min(failures - 1, 16), self._backoff.max_seconds))

    async def _note_unread(self, channel: ReadChannel) -> None:
        """Note for `nexus doctor` that a channel can't be read. Does not fail."""
        with suppress(NexusError):
            workspace = await self._workspace()
            async with self._app.database.transaction(workspace.tenant_id) as tx:
                await tx.conversations.note_unread(channel.stored, self._app.clock.now())

    async def _note_failure(self, error: Exception, channel: str) -> None:
        """Log what failed; wait if it seems that nothing works."""
        self._failures += 1
        if isinstance(error, NexusError):
            message = for_operator(error)
            logger.warning("history.retrying", platform=self._platform, channel=channel, error=message)
        else:
            logger.exception("history.failed", platform=self._platform, channel=channel)
        if self._failures >= MAX_IN_A_ROW or channel == "channels":
            await self._backoff.sleep(self._wait(self._failures))

    # One channel

    async def _advance(self, work: _Work) -> bool:
        """Read a channel, or compare it if that is done. Returns whether nothing of it is left to do."""
        if work.is_read:
            return await self._compare(work)
        if work.since is not None:
            stored = await self._stored(work.channel, work.since)
            async for page in self.history.pages(work.channel, work.since):
                await self._store(work.channel, page, stored)
        work.is_read = True
        return not work.channel.stored

    async def _stored(self, channel: ReadChannel, since: datetime) -> dict[str, OnPlatform]:
        """What is stored of a channel since a time."""
        if not channel.stored:
            return {}
        workspace, ids = await self._workspace(), [each.id for each in channel.stored]
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            return await tx.messages.on_platform(ids, since, MAX_COMPARED, with_threads=self.history.with_threads)

    async def _store(self, channel: ReadChannel, page: Page, stored: dict[str, OnPlatform]) -> None:
        """Store what is new of a page, between the events that happened to the channel, and edit what was edited."""
        new: list[Said] = []
        for each in page:
            if not isinstance(each, Said):
                await self._store_new(channel, new)
                new = []
                await self._inbox.apply(each)
            elif each.id in stored:
                await self._edit(channel, each, stored[each.id])
            elif each.read is not None:
                new.append(each)
        await self._store_new(channel, new)

    async def _store_new(self, channel: ReadChannel, new: Iterable[Said]) -> None:
        workspace = await self._workspace()
        found = await self._without_known_elsewhere(workspace, channel, list(new))
        read = [(each, received) for each in found if each.read and (received := await each.read()) is not None]
        await self._inbox.store_missed(workspace, [received for _, received in read])
        for said, received in read:
            if said.edited_at is not None:  # an older edit that arrives yet changes nothing
                await self._inbox.apply_change(_edit_of(said, received))

    async def _without_known_elsewhere(
        self, workspace: Workspace, channel: ReadChannel, new: Sequence[Said]
    ) -> Sequence[Said]:
        """Messages without those that were erased where they were stored under another name of the channel."""
        if not channel.other_names or not new:
            return new
        ids = {message_id(room_id(workspace, name), each.id): each.id for name in channel.other_names for each in new}
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            known = {ids[id] for id in await tx.messages.find_known_ids(list(ids))}
        return [each for each in new if each.id not in known]

    async def _compare(self, work: _Work) -> bool:
        """Apply the edits and deletions of what is stored of a channel. Returns whether all of it was compared.

        A message counts as deleted only if it is missing from a history that was read completely, and the platform says
        that it does not exist. Stored messages are looked up first: what arrives meanwhile is not missing. It counts as
        edited only if it was edited after it was stored: its text may also differ because a name in it has changed.
        """
        channel, since = work.channel, work.begun_at - MAX_LOOK_BACK
        if not any(each.changed_at is not None for each in channel.stored):
            since = max(since, (channel.since or work.begun_at) - LOOK_BACK)
        found = await self._stored(channel, since)
        stored = {id: each for id, each in found.items() if id not in work.present}
        missing = dict(stored)
        if stored:
            first = min(each.at for each in stored.values()) - timedelta(milliseconds=1)
            async for page in self.history.pages(channel, first):
                for said in page:
                    if isinstance(said, Said) and missing.pop(said.id, None) is not None:
                        await self._edit(channel, said, stored[said.id])
        for id in list(missing)[:MAX_LOOKED_UP]:
            await self._look_up(work, missing[id])
        if len(missing) > MAX_LOOKED_UP:
            work.queued_at = self._app.clock.now()
            return False
        workspace = await self._workspace()
        async with self._app.database.transaction(workspace.tenant_id) as tx:
            await tx.conversations.set_read(channel.stored, work.begun_at - MAX_CLOCK_DIFFERENCE)
        return True

    async def _look_up(self, work: _Work, stored: OnPlatform) -> None:
        """Erase or edit a message that is missing from the history of its channel."""
        said, channel = await self.history.message(work.channel, stored.id), work.channel
        if said is not None:
            work.present.add(stored.id)
            await self._edit(channel, said, stored)
            return
        key = stored.place.name if stored.place.name in channel.other_names else channel.id
        user = (channel.stored[0].user or "") if stored.place.kind is ConversationKind.DM else ""
        await self._inbox.apply_change(MessageChanged(key, stored.id, stored.place, user, text=None))

    async def _edit(self, channel: ReadChannel, said: Said, stored: OnPlatform) -> None:
        """Edit a stored message, if its platform has it in a later version."""
        is_later = said.edited_at is not None and said.edited_at > stored.changed_at
        if stored.own or said.read is None or not (is_later or said.lost_file):
            return
        received = await said.read()
        if received is None:
            return
        change = _edit_of(said, received)
        if stored.place.name in channel.other_names:
            change = replace(change, channel=stored.place.name, place=stored.place)
        await self._inbox.apply_change(change)


def _queued(channel: ReadChannel, earlier: _Work | None, begun_at: datetime) -> _Work:
    """A channel to read: from where an earlier reading of this process began, if there was one."""
    if earlier is None:
        return _Work(channel, channel.since, begun_at, begun_at)
    since, known = channel.since, earlier.channel.since
    if since is not None and known is not None and known < since:  # what was said first since then hides nothing
        channel = replace(channel, since=known)
    begins = earlier.begun_at - MAX_CLOCK_DIFFERENCE if earlier.is_read else channel.since
    return _Work(channel, begins, begun_at, earlier.queued_at, present=earlier.present)


def _edit_of(said: Said, incoming: Incoming) -> MessageChanged:
    """The edit that made a message what it is."""
    addresses = tuple(each.address for each in incoming.attachments)
    return MessageChanged(
        channel=incoming.channel,
        message_id=said.id,
        place=incoming.place,
        user=incoming.user,
        text=incoming.text,
        mentions=incoming.mentions,
        edited_at=said.edited_at,
        attached=addresses if all(addresses) else None,  # of a file without one, the platform does not tell
        addressed_agents=incoming.addressed_agents,
    )

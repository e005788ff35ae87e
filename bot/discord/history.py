"""Reads what was said while nobody listened, from the last message seen in each place."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import discord
import structlog

from bot.discord.inbox import Archived, Closed, Edited, Inbox, Said
from bot.discord.reading import DOOR, FAILURES, is_private, mentions_of, text_of
from composer.app import App
from composer.ingest.changes import private_rooms
from composer.ingest.receive import addressed
from composer.model import ConversationKind, Place
from composer.repositories.conversations import ReceivedConversation
from composer.workspace import Workspace

logger = structlog.get_logger()

STILL_ANSWERED: Final = timedelta(minutes=15)
THREADS_LOOKED_UP: Final = timedelta(days=7)  # a thread that was archived meanwhile must be asked for
DMS_LOOKED_UP: Final = 100  # each takes a request
CHANGES_LOOKED_UP: Final = timedelta(days=1)  # before the last message seen in a place
COMPARED: Final = 100  # places, those that spoke last
MOST_COMPARED: Final = 500  # messages of each
UNKNOWN_MESSAGE: Final = 10008  # Discord's number for a message that is not there
PAGE: Final = 100
TRIES: Final = 6
PAUSE: Final = 1.0  # seconds, doubled with each try
Readable = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread | discord.DMChannel


@dataclass(frozen=True, slots=True)
class Gap:
    """What could not be read on in a place: what came after a message, and whether it was said in private."""

    place: Readable
    after: int
    private: bool


class _Unread(Exception):
    """Discord did not tell a history, however often it was asked."""


class History:
    """What was missed in one guild, or in the DMs of one workspace. `read` makes of a message what is stored.

    `gaps` are what could not be read, by place. They are to be kept as long as the process lives: what is said later
    is stored meanwhile, and nothing else says that something is missing before it.
    """

    def __init__(
        self,
        app: App,
        client: discord.Client,
        workspace: Workspace,
        inbox: Inbox,
        read: Callable[[discord.Message], Said | None],
        gaps: dict[int, Gap],
    ) -> None:
        self._app = app
        self._client = client
        self._workspace = workspace
        self._inbox = inbox
        self._read = read
        self._gaps = gaps

    async def catch_up(self, guild: discord.Guild) -> None:
        """Store what was said in a guild since we last heard of it.

        A channel that was opened meanwhile: nobody knows what was said in it before that, so all that was missed is
        filed as said while it was closed, but for what is answered now, in the open.
        """
        known = {each.thread or each.name: each for each in await self._seen() if each.kind is not ConversationKind.DM}
        if not known:
            return
        rooms = {each.name for each in known.values()}
        closed = await private_rooms(self._app.database, self._workspace, sorted(rooms))
        here = [channel for channel in guild.channels if str(channel.id) in rooms]
        opened = {channel.id for channel in here if str(channel.id) in closed and not is_private(channel)}
        for channel in here:
            if channel.id not in opened:
                await self._inbox.take(Closed(str(channel.id), is_private(channel)))
        last = discord.utils.time_snowflake(max(each.seen_at for each in known.values()))
        late: list[Said] = []
        for place in await self._places(guild, known):
            seen = known.get(str(place.id))
            home = place.parent_id if isinstance(place, discord.Thread) and not place.is_private() else place.id
            late += await self._read_on(place, last if seen is None else int(seen.seen_id), was_closed=home in opened)
            if isinstance(place, discord.Thread) and seen is not None:
                at = place.archive_timestamp if place.archived else None
                await self._inbox.take(Archived(str(place.parent_id), str(place.id), at))
        for id in sorted(opened):
            await self._inbox.take(Closed(str(id), private=False))
        await self._inbox.store(late)

    async def compare(self, guild: discord.Guild) -> None:
        """Forget what was deleted, and change what was edited, in a guild while nobody listened, of what was said last
        before."""
        known = {each.thread or each.name: each for each in await self._seen() if each.kind is not ConversationKind.DM}
        standing = {str(place.id): place for place in await self._places(guild, known)}
        for id, each in list(known.items())[:COMPARED]:
            if id in standing:
                await self._compare(standing[id], each)

    async def compare_dms(self) -> None:
        """The same in the DMs that were had before."""
        for each, dm in await self._dms():
            await self._compare(dm, each)

    async def catch_up_dms(self) -> None:
        """Store what was said in the DMs that were had before."""
        for each, dm in await self._dms():
            await self._read_on(dm, int(each.seen_id), was_closed=False)

    async def fill_gaps(self) -> bool:
        """Try again to read what could not be read; whether nothing is missing any more. Raises Unavailable."""
        for gap in list(self._gaps.values()):
            await self._read_on(gap.place, gap.after, was_closed=False, held=False)
        return not self._gaps

    async def _dms(self) -> list[tuple[ReceivedConversation, discord.DMChannel]]:
        seen = [each for each in await self._seen() if each.kind is ConversationKind.DM and each.user]
        found = []
        for each in seen[:DMS_LOOKED_UP]:
            try:
                found.append((each, await self._client.create_dm(discord.Object(int(each.user or 0)))))
            except FAILURES as error:
                logger.warning("discord.dm_unread", error=type(error).__name__)
        return found

    async def _compare(self, place: Readable, seen: ReceivedConversation) -> None:
        """A message is gone only if it is missing from a history that was read as a whole, and Discord says of itself
        that there is none. What we hold is looked up first: what comes meanwhile is not missing. A message has another
        text only if it was edited since we have it: a name that it mentions may have changed otherwise."""
        since = seen.seen_at - CHANGES_LOOKED_UP
        async with self._app.database.transaction(self._workspace.tenant_id, snapshot=True) as tx:
            found = await tx.messages.change_times(seen.id, since, MOST_COMPARED)
        held = {id: changed for id, changed in found.items() if id.isdigit()}
        if not held:
            return
        first, last = min(map(int, held)), max(map(int, held))
        try:
            after, before = discord.Object(first - 1), discord.Object(last + 1)
            standing = {str(m.id): m async for m in place.history(after=after, before=before, limit=None)}
            gone = [id for id in sorted(held.keys() - standing, key=int) if await _is_gone(place, int(id))]
        except FAILURES as error:
            logger.warning("discord.changes_unread", channel=place.id, error=type(error).__name__)
            return
        where = Place(seen.kind, seen.name, thread=seen.thread)
        for id in gone:
            self._inbox.put(Edited(where, seen.user or "", id, None))
        for id in sorted(held.keys() & standing, key=int):
            edited_at = standing[id].edited_at
            if edited_at is not None and edited_at > held[id]:
                self._inbox.put(self._as_edited(where, standing[id], edited_at))

    def _as_edited(self, where: Place, message: discord.Message, at: datetime) -> Edited:
        me, slugs = self._client.user, [agent.slug for agent in self._app.settings.agents]
        assert me is not None
        text, mentions = text_of(message, me, slugs), mentions_of(message, me)
        files = tuple(file.url for file in message.attachments)
        return Edited(where, str(message.author.id), str(message.id), text, mentions, at, files)

    async def _seen(self) -> list[ReceivedConversation]:
        async with self._app.database.transaction(self._workspace.tenant_id, snapshot=True) as tx:
            found = await tx.conversations.received(DOOR, self._workspace.name)
        return [each for each in found if each.seen_id.isdigit()]

    async def _places(self, guild: discord.Guild, known: dict[str, ReceivedConversation]) -> list[Readable]:
        """Every channel and thread of a guild that we may read, and known threads that were archived meanwhile."""
        all_here: list[Readable] = [*guild.text_channels, *guild.voice_channels, *guild.stage_channels, *guild.threads]
        here = [each for each in all_here if _may_read(each)]
        ids, since = {each.id for each in all_here}, self._app.clock.now() - THREADS_LOOKED_UP
        for id, each in known.items():
            if int(id) in ids or each.seen_at < since:
                continue
            try:
                found = await guild.fetch_channel(int(id))
            except FAILURES:
                continue  # deleted, or not for us any more
            if isinstance(found, discord.Thread) and _may_read(found):
                here.append(found)
        return here

    async def _read_on(self, place: Readable, after: int, *, was_closed: bool, held: bool = True) -> list[Said]:
        """Store what came after a message; what is to be answered in a place that `was_closed` is returned instead.

        What was said in private is filed so, though the place is opened while it is read: where the inbox is `held`,
        the log does not know of that yet. Where it may, what was said in private is not stored any more.
        """
        gap, private = self._gaps.get(place.id), _is_closed(place)
        if gap is not None:
            after, private = min(after, gap.after), private or gap.private
        if not isinstance(place, discord.DMChannel) and (place.last_message_id or 0) <= after:
            self._gaps.pop(place.id, None)
            return []
        late = []
        try:
            async for page in self._pages(place, after):
                opened = private and not _is_closed(place)
                if opened and not was_closed and not (held and gap is None):
                    logger.error("discord.history_lost", channel=place.id, why="it was opened before it was read")
                    break
                said = [self._recent(each) for each in map(self._read, page) if each is not None]
                if was_closed or opened:
                    late += [each for each in said if each.answer]
                    said = [_as_before(each) for each in said if not each.answer]
                await self._inbox.store(said)
                after = page[-1].id
        except _Unread:
            if not was_closed:
                self._gaps[place.id] = Gap(place, after, private)
                return late
            logger.error("discord.history_lost", channel=place.id, why="it could not be read, and was opened")
        self._gaps.pop(place.id, None)
        return late

    def _recent(self, said: Said) -> Said:
        """The same; only what asks the agent something, and just now, is still answered."""
        incoming = said.incoming
        agents = self._app.directory.agents(self._workspace.tenant_id)
        asks = (
            incoming.place.kind is ConversationKind.DM or incoming.addressed_agents or addressed(incoming.text, agents)
        )
        young = self._app.clock.now() - incoming.at < STILL_ANSWERED
        return replace(said, answer=said.answer and bool(asks) and young)

    async def _pages(self, place: Readable, after: int) -> AsyncIterator[Sequence[discord.Message]]:
        """The messages after one, oldest first. Discord's own troubles are waited out for a while; then: _Unread."""
        failed = 0
        while True:
            try:
                page = [m async for m in place.history(after=discord.Object(after), limit=PAGE, oldest_first=True)]
            except (discord.Forbidden, discord.NotFound):
                return
            except FAILURES as error:
                failed += 1
                if failed == TRIES:
                    logger.error("discord.history_unread", channel=place.id, error=type(error).__name__)
                    raise _Unread from error
                await asyncio.sleep(PAUSE * 2**failed)
                continue
            if not page:
                return
            yield page
            after = page[-1].id


async def _is_gone(place: Readable, message: int) -> bool:
    """Whether Discord says that there is no such message. Raises DiscordException when it says anything else."""
    try:
        await place.fetch_message(message)
    except discord.NotFound as error:
        return error.code == UNKNOWN_MESSAGE
    return False


def _as_before(said: Said) -> Said:
    return replace(said, home=None, incoming=replace(said.incoming, place=replace(said.incoming.place, private=None)))


def _is_closed(place: Readable) -> bool:
    if isinstance(place, discord.DMChannel):
        return True
    if isinstance(place, discord.Thread):
        return place.is_private() or place.parent is None or is_private(place.parent)
    return is_private(place)


def _may_read(place: Readable) -> bool:
    if isinstance(place, discord.DMChannel):
        return True
    mine = place.permissions_for(place.guild.me)
    return mine.view_channel and mine.read_message_history

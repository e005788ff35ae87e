"""The door to Discord: keeps a connection up, whatever happens, and hands what it hears to the inboxes.

What an event says is read at the moment at which discord.py dispatches it, before the next one changes what
discord.py knows: a message is filed as private or public as its channel was when it was said.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import discord
import structlog

from bot.delivery.notices import PrivacyNotices
from bot.delivery.retraction import Retraction
from bot.delivery.streaming import StreamingDelivery
from bot.discord import slash as discord_slash
from bot.discord.history import Gap, History
from bot.discord.images import DiscordImages
from bot.discord.inbox import Archived, Closed, Edited, Inbox, People, Recent, Said, Told
from bot.discord.outbox import DiscordOutbox, told
from bot.discord.reading import (
    DOOR,
    FAILURES,
    archived_at,
    home_of,
    incoming_of,
    is_private,
    is_spoken,
    mentions_of,
    place_of,
    read_files,
    text_of,
)
from composer.app import App
from composer.errors import Misconfigured, Refused, Unavailable
from composer.model import ConversationKind, Incoming, Place
from composer.repositories.deliveries import Destination
from composer.settings import Settings
from composer.workspace import Workspace

logger = structlog.get_logger()

FIRST_PAUSE: Final = 1.0  # seconds before another try, doubled up to the next
LONGEST_PAUSE: Final = 60.0
HOPELESS: Final = 300  # times the first pause, where only a new token can help
GUILD_READY: Final = 0.5  # seconds without a further guild after which all are taken to be here
LAST_WORDS: Final = 5.0  # seconds that what was heard has to be stored in when Nexus stops
MOST_LISTED: Final = 10_000  # members of a guild that are asked for at once
DMS: Final = 0  # stands for the DMs among the ids of guilds
DM_WORKSPACE: Final = "dm"

BAD_TOKEN: Final = (
    "Discord does not accept the token: set NEXUS_DISCORD_TOKEN to the one that the developer portal shows under Bot "
    "(Reset Token), and start Nexus again."
)
INTENTS: Final = (
    "Discord keeps back what people write: in the developer portal, under Bot, switch on Message Content Intent and "
    "Server Members Intent."
)


def intents() -> discord.Intents:
    """What Discord is asked to tell: rooms, who is in them, and what is written there and in DMs."""
    wanted = discord.Intents.none()
    wanted.guilds = wanted.members = wanted.message_content = True
    wanted.guild_messages = wanted.dm_messages = True
    return wanted


class _Client(discord.AutoShardedClient):
    """discord.py's client, which lets the door hear each event at once and in order."""

    def __init__(self, hear: Callable[..., None]) -> None:
        super().__init__(
            intents=intents(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=GUILD_READY,
            max_messages=None,
            allowed_mentions=discord.AllowedMentions.none(),
        )
        self._hear = hear

    async def setup_hook(self) -> None:
        """Between logging in and connecting."""
        await discord_slash.register(self)

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Called by discord.py for each event, as it comes in."""
        self._hear(event, *args)
        super().dispatch(event, *args, **kwargs)


class DiscordAdapter:
    """Discord, from the token in the settings. Serves as the way back from its making on."""

    def __init__(self, app: App, *, first_pause: float = FIRST_PAUSE) -> None:
        """Raises Misconfigured without a token."""
        if app.settings.discord_token is None:
            raise Misconfigured("There is no Discord token: set NEXUS_DISCORD_TOKEN.")
        self._app = app
        self._token = app.settings.discord_token.get_secret_value()
        self._first_pause = first_pause
        self._slugs = [agent.slug for agent in app.settings.agents]
        self._client: _Client | None = None
        self._inboxes: dict[int, Inbox] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._reading: dict[int, asyncio.Task[None]] = {}
        self._gaps: dict[tuple[int, str], dict[int, Gap]] = {}  # by guild (0: DMs) and workspace
        self._doing: set[asyncio.Task[Any]] = set()
        self._homes: dict[str, Workspace] = {}
        self._correspondents: Recent[str] = Recent()  # by DM channel
        self._fresh: Recent[bool] = Recent()
        self._stopping = asyncio.Event()
        self._was_ready = False
        self._hears: dict[str, Callable[..., None]] = {
            "shard_connect": self._connected,
            "shard_ready": self._ready,
            "guild_available": self._guild,
            "guild_join": self._guild,
            "message": self._message,
            "raw_message_edit": self._edited,
            "raw_message_delete": self._deleted,
            "raw_bulk_message_delete": self._deleted,
            "guild_channel_update": self._channel_changed,
            "guild_role_update": self._role_changed,
            "member_join": self._member_changed,
            "member_update": lambda _, after: self._member_changed(after),
            "raw_member_remove": self._member_gone,
            "raw_thread_update": self._thread_changed,
            "thread_member_join": self._thread_joined,
            "raw_thread_member_remove": self._thread_left,
            "interaction": self._interaction,
        }
        wire = DiscordOutbox(lambda: self._client, self._noted, lambda id: id in self._fresh)
        self._outbox = wire
        app.turns.serve(DOOR, StreamingDelivery(app, wire))
        app.responder.images.register_source(DOOR, DiscordImages(app, wire))
        self._retraction = Retraction(app, DOOR, wire)
        self._privacy_notices = PrivacyNotices(app, wire)

    # Being there

    async def run(self) -> None:
        """Be on Discord until `stop`. Whatever ends the connection is reported in one sentence, and tried again."""
        pause = self._first_pause
        self._do(self._retraction.run())
        while not self._stopping.is_set():
            self._was_ready = False
            sentence, hopeless = await self._session()
            if self._stopping.is_set():
                return
            pause = self._first_pause if self._was_ready else min(pause * 2, LONGEST_PAUSE)
            wait = self._first_pause * HOPELESS if hopeless else pause
            logger.error("discord.disconnected", reason=sentence, again_in=wait)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stopping.wait()

    async def _session(self) -> tuple[str, bool]:
        """One life of a client. Why it ended, and whether only a person can help."""
        self._client = client = _Client(self._hear)
        try:
            await client.start(self._token)
        except discord.LoginFailure:
            return BAD_TOKEN, True
        except discord.PrivilegedIntentsRequired:
            return INTENTS, False
        except discord.ConnectionClosed as error:
            return (BAD_TOKEN, True) if error.code == 4004 else (f"Discord ended the session ({error.code}).", False)
        except FAILURES as error:
            return f"Discord can't be reached ({type(error).__name__}).", False
        except Exception:
            logger.exception("discord.session_failed")
            return "The connection to Discord broke in an unforeseen way; it is in the log.", False
        finally:
            for task in self._reading.values():
                task.cancel()
            with suppress(Exception):
                await client.close()
        return "Discord ended the session.", False

    async def stop(self) -> None:
        """Leave: what was heard is stored, the connection is closed."""
        self._stopping.set()
        for task in self._reading.values():
            task.cancel()
        if self._client is not None:
            await self._client.close()
        for inbox in self._inboxes.values():
            inbox.finish()
        if self._workers:
            await asyncio.wait(self._workers, timeout=LAST_WORDS)
        await self._privacy_notices.close()
        tasks = [*self._workers, *self._doing, *self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Hearing

    def _hear(self, event: str, *args: Any) -> None:
        heard = self._hears.get(event)
        if heard is None or self._stopping.is_set():
            return
        try:
            heard(*args)
        except Exception:
            logger.exception("discord.event_lost", name=event)

    def _inbox(self, guild: int | None) -> Inbox:
        """The inbox of a guild, or of the DMs; a new one waits until history was read."""
        id = guild or DMS
        if id not in self._inboxes:
            inbox = Inbox(self._app, partial(self._workspace, id), self._asked)
            inbox.kept = self._privacy_notices.kept
            self._inboxes[id] = inbox
            self._workers.append(asyncio.create_task(inbox.run()))
        return self._inboxes[id]

    def _connected(self, shard: int) -> None:
        """A new session: what was missed comes first; who still reads for the one before lets nothing through."""
        assert self._client is not None
        count = self._client.shard_count or 1
        for id, inbox in self._inboxes.items():
            if (id >> 22) % count == shard:
                inbox.hold()
                if id in self._reading:
                    self._reading[id].cancel()
        self._homes.clear()

    def _ready(self, shard: int) -> None:
        self._was_ready = True
        self._retraction.wake()
        if shard == 0:
            self._catch_up(DMS, self._read_dms)
            self._do(self._resume())

    def _guild(self, guild: discord.Guild) -> None:
        inbox = self._inbox(guild.id)
        inbox.hold()
        self._catch_up(guild.id, partial(self._read_guild, guild))

    def _catch_up(self, id: int, read: Callable[[Inbox], Awaitable[None]]) -> None:
        """Read history, and let the inbox go on."""
        inbox, earlier = self._inbox(id), self._reading.get(id)
        if earlier is not None:
            earlier.cancel()

        async def reading() -> None:
            pause = self._first_pause
            while True:
                inbox.hold()  # it may have been let go before this was tried again
                try:
                    await read(inbox)
                    break
                except Unavailable as error:  # what comes now must wait: stored first, it would hide what was missed
                    logger.warning("discord.history_waits", guild=id, error=str(error))
                except Exception:
                    logger.exception("discord.history_unread", guild=id)
                    break
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            inbox.release()

        self._reading[id] = asyncio.create_task(reading())

    async def _read_guild(self, guild: discord.Guild, inbox: Inbox) -> None:
        assert self._client is not None
        workspace = self._app.directory.workspace(DOOR, str(guild.id))
        history = self._history(guild.id, workspace, inbox)
        await history.catch_up(guild)
        if any(is_private(channel) for channel in guild.channels):
            inbox.put(partial(self._people, guild))
        inbox.release()
        await history.compare(guild)
        await self._fill_gaps(history)

    async def _read_dms(self, inbox: Inbox) -> None:
        assert self._client is not None
        names = (DM_WORKSPACE, *(str(guild.id) for guild in self._guilds()))
        spaces = [self._app.directory.workspace(DOOR, name) for name in names]
        histories = [self._history(DMS, space, inbox) for space in spaces]
        for history in histories:
            await history.catch_up_dms()
        inbox.release()
        for history in histories:
            await history.compare_dms()
        await self._fill_gaps(*histories)

    def _history(self, guild: int, workspace: Workspace, inbox: Inbox) -> History:
        assert self._client is not None
        gaps = self._gaps.setdefault((guild, workspace.name), {})
        return History(self._app, self._client, workspace, inbox, self._said, gaps)

    async def _fill_gaps(self, *histories: History) -> None:
        """Read what could not be read, while what comes now is taken, until nothing is missing."""
        pause = self._first_pause
        while not all([await history.fill_gaps() for history in histories]):
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    # Whose it is

    async def _workspace(self, guild: int, user: str) -> Workspace:
        """Where somebody's words belong: the guild's workspace; for a DM, that of the first guild that they are in."""
        if guild != DMS:
            return self._app.directory.workspace(DOOR, str(guild))
        if user not in self._homes:
            name = DM_WORKSPACE
            for each in self._guilds():
                if await self._is_in(each, int(user)):
                    name = str(each.id)
                    break
            self._homes[user] = self._app.directory.workspace(DOOR, name)
        return self._homes[user]

    def _guilds(self) -> list[discord.Guild]:
        """The guilds that we are in: those that nexus.toml names first, in its order, then the oldest first."""
        named = [name for tenant in self._app.settings.tenants.values() for name in tenant.workspaces]
        guilds = self._client.guilds if self._client is not None else []
        return sorted(guilds, key=lambda g: (named.index(str(g.id)) if str(g.id) in named else len(named), g.id))

    async def _is_in(self, guild: discord.Guild, user: int) -> bool:
        """Whether somebody is in a guild. Raises Unavailable while Discord must be asked and does not answer."""
        if guild.get_member(user) is not None:
            return True
        with told():
            try:
                await guild.fetch_member(user)
            except discord.NotFound:
                return False
        return True

    # Messages

    def _message(self, message: discord.Message) -> None:
        inbox = self._inbox(message.guild.id if message.guild else None)
        if isinstance(message.channel, discord.PartialMessageable):
            inbox.put(partial(self._found, message))
        elif (said := self._said(message)) is not None:
            inbox.put(said)

    def _said(self, message: discord.Message, channel: object = None) -> Said | None:
        """A message as it is stored, if it says something and is not our own. Machines are heard, not answered."""
        assert self._client is not None
        me, channel = self._client.user, channel or message.channel
        place = place_of(channel, self._slugs[0])
        if me is None or place is None or message.author.id == me.id or not is_spoken(message):
            return None
        if place.kind is ConversationKind.DM:
            self._correspondents.note(str(message.channel.id), str(message.author.id))
        home = home_of(channel)
        return Said(
            incoming_of(message, place, me, self._slugs),
            answer=not message.author.bot,
            home=None if home is None else (str(home.id), is_private(home)),
            files=asyncio.create_task(read_files(message.attachments)) if message.attachments else None,
        )

    async def _found(self, message: discord.Message) -> Sequence[Told]:
        """A message from a channel that discord.py did not know, once it was asked for. Raises Unavailable while
        Discord does not answer."""
        assert self._client is not None
        with told():
            channel = await self._client.fetch_channel(message.channel.id)
        said = self._said(message, channel)
        return [] if said is None else [said]

    def _edited(self, event: discord.RawMessageUpdateEvent) -> None:
        assert self._client is not None
        message, me = event.message, self._client.user
        if me is None or message.author.id == me.id or message.edited_at is None:
            return  # our own, or only a link's preview was added
        text, mentions = text_of(message, me, self._slugs), mentions_of(message, me)
        author, at = str(message.author.id), message.edited_at
        files = tuple(file.url for file in message.attachments)

        async def edited() -> Sequence[Told]:
            place = await self._place(message.channel.id)
            return [] if place is None else [Edited(place[0], author, str(message.id), text, mentions, at, files)]

        self._inbox(event.guild_id).put(edited)

    def _deleted(self, event: discord.RawMessageDeleteEvent | discord.RawBulkMessageDeleteEvent) -> None:
        ids = event.message_ids if isinstance(event, discord.RawBulkMessageDeleteEvent) else {event.message_id}

        async def deleted() -> Sequence[Told]:
            place = await self._place(event.channel_id)
            return [] if place is None else [Edited(*place, str(id), None) for id in sorted(ids)]

        self._inbox(event.guild_id).put(deleted)

    async def _place(self, channel_id: int) -> tuple[Place, str] | None:
        """Where a channel is, and who is on the other side if it is a DM; None when it is gone. Raises Unavailable
        while Discord does not answer."""
        assert self._client is not None
        if (user := self._correspondents.get(str(channel_id))) is not None:
            return Place(ConversationKind.DM, self._slugs[0]), user
        try:
            with told():
                channel = self._client.get_channel(channel_id) or await self._client.fetch_channel(channel_id)
        except Refused:
            return None
        recipient = channel.recipient if isinstance(channel, discord.DMChannel) else None
        place = place_of(channel, self._slugs[0])
        return None if place is None else (place, "" if recipient is None else str(recipient.id))

    # Rooms and who is in them

    def _channel_changed(self, before: discord.abc.GuildChannel, after: discord.abc.GuildChannel) -> None:
        if before.overwrites == after.overwrites:
            return
        inbox = self._inbox(after.guild.id)
        inbox.put(Closed(str(after.id), is_private(after)))
        if is_private(after):
            inbox.put(partial(self._people, after.guild))

    def _role_changed(self, before: discord.Role, after: discord.Role) -> None:
        if before.permissions == after.permissions:
            return
        inbox = self._inbox(after.guild.id)
        if after.is_default():
            for channel in after.guild.channels:
                inbox.put(Closed(str(channel.id), is_private(channel)))
        inbox.put(partial(self._people, after.guild))

    async def _people(self, guild: discord.Guild) -> Sequence[Told]:
        """Who may view the private channels of a guild, of all its members where they are not too many to ask for."""
        if not guild.chunked and (guild.member_count or 0) <= MOST_LISTED:
            with suppress(*FAILURES):
                async with asyncio.timeout(LAST_WORDS):
                    await guild.chunk()
        closed = [channel for channel in guild.channels if is_private(channel)]
        return [
            People({str(channel.id): {str(m.id): _may_view(channel, m) for m in guild.members} for channel in closed})
        ]

    def _member_changed(self, member: discord.Member) -> None:
        """Someone came, or has other roles."""
        self._homes.pop(str(member.id), None)
        rooms = {str(channel.id): {str(member.id): _may_view(channel, member)} for channel in member.guild.channels}
        self._inbox(member.guild.id).put(People(rooms))

    def _member_gone(self, event: discord.RawMemberRemoveEvent) -> None:
        assert self._client is not None
        self._homes.pop(str(event.user.id), None)
        guild = self._client.get_guild(event.guild_id)
        if guild is not None:
            rooms = [*guild.channels, *guild.threads]
            self._inbox(guild.id).put(People({str(room.id): {str(event.user.id): False} for room in rooms}))

    def _thread_changed(self, event: discord.RawThreadUpdateEvent) -> None:
        at = archived_at(event.data["thread_metadata"])
        self._inbox(event.guild_id).put(Archived(str(event.parent_id), str(event.thread_id), at))

    def _thread_joined(self, member: discord.ThreadMember) -> None:
        if member.thread.is_private():
            self._inbox(member.thread.guild.id).put(People({str(member.thread.id): {str(member.id): True}}))

    def _thread_left(self, event: discord.RawThreadMembersUpdate) -> None:
        gone = {str(id): False for id in event.data.get("removed_member_ids", [])}
        self._inbox(event.guild_id).put(People({str(event.thread_id): gone}))

    # Answers

    def _interaction(self, interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.application_command:
            self._do(self._command(interaction, discord_slash.answer))
        elif interaction.type is discord.InteractionType.autocomplete:
            self._do(self._command(interaction, discord_slash.complete))

    async def _command(
        self,
        interaction: discord.Interaction,
        answer: Callable[[App, Callable[[], Awaitable[Workspace]], discord.Interaction], Awaitable[None]],
    ) -> None:
        workspace = partial(self._workspace, interaction.guild_id or DMS, str(interaction.user.id))
        await answer(self._app, workspace, interaction)

    async def _resume(self) -> None:
        """Answer the commands and post the notices that an earlier process was cut off in, however long the database is
        away."""
        client, pause = self._client, self._first_pause
        names = [DM_WORKSPACE, *(str(guild.id) for guild in self._guilds())]
        while names and client is not None:
            try:
                workspace = self._app.directory.workspace(DOOR, names[0])
                await discord_slash.resume(self._app, client, workspace)
                await self._privacy_notices.resume(workspace)
                names.pop(0)
            except Unavailable as error:
                logger.warning("discord.cut_off_waits", error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _do(self, doing: Any) -> None:
        """Do something beside the events; what becomes of it is its own business."""
        task = asyncio.create_task(doing)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    def _asked(self, incoming: Incoming) -> None:
        """A new message will be answered: nobody has begun to."""
        self._fresh.note(incoming.id, True)

    async def _noted(self, to: Destination, message: str) -> bool:
        workspace = self._app.directory.workspace(to.platform, to.workspace)
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            return await tx.deliveries.is_ours(message)


def _may_view(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    return channel.permissions_for(member).view_channel


async def inspect(settings: Settings) -> list[tuple[bool, str]]:
    """Whether the token works and Discord tells all that it must, each with a sentence that says what to do."""
    if settings.discord_token is None:
        return []
    client = discord.Client(intents=intents())
    try:
        await client.login(settings.discord_token.get_secret_value())
        flags = (await client.application_info()).flags
    except discord.LoginFailure:
        return [(False, BAD_TOKEN)]
    except FAILURES as error:
        return [(False, f"Discord can't be reached ({type(error).__name__}): look at the network, and try again.")]
    finally:
        await client.close()
    found = [(True, f"the token is that of {client.user}")]
    switches = {
        "Message Content Intent": flags.gateway_message_content or flags.gateway_message_content_limited,
        "Server Members Intent": flags.gateway_guild_members or flags.gateway_guild_members_limited,
    }
    for name, on in switches.items():
        found.append((on, f"{name} is on" if on else f"in the developer portal, under Bot, switch on {name}"))
    return found

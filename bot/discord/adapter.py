"""The Discord adapter: stays connected to Discord, and passes events to the inboxes."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import discord
import structlog

from bot.commands import confirmations
from bot.commands.idempotency import InterruptedCommands
from bot.delivery.notices import FirstNotices
from bot.delivery.offers import OFFER_PREFIX
from bot.delivery.outbox import PostedMessages
from bot.delivery.retraction import Retraction
from bot.delivery.streaming import StreamingDelivery
from bot.discord import slash
from bot.discord.client import DiscordClient
from bot.discord.doctor import BAD_TOKEN, MISSING_INTENTS
from bot.discord.events import DiscordEvents
from bot.discord.file_source import DiscordFileSource
from bot.discord.guilds import DMS_SHARD, Guilds
from bot.discord.history import DmHistory, GuildHistory
from bot.discord.inbox import DiscordInbox, QueuedEvent
from bot.discord.links import permalink
from bot.discord.members import DiscordMembers, DiscordMemberships
from bot.discord.outbox import DiscordOutbox
from bot.discord.previews import without_previews
from bot.discord.reading import FAILURES, PLATFORM, is_private
from bot.discord.waiting import WaitingDms
from bot.platform.inbox import InboxListeners
from bot.platform.reconciliation import PlatformHistory, Reconciliation
from bot.platform.retry import FIRST_SECONDS, Backoff
from bot.platform.startup import Startup, listed
from bot.platform.tasks import BackgroundTasks
from composer.app import App
from composer.errors import Misconfigured
from composer.model import ConversationKind, Incoming, Workspace
from composer.repositories.deliveries import Destination
from composer.repositories.explanations import MessageAddress

logger = structlog.get_logger()

REFUSED_FACTOR: Final = 300  # times the first wait, where only a person can help, in the developer portal
FLUSH_SECONDS: Final = 5.0  # for storing received events when Nexus stops
_CLOSED_BY_BAD_TOKEN: Final = 4004  # Discord's code for closing a connection

Answer = Callable[[App, slash.Senders, discord.Interaction], Coroutine[Any, Any, None]]


class DiscordAdapter:
    """Connects Discord, by the token in the settings, to the core. Answers can be delivered from construction on."""

    title = "Discord"

    def __init__(self, app: App, *, first_wait: float = FIRST_SECONDS) -> None:
        """`first_wait`: seconds before the first retry. Raises Misconfigured without a token."""
        if app.settings.discord_token is None:
            raise Misconfigured("There is no Discord token: set NEXUS_DISCORD_TOKEN.")
        self._app = app
        self._token = app.settings.discord_token.get_secret_value()
        self._backoff = Backoff(first_wait)
        self._client: DiscordClient | None = None
        self._inboxes: dict[int, DiscordInbox] = {}  # by guild; DMS_SHARD for DMs
        self._inbox_tasks: list[asyncio.Task[None]] = []
        self._reconciliations: dict[tuple[int, str], Reconciliation] = {}  # by guild (DMS_SHARD for DMs) and workspace
        self._reading: dict[int, list[asyncio.Task[None]]] = defaultdict(list)  # tasks of this session, by guild
        self._untried: dict[int, set[str]] = {}  # workspaces with channels that were not tried yet, by guild
        self._members: dict[int, DiscordMembers] = {}  # by guild
        self._tasks = BackgroundTasks()
        self._stopping = asyncio.Event()
        self.startup = Startup()
        self._was_ready = False
        self._lost_shards: set[int] = set()
        self._ready_shards: set[int] = set()
        self._all_ready = asyncio.Event()  # every shard was, so all guilds are known
        self._confirmations = confirmations.Confirmations()
        self._guilds = Guilds(app, lambda: self._client, self._all_ready)
        self._waiting = WaitingDms(lambda: self._client, self._guilds)
        slugs = [agent.slug for agent in app.settings.agents]
        self._events = DiscordEvents(
            lambda: self._client, self._guilds, slugs, self._put, self._members.get, self._is_typed
        )
        self._outbox = DiscordOutbox(lambda: self._client, PostedMessages(app))
        self._delivery = StreamingDelivery(app, self._outbox, self._links, written=without_previews)
        self._retraction = Retraction(app, PLATFORM, self._outbox)
        self._first_notices = FirstNotices(app, self._outbox)
        self._handlers: dict[str, Callable[..., None]] = {
            **self._events.handlers,
            "shard_connect": self._on_connect,
            "shard_ready": self._on_ready,
            "shard_disconnect": self._on_disconnect,
            "shard_resumed": self._on_resumed,
            "guild_available": self._on_guild,
            "guild_join": self._on_guild,
            "guild_remove": self._on_guild_remove,
            "interaction": self._on_interaction,
        }
        app.turns.serve(PLATFORM, self._delivery)
        app.memberships.serve(PLATFORM, DiscordMemberships(self._guild_told))
        files = DiscordFileSource(app, self._outbox)
        app.drafter.images.register_source(PLATFORM, files)
        app.file_texts.register_source(PLATFORM, files)

    # The connection

    async def run(self) -> None:
        """Stay connected until `stop`. Whatever ends a connection is logged in one sentence, and retried."""
        wait = self._backoff.first_seconds
        self._tasks.start(self._retraction.run())
        while not self._stopping.is_set():
            self._was_ready = False
            reason, needs_person = await self._session()
            if self._stopping.is_set():
                return
            if needs_person:
                self.startup.refused(reason)
            # Not a retry of one call: a connection that worked for a while starts the waits anew.
            first = self._backoff.first_seconds
            wait = first if self._was_ready else min(wait * 2, self._backoff.max_seconds)
            pause = first * REFUSED_FACTOR if needs_person else wait
            logger.error("discord.disconnected", reason=reason, retry_in=pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _session(self) -> tuple[str, bool]:
        """Run one client until it ends. Returns the reason as a sentence, and whether only a person can help."""
        self._client = client = DiscordClient(self._on_event)
        self._lost_shards.clear()
        self._ready_shards.clear()
        self._all_ready.clear()
        try:
            await client.start(self._token)
        except discord.LoginFailure:
            return BAD_TOKEN, True
        except discord.PrivilegedIntentsRequired:
            return MISSING_INTENTS, True
        except discord.ConnectionClosed as error:
            if error.code == _CLOSED_BY_BAD_TOKEN:
                return BAD_TOKEN, True
            return f"Discord ended the session ({error.code}).", False
        except FAILURES as error:
            return f"Discord can't be reached ({type(error).__name__}).", False
        except Exception:
            logger.exception("discord.session_failed")
            return "The connection to Discord failed unexpectedly; the traceback is in the program's log.", False
        finally:
            for guild in list(self._reading):
                self._stop_reading(guild)
            with suppress(Exception):
                await client.close()
        return "Discord ended the session.", False

    async def connected(self) -> bool:
        """Whether every connection to Discord is up."""
        client = self._client
        return client is not None and not client.is_closed() and client.is_ready() and not self._lost_shards

    async def stop(self) -> None:
        """Store what was received, close the connection and end `run`."""
        self._stopping.set()
        reading = [task for tasks in self._reading.values() for task in tasks]
        for task in reading:
            task.cancel()
        if self._client is not None:
            await self._client.close()
        for inbox in self._inboxes.values():
            inbox.finish()
        if self._inbox_tasks:
            await asyncio.wait(self._inbox_tasks, timeout=FLUSH_SECONDS)
        await self._first_notices.close()
        await self._waiting.close()
        await self._delivery.close()
        tasks = [*self._inbox_tasks, *reading]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._tasks.cancel(), return_exceptions=True)

    # Events

    def _on_event(self, event: str, *args: Any) -> None:
        handler = self._handlers.get(event)
        if handler is None or self._stopping.is_set():
            return
        try:
            handler(*args)
        except Exception:
            logger.exception("discord.event_failed", name=event)

    def _is_typed(self, message: discord.Message, received: Incoming) -> bool:
        """Whether a message in a DM is the yes or the no to what its sender was asked there; then it is done."""
        if message.guild is not None or self._confirmations.typed(received) is None:
            return False
        workspace = partial(self._guilds.workspace, DMS_SHARD, str(message.author.id))
        senders = slash.Senders(workspace, self._guilds.with_trust)
        self._tasks.start(slash.typed(self._app, senders, self._confirmations, message, received))
        return True

    def _put(self, guild: int | None, event: QueuedEvent) -> None:
        self._inbox(guild).put(event)
        if guild is None and isinstance(event, Incoming) and not event.by_tool:
            self._waiting.note(event.user)

    def _inbox(self, guild: int | None) -> DiscordInbox:
        """The inbox of a guild, or of the DMs; a new one waits until history was read."""
        id = guild or DMS_SHARD
        if id not in self._inboxes:
            listeners = InboxListeners(on_stored=self._first_notices.on_stored)
            inbox = DiscordInbox(self._app, partial(self._guilds.workspace, id), listeners, self._guilds.with_trust)
            self._inboxes[id] = inbox
            self._inbox_tasks.append(asyncio.create_task(inbox.run()))
        return self._inboxes[id]

    def _on_connect(self, shard: int) -> None:
        """A new session begins: hold its events until its history was read, and stop reading for the one before."""
        for id, inbox in self._inboxes.items():
            if self._is_on(shard, id):
                inbox.hold()
                self._stop_reading(id)
        self._guilds.forget_all()

    def _is_on(self, shard: int, guild: int) -> bool:
        assert self._client is not None
        return (guild >> 22) % (self._client.shard_count or 1) == shard

    def _on_disconnect(self, shard: int) -> None:
        self._lost_shards.add(shard)

    def _on_resumed(self, shard: int) -> None:
        """What was missed is in the inboxes now."""
        self._lost_shards.discard(shard)
        for id, members in self._members.items():
            if self._is_on(shard, id):
                members.leavers.due()

    def _guild_told(self, id: str) -> discord.Guild | None:
        """A guild while Discord tells of it what happens there: its shard is connected, and it has no outage."""
        client = self._client
        if client is None or client.is_closed() or not id.isdigit():
            return None
        guild = client.get_guild(int(id))
        told = guild is not None and not guild.unavailable and guild.shard_id not in self._lost_shards
        return guild if told else None

    def _members_of(self, guild: discord.Guild) -> DiscordMembers:
        """The people of a guild."""
        if guild.id not in self._members:
            made = DiscordMembers(self._app, guild, self._inbox(guild.id), self._backoff)
            self._members[guild.id] = made
            self._tasks.start(made.leavers.run())
        self._members[guild.id].guild = guild
        return self._members[guild.id]

    def _on_ready(self, shard: int) -> None:
        self._lost_shards.discard(shard)
        self._was_ready = True
        self._retraction.wake()
        assert self._client is not None
        self._ready_shards.add(shard)
        if len(self._ready_shards) < (self._client.shard_count or 1):
            return
        if shard == 0 or not self._all_ready.is_set():
            self._all_ready.set()
            self.startup.connected(_where(self._client))
            self._reconcile(DMS_SHARD, {name: self._dm_history(name) for name in self._guilds.names})
            self._tasks.start(self._resume())

    def _on_guild(self, guild: discord.Guild) -> None:
        self._retraction.wake()
        self._members_of(guild)
        self._reconcile(guild.id, {str(guild.id): self._guild_history(guild)})

    def _on_guild_remove(self, guild: discord.Guild) -> None:
        self._guilds.forget_all()  # whose DMs belong to it

    def _on_interaction(self, interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.application_command:
            self._start_command(interaction, self._confirmable(slash.answer))
        elif interaction.type is discord.InteractionType.component:
            pressed = str(dict(interaction.data or {}).get("custom_id"))
            if pressed.startswith(confirmations.BUTTON_PREFIX):
                self._start_command(interaction, self._confirmable(slash.press))
            elif pressed.startswith(OFFER_PREFIX):
                self._start_command(interaction, self._confirmable(slash.press_offer))
        elif interaction.type is discord.InteractionType.autocomplete:
            self._start_command(interaction, slash.complete)

    def _confirmable(self, answer: Callable[..., Coroutine[Any, Any, None]]) -> Answer:
        return lambda app, senders, interaction: answer(app, senders, self._confirmations, interaction)

    def _start_command(self, interaction: discord.Interaction, answer: Answer) -> None:
        workspace = partial(self._guilds.workspace, interaction.guild_id or DMS_SHARD, str(interaction.user.id))
        self._tasks.start(answer(self._app, slash.Senders(workspace, self._guilds.with_trust), interaction))

    async def _resume(self) -> None:
        """Answer the commands and post the notices that an earlier process did not finish, however long the database is
        unavailable."""
        client = self._client
        assert client is not None
        for name in self._guilds.names:
            workspace = self._app.directory.workspace(PLATFORM, name)
            interrupted = slash.interrupted_commands(self._app, client)

            async def resume(workspace: Workspace = workspace, commands: InterruptedCommands = interrupted) -> None:
                await commands.finish(workspace)
                await self._first_notices.resume(workspace)

            await self._backoff.retry(resume, "discord.resume_retrying")

    # History

    def _reconcile(self, guild: int, histories: Mapping[str, PlatformHistory]) -> None:
        """Read what was missed in a guild, or in the DMs of each workspace, and release its inbox once every channel
        was tried: what is missed is stored before what arrives now."""
        inbox = self._inbox(guild)
        inbox.hold()
        self._stop_reading(guild)
        self._untried[guild] = set(histories)
        for name, history in histories.items():
            key = (guild, name)
            if key not in self._reconciliations:
                workspace, tried = partial(self._workspace, name), partial(self._on_tried, guild, name)
                self._reconciliations[key] = Reconciliation(
                    self._app, PLATFORM, workspace, inbox, history, self._backoff, tried
                )
            self._reconciliations[key].history = history
            self._reconciliations[key].miss()
            self._reading[guild].append(asyncio.create_task(self._reconciliations[key].run()))

    async def _workspace(self, name: str) -> Workspace:
        return self._app.directory.workspace(PLATFORM, name)

    def _stop_reading(self, guild: int) -> None:
        """Stop to read for a session that has ended."""
        for task in self._reading.pop(guild, ()):
            task.cancel()
        self._reading[guild] = []

    def _on_tried(self, guild: int, workspace: str) -> None:
        self._untried[guild].discard(workspace)
        if not self._untried[guild]:
            self._reading[guild].append(asyncio.create_task(self._go_on(guild)))

    async def _go_on(self, id: int) -> None:
        """What was missed is stored: store what has arrived meanwhile."""
        inbox, guild = self._inbox(id), None if self._client is None else self._client.get_guild(id)
        if id == DMS_SHARD:
            inbox.release()
            return
        if guild is not None:
            if any(is_private(channel) for channel in guild.channels):
                inbox.put(partial(self._events.viewers, guild))
            inbox.put(self._members_of(guild).trusts)
            self._members_of(guild).leavers.due()
        inbox.release()
        await inbox.finish_erasing()

    async def _links(self, to: Destination, cited: Mapping[str, MessageAddress]) -> Mapping[str, str]:
        """Links in Markdown to the messages that an answer cites, by mark, without a preview of the message. Those of a
        DM are of the one where the answer is posted. Raises as `DiscordOutbox.channel`."""
        in_dm = any(each.kind is ConversationKind.DM for each in cited.values())
        dm = (await self._outbox.channel(to)).id if in_dm else None
        found = {mark: permalink(address, dm) for mark, address in cited.items()}
        return {mark: f"[{mark}](<{link}>)" for mark, link in found.items() if link is not None}

    def _guild_history(self, guild: discord.Guild) -> GuildHistory:
        assert self._client is not None
        workspace = self._app.directory.workspace(PLATFORM, str(guild.id))
        return GuildHistory(self._app, self._client, guild, workspace, self._inbox(guild.id), self._events)

    def _dm_history(self, name: str) -> DmHistory:
        assert self._client is not None
        workspace = self._app.directory.workspace(PLATFORM, name)
        return DmHistory(self._client, workspace, self._inbox(DMS_SHARD), self._events)


def _where(client: DiscordClient) -> str:
    """As whom and where we are connected."""
    servers = []
    for guild in client.guilds:
        seen = [each for each in guild.text_channels if each.permissions_for(guild.me).read_messages]
        public = [each.name for each in seen if not is_private(each)]
        servers.append(f"{guild.name} ({listed(public, len(seen) - len(public))})")
    return f"Discord as {client.user} in {', '.join(servers) or 'no server yet (nexus setup shows how to invite it)'}"

"""The Slack adapter: receives events by Socket Mode or signed HTTP, through slack-bolt, and stores them before they are
acknowledged."""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import structlog
from pydantic import SecretStr
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook import WebhookResponse

from bot.commands import confirmations
from bot.delivery.notices import FirstNotices
from bot.delivery.offers import OFFER_PREFIX
from bot.delivery.outbox import PostedMessages
from bot.delivery.retraction import Retraction
from bot.platform.events import (
    MembersChanged,
    MessageChanged,
    PersonLeft,
    RoomDeleted,
    RoomPrivacyChanged,
    RoomShared,
    TrustStated,
)
from bot.platform.inbox import InboxListeners
from bot.platform.leavers import Leavers
from bot.platform.reconciliation import Reconciliation
from bot.platform.retry import FIRST_SECONDS, Backoff
from bot.platform.startup import Startup, listed
from bot.platform.tasks import BackgroundTasks
from bot.slack.channels import ChannelIds, SlackChannels
from bot.slack.client import QUIET, SLACK_API, Slack
from bot.slack.commands import NO_PREVIEWS, Message, SlackCommands
from bot.slack.delivery import SlackDelivery
from bot.slack.directory import SlackDirectory
from bot.slack.file_source import SlackFileSource
from bot.slack.files import SlackFiles
from bot.slack.history import SlackHistory
from bot.slack.inbox import MAX_EDIT_RETRIES, SlackInbox
from bot.slack.members import SlackMembers
from bot.slack.outbox import EDIT_INTERVAL_SECONDS, SlackOutbox
from bot.slack.reading import (
    PLATFORM,
    AssistantThreadStarted,
    ChannelFound,
    ChannelIdChanged,
    DirectoryChanged,
    HistoryChanged,
    SlackEvent,
    StreamsStopped,
    TokenRevoked,
    read_event,
)
from bot.slack.requests import retries, teams
from bot.slack.signed_http import SlackHttp
from bot.slack.text import addressed, command
from composer.app import App
from composer.errors import BadInput, Misconfigured, NexusError, Unavailable, for_operator
from composer.model import ConversationKind, Incoming

logger = structlog.get_logger()

PING_SECONDS: Final = 5.0
MAX_LOST_PINGS: Final = 6  # without a connection, after which a new client is made
NO_EVENTS: Final = (
    "Slack has no way to reach Nexus: set NEXUS_SLACK_APP_TOKEN (Socket Mode) or NEXUS_SLACK_SIGNING_SECRET (HTTP). "
    "docs/slack.md says where to get them."
)
_CHANGES: Final = (
    MessageChanged,
    RoomPrivacyChanged,
    RoomShared,
    MembersChanged,
    RoomDeleted,
)
BEGIN_SECONDS: Final = 2.0  # for what the database is asked before an acknowledgement, which Slack wants within three
LISTED_CHANNELS: Final = 200  # asked for at once, to say where we are
LEAVERS_SECONDS: Final = 3600.0  # after which leavers are looked up again: over HTTP, events may be lost unnoticed


def _log(sentence: str) -> None:
    logger.error("slack.action_needed", reason=sentence)


class _SocketClient(SocketModeClient):
    """A Socket Mode client that gets its addresses through our own client: a bad token is reported once, and retried
    with backoff."""

    def __init__(self, app_token: str, address: Callable[[], Any], ping: float) -> None:
        super().__init__(app_token, logger=QUIET, web_client=AsyncWebClient(logger=QUIET), ping_interval=ping)
        self._address = address

    async def issue_new_wss_url(self) -> str:
        """The address to connect to; waits until Slack returns one."""
        return str(await self._address())


class SlackAdapter:
    """Connects one Slack workspace to the core. `run` it; to receive events by HTTP, also serve `http`."""

    title = "Slack"

    def __init__(
        self,
        app: App,
        *,
        report: Callable[[str], None] = _log,
        base_url: str = SLACK_API,
        ping: float = PING_SECONDS,
        first_wait: float = FIRST_SECONDS,
        clock: Callable[[], float] = time.time,
        edit_interval: float = EDIT_INTERVAL_SECONDS,
    ) -> None:
        """`report` is called with a sentence when a person must act. `first_wait`: seconds before the first retry.
        `clock`: Unix seconds.
        Raises Misconfigured without a bot token, or without a way to receive events.
        """
        settings = app.settings
        if settings.slack_bot_token is None:
            raise Misconfigured("NEXUS_SLACK_BOT_TOKEN is not set: docs/slack.md says where to get it.")
        if settings.slack_app_token is None and settings.slack_signing_secret is None:
            raise Misconfigured(NO_EVENTS)
        self._app = app
        self.startup = Startup()
        report = self._reported(report)
        self._clock = clock
        self._ping = ping
        self._backoff = Backoff(first_wait)
        self._stopped = asyncio.Event()
        self._tasks = BackgroundTasks()
        ids = ChannelIds()
        token = settings.slack_bot_token.get_secret_value()
        self._slack = Slack(
            token, base_url, report=report, channel_id=ids.present, renew_ids=lambda: self._refresh_ids()
        )
        app_token = settings.slack_app_token
        self._app_token = None if app_token is None else app_token.get_secret_value()
        self._opener = Slack(self._app_token or "", base_url, setting="NEXUS_SLACK_APP_TOKEN", report=report)
        self.directory = SlackDirectory(self._slack, app.clock)
        self.outbox = SlackOutbox(self._slack, self.directory, PostedMessages(app), edit_interval=edit_interval)
        self._ids = ids
        self._delivery = SlackDelivery(app, self.outbox, self.directory, ids)
        self._first_notices = FirstNotices(app, self.outbox)
        listeners = InboxListeners(on_stored=self._first_notices.on_stored)
        self.inbox = SlackInbox(app, self.directory, listeners, self.outbox.note_question)
        self._channels = SlackChannels(app, ids, self.inbox.workspace)
        posted = SlackFiles(app, self._slack, self.directory, self.inbox)
        self._retraction = Retraction(app, PLATFORM, self.outbox, posted.delete_due)
        self.commands = SlackCommands(app, self._slack, self.directory, self.inbox, posted, ids, self._refresh_ids)
        members = SlackMembers(self._slack, self.directory, self._channels)
        self._leavers = Leavers(app, self.inbox.workspace, members.has_left, self._backoff)
        history = SlackHistory(app, self._slack, self.directory, self.inbox, self._channels)
        self.reconciliation = Reconciliation(
            app, PLATFORM, self.inbox.workspace, self.inbox, history, self._backoff, self._leavers.due
        )
        self._bolt = self._make_bolt(settings.slack_signing_secret, base_url)
        self._identified = False
        self._socket: SocketModeClient | None = None
        app.turns.serve(PLATFORM, self._delivery, lambda: self.directory.known_team)
        app.memberships.serve(PLATFORM, members)
        files = SlackFileSource(self._slack, self.directory)
        app.drafter.images.register_source(PLATFORM, files)
        app.file_texts.register_source(PLATFORM, files)

    # Running

    async def run(self) -> None:
        """Serve until stopped. Whatever is wrong with Slack or the tokens is reported, and retried."""
        reconciling = asyncio.create_task(self.reconciliation.run())
        try:
            await self._until_identified()
            self._tasks.start(self._retraction.run())
            self._tasks.start(self._resume())
            self._tasks.start(self._backoff.retry(self.inbox.finish_erasing, "slack.erasing_retrying"))
            self._tasks.start(self._leavers.run())
            self._tasks.start(self._look_up_leavers())
            if self._app_token is None:
                self.reconciliation.miss()
                await self._say_where()
                await self._stopped.wait()
            while not self._stopped.is_set():
                await self._serve_socket()
        finally:
            reconciling.cancel()
            await asyncio.gather(reconciling, return_exceptions=True)
            await self._close()

    async def connected(self) -> bool:
        """Whether Slack's events arrive: the socket is up, or by HTTP, Slack has told us who we are."""
        if self._app_token is None:
            return self._identified
        return self._socket is not None and await self._socket.is_connected()

    async def stop(self) -> None:
        """Receive no more events, and end `run`."""
        self._stopped.set()

    async def _close(self) -> None:
        await self._tasks.cancel()
        await self._first_notices.close()
        await self._delivery.close()
        await self.commands.close()
        await self._slack.close()
        await self._opener.close()

    async def _until_identified(self) -> None:
        """Wait until the bot's own ids are known, or until stopped."""
        backoff = Backoff(self._backoff.first_seconds, sleep=self._sleep_until_stopped)
        with suppress(NexusError):
            await backoff.retry(
                self.directory.me, "slack.identity_retrying", on=NexusError, unless=self._stopped.is_set
            )
            self._identified = not self._stopped.is_set()

    async def _sleep_until_stopped(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _serve_socket(self) -> None:
        """Keep one client connected; end when it has been disconnected for too long, or when stopped."""
        self._socket = client = _SocketClient(self._app_token or "", self._address, self._ping)
        client.message_listeners.append(self._on_message)
        client.socket_mode_request_listeners.append(self._on_request)
        connecting = asyncio.create_task(client.connect())  # type: ignore[no-untyped-call]
        lost = 0
        try:
            while not self._stopped.is_set() and lost < MAX_LOST_PINGS:
                await self._sleep_until_stopped(self._ping)
                lost = 0 if await client.is_connected() else lost + 1
        finally:
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
            self._socket = None
            await client.close()  # type: ignore[no-untyped-call]

    async def _address(self) -> str:
        async def open_connection() -> str:
            answer = await self._opener.call("apps.connections.open", app_token=self._app_token)
            return str(answer["url"])

        return await self._backoff.retry(open_connection, "slack.connection_retrying", on=NexusError)

    async def _on_message(self, client: AsyncBaseSocketModeClient, message: dict[str, Any], raw: str | None) -> None:
        if message.get("type") == "hello":  # a new connection: what was missed before it is in the history
            self.directory.forget_changes()
            self.reconciliation.miss()
            if not self.startup.ended:
                self._tasks.start(self._say_where())

    def _reported(self, report: Callable[[str], None]) -> Callable[[str], None]:
        """Report that a person must act, and so that we are refused if we were not connected yet."""

        def refused(sentence: str) -> None:
            self.startup.refused(sentence)
            report(sentence)

        return refused

    async def _say_where(self) -> None:
        """Say as whom and where we are connected."""
        kinds = "public_channel,private_channel"
        try:
            who = await self._slack.call("auth.test")
            pages = self._slack.pages("users.conversations", types=kinds, exclude_archived=True, limit=LISTED_CHANNELS)
            channels = [channel async for page in pages for channel in page["channels"]]
        except NexusError as error:  # connected all the same: what Slack does not say is not named
            self.startup.connected(f"Slack ({for_operator(error)})")
            return
        public = [str(each.get("name")) for each in channels if not each.get("is_private")]
        where = listed(public, len(channels) - len(public))
        self.startup.connected(f"Slack as {who.get('user')} in {who.get('team')} ({where})")

    async def _on_request(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        started = time.time()
        with suppress(ConnectionError):  # what could not be acknowledged is delivered again
            await send_async_response(client, request, await run_async_bolt_app(self._bolt, request), started)

    def _give_up(self, retries: int) -> None:
        """An event could not be stored, which Slack has sent again so often: after the last time it is not sent any
        more, and is read from the history."""
        if retries >= MAX_EDIT_RETRIES:
            self.reconciliation.miss()

    async def _look_up_leavers(self) -> None:
        """Look up from time to time who has left, in case an event was lost unnoticed."""
        while True:
            await asyncio.sleep(LEAVERS_SECONDS)
            self._leavers.due()

    async def _resume(self) -> None:
        """Answer the commands and post the notices that an earlier process of this workspace did not finish, however
        long the database is unavailable."""

        async def resume() -> None:
            await self.commands.resume()
            await self._first_notices.resume(await self.inbox.workspace())

        await self._backoff.retry(resume, "slack.resume_retrying")

    # HTTP

    def http(self) -> SlackHttp:
        """What a web process serves to receive events by HTTP. Raises Misconfigured."""
        secret = self._app.settings.slack_signing_secret
        if secret is None:
            raise Misconfigured(
                "NEXUS_SLACK_SIGNING_SECRET is not set: without it, anyone could send events as Slack. "
                "Slack shows it under Basic Information."
            )
        return SlackHttp(secret.get_secret_value(), self._clock, self._bolt.async_dispatch)

    async def _refuse_foreign(self, body: dict[str, Any], request: AsyncBoltRequest, next: Any) -> BoltResponse | None:
        """Let nothing through that was sent for another workspace than the one whose bot token we have: before every
        event, command and interaction."""
        team = (await self.directory.me()).team
        if team in teams(body):
            await next()
            return None
        logger.warning("slack.foreign_team", ours=team)
        return BoltResponse(status=401 if request.mode == "http" else 200)

    # Events

    def _make_bolt(self, secret: SecretStr | None, base_url: str) -> AsyncApp:
        async def authorize() -> AuthorizeResult:  # a function, since bolt passes arguments by their names
            me = await self.directory.me()
            unused = "-"  # nothing is called through bolt
            return AuthorizeResult(
                enterprise_id=None, team_id=me.team, bot_token=unused, bot_id=me.bot, bot_user_id=me.user
            )

        bolt = AsyncApp(
            name=PLATFORM,
            logger=QUIET,
            process_before_response=True,  # acknowledge only what is stored
            signing_secret="" if secret is None else secret.get_secret_value(),
            request_verification_enabled=False,  # SlackHttp does it, before anything is parsed
            ssl_check_enabled=False,
            ignoring_self_events_enabled=False,  # a deletion of our own answer counts; `read_event` leaves out the rest
            client=AsyncWebClient(base_url=base_url, logger=QUIET),
            authorize=authorize,
        )
        bolt.use(self._refuse_foreign)
        bolt.event(re.compile("."))(self._on_event)
        bolt.command(re.compile("^/"))(self._on_command)
        bolt.action(re.compile(f"^{re.escape(confirmations.BUTTON_PREFIX)}"))(self._on_press)
        bolt.action(re.compile(f"^{re.escape(OFFER_PREFIX)}"))(self._on_press)
        bolt.error(self._on_error)
        return bolt

    async def _on_error(self, error: Exception) -> BoltResponse:
        """Do not acknowledge an event that failed: Slack delivers it again."""
        if isinstance(error, Unavailable):
            logger.warning("slack.event_postponed", error=for_operator(error))
        else:
            logger.error("slack.event_failed", exc_info=error)
        return BoltResponse(status=500)

    async def _on_event(
        self, event: dict[str, Any], body: dict[str, Any], request: AsyncBoltRequest
    ) -> BoltResponse | None:
        number = retries(request.headers)
        try:
            named = await self._channels.named(event)
            try:
                read = read_event(named, await self.directory.me())
            except (KeyError, TypeError, ValueError, AttributeError, BadInput):
                logger.warning("slack.event_malformed", exc_info=True)
                return BoltResponse(status=400) if request.mode == "http" else None
            if isinstance(read, Incoming):
                shared = bool(body.get("is_ext_shared_channel"))
                read = replace(read, place=replace(read.place, outsiders=shared))
            if isinstance(read, _CHANGES):
                await self._apply_to_split(named)
            if read is not None:
                await self._apply(read, number)
        except Exception:
            self._give_up(number)
            raise
        return None

    async def _apply_to_split(self, event: dict[str, Any]) -> None:
        """Apply a change also to what is stored under later ids of its channel themselves."""
        for id in self._ids.split(str(event.get("channel"))):
            read = read_event(event | {"channel": id}, await self.directory.me())
            if read is not None:
                await self._apply(read, MAX_EDIT_RETRIES)

    async def _apply(self, event: SlackEvent, retries: int) -> None:
        match event:
            case Incoming():
                await self._receive_message(event, retries)
            case MessageChanged():
                await self.inbox.change_message(event, retries)
            case RoomPrivacyChanged():
                await self.inbox.change_privacy(event)
            case RoomShared():
                await self.inbox.note_shared(event)
            case RoomDeleted():
                await self._erase_room(event)
            case MembersChanged():
                await self.inbox.apply(event)
            case PersonLeft():
                self.directory.forget_person(event.user)
                await self.inbox.apply(event)
            case TrustStated():
                for user in event.people:
                    self.directory.forget_person(user)
                await self.inbox.apply(event)
            case ChannelIdChanged():
                await self._change_id(event)
            case HistoryChanged():
                await self._channels.refresh()
                rooms = [] if event.direct or not event.channel else [event.channel, *self._ids.split(event.channel)]
                await self.reconciliation.note_changed(rooms, direct=event.direct)
            case ChannelFound():
                self._retraction.wake()
            case DirectoryChanged():
                self.directory.forget_room(event.channel)
                self.directory.forget_person(event.user)
            case AssistantThreadStarted():
                self.directory.note_dm(event.user, event.channel)
            case StreamsStopped():
                self.outbox.stop_streams(event.messages)
            case TokenRevoked():
                self._identified = False
                self.directory.forget_me()
                self._tasks.start(self._identify_again())

    async def _identify_again(self) -> None:
        """Wait for a token that Slack accepts; then read what was missed. A socket says itself that it is connected."""
        await self._until_identified()
        if self._app_token is None:
            self.directory.forget_changes()
            self.reconciliation.miss()

    async def _erase_room(self, event: RoomDeleted) -> None:
        """A channel was deleted. Slack tells that again for some minutes only, so this process tries on. Raises
        Unavailable."""
        try:
            await self.inbox.apply(event)
        except Unavailable:
            self._tasks.start(self._backoff.retry(lambda: self.inbox.apply(event), "slack.erasing_retrying"))
            raise

    async def _change_id(self, event: ChannelIdChanged) -> None:
        """A channel has another id. Until Slack says otherwise, people of other organisations read it. What is told
        again after the channel got yet another id changes nothing. Raises Unavailable."""
        await self._channels.refresh(0.0)
        name = self._ids.name(event.old)
        if self._ids.present(name) not in (event.old, event.new):
            return
        await self.inbox.note_shared(RoomShared(name))
        await self._channels.change(name, event.new, event.at)
        self.directory.forget_room(name)
        self._retraction.wake()

    async def _receive_message(self, message: Incoming, retries: int) -> None:
        me, direct = await self.directory.me(), message.place.kind is ConversationKind.DM
        if direct and not message.by_tool:
            self.directory.note_dm(message.user, message.channel)
        words = None if message.by_tool else command(message.text, me.user, direct=direct)
        said = None if message.by_tool else addressed(message.text, me.user, direct=direct)
        if words is None and said is not None and await self.commands.typed(message, said):
            return
        if words is None:
            await self.inbox.receive_message(message, retries)
        else:
            await self.commands.mention(message, words)

    async def _on_command(self, ack: Any, respond: Any, command: dict[str, Any]) -> None:
        async def respond_later(message: Message) -> WebhookResponse:
            return await respond(**message, **NO_PREVIEWS, response_type="ephemeral")  # type: ignore[no-any-return]

        message = await self.commands.slash(command, respond_later)
        await (ack(**message, **NO_PREVIEWS, response_type="ephemeral") if message else ack())

    async def _refresh_ids(self) -> None:
        """Read the ids of channels, unless that fails or takes long: a command says itself that the database is
        away."""
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(BEGIN_SECONDS):
                await self._channels.refresh(0.0)

    async def _on_press(self, ack: Any, respond: Any, body: dict[str, Any]) -> None:
        async def respond_alone(message: Message) -> WebhookResponse:
            return await respond(  # type: ignore[no-any-return]
                **message, **NO_PREVIEWS, response_type="ephemeral", replace_original=False
            )

        self.commands.press(body, respond_alone)
        await ack()

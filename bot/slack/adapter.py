"""Slack: Socket Mode or signed HTTP in, with slack-bolt; what comes in is stored before it is acknowledged."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from bot.delivery.notices import PrivacyNotices
from bot.delivery.retraction import Retraction
from bot.slack.client import QUIET, SLACK, Slack
from bot.slack.commands import SlackCommands
from bot.slack.directory import SlackDirectory
from bot.slack.history import SlackHistory
from bot.slack.images import SlackImages
from bot.slack.inbox import PLATFORM, Recent, SlackInbox
from bot.slack.outbox import SlackDelivery, SlackOutbox
from bot.slack.reading import Changed, Closed, Edited, Moved, Revoked, Said, Stopped, ThreadStarted, Told, read_event
from bot.slack.text import command, plain
from composer.app import App
from composer.errors import Misconfigured, NexusError, Unavailable
from composer.model import Turn

logger = structlog.get_logger()

PATH: Final = "/slack/events"  # of events, commands and clicks alike
PING: Final = 5.0  # seconds between signs of life
LOST: Final = 6  # pings without a connection, after which a new client is made
TRY_AGAIN: Final = 1.0  # seconds, doubled up to the next
LONGEST_PAUSE: Final = 60.0
LONGEST_TITLE: Final = 60
LARGEST: Final = 4 * 2**20  # bytes of a request


def _log(sentence: str) -> None:
    logger.error("slack.trouble", said=sentence)


class _Socket(SocketModeClient):
    """Socket Mode, asking for its addresses through our client: a bad token is told once, and tried less and less."""

    def __init__(self, app_token: str, address: Callable[[], Any], ping: float) -> None:
        super().__init__(app_token, logger=QUIET, web_client=AsyncWebClient(logger=QUIET), ping_interval=ping)
        self._address = address

    async def issue_new_wss_url(self) -> str:
        """Where to connect; waits until Slack says it."""
        return str(await self._address())


class SlackAdapter:
    """The door to one Slack workspace. `run` it, or mount `http_app` and `run` it beside."""

    def __init__(
        self,
        app: App,
        *,
        report: Callable[[str], None] = _log,
        base_url: str = SLACK,
        ping: float = PING,
        try_again: float = TRY_AGAIN,
        pace: float | None = None,
    ) -> None:
        """`report` is told, in a sentence, what a person must do something about."""
        settings = app.settings
        if settings.slack_bot_token is None:
            raise Misconfigured("NEXUS_SLACK_BOT_TOKEN is not set: docs/slack.md says where to get it.")
        self._app = app
        self._report = report
        self._ping = ping
        self._try_again = try_again
        self._stopped = asyncio.Event()
        self._slack = Slack(settings.slack_bot_token.get_secret_value(), base_url, tell=report)
        secret = settings.slack_app_token
        self._app_token = None if secret is None else secret.get_secret_value()
        self._opener = Slack(self._app_token or "", base_url, setting="NEXUS_SLACK_APP_TOKEN", tell=report)
        self.directory = SlackDirectory(self._slack)
        wire_options = {} if pace is None else {"pace": pace}
        self.wire = SlackOutbox(self._slack, self.directory, self._is_noted, **wire_options)
        self.inbox = SlackInbox(app, self.directory, self._asked)
        self.inbox.began = self._began
        self._privacy_notices = PrivacyNotices(app, self.wire)
        self.inbox.kept = self._privacy_notices.kept
        self.commands = SlackCommands(app, self._slack, self.directory, self.inbox)
        self.history = SlackHistory(app, self._slack, self.directory, self.inbox)
        self._bolt = self._make_bolt(settings.slack_signing_secret, base_url)
        self._untitled: Recent[bool] = Recent()
        self._missed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.caught_up = 0
        app.turns.serve(PLATFORM, SlackDelivery(app, self.wire))
        app.responder.images.register_source(PLATFORM, SlackImages(self._slack, self.directory))
        self._retraction = Retraction(app, PLATFORM, self.wire)

    # Running

    async def run(self) -> None:
        """Serve until stopped. Whatever is wrong with Slack or its tokens is reported, and tried again."""
        reading = asyncio.create_task(self._read_missed())
        try:
            await self._until_known()
            self._beside(self._retraction.run())
            self._beside(self._resume())
            if self._app_token is None:
                self._missed.set()
                await self._stopped.wait()
            while not self._stopped.is_set():
                await self._serve_socket()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await self._close()

    async def stop(self) -> None:
        """Take no more events; `run` ends."""
        self._stopped.set()

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._privacy_notices.close()
        await self.commands.close()
        await self._slack.close()
        await self._opener.close()

    async def _until_known(self) -> None:
        """Wait until Slack says who we are."""
        pause = self._try_again
        while not self._stopped.is_set():
            try:
                await self.directory.me()
                return
            except NexusError as error:
                logger.warning("slack.waiting", error=str(error))
            await self._pause(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _serve_socket(self) -> None:
        """Keep one client connected; end when it has not been for too long, or when stopped."""
        client = _Socket(self._app_token or "", self._address, self._ping)
        client.message_listeners.append(self._on_message)
        client.socket_mode_request_listeners.append(self._on_request)
        connecting = asyncio.create_task(client.connect())  # type: ignore[no-untyped-call]
        lost = 0
        try:
            while not self._stopped.is_set() and lost < LOST:
                await self._pause(self._ping)
                lost = 0 if await client.is_connected() else lost + 1
        finally:
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
            await client.close()  # type: ignore[no-untyped-call]

    async def _address(self) -> str:
        pause = self._try_again
        while True:
            try:
                answer = await self._opener.call("apps.connections.open", app_token=self._app_token)
                return str(answer["url"])
            except NexusError as error:
                logger.warning("slack.not_connected", error=str(error))
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _on_message(self, client: AsyncBaseSocketModeClient, message: dict[str, Any], raw: str | None) -> None:
        if message.get("type") == "hello":  # a new connection; what came while there was none is in the history
            self._missed.set()

    async def _on_request(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        started = time.time()
        with suppress(ConnectionError):  # what could not be acknowledged comes again
            await send_async_response(client, request, await run_async_bolt_app(self._bolt, request), started)

    async def _read_missed(self) -> None:
        """Read on in the history, whenever something may have been missed."""
        while True:
            await self._missed.wait()
            self._missed.clear()
            pause = self._try_again
            while True:
                try:
                    await self.history.read_on()
                    self.caught_up += 1
                    break
                except NexusError as error:
                    logger.warning("slack.history_waits", error=str(error))
                except Exception:
                    logger.exception("slack.history_failed")
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _resume(self) -> None:
        """Answer the commands and post the notices that an earlier process was cut off in, however long the database is
        away."""
        pause = self._try_again
        while True:
            try:
                await self.commands.resume()
                return await self._privacy_notices.resume(await self.inbox.workspace())
            except Unavailable as error:
                logger.warning("slack.cut_off_waits", error=str(error))
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    # HTTP

    def http_app(self) -> web.Application:
        """What a web process mounts to take events by HTTP, at `/slack/events`. Raises Misconfigured."""
        if self._app.settings.slack_signing_secret is None:
            raise Misconfigured("NEXUS_SLACK_SIGNING_SECRET is not set: without it, anyone could speak as Slack.")
        app = web.Application(client_max_size=LARGEST)
        app.router.add_post(PATH, self._http)
        return app

    async def _http(self, request: web.Request) -> web.Response:
        return await to_aiohttp_response(await self._bolt.async_dispatch(await to_bolt_request(request)))

    # Events

    def _make_bolt(self, secret: Any, base_url: str) -> AsyncApp:
        async def authorize() -> AuthorizeResult:  # its listeners are functions: bolt hands out arguments by name
            me = await self.directory.me()
            token = "-"  # nothing is called through bolt
            return AuthorizeResult(
                enterprise_id=None, team_id=me.team, bot_token=token, bot_id=me.bot, bot_user_id=me.user
            )

        bolt = AsyncApp(
            name=PLATFORM,
            logger=QUIET,
            process_before_response=True,  # acknowledged is what is stored
            signing_secret="" if secret is None else secret.get_secret_value(),
            client=AsyncWebClient(base_url=base_url, logger=QUIET),
            authorize=authorize,
        )
        bolt.event(re.compile("."))(self._event)
        bolt.command(re.compile("^/"))(self._slash)
        bolt.error(self._failed)
        return bolt

    async def _failed(self, error: Exception) -> BoltResponse:
        """Not acknowledged: Slack brings it again."""
        if isinstance(error, Unavailable):
            logger.warning("slack.event_waits", error=str(error))
        else:
            logger.error("slack.event_failed", exc_info=error)
        return BoltResponse(status=500)

    async def _event(self, event: dict[str, Any], request: AsyncBoltRequest) -> None:
        told = read_event(event, await self.directory.me())
        tries = request.headers.get("x-slack-retry-num", ["0"])[0]
        if told is not None:
            await self._take(told, int(tries) if tries.isdigit() else 0)

    async def _take(self, told: Told, tries: int) -> None:
        match told:
            case Said():
                await self._said(told, tries)
            case Edited():
                await self.inbox.edited(told)
            case Closed():
                await self.inbox.closed(told)
            case Moved():
                await self.inbox.moved(told)
            case Changed():
                self.directory.forget_room(told.channel)
                self.directory.forget_person(told.user)
            case ThreadStarted():
                self.directory.note_im(told.user, told.channel)
                self._untitled.note((told.channel, told.thread), True)
            case Stopped():
                self.wire.stopped(told.messages)
            case Revoked():
                self.directory.forget_me()
                self._beside(self._until_known())

    async def _said(self, said: Said, tries: int) -> None:
        me = await self.directory.me()
        if said.direct and not said.machine:
            self.directory.note_im(said.user, said.channel)
        words = None if said.machine else command(said.text, me.user, direct=said.direct)
        if words is None:
            await self.inbox.said(said, tries)
        else:
            await self.commands.mention(said, words)

    async def _slash(self, ack: Any, respond: Any, command: dict[str, Any]) -> None:
        async def later(text: str) -> None:
            await respond(text=text, response_type="ephemeral")

        text = await self.commands.slash(command, later)
        await (ack(text=text, response_type="ephemeral") if text else ack())

    # Answers

    def _asked(self, said: Said, wanted: bool) -> None:
        """A message may want an answer: where that will stand, and what its conversation is called."""
        self.wire.note_question(said.channel, said.ts, said.thread)
        if wanted and said.thread is not None and self._untitled.pop((said.channel, said.thread), False):
            self._beside(self._title(said.channel, said.thread, said.text))

    async def _title(self, channel: str, thread: str, text: str) -> None:
        title = " ".join(plain(text, {}).split())[:LONGEST_TITLE]
        try:
            await self._slack.call("assistant.threads.setTitle", channel_id=channel, thread_ts=thread, title=title)
        except NexusError as error:
            logger.info("slack.title_not_set", error=str(error))

    def _began(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            self.wire.note_fresh(turn)

    def _beside(self, doing: Any) -> None:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _is_noted(self, message: str) -> bool:
        workspace = await self.inbox.workspace()
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            return await tx.deliveries.is_ours(message)

"""The `/nexus …` commands on Slack: the slash command, and the mention form where slash commands don't work."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import structlog
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.commands.idempotency import adopt_interrupted, answer_interrupted, begin_command, mark_answered
from bot.commands.suggestions import hint
from bot.commands.table import PREFIX, run_command
from bot.delivery.splitting import split
from bot.slack.client import QUIET, Slack
from bot.slack.directory import SlackDirectory
from bot.slack.inbox import PLATFORM, SlackInbox
from bot.slack.reading import Said
from bot.slack.text import by_id, escaped
from composer.app import App
from composer.errors import BadInput, NexusError, NotFound
from composer.model import ConversationKind, Incoming, Place

logger = structlog.get_logger()

LIMIT: Final = 3_400  # characters of one ephemeral message
DONE: Final = "Done."  # for a command that has nothing to say
MOST: Final = 5  # messages that a response address takes
AT_ONCE: Final = 2.0  # seconds; after that the command is acknowledged and answered later
_BY_ID: Final = ("project member",)  # commands whose words name people, who are meant by their ids

Respond = Callable[[str], Awaitable[None]]


class SlackCommands:
    """Runs commands, and tells their answers to who asked alone."""

    def __init__(self, app: App, slack: Slack, directory: SlackDirectory, inbox: SlackInbox) -> None:
        self._app = app
        self._slack = slack
        self._directory = directory
        self._inbox = inbox
        self._late: set[asyncio.Task[None]] = set()

    async def slash(self, payload: Mapping[str, Any], later: Respond) -> str:
        """Run a slash command. What is returned is shown at once; what takes longer is told by `later`."""
        running = asyncio.create_task(self._slash(payload))
        await asyncio.wait({running}, timeout=AT_ONCE)
        if running.done():
            if not running.result():
                return ""
            first, *rest = _parts(running.result())
            if rest:
                self._keep(_tell(later, rest))
            return first
        self._keep(self._tell_late(running, later))
        return ""

    def _keep(self, doing: Any) -> None:
        task = asyncio.create_task(doing)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _tell_late(self, running: "asyncio.Task[str]", later: Respond) -> None:
        if answer := await running:
            await _tell(later, _parts(answer))

    async def close(self) -> None:
        """Wait for the answers that are still to be told."""
        await asyncio.gather(*self._late, return_exceptions=True)

    async def _slash(self, payload: Mapping[str, Any]) -> str:
        """The answer to a slash command; nothing for one that was here before."""
        try:
            place = await self._place(payload)
            text = f"{PREFIX} {payload.get('text') or ''}"
            incoming = await self._incoming(place, payload["user_id"], text, str(payload["trigger_id"]))
            address = {"response_url": str(payload.get("response_url") or "")}
            if not await begin_command(self._app, await self._inbox.workspace(), incoming, address):
                return ""
            answer = await self._run(incoming)
            await mark_answered(self._app, await self._inbox.workspace(), incoming)
            return answer
        except NexusError as error:
            return str(error)

    async def _place(self, payload: Mapping[str, Any]) -> Place:
        channel, name = str(payload["channel_id"]), str(payload.get("channel_name") or "")
        if channel.startswith("D"):
            return Place(ConversationKind.DM, self._inbox.slug)
        try:
            room = await self._directory.room(channel)
            return Place(ConversationKind.ROOM, channel, private=room.private, title=room.name)
        except NexusError:  # we are not in it; Slack says only that a private channel is one
            private = True if name == "privategroup" or name.startswith("mpdm-") else None
            return Place(ConversationKind.ROOM, channel, private=private)

    async def mention(self, said: Said, text: str) -> None:
        """Run a command that is a message, once, and answer it where it stands. Raises Unavailable when it must come
        again."""
        incoming = await self._incoming(await self._inbox.place(said), said.user, text, said.ts)
        workspace = await self._inbox.workspace()
        address = {"channel": said.channel} | ({"thread_ts": said.thread} if said.thread else {})
        if not await begin_command(self._app, workspace, incoming, address):
            return
        await self._show(address, incoming, await self._run(incoming))
        await mark_answered(self._app, workspace, incoming)

    async def _show(self, address: Mapping[str, str], incoming: Incoming, answer: str) -> None:
        """Show an answer in the conversation to who asked alone."""
        for part in _parts(answer):
            arguments: dict[str, Any] = {**address, "user": incoming.user, "text": part}
            try:
                await self._slack.call("chat.postEphemeral", **arguments)
            except NexusError as error:
                logger.warning("slack.command_answer_lost", message=incoming.id, error=str(error))

    async def resume(self) -> None:
        """Run and answer the commands that an earlier process was cut off in. Raises Unavailable."""
        workspace = await self._inbox.workspace()
        for cut in await adopt_interrupted(self._app, workspace):
            answer = await answer_interrupted(cut, self._run)
            url = cut.address.get("response_url")
            if url is None:
                await self._show(cut.address, cut.incoming, answer)
            else:
                address = AsyncWebhookClient(url, logger=QUIET)
                await _tell(partial(_respond, address), _parts(answer))
            await mark_answered(self._app, workspace, cut.incoming)

    async def _incoming(self, place: Place, user: str, raw: str, id: str) -> Incoming:
        workspace = await self._inbox.workspace()
        text, people = await self._inbox.text(raw)
        if " ".join(raw.removeprefix(PREFIX).split()[:2]).lower() in _BY_ID:
            text = by_id(raw)
        person = await self._directory.person(user)
        return Incoming(
            PLATFORM,
            workspace.name,
            place,
            user,
            person.name,
            id,
            text,
            self._app.clock.now(),
            mentions=people,
            sender_is_admin=await self._directory.is_admin(user),
        )

    async def _run(self, incoming: Incoming) -> str:
        """The answer to a command."""
        try:
            workspace = await self._inbox.workspace()
            try:
                answer = await run_command(self._app, workspace, incoming)
            except (BadInput, NotFound) as error:
                return await hint(self._app, workspace, incoming, error)
            self._app.indexer.due(workspace.tenant_id)
            return answer.text or DONE
        except NexusError as error:
            return str(error)
        except Exception:
            logger.exception("slack.command_failed", message=incoming.id)
            return "Something went wrong with this command; it is in the log."


async def _respond(address: AsyncWebhookClient, text: str) -> None:
    await address.send(text=text, response_type="ephemeral")


def _parts(text: str) -> list[str]:
    return [escaped(part) for part in split(text, LIMIT)][:MOST] or [DONE]


async def _tell(later: Respond, parts: list[str]) -> None:
    for part in parts:
        try:
            await later(part)
        except Exception as error:  # an SDK's, of any kind: the person can ask again
            logger.warning("slack.command_answer_lost", error=type(error).__name__)
            return

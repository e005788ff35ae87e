"""The `/nexus …` commands on Slack: the slash command, and the mention form where slash commands do not work."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import structlog
from cachetools import LRUCache
from slack_sdk.webhook import WebhookResponse
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.commands.command import CommandAnswer
from bot.commands.confirmations import Begin, Button, Confirmations
from bot.commands.idempotency import (
    InterruptedCommand,
    InterruptedCommands,
    begin_command,
    mark_answered,
)
from bot.commands.suggestions import hint
from bot.commands.table import PREFIX, names_user, run_command
from bot.delivery.columns import fitted, in_columns
from bot.delivery.offers import ASKED_AGAIN, NOT_YOURS, Press, offer_id, read_press
from bot.delivery.splitting import split
from bot.platform.tasks import BackgroundTasks
from bot.slack.channels import ChannelIds
from bot.slack.client import HIDDEN_CHANNEL, QUIET, Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.files import SlackFiles
from bot.slack.inbox import SlackInbox
from bot.slack.links import permalink
from bot.slack.reading import PLATFORM, room_place
from bot.slack.text import by_id, escaped
from composer.app import App
from composer.errors import BadInput, NexusError, NotFound, Refused, Unavailable
from composer.model import ConversationKind, Incoming, Place
from composer.text.yes_no import read_answer

logger = structlog.get_logger()

MAX_EPHEMERAL_CHARS: Final = 3_400  # of one ephemeral message
MAX_SECTION_CHARS: Final = 3_000  # of one block of text
ACKNOWLEDGE_SECONDS: Final = 2.0  # after which a command is acknowledged, and answered later
_OK: Final = 200
NO_PREVIEWS: Final = {"unfurl_links": False, "unfurl_media": False}  # Slack requests the address of a link for one
MAX_TYPED: Final = 1_000  # messages that are known to have answered a question
NO_TEXT: Final = "Done."  # the answer to a command that returns no text

Message = dict[str, Any]  # the text and perhaps the blocks of a message, as Slack's API takes them
Respond = Callable[[Message], Awaitable[WebhookResponse]]


class SlackCommands:
    """Runs commands, and shows their answers to the caller alone."""

    def __init__(
        self,
        app: App,
        slack: Slack,
        directory: SlackDirectory,
        inbox: SlackInbox,
        files: SlackFiles,
        ids: ChannelIds,
        begin: Callable[[], Awaitable[None]],
    ) -> None:
        """`begin` is called before each command. It raises Unavailable where no command can be run."""
        self._app = app
        self._slack = slack
        self._directory = directory
        self._inbox = inbox
        self._files = files
        self._ids = ids
        self._begin = begin
        self._tasks = BackgroundTasks()
        self._confirmations = Confirmations()
        self._typed: LRUCache[tuple[str, str], bool] = LRUCache(MAX_TYPED)  # messages that answered a question
        self._interrupted = InterruptedCommands(app, partial(self._run, late=True), self._answer_late)

    async def slash(self, payload: dict[str, Any], respond_later: Respond) -> Message | None:
        """Run a slash command. Returns what to show at once, if anything; `respond_later` shows what takes longer."""
        running = asyncio.create_task(self._slash(payload))
        await asyncio.wait({running}, timeout=ACKNOWLEDGE_SECONDS)
        if running.done():
            if not running.result():
                return None
            first, *rest = running.result()
            if rest:
                self._tasks.start(self._show_all(respond_later, rest, payload))
            return first
        self._tasks.start(self._show_late(running, respond_later, payload))
        return None

    async def _show_late(
        self, running: "asyncio.Task[list[Message]]", respond_later: Respond, payload: Mapping[str, Any]
    ) -> None:
        await self._show_all(respond_later, await running, payload)

    async def _show_all(self, respond: Respond, parts: list[Message], payload: Mapping[str, Any]) -> None:
        """Show an answer to a slash command: what its address does not take, in the channel."""
        rest = await _show_parts(respond, parts)
        await self._show({"channel": str(payload["channel_id"])}, str(payload["user_id"]), rest)

    def press(self, payload: Mapping[str, Any], respond: Respond) -> None:
        """Run the command that somebody confirms by a button, as them; `respond` shows its answer to them alone."""
        self._tasks.start(self._press(payload, respond))

    async def _press(self, payload: Mapping[str, Any], respond: Respond) -> None:
        action, channel, ran = payload["actions"][0], str(payload["channel"]["id"]), None
        offered = read_press(str(action.get("value") or ""))
        in_thread = str(action.get("value") or "") if offered is None else _thread_of(payload)
        thread = {"thread_ts": in_thread} if in_thread else {}
        try:
            await self._begin()
            channel = self._ids.name(channel)
            place = await self._place({"channel_id": channel})
            if in_thread and place.kind is ConversationKind.ROOM:  # the thread that it was shown in
                inside = room_place(channel, place.private, place.stated_at, place.title, in_thread)
                place = replace(inside, outsiders=place.outsiders, outsiders_at=place.outsiders_at)
            pressed = await self._incoming(place, str(payload["user"]["id"]), "", str(action["action_ts"]))
            id, now, workspace = str(action["action_id"]), self._app.clock.now(), await self._inbox.workspace()
            address = {"response_url": str(payload.get("response_url") or "")} | thread
            begin = partial(begin_command, self._app, workspace, address=address)
            if offered is not None:
                ran, answer = await self._press_offer(payload, offered, pressed, begin)
            else:
                ran, answer = await self._confirmations.press(id, pressed, now, self._run, begin)
            parts = await self._finished(ran, answer)
        except NexusError as error:
            parts = _parts(str(error))
        except Exception:
            logger.exception("slack.press_failed", action=str(action["action_ts"]))
            parts = _parts(_failed(str(action["action_ts"])))
        rest = await _show_parts(respond, [part | thread for part in parts])
        await self._show({"channel": channel}, str(payload["user"]["id"]), rest)
        if ran is not None:
            await mark_answered(self._app, await self._inbox.workspace(), ran)

    async def _press_offer(
        self, payload: Mapping[str, Any], offered: Press, pressed: Incoming, begin: Begin
    ) -> tuple[Incoming, CommandAnswer]:
        """Run the command that a button below a message gives, once, as whoever it is for. Raises Refused."""
        if offered.user != pressed.user:
            raise Refused(NOT_YOURS)
        message = str((payload.get("message") or {}).get("ts") or pressed.id)
        given = replace(pressed, text=offered.command, id=offer_id(message, offered))
        if not await begin(given):
            raise Refused(ASKED_AGAIN)
        return given, await self._run(given)

    async def typed(self, message: Incoming, text: str) -> bool:
        """Do what somebody confirms, or cancels, by a word, and answer them alone. False for any other message. Raises
        Unavailable: then it must be delivered again."""
        if read_answer(text) is None:
            self._confirmations.pass_over(message.user)
            return False
        if (message.channel, message.id) in self._typed:  # a mention comes twice, and what is acknowledged late again
            return True
        written = await self._incoming(await self._inbox.place(message), message.user, text, message.id)
        id = self._confirmations.typed(written)
        if id is None:
            return False
        self._typed[message.channel, message.id] = True
        address = {"channel": message.channel} | ({"thread_ts": message.reply_to} if message.reply_to else {})
        workspace = await self._inbox.workspace()
        begin = partial(begin_command, self._app, workspace, address=address)
        pressed, now = replace(written, text=""), self._app.clock.now()
        try:
            ran, answer = await self._confirmations.press(id, pressed, now, self._run, begin)
            parts = await self._finished(ran, answer)
        except Unavailable:
            del self._typed[message.channel, message.id]  # it is delivered again
            raise
        except Refused as error:
            ran, parts = pressed, _parts(str(error))
        await self._show(address, message.user, parts)
        await mark_answered(self._app, workspace, ran)
        return True

    async def close(self) -> None:
        """Wait for the answers that are still to be shown."""
        await self._tasks.join()

    async def _slash(self, payload: dict[str, Any]) -> list[Message]:
        """The answer to a slash command; nothing for one that was received before."""
        try:
            await self._begin()
            place = await self._place(payload | {"channel_id": self._ids.name(str(payload["channel_id"]))})
            text = f"{PREFIX} {payload.get('text') or ''}"
            incoming = await self._incoming(place, payload["user_id"], text, str(payload["trigger_id"]))
            address = {"response_url": str(payload.get("response_url") or "")}
            if not await begin_command(self._app, await self._inbox.workspace(), incoming, address):
                return []
            answer = await self._finished(incoming, await self._run(incoming))
            await mark_answered(self._app, await self._inbox.workspace(), incoming)
            return answer
        except NexusError as error:
            return _parts(str(error))

    async def _place(self, payload: Mapping[str, Any]) -> Place:
        channel = str(payload["channel_id"])
        if channel.startswith("D"):
            return Place(ConversationKind.DM, self._inbox.slug)
        try:
            room = await self._directory.room(channel)
            place = room_place(channel, room.private, room.stated_at, room.name)
            return replace(place, outsiders=room.outsiders, outsiders_at=room.outsiders_at)
        except NexusError as error:  # Slack does not say: a room that is not known is then private
            hidden = isinstance(error, SlackRefused) and error.code == HIDDEN_CHANNEL
            return Place(ConversationKind.ROOM, channel, private=True if hidden else None, outsiders=True)

    async def mention(self, message: Incoming, text: str) -> None:
        """Run a command that was given as a message, once, and answer in its conversation. Raises Unavailable: then it
        must be delivered again."""
        workspace = await self._inbox.workspace()
        incoming = await self._incoming(await self._inbox.place(message), message.user, text, message.id)
        incoming = replace(incoming, sent_at=message.at)
        address = {"channel": message.channel} | ({"thread_ts": message.reply_to} if message.reply_to else {})
        try:
            if not await begin_command(self._app, workspace, incoming, address):
                return
        except BadInput as error:
            await self._show(address, message.user, _parts(str(error)))
            return
        await self._show(address, message.user, await self._finished(incoming, await self._run(incoming)))
        await mark_answered(self._app, workspace, incoming)

    async def _show(self, address: Mapping[str, str], user: str, answer: list[Message]) -> None:
        """Show an answer in the conversation, to the caller alone."""
        for part in answer:
            arguments: dict[str, Any] = {**address, "user": user, **part}
            try:
                await self._slack.call("chat.postEphemeral", **arguments)
            except NexusError as error:
                logger.warning("slack.command_unanswered", user=user, error=str(error))

    async def resume(self) -> None:
        """Finish and answer what an earlier process did not finish. Raises Unavailable: call it again then."""
        await self._interrupted.finish(await self._inbox.workspace())

    async def _answer_late(self, interrupted: InterruptedCommand, found: CommandAnswer) -> None:
        """Answer a command where it was given."""
        answer, address = await self._finished(interrupted.incoming, found), dict(interrupted.address)
        url = address.pop("response_url", None)
        if url is not None:
            respond = partial(_respond, AsyncWebhookClient(url, logger=QUIET))
            answer = await _show_parts(respond, [part | address for part in answer])
            place, user = interrupted.incoming.place, interrupted.incoming.user
            address |= {"channel": place.name if _in_room(place) else await self._directory.dm(user)}
        await self._show(address, interrupted.incoming.user, answer)  # what Slack takes at that address no more

    async def _incoming(self, place: Place, user: str, markup: str, id: str) -> Incoming:
        workspace = await self._inbox.workspace()
        text, people = await self._inbox.plain_text(markup, place.name if _in_room(place) else "")
        if names_user(markup):
            text = by_id(markup)
        person = await self._directory.person(user)
        given = Incoming(
            adapter=PLATFORM,
            workspace=workspace.name,
            place=place,
            user=user,
            user_name=person.name,
            id=id,
            text=text,
            at=self._app.clock.now(),
            mentions=people,
            may_post=not _in_room(place) or await self._directory.may_post(place.name),
        )
        return await self._with_rights(given)

    async def _with_rights(self, incoming: Incoming) -> Incoming:
        """A command with what Slack says of its sender now."""
        place, user = incoming.place, incoming.user
        person = await self._directory.person(user)
        return replace(
            incoming,
            sender_is_admin=await self._directory.is_admin(user),
            sender_is_room_admin=_in_room(place) and await self._directory.is_room_admin(place.name, user),
            sender_trust=person.trust,
            trust_stated=person.certain,
            trust_stated_at=person.stated_at,
            timezone=person.timezone,
        )

    async def _finished(self, incoming: Incoming, answer: CommandAnswer) -> list[Message]:
        """An answer as messages, with buttons if it asks for confirmation. A file, if any, is put into the caller's DM
        first: Slack has no files that only one person in a channel sees."""
        if answer.file is None:
            buttons = self._confirmations.buttons(incoming, answer)
            return _parts(answer.text or NO_TEXT, buttons, incoming.place.thread or "")
        try:
            await self._files.send(incoming.user, answer.file)
        except NexusError as error:
            return _parts(f"{answer.text}\nI could not send you the file {answer.file.name}: {error}")
        return _parts(f"{answer.text}\nThe file {answer.file.name} is in our direct messages.")

    async def _run(self, incoming: Incoming, *, preview: bool = False, late: bool = False) -> CommandAnswer:
        """The answer to a command, or the sentence that says why it failed."""
        try:
            workspace = await self._inbox.workspace()
            me = await self._directory.me()
            try:
                link = partial(permalink, me.url, channel_id=self._ids.present)
                answer = await run_command(self._app, workspace, incoming, permalink=link, preview=preview, late=late)
            except (BadInput, NotFound) as error:
                return CommandAnswer(await hint(self._app, workspace, incoming, error))
            self._app.indexer.due(workspace.tenant_id)
            return answer
        except NexusError as error:
            return CommandAnswer(str(error))
        except Exception:
            logger.exception("slack.command_failed", message=incoming.id)
            return CommandAnswer(_failed(incoming.id))


def _in_room(place: Place) -> bool:
    return place.kind in (ConversationKind.ROOM, ConversationKind.THREAD)


def _thread_of(payload: Mapping[str, Any]) -> str:
    """The thread of the message with a button that was pressed; "" where it is in none."""
    message = payload.get("message") or {}
    thread = str(message.get("thread_ts") or "")
    return "" if thread == message.get("ts") else thread


def _failed(id: str) -> str:
    return (
        "Something went wrong with this command. Try again; if it fails again, give an admin this id for the program's "
        f"log: {id}"
    )


async def _respond(address: AsyncWebhookClient, message: Message) -> WebhookResponse:
    return await address.send_dict({**message, **NO_PREVIEWS, "response_type": "ephemeral", "replace_original": False})


def _parts(text: str, buttons: Sequence[Button] = (), thread: str = "") -> list[Message]:
    """A text as messages, the last of them with buttons; one with columns as code blocks, in which these stand under
    each other. `thread` is where the buttons are shown."""
    code = in_columns(text)
    texts = [escaped(part, code=code) for part in split(fitted(text), MAX_EPHEMERAL_CHARS)] or [NO_TEXT]
    parts: list[Message] = [{"text": part} for part in texts]
    if buttons and len(texts[-1]) <= MAX_SECTION_CHARS:
        shown = {"type": "section", "text": {"type": "mrkdwn", "text": texts[-1]}}
        elements = [_element(button, thread) for button in buttons]
        parts[-1]["blocks"] = [shown, {"type": "actions", "elements": elements}]
    return parts


def _element(button: Button, thread: str) -> Message:
    element: Message = {
        "type": "button",
        "action_id": button.id,
        "text": {"type": "plain_text", "text": button.label},
    }
    return element | ({"style": "danger"} if button.confirms else {}) | ({"value": thread} if thread else {})


async def _show_parts(respond: Respond, parts: list[Message]) -> list[Message]:
    """Show the parts of an answer, and return those that could not be shown: Slack takes five within half an hour."""
    for number, part in enumerate(parts):
        try:
            shown = (await respond(part)).status_code == _OK
        except Exception as error:  # an SDK's, of any kind: the person can repeat the command
            logger.warning("slack.command_unanswered", error=type(error).__name__)
            return parts[number:]
        if not shown:
            logger.warning("slack.command_unanswered", error="refused")
            return parts[number:]
    return []

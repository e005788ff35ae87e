"""The `/nexus …` commands as Discord's application command, generated from the command table."""

import io
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import discord
import structlog

from bot.commands.command import AnswerFile, Command, CommandAnswer, Flag
from bot.commands.confirmations import LIFETIME, Button, Confirmations
from bot.commands.idempotency import (
    InterruptedCommand,
    InterruptedCommands,
    begin_command,
    mark_answered,
)
from bot.commands.parameters import Parameter, ParameterKind
from bot.commands.suggestions import Suggestion, suggest
from bot.commands.table import COMMANDS, PREFIX, run_command
from bot.delivery.columns import fitted
from bot.delivery.offers import ASKED_AGAIN, NOT_YOURS, offer_id, read_press
from bot.delivery.splitting import split
from bot.discord.links import permalink
from bot.discord.outbox import MAX_DISCORD_MESSAGE_CHARS
from bot.discord.previews import without_previews
from bot.discord.reading import FAILURES, PLATFORM, command_of, place_of
from composer.app import App
from composer.errors import BadInput, NexusError
from composer.model import Incoming, Workspace

logger = structlog.get_logger()

SLASH_NAME: Final = PREFIX.removeprefix("/")
MAX_CHOICES: Final = 25  # of an autocompletion
MAX_CHOICE_CHARS: Final = 100
MAX_OPTION_DESCRIPTION_CHARS: Final = 100
_SUBCOMMAND, _GROUP, _STRING, _BOOLEAN, _USER = 1, 2, 3, 5, 6  # Discord's numbers for types of options
_TRUE: Final = str(True)  # a boolean option that is set, as the other options are: text
_PLAIN: Final = "set"  # the subcommand for a command of one word that others begin with: Discord has no such command


@dataclass(frozen=True, slots=True)
class Senders:
    """Looks up what an interaction does not say of its sender: the workspace, and in a DM what they are to that server.
    Both may have to ask Discord."""

    workspace: Callable[[], Awaitable[Workspace]]
    with_trust: Callable[[Incoming], Awaitable[Incoming]]


MAX_SUBCOMMANDS: Final = 25  # of a command or a group; Discord refuses the whole command with one more
# Commands of one word that stand in a group on Discord, so that there are not too many: `/nexus room digest`.
GROUPED: Final = {
    "agents": "room",
    "catch-up": "room",
    "compact": "room",
    "digest": "room",
    "follow": "room",
    "settings": "room",
} | {"login": "keys", "timezone": "remind"}


def _path(name: str, names: Iterable[str]) -> str:
    """Where a command of Nexus stands below `/nexus` on Discord; `names` are those of all commands."""
    if name in GROUPED:
        return f"{GROUPED[name]} {name}"
    if " " not in name and any(other.startswith(f"{name} ") for other in names):
        return f"{name} {_PLAIN}"
    return name


_NAMED: Final = re.compile(rf"{PREFIX} ({'|'.join(sorted(COMMANDS, key=len, reverse=True))})(?![\w-])")


def _as_here(text: str) -> str:
    """An answer as Discord shows it: commands are named as they stand there, tables fit the window, and links have no
    preview, since a model has written some of them."""
    named = _NAMED.sub(lambda found: f"{PREFIX} {_path(found[1], COMMANDS)}", fitted(text))
    return without_previews(named)


def definition(commands: Sequence[Command] = tuple(COMMANDS.values())) -> dict[str, Any]:
    """The application command, in the format of Discord's API; every Nexus command is a subcommand of it."""
    options: dict[str, dict[str, Any]] = {}
    for command in commands:
        head, _, tail = _path(command.name, [other.name for other in commands]).partition(" ")
        own = {
            "type": _SUBCOMMAND,
            "name": tail or head,
            "description": _short(command.help),
            "options": _options(command),
        }
        if not tail:
            options[head] = own
            continue
        inner = [c.name.partition(" ")[2] for c in commands if c.name.startswith(f"{head} ")]
        about = f"{head}: {', '.join(inner or [name for name, group in GROUPED.items() if group == head])}"
        group = options.setdefault(head, {"type": _GROUP, "name": head, "description": _short(about), "options": []})
        group["options"].append(own)
    about = "Recall, correct and forget what I remember, and set up rooms and projects"
    return {
        "name": SLASH_NAME,
        "type": 1,
        "description": about,
        "options": list(options.values()),
        "contexts": [0, 1],  # in a guild, and in a DM with the bot
        "integration_types": [0],
    }


def _options(command: Command) -> list[dict[str, Any]]:
    options = [_option(parameter) for parameter in command.parameters]
    options += [
        _flag(flag) if flag.value is None else _option(flag.value) | {"required": False} for flag in command.options
    ]
    return options


def _option(parameter: Parameter[Any]) -> dict[str, Any]:
    kind = _USER if parameter.kind is ParameterKind.USER else _STRING
    option: dict[str, Any] = {
        "type": kind,
        "name": parameter.name,
        "description": _short(parameter.help),
        "required": parameter.required,
    }
    if parameter.choices:
        option["choices"] = [{"name": choice, "value": choice} for choice in parameter.choices]
    elif parameter.suggested:
        option["autocomplete"] = True
    return option


def _flag(flag: Flag) -> dict[str, Any]:
    """Each flag is an option of its own, so that several can be set."""
    return {"type": _BOOLEAN, "name": flag.name, "description": _short(flag.help), "required": False}


def _short(text: str) -> str:
    return text if len(text) <= MAX_OPTION_DESCRIPTION_CHARS else text[: MAX_OPTION_DESCRIPTION_CHARS - 1] + "…"


async def register(client: discord.Client) -> None:
    """Register the command with Discord. A failure is logged, and does not keep Nexus from running."""
    try:
        assert client.application_id is not None
        await client.http.bulk_upsert_global_commands(client.application_id, [definition()])
    except FAILURES as error:
        logger.warning("discord.commands_not_registered", error=str(error))


@dataclass(frozen=True, slots=True)
class _CommandInput:
    """A command as far as somebody has filled it in. `focused` is the option that they are typing."""

    name: str
    options: dict[str, str]
    focused: str | None

    @property
    def parameters(self) -> tuple[Parameter[Any], ...]:
        command = COMMANDS.get(self.name)
        return () if command is None else command.parameters

    @property
    def flags(self) -> list[str]:
        """The flags that are set, as they are typed. A flag without a value is set by the value true."""
        command = COMMANDS.get(self.name)
        given = {} if command is None else {f: self.options[f.name] for f in command.options if f.name in self.options}
        with_values = [f"--{flag.name} {value}" for flag, value in given.items() if flag.value is not None]
        return [
            f"--{flag.name}" for flag, value in given.items() if flag.value is None and value == _TRUE
        ] + with_values

    def word(self, parameter: Parameter[Any]) -> str:
        """The value of a parameter; a person in Discord's format of a mention."""
        value = self.options[parameter.name]
        return f"<@{value}>" if parameter.kind is ParameterKind.USER else value


def _read_input(data: dict[str, Any]) -> _CommandInput:
    words: list[str] = []
    options = data.get("options", [])
    while options and options[0]["type"] in (_SUBCOMMAND, _GROUP):
        words.append(options[0]["name"])
        options = options[0].get("options", [])
    focused = next((option["name"] for option in options if option.get("focused")), None)
    name = " ".join(words)
    if words[1:] and GROUPED.get(words[1]) == words[0]:
        name = words[1]
    if name not in COMMANDS and words[1:] == [_PLAIN]:
        name = words[0]
    return _CommandInput(name, {option["name"]: str(option["value"]) for option in options}, focused)


def command_text(data: dict[str, Any]) -> str:
    """The command that someone filled in, as they would have typed it.

    Raises BadInput when an optional parameter is missing before one that is filled in.
    """
    filled = _read_input(data)
    words, missing = [PREFIX, filled.name], ""
    for parameter in filled.parameters:
        if parameter.name not in filled.options:
            missing = missing or parameter.name
        elif missing:
            raise BadInput(f"With {parameter.name}, fill in {missing} too.")
        else:
            words.append(filled.word(parameter))
    return " ".join((*words, *filled.flags))


async def answer(app: App, senders: Senders, confirmations: Confirmations, interaction: discord.Interaction) -> None:
    """Run the command of an interaction, once, and show its answer to the caller alone."""
    try:
        await interaction.response.defer(ephemeral=True, thinking=True)  # within three seconds
        workspace = await _workspace(senders, interaction)
        if workspace is None:
            return
        incoming = await _begin(app, workspace, senders, interaction)
        if isinstance(incoming, str):
            await _show(interaction.followup, CommandAnswer(incoming))
        elif incoming is not None:
            found = await _run(app, incoming)
            await _show(interaction.followup, found, confirmations.buttons(incoming, found))
            await mark_answered(app, workspace, incoming)
    except (NexusError, *FAILURES) as error:
        logger.warning("discord.command_unanswered", interaction=interaction.id, error=str(error))


async def press(app: App, senders: Senders, confirmations: Confirmations, interaction: discord.Interaction) -> None:
    """Run the command that somebody confirms by a button, as them, and show its answer to them alone."""
    try:
        await interaction.response.defer(ephemeral=True, thinking=True)  # within three seconds
        workspace = await _workspace(senders, interaction)
        if workspace is None:
            return
        pressed = await _located(app, workspace, senders, interaction, "")
        if isinstance(pressed, str):
            await _show(interaction.followup, CommandAnswer(pressed))
            return
        try:
            id, now = str(dict(interaction.data or {}).get("custom_id")), app.clock.now()
            begin = partial(begin_command, app, workspace, address=_address(interaction))
            ran, found = await confirmations.press(id, pressed, now, partial(_run, app), begin)
        except NexusError as error:
            ran, found = pressed, CommandAnswer(str(error))
        await _show(interaction.followup, found, confirmations.buttons(ran, found))
        await mark_answered(app, workspace, ran)
    except (NexusError, *FAILURES) as error:
        logger.warning("discord.command_unanswered", interaction=interaction.id, error=str(error))


async def press_offer(
    app: App, senders: Senders, confirmations: Confirmations, interaction: discord.Interaction
) -> None:
    """Run the command that a button below a message gives, once, as whoever it is for, and show them its answer."""
    try:
        await interaction.response.defer(ephemeral=True, thinking=True)  # within three seconds
        workspace = await _workspace(senders, interaction)
        if workspace is None:
            return
        offered = read_press(str(dict(interaction.data or {}).get("custom_id")))
        if offered is None or offered.user != str(interaction.user.id):
            await _show(interaction.followup, CommandAnswer(NOT_YOURS))
            return
        incoming = await _located(app, workspace, senders, interaction, offered.command)
        if isinstance(incoming, str):
            await _show(interaction.followup, CommandAnswer(incoming))
            return
        message = "" if interaction.message is None else str(interaction.message.id)
        incoming = replace(incoming, id=offer_id(message, offered))
        if not await begin_command(app, workspace, incoming, _address(interaction)):
            await _show(interaction.followup, CommandAnswer(ASKED_AGAIN))
            return
        found = await _run(app, incoming)
        await _show(interaction.followup, found, confirmations.buttons(incoming, found))
        await mark_answered(app, workspace, incoming)
    except (NexusError, *FAILURES) as error:
        logger.warning("discord.command_unanswered", interaction=interaction.id, error=str(error))


async def _workspace(senders: Senders, interaction: discord.Interaction) -> Workspace | None:
    """The workspace of a command's sender. None if that can't be known at the moment, which they are told."""
    try:
        return await senders.workspace()
    except NexusError as error:
        logger.warning("discord.command_unanswered", interaction=interaction.id, error=str(error))
        await _show(interaction.followup, CommandAnswer(str(error)))
        return None


async def _show(webhook: discord.Webhook, answer: CommandAnswer, buttons: Sequence[Button] = ()) -> None:
    *parts, last = split(_as_here(answer.text), MAX_DISCORD_MESSAGE_CHARS) or ["Done."]
    for part in parts:
        await webhook.send(part, ephemeral=True, allowed_mentions=discord.AllowedMentions.none())
    mentions = discord.AllowedMentions.none()
    if not buttons:
        await webhook.send(last, ephemeral=True, allowed_mentions=mentions)
    else:
        await webhook.send(last, ephemeral=True, allowed_mentions=mentions, view=_confirming(buttons))
    if answer.file is not None:
        await webhook.send(file=_file(answer.file), ephemeral=True)


def _confirming(buttons: Sequence[Button]) -> discord.ui.View:
    """Buttons below a message. Their presses arrive as interactions, also where discord.py has forgotten the view."""
    view = discord.ui.View(timeout=LIFETIME.total_seconds())
    for button in buttons:
        style = discord.ButtonStyle.danger if button.confirms else discord.ButtonStyle.secondary
        view.add_item(discord.ui.Button(label=button.label, style=style, custom_id=button.id))
    return view


async def typed(
    app: App, senders: Senders, confirmations: Confirmations, message: discord.Message, written: Incoming
) -> None:
    """Do what somebody confirms, or cancels, by a word in their DM, and answer there."""
    id = confirmations.typed(written)
    if id is None:
        return
    try:
        workspace = await senders.workspace()
        pressed = await senders.with_trust(replace(written, workspace=workspace.name, text=""))
        begin = partial(begin_command, app, workspace, address={})
        try:
            ran, found = await confirmations.press(id, pressed, app.clock.now(), partial(_run, app), begin)
        except NexusError as error:
            ran, found = pressed, CommandAnswer(str(error))
        buttons = confirmations.buttons(ran, found)
        *parts, last = split(_as_here(found.text), MAX_DISCORD_MESSAGE_CHARS) or ["Done."]
        for part in parts:
            await message.channel.send(part, allowed_mentions=discord.AllowedMentions.none())
        shown: dict[str, Any] = {"view": _confirming(buttons)} if buttons else {}
        await message.channel.send(last, allowed_mentions=discord.AllowedMentions.none(), **shown)
        await mark_answered(app, workspace, ran)
    except (NexusError, *FAILURES) as error:
        logger.warning("discord.command_unanswered", message=message.id, error=str(error))


def _file(file: AnswerFile) -> discord.File:
    return discord.File(io.BytesIO(file.text.encode()), file.name)


async def _begin(
    app: App, workspace: Workspace, senders: Senders, interaction: discord.Interaction
) -> Incoming | str | None:
    """The command to run; a sentence if it can't be run; None if this interaction was received before."""
    try:
        text = command_text(dict(interaction.data or {}))
        incoming = await _located(app, workspace, senders, interaction, text)
        if isinstance(incoming, str):
            return incoming
        return incoming if await begin_command(app, workspace, incoming, _address(interaction)) else None
    except NexusError as error:
        return str(error)


def _address(interaction: discord.Interaction) -> dict[str, str]:
    """Where an interaction is answered, also by another process."""
    return {"application": str(interaction.application_id), "token": interaction.token}


async def _located(
    app: App, workspace: Workspace, senders: Senders, interaction: discord.Interaction, text: str
) -> Incoming | str:
    """A command in the place of an interaction. A sentence where the channel is unknown."""
    agents = app.directory.agents(workspace.tenant_id)
    place = place_of(interaction.channel, agents[0].slug)
    if place is None:
        return "I can't see this channel: add me to it, and try again."
    return await senders.with_trust(replace(command_of(interaction, place, text), workspace=workspace.name))


async def _run(app: App, incoming: Incoming, *, preview: bool = False, late: bool = False) -> CommandAnswer:
    """The answer to a command, or the sentence that says why it failed."""
    try:
        workspace = app.directory.workspace(PLATFORM, incoming.workspace)
        return await run_command(app, workspace, incoming, permalink=permalink, preview=preview, late=late)
    except NexusError as error:
        return CommandAnswer(str(error))
    except Exception:
        logger.exception("discord.command_failed", interaction=incoming.id)
        return CommandAnswer(
            "Something went wrong with this command. Try again; if it fails again, give an admin this id for the "
            f"program's log: {incoming.id}"
        )


def interrupted_commands(app: App, client: discord.Client) -> InterruptedCommands:
    """What earlier processes did not finish of the commands of one workspace."""
    return InterruptedCommands(app, partial(_run, app, late=True), partial(_answer_late, client))


async def _answer_late(client: discord.Client, command: InterruptedCommand, answer: CommandAnswer) -> None:
    """Answer where the command was given; in a DM if Discord no longer takes that. There no file is put, since what
    stands in a DM stays: what the person forgets would stay in it."""
    data: Any = {"id": int(command.address["application"]), "type": 3, "token": command.address["token"]}
    try:
        await _show(discord.Webhook.from_state(data=data, state=client._connection), answer)
        return
    except FAILURES as error:
        logger.info("discord.interaction_expired", interaction=command.incoming.id, error=str(error))
    try:
        dm = await client.create_dm(discord.Object(int(command.incoming.user)))
        again = "" if answer.file is None else f"\nFor the file {answer.file.name} give the command again."
        for part in split(_as_here(f"{answer.text}{again}"), MAX_DISCORD_MESSAGE_CHARS):
            await dm.send(part, allowed_mentions=discord.AllowedMentions.none())
    except FAILURES as error:
        logger.warning("discord.command_unanswered", interaction=command.incoming.id, error=str(error))


async def complete(app: App, senders: Senders, interaction: discord.Interaction) -> None:
    """Suggest values for the option that someone is typing, from what they may read there."""
    try:
        workspace = await senders.workspace()
        filled = _read_input(dict(interaction.data or {}))
        place = place_of(interaction.channel, app.directory.agents(workspace.tenant_id)[0].slug)
        parameter = next((each for each in filled.parameters if each.name == filled.focused), None)
        found: list[Suggestion] = []
        if place is not None and parameter is not None:
            before = [filled.word(each) for each in filled.parameters if each.name in filled.options]
            typing = replace(command_of(interaction, place, PREFIX), workspace=workspace.name)
            typing = await senders.with_trust(typing)
            found = await suggest(app, workspace, typing, parameter, before, filled.options[parameter.name])
        choices = [
            discord.app_commands.Choice(name=_short(each.label), value=each.value)
            for each in found
            if len(each.value) <= MAX_CHOICE_CHARS
        ]
        await interaction.response.autocomplete(choices[:MAX_CHOICES])
    except (NexusError, *FAILURES) as error:
        logger.warning("discord.completion_failed", error=str(error))

"""The `/nexus …` commands as Discord's application commands, generated from their one definition."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import discord
import structlog

from bot.commands.command import Command
from bot.commands.idempotency import (
    InterruptedCommand,
    adopt_interrupted,
    answer_interrupted,
    begin_command,
    mark_answered,
)
from bot.commands.parameters import Kind, Parameter
from bot.commands.suggestions import Suggestion, suggest
from bot.commands.table import COMMANDS, PREFIX, run_command
from bot.delivery.splitting import split
from bot.discord.reading import DOOR, FAILURES, command_of, home_of, is_private, place_of
from composer.app import App
from composer.errors import BadInput, NexusError
from composer.ingest.changes import set_room_private
from composer.model import Incoming
from composer.workspace import Workspace

logger = structlog.get_logger()

NAME: Final = PREFIX.removeprefix("/")
LIMIT: Final = 2_000  # characters an answer
MOST_CHOICES: Final = 25
Whose = Callable[[], Awaitable[Workspace]]  # may have to ask Discord
LONGEST_CHOICE: Final = 100  # characters
_SUBCOMMAND, _GROUP, _STRING, _USER = 1, 2, 3, 6  # Discord's numbers for kinds of options
_FLAG: Final = "option"  # the option that holds a flag


def definition(commands: Sequence[Command] = tuple(COMMANDS.values())) -> dict[str, Any]:
    """The one application command, as Discord's API takes it: every Nexus command is a subcommand."""
    options: dict[str, dict[str, Any]] = {}
    for command in commands:
        head, _, tail = command.name.partition(" ")
        own = {
            "type": _SUBCOMMAND,
            "name": tail or head,
            "description": _short(command.help),
            "options": _options(command),
        }
        if not tail:
            options[head] = own
            continue
        about = f"{head}: {', '.join(c.name.partition(' ')[2] for c in commands if c.name.startswith(f'{head} '))}"
        group = options.setdefault(head, {"type": _GROUP, "name": head, "description": _short(about), "options": []})
        group["options"].append(own)
    about = "What I remember, and what of it is yours to say"
    return {
        "name": NAME,
        "type": 1,
        "description": about,
        "options": list(options.values()),
        "contexts": [0, 1],  # in a guild, and in a DM with the bot
        "integration_types": [0],
    }


def _options(command: Command) -> list[dict[str, Any]]:
    options = [_option(parameter) for parameter in command.parameters]
    if command.flags:
        choices = [{"name": flag, "value": flag} for flag in command.flags]
        options.append({"type": _STRING, "name": _FLAG, "description": "how", "required": False, "choices": choices})
    return options


def _option(parameter: Parameter[Any]) -> dict[str, Any]:
    kind = _USER if parameter.kind is Kind.USER else _STRING
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


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"


async def register(client: discord.Client) -> None:
    """Tell Discord of the command. That failing is reported, and no reason not to run."""
    try:
        assert client.application_id is not None
        await client.http.bulk_upsert_global_commands(client.application_id, [definition()])
    except FAILURES as error:
        logger.warning("discord.commands_not_registered", error=str(error))


@dataclass(frozen=True, slots=True)
class _Filled:
    """A command as far as somebody has filled it in. `focused` is the option that they are typing."""

    name: str
    given: dict[str, str]
    focused: str | None

    @property
    def parameters(self) -> tuple[Parameter[Any], ...]:
        command = COMMANDS.get(self.name)
        return () if command is None else command.parameters

    def word(self, parameter: Parameter[Any]) -> str:
        """What stands in a parameter; a person as Discord writes a mention of them."""
        value = self.given[parameter.name]
        return f"<@{value}>" if parameter.kind is Kind.USER else value


def _filled(data: dict[str, Any]) -> _Filled:
    words: list[str] = []
    options = data.get("options", [])
    while options and options[0]["type"] in (_SUBCOMMAND, _GROUP):
        words.append(options[0]["name"])
        options = options[0].get("options", [])
    focused = next((option["name"] for option in options if option.get("focused")), None)
    return _Filled(" ".join(words), {option["name"]: str(option["value"]) for option in options}, focused)


def line_of(data: dict[str, Any]) -> str:
    """The command that someone chose and filled in, as they would have typed it. Raises BadInput for one that was
    filled in with a gap."""
    filled = _filled(data)
    words, gap = [PREFIX, filled.name], ""
    for parameter in filled.parameters:
        if parameter.name not in filled.given:
            gap = gap or parameter.name
        elif gap:
            raise BadInput(f"With {parameter.name}, fill in {gap} too.")
        else:
            words.append(filled.word(parameter))
    words += [f"--{filled.given[_FLAG]}"] if _FLAG in filled.given else []
    return " ".join(words)


async def answer(app: App, whose: Whose, interaction: discord.Interaction) -> None:
    """Run the command that an interaction is, once, and show its answer to whoever called it, and to nobody else."""
    try:
        await interaction.response.defer(ephemeral=True, thinking=True)  # Discord waits for three seconds
        workspace = await whose()
        incoming = await _begun(app, workspace, interaction)
        if isinstance(incoming, str):
            await _tell(interaction.followup, incoming)
        elif incoming is not None:
            await _tell(interaction.followup, await _run(app, incoming))
            await mark_answered(app, workspace, incoming)
    except (NexusError, *FAILURES) as error:
        logger.warning("discord.command_unanswered", interaction=interaction.id, error=str(error))


async def _tell(webhook: discord.Webhook, said: str) -> None:
    for part in split(said, LIMIT) or ["Done."]:
        await webhook.send(part, ephemeral=True, allowed_mentions=discord.AllowedMentions.none())


async def _begun(app: App, workspace: Workspace, interaction: discord.Interaction) -> Incoming | str | None:
    """The command, if it is to be run; a sentence if it can't be; None for an event that was here before."""
    place = place_of(interaction.channel, app.directory.agents(workspace.tenant_id)[0].slug)
    if place is None:
        return "I don't see this channel: let me in, and try again."
    try:
        incoming = replace(
            command_of(interaction, place, line_of(dict(interaction.data or {}))), workspace=workspace.name
        )
        home = home_of(interaction.channel)
        if home is not None:  # a thread is as closed as its channel, which may not be known yet
            agents, now = app.directory.agents(workspace.tenant_id), app.clock.now()
            await set_room_private(app.database, workspace, agents, str(home.id), is_private(home), now, make=True)
        address = {"application": str(interaction.application_id), "token": interaction.token}
        return incoming if await begin_command(app, workspace, incoming, address) else None
    except NexusError as error:
        return str(error)


async def _run(app: App, incoming: Incoming) -> str:
    """The answer to a command."""
    try:
        return (await run_command(app, app.directory.workspace(DOOR, incoming.workspace), incoming)).text
    except NexusError as error:
        return str(error)
    except Exception:
        logger.exception("discord.command_failed", interaction=incoming.id)
        return f"Something went wrong; it is in the log under {incoming.id}."


async def resume(app: App, client: discord.Client, workspace: Workspace) -> None:
    """Run and answer the commands that an earlier process was cut off in. Raises Unavailable."""
    for cut in await adopt_interrupted(app, workspace):
        said = await answer_interrupted(cut, partial(_run, app))
        await _answer_late(client, cut, said)
        await mark_answered(app, workspace, cut.incoming)


async def _answer_late(client: discord.Client, cut: InterruptedCommand, said: str) -> None:
    """Answer where the command was given; where Discord takes that no more, in a DM."""
    data: Any = {"id": int(cut.address["application"]), "type": 3, "token": cut.address["token"]}
    try:
        await _tell(discord.Webhook.from_state(data=data, state=client._connection), said)
        return
    except FAILURES as error:
        logger.info("discord.command_address_ended", interaction=cut.incoming.id, error=str(error))
    try:
        dm = await client.create_dm(discord.Object(int(cut.incoming.user)))
        for part in split(said, LIMIT):
            await dm.send(part, allowed_mentions=discord.AllowedMentions.none())
    except FAILURES as error:
        logger.warning("discord.command_unanswered", interaction=cut.incoming.id, error=str(error))


async def complete(app: App, whose: Whose, interaction: discord.Interaction) -> None:
    """Suggest what someone may mean by what they are typing, of what they may read there."""
    try:
        workspace = await whose()
        filled = _filled(dict(interaction.data or {}))
        place = place_of(interaction.channel, app.directory.agents(workspace.tenant_id)[0].slug)
        parameter = next((each for each in filled.parameters if each.name == filled.focused), None)
        found: list[Suggestion] = []
        if place is not None and parameter is not None:
            before = [filled.word(each) for each in filled.parameters if each.name in filled.given]
            typing = command_of(interaction, place, PREFIX)
            found = await suggest(app, workspace, typing, parameter, before, filled.given[parameter.name])
        choices = [
            discord.app_commands.Choice(name=_short(each.label), value=each.value)
            for each in found
            if len(each.value) <= LONGEST_CHOICE
        ]
        await interaction.response.autocomplete(choices[:MOST_CHOICES])
    except (NexusError, *FAILURES) as error:
        logger.warning("discord.no_suggestions", error=str(error))

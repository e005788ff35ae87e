"""The `/nexus …` commands as Discord's application commands, generated from their one definition."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import discord
import structlog

from bot.commands.command import Command
from bot.commands.table import COMMANDS, PREFIX, begin_command, run_command
from bot.discord_reading import command_of, home_of, is_private, place_of
from bot.splitting import split
from composer.app import App
from composer.change import set_room_private
from composer.errors import NexusError
from composer.receive import Workspace

logger = structlog.get_logger()

NAME: Final = PREFIX.removeprefix("/")
LIMIT: Final = 2_000  # characters an answer
MOST_CHOICES: Final = 25
Whose = Callable[[], Awaitable[Workspace]]  # may have to ask Discord
_SUBCOMMAND, _GROUP, _STRING = 1, 2, 3  # Discord's numbers for kinds of options
_CHOICE = re.compile(r"\[([a-z]+(?:\|[a-z]+)+)\]")
_WORD, _OPTION = "text", "option"
_NAMES_PROJECT: Final = ("project assign",)


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
    words = re.sub(r"\s*\[?--[^\]\s]*\]?", "", command.arguments).strip()
    options: list[dict[str, Any]] = []
    if words:
        text = {"type": _STRING, "name": _WORD, "description": _short(words), "required": not words.startswith("[")}
        if (fixed := _CHOICE.fullmatch(words)) is not None:
            text["choices"] = [{"name": word, "value": word} for word in fixed[1].split("|")]
        elif command.name in _NAMES_PROJECT:
            text["autocomplete"] = True
        options.append(text)
    if command.flags:
        choices = [{"name": flag, "value": flag} for flag in command.flags]
        options.append({"type": _STRING, "name": _OPTION, "description": "how", "required": False, "choices": choices})
    return options


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"


async def register(client: discord.Client) -> None:
    """Tell Discord of the command. That failing is reported, and no reason not to run."""
    try:
        assert client.application_id is not None
        await client.http.bulk_upsert_global_commands(client.application_id, [definition()])
    except (discord.DiscordException, OSError) as error:
        logger.warning("discord.commands_not_registered", error=str(error))


def line_of(data: dict[str, Any]) -> str:
    """The command that someone chose and filled in, as they would have typed it."""
    words, options = [PREFIX], data.get("options", [])
    while options and options[0]["type"] in (_SUBCOMMAND, _GROUP):
        words.append(options[0]["name"])
        options = options[0].get("options", [])
    given = {option["name"]: option["value"] for option in options}
    words += [given[_WORD]] if _WORD in given else []
    words += [f"--{given[_OPTION]}"] if _OPTION in given else []
    return " ".join(words)


async def answer(app: App, whose: Whose, interaction: discord.Interaction) -> None:
    """Run the command that an interaction is, and show its answer to whoever called it, and to nobody else."""
    try:
        await interaction.response.defer(ephemeral=True, thinking=True)  # Discord waits for three seconds
        said = await _said(app, await whose(), interaction)
        if said is None:
            return
        for part in split(said, LIMIT) or ["Done."]:
            await interaction.followup.send(part, ephemeral=True, allowed_mentions=discord.AllowedMentions.none())
    except (discord.DiscordException, OSError) as error:
        logger.warning("discord.command_unanswered", interaction=interaction.id, error=str(error))


async def _said(app: App, workspace: Workspace, interaction: discord.Interaction) -> str | None:
    """The answer to a command; None for an event that was here before."""
    slug = app.directory.agents(workspace.tenant_id)[0].slug
    place = place_of(interaction.channel, slug)
    if place is None:
        return "I don't see this channel: let me in, and try again."
    data: dict[str, Any] = dict(interaction.data or {})
    incoming = command_of(interaction, place, line_of(data))
    try:
        if not await begin_command(app, workspace, incoming):
            return None
        home = home_of(interaction.channel)
        if home is not None:  # a thread is as closed as its channel, which may not be known yet
            agents, now = app.directory.agents(workspace.tenant_id), app.clock.now()
            await set_room_private(app.store, workspace, agents, str(home.id), is_private(home), now, make=True)
        return (await run_command(app, workspace, incoming)).text
    except NexusError as error:
        return str(error)
    except Exception:
        logger.exception("discord.command_failed", interaction=interaction.id)
        return f"Something went wrong; it is in the log under {interaction.id}."


async def complete(app: App, whose: Whose, interaction: discord.Interaction) -> None:
    """Suggest the names of the projects that someone is in."""
    workspace = await whose()
    typed = line_of(dict(interaction.data or {})).rpartition(" ")[2].casefold()
    try:
        async with app.store.transaction(workspace.tenant_id, snapshot=True) as tx:
            known = await tx.log.user(workspace.platform, workspace.name, str(interaction.user.id))
            projects = await tx.projects.all(known.id, False) if known is not None else []
        names = [project.slug for project in projects if typed in project.slug][:MOST_CHOICES]
        choices = [discord.app_commands.Choice(name=name, value=name) for name in names]
        await interaction.response.autocomplete(choices)
    except (NexusError, discord.DiscordException, OSError) as error:
        logger.warning("discord.no_suggestions", error=str(error))

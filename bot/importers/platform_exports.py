"""Opens the exports of chat platforms and loads them: each is first read as a whole, then stored."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bot.importers.archive import OF_OPERATOR, Archive, ArchiveBounds
from bot.importers.chat_export import ChatExport, Contents
from bot.importers.discord_export import DiscordExport
from bot.importers.export import (
    MATRIX,
    MATTERMOST,
    SLACK_EXPORT,
    TEAMS,
    TELEGRAM,
    ZULIP,
    ImportOptions,
    PlatformExport,
)
from bot.importers.export_loading import ImportResult, Survey, load_export, survey
from bot.importers.matrix import read_matrix
from bot.importers.mattermost import read_mattermost
from bot.importers.slack_export import SlackExport, slack_folders
from bot.importers.teams import read_teams
from bot.importers.telegram import read_telegram
from bot.importers.zulip import read_zulip
from composer.app import App
from composer.errors import BadInput
from composer.model import DISCORD, Incoming
from composer.repositories.imports import ImportRun
from composer.settings import Settings

CHATS: Final[Mapping[str, Callable[[list[Archive]], Contents]]] = {  # systems that Nexus does not connect to
    MATTERMOST: read_mattermost,
    ZULIP: read_zulip,
    TELEGRAM: read_telegram,
    MATRIX: read_matrix,
    TEAMS: read_teams,
}


def _ignore(_: object) -> None:
    """Drop a report that nobody wants."""


@dataclass(frozen=True, slots=True)
class SurveyedExport:
    """An export that was read as a whole and can be loaded."""

    export: PlatformExport
    survey: Survey


def open_exports(
    files: Sequence[Path],
    format: str,
    options: ImportOptions,
    settings: Settings,
    opened: ExitStack,
    progress: Callable[[int], None] = _ignore,
    on_message: Callable[[Incoming], None] = _ignore,
    bounds: ArchiveBounds = OF_OPERATOR,
) -> list[SurveyedExport]:
    """Open exports and read them without storing anything; `opened` closes them. `progress` receives how many more
    messages were read, `on_message` each that can be loaded. Raises BadInput, with file and position, when none can be
    read."""
    archives = [opened.enter_context(Archive(path, bounds)) for path in files]
    slugs = [agent.slug for agent in settings.agents]
    exports: list[PlatformExport] = []
    if format == SLACK_EXPORT:
        if options.public:
            raise BadInput("A Slack export contains which channels are public: leave out --public.")
        exports += [
            SlackExport(
                archive,
                slugs,
                folder=folder,
                workspace=options.workspace,
                room=options.room,
                bot=options.bot,
                app_id=slack_app(settings),
            )
            for archive in archives
            for folder in slack_folders(archive)
        ]
    elif format in CHATS:
        if options.bot is not None:
            raise BadInput("Leave out --bot: Nexus is on Discord and Slack alone, so the agent is in no such export.")
        export = ChatExport(
            CHATS[format](archives), archives, workspace=options.workspace, room=options.room, public=options.public
        )
        opened.callback(export.close)
        exports.append(export)
    else:
        bot = options.bot or discord_bot(settings)
        exports.append(
            DiscordExport(
                archives,
                slugs,
                workspace=options.workspace,
                room=options.room,
                bot=bot,
                public=options.public,
                guilds=[name for name in settings.listed_workspaces(DISCORD) if name.isdigit()],
            )
        )
    surveyed = [SurveyedExport(export, survey(export, progress, on_message)) for export in exports]
    unreadable = [each.survey.unreadable for each in surveyed]
    if all(unreadable):
        raise BadInput(unreadable[0])
    return surveyed


async def load(
    app: App,
    surveyed: SurveyedExport,
    progress: Callable[[int], None] = _ignore,
    warn: Callable[[str], None] = _ignore,
    run: ImportRun | None = None,
) -> ImportResult:
    """Store an export. `progress` receives how many more messages were loaded, `warn` sentences for the person who
    imports. With a `run` it can be undone. Raises Unavailable when the database is away."""
    export = surveyed.export
    await privacy_by_discord(app, export, warn)
    return await load_export(app, export, surveyed.survey, progress, run)


async def privacy_by_discord(app: App, export: PlatformExport, warn: Callable[[str], None] = _ignore) -> None:
    """Ask Discord who may view the channels of which an export does not say it, where we are connected; `warn` receives
    a sentence where Discord does not say it either."""
    if not isinstance(export, DiscordExport) or app.settings.discord_token is None or not export.has_unknown_privacy:
        return
    from bot.discord.rooms import private_channels  # noqa: PLC0415 - discord.py takes half a second

    token = app.settings.discord_token.get_secret_value()
    export.set_private(await private_channels(token, export.guilds, warn))


def discord_bot(settings: Settings) -> str | None:
    """The id of our own bot: the first part of its token, in base 64."""
    if settings.discord_token is None:
        return None
    first = settings.discord_token.get_secret_value().split(".")[0]
    try:
        id = base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return id if id.isdigit() else None


def slack_app(settings: Settings) -> str | None:
    """The id of our own app, which its app-level token contains (`xapp-1-A…`)."""
    if settings.slack_app_token is None:
        return None
    parts = settings.slack_app_token.get_secret_value().split("-")
    return parts[2] if len(parts) > 3 and parts[0] == "xapp" else None

"""`nexus import` of what a chat platform or a tool exported: reads it as a whole, and then loads it."""

import base64
import binascii
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bot.console import render
from bot.importers.archive import Archive
from bot.importers.discord_export import DiscordExport
from bot.importers.export import SLACK, Export, Loaded, Survey, Wanted, load_export, survey
from bot.importers.slack_export import SlackExport
from composer.app import App
from composer.errors import BadInput
from composer.settings import Settings


@dataclass(frozen=True, slots=True)
class Surveyed:
    """An export that was read as a whole, and can be loaded."""

    export: Export
    survey: Survey


def open_exports(
    files: Sequence[Path], format: str, wanted: Wanted, settings: Settings, opened: ExitStack
) -> list[Surveyed]:
    """Read exports without storing anything. Raises BadInput, naming file and place."""
    archives = [opened.enter_context(Archive(path)) for path in files]
    slugs = [agent.slug for agent in settings.agents]
    exports: list[Export] = []
    if format == SLACK:
        if wanted.public:
            raise BadInput("A Slack export says itself what is public: leave out --public.")
        exports += [
            SlackExport(
                archive,
                slugs,
                workspace=wanted.workspace,
                room=wanted.room,
                bot=wanted.bot,
                app_id=slack_app(settings),
            )
            for archive in archives
        ]
    else:
        named = [name for tenant in settings.tenants.values() for name in tenant.workspaces]
        bot = wanted.bot or discord_bot(settings)
        exports.append(
            DiscordExport(
                archives,
                slugs,
                workspace=wanted.workspace,
                room=wanted.room,
                bot=bot,
                public=wanted.public,
                guilds=[name for name in named if name.isdigit()],
            )
        )
    with render.progress("reading") as bar:
        task = bar.add_task("", total=None)
        return [Surveyed(export, survey(export, lambda count: bar.advance(task, count))) for export in exports]


async def load(app: App, surveyed: Surveyed) -> Loaded:
    """Store an export. Raises Unavailable when the database is away."""
    export = surveyed.export
    if isinstance(export, DiscordExport) and app.settings.discord_token is not None and export.asks:
        from bot.discord.rooms import private_channels  # noqa: PLC0415 - discord.py takes half a second

        token = app.settings.discord_token.get_secret_value()
        export.told(await private_channels(token, export.guilds, render.warn))
    with render.progress("messages") as bar:
        task = bar.add_task("", total=surveyed.survey.read)
        return await load_export(app, export, surveyed.survey, lambda count: bar.advance(task, count))


def discord_bot(settings: Settings) -> str | None:
    """The id of our own bot, which the first part of its token is in base 64."""
    if settings.discord_token is None:
        return None
    first = settings.discord_token.get_secret_value().split(".")[0]
    try:
        id = base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return id if id.isdigit() else None


def slack_app(settings: Settings) -> str | None:
    """The id of our own app, which stands in its app-level token (`xapp-1-A…`)."""
    if settings.slack_app_token is None:
        return None
    parts = settings.slack_app_token.get_secret_value().split("-")
    return parts[2] if len(parts) > 3 and parts[0] == "xapp" else None

"""Export files of Slack and Discord, in the formats that those write."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.importers.export import ImportOptions
from bot.importers.export_loading import ImportResult
from bot.importers.platform_exports import load, open_exports
from composer.app import App
from composer.repositories.imports import ImportRun

TEAM, BOT, ALICE, BOB, CAROL = "T0ACME", "UNEXUS", "UALICE", "UBOB", "UCAROL"
GENERAL, LEADS = "CGENERAL", "GLEADS"
GUILD, TOWN, STAFF, NEXUS, ANN, BEN = "100", "200", "201", "900", "901", "902"


def slack_user(id: str, name: str, **profile: Any) -> dict[str, Any]:
    return {"id": id, "team_id": TEAM, "name": name, "profile": {"display_name": name.title(), **profile}}


def slack_said(ts: str, user: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "user": user, "text": text, "ts": ts, "team": TEAM, **fields}


@dataclass
class SlackZip:
    """What goes into the zip: lists, and days by folder."""

    days: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    channels: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": GENERAL, "name": "general", "members": [ALICE, BOB, CAROL, BOT]}]
    )
    groups: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": LEADS, "name": "leads", "members": [ALICE, CAROL, BOT], "creator": ALICE}]
    )
    dms: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": "DHUMANS", "members": [ALICE, BOB]}, {"id": "DAGENT", "members": [ALICE, BOT]}]
    )
    mpims: list[dict[str, Any]] = field(default_factory=list)
    users: list[dict[str, Any]] = field(
        default_factory=lambda: [
            slack_user(ALICE, "alice"),
            slack_user(BOB, "bob"),
            slack_user(CAROL, "carol"),
            slack_user(BOT, "nexus", bot_id="BNEXUS", api_app_id="A0NEXUS"),
        ]
    )

    def write(self, path: Path, prefix: str = "", extra: Mapping[str, str] | None = None) -> Path:
        lists = {
            "channels": self.channels,
            "groups": self.groups,
            "dms": self.dms,
            "mpims": self.mpims,
            "users": self.users,
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, rows in lists.items():
                file.writestr(f"{prefix}{name}.json", json.dumps(rows))
            for folder, messages in self.days.items():
                file.writestr(f"{prefix}{folder}.json", json.dumps(messages))
            for name, content in (extra or {}).items():
                file.writestr(name, content)
        return path


def discord_person(id: str, name: str, *, bot: bool = False, nickname: str | None = None) -> dict[str, Any]:
    return {"id": id, "name": name, "discriminator": "0000", "nickname": nickname or name, "isBot": bot, "roles": []}


def discord_said(id: str, author: dict[str, Any], text: str, **fields: Any) -> dict[str, Any]:
    minute = int(id) % 60
    return {
        "id": id,
        "type": "Default",
        "timestamp": f"2026-05-04T09:{minute:02d}:00.000+00:00",
        "timestampEdited": None,
        "callEndedTimestamp": None,
        "isPinned": False,
        "content": text,
        "author": author,
        "attachments": [],
        "embeds": [],
        "stickers": [],
        "reactions": [],
        "mentions": [],
        **fields,
    }


def discord_file(
    path: Path, channel: dict[str, Any], messages: Sequence[dict[str, Any]], guild: str = GUILD, **more: Any
) -> Path:
    whole = {
        "guild": {"id": guild, "name": "Acme", "iconUrl": ""},
        "channel": {"type": "GuildTextChat", "categoryId": "50", "category": "Text", "topic": None, **channel},
        "dateRange": {"after": None, "before": None},
        "exportedAt": "2026-05-05T00:00:00+00:00",
        "messages": messages,
        "messageCount": len(messages),
        **more,
    }
    path.write_text(json.dumps(whole, indent=2), encoding="utf-8")
    return path


async def loaded(app: App, format: str, *files: Path, run: ImportRun | None = None, **wanted: Any) -> ImportResult:
    """Load files as `nexus import` does; one export."""
    with ExitStack() as opened:
        surveyed = open_exports(files, format, ImportOptions(**wanted), app.settings, opened)
        assert len(surveyed) == 1
        return await load(app, surveyed[0], run=run)

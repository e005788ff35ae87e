"""What there is in Slack, workspaces, tokens, conversations and streams, and the JSON of people and of their text."""

import re
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Kind = Literal["channel", "group", "im", "mpim"]

FAMILY = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
BOT_SCOPES = frozenset(
    {"app_mentions:read", "assistant:write", "channels:join", "chat:write", "commands", "files:read", "im:write"}
    | {"files:write", "mpim:write", "reactions:write", "team:read", "users:read", "users:read.email"}
    | {"usergroups:read"}
    | {f"{family}:{right}" for family in FAMILY.values() for right in ("history", "read")}
)


class SlackError(Exception):
    """An answer of `{"ok": false, "error": …}`; `more` is what stands beside it."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.body: Json = {"ok": False, "error": error, **more}


@dataclass(slots=True)
class Team:
    """A workspace with the app installed in it."""

    id: str
    name: str
    bot_user: str
    bot_id: str
    bot_token: str
    groups: dict[str, str] = field(default_factory=dict)  # handles of user groups, by id


@dataclass(slots=True)
class Token:
    """What a token is allowed; `dead` is the error that it answers with, once it is revoked."""

    kind: Literal["bot", "app"]
    scopes: set[str]
    team: Team | None = None
    dead: str = ""


@dataclass(slots=True)
class Channel:
    """A conversation of any kind; `messages` in the order of their ts."""

    id: str
    team: Team
    name: str
    kind: Kind
    members: list[str]
    created: int
    creator: str = ""
    archived: bool = False
    external: bool = False  # shared with another organisation
    messages: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True)
class Stream:
    """A streamed message; `dead` is the error that any further call gets."""

    channel: str
    ts: str
    started: float
    mode: str = ""
    text: str = ""
    pieces: list[str] = field(default_factory=list)
    dead: str = ""


@dataclass(slots=True)
class Answered:
    """What the app answered to a command or a click: at once (`ack`), later (`responses`), or the `error` shown."""

    ack: Json = field(default_factory=dict)
    error: str = ""
    responses: list[Json] = field(default_factory=list)


def rich_text(text: str) -> list[Json]:
    """The block that Slack's own clients send beside the text."""
    parts = [part for part in re.split(r"(<@U\w+>)", text) if part]
    elements = [
        {"type": "user", "user_id": part[2:-1]} if part.startswith("<@U") else {"type": "text", "text": part}
        for part in parts
    ]
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}]


def user_object(team: Team, user: str, name: str, *, admin: bool = False, bot: bool = False) -> Json:
    email = {} if bot else {"email": f"{name}@{team.name}.test"}
    profile = {"display_name": name, "real_name": name.capitalize(), "team": team.id, **email}
    rights = {"is_admin": admin, "is_owner": False, "is_primary_owner": False, "is_restricted": False}
    about = {"id": user, "team_id": team.id, "name": name, "real_name": name.capitalize(), "deleted": False}
    return {**about, **rights, "is_bot": bot, "is_app_user": False, "tz": "Europe/Berlin", "profile": profile}

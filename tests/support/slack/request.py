"""A request to Slack's Web API: the methods with their scopes and tiers, its arguments, and its record."""

import base64
import json
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.slack.model import Json, SlackError

# Requests a minute, by Slack's tiers; 0 is "special": one a second in each channel.
TIERS = {0: 60, 1: 1, 2: 20, 3: 50, 4: 100}
# Method: scope (several: any of them; "": by the kind of channel), tier.
METHODS: dict[str, tuple[str, int]] = {
    "auth.test": ("", 4), "apps.connections.open": ("connections:write", 1), "team.info": ("team:read", 3),
    "bots.info": ("users:read", 3), "users.info": ("users:read", 4), "users.list": ("users:read", 2),
    "users.lookupByEmail": ("users:read.email", 3), "users.conversations": ("", 3), "conversations.info": ("", 3),
    "conversations.list": ("", 2), "conversations.members": ("", 4), "conversations.history": ("", 3),
    "conversations.replies": ("", 3), "conversations.open": ("im:write,mpim:write", 3),
    "conversations.join": ("channels:join", 3), "chat.postMessage": ("chat:write", 0), "chat.update": ("chat:write", 3),
    "chat.delete": ("chat:write", 3), "chat.postEphemeral": ("chat:write", 4), "chat.startStream": ("chat:write", 2),
    "chat.appendStream": ("chat:write", 4), "chat.stopStream": ("chat:write", 2), "views.open": ("", 4),
    "views.publish": ("", 4), "reactions.add": ("reactions:write", 3), "files.info": ("files:read", 4),
    "files.getUploadURLExternal": ("files:write", 4), "files.completeUploadExternal": ("files:write", 4),
    "files.delete": ("files:write", 3), "usergroups.list": ("usergroups:read", 2),
    "assistant.threads.setStatus": ("assistant:write,chat:write", 2), "agents.sessions.rename": ("chat:write", 2),
    "assistant.threads.setTitle": ("assistant:write", 2), "agents.sessions.setStatus": ("chat:write", 2),
    "assistant.threads.setSuggestedPrompts": ("assistant:write", 2),
}  # fmt: skip


@dataclass(slots=True)
class Call:
    """A Web API request as it came, and what it was answered."""

    method: str
    args: Json
    token: str
    at: float
    answer: Json = field(default_factory=dict)
    status: int = 0


class Args(Json):
    """The arguments of a request, from its query, form or JSON."""

    def need(self, *names: str) -> list[str]:
        """The named arguments as text; refused, as Slack does, when one is missing."""
        missing = [f"[ERROR] missing required field: {name}" for name in names if not self.get(name)]
        if missing:
            raise SlackError("invalid_arguments", response_metadata={"messages": missing})
        return [str(self[name]) for name in names]

    def flag(self, name: str) -> bool:
        return self.get(name) in {True, "1", "true", "True"}

    def page(self, most: int) -> tuple[int, str]:
        """The page's size, and what its cursor says (empty on the first page)."""
        cursor = str(self.get("cursor") or "")
        try:
            said = base64.b64decode(cursor, validate=True).decode().removeprefix("next:")
            return max(1, min(int(self.get("limit") or 100), most)), said
        except ValueError as error:
            raise SlackError("invalid_cursor" if cursor else "invalid_limit") from error


def cursor_to(place: object) -> str:
    return base64.b64encode(f"next:{place}".encode()).decode()


async def arguments(request: web.Request) -> Args:
    """Query, form and JSON together; in a form, structures are JSON in text."""
    args = Args(request.query)
    if request.content_type == "application/json":
        args.update(json.loads(await request.text() or "{}"))
    elif request.can_read_body:
        args.update({key: value for key, value in (await request.post()).items() if isinstance(value, str)})
    for name in ("blocks", "attachments", "metadata", "chunks", "view", "prompts"):
        if isinstance(args.get(name), str):
            args[name] = json.loads(args[name])
    return args

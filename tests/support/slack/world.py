"""What Slack knows, and which events follow from a change of it."""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal

from tests.support.slack.clock import Clock
from tests.support.slack.model import FAMILY, Channel, Json, Kind, Team, Token


class World:
    """What Slack knows. Every change that an app may hear of is emitted as an event, if this app may hear of it."""

    def __init__(self, clock: Clock, emit: Callable[[Team, Json], None]) -> None:
        self.clock, self._emit = clock, emit
        self.app_id = "A00000001"
        self.teams: dict[str, Team] = {}
        self.tokens: dict[str, Token] = {}
        self.users: dict[str, Json] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, tuple[Json, bytes]] = {}
        self.uploads: dict[str, tuple[str, int, bytes]] = {}  # announced and not yet shared: name, length, content
        self.mention_first: Literal["message", "app_mention"] = "message"
        self.subscribed: set[str] | None = None
        self._numbers: dict[str, Any] = defaultdict(lambda: itertools.count(1))
        self._last = 0

    def id(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers[prefix]):08d}"

    def ts(self) -> str:
        """The next timestamp, like 1714813200.000100: never given twice, always growing."""
        self._last = max(int(self.clock.now() * 1_000_000), self._last + 100)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def scopes(self, team: Team) -> set[str]:
        return self.tokens[team.bot_token].scopes

    def tell(
        self, team: Team, event: Json, channel: Channel | None = None, *, scope: str = "", anyone: bool = False
    ) -> None:
        """Emit an event, if the app subscribed to it, has the scope, and is in the channel (or `anyone` may know)."""
        name = event["type"]
        if name == "message" and channel:
            family = FAMILY[channel.kind]
            name, scope = f"message.{family}", f"{family}:history"
        hears = channel is None or anyone or team.bot_user in channel.members
        wanted = self.subscribed is None or name in self.subscribed
        if hears and wanted and (not scope or scope in self.scopes(team)):
            self._emit(team, {"event_ts": event.get("ts") or self.ts(), **deepcopy(event)})

    def channel(self, team: Team, name: str, kind: Kind, members: Iterable[str]) -> Channel:
        made = Channel(self.id("D" if kind == "im" else "C"), team, name, kind, list(members), int(self.clock.now()))
        made.creator = made.members[0] if made.members else ""
        self.channels[made.id] = made
        return made

    def im(self, team: Team, user: str) -> Channel:
        """The direct channel of the app and this person."""
        for channel in self.channels.values():
            if channel.kind == "im" and channel.members == [user, team.bot_user]:
                return channel
        return self.channel(team, "directmessage", "im", [user, team.bot_user])

    def post(self, channel: Channel, message: Json, thread: str = "", *, broadcast: bool = False) -> Json:
        """Store a message and tell of it. In a thread whose parent is gone, Slack silently posts it unthreaded."""
        team = channel.team
        message = {"type": "message", **message, "ts": self.ts(), "team": team.id}
        if thread and (parent := channel.messages.get(thread)):
            message |= {"thread_ts": thread, "parent_user_id": parent.get("user", "")}
            users = list(dict.fromkeys([*parent.get("reply_users", []), message.get("user", "")]))
            parent |= {"thread_ts": thread, "latest_reply": message["ts"], "reply_users": users}
            parent |= {"reply_count": parent.get("reply_count", 0) + 1, "reply_users_count": len(users)}
            if broadcast:
                message |= {"subtype": "thread_broadcast", "root": deepcopy(parent)}
        channel.messages[message["ts"]] = message
        event = {**message, "channel": channel.id, "channel_type": channel.kind}
        events = [event]
        says = message.get("subtype", "") in {"", "thread_broadcast", "file_share", "bot_message"}
        if says and channel.kind != "im" and re.search(rf"<@{team.bot_user}(\|[^>]*)?>", message.get("text", "")):
            kept = {key: value for key, value in event.items() if key not in {"subtype", "channel_type", "root"}}
            events.insert(0 if self.mention_first == "app_mention" else 1, {**kept, "type": "app_mention"})
        for one in events:
            self.tell(team, one, channel, scope="app_mentions:read")
        return message

    def note(self, channel: Channel, subtype: str, user: str, text: str) -> None:
        self.post(channel, {"subtype": subtype, "user": user, "text": text})

    def enter(self, channel: Channel, user: str) -> None:
        channel.members.append(user)
        self._moved(channel, "member_joined_channel", user)
        self.note(channel, "channel_join", user, f"<@{user}> has joined the channel")

    def exit(self, channel: Channel, user: str) -> None:
        """A person goes; when it is the app that is put out, it hears `channel_left` or `group_left` only."""
        channel.members.remove(user)
        if user == channel.team.bot_user:
            gone = "group_left" if channel.kind == "group" else "channel_left"
            self.tell(channel.team, {"type": gone, "channel": channel.id, "actor_id": ""}, channel, anyone=True)
            return
        self._moved(channel, "member_left_channel", user)
        self.note(channel, "channel_leave", user, f"<@{user}> has left the channel")

    def _moved(self, channel: Channel, kind: str, user: str) -> None:
        letter = "G" if channel.kind == "group" else "C"
        event = {"type": kind, "user": user, "channel": channel.id, "channel_type": letter, "team": channel.team.id}
        self.tell(channel.team, event, channel, scope=f"{FAMILY[channel.kind]}:read")

    def change(self, channel: Channel, message: Json, by: str, **fields: Any) -> None:
        """Edit a message in place; a field of None goes away."""
        before, ts = deepcopy(message), self.ts()
        message |= fields
        if by:
            message["edited"] = {"user": by, "ts": ts}
        for key in [key for key, value in message.items() if value is None]:
            del message[key]
        self._hidden(channel, "message_changed", ts, message=message, previous_message=before)

    def remove(self, channel: Channel, message: Json, *, bare: bool = False) -> None:
        """Delete a message; one that has replies leaves a tombstone, which arrives as an edit."""
        if message.get("reply_count") and message.get("subtype") != "tombstone":
            gone = {"subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.", "hidden": True}
            self.change(channel, message, "", **gone, blocks=None, files=None, bot_id=None, metadata=None)
            return
        del channel.messages[message["ts"]]
        parent = channel.messages.get(message.get("thread_ts", ""))
        if parent and parent is not message:
            parent["reply_count"] -= 1
        before = {} if bare else {"previous_message": message}
        self._hidden(channel, "message_deleted", self.ts(), deleted_ts=message["ts"], **before)

    def _hidden(self, channel: Channel, subtype: str, ts: str, **fields: Any) -> None:
        event = {"type": "message", "subtype": subtype, "hidden": True, "ts": ts, "channel": channel.id, **fields}
        self.tell(channel.team, {**event, "channel_type": channel.kind}, channel)

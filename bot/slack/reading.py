"""Slack's events and messages, as plain values. Pure: what they name is not looked up here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from bot.slack.directory import Identity

_ADDRESSES: Final = ("url_private_download", "url_private")
_SAYS: Final = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})
_CONVERTED: Final = "channel_convert"  # …_to_private, …_to_public
_RENAMED: Final = frozenset({"channel_name", "group_name"})
_PRIVATE: Final = {"channel": False, "group": True, "mpim": True, "im": True}


@dataclass(frozen=True, slots=True)
class Said:
    """A message. `private` None: Slack did not say. `machine`: said by another app, under `name`."""

    channel: str
    ts: str
    user: str
    text: str
    thread: str | None
    direct: bool
    private: bool | None
    files: tuple[dict[str, Any], ...] = ()
    machine: bool = False
    name: str = ""

    @property
    def at(self) -> datetime:
        """When it was said."""
        return moment(self.ts)


@dataclass(frozen=True, slots=True)
class Edited:
    """A message has another text now, since `edit`; None: it was deleted. `user` wrote it. `files` are the addresses of
    what is still attached; None: Slack does not tell."""

    channel: str
    ts: str
    user: str
    text: str | None
    direct: bool
    edit: str
    files: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """A channel was turned private, or public."""

    channel: str
    private: bool
    ts: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Someone came into a channel or left it."""

    channel: str
    user: str
    joined: bool
    ts: str


@dataclass(frozen=True, slots=True)
class Changed:
    """What was known of a channel or a person is old."""

    channel: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class ThreadStarted:
    """Someone began a conversation in the agent's pane."""

    channel: str
    thread: str
    user: str


@dataclass(frozen=True, slots=True)
class Revoked:
    """Our token was taken away."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A person has had enough of these answers, which were being streamed."""

    messages: tuple[str, ...]


Told = Said | Edited | Closed | Moved | Changed | ThreadStarted | Revoked | Stopped


def moment(ts: str) -> datetime:
    """The time that a message's id says."""
    seconds, _, fraction = ts.partition(".")
    return datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(fraction[:6].ljust(6, "0") or 0))


def stamp(at: datetime) -> str:
    """The id that a message of this time would have."""
    return f"{int(at.timestamp())}.{at.microsecond:06d}"


def read_event(event: Mapping[str, Any], me: Identity) -> Told | None:
    """What an event tells; None where it tells nothing to us: our own words, notes of joining, what we don't know."""
    match event.get("type"):
        case "message" | "app_mention":
            return read_message(event, str(event["channel"]), str(event.get("channel_type") or ""), me)
        case "member_joined_channel" | "member_left_channel" as kind:
            if event["user"] == me.user:
                return None
            at = str(event.get("event_ts") or event.get("ts"))
            return Moved(event["channel"], event["user"], kind == "member_joined_channel", at)
        case "channel_rename" | "group_rename":
            return Changed(channel=event["channel"]["id"])
        case "user_change" | "user_profile_changed":
            return Changed(user=event["user"]["id"])
        case "assistant_thread_started":
            thread = event["assistant_thread"]
            return ThreadStarted(thread["channel_id"], thread["thread_ts"], thread["user_id"])
        case "agent_session_stopped":
            return Stopped(tuple(event.get("streaming_message_ts") or ()))
        case "tokens_revoked" | "app_uninstalled":
            return Revoked()
    return None


def read_message(message: Mapping[str, Any], channel: str, kind: str, me: Identity) -> Told | None:
    """What a message tells, in an event or in the history of a channel of this kind ("": unknown)."""
    subtype = str(message.get("subtype") or "")
    direct = kind == "im" or channel.startswith("D")
    if subtype == "message_changed":
        return _edited(message, channel, direct, me)
    if subtype == "message_deleted":
        before = message.get("previous_message") or {}
        if _is_ours(before, me):
            return None
        return Edited(channel, message["deleted_ts"], _author(before), None, direct, str(message["ts"]))
    if subtype.startswith(_CONVERTED):
        return Closed(channel, subtype.endswith("private"), message["ts"])
    if subtype in _RENAMED:
        return Changed(channel=channel)
    if subtype not in _SAYS or _is_ours(message, me) or not _author(message):
        return None
    thread, machine = message.get("thread_ts"), bool(message.get("bot_id"))
    profile = message.get("bot_profile") or {}
    return Said(
        channel,
        message["ts"],
        _author(message),
        str(message.get("text") or ""),
        thread if thread != message["ts"] else None,
        direct,
        _PRIVATE.get(kind),
        tuple(file for file in message.get("files") or () if file.get("mode") not in ("tombstone", "hidden_by_limit")),
        machine,
        str(message.get("username") or profile.get("name") or "") if machine else "",
    )


def _edited(event: Mapping[str, Any], channel: str, direct: bool, me: Identity) -> Edited | None:
    """An edit; Slack tells in the same way that a link got its preview, or that a deleted message has a thread."""
    message, before = event["message"], event.get("previous_message") or {}
    if _is_ours(message, me) or _is_ours(before, me):
        return None
    if message.get("subtype") == "tombstone":
        return Edited(channel, message["ts"], _author(before), None, direct, str(event["ts"]))
    files = addresses(message)
    if (message.get("text") == before.get("text") and files == addresses(before)) or not _author(message):
        return None
    edit = str((message.get("edited") or {}).get("ts") or event["ts"])
    return Edited(channel, message["ts"], _author(message), str(message.get("text") or ""), direct, edit, files)


def addresses(message: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Where the files of a message lie; None where Slack says of one only that it is there."""
    standing = [file for file in message.get("files") or () if file.get("mode") != "tombstone"]
    told = [[str(file[key]) for key in _ADDRESSES if file.get(key)] for file in standing]
    return tuple(address for each in told for address in each) if all(told) else None


def _author(message: Mapping[str, Any]) -> str:
    return str(message.get("user") or message.get("bot_id") or "")


def _is_ours(message: Mapping[str, Any], me: Identity) -> bool:
    return message.get("user") == me.user or (bool(me.bot) and message.get("bot_id") == me.bot)

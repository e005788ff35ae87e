"""Reads Slack's events and messages into plain values. Pure: ids are not looked up here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from bot.platform.events import (
    MembersChanged,
    MessageChanged,
    PersonLeft,
    RoomDeleted,
    RoomPrivacyChanged,
    RoomShared,
    TrustStated,
)
from bot.slack.words import file_name, other_words, own_words, without_odd
from composer.model import SLACK, Attachment, ConversationKind, Incoming, Place, Trust
from composer.text.moments import moment_of_seconds

PLATFORM: Final = SLACK
_ADDRESSES: Final = ("url_private_download", "url_private")
_MAX_COUNT_CHARS: Final = 18
_WRITTEN: Final = frozenset({"", "file_share", "thread_broadcast", "reply_broadcast", "me_message", "bot_message"})
_OF_APP: Final = "bot_message"
# What Slack writes about a channel and its members. The words of any other subtype are kept, but address nobody.
_NOTICES: Final = frozenset(
    f"{kind}_{what}"
    for kind in ("channel", "group")
    for what in ("join", "leave", "topic", "purpose", "name", "archive", "unarchive", "posting_permissions")
) | {
    *("bot_add", "bot_remove", "bot_enable", "bot_disable", "app_conversation_join", "app_conversation_leave"),
    *("pinned_item", "unpinned_item", "reminder_add", "reminder_delete", "emoji_changed", "tombstone"),
    *("message_replied", "ekm_access_denied", "channel_canvas_updated", "tabbed_canvas_updated"),
    *("joiner_notification", "joiner_notification_for_inviter", "added_to_channel_list", "assistant_app_thread"),
}
_SLACKBOT: Final = "USLACKBOT"  # Slack itself: what it writes is nobody's question
_CONVERTED: Final = "channel_convert"  # …_to_private, …_to_public
_RENAMED: Final = frozenset({"channel_name", "group_name"})
_GONE_FILES: Final = ("tombstone", "hidden_by_limit")
_PRIVATE: Final = {"channel": False, "group": True, "mpim": True, "im": True}


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot's own ids in its workspace. `url` is the workspace's address, such as https://acme.slack.com/,
    `enterprise` the id of the organisation of a workspace that is one of several."""

    team: str
    user: str
    bot: str
    name: str = ""
    url: str = ""
    enterprise: str = ""


@dataclass(frozen=True, slots=True)
class DirectoryChanged:
    """What is cached of a channel or a user is outdated."""

    channel: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class ChannelFound:
    """We may write in a channel again: we were taken into it, or it is not archived any more."""

    channel: str


@dataclass(frozen=True, slots=True)
class ChannelIdChanged:
    """A private channel has another id since a time (None: Slack does not say): it is being shared with another
    organisation."""

    old: str
    new: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HistoryChanged:
    """The history of a channel ("": of some channel; `direct`: of some DM) was changed at once, as by an import of an
    admin, before a message."""

    channel: str
    direct: bool


@dataclass(frozen=True, slots=True)
class AssistantThreadStarted:
    """Someone began a conversation in the agent's pane."""

    channel: str
    user: str


@dataclass(frozen=True, slots=True)
class TokenRevoked:
    """Slack has revoked our token."""


@dataclass(frozen=True, slots=True)
class StreamsStopped:
    """A person has stopped these answers while they were being streamed."""

    messages: tuple[str, ...]


SlackEvent = (
    Incoming
    | MessageChanged
    | RoomPrivacyChanged
    | RoomShared
    | MembersChanged
    | PersonLeft
    | TrustStated
    | RoomDeleted
    | DirectoryChanged
    | ChannelFound
    | ChannelIdChanged
    | HistoryChanged
    | AssistantThreadStarted
    | TokenRevoked
    | StreamsStopped
)


def time_of(ts: str) -> datetime:
    """The time that a message's `ts` encodes, in UTC. Raises BadInput for one that nobody can have sent at."""
    return moment_of_seconds(ts)


def ts_of(at: datetime) -> str:
    """The `ts` that a message of this time would have."""
    return f"{int(at.timestamp())}.{at.microsecond:06d}"


def room_place(
    channel: str, private: bool | None, stated_at: datetime | None, title: str | None, thread: str | None = None
) -> Place:
    """A channel, or a thread of it, whose privacy Slack stated at a time (None: it is so now)."""
    if thread is None:
        return Place(ConversationKind.ROOM, channel, private=private, title=title, stated_at=stated_at)
    return Place(
        ConversationKind.THREAD, channel, thread=thread, title=title, room_private=private, stated_at=stated_at
    )


def read_event(event: Mapping[str, Any], me: BotIdentity) -> SlackEvent | None:
    """One event; None for our own messages, notices of joining, and events of unknown types."""
    match event.get("type"):
        case "message" | "app_mention":
            return read_message(event, str(event["channel"]), str(event.get("channel_type") or ""), me)
        case "member_joined_channel" | "member_left_channel" as kind:
            if event["user"] == me.user:
                return ChannelFound(event["channel"]) if kind == "member_joined_channel" else None
            at = time_of(str(event.get("event_ts") or event.get("ts")))
            return MembersChanged({event["channel"]: {event["user"]: kind == "member_joined_channel"}}, at)
        case "channel_id_changed":
            return ChannelIdChanged(event["old_channel_id"], event["new_channel_id"], _event_time(event))
        case "channel_history_changed" | "group_history_changed" | "im_history_changed":
            return HistoryChanged(str(event.get("channel") or ""), direct=event["type"] == "im_history_changed")
        case "group_unarchive":
            return ChannelFound(event["channel"])
        case "channel_deleted" | "group_deleted":
            return RoomDeleted(event["channel"], at=_event_time(event))
        case "channel_rename" | "group_rename":
            return DirectoryChanged(channel=event["channel"]["id"])
        case "channel_shared":
            return RoomShared(event["channel"])
        case "channel_unshared":  # from one of several, perhaps: Slack is asked again
            return DirectoryChanged(channel=event["channel"])
        case "user_change" if event["user"].get("deleted") is True:
            return PersonLeft(event["user"]["id"], _event_time(event))
        case "user_change":
            user = event["user"]
            return TrustStated({user["id"]: trust_of(user, me)}, _event_time(event), {user["id"]: zone_of(user)})
        case "user_profile_changed":
            return DirectoryChanged(user=event["user"]["id"])
        case "assistant_thread_started":
            thread = event["assistant_thread"]
            return AssistantThreadStarted(thread["channel_id"], thread["user_id"])
        case "agent_session_stopped":
            return StreamsStopped(tuple(event.get("streaming_message_ts") or ()))
        case "tokens_revoked" | "app_uninstalled":
            return TokenRevoked()
    return None


def _event_time(event: Mapping[str, Any]) -> datetime | None:
    ts = event.get("event_ts")
    return None if ts is None else time_of(str(ts))


def trust_of(user: Mapping[str, Any], me: BotIdentity) -> Trust:
    """What a person is to our workspace, as Slack describes them: a member of it, or of another workspace of our
    organisation, or a guest."""
    enterprise = (user.get("enterprise_user") or {}).get("enterprise_id")
    ours = user.get("team_id") == me.team or (me.enterprise != "" and enterprise == me.enterprise)
    guest = any(user.get(mark) for mark in ("is_restricted", "is_ultra_restricted", "is_stranger"))
    return Trust.MEMBER if ours and not guest else Trust.GUEST


def zone_of(user: Mapping[str, Any]) -> str:
    """The name of a person's time zone, as Slack describes them; "" if it does not say one."""
    return str(user.get("tz") or "")


def read_message(message: Mapping[str, Any], channel: str, kind: str, me: BotIdentity) -> SlackEvent | None:
    """A message of an event or of the history of a channel of this kind (Slack's channel_type; "": unknown).

    Its text is in Slack's markup, a name is there only for an app, and a DM does not name its agent: SlackInbox looks
    these up. An app is a tool.
    """
    subtype = str(message.get("subtype") or "")
    direct = kind == "im" or channel.startswith("D")
    if subtype == "message_changed":
        return _edited(message, channel, direct, me)
    if subtype == "message_deleted":
        return _deleted(message, message["deleted_ts"], channel, direct)
    if subtype.startswith(_CONVERTED):
        at = time_of(str(message["ts"]))
        return RoomPrivacyChanged(channel, subtype.endswith("private"), create=True, at=at)
    if subtype in _RENAMED:
        return DirectoryChanged(channel=channel)
    if subtype in _NOTICES or _is_ours(message, me) or not _author(message):
        return None
    at, by_slack = time_of(str(message["ts"])), message.get("user") == _SLACKBOT
    thread = message.get("thread_ts") if message.get("thread_ts") != message["ts"] else None
    from_bot = bool(message.get("bot_id")) or subtype == _OF_APP or by_slack
    profile = message.get("bot_profile") or ({"name": "Slackbot"} if by_slack else {})
    own, other = own_words(message), other_words(message)
    if subtype not in _WRITTEN:
        own, other = "", "\n".join(filter(None, (own, other)))
    return Incoming(
        adapter=PLATFORM,
        workspace=me.team,
        place=Place(ConversationKind.DM, "") if direct else room_place(channel, _PRIVATE.get(kind), at, None, thread),
        user=_author(message),
        user_name=str(message.get("username") or profile.get("name") or "") if from_bot else "",
        id=message["ts"],
        text=own,
        at=at,
        attachments=tuple(map(attachment_of, files_of(message))),
        reply_to=thread,
        sender_trust=Trust.TOOL if from_bot else Trust.MEMBER,
        channel=channel,
        quoted=other,
    )


def files_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The files of a message, without those that are gone."""
    return [each for each in without_odd(message.get("files")) if each.get("mode") not in _GONE_FILES]


def attachment_of(file: Mapping[str, Any]) -> Attachment:
    """A file. Of one that Slack must be asked about, the address is its id."""
    asked = file.get("file_access") == "check_file_info"
    address = file.get("id") if asked else next(filter(None, map(file.get, _ADDRESSES)), "")
    size, milliseconds = _count(file.get("size")), _count(file.get("duration_ms"))
    media_type = str(file.get("mimetype") or "")
    return Attachment(file_name(file), media_type, size=size, address=str(address), seconds=milliseconds / 1000)


def is_unknown(file: Attachment) -> bool:
    """Whether Slack must be asked about a file."""
    return file.address != "" and "/" not in file.address


def _count(value: object) -> int:
    """A number that Slack tells of a file; 0 for what is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_COUNT_CHARS else 0


def _edited(event: Mapping[str, Any], channel: str, direct: bool, me: BotIdentity) -> MessageChanged | None:
    """An edit or a deletion; None if only the preview of a link was added.

    Slack sends the same event for all of these: a message that has replies becomes a tombstone when it is deleted.
    """
    message, before = event["message"], event.get("previous_message") or {}
    if message.get("subtype") == "tombstone":
        return _deleted(event, message["ts"], channel, direct)
    if _is_ours(message, me) or _is_ours(before, me):
        return None
    text, quoted, files = own_words(message), other_words(message), addresses(message)
    same = text == own_words(before) and quoted == other_words(before)
    if (same and files == addresses(before)) or not _author(message):
        return None
    return MessageChanged(
        channel=channel,
        message_id=message["ts"],
        place=_changed_place(channel, direct),
        user=_author(message),
        text=text,
        edited_at=time_of(str((message.get("edited") or {}).get("ts") or event["ts"])),
        attached=files,
        before=own_words(before),
        quoted=quoted,
    )


def _deleted(event: Mapping[str, Any], ts: str, channel: str, direct: bool) -> MessageChanged:
    author, place = _author(event.get("previous_message") or {}), _changed_place(channel, direct)
    return MessageChanged(channel, ts, place, author, text=None, edited_at=time_of(str(event["ts"])))


def _changed_place(channel: str, direct: bool) -> Place:
    return Place(ConversationKind.DM, "") if direct else Place(ConversationKind.ROOM, channel)


def addresses(message: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The addresses of the files of a message; None if Slack does not tell that of every file."""
    files = [file for file in without_odd(message.get("files")) if file.get("mode") != "tombstone"]
    found = [[str(file[key]) for key in _ADDRESSES if file.get(key)] for file in files]
    return tuple(address for each in found for address in each) if all(found) else None


def _author(message: Mapping[str, Any]) -> str:
    """The id of who wrote a message. Old integrations have a name alone."""
    named = message.get("username") if message.get("subtype") == _OF_APP else None
    return str(message.get("user") or message.get("bot_id") or named or "")


def _is_ours(message: Mapping[str, Any], me: BotIdentity) -> bool:
    return message.get("user") == me.user or (bool(me.bot) and message.get("bot_id") == me.bot)

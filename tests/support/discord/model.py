"""What there is in Discord, people, rooms and messages, and the JSON in which its API and its events show them."""

import mimetypes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntFlag
from typing import Any

JSON = dict[str, Any]

EPOCH_MS = 1_420_070_400_000  # Discord's own epoch, the first second of 2015
TEXT, DM, VOICE, PUBLIC_THREAD, PRIVATE_THREAD = 0, 1, 2, 11, 12
DEFAULT, REPLY, THREAD_CREATED, COMMAND_ANSWER, THREAD_STARTER = 0, 19, 18, 20, 21  # message types
HAS_THREAD, EPHEMERAL, LOADING = 1 << 5, 1 << 6, 1 << 7  # message flags
CROSSPOST, SOURCE_DELETED = 1 << 1, 1 << 3  # of what a channel gets that follows another
NO_EMBEDS, SILENT = 1 << 2, 1 << 12  # those that a request may set
OBFUSCATED = 1 << 17  # a channel flag


class Permission(IntFlag):
    MANAGE_CHANNELS = 1 << 4
    ADMINISTRATOR = 1 << 3
    MANAGE_GUILD = 1 << 5
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    CONNECT = 1 << 20
    USE_APPLICATION_COMMANDS = 1 << 31
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38


NOTHING, EVERYTHING = Permission(0), Permission(sum(Permission))
ADMINS_ONLY = (
    Permission.ADMINISTRATOR
    | Permission.MANAGE_GUILD
    | Permission.MANAGE_CHANNELS
    | Permission.MANAGE_MESSAGES
    | Permission.MANAGE_THREADS
    | Permission.MENTION_EVERYONE
)
EVERYDAY = EVERYTHING & ~ADMINS_ONLY  # what @everyone has in a new guild


class ApiError(Exception):
    """An answer other than success, with Discord's own code (JSON error codes, "Opcodes and Status Codes")."""

    def __init__(self, status: int, code: int, message: str, errors: JSON | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: JSON = {"message": message, "code": code} | ({"errors": errors} if errors else {})


def bad_field(name: str, code: str, message: str) -> ApiError:
    """50035, the answer to a body that breaks a rule of the form."""
    return ApiError(400, 50035, "Invalid Form Body", {name: {"_errors": [{"code": code, "message": message}]}})


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def time_of(snowflake: int) -> float:
    """When an id was made, in Unix seconds."""
    return ((snowflake >> 22) + EPOCH_MS) / 1000


class Ids:
    """Snowflakes: milliseconds since Discord's epoch, then 22 bits that only grow; later ids are always greater."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._count = 0
        self._last_ms = 0

    def next(self, at: datetime | None = None) -> int:
        self._count += 1
        if at is not None:
            return (int(at.timestamp() * 1000) - EPOCH_MS) << 22 | self._count
        self._last_ms = max(self._last_ms, int(self._now() * 1000))  # a clock set back must not reorder ids
        return (self._last_ms - EPOCH_MS) << 22 | self._count

    def on_shard(self, shard: int, of: int) -> int:
        """An id that a client with `of` shards expects on shard number `shard`."""
        stamp = self.next() >> 22
        return (stamp - (stamp - shard) % of) << 22 | self._count


@dataclass(slots=True, eq=False)
class User:
    id: int
    name: str
    bot: bool = False
    dms_closed: bool = False

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"

    def json(self) -> JSON:
        names = {"username": self.name.lower(), "global_name": self.name, "discriminator": "0"}
        return {"id": str(self.id), **names, "avatar": None, "bot": self.bot, "public_flags": 0}


@dataclass(slots=True, eq=False)
class Role:
    id: int
    name: str
    permissions: Permission

    def json(self) -> JSON:
        look = {"color": 0, "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None}}
        plain = {"hoist": False, "position": 0, "managed": False, "mentionable": True, "flags": 0}
        return {"id": str(self.id), "name": self.name, "permissions": str(int(self.permissions)), **look, **plain}


@dataclass(slots=True, eq=False)
class Member:
    user: User
    roles: list[Role] = field(default_factory=list)
    joined: float = field(default_factory=time.time)

    def json(self, *, user: bool = True) -> JSON:
        plain = {"deaf": False, "mute": False, "flags": 0, "avatar": None, "nick": None, "pending": False}
        body = {"roles": [str(r.id) for r in self.roles], "joined_at": iso(self.joined), **plain}
        return body | ({"user": self.user.json()} if user else {})


@dataclass(slots=True, eq=False)
class Guild:
    id: int
    name: str
    owner: User
    roles: dict[int, Role] = field(default_factory=dict)  # the role with the guild's own id is @everyone
    members: dict[int, Member] = field(default_factory=dict)

    def json(self) -> JSON:
        nothing: dict[str, list[Any]] = {"emojis": [], "stickers": [], "features": []}
        nulls = ("icon", "splash", "discovery_splash", "description", "banner", "vanity_url_code", "application_id")
        places = ("afk_channel_id", "system_channel_id", "rules_channel_id", "public_updates_channel_id")
        levels = ("verification_level", "default_message_notifications", "explicit_content_filter", "mfa_level")
        more = ("nsfw_level", "premium_tier", "system_channel_flags", "afk_timeout")
        return {
            "id": str(self.id),
            "name": self.name,
            "owner_id": str(self.owner.id),
            "roles": [r.json() for r in self.roles.values()],
            "preferred_locale": "en-US",
            **nothing,
            **dict.fromkeys(nulls + places),
            **dict.fromkeys(levels + more, 0),
        }


@dataclass(slots=True, eq=False)
class Channel:
    """A text channel, a voice channel with its text chat, a thread or a DM."""

    id: int
    kind: int
    name: str = ""
    guild: Guild | None = None
    parent: "Channel | None" = None
    owner: User | None = None
    recipients: list[User] = field(default_factory=list)
    overwrites: dict[int, tuple[int, Permission, Permission]] = field(default_factory=dict)  # id: (0 role, allow, deny)
    thread_members: dict[int, float] = field(default_factory=dict)  # user id: joined
    messages: dict[int, "Message"] = field(default_factory=dict)
    archived: bool = False
    locked: bool = False
    archived_at: float = field(default_factory=time.time)

    @property
    def is_thread(self) -> bool:
        return self.kind in (PUBLIC_THREAD, PRIVATE_THREAD)

    def newest_first(self) -> list["Message"]:
        return [self.messages[i] for i in sorted(self.messages, reverse=True)]

    def hidden_json(self, bot: User) -> JSON:
        """As the gateway shows a channel that the bot may not view ("Obfuscated Channels"): its id, type, position and
        category alone are true."""
        assert self.guild
        deny = {"id": str(self.guild.id), "type": 0, "allow": "0", "deny": str(int(Permission.VIEW_CHANNEL))}
        more = {"name": "___hidden___", "last_message_id": None, "flags": OBFUSCATED, "permission_overwrites": [deny]}
        return self.json(bot) | more

    def thread_member_json(self, user_id: int) -> JSON:
        joined = iso(self.thread_members[user_id])
        return {"id": str(self.id), "user_id": str(user_id), "join_timestamp": joined, "flags": 0}

    def json(self, bot: User) -> JSON:
        last = str(max(self.messages)) if self.messages else None
        body: JSON = {"id": str(self.id), "type": self.kind, "last_message_id": last, "flags": 0}
        if self.guild is None:
            return body | {"recipients": [u.json() for u in self.recipients if u is not bot], "name": None}
        body |= {"guild_id": str(self.guild.id), "name": self.name, "nsfw": False, "rate_limit_per_user": 0}
        if not self.is_thread:
            written = [
                {"id": str(i), "type": kind, "allow": str(int(allow)), "deny": str(int(deny))}
                for i, (kind, allow, deny) in self.overwrites.items()
            ]
            voice: JSON = {"bitrate": 64_000, "user_limit": 0, "rtc_region": None} if self.kind == VOICE else {}
            return body | voice | {"permission_overwrites": written, "position": 0, "parent_id": None, "topic": None}
        assert self.parent
        assert self.owner
        metadata = {
            "archived": self.archived,
            "locked": self.locked,
            "auto_archive_duration": 1440,
            "archive_timestamp": iso(self.archived_at),
            "create_timestamp": iso(time_of(self.id)),
        } | ({"invitable": True} if self.kind == PRIVATE_THREAD else {})
        counts = dict.fromkeys(("message_count", "total_message_sent"), len(self.messages))
        body |= {
            "parent_id": str(self.parent.id),
            "owner_id": str(self.owner.id),
            "thread_metadata": metadata,
            **counts,
        }
        body |= {"member_count": min(len(self.thread_members), 50)}
        return body | ({"member": self.thread_member_json(bot.id)} if bot.id in self.thread_members else {})


@dataclass(slots=True, eq=False)
class Attachment:
    id: int
    filename: str
    content: bytes
    url: str

    @property
    def content_type(self) -> str | None:
        kind, _ = mimetypes.guess_type(self.filename)
        return f"{kind}; charset=utf-8" if kind and kind.startswith("text/") else kind

    def json(self) -> JSON:
        body: JSON = {"id": str(self.id), "filename": self.filename, "size": len(self.content)}
        body |= {"url": self.url, "proxy_url": self.url, "content_type": self.content_type}
        return body | ({"width": 64, "height": 64} if (self.content_type or "").startswith("image/") else {})


@dataclass(slots=True, eq=False)
class Message:
    """A message, or the ephemeral answer to an interaction, which is in no channel's history."""

    id: int
    channel: Channel
    author: User
    content: str
    kind: int = DEFAULT
    flags: int = 0
    nonce: str | None = None
    reference: JSON | None = None
    referenced: "Message | None" = None
    mentions: list[User] = field(default_factory=list)
    mention_roles: list[int] = field(default_factory=list)
    mention_everyone: bool = False
    attachments: list[Attachment] = field(default_factory=list)
    embeds: list[JSON] = field(default_factory=list)
    components: list[JSON] = field(default_factory=list)
    reactions: dict[str, list[User]] = field(default_factory=dict)
    thread: Channel | None = None
    via: JSON = field(default_factory=dict)  # of an interaction's answer: whose, and through which application
    edited: float | None = None
    edits: list[tuple[float, str]] = field(default_factory=list)  # (monotonic seconds, content), oldest first
    deleted: bool = False

    @property
    def ephemeral(self) -> bool:
        return bool(self.flags & EPHEMERAL)

    def json(self, bot: User, *, nested: bool = False) -> JSON:
        """As an API answer shows it; events add guild_id, member and nonce, which history never carries."""
        body: JSON = {
            "id": str(self.id),
            "channel_id": str(self.channel.id),
            "author": self.author.json(),
            "content": self.content,
            "timestamp": iso(time_of(self.id)),
            "edited_timestamp": None if self.edited is None else iso(self.edited),
            "type": self.kind,
            "flags": self.flags,
            "tts": False,
            "pinned": False,
            "mention_everyone": self.mention_everyone,
            "mentions": [u.json() for u in self.mentions],
            "mention_roles": [str(i) for i in self.mention_roles],
            "attachments": [a.json() for a in self.attachments],
            "embeds": self.embeds,
            "components": self.components,
            **self.via,
        }
        if self.reactions:
            body["reactions"] = [
                {
                    "emoji": {"id": None, "name": emoji},
                    "count": len(users),
                    "count_details": {"normal": len(users), "burst": 0},
                    "me": bot in users,
                    "me_burst": False,
                    "burst_colors": [],
                }
                for emoji, users in self.reactions.items()
            ]
        if self.thread:
            body["thread"] = self.thread.json(bot)
        if self.reference:
            body["message_reference"] = self.reference
        if self.reference and not nested:
            shown = self.referenced and not self.referenced.deleted
            body["referenced_message"] = self.referenced.json(bot, nested=True) if shown and self.referenced else None
        return body


@dataclass(slots=True, eq=False)
class Interaction:
    """One use of a command, an autocompletion, a click or a modal; what the client answered is in the last fields."""

    id: int
    token: str
    kind: int  # 2 command, 3 component, 4 autocomplete, 5 modal
    channel: Channel
    user: User
    message: Message | None = None  # the one that was clicked
    made: float = field(default_factory=time.monotonic)
    answer: int | None = None  # type of the callback that acknowledged it
    acknowledged: float | None = None  # monotonic seconds
    original: Message | None = None
    messages: list[Message] = field(default_factory=list)  # original and follow-ups, ephemeral ones among them
    choices: list[JSON] | None = None
    modal: JSON | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A dispatch before it has a sequence number; who receives it depends on guild, channel, message and intents."""

    name: str
    data: JSON
    guild: Guild | None = None
    channel: Channel | None = None
    message: Message | None = None  # whose content the event shows, to be blanked without the intent

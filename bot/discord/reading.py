"""Turns what discord.py hands over into the core's plain values. Decides nothing, and asks nobody."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import aiohttp
import discord
import structlog

from bot.platform.text_files import LONGEST_FILE, is_text, text_in
from composer.model import Attachment, ConversationKind, Incoming, Place

logger = structlog.get_logger()

DOOR: Final = "discord"
# What a call to Discord fails with: what discord.py makes of answers, and what becomes of connections. A server that
# hangs up is no OSError for aiohttp.
FAILURES: Final = (discord.DiscordException, aiohttp.ClientError, OSError)
_SPOKEN: Final = (discord.MessageType.default, discord.MessageType.reply)
_TOKEN = re.compile(r"<(@!?|@&|#)(\d+)>|<a?(:\w+:)\d+>")


def is_spoken(message: discord.Message) -> bool:
    """Whether somebody says something with it: joins, pins and thread notices say nothing, nor does a blank one."""
    return message.type in _SPOKEN and bool(_content(message).strip() or message.attachments)


def is_private(channel: discord.abc.GuildChannel) -> bool:
    """Whether not everyone in the guild may view a channel."""
    return not channel.permissions_for(channel.guild.default_role).view_channel


def home_of(channel: object) -> discord.abc.GuildChannel | None:
    """The channel whose privacy is a public thread's own; None for what is no public thread, or has no such channel."""
    return channel.parent if isinstance(channel, discord.Thread) and not channel.is_private() else None


def archived_at(metadata: Mapping[str, Any]) -> datetime | None:
    """When a thread was archived, by what Discord says of it; None while it is open."""
    return datetime.fromisoformat(metadata["archive_timestamp"]) if metadata["archived"] else None


def place_of(channel: object, slug: str) -> Place | None:
    """Where a channel is in the core's words; None for one that discord.py knows only by its id.

    A private thread is a room of its own, and so is a thread whose channel we don't see: when unsure, closed.
    """
    if isinstance(channel, discord.DMChannel):
        return Place(ConversationKind.DM, slug)
    if isinstance(channel, discord.Thread):
        if channel.is_private() or channel.parent is None:
            return Place(ConversationKind.ROOM, str(channel.id), private=True, title=channel.name)
        return Place(ConversationKind.THREAD, str(channel.parent_id), thread=str(channel.id), title=channel.name)
    if isinstance(channel, discord.abc.GuildChannel):
        return Place(ConversationKind.ROOM, str(channel.id), private=is_private(channel), title=channel.name)
    return None


def incoming_of(message: discord.Message, place: Place, me: discord.ClientUser, slugs: Sequence[str]) -> Incoming:
    """A message as the core takes it; the first of `slugs` is the agent that this bot is. Files are still without
    their text, and the workspace is the guild's, or `dm`."""
    author = message.author
    admin = isinstance(author, discord.Member) and _is_admin(author.guild_permissions)
    return Incoming(
        DOOR,
        str(message.guild.id) if message.guild else "dm",
        place,
        str(author.id),
        author.display_name,
        str(message.id),
        text_of(message, me, slugs),
        message.created_at,
        tuple(_attachment(file) for file in message.attachments),
        mentions_of(message, me),
        (slugs[0],) if _asks(message, me) else (),
        admin,
        _answered(message),
    )


def _answered(message: discord.Message) -> str | None:
    """The id of the message that this one is a reply to; a forwarded one answers nothing."""
    if message.type is not discord.MessageType.reply or message.reference is None:
        return None
    return None if message.reference.message_id is None else str(message.reference.message_id)


def _attachment(file: discord.Attachment, text: str = "") -> Attachment:
    return Attachment(file.filename, file.content_type or "", text, file.size, file.url)


def _is_admin(permissions: discord.Permissions) -> bool:
    return permissions.administrator or permissions.manage_guild


def command_of(interaction: discord.Interaction, place: Place, text: str) -> Incoming:
    """A command as the core takes it."""
    user = interaction.user
    return Incoming(
        DOOR,
        str(interaction.guild_id or "dm"),
        place,
        str(user.id),
        user.display_name,
        str(interaction.id),
        text,
        interaction.created_at,
        sender_is_admin=interaction.guild_id is not None and _is_admin(interaction.permissions),
    )


def mentions_of(message: discord.Message, me: discord.ClientUser) -> tuple[str, ...]:
    """The ids of the people who are mentioned in the text, without the bot."""
    said = {int(id) for kind, id, _ in _TOKEN.findall(_content(message)) if kind in ("@", "@!")}
    return tuple(str(user.id) for user in message.mentions if user.id in said and user.id != me.id)


def text_of(message: discord.Message, me: discord.ClientUser, slugs: Sequence[str]) -> str:
    """The text as people read it: names in place of ids, the agent's slug where the bot is meant."""
    people = {user.id: user.display_name for user in message.mentions}
    roles = {role.id: role for role in message.role_mentions}

    def read(found: re.Match[str]) -> str:
        kind, number, emoji = found.groups()
        if emoji:
            return str(emoji)
        id = int(number)
        if kind == "#":
            return _channel_name(message, id)
        if kind == "@&":
            return f"@{slugs[0]}" if id in roles and _is_ours(roles[id], me) else _called(roles.get(id), slugs)
        return f"@{slugs[0]}" if id == me.id else _named(people.get(id, "someone"), slugs)

    return _TOKEN.sub(read, _content(message))


def _content(message: discord.Message) -> str:
    """What was written, or what was forwarded."""
    return message.content or "\n".join(snapshot.content for snapshot in message.message_snapshots)


def _called(role: discord.Role | None, slugs: Sequence[str]) -> str:
    return _named("a role" if role is None else role.name, slugs)


def _named(name: str, slugs: Sequence[str]) -> str:
    """`@name`, unless a person goes by an agent's slug: then it must not call the agent."""
    return name if name.casefold() in slugs else f"@{name}"


def _channel_name(message: discord.Message, id: int) -> str:
    """`#name` of a channel that everyone may know of; the name of a private one is not spread by a mention of it."""
    channel = message.guild.get_channel(id) if message.guild else None
    known = channel is not None and (id == message.channel.id or not is_private(channel))
    return f"#{channel.name}" if channel is not None and known else "#a channel"


def _is_ours(role: discord.Role, me: discord.ClientUser) -> bool:
    """Whether a role is the one that Discord makes for the bot itself."""
    return role.tags is not None and role.tags.bot_id == me.id


def _asks(message: discord.Message, me: discord.ClientUser) -> bool:
    """Whether the bot is meant: mentioned, by name or by its own role, or replied to."""
    replied = message.reference.resolved if message.reference is not None else None
    to_me = isinstance(replied, discord.Message) and replied.author.id == me.id
    called = me.id in (user.id for user in message.mentions) or any(_is_ours(r, me) for r in message.role_mentions)
    return to_me or called


async def read_files(files: Sequence[discord.Attachment]) -> tuple[Attachment, ...]:
    """The files of a message, text files with their text; one that can't be had is left without."""
    return tuple([_attachment(file, await _text(file)) for file in files])


async def _text(file: discord.Attachment) -> str:
    if not is_text(file.filename, file.content_type or "") or file.size > LONGEST_FILE:
        return ""
    try:
        return text_in(await file.read())
    except FAILURES as error:
        logger.warning("discord.file_unread", file=file.id, error=type(error).__name__)
        return ""

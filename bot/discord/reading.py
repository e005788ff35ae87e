"""Converts discord.py's objects to the core's plain values, without requests to Discord."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import aiohttp
import discord

from bot.discord.words import PREVIEWS, Card, Forwarded, Outside, component_words, outside_words, with_times
from composer.ingest.addressing import unaddressed
from composer.model import DISCORD, Attachment, ConversationKind, Incoming, Place, Trust

PLATFORM: Final = DISCORD
DM_WORKSPACE: Final = "dm"  # of DMs with people who are in no guild of ours
# What a call to Discord may raise: discord.py's own errors, and those of the connection (aiohttp's are no OSErrors).
FAILURES: Final = (discord.DiscordException, aiohttp.ClientError, OSError)
TEXT_MESSAGES: Final = (discord.MessageType.default, discord.MessageType.reply)
_WITH_WORDS: Final = (
    *TEXT_MESSAGES,
    discord.MessageType.poll_result,
    discord.MessageType.chat_input_command,
    discord.MessageType.context_menu_command,
    discord.MessageType.auto_moderation_action,
)
_TOKEN = re.compile(r"<(@!?|@&|#)(\d+)>|<a?(:\w+:)\d+>")


def has_content(message: discord.Message) -> bool:
    """Whether a message has words or files; joins, pins, thread notices and blank messages have not."""
    words = message.content.strip() or outside_words(message.content, _outside(message))
    return message.type in _WITH_WORDS and bool(words or files_of(message))


def is_automatic(message: discord.Message) -> bool:
    """Whether a message is of a bot, or of a webhook: whoever has its address writes there under any name."""
    return message.author.bot or message.webhook_id is not None


def is_hidden(channel: discord.abc.GuildChannel) -> bool:
    """Whether not everyone in the guild may read a channel, by its overwrites."""
    return not _may_read(channel, channel.permissions_for(channel.guild.default_role))


def may_view(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    """Whether somebody may read a channel, by their roles and its overwrites.

    discord.py goes on counting a deleted role for whoever had it: what such a role allows is left out.
    """
    allowed = channel.permissions_for(member)
    deleted = any(isinstance(to, discord.Object) and to.type is discord.Role for to in channel.overwrites)
    if not _may_read(channel, allowed) or not deleted or allowed.administrator:
        return _may_read(channel, allowed)
    everyone = channel.permissions_for(channel.guild.default_role)
    targets: tuple[discord.Role | discord.Member, ...] = (*member.roles, member)
    given = [channel.overwrites_for(each) for each in targets]
    return all(getattr(everyone, right) or any(getattr(each, right) for each in given) for right in _rights(channel))


def _may_read(channel: discord.abc.GuildChannel, allowed: discord.Permissions) -> bool:
    return all(getattr(allowed, right) for right in _rights(channel))


def _rights(channel: discord.abc.GuildChannel) -> tuple[str, ...]:
    """What it takes to read a channel. Everyone may see many a voice channel in the list to which few may connect: only
    those read its text chat (Discord's documentation, "Get Channel Messages")."""
    voice = isinstance(channel, discord.VoiceChannel | discord.StageChannel)
    return ("view_channel", "connect") if voice else ("view_channel",)


def is_private(channel: discord.abc.GuildChannel) -> bool:
    """Whether not everyone in the guild may read a channel.

    Only what Discord keeps us informed of is public: a channel that discord.py knows in its guild, and that we may read
    ourselves. One that comes with an interaction has no overwrites: everyone would seem to be allowed to view it.
    """
    known = channel.guild.get_channel(channel.id)
    return known is None or not may_view(known, channel.guild.me) or is_hidden(known)


def archived_at(metadata: Mapping[str, Any]) -> datetime | None:
    """When a thread was archived, from Discord's thread metadata; None while it is open."""
    return datetime.fromisoformat(metadata["archive_timestamp"]) if metadata["archived"] else None


def place_of(channel: object, slug: str) -> Place | None:
    """A channel as a place of the core; None for one that discord.py knows only by its id.

    A private thread is a room of its own. So is a thread whose channel we don't see: when unsure, it is private.
    """
    if isinstance(channel, discord.DMChannel):
        return Place(ConversationKind.DM, slug)
    if isinstance(channel, discord.Thread):
        if channel.is_private() or channel.parent is None:
            return Place(ConversationKind.ROOM, str(channel.id), private=True, title=channel.name)
        return Place(
            ConversationKind.THREAD,
            str(channel.parent_id),
            thread=str(channel.id),
            title=channel.name,
            room_private=is_private(channel.parent),
        )
    if isinstance(channel, discord.abc.GuildChannel):
        return Place(ConversationKind.ROOM, str(channel.id), private=is_private(channel), title=channel.name)
    return None


def incoming_of(message: discord.Message, place: Place, me: discord.ClientUser, slugs: Sequence[str]) -> Incoming:
    """A message as the core receives it. The first of `slugs` is the agent that this bot is.

    The workspace of a DM is not settled yet: it is `dm`.
    """
    author = message.author
    admin = isinstance(author, discord.Member) and _is_admin(author.guild_permissions)
    return Incoming(
        adapter=PLATFORM,
        workspace=str(message.guild.id) if message.guild else DM_WORKSPACE,
        place=place,
        user=str(author.id),
        user_name=author.display_name,
        id=str(message.id),
        text=text_of(message, me, slugs),
        at=message.created_at,
        attachments=tuple(map(_attachment, files_of(message))),
        mentions=mentions_of(message, me),
        addressed_agents=(slugs[0],) if _addresses_bot(message, me) else (),
        sender_is_admin=admin,
        sender_trust=Trust.TOOL if is_automatic(message) else trust_of(author, message.guild),
        trust_stated=_is_stated(author, message.guild),
        reply_to=_reply_to(message),
        channel=str(message.channel.id),
    )


def _reply_to(message: discord.Message) -> str | None:
    """The id of the message that this one replies to; a forwarded message replies to none."""
    if message.type is not discord.MessageType.reply or message.reference is None:
        return None
    return None if message.reference.message_id is None else str(message.reference.message_id)


def _attachment(file: discord.Attachment) -> Attachment:
    return Attachment(file.filename, file.content_type or "", "", file.size, file.url, file.duration or 0)


def _is_admin(permissions: discord.Permissions) -> bool:
    return permissions.administrator or permissions.manage_guild


def manages(channel: object, permissions: discord.Permissions) -> bool:
    """Whether someone may manage the channel; of a private thread, which is a room of its own, its threads."""
    own = isinstance(channel, discord.Thread) and channel.is_private()
    return permissions.manage_channels or (own and permissions.manage_threads)


def trust_of(author: discord.abc.User, guild: discord.Guild | None) -> Trust:
    """How far an author is trusted. Another bot is a tool; who has no role is a guest, if the guild gives roles.

    Who may manage the guild is a member. So is everyone in a guild without roles of its own, and in a DM, where only
    the author reads. Whose roles are not known is a guest.
    """
    if author.bot:
        return Trust.TOOL
    if guild is None or not any(map(_is_given, guild.roles)):
        return Trust.MEMBER
    if not isinstance(author, discord.Member):
        return Trust.GUEST
    trusted = _is_admin(author.guild_permissions) or any(map(_is_given, author.roles))
    return Trust.MEMBER if trusted else Trust.GUEST


def _is_stated(author: discord.abc.User, guild: discord.Guild | None) -> bool:
    """Whether Discord says what an author is to a guild. In a DM, and of somebody whose roles it leaves out, it does
    not."""
    return guild is not None and (isinstance(author, discord.Member) or not any(map(_is_given, guild.roles)))


def _is_given(role: discord.Role) -> bool:
    """Whether people give this role to each other: it is neither @everyone nor one of a bot or an integration."""
    return not (role.is_default() or role.managed)


def command_of(interaction: discord.Interaction, place: Place, text: str) -> Incoming:
    """A command as the core receives it."""
    user = interaction.user
    return Incoming(
        adapter=PLATFORM,
        workspace=str(interaction.guild_id or DM_WORKSPACE),
        place=place,
        user=str(user.id),
        user_name=user.display_name,
        id=str(interaction.id),
        text=text,
        at=interaction.created_at,
        sender_is_admin=interaction.guild_id is not None and _is_admin(interaction.permissions),
        sender_is_room_admin=interaction.guild_id is not None and manages(interaction.channel, interaction.permissions),
        sender_trust=trust_of(user, interaction.guild),
        trust_stated=_is_stated(user, interaction.guild),
    )


def mentions_of(message: discord.Message, me: discord.ClientUser) -> tuple[str, ...]:
    """The ids of the people who are mentioned in the text, without the bot."""
    named = {int(id) for kind, id, _ in _TOKEN.findall(message.content) if kind in ("@", "@!")}
    return tuple(str(user.id) for user in message.mentions if user.id in named and user.id != me.id)


def text_of(message: discord.Message, me: discord.ClientUser, slugs: Sequence[str]) -> str:
    """The text as people read it, with names instead of ids, the agent's slug where the bot is mentioned, and below it
    the words that stand outside of it: those address nobody."""
    shown = _shown(message.content, message, me, slugs)
    outside = _shown(outside_words(message.content, _outside(message)), message, me, slugs)
    return "\n".join(filter(None, (shown, unaddressed(outside, slugs))))


def _shown(text: str, message: discord.Message, me: discord.ClientUser, slugs: Sequence[str]) -> str:
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
            return f"@{slugs[0]}" if id in roles and _is_bot_role(roles[id], me) else _role_name(roles.get(id), slugs)
        return f"@{slugs[0]}" if id == me.id else _mention(people.get(id, "someone"), slugs)

    return with_times(_TOKEN.sub(read, text))


def _outside(message: discord.Message) -> Outside:
    """What a message has besides its content."""
    polls = [] if message.poll is None else [message.poll]
    return Outside(
        tuple(map(_card, message.embeds)),
        tuple((str(poll.question), tuple(str(each.text) for each in poll.answers)) for poll in polls),
        tuple(sticker.name for sticker in message.stickers),
        tuple(component_words(message.components)) if is_automatic(message) else (),
        tuple(map(_forwarded, message.message_snapshots)),
        by_person=not is_automatic(message),
    )


def _forwarded(snapshot: discord.MessageSnapshot) -> Forwarded:
    stickers = tuple(sticker.name for sticker in snapshot.stickers)
    components = tuple(component_words(snapshot.components))
    cards = tuple(map(_card, snapshot.embeds))
    return Forwarded(snapshot.content, Outside(cards, stickers=stickers, components=components))


def files_of(message: discord.Message) -> list[discord.Attachment]:
    """The files of a message, and those that it forwards."""
    return [*message.attachments, *(file for snapshot in message.message_snapshots for file in snapshot.attachments)]


def _card(embed: discord.Embed) -> Card:
    fields = tuple((each.name or "", each.value or "") for each in embed.fields)
    author, footer = embed.author.name or "", embed.footer.text or ""
    kind = "rich" if embed.type not in PREVIEWS else str(embed.type)
    return Card(embed.title or "", embed.description or "", author, fields, footer, embed.url or "", kind)


def _role_name(role: discord.Role | None, slugs: Sequence[str]) -> str:
    return _mention("a role" if role is None else role.name, slugs)


def _mention(name: str, slugs: Sequence[str]) -> str:
    """`@name`; for a name that equals an agent's slug only `name`, which does not address the agent."""
    return name if name.casefold() in slugs else f"@{name}"


def _channel_name(message: discord.Message, id: int) -> str:
    """`#name` of a channel; a private one is named only in itself, so that a mention does not spread its name."""
    channel = message.guild.get_channel(id) if message.guild else None
    known = channel is not None and (id == message.channel.id or not is_private(channel))
    return f"#{channel.name}" if channel is not None and known else "#a channel"


def _is_bot_role(role: discord.Role, me: discord.ClientUser) -> bool:
    """Whether a role is the one that Discord creates for the bot itself."""
    return role.tags is not None and role.tags.bot_id == me.id


def _addresses_bot(message: discord.Message, me: discord.ClientUser) -> bool:
    """Whether a message mentions the bot or its role, or replies to it."""
    replied = message.reference.resolved if message.reference is not None else None
    is_reply = isinstance(replied, discord.Message) and replied.author.id == me.id
    mentioned = me.id in (user.id for user in message.mentions)
    return is_reply or mentioned or any(_is_bot_role(role, me) for role in message.role_mentions)

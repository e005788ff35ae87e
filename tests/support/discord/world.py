"""A small Discord without wires: who may see what, and the changes that people and the bot make, with their events."""

import hashlib
import re
import time
from collections.abc import Callable, Iterable

from tests.support.discord.model import (
    DM,
    EVERYDAY,
    EVERYTHING,
    HAS_THREAD,
    JSON,
    NOTHING,
    PRIVATE_THREAD,
    PUBLIC_THREAD,
    REPLY,
    THREAD_CREATED,
    THREAD_STARTER,
    VOICE,
    Attachment,
    Channel,
    Event,
    Guild,
    Ids,
    Interaction,
    Message,
    Permission,
    User,
)


class World:
    """Everything that exists, and the changes that people and the bot make; each change emits its events."""

    def __init__(self, emit: Callable[[Event], None], now: Callable[[], float] = time.time) -> None:
        self.emit, self.now = emit, now
        self.ids = Ids(now)
        self.users: dict[int, User] = {}
        self.guilds: dict[int, Guild] = {}
        self.channels: dict[int, Channel] = {}
        self.attachments: dict[int, Attachment] = {}
        self.interactions: dict[str, Interaction] = {}
        self.commands: dict[int | None, list[JSON]] = {None: []}  # by guild; None: global
        self.cdn = ""
        self.bot = self.add_user("Nexus", bot=True)
        self.application_id = self.ids.next()  # other than the bot's own id, as old applications have it

    def add_user(self, name: str, *, bot: bool = False) -> User:
        user = User(self.ids.next(), name, bot)
        self.users[user.id] = user
        return user

    def dm(self, user: User) -> Channel:
        for channel in self.channels.values():
            if channel.kind == DM and user in channel.recipients:
                return channel
        channel = Channel(self.ids.next(), DM, recipients=[user, self.bot])
        self.channels[channel.id] = channel
        return channel

    def permissions(self, channel: Channel, user: User) -> Permission:
        """What one may do in a channel, by Discord's own algorithm; nothing at all if one may not see it."""
        if channel.guild is None:
            return EVERYDAY if user in channel.recipients else NOTHING
        member = channel.guild.members.get(user.id)
        if member is None:
            return NOTHING
        everyone = channel.guild.id
        allowed = channel.guild.roles[everyone].permissions
        for role in member.roles:
            allowed |= role.permissions
        if user is channel.guild.owner or Permission.ADMINISTRATOR in allowed:
            return EVERYTHING
        home = channel.parent if channel.is_thread and channel.parent else channel
        for ids in ([everyone], [r.id for r in member.roles], [user.id]):
            written = [home.overwrites[i] for i in ids if i in home.overwrites]
            for _, _, deny in written:
                allowed &= ~deny
            for _, allow, _ in written:
                allowed |= allow
        outside = channel.kind == PRIVATE_THREAD and user.id not in channel.thread_members
        if Permission.VIEW_CHANNEL not in allowed or (outside and Permission.MANAGE_THREADS not in allowed):
            return NOTHING
        return allowed

    def sees(self, channel: Channel, user: User | None = None) -> bool:
        return Permission.VIEW_CHANNEL in self.permissions(channel, user or self.bot)

    def reads(self, channel: Channel, user: User | None = None) -> bool:
        """Whether one may read what is written there: in a voice channel, who may connect to it."""
        allowed = self.permissions(channel, user or self.bot)
        return self.sees(channel, user) and (channel.kind != VOICE or Permission.CONNECT in allowed)

    def attach(self, channel: Channel, files: Iterable[tuple[str, bytes]]) -> list[Attachment]:
        made = []
        for filename, content in files:
            number = self.ids.next()
            signature = hashlib.sha256(f"{number}".encode()).hexdigest()
            url = f"{self.cdn}/attachments/{channel.id}/{number}/{filename}?ex=7fffffff&is=0&hm={signature}&"
            made.append(Attachment(number, filename, content, url))
            self.attachments[number] = made[-1]
        return made

    # Messages

    def emit_message(self, name: str, message: Message) -> None:
        """MESSAGE_CREATE or MESSAGE_UPDATE, with what only events carry. Ephemeral messages make none."""
        if message.ephemeral:
            return
        guild, data = message.channel.guild, message.json(self.bot) | {"channel_type": message.channel.kind}
        if guild:
            member = guild.members.get(message.author.id)
            data |= {"guild_id": str(guild.id)} | ({"member": member.json(user=False)} if member else {})
        if message.nonce is not None and name == "MESSAGE_CREATE":
            data["nonce"] = message.nonce
        self.emit(Event(name, data, guild, message.channel, message))

    def mention(self, message: Message, allowed: JSON | None) -> None:
        """Read whom the text mentions; `allowed` is the field allowed_mentions of a request, None for people."""
        parse = {"users", "roles", "everyone"} if allowed is None else set(allowed.get("parse", []))
        only = allowed or {}
        found = [self.users[i] for i in map(int, re.findall(r"<@!?(\d+)>", message.content)) if i in self.users]
        message.mentions = [u for u in dict.fromkeys(found) if "users" in parse or str(u.id) in only.get("users", [])]
        roles = dict.fromkeys(map(int, re.findall(r"<@&(\d+)>", message.content)))
        message.mention_roles = [i for i in roles if "roles" in parse or str(i) in only.get("roles", [])]
        loud = Permission.MENTION_EVERYONE in self.permissions(message.channel, message.author)
        message.mention_everyone = (
            bool(re.search(r"@(everyone|here)\b", message.content)) and loud and "everyone" in parse
        )
        pinged = message.referenced.author if message.kind == REPLY and message.referenced else None
        if pinged and pinged not in message.mentions and only.get("replied_user", allowed is None):
            message.mentions.append(pinged)

    def post(
        self, channel: Channel, message: Message, *, reply_to: Message | None = None, allowed: JSON | None = None
    ) -> Message:
        """Put a message into its channel. A thread that was archived opens again, as on Discord."""
        if reply_to:
            message.kind, message.referenced = REPLY, reply_to
            message.reference = {"type": 0, "message_id": str(reply_to.id), "channel_id": str(reply_to.channel.id)}
            message.reference |= {"guild_id": str(channel.guild.id)} if channel.guild else {}
        self.mention(message, allowed)
        if message.ephemeral:
            return message
        if channel.archived:
            self.archive(channel, archived=False)
        channel.messages[message.id] = message
        self.emit_message("MESSAGE_CREATE", message)
        return message

    def edit(self, message: Message, content: str, allowed: JSON | None = None) -> None:
        message.content, message.edited = content, self.now()
        message.edits.append((time.monotonic(), content))
        self.mention(message, allowed)
        self.emit_message("MESSAGE_UPDATE", message)

    def delete(self, messages: list[Message]) -> None:
        """One message, or several of one channel at once, which Discord reports as a single event."""
        channel = messages[0].channel
        for message in messages:
            message.deleted = True
            channel.messages.pop(message.id, None)
        where = {"channel_id": str(channel.id)} | ({"guild_id": str(channel.guild.id)} if channel.guild else {})
        ids = [str(m.id) for m in messages]
        if len(ids) > 1:
            self.emit(Event("MESSAGE_DELETE_BULK", {"ids": ids, **where}, channel.guild, channel))
        elif not messages[0].ephemeral:
            self.emit(Event("MESSAGE_DELETE", {"id": ids[0], **where}, channel.guild, channel))

    def react(self, message: Message, user: User, emoji: str, *, add: bool = True) -> None:
        users = message.reactions.setdefault(emoji, [])
        if (user in users) == add:
            return
        (users.append if add else users.remove)(user)
        if not users:
            del message.reactions[emoji]
        guild, channel = message.channel.guild, message.channel
        data: JSON = {"user_id": str(user.id), "channel_id": str(channel.id), "message_id": str(message.id)}
        data |= {"emoji": {"id": None, "name": emoji}, "burst": False, "type": 0}
        data |= {"message_author_id": str(message.author.id)}
        if guild:
            data |= {"guild_id": str(guild.id)}
        if guild and add and user.id in guild.members:
            data |= {"member": guild.members[user.id].json()}
        self.emit(Event("MESSAGE_REACTION_ADD" if add else "MESSAGE_REACTION_REMOVE", data, guild, channel))

    # Rooms

    def update_channel(self, channel: Channel, name: str = "CHANNEL_UPDATE") -> None:
        self.emit(Event(name, channel.json(self.bot), channel.guild, channel))

    def start_thread(
        self, parent: Channel, name: str, owner: User, *, private: bool = False, on: Message | None = None
    ) -> Channel:
        """A thread, on a message (it then has that message's id) or by itself."""
        kind = PRIVATE_THREAD if private else PUBLIC_THREAD
        thread = Channel(on.id if on else self.ids.next(), kind, name, parent.guild, parent, owner)
        thread.thread_members[owner.id] = self.now()
        self.channels[thread.id] = thread
        data = thread.json(self.bot) | {"newly_created": True}
        self.emit(Event("THREAD_CREATE", data, thread.guild, thread))
        reference: JSON = {"type": 0, "channel_id": str(parent.id if on else thread.id)}
        if on:
            on.thread, on.flags = thread, on.flags | HAS_THREAD
            self.emit_message("MESSAGE_UPDATE", on)
            reference |= {"message_id": str(on.id)}
            starter = Message(self.ids.next(), thread, owner, "", THREAD_STARTER, reference=reference, referenced=on)
            self.post(thread, starter)
        elif not private:
            note = Message(self.ids.next(), parent, owner, name, THREAD_CREATED, reference=reference)
            self.post(parent, note)
        return thread

    def change_thread_member(self, thread: Channel, user: User, *, join: bool) -> None:
        """Someone joins, is added, leaves or is removed. The bot's own way into a thread is THREAD_CREATE."""
        if (user.id in thread.thread_members) == join:
            return
        assert thread.guild
        data: JSON = {"id": str(thread.id), "guild_id": str(thread.guild.id)}
        if join:
            thread.thread_members[user.id] = self.now()
            if user is self.bot:
                self.update_channel(thread, "THREAD_CREATE")
            member = {"member": thread.guild.members[user.id].json(), "presence": None}
            data |= {"added_members": [thread.thread_member_json(user.id) | member]}
        else:
            del thread.thread_members[user.id]
            data |= {"removed_member_ids": [str(user.id)]}
        data |= {"member_count": min(len(thread.thread_members), 50)}
        seen_by_bot = None if user is self.bot else thread  # of its own removal the bot is told
        self.emit(Event("THREAD_MEMBERS_UPDATE", data, thread.guild, seen_by_bot))

    def archive(self, thread: Channel, *, archived: bool = True) -> None:
        thread.archived, thread.archived_at = archived, self.now()
        self.update_channel(thread, "THREAD_UPDATE")

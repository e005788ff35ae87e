"""Reads the JSON of DiscordChatExporter (a file, a folder or a zip of files) as the Discord adapter would have received
the same messages.

Such a file does not say who may view its channel. A private thread is private. A channel's privacy is known from the
adapter, named by the person who imports (`public`), or asked of Discord; otherwise the channel is taken to be private.
"""

import mimetypes
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from bot.discord.words import Card, Forwarded, Outside, component_words, outside_words, poll_words, with_times
from bot.importers.archive import Archive, NotJson
from bot.importers.export import (
    AGENTS_OWN,
    BETWEEN_PEOPLE,
    EVERY_ROOM,
    MAX_FILE_BYTES,
    MIXED,
    NOTICES,
    UNKNOWN_HOME,
    UNKNOWN_PLACE,
    FileOfExport,
    LeftOut,
    MessageOfExport,
    RoomOfExport,
    first_error,
    odd_message,
    require_rooms,
)
from bot.importers.streamed_json import StreamedObject
from bot.script.events import Time
from composer.errors import BadInput
from composer.model import DISCORD, Attachment, ConversationKind, Incoming, Place, Trust

# The exporter writes types that it does not know as numbers: poll results, answers of apps to commands, and what
# moderation has found.
_MESSAGE_TYPES: Final = frozenset(
    ("Default", "Reply", "20", "ChatInputCommand", "23", "ContextMenuCommand", "24", "AutoModerationAction", "46")
)
_TOKEN = re.compile(r"<(@!?|@&|#)(\d+)>|<a?(:\w+:)\d+>")
_Id = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    Field(pattern=r"^\d{1,20}$"),
]


class _WithoutNull(BaseModel):
    """An object of an export, in which what is null is not there."""

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: Any) -> Any:
        return {key: each for key, each in value.items() if each is not None} if isinstance(value, dict) else value


class _Guild(_WithoutNull):
    id: _Id


class _DiscordChannel(_WithoutNull):
    id: _Id
    type: str
    name: str = ""
    categoryId: _Id | None = None  # of a thread: its channel


class _Person(_WithoutNull):
    id: _Id
    name: str = ""
    nickname: str | None = None
    isBot: bool = False
    roles: Any = None

    @property
    def role_names(self) -> dict[str, str]:
        """The names of their roles, by id."""
        found = self.roles if isinstance(self.roles, list) else []
        return {str(role.get("id")): str(role["name"]) for role in found if isinstance(role, dict) and role.get("name")}

    @property
    def display_name(self) -> str:
        """The name that Discord shows."""
        return self.nickname or self.name or self.id


class _DiscordFile(_WithoutNull):
    fileName: str
    url: str = ""  # at Discord, or relative to the export where the exporter saved the file
    fileSizeBytes: Annotated[int, Field(ge=0, le=MAX_FILE_BYTES)] = 0

    @property
    def is_away(self) -> bool:
        """Whether it was left at Discord."""
        return self.url.startswith(("https://", "http://"))


class _NamedThing(_WithoutNull):
    name: str = ""


class _Footer(_WithoutNull):
    text: str = ""


class _Field(_WithoutNull):
    name: str = ""
    value: str = ""


class _Embed(_WithoutNull):
    title: str = ""
    url: str = ""
    description: str = ""
    author: _NamedThing = _NamedThing()
    footer: _Footer = _Footer()
    fields: list[_Field] = []

    def card(self) -> Card:
        """The embed as the adapter reads it."""
        fields = tuple((each.name, each.value) for each in self.fields)
        return Card(self.title, self.description, self.author.name, fields, self.footer.text, self.url)


class _Forwarded(_WithoutNull):
    content: str = ""
    attachments: list[_DiscordFile] = []
    embeds: list[_Embed] = []
    stickers: list[_NamedThing] = []
    components: list[Any] = []
    poll: dict[str, Any] = {}

    def outside(self, *, by_person: bool, forwarded: Sequence[Forwarded] = ()) -> Outside:
        """What it has besides its content, as the adapter reads it."""
        return Outside(
            [each.card() for each in self.embeds],
            [poll_words(self.poll)] if self.poll else (),
            tuple(sticker.name for sticker in self.stickers),
            () if by_person else tuple(component_words(self.components)),
            forwarded,
            by_person,
        )


class _DiscordMessage(_Forwarded):
    id: _Id
    type: str
    timestamp: Time
    author: _Person
    mentions: list[_Person] = []
    forwardedMessage: _Forwarded | None = None

    @property
    def text(self) -> str:
        """The message's own text, and below it the words that stand outside of it."""
        each = self.forwardedMessage
        forwarded = [] if each is None else [Forwarded(each.content, each.outside(by_person=False))]
        outside = self.outside(by_person=not self.author.isBot, forwarded=forwarded)
        return "\n".join(filter(None, (self.content, outside_words(self.content, outside))))

    @property
    def files(self) -> list[_DiscordFile]:
        """Its files, and those that it forwards."""
        return self.attachments + ([] if self.forwardedMessage is None else self.forwardedMessage.attachments)


_GUILD: Final = TypeAdapter(_Guild)
_CHANNEL: Final = TypeAdapter(_DiscordChannel)


@dataclass(frozen=True, slots=True)
class _ExportPart:
    """A file with the messages of one channel, thread or private conversation."""

    name: str
    guild: str
    channel: _DiscordChannel

    @property
    def kind(self) -> str:
        """room, thread, closed (a private thread), dm, group, or "" for an unknown kind."""
        type = self.channel.type
        if type == "GuildPrivateThread" or (type.endswith("Thread") and self.channel.categoryId is None):
            return "closed"  # so is a thread whose channel is unknown: when unsure, private
        if type in ("GuildPublicThread", "GuildNewsThread"):
            return "thread"
        if type in ("DirectTextChat", "DirectGroupTextChat"):
            return "dm" if type == "DirectTextChat" else "group"
        return "room" if type.startswith("Guild") else ""

    @property
    def order(self) -> tuple[str, bool, int, str]:
        """The sort key: guild by guild, threads after their channels."""
        return self.guild, self.kind == "thread", int(self.channel.id), self.name

    @property
    def room(self) -> str:
        """The room that the file is about, for a thread its channel."""
        return (self.channel.categoryId or "") if self.kind == "thread" else self.channel.id


class DiscordExport:
    """The files of DiscordChatExporter as a PlatformExport (bot/importers/export.py)."""

    platform = DISCORD

    def __init__(
        self,
        archives: Sequence[Archive],
        slugs: Sequence[str],
        *,
        workspace: str | None = None,
        room: str | None = None,
        bot: str | None = None,
        public: Collection[str] = (),
        guilds: Sequence[str] = (),
    ) -> None:
        """The first of `slugs` is the agent of the bot user `bot`.

        `public` are channels, by name or id, that everyone in their guild may view. `guilds` are preferred where the
        private messages of a person may belong to several. `room`, the name or id of a channel or a new name, is where
        everything is loaded. Raises BadInput, with the file.
        """
        self._roles: dict[str, str] = {}
        self._slugs = slugs
        self._bot = bot
        self._workspace = workspace
        self._guilds = guilds
        self.left_out = LeftOut(sum(archive.junk for archive in archives))
        self._parts = [(archive, part) for archive in archives for part in _parts(archive, self.left_out)]
        self._parts.sort(key=lambda entry: entry[1].order)
        if not self._parts:
            if self.left_out.odd:
                raise BadInput(self.left_out.odd[0])
            names = ", ".join(str(archive.path) for archive in archives)
            raise BadInput(f"{names}: there is no JSON file of DiscordChatExporter here.")
        self._public = public
        self._target = None if room is None else self._room_named(room)
        self.people: Mapping[str, str] = {}
        self.rooms: dict[str, RoomOfExport] = self._rooms()
        require_rooms(public, {room.title for room in self.rooms.values()}, self.rooms)
        self._members: dict[str, set[str]] | None = None

    @property
    def guilds(self) -> list[str]:
        """The guilds whose channels the export contains."""
        return sorted({part.guild for _, part in self._parts if part.kind in ("room", "thread", "closed")})

    @property
    def has_unknown_privacy(self) -> bool:
        """Whether it is unknown of some channels who may view them."""
        return any(room.private is None for room in self.rooms.values())

    def set_private(self, private: Mapping[str, bool]) -> None:
        """Set which channels are private now, as Discord says."""
        for id, room in self.rooms.items():
            if room.private is None and id in private:
                self.rooms[id] = RoomOfExport(id, room.title, private[id], room.members)

    def _room_named(self, room: str) -> str:
        channels = (part.channel for _, part in self._parts if part.kind in ("room", "closed"))
        return next((channel.id for channel in channels if room in (channel.id, channel.name)), room)

    def _rooms(self) -> dict[str, RoomOfExport]:
        names = {part.channel.id: part.channel.name for _, part in self._parts}
        rooms = {}
        for _, part in self._parts:
            if part.kind in ("room", "thread", "closed"):
                id, title = part.room, names.get(part.room, "")
                public = EVERY_ROOM in self._public or id in self._public or title in self._public
                named = part.kind != "closed" and (id in self._public or title in self._public)
                rooms[id] = RoomOfExport(
                    id, title, True if part.kind == "closed" else False if public else None, named_public=named
                )
        if self._target is not None and self._target not in rooms:
            rooms[self._target] = RoomOfExport(self._target, self._target, private=False)
        return rooms

    def messages(self) -> Iterator[MessageOfExport]:
        """All messages: channel by channel, threads after them, oldest first."""
        for archive, part in self._parts:
            reason = self._exclusion(archive, part)
            home = self._workspace or part.guild
            if part.kind == "dm" and not reason:
                found = self._home_of(archive, part)
                home, reason = found or "", "" if found else UNKNOWN_HOME
            room = part.channel.name or part.channel.id
            for position, message in _messages(archive, part):
                if isinstance(message, BadInput):
                    yield odd_message(message, room)
                elif reason:
                    yield MessageOfExport(position, reason=reason, room=room)
                elif message.author.id == self._bot:
                    yield MessageOfExport(position, reason=AGENTS_OWN, room=room)
                elif message.type not in _MESSAGE_TYPES or not (message.text.strip() or message.files):
                    yield MessageOfExport(position, reason=NOTICES, room=room)
                else:
                    files = tuple(_stored_file(file, part, archive) for file in message.files)
                    yield MessageOfExport(position, self._incoming(message, part, home), room=room, files=files)

    def _exclusion(self, archive: Archive, part: _ExportPart) -> str:
        """Why nothing of a file is loaded; "" where it is."""
        match part.kind:
            case "":
                return UNKNOWN_PLACE
            case "group":
                return BETWEEN_PEOPLE
            case "dm":
                return "" if self._bot and self._bot in self._authors(archive, part) else BETWEEN_PEOPLE
        if self._target not in (None, part.room) and self.rooms[part.room].private is not False:
            return MIXED
        return ""

    def _authors(self, archive: Archive, part: _ExportPart) -> set[str]:
        found = (message for _, message in _messages(archive, part))
        return {message.author.id for message in found if not isinstance(message, BadInput)}

    def _home_of(self, archive: Archive, part: _ExportPart) -> str | None:
        """The workspace of a person's private messages, as for the adapter: the first guild that they are in."""
        if self._workspace:
            return self._workspace
        if self._members is None:
            self._members = {}
            for each_archive, each in self._parts:
                if each.kind in ("room", "thread", "closed"):
                    self._members.setdefault(each.guild, set()).update(self._authors(each_archive, each))
        people = self._authors(archive, part) - {self._bot}
        order = [*self._guilds, *sorted(self._members.keys() - set(self._guilds), key=int)]
        return next((guild for guild in order if people & self._members.get(guild, set())), None)

    def _incoming(self, message: _DiscordMessage, part: _ExportPart, home: str) -> Incoming:
        """The message as bot/discord/reading.py would have made it."""
        moved = self._target not in (None, part.room)
        return Incoming(
            DISCORD,
            home,
            self._place(part),
            message.author.id,
            message.author.display_name,
            f"{part.channel.id}:{message.id}" if moved and part.kind != "dm" else message.id,
            self._text(message, part),
            message.timestamp,
            tuple(map(_attachment, message.files)),
            self._mentioned(message),
            sender_trust=Trust.TOOL if message.author.isBot else Trust.MEMBER,
        )

    def _place(self, part: _ExportPart) -> Place:
        if part.kind == "dm":
            return Place(ConversationKind.DM, self._slugs[0])
        room = self._target or part.room
        title = part.channel.name or None
        if part.kind == "thread":
            return Place(ConversationKind.THREAD, room, thread=part.channel.id, title=title)
        return Place(ConversationKind.ROOM, room, title=title if room == part.room else None)

    def _mentioned(self, message: _DiscordMessage) -> tuple[str, ...]:
        """The people whom the text mentions, by id or (as the exporter writes it) by name, without the bot."""
        own = message.content
        by_id = {id for kind, id, _ in _TOKEN.findall(own) if kind in ("@", "@!")}
        named = (p.id for p in message.mentions if p.id in by_id or f"@{p.display_name}" in own)
        return tuple(dict.fromkeys(id for id in named if id != self._bot))

    def _text(self, message: _DiscordMessage, part: _ExportPart) -> str:
        """The text as people read it: names in place of ids, and the agent's slug in place of the bot's name."""
        people = {person.id: person.display_name for person in message.mentions}
        for person in (message.author, *message.mentions):
            self._roles |= person.role_names  # of those who have written so far: the export has no list of roles

        def read(found: re.Match[str]) -> str:
            kind, id, emoji = found.groups()
            if emoji:
                return str(emoji)
            if kind == "#":
                return self._channel_name(id, part)
            if kind == "@&":
                return self._named(self._roles.get(id, "a role"))
            return f"@{self._slugs[0]}" if id == self._bot else self._named(people.get(id, "someone"))

        text = with_times(_TOKEN.sub(read, message.text))
        for person in sorted(message.mentions, key=lambda person: len(person.display_name), reverse=True):
            if person.id == self._bot:
                text = text.replace(f"@{person.display_name}", f"@{self._slugs[0]}")
            elif person.display_name.casefold() in self._slugs:
                text = text.replace(f"@{person.display_name}", person.display_name)
        return text

    def _named(self, name: str) -> str:
        """`@name`, or `name` for a person whose name is an agent's slug, so that it doesn't address the agent."""
        return name if name.casefold() in self._slugs else f"@{name}"

    def _channel_name(self, id: str, part: _ExportPart) -> str:
        """`#name` of a channel that every reader may know."""
        room = self.rooms.get(id)
        known = room is not None and room.title and (id == part.channel.id or room.private is False)
        return f"#{room.title}" if room is not None and known else "#a channel"


def _attachment(file: _DiscordFile) -> Attachment:
    """An attached file, with its address where it is still at Discord."""
    address = file.url if file.is_away else ""
    return Attachment(file.fileName, mimetypes.guess_type(file.fileName)[0] or "", "", file.fileSizeBytes, address)


def _stored_file(file: _DiscordFile, part: _ExportPart, archive: Archive) -> FileOfExport | None:
    """Where a file lies in the export; None if it is not there."""
    if file.is_away:
        return None
    folder, paths = posixpath.dirname(part.name), (file.url.replace("\\", "/"), unquote(file.url))
    return FileOfExport.found(archive, (posixpath.normpath(posixpath.join(folder, path)) for path in paths))


def _parts(archive: Archive, left_out: LeftOut) -> Iterator[_ExportPart]:
    """The files of an archive that are exports, recognised by their first fields. Others are counted, and those that
    should be one and can't be read are named."""
    names = [name for name in archive.names if name.lower().endswith(".json") and not _is_media(name)]
    left_out.files += 0 if not names else len(archive.names) - len(names)
    for name in names or archive.names[:1]:
        where = archive.where(name)
        header: dict[str, Any] = {}
        try:
            with archive.open(name) as file:
                for key, value in StreamedObject(file, where).fields("messages"):
                    if key == "messages":
                        break
                    header[key] = value
            if not {"guild", "channel"} <= header.keys():
                if len(names) < 2:
                    left_out.odd.append(
                        f"{where}: this is not JSON of DiscordChatExporter: it has no guild and channel."
                    )
                else:
                    left_out.files += 1
                continue
            yield _ExportPart(
                name, _GUILD.validate_python(header["guild"]).id, _CHANNEL.validate_python(header["channel"])
            )
        except ValidationError as error:
            left_out.odd.append(f"{where}: {first_error(error)}")
        except NotJson as error:
            left_out.odd.append(str(error))


def _is_media(name: str) -> bool:
    """Whether a file is in a folder of attachments that the exporter wrote (`town.json_Files/`)."""
    return any(folder.endswith("_Files") for folder in name.split("/")[:-1])


def _messages(archive: Archive, part: _ExportPart) -> Iterator[tuple[str, _DiscordMessage | BadInput]]:
    """The messages of a file with their positions, in its order, which is oldest first, or why one can't be read."""
    where, number = archive.where(part.name), 0
    try:
        with archive.open(part.name) as file:
            for key, value in StreamedObject(file, where).fields("messages"):
                if key != "messages":
                    continue
                number += 1
                position = f"{where}: message {number}"
                try:
                    yield position, _DiscordMessage.model_validate(value)
                except ValidationError as error:
                    yield position, BadInput(f"{position}: {first_error(error)}")
    except NotJson as error:
        yield where, BadInput(f"{error} What stands before that is read." if number else str(error))

"""What DiscordChatExporter wrote as JSON (a file, a folder or a zip of files), read as the Discord door would have
heard it.

Such a file does not say who may view its channel. A private thread is private; of a channel, Nexus knows it from its
door, or is told (`public`, or by Discord), or takes it to be private.
"""

import mimetypes
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Annotated, Any, Final
from urllib.parse import unquote

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter, ValidationError

from bot.importers.archive import Archive
from bot.importers.export import BETWEEN_PEOPLE, MIXED, NOTICES, OWN, UNKNOWN_HOME, UNKNOWN_PLACE, Entry, Room
from bot.importers.slack_export import sentence_of
from bot.importers.streamed_json import StreamedObject
from bot.platform.text_files import MAX_TEXT_FILE_BYTES, decode_text, is_text_file
from composer.errors import BadInput
from composer.model import Attachment, ConversationKind, Incoming, Place

PLATFORM: Final = "discord"
EVERY: Final = "*"  # channel, in `public`
_SPOKEN: Final = ("Default", "Reply")
_TOKEN = re.compile(r"<(@!?|@&|#)(\d+)>|<a?(:\w+:)\d+>")
_Id = Annotated[str, Field(pattern=r"^\d{1,20}$")]


class _Guild(BaseModel):
    id: _Id


class _Channel(BaseModel):
    id: _Id
    type: str
    name: str = ""
    categoryId: _Id | None = None  # of a thread: its channel


class _Person(BaseModel):
    id: _Id
    name: str = ""
    nickname: str | None = None
    isBot: bool = False

    @property
    def called(self) -> str:
        """As Discord shows them."""
        return self.nickname or self.name or self.id


class _File(BaseModel):
    fileName: str
    url: str = ""  # Discord's, or where the exporter put the file, beside its own
    fileSizeBytes: Annotated[int, Field(ge=0)] = 0


class _Forwarded(BaseModel):
    content: str = ""


class _Message(BaseModel):
    id: _Id
    type: str
    timestamp: AwareDatetime
    content: str | None = ""
    author: _Person
    attachments: list[_File] = []
    mentions: list[_Person] = []
    forwardedMessage: _Forwarded | None = None

    @property
    def said(self) -> str:
        """What was written, or what was forwarded."""
        return self.content or (self.forwardedMessage.content if self.forwardedMessage else "")


_GUILD: Final = TypeAdapter(_Guild)
_CHANNEL: Final = TypeAdapter(_Channel)


@dataclass(frozen=True, slots=True)
class _Part:
    """A file: the messages of one channel, thread or private conversation."""

    name: str
    guild: str
    channel: _Channel

    @property
    def kind(self) -> str:
        """room, thread, closed (a private thread), dm, group or "" (unknown)."""
        type = self.channel.type
        if type == "GuildPrivateThread" or (type.endswith("Thread") and self.channel.categoryId is None):
            return "closed"  # a thread whose channel is unknown too: when unsure, closed
        if type in ("GuildPublicThread", "GuildNewsThread"):
            return "thread"
        if type in ("DirectTextChat", "DirectGroupTextChat"):
            return "dm" if type == "DirectTextChat" else "group"
        return "room" if type.startswith("Guild") else ""

    @property
    def order(self) -> tuple[str, bool, int, str]:
        """Guild by guild, threads after their channels."""
        return self.guild, self.kind == "thread", int(self.channel.id), self.name

    @property
    def room(self) -> str:
        """The room that it is, or belongs to."""
        return (self.channel.categoryId or "") if self.kind == "thread" else self.channel.id


class DiscordExport:
    """Files of DiscordChatExporter (bot.importers.export.Export)."""

    platform = PLATFORM

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
        """The first of `slugs` is the agent that the bot with the id `bot` is. `public` are channels, by name or id,
        that everyone in their guild may view. `guilds` stand first where someone's private messages may belong to
        several. `room`, a channel's name or id, or a new name, takes everything. Raises BadInput, naming the file."""
        self._slugs = slugs
        self._bot = bot
        self._workspace = workspace
        self._guilds = guilds
        self._parts = [(archive, part) for archive in archives for part in _parts(archive)]
        self._parts.sort(key=lambda entry: entry[1].order)
        if not self._parts:
            names = ", ".join(str(archive.path) for archive in archives)
            raise BadInput(f"{names}: there is no JSON of DiscordChatExporter here.")
        self._public = public
        self._target = None if room is None else self._room_named(room)
        self.people: Mapping[str, str] = {}
        self.rooms: dict[str, Room] = self._rooms()
        self._members: dict[str, set[str]] | None = None

    @property
    def guilds(self) -> list[str]:
        """The guilds whose channels are in it."""
        return sorted({part.guild for _, part in self._parts if part.kind in ("room", "thread", "closed")})

    @property
    def asks(self) -> bool:
        """Whether there are channels of which nobody has said who may view them."""
        return any(room.private is None for room in self.rooms.values())

    def told(self, private: Mapping[str, bool]) -> None:
        """Discord says which of the channels are private now."""
        for id, room in self.rooms.items():
            if room.private is None and id in private:
                self.rooms[id] = Room(id, room.title, private[id], room.members)

    def _room_named(self, room: str) -> str:
        here = (part.channel for _, part in self._parts if part.kind in ("room", "closed"))
        return next((channel.id for channel in here if room in (channel.id, channel.name)), room)

    def _rooms(self) -> dict[str, Room]:
        names = {part.channel.id: part.channel.name for _, part in self._parts}
        rooms = {}
        for _, part in self._parts:
            if part.kind in ("room", "thread", "closed"):
                id, title = part.room, names.get(part.room, "")
                public = EVERY in self._public or id in self._public or title in self._public
                named = part.kind != "closed" and (id in self._public or title in self._public)
                rooms[id] = Room(id, title, True if part.kind == "closed" else False if public else None, opened=named)
        if self._target is not None and self._target not in rooms:
            rooms[self._target] = Room(self._target, self._target, private=False)
        return rooms

    def entries(self) -> Iterator[Entry]:
        """Channel by channel, threads after them, oldest first."""
        for archive, part in self._parts:
            why = self._closed_to_us(archive, part)
            home = self._workspace or part.guild
            if part.kind == "dm" and not why:
                found = self._home_of(archive, part)
                home, why = found or "", "" if found else UNKNOWN_HOME
            for where, message in _messages(archive, part):
                if why:
                    yield Entry(where, why=why)
                elif message.author.id == self._bot:
                    yield Entry(where, why=OWN)
                elif message.type not in _SPOKEN or not (message.said.strip() or message.attachments):
                    yield Entry(where, why=NOTICES)
                else:
                    yield Entry(where, self._incoming(message, part, home, archive))

    def _closed_to_us(self, archive: Archive, part: _Part) -> str:
        """Why nothing of a file is loaded, if so."""
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

    def _authors(self, archive: Archive, part: _Part) -> set[str]:
        return {message.author.id for _, message in _messages(archive, part)}

    def _home_of(self, archive: Archive, part: _Part) -> str | None:
        """The workspace of someone's private messages, as the door has it: the first guild that they are in."""
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

    def _incoming(self, message: _Message, part: _Part, home: str, archive: Archive) -> Incoming:
        """As bot.discord.reading makes it of the same message."""
        moved = self._target not in (None, part.room)
        return Incoming(
            PLATFORM,
            home,
            self._place(part),
            message.author.id,
            message.author.called,
            f"{part.channel.id}:{message.id}" if moved and part.kind != "dm" else message.id,
            self._text(message, part),
            message.timestamp.astimezone(UTC),
            tuple(_attachment(file, part, archive) for file in message.attachments),
            self._mentioned(message),
        )

    def _place(self, part: _Part) -> Place:
        if part.kind == "dm":
            return Place(ConversationKind.DM, self._slugs[0])
        room = self._target or part.room
        title = part.channel.name or None
        if part.kind == "thread":
            return Place(ConversationKind.THREAD, room, thread=part.channel.id, title=title)
        return Place(ConversationKind.ROOM, room, title=title if room == part.room else None)

    def _mentioned(self, message: _Message) -> tuple[str, ...]:
        """Who is mentioned in the text, by id or (as the exporter writes it) by name, without the bot."""
        said = {id for kind, id, _ in _TOKEN.findall(message.said) if kind in ("@", "@!")}
        named = (p.id for p in message.mentions if p.id in said or f"@{p.called}" in message.said)
        return tuple(dict.fromkeys(id for id in named if id != self._bot))

    def _text(self, message: _Message, part: _Part) -> str:
        """The text as people read it: names in place of ids, the agent's slug where the bot is meant."""
        people = {person.id: person.called for person in message.mentions}

        def read(found: re.Match[str]) -> str:
            kind, id, emoji = found.groups()
            if emoji:
                return str(emoji)
            if kind == "#":
                return self._channel_name(id, part)
            if kind == "@&":
                return "@a role"
            return f"@{self._slugs[0]}" if id == self._bot else self._named(people.get(id, "someone"))

        text = _TOKEN.sub(read, message.said)
        for person in sorted(message.mentions, key=lambda person: len(person.called), reverse=True):
            if person.id == self._bot:
                text = text.replace(f"@{person.called}", f"@{self._slugs[0]}")
            elif person.called.casefold() in self._slugs:
                text = text.replace(f"@{person.called}", person.called)
        return text

    def _named(self, name: str) -> str:
        """`@name`, unless a person goes by an agent's slug: then it must not call the agent."""
        return name if name.casefold() in self._slugs else f"@{name}"

    def _channel_name(self, id: str, part: _Part) -> str:
        """`#name` of a channel that everyone may know of."""
        room = self.rooms.get(id)
        known = room is not None and room.title and (id == part.channel.id or room.private is False)
        return f"#{room.title}" if room is not None and known else "#a channel"


def _attachment(file: _File, part: _Part, archive: Archive) -> Attachment:
    """A file, with its text where it lies in the export and is such a file as the door reads."""
    type = mimetypes.guess_type(file.fileName)[0] or ""
    if file.url.startswith(("https://", "http://")):
        return Attachment(file.fileName, type, size=file.fileSizeBytes, address=file.url)
    content = None
    if is_text_file(file.fileName, type):
        beside = posixpath.dirname(part.name)
        for path in (file.url.replace("\\", "/"), unquote(file.url)):
            name = posixpath.normpath(posixpath.join(beside, path))
            if name in archive:
                content = archive.read(name, MAX_TEXT_FILE_BYTES)
                break
    return Attachment(file.fileName, type, "" if content is None else decode_text(content), file.fileSizeBytes)


def _parts(archive: Archive) -> Iterator[_Part]:
    """The files of an archive that are exports, by what stands at their beginning."""
    names = [name for name in archive.names if name.lower().endswith(".json") and not _is_media(name)]
    for name in names or archive.names[:1]:
        where = archive.where(name)
        told: dict[str, Any] = {}
        with archive.open(name) as file:
            for key, value in StreamedObject(file, where).fields("messages"):
                if key == "messages":
                    break
                told[key] = value
        if "guild" not in told or "channel" not in told:
            raise BadInput(f"{where}: this is no JSON of DiscordChatExporter: it has no guild and channel.")
        try:
            yield _Part(name, _GUILD.validate_python(told["guild"]).id, _CHANNEL.validate_python(told["channel"]))
        except ValidationError as error:
            raise BadInput(f"{where}: {sentence_of(error)}") from None


def _is_media(name: str) -> bool:
    """Whether a file lies where the exporter puts what was attached (`town.json_Files/`)."""
    return any(folder.endswith("_Files") for folder in name.split("/")[:-1])


def _messages(archive: Archive, part: _Part) -> Iterator[tuple[str, _Message]]:
    """The messages of a file with their places, in its order, which is that of time."""
    where, number = archive.where(part.name), 0
    with archive.open(part.name) as file:
        for key, value in StreamedObject(file, where).fields("messages"):
            if key == "messages":
                number += 1
                place = f"{where}: message {number}"
                try:
                    yield place, _Message.model_validate(value)
                except ValidationError as error:
                    raise BadInput(f"{place}: {sentence_of(error)}") from None

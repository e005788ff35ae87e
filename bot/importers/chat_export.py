"""Reads the exports of chat systems that Nexus does not connect to: what they have in common. Each format says which
channels there are, and what was posted where; all is loaded into a workspace of the terminal.

Posts come in any order, and channels are read oldest first. So they are copied into one temporary file without a name,
with 24 bytes for each in memory.
"""

import json
import mimetypes
import tempfile
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, Final

import numpy as np

from bot.importers.archive import Archive
from bot.importers.export import (
    BETWEEN_PEOPLE,
    EVERY_ROOM,
    MIXED,
    NOTICES,
    PRIVATE_TIME,
    UNKNOWN_PLACE,
    FileOfExport,
    LeftOut,
    MessageOfExport,
    RoomOfExport,
    odd_message,
    require_rooms,
)
from bot.script.places import external
from composer.errors import BadInput
from composer.model import CONSOLE, Attachment, ConversationKind, Incoming, Place, Trust
from composer.settings import DEFAULT_WORKSPACE
from composer.text.moments import moment

MAX_ROOM_NAME: Final = 80
MAX_ROOM_ID: Final = 150


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of an export by its `key` there.

    `private` None: the export doesn't say. `members` None: it doesn't say who they are. `direct`: a conversation
    between people, which is not loaded. `id` tells it from others of its name, where names are not unique.
    """

    key: str
    name: str
    private: bool | None = None
    members: tuple[str, ...] | None = None
    direct: bool = False
    workspace: str = DEFAULT_WORKSPACE
    id: str = ""


@dataclass(frozen=True, slots=True)
class ExportedPost:
    """A message of an export with its `position` (file and place). `thread` is the id of its first message, or its
    topic; `files` are names, and `paths` where they lie in the export ("": not there); `by_tool`: a bot or a webhook
    wrote it; `skip` says why it is not loaded, `error` why it can't be read."""

    position: str = ""
    channel: str = ""
    id: str = ""
    user: str = ""
    name: str = ""
    at: datetime | None = None
    text: str = ""
    thread: str | None = None
    title: str | None = None
    reply_to: str | None = None
    files: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    by_tool: bool = False
    skip: str = ""
    error: str = ""


@dataclass(slots=True)
class Contents:
    """What a format reads of its files: the channels by key, and the names of people by id. Both may grow while posts
    are read."""

    posts: Iterable[ExportedPost]
    channels: dict[str, Channel] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)
    bots: set[str] = field(default_factory=set)  # of `people`
    opened: dict[str, float] = field(default_factory=dict)  # by channel: when it was made public, in seconds since 1970
    left_out: LeftOut = field(default_factory=LeftOut)


class ChatExport:
    """An export of a format as a PlatformExport (bot/importers/export.py). Close it, or use it in a `with`."""

    platform = CONSOLE

    def __init__(
        self,
        contents: Contents,
        archives: Sequence[Archive] = (),
        *,
        workspace: str | None = None,
        room: str | None = None,
        public: Collection[str] = (),
    ) -> None:
        """Read the whole export. `workspace` takes all of it; `public` are channels, by name, that everyone may read
        where the export doesn't say; `room` is where all that is public is loaded. Raises BadInput."""
        self.left_out = contents.left_out
        self._archives = [(each, {name.partition("/")[0] for name in each.names if "/" in name}) for each in archives]
        self._workspace = workspace
        self._posts = _PostFile()
        self._posts.write(contents.posts)
        self._channels, self._opened = contents.channels, contents.opened
        self.people: Mapping[str, str] = {external(id): name for id, name in contents.people.items()}
        self._ids = _room_ids(self._channels.values(), workspace)
        names = {channel.name for channel in self._channels.values() if not channel.direct}
        require_rooms(public, names, self._ids.values())
        closed = sorted(c.name for c in self._channels.values() if c.private and not c.direct and c.name in public)
        if closed:
            raise BadInput(f"#{closed[0]} is private in the export: leave it out of --public.")
        found = {self._ids[c.key]: self._room(c, public) for c in self._channels.values() if not c.direct}
        self._target = None if room is None else next((i for i, r in found.items() if room in (i, r.title)), room)
        self.rooms: Mapping[str, RoomOfExport] = found
        if self._target is not None and self._target not in found:
            self._target = external(self._target)
            self.rooms = {**found, self._target: RoomOfExport(self._target, self._target, private=False)}

    def close(self) -> None:
        """Close the temporary file."""
        self._posts.close()

    def _room(self, channel: Channel, public: Collection[str]) -> RoomOfExport:
        named = channel.name in public or self._ids[channel.key] in public
        private = False if channel.private is None and (named or EVERY_ROOM in public) else channel.private
        members = None if channel.members is None else tuple(external(member) for member in channel.members)
        return RoomOfExport(self._ids[channel.key], channel.name, private, members, named_public=named)

    def messages(self) -> Iterator[MessageOfExport]:
        """All messages: channel by channel, oldest first."""
        for post in self._posts.read():
            channel = self._channels.get(post.channel)
            name = channel.name if channel else post.channel
            if post.error:
                yield odd_message(BadInput(post.error), name, post.position)
                continue
            reason = post.skip or self._exclusion(channel)
            if reason or channel is None or post.at is None:
                yield MessageOfExport(post.position, reason=reason, room=name)
            elif channel.private is False and post.at.timestamp() < self._opened.get(channel.key, 0):
                yield MessageOfExport(post.position, reason=PRIVATE_TIME, room=name)
            elif not post.text.strip() and not post.files:
                yield MessageOfExport(post.position, reason=NOTICES, room=name)
            else:
                files = tuple(map(self._file, post.paths)) if any(post.paths) else ()
                yield MessageOfExport(post.position, self._incoming(post, channel, post.at), room=name, files=files)

    def _file(self, path: str) -> FileOfExport | None:
        """A file of the export by its path, to which the name of a folder may be added."""
        for archive, folders in self._archives if path else ():
            if found := FileOfExport.found(archive, (path, *(f"{folder}/{path}" for folder in sorted(folders)))):
                return found
        return None

    def _exclusion(self, channel: Channel | None) -> str:
        """Why nothing of a channel is loaded; "" where it is."""
        if channel is None:
            return UNKNOWN_PLACE
        if channel.direct:
            return BETWEEN_PEOPLE
        id = self._ids[channel.key]
        return MIXED if self._target not in (None, id) and self.rooms[id].private is not False else ""

    def _incoming(self, post: ExportedPost, channel: Channel, at: datetime) -> Incoming:
        own = self._ids[channel.key]
        room = self._target or own
        title = channel.name if room == own else None
        place = Place(ConversationKind.ROOM, room, title=title)
        if post.thread is not None:
            place = Place(ConversationKind.THREAD, room, thread=post.thread, title=post.title or title)
        user = external(post.user)
        return Incoming(
            CONSOLE,
            self._workspace or channel.workspace,
            place,
            user,
            post.name or self.people.get(user) or post.user,
            post.id if room == own else f"{own}:{post.id}",
            post.text,
            at,
            tuple(Attachment(name, mimetypes.guess_type(name)[0] or "") for name in post.files),
            tuple(external(each) for each in post.mentions),
            sender_trust=Trust.TOOL if post.by_tool else Trust.MEMBER,
            reply_to=post.reply_to,
        )


def _room_ids(channels: Iterable[Channel], workspace: str | None) -> dict[str, str]:
    """The ids of rooms in the terminal, by the keys of their channels: the name, and what tells it from others."""
    listed = [channel for channel in channels if not channel.direct]
    ids = {c.key: _room_name(f"{c.name[:MAX_ROOM_NAME]}-{c.id}" if c.id else c.name) for c in listed}
    where = {c.key: (workspace or c.workspace, ids[c.key]) for c in listed}
    count = Counter(where.values())
    return {c.key: _room_name(f"{c.workspace}.{ids[c.key]}") if count[where[c.key]] > 1 else ids[c.key] for c in listed}


def _room_name(name: str) -> str:
    """A name by which a room can be called in the terminal."""
    return " ".join(external(name).replace("/", "-").split())[:MAX_ROOM_ID] or "room"


class _PostFile:
    """Posts in a temporary file, which are read back channel by channel, oldest first."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._channels, self._times, self._starts = array("q"), array("d"), array("q")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def write(self, posts: Iterable[ExportedPost]) -> None:
        """Add posts."""
        numbers: dict[str, int] = {}
        for post in posts:
            self._channels.append(numbers.setdefault(post.channel, len(numbers)))
            self._times.append(post.at.timestamp() if post.at else 0)
            self._starts.append(self._file.tell())
            self._file.write(json.dumps(_compact(post)).encode() + b"\n")

    def read(self) -> Iterator[ExportedPost]:
        """All posts."""
        columns = tuple(np.array(column) for column in (self._starts, self._times, self._channels))
        for index in np.lexsort(columns).tolist():
            self._file.seek(self._starts[index])
            yield _post(json.loads(self._file.readline()))


def _compact(post: ExportedPost) -> dict[str, object]:
    fields = {key: value for key, value in asdict(post).items() if value not in (None, "", (), False)}
    return fields | ({"at": post.at.isoformat()} if post.at else {})


def _post(line: Mapping[str, object]) -> ExportedPost:
    values: dict[str, object] = {key: tuple(v) if isinstance(v, list) else v for key, v in line.items()}
    if isinstance(values.get("at"), str):
        values["at"] = datetime.fromisoformat(str(values["at"]))
    return ExportedPost(**values)  # type: ignore[arg-type]


def lines_of(*parts: object) -> str:
    """Texts below each other, without empty ones and what is no text."""
    return "\n".join(part.strip() for part in parts if isinstance(part, str) and part.strip())


def when(value: object, unit: int = 1) -> datetime:
    """The time that a format writes: a number of `unit`ths of a second since 1970, or ISO 8601 (UTC without a zone).
    Raises BadInput for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadInput("it has no time.")
    text = str(value)
    try:
        number = float(text) / unit
    except ValueError:
        return _of_iso(text)
    try:
        return moment(datetime.fromtimestamp(number, UTC))
    except (ValueError, OverflowError, OSError):
        raise BadInput(f"'{text[:40]}' is not a time within the years 1970 to 2200.") from None


def _of_iso(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"'{text[:40]}' is not a time.") from None
    return moment(at if at.tzinfo else at.replace(tzinfo=UTC))


def text_field(entry: Mapping[str, object], key: str) -> str:
    """A field that must be a text or a number, as text. Raises BadInput for anything else."""
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise BadInput(f"`{key}` is missing, or no text.")
    return str(value)


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """A JSON list; an empty one for anything else."""
    return value if isinstance(value, list) else []

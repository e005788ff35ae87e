"""The export of a chat platform as the importers read it: its rooms, and its messages or why they are not loaded."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from pydantic import ValidationError

from bot.importers.archive import Archive
from composer.errors import BadInput
from composer.model import Attachment, Incoming
from composer.ports.documents import DocumentReader
from composer.text.file_kinds import MAX_DOCUMENT_BYTES, file_kind, too_large

EVERY_ROOM: Final = "*"  # in `public`
MAX_LISTED_NAMES: Final = 5  # rooms that a sentence names
MAX_FILE_BYTES: Final = 2**50  # a petabyte: more than any file has
# Why messages are skipped. Programs read these texts: they are keys in the output of --json.
NOTICES: Final = "system notices (joins, pins and the like)"
BETWEEN_PEOPLE: Final = "in private conversations that are not the agent's"
AGENTS_OWN: Final = "the agent's own"
PRIVATE_TIME: Final = "written while a room was private that is public now"
MIXED: Final = "in private rooms, which --room does not load into another room"
UNWANTED: Final = "of people who opted out, or in rooms with memory off"
UNKNOWN_PLACE: Final = "in channels of an unknown kind"
ODD: Final = "that can't be read"
DELETED: Final = "that were deleted"
FAILURES: Final = frozenset({ODD, UNKNOWN_PLACE})  # a room of which nothing else is known was not imported
NOT_PUBLIC: Final = "in rooms that are private, or may be"
NOT_CHOSEN: Final = "in channels that were not chosen"
TO_COME: Final = "with a time that is still to come"
UNKNOWN_HOME: Final = "private messages of people whose workspace is not known (--workspace names it)"

JSONL: Final = "jsonl"
IRC: Final = "irc"
SLACK_EXPORT: Final = "slack-export"
DISCORD_EXPORT: Final = "discord-export"
MATTERMOST: Final = "mattermost"
ZULIP: Final = "zulip"
TELEGRAM: Final = "telegram"
MATRIX: Final = "matrix"
TEAMS: Final = "teams"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of an import: the workspace and the room to load into, the id of the agent's bot user, and
    the Discord channels that everyone may view."""

    workspace: str | None = None
    room: str | None = None
    bot: str | None = None
    public: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoomOfExport:
    """A room of an export.

    `private` and `members` are None where the export doesn't say. `named_public`: the person who imports named this
    very room as one that everyone may view.
    """

    id: str
    title: str
    private: bool | None
    members: tuple[str, ...] | None = None
    named_public: bool = False


@dataclass(frozen=True, slots=True)
class FileOfExport:
    """A file that lies in an export."""

    archive: Archive
    name: str

    @classmethod
    def found(cls, archive: Archive, paths: Iterable[str]) -> "FileOfExport | None":
        """The first of these paths that the archive has."""
        return next((cls(archive, path) for path in paths if path in archive), None)

    async def read_by(self, reader: DocumentReader, attached: Attachment) -> Attachment:
        """The attachment with its text, or with a note that says why it has none."""
        if file_kind(attached.name, attached.type) is None:
            return attached
        try:
            content = await asyncio.to_thread(self.archive.read, self.name, MAX_DOCUMENT_BYTES)
        except BadInput:
            return replace(attached, note="could not be read: it is damaged in the export")
        if content is None:
            return replace(attached, note=too_large(self.archive.size(self.name)))
        found = await reader.read(attached.name, attached.type, content)
        return replace(attached, text=found.text, note=found.note)


@dataclass(frozen=True, slots=True)
class MessageOfExport:
    """A message of an export with its `position` (file and place), or the `reason` why it is not loaded; of one that
    can't be read also the `error`. `room` is the name of the channel, for reports. `files` load the contents of its
    attachments, in their order, where the export has them."""

    position: str
    incoming: Incoming | None = None
    reason: str = ""
    room: str = ""
    files: tuple[FileOfExport | None, ...] = ()
    error: str = ""


def odd_message(error: BadInput, room: str, position: str = "") -> MessageOfExport:
    """A message that can't be read. The error names the position unless it is given."""
    return MessageOfExport(position, reason=ODD, room=room, error=f"{position}: {error}" if position else str(error))


@dataclass(slots=True)
class LeftOut:
    """What is left out of an export beside messages: `files` that hold none, and `odd` entries of its lists of people
    and channels, as sentences with file and position."""

    files: int = 0
    odd: list[str] = field(default_factory=list)


class PlatformExport(Protocol):
    """The export of one workspace of a platform."""

    @property
    def platform(self) -> str:
        """The platform's name."""
        ...

    @property
    def rooms(self) -> Mapping[str, RoomOfExport]:
        """The rooms by id, as they were when the export was made."""
        ...

    @property
    def people(self) -> Mapping[str, str]:
        """The names of the people whom the export lists, by id."""
        ...

    @property
    def left_out(self) -> LeftOut:
        """What the export has beside messages."""
        ...

    def messages(self) -> Iterator[MessageOfExport]:
        """All messages, room by room, oldest first. Raises BadInput, with the file, for one that can't be opened."""
        ...


def require_rooms(public: Collection[str], names: Collection[str], ids: Collection[str] = ()) -> None:
    """Raise BadInput if `public` names a room that is not among those of the files: a typing error would else close
    the room that was meant."""
    for name in public:
        if name != EVERY_ROOM and name not in names and name not in ids:
            has = short_list(sorted(names)) or "none"
            raise BadInput(f"--public names {name}, and there is no such room in these files, which have: {has}.")


def short_list(names: Sequence[str]) -> str:
    """At most MAX_NAMES names, and how many more there are."""
    more = f" and {len(names) - MAX_LISTED_NAMES:,} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(names[:MAX_LISTED_NAMES]) + more


def first_error(error: ValidationError) -> str:
    """The first error of a validation, as a sentence."""
    detail = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in detail["loc"])
    message = detail["msg"].removeprefix("Value error, ").removesuffix(".")
    return f"{f'`{field}`: ' if field else ''}{message[:1].lower()}{message[1:]}."

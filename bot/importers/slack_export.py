"""Reads a Slack export (a zip or an unpacked folder) as the Slack adapter would have received the same messages."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from bot.importers.archive import Archive
from bot.importers.export import (
    AGENTS_OWN,
    BETWEEN_PEOPLE,
    MAX_FILE_BYTES,
    MIXED,
    NOTICES,
    PRIVATE_TIME,
    UNKNOWN_PLACE,
    MessageOfExport,
    RoomOfExport,
    first_error,
)
from bot.platform.events import RoomPrivacyChanged
from bot.slack.reading import PLATFORM, BotIdentity, SlackMessage, read_message
from bot.slack.text import mentioned, plain
from composer.errors import BadInput
from composer.model import Attachment, ConversationKind, Incoming, Place
from composer.text.moments import moment_of_seconds

_LISTS: Final = {"channels.json": "channel", "groups.json": "group", "mpims.json": "mpim", "dms.json": "im"}
_Id = Annotated[str, Field(min_length=1, max_length=50)]


def _ts(text: str) -> str:
    """A `ts` of Slack: seconds since 1970 with six decimals."""
    try:
        moment_of_seconds(text)
    except BadInput as error:
        raise ValueError(str(error)) from None
    return text


_Ts = Annotated[str, Field(pattern=r"^[0-9]{1,11}\.[0-9]{1,6}$"), AfterValidator(_ts)]


class _Profile(BaseModel):
    display_name: str | None = None
    real_name: str | None = None
    api_app_id: str | None = None
    bot_id: str | None = None


class _User(BaseModel):
    id: _Id
    team_id: str | None = None
    name: str | None = None
    real_name: str | None = None
    profile: _Profile = _Profile()

    def display_name_or_id(self) -> str:
        """The name that SlackDirectory gives the same person."""
        profile = self.profile
        return profile.display_name or profile.real_name or self.real_name or self.name or self.id


class _SlackChannel(BaseModel):
    id: _Id
    name: str | None = None
    members: tuple[_Id, ...] | None = None
    creator: str | None = None


class _SlackFile(BaseModel):
    id: str | None = None
    name: str | None = None
    mimetype: str | None = None
    mode: str | None = None
    size: int | None = Field(default=None, ge=0, le=MAX_FILE_BYTES)


class _Profiled(BaseModel):
    """The name in a message by someone from another workspace."""

    display_name: str | None = None
    real_name: str | None = None
    name: str | None = None


class _SlackMessage(BaseModel):
    type: str = "message"
    ts: _Ts
    thread_ts: _Ts | None = None
    text: str | None = None
    user: str | None = None
    bot_id: str | None = None
    username: str | None = None
    subtype: str | None = None
    files: list[_SlackFile] | None = None
    bot_profile: _Profiled | None = None
    user_profile: _Profiled | None = None


_USERS: Final = TypeAdapter(list[_User])
_CHANNELS: Final = TypeAdapter(list[_SlackChannel])


@dataclass(frozen=True, slots=True)
class _Folder:
    """A conversation of the export: its kind, as Slack's events call it, and its days."""

    kind: str
    channel: _SlackChannel
    files: tuple[str, ...]


class SlackExport:
    """A Slack export as a PlatformExport (bot/importers/export.py)."""

    platform = PLATFORM

    def __init__(
        self,
        archive: Archive,
        slugs: Sequence[str],
        *,
        workspace: str | None = None,
        room: str | None = None,
        bot: str | None = None,
        app_id: str | None = None,
    ) -> None:
        """The first of `slugs` is the agent on Slack. `bot` is its user there; by default the user of the app `app_id`.

        `room`, the name or id of a channel or a new name, is where everything is loaded. Raises BadInput.
        """
        self._archive = archive
        self._slugs = slugs
        self._prefix = _prefix(archive)
        users = self._listed("users.json", _USERS)
        self._users = {user.id: user for user in users}
        self.people: dict[str, str] = {user.id: user.display_name_or_id() for user in users}
        self._me = self._identity(workspace, bot, app_id)
        self._opened_by_channel: dict[str, str] = {}
        self._folders, self._strays = self._find_folders()
        self._target = None if room is None else self._room_named(room)
        self.rooms: Mapping[str, RoomOfExport] = self._rooms(room)

    def _listed(self, name: str, adapter: TypeAdapter[list[Any]]) -> list[Any]:
        if self._prefix + name not in self._archive.names:
            return []
        try:
            return adapter.validate_python(self._archive.json(self._prefix + name))
        except ValidationError as error:
            raise BadInput(f"{self._archive.where(name)}: {first_error(error, 'entry')}") from None

    def _identity(self, workspace: str | None, bot: str | None, app_id: str | None) -> BotIdentity:
        """Our workspace and our users in it. While unknown, no message is ours or addressed to us."""
        teams = Counter(user.team_id for user in self._users.values() if user.team_id)
        team = workspace or next((team for team, _ in teams.most_common(1)), None)
        if team is None:
            where = self._archive.where("users.json")
            raise BadInput(f"{where}: the workspace is missing here: name it with --workspace T….")
        if bot is None and app_id is not None:
            bot = next((user.id for user in self._users.values() if user.profile.api_app_id == app_id), None)
        me = self._users.get(bot or "")
        return BotIdentity(team, bot or "", me.profile.bot_id or "" if me is not None else "")

    def _find_folders(self) -> tuple[list[_Folder], list[str]]:
        """The conversations that the lists name, with their files; and the files that no list names."""
        days: dict[str, list[str]] = {}
        for name in self._archive.names:
            folder, _, day = name.removeprefix(self._prefix).rpartition("/")
            if name.startswith(self._prefix) and folder and "/" not in folder and day.endswith(".json"):
                days.setdefault(folder, []).append(name)
        folders = []
        for list_name, kind in _LISTS.items():
            for channel in self._listed(list_name, _CHANNELS):
                files = tuple(days.pop(channel.name or channel.id, ()) or days.pop(channel.id, ()))
                folders.append(_Folder(kind, channel, files))
        if not folders:
            raise BadInput(f"{self._archive.path} is not a Slack export: no channels.json in it names a channel.")
        return folders, [name for names in days.values() for name in names]

    def _room_named(self, room: str) -> str:
        named = (f.channel.id for f in self._folders if room in (f.channel.id, f.channel.name) and f.kind != "im")
        return next(named, room)

    def _rooms(self, room: str | None) -> dict[str, RoomOfExport]:
        rooms = {}
        for folder in self._folders:
            channel = folder.channel
            if folder.kind != "im" and self._target in (None, channel.id):
                members = channel.members
                if members is not None and channel.creator in members:  # the first one becomes the room's admin
                    members = (channel.creator, *(member for member in members if member != channel.creator))
                rooms[channel.id] = RoomOfExport(
                    channel.id, channel.name or channel.id, folder.kind != "channel", members
                )
        if self._target is not None and self._target not in rooms:
            rooms[self._target] = RoomOfExport(self._target, self._target, private=False)
        return rooms

    def messages(self) -> Iterator[MessageOfExport]:
        """All messages: channel by channel, oldest first."""
        for folder in self._folders:
            yield from self._messages_of(folder)
        for name in self._strays:
            if name.rpartition("/")[2][:4].isdigit():
                for position, _ in self._messages(name):
                    yield MessageOfExport(position, reason=UNKNOWN_PLACE)

    def _messages_of(self, folder: _Folder) -> Iterator[MessageOfExport]:
        reason, opened_at = self._exclusion(folder), self._opened_at(folder)
        for name in folder.files:
            for position, message in self._messages(name):
                event = None if reason else read_message(message, folder.channel.id, folder.kind, self._me)
                if reason:
                    yield MessageOfExport(position, reason=reason)
                elif not isinstance(event, SlackMessage):
                    ours = self._me.user and message.get("user") == self._me.user
                    yield MessageOfExport(
                        position, reason=AGENTS_OWN if ours and not message.get("subtype") else NOTICES
                    )
                elif event.ts < opened_at:
                    yield MessageOfExport(position, reason=PRIVATE_TIME)
                else:
                    incoming = self._incoming(event, folder, message)
                    yield MessageOfExport(position, incoming, reason="" if incoming else NOTICES)

    def _exclusion(self, folder: _Folder) -> str:
        """Why nothing of a conversation is loaded; "" where it is."""
        if folder.kind in ("im", "mpim") and self._me.user not in (folder.channel.members or ()):
            return BETWEEN_PEOPLE
        if self._target not in (None, folder.channel.id) and folder.kind != "channel":
            return MIXED
        return ""

    def _opened_at(self, folder: _Folder) -> str:
        """When a public channel was last made public (a Slack ts); "" if it always was, as far as the export says."""
        id = folder.channel.id
        if id not in self._opened_by_channel:
            self._opened_by_channel[id] = ""
            for name in folder.files if folder.kind == "channel" else ():
                if not self._archive.contains_bytes(name, b"channel_convert"):
                    continue
                for _, message in self._messages(name):
                    event = read_message(message, id, folder.kind, self._me)
                    if isinstance(event, RoomPrivacyChanged) and not event.private:
                        self._opened_by_channel[id] = max(self._opened_by_channel[id], message["ts"])
        return self._opened_by_channel[id]

    def _messages(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The messages of a day with their positions, oldest first."""
        where, content = self._archive.where(name), self._archive.json(name)
        if not isinstance(content, list):
            raise BadInput(f"{where}: a day's file must be a list of messages.")
        checked = []
        for number, message in enumerate(content, start=1):
            try:
                checked.append((_SlackMessage.model_validate(message).ts, number, message))
            except ValidationError as error:
                raise BadInput(f"{where}: message {number}: {first_error(error)}") from None
        for _, number, message in sorted(checked, key=lambda entry: entry[:2]):
            yield f"{where}: message {number}", {**message, "type": message.get("type", "message")}

    def _incoming(self, sent: SlackMessage, folder: _Folder, message: Mapping[str, Any]) -> Incoming | None:
        """The message as SlackInbox would have made it; None for a blank one."""
        people = tuple(user for user in mentioned(sent.text) if user != self._me.user)
        names = {user: self.people.get(user, user) for user in people}
        text = plain(sent.text, names, own=self._me.user, slug=self._slugs[0], agents=self._slugs)
        attachments = tuple(
            Attachment(
                str(f.get("name") or f.get("id") or "file"),
                str(f.get("mimetype") or ""),
                size=int(f.get("size") or 0),
                address=_address(f),
            )
            for f in sent.files
        )
        if not text.strip() and not attachments:
            return None
        foreign = _Profiled.model_validate(message.get("user_profile") or {})
        name = self.people.get(sent.user) or foreign.display_name or foreign.real_name or foreign.name or sent.user
        return Incoming(
            PLATFORM,
            self._me.team,
            self._place(sent, folder),
            sent.user,
            sent.bot_name or (sent.user if sent.from_bot else name),
            sent.ts if self._target in (None, sent.channel) else f"{sent.channel}:{sent.ts}",
            text,
            sent.at,
            attachments,
            people,
        )

    def _place(self, sent: SlackMessage, folder: _Folder) -> Place:
        if folder.kind == "im":
            return Place(ConversationKind.DM, self._slugs[0])
        room = self._target or sent.channel
        title = folder.channel.name if room == sent.channel else None
        if sent.thread is not None:
            return Place(ConversationKind.THREAD, room, thread=sent.thread, title=title)
        return Place(ConversationKind.ROOM, room, title=title)


def _address(file: Mapping[str, Any]) -> str:
    """The address of a file at Slack, without the token that exports add to it."""
    return str(file.get("url_private_download") or file.get("url_private") or "").partition("?")[0]


def _prefix(archive: Archive) -> str:
    """The folder that contains the export, where it was packed again with a folder around it."""
    found = min((n for n in archive.names if n.rpartition("/")[2] in _LISTS), key=lambda n: n.count("/"), default="")
    return found[: found.rfind("/") + 1]

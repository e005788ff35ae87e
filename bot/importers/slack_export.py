"""Reads a Slack export (a zip or an unpacked folder) as the Slack adapter would have received the same messages."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from bot.importers.archive import Archive, NotJson
from bot.importers.export import (
    AGENTS_OWN,
    BETWEEN_PEOPLE,
    MAX_FILE_BYTES,
    MIXED,
    NOTICES,
    PRIVATE_TIME,
    UNKNOWN_PLACE,
    FileOfExport,
    LeftOut,
    MessageOfExport,
    RoomOfExport,
    first_error,
    odd_message,
)
from bot.importers.file_names import is_same_name
from bot.platform.events import RoomPrivacyChanged
from bot.slack.reading import PLATFORM, BotIdentity, files_of, is_unknown, read_message
from bot.slack.text import mentioned, plain, unlabelled
from composer.errors import BadInput
from composer.model import Attachment, ConversationKind, Incoming, Place
from composer.text.moments import moment_of_seconds

_FOLDER: Final = re.compile("(?<![^/])[^/]+/")
SLACK_LISTS: Final = {"channels.json": "channel", "groups.json": "group", "mpims.json": "mpim", "dms.json": "im"}
_PEOPLE: Final = ("users.json", "org_users.json")  # the second for a whole organisation (Enterprise Grid)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}.*\.json", re.IGNORECASE)
MAX_SEARCHED_FILES: Final = 50
NO_WORKSPACE: Final = (
    "Nothing in this file says which workspace of Slack it is of: whoever runs Nexus imports it, with nexus import."
)
_DM_FOLDER: Final = re.compile(r"D[A-Z0-9]{8,}")
_ODD: Final = (LookupError, TypeError, ValueError, AttributeError)  # what reading an object of another form raises
_Id = Annotated[str, Field(min_length=1, max_length=50)]


def _ts(value: object) -> str:
    """A `ts` of Slack: seconds since 1970 with six decimals. Some programs write it as a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    text = f"{value:.6f}" if is_number else str(value)
    try:
        moment_of_seconds(text)
    except BadInput as error:
        raise ValueError(str(error)) from None
    return text


_Ts = Annotated[str, Field(pattern=r"^[0-9]{1,11}\.[0-9]{1,6}$"), BeforeValidator(_ts)]


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
    profile: _Profile | None = None

    def display_name_or_id(self) -> str:
        """The name that SlackDirectory gives the same person."""
        profile = self.profile or _Profile()
        return profile.display_name or profile.real_name or self.real_name or self.name or self.id


class _SlackChannel(BaseModel):
    id: _Id
    name: str | None = None
    members: tuple[_Id, ...] | None = None
    creator: str | None = None


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
    bot_profile: _Profiled | None = None
    user_profile: _Profiled | None = None


_USER: Final = TypeAdapter(_User)
_CHANNEL: Final = TypeAdapter(_SlackChannel)


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
        folder: str = "",
        workspace: str | None = None,
        room: str | None = None,
        bot: str | None = None,
        app_id: str | None = None,
    ) -> None:
        """The first of `slugs` is the agent on Slack. `bot` is its user there; by default the user of the app `app_id`.

        `folder` is where in the archive its lists are (`slack_folders`). `room`, the name or id of a channel or a new
        name, is where everything is loaded. Raises BadInput.
        """
        self._archive = archive
        self._slugs = slugs
        self._prefix = folder
        self.left_out = LeftOut()
        users = [user for name in _PEOPLE for user in self._listed(name, _USER)]
        own = len(users)
        for above in _FOLDER.finditer(folder):  # where the people of a whole organisation stand
            users += self._listed(_PEOPLE[1], _USER, prefix=folder[: above.start()])
        self._users: dict[str, _User] = {user.id: user for user in reversed(users)}
        self.people: dict[str, str] = {user.id: user.display_name_or_id() for user in self._users.values()}
        self._me = self._identity(users[:own] or users, workspace, bot, app_id)
        self._opened_by_channel: dict[str, str] = {}
        self._folders, self._strays = self._find_folders()
        public = (each.channel for each in self._folders if each.kind == "channel")
        self._titles = {channel.id: channel.name for channel in public if channel.name}
        self._target = None if room is None else self._room_named(room)
        self.rooms: Mapping[str, RoomOfExport] = self._rooms(room)

    def _listed(self, name: str, adapter: TypeAdapter[Any], prefix: str | None = None) -> list[Any]:
        """The entries of a list. Odd ones are left out, and so is a list that can't be read: nobody knows then who may
        read its channels, and they are not loaded."""
        path = (self._prefix if prefix is None else prefix) + name
        if path not in self._archive:
            return []
        where, entries = self._archive.where(path), []
        try:
            content = self._archive.json(path)
        except NotJson as error:
            self.left_out.odd.append(str(error))
            return []
        if not isinstance(content, list):
            self.left_out.odd.append(f"{where}: this must be a list.")
            return []
        for number, entry in enumerate(content, start=1):
            try:
                entries.append(adapter.validate_python(entry))
            except ValidationError as error:
                self.left_out.odd.append(f"{where}: entry {number}: {first_error(error)}")
        return entries

    def _identity(
        self, users: Sequence[_User], workspace: str | None, bot: str | None, app_id: str | None
    ) -> BotIdentity:
        """Our workspace and our users in it. While unknown, no message is ours or addressed to us."""
        teams = Counter(user.team_id for user in users if (user.team_id or "E")[0] != "E")  # E…: an organisation
        team = workspace or next((team for team, _ in teams.most_common(1)), None) or self._team_of_messages()
        if team is None:
            where = self._archive.where(f"{self._prefix}users.json")
            raise BadInput(
                NO_WORKSPACE, operator=f"{where}: the workspace is missing here: name it with --workspace T…."
            )
        profiles = {user.id: user.profile or _Profile() for user in self._users.values()}
        if bot is None and app_id is not None:
            bot = next((id for id, profile in profiles.items() if profile.api_app_id == app_id), None)
        return BotIdentity(team, bot or "", profiles.get(bot or "", _Profile()).bot_id or "")

    def _team_of_messages(self) -> str | None:
        """The workspace that messages name, if they name one alone: the lists may not."""
        teams: set[str] = set()
        days = [n for n in self._archive.names if n.startswith(self._prefix) and _DAY.fullmatch(n.rpartition("/")[2])]
        for name in days[:MAX_SEARCHED_FILES]:
            with suppress(NotJson):
                content = self._archive.json(name)
                messages = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
                found = [each.get("team") for each in messages if not each.get("user_profile")]  # which others have
                teams |= {team for team in found if isinstance(team, str) and team.startswith("T")}
        return teams.pop() if len(teams) == 1 else None

    def _find_folders(self) -> tuple[list[_Folder], list[str]]:
        """The conversations that the lists name, with their files; and the files that no list names."""
        days: dict[str, list[str]] = {}
        others = self._archive.junk if not self._prefix else 0
        for name in self._archive.names:
            folder, _, day = name.removeprefix(self._prefix).rpartition("/")
            if not name.startswith(self._prefix):
                continue
            if folder and "/" not in folder and self._has_messages(name, day):
                days.setdefault(folder, []).append(name)
            elif day not in SLACK_LISTS and day not in _PEOPLE and (not folder or "/" not in folder):
                others += 1
        self.left_out.files = others
        folders = []
        for list_name, kind in SLACK_LISTS.items():
            for channel in self._listed(list_name, _CHANNEL):
                found = next((key for key in (channel.name, channel.id) if key in days), None)
                folders.append((kind, channel, days.pop(found, []) if found else []))
        if not folders and len(slack_folders(self._archive)) < 2:
            raise BadInput(f"{self._archive.path} is not a Slack export: no channels.json in it names a channel.")
        for _, channel, files in folders:  # once every folder that is named exactly is known
            found = next((key for key in days if not files and is_same_name(key, channel.name or channel.id)), None)
            files += days.pop(found, []) if found else []
        known = [_Folder(kind, channel, tuple(files)) for kind, channel, files in folders]
        return known, [name for names in days.values() for name in names]

    def _has_messages(self, name: str, file: str) -> bool:
        """Whether a file in a folder is one of messages: named by its day, or else with messages in it. Slack puts
        canvases and others beside them."""
        if _DAY.fullmatch(file):
            return True
        if not file.lower().endswith(".json"):
            return False
        try:
            content = self._archive.json(name)
        except NotJson:
            return False
        return isinstance(content, list) and any(isinstance(each, dict) and "ts" in each for each in content)

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
            folder_name = name.removeprefix(self._prefix).rpartition("/")[0]
            reason = BETWEEN_PEOPLE if _DM_FOLDER.fullmatch(folder_name) else UNKNOWN_PLACE
            for position, message in self._messages(name):
                if isinstance(message, BadInput):
                    yield odd_message(message, folder_name)
                else:
                    yield MessageOfExport(position, reason=reason, room=folder_name)

    def _messages_of(self, folder: _Folder) -> Iterator[MessageOfExport]:
        reason, opened_at = self._exclusion(folder), self._opened_at(folder)
        room = folder.channel.name or folder.channel.id
        for name in folder.files:
            for position, message in self._messages(name):
                if isinstance(message, BadInput):
                    yield odd_message(message, room)
                elif reason:
                    yield MessageOfExport(position, reason=reason, room=room)
                else:
                    try:
                        yield self._message(position, message, folder, opened_at, room)
                    except BadInput as error:
                        yield odd_message(error, room, position)
                    except _ODD:
                        yield odd_message(BadInput("this is not a message as Slack writes them."), room, position)

    def _message(
        self, position: str, message: dict[str, Any], folder: _Folder, opened_at: str, room: str
    ) -> MessageOfExport:
        event = read_message(message, folder.channel.id, folder.kind, self._me)
        if not isinstance(event, Incoming):
            ours = self._me.user and message.get("user") == self._me.user
            return MessageOfExport(
                position, reason=AGENTS_OWN if ours and not message.get("subtype") else NOTICES, room=room
            )
        if event.id < opened_at:
            return MessageOfExport(position, reason=PRIVATE_TIME, room=room)
        incoming = self._incoming(event, folder, message)
        files = tuple(self._stored_file(folder, file) for file in files_of(message)) if incoming else ()
        return MessageOfExport(position, incoming, reason="" if incoming else NOTICES, room=room, files=files)

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
                    if isinstance(message, BadInput) or not str(message.get("subtype")).startswith("channel_convert"):
                        continue
                    event = read_message(message, id, folder.kind, self._me)
                    if isinstance(event, RoomPrivacyChanged) and not event.private:
                        self._opened_by_channel[id] = max(self._opened_by_channel[id], message["ts"])
        return self._opened_by_channel[id]

    def _messages(self, name: str) -> Iterator[tuple[str, dict[str, Any] | BadInput]]:
        """The messages of a day with their positions, oldest first, after those that can't be read."""
        where = self._archive.where(name)
        try:
            content = self._archive.json(name)
        except NotJson as error:
            yield where, error
            return
        if not isinstance(content, list):
            yield where, BadInput(f"{where}: a day's file must be a list of messages.")
            return
        checked = []
        for number, message in enumerate(content, start=1):
            try:
                read = _SlackMessage.model_validate(message)
            except ValidationError as error:
                yield where, BadInput(f"{where}: message {number}: {first_error(error)}")
                continue
            times = {name: ts for name in ("ts", "thread_ts") if (ts := getattr(read, name)) is not None}
            checked.append((read.ts, number, {**message, **times}))
            profile = read.user_profile
            if read.user and profile:  # of another workspace: no list has them
                self.people.setdefault(
                    read.user, profile.display_name or profile.real_name or profile.name or read.user
                )
        for _, number, message in sorted(checked, key=lambda entry: entry[:2]):
            yield f"{where}: message {number}", {**message, "type": message.get("type", "message")}

    def _incoming(self, sent: Incoming, folder: _Folder, message: Mapping[str, Any]) -> Incoming | None:
        """The message as SlackInbox would have made it; None for a blank one."""
        people = tuple(user for user in mentioned(sent.text) if user != self._me.user)
        text = "\n".join(filter(None, map(self._plain, (sent.text, sent.quoted))))
        attachments = tuple(map(_without_token, sent.attachments))
        if not text.strip() and not attachments:
            return None
        foreign = _Profiled.model_validate(message.get("user_profile") or {})
        name = self.people.get(sent.user) or foreign.display_name or foreign.real_name or foreign.name or sent.user
        return replace(
            sent,
            place=self._place(sent, folder),
            user_name=sent.user_name or (sent.user if sent.by_tool else name),
            id=sent.id if self._target in (None, sent.channel) else f"{sent.channel}:{sent.id}",
            text=text,
            attachments=attachments,
            mentions=people,
            reply_to=None,
            quoted="",
        )

    def _stored_file(self, folder: _Folder, file: Mapping[str, Any]) -> FileOfExport | None:
        """Where a file lies in the export, as programs write it that load files too; Slack's own exports have none."""
        id, name = str(file.get("id") or ""), str(file.get("name") or "")
        if not (id and name and folder.files):
            return None
        here = folder.files[0].rpartition("/")[0]
        paths = (f"{self._prefix}__uploads/{id}/{name}", f"{here}/attachments/{id}-{name}", f"{here}/{id}-{name}")
        return FileOfExport.found(self._archive, paths)

    def _plain(self, markup: str) -> str:
        """A text in Slack's markup as people read it, with the names that the export has."""
        names = {user: self.people[user] for user in mentioned(markup) if user in self.people}
        rooms = {id: self._titles[id] for id in unlabelled(markup) if id in self._titles}
        return plain(markup, names, own=self._me.user, slug=self._slugs[0], agents=self._slugs, rooms=rooms)

    def _place(self, sent: Incoming, folder: _Folder) -> Place:
        if folder.kind == "im":
            return Place(ConversationKind.DM, self._slugs[0])
        room = self._target or sent.channel
        title = folder.channel.name if room == sent.channel else None
        if sent.reply_to is not None:
            return Place(ConversationKind.THREAD, room, thread=sent.reply_to, title=title)
        return Place(ConversationKind.ROOM, room, title=title)


def _without_token(file: Attachment) -> Attachment:
    """A file without the token that exports add to its address at Slack."""
    address = "" if is_unknown(file) else file.address.partition("?")[0]
    return replace(file, size=min(file.size, MAX_FILE_BYTES), address=address, seconds=0)


def slack_folders(archive: Archive) -> list[str]:
    """The folders of an archive that contain an export: several for an organisation of several workspaces."""
    found = {name[: name.rfind("/") + 1] for name in archive.names if name.rpartition("/")[2] in SLACK_LISTS}
    return sorted(found, key=lambda folder: (folder.count("/"), folder)) or [""]

"""Reads an export of a Zulip organisation: a folder or its tar.gz. Topics are threads of their channel."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from bot.importers.archive import Archive, NotJson
from bot.importers.chat_export import Channel, Contents, ExportedPost, listed, mapping, text_field, when
from bot.importers.export import NOTICES
from bot.importers.streamed_json import StreamedObject
from composer.errors import BadInput
from composer.settings import DEFAULT_WORKSPACE

REALM: Final = "realm.json"
MESSAGES: Final = re.compile(r"\A(?:.*/)?messages-\d+\.json")
_DIRECT: Final = "direct"
_STREAM: Final = 2  # the type of a recipient that is a channel
_PERSON: Final = re.compile(r"@_?\*\*([^*|]+)(?:\|\d+)?\*\*")
_GROUP: Final = re.compile(r"@_?\*([^*]+)\*")
_CHANNEL: Final = re.compile(r"#\*\*([^*]+)\*\*")
_UPLOAD: Final = re.compile(r"!?\[([^\[\]\n]{0,300})\]\((/user_uploads/[^)\s]+)\)")
_GONE: Final = "(deleted)"
_PEOPLE: Final = ("zerver_userprofile", "zerver_userprofile_mirrordummy", "zerver_userprofile_crossrealm")


def read_zulip(archives: list[Archive]) -> Contents:
    """The contents of exports. Raises BadInput when the organisation can't be read."""
    contents = Contents(())
    contents.channels[_DIRECT] = Channel(_DIRECT, "direct messages", direct=True)
    readings = []
    for archive in archives:
        realms = [name for name in archive.names if name.rpartition("/")[2] == REALM]
        if not realms:
            raise BadInput(f"{archive.path} is not an export of Zulip: there is no realm.json in it.")
        folder = min(realms, key=len)[: -len(REALM)]
        files = [name for name in archive.names if name.startswith(folder) and MESSAGES.fullmatch(name)]
        contents.left_out.files += len(archive.names) + archive.junk - len(files) - 1
        readings.append(_Realm(archive, folder, files, contents))
    contents.posts = (post for reading in readings for post in reading.posts())
    return contents


class _Realm:
    """One organisation of an export."""

    def __init__(self, archive: Archive, folder: str, files: list[str], contents: Contents) -> None:
        self._archive, self._files, self._contents = archive, files, contents
        where, realm = archive.where(folder + REALM), mapping(archive.json(folder + REALM))
        self._people: dict[int, str] = {}
        self._ids: dict[str, str] = {}  # by name
        self._services: set[int] = set()
        self._channels: dict[int, str] = {}  # by recipient
        names = [mapping(each).get("string_id") for each in listed(realm.get("zerver_realm"))]
        self._workspace = str(next(iter(names), "") or DEFAULT_WORKSPACE)
        for table in _PEOPLE:
            for number, row in enumerate(listed(realm.get(table)), 1):
                try:
                    self._add_person(mapping(row), service=table.endswith("crossrealm"))
                except BadInput as error:
                    contents.left_out.odd.append(f"{where}: {table} {number}: {error}")
        self._add_channels(realm, where)

    def _add_person(self, row: Mapping[str, Any], *, service: bool) -> None:
        id, name = _number(row, "id"), str(row.get("full_name") or "")
        user = str(row.get("delivery_email") or row.get("email") or f"user{id}").lower()
        self._people[id] = user
        self._contents.people[user] = name or user
        self._ids.setdefault(name, user)
        if service:
            self._services.add(id)
        elif row.get("is_bot") is True:
            self._contents.bots.add(user)

    def _add_channels(self, realm: Mapping[str, Any], where: str) -> None:
        rows = [row for row in map(mapping, listed(realm.get("zerver_recipient"))) if isinstance(row.get("id"), int)]
        recipients: dict[int, int] = {
            row["id"]: row["type_id"]
            for row in rows
            if row.get("type") == _STREAM and isinstance(row.get("type_id"), int)
        }
        members: dict[int, list[str]] = {}
        for row in map(mapping, listed(realm.get("zerver_subscription"))):
            recipient, user = row.get("recipient"), row.get("user_profile")
            if not isinstance(recipient, int) or not isinstance(user, int) or not row.get("active", True):
                continue
            if recipient in recipients and user in self._people:
                members.setdefault(recipients[recipient], []).append(self._people[user])
        found: dict[int, Channel] = {}
        for number, row in enumerate(map(mapping, listed(realm.get("zerver_stream"))), 1):
            try:
                id, name = _number(row, "id"), text_field(row, "name")
            except BadInput as error:
                self._contents.left_out.odd.append(f"{where}: zerver_stream {number}: {error}")
                continue
            private = row.get("invite_only") is not False
            people = tuple(members.get(id, ())) if private else None
            found[id] = Channel(f"{where}:{id}", name, private, people, workspace=self._workspace)
        self._contents.channels |= {channel.key: channel for channel in found.values()}
        self._channels = {key: found[id].key for key, id in recipients.items() if id in found}
        for row in map(mapping, listed(realm.get("zerver_realmauditlog"))):
            self._note_opening(row, found)
        self._people_only = {row["id"] for row in rows} - recipients.keys()

    def _note_opening(self, row: Mapping[str, Any], found: Mapping[int, Channel]) -> None:
        """Note when a channel was made public, which a row of the audit log may say."""
        changed, id = row.get("extra_data"), row.get("modified_stream")
        if isinstance(changed, str):
            with suppress(ValueError, RecursionError):
                changed = json.loads(changed)
        change = mapping(changed)
        if isinstance(id, int) and id in found and change.get("property") == "invite_only" and change.get("2") is False:
            with suppress(BadInput):
                at = when(row.get("event_time")).timestamp()
                self._contents.opened[found[id].key] = max(at, self._contents.opened.get(found[id].key, 0))

    def posts(self) -> Iterator[ExportedPost]:
        """The messages of all files."""
        for name in self._files:
            where, number = self._archive.where(name), 0
            try:
                with self._archive.open(name) as file:
                    for key, row in StreamedObject(file, where).fields("zerver_message", "zerver_usermessage"):
                        if key != "zerver_message":
                            continue
                        number += 1
                        position = f"{where}: message {number}"
                        try:
                            yield self._post(position, mapping(row))
                        except BadInput as error:
                            yield ExportedPost(position, "", error=str(error))
            except NotJson as error:
                yield ExportedPost("", "", error=str(error))

    def _post(self, position: str, row: Mapping[str, Any]) -> ExportedPost:
        id, sender, recipient = _number(row, "id"), _number(row, "sender"), _number(row, "recipient")
        channel = self._channels.get(recipient, _DIRECT if recipient in self._people_only else "an unlisted channel")
        content = row.get("content")
        if not isinstance(content, str):
            raise BadInput("`content` is missing, or no text.")
        user, topic = self._people.get(sender, f"user{sender}"), str(row.get("subject") or "").strip()
        names = dict.fromkeys(name for name in _PERSON.findall(content))
        return ExportedPost(
            position,
            channel,
            str(id),
            user,
            self._contents.people.get(user, user),
            when(row.get("date_sent")),
            _plain(content),
            topic or None,
            topic or None,
            files=tuple(dict.fromkeys(title or path.rpartition("/")[2] for title, path in _UPLOAD.findall(content))),
            mentions=tuple(self._ids[name] for name in names if name in self._ids),
            by_tool=user in self._contents.bots,
            skip=NOTICES if sender in self._services or content == _GONE else "",
        )


def _plain(content: str) -> str:
    """The text as people read it: names without stars, files by name."""
    text = _UPLOAD.sub(lambda found: found[1] or found[2].rpartition("/")[2], content)
    text = _PERSON.sub(r"@\1", text)
    return _GROUP.sub(r"@\1", _CHANNEL.sub(r"#\1", text))


def _number(row: Mapping[str, Any], key: str) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"`{key}` is missing, or no number.")
    return value

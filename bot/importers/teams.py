"""Reads messages of Microsoft Teams as Microsoft Graph gives them (`chatMessage`): in JSON of its API, or in the
folders `teams/` and `users/` of a tenant's export, whose fields begin with capitals."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bot.importers.archive import Archive, NotJson
from bot.importers.chat_export import Channel, Contents, ExportedPost, lines_of, listed, mapping, text_field, when
from bot.importers.export import DELETED, NOTICES
from bot.importers.streamed_json import StreamedObject
from composer.errors import BadInput
from composer.text.html_text import text_of_html
from composer.text.own_words import as_quotation

_CHATS: Final = "chats"
_LIST: Final = re.compile(r"\A(?:.*/)?(teamsList|usersList|(?:channels|teamMembers)_[^/]+)\.json", re.IGNORECASE)
_MESSAGES: Final = re.compile(r"\A(?:.*/)?(?!teamInstalledApps|teamsSettings|meetings_)[^/]+\.json", re.IGNORECASE)
_INTO: Final = frozenset({(), ("value",), ("messages",)})
_SHOWN: Final = frozenset({"text", "title", "subtitle", "summary", "value", "altText"})  # of a card, what people read
MAX_CARD_DEPTH: Final = 20


def read_teams(archives: list[Archive]) -> Contents:
    """The contents of exports."""
    contents = Contents(())
    contents.channels[_CHATS] = Channel(_CHATS, "chats", direct=True)
    files = []
    for archive in archives:
        lists = [name for name in archive.names if _LIST.fullmatch(name)]
        _Directory(archive, lists).add_to(contents)
        found = [name for name in archive.names if name not in lists and _MESSAGES.fullmatch(name)]
        files += [(archive, name) for name in found]
        contents.left_out.files += len(archive.names) + archive.junk - len(found) - len(lists)
    contents.posts = (post for archive, name in files for post in _posts(archive, name, contents))
    return contents


def small(value: object) -> Mapping[str, Any]:
    """A JSON object whose fields begin with a small letter, as in Graph's API."""
    return {key[:1].lower() + key[1:]: each for key, each in mapping(value).items()}


class _Directory:
    """The lists of an export: of teams, their channels and members, and of people."""

    def __init__(self, archive: Archive, names: list[str]) -> None:
        self._archive, self._names = archive, names
        self._members: dict[str, list[str]] = {}
        self._teams: dict[str, Mapping[str, Any]] = {}

    def add_to(self, contents: Contents) -> None:
        """Add the channels and people."""
        channels: list[tuple[str, Mapping[str, Any]]] = []
        for name in self._names:
            try:
                rows = [small(row) for row in listed(self._archive.json(name))]
            except NotJson as error:
                contents.left_out.odd.append(str(error))
                continue
            last = name.rpartition("/")[2].lower()
            owner = last.partition("_")[2].removesuffix(".json")
            if last.startswith("channels_"):
                channels += [(owner, row) for row in rows]
            elif last.startswith("teammembers_"):
                self._members[owner] = [str(row.get("userId")) for row in rows if row.get("userId")]
                contents.people |= {str(row["userId"]): str(row.get("name")) for row in rows if row.get("userId")}
            elif last.startswith("teamslist"):
                self._teams |= {str(row.get("groupsId") or row.get("id")): row for row in rows}
            else:
                contents.people |= {str(row["id"]): str(row.get("displayName")) for row in rows if row.get("id")}
        for team, row in channels:
            if row.get("id"):
                channel = self._channel(team, row)
                contents.channels[channel.key] = channel

    def _channel(self, team: str, row: Mapping[str, Any]) -> Channel:
        of_team = self._teams.get(team, {})
        standard = str(row.get("membershipType") or "").lower() == "standard"
        open_team = str(of_team.get("privacy") or of_team.get("visibility") or "").lower() == "public"
        private = not (standard and open_team)
        members = tuple(self._members[team]) if private and standard and team in self._members else None
        name = str(row.get("displayName") or "channel")
        title = f"{of_team['name']}: {name}" if of_team.get("name") else name
        return Channel(str(row["id"]), title, private, members, id=_short(str(row["id"])))


def _short(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:6]


def _posts(archive: Archive, name: str, contents: Contents) -> Iterator[ExportedPost]:
    where, number = archive.where(name), 0
    try:
        with archive.open(name) as file:
            for path, value in StreamedObject(file, where).walk(_INTO):
                if path[-1:] != ("*",):
                    continue
                for entry in (value, *listed(small(value).get("replies"))):
                    number += 1
                    position, row = f"{where}: message {number}", small(entry)
                    channel = _channel_of(row, contents)
                    try:
                        yield _post(position, row, channel, contents)
                    except BadInput as error:
                        yield ExportedPost(position, channel, error=str(error))
    except NotJson as error:
        yield ExportedPost("", "", error=str(error))


def _channel_of(row: Mapping[str, Any], contents: Contents) -> str:
    """The key of the channel of a message. One that no list names is a channel of which nothing is said."""
    key = small(row.get("channelIdentity")).get("channelId")
    if not isinstance(key, str):
        return _CHATS
    if key not in contents.channels:
        contents.channels[key] = Channel(key, f"channel-{_short(key)}")
    return key


def _post(position: str, row: Mapping[str, Any], channel: str, contents: Contents) -> ExportedPost:
    if "messageType" not in row and "body" not in row:
        raise BadInput("this is not a message of Teams: it has no body.")
    id, at = text_field(row, "id"), when(row.get("createdDateTime"))
    if row.get("messageType", "message") != "message":
        return ExportedPost(position, channel, skip=NOTICES)
    if row.get("deletedDateTime"):
        return ExportedPost(position, channel, skip=DELETED)
    user, name = _author(row, contents)
    by_app = bool(small(small(row.get("from")).get("application")).get("id"))
    body = small(row.get("body"))
    content = str(body.get("content") or "")
    text, images = text_of_html(content) if str(body.get("contentType")).lower() == "html" else (content, [])
    attached = [small(each) for each in listed(row.get("attachments"))]
    mentioned = [small(small(small(each).get("mentioned")).get("user")) for each in listed(row.get("mentions"))]
    root = row.get("replyToId")
    return ExportedPost(
        position,
        channel,
        id,
        user,
        name,
        at,
        lines_of(row.get("subject"), text, *(_card(each, by_person=not by_app) for each in attached)),
        str(root) if root and str(root) != id else None,
        files=(*images, *(str(each["name"]) for each in attached if each.get("name"))),
        by_tool=by_app,
        mentions=tuple(str(each["id"]) for each in mentioned if each.get("id")),
    )


def _author(row: Mapping[str, Any], contents: Contents) -> tuple[str, str]:
    sender = small(row.get("from"))
    for kind in ("user", "application", "device"):
        found = small(sender.get(kind))
        if found.get("id"):
            id = str(found["id"])
            name = str(contents.people.get(id) or found.get("displayName") or "Unknown user")
            contents.people.setdefault(id, name)
            return id, name
    return "unknown", "Unknown user"


def _card(attachment: Mapping[str, Any], *, by_person: bool) -> str:
    """The words of a card that an app has attached, and of a message that is quoted or forwarded. `by_person`: it
    stands below a person's words, who did not write it."""
    content = attachment.get("content")
    if not isinstance(content, str):
        return ""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, dict) and isinstance(value.get("messagePreview"), str):
        return as_quotation(value["messagePreview"])
    if isinstance(value, dict) and isinstance(value.get("originalMessageContent"), str):
        return as_quotation(text_of_html(value["originalMessageContent"])[0])
    words = lines_of(*_shown(value, 0))
    return as_quotation(words) if by_person else words


def _shown(value: object, depth: int) -> Iterator[str]:
    if depth > MAX_CARD_DEPTH:
        return
    if isinstance(value, list):
        for each in value:
            yield from _shown(each, depth + 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str) and key in _SHOWN:
                yield text_of_html(each)[0]
            elif isinstance(each, dict | list):
                yield from _shown(each, depth + 1)

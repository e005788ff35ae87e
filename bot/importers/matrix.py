"""Reads the JSON that Element exports of a room of Matrix."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from bot.importers.archive import Archive, NotJson
from bot.importers.chat_export import Channel, Contents, ExportedPost, lines_of, listed, mapping, text_field, when
from bot.importers.export import DELETED, NOTICES
from bot.importers.streamed_json import BEGIN, StreamedObject
from composer.errors import BadInput
from composer.text.html_text import text_of_html

ENCRYPTED: Final = "that are still encrypted in the export"
EDITS: Final = "edits, which the messages that they change have taken up"
_INTO: Final = frozenset({(), ("messages",)})
_FILES: Final = frozenset({"m.image", "m.file", "m.audio", "m.video"})
_POLLS: Final = ("m.poll.start", "org.matrix.msc3381.poll.start")
_POLL_ENDS: Final = ("m.poll.end", "org.matrix.msc3381.poll.end")
_TEXTS: Final = ("m.text", "org.matrix.msc1767.text", "body")
_QUOTED: Final = re.compile(r"\A(?:> .*\n)+\n")  # what a reply repeats of the message that it replies to
_MARKED: Final = re.compile(r"^>", re.MULTILINE)
_HERE: Final = frozenset({"join"})
_GONE: Final = frozenset({"leave", "ban"})


@dataclass(slots=True)
class _Room:
    """What the events of a file say of its room."""

    name: str = ""
    id: str = ""
    private: bool | None = None
    direct: bool = False
    people: dict[str, str] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    edits: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)  # by message and author: time and text
    opened_at: int = 0  # when it was made public, after it had been private

    def note(self, event: Mapping[str, Any]) -> None:
        """Take what an event says of the room, its people and other messages."""
        content, sender = mapping(event.get("content")), str(event.get("sender") or "")
        self.id = self.id or str(event.get("room_id") or "")
        match event.get("type"):
            case "m.room.join_rules":
                self._note_rule(str(content.get("join_rule")), event)
            case "m.room.member":
                self._note_member(str(event.get("state_key") or sender), content)
            case "m.room.message":
                self.members.add(sender)
                relation = mapping(content.get("m.relates_to"))
                if relation.get("rel_type") == "m.replace":
                    self._note_edit(str(relation.get("event_id")), event)
        bundled = mapping(mapping(mapping(event.get("unsigned")).get("m.relations")).get("m.replace"))
        if bundled:
            self._note_edit(str(event.get("event_id")), bundled)

    def _note_rule(self, rule: str, event: Mapping[str, Any]) -> None:
        before = mapping(mapping(event.get("unsigned")).get("prev_content")).get("join_rule", "public")
        at = event.get("origin_server_ts")
        if rule == "public" and (self.private or before != "public") and isinstance(at, int):
            self.opened_at = at
        self.private = rule != "public"

    def _note_member(self, user: str, content: Mapping[str, Any]) -> None:
        state = content.get("membership")
        if isinstance(content.get("displayname"), str):
            self.people[user] = content["displayname"]
        self.direct = self.direct or content.get("is_direct") is True
        if state in _HERE:
            self.members.add(user)
            self.left.discard(user)
        elif state in _GONE:
            self.left.add(user)

    def _note_edit(self, target: str, event: Mapping[str, Any]) -> None:
        new = mapping(mapping(event.get("content")).get("m.new_content"))
        body = _body(new) if isinstance(new.get("body"), str) else None
        at, key = event.get("origin_server_ts"), (target, str(event.get("sender")))
        if isinstance(body, str) and isinstance(at, int) and at >= self.edits.get(key, (0, ""))[0]:
            self.edits[key] = (at, body)


def read_matrix(archives: list[Archive]) -> Contents:
    """The contents of exports; each file is of one room, and is read twice: its events say who may read it."""
    contents = Contents(())
    names = [(archive, name) for archive in archives for name in archive.names]
    files = [(archive, name) for archive, name in names if name.lower().endswith(".json")]
    contents.left_out.files = len(names) - len(files) + sum(archive.junk for archive in archives)
    contents.posts = (post for archive, name in files for post in _posts(archive, name, contents))
    return contents


def _events(archive: Archive, name: str, room: _Room) -> Iterator[Mapping[str, Any]]:
    """The events of a file; its name is noted in `room`."""
    where = archive.where(name)
    with archive.open(name) as file:
        for path, value in StreamedObject(file, where).walk(_INTO):
            if path == ("messages", "*"):
                yield mapping(value)
            elif path == ("room_name",) and value is not BEGIN:
                room.name = str(value or "")


def _posts(archive: Archive, name: str, contents: Contents) -> Iterator[ExportedPost]:
    where, room = archive.where(name), _Room()
    with suppress(NotJson):  # which the second reading tells
        for event in _events(archive, name, room):
            room.note(event)
    key = room.id or where
    people = tuple(sorted(room.members - room.left))
    contents.people |= {user: room.people.get(user, _local(user)) for user in room.members | room.people.keys()}
    short = room.id.lstrip("!").partition(":")[0][:8]
    contents.opened[key] = room.opened_at / 1000
    contents.channels[key] = Channel(
        key, room.name or "room", room.private, None if room.private is False else people, room.direct, id=short
    )
    try:
        for number, event in enumerate(_events(archive, name, room), 1):
            position = f"{where}: message {number}"
            try:
                yield _post(position, event, key, room)
            except BadInput as error:
                yield ExportedPost(position, key, error=str(error))
    except NotJson as error:
        yield ExportedPost("", key, error=str(error))


def _local(user: str) -> str:
    """The name of a person of whom no event says another."""
    return user.lstrip("@").partition(":")[0]


def _post(position: str, event: Mapping[str, Any], key: str, room: _Room) -> ExportedPost:
    kind, content = event.get("type"), mapping(event.get("content"))
    id, user, at = text_field(event, "event_id"), text_field(event, "sender"), when(event.get("origin_server_ts"), 1000)
    relation = mapping(content.get("m.relates_to"))
    skip = ""
    if kind == "m.room.encrypted" or content.get("msgtype") == "m.bad.encrypted":
        skip = ENCRYPTED
    elif mapping(event.get("unsigned")).get("redacted_because") or (kind == "m.room.message" and not content):
        skip = DELETED
    elif relation.get("rel_type") == "m.replace":
        skip = EDITS
    elif kind not in ("m.room.message", "m.sticker", *_POLLS, *_POLL_ENDS):
        skip = NOTICES
    if skip:
        return ExportedPost(position, key, skip=skip)
    edited = room.edits.get((id, user))
    replied = mapping(relation.get("m.in_reply_to")).get("event_id")
    in_thread = relation.get("rel_type") == "m.thread" and isinstance(relation.get("event_id"), str)
    is_file = content.get("msgtype") in _FILES
    body = edited[1] if edited else _body(content)
    body = body or (_words(content) if kind in _POLL_ENDS else "")
    text = _poll(content) if kind in _POLLS else _QUOTED.sub("", body) if replied else body
    name = str(content.get("filename") or content.get("body") or "file")
    return ExportedPost(
        position,
        key,
        id,
        user,
        room.people.get(user, _local(user)),
        at,
        "" if is_file and text == name else text,
        relation["event_id"] if in_thread else None,
        reply_to=replied if isinstance(replied, str) else None,
        files=(name,) if is_file else (),
        by_tool=content.get("msgtype") == "m.notice",
        mentions=tuple(str(each) for each in listed(mapping(content.get("m.mentions")).get("user_ids"))),
    )


def _body(content: Mapping[str, Any]) -> str:
    """The text of a message; from its HTML where that alone says what is quoted."""
    body, html = str(content.get("body") or ""), content.get("formatted_body")
    if isinstance(html, str) and (not body or ("<blockquote" in html and not _MARKED.search(body))):
        return text_of_html(html)[0]
    return body


def _poll(content: Mapping[str, Any]) -> str:
    """The question of a poll, and what one could answer."""
    poll = next((mapping(content[name]) for name in (*_POLLS, "m.poll") if name in content), {})
    return lines_of(
        _words(mapping(poll.get("question"))), *(f"- {_words(mapping(each))}" for each in listed(poll.get("answers")))
    )


def _words(content: Mapping[str, Any]) -> str:
    for key in _TEXTS:
        value = content.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:
            return str(mapping(value[0]).get("body") or "")
    return ""

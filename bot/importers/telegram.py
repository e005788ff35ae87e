"""Reads the JSON that Telegram Desktop exports: of one chat, or of a whole account (result.json)."""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bot.importers.archive import Archive, NotJson
from bot.importers.chat_export import Channel, Contents, ExportedPost, lines_of, listed, mapping, text_field, when
from bot.importers.export import NOTICES
from bot.importers.streamed_json import BEGIN, StreamedObject
from composer.errors import BadInput
from composer.text.own_words import as_quotation

_LISTS: Final = ("chats", "left_chats")
_INTO: Final = frozenset(
    {(), ("messages",)}
    | {
        path
        for name in _LISTS
        for path in ((name,), (name, "list"), (name, "list", "*"), (name, "list", "*", "messages"))
    }
)
MAX_TEXT_DEPTH: Final = 8  # of texts inside texts
_FOREIGN: Final = ("forwarded_from", "forwarded_from_id", "saved_from", "via_bot")  # say whose the words are
_CHANNEL: Final = "channel"  # what the id of a sender begins with that is a channel, or whoever writes in its name
_PUBLIC: Final = frozenset({"public_supergroup", "public_channel"})
_PRIVATE: Final = frozenset({"private_group", "private_supergroup", "private_channel"})


def read_telegram(archives: list[Archive]) -> Contents:
    """The contents of exports."""
    contents = Contents(())
    files = [(archive, name) for archive in archives for name in archive.names if _is_export(archive, name)]
    contents.left_out.files = sum(len(archive.names) + archive.junk for archive in archives) - len(files)
    contents.posts = (post for archive, name in files for post in _posts(archive, name, contents))
    return contents


def _is_export(archive: Archive, name: str) -> bool:
    last = name.rpartition("/")[2].lower()
    return last.endswith(".json") and (last.startswith("result") or len(archive.names) == 1 or "/" not in name)


def _posts(archive: Archive, name: str, contents: Contents) -> Iterator[ExportedPost]:
    where, number = archive.where(name), 0
    chat: dict[str, Any] = {}
    try:
        with archive.open(name) as file:
            for path, value in StreamedObject(file, where).walk(_INTO):
                inside = path[3:] if path[:1] and path[0] in _LISTS else path
                if value is BEGIN:
                    chat, number = ({}, 0) if not inside else (chat, number)
                elif inside == ("messages", "*"):
                    number += 1
                    channel = _channel(contents, chat, where)
                    position = f"{where}: {channel.name}: message {number}"
                    try:
                        yield _post(position, mapping(value), channel, contents)
                    except BadInput as error:
                        yield ExportedPost(position, channel.key, error=str(error))
                elif len(inside) == 1:
                    chat[inside[0]] = value
    except NotJson as error:
        yield ExportedPost("", "", error=str(error))


def _channel(contents: Contents, chat: Mapping[str, Any], where: str) -> Channel:
    """The channel of a chat, from what stands before its messages."""
    kind, id = str(chat.get("type") or ""), str(chat.get("id") or "")
    key = f"{kind}:{id or where}"
    if key not in contents.channels:
        private = False if kind in _PUBLIC else True if kind in _PRIVATE else None
        name = str(chat.get("name") or "chat")
        contents.channels[key] = Channel(key, name, private, direct=private is None, id=id)
    return contents.channels[key]


def _post(position: str, entry: Mapping[str, Any], channel: Channel, contents: Contents) -> ExportedPost:
    at, id = when(entry.get("date_unixtime") or entry.get("date")), text_field(entry, "id")
    if entry.get("type") != "message":
        return ExportedPost(position, channel.key, skip=NOTICES)
    user = str(entry.get("from_id") or "unknown")
    user = user if not user.isdigit() else f"user{user}"  # as Telegram wrote it before 2021
    name = str(entry.get("from") or "Deleted Account")
    contents.people[user] = name
    poll, via = mapping(entry.get("poll")), next((entry[key] for key in _FOREIGN if entry.get(key)), None)
    answers = [mapping(answer) for answer in listed(poll.get("answers"))]
    tasks, bill = mapping(entry.get("todo_list")), mapping(entry.get("invoice_information"))
    buttons = [mapping(each).get("text") for row in listed(entry.get("inline_bot_buttons")) for each in listed(row)]
    contact, place = mapping(entry.get("contact_information")), mapping(entry.get("location_information"))
    text = lines_of(
        f"Forwarded from {via}:" if via else "",
        _text(entry.get("text_entities") or entry.get("text")),
        _text(poll.get("question")),
        *(f"- {_text(answer.get('text'))}: {answer.get('voters', 0)}" for answer in answers),
        _text(tasks.get("title")),
        *(f"- {_text(mapping(task).get('text'))}" for task in listed(tasks.get("answers"))),
        bill.get("title"),
        bill.get("description"),
        *(f"(button: {button})" for button in buttons if button),
        " ".join(str(contact[part]) for part in ("first_name", "last_name", "phone_number") if contact.get(part)),
        f"Location: {place.get('latitude')}, {place.get('longitude')}" if place else "",
        entry.get("place_name"),
        entry.get("sticker_emoji") if not entry.get("text") else "",
    )
    reply = entry.get("reply_to_message_id")
    return ExportedPost(
        position,
        channel.key,
        id,
        user,
        name,
        at,
        as_quotation(text) if via else text,
        by_tool=bool(entry.get("via_bot")) or user.startswith(_CHANNEL),
        reply_to=None if reply is None else str(reply),
        files=tuple(name for name, _ in _files(entry)),
        paths=tuple(path for _, path in _files(entry)),
    )


def _text(value: object, depth: int = 0) -> str:
    """A text, which may be in parts of several kinds; a link with where it leads."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        text, address = _text(value.get("text"), depth + 1), value.get("href")
        if value.get("type") in ("blockquote", "pre"):
            return f"\n{as_quotation(text)}\n" if value["type"] == "blockquote" else f"\n```\n{text}\n```\n"
        return f"{text} ({address})" if isinstance(address, str) and address != text else text
    parts = value if isinstance(value, list) and depth < MAX_TEXT_DEPTH else []
    return "".join(_text(part, depth + 1) for part in parts)


def _files(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The names of attached files and their paths, also of those that the export leaves out ("")."""
    found = []
    for key, kind in (("file", str(entry.get("media_type") or "file")), ("photo", "photo")):
        path = entry.get(key)
        if isinstance(path, str) and kind != "sticker":
            name = entry.get("file_name") if key == "file" else None
            path = "" if path.startswith("(") else path
            found.append((str(name or posixpath.basename(path) or kind.replace("_", " ")), path))
    return found

"""Reads the bulk export of Mattermost: a file of JSON lines, or the zip that contains it."""

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bot.importers.archive import Archive
from bot.importers.chat_export import Channel, Contents, ExportedPost, lines_of, listed, mapping, text_field, when
from bot.importers.export import DELETED, NOTICES, LeftOut
from composer.errors import BadInput
from composer.text.own_words import as_quotation

MAX_LINE_BYTES: Final = 2**24
_DIRECT: Final = "direct"
_OF_TOOLS: Final = ("from_webhook", "from_bot", "from_plugin", "from_oauth_app")  # properties of posts
_CONVERTED: Final = "system_change_chan_privacy"


def read_mattermost(archives: list[Archive]) -> Contents:
    """The contents of exports. A workspace is a team; the channels and people stand before the posts."""
    contents = Contents(())
    files = [(archive, name) for archive in archives for name in archive.names if _is_lines(archive, name)]
    contents.left_out = LeftOut(sum(len(archive.names) + archive.junk for archive in archives) - len(files))
    contents.channels[_DIRECT] = Channel(_DIRECT, "direct messages", direct=True)
    contents.posts = _posts(files, contents)
    return contents


def _is_lines(archive: Archive, name: str) -> bool:
    return (
        name.lower().endswith(".jsonl")
        or len(archive.names) == 1
        or (name.lower().endswith(".json") and "/" not in name)
    )


def _lines(archive: Archive, name: str) -> Iterator[tuple[str, Mapping[str, Any] | None, str]]:
    """The lines of a file with their positions, or why one can't be read."""
    where, number = archive.where(name), 0
    with archive.open(name) as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if not line.strip():
                continue
            if len(line) > MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                yield f"{where}:{number}", None, "the line is too long."
                continue
            try:
                entry = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                yield f"{where}:{number}", None, "this is not a line of JSON."
                continue
            yield f"{where}:{number}", entry if isinstance(entry, dict) else None, "this is not a JSON object."


def _posts(files: list[tuple[Archive, str]], contents: Contents) -> Iterator[ExportedPost]:
    members: dict[str, list[str]] = {}
    for archive, name in files:
        for position, entry, problem in _lines(archive, name):
            kind = entry.get("type") if entry else None
            content = mapping(entry.get(str(kind))) if entry else {}
            try:
                if entry is None:
                    raise BadInput(problem)
                if kind == "channel":
                    _add_channel(contents, content, members)
                elif kind == "user":
                    _add_person(contents, content, members)
                elif kind == "bot":
                    name = text_field(content, "username")
                    contents.people[name] = str(content.get("display_name") or name)
                    contents.bots.add(name)
            except BadInput as error:
                yield ExportedPost(position, "", error=str(error))
                continue
            if kind in ("post", "direct_post"):
                yield from _thread(position, content, contents, direct=kind == "direct_post")


def _key(team: str, channel: str) -> str:
    return f"{team}/{channel}".lower()


def _add_channel(contents: Contents, entry: Mapping[str, Any], members: dict[str, list[str]]) -> None:
    team, name = text_field(entry, "team"), text_field(entry, "name")
    private = entry.get("type") != "O"
    people = tuple(members.setdefault(_key(team, name), [])) if private else None
    contents.channels[_key(team, name)] = Channel(_key(team, name), name, private, people, workspace=team)


def _add_person(contents: Contents, entry: Mapping[str, Any], members: dict[str, list[str]]) -> None:
    user = text_field(entry, "username")
    whole = " ".join(str(entry.get(part) or "") for part in ("first_name", "last_name")).strip()
    contents.people[user] = str(entry.get("nickname") or whole or user)
    for team in listed(entry.get("teams")):
        for channel in listed(mapping(team).get("channels")):
            key = _key(str(mapping(team).get("name")), str(mapping(channel).get("name")))
            members.setdefault(key, []).append(user)
            known = contents.channels.get(key)
            if known is not None and known.private:
                contents.channels[key] = Channel(
                    key, known.name, known.private, tuple(members[key]), workspace=known.workspace
                )


def _thread(position: str, entry: Mapping[str, Any], contents: Contents, *, direct: bool) -> Iterator[ExportedPost]:
    """A post and its replies."""
    channel = _DIRECT if direct else _key(str(entry.get("team")), str(entry.get("channel")))
    try:
        root = _post(position, entry, channel, contents)
    except BadInput as error:
        yield ExportedPost(position, channel, error=str(error))
        return
    yield root
    for number, reply in enumerate(listed(entry.get("replies")), 1):
        where = f"{position}: reply {number}"
        try:
            yield _post(where, mapping(reply), channel, contents, thread=root.id)
        except BadInput as error:
            yield ExportedPost(where, channel, error=str(error))


def _post(
    position: str, entry: Mapping[str, Any], channel: str, contents: Contents, thread: str | None = None
) -> ExportedPost:
    user, at = text_field(entry, "user"), when(entry.get("create_at"), 1000)
    props = entry.get("props")
    if isinstance(props, str):  # in some versions JSON in a text
        try:
            props = json.loads(props)
        except (ValueError, RecursionError):
            props = {}
    props = mapping(props)
    by_tool = user in contents.bots or any(props.get(key) in ("true", True) for key in _OF_TOOLS)
    cards = lines_of(*(_card(mapping(card)) for card in listed(props.get("attachments"))))
    text = lines_of(entry.get("message"), cards if by_tool else as_quotation(cards))
    words = (word.strip("@.,:;!?()'\"*") for word in text.split() if "@" in word)
    kind = str(entry.get("type") or "")
    notice = kind.startswith("system_") and kind != "system_me"
    if kind == _CONVERTED:
        contents.opened[channel] = max(contents.opened.get(channel, 0), at.timestamp())
    files = [str(mapping(file).get("path") or "file") for file in listed(entry.get("attachments"))]
    return ExportedPost(
        position,
        channel,
        f"{entry['create_at']}-{user}",
        user,
        str(props.get("override_username") or "") if by_tool else "",  # whoever posts may set it
        at,
        text,
        thread,
        files=tuple(posixpath.basename(file) for file in files),
        paths=tuple(posixpath.normpath(file) for file in files),
        mentions=tuple(dict.fromkeys(word for word in words if word in contents.people)),
        by_tool=by_tool,
        skip=DELETED if entry.get("delete_at") else NOTICES if notice else "",
    )


def _card(card: Mapping[str, Any]) -> str:
    """The words of what an integration has attached to its post."""
    fields = (mapping(each) for each in listed(card.get("fields")))
    rows = [f"{each.get('title') or ''}: {each.get('value') or ''}".strip(": ") for each in fields]
    rows += [f"(button: {each['name']})" for each in map(mapping, listed(card.get("actions"))) if each.get("name")]
    shown = [card.get(part) for part in ("pretext", "author_name", "title", "text")]
    return lines_of(*shown, *rows, card.get("footer")) or str(card.get("fallback") or "")

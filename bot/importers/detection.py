"""Tells the format of a file, a folder or an archive by what is in it."""

import json
import re
import zipfile
from pathlib import Path
from typing import Final

from bot.importers.archive import Archive
from bot.importers.export import DISCORD_EXPORT, IRC, JSONL, MATRIX, MATTERMOST, SLACK_EXPORT, TEAMS, TELEGRAM, ZULIP
from bot.importers.irc import is_irc_line
from bot.script.events import EVENT_TYPES
from composer.errors import BadInput
from composer.text.decoding import decode_text

HEAD_BYTES: Final = 2**16
MAX_TRIED: Final = 50  # files of an archive, and lines of a log
_NAMES: Final = (
    (ZULIP, re.compile(r"\A(?:.*/)?realm\.json")),
    (TEAMS, re.compile(r"\A(?:.*/)?(?:teamsList|channels_[^/]+)\.json", re.IGNORECASE)),
    (SLACK_EXPORT, re.compile(r"\A(?:.*/)?(?:channels|groups|dms|mpims)\.json")),
)
_CHAT: Final = (
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|(?:private|public)_(?:super)?group|\w+_channel)"'
)
_HEADS: Final = (  # all of a format's expressions are found in the first bytes of its files
    (DISCORD_EXPORT, (re.compile(r'"guild"\s*:\s*\{'), re.compile(r'"channel"\s*:\s*\{'))),
    (MATRIX, (re.compile(r'"room_name"\s*:'), re.compile(r'"exported_by"\s*:'))),
    (TELEGRAM, (re.compile(r'"personal_information"\s*:|"chats"\s*:\s*\{|' + _CHAT),)),
    (
        TEAMS,
        (
            re.compile(r'"[Cc]reatedDateTime"\s*:'),
            re.compile(r'"(?:[Mm]essageType|[Cc]hannelIdentity|[Cc]hatId)"\s*:'),
        ),
    ),
)
_OF_MATTERMOST: Final = frozenset(
    {"version", "team", "channel", "user", "post", "direct_channel", "direct_post", "role"}
)


def format_of(path: Path) -> str:
    """The format of files: JSON lines where nothing says another. Raises BadInput for a path that can't be read."""
    packed = path.name.lower().endswith((".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz")) or zipfile.is_zipfile(path)
    if path.is_file() and not packed:
        try:
            with path.open("rb") as file:
                return format_of_head(file.read(HEAD_BYTES)) or JSONL
        except OSError as error:
            raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
    with Archive(path) as archive:
        heads = _formats_of_heads(archive)
        named = next((format for format, name in _NAMES if any(name.fullmatch(each) for each in archive.names)), None)
        return next(iter([*([named] if named else []), *heads]), JSONL)


def _formats_of_heads(archive: Archive) -> list[str]:
    """The formats of the first files of an archive."""
    wanted = [
        name for name in archive.names if name.lower().endswith((".json", ".jsonl", ".log", ".txt", ".weechatlog"))
    ]
    wanted.sort(key=lambda name: (name.count("/"), not name.endswith("l"), name))
    found = []
    for name in wanted[:MAX_TRIED]:
        with archive.open(name) as file:
            format = format_of_head(file.read(HEAD_BYTES))
        found += [] if format is None else [format]
    return found


def format_of_head(head: bytes) -> str | None:
    """The format of a file that begins so; None for an unknown one."""
    text = decode_text(head).lstrip("\ufeff \t\r\n")
    lines = [line for line in text.split("\n") if line.strip()][:MAX_TRIED]
    if any(is_irc_line(line.rstrip("\r")) for line in lines):
        return IRC
    if text[:1] not in ("{", "["):
        return None
    return _format_of_lines(text) or next((format for format, all in _HEADS if _all_found(all, text)), None)


def _all_found(expressions: tuple[re.Pattern[str], ...], text: str) -> bool:
    """Whether a text has all of some expressions in it."""
    return all(expression.search(text) for expression in expressions)


def _format_of_lines(text: str) -> str | None:
    """The format of a file of JSON lines; None for one that its first line does not tell."""
    try:
        first = json.loads(text.partition("\n")[0])
    except (ValueError, RecursionError):
        return None
    kind = first.get("type") if isinstance(first, dict) else None
    if kind in _OF_MATTERMOST and (kind in first or kind == "version"):
        return MATTERMOST
    return JSONL if kind in EVENT_TYPES else None

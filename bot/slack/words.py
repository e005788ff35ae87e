"""The words of a Slack message that stand outside its text: blocks, forwarded messages, cards of apps. Pure.

Everything is returned in Slack's markup (bot/slack/text.py). A preview of a link is no part of a message.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from composer.text.own_words import as_quotation

MAX_WORDS_CHARS: Final = 20_000  # of one message's blocks and attachments
MIN_REPEATED_WORDS: Final = 3  # of a line that is left out since it stands somewhere in the text
MAX_DEPTH: Final = 12  # of blocks inside blocks
_BARE: Final = re.compile(r"<[@#!]?([^<>|]*)(?:\|([^<>]*))?>|[\W_]+")

Json = Mapping[str, Any]


def own_words(message: Json) -> str:
    """What the author wrote: the text, or else the block in which Slack's own editor writes it."""
    text = str(message.get("text") or "")
    if text.strip() or message.get("bot_id"):
        return text
    return _joined(
        words for block in _dicts(message, "blocks") if block.get("type") == "rich_text" for words in _block(block)
    )


def other_words(message: Json) -> str:
    """What stands in the blocks and attachments of a message, without what its text says already."""
    own = own_words(message)
    blocks = [each for each in _dicts(message, "blocks") if message.get("bot_id") or each.get("type") != "rich_text"]
    lines = [line for block in blocks for line in _block(block)]
    for attachment in _dicts(message, "attachments"):
        if not _is_preview(attachment):
            lines += _attachment(attachment, by_person=not message.get("bot_id"))
    lines += _huddle(message.get("room"))
    said, kept = _plain(own), list[str]()
    whole = {_plain(line) for line in own.splitlines()}
    for line in lines:
        plain = _plain(line)
        is_short = len(plain.split()) < MIN_REPEATED_WORDS  # such a value may stand in any sentence
        if plain.strip() and plain not in (whole if is_short else said):
            kept.append(line)
            whole.add(plain)
            said += plain
    return "\n".join(kept)[:MAX_WORDS_CHARS]


def _plain(words: str) -> str:
    """Words without marks, so that the same text in a block and beside it is one."""
    bare = _BARE.sub(lambda mark: f" {mark[2] or mark[1] or ''} ", words)
    return f" {' '.join(bare.split()).casefold()} "


def _is_preview(attachment: Json) -> bool:
    """Whether an attachment is the preview of a link, which its site wrote."""
    shared = attachment.get("is_share") or attachment.get("is_msg_unfurl") or attachment.get("is_app_unfurl")
    return bool(attachment.get("from_url") or attachment.get("original_url")) and not shared


def _attachment(attachment: Json, *, by_person: bool) -> list[str]:
    """A card of an app, or a message that is forwarded or quoted. That and a card below a person's words are somebody
    else's, so they are quoted."""
    lines = [_markup(attachment.get("pretext"))]
    shared = attachment.get("is_share") or attachment.get("is_msg_unfurl")
    author = str(attachment.get("author_name") or attachment.get("author_subname") or "")
    inner = [line for block in _dicts(attachment, "blocks") for line in _block(block)]
    for each in _dicts(attachment, "message_blocks"):
        inner += [line for block in _dicts(each.get("message") or {}, "blocks") for line in _block(block)]
    text = _markup(attachment.get("text")) or _joined(inner)
    if shared:
        lines.append(f"{_escaped(author) or 'somebody'} wrote: {text}" if text else "")
    else:
        lines += [_escaped(author), _escaped(attachment.get("title")), text]
    lines += [
        f"{_escaped(field.get('title'))}: {_markup(field.get('value'))}".removeprefix(": ")
        for field in _dicts(attachment, "fields")
    ]
    lines += [f"(file: {_escaped(file_name(file))})" for file in _dicts(attachment, "files")]
    lines += [f"(button: {_escaped(each.get('text'))})" for each in _dicts(attachment, "actions") if each.get("text")]
    found = [line for line in lines if line.strip()] or [_escaped(attachment.get("fallback"))]
    return as_quotation("\n".join(found)).splitlines() if shared or by_person else found


def _block(block: Json, depth: int = 0) -> Iterator[str]:
    """The words of a block, in lines."""
    if depth > MAX_DEPTH:
        return
    kind = str(block.get("type") or "")
    if kind in _BLOCKS:
        yield from filter(str.strip, _BLOCKS[kind](block))
        return
    # A kind that is new, or that holds others: its texts, and those of what stands in it.
    for key in ("title", "text", "label", "description", "subtitle", "body", "alt_text"):
        yield from filter(str.strip, [_text_object(block.get(key))])
    for key, value in block.items():
        if isinstance(value, Mapping) and value.get("type") in _BLOCKS:
            yield from _block(value, depth + 1)
        elif key in ("fields", "elements", "blocks", "children", "cards", "tasks"):
            for inner in _dicts(block, key):
                yield from _block(inner, depth + 1)


def _rich_text(block: Json, depth: int = 0) -> list[str]:
    """The lines of a rich text: paragraphs, lists, quotes and code."""
    lines: list[str] = []
    if depth > MAX_DEPTH:
        return lines
    for element in _dicts(block, "elements"):
        kind = element.get("type")
        if kind == "rich_text_list":
            ordered = element.get("style") == "ordered"
            items = [_inline(item) for item in _dicts(element, "elements")]
            indent = "  " * min(_number(element.get("indent")), MAX_DEPTH)
            first = _number(element.get("offset")) + 1
            lines += [f"{indent}{f'{n}.' if ordered else '-'} {item}" for n, item in enumerate(items, start=first)]
        elif kind == "rich_text_quote":
            lines += [f"> {line}" for line in _inline(element).splitlines()]
        elif kind == "rich_text_preformatted":
            lines.append(f"```\n{_inline(element)}\n```")
        elif kind == "rich_text_section":
            lines += _inline(element).splitlines()
        else:
            lines += (
                _rich_text(element, depth + 1)
                if element.get("elements")
                else _inline({"elements": [element]}).splitlines()
            )
    return lines


def _number(value: object) -> int:
    return max(value, 0) if isinstance(value, int) else 0


def _inline(section: Json) -> str:
    return "".join(_ELEMENTS.get(str(each.get("type")), _unknown)(each) for each in _dicts(section, "elements"))


def _unknown(element: Json) -> str:
    return _escaped(element.get("text")) if isinstance(element.get("text"), str) else _text_object(element.get("text"))


def _link(element: Json) -> str:
    url, label = str(element.get("url") or ""), _escaped(element.get("text"))
    return f"<{url}|{label}>" if label else f"<{url}>"


_ELEMENTS: Final[Mapping[str, Callable[[Json], str]]] = {
    "text": lambda each: _escaped(each.get("text")),
    "link": _link,
    "user": lambda each: f"<@{each.get('user_id')}>",
    "usergroup": lambda each: f"<!subteam^{each.get('usergroup_id')}>",
    "channel": lambda each: f"<#{each.get('channel_id')}>",
    "broadcast": lambda each: f"<!{each.get('range')}>",
    "emoji": lambda each: f":{each.get('name')}:",
    "date": lambda each: _escaped(each.get("fallback") or each.get("timestamp")),
    "color": lambda each: _escaped(each.get("value")),
}


def _section(block: Json) -> list[str]:
    fields = [_text_object(field) for field in _dicts(block, "fields")]
    accessory = block.get("accessory")
    return [_text_object(block.get("text")), *fields, *(_control(accessory) if isinstance(accessory, Mapping) else ())]


def _control(element: Json) -> list[str]:
    """The words of a button or a menu."""
    words = _text_object(element.get("text"))
    options = [_text_object(option.get("text")) for option in _dicts(element, "options")]
    alt = _escaped(element.get("alt_text"))
    return [f"(button: {words})" if words else "", *options, f"(image: {alt})" if alt else ""]


def _context(block: Json) -> list[str]:
    parts = [
        f"(image: {_escaped(each.get('alt_text'))})" if each.get("type") == "image" else _text_object(each)
        for each in _dicts(block, "elements")
    ]
    return [" ".join(part for part in parts if part)]


def _table(block: Json) -> list[str]:
    rows = block.get("rows")
    lines = []
    for row in rows if isinstance(rows, list) else ():
        cells = [each for each in row if isinstance(each, Mapping)] if isinstance(row, list) else []
        lines.append(
            " | ".join(
                " ".join(_rich_text(c)) if c.get("type") == "rich_text" else _escaped(c.get("text")) for c in cells
            )
        )
    return lines


def _image(block: Json) -> list[str]:
    words = _text_object(block.get("title")) or _escaped(block.get("alt_text"))
    return [f"(image: {words})" if words else ""]


def file_name(file: Json) -> str:
    """What people know a file by: its name, or the title of a canvas, a list or an e-mail, which have no file name."""
    name, title = (str(file.get(key) or "") for key in ("name", "title"))
    return title if title and "." not in name else name or str(file.get("id") or "file")


def _huddle(room: object) -> list[str]:
    """The notice of a huddle or a call: what it was about, and who took part."""
    if not isinstance(room, Mapping):
        return []
    found = next(
        (room[key] for key in ("participant_history", "participants") if room.get(key)), [room.get("created_by")]
    )
    people = [f"<@{each}>" for each in found if isinstance(each, str)] if isinstance(found, list) else []
    what = ["huddle", _escaped(room.get("name")), f"with {', '.join(people)}" if people else ""]
    return [f"({': '.join(filter(None, what))})"]


def _call(block: Json) -> list[str]:
    """A huddle or a call."""
    call = ((block.get("call") or {}).get("v1") or {}) if isinstance(block.get("call"), Mapping) else {}
    return [_escaped(call.get("name"))]


_BLOCKS: Final[Mapping[str, Callable[[Json], list[str]]]] = {
    "rich_text": _rich_text,
    "section": _section,
    "header": lambda block: [_text_object(block.get("text"))],
    "markdown": lambda block: [_escaped(block.get("text"))],
    "context": _context,
    "actions": lambda block: [words for each in _dicts(block, "elements") for words in _control(each)],
    "context_actions": lambda block: [],
    "divider": lambda block: [],
    "table": _table,
    "image": _image,
    "call": _call,
    "file": lambda block: [],
}


def _text_object(value: object) -> str:
    """A text object of Slack, which says whether it holds markup; or a text."""
    if isinstance(value, Mapping):
        text = value.get("text")
        return _markup(text) if value.get("type") == "mrkdwn" else _escaped(text)
    return _escaped(value)


def _markup(value: object) -> str:
    return value if isinstance(value, str) else ""


def _escaped(value: object) -> str:
    """A text in which nothing is markup."""
    if not isinstance(value, str):
        return "" if value is None or isinstance(value, Mapping | list) else str(value)
    if "&lt;" in value or "&gt;" in value or "&amp;" in value:
        return value.replace("<", "&lt;").replace(">", "&gt;")  # Slack has escaped it
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _dicts(of: Json, key: str) -> list[Json]:
    return without_odd(of.get(key))


def without_odd(value: object) -> list[Json]:
    """The objects of a list, without what is none."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(line for line in lines if line.strip())

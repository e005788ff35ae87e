"""Converts between Slack's markup and plain text: messages for the core, answers for Slack. Pure.

Slack escapes `&`, `<` and `>` in what people write, so an unescaped `<…>` is always one of its own tokens.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from bot.commands.table import COMMANDS, PREFIX

_NO_NAMES: Final[Mapping[str, str]] = {}
_TOKEN = re.compile(r"<([^<>]*)>")
_PERSON = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_CHANNEL = re.compile(r"<#([CGD][A-Z0-9]+)(?:\|[^<>]*)?>")
_GROUP = re.compile(r"<!subteam\^([A-Z0-9]+)\|?>")
_UNLABELLED = re.compile(r"<#([CGD][A-Z0-9]+)\|?>")
_FIRST_MENTION = re.compile(r"<@([^<>|\s]+)(?:\|[^<>]*)?>[\s,:]*")
_NAME_START = re.compile(r"[a-z0-9][a-z0-9_.-]*", re.IGNORECASE)
_DANGEROUS = re.compile(r"<(?=[@#!]|[^<>\s|]+\|)")
_HEADS: Final = frozenset(name.split()[0] for name in COMMANDS)
_NAME: Final = PREFIX.removeprefix("/")
_COMMAND = re.compile(rf"(/?){re.escape(_NAME)}(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


def mentioned(text: str) -> tuple[str, ...]:
    """The ids of the people, and of the agent, that a text in Slack's markup mentions, each once, in order."""
    return tuple(dict.fromkeys(_PERSON.findall(text)))


def channels(text: str) -> tuple[str, ...]:
    """The ids of the channels that a text in Slack's markup mentions, each once, in order."""
    return tuple(dict.fromkeys(_CHANNEL.findall(text)))


def unlabelled(text: str) -> tuple[str, ...]:
    """The ids of the channels that a text in Slack's markup mentions without their names."""
    return tuple(dict.fromkeys(_UNLABELLED.findall(text)))


def groups(text: str) -> tuple[str, ...]:
    """The ids of the user groups that a text in Slack's markup mentions without their names."""
    return tuple(dict.fromkeys(_GROUP.findall(text)))


def plain(
    text: str,
    names: Mapping[str, str],
    *,
    own: str = "",
    slug: str = "",
    agents: Collection[str] = (),
    hidden: Collection[str] = (),
    rooms: Mapping[str, str] = _NO_NAMES,
    handles: Mapping[str, str] = _NO_NAMES,
) -> str:
    """A text in Slack's markup as people read it: `@name`, `#channel`, `label (address)`, and no entities.

    `names` are people's names by id; `own` is the agent's own id, which becomes `@slug`. A person or a user group whose
    name equals a slug of `agents` loses the `@`: mentioning them does not address the agent. `hidden` are the ids of
    channels that are not named, `rooms` the names of others that Slack leaves out, `handles` those of user groups.
    """

    def person(id: str, label: str) -> str:
        if id == own:
            return f"@{slug}"
        return mention(names.get(id) or label.lstrip("@") or id)

    def group(id: str, label: str) -> str:
        return mention(handles.get(id) or label.lstrip("@") or "a group")

    def mention(name: str) -> str:
        word = _NAME_START.match(name)
        is_slug = word is not None and word[0].casefold().rstrip(".-") in agents
        return name if is_slug else f"@{name}"

    return _entities(_TOKEN.sub(lambda token: _shown(token[1], person, group, hidden, rooms), text))


def by_id(text: str) -> str:
    """A text in Slack's markup in which people stay ids, `<@U123>`, and all else becomes plain."""
    return _entities(_PERSON.sub(r"<@\1>", text))


def _shown(
    token: str,
    person: Callable[[str, str], str],
    group: Callable[[str, str], str],
    hidden: Collection[str],
    rooms: Mapping[str, str],
) -> str:
    """A token, without its brackets, as people see it."""
    head, _, label = token.partition("|")
    if head.startswith("@"):
        return person(head[1:], label)
    if head.startswith("#"):
        return "#a channel" if head[1:] in hidden else f"#{label or rooms.get(head[1:]) or head[1:]}"
    if head.startswith("!"):
        name, _, id = head[1:].partition("^")
        if name == "subteam":
            return group(id, label)
        if name == "date":
            return label or head[1:]
        return f"@{name}"
    address = head.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in (head, address, address.removeprefix("https://").removeprefix("http://")):
        return address
    return f"{label} ({address})"


def _entities(text: str) -> str:
    """Unescape each entity once: `&amp;lt;` is the text `&lt;`."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def command(text: str, own: str, *, direct: bool) -> str | None:
    """The command in a message such as `@agent /nexus recall x` or `@agent nexus recall x`; None if there is none.

    In a DM the mention may be left out. Without the slash, the first word must be that of a command.
    """
    words = addressed(text, own, direct=direct)
    found = None if words is None else _COMMAND.fullmatch(words)
    if found is None:
        return None
    rest = (found[2] or "").strip()
    if not found[1] and rest.split(maxsplit=1)[:1] and rest.split(maxsplit=1)[0].lower() not in _HEADS:
        return None
    return f"{PREFIX} {rest}".strip() if found[1] or rest else None


def addressed(text: str, own: str, *, direct: bool) -> str | None:
    """The words of a message to the agent, which begins with a mention or is in a DM; None for any other message."""
    words = text.strip()
    mention = _FIRST_MENTION.match(words)
    mention = mention if mention is not None and mention[1] == own else None
    if mention is None and not direct:
        return None
    return words[mention.end() :] if mention else words


def safe_markdown(markdown: str) -> str:
    """An answer in Markdown in which nothing mentions people, or shows another address than it links to.

    Slack reads its own `<…>` tokens in Markdown too. An escaped token is shown as text.
    """
    return _DANGEROUS.sub("&lt;", markdown)


def escaped(text: str, *, code: bool = False) -> str:
    """Plain text, escaped for Slack's mrkdwn; `code`: as a code block."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"```\n{safe}\n```" if code else safe

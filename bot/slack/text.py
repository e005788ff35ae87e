"""Slack's text and plain text: what people wrote, as the core reads it, and answers, as Slack shows them. Pure.

Slack escapes `&`, `<` and `>` in what people write, so an unescaped `<…>` is always one of its own tokens.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from bot.commands.table import COMMANDS, PREFIX

_TOKEN = re.compile(r"<([^<>]*)>")
_PERSON = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_CALLED = re.compile(r"[a-z0-9][a-z0-9_.-]*", re.IGNORECASE)
_DANGEROUS = re.compile(r"<(?=[@#!]|[^<>\s|]+\|)")
_HEADS: Final = frozenset(name.split()[0] for name in COMMANDS)
_NAME: Final = PREFIX.removeprefix("/")
_COMMAND = re.compile(rf"(/?){re.escape(_NAME)}(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


def mentioned(text: str) -> tuple[str, ...]:
    """The ids of the people that a text of Slack's mentions, the agent too, each once, in their order."""
    return tuple(dict.fromkeys(_PERSON.findall(text)))


def plain(text: str, names: Mapping[str, str], *, own: str = "", slug: str = "", agents: Collection[str] = ()) -> str:
    """A text of Slack's as people read it: `@name`, `#channel`, `label (address)`, and no entities.

    `names` are people by id; `own` is the agent's own id, which becomes `@slug`. A person who is called as one of
    `agents` loses the `@`: mentioning them is no call to the agent.
    """

    def person(id: str, label: str) -> str:
        if id == own:
            return f"@{slug}"
        name = names.get(id) or label.lstrip("@") or id
        called = _CALLED.match(name)
        taken = called is not None and called[0].casefold().rstrip(".-") in agents
        return name if taken else f"@{name}"

    return _entities(_TOKEN.sub(lambda token: _shown(token[1], person), text))


def by_id(text: str) -> str:
    """A text of Slack's in which people stay as their ids, `<@U123>`."""
    return _entities(_PERSON.sub(r"<@\1>", text))


def _shown(token: str, person: Callable[[str, str], str]) -> str:
    """What people see of the inside of a token."""
    head, _, label = token.partition("|")
    if head.startswith("@"):
        return person(head[1:], label)
    if head.startswith("#"):
        return f"#{label or head[1:]}"
    if head.startswith("!"):
        name = head[1:].partition("^")[0]
        if name in ("date", "subteam"):
            return label or head[1:]
        return f"@{name}"
    address = head.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in (head, address, address.removeprefix("https://").removeprefix("http://")):
        return address
    return f"{label} ({address})"


def _entities(text: str) -> str:
    """Each entity once: `&amp;lt;` is the text `&lt;`."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def command(text: str, own: str, *, direct: bool) -> str | None:
    """The command that a message is: `@agent /nexus recall x`, `@agent nexus recall x`; None if it is none.

    In a direct conversation the mention may be left out. Without its slash, the first word must be a command's.
    """
    words = text.strip()
    mention = re.match(rf"<@{re.escape(own)}(?:\|[^<>]*)?>[\s,:]*", words)
    if mention is None and not direct:
        return None
    found = _COMMAND.fullmatch(words[mention.end() :] if mention else words)
    if found is None:
        return None
    rest = (found[2] or "").strip()
    if not found[1] and rest.split(maxsplit=1)[:1] and rest.split(maxsplit=1)[0].lower() not in _HEADS:
        return None
    return f"{PREFIX} {rest}".strip() if found[1] or rest else None


def written(markdown: str) -> str:
    """An answer in Markdown, so that nothing in it calls people or shows another address than it leads to.

    Slack reads its own `<…>` tokens in Markdown too; an escaped one is shown as it stands, and is not read again.
    """
    return _DANGEROUS.sub("&lt;", markdown)


def escaped(text: str) -> str:
    """Plain text as Slack's mrkdwn shows it; lines that are laid out in columns keep their columns."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    in_columns = "\n" in text and re.search(r"\S {2,}\S", text) is not None
    return f"```\n{safe}\n```" if in_columns else safe

"""The words of a Discord message that stand outside its content: cards, polls, stickers, forwarded messages. Pure.

A preview of a link, which its site wrote, is no part of a message.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from composer.errors import BadInput
from composer.text.moments import moment_of_seconds
from composer.text.own_words import as_quotation

MAX_WORDS_CHARS: Final = 20_000  # of one message
MAX_DEPTH: Final = 8  # of components inside components
PREVIEWS: Final = frozenset({"link", "article", "video", "image", "gifv"})  # types of cards
_POLL_FIELDS: Final = {"poll_question_text": "Poll", "victor_answer_text": "Most votes", "total_votes": "Votes in all"}
_TIME: Final = re.compile(r"<t:(\d{1,11})(?::[tTdDfFRsS])?>")
_TEXT_KEYS: Final = ("text", "poll_media", "pollMedia")
_POLL_PREFIXES: Final = ("poll_", "victor_", "total_")


@dataclass(frozen=True, slots=True)
class Card:
    """An embed of an app, as Discord shows it. `fields` are names with values, `url` is where its title leads to."""

    title: str = ""
    description: str = ""
    author: str = ""
    fields: Sequence[tuple[str, str]] = ()
    footer: str = ""
    url: str = ""
    kind: str = "rich"


@dataclass(frozen=True, slots=True)
class Outside:
    """What a message has besides its own content. `forwarded` are the contents of messages that it forwards;
    `by_person`: a person wrote it, who can't write cards, so these are of what they link."""

    cards: Sequence[Card] = ()
    polls: Sequence[tuple[str, Sequence[str]]] = ()  # questions, each with its answers
    stickers: Sequence[str] = ()
    components: Sequence[str] = ()  # texts, and labels of buttons
    forwarded: Sequence["Forwarded"] = ()
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A message that is forwarded: its content, and what it has besides."""

    content: str
    outside: Outside = Outside()


def outside_words(content: str, outside: Outside) -> str:
    """The words of a message besides its content, in lines; those of somebody else are quoted."""
    lines = [line for card in outside.cards if not _is_preview(card, content) for line in _card_lines(card)]
    lines = as_quotation("\n".join(lines)).splitlines() if outside.by_person else lines
    for question, answers in outside.polls:
        lines += [f"Poll: {question}", *(f"- {answer}" for answer in answers)]
    lines += [f"(sticker: {name})" for name in outside.stickers if name]
    lines += [line for line in outside.components if line.strip()]
    for each in outside.forwarded:
        inner = outside_words(each.content, each.outside)
        lines += as_quotation(f"{each.content}\n{inner}").splitlines()
    return "\n".join(lines)[:MAX_WORDS_CHARS]


def _is_preview(card: Card, content: str) -> bool:
    return card.kind in PREVIEWS or bool(card.url and card.url in content)


def _card_lines(card: Card) -> list[str]:
    fields = list(card.fields)
    if any(name in _POLL_FIELDS for name, _ in fields):
        return [f"{_POLL_FIELDS[name]}: {value}" for name, value in fields if name in _POLL_FIELDS and value]
    named = [f"{name}: {value}" for name, value in fields if not name.startswith(_POLL_PREFIXES)]
    return [line for line in (card.author, card.title, card.description, *named, card.footer) if line.strip()]


def with_times(text: str) -> str:
    """A text with times as people read them, in place of Discord's marks such as <t:1777885200:F>."""
    return _TIME.sub(_time, text)


def _time(found: re.Match[str]) -> str:
    try:
        return f"{moment_of_seconds(found[1]):%Y-%m-%d %H:%M} UTC"
    except BadInput:
        return found[0]


def component_words(components: Iterable[Any], depth: int = 0) -> list[str]:
    """The texts of components, and the labels of buttons and menus, whatever holds them."""
    if depth > MAX_DEPTH:
        return []
    found: list[str] = []
    for each in components:
        content, label, placeholder = (_member(each, name) for name in ("content", "label", "placeholder"))
        found += [content] if isinstance(content, str) else []
        found += [f"(button: {label})"] if isinstance(label, str) and label else []
        found += [f"(menu: {placeholder})"] if isinstance(placeholder, str) and placeholder else []
        options = [_member(option, "label") for option in _members(each, "options")]
        found += [f"- {option}" for option in options if isinstance(option, str)]
        inside = [*_members(each, "children"), *_members(each, "components"), _member(each, "accessory")]
        found += component_words([inner for inner in inside if inner is not None], depth + 1)
    return found


def _member(component: Any, name: str) -> Any:
    """A member of a component, which is an object of discord.py, or one of JSON."""
    return component.get(name) if isinstance(component, Mapping) else getattr(component, name, None)


def _members(component: Any, name: str) -> list[Any]:
    value = _member(component, name)
    return list(value) if isinstance(value, list | tuple) else []


def poll_words(poll: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The question of a poll in JSON, and its answers, as Discord or an exporter writes them."""
    answers = (_text(answer) for answer in _members(poll, "answers"))
    return _text(poll.get("question")), [answer for answer in answers if answer]


def _text(value: Any) -> str:
    """A text, or the one of an object that has it."""
    inner = next((value[key] for key in _TEXT_KEYS if value.get(key)), "") if isinstance(value, Mapping) else value
    return _text(inner) if isinstance(inner, Mapping) else inner if isinstance(inner, str) else ""

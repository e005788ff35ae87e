"""The words of a Discord message that stand outside its content: cards, polls, stickers, forwarded messages. Pure.

A preview of a link, which its site wrote, is no part of a message.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_WORDS_CHARS: Final = 20_000  # of one message
MAX_DEPTH: Final = 8  # of components inside components
PREVIEWS: Final = frozenset({"link", "article", "video", "image", "gifv"})  # types of cards
_POLL_FIELDS: Final = {"poll_question_text": "Poll", "victor_answer_text": "Most votes", "total_votes": "Votes in all"}
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
    """What a message has besides its own content. `forwarded` are the contents of messages that it forwards."""

    cards: Sequence[Card] = ()
    polls: Sequence[tuple[str, Sequence[str]]] = ()  # questions, each with its answers
    stickers: Sequence[str] = ()
    components: Sequence[str] = ()  # texts, and labels of buttons
    forwarded: Sequence["Forwarded"] = ()


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A message that is forwarded: its content, and what it has besides."""

    content: str
    outside: Outside = Outside()


def outside_words(content: str, outside: Outside) -> str:
    """The words of a message besides its content, in lines."""
    lines = [line for card in outside.cards if not _is_preview(card, content) for line in _card_lines(card)]
    for question, answers in outside.polls:
        lines += [f"Poll: {question}", *(f"- {answer}" for answer in answers)]
    lines += [f"(sticker: {name})" for name in outside.stickers if name]
    lines += [line for line in outside.components if line.strip()]
    for each in outside.forwarded:
        inner = outside_words(each.content, each.outside)
        words = [*each.content.splitlines(), *inner.splitlines()]
        lines += [f"> {line}" for line in words if line.strip()]
    return "\n".join(lines)[:MAX_WORDS_CHARS]


def _is_preview(card: Card, content: str) -> bool:
    return card.kind in PREVIEWS or bool(card.url and card.url in content)


def _card_lines(card: Card) -> list[str]:
    fields = list(card.fields)
    if any(name in _POLL_FIELDS for name, _ in fields):
        return [f"{_POLL_FIELDS[name]}: {value}" for name, value in fields if name in _POLL_FIELDS and value]
    named = [f"{name}: {value}" for name, value in fields if not name.startswith(_POLL_PREFIXES)]
    return [line for line in (card.author, card.title, card.description, *named, card.footer) if line.strip()]


def component_words(components: Iterable[Any], depth: int = 0) -> list[str]:
    """The texts of components, and the labels of buttons and menus, whatever holds them."""
    if depth > MAX_DEPTH:
        return []
    found: list[str] = []
    for each in components:
        content, label = (getattr(each, name, None) for name in ("content", "label"))
        found += [content] if isinstance(content, str) else []
        found += [f"(button: {label})"] if isinstance(label, str) and label else []
        inside = [*(getattr(each, "children", None) or ()), getattr(each, "accessory", None)]
        found += component_words([inner for inner in inside if inner is not None], depth + 1)
    return found

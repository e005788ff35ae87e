"""What an answer was made from, in lines that a person reads: who said it and when, the words, and a link."""

from collections.abc import Sequence
from typing import Final

from bot.commands.command import Call
from composer.prompt.cited import Cited, cited
from composer.prompt.explain import ExplainedSource
from composer.prompt.sections import RECALL
from composer.text.cleaning import shorten
from composer.turn.explanation import Explanation

MAX_SOURCE_CHARS: Final = 200  # of the words of one source
MAX_SHOWN_SOURCES: Final = 8
MAX_RECALLED: Final = 3


def source_lines(call: Call, explanation: Explanation, answer: str) -> list[str]:
    """One line for each source that an answer cites or quotes, in its order; none where it cites none."""
    taken = cited(explanation.sections, answer)
    lines = [f"- {_line(call, each, explanation)}" for each in taken[:MAX_SHOWN_SOURCES]]
    more = len(taken) - MAX_SHOWN_SOURCES
    return [*lines, *([f"- and {more} more"] if more > 0 else [])]


def recalled_lines(call: Call, explanation: Explanation) -> list[str]:
    """One line for each of the best that was recalled for an answer."""
    found = [source for section in explanation.sections if section.name == RECALL for source in section.sources]
    return [f"- {_line(call, Cited(RECALL, s.text, s), explanation)}" for s in found[:MAX_RECALLED] if s.text]


def links(call: Call, source: ExplainedSource | None, explanation: Explanation) -> list[str]:
    """The links to the messages of a source, as far as its platform has any and they may be named here."""
    addresses = () if source is None or source.id is None else explanation.addresses.get(source.id, ())
    return [link for link in map(call.permalink, addresses) if link is not None]


def _line(call: Call, each: Cited, explanation: Explanation) -> str:
    words = shorten(" ".join(each.text.removeprefix("- ").split()), MAX_SOURCE_CHARS)
    came_from = "" if each.source is None else each.source.came_from
    place = f"({came_from})" if came_from and came_from not in words else ""
    return " ".join(filter(None, (words, place, *links(call, each.source, explanation)[:1])))


def counted_words(parts: Sequence[str]) -> str:
    """Parts of a sentence, joined as people do."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))

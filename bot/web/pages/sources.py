"""The sources of an answer as cards: who said what, when and where; and the marks in its text as links to them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from bot.web.links import message_link
from bot.web.sessions import TurnView
from composer.prompt.explain import ExplainedSource
from composer.text.marks import replace_marks

# Why something is recalled, by the parts of its score (composer.layers.ranking.REASONS) that not everything has.
_WHY: Final[Mapping[str, Sequence[str]]] = {
    "meaning": ("meaning",),
    "words": ("words",),
    "around": ("before", "after", "reply", "together", "session"),
    "person": ("speaker",),
    "time": ("when", "date", "near"),
    "room": ("room",),
}
MAX_WHY: Final = 2
MIN_WHY: Final = 0.3  # of the largest: less did not bring it there


@dataclass(frozen=True, slots=True)
class SourceCard:
    """A source. `number` is that of its mark in the answer (empty: it has none); `at`, `who` and `where` are empty
    where they are not known; `why` is what it was found by, if it was looked for; `cited`: the answer cites it; `link`
    leads to it on its platform."""

    number: str
    kind: str
    at: datetime | None
    who: str
    where: str
    why: Sequence[str]
    said: str
    cited: bool
    link: str | None


def cards_of(view: TurnView | None) -> Sequence[SourceCard]:
    """The sources of an answer, those that it cites first."""
    return [] if view is None else [_card(each, view) for each in sorted(view.sources, key=lambda each: not each.cited)]


def found_by(reasons: Mapping[str, float]) -> Sequence[str]:
    """What brought a source there, the most important first: the largest parts of its score."""
    parts = {why: sum(reasons.get(name, 0.0) for name in names) for why, names in _WHY.items()}
    largest = sorted((why for why, part in parts.items() if part > 0), key=lambda why: -parts[why])[:MAX_WHY]
    return [why for why in largest if parts[why] >= MIN_WHY * parts[largest[0]]]


def with_links(answer: str) -> str:
    """An answer in Markdown whose marks lead to the cards."""

    def linked(match: re.Match[str]) -> str:
        marks = (mark.strip() for mark in match["marks"].split(","))
        return match["gap"] + " ".join(
            f"[{mark.removeprefix('s')}](#source-{mark.removeprefix('s')})" for mark in marks
        )

    return replace_marks(answer, linked)


def _card(source: ExplainedSource, view: TurnView) -> SourceCard:
    return SourceCard(
        source.mark.removeprefix("s"),
        source.kind,
        source.at,
        source.who,
        source.came_from,
        found_by(source.reasons),
        source.said,
        source.cited,
        message_link(view.made.address(source)),
    )

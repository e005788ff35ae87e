"""The sources of an answer as cards: who said what, when and where; and the marks in its text as links to them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.web.links import message_link
from bot.web.sessions import TurnView
from composer.prompt.explain import ExplainedSource
from composer.text.marks import replace_marks


@dataclass(frozen=True, slots=True)
class SourceCard:
    """A source. `number` is that of its mark in the answer (empty: it has none); `at`, `who` and `where` are empty
    where they are not known; `cited`: the answer cites it; `link` leads to it on its platform."""

    number: str
    kind: str
    at: datetime | None
    who: str
    where: str
    said: str
    cited: bool
    link: str | None


def cards_of(view: TurnView | None) -> Sequence[SourceCard]:
    """The sources of an answer, those that it cites first."""
    return [] if view is None else [_card(each, view) for each in sorted(view.sources, key=lambda each: not each.cited)]


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
        source.said,
        source.cited,
        message_link(view.made.address(source)),
    )

"""Usage for people: the figures of days, agents, rooms, people, kinds of work or models, one line each. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from composer.model import ConversationKind
from composer.repositories.operations import Total
from composer.repositories.usage import NO_ONE_ID, Dimension, Figures, UsageRow
from composer.text.cleaning import clean_line
from composer.text.counts import counted
from composer.text.names import speaker_label, title_label
from composer.usage.prices import Prices

NO_CONVERSATION: Final = "no conversation"
NO_PERSON: Final = "nobody in particular"
NO_AGENT: Final = "no agent"
_TOGETHER: Final = {ConversationKind.DM: "DMs", ConversationKind.SESSION: "sessions"}
PRIVATE_ROOMS: Final = "private rooms"


@dataclass(frozen=True, slots=True)
class UsageLine:
    """The figures of one thing, by its name for people."""

    name: str
    figures: Figures

    def describe(self, prices: Prices) -> str:
        """The line for people."""
        return f"{self.name}: {figures_text(self.figures, prices)}"

    @property
    def tokens(self) -> int:
        """Of prompts and completions together."""
        return _tokens(self.figures)


def lines(rows: Sequence[UsageRow], by: Dimension) -> list[UsageLine]:
    """One line for each thing, days in their order, else the most used first. All DMs are one line, and so are all
    sessions, and all private rooms whose names the viewer may not know."""
    found: dict[tuple[str, str], Figures] = {}
    for row in rows:
        name, together = _name(row, by)
        key = (name, "" if together else row.key)
        found[key] = found.get(key, Figures()) + row.figures
    named = [UsageLine(name, figures) for (name, _), figures in found.items()]
    if by is Dimension.DAY:
        return sorted(named, key=lambda line: line.name)
    return sorted(named, key=lambda line: (-line.figures.cost, -_tokens(line.figures), line.name))


def operation_lines(totals: Sequence[Total], until: date) -> list[str]:
    """What was done over the API in months that begin no later than a day, one line for each month, the latest
    first."""
    found: dict[date, dict[str, int]] = {}
    for each in totals:
        if each.month <= until:
            of_month = found.setdefault(each.month, {})
            of_month[each.operation.value] = of_month.get(each.operation.value, 0) + each.count
    return [
        f"{month:%Y-%m}: " + ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))
        for month, counts in found.items()
    ]


def total(found: Iterable[UsageLine]) -> Figures:
    """The figures of all lines together."""
    return sum((line.figures for line in found), Figures())


def figures_text(figures: Figures, prices: Prices) -> str:
    """Figures for people: calls, tokens, and what they cost as far as that is known."""
    parts = [
        counted(figures.calls, "call"),
        f"{figures.prompt_tokens:,} + {figures.completion_tokens:,} tokens",
        prices.format(figures.cost),
    ]
    notes = [
        (figures.cached_tokens, "tokens from the provider's cache"),
        (figures.unpriced_tokens, "tokens without a price, not in the sum"),
        (figures.failures, "failed"),
        (figures.refused, "refused by a budget"),
        (figures.estimated, "calls with tokens that we counted"),
    ]
    noted = "; ".join(f"{count:,} {what}" for count, what in notes if count)
    return ", ".join(parts) + (f" ({noted})" if noted else "")


def _tokens(figures: Figures) -> int:
    return figures.prompt_tokens + figures.completion_tokens


def _name(row: UsageRow, by: Dimension) -> tuple[str, bool]:
    """The name of a row, and whether all rows of that name are one line."""
    match by:
        case Dimension.AGENT:
            return (f"@{row.key}", False) if row.key else (NO_AGENT, True)
        case Dimension.PERSON:
            known = row.key != str(NO_ONE_ID) and row.name is not None
            return (speaker_label(row.name or ""), False) if known else (NO_PERSON, True)
        case Dimension.ROOM if row.place is None:
            return NO_CONVERSATION, True
        case Dimension.ROOM if row.place in _TOGETHER:
            return _TOGETHER[row.place], True
        case Dimension.ROOM:
            return (PRIVATE_ROOMS, True) if row.name is None else (f"#{title_label(row.name)}", False)
        case _:
            return clean_line(row.key), False

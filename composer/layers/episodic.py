"""The episodic layer: the summaries of a conversation that belong in a prompt, and the compaction of its view; read in
one round trip with everything else that a turn needs before it searches."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from composer.model import Conversation, Item, Message
from composer.repositories.recall import Background, Recall
from composer.text.dates.vocabulary import Period
from composer.visibility import Readable

# The latest of each tier that are candidates. The semantic layer finds older ones, and those of other namespaces, by
# meaning.
MAX_SUMMARIES: Final[Mapping[str, int]] = {"week": 4, "day": 7, "session": 2, "thread": 2}
DAY_BY_DAY: Final = timedelta(days=3)  # how far back days stand for themselves; before that, weeks
ONE_WEEK: Final = timedelta(days=7)  # a question about a longer time is answered week by week
_BY_DAY: Final = ("day", "session", "thread", "week")
_BY_WEEK: Final = ("week", "day", "session", "thread")


async def read(
    recall: Recall,
    own: Readable,
    conversation: Conversation,
    agent: uuid.UUID,
    before: Message,
    people: Sequence[uuid.UUID],
    periods: Sequence[Period] = (),
    *,
    model: str | None = None,
) -> Background:
    """The background of a conversation as it was before a message; summaries and compaction are checked again.

    `own` reads the conversation's own namespace and nothing else. The summaries are candidates: `choose` takes those
    that belong in the prompt. `periods` are those that the message names (composer.text.dates.periods), `model` the one
    whose last prompt's tokens come with it.
    """
    found = await recall.background(own, conversation, agent, before, MAX_SUMMARIES, people, periods, model=model)
    compaction = found.compaction if found.compaction is not None and own.admits(found.compaction) else None
    return replace(found, compaction=compaction, summaries=[item for item in found.summaries if own.admits(item)])


def choose(background: Background, periods: Sequence[Period], now: datetime, tokens: int) -> list[Item]:
    """The summaries for a question, oldest first, in at most so many tokens. No two tell of the same time.

    Those of the `periods` that the question names come first. Then the recent past day by day, and what lies further
    back week by week.
    """
    summaries, left = background.summaries, tokens
    chosen: list[Item] = []
    for item in sorted(summaries, key=lambda item: _preference(item, periods, now)):
        if background.tokens[item.id] <= left and not any(_overlap(item, other) for other in chosen):
            chosen.append(item)
            left -= background.tokens[item.id]
    return sorted(chosen, key=lambda item: (item.at, item.id))


def _preference(item: Item, periods: Sequence[Period], now: datetime) -> tuple[bool, bool, int, float, str]:
    """What is smallest is taken first: those of an asked period, then what is recent; by tier, newest first."""
    spans = [end - start for start, end in periods if _tells_of(item, start, end)]
    recent = item.at > now - DAY_BY_DAY
    days = min(spans) <= ONE_WEEK if spans else recent
    tiers = _BY_DAY if days else _BY_WEEK
    return not spans, not spans and not recent, tiers.index(item.kind), -item.at.timestamp(), item.id


def _tells_of(item: Item, start: datetime, end: datetime) -> bool:
    """Whether at least half of the shorter lies within the other: an asked period need not be one of a summary."""
    common = min(item.at, end) - max(_start(item), start)
    return common > timedelta() and common * 2 >= min(end - start, item.at - _start(item))


def _overlap(one: Item, other: Item) -> bool:
    return _start(one) < other.at and _start(other) < one.at


def _start(item: Item) -> datetime:
    return item.at if item.starts_at is None else item.starts_at

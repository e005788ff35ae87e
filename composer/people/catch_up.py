"""What one person missed in a room since a time, from what they may read there."""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Final

from composer import visibility
from composer.model import Message
from composer.prompt.lines import apart, author_label, numbers_of_namesakes
from composer.repositories.database import Transaction
from composer.repositories.digests import ReadableSummary
from composer.repositories.explanations import MessageAddress
from composer.text.cleaning import shorten
from composer.text.counts import counted
from composer.text.dates.local_days import day_of
from composer.text.names import in_quotes
from composer.visibility import AccessContext

WEEK: Final = timedelta(days=7)
FIRST_VISIT: Final = WEEK  # what somebody catches up on who never wrote there
MAX_MISSED_MESSAGES: Final = 1_000  # that are read
MAX_MENTIONS: Final = 10  # messages to the person that are listed
MAX_MISSED_NAMES: Final = 5
MAX_CATCH_UP_QUOTE_CHARS: Final = 160
MAX_UNSUMMARISED: Final = 300  # messages that are summed up at once
MAX_CATCH_UP_CHARS: Final = 1_900  # of the answer: what one message of every platform takes
MAX_MENTION_CHARS: Final = 900  # of them, of the messages to the person
REST: Final = "The rest does not fit here: ask for less, such as catch-up 2 hours."

Placed = tuple[Message, MessageAddress]
Link = Callable[[MessageAddress], str | None]


@dataclass(frozen=True, slots=True)
class Missed:
    """What one person missed in a room: the messages of others since a time, oldest first, and the summaries of whole
    days among them. `since_own`: the time is that of their own last message. `more`: there are earlier messages. `now`:
    when it was read."""

    since: datetime
    since_own: bool
    messages: tuple[Placed, ...]
    days: tuple[ReadableSummary, ...]
    users: frozenset[uuid.UUID]
    now: datetime
    more: bool = False

    @property
    def unsummarised(self) -> list[tuple[Message, str]]:
        """The messages that are in no summary, the latest 300 of them, each with its thread ("": none)."""
        spans = [(day.starts_at, day.ends_at) for day in self.days]
        untold = [each for each in self.messages if not any(start <= each[0].at < end for start, end in spans)]
        return [(message, address.thread or "") for message, address in untold[-MAX_UNSUMMARISED:]]


async def read_missed(
    tx: Transaction, access: AccessContext, since: datetime | None, now: datetime, zone: tzinfo
) -> Missed:
    """What the asker missed in the room of a conversation, since a time or (None) since they last wrote there. Days are
    those of `zone`. Raises NotFound if they may not participate."""
    readable = visibility.readable_conversation(access)
    users = access.linked_users(access.asker)
    room, namespace = access.conversation.room_id or access.conversation.id, access.conversation.namespace
    own = await tx.digests.last_own(room, namespace, users) if since is None else None
    start = since or own or now - FIRST_VISIT
    found = await tx.digests.messages_since(readable, room, start, MAX_MISSED_MESSAGES)
    others = tuple(each for each in found if each[0].user_id not in users)
    today = day_of(now, zone)[0]
    first = day_of(start, zone)[0 if day_of(start, zone)[0] == start else 1]
    days: list[ReadableSummary] = []
    # Of a day whose summary is still to be written, or to be written anew, the messages are summed up.
    if first < today and not await tx.digests.awaits_summaries(room, namespace, ("day",), first, today):
        days = await tx.digests.summaries(readable, room, "day", first, today)
    oldest = others[0][0].at if others else now
    days = [day for day in days if day.ends_at > oldest]
    return Missed(start, own is not None, others, tuple(days), frozenset(users), now, len(found) == MAX_MISSED_MESSAGES)


async def still_holds(tx: Transaction, access: AccessContext, missed: Missed) -> bool:
    """Whether what was missed may still be shown: the asker may read the room, which is the one that it was, and
    nothing of it was erased or edited since. Raises NotFound if they may not participate any more."""
    readable = visibility.readable_conversation(access)
    if not all(readable.admits(message) for message, _ in missed.messages):
        return False
    read = [(message.id, message.text, tuple(a.words for a in message.attachments)) for message, _ in missed.messages]
    return not await tx.erasure.changed_sources(read, [day.id for day in missed.days])


def missed_text(missed: Missed, brief: str, link: Link, zone: tzinfo) -> str:
    """The answer, which fits one message of every platform: how much was said by whom, the messages that mention the
    person with links to them where the platform has them, the summaries of days, and the `brief` summary of the
    messages in none of them. Of too many days the latest are shown, and a sentence says that there are more."""
    since = f"{missed.since.astimezone(zone):%a %Y-%m-%d %H:%M}"
    head = f"Since you last wrote here ({since})" if missed.since_own else f"Since {since}"
    if not missed.messages:
        return f"{head} nobody else has written here."
    more = f" Only the latest {MAX_MISSED_MESSAGES:,} were read." if missed.more else ""
    count = counted(len(missed.messages), "message")
    first, address = missed.messages[0]
    which = f"the latest {MAX_MISSED_MESSAGES:,}" if missed.more else "it"
    speakers = [(each.author, each.user_id) for each, _ in missed.messages if not each.by_agent]
    numbers = numbers_of_namesakes(speakers, "\n".join((*(day.text for day in missed.days), brief)))
    quoted = partial(_quoted, link=link, zone=zone, now=missed.now, numbers=numbers)
    last = f"The first of {which}: {quoted(first, address, told=False)}"
    lines = [f"{head}: {count} by {_speakers(missed.messages, numbers)}.{more}", *_mention_lines(missed, quoted)]
    left = MAX_CATCH_UP_CHARS - len("\n".join((*lines, last, REST))) - 2
    title = "In short:" if not missed.days else "Besides these days:"
    briefs = _latest([f"{title}\n{brief}"] if brief else [], left)
    days = _day_lines(missed.days, zone)
    shown = _latest(days, left - sum(len(each) + 1 for each in briefs))
    whole = len(shown) == len(days) and (bool(briefs) or not brief)
    if brief and not briefs:
        briefs = [shorten(f"{title} {brief}", max(left - sum(len(each) + 1 for each in shown), len(title) + 1))]
    return "\n".join((*lines, *shown, *briefs, *([] if whole else [REST]), last))


def _mention_lines(missed: Missed, quoted: Callable[[Message, MessageAddress], str]) -> list[str]:
    """The latest messages that mention the person, oldest first, as many as have room."""
    mentions = [each for each in missed.messages if missed.users.intersection(each[0].mentions)]
    lines = [quoted(message, place) for message, place in mentions[-MAX_MENTIONS:]]
    shown = _latest(lines, MAX_MENTION_CHARS)
    left = len(mentions) - len(shown)
    return [f"To you (and {left:,} more before these):" if left else "To you:", *shown] if mentions else []


def _latest(texts: Sequence[str], max_chars: int) -> list[str]:
    """The last of these texts, as many as have room with their line breaks."""
    kept: list[str] = []
    for text in reversed(texts):
        max_chars -= len(text) + 1
        if max_chars < 0:
            break
        kept.insert(0, text)
    return kept


def _day_lines(days: Sequence[ReadableSummary], zone: tzinfo) -> list[str]:
    texts = apart([day.text for day in days])
    return [f"{day.starts_at.astimezone(zone):%A, %Y-%m-%d}:\n{text}" for day, text in zip(days, texts, strict=True)]


def _speakers(messages: Sequence[Placed], numbers: Mapping[uuid.UUID, str]) -> str:
    """ "alice (30), bob (12) and 3 others", who said most first."""
    counts: Mapping[str, int] = Counter(author_label(message, numbers) for message, _ in messages)
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    named = [f"{name} ({count:,})" for name, count in ordered[:MAX_MISSED_NAMES]]
    others = len(ordered) - len(named)
    return ", ".join(named) + (f" and {counted(others, 'other')}" if others else "")


def _quoted(
    message: Message,
    address: MessageAddress,
    link: Link,
    zone: tzinfo,
    now: datetime,
    numbers: Mapping[uuid.UUID, str],
    *,
    told: bool = True,
) -> str:
    """A message on one line, or the names of its files, with the link to it, or its id; with its date where the weekday
    alone would name a later day. Only where it is unless `told`: what was said after it may take it back."""
    local = message.at.astimezone(zone)
    this_week = now.astimezone(zone).date() - local.date() < WEEK
    at, where = f"{local:%a %H:%M}" if this_week else f"{local:%a %Y-%m-%d %H:%M}", link(address)
    said = message.text.strip() or ", ".join(in_quotes(file.name) for file in message.attachments)
    text = f": {shorten(said, MAX_CATCH_UP_QUOTE_CHARS)}" if told else ""
    return f"{author_label(message, numbers)}, {at}{text} ({where or f'message {message.external_id}'})"

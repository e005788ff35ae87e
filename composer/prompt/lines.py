"""The lines of a prompt: messages, memories, facts and summaries as quoted text that cannot imitate the prompt's own
markup. Pure.

Everything people wrote is data. It is quoted so that no line of it can look like a section heading, a source mark or
another speaker: its first line follows its speaker, source mark or date, every other line follows a bar.

An agent's earlier answers are shown without their source marks: a mark in a prompt, and so in the answer to it, is
always one of this prompt's sources.
"""

import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import count, pairwise
from typing import Final

from composer.model import Agent, Item, Message
from composer.prompt import images
from composer.prompt.images import SelectedImage
from composer.prompt.sections import COMPACTION, EXTRACTIVE, GAP
from composer.text.cleaning import clean_line, clean_text, shorten
from composer.text.marks import without_marks
from composer.text.masking import mask
from composer.text.names import AGENT_LABEL, in_quotes, looks_within, speaker_label, title_label
from composer.text.notices import without_notices
from composer.text.offline import without_notice

NO_NAMESAKES: Final[Mapping[uuid.UUID, str]] = {}
IN_A_FILE: Final = "[in an attached file]"  # stands above what a recalled message has in its files
UNSEEN: Final = "an image that you cannot see"  # replaces an image that is not sent
ONE_DAY: Final = timedelta(days=1)
SHIFT: Final = timedelta(hours=1)  # by which a day is longer or shorter when clocks change
MAX_TYPE_CHARS: Final = 80  # of an attachment's media type
MARK_DIGITS: Final = 4  # of the number that tells a person from others of that name

_MEDIA_TYPE = re.compile(r"[^\w./+;= -]+", re.ASCII)


def quote(text: str) -> str:
    """People's text as data: cleaned, and a bar before every line but the first."""
    if text.isascii() and text.isprintable():  # a single line without control characters: most messages
        return text.rstrip()
    return "\n  | ".join(line.rstrip() for line in clean_text(text).strip("\n").split("\n"))


def numbers_of_namesakes(speakers: Iterable[tuple[str, uuid.UUID | None]], beside: str = "") -> Mapping[uuid.UUID, str]:
    """What tells people apart whose names are alike, by user: " [4821]". Nobody's own name can have it.

    Names are alike that look the same, and one that has another's whole name within ("alice and carol"). The number is
    the person's own, so it is the same wherever it stands, and no newcomer changes it. Where two have the same one,
    both have more of its digits. Where people of a name are told apart in a text that is shown `beside` (a summary), so
    is everybody of that name here.
    """
    named = {(name, user) for name, user in speakers if user is not None}
    if len({user for _, user in named}) < 2 and "[" not in beside:
        return {}
    people = [(speaker_label(name), user) for name, user in named]
    looks = [looks_within(label) for label, _ in people]
    by_look = defaultdict[str, set[uuid.UUID]](set)
    for (_, user), (whole, _) in zip(people, looks, strict=True):
        for look in whole:
            by_look[look].add(user)
    alike = set[uuid.UUID]()
    for (label, user), (_, within) in zip(people, looks, strict=True):
        for users in (by_look[each] for each in within if each in by_look):
            if users != {user}:
                alike |= users | {user}
        if "[" in beside and f"{label} [" in beside:
            alike.add(user)
    return _shortest({user: _digits(user) for user in alike})


def _digits(user: uuid.UUID) -> str:
    """The number of a person, all of its digits: they are of their id alone."""
    return str(int.from_bytes(sha256(user.bytes).digest()))[::-1]  # the last digit first: the first is mostly a one


def _shortest(numbers: Mapping[uuid.UUID, str]) -> Mapping[uuid.UUID, str]:
    """As many digits of each number as tell it from the others, and not less than MARK_DIGITS."""
    found = dict[uuid.UUID, str]()
    for length in count(MARK_DIGITS):
        had = Counter(number[:length] for number in numbers.values())
        new = {user: number[:length] for user, number in numbers.items() if user not in found}
        found |= {user: f" [{digits}]" for user, digits in new.items() if had[digits] == 1}
        if len(found) == len(numbers):
            break
    return found


def structured_item(item: Item, namesakes: Mapping[uuid.UUID, str]) -> Item:
    """A fact or landmark whose line (composer/layers/structured.py) tells its author from others of that name."""
    number = "" if item.user_id is None else namesakes.get(item.user_id, "")
    label = speaker_label(item.author)
    if not number:
        return item
    if item.kind == "landmark":  # "- 2026-05-04 Alice: …"
        before, _, after = item.text.partition(f" {label}")
        return replace(item, text=f"{before} {label}{number}{after}")
    before, _, after = item.text.rpartition(f"; {label}, ")  # "- deploy_day = "Friday" (this room; Alice, 2026-05-04)"
    return replace(item, text=f"{before}; {label}{number}, {after}")


def named_label(name: str, user: uuid.UUID | None, namesakes: Mapping[uuid.UUID, str]) -> str:
    """What a person is called, told from others of that name."""
    return speaker_label(name) + ("" if user is None else namesakes.get(user, ""))


def author_label(message: Message, namesakes: Mapping[uuid.UUID, str]) -> str:
    """Who wrote a message, as its line begins, told from others of that name."""
    if message.by_agent:
        return title_label(message.author)  # whatever its admins call it
    return named_label(message.author, message.user_id, namesakes)


def numbers_in(items: Iterable[Item], beside: str = "") -> Mapping[uuid.UUID, str]:
    """What tells apart those who said items under one name, as `numbers_of_namesakes`."""
    speakers = ((each.author, each.user_id) for each in items if each.author and not each.by_agent)
    return numbers_of_namesakes(speakers, beside)


def message_line(
    message: Message, shown: Sequence[SelectedImage] = (), namesakes: Mapping[uuid.UUID, str] = NO_NAMESAKES
) -> str:
    """A message with its speaker, time and attachments. `shown` are the images sent, `namesakes` as above.

    What we say of it, such as the name of a file, is in brackets on a line without a bar, which nobody can type.
    """
    body = quote(without_marks(message.text) if message.by_agent else message.text)
    numbers = images.numbers(shown, message) if shown else {}
    for index, attachment in enumerate(message.attachments):
        media_type = _MEDIA_TYPE.sub("", shorten(clean_text(attachment.type), MAX_TYPE_CHARS))
        unread = UNSEEN if attachment.is_image else clean_line(attachment.note)
        note = f"image {numbers[index]}, shown below" if index in numbers else unread
        body += f"\n  [attachment {in_quotes(attachment.name)}, {media_type}{note and f': {note}'}]"
        if attachment.text and not attachment.is_image:
            body += f"\n  | {quote(attachment.text)}"
    label = clean_line(message.author) if message.by_agent else author_label(message, namesakes)
    return f"{label} ({minute_words(message.at)}): {body}"


def question_line(
    question: Message, shown: Sequence[SelectedImage], namesakes: Mapping[uuid.UUID, str] = NO_NAMESAKES
) -> str:
    """The message to answer, and the images that are sent from the message it replies to."""
    body = message_line(question, shown, namesakes)
    for number, image in enumerate(shown, 1):
        if image.message.id != question.id:
            name, author = in_quotes(image.attachment.name), author_label(image.message, namesakes)
            body += f"\n  [image {number}, shown below: {name}, from the message of {author} that this replies to]"
    return body


def view_line(agent: Agent, message: Message, namesakes: Mapping[uuid.UUID, str] = NO_NAMESAKES) -> str:
    """A message of the view: the agent's own words without their marks and notices (they get the assistant role), all
    others quoted."""
    if not is_own(agent, message):
        return message_line(message, (), namesakes)
    return clean_text(without_marks(without_notices(without_notice(message.text))))


def is_own(agent: Agent, message: Message) -> bool:
    """Whether a message is the agent's own words. A reminder that it posted is not: that is what a person wrote."""
    return message.by_agent_itself and message.agent_id == agent.id


def related_line(agent: Agent, message: Message, namesakes: Mapping[uuid.UUID, str] = NO_NAMESAKES) -> str:
    """A message of RELATED.

    It is part of a text block, without a role, so the agent's own messages need a speaker too.
    """
    return message_line(replace(message, author=AGENT_LABEL) if is_own(agent, message) else message, (), namesakes)


def recall_line(
    item: Item,
    above: Sequence[Item],
    here: str = "",
    asker: uuid.UUID | None = None,
    namesakes: Mapping[uuid.UUID, str] = NO_NAMESAKES,
) -> str:
    """A recalled item with its source mark (s1, s2, …: it follows those `above`), its time, its speaker, what it is if
    not a message, which part of a long text, its place (where it came from, or `here`), and than which line it is newer
    or older. What the `asker` said is marked so, and what stands in a file, which is nobody's word. Secrets in an old
    message are masked."""
    text = without_marks(without_notices(item.text)) if item.by_agent else item.text
    author = f" {speaker_label(item.author)}" if item.author else ""
    if author and item.user_id is not None and not item.by_agent:
        author += namesakes.get(item.user_id, "")
    own = "the asker's own" if author and asker is not None and item.user_id == asker and not item.by_agent else ""
    kind = "" if item.kind == "episode" else item.kind
    age = _age_words(item, above)
    about = ", ".join(part for part in (own, kind, item.passage, item.came_from or here, age) if part)
    when = minute_words(item.at) if item.starts_at is None else period_words(item)
    body = quote(mask(text[: item.files_at]))
    if item.files_at is not None:
        body += f"\n  {IN_A_FILE}\n  | {quote(mask(text[item.files_at :].lstrip(chr(10))))}"
    return f"- (s{len(above) + 1}) {when}{author}{f' ({about})' if about else ''}: {body}"


def said_in(line: str, kind: str) -> str:
    """What was said in the line of a source of this kind, as it was said: all after its head, which has no colon before
    a space, since names in it are without signs. A fact's line has no head, and ends with who set it, in brackets."""
    if kind == "fact":
        return line.removeprefix("- ").rpartition(" (")[0]
    head, colon, said = line.partition(": ")
    return "\n".join(part.removeprefix("  | ").removeprefix("  |") for part in said.split("\n")) if colon else head


def _age_words(item: Item, above: Sequence[Item]) -> str:
    for number, other in enumerate(above, 1):
        if other.id == item.newer_than:
            return f"newer than s{number}"
        if other.newer_than == item.id:
            return f"older than s{number}"
    return ""


def apart(texts: Sequence[str]) -> list[str]:
    """Summaries of times that follow one another, with a line "\u2026" between each two: what was said there may have
    been deleted since they were written."""
    gaps = [text.endswith(GAP) or after.startswith(GAP) for text, after in pairwise((*texts, GAP))]
    return [text if gap else f"{text}\n{GAP}" for text, gap in zip(texts, gaps, strict=True)]


def summary_line(item: Item) -> str:
    """A summary, or the compaction of the view, with the time it reaches to."""
    if item.kind == COMPACTION:
        how = ", in sentences as they were said" if item.author == EXTRACTIVE else ""
        return f"- earlier in this conversation, until {item.at:%Y-%m-%d %H:%M}{how}: {quote(item.text)}"
    return f"- {item.kind}, {period_words(item)}: {quote(item.text)}"


def minute_words(at: datetime) -> str:
    """A time to the minute, as `%Y-%m-%d %H:%M` gives it, in a quarter of the time: a prompt has a hundred of them."""
    return "%d-%02d-%02d %02d:%02d" % (at.year, at.month, at.day, at.hour, at.minute)  # noqa: UP031  the fastest


def period_words(item: Item) -> str:
    """The time that a summary tells of: "2026-05-04" for a day, "2026-05-04 to 2026-05-10" for a week, else with hours
    and minutes. Days are named as where they were counted, since midnight is not the same everywhere."""
    start, end = item.at if item.starts_at is None else item.starts_at, item.at
    days = round((end - start) / ONE_DAY)
    if days and abs(end - start - days * ONE_DAY) <= SHIFT:
        first, last = start + ONE_DAY / 2, end - ONE_DAY / 2
        return f"{first:%Y-%m-%d}" if days == 1 else f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
    until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M} to {until}"

"""The model that answers when none is configured: it quotes from the prompt, and says that it is offline.

A question that names a time is answered from that time: one that asks for nothing else by its summaries, or without
these by its messages in order.
"""

import re
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial
from math import log

from composer.layers.plain import has_topic, kind_of, kind_with
from composer.layers.ranking import is_question
from composer.layers.relevance import asks_nothing, asks_only_for_a_time
from composer.model import Agent, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.prompt.sections import FACTS, MISSED_SINCE, OPEN_REMINDER, PROJECT_ROOMS_CLOSED, RELATED, ROOMS_CLOSED
from composer.stores.models.offline_times import (
    SUMMARY_HEADER,
    in_zone,
    is_within,
    named_periods,
    names_a_wish,
    period_since,
    zone_of,
)
from composer.text.asked import Asked
from composer.text.cleaning import shorten
from composer.text.names import AGENT_LABEL
from composer.text.offline import OFFLINE, OFFLINE_MODEL, WISH
from composer.text.plain_questions import QUESTION_MARKS, Plain, plain_kind
from composer.text.room_names import rooms_named
from composer.text.small_talk import ALL_RIGHT, SMALL_TALK_ANSWERS, Talk, small_talk
from composer.text.spelling import beginnings, may_be_misspelt, meant
from composer.text.terms import sentences, terms, tongue
from composer.text.work import CLEANED_PER_READ, off_loop

SECTION_HEAD = "[{name}]"
QUOTABLE = ("FACTS", "LANDMARKS", "SUMMARIES", "RECALL")
VIEW = ("WORKING", RELATED)
PINNED = ("FACTS", "LANDMARKS")

QUOTING = f"{OFFLINE}, so I quote what I remember)"
NOTHING_REMEMBERED = f"{OFFLINE}) I remember nothing here that fits your message."
NO_QUESTION = f"{OFFLINE}) I see no question here. Ask about something that was said, and I quote it."
OPEN_ROOMS = "I do not search rooms in this DM. To search the rooms that you are in, give /nexus rooms on."
OPEN_MORE_ROOMS = (
    "In this DM I search only the rooms of its project. /nexus rooms on adds those of your rooms that this DM may read."
)
HELLO = f"Hello, I am {{name}}. {OFFLINE}: ask me about something that was said here and I quote it)"

NO_TIME = (
    "I don't see when to remind you of what, so I set nothing. Write for example: remind me tomorrow at 9 to call Tom. "
    "/nexus remind me does the same."
)

NOBODY_ELSE = f"{OFFLINE}) Nobody else has written here since you did."
REMINDERS = "All of your reminders, and how to cancel one: /nexus remind list"
OWN = "the asker's own, "

MORE = "\u2026 and {count} more of that time. Ask about one of them to read it."

QUOTED_IN_FILE = ", in a file"  # behind the speaker of a quote from one

COMMANDS = (Talk.FORGET, Talk.REMIND, Talk.HELP)  # what asks for one says nothing that may be quoted
# Verbs that tell something. A text of some words with one of them and without a question mark seldom asks.
_TELLING = """
am is are was were have has had will m re ve bin ist sind war waren habe haben hat hatte wird werden heisst
suis est sommes sont \u00e9tait ai avons ont sera es est\u00e1 son soy tengo tiene hay era \u00e8 sono ho ha
siamo \u00e9 s\u00e3o tenho tem ben zijn heb heeft \u00e4r har jest s\u0105 mam
"""
TELLING = frozenset(_TELLING.split())
MIN_TOLD_WORDS = 4
MAX_SUBJECT_WORDS = 3  # before the verb: "summarize what a swallow is" tells nothing
MAX_QUOTES = 3
MAX_SPEAKERS = 10  # who are quoted with the same words
MAX_OFFLINE_QUOTE_CHARS = 300
MAX_WHOLE_QUOTE_CHARS = 240  # of an entry that is quoted whole; of a longer one single sentences are quoted
PINNED_BONUS = 1.25
SPEAKER_BONUS = 1.3
MAX_LISTED = 10  # quotes of a list that was asked for
MAX_TOLD = 5  # messages of a time that are quoted in order
MAX_SUMMARY_CHARS = 900  # of the summaries of a time that are quoted, together
MIN_COVERAGE = 0.2  # share of the question's word weight that a quote must hold
MIN_SHARE_OF_BEST_LINE = 0.5  # of the best quote's score that a further quote must reach

_HEAD = re.compile(r"\[([A-Z]+)\]\s*$")
_MARK = re.compile(r"-\s+(?:\((?P<mark>[^()\s]{1,40})\)\s+)?")
_SPOKEN = re.compile(r"(?P<speaker>[^\s:(][^:(\n]{0,79}?) \((?P<at>\d{4}-\d\d-\d\d[^)]{0,20})\): ?")
_RECALLED = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d)?(?: to [\d: -]{5,16})?)"
    r"(?P<speaker> [^:(\n]{1,80}?)?(?: \((?P<about>[^()\n]{1,250})\))?: "
)
_AGE = re.compile(r"\A(?P<age>newer|older) than (?P<mark>s\d{1,4})\Z")  # the last that is told about a line
_CONTINUED = re.compile(r"  (?:\| ?|(?=\[))")
_ROOM = re.compile(r'"#(?P<name>[^"\n]{1,100})"')  # as CONTEXT and a line's source name it
_LETTERS = re.compile(r"[^\W\d_]+")
_ADDRESS = re.compile(r"(?<!\w)@[\w.\-]+")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of the prompt: a line with the lines that continue it."""

    section: str
    text: str
    mark: str = ""
    speaker: str = ""
    at: str = ""
    kind: str = ""
    room: str = ""
    newer_than: str = ""  # the mark of an older line
    older_than: str = ""  # the mark of a newer line
    own: bool = False  # the asker's
    zone: tzinfo = UTC  # in which it is quoted

    @property
    def when(self) -> str:
        """The time of the entry as the prompt has it; "" where it has none."""
        summary = SUMMARY_HEADER.match(self.text)
        return self.at or (summary["at"] if summary else "")

    @property
    def is_summary(self) -> bool:
        """Whether it is a summary, of SUMMARIES or recalled."""
        return SUMMARY_HEADER.match(self.text) is not None or self.kind == "summary"

    def quote_lines(self, max_chars: int) -> str:
        """A quote of the first lines of a summary, under its time as its reader's clocks showed it."""
        summary = SUMMARY_HEADER.match(self.text)
        told = self.text[summary.end() :] if summary else self.text
        kind, at = summary["kind"] if summary else self.kind, in_zone(self.when, self.zone)
        head = f"- ({self.mark or self.section.lower()}) {kind}, {at}:"
        lines, left = [head], max_chars - len(head)
        for line in told.splitlines():
            shown = " ".join(line.split())
            if left < len(shown) and len(lines) > 1:
                break
            lines.append(f"  {shorten(shown, max(left, MAX_OFFLINE_QUOTE_CHARS))}")
            left -= len(shown)
        return "\n".join(lines)

    def quote(self, text: str) -> str:
        """A quote of `text` from this entry, with its source mark, its speaker, and its time as its reader's clocks
        showed it."""
        shown = (
            text if len(text) <= MAX_OFFLINE_QUOTE_CHARS else text[: MAX_OFFLINE_QUOTE_CHARS - 1].rstrip() + "\u2026"
        )
        mark = f"({self.mark}) " if self.mark else ""
        at = in_zone(self.at, self.zone)
        who = f"{self.speaker} ({at})" if self.speaker and at else self.speaker or at
        if not mark and not who:
            mark = f"({self.section.lower()}) "
        return f"- {mark}{who + ': ' if who else ''}{' '.join(shown.split())}"


def _entry(section: str, line: str, zone: tzinfo) -> _Entry:
    mark = _MARK.match(line)
    body = line[mark.end() :] if mark else line
    spoken = _SPOKEN.match(body) or _RECALLED.match(body)
    about = (spoken.groupdict().get("about") or "") if spoken else ""
    room, age, own = _ROOM.search(about), _AGE.match(about.rpartition(", ")[2]), about.startswith(OWN)
    ages = {age["age"]: age["mark"]} if age else {}
    return _Entry(
        section=section,
        text=body[spoken.end() :] if spoken else body,
        mark=(mark.group("mark") or "") if mark else "",
        speaker=(spoken.group("speaker") or "").strip() if spoken else "",
        at=spoken.group("at") if spoken else "",
        kind=about.removeprefix(OWN).partition(",")[0],
        room=room["name"] if room else "",
        newer_than=ages.get("newer", ""),
        older_than=ages.get("older", ""),
        own=own,
        zone=zone,
    )


def _entries(content: str, section: str, zone: tzinfo) -> Iterator[_Entry]:
    """The entries of one message of the request. Lines before the first heading belong to `section`. `zone`: that of
    whoever asks."""
    lines: list[str] = []
    files: list[str] = []  # what stands in its files: below a line of the program's, which has no bar
    in_file = False
    for line in [*content.splitlines(), SECTION_HEAD.format(name="END")]:
        head = _HEAD.match(line)
        continued = _CONTINUED.match(line)
        if continued and lines:
            is_note = not continued[0].strip()
            (files if in_file and not is_note else lines).append(line[continued.end() :])
            in_file = in_file or is_note
            continue
        if lines:
            entry = _entry(section, "\n".join(lines), zone)
            yield entry
            if files:
                yield replace(entry, text="\n".join(files), speaker=f"{entry.speaker}{QUOTED_IN_FILE}")
            lines, files, in_file = [], [], False
        if head:
            section = head.group(1)
        elif line.strip():
            lines = [line]


def _read(messages: Sequence[ChatMessage]) -> tuple[list[_Entry], _Entry]:
    """The entries that may be quoted, in the order of the prompt, and the question."""
    last = max((n for n, message in enumerate(messages) if message.role == "user"), default=-1)
    zone = zone_of(messages)
    quotable: list[_Entry] = []
    questions: list[_Entry] = []
    for number, message in enumerate(messages):
        if message.role == "assistant":
            continue  # The agent's own messages are no evidence.
        # The first message contains the rules, even if it is sent as a user message.
        before_heading = "MESSAGE" if number == last else "WORKING" if number else "SYSTEM"
        for entry in _entries(message.content, before_heading, zone):
            if number == last and entry.section == "MESSAGE":
                questions.append(entry)
            elif entry.section in QUOTABLE or (
                entry.section in VIEW and entry.speaker and (entry.section, entry.speaker) != (RELATED, AGENT_LABEL)
            ):
                quotable.append(entry)
    question = questions[0] if questions else _Entry("MESSAGE", "")
    text = "\n".join(entry.text for entry in questions)
    return quotable, _Entry("MESSAGE", text, question.mark, question.speaker, question.at)


def _quotable_parts(entry: _Entry) -> Iterator[str]:
    """The parts of an entry that can be quoted: all of it if it is short, else its sentences; never a question."""
    parts = [entry.text] if len(entry.text) <= MAX_WHOLE_QUOTE_CHARS else sentences(entry.text)
    for part in parts:
        bare = _ADDRESS.sub(" ", part).strip().rstrip(" \"')\u201d")
        if bare and not bare.endswith("\uff1f") and not is_question(bare) and small_talk(bare, ()) not in COMMANDS:
            yield part


@dataclass(frozen=True, slots=True)
class _Candidate:
    entry: _Entry
    text: str
    words: frozenset[str]


def _candidates(entries: Sequence[_Entry]) -> list[_Candidate]:
    """Everything that can be quoted, each text of one speaker once, without earlier offline answers."""
    seen: set[tuple[str, str]] = set()
    found = []
    for entry in entries:
        if OFFLINE in entry.text:
            continue
        for part in _quotable_parts(entry):
            words = terms(_ADDRESS.sub(" ", part))
            key = entry.speaker, _same_words(part)
            if key in seen:
                continue
            seen.add(key)
            found.append(_Candidate(entry, part, frozenset(words)))
    return found


def _same_words(text: str) -> str:
    """What two texts have in common that say the same."""
    return " ".join(text.casefold().split())


def _first(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """The first MAX_QUOTES texts; what several people say counts once."""
    texts = list(dict.fromkeys(_same_words(each.text) for each in candidates))[:MAX_QUOTES]
    return [each for each in candidates if _same_words(each.text) in texts][:MAX_SPEAKERS]


def _best(candidates: Sequence[_Candidate], question: str) -> list[_Candidate]:
    """The best quotes, best first. Ties go to the later line of the prompt; of what was recalled, to the first."""
    question_terms = set(terms(question, searched=True))
    speakers = {candidate.entry.speaker for candidate in candidates if candidate.entry.speaker}
    named = {speaker for speaker in speakers if question_terms & set(terms(speaker))}
    words = question_terms - {word for speaker in named for word in terms(speaker)}
    words = _spelt(words, {word for candidate in candidates for word in candidate.words})
    if not words:  # "what about bob?": his latest messages
        return _first([candidate for candidate in reversed(candidates) if candidate.entry.speaker in named])
    frequency = {word: sum(word in candidate.words for candidate in candidates) for word in words}
    weight = {word: log(1 + (len(candidates) + 1) / (frequency[word] + 0.5)) for word in words}
    total = sum(weight[word] for word in sorted(words))
    scored = []
    recalled = reversed([each for each in candidates if each.entry.section == "RECALL"])
    turned = [next(recalled) if each.entry.section == "RECALL" else each for each in candidates]
    for position, candidate in enumerate(turned):
        matched = sum(weight[word] for word in sorted(words & candidate.words))
        if matched < MIN_COVERAGE * total:
            continue
        pinned = PINNED_BONUS if candidate.entry.section in PINNED else 1.0
        spoken = SPEAKER_BONUS if candidate.entry.speaker in named else 1.0
        scored.append((matched * pinned * spoken, position, candidate))
    scored.sort(key=lambda entry: entry[:2], reverse=True)
    best = [each for score, _, each in scored if score >= MIN_SHARE_OF_BEST_LINE * scored[0][0]]
    said = {_same_words(f"{each.entry.speaker}: {each.text}") for each in best}
    return _first([each for each in best if each.entry.speaker or _same_words(each.text) not in said])


def _spelt(words: set[str], known: set[str]) -> set[str]:
    """The words of a question, in place of each misspelt one the word of the prompt that it stands for: recall found
    what it did by that."""
    meant_by = {
        word: meant(word, {term for term in known if term.startswith(tuple(beginnings(word)))})
        for word in may_be_misspelt(words - known)
    }
    return {meant_by.get(word) or word for word in words}


def _on_closed_rooms(messages: Sequence[ChatMessage]) -> str:
    """What to add in a DM that is not open to rooms: CONTEXT says so, in a line of ours. Elsewhere ""."""
    lines = {line for message in messages[:2] for line in message.content.splitlines()}
    if ROOMS_CLOSED in lines:
        return f" {OPEN_ROOMS}"
    return f" {OPEN_MORE_ROOMS}" if PROJECT_ROOMS_CLOSED in lines else ""


def _answer(agent: Agent, messages: Sequence[ChatMessage]) -> list[str]:
    entries, question = _read(messages)
    words = _LETTERS.findall(_ADDRESS.sub(" ", question.text).casefold())
    own_name = set(_LETTERS.findall(f"{agent.name} {agent.slug}".casefold()))
    if (own := Asked(question.text)).for_reminder():
        return [WISH if names_a_wish(own, question.at, zone_of(messages)) else NO_TIME]
    if (said := small_talk(_ADDRESS.sub(" ", question.text), own_name)) is not None:
        return [HELLO.format(name=agent.name) if said is Talk.HELLO else SMALL_TALK_ANSWERS[said]]
    since = _missed_since(messages)
    if (
        listed := _plain_answer(entries, question, since, zone_of(messages), own_name, _on_closed_rooms(messages))
    ) is not None:
        return listed
    if words and asks_nothing(_ADDRESS.sub(" ", question.text), own_name):
        return [ALL_RIGHT]  # thanks, or laughter, in whichever language
    of_rooms, asked = _of_rooms(entries, _ADDRESS.sub(" ", question.text), _room_here(messages))
    found = _quotes(of_rooms, asked, question.at, zone_of(messages), own_name)
    if not found and _tells(question, words):
        return [NO_QUESTION]
    if not found:
        return [NOTHING_REMEMBERED + _on_closed_rooms(messages)]
    return [QUOTING, *(f"\n{quote}" for quote in found)]


def _plain_answer(
    entries: Sequence[_Entry], question: _Entry, since: str, zone: tzinfo, own_name: Collection[str], closed: str
) -> list[str] | None:
    """The answer to a plain question, if it is one and the prompt has what it asks for: "what did I miss?"."""
    asked = _ADDRESS.sub(" ", question.text)
    words = set(_LETTERS.findall(question.text.casefold()))
    named = {each.speaker for each in entries if words.intersection(_LETTERS.findall(each.speaker.casefold()))}
    kind = kind_with(named, asked, kind_of(asked, own_name))
    if kind is None:
        return None
    if kind is Plain.REMINDERS:
        quotes = [each.quote(each.text) for each in entries if each.kind == OPEN_REMINDER][:MAX_LISTED]
        return [QUOTING, *(f"\n{quote}" for quote in quotes), f"\n{REMINDERS}"] if quotes else [REMINDERS]
    known = (*own_name, *named, *(each.room for each in entries))
    topic = has_topic(asked, known)
    rooms, _ = rooms_named(asked, {each.room for each in entries if each.room})
    if kind is Plain.MISSED and since:
        periods = period_since(since, question.at)
    else:
        periods = named_periods(asked, question.at, zone)
    then = [
        each
        for each in entries
        if (not periods or each.section == FACTS or is_within(each.when, periods, zone))
        and (not rooms or each.room in rooms)
        and OFFLINE not in each.text
        and not _is_request(each)
    ]
    told = [each for each in then if each.section not in PINNED]
    match kind:
        case Plain.DECISIONS | Plain.SAID if topic:
            quotes = _about([each for each in then if _is_wanted(kind, each, question.speaker, named)], asked, known)
        case Plain.SUMMARY if topic:
            quotes = _about(told, asked, known)
        case Plain.ME | Plain.TASKS | Plain.QUESTIONS if topic:
            quotes = _about(then, asked, known) or _listed(kind, then, question.speaker, named)
        case Plain.MISSED:
            quotes = _told_of([each for each in told if each.speaker != question.speaker])
            if not quotes and since:
                return [NOBODY_ELSE + closed]
        case Plain.SUMMARY:
            quotes = _told_of(told)
        case _:
            quotes = _listed(kind, then, question.speaker, named)
    if quotes:
        return [QUOTING, *(f"\n{each}" for each in quotes)]
    return None if topic else [NOTHING_REMEMBERED + closed]


def _about(entries: Sequence[_Entry], question: str, known: Collection[str]) -> list[str]:
    """The quotes of what is about the topic of a question, apart from what is `known` by name."""
    topic = " ".join(word for word in question.split() if has_topic(word, known))
    return [each.entry.quote(each.text) for each in _best(_candidates(entries), topic)]


def _listed(kind: Plain, entries: Sequence[_Entry], asker: str, named: Collection[str]) -> list[str]:
    """The quotes of what is asked for, each text once."""
    wanted = [each for each in entries if _is_wanted(kind, each, asker, named)]
    if kind is Plain.SAID:
        wanted.sort(key=lambda each: each.when, reverse=True)
    found = {" ".join(each.text.casefold().split()): each for each in wanted}
    whole = [each for text, each in found.items() if not any(text in other for other in found if other != text)]
    return [each.quote(each.text) for each in whole[:MAX_LISTED]]


def _is_wanted(kind: Plain, entry: _Entry, asker: str, named: Collection[str]) -> bool:
    match kind:
        case Plain.DECISIONS:
            return entry.section == "LANDMARKS" or entry.kind == "decision"
        case Plain.TASKS:
            return entry.kind == "action item"
        case Plain.QUESTIONS:
            return entry.section == "RECALL" and entry.text.rstrip().endswith(QUESTION_MARKS)
        case Plain.SAID:
            return entry.speaker in named
        case Plain.ME if entry.section == "FACTS":
            return any(part in entry.text for part in (f"(about {asker};", "(private;"))
        case _:
            return (entry.own or (entry.section in VIEW and entry.speaker == asker)) and not _asks(entry)


def _asks(entry: _Entry) -> bool:
    """Whether a message only asks something, of people or of an agent."""
    return is_question(_ADDRESS.sub(" ", entry.text).strip()) or _is_request(entry)


def _tells(entry: _Entry, words: Sequence[str]) -> bool:
    """Whether a message tells something, and asks nothing."""
    verb = next((n for n, word in enumerate(words) if word in TELLING), 0)
    marked = any(mark in entry.text for mark in QUESTION_MARKS)
    return len(words) >= MIN_TOLD_WORDS and 0 < verb <= MAX_SUBJECT_WORDS and not marked and not _asks(entry)


def _is_request(entry: _Entry) -> bool:
    """Whether a message only asks an agent for something, or says nothing."""
    if entry.section not in (*VIEW, "RECALL"):
        return False
    said = _ADDRESS.sub(" ", entry.text).strip()
    if small_talk(said, ()) not in (None, Talk.REMEMBER):
        return True
    return entry.section in VIEW and (plain_kind(said) is not None or (said != entry.text and is_question(said)))


def _missed_since(messages: Sequence[ChatMessage]) -> str:
    """Since when the asker wants to know what they missed, as CONTEXT says it; "" where it does not."""
    before, after = MISSED_SINCE.split("{}")
    lines = [line for each in messages[:2] for line in each.content.splitlines()]
    found = (line for line in lines if line.startswith(before) and line.endswith(after))
    return next((line[len(before) : len(line) - len(after)] for line in found), "")


def _room_here(messages: Sequence[ChatMessage]) -> str:
    """The room that CONTEXT says this is; "" in a DM or a session."""
    lines = [line for each in messages[:2] for line in each.content.splitlines()]
    here = next((_ROOM.search(line) for line in lines if line.startswith("You are in ")), None)
    return here["name"] if here else ""


def _of_rooms(entries: Sequence[_Entry], question: str, here: str) -> tuple[Sequence[_Entry], str]:
    """The entries of the rooms that a question names, and the question without their names; all of them and the
    question as it is if it names none that the prompt knows."""
    rooms, rest = rooms_named(question, {entry.room for entry in entries if entry.room} | ({here} if here else set()))
    return ([entry for entry in entries if (entry.room or here) in rooms], rest) if rooms else (entries, question)


def _quotes(
    entries: Sequence[_Entry], question: str, asked_at: str, zone: tzinfo, own_name: Collection[str]
) -> list[str]:
    """The quotes that answer a question."""
    periods = named_periods(question, asked_at, zone)
    if not periods:
        best = _best(_candidates(entries), question) or _in_another_language(entries, question)
        best = _with_newer(best, entries)
        return [each.entry.quote(each.text) for each in best]
    then = [entry for entry in entries if is_within(entry.when, periods, zone)]
    if asks_only_for_a_time(question, own_name):
        return _told_of(then)
    about = " ".join(word for word in question.split() if not asks_only_for_a_time(word, own_name))
    best = _best(_candidates(then), about) or _best(_candidates(entries), about)  # each is quoted with its date
    return [each.entry.quote(each.text) for each in best]


def _in_another_language(entries: Sequence[_Entry], question: str) -> list[_Candidate]:
    """The first recalled line in another language than the question: no word can be in both, so it was found by
    meaning."""
    asked_in = tongue(question)
    return _candidates([each for each in entries if each.section == "RECALL" and tongue(each.text) != asked_in])[:1]


def _with_newer(best: list[_Candidate], entries: Sequence[_Entry]) -> list[_Candidate]:
    """The quotes, the first followed by what its speaker has said since about the same, if that was recalled."""
    if not best or not best[0].entry.mark:
        return best
    first = best[0].entry
    newer = (each for each in entries if each.newer_than == first.mark or each.mark == first.older_than != "")
    newer = (each for each in newer if each.speaker == first.speaker)
    since = [each for each in _candidates(list(newer))[:1] if each.entry not in [one.entry for one in best]]
    return _first([best[0], *since, *best[1:]])


def _told_of(entries: Sequence[_Entry]) -> list[str]:
    """What is told of a time: its summaries, else those of its messages that say most, in their order."""
    summaries = [entry for entry in entries if entry.is_summary][:MAX_QUOTES]
    if summaries:
        ordered = sorted(summaries, key=lambda entry: entry.when)
        return [entry.quote_lines(MAX_SUMMARY_CHARS // len(ordered)) for entry in ordered]
    longest = sorted(_candidates(entries), key=lambda each: -len(each.words))
    told = sorted(longest[:MAX_TOLD], key=lambda each: each.entry.when)
    left = [MORE.format(count=len(longest) - MAX_TOLD)] if len(longest) > MAX_TOLD else []
    return [*(each.entry.quote(each.text) for each in told), *left]


class OfflineModel:
    """Answers with up to three texts of the prompt, each of all who say it, and nothing else. Deterministic."""

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        """Stream the note that it is offline, then each quote as a chunk, then zero usage. Never fails."""
        chars = sum(len(message.content) for message in messages)
        for text in await off_loop(chars // CLEANED_PER_READ, partial(_answer, agent, messages)):
            yield Chunk(text=text, model=OFFLINE_MODEL)
        yield Chunk(usage=Usage(), model=OFFLINE_MODEL)

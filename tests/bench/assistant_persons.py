"""Persons who talk with an assistant for months: their own sessions (assistant_talks.txt), and others between them."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("assistant_talks.txt")
LECTURES: Final = 15  # sessions of a person about paragraphs of XQuAD
DIALOGUES: Final = 12  # and those that are dialogues of MADial
LAST: Final = 70  # messages after the last session of the person's own: the view of a DM shows up to 60
WORDS: Final = 200  # an answer of the assistant has so many at least, as long as there are paragraphs
MAX_WORDS: Final = 400
APART: Final = timedelta(hours=5)  # between two sessions, at least
EVERY: Final = timedelta(minutes=2)


@dataclass(frozen=True)
class Said:
    """A turn: of the assistant if `answers`, and otherwise of the person."""

    id: str
    at: datetime
    text: str
    answers: bool


@dataclass(frozen=True)
class Asked:
    """A question, what is needed for it, and what was once true of it."""

    kind: str
    half: str
    evidence: tuple[str, ...]
    stale: tuple[str, ...]
    text: str


@dataclass
class Person:
    """A person's sessions in their order, the questions, and when these are asked."""

    name: str
    asked_at: datetime
    sessions: list[list[Said]] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)

    @property
    def turns(self) -> list[Said]:
        """All turns of all sessions."""
        return [turn for session in self.sessions for turn in session]


def read_persons(file: Path = FILE) -> list[Person]:
    """The persons of a file."""
    persons: list[Person] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        first, _, rest = line.partition(" ")
        if first == "PERSON":
            name, _, at = rest.partition(" ASKED ")
            persons.append(Person(name, _time(at)))
        elif first == "SESSION":
            persons[-1].sessions.append([])
            starts = _time(rest.partition(" ")[2])
        elif first == "Q":
            kind, half, evidence, stale, text, _ = (each.strip() for each in rest.split(" | "))
            persons[-1].questions.append(Asked(kind, half, _ids(evidence), _ids(stale), text))
        else:
            session = persons[-1].sessions[-1]
            answers = re.match(r"[a-z]\d+a", first) is not None
            session.append(Said(first, starts + len(session) * EVERY, rest, answers))
    return persons


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _ids(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


def made_long(person: Person, data: Path, seed: int) -> Person:
    """A person with the other sessions between their own, and with long answers of the assistant."""
    dice = random.Random(seed)
    paragraphs = [(row["questions"], row["text"].strip()) for row in _english(data)]
    dice.shuffle(paragraphs)
    left = iter(paragraphs)
    lectures = [_lecture(left) for _ in range(LECTURES)]
    sessions = [[_longer(turn, left) if turn.answers else turn for turn in session] for session in person.sessions]
    first, last = sessions[0][0].at, sessions[-1][-1].at
    end = person.asked_at - timedelta(days=1)
    taken = [session[0].at for session in sessions]
    said_last = 0
    for n, lines in enumerate([*dice.sample(_dialogues(data), DIALOGUES), *lectures]):
        span = (last + APART, end - timedelta(hours=1)) if said_last < LAST else (first, last)
        said_last += len(lines)
        at = next(at for at in _times(dice, *span) if all(abs(at - each) >= APART for each in taken))
        taken.append(at)
        sessions.append([Said(f"f{n}.{i}", at + i * EVERY, text, bool(i % 2)) for i, text in enumerate(lines)])
    return replace(person, sessions=sorted(sessions, key=lambda session: session[0].at))


def _times(dice: random.Random, first: datetime, last: datetime) -> Iterator[datetime]:
    while True:
        yield first + dice.random() * (last - first)


def _english(data: Path) -> Iterator[dict[str, Any]]:
    rows = (json.loads(line) for line in (data / "xquad" / "small.jsonl").read_text().splitlines())
    return (row for row in rows if row["lang"] == "en")


def _longer(turn: Said, left: Iterator[tuple[list[str], str]]) -> Said:
    text = turn.text
    while len(text.split()) < WORDS and (more := next(left, None)) is not None:
        text = f"{text}\n\n{more[1]}"
    return replace(turn, text=text)


def _lecture(left: Iterator[tuple[list[str], str]]) -> list[str]:
    """Questions of some paragraphs, and the paragraphs."""
    asked, told = list[str](), list[str]()
    while sum(len(each.split()) for each in told) < WORDS:
        questions, text = next(left)
        asked += questions[:1]
        told.append(text)
    return [" ".join(asked), " ".join("\n\n".join(told).split(" ")[:MAX_WORDS])]


def _dialogues(data: Path) -> list[list[str]]:
    """Dialogues whose turns alternate, the person's first."""
    text = (data / "madial" / "MADial-Bench-en-dialogue.json").read_text()
    rows = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    found: list[list[str]] = []
    for row in rows:
        lines = [line.partition(":") for line in row["dialogue"] if ":" in line]
        whose = [who.strip("<> ") == "Assistant" for who, _, _ in lines]
        if whose == [bool(n % 2) for n in range(len(lines))] and len(lines) % 2 == 0:
            found.append([words.strip().strip('"') for _, _, words in lines])
    return found

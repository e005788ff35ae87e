"""A month of a team's talk as a script for `nexus play`, and what must hold of every prompt in it.

Four weeks and two days in two rooms, a thread of one of them and a DM: messages, questions, decisions, facts and
landmarks; every night the jobs run, by lines of the script. The agent's window is so small that views are compacted
again and again.
"""

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import asyncpg

from bot.console.play import Player, ScriptClock
from bot.script.events import CommandEvent, JobEvent, Line, MessageEvent, read_script
from composer.app import App
from composer.prompt.budget import budget_of
from composer.repositories.landmarks import PROPOSAL_LIFETIME
from composer.stores.models.tokens import tokenizer_for

START: Final = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)  # a Monday
DAYS: Final = 30
WINDOW: Final = 8_000
PEOPLE: Final = ("alice", "bob", "carol", "dave")
PLACES: Final[tuple[dict[str, str], ...]] = (
    {"room": "general"},
    {"room": "lab"},
    {"room": "lab", "thread": "crane"},
    {"dm": "nexus"},
)
NIGHTLY: Final = ("thread", "session", "day", "expiry")

_SUBJECTS: Final = (
    "backup",
    "invoice",
    "harbour",
    "crane",
    "garden",
    "printer",
    "database",
    "lunch",
    "train",
    "budget",
)
_VERBS: Final = ("moves", "stops", "waits", "breaks", "costs", "needs", "misses", "holds", "changes", "follows")
_OTHERS: Final = (
    "the ship",
    "an older plan",
    "more rope",
    "two weeks",
    "a second pump",
    "fresh paint",
    "the north gate",
)

Events = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Pin:
    """Words that must stand in every prompt of a scope from a line of the script on, up to `until`, and in no other
    scope's."""

    scope: str
    words: str
    until: datetime | None = None

    def lapsed(self, at: datetime) -> bool:
        """Whether the words must not stand there any more."""
        return self.until is not None and at >= self.until


@dataclass
class Month:
    """What a month of talk showed. `over`: prompts over their budget. `missing` and `stray`: facts and landmarks that a
    prompt lacked, or had and should not have."""

    turns: int = 0
    largest: int = 0
    over: int = 0
    pinned: int = 0
    missing: int = 0
    stray: int = 0
    compactions: int = 0
    nearest: int | None = None
    jobs: int = 0
    days: int = 0
    weeks: int = 0
    same_log: bool = False
    errors: list[str] = field(default_factory=list)


def made_up(seed: int = 1) -> Iterator[str]:
    """Sentences of a small vocabulary, each with something pasted: many tokens in few words."""
    rng = random.Random(seed)
    while True:
        said = f"the {rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OTHERS)} at {rng.randrange(99)}"
        yield f"{said}: {' '.join(f'{rng.getrandbits(64):016x}' for _ in range(12))}."


def script(texts: Iterator[str], days: int, a_day: int, words: int = 20) -> tuple[Events, dict[str, Pin]]:
    """The events, and by the id of an event what it pins. In each room `a_day` messages of about so many words, every
    third of them a question; half as many in the thread, a third in the DM, where the agent answers each."""
    events: Events = []
    pins: dict[str, Pin] = {}
    for day in range(days):
        for nth, place in enumerate(PLACES):
            at = START + timedelta(days=day, hours=2 * nth)
            count = a_day // 3 if "dm" in place else a_day // 2 if "thread" in place else a_day
            for number in range(count):
                id = f"m{len(events)}"
                text = _long(texts, words)
                if number == 1 and day % 8 == nth:
                    text = f"We decided to buy crane number {day}{nth}.\n{text}"
                    pins[id] = Pin(
                        _scope(place),
                        f"(proposed): We decided to buy crane number {day}{nth}.",
                        at + timedelta(minutes=1) + PROPOSAL_LIFETIME,
                    )
                elif number % 3 == 2:
                    text = f"@nexus {text}?"
                user = "alice" if "dm" in place else PEOPLE[(day + number) % len(PEOPLE)]
                at += timedelta(minutes=1)
                events.append(_event("message", at, place, user, id, text))
            if day % 3 == 0 and "thread" not in place:
                for text, words_of in (
                    (f"landmark add {_scope(place)} keeps rule {day}", f": {_scope(place)} keeps rule {day}"),
                    (f'fact set {_scope(place)}_{day} "value {day}"', f'{_scope(place)}_{day} = "value {day}"'),
                ):
                    id = f"c{len(events)}"
                    pins[id] = Pin(_scope(place), words_of)
                    events.append(_event("command", at, place, "alice", id, f"/nexus {text}"))
        night = START.replace(hour=0, minute=10) + timedelta(days=day + 1)
        names = (*NIGHTLY, "week") if night.weekday() == 0 else NIGHTLY
        events += [{"type": "job", "at": night.isoformat(), "name": name} for name in names]
    return events, pins


def _event(type: str, at: datetime, place: dict[str, str], user: str, id: str, text: str) -> dict[str, Any]:
    return {"type": type, "at": at.isoformat(), **place, "user": user, "id": id, "text": text}


def _scope(place: dict[str, Any]) -> str:
    """A thread's facts and landmarks are those of its room."""
    return place.get("room") or "dm"


def _long(texts: Iterator[str], words: int) -> str:
    """Pasted sentences: people write longer in chat rooms than in IRC. What talks to the agent, or is a command, isn't
    theirs to say."""
    said = ""
    while len(said.split()) < words:
        said = f"{said} {next(texts)}".strip()
    return " ".join(said.split()[:words]).replace("@", "at ").lstrip("/")


def written(file: Path, events: Events) -> list[Line]:
    """The script in a file, and read from there as `nexus play` reads it."""
    file.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return read_script(file)


async def play(app: App, clock: ScriptClock, lines: Sequence[Line], pins: dict[str, Pin]) -> Month:
    """Play a script as `nexus play` does, and look at every prompt and at the log."""
    asked = {line.event.id or "": line.event for line in lines if isinstance(line.event, MessageEvent)}
    agent = app.directory.agents(app.directory.workspace("console", "default").tenant_id)[0]
    found, budget, tokenizer, holding = Month(), budget_of(agent), tokenizer_for(agent.model), list[Pin]()

    def look(event: dict[str, Any]) -> None:
        if event["event"] == "error":
            found.errors.append(event["text"])
        if event["event"] != "reply":
            return
        question = asked[event["to"]]
        prompt, scope, at = event["prompt"], _scope(question.model_dump()), question.at or clock.now()
        counted = sum(tokenizer.count(message["content"]) for message in prompt["role_messages"])
        found.turns += 1
        found.largest = max(found.largest, prompt["tokens"])
        found.over += max(prompt["tokens"], counted) > budget
        shown = "\n".join(s["text"] for s in prompt["sections"] if s["name"] in ("FACTS", "LANDMARKS"))
        holds = {pin: pin.scope == scope and not pin.lapsed(at) for pin in holding}
        found.missing += sum(here and pin.words not in shown for pin, here in holds.items())
        found.stray += sum(not here and pin.words in shown for pin, here in holds.items())

    before: list[tuple[datetime, str]] = []

    class Watched(Player):
        """Looks at what stands after each event."""

        async def _event(self, line: Line) -> None:
            await super()._event(line)
            event = line.event
            if isinstance(event, MessageEvent | CommandEvent) and event.id in pins:
                holding.append(pins[event.id])
            if isinstance(event, JobEvent):
                found.jobs += 1
                if event.name == "week" and event.at is not None:
                    before.append((event.at, await _log(app, event.at)))

    await Watched(app, clock, look).play(lines)
    found.pinned = len(holding)
    said = sorted((event.id or "", event.text) for event in asked.values())
    people = 'SELECT external_id, text FROM messages WHERE agent_id IS NULL ORDER BY external_id COLLATE "C"'
    same = [await _log(app, at) == hashed for at, hashed in before]
    found.same_log = all(same) and _hash(said) == _hash(map(tuple, await _rows(app, people)))
    made = await _rows(app, "SELECT conversation_id, agent_id, made_seq FROM compactions ORDER BY 1, 2, 3")
    gaps = [b["made_seq"] - a["made_seq"] for a, b in pairwise(made) if tuple(a)[:2] == tuple(b)[:2]]
    found.compactions, found.nearest = len(made), min(gaps, default=None)
    tiers = dict(map(tuple, await _rows(app, "SELECT tier, count(*) FROM summaries GROUP BY 1")))
    found.days, found.weeks = tiers.get("day", 0), tiers.get("week", 0)
    return found


async def _log(app: App, until: datetime) -> str:
    """Every message up to a moment, the agent's too, as the log has it."""
    columns = "id, conversation_id, seq, at, user_id, agent_id, author, text, attachments, namespace, visibility"
    return _hash(map(tuple, await _rows(app, f"SELECT {columns} FROM messages WHERE at < $1 ORDER BY id", until)))


def _hash(rows: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(repr, rows)).encode()).hexdigest()


async def _rows(app: App, query: str, *values: object) -> list[Any]:
    connection = await asyncpg.connect(app.settings.database_url)
    try:
        return list(await connection.fetch(query, *values))
    finally:
        await connection.close()

"""A long talk with an agent of 8,000 tokens: `python -m tests.bench.long_talk FOLDER [--turns 200] [--days 30]`.

The text is that of the logs in FOLDER (see tests/bench/irc.py). Two things come of it:
the month (`nexus play` of days of talk in two rooms and a DM, with facts and landmarks): no prompt over its budget,
every landmark and fact in every prompt of its scope, compactions at least ten messages apart, the log as it was said;
and prefix reuse over the turns of a busy room, against the plain window that slides with every message.
"""

import argparse
import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice, pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import asyncpg

from bot.console.logs import configure_logs
from bot.console.play import Player, ScriptClock
from bot.console.script import CommandEvent, Line, MessageEvent
from composer.app import App, open_app
from composer.compose import Composer
from composer.layers import working
from composer.model import Agent, Message, Visibility, derived_id, room_run
from composer.ports import ChatMessage, Findable, Log
from composer.prompt import Prompt, budget_of, reused_tokens
from composer.receive import room_id
from composer.settings import AgentSettings, Settings
from composer.stores.offline_model import OfflineModel
from composer.stores.tokens import tokenizer_for
from composer.summarise import Said, Summariser
from tests.bench.irc import talk
from tests.bench.world import data_folder, stores
from tests.e2e.canaries import insert_summary

START: Final = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
WINDOW: Final = 8_000
MOST_WORDS: Final = 120  # pasted lines are joined, as people write longer in chat rooms than in IRC
EVERY: Final = 4  # messages to a question in the busy room
PLACES: Final[tuple[dict[str, str], ...]] = ({"room": "general"}, {"room": "lab"}, {"dm": "nexus"})


@dataclass
class Month:
    """What a month of talk showed."""

    turns: int = 0
    over: int = 0
    missing: int = 0
    pinned: int = 0
    compactions: int = 0
    nearest: int | None = None
    same_log: bool = False
    failed: int = 0
    errors: list[str] = field(default_factory=list)


def month(folder: Path, days: int, a_day: int) -> Iterator[Line]:
    """A script: so many messages a day in each place, a question every tenth, now and then a fact and a landmark."""
    said = cycle(talk(folder))
    number = 0
    for day in range(days):
        for place in PLACES:
            at = START + timedelta(days=day, hours=PLACES.index(place) * 2)
            user = "alice" if "dm" in place else None
            for nth in range(a_day if "room" in place else a_day // 5):
                number += 1
                at += timedelta(minutes=1)
                one = Said("", at, " ".join(next(said).text for _ in range(3))[: MOST_WORDS * 7])
                who = user or ("alice", "bob", "carol", "dave")[number % 4]
                text = f"@nexus {one.text}?" if nth % 10 == 9 else one.text.replace("@", "at ")
                yield _line(number, MessageEvent(type="message", at=at, user=who, id=f"m{number}", text=text, **place))
            if day % 3 == 0:
                for command in (
                    f"landmark add {place_name(place)} keeps rule {day}",
                    f'fact set key{day} "value {day}"',
                ):
                    number += 1
                    event = CommandEvent(type="command", at=at, user="alice", text=f"/nexus {command}", **place)
                    yield _line(number, event)


def place_name(place: dict[str, str]) -> str:
    """The room, or `dm`."""
    return place.get("room", "dm")


def _line(number: int, event: Any) -> Line:
    return Line("month", number, event)


async def play_month(folder: Path, days: int, a_day: int) -> Month:
    """Play it and look at every prompt."""
    found = Month()
    lines = list(month(folder, days, a_day))
    places = {line.event.id or "": line.event for line in lines if isinstance(line.event, MessageEvent)}
    rules: dict[str, list[str]] = {place_name(place): [] for place in PLACES}
    with data_folder() as home:
        async with stores(home) as servers:
            settings = Settings(
                home=home,
                database_url=servers.database_url,
                redis_url=servers.redis_url,
                agents=(AgentSettings(window=WINDOW),),
            )
            clock = ScriptClock()
            async with open_app(settings, clock=clock, index=False) as app:
                agent = app.directory.agents(app.directory.workspace("console", "default").tenant_id)[0]

                def look(event: dict[str, Any]) -> None:
                    if event["event"] == "error":
                        found.failed += 1
                        found.errors.append(event["text"])
                    if event["event"] == "reply":
                        _look(event, rules, places, agent, found)

                player = Player(app, clock, look)
                hashes = []
                for line in lines:
                    await player.play([line])
                    if isinstance(line.event, CommandEvent):
                        text = line.event.text.removeprefix("/nexus landmark add ").removeprefix("/nexus fact set ")
                        rules[line.event.room or "dm"].append(text.replace(' "', ' = "'))
                hashes.append(await _log_hash(servers.database_url))
                hashes.append(_script_hash(lines))
                found.same_log = hashes[0] == hashes[1]
                made = await _rows(
                    servers.database_url,
                    "SELECT conversation_id, agent_id, made_seq FROM compactions ORDER BY 1, 2, made_seq",
                )
    found.compactions = len(made)
    gaps = [b["made_seq"] - a["made_seq"] for a, b in pairwise(made) if a["conversation_id"] == b["conversation_id"]]
    found.nearest = min(gaps, default=None)
    found.pinned = sum(map(len, rules.values()))
    return found


def _look(
    event: dict[str, Any], rules: dict[str, list[str]], places: dict[str, MessageEvent], agent: Agent, found: Month
) -> None:
    prompt, asked = event["prompt"], places[event["to"]]
    found.turns += 1
    found.over += prompt["tokens"] > budget_of(agent)
    pinned = "\n".join(s["text"] for s in prompt["sections"] if s["name"] in ("FACTS", "LANDMARKS"))
    found.missing += sum(rule not in pinned for rule in rules[asked.room or "dm"])


async def _rows(url: str, query: str) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(query))
    finally:
        await connection.close()


async def _log_hash(url: str) -> str:
    rows = await _rows(
        url, 'SELECT external_id, text FROM messages WHERE agent_id IS NULL ORDER BY external_id COLLATE "C"'
    )
    return _hash((row["external_id"], row["text"]) for row in rows)


def _script_hash(lines: list[Line]) -> str:
    said = [(line.event.id or "", line.event.text) for line in lines if isinstance(line.event, MessageEvent)]
    return _hash(sorted(said))


def _hash(said: Any) -> str:
    return hashlib.sha256(json.dumps(list(said)).encode()).hexdigest()


async def prefix(folder: Path, turns: int) -> dict[str, list[float]]:
    """The share of each prompt that its predecessor began with: as it is, and with a window that slides."""
    said = [one for one in talk(folder) if len(one.text) > 20]
    found = {}
    for name, step in (("in steps", working.STEP), ("sliding", 1)):
        with data_folder() as home:
            async with stores(home) as servers:
                settings = Settings(home=home, database_url=servers.database_url, redis_url=servers.redis_url)
                found[name] = await _reuse(settings, said, turns, step)
    return found


def furniture(said: list[Said]) -> Iterator[Line]:
    """What a room that is some weeks old has pinned: ten facts and ten landmarks."""
    for number, one in enumerate(said[-20:]):
        fact = f"fact set key{number} {json.dumps(one.text[:60])}"
        text = fact if number < 10 else f"landmark add {one.text.replace('--', ' ')}"
        event = CommandEvent(
            type="command", at=START, user="alice", id=f"c{number}", text=f"/nexus {text}", room="busy"
        )
        yield _line(number, event)


async def _summarised(app: App, said: list[Said]) -> None:
    """And its summaries of seven days, as they are written without a model, each of 250 messages in 300 tokens."""
    workspace = app.directory.workspace("console", "default")
    summariser, tokenizer = Summariser(app.embedder, OfflineModel()), tokenizer_for("")
    run = room_run(room_id(workspace, "busy"))
    async with app.store.transaction(workspace.tenant_id) as tx:
        for day in range(7):
            written = await summariser.extract(said[day * 250 : day * 250 + 250], 300, tokenizer)
            at = START - timedelta(days=8 - day)
            found = Findable(derived_id("bench", str(day)), "summary", run, Visibility.PUBLIC, None, at, {"bench": 1})
            await insert_summary(tx, workspace.tenant_id, found, written.text)


async def _reuse(settings: Settings, said: list[Said], turns: int, step: int) -> list[float]:
    prompts: list[Prompt] = []
    clock = ScriptClock()
    async with open_app(settings, clock=clock, index=False) as app:
        original = Composer.compose

        async def noted(self: Composer, *args: Any, **options: Any) -> Any:
            composed = await original(self, *args, **options)
            prompts.append(composed.prompt)
            return composed

        plain = working.read

        async def sliding(log: Log, cache: Any, readable: Any, conversation: Any, before: Message) -> working.Window:
            return working.Window(tuple(await log.latest(readable, conversation, working.SHOWN, before)))

        Composer.compose = noted  # type: ignore[method-assign]
        working.read = sliding if step == 1 else plain
        try:
            player = Player(app, clock, lambda event: None)
            await player.play(list(furniture(said)))
            await _summarised(app, said)
            for number, one in enumerate(islice(cycle(said), turns * EVERY)):
                at = START + timedelta(minutes=number)
                text = one.text.replace("@", "at ")
                text = f"@nexus {text}" if number % EVERY == EVERY - 1 else text
                event = MessageEvent(type="message", at=at, user=one.author, id=f"m{number}", text=text, room="busy")
                await player.play([_line(number, event)])
        finally:
            Composer.compose, working.read = original, plain  # type: ignore[method-assign]
    tokenizer = tokenizer_for("")
    earlier: list[tuple[ChatMessage, ...]] = [prompt.role_messages for prompt in prompts]
    return [
        reused_tokens(before, now, tokenizer) / now.tokens for before, now in zip(earlier, prompts[1:], strict=False)
    ]


def main() -> None:
    """Run both and print what they found."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.long_talk")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--a-day", type=int, default=60)
    parser.add_argument("--only", choices=["month", "prefix"])
    given = parser.parse_args()
    configure_logs("error")
    if given.only != "prefix":
        found = asyncio.run(play_month(given.folder, given.days, given.a_day))
        print("\n".join(f"{name}: {value}" for name, value in vars_of(found).items()), flush=True)
    if given.only != "month":
        for name, shares in asyncio.run(prefix(given.folder, given.turns)).items():
            print(f"prefix reuse, window {name}: median {median(shares):.0%} over {len(shares)} turns")


def vars_of(found: Month) -> dict[str, Any]:
    """The figures of a month, with a few of its errors."""
    return {**{k: v for k, v in found.__dict__.items() if k != "errors"}, "errors": found.errors[:3]}


if __name__ == "__main__":
    main()

"""A long conversation with an agent of 8,000 tokens, and one in a busy room. The text is that of the logs in a folder
(see tests/bench/irc.py), or generated if none is named.

Two results: the month (tests/support/month.py): no prompt over its budget, every landmark and fact in every
prompt of its scope, compactions at least ten messages apart, the log unchanged; and prefix reuse over the turns of a
busy room, compared with a window that slides with every message.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, Final

from bot.console.play import Player, ScriptClock
from bot.script.events import CommandEvent, Line, MessageEvent
from composer.app import App, open_app
from composer.layers import working
from composer.model import Message, Visibility, derived_id, room_namespace
from composer.ports.models import ChatMessage, UsageAccount, WorkKind
from composer.prompt.budget import reused_tokens
from composer.prompt.sections import Prompt
from composer.repositories.messages import Messages
from composer.repositories.recall import IndexEntry
from composer.settings import AgentSettings, Settings
from composer.stores.models.tokens import tokenizer_for
from composer.summaries.summariser import Summariser
from composer.summaries.texts import SummaryInput
from composer.turn.compose import Composer
from composer.workspace import room_id
from tests.bench.irc import talk
from tests.bench.report import Report
from tests.bench.world import data_folder, stores
from tests.support import month
from tests.support.canaries import insert_summary
from tests.support.embedder import Unmetered

START: Final = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
A_DAY: Final = 60  # messages in a room
TURNS: Final = 200
EVERY: Final = 4  # messages to a question in the busy room
AIM: Final = "aims: 88% on the median turn, 40% at the 10th percentile"


async def measure(quick: bool, note: Callable[[str], None], data: Path | None) -> Report:
    """Measure both, in this order. Raises AssertionError if a prompt violates a rule."""
    said = _made_up() if data is None else [one for one in talk(data) if len(one.text) > 20]
    report = Report("long_talk")
    days, a_day, turns = (7, 10, 20) if quick else (month.DAYS, A_DAY, TURNS)
    note(f"a month: {days} days, {a_day} messages a day in a room")
    found = await _month(said, days, a_day)
    figures = {name: value for name, value in vars(found).items() if name != "errors"} | {"errors": len(found.errors)}
    report.figures["month"] = figures
    report.table(
        f"{days} days with an agent of {month.WINDOW:,} tokens", ["what", ""], [list(p) for p in figures.items()]
    )
    assert (found.over, found.missing, found.stray, found.errors) == (0, 0, 0, []), found
    assert found.same_log
    rows: list[list[Any]] = []
    for name, step in (("in steps", working.WINDOW_STEP), ("sliding", 1)):
        note(f"{turns} turns of a busy room, the window {name}")
        shares = sorted(await _prefix(said, turns, step))
        report.figures[f"prefix reuse, window {name}"] = median(shares)
        rows.append(
            [f"window {name}", len(shares), median(shares), shares[len(shares) // 10], sum(shares) / len(shares)]
        )
    title = f"share of a prompt that the one before it began with ({AIM})"
    report.table(title, ["", "turns", "median", "10th percentile", "mean"], rows)
    return report


def _made_up() -> list[SummaryInput]:
    texts = month.made_up(2)
    return [SummaryInput(month.PEOPLE[n % len(month.PEOPLE)], START, next(texts)) for n in range(4_000)]


async def _month(said: list[SummaryInput], days: int, a_day: int) -> month.Month:
    texts = (one.text for one in cycle(said))
    with data_folder() as home:
        events, pins = month.script(texts, days, a_day, words=60)
        lines = month.written(home / "month.jsonl", events)
        async with stores(home) as servers:
            settings = Settings(
                home=home,
                database_url=servers.database_url,
                redis_url=servers.redis_url,
                agents=(AgentSettings(window=month.WINDOW),),
            )
            clock = ScriptClock()
            async with open_app(settings, clock=clock, index=False) as app:
                return await month.play(app, clock, lines, pins)


async def _prefix(said: list[SummaryInput], turns: int, step: int) -> list[float]:
    """Return the share of each prompt that its predecessor began with: for the actual window, or a sliding one."""
    with data_folder() as home:
        async with stores(home) as servers:
            settings = Settings(home=home, database_url=servers.database_url, redis_url=servers.redis_url)
            return await _reuse(settings, said, turns, step)


def _line(number: int, event: Any) -> Line:
    return Line("busy", number, event)


def furniture(said: list[SummaryInput]) -> Iterator[Line]:
    """Yield the commands that set what a room of some weeks has: ten facts and ten landmarks."""
    for number, one in enumerate(said[-20:]):
        fact = f"fact set key{number} {json.dumps(one.text[:60])}"
        text = fact if number < 10 else f"landmark add {one.text.replace('--', ' ')}"
        event = CommandEvent(
            type="command", at=START, user="alice", id=f"c{number}", text=f"/nexus {text}", room="busy"
        )
        yield _line(number, event)


async def _summarised(app: App, said: list[SummaryInput]) -> None:
    """Write its summaries of seven days, as without a model, each of 250 messages in 300 tokens."""
    workspace = app.directory.workspace("console", "default")
    summariser, tokenizer = Summariser(Unmetered(app.embedder), None), tokenizer_for("")
    account = UsageAccount(workspace.tenant_id, WorkKind.SUMMARY)
    run = room_namespace(room_id(workspace, "busy"))
    async with app.database.transaction(workspace.tenant_id) as tx:
        for day in range(7):
            written = await summariser.extract(said[day * 250 : day * 250 + 250], 300, tokenizer, account)
            at = START - timedelta(days=8 - day)
            found = IndexEntry(derived_id("bench", str(day)), "summary", run, Visibility.PUBLIC, None, at, {"bench": 1})
            await insert_summary(tx, workspace.tenant_id, found, written.text)


async def _reuse(settings: Settings, said: list[SummaryInput], turns: int, step: int) -> list[float]:
    prompts: list[Prompt] = []
    clock = ScriptClock()
    async with open_app(settings, clock=clock, index=False) as app:
        original = Composer.compose

        async def noted(self: Composer, *args: Any, **options: Any) -> Any:
            composed = await original(self, *args, **options)
            prompts.append(composed.prompt)
            return composed

        plain = working.read

        async def sliding(
            log: Messages, cache: Any, readable: Any, conversation: Any, before: Message, *, expect_busy: bool = False
        ) -> working.Window:
            return working.Window(tuple(await log.latest(readable, conversation, working.SHOWN_MESSAGES, before)))

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

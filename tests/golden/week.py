"""Traces of the week (tests/week), step by step, and the rows that are there at its end."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from composer.stores.embedded.servers import Servers
from tests.golden.names import Names
from tests.golden.recording import Recorder
from tests.golden.rows import columns_of, read_rows, tenants_of
from tests.golden.watch import Watch
from tests.support.databases import clone
from tests.week.player import Line, Player
from tests.week.script import Day, Step, read_week
from tests.week.stage import on_stage, service_for


@dataclass
class Recorded(Player):
    """Plays the week, and keeps what came of each step."""

    watch: Watch | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)

    async def _step(self, day: Day, step: Step) -> None:
        verdict = "as it is to be"
        try:
            await super()._step(day, step)
            assert self.watch is not None
            await self.watch.quiet(lambda: self.stage.settle(self.service))
        except (AssertionError, Exception) as error:
            verdict = f"{type(error).__name__}: {error}"
            raise
        finally:
            assert self.watch is not None
            given = step.model_dump(mode="json", exclude_defaults=True)
            came = {"verdict": verdict} | self.watch.look()
            self.steps.append({"id": f"{len(self.steps) + 1:03} {day.day} {step.at}", "input": given, "came": came})


async def record_week(servers: Servers, folder: Path, recorder: Recorder) -> None:
    """Play the whole week."""
    week, shown = read_week(), list[Line]()

    async def show(line: Line) -> None:
        shown.append(line)

    async with clone(servers.database_url, "goldenweek") as url, on_stage(week) as stage:
        urls = {"database_url": str.__str__(url), "redis_url": servers.redis_url + "?db=5"}
        service = service_for(stage, folder / "week", **urls)
        watch = Watch(stage)
        player = Recorded(stage, service, show, watch=watch)
        try:
            await player.play()
        except (AssertionError, Exception) as error:
            player.steps.append({"id": "the end", "input": "", "came": {"verdict": f"{type(error).__name__}: {error}"}})
        finally:
            await service.kill()
        await add_all(player.steps, watch.names, str.__str__(url), recorder)
        lines = [[line.day, line.at, line.place, line.who, line.kind, line.text] for line in shown]
        recorder.add("what is shown", input="", lines=watch.names.value(lines))


async def add_all(steps: list[dict[str, Any]], names: Names, url: str, recorder: Recorder) -> None:
    """Add the traces of steps, and one of all rows, in which the ids of all are found."""
    raw = await asyncpg.connect(url)
    try:
        rows = await read_rows(raw, await columns_of(raw), sorted(await tenants_of(raw)), names, asked=False)
    finally:
        await raw.close()
    for step in steps:
        recorder.add(step["id"], input=step["input"], came=names.value(step["came"]))
    recorder.add("rows at the end", input="", rows=rows)

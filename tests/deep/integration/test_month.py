"""A month of messages to an agent with a window of 8,000 tokens; `tests/bench/long_talk.py` plays a larger one."""

from pathlib import Path

from bot.console.play import ScriptClock
from composer.app import open_app
from composer.settings import AgentSettings, Settings
from tests.support import month
from tests.support.embedder import HashedWords


async def test_over_a_month_every_prompt_fits_and_shows_all_pins_and_the_log_stays_complete(
    settings: Settings, tmp_path: Path
) -> None:
    events, pins = month.script(month.made_up(), month.DAYS, a_day=5)
    lines = month.written(tmp_path / "month.jsonl", events)
    small = settings.model_copy(update={"agents": (AgentSettings(window=month.WINDOW),)})
    clock = ScriptClock()
    async with open_app(small, clock=clock, embedder=HashedWords(), index=False) as app:
        found = await month.play(app, clock, lines, pins)
    assert found.errors == []
    assert (found.over, found.missing, found.stray) == (0, 0, 0), found
    assert found.turns > 80
    assert found.pinned > 60
    assert found.compactions > 20
    assert found.nearest is not None
    assert found.nearest >= 10
    assert found.jobs > 120
    assert found.days >= 3 * month.DAYS
    assert found.weeks >= 3 * 4
    assert found.same_log

"""Whoever waits for an answer goes before what nobody waits for, but not for ever."""

import asyncio
import uuid

import pytest

from composer import signals
from composer.signals import InteractivePriority

ONE, TWO = uuid.uuid4(), uuid.uuid4()


async def test_work_stands_back_until_the_last_turn_has_its_model_asked() -> None:
    here = InteractivePriority()
    await here.wait()
    here.begin(ONE)
    here.begin(TWO)
    work = asyncio.create_task(here.wait())
    here.end(ONE)
    await asyncio.sleep(0)
    assert not work.done()
    here.end(TWO)
    await work


async def test_work_goes_on_however_much_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "MAX_WAIT_SECONDS", 0.0)
    here = InteractivePriority()
    here.begin(ONE)
    await here.wait()


async def test_a_turn_that_is_over_twice_hurries_nobody() -> None:
    here = InteractivePriority()
    here.begin(ONE)
    here.end(ONE)
    here.end(ONE)
    await here.wait()

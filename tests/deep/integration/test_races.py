"""Whatever is stored, and whatever erases it meanwhile: nothing of it is left (tests/races/)."""

import pytest

from composer.settings import Settings
from tests.races.cells import CELLS, was_new
from tests.races.stage import ErasureAct, Moment, Write, open_stage, play


@pytest.mark.parametrize(("write", "erasure", "moment"), CELLS, ids=lambda each: str(each))
async def test_nothing_is_left_of_what_is_erased(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, write: Write, erasure: ErasureAct, moment: Moment
) -> None:
    async with open_stage(settings, write) as stage:
        left = await play(stage, write, erasure, moment, monkeypatch)
    assert was_new(write, erasure, moment) or left == set()

"""Whatever stores words, and whatever erases them, is in the matrix of races (tests/races/), or named there with
what else shows that nothing of it is left. The whole matrix is in the deep ring; here each write meets one erasure."""

import pytest

from composer.settings import Settings
from tests.races import registry
from tests.races.cells import CELLS, was_new
from tests.races.erasures import APART, ERASURES
from tests.races.stage import ErasureAct, Moment, Write, open_stage, play
from tests.races.writes import WRITES


def test_every_table_has_words_or_has_none() -> None:
    assert registry.tables() == registry.WITH_WORDS | registry.WITHOUT_WORDS


def test_every_statement_that_stores_words_is_a_write_of_the_matrix_or_apart() -> None:
    written = {write.statement for write in WRITES if write.statement is not None}
    assert registry.storing() == written | set(registry.APART)
    assert not written & set(registry.APART)


def test_every_function_that_erases_is_an_erasure_of_the_matrix_or_apart() -> None:
    assert registry.erasing() == {call for erasure in ERASURES for call in erasure.calls} | set(APART)


def test_every_erasure_meets_a_write_and_every_write_an_erasure() -> None:
    met = [(write, erasure) for write, erasure, _ in CELLS]
    assert {write.name for write, _ in met} == {write.name for write in WRITES}
    assert {erasure.name for _, erasure in met} == {erasure.name for erasure in ERASURES}


FIRST = {(write.name, moment): (write, erasure, moment) for write, erasure, moment in reversed(CELLS)}
FEW = [
    cell
    for (_, moment), cell in FIRST.items()
    if moment in (Moment.INSIDE, Moment.BETWEEN) or (moment is Moment.AFTER and cell[0].finish)
]


@pytest.mark.parametrize(("write", "erasure", "moment"), FEW, ids=lambda each: str(each))
async def test_nothing_is_left_of_what_is_erased_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, write: Write, erasure: ErasureAct, moment: Moment
) -> None:
    async with open_stage(settings, write) as stage:
        left = await play(stage, write, erasure, moment, monkeypatch)
    assert was_new(write, erasure, moment) or left == set()

"""The matrix: each write, each erasure that takes it away, each moment at which they can meet."""

from collections.abc import Iterator
from typing import Final

from tests.races.erasures import ERASURES
from tests.races.stage import ErasureAct, Moment, Write
from tests.races.writes import WRITES


def _moments(write: Write, erasure: ErasureAct) -> Iterator[Moment]:
    if write.derived or erasure.by_id:  # else it is new, and stays
        yield Moment.BEFORE
    if write.asks:
        yield Moment.BETWEEN
    if write.statement is not None:
        yield from (Moment.INSIDE, Moment.BESIDE, Moment.AFTER)


def was_new(write: Write, erasure: ErasureAct, moment: Moment) -> bool:
    """Whether it may count as stored after the erasure, which then leaves it."""
    return moment is Moment.BESIDE and not write.derived and not erasure.by_id


CELLS: Final = [
    (write, erasure, moment)
    for write in WRITES
    for erasure in ERASURES
    if erasure.of in write.covered
    for moment in _moments(write, erasure)
]

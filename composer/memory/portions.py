"""A long erasure goes in portions: each is alone in its tenant for a moment, so others write between two of them."""

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final, TypeVar

from composer.memory.affected import Affected, ItemRef
from composer.memory.forget import Receipt, erase_reached, find_reach, forget, record
from composer.repositories.database import Transaction

T = TypeVar("T")

PORTION: Final = 1_000  # messages and items that one transaction erases, in about half a second


async def erase_ahead(
    read: Callable[[], AbstractAsyncContextManager[Transaction]],
    alone: Callable[[], AbstractAsyncContextManager[Transaction]],
    messages: Sequence[uuid.UUID],
    items: Sequence[ItemRef],
    now: datetime,
    conversation: uuid.UUID | None,
    *,
    names: Collection[str] = (),
    posts_stay: Collection[uuid.UUID] = (),
    key: bytes | None = None,
    answers_stay: bool = False,
) -> Receipt:
    """Erase messages and items but for the last PORTION of them, which the caller erases. Returns what was erased:
    nothing where there are no more than that.

    It is looked for without a lock, in a transaction that `read` begins; each that `alone` begins erases a portion.
    What was made from any of it goes first, so that nothing is judged by a part of its sources; what is made meanwhile
    goes with the portion that its sources are in. Each portion is complete in itself: what a crash interrupts is found
    again, and goes on, when it is asked for again. With a `key`, as for `record`, a receipt is stored that grows with
    each portion. The rest is as for `forget`.
    """
    kept = len(messages) + len(items) - PORTION
    if kept <= 0:
        return Receipt()
    async with read() as tx:
        reach = await find_reach(tx, messages, items, conversation, names=names, answers_stay=answers_stay)
    receipt = Receipt()
    for part in _parts(reach.found):
        async with alone() as tx:
            receipt = receipt.plus(await erase_reached(tx, reach, part, messages, now, posts_stay))
    all_of_it: list[uuid.UUID | ItemRef] = [*items, *messages]
    for portion in _portions(all_of_it[:kept]):
        said = [each for each in portion if isinstance(each, uuid.UUID)]
        others = [each for each in portion if not isinstance(each, uuid.UUID)]
        async with alone() as tx:
            erased = await forget(
                tx, said, others, now, conversation, posts_stay=posts_stay, names=names, answers_stay=answers_stay
            )
            receipt, before = receipt.plus(erased), receipt
            if key is not None:
                receipt = await record(tx, receipt, key, now, before=before)
    return receipt


def _parts(found: Affected) -> Iterator[Affected]:
    """What an erasure reaches, in portions: first the answers, so that what they were made from is still known."""
    for replies in _portions(found.replies):
        yield Affected(replies=replies)
    for turns in _portions(found.turns):
        yield Affected(turns=turns)
    for items in _portions(found.items):
        yield Affected(items=items)


def _portions(things: Sequence[T]) -> Iterator[list[T]]:
    for start in range(0, len(things), PORTION):
        yield list(things[start : start + PORTION])

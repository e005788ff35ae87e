"""The working layer: the last messages of a conversation, from the cache where it is true, else from the log."""

from collections.abc import Sequence
from typing import Final

import structlog

from composer.errors import Unavailable
from composer.model import Conversation, Message
from composer.ports import Log, WorkingCache
from composer.visibility import Readable

logger = structlog.get_logger()

SHOWN: Final = 40  # messages that a prompt has at least, where there are as many
STEP: Final = 20  # the window moves by so many at once, so that the prompt's beginning can be reused
KEPT: Final = SHOWN + STEP  # what is read; one more than the widest window


async def read(
    log: Log, cache: WorkingCache, readable: Readable, conversation: Conversation, before: Message
) -> list[Message]:
    """The window of a conversation, oldest first, up to but without `before`; each message checked again."""
    messages = [m for m in await _last(log, cache, readable, conversation, before) if readable.admits(m)]
    return window(messages)


def window(messages: Sequence[Message]) -> list[Message]:
    """The last 40 to 59 of some messages: the oldest one shown changes with every twentieth message only."""
    return list(messages[-_wanted(messages) :])


def _wanted(messages: Sequence[Message]) -> int:
    return SHOWN + (messages[-1].seq % STEP if messages else 0)


async def _last(
    log: Log, cache: WorkingCache, readable: Readable, conversation: Conversation, before: Message
) -> list[Message]:
    try:
        cached = await cache.read(conversation)
    except Unavailable:
        logger.warning("working.cache_unavailable", conversation=str(conversation.id))
        return await log.latest(readable, conversation, KEPT, before)
    if cached is None:
        messages = await log.latest(readable, conversation, KEPT, None)
        try:
            await cache.replace(conversation, messages)
        except Unavailable:
            logger.warning("working.cache_unavailable", conversation=str(conversation.id))
        cached = messages
    earlier = [m for m in cached if (m.at, m.seq) < (before.at, before.seq)]
    if len(earlier) < _wanted(earlier) and len(cached) >= KEPT:  # what was said since has pushed older ones out
        return await log.latest(readable, conversation, KEPT, before)
    return earlier

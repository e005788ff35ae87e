"""The working layer: the last messages of a conversation, from the cache where it is true, else from the log.

Where a room's talks are mixed, some of what is shown are earlier messages of the talk that the question continues.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from composer.errors import Unavailable
from composer.layers import disentanglement as talks
from composer.model import Conversation, ConversationKind, Message
from composer.ports.working_cache import WorkingCache
from composer.repositories.messages import Messages
from composer.visibility import Readable

logger = structlog.get_logger()

SHOWN: Final = 40  # messages that a prompt has at least, where there are as many
STEP: Final = 20  # the window moves by so many at once, so that the prompt's beginning can be reused
KEPT: Final = SHOWN + STEP  # what is read; one more than the widest window
RECENT: Final = 30  # the last ones that a busy room's view always has, at least
CHOSEN: Final = SHOWN - RECENT  # and so many of the talk from before them
REACH: Final = talks.MOST  # messages that a talk is looked for in


@dataclass(frozen=True, slots=True)
class Window:
    """What is shown of a conversation, oldest first: its last messages without gaps, and before them the nearest ones
    of the question's talk, chosen `among` so many in all (0: the room is not busy, and nothing was chosen)."""

    recent: tuple[Message, ...]
    talk: tuple[tuple[Message, float], ...] = ()
    among: int = 0

    @property
    def shown(self) -> list[Message]:
        """All of it, oldest first."""
        return [*(message for message, _ in self.talk), *self.recent]


async def read(
    log: Messages,
    cache: WorkingCache,
    readable: Readable,
    conversation: Conversation,
    before: Message,
    *,
    busy: bool = False,
) -> Window:
    """The window of a conversation, up to but without `before`; each message checked again.

    `busy` is a guess, which decides only how many messages are read at first.
    """
    most = REACH if busy else KEPT
    messages = [m for m in await _last(log, cache, readable, conversation, before, most) if readable.admits(m)]
    if not mixed(conversation, messages):
        return newest(messages)
    if not busy:
        further = await _last(log, cache, readable, conversation, before, REACH)
        messages = [message for message in further if readable.admits(message)]
    return of_talk(messages, before)


def newest(messages: Sequence[Message]) -> Window:
    """The last 40 to 59 of some messages: the oldest one shown changes with every twentieth message only."""
    return Window(tuple(messages[-_wanted(messages, SHOWN) :]))


def of_talk(messages: Sequence[Message], asked: Message) -> Window:
    """The last 30 to 49 of a busy room's messages, and ten of the last 180 to 199 that `asked` continues."""
    looked_at, recent = messages[-_wanted(messages, REACH - STEP) :], _wanted(messages, RECENT)
    chosen = talks.nearest(looked_at, asked, len(looked_at) - recent, CHOSEN)
    return Window(tuple(looked_at[-recent:]), tuple(chosen), len(looked_at))


def mixed(conversation: Conversation, messages: Sequence[Message]) -> bool:
    """Whether a room's last messages are of several talks; judged when the window moves, not with every message."""
    settled = messages[: len(messages) - _since_step(messages)]
    return conversation.kind is ConversationKind.ROOM and len(settled) >= SHOWN and talks.busy(settled[-SHOWN:])


def _wanted(messages: Sequence[Message], least: int) -> int:
    return least + _since_step(messages)


def _since_step(messages: Sequence[Message]) -> int:
    """How many messages ago the window moved."""
    return messages[-1].seq % STEP if messages else 0


async def _last(
    log: Messages, cache: WorkingCache, readable: Readable, conversation: Conversation, before: Message, most: int
) -> list[Message]:
    """The last messages, at most `most` and at least as many as a window of so many less a step can show."""
    try:
        cached = await cache.read(conversation, most)
    except Unavailable:
        logger.warning("working.cache_unavailable", conversation=str(conversation.id))
        return await log.latest(readable, conversation, most, before)
    if cached is None:
        messages = await log.latest(readable, conversation, REACH, None)
        try:
            await cache.replace(conversation, messages)
        except Unavailable:
            logger.warning("working.cache_unavailable", conversation=str(conversation.id))
        cached = messages[-most:]
    earlier = [m for m in cached if (m.at, m.seq) < (before.at, before.seq)]
    if len(earlier) < _wanted(earlier, most - STEP) and len(cached) >= most:  # later ones have pushed older ones out
        return await log.latest(readable, conversation, most, before)
    return earlier
